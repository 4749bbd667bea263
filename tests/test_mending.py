"""What only another model of the cameras can tell: refused by the certificate, and mended where the observations say how."""

from dataclasses import replace

import numpy as np
import pytest

import initfree
from initfree.auto.search import Search, voted_with_rotations
from initfree.auto.solution import Solution, Start
from initfree.auto.start import run_start
from initfree.certificate import Evidence, certify, judge
from initfree.certificate.checks import LENS, METRIC, NOT_TWICE, ONE_JOINT
from initfree.certificate.coincident import parts_of_twins
from initfree.certificate.history import History
from initfree.certificate.thresholds import MAX_PROJECTIVE_RATIO
from initfree.generator import generate
from initfree.generator.dataset import Dataset
from initfree.stages.euclidean.residuals import consensus

pytestmark = pytest.mark.slow


def made(name: str, **spoilt: float) -> Dataset:
    return generate(f"adversarial-{name}", seed=0, shuffle=True, noise=0.5, **spoilt)


def solved(dataset: Dataset, *skip: str) -> tuple[initfree.Result, initfree.Metrics]:
    problem = initfree.load(dataset.to_colmap(noisy=True))
    result = initfree.solve(problem, initfree.SolveConfig(skip=skip))
    return result, initfree.evaluate(result, dataset.to_colmap())


def first_found(problem: initfree.Problem) -> Solution:
    """The first start that knows of wrong matches, before anything is mended."""
    search = Search(problem, initfree.SolveConfig())
    (start,) = voted_with_rotations(search)
    found = run_start(problem, start, lambda: search.baselines)
    assert isinstance(found, Solution)
    return found


def failed(result: initfree.Result) -> set[str]:
    return {finding.check for finding in result.certificate.findings if not finding.passed}


@pytest.mark.parametrize(
    ("name", "check", "spoilt"),
    [
        ("zoom-side", METRIC, {}),
        ("zoom-arc", METRIC, {"focal_variation": 0.1}),
        ("dome-field", LENS, {"k1": -0.04}),
        ("dome-strip", LENS, {}),
    ],
)
def test_a_wrong_model_of_the_cameras_is_refused_and_mended(name: str, check: str, spoilt: dict[str, float]):
    dataset = made(name, **spoilt)
    refused, wrong = solved(dataset, "another lens", "own cameras")
    assert not refused.accepted
    assert check in failed(refused)
    result, metrics = solved(dataset)
    assert result.accepted, result.certificate.reason
    assert min(metrics.rotation_auc20, metrics.translation_auc20) > 95.0
    assert min(metrics.rotation_auc20, metrics.translation_auc20) > min(wrong.rotation_auc20, wrong.translation_auc20)
    assert any("the given intrinsics were refined" in note for note in result.notes)


def test_intrinsics_that_were_exchanged_are_found():
    result, metrics = solved(made("exchanged"))
    assert result.accepted, result.certificate.reason
    assert min(metrics.rotation_auc20, metrics.translation_auc20) > 95.0


def test_equal_towers_that_wrong_pairs_of_images_join_come_apart():
    dataset = made("wrong-pairs")
    problem = initfree.load(dataset.to_colmap(noisy=True))
    doubled = first_found(problem)
    assert not doubled.accepted
    assert NOT_TWICE in {finding.check for finding in doubled.certificate.findings if not finding.passed}
    assert doubled.evidence.twin_share > 0.3
    result, metrics = solved(dataset)
    assert result.accepted, result.certificate.reason
    assert min(metrics.rotation_auc20, metrics.translation_auc20) > 95.0
    assert any("the tracks that both share were divided" in note for note in result.notes)
    assert result.certificate.evidence.twin_share < 0.05


def test_twin_landmarks_say_which_images_belong_together():
    dataset = made("wrong-pairs", wrong_pairs=2)
    doubled = first_found(initfree.load(dataset.to_colmap(noisy=True)))
    problem, found = doubled.problem, doubled.reconstruction
    counts = consensus(problem, found)
    group = parts_of_twins(problem.tracks, problem.unit, found.cameras, found.xyz, counts)
    assert group is not None
    place = {name: k for k, name in enumerate(dataset.names)}
    tower = dataset.poses.centres[[place[name] for name in problem.names], 0] > 15.0
    assert np.array_equal(group, tower) or np.array_equal(group, ~tower)


def test_a_rolling_shutter_that_leaves_the_cameras_is_no_reason_to_refuse():
    """Projective cameras fit clearly better; a shutter explains that, and one focal length an image does not."""
    dataset = made("shutter", shutter=0.08)
    problem = initfree.load(dataset.to_colmap(noisy=True))
    evidence = certify(problem, at_the_truth(dataset, problem)).evidence
    assert evidence.projective_ratio > MAX_PROJECTIVE_RATIO
    assert evidence.with_shutter.saved > 0.2 > evidence.with_own_focal_lengths.saved
    assert evidence.with_shutter.closeness > 95.0
    assert METRIC not in {f.check for f in judge(evidence).findings if not f.passed}


