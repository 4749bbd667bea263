"""Rigs of an input: solved as free cameras, estimated, and written where they hold."""

import json
import sqlite3

import numpy as np
import pycolmap
import pytest
from scipy.spatial.transform import Rotation

import initfree
from initfree.arrays.rigs import Mount, estimate_rigs, median_place, median_rotation
from initfree.errors import InputError
from initfree.evaluation import evaluate_models
from initfree.io.colmap import reconstruction_of
from initfree.io.load import load_observations
from initfree.io.rigged import rigged

CAMERAS, FRAMES = 3, 6


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A database of COLMAP's own generator, three cameras in six frames with half a pixel of noise, and the truth."""
    path = tmp_path_factory.mktemp("rigs") / "rig.db"
    options = pycolmap.SyntheticDatasetOptions(
        num_rigs=1, num_cameras_per_rig=CAMERAS, num_frames_per_rig=FRAMES, num_points3D=150,
        sensor_from_rig_translation_stddev=0.3, camera_has_prior_focal_length=True,
    )  # fmt: skip
    pycolmap.set_random_seed(1)
    with pycolmap.Database.open(path) as database:
        truth = pycolmap.synthesize_dataset(options, database)
        pycolmap.synthesize_noise(pycolmap.SyntheticNoiseOptions(point2D_stddev=0.5), truth, database)
    return path, pycolmap.Reconstruction(truth)


def test_a_rig_that_holds_is_written(made, tmp_path):
    path, truth = made
    result = initfree.solve(initfree.load(path))
    assert result.accepted
    result.write(tmp_path / "out")
    model = pycolmap.Reconstruction(str(tmp_path / "out" / "sparse" / "0"))
    (rig,) = model.rigs.values()
    assert rig.rig_id in truth.rigs
    assert {sensor.id for sensor in rig.sensor_ids()} == set(truth.cameras)
    assert model.num_reg_frames() == FRAMES
    assert {k: sorted(d.id for d in f.image_ids) for k, f in model.frames.items()} == {
        k: sorted(d.id for d in f.image_ids) for k, f in truth.frames.items()
    }
    metrics = evaluate_models(reconstruction_of(model), reconstruction_of(truth))
    assert min(metrics.rotation_auc5, metrics.translation_auc5) > 99.0
    # The rig's reference may be another camera than in the truth: camera to camera, up to the scale of the world.
    mine, true = (
        {(a, b): one.images[a].cam_from_world() * one.images[b].cam_from_world().inverse() for a, b in ((1, 2), (1, 3))}
        for one in (model, truth)
    )
    scale = np.linalg.norm(mine[1, 2].translation) / np.linalg.norm(true[1, 2].translation)
    for pair, pose in mine.items():
        turned = (pose.rotation * true[pair].rotation.inverse()).angle()
        assert np.degrees(turned) < 0.05
        assert np.allclose(pose.translation, scale * true[pair].translation, atol=0.02 * scale)
    run = json.loads((tmp_path / "out" / "run.json").read_text())
    told = run["model"]["rigs"]
    assert told["written"]
    spread = [s["spread_degrees"]["median"] for s in told["rigs"][str(rig.rig_id)]["sensor_from_rig"].values()]
    assert sorted(spread)[0] == 0.0
    assert 0.0 < max(spread) < 0.1
    assert any("rigs and frames were written" in note for note in run["notes"])


def test_a_rig_that_does_not_hold_is_told_and_each_image_has_its_own_frame(made, tmp_path):
    """Images of two sensors exchange their frames: what the rig says is not what the images show."""
    path, _ = made
    mixed = tmp_path / "mixed.db"
    mixed.write_bytes(path.read_bytes())
    with sqlite3.connect(mixed) as connection:
        rows = connection.execute("SELECT rowid, frame_id FROM frame_data WHERE sensor_id = 2 ORDER BY frame_id").fetchall()
        for (row, _), (_, frame) in zip(rows, rows[3:] + rows[:3], strict=True):
            connection.execute("UPDATE frame_data SET frame_id = ? WHERE rowid = ?", (frame, row))
    result = initfree.solve(initfree.load(mixed))
    assert result.accepted
    result.write(tmp_path / "out")
    model = pycolmap.Reconstruction(str(tmp_path / "out" / "sparse" / "0"))
    assert model.num_reg_frames() == model.num_reg_images() == CAMERAS * FRAMES
    told = json.loads((tmp_path / "out" / "run.json").read_text())
    assert not told["model"]["rigs"]["written"]
    assert any("do not hold" in note for note in told["notes"])


