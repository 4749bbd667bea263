"""What `initfree convert` writes: used as its readers use it, it projects the landmarks where they were seen."""

import json
import re
import tomllib

import numpy as np
import pycolmap
import pytest
from commanding import run
from models import to_bal, to_reconstruction
from scipy.spatial.transform import Rotation
from synthetic import ring

import initfree
from initfree.commands.cli import main
from initfree.io.convert import NAMES, TARGETS, convert, model_of
from initfree.io.load import load_model, load_observations


@pytest.fixture(scope="module")
def scene():
    return ring(cameras=8, landmarks=120, min_observations=3)


@pytest.fixture
def model(tmp_path, scene):
    (tmp_path / "model").mkdir()
    to_reconstruction(scene, "OPENCV").write(str(tmp_path / "model"))
    return tmp_path / "model"


def pixels(scene, K, R, t, k):
    """Landmarks that image k sees, projected without distortion, and their undistorted keypoints."""
    here = scene.tracks.cam == k
    x = scene.landmarks[scene.tracks.landmark[here]] @ np.asarray(R).T + np.asarray(t)
    projected = (x / x[:, 2:]) @ np.asarray(K).T
    truth = np.column_stack([scene.m[here], np.ones(here.sum())]) @ np.asarray(K).T
    return projected[:, :2], truth[:, :2]


def test_toml_of_anipose_and_caliscope(tmp_path, model, scene):
    assert convert(model, tmp_path / "cameras.toml") == "anipose"
    assert convert(model, tmp_path / "camera_array.toml") == "caliscope"
    anipose = tomllib.loads((tmp_path / "cameras.toml").read_text())
    caliscope = tomllib.loads((tmp_path / "camera_array.toml").read_text())["cameras"]
    for k in range(8):
        one, two = anipose[f"cam_{k}"], caliscope[str(k)]
        assert one["name"] == f"image{k:03d}.jpg"
        assert one["distortions"] == two["distortions"] == [-0.05, 0.01, 0.001, -0.001, 0.0]
        assert np.allclose(Rotation.from_rotvec(one["rotation"]).as_matrix(), two["rotation"])
        for R in (Rotation.from_rotvec(one["rotation"]).as_matrix(), two["rotation"]):
            assert np.allclose(*pixels(scene, one["matrix"], R, one["translation"], k))


def test_json_and_transforms(tmp_path, model, scene):
    assert convert(model, tmp_path / "cameras.json") == "json"
    assert convert(model, tmp_path / "transforms.json") == "nerfstudio"
    cameras = json.loads((tmp_path / "cameras.json").read_text())["cameras"]
    transforms = json.loads((tmp_path / "transforms.json").read_text())
    assert transforms["camera_model"] == "OPENCV"
    for k, (name, one) in enumerate(cameras.items()):
        assert np.allclose(*pixels(scene, one["K"], one["R"], one["t"], k))
        assert np.allclose(one["centre"], scene.centres[k])
        frame = transforms["frames"][k]
        assert frame["file_path"] == f"images/{name}"
        assert (frame["k1"], frame["p2"]) == (-0.05, -0.001)
        to_world = np.array(frame["transform_matrix"])
        assert np.allclose(to_world[:3, 3], scene.centres[k])
        # OpenGL: the camera looks along -z, and its y axis is up.
        assert np.allclose(-to_world[:3, 2], scene.R[k, 2])
        assert np.allclose(-to_world[:3, 1], scene.R[k, 1])


def test_dlt_coefficients_project(tmp_path, model, scene):
    assert convert(model, tmp_path / "dlt.csv", "dlt") == "dlt"
    L = np.loadtxt(tmp_path / "dlt.csv", delimiter=",")
    assert L.shape == (11, 8)
    X = np.column_stack([scene.landmarks, np.ones(len(scene.landmarks))])
    for k in range(8):
        P = np.append(L[:, k], 1.0).reshape(3, 4)
        x = (X @ P.T)[scene.tracks.landmark[scene.tracks.cam == k]]
        _, truth = pixels(scene, [[420.0, 0, 320], [0, 425, 240], [0, 0, 1]], scene.R[k], np.zeros(3), k)
        assert np.allclose(x[:, :2] / x[:, 2:], truth)


def test_multicamselfcal(tmp_path, model, scene):
    assert convert(model, tmp_path / "selfcal", "multicamselfcal") == "multicamselfcal"
    P = np.loadtxt(tmp_path / "selfcal" / "camera3.Pmat.cal")
    x = np.column_stack([scene.landmarks, np.ones(len(scene.landmarks))]) @ P.T
    _, truth = pixels(scene, [[420.0, 0, 320], [0, 425, 240], [0, 0, 1]], scene.R[2], np.zeros(3), 2)
    assert np.allclose((x[:, :2] / x[:, 2:])[scene.tracks.landmark[scene.tracks.cam == 2]], truth)
    assert np.allclose(np.loadtxt(tmp_path / "selfcal" / "Ce.dat").T, scene.centres)
    assert "kc1 = -0.05" in (tmp_path / "selfcal" / "basename1.rad").read_text()


def test_ply_and_colmap(tmp_path, model, scene):
    assert convert(model, tmp_path / "points.ply") == "ply"
    assert f"element vertex {scene.tracks.landmarks}\n".encode() in (tmp_path / "points.ply").read_bytes()
    assert convert(model, tmp_path / "copy") == "colmap"
    assert initfree.evaluate(tmp_path / "copy", model).landmark_rmse < 1e-12


