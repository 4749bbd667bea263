"""Keypoints of pose estimators and clicked points: the pixels that were written, by camera, frame and point."""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from keypoint_files import FRAMES, NODES, recording, write_deeplabcut, write_idiap, write_openpose, write_sleap

import initfree
from initfree.errors import InputError
from initfree.io.formats import format_of
from initfree.io.load import load_observations

WRITERS = {"DeepLabCut": write_deeplabcut, "SLEAP": write_sleap, "OpenPose": write_openpose}
DATA = Path(os.environ.get("INITFREE_DATA", "/nonexistent"))


@pytest.mark.parametrize("name", WRITERS)
def test_every_detection_is_read_but_those_of_little_confidence(tmp_path, name):
    path = WRITERS[name](tmp_path / "poses")
    assert format_of(path).name == name
    o = load_observations(path)
    xy = recording()
    nodes = ("0", "1") if name == "OpenPose" else NODES
    assert len(o.image) == 6 * (FRAMES - 1) * 2
    assert o.moments is not None
    assert o.intrinsics == "unknown"
    for image, landmark, keypoint in zip(o.image.tolist(), o.landmark_id.tolist(), o.keypoint.tolist(), strict=True):
        frame, point = o.moments[landmark]
        assert frame != "3"
        one = o.images[image]
        expected = xy[int(one.name[3:]), int(frame), nodes.index(point)]
        assert one.keypoints[keypoint] == pytest.approx(expected, abs=1e-5)
    with pytest.raises(InputError, match="no intrinsics"):
        load_observations(path, "known")


def test_clicked_points_keep_their_cameras_intrinsics(tmp_path):
    path = write_idiap(tmp_path / "ba_problem.txt")
    assert format_of(path).name == "Idiap"
    o = load_observations(path)
    assert o.intrinsics == "refine"
    assert len(o.image) == 6 * FRAMES * 2 + 6
    assert {camera.focal_length_x for camera in o.cameras.values()} == {420.0}
    assert initfree.solve(initfree.load(path, intrinsics="known")).accepted


