"""Places that look alike: the order of the photographs, and images that were left out though they belong."""

from dataclasses import replace

import numpy as np
import pytest
from models import to_reconstruction
from synthetic import ring

import initfree
from initfree.certificate import Evidence, History, judge
from initfree.certificate.checks import NONE_BELONGS
from initfree.certificate.depth_halves import near_against_far
from initfree.certificate.left_out import fitting
from initfree.certificate.photo_order import joint_by_order
from initfree.data.problem import restricted, without_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Tracks
from initfree.stages.euclidean.residuals import residuals

AHEAD = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, 1.0, 0.0]])
WALK = np.linspace(0.0, 12.0, 13)
"""past a front, the second part from the tenth photograph"""
SECOND = np.arange(13) >= 9


def seen_from(places: np.ndarray) -> Reconstruction:
    """Each camera sees one landmark, ten before it."""
    n = len(places)
    centres = np.column_stack([places, np.zeros(n), np.zeros(n)])
    R = np.tile(AHEAD, (n, 1, 1))
    xyz = centres + np.array([0.0, 10.0, 0.0])
    return Reconstruction(R, -np.einsum("nij,nj->ni", R, centres), np.ones(n), np.zeros((n, 2)), xyz)


def told(names: list[str], own: np.ndarray, other: np.ndarray) -> int:
    tracks = Tracks(np.arange(13), np.arange(14), 13)
    return joint_by_order(names, tracks, SECOND, seen_from(own), seen_from(other))


def test_who_walks_on_has_not_jumped_back():
    names = [f"{k}.jpg" for k in range(13)]
    folded = WALK - 9.0 * SECOND
    assert told(names, WALK, folded) == 1
    assert told(names, folded, WALK) == -1


def test_names_without_an_order_say_nothing():
    mixed = [f"{k}.jpg" for k in np.random.default_rng(3).permutation(13)]
    assert told(mixed, WALK, WALK - 9.0 * SECOND) == 0


def test_equal_things_one_after_the_other_look_in_order_on_top_of_each_other():
    """Two photographed from three sides each, far apart: without the way between them, the fold has the shorter steps."""
    names = [f"{k}.jpg" for k in range(13)]
    apart, folded = WALK + 30.0 * SECOND, WALK - 3.0 * SECOND
    assert told(names, apart, folded) == 0
    assert told(names, folded, apart) == 0


@pytest.mark.parametrize("right", [True, False], ids=["an image that fits", "one with wrong matches"])
def test_an_image_that_was_left_out_though_it_fits_is_evidence_against_the_others(right: bool):
    scene = ring(cameras=12, landmarks=200, noise=0.3, min_observations=4)
    m, theirs = scene.m.copy(), np.flatnonzero(scene.tracks.cam == 5)
    m[theirs] = m[theirs] if right else np.random.default_rng(1).permutation(m[theirs])
    model = to_reconstruction(replace(scene, m=m), "PINHOLE")
    whole = initfree.load(model)
    found = without_cameras(whole, np.flatnonzero(np.array(whole.names) == "image005.jpg"))
    assert found is not None
    problem = found[0]
    gone = tuple(sorted({*whole.names} - {*problem.names}))
    result = initfree.solve(problem)
    assert result.accepted
    belonging = fitting(problem, result.certificate.evidence.reconstruction, gone)
    assert [name for name, _, _ in belonging] == ([*gone] if right else [])
    evidence = Evidence(problem, result.certificate.evidence.reconstruction, History(left_out=gone))
    finding = next(one for one in judge(evidence).findings if one.check == NONE_BELONGS)
    assert finding.passed != right


def test_a_half_that_does_not_hold_the_images_together_says_nothing():
    """Far landmarks that images of one side only see leave the two sides to the near ones."""
    result = initfree.solve(
        initfree.load(to_reconstruction(ring(cameras=16, landmarks=600, noise=0.3, min_observations=4), "PINHOLE"))
    )
    problem, r = result.problem, result.certificate.evidence.reconstruction
    assert near_against_far(problem, r) is not None
    t = problem.tracks
    depth = np.bincount(t.landmark, weights=residuals(problem, r).depth) / np.diff(t.ptr)
    far = depth > np.quantile(depth, 0.35)
    one_side = (np.arange(t.cameras) < 8)[t.cam] == (t.landmark % 2 == 0)
    found = restricted(problem, ~far[t.landmark] | one_side, least=2)
    assert found is not None
    fewer, landmarks = found
    assert near_against_far(fewer, r.subset(slice(None), landmarks)) is None
