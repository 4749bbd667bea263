"""A thing seen from afar, turned inside out."""

import numpy as np
import pytest

import initfree
from initfree.certificate import reversal
from initfree.certificate.reversal import reversal_rise, reversed_depths
from initfree.certificate.thresholds import SIGNIFICANT
from initfree.certificate.verdict import certify, judge
from initfree.generator import generate
from initfree.stages.euclidean import AdjustConfig, adjust


@pytest.fixture(scope="module")
def afar() -> initfree.Result:
    dataset = generate("adversarial-near-affine", seed=1, shuffle=True, noise=0.5)
    result = initfree.solve(initfree.load(dataset.to_colmap(noisy=True)))
    assert result.accepted
    return result


def test_the_reversed_one_is_a_reconstruction_in_front_of_its_cameras_and_fits_worse(afar: initfree.Result):
    other = reversed_depths(afar.reconstruction)
    np.testing.assert_allclose(np.linalg.det(other.R), 1.0)
    assert other.positive_depths(afar.problem.tracks) == 1.0
    twice = reversed_depths(other)
    np.testing.assert_allclose(twice.depths(afar.problem.tracks), afar.reconstruction.depths(afar.problem.tracks), rtol=1e-3)
    rise = reversal_rise(afar.problem, afar.reconstruction)
    assert rise is not None
    assert rise > 100.0


def test_the_wrong_one_of_the_two_is_not_accepted(afar: initfree.Result):
    problem = afar.problem
    config = AdjustConfig(scales=(10.0, 4.0), max_iterations=50)
    wrong, _ = adjust(problem, reversed_depths(afar.reconstruction), config)
    rise = reversal_rise(problem, wrong)
    assert rise is not None
    assert rise < -100.0
    certificate = judge(afar.certificate.evidence.assuming(reversal_rise=rise))
    assert not certificate.accepted
    assert "turned inside out" in certificate.reason
    assert not certify(problem, wrong).accepted


def test_a_neighbourhood_of_a_large_problem_tells_for_the_whole(afar: initfree.Result, monkeypatch: pytest.MonkeyPatch):
    problem, reconstruction = afar.problem, afar.reconstruction
    wrong, _ = adjust(problem, reversed_depths(reconstruction), AdjustConfig(scales=(10.0, 4.0)))
    whole = reversal_rise(problem, reconstruction), reversal_rise(problem, wrong)
    monkeypatch.setattr(reversal, "NEIGHBOURHOOD", problem.tracks.cameras // 2 - 1)
    told = reversal_rise(problem, reconstruction)
    assert told is not None
    assert SIGNIFICANT <= told < whole[0]
    assert reversal_rise(problem, wrong) == whole[1], "of the wrong one no part tells, and the whole is asked"