@pytest.mark.parametrize(
    ("name", "file", "before", "after", "told"),
    [
        (
            "DeepLabCut",
            "cam1DLC_resnet50_armJan1shuffle1_1000.csv",
            "coords,x,y",
            "coords,x,x",
            "expected x, y and likelihood",
        ),
        ("DeepLabCut", "cam1DLC_resnet50_armJan1shuffle1_1000.csv", "0.98", "1.7", "confidence 1.7; expected 0 to 1"),
        ("DeepLabCut", "cam1DLC_resnet50_armJan1shuffle1_1000.csv", "0.98", "often", "is 'often'; expected a number"),
        ("DeepLabCut", "cam1DLC_resnet50_armJan1shuffle1_1000.csv", "bodyparts", "parts", "no rows bodyparts and coords"),
        ("OpenPose", "cam1/video_000000000007_keypoints.json", "people", "persons", "no list of people"),
        ("OpenPose", "cam1/video_000000000007_keypoints.json", "0.98]", "0.98, 3]", "is broken"),
        ("OpenPose", "cam1/video_000000000007_keypoints.json", "{", "", "cannot be read as JSON"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, file, before, after, told):
    path = WRITERS[name](tmp_path / "poses")
    text = (path / file).read_text()
    assert before in text
    (path / file).write_text(text.replace(before, after, 1))
    with pytest.raises(InputError, match=told):
        load_observations(path)


def test_files_of_one_camera_and_broken_hdf5_are_named(tmp_path):
    path = write_deeplabcut(tmp_path / "dlc")
    (path / "cam1DLC_other.csv").write_text((path / "cam1DLC_resnet50_armJan1shuffle1_1000.csv").read_text())
    with pytest.raises(InputError, match="both of camera 'cam1'"):
        load_observations(path)
    path = write_sleap(tmp_path / "sleap")
    (path / "cam2.analysis.h5").write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read as HDF5"):
        load_observations(path)


@pytest.mark.parametrize("camera", ["-1", "6", "1e300"])
def test_an_observation_of_no_camera_of_idiap_is_named(tmp_path, camera):
    path = write_idiap(tmp_path / "ba_problem.txt")
    head, first, *rest = path.read_text().split("\n")
    path.write_text("\n".join([head, f"{camera} {first.split(' ', 1)[1]}", *rest]))
    with pytest.raises(InputError, match=re.escape(f"camera {float(camera):g}, point 0; it has 6 cameras")):
        load_observations(path)


def test_a_recording_of_poses_is_solved(tmp_path):
    result = initfree.solve(initfree.load(write_openpose(tmp_path / "op")))
    assert len(result.cameras) == 6
    assert all(one.mean_pixels < 0.1 for one in result.cameras)


@pytest.mark.skipif(not (DATA / "arrays" / "idiap").is_dir(), reason="INITFREE_DATA has no arrays/idiap")
def test_the_traffic_array_is_read():
    o = load_observations(DATA / "arrays" / "idiap" / "ba_problem.txt")
    assert len(o.images) == 7
    assert len(o.image) == 4082 + 150
    assert np.median([camera.focal_length_x for camera in o.cameras.values()]) == pytest.approx(1707.0, abs=30.0)


CALIBRATION = """
[cam_{k}]
name = "cam{k}"
size = [640, 480]
matrix = [[420.0, 0.0, 320.0], [0.0, 420.0, 240.0], [0.0, 0.0, 1.0]]
distortions = [0.0, 0.0, 0.0, 0.0, 0.0]
rotation = [0.0, 0.0, 0.0]
translation = [0.0, 0.0, 0.0]
fisheye = false
"""
SHEET = """%YAML:1.0
---
image_width: 640
image_height: 480
camera_matrix: !!opencv-matrix
   rows: 3
   cols: 3
   dt: d
   data: [ 4.2e+02, 0., 320., 0., 420., 240.,
       0., 0., 1. ]
distortion_coefficients: !!opencv-matrix
   rows: 5
   cols: 1
   dt: d
   data: [ 0., 0., 0., 0., 0. ]
"""


def calibrated(folder: Path, kind: str) -> Path:
    """A recording with a calibration of anipose's or OpenCV's kind beside it."""
    path = write_deeplabcut(folder)
    if kind == "anipose":
        (path / "calibration.toml").write_text("".join(CALIBRATION.format(k=k) for k in range(6)) + "\n[metadata]\n")
    else:
        for k in range(6):
            (path / f"cam{k}.{kind}").write_text(SHEET)
    return path


@pytest.mark.parametrize("kind", ["anipose", "yml", "yaml"])
def test_calibrations_beside_keypoints(tmp_path, kind):
    o = load_observations(calibrated(tmp_path / "poses", kind))
    assert o.intrinsics == "known"
    assert not o.sizes_guessed
    assert not o.notes
    for camera in o.cameras.values():
        assert (camera.width, camera.height) == (640, 480)
        assert camera.calibration_matrix() == pytest.approx(np.array([[420.0, 0, 320], [0, 420.0, 240], [0, 0, 1]]))
    assert initfree.solve(initfree.load(tmp_path / "poses")).accepted


def test_without_a_calibration_the_sizes_are_a_guess_that_is_said(tmp_path):
    o = load_observations(write_deeplabcut(tmp_path / "poses"))
    assert o.sizes_guessed
    assert "are a guess from where the detections lie" in o.notes[0]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ('"cam3"', '"other"', "has no camera 'cam3'; it has cam0"),
        ("size = [640, 480]", "size = [640]", "expected width and height in pixels"),
        ("[0.0, 0.0, 1.0]]", "[0.0, 0.0]]", "expected numbers"),
        ("420.0", "-420.0", "f > 0"),
        ("[cam_0]", "[cam_0", "cannot be read as TOML"),
    ],
)
def test_what_is_wrong_in_a_calibration_is_named(tmp_path, before, after, told):
    path = calibrated(tmp_path / "poses", "anipose")
    text = (path / "calibration.toml").read_text()
    (path / "calibration.toml").write_text(text.replace(before, after, 1))
    with pytest.raises(InputError, match=re.escape(told)):
        load_observations(path)


def test_two_calibrations_are_refused(tmp_path):
    path = calibrated(tmp_path / "poses", "anipose")
    (path / "older.toml").write_text((path / "calibration.toml").read_text())
    with pytest.raises(InputError, match=r"calibration\.toml and older\.toml; expected one"):
        load_observations(path)
