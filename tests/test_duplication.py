"""Equal parts taken for one are told from parts that are seen by few."""

import numpy as np
import pytest
from synthetic import Scene, ring, tracks_of

from initfree.certificate.thresholds import MIN_SHARING
from initfree.certificate.twins import _counted, duplication, merged_observations
from initfree.data.tracks import Array
from initfree.generator import generate, presets
from initfree.generator.config import Cluster, Config, Groups, Lateral, LookAt, Parts, Visibility


def cameras_of(scene: Scene):
    t = -np.einsum("nij,nj->ni", scene.R, scene.centres)
    return scene.R, t, np.ones(len(scene.R)), np.zeros((len(scene.R), 2))


def on_top_of_each_other(confused: float, copies: bool, seed: int = 0) -> tuple[Scene, np.ndarray]:
    """A ring of cameras of which every other one saw another thing, put onto the first: `confused` is what both share.

    With `copies` the other thing is equal, so that what is not confused is there twice.
    """
    rng = np.random.default_rng(seed)
    scene = ring(cameras=48, landmarks=500, min_observations=6, shuffle=False, seed=seed)
    visible = np.zeros((scene.tracks.landmarks, 48), dtype=bool)
    visible[scene.tracks.landmark, scene.tracks.cam] = True
    odd = np.arange(48) % 2 == 1
    both = rng.random(len(visible)) < confused
    rows = [visible[both], visible[~both] & ~odd, visible[~both] & odd]
    X = [scene.landmarks[both], scene.landmarks[~both], scene.landmarks[~both]]
    if not copies:
        half = np.arange(np.count_nonzero(~both)) % 2 == 0
        rows, X = [rows[0], rows[1][half], rows[2][~half]], [X[0], X[1][half], X[2][~half]]
    visible, points = np.concatenate(rows), np.concatenate(X)
    kept = visible.sum(axis=1) >= 2
    tracks = tracks_of(visible[kept])
    y = np.einsum("nij,nj->ni", scene.R[tracks.cam], points[kept][tracks.landmark] - scene.centres[tracks.cam])
    m: Array = y[:, :2] / y[:, 2:]
    return Scene(tracks, m, scene.R, scene.centres, points[kept], scene.focal), odd


@pytest.mark.parametrize(("copies", "twins"), [(True, 1.0), (False, 0.0)])
def test_images_that_stand_among_others_and_share_little_with_them_are_found(copies: bool, twins: float):
    scene, odd = on_top_of_each_other(0.15, copies)
    everything = np.ones(scene.tracks.observations, dtype=bool)
    found = duplication(scene.tracks, scene.m, scene.unit, cameras_of(scene), scene.landmarks, everything)
    assert found.sharing < 0.4
    assert np.array_equal(found.smaller, odd) or np.array_equal(found.smaller, ~odd)
    assert found.twins == pytest.approx(twins, abs=0.05)
    merged = merged_observations(scene.tracks, everything, odd)
    assert set(scene.tracks.cam[merged] % 2) == {1}
    confused = np.unique(scene.tracks.landmark[merged])
    assert len(confused) == pytest.approx(0.15 * scene.tracks.landmarks / (1.85 if copies else 1.0), rel=0.3)


@pytest.mark.parametrize("keep", [1.0, 0.4, 0.2])
def test_tracks_that_are_lost_everywhere_are_not_duplicated(keep: float):
    scene = ring(cameras=24, landmarks=900, min_observations=3, keep=keep, shuffle=True, seed=1)
    everything = np.ones(scene.tracks.observations, dtype=bool)
    assert duplication(scene.tracks, scene.m, scene.unit, cameras_of(scene), scene.landmarks, everything).sharing > 0.6


def test_parts_that_look_the_same_share_their_tracks_and_nothing_else():
    parts = (Cluster(80, centre=(0.0, 0.0, 0.0)), Cluster(10, centre=(9.0, 0.0, 0.0), equal_to=0))
    route = tuple(
        Lateral("lateral", 6, (x - 1.0, -4.0, 0.0), (x + 1.0, -4.0, 0.0), look_at=LookAt("point", (x, 0.0, 0.0)))
        for x in (0.0, 9.0)
    )
    config = Config("two", Parts("parts", parts), trajectory=Groups("groups", route), visibility=Visibility(max_angle=90.0))
    plain, confused = (generate(config, seed=2, equal=share) for share in (0.0, 0.5))
    assert len(plain.landmarks) == 160
    np.testing.assert_array_equal(plain.observations.pixel, confused.noisy.pixel)
    changed = plain.noisy.landmark != confused.noisy.landmark
    kept, lost = confused.noisy.landmark[changed], plain.noisy.landmark[changed]
    assert len(np.unique(lost)) == 40
    offset = plain.landmarks[lost] - plain.landmarks[kept]
    np.testing.assert_allclose(np.abs(offset), np.broadcast_to([9.0, 0.0, 0.0], offset.shape), atol=1e-9)