def test_bal_becomes_a_colmap_model_with_its_own_cameras(tmp_path, scene):
    (tmp_path / "problem.txt").write_text(to_bal(scene))
    convert(tmp_path / "problem.txt", tmp_path / "out")
    written = pycolmap.Reconstruction(str(tmp_path / "out"))
    assert written.cameras[1].focal_length == 500.0
    assert written.num_points3D() == scene.tracks.landmarks
    assert written.compute_mean_reprojection_error() < 1e-9
    assert np.allclose(load_model(tmp_path / "out").centres, scene.centres)


def test_a_table_can_be_made_of_everything_and_read_again(tmp_path, model):
    assert convert(model, tmp_path / "tracks.csv") == "table"
    a, b = load_observations(model, "unknown"), load_observations(tmp_path / "tracks.csv")
    assert len(a.image) == len(b.image)
    assert sorted(map(tuple, a.normalised.round(12).tolist())) == sorted(map(tuple, b.normalised.round(12).tolist()))


@pytest.mark.parametrize(
    ("source", "target", "to", "says"),
    [
        ("tracks.csv", "cameras.toml", None, "no poses"),
        ("model", "what.xyz", None, "not clear"),
        ("model", "out", "wav", "expected one of colmap, ply"),
        ("model", "model", "colmap", "is the input"),
        ("missing", "out.ply", None, "does not exist"),
        ("model", "folder", "dlt", "is a directory"),
    ],
)
def test_what_cannot_be_converted_is_said_and_nothing_is_written(tmp_path, model, capsys, source, target, to, says):
    convert(model, tmp_path / "tracks.csv")
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(SystemExit) as ended:
        main(["convert", str(tmp_path / source), str(tmp_path / target), *(["--to", to] if to else [])])
    assert ended.value.code == 2
    assert says in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_cameras_without_a_form_in_opencv_are_refused(tmp_path, scene):
    to_reconstruction(scene, "THIN_PRISM_FISHEYE").write(str(tmp_path))
    with pytest.raises(initfree.InputError, match="THIN_PRISM_FISHEYE, which has no form in OpenCV"):
        convert(tmp_path, tmp_path / "cameras.toml")
    assert not (tmp_path / "cameras.toml").exists()


def test_every_target_is_named_once():
    assert len({target.name for target in TARGETS}) == len(TARGETS)


def test_a_model_of_a_path(model):
    assert model_of(model).num_reg_images() == 8


def test_a_picture_of_the_array(tmp_path, model):
    from PIL import Image

    assert convert(model, tmp_path / "array.png") == "picture"
    with Image.open(tmp_path / "array.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1 << 20) or []}
        assert picture.size == (960, 720)
    # Pyramids of the cameras in red.
    assert any(r > 180 and g < 80 and b < 60 for r, g, b in colours)


def photographs(folder, model):
    """An image of random stones for each image of the model."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for image in pycolmap.Reconstruction(str(model)).images.values():
        coarse = rng.integers(0, 255, size=(30, 40, 3), dtype=np.uint8)
        pycolmap.Bitmap.from_array(np.kron(coarse, np.ones((16, 16, 1), dtype=np.uint8))).write(str(folder / image.name))
    return folder


def test_splats_get_pinhole_cameras_and_images_without_distortion(tmp_path, model, capsys):
    images, out = photographs(tmp_path / "photographs", model), tmp_path / "splats"
    with pytest.raises(SystemExit) as ended:
        main(["convert", str(model), str(out), "--images", str(images)])
    assert ended.value.code == 0
    assert "(splats)" in capsys.readouterr().out
    assert sorted(path.name for path in out.iterdir()) == [".initfree", "images", "sparse"]
    written, before = (pycolmap.Reconstruction(str(path)) for path in (out / "sparse" / "0", model))
    assert {camera.model_name for camera in written.cameras.values()} == {"PINHOLE"}
    assert written.num_points3D() == before.num_points3D()
    assert written.compute_mean_reprojection_error() < 1e-3
    for image in written.images.values():
        camera = written.cameras[image.camera_id]
        assert pycolmap.Bitmap.read(str(out / "images" / image.name), as_rgb=True).to_array().shape == (
            camera.height,
            camera.width,
            3,
        )


@pytest.mark.parametrize(
    ("damage", "flags", "says"),
    [
        (lambda folder: min(folder.iterdir()).unlink(), [], "lacks 'image000.jpg'"),
        (lambda folder: min(folder.iterdir()).write_bytes(b"no image"), [], "cannot be read as an image"),
        (lambda folder: None, ["--to", "ply"], "expected splats with --images"),
    ],
)
def test_splats_without_their_images_are_not_written(tmp_path, model, damage, flags, says, capsys):
    images = photographs(tmp_path / "photographs", model)
    damage(images)
    with pytest.raises(SystemExit) as ended:
        main(["convert", str(model), str(tmp_path / "splats"), "--images", str(images), *flags])
    assert ended.value.code == 2
    assert says in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "splats").exists()


def test_formats_and_help_list_the_same_targets(capsys):
    assert run("formats") == 0
    listed = re.findall(r"^to (\w+)", capsys.readouterr().out, re.MULTILINE)
    assert run("convert", "--help") == 0
    words = set(re.findall(r"\w+", capsys.readouterr().out))
    assert listed == list(NAMES)
    assert set(NAMES) <= words
