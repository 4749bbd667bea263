"""The written model: what its points are, that it is clean whatever was solved, its colours and its axes."""

from dataclasses import replace

import numpy as np
import pycolmap
import pytest
from models import to_reconstruction
from scipy.spatial.transform import Rotation
from synthetic import ring

import initfree
from initfree.data.tracks import Tracks
from initfree.io.export import UNKNOWN_COLOUR, export
from initfree.io.points import widest_angles
from initfree.io.world import downwards


@pytest.fixture(scope="module")
def scene():
    return ring(cameras=8, landmarks=120, min_observations=3)


@pytest.fixture(scope="module")
def result(scene):
    return initfree.solve(initfree.load(to_reconstruction(scene)))


def with_short_tracks(scene) -> tuple[pycolmap.Reconstruction, list[int]]:
    """Every fourth landmark seen by its first and its last image only."""
    model = to_reconstruction(scene)
    short = sorted(model.points3D)[::4]
    for j in short:
        for image_id, keypoint in [(e.image_id, e.point2D_idx) for e in model.points3D[j].track.elements][1:-1]:
            model.delete_observation(image_id, keypoint)
    return model, short


def test_tracks_of_two_come_back_where_their_parallax_carries_them(scene):
    model, short = with_short_tracks(scene)
    problem = initfree.load(model)
    assert not np.isin(short, problem.landmark_ids).any()
    exported = export(problem, initfree.solve(problem).reconstruction)
    written = exported.model
    back = [j for j in short if j in written.points3D]
    assert exported.points.brought_back == len(back) > 0.8 * len(short)
    assert max(written.points3D[j].error for j in back) < 1e-3
    metrics = initfree.evaluate(written, to_reconstruction(scene))
    assert metrics.landmarks_compared == written.num_points3D()
    assert metrics.landmark_p90 < 1e-6


def test_wrong_tracks_of_two_do_not_come_back(scene):
    """The second keypoint of each moved by 30 px."""
    model, short = with_short_tracks(scene)
    for j in short:
        element = model.points3D[j].track.elements[1]
        point = model.images[element.image_id].points2D[element.point2D_idx]
        point.xy = np.add(point.xy, (0.0, 30.0))
    written = initfree.solve(initfree.load(model)).to_colmap()
    # A few may meet again: a shift along the epipolar line is another depth.
    assert sum(j in written.points3D for j in short) <= 0.25 * len(short)


def test_a_wrong_reconstruction_is_written_clean(result):
    """Nothing solved, everything wrong: no point of 1e149 px, nothing that is not finite, nothing behind a camera."""
    rng = np.random.default_rng(0)
    metric = result.reconstruction
    scrambled = replace(metric, xyz=metric.xyz * rng.choice([1.0, -3.0, 1e150, np.nan, np.inf], size=(len(metric.xyz), 1)))
    scrambled.xyz[:40] = metric.xyz[:40]
    exported = export(result.problem, scrambled)
    written = exported.model
    errors = np.array([point.error for point in written.points3D.values()])
    assert 30 <= len(errors) < len(metric.xyz)
    assert np.isfinite(errors).all()
    assert errors.max() < 4.0
    assert np.isfinite(written.compute_mean_reprojection_error())
    for image in written.images.values():
        pose = image.cam_from_world()
        for point in image.points2D:
            if point.has_point3D():
                assert (pose * written.points3D[point.point3D_id].xyz)[2] > 0.0


def test_outlier_observations_leave_their_tracks(scene):
    model = to_reconstruction(scene)
    long = next(j for j, point in model.points3D.items() if point.track.length() >= 5)
    element = model.points3D[long].track.elements[2]
    point = model.images[element.image_id].points2D[element.point2D_idx]
    point.xy = np.add(point.xy, (60.0, 60.0))
    written = initfree.solve(initfree.load(model)).to_colmap()
    left = {(e.image_id, e.point2D_idx) for e in written.points3D[long].track.elements}
    assert (element.image_id, element.point2D_idx) not in left
    assert len(left) == model.points3D[long].track.length() - 1
    assert np.array_equal(written.images[element.image_id].points2D[element.point2D_idx].xy, point.xy)


