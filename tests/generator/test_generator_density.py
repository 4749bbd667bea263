"""Density: shares, targets, minima; and what the presets promise."""

import dataclasses

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

from initfree.data.camera_graph import spectral_gap, without_diagonal
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


def test_every_image_keeps_its_share():
    """As mateosss/colder: exactly that share of what an image sees, then landmarks with too few observations go."""
    config = load("paper1", points=400)
    every = generate(
        dataclasses.replace(config, density=dataclasses.replace(config.density, image_share=1.0, min_observations=2))
    )
    some = generate(
        dataclasses.replace(config, density=dataclasses.replace(config.density, image_share=0.5, min_observations=2))
    )
    assert len(every.landmarks) == len(some.landmarks) == 400
    assert (some.observations.per_image(50) == np.round(0.5 * every.observations.per_image(50))).all()


def test_in_a_frustum_nothing_is_hidden():
    """What cameras see of a surface they see of it without the surface too, and more; every pixel is in its image."""
    surface, frustum = (generate("set7", points=300, visibility=kind) for kind in ("surface", "frustum"))
    assert frustum.observations.track_lengths(300).mean() > surface.observations.track_lengths(300).mean()
    R, t = frustum.poses.rotations, frustum.poses.translations
    for image in range(20):
        local = frustum.landmarks @ R[image].T + t[image]
        pixel = 420.0 * local[:, :2] / local[:, 2:] + [320.0, 240.0]
        inside = (local[:, 2] > 0.1) & (pixel >= 0).all(axis=1) & (pixel < [640, 480]).all(axis=1)
        rows = frustum.observations.landmark[frustum.observations.image == image]
        assert set(rows.tolist()) == set(np.flatnonzero(inside).tolist())


@pytest.mark.parametrize(
    ("name", "cameras", "observations"),
    [
        ("paper1", 50, 10.0),
        ("paper2", 50, 3.9),
        ("paper3", 30, 6.2),
        ("paper4", 30, 3.9),
        ("paper6", 40, 3.8),
        ("paper8", 20, 6.1),
    ],
)
def test_the_papers_generator(name, cameras, observations):
    """In the frustum all cameras share alike, so the camera graph has a gap of about 1; less where a building hides."""
    dataset = generate(name, points=2000)
    lengths = dataset.observations.track_lengths(len(dataset.landmarks))
    assert len(dataset.names) == cameras
    assert lengths.mean() == pytest.approx(observations, abs=0.15)
    shared = without_diagonal(dataset.observations.covisibility(cameras, len(dataset.landmarks)))
    assert 0.85 < spectral_gap(shared) < 1.1
    if lengths.mean() < 5.0:
        return  # too few are left for every camera where the building hides
    occluded = generate(name, points=2000, visibility="surface")
    shared = without_diagonal(occluded.observations.covisibility(cameras, len(occluded.landmarks)))
    assert spectral_gap(shared) < (1.0 if name == "paper8" else 0.7)


def test_cameras_on_a_bezier_circle_are_evenly_spaced():
    """Four cubic pieces are a circle to 0.03% of its radius, and cameras follow its length."""
    centres = generate("paper1", points=200).poses.centres
    assert np.allclose(np.linalg.norm(centres[:, :2], axis=1), 130.0, rtol=4e-4)
    steps = np.linalg.norm(np.diff(centres, axis=0, append=centres[:1]), axis=1)
    assert np.allclose(steps, steps.mean(), rtol=1e-3)


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
