"""Input and output: COLMAP through pycolmap, BAL, filtering, and that poses never reach the solver."""

import bz2
import gzip
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pycolmap
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from models import CAMERA_PARAMS, to_bal, to_reconstruction
from solving import single
from synthetic import ring

import initfree
from initfree.data.problem import Observations, build_problem
from initfree.evaluation import evaluate_models
from initfree.generator import generate
from initfree.io import colmap
from initfree.io.load import load_model


@pytest.fixture(scope="module")
def scene():
    return ring(cameras=8, landmarks=120, min_observations=3)


def rays_agree(problem: initfree.Problem, scene) -> bool:
    """Landmark id 100 + 2j and image k are those of the scene, and their rays too."""
    assert np.array_equal(problem.landmark_ids, 100 + 2 * np.arange(scene.tracks.landmarks))
    assert np.array_equal(problem.tracks.cam, scene.tracks.cam)
    return np.allclose(problem.m, scene.m, atol=1e-9)


@pytest.mark.parametrize("camera_model", CAMERA_PARAMS)
def test_every_camera_model_is_undistorted_to_calibrated_rays(scene, camera_model):
    assert rays_agree(initfree.load(to_reconstruction(scene, camera_model)), scene)


@pytest.mark.parametrize("write", ["write_text", "write_binary"])
@pytest.mark.parametrize("place", ["", "sparse", "sparse/0"])
def test_models_are_found_where_colmap_puts_them(tmp_path, scene, write, place):
    directory = tmp_path / place
    directory.mkdir(parents=True, exist_ok=True)
    getattr(to_reconstruction(scene), write)(str(directory))
    assert rays_agree(initfree.load(tmp_path), scene)


def test_models_without_rigs_and_frames(tmp_path, scene):
    """COLMAP 3.x wrote three files."""
    to_reconstruction(scene).write_text(str(tmp_path))
    (tmp_path / "rigs.txt").unlink()
    (tmp_path / "frames.txt").unlink()
    assert rays_agree(initfree.load(tmp_path), scene)


def test_pixels_are_focal_lengths(scene):
    problem = initfree.load(to_reconstruction(scene, "PINHOLE"))
    assert np.array_equal(np.unique(problem.unit, axis=0), [[420.0, 430.0]])


def test_unknown_intrinsics_scale_pixels_from_the_centre(scene):
    problem = initfree.load(to_reconstruction(scene, "SIMPLE_PINHOLE"), intrinsics="unknown")
    assert not problem.calibrated
    assert np.abs(problem.m).max() == 1.0
    assert np.allclose(problem.m * problem.unit, scene.m * 420.0)


@pytest.mark.parametrize("suffix", [".txt", ".bz2", ".gz"])
def test_bal(tmp_path, scene, suffix):
    path = tmp_path / f"problem{suffix}"
    opener = {".bz2": bz2.open, ".gz": gzip.open}.get(suffix, open)
    with opener(path, "wt") as stream:
        stream.write(to_bal(scene))
    problem = initfree.load(path)
    assert not problem.calibrated
    assert np.allclose(problem.m * problem.unit, scene.m * 500.0)
    truth = load_model(path)
    assert np.allclose(truth.R, scene.R)
    assert np.allclose(truth.centres, scene.centres)
    assert np.allclose(truth.xyz, scene.landmarks)


def scrambled(model: pycolmap.Reconstruction, rng: np.random.Generator) -> pycolmap.Reconstruction:
    """The same observations with random poses and points."""
    for image in model.images.values():
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(np.linalg.qr(rng.normal(size=(3, 3)))[0]), rng.normal(size=3))
        image.frame.set_cam_from_world(image.camera_id, pose)
    for point in model.points3D.values():
        point.xyz = rng.normal(size=3)
    return model


@pytest.mark.parametrize("formulation", ["pose", "pose-rot"])
def test_poses_and_points_of_the_input_change_nothing(scene, formulation):
    config = initfree.SolveConfig(formulation=formulation)
    plain = single(initfree.load(to_reconstruction(scene)), config)
    other = single(initfree.load(scrambled(to_reconstruction(scene), np.random.default_rng(1))), config)
    for a, b in (
        (plain.intermediate.P, other.intermediate.P),
        (plain.intermediate.X, other.intermediate.X),
        (plain.reconstruction.R, other.reconstruction.R),
        (plain.reconstruction.xyz, other.reconstruction.xyz),
    ):
        assert np.array_equal(a, b)


def test_bal_cameras_and_points_change_nothing(tmp_path, scene):
    text = to_bal(scene)
    head = 1 + scene.tracks.observations
    lines = text.splitlines()
    values = np.random.default_rng(0).normal(size=len(lines) - head)
    (tmp_path / "a.txt").write_text(text)
    (tmp_path / "b.txt").write_text("\n".join(lines[:head] + [f"{v:.17g}" for v in values]))
    a, b = (single(initfree.load(tmp_path / name)) for name in ("a.txt", "b.txt"))
    assert np.array_equal(a.reconstruction.R, b.reconstruction.R)
    assert np.array_equal(a.reconstruction.xyz, b.reconstruction.xyz)


