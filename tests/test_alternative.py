"""Another reconstruction that the observations allow as well, far from the one that was found."""

from dataclasses import replace

import numpy as np
import pytest

import initfree
from initfree.api import as_model
from initfree.benchmark.data import true_reconstruction
from initfree.benchmark.methods import adjust_from_truth
from initfree.certificate import Evidence
from initfree.certificate.alternative import alternative, as_alternative, better_of, compared_costs, doubtful, moved
from initfree.certificate.modes import determination, weakest_modes
from initfree.certificate.verdict import certify, judge
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.generator import generate


def at_the_truth(name: str, seed: int) -> tuple[Problem, Reconstruction]:
    dataset = generate(name, seed=seed, shuffle=True, noise=0.5)
    problem = initfree.load(dataset.to_colmap(noisy=True))
    best = adjust_from_truth(problem, true_reconstruction(problem, as_model(dataset.to_colmap())))
    return problem, Reconstruction.of_poses(problem.names, best.R, best.t, problem.landmark_ids, best.xyz)


@pytest.fixture(scope="module")
def cubic() -> tuple[Problem, Reconstruction]:
    return at_the_truth("adversarial-cubic", 2)


def test_cameras_on_a_twisted_cubic_have_a_second_reconstruction_even_at_the_truth(cubic: tuple[Problem, Reconstruction]):
    problem, truth = cubic
    certificate = certify(problem, truth)
    other = certificate.evidence.alternative
    assert other is not None
    assert min(other.rotation_auc20, other.translation_auc20) < 80.0
    assert other.ratio < 1.1
    assert not certificate.accepted
    assert "ambiguous: another reconstruction" in certificate.reason
    back = as_alternative(problem, other.reconstruction, truth)
    assert back is not None
    assert back.ratio == pytest.approx(1.0 / other.ratio)


@pytest.mark.slow
def test_a_reconstruction_that_nothing_else_fits_has_no_other():
    problem, truth = at_the_truth("thin1", 2)
    other = alternative(problem, truth, Evidence(problem, truth).system)
    assert other is None or other.ratio > 1.5


def test_it_is_looked_for_only_where_there_is_reason(cubic: tuple[Problem, Reconstruction]):
    assert doubtful(determination(Evidence(*cubic).system), 90.0)
    problem, truth = at_the_truth("set2", 2)
    certain = determination(Evidence(problem, truth).system)
    assert not doubtful(certain, 30.0)
    assert doubtful(certain, 1.0)


def test_moved_cameras_move_by_the_step_and_nothing_else(cubic: tuple[Problem, Reconstruction]):
    problem, truth = cubic
    system = Evidence(problem, truth).system
    _, directions = weakest_modes(system, 2)
    assert abs(float(np.sum(directions[0] * directions[1]))) < 1e-6
    still = moved(problem, truth, system, np.zeros_like(directions[0]))
    assert as_alternative(problem, truth, still) is None
    ratio, count = compared_costs(problem, truth, still)
    assert ratio == pytest.approx(1.0, abs=1e-3)
    assert count > 0.9 * problem.tracks.observations
    far = moved(problem, truth, system, directions[0])
    turned = np.linalg.norm(directions[0][:, :3], axis=1)
    trace = np.einsum("nij,nij->n", far.R, truth.R)
    np.testing.assert_allclose(np.arccos(np.clip((trace - 1.0) / 2.0, -1.0, 1.0)), turned, atol=1e-6)


def test_the_verdict_follows_the_ratio_of_costs(cubic: tuple[Problem, Reconstruction]):
    problem, truth = at_the_truth("set2", 2)
    certificate = certify(problem, truth)
    assert certificate.accepted
    other = certify(*cubic).evidence.alternative
    assert other is not None
    for ratio, accepted in ((0.9, False), (1.19, False), (1.21, True), (5.0, True)):
        evidence = certificate.evidence.assuming(alternative=replace(other, ratio=ratio))
        assert judge(evidence).accepted is accepted
    assert better_of(None, None) is None
    assert better_of(other, replace(other, ratio=0.5)) == replace(other, ratio=0.5)
