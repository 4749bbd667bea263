"""A thing seen from afar, turned inside out."""

from dataclasses import replace

import numpy as np
import pytest

import initfree
from initfree.certificate.reversal import reversal_rise, reversed_depths
from initfree.certificate.verdict import certify, judge
from initfree.euclidean import AdjustConfig, adjust
from initfree.generator import generate


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
    wrong, _ = adjust(problem.tracks, problem.m, problem.unit, reversed_depths(afar.reconstruction), config)
    rise = reversal_rise(problem, wrong)
    assert rise is not None
    assert rise < -100.0
    certificate = judge(replace(afar.certificate.evidence, reversal_rise=rise))
    assert not certificate.accepted
    assert "turned inside out" in certificate.reason
    assert not certify(problem, wrong).accepted