def test_colours_of_the_input_are_kept(scene, result):
    model = to_reconstruction(scene)
    rng = np.random.default_rng(0)
    for point in model.points3D.values():
        point.color = rng.integers(1, 256, size=3).astype(np.uint8)
    written = initfree.solve(initfree.load(model)).to_colmap()
    assert all(np.array_equal(point.color, model.points3D[j].color) for j, point in written.points3D.items())
    assert all(tuple(point.color) == UNKNOWN_COLOUR for point in result.to_colmap().points3D.values())


def test_colours_are_taken_from_images(tmp_path, result):
    image = pytest.importorskip("PIL.Image")
    for name in result.problem.names:
        image.new("RGB", (640, 480), (10, 200, 60)).save(tmp_path / name, quality=100)
    written = export(result.problem, result.reconstruction, tmp_path).model
    colours = np.array([point.color for point in written.points3D.values()])
    assert np.abs(colours.astype(int) - (10, 200, 60)).max() <= 3
    with pytest.raises(initfree.InputError, match="is no directory"):
        export(result.problem, result.reconstruction, tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(initfree.InputError, match="has none of the input's images"):
        export(result.problem, result.reconstruction, tmp_path / "empty")


@pytest.mark.parametrize("seed", range(5))
def test_gravity_is_found_from_level_cameras(seed):
    """Cameras that look anywhere, tilted up or down but level, in a world turned at random."""
    rng = np.random.default_rng(seed)
    yaw, pitch = rng.uniform(-180, 180, 20), rng.uniform(-50, 10, 20)
    level = Rotation.from_euler("YX", np.column_stack([yaw, pitch]), degrees=True).as_matrix().transpose(0, 2, 1)
    world = Rotation.random(random_state=seed).as_matrix()
    assert np.allclose(downwards(level @ world.T), world[:, 1], atol=0.02)


def test_gravity_of_parallel_cameras_is_their_own_down():
    world = Rotation.random(random_state=3).as_matrix()
    assert np.allclose(downwards(np.tile(world, (5, 1, 1))), world[1], atol=1e-9)


def test_the_written_world_stands_upright_around_the_origin(result):
    written = result.to_colmap()
    poses = [image.cam_from_world() for image in written.images.values()]
    assert np.allclose(downwards(np.array([p.rotation.matrix() for p in poses])), [0.0, 1.0, 0.0], atol=1e-9)
    centres = np.array([image.projection_center() for image in written.images.values()])
    assert np.abs(centres).max() < 20.0
    assert np.abs(np.median(centres, axis=0)).max() < 5.0
    assert initfree.evaluate(written, result.to_colmap()).rotation_auc5 == pytest.approx(100.0)


def test_it_opens_as_colmap_reads_it(tmp_path, result):
    export(result.problem, result.reconstruction).model.write(str(tmp_path))
    again = pycolmap.Reconstruction(str(tmp_path))
    assert again.num_reg_images() == result.problem.tracks.cameras
    assert {image.num_points2D() for image in again.images.values()} == {
        len(i.keypoints) for i in result.problem.observations.images
    }
    pycolmap.bundle_adjustment(again, pycolmap.BundleAdjustmentOptions())
    assert again.compute_mean_reprojection_error() < 1e-3


def test_widest_angles():
    centres = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.5], [-1.0, 0.0, 0.0]])
    tracks = Tracks(np.array([0, 1, 2, 3, 0, 2]), np.array([0, 4, 6]), 4)
    xyz = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 9.0]])
    used = np.array([True] * 6)
    assert np.allclose(widest_angles(tracks, centres, xyz, used), [90.0, 0.0])
    used[3] = False
    assert np.allclose(widest_angles(tracks, centres, xyz, used), [45.0, 0.0])
