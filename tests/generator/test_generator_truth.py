"""The truth is exact: what is written reprojects, is in the image, in front, and really seen."""

import numpy as np
import pytest
from brute_force import blocked
from scipy.spatial.transform import Rotation

from initfree.generator import generate
from initfree.generator.config import Visibility
from initfree.generator.culling import Cells, in_view
from initfree.generator.observe import visible
from initfree.generator.visibility import RayCaster

SETS = ["set1", "set2", "set3", "set4", "set6", "set7", "set8", "thin1", "thin2", "thin3", "thin4"]


@pytest.mark.parametrize("name", SETS)
def test_observations_reproject_exactly_through_pycolmap(name):
    dataset = generate(name, seed=1)
    model = dataset.to_colmap()
    worst = 0.0
    for image in model.images.values():
        pixels = np.array([point.xy for point in image.points2D])
        points = np.array([model.point3D(point.point3D_id).xyz for point in image.points2D])
        matrix = image.cam_from_world().matrix()
        local = points @ matrix[:, :3].T + matrix[:, 3]
        assert (local[:, 2] > 0).all()
        assert ((pixels >= 0) & (pixels < [640, 480])).all()
        worst = max(worst, np.abs(image.camera.img_from_cam(local) - pixels).max())
    assert worst < 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["set1", "set7", "set8"])
def test_a_sample_is_unoccluded_by_brute_force(name):
    dataset = generate(name, seed=2)
    surface, observations = dataset.surface, dataset.observations
    rows = np.random.default_rng(0).permutation(len(observations))[:120]
    for row in rows:
        eye = dataset.poses.centres[observations.image[row]]
        target = dataset.landmarks[observations.landmark[row]]
        assert not blocked(surface.vertices, surface.faces, eye, target)


@pytest.mark.slow
def test_what_is_called_hidden_is_hidden_by_brute_force():
    """The same candidates with and without occlusion: the difference must be blocked, the rest must not."""
    dataset = generate("set1", seed=3, cameras=6, points=200, density=3)
    surface, caster = dataset.surface, RayCaster(dataset.surface)
    candidates = surface.sample(np.random.default_rng(4), 1500)
    seen, all_rows = (
        visible(surface, caster, dataset.poses, dataset.cameras, Visibility(occlusion=on), candidates)
        for on in (True, False)
    )
    keys = set(zip(seen.image.tolist(), seen.landmark.tolist(), strict=True))
    everything = list(zip(all_rows.image.tolist(), all_rows.landmark.tolist(), strict=True))
    assert keys < set(everything)
    some = np.random.default_rng(5).permutation(len(everything))[:250]
    outcomes = set()
    for image, landmark in (everything[k] for k in some):
        hidden = blocked(surface.vertices, surface.faces, dataset.poses.centres[image], candidates.positions[landmark])
        assert ((image, landmark) in keys) == (not hidden)
        outcomes.add(hidden)
    assert outcomes == {True, False}


def test_landmarks_face_their_cameras_within_the_angle():
    dataset = generate("set1", seed=0)
    assert dataset.config.visibility.max_angle == 80.0
    rows = dataset.observations
    towards = dataset.poses.centres[rows.image] - dataset.landmarks[rows.landmark]
    # Landmarks lie on the courthouse, whose triangles give the normals back: nearest hit of each ray.
    caster = RayCaster(dataset.surface)
    for image in range(0, 40, 13):
        mine = rows.image == image
        face, _ = caster.first(dataset.poses.centres[image], -towards[mine])
        normals = dataset.surface.normals[face]
        cosine = np.einsum("nd,nd->n", normals, towards[mine]) / np.linalg.norm(towards[mine], axis=1)
        assert np.mean(cosine > np.cos(np.radians(80.1))) > 0.999


def test_distorted_cameras_reproject_and_never_fold():
    dataset = generate("set1", seed=0, k1=-0.3, focal=250.0, focal_variation=0.1, cameras=12, points=300, density=3)
    assert len(dataset.cameras) == 12
    assert len({camera.params[0] for camera in dataset.cameras}) == 12
    rows = dataset.observations
    local = np.einsum("nij,nj->ni", dataset.poses.rotations[rows.image], dataset.landmarks[rows.landmark])
    local += dataset.poses.translations[rows.image]
    radius = np.hypot(local[:, 0], local[:, 1]) / local[:, 2]
    assert (radius**2 < 1 / (3 * 0.3)).all()
    for image in range(12):
        mine = rows.image == image
        pixels = dataset.cameras[image].img_from_cam(local[mine])
        assert np.abs(pixels - rows.pixel[mine]).max() < 1e-6


@pytest.mark.parametrize("model", ["PINHOLE", "OPENCV", "OPENCV_FISHEYE", "FOV", "RADIAL"])
def test_other_colmap_models(model):
    dataset = generate("set6", seed=0, model=model, cameras=12, points=100, density=3)
    assert dataset.to_colmap().camera(1).model_name == model
    assert len(dataset.landmarks) == 100


@pytest.mark.parametrize("radius", [0.6, 3.0, np.inf])
def test_cells_leave_out_nothing_that_is_in_view(radius):
    rng = np.random.default_rng(0)
    positions = rng.uniform([-500.0, -500.0, 0.0], [500.0, 500.0, 20.0], (20_000, 3))
    normals = np.tile([0.0, 0.0, 1.0], (len(positions), 1))
    cells, everything = Cells.of(positions, normals), np.arange(len(positions))
    assert len(cells.radii) > 30
    np.testing.assert_array_equal(np.sort(cells.rows), everything)
    np.testing.assert_array_equal(cells.positions, positions[cells.rows])
    for turn in Rotation.random(10, random_state=1).as_matrix():
        view = turn, rng.uniform([-300.0, -300.0, 30.0], [300.0, 300.0, 100.0]), 5.0, 400.0, radius
        near = cells.near_cone(*view)
        arrays = cells.ptr, cells.positions, cells.normals
        expected, found = (in_view(some, *arrays, *view, 0.0, True) for some in (np.arange(len(cells.radii)), near))
        np.testing.assert_array_equal(found, expected)
    if radius < 1.0:
        assert len(near) < len(cells.radii) / 2, "and not all is looked at"
