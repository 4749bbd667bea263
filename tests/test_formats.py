"""Readers of other programs' files: each gives the scene's own rays, and what is wrong is named in one sentence."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from models import to_reconstruction
from posed_files import kapture, metashape, nerfstudio, openmvg
from scipy.spatial.transform import Rotation
from synthetic import Scene, ring

import initfree
from initfree.commands.cli import main
from initfree.io.convert import convert, model_of
from initfree.io.formats import FORMATS, format_of
from initfree.io.load import load_model, load_observations

FOCAL, WIDTH, HEIGHT = 420.0, 640, 480
TURN = np.diag([1.0, -1.0, -1.0])
DATA = Path(os.environ.get("INITFREE_DATA", "/nonexistent"))


@pytest.fixture(scope="module")
def scene() -> Scene:
    return ring(cameras=8, landmarks=120, min_observations=3)


def views(scene: Scene, j: int):
    return range(scene.tracks.ptr[j], scene.tracks.ptr[j + 1])


def opensfm(path: Path, scene: Scene) -> Path:
    path.mkdir()
    (path / "camera_models.json").write_text(
        json.dumps(
            {
                "v2 c": {
                    "projection_type": "perspective",
                    "width": WIDTH,
                    "height": HEIGHT,
                    "focal": FOCAL / WIDTH,
                    "k1": 0.0,
                    "k2": 0.0,
                }
            }
        )
    )
    lines = ["OPENSFM_TRACKS_VERSION_v2"]
    for a, (cam, j) in enumerate(zip(scene.tracks.cam, scene.tracks.landmark, strict=True)):
        x, y = scene.m[a] * FOCAL / WIDTH
        lines.append(f"image{cam}.jpg\t{j}\t{a}\t{x:.17g}\t{y:.17g}\t0.001\t10\t20\t30\t-1\t-1")
    (path / "tracks.csv").write_text("\n".join(lines) + "\n")
    shots = {
        f"image{k}.jpg": {
            "rotation": Rotation.from_matrix(scene.R[k]).as_rotvec().tolist(),
            "translation": (-scene.R[k] @ scene.centres[k]).tolist(),
            "camera": "v2 c",
        }
        for k in range(scene.tracks.cameras)
    }
    points = {str(j): {"coordinates": xyz.tolist(), "color": [1, 2, 3]} for j, xyz in enumerate(scene.landmarks)}
    small = {"cameras": {}, "shots": {"image0.jpg": shots["image0.jpg"]}, "points": {}}
    (path / "reconstruction.json").write_text(json.dumps([small, {"cameras": {}, "shots": shots, "points": points}]))
    return path


def bundler(path: Path, scene: Scene) -> Path:
    path.mkdir()
    lines = ["# Bundle file v0.3", f"{scene.tracks.cameras} {scene.tracks.landmarks}"]
    for k in range(scene.tracks.cameras):
        R = TURN @ scene.R[k]
        lines += [f"{FOCAL} 0 0", *(" ".join(f"{v:.17g}" for v in row) for row in R)]
        lines.append(" ".join(f"{v:.17g}" for v in -R @ scene.centres[k]))
    for j in range(scene.tracks.landmarks):
        lines += [" ".join(f"{v:.17g}" for v in scene.landmarks[j]), "10 20 30"]
        seen = [
            f"{scene.tracks.cam[a]} {a} {FOCAL * scene.m[a, 0]:.17g} {-FOCAL * scene.m[a, 1]:.17g}" for a in views(scene, j)
        ]
        lines.append(f"{len(seen)} {' '.join(seen)}")
    (path / "bundle.out").write_text("\n".join(lines) + "\n")
    (path / "list.txt").write_text("".join(f"./image{k}.jpg 0 {FOCAL}\n" for k in range(scene.tracks.cameras)))
    return path / "bundle.out"


def nvm(path: Path, scene: Scene) -> Path:
    lines = ["NVM_V3 ", "", str(scene.tracks.cameras)]
    for k in range(scene.tracks.cameras):
        x, y, z, w = Rotation.from_matrix(scene.R[k]).as_quat()
        numbers = " ".join(f"{v:.17g}" for v in (FOCAL, w, x, y, z, *scene.centres[k]))
        lines.append(f"image{k}.jpg\t{numbers} 0 0")
    lines += ["", str(scene.tracks.landmarks)]
    for j in range(scene.tracks.landmarks):
        seen = " ".join(
            f"{scene.tracks.cam[a]} {a} {FOCAL * scene.m[a, 0]:.17g} {FOCAL * scene.m[a, 1]:.17g}" for a in views(scene, j)
        )
        lines.append(" ".join(f"{v:.17g}" for v in scene.landmarks[j]) + f" 10 20 30 {len(views(scene, j))} {seen}")
    file = path.with_suffix(".nvm")
    file.write_text("\n".join(lines) + "\n0\n")
    return file


def multicamselfcal(path: Path, scene: Scene) -> Path:
    path.mkdir()
    n, frames = scene.tracks.cameras, scene.tracks.landmarks
    seen, points = np.zeros((n, frames)), np.full((n, 3, frames), np.nan)
    seen[scene.tracks.cam, scene.tracks.landmark] = 1
    points[scene.tracks.cam, :2, scene.tracks.landmark] = scene.m * FOCAL + (WIDTH / 2, HEIGHT / 2)
    points[:, 2] = 1.0
    np.savetxt(path / "points.dat", points.reshape(3 * n, frames), fmt="%.17g")
    np.savetxt(path / "IdMat.dat", seen, fmt="%d")
    np.savetxt(path / "Res.dat", np.tile([WIDTH, HEIGHT], (n, 1)), fmt="%d")
    (path / "camera_order.txt").write_text("".join(f"image{k}.jpg\n" for k in range(n)))
    K = [FOCAL, 0, WIDTH / 2, 0, FOCAL, HEIGHT / 2, 0, 0, 1]
    for k in range(n):
        text = [f"K{1 + i // 3}{1 + i % 3} = {v}" for i, v in enumerate(K)] + [f"kc{i} = 0.0" for i in (1, 2, 3, 4)]
        (path / f"basename{k + 1}.rad").write_text("\n".join(text))
    return path


def caliscope(path: Path, scene: Scene) -> Path:
    path.mkdir()
    cameras = []
    for k in range(scene.tracks.cameras):
        cameras.append(f"[cameras.{k}]\nsize = [{WIDTH}, {HEIGHT}]\nignore = false\n")
        K = [[FOCAL, 0.0, WIDTH / 2], [0.0, FOCAL, HEIGHT / 2], [0.0, 0.0, 1.0]]
        cameras.append(f"matrix = {K}\ndistortions = [0.0, 0.0, 0.0, 0.0, 0.0]\n")
        cameras.append(f"rotation = {scene.R[k].tolist()}\ntranslation = {(-scene.R[k] @ scene.centres[k]).tolist()}\n")
    (path / "camera_array.toml").write_text("".join(cameras))
    lines = ["sync_index,cam_id,frame_index,frame_time,object_id,keypoint_id,img_loc_x,img_loc_y,obj_loc_x,obj_loc_y"]
    for a, (cam, j) in enumerate(zip(scene.tracks.cam, scene.tracks.landmark, strict=True)):
        x, y = scene.m[a] * FOCAL + (WIDTH / 2, HEIGHT / 2)
        lines.append(f"{j // 7},{cam},{j // 7},0.5,0,{j % 7},{x:.17g},{y:.17g},0,0")
    (path / "xy.csv").write_text("\n".join(lines) + "\n")
    return path


def table(path: Path, scene: Scene, confidence=0.9) -> Path:
    lines = ["camera,frame,point,x,y,confidence,width,height"]
    for a, (cam, j) in enumerate(zip(scene.tracks.cam, scene.tracks.landmark, strict=True)):
        x, y = scene.m[a] * FOCAL + (WIDTH / 2, HEIGHT / 2)
        lines.append(f"image{cam}.jpg,{j // 7},{j % 7},{x:.17g},{y:.17g},{confidence},{WIDTH},{HEIGHT}")
    lines.append(f"image0.jpg,999,0,,,0.0,{WIDTH},{HEIGHT}")
    file = path.with_suffix(".csv")
    file.write_text("\n".join(lines) + "\n")
    return file


WRITERS = {
    "OpenSfM": opensfm,
    "Bundler": bundler,
    "NVM": nvm,
    "MultiCamSelfCal": multicamselfcal,
    "caliscope": caliscope,
    "table": table,
    "Kapture": kapture,
    "openMVG": openmvg,
    "Metashape": metashape,
}
WITH_POSES = {"Bundler", "Kapture", "Metashape", "NVM", "OpenSfM", "caliscope", "openMVG"}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_gives_the_rays_of_the_scene(tmp_path, scene, name):
    path = WRITERS[name](tmp_path / "input", scene)
    assert format_of(path).name == name
    problem = initfree.load(path)
    assert problem.tracks.observations == scene.tracks.observations
    assert problem.observations.source == str(path)
    assert sorted(np.diff(problem.tracks.ptr)) == sorted(np.diff(scene.tracks.ptr))
    ours = problem.m * problem.unit
    theirs = scene.m * FOCAL
    _, number = np.unique([problem.observations.images[k].image_id for k in problem.images], return_inverse=True)
    key = [
        np.lexsort((xy[:, 1].round(6), xy[:, 0].round(6), cam))
        for xy, cam in ((ours, number[problem.tracks.cam]), (theirs, scene.tracks.cam))
    ]
    assert np.allclose(ours[key[0]], theirs[key[1]], atol=1e-9)
    assert np.array_equal(number[problem.tracks.cam][key[0]], scene.tracks.cam[key[1]])


@pytest.mark.parametrize("name", sorted(WITH_POSES))
def test_formats_with_poses_can_be_compared_with(tmp_path, scene, name):
    model = load_model(WRITERS[name](tmp_path / "input", scene))
    assert np.allclose(model.R, scene.R)
    assert np.allclose(model.centres, scene.centres)
    if len(model.xyz):
        assert np.allclose(model.xyz, scene.landmarks)


@pytest.mark.parametrize("name", sorted(WITH_POSES - {"caliscope"}))  # whose points are not in the file
def test_poses_points_and_pixels_belong_together(tmp_path, scene, name):
    """As a COLMAP model every observation is where its camera projects its point to, in pixels that begin at the corner."""
    model = model_of(WRITERS[name](tmp_path / "input", scene))
    model.update_point_3d_errors()
    assert model.compute_num_observations() == scene.tracks.observations
    assert model.compute_mean_reprojection_error() < 1e-4
    if name in ("Bundler", "NVM"):  # measured from the middle of images whose sizes are not in the file
        return
    for image in model.images.values():
        k = int(image.name.removesuffix(".jpg").removeprefix("image"))
        pixels = scene.m[scene.tracks.seen_by(k)] * FOCAL + (WIDTH / 2, HEIGHT / 2)
        found = np.array([point.xy for point in image.points2D])
        assert np.allclose(np.sort(found, axis=0), np.sort(pixels, axis=0), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(WITH_POSES - {"caliscope"}))
def test_exact_models_of_other_programs_are_accepted(tmp_path, scene, name):
    """A convention that is off by an axis or by half a pixel shows in the residuals: no noise hides it."""
    found = initfree.check(WRITERS[name](tmp_path / "input", scene), known=True)
    assert found.accepted, found.reason
    assert found.certificate.evidence.median_pixels < 1e-6


def test_formats_without_poses_say_so(tmp_path, scene):
    with pytest.raises(initfree.InputError, match="no poses"):
        load_model(table(tmp_path / "t", scene))


def test_a_parquet_table_is_the_same_as_its_csv(tmp_path, scene):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    file = table(tmp_path / "t", scene)
    parquet.write_table(csv.read_csv(file), tmp_path / "t.parquet")
    a, b = load_observations(file), load_observations(tmp_path / "t.parquet")
    assert arrow is not None
    assert np.array_equal(a.normalised, b.normalised)
    assert np.array_equal(a.landmark_id, b.landmark_id)


def test_opensfm_with_two_cameras_reads_exif(tmp_path, scene):
    path = opensfm(tmp_path / "input", scene)
    models = json.loads((path / "camera_models.json").read_text())
    models["wide"] = models["v2 c"] | {"focal": 0.5}
    (path / "camera_models.json").write_text(json.dumps(models))
    with pytest.raises(initfree.InputError, match=r"2 cameras and no exif/image0\.jpg\.exif"):
        initfree.load(path)
    (path / "exif").mkdir()
    for k in range(scene.tracks.cameras):
        (path / "exif" / f"image{k}.jpg.exif").write_text(json.dumps({"camera": "wide" if k == 1 else "v2 c"}))
    o = initfree.load(path).observations
    assert o.image_unit[:, 0].tolist() == [FOCAL, 320.0, *[FOCAL] * 6]


def edited(path: Path, pattern: str, replacement: str) -> Path:
    text = path.read_text()
    new = re.sub(pattern, replacement, text, count=1)
    assert new != text
    path.write_text(new)
    return path


# fmt: off
BAD = {
    ("table", "no column x"): (lambda p: edited(p, "point,x,y", "point,left,y"), "no column x"),
    ("table", "no camera"): (lambda p: edited(p, "camera,", "banana,"), "no column camera"),
    ("table", "a word"): (lambda p: edited(p, r"0,0,[\d.]+", "0,0,left"), "x is 'left' in row"),
    ("table", "infinite"): (lambda p: edited(p, r"0,0,[\d.]+", "0,0,inf"), "expected finite"),
    ("table", "confidence"): (lambda p: edited(p, "0.9", "1.9"), r"confidence is 1\.9 in row 2; expected"),
    ("table", "short row"): (lambda p: edited(p, ",0.9,640,480", ""), "has 5 values; expected 8"),
    ("table", "mixed sizes"): (lambda p: edited(p, ",640,480", ",320,480"), "expected one, positive"),
    ("table", "empty"): (lambda p: p.write_text(""), r"is empty"),
    ("table", "only a head"): (lambda p: p.write_text("camera,frame,x,y\n"), "no observation that can be used"),
    ("table", "binary"): (lambda p: p.write_bytes(b"\xff\xfe\x00" * 50), "cannot be read as CSV"),
    ("Bundler", "truncated"): (lambda p: p.write_text(p.read_text()[:3000]), "ends too early|more than the file holds"),
    ("Bundler", "nan"): (lambda p: edited(p, r"\n420\.0 0 0", "\nnan 0 0"), "expected finite numbers"),
    ("Bundler", "count"): (lambda p: edited(p, r"\n8 \d+", "\n8 six"), "expected a whole number"),
    ("Bundler", "many"): (lambda p: edited(p, r"\n8 (\d+)", r"\n999999 \1"), "more than the file holds"),
    ("Bundler", "camera"): (lambda p: edited(p, r"(10 20 30\n\d+) \d+ ", r"\1 77 "), "seen by image 77 of 8"),
    ("NVM", "truncated"): (lambda p: p.write_text(p.read_text()[:2000]), "ends too early|more than the file holds"),
    ("NVM", "word"): (lambda p: edited(p, r"image0\.jpg\t420\.0|image0\.jpg\t420", "image0.jpg\tlong"), "expected numbers"),
    ("OpenSfM", "projection"): (
        lambda p: edited(p / "camera_models.json", "perspective", "spherical"), "projection 'spherical'"
    ),
    ("OpenSfM", "no focal"): (lambda p: edited(p / "camera_models.json", '"focal"', '"fokal"'), "lacks or garbles"),
    ("OpenSfM", "json"): (lambda p: edited(p / "camera_models.json", "{", "["), "cannot be read as JSON"),
    ("OpenSfM", "short"): (lambda p: (p / "tracks.csv").write_text("a.jpg\t1\n"), "line 1 has 2 values"),
    ("OpenSfM", "empty"): (lambda p: (p / "tracks.csv").write_text(""), "has no tracks"),
    ("OpenSfM", "nan"): (lambda p: edited(p / "tracks.csv", r"\t0\t0\t[^\t]+", "\t0\t0\tnan"), "expected finite numbers"),
    ("MultiCamSelfCal", "rows"): (lambda p: edited(p / "IdMat.dat", r"^[^\n]*\n", ""), "expected 3 x 7 rows"),
    ("MultiCamSelfCal", "words"): (lambda p: edited(p / "points.dat", r"^\S+", "x"), "cannot be read as a matrix"),
    ("MultiCamSelfCal", "empty"): (lambda p: (p / "IdMat.dat").write_text(""), "is empty"),
    ("MultiCamSelfCal", "half"): (lambda p: edited(p / "IdMat.dat", "1", "0.5"), r"has a 0\.5; expected zeros and ones"),
    ("MultiCamSelfCal", "sizes"): (lambda p: edited(p / "Res.dat", r"^[^\n]*\n", ""), "expected width and height of 8"),
    ("MultiCamSelfCal", "rad"): (lambda p: edited(p / "basename2.rad", "K11", "L11"), "lacks 'K11'"),
    ("caliscope", "toml"): (lambda p: edited(p / "camera_array.toml", "=", ":"), "cannot be read as TOML"),
    ("caliscope", "no tables"): (lambda p: (p / "camera_array.toml").write_text("a = 1\n"), r"no table \[cameras\.N\]"),
    ("caliscope", "camera"): (lambda p: edited(p / "camera_array.toml", r"cameras\.3", "cameras.9"), "names camera '3'"),
    ("caliscope", "size"): (
        lambda p: edited(p / "camera_array.toml", r"size = \[640, 480\]", "size = [640]"),
        r"expected \[width, height\]",
    ),
    ("caliscope", "focal"): (lambda p: edited(p / "camera_array.toml", r"420\.0", "-420.0"), "expected finite 3x3"),
    ("Kapture", "model"): (
        lambda p: edited(p / "sensors" / "sensors.txt", "SIMPLE_RADIAL", "ROUND"), "expected a model of COLMAP"
    ),
    ("Kapture", "device"): (
        lambda p: edited(p / "sensors" / "records_camera.txt", "cam3", "cam77"), "'cam77', which is no camera"
    ),
    ("Kapture", "keypoint"): (
        lambda p: edited(p / "reconstruction" / "observations.txt", r"jpg, \d+", "jpg, 9999"), "no keypoint 9999"
    ),
    ("Kapture", "image"): (
        lambda p: edited(p / "reconstruction" / "observations.txt", r"image\d\.jpg", "other.jpg"), "'other.jpg', which is no"
    ),
    ("Kapture", "path"): (
        lambda p: edited(p / "sensors" / "records_camera.txt", r"image3\.jpg", "../../secret"), "which is no record|relative"
    ),
    ("Kapture", "columns"): (
        lambda p: edited(p / "reconstruction" / "keypoints" / "sift" / "keypoints.txt", "float64'>", "int8'>"), "float32 or"
    ),
    ("openMVG", "json"): (lambda p: p.write_text(p.read_text()[:-9]), "cannot be read as JSON"),
    ("openMVG", "model"): (lambda p: edited(p, "pinhole_radial_k3", "spherical"), "of model 'spherical'"),
    ("openMVG", "view"): (lambda p: edited(p, r'"observations": \[\{"key": \d+', '"observations": [{"key": 77'), "view 77"),
    ("openMVG", "no intrinsics"): (lambda p: edited(p, '"intrinsics"', '"lenses"'), "no view with intrinsics"),
    ("openMVG", "distortion"): (lambda p: edited(p, '"disto_k3": .0, 0, 0.', '"disto_k3": [0]'), "cannot be read"),
    ("Metashape", "cut"): (lambda p: p.write_text(p.read_text()[:-30]), "cannot be read as XML"),
    ("Metashape", "entities"): (
        lambda p: edited(p, "<document", '<!DOCTYPE a [<!ENTITY b "c">]><document'), "declares entities"
    ),
    ("Metashape", "k4"): (lambda p: edited(p, "</f>", "</f><k4>0.1</k4>"), "k4 of 0.1"),
    ("Metashape", "focal"): (lambda p: edited(p, "<f>420.0</f>", ""), "f of None"),
    ("Metashape", "sensor"): (lambda p: edited(p, 'sensor id="3"', 'sensor id="4"'), "sensor 3 has no calibration"),
    ("Metashape", "word"): (lambda p: edited(p, r'x="\d', 'x="left'), "cannot be read"),
    ("caliscope", "column"): (lambda p: edited(p / "xy.csv", "img_loc_x", "column"), "no column img_loc_x"),
}
# fmt: on


@pytest.mark.parametrize(("name", "what"), BAD)
def test_broken_inputs_are_named_in_one_sentence(tmp_path, scene, name, what):
    path = WRITERS[name](tmp_path / "input", scene)
    damage, says = BAD[name, what]
    damage(path)
    with pytest.raises(initfree.InputError, match=says) as caught:
        initfree.load(path)
    assert "\n" not in str(caught.value)
    assert "input" in str(caught.value)


@pytest.mark.parametrize("name", WRITERS)
def test_a_broken_input_ends_the_command_with_one_sentence_and_writes_nothing(tmp_path, scene, name, capsys):
    path = WRITERS[name](tmp_path / "input", scene)
    damage, _ = next(case for (reader, _), case in BAD.items() if reader == name)
    damage(path)
    with pytest.raises(SystemExit) as ended:
        main(["solve", str(path), "--output", str(tmp_path / "out")])
    assert ended.value.code == 2
    told = capsys.readouterr()
    assert "Traceback" not in told.out + told.err
    assert "input" in told.err
    assert not (tmp_path / "out").exists()


def renamed(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda p: p.unlink(), "has no reconstruction.json"),
        (lambda p: p.write_text("[{"), "cannot be read as JSON"),
        (lambda p: p.write_text("[]"), "lacks or garbles"),
        (lambda p: p.write_text("3"), "lacks or garbles"),
        (lambda p: renamed(p, '"rotation"', '"turn"'), "lacks or garbles 'rotation'"),
        (lambda p: renamed(p, '"translation": [', '"translation": [NaN, '), "three finite numbers"),
    ],
)
def test_broken_reconstructions_of_opensfm(tmp_path, scene, damage, says):
    path = opensfm(tmp_path / "input", scene)
    damage(path / "reconstruction.json")
    with pytest.raises(initfree.InputError, match=says) as caught:
        load_model(path)
    assert "\n" not in str(caught.value)
    assert initfree.load(path).tracks.cameras == scene.tracks.cameras  # the solver does not read it


def test_an_opensfm_project_is_evaluated_against(tmp_path, scene):
    path = opensfm(tmp_path / "input", scene)
    metrics = initfree.evaluate(initfree.solve(initfree.load(path, intrinsics="known")), path)
    assert metrics.rotation_auc5 > 99.9
    assert metrics.landmarks_compared == scene.tracks.landmarks


@pytest.mark.parametrize("name", ["points.dat", "xy.csv", "tracks.csv", "bundle.out"])
def test_directories_in_place_of_files(tmp_path, name):
    (tmp_path / name).mkdir()
    for path in (tmp_path, tmp_path / name):
        with pytest.raises(initfree.InputError, match="holds nothing that can be read"):
            initfree.load(path)


def test_every_format_tells_what_it_looks_like():
    assert len({one.name for one in FORMATS}) == len(FORMATS) >= 9
    assert all(one.looks and one.example.startswith(("initfree solve ", "initfree check ")) for one in FORMATS)


@pytest.mark.skipif(not (DATA / "arrays").is_dir(), reason="real recordings are not here")
@pytest.mark.parametrize(
    ("path", "cameras", "observations"),
    [
        ("mcsc/DATA20090709_111010", 3, 2670),
        ("mcsc/DATA20100906_134124", 4, 3914),
        ("mcsc/caldata20130726_122220", 4, 1599),
        ("caliscope/4_cam_recording", 4, 1495),
        ("caliscope/post_optimization", 4, 1979),
    ],
)
def test_real_recordings(path, cameras, observations):
    tracks = initfree.load(DATA / "arrays" / path).tracks
    assert (tracks.cameras, tracks.observations) == (cameras, observations)


def test_the_order_of_the_cameras_of_an_array_does_not_matter(tmp_path, scene):
    """Same detections, cameras listed the other way round: same problem to the last digit, numbered as they are listed."""
    path, other = multicamselfcal(tmp_path / "a", scene), multicamselfcal(tmp_path / "b", scene)
    for name, rows in (("points.dat", 3), ("IdMat.dat", 1), ("Res.dat", 1)):
        lines = (other / name).read_text().splitlines()
        groups = [lines[k : k + rows] for k in range(0, len(lines), rows)]
        (other / name).write_text("".join(f"{line}\n" for group in groups[::-1] for line in group))
    one, two = (initfree.load(p, intrinsics="unknown") for p in (path, other))
    assert np.array_equal(one.m, two.m)
    assert np.array_equal(one.tracks.cam, two.tracks.cam)
    ids = [[p.observations.images[k].image_id for k in p.images] for p in (one, two)]
    assert ids[0] == [scene.tracks.cameras + 1 - k for k in ids[1]]


def test_poses_of_nerfstudio(tmp_path, scene):
    path = nerfstudio(tmp_path / "transforms", scene)
    assert format_of(path).name == "nerfstudio"
    model = load_model(path)
    assert model.names == tuple(f"image{k}.jpg" for k in range(scene.tracks.cameras))
    assert np.allclose(model.R, scene.R)
    assert np.allclose(model.centres, scene.centres)
    with pytest.raises(initfree.InputError, match="no observations"):
        initfree.load(path)


def test_transforms_that_were_written_are_read(tmp_path, scene):
    source, target = openmvg(tmp_path / "input", scene), tmp_path / "transforms.json"
    convert(source, target)
    model = load_model(target)
    assert np.allclose(model.R, scene.R)
    assert np.allclose(model.centres, scene.centres)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"fl_x": 420.0', '"fl_x": "long"', "garbles"),
        ('"OPENCV"', '"SPHERE"', "'SPHERE'"),
        ('"file_path": "images/image3.jpg", ', "", "frame 3 has no file_path"),
        ('"frames"', '"shots"', "has no frames"),
        ('"k1": 0.0', '"k4": 0.2', "k4 of 0.2"),
    ],
)
def test_broken_transforms(tmp_path, scene, old, new, says):
    path = nerfstudio(tmp_path / "transforms", scene)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises(initfree.InputError, match=says):
        load_observations(path)


def test_matrices_that_are_no_pose(tmp_path, scene):
    path = nerfstudio(tmp_path / "transforms", scene)
    told = json.loads(path.read_text())
    told["frames"][2]["transform_matrix"][0] = [0.0, 0.0, 0.0, 0.0]
    path.write_text(json.dumps(told))
    with pytest.raises(initfree.InputError, match=r"'image2\.jpg' has .* for a rotation"):
        load_model(path)
    path = bundler(tmp_path / "bundler", scene)
    lines = path.read_text().splitlines()
    lines[3] = "30 0 0"  # the first row of the first camera
    path.write_text("\n".join(lines))
    with pytest.raises(initfree.InputError, match=r" has .* for a rotation"):
        load_model(path)


def test_sensors_of_a_rig_of_kapture(tmp_path, scene):
    model = load_model(kapture(tmp_path / "input", scene, rig=True))
    assert np.allclose(model.R, scene.R)
    assert np.allclose(model.centres, scene.centres)


def test_distortion_of_metashape(tmp_path, scene):
    """u = w/2 + cx + x'f + x'b1, x' = x (1 + k1 r² + k2 r⁴ + k3 r⁶) + p1 (r² + 2x²) + 2 p2 x y: the manual's appendix."""
    k1, k2, k3, p1, p2, b1, cx, cy = -0.05, 0.01, -0.002, 0.003, -0.002, 1.5, 4.0, -3.0
    x, y = scene.m.T
    n = x * x + y * y
    radial = 1.0 + n * (k1 + n * (k2 + n * k3))
    u = x * radial + p1 * (n + 2 * x * x) + 2 * p2 * x * y
    v = y * radial + p2 * (n + 2 * y * y) + 2 * p1 * x * y
    pixels = np.column_stack([WIDTH / 2 + cx + u * (FOCAL + b1), HEIGHT / 2 + cy + v * FOCAL])
    values = {"cx": cx, "cy": cy, "b1": b1, "k1": k1, "k2": k2, "k3": k3, "p1": p1, "p2": p2}
    file = metashape(tmp_path / "input", scene, "".join(f"<{k}>{v}</{k}>" for k, v in values.items()), pixels)
    problem = initfree.load(file, intrinsics="known")
    number = np.array([int(name.removeprefix("image")) for name in problem.names])[problem.tracks.cam]
    ids = problem.landmark_ids[problem.tracks.landmark] - 1
    found = {(k, j): tuple(m) for k, j, m in zip(number, ids, problem.m, strict=True)}
    assert len(found) == scene.tracks.observations
    for k, j, m in zip(scene.tracks.cam, scene.tracks.landmark, scene.m, strict=True):
        assert found[k, j] == pytest.approx(m, abs=1e-7)


def test_a_project_with_a_model_and_a_database_says_which_was_read(tmp_path, scene):
    (tmp_path / "sparse" / "0").mkdir(parents=True)
    to_reconstruction(scene).write(str(tmp_path / "sparse" / "0"))
    assert load_observations(tmp_path).notes == ()
    (tmp_path / "database.db").write_bytes(b"")
    (note,) = load_observations(tmp_path).notes
    assert note.startswith(
        f"the observations are those of the model in {tmp_path / 'sparse' / '0'}; {tmp_path / 'database.db'}"
    )
    assert load_observations(tmp_path / "sparse" / "0").notes == ()