def test_a_zoom_is_no_rolling_shutter():
    dataset = made("zoom-arc", focal_variation=0.1)
    problem = initfree.load(dataset.to_colmap(noisy=True))
    result = initfree.solve(problem, initfree.SolveConfig(skip=("own cameras", "another lens")))
    assert METRIC in failed(result)
    assert result.certificate.evidence.asked("with_shutter")


def at_the_truth(dataset: Dataset, problem: initfree.Problem) -> initfree.Reconstruction:
    from initfree.api import as_model
    from initfree.benchmark.data import true_reconstruction

    return true_reconstruction(problem, as_model(dataset.to_colmap()))


def test_misfits_across_a_joint_that_agree_on_another_one_are_a_contradiction():
    dataset = made("halves", joint_share=0.5, joint_scale=1.4)
    problem = initfree.load(dataset.to_colmap(noisy=True))
    evidence = certify(problem, at_the_truth(dataset, problem)).evidence
    found = evidence.contradiction
    assert found is not None
    assert found.chance < 1e-6
    assert found.agreeing > 0.8 * found.misfits
    assert found.scale == pytest.approx(1.4, abs=0.1) or found.scale == pytest.approx(1.0 / 1.4, abs=0.1)
    # Where the other joint moves the cameras, the reconstruction is not accepted.
    other = replace(found, other=evidence.reconstruction)
    judged = {f.check: f for f in judge(evidence.assuming(contradiction=other, other_joint_doubles=False)).findings}
    assert judged[ONE_JOINT].margin < 0.0
    assert "contradict each other" in judged[ONE_JOINT].reason
    doubled = {f.check: f for f in judge(evidence.assuming(contradiction=other, other_joint_doubles=True)).findings}
    assert doubled[ONE_JOINT].passed


def test_misfits_that_are_noise_agree_on_nothing():
    dataset = made("sessions", joint_random=0.4)
    problem = initfree.load(dataset.to_colmap(noisy=True))
    found = certify(problem, at_the_truth(dataset, problem)).evidence.contradiction
    assert found is not None
    assert found.misfits > 5
    assert not found.found


def test_a_doubt_is_settled_only_by_who_could_have_said_otherwise():
    """A second start has the same lens: it says nothing where another lens would move the cameras."""
    right, _ = solved(made("strip"))
    doubted = right.certificate.evidence.assuming(systematic=1.0)
    finding = next(f for f in judge(doubted).findings if f.check == "coherent errors")
    assert finding.settled_by == ("start", "lens", "cameras")
    assert not judge(doubted).accepted
    confirmed = doubted.adding(confirmed=frozenset({"start"}))
    assert judge(confirmed).accepted
    elsewhere = replace(confirmed.with_lens, deviations=1e4, rotation_auc20=60.0)
    assert "errors of neighbouring observations" in judge(confirmed.assuming(with_lens=elsewhere)).reason


def test_while_a_search_goes_on_other_models_of_the_cameras_are_not_asked():
    dataset = made("strip")
    result, _ = solved(dataset)
    evidence = Evidence(result.problem, result.certificate.evidence.reconstruction, History(searching=True))
    asked = {finding.check for finding in judge(evidence).findings}
    assert not asked & {LENS, METRIC}
    assert {LENS, METRIC} <= {finding.check for finding in result.certificate.findings}


def test_a_landmark_is_twice_only_where_images_of_both_stand_among_each_other():
    """Tracks that end and begin again are in one place too, and are no doubling."""
    from initfree.certificate.coincident import twin_share
    from initfree.data.tracks import Tracks

    n, rng = 24, np.random.default_rng(0)
    centres = np.column_stack([np.linspace(-6.0, 6.0, n), np.full(n, -10.0), np.zeros(n)])
    R = np.tile(np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]]), (n, 1, 1))
    cameras = R, -np.einsum("nij,nj->ni", R, centres), np.ones(n), np.zeros((n, 2))
    xyz = rng.uniform(-3.0, 3.0, (60, 3))

    def share(first: list[int], second: list[int]) -> float:
        cam = np.tile(np.array([*first, *second]), len(xyz))
        ptr = np.concatenate([[0], np.cumsum(np.tile([len(first), len(second)], len(xyz)))])
        tracks = Tracks(cam.astype(np.int64), ptr.astype(np.int64), n)
        unit = np.full((len(cam), 2), 1000.0)
        return twin_share(tracks, unit, cameras, np.repeat(xyz, 2, axis=0), np.ones(len(cam), dtype=bool))

    assert share([0, 4, 8, 12], [2, 6, 10, 14]) > 0.9
    assert share([0, 1, 2, 3], [4, 5, 6, 7]) < 0.1


def test_nothing_is_mended_that_is_accepted():
    from initfree.auto.mending import with_another_lens, with_other_joint, with_own_cameras

    dataset = made("strip")
    result, _ = solved(dataset)
    solution = Solution(result.certificate.evidence, Start("any", result.config), result.intermediate)
    search = Search(result.problem, result.config)
    assert all(step(search, solution) is None for step in (with_other_joint, with_another_lens, with_own_cameras))
