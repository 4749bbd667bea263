"""Unknown intrinsics become the simplest camera that explains the images, one for all that look like one camera's."""

from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from models import to_reconstruction
from synthetic import Scene
from test_free_intrinsics import aucs
from test_unknown_intrinsics import street

import initfree
from initfree.auto.simplest_camera import alike_images, simplest_cameras
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.io.colmap import reconstruction_of
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust


@pytest.fixture(scope="module")
def scene() -> Scene:
    return street(cameras=24, landmarks=3000, noise=0.3)


def one_camera_an_image(model: pycolmap.Reconstruction, shifts: np.ndarray | None = None) -> pycolmap.Reconstruction:
    """The model with a camera id for each image; `shifts` (images, 2) move principal points, and keypoints with them."""
    result = pycolmap.Reconstruction()
    for n, image in enumerate(model.images[k] for k in sorted(model.images)):
        camera = model.cameras[image.camera_id]
        shift = np.zeros(2) if shifts is None else shifts[n]
        params = np.array(camera.params)
        params[camera.principal_point_idxs()] += shift
        result.add_camera_with_trivial_rig(
            pycolmap.Camera(camera_id=n + 1, model=camera.model, width=640, height=480, params=params)
        )
        keypoints = np.array([point.xy for point in image.points2D]) + shift
        result.add_image_with_trivial_frame(
            pycolmap.Image(name=image.name, keypoints=keypoints, camera_id=n + 1, image_id=image.image_id),
            image.cam_from_world(),
        )
    for landmark, point in model.points3D.items():
        result.add_point3D_with_id(landmark, pycolmap.Point3D(xyz=point.xyz, track=point.track))
    return result


def solved(problem: Problem, truth: pycolmap.Reconstruction, focal: float = 420.0) -> Reconstruction:
    """What a solve with unknown intrinsics ends with: f, k1, k2 of each camera free, adjusted from the true poses."""
    exact = reconstruction_of(truth)
    place = {int(k): j for j, k in enumerate(exact.ids)}
    cameras = len(exact.R)
    start = Reconstruction(
        exact.R, exact.t, focal / problem.observations.image_unit[:, 0], np.zeros((cameras, 2)),
        exact.xyz[[place[int(k)] for k in problem.landmark_ids]],
    )  # fmt: skip
    limits = AdjustConfig(free=FreeIntrinsics(focal=True, radial=2))
    return adjust(problem, start, limits)[0]


@pytest.mark.parametrize("model", ["SIMPLE_PINHOLE", "SIMPLE_RADIAL", "RADIAL"])
def test_no_more_than_the_images_show(scene, model):
    truth = to_reconstruction(scene, model)
    problem = initfree.load(truth, intrinsics="unknown")
    found = simplest_cameras(problem, solved(problem, truth))
    assert found is not None
    camera = found.problem.observations.cameras[3]
    # k2 = 0.01 moves a corner by a quarter of a pixel.
    assert camera.model_name in (("SIMPLE_RADIAL", "RADIAL") if model == "RADIAL" else (model,))
    assert np.abs(camera.params[camera.principal_point_idxs()] - [320.0, 240.0]).max() < 1e-9
    assert camera.params[0] == pytest.approx(420.0, rel=5e-3)
    assert found.problem.calibrated
    assert aucs(found.problem, found.reconstruction, truth) > 97.0


def test_tangential_distortion_is_found(scene):
    params = [420.0, 420.0, 320.0, 240.0, -0.1, 0.02, 0.006, -0.005]
    truth = to_reconstruction(scene, "SIMPLE_PINHOLE")
    camera = pycolmap.Camera(camera_id=3, model="OPENCV", width=640, height=480, params=params)
    images = {k: np.array([p.xy for p in image.points2D]) for k, image in truth.images.items()}
    pinhole = truth.cameras[3]
    distorted = pycolmap.Reconstruction(truth)
    distorted.cameras[3].model, distorted.cameras[3].params = camera.model, camera.params
    for k, xy in images.items():
        rays = np.column_stack([pinhole.cam_from_img(xy), np.ones(len(xy))])
        for point, seen in zip(distorted.images[k].points2D, camera.img_from_cam(rays), strict=True):
            point.xy = seen
    problem = initfree.load(distorted, intrinsics="unknown")
    found = simplest_cameras(problem, solved(problem, truth))
    assert found is not None
    model = found.problem.observations.cameras[3]
    assert model.model_name in ("OPENCV", "FULL_OPENCV")
    assert model.params[6:8] == pytest.approx(params[6:8], abs=2e-3)


def test_images_of_one_camera_share_it(scene):
    """One camera id an image, and focal lengths that drifted apart: one camera explains them as well."""
    truth = one_camera_an_image(to_reconstruction(scene, "SIMPLE_RADIAL"))
    problem = initfree.load(truth, intrinsics="unknown")
    start = solved(problem, truth)
    drifting = replace(start, focal=start.focal * np.linspace(0.97, 1.03, len(start.focal)))
    found = simplest_cameras(problem, drifting)
    assert found is not None
    assert len(np.unique(found.problem.camera_ids)) == 1
    assert found.problem.observations.cameras[int(found.problem.camera_ids[0])].params[0] == pytest.approx(420.0, rel=5e-3)


def test_cameras_that_differ_do_not_share(scene):
    shifts = np.random.default_rng(2).uniform(-25.0, 25.0, size=(24, 2))
    truth = one_camera_an_image(to_reconstruction(scene, "SIMPLE_RADIAL"), shifts)
    problem = initfree.load(truth, intrinsics="unknown")
    found = simplest_cameras(problem, solved(problem, truth))
    assert found is not None
    assert len(np.unique(found.problem.camera_ids)) == 24
    assert "24 cameras" in found.note


def test_names_and_sizes_tell_which_images_are_alike(scene):
    model = one_camera_an_image(to_reconstruction(scene, "SIMPLE_PINHOLE"))
    for n, image in enumerate(model.images[k] for k in sorted(model.images)):
        image.name = f"left/{n:03d}.jpg" if n < 10 else f"right/{n:03d}.jpg" if n < 20 else f"right/GOPR{n}.jpg"
    groups = alike_images(initfree.load(model, intrinsics="unknown"))
    assert groups.tolist() == [0] * 10 + [1] * 10 + [2] * 4


def test_a_solve_ends_with_the_camera_that_was_found(scene):
    truth = to_reconstruction(scene, "SIMPLE_RADIAL")
    result = initfree.solve(initfree.load(truth, intrinsics="unknown"))
    assert result.accepted
    assert result.problem.calibrated
    assert result.stages[-1].name == "intrinsics"
    assert result.certificate.evidence.focal_rise is not None
    assert any("one camera (SIMPLE_RADIAL)" in note for note in result.notes)
    written = result.to_colmap()
    assert written.cameras[3].params == pytest.approx([420.0, 320.0, 240.0, -0.05], rel=0.01, abs=0.01)
    assert written.compute_mean_reprojection_error() == pytest.approx(result.certificate.evidence.mean_pixels, rel=0.05)