def test_adversarial_presets_say_whether_they_are_determined():
    told = {name: preset.determined for name, preset in presets().items() if name.startswith("adversarial-")}
    assert len(told) >= 12
    assert not told["adversarial-spot"]
    assert told["adversarial-clusters"]


def test_a_cubic_and_its_cameras_lie_on_one_curve():
    dataset = generate("adversarial-cubic", seed=1)
    for points in (dataset.landmarks, dataset.poses.centres):
        s = points[:, 0] / 3.0
        np.testing.assert_allclose(points, np.stack([3.0 * s, 4.5 * s**2, 6.75 * s**3], axis=1), atol=1e-3)


def test_a_hyperboloid_and_its_cameras_lie_on_one_surface():
    dataset = generate("adversarial-quadric", seed=1)
    for points in (dataset.landmarks, dataset.poses.centres):
        x, y, z = (points / [3.0, 3.0, 4.0]).T
        np.testing.assert_allclose(x**2 + y**2 - z**2, 1.0, atol=1e-5)


def test_what_is_hidden_by_what_a_camera_sees_nearer_is_not_missed():
    """A wall in front of half of what the farther of two rows of cameras looks at: nothing is doubled behind it."""
    rng = np.random.default_rng(0)
    along = np.linspace(-8.0, 8.0, 12)
    centres = np.concatenate([np.column_stack([np.full(12, x), along, rng.normal(0.0, 0.3, 12)]) for x in (0.0, -15.0)])
    # Looking along x: right = -y, down = -z, forward = x.
    R = np.tile([[0.0, -1.0, 0.0], [0.0, 0.0, -1.0], [1.0, 0.0, 0.0]], (24, 1, 1))
    far = np.column_stack([rng.uniform(19.0, 21.0, 1500), rng.uniform(-12.0, 12.0, 1500), rng.uniform(-6.0, 6.0, 1500)])
    wall = np.column_stack([rng.uniform(-5.2, -5.0, 500), rng.uniform(0.0, 12.0, 500), rng.uniform(-6.0, 6.0, 500)])
    X = np.concatenate([far, wall])
    y = np.einsum("nij,nmj->nmi", R, X[None] - centres[:, None])
    crossing = centres[:, None, 1] + (X[None, :, 1] - centres[:, None, 1]) * (10.0 / (X[None, :, 0] - centres[:, None, 0]))
    hidden = (centres[:, None, 0] < -10.0) & (X[None, :, 0] > 0.0) & (crossing > 0.0)
    visible = ((y[:, :, 2] > 1.0) & (np.abs(y[:, :, :2]) < 0.8 * y[:, :, 2:]).all(axis=2) & ~hidden).T
    visible &= rng.uniform(size=visible.shape) < 0.6
    kept = visible.sum(axis=1) >= 3
    tracks = tracks_of(visible[kept])
    x = np.einsum("nij,nj->ni", R[tracks.cam], X[kept][tracks.landmark] - centres[tracks.cam])
    cameras = R, -np.einsum("nij,nj->ni", R, centres), np.ones(24), np.zeros((24, 2))
    everything = np.ones(tracks.observations, dtype=bool)
    found = duplication(tracks, x[:, :2] / x[:, 2:], np.full((len(x), 2), 500.0), cameras, X[kept], everything)
    assert found.sharing > MIN_SHARING + 0.15


@pytest.mark.parametrize("cameras", [6, 400])
def test_cases_are_counted_by_pair_whether_the_table_or_the_list_is_smaller(cameras: int):
    rng = np.random.default_rng(3)
    k, l, seen = rng.integers(0, 6, 500), rng.integers(0, 6, 500), rng.random(500) < 0.5
    counted = _counted(cameras, k, l, seen)
    expected, shared = np.zeros((2, cameras, cameras))
    for table, chosen in ((expected, np.ones_like(seen)), (shared, seen)):
        np.add.at(table, (k[chosen], l[chosen]), 1.0)
        np.add.at(table, (l[chosen], k[chosen]), 1.0)
    i, j = np.nonzero(expected)
    assert np.array_equal(counted.i, i)
    assert np.array_equal(counted.k, j)
    assert np.array_equal(counted.expected, expected[i, j])
    assert np.array_equal(counted.shared, shared[i, j])