def test_result_round_trip_keeps_names_keypoints_and_ids(tmp_path, scene):
    source = to_reconstruction(scene)
    result = single(initfree.load(source))
    result.to_colmap().write(str(tmp_path))
    written = pycolmap.Reconstruction(str(tmp_path))
    assert {i: image.name for i, image in written.images.items()} == {i: im.name for i, im in source.images.items()}
    assert sorted(written.points3D) == sorted(source.points3D)
    for image_id, image in source.images.items():
        ours = written.images[image_id]
        assert np.array_equal([p.xy for p in image.points2D], [p.xy for p in ours.points2D])
        assert [p.point3D_id for p in image.points2D] == [p.point3D_id for p in ours.points2D]
    assert written.compute_mean_reprojection_error() < 1e-6
    again = evaluate_models(load_model(tmp_path), load_model(tmp_path))
    assert again.rotation_auc5 == pytest.approx(100.0)
    assert initfree.evaluate(tmp_path, source) == initfree.evaluate(written, source)


def observations(image, landmark) -> Observations:
    image, landmark = np.array(image), np.array(landmark)
    from initfree.data.observations import Image

    images = tuple(Image(f"{k}.jpg", k + 1, 1, np.empty((0, 2))) for k in range(image.max() + 1))
    n = len(image)
    return Observations(
        "test", images, {}, "known", image, landmark, np.arange(n), np.random.default_rng(0).normal(size=(n, 2)),
        np.ones((len(images), 2)),
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(data=st.data(), min_obs=st.integers(2, 4))
def test_filtering_leaves_what_it_promises(data, min_obs):
    """Whatever the visibility: enough observations a landmark and a camera, one component, sorted, rows match the input."""
    rng = np.random.default_rng(data.draw(st.integers(0, 10_000)))
    visible = rng.random((40, 8)) < data.draw(st.floats(0.05, 0.9))
    visible[:20, 4:] &= data.draw(st.booleans())
    landmark, image = np.nonzero(visible)
    if len(image) == 0:
        return
    order = rng.permutation(len(image))
    source = observations(image[order], 10 + landmark[order])
    try:
        with patch("initfree.data.problem._MANY_PAIRS", data.draw(st.sampled_from([0, 4000]))):
            problem = build_problem(source, min_obs)
    except initfree.InputError:
        return
    t = problem.tracks
    assert np.diff(t.ptr).min() >= min_obs
    assert np.bincount(t.cam, minlength=t.cameras).min() >= 6
    for j in range(t.landmarks):
        assert (np.diff(t.cam[t.ptr[j] : t.ptr[j + 1]]) > 0).all()
    reach = np.linalg.matrix_power((t.covisibility > 0).astype(float), t.cameras) > 0
    assert reach.all()
    assert np.array_equal(source.normalised[problem.keypoint], problem.m)
    assert np.array_equal(source.landmark_id[problem.keypoint], problem.landmark_ids[t.landmark])
    assert np.array_equal(source.image[problem.keypoint], problem.images[t.cam])
    assert problem.dropped.observations == len(image) - t.observations


def test_largest_component_is_solved_and_the_rest_counted():
    a, b = ring(cameras=6, landmarks=60, min_observations=3), ring(cameras=5, landmarks=40, min_observations=3)
    image = np.concatenate([a.tracks.cam, 6 + b.tracks.cam])
    landmark = np.concatenate([a.tracks.landmark, 1000 + b.tracks.landmark])
    problem = build_problem(observations(image, landmark))
    assert problem.tracks.observations == a.tracks.observations
    assert problem.dropped.components == 2
    assert problem.dropped.images == tuple(f"{k}.jpg" for k in range(6, 11))


def test_a_landmark_seen_twice_by_an_image_counts_once(scene):
    model = to_reconstruction(scene)
    image = model.images[7]
    point = next(p.point3D_id for p in image.points2D if p.has_point3D())
    model.add_observation(point, pycolmap.TrackElement(7, 0))
    problem = initfree.load(model)
    assert problem.dropped.repeated_observations == 1
    assert problem.tracks.observations == scene.tracks.observations


def test_path_objects_and_strings(tmp_path: Path, scene):
    to_reconstruction(scene).write(str(tmp_path))
    assert initfree.load(str(tmp_path)).tracks.observations == initfree.load(tmp_path).tracks.observations


def test_keypoints_of_a_binary_model_are_read_as_arrays_and_are_those_that_pycolmap_has(tmp_path: Path):
    model = generate("set4", seed=1, noise=0.5).to_colmap(noisy=True)
    model.write_binary(str(tmp_path))
    stored = colmap.read_observations(tmp_path, "known")
    objects = colmap.observations_of(pycolmap.Reconstruction(str(tmp_path)), str(tmp_path), "known")
    for name in ("image", "landmark_id", "keypoint", "normalised", "image_unit"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(objects, name))
    for one, other in zip(stored.images, objects.images, strict=True):
        assert (one.name, one.image_id, one.camera_id) == (other.name, other.image_id, other.camera_id)
        np.testing.assert_array_equal(one.keypoints, other.keypoints)
