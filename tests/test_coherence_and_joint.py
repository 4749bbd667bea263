"""What tells a bent or wrongly joined reconstruction from a noisy one."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from models import to_reconstruction
from solving import single
from synthetic import ring

import initfree
from initfree.certificate.coherence import MOST_A_CAMERA, NEIGHBOURS, coherence
from initfree.certificate.joint import weakest_joint
from initfree.certificate.verdict import certify
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Tracks


def single_image(observations: int, rng: np.random.Generator) -> tuple[Tracks, Array]:
    """One camera that sees as many landmarks, and where in the image."""
    tracks = Tracks(np.zeros(observations, dtype=np.int64), np.arange(observations + 1), 1)
    return tracks, rng.uniform(0.0, 1000.0, size=(observations, 2))


@given(seed=st.integers(0, 1000), scale=st.floats(1e-6, 1e3))
def test_noise_of_any_size_is_not_coherent(seed: int, scale: float):
    rng = np.random.default_rng(seed)
    tracks, xy = single_image(400, rng)
    mean, deviation, _ = coherence(tracks, xy, scale * rng.normal(size=xy.shape), np.ones(400, dtype=bool))
    assert abs(mean) < 5.0 * deviation
    assert deviation == pytest.approx((2.0 / 1200.0) ** 0.5)


def naive_coherence(tracks: Tracks, xy: Array, residuals: Array, chosen: np.ndarray) -> float:
    """All distances of every two chosen observations of a camera; no two of them are equal."""
    cosines = []
    for k in range(tracks.cameras):
        mine = np.flatnonzero(chosen & (tracks.cam == k))
        if len(mine) <= NEIGHBOURS:
            continue
        every = -(-len(mine) // MOST_A_CAMERA)
        unit = residuals[mine] / np.linalg.norm(residuals[mine], axis=1, keepdims=True)
        for i in range(0, len(mine), every):
            distance = np.linalg.norm(xy[mine] - xy[mine[i]], axis=1)
            near = [j for j in np.argsort(distance)[: NEIGHBOURS + 1] if distance[j] > 0.0]
            cosines.extend(unit[near] @ unit[i])
    return float(np.mean(cosines))


@pytest.mark.slow
@given(seed=st.integers(0, 1000), shape=st.sampled_from(["even", "crowded", "line", "column", "far"]))
def test_coherence_is_that_of_the_nearest(seed: int, shape: str):
    rng = np.random.default_rng(seed)
    cameras, landmarks = 4, 700
    seen = rng.random((landmarks, cameras)) < (0.9, 0.4, 0.02, 0.005)
    seen[:, 0] |= ~seen.any(axis=1)
    cam = np.nonzero(seen)[1]
    tracks = Tracks(cam, np.concatenate([[0], np.cumsum(seen.sum(axis=1))]), cameras)
    xy = rng.uniform(0.0, 1000.0, size=(len(cam), 2))
    if shape == "crowded":  # most in one corner
        xy = xy**4 / 1e9
    elif shape == "line":
        xy[:, 1] = 5.0
    elif shape == "column":
        xy[:, 0] = -5.0
    elif shape == "far":
        xy[::50] *= 1e6
    residuals, chosen = rng.normal(size=xy.shape) + np.sin(xy / 100.0), rng.random(len(cam)) < 0.9
    assert coherence(tracks, xy, residuals, chosen)[0] == pytest.approx(
        naive_coherence(tracks, xy, residuals, chosen), abs=1e-9
    )


def test_errors_that_change_slowly_across_the_image_are_coherent():
    rng = np.random.default_rng(0)
    tracks, xy = single_image(400, rng)
    smooth = np.column_stack([np.sin(xy[:, 0] / 200.0), np.cos(xy[:, 1] / 200.0)])
    everything = np.ones(400, dtype=bool)
    assert coherence(tracks, xy, smooth, everything)[0] > 0.9
    half = coherence(tracks, xy, smooth + rng.normal(size=xy.shape), everything)[0]
    assert 0.2 < half < 0.6


@pytest.mark.parametrize("extent", [5e-324, 1e-300, 1e-12, 1e12, 1e150])
def test_coherence_of_any_extent_is_found(extent: float):
    rng = np.random.default_rng(4)
    tracks, xy = single_image(60, rng)
    xy = extent * np.round(xy)
    mean, deviation, _ = coherence(tracks, xy, rng.normal(size=xy.shape), np.ones(60, dtype=bool))
    assert abs(mean) <= 1.0
    assert 0.0 < deviation <= 1.0


def test_keypoints_at_one_place_are_no_neighbours():
    rng = np.random.default_rng(2)
    tracks, xy = single_image(400, rng)
    xy[200:] = xy[:200]
    residuals = rng.normal(size=xy.shape)
    residuals[200:300] = residuals[:100]
    mean, deviation, _ = coherence(tracks, xy, residuals, np.ones(400, dtype=bool))
    assert abs(mean) < 3.0 * deviation
    assert coherence(tracks, np.tile(xy[:1], (400, 1)), residuals, np.ones(400, dtype=bool))[:2] == (0.0, 1.0)


def test_coherence_asks_the_chosen_observations_alone():
    rng = np.random.default_rng(1)
    tracks, xy = single_image(600, rng)
    residuals = np.where(np.arange(600)[:, None] < 300, 1.0, rng.normal(size=(600, 2)))
    assert coherence(tracks, xy, residuals, np.arange(600) < 300)[0] == pytest.approx(1.0)
    assert coherence(tracks, xy, residuals, np.zeros(600, dtype=bool))[:2] == (0.0, 1.0)


def two_parts(rng: np.random.Generator, first: int, second: int, joining: int) -> tuple[Tracks, np.ndarray]:
    """Two groups of cameras, shuffled, with tracks of three within a group and some of two and two across.

    Returns which observations are of the second group.
    """
    label = rng.permutation(np.repeat([0, 1], [first, second]))
    groups = [np.flatnonzero(label == k) for k in (0, 1)]
    cams = [np.sort(rng.choice(groups[k], 3, replace=False)) for k in (0, 1) for _ in range(60)]
    cams += [np.sort(np.concatenate([rng.choice(g, 2, replace=False) for g in groups])) for _ in range(joining)]
    lengths = [len(c) for c in cams]
    tracks = Tracks(np.concatenate(cams), np.concatenate([[0], np.cumsum(lengths)]), first + second)
    return tracks, label


def expected(joining: Array) -> Array:
    """A quarter, less two deviations."""
    return 0.25 - 2.0 * np.sqrt(0.25 * 0.75 / joining)


@given(seed=st.integers(0, 300), first=st.integers(4, 9))
def test_two_parts_that_nothing_joins_are_found(seed: int, first: int):
    rng = np.random.default_rng(seed)
    tracks, label = two_parts(rng, first, 10, 8)
    crossing = np.array([len(set(label[tracks.cam[a:b]])) > 1 for a, b in zip(tracks.ptr[:-1], tracks.ptr[1:], strict=True)])
    fits = ~(crossing[tracks.landmark] & (label[tracks.cam] == 0))
    joint = weakest_joint(tracks, fits, expected)
    assert joint.fitting == 0
    assert joint.joining == 8
    np.testing.assert_array_equal(joint.smaller, label == 0)


def test_wrong_matches_leave_every_joint():
    rng = np.random.default_rng(3)
    tracks, _ = two_parts(rng, 8, 10, 40)
    assert weakest_joint(tracks, np.ones(tracks.observations, dtype=bool), expected).share == pytest.approx(1.0)
    assert weakest_joint(tracks, rng.random(tracks.observations) > 0.2, expected).share > 0.4


@pytest.mark.parametrize("joining", [1, 5, 9])
def test_parts_that_few_landmarks_join_are_the_weakest_joint(joining: int):
    tracks, label = two_parts(np.random.default_rng(4), 7, 10, joining)
    joint = weakest_joint(tracks, np.ones(tracks.observations, dtype=bool), expected)
    assert joint.fitting == joining
    np.testing.assert_array_equal(joint.smaller, label == 0)


@pytest.fixture(scope="module")
def solved() -> tuple[Problem, Reconstruction]:
    scene = ring(cameras=16, landmarks=900, min_observations=3, noise=0.7, shuffle=False)
    result = single(initfree.load(to_reconstruction(scene)))
    assert result.certificate.accepted
    assert abs(result.certificate.evidence.coherence) < 0.05
    return result.problem, result.reconstruction


def turned(reconstruction: Reconstruction, angle: Array) -> Reconstruction:
    """Cameras turned about their own axes x and y by small angles (cameras, 2)."""
    x, y = angle.T
    zero, one = np.zeros_like(x), np.ones_like(x)
    small = np.stack([one, zero, y, zero, one, -x, -y, x, one], axis=1).reshape(-1, 3, 3)
    q, _ = np.linalg.qr(small)
    q *= np.sign(np.einsum("kij,kij->kj", q, small))[:, None, :]
    return replace(reconstruction, R=q @ reconstruction.R, t=(q @ reconstruction.t[:, :, None])[:, :, 0])


def test_images_that_move_as_a_whole_are_doubtful(solved: tuple[Problem, Reconstruction]):
    problem, reconstruction = solved
    unit = 0.6 * np.random.default_rng(0).choice([-1.0, 1.0], size=(problem.tracks.cameras, 2))
    certificate = certify(problem, turned(reconstruction, unit / problem.unit.mean()))
    assert certificate.doubtful
    assert not certificate.accepted
    assert "point the same way" in certificate.reason


def test_two_halves_joined_wrongly_are_rejected(solved: tuple[Problem, Reconstruction]):
    problem, reconstruction = solved
    tracks = problem.tracks
    second = np.arange(tracks.cameras) >= 8
    votes = np.bincount(tracks.landmark, weights=second[tracks.cam], minlength=tracks.landmarks)
    moved = 2.0 * votes > np.diff(tracks.ptr)
    shift = np.array([0.4, 0.1, -0.3]) * np.ptp(reconstruction.xyz, axis=0)
    t = reconstruction.t - np.where(second[:, None], np.einsum("kij,j->ki", reconstruction.R, shift), 0.0)
    certificate = certify(
        problem, replace(reconstruction, t=t, xyz=reconstruction.xyz + np.where(moved[:, None], shift, 0.0))
    )
    assert not certificate.accepted
    assert certificate.evidence.joint.share < 0.1
    assert "landmarks join 8 images" in certificate.reason
