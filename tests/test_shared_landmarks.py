"""Landmarks of two models match by the observations that they share, whatever their ids."""

import numpy as np
import pycolmap
import pytest
from models import to_reconstruction
from synthetic import ring

import initfree
from initfree.commands.cli import main
from initfree.data.shared_landmarks import landmark_matches
from initfree.io.colmap import observations_of


@pytest.fixture(scope="module")
def scene():
    return ring(cameras=8, landmarks=120, min_observations=3)


def renumbered(model: pycolmap.Reconstruction, shuffle: bool) -> pycolmap.Reconstruction:
    """The same model as another program would have written it: other ids, keypoints in another order."""
    rng = np.random.default_rng(0)
    new = pycolmap.Reconstruction()
    for camera in model.cameras.values():
        new.add_camera_with_trivial_rig(camera)
    place = {}
    for image_id, image in model.images.items():
        order = rng.permutation(len(image.points2D)) if shuffle else np.arange(len(image.points2D))
        place[image_id] = np.argsort(order)
        xy = np.array([point.xy for point in image.points2D])[order]
        if shuffle:
            xy = xy[:-1] if order[-1] < 2 else np.vstack([xy, [[1.0, 1.0]]])
        fresh = pycolmap.Image(name=image.name, keypoints=xy, camera_id=image.camera_id, image_id=image_id + 40)
        new.add_image_with_trivial_frame(fresh, image.cam_from_world())
    for n, (_, point) in enumerate(sorted(model.points3D.items(), reverse=True)):
        track = [pycolmap.TrackElement(e.image_id + 40, int(place[e.image_id][e.point2D_idx])) for e in point.track.elements]
        new.add_point3D_with_id(n + 1, pycolmap.Point3D(xyz=point.xyz, track=pycolmap.Track(track)))
    return new


@pytest.mark.parametrize("shuffle", [False, True])
def test_ids_mean_nothing(scene, shuffle):
    model = to_reconstruction(scene)
    other = renumbered(model, shuffle)
    metrics = initfree.evaluate(other, model)
    assert metrics.landmarks_compared == scene.tracks.landmarks
    assert metrics.landmark_rmse < 1e-9
    a, b = landmark_matches(observations_of(other, "a", "unknown"), observations_of(model, "b", "unknown"))
    assert np.allclose([other.points3D[i].xyz for i in a], [model.points3D[j].xyz for j in b])


def test_noise_on_keypoints_of_the_same_list_does_no_harm(scene):
    model, noisy = to_reconstruction(scene), renumbered(to_reconstruction(scene), False)
    rng = np.random.default_rng(1)
    for image in noisy.images.values():
        for point in image.points2D:
            point.xy = point.xy + rng.normal(size=2)
    assert initfree.evaluate(noisy, model).landmarks_compared == scene.tracks.landmarks


def test_models_that_share_no_landmark_are_told_apart(tmp_path, scene, capsys):
    """The same images, all keypoints elsewhere."""
    model, other = to_reconstruction(scene), renumbered(to_reconstruction(scene), True)
    for image in other.images.values():
        for point in image.points2D:
            point.xy = point.xy + np.array([300.0, 300.0])
    metrics = initfree.evaluate(other, model)
    assert metrics.landmarks_compared == 0
    assert np.isnan(metrics.landmark_rmse)
    assert metrics.rotation_auc5 == pytest.approx(100.0)
    for name, one in (("model", model), ("other", other)):
        (tmp_path / name).mkdir()
        one.write(str(tmp_path / name))
    with pytest.raises(SystemExit):
        main(["evaluate", str(tmp_path / "other"), str(tmp_path / "model")])
    assert "shares two observations" in capsys.readouterr().out
