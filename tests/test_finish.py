"""The finishing steps: what one of them knows, no later one loses."""

from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from models import to_reconstruction
from solving import solution_of
from synthetic import Scene, ring

import initfree
from initfree.auto.finish import FINISH, finished
from initfree.auto.search import Search
from initfree.certificate import Evidence, History, certify, judge
from initfree.errors import InputError
from initfree.generator import generate
from initfree.generator.database import write_database


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ring(cameras=14, landmarks=300, noise=0.5, keep=0.7, min_observations=3)


def spoilt(scene: Scene, share: float) -> pycolmap.Reconstruction:
    """With a share of wrong matches."""
    m, rng = scene.m.copy(), np.random.default_rng(2)
    wrong = rng.permutation(len(m))[: round(share * len(m))]
    m[wrong] = m[np.roll(wrong, 1)]
    return to_reconstruction(replace(scene, m=m), "RADIAL")


@pytest.mark.slow
@pytest.mark.parametrize("intrinsics", ["unknown", "refine"])
@pytest.mark.parametrize("share", [0.0, 0.05])
def test_found_intrinsics_stay_uncertain(scene: Scene, intrinsics, share: float):
    result = initfree.solve(initfree.load(spoilt(scene, share), intrinsics=intrinsics))
    assert result.accepted
    assert result.problem.intrinsics == "found"
    assert result.problem.observations.intrinsics == intrinsics, "what the input said is not rewritten"
    assert result.uncertainty.focal.min() > 1e-5
    assert all(camera.focal_share is not None for camera in result.cameras)
    asked = {finding.check for finding in result.certificate.findings}
    assert {"focal length", "certain focal length", "determined"} <= asked


def test_given_intrinsics_stay_exact(scene: Scene):
    result = initfree.solve(initfree.load(spoilt(scene, 0.05)))
    assert result.problem.intrinsics == "given"
    assert result.uncertainty.focal.max() == 0.0
    assert "certain focal length" not in {finding.check for finding in result.certificate.findings}


@pytest.mark.slow
def test_a_database_with_unknown_intrinsics_ends_with_all_its_evidence(tmp_path):
    write_database(generate("set2", seed=3, shuffle=True, noise=0.5), tmp_path / "database.db")
    result = initfree.solve(initfree.load(tmp_path / "database.db", intrinsics="unknown"))
    assert [stage.name for stage in result.stages][-1] == "all matches"
    assert result.uncertainty.focal.min() > 1e-6
    figures = result.certificate.to_dict()
    assert figures["focal_rise"] is not None
    assert figures["intrinsics"] == "found"


def test_every_step_keeps_the_history(scene: Scene):
    """Facts of one step are there after all others, whatever these did."""
    model = spoilt(scene, 0.1)
    problem = initfree.load(model, intrinsics="unknown")
    result = initfree.solve(problem, initfree.SolveConfig(skip=tuple(step.name for step in FINISH)))
    facts = {"confirmed": frozenset({"start"}), "resected": True, "intrinsics_doubt": "a doubt"}
    after = finished(Search(problem, result.config.__class__()), solution_of(result, **facts))
    assert {stage.name for stage in after.stages} >= {"consensus", "intrinsics"}
    for name, value in facts.items():
        assert getattr(after.history, name) == value
    assert after.history.joint is not None
    assert after.history.joint.observations == problem.tracks.observations


@pytest.mark.slow
def test_found_intrinsics_stay_uncertain_after_each_step(scene: Scene):
    """With the step first that finds the intrinsics."""
    problem = initfree.load(spoilt(scene, 0.05), intrinsics="unknown")
    result = initfree.solve(problem, initfree.SolveConfig(skip=tuple(step.name for step in FINISH)))
    search, solution, asked = Search(problem, initfree.SolveConfig()), solution_of(result), set()
    acted = []
    for step in sorted(FINISH, key=lambda step: step.name != "intrinsics"):
        before, solution = solution, finished(search, solution, (step,))
        if solution is not before:
            acted.append(step.name)
        assert solution.problem.intrinsics == "found", step.name
        assert solution.evidence.uncertainty.focal.min() > 1e-5, step.name
        findings = {finding.check for finding in solution.certificate.findings}
        assert findings >= asked, f"{step.name} does not answer {asked - findings}"
        asked = findings & {"focal length", "certain focal length"}
    assert {"focal length", "certain focal length"} <= asked
    assert acted[:2] == ["intrinsics", "outliers"]


def test_steps_are_switched_off_by_name(scene: Scene):
    problem = initfree.load(spoilt(scene, 0.1))
    whole, without = (
        initfree.solve(problem, initfree.SolveConfig(skip=skip)) for skip in ((), ("outliers",))
    )  # fmt: skip
    assert "consensus" in {stage.name for stage in whole.stages}
    assert "consensus" not in {stage.name for stage in without.stages}
    with pytest.raises(InputError, match="skip is 'nothing'; expected one of all matches"):
        initfree.solve(problem, initfree.SolveConfig(skip=("nothing",)))


def test_evidence_is_computed_when_it_is_asked_for_and_once(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    result = initfree.solve(initfree.load(to_reconstruction(scene)))
    evidence = Evidence(result.problem, result.certificate.evidence.reconstruction)
    bad = judge(evidence.assuming(inlier_share=0.1))
    assert not bad.evidence.asked("system"), "nothing expensive where something cheap stands against it"
    assert evidence.system is evidence.system
    more = evidence.adding(confirmed=frozenset({"start"}))
    assert more.system is evidence.system
    assert not evidence.history.confirmed
    assert not evidence.adding(joint=None).asked("joint")


def test_another_order_of_cameras_and_landmarks_is_the_same_reconstruction(scene: Scene):
    result = initfree.solve(initfree.load(to_reconstruction(scene)))
    rng = np.random.default_rng(0)
    r = result.reconstruction
    mixed = r.subset(rng.permutation(len(r.R)), rng.permutation(len(r.xyz)))
    right, again = certify(result.problem, r), certify(result.problem, mixed, History())
    assert again.accepted == right.accepted
    assert again.margin == pytest.approx(right.margin)
    with pytest.raises(InputError, match="13 cameras and"):
        certify(result.problem, r.subset(np.arange(13), slice(None)))
    with pytest.raises(InputError, match="no camera of image"):
        certify(result.problem, replace(r, names=("other", *r.names[1:])))
    with pytest.raises(InputError, match="no landmark"):
        certify(result.problem, replace(r, ids=r.ids + 10_000))


def test_problems_and_reconstructions_are_compared_by_identity(scene: Scene):
    one, other = (initfree.load(to_reconstruction(scene)) for _ in range(2))
    assert one == one
    assert one != other
    assert len({one, other}) == 2
    result = initfree.solve(one)
    assert result.reconstruction == result.reconstruction
    assert hash(result.reconstruction) == hash(result.reconstruction)
    assert result.cameras is result.cameras
