"""The way of a solve: it begins far off, ends at the result, and stays small."""

import numpy as np
import pytest
from models import to_reconstruction
from synthetic import ring

import initfree
from initfree.stages.trace import LANDMARKS, STEPS, Passage, Step, Trace


@pytest.fixture(scope="module")
def problem() -> initfree.Problem:
    return initfree.load(to_reconstruction(ring(cameras=12, landmarks=300, noise=0.3, min_observations=3)))


@pytest.mark.parametrize("strategy", ["single", "auto"])
@pytest.mark.parametrize("init", ["normal", "spectral"])
def test_from_far_off_to_the_result(problem, strategy, init):
    result = initfree.solve(problem, initfree.SolveConfig(init=init, loss="cauchy"), strategy)
    ids, moments = result.moments()
    final = result.reconstruction.xyz[np.searchsorted(result.reconstruction.ids, ids)]
    extent = float(np.median(np.linalg.norm(final - np.median(final, axis=0), axis=1)))

    def away(k: int) -> float:
        return float(np.nanmedian(np.linalg.norm(moments[k].xyz - final, axis=1))) / extent

    assert [moment.stage for moment in moments][:1] == ["varpro"]
    assert {moment.stage for moment in moments} == {"varpro", "refinement", "adjustment"}
    assert away(0) > (0.3 if init == "normal" else 0.03)
    assert away(-1) < 1e-3
    assert np.abs(moments[-1].R - result.reconstruction.R).max() < 1e-2
    assert np.linalg.norm(moments[-1].centres - result.reconstruction.centres, axis=1).max() < 1e-2 * extent
    middle = next(k for k, moment in enumerate(moments) if moment.stage == "adjustment")
    assert away(middle) < 0.5 * away(0)


def test_radial_cameras_are_shown_once_they_have_a_depth(problem):
    _, moments = initfree.solve(problem, initfree.SolveConfig(formulation="rpose"), "single").moments()
    assert moments[0].stage == "refinement"


def test_memory_is_bounded():
    passage = Passage("varpro", np.arange(3), metric=True)
    nothing = np.zeros((1, 3, 4), dtype=np.float32)
    for k in range(1000):
        passage.add(Step(k, float(k), nothing, nothing[:, :, 0]))
        assert passage.steps[-1].index == k, "the newest is always there"
        assert len(passage.steps) <= STEPS
    assert passage.steps[0].index == 0
    assert np.diff([step.index for step in passage.steps]).max() <= 2 * 1000 / STEPS
    trace = Trace()
    trace.begin("varpro", np.arange(10 * LANDMARKS + 1), lambda: (np.zeros((2, 3, 4)), np.zeros((100_000, 4))), metric=False)
    assert len(trace.passages[0].ids) <= LANDMARKS
