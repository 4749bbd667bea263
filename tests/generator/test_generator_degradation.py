"""Degradation: each part does what it says, alone, and leaves the truth and the other parts untouched."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from initfree.errors import InputError
from initfree.generator import generate
from initfree.generator.degrade import relatedness, swap_tracks


def test_noise_is_gaussian_of_that_size_and_leaves_the_truth():
    clean, noisy = generate("set2", seed=1), generate("set2", seed=1, noise=0.7)
    assert np.array_equal(clean.observations.pixel, noisy.observations.pixel)
    shift = noisy.noisy.pixel - noisy.observations.pixel
    assert shift.std() == pytest.approx(0.7, rel=0.02)
    assert abs(shift.mean()) < 0.02
    assert not noisy.wrong.any()
    assert noisy.degraded
    assert not clean.degraded


def test_outliers_are_matches_between_real_keypoints():
    dataset = generate("set2", seed=1, outliers=0.1)
    rows, truth = dataset.noisy, dataset.observations
    assert np.array_equal(rows.pixel, truth.pixel)
    assert dataset.wrong.mean() == pytest.approx(0.1, abs=0.002)
    pairs = rows.image.astype(np.int64) * len(dataset.landmarks) + rows.landmark
    assert len(np.unique(pairs)) == len(rows)
    assert np.array_equal(np.sort(pairs), np.sort(truth.image.astype(np.int64) * len(dataset.landmarks) + truth.landmark))
    # A wrong match is far from where the landmark really is.
    where = {(i, j): p for i, j, p in zip(truth.image, truth.landmark, truth.pixel, strict=True)}
    away = [
        np.linalg.norm(where[i, j] - p)
        for i, j, p in zip(rows.image[dataset.wrong], rows.landmark[dataset.wrong], rows.pixel[dataset.wrong], strict=True)
    ]
    assert np.median(away) > 50


def test_merged_tracks_join_unrelated_images():
    dataset = generate("set2", seed=1, merged=0.1)
    images, landmarks = len(dataset.names), len(dataset.landmarks)
    assert len(np.unique(dataset.noisy.landmark)) == landmarks - round(0.05 * landmarks)
    overlap = relatedness(dataset.observations, images, landmarks)
    assert overlap.diagonal().min() == 1
    for joined in np.unique(dataset.noisy.landmark[dataset.wrong]):
        mine = dataset.noisy.landmark == joined
        parts = [dataset.observations.image[mine & (dataset.wrong == side)] for side in (False, True)]
        assert not set(parts[0]) & set(parts[1])
        assert overlap[np.ix_(*parts)].max() <= 0.05


def test_merging_is_refused_where_no_track_has_a_partner():
    # Of five cameras every track has three or more: no two can be without a common image.
    with pytest.raises(InputError, match=r"merged = 0.1 is impossible: only 0 of 30 tracks"):
        generate("set8", cameras=5, points=300, density=3.2, merged=0.1)


def test_parts_are_independent():
    alone = generate("set4", seed=3, noise=0.5)
    together = generate("set4", seed=3, noise=0.5, outliers=0.1, merged=0.05, landmark_noise=1.0)
    assert np.array_equal(alone.noisy.pixel, together.noisy.pixel)
    assert np.array_equal(alone.landmarks, together.landmarks)
    stronger = generate("set4", seed=3, noise=1.0)
    assert np.allclose(
        stronger.noisy.pixel - stronger.observations.pixel, 2 * (alone.noisy.pixel - alone.observations.pixel)
    )


def test_initial_values_are_off_by_what_was_asked():
    dataset = generate("set4", seed=3, rotation_noise=2.0, translation_noise=0.5, landmark_noise=0.25)
    turned = dataset.initial_poses.rotations @ np.swapaxes(dataset.poses.rotations, 1, 2)
    angle = np.degrees(np.arccos((np.trace(turned, axis1=1, axis2=2) - 1) / 2))
    assert np.sqrt((angle**2).mean() / 3) == pytest.approx(2.0, rel=0.15)
    moved = dataset.initial_poses.centres - dataset.poses.centres
    assert moved.std() == pytest.approx(0.5, rel=0.15)
    assert (dataset.initial_landmarks - dataset.landmarks).std() == pytest.approx(0.25, rel=0.05)
    model = dataset.to_colmap(noisy=True)
    assert np.allclose(model.point3D(1).xyz, dataset.initial_landmarks[0])
    assert np.allclose(dataset.to_colmap().point3D(1).xyz, dataset.landmarks[0])


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 30), st.floats(0.01, 0.99), st.integers(0, 2**31))
def test_swapping_keeps_each_image_its_tracks(images, tracks, share, seed):
    rng = np.random.default_rng(seed)
    seen = rng.uniform(size=(images, tracks)) < 0.5
    seen[0, 0] = True
    image, landmark = (index.astype(np.int32) for index in np.nonzero(seen))
    swapped = swap_tracks(image, landmark, share, rng)
    for number in range(images):
        assert sorted(swapped[image == number]) == sorted(landmark[image == number])
    assert (swapped != landmark).sum() <= max(2, round(share * len(image))) + images
