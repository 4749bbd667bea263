"""Density: shares, targets, minima; and what the presets promise."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from initfree.errors import InputError
from initfree.generator import generate, load

pytestmark = pytest.mark.slow

PROMISED = {"set1": 10, "set2": 3, "set3": 6, "set4": 3, "set6": 3, "set7": 3, "set8": 6}
SIZES = {"set1": 40, "set2": 40, "set3": 60, "set4": 60, "set6": 40, "set7": 20, "set8": 20}


@pytest.mark.parametrize("name", PROMISED)
def test_the_sets_are_what_they_say(name):
    dataset = generate(name, seed=0)
    lengths = dataset.observations.track_lengths(len(dataset.landmarks))
    assert len(dataset.poses) == SIZES[name]
    assert abs(lengths.mean() - PROMISED[name]) < 0.5
    assert lengths.min() >= 3
    assert dataset.observations.per_image(len(dataset.poses)).min() >= 50
    graph = dataset.observations.covisibility(len(dataset.poses), len(dataset.landmarks))
    assert connected_components(graph)[0] == 1
    assert 37 < np.sqrt(dataset.landmarks.var(axis=0).sum()) < 45


@pytest.mark.parametrize(("name", "median"), [("thin1", 5), ("thin2", 4), ("thin3", 3), ("thin4", 2)])
def test_thin_pairs(name, median):
    for seed in range(20):
        dataset = generate(name, seed=seed)
        images = len(dataset.poses)
        graph = dataset.observations.covisibility(images, len(dataset.landmarks))
        shared = np.triu(graph.toarray(), 1)
        assert np.median(shared[shared > 0]) == median
        assert 240 <= len(dataset.landmarks) <= 900
        assert dataset.observations.per_image(images).min() >= 12
        assert connected_components(graph)[0] == 1
        assert 3 <= len(dataset.observations) / len(dataset.landmarks) < 4.05


def test_all_axes_of_set6_meet_and_those_of_set8_are_parallel():
    six, eight = generate("set6"), generate("set8")
    towards = six.surface.centre - six.poses.centres
    assert np.abs(np.cross(towards, six.poses.rotations[:, 2])).max() < 1e-9
    assert np.ptp(eight.poses.rotations, axis=0).max() < 1e-12
    assert np.ptp(six.poses.centres[:, 2]) < 1e-9


def test_set7_looks_outwards_from_inside():
    dataset = generate("set7")
    outward = np.einsum("nd,nd->n", dataset.poses.centres - [0, 0, 9], dataset.poses.rotations[:, 2])
    assert (outward > 5.9).all()


def test_shares_keep_their_share():
    full = generate("set3", seed=1, density=8, points=2000)
    fewer = generate("set3", seed=1, density=8, points=2000, landmark_share=0.5)
    assert len(fewer.landmarks) == 1000
    config = load("set3", points=2000)
    config = dataclasses.replace(config, density=dataclasses.replace(config.density, mean_observations=None))
    everything = generate(config, seed=1)
    half = generate(config, seed=1, observation_share=0.5)
    assert len(everything.observations) > len(full.observations)
    # Landmarks that fall below the minimum go, so a little less than half stays.
    assert 0.40 < len(half.observations) / len(everything.observations) < 0.505
    assert half.observations.track_lengths(len(half.landmarks)).min() >= 3


def test_min_obs_holds():
    dataset = generate("set1", seed=0, points=500, min_obs=6)
    assert dataset.observations.track_lengths(len(dataset.landmarks)).min() >= 6


def test_cameras_are_topped_up_to_their_minimum():
    config = load("thin4")
    config = dataclasses.replace(config, density=dataclasses.replace(config.density, min_camera_observations=18))
    assert generate(config, seed=0).observations.per_image(60).min() >= 18


@pytest.mark.parametrize("density", [60.0, 2.5])
def test_impossible_density(density):
    with pytest.raises(InputError, match=r"mean of .* is impossible: the minimum is 3 and 1\d\.\d\d are visible"):
        generate("set1", density=density)


def test_shuffled_cameras_are_the_same_cameras():
    plain, shuffled = generate("set1", seed=5), generate("set1", seed=5, shuffle=True)
    assert not np.allclose(plain.poses.centres, shuffled.poses.centres)
    order = [np.lexsort(poses.centres.T.round(6)) for poses in (plain.poses, shuffled.poses)]
    assert np.allclose(plain.poses.centres[order[0]], shuffled.poses.centres[order[1]])
