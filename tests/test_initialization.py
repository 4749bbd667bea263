"""What each initialisation promises."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from synthetic import reorder_cameras, reorder_landmarks, ring, tracks_of

from initfree.data.tracks import Array, Tracks
from initfree.errors import InputError
from initfree.stages.initialization import INITIALIZATIONS, initialize, spectral_positions

NAMES = list(INITIALIZATIONS)
SEEDED = ["normal", "normal-affine", "uniform", "unit-circle-shuffled"]
FACING = ["unit-circle", "unit-circle-shuffled", "spectral", "spectral-outward"]


@pytest.fixture(scope="module")
def tracks() -> Tracks:
    return ring(cameras=16, landmarks=400, seed=3).tracks


def centres(P: Array) -> Array:
    return -np.einsum("nba,nb->na", P[:, :, :3], P[:, :, 3])


@pytest.mark.parametrize("name", NAMES)
def test_shape_and_seed(name: str, tracks: Tracks):
    P = initialize(name, tracks, seed=1)
    assert P.shape == (16, 3, 4)
    assert P.dtype == np.float64
    assert np.isfinite(P).all()
    assert_array_equal(P, initialize(name, tracks, seed=1))
    assert np.array_equal(P, initialize(name, tracks, seed=2)) == (name not in SEEDED)


def test_normal_and_uniform_fill_every_entry(tracks: Tracks):
    many = Tracks(np.empty(0, dtype=np.int64), np.zeros(1, dtype=np.int64), 4000)
    P = initialize("normal", many, seed=0)
    assert_allclose(P.mean(axis=0), 0.0, atol=0.08)
    assert_allclose(P.std(axis=0), 1.0, atol=0.05)
    P = initialize("uniform", many, seed=0)
    assert_allclose(P.mean(axis=0), 0.0, atol=0.05)
    assert np.abs(P).max() <= 1.0
    assert_allclose(np.abs(P).max(axis=0), 1.0, atol=0.01)


def test_affine_cameras_have_the_affine_third_row(tracks: Tracks):
    P = initialize("normal-affine", tracks, seed=0)
    assert_array_equal(P[:, 2], np.tile([0.0, 0.0, 0.0, 1.0], (16, 1)))
    assert P[:, :2].all()


@pytest.mark.parametrize("name", FACING)
def test_facing_cameras_are_rotations_that_look_in_or_out(name: str, tracks: Tracks):
    P = initialize(name, tracks, seed=0)
    R = P[:, :, :3]
    assert_allclose(R @ R.transpose(0, 2, 1), np.tile(np.eye(3), (16, 1, 1)), atol=1e-12)
    assert_allclose(np.linalg.det(R), 1.0)
    # The origin lies on the optical axis, at the camera's distance: in front, or behind if it looks outward.
    distance = np.linalg.norm(centres(P), axis=1)
    assert_allclose(P[:, :2, 3], 0.0, atol=1e-12)
    assert_allclose(P[:, 2, 3], -distance if name == "spectral-outward" else distance)
    assert_allclose(R[:, 1], np.tile([0.0, 0.0, -1.0], (16, 1)), atol=1e-12)


def test_unit_circle_places_camera_k_at_its_angle(tracks: Tracks):
    c = centres(initialize("unit-circle", tracks, seed=0))
    angle = 2.0 * np.pi * np.arange(16) / 16
    assert_allclose(c, np.column_stack([np.cos(angle), np.sin(angle), 0.0 * angle]), atol=1e-12)


def test_shuffled_circle_has_the_same_cameras_in_another_order(tracks: Tracks):
    ordered = initialize("unit-circle", tracks, seed=0)
    shuffled = initialize("unit-circle-shuffled", tracks, seed=0)
    assert not np.array_equal(ordered, shuffled)
    matches = np.array([[np.array_equal(a, b) for b in ordered] for a in shuffled])
    assert_array_equal(matches.sum(axis=0), 1)
    assert_array_equal(matches.sum(axis=1), 1)


def test_spectral_cameras_have_unit_rms_radius_and_no_height(tracks: Tracks):
    c = centres(initialize("spectral", tracks, seed=0))
    assert_allclose(np.mean(np.sum(c**2, axis=1)), 1.0)
    assert_allclose(c[:, 2], 0.0, atol=1e-12)
    assert_allclose(centres(initialize("spectral-outward", tracks, seed=0)), c, atol=1e-12)


def test_spectral_eigenvectors_solve_the_generalised_problem(tracks: Tracks):
    """x = D^-1/2 v makes (D - C) x = μ D x, orthogonal under D to the constant and to each other."""
    x = spectral_positions(tracks)
    C = tracks.covisibility.astype(float)
    np.fill_diagonal(C, 0.0)
    D = np.diag(C.sum(axis=1))
    gram = x.T @ D @ x
    mu = np.diagonal(x.T @ (D - C) @ x) / np.diagonal(gram)
    assert_allclose((D - C) @ x, D @ x * mu, atol=1e-9 * D.max())
    assert_allclose(x.T @ D @ np.ones(16), 0.0, atol=1e-9 * D.max())
    assert_allclose(gram[0, 1], 0.0, atol=1e-9 * D.max())
    spectrum = np.sort(np.linalg.eigvals(np.linalg.solve(D, D - C)).real)
    assert_allclose(mu, spectrum[1:3], atol=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_spectral_follows_a_permutation_of_the_cameras(seed: int, tracks: Tracks):
    """Also in the sign of the eigenvectors, which the eigensolver leaves open."""
    order = np.random.default_rng(seed).permutation(16)
    P = initialize("spectral", tracks, seed=0)
    moved = initialize("spectral", reorder_cameras(tracks, order)[0], seed=0)
    assert_allclose(moved[order], P, atol=1e-7)


def test_spectral_does_not_read_the_order_of_the_landmarks(tracks: Tracks):
    order = np.random.default_rng(5).permutation(tracks.landmarks)
    moved = reorder_landmarks(tracks, order)[0]
    assert_array_equal(initialize("spectral", moved, seed=0), initialize("spectral", tracks, seed=0))


def worst_displacement(position: Array, place: Array) -> int:
    """How many places the worst camera is off on the ring, after the best turn and reflection of the whole ring."""
    n = len(place)
    rank = np.empty(n, dtype=int)
    rank[np.argsort(np.arctan2(position[:, 1], position[:, 0]))] = np.arange(n)
    off = [(sign * rank + shift - place) % n for sign in (1, -1) for shift in range(n)]
    return int(min(np.minimum(d, n - d).max() for d in off))


@pytest.mark.parametrize("seed", range(3))
def test_spectral_recovers_the_cyclic_order(seed: int):
    """Landmarks that are seen by five or six consecutive cameras of a closed path, whose order the file hides."""
    rng = np.random.default_rng(seed)
    place = rng.permutation(20)
    first, length = rng.integers(0, 20, size=(2000, 1)), rng.integers(5, 7, size=(2000, 1))
    visible = (place[None] - first) % 20 < length
    assert worst_displacement(spectral_positions(tracks_of(visible)), place) == 0


@pytest.mark.parametrize("seed", range(3))
def test_spectral_places_the_cameras_around_a_box(seed: int):
    """Cameras that see the same faces of the box are alike and may change places, with no one else."""
    scene = ring(cameras=20, landmarks=500, seed=seed)
    angle = np.arctan2(scene.centres[:, 1], scene.centres[:, 0])
    place = np.argsort(np.argsort(angle))
    assert worst_displacement(spectral_positions(scene.tracks), place) <= 2
    assert worst_displacement(np.random.default_rng(seed).normal(size=(20, 2)), place) > 4


def test_spectral_with_two_cameras_uses_the_one_dimension_there_is():
    c = centres(initialize("spectral", tracks_of(np.ones((5, 2), dtype=bool)), seed=0))
    assert_allclose(np.abs(c), [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], atol=1e-12)
    assert_allclose(c[0], -c[1], atol=1e-12)


def test_unknown_name_is_refused(tracks: Tracks):
    with pytest.raises(InputError, match=r"'circle'.*normal.*spectral"):
        initialize("circle", tracks, seed=0)