def test_sensors_that_are_never_in_one_frame_are_told_without_a_figure(made):
    _, truth = made
    mounts = {k: Mount(1, k, int(image.camera_id)) for k, image in truth.images.items()}
    found = rigged(truth, mounts)
    assert found.figures()["mean_reprojection_error"]["as_rigs"] is None
    assert found.notes() == ("rig 1: no two of its cameras are in one frame",)


def test_a_model_with_rigs_is_read_with_them(made, tmp_path):
    path, truth = made
    truth.write(str(tmp_path))
    assert load_observations(tmp_path).mounts == load_observations(path).mounts


def test_one_camera_is_no_rig(tmp_path):
    with pycolmap.Database.open(tmp_path / "one.db") as database:
        pycolmap.synthesize_dataset(pycolmap.SyntheticDatasetOptions(num_rigs=2, num_points3D=30), database)
    assert load_observations(tmp_path / "one.db").mounts is None


def test_images_that_are_not_in_a_frame_of_their_camera_have_one_of_their_own(made, tmp_path):
    """One is in no frame, one was given another camera, one has a camera of no rig."""
    path, _ = made
    edited = tmp_path / "edited.db"
    edited.write_bytes(path.read_bytes())
    with sqlite3.connect(edited) as connection:
        connection.execute("DELETE FROM frame_data WHERE data_id = 1")
        connection.execute("UPDATE images SET camera_id = 1 WHERE image_id = 5")
        connection.execute("INSERT INTO cameras SELECT 8, model, width, height, params, 1 FROM cameras WHERE camera_id = 1")
        connection.execute("UPDATE images SET camera_id = 8 WHERE image_id = 9")
    model = initfree.solve(initfree.load(edited)).to_colmap()
    assert model.num_reg_images() == CAMERAS * FRAMES
    alone = {f.rig_id: [d.id for d in f.image_ids] for f in model.frames.values() if f.num_data_ids() == 1}
    assert sorted(len(f.image_ids) for f in model.frames.values()) == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert len(model.rigs) == 2
    assert [9] in alone.values()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE frame_data SET frame_id = 1 WHERE sensor_id = 2", "frame 1 has two images of camera 2"),
        ("UPDATE frame_data SET frame_id = 77 WHERE data_id = 4", "is in frame 77, which is not in the database"),
    ],
)
def test_frames_that_cannot_be(made, tmp_path, change, words):
    path, _ = made
    wrong = tmp_path / "wrong.db"
    wrong.write_bytes(path.read_bytes())
    with sqlite3.connect(wrong) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute(change)
    with pytest.raises(InputError, match=words):
        load_observations(wrong)


def test_sensors_are_found_across_frames_that_lack_some():
    """Cameras 1 and 3 are never in one frame; a frame in five is a wrong one, and camera 9 is by itself."""
    rng = np.random.default_rng(0)
    sensors = {1: Rotation.identity(), 2: Rotation.random(None, 1), 3: Rotation.random(None, 2)}
    place = {1: np.zeros(3), 2: rng.normal(size=3), 3: rng.normal(size=3)}
    mounts, R, t = {}, [], []
    for frame in range(20):
        world, shift = Rotation.random(None, frame), rng.normal(size=3)
        for sensor in (1, 2) if frame < 10 else (2, 3):
            wrong = Rotation.from_rotvec([0.0, 1.0, 0.0]) if frame % 5 == 0 and sensor != 2 else Rotation.identity()
            mounts[len(R)] = Mount(7, frame, sensor)
            R.append((wrong * sensors[sensor] * world).as_matrix())
            t.append(wrong.apply(sensors[sensor].apply(shift) + place[sensor]))
    mounts[len(R)] = Mount(7, 99, 9)
    (rig,) = estimate_rigs(list(mounts), mounts, np.array([*R, np.eye(3)]), np.array([*t, np.zeros(3)]))
    assert rig.reference == 2
    assert rig.lost == (9,)
    assert 99 not in rig.frames
    for sensor in (1, 3):
        expected = sensors[sensor] * sensors[2].inv()
        assert np.allclose(rig.sensors[sensor].R, expected.as_matrix(), atol=1e-6)
        assert np.allclose(rig.sensors[sensor].t, place[sensor] - expected.apply(place[2]), atol=1e-6)
        assert rig.sensors[sensor].degrees < 1e-5
        assert rig.sensors[sensor].worst_degrees == pytest.approx(np.degrees(1.0), abs=1e-3)


def test_medians_of_one_and_of_many():
    turn = Rotation.random(None, 3).as_matrix()
    assert np.allclose(median_rotation(turn[None]), turn)
    assert np.allclose(median_place(np.array([[1.0, 2.0, 3.0]])), [1.0, 2.0, 3.0])
    assert np.allclose(median_place(np.array([[0.0, 0, 0], [0, 0, 0], [9, 9, 9]])), 0.0, atol=1e-6)
