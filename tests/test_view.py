"""`initfree view`: what it reads and refuses, its page and picture, and the server in a browser."""

import io
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import Visit, at_rest, browser, eventually, needs_a_browser
from commanding import run
from models import to_reconstruction
from PIL import Image
from synthetic import ring

import initfree
from initfree.drawing.palette import CHOSEN, GOOD, GREY, rgb
from initfree.drawing.raster import Look, picture
from initfree.drawing.scene import Model, unit_deviations
from initfree.drawing.thumbnails import thumbnails
from initfree.viewer import read_scene
from initfree.viewer.export import export

__all__ = ["browser"]


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("truth")
    to_reconstruction(ring(cameras=12, landmarks=400, noise=0.4, min_observations=3)).write(str(folder))
    return folder


@pytest.fixture(scope="module")
def solved(truth: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("solved") / "out"
    initfree.solve(initfree.load(truth), initfree.SolveConfig(init="normal", loss="cauchy")).write(folder)
    return folder


@pytest.fixture(scope="module")
def images(truth: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("images")
    for k, name in enumerate(read_scene(truth).model.images[:-1]):
        Image.new("RGB", (64, 48), (250, 20 * k, 250)).save(folder / name, "JPEG")
    return folder


def test_a_verdict_on_a_part_looks_like_no_other(solved: Path):
    scene = read_scene(solved)
    tones = [scene.tone, replace(scene, left_out=("a.jpg",)).tone, replace(scene, accepted=False).tone]
    assert tones == ["yes", "part", "no"]


def test_the_truth_lies_over_the_result(solved: Path, truth: Path):
    scene = read_scene(solved, truth)
    assert scene.model.name == "out"
    assert read_scene(solved / "sparse" / "0").model.name == "out/sparse/0"
    assert scene.other is not None
    extent = float(np.linalg.norm(np.ptp(scene.model.centres, axis=0)))
    mine = dict(zip(scene.model.images, scene.model.centres, strict=True))
    away = [np.linalg.norm(mine[name] - c) for name, c in zip(scene.other.images, scene.other.centres, strict=True)]
    assert max(away) < 0.01 * extent
    assert scene.accepted is True
    assert scene.steps is not None
    assert {one.name for one in scene.colourings} >= {"residual", "track length", "uncertainty"}
    assert len(scene.joint) > 0
    inside = np.isin(np.arange(12), scene.joint)
    assert scene.joint_edges()
    assert all(inside[i] and not inside[j] for i, j in scene.joint_edges())
    bare = read_scene(truth)
    assert bare.accepted is None
    assert bare.steps is None


def test_a_landmark_is_as_certain_as_its_cameras_tell():
    """Two cameras at a right angle, one unit away, f = 100: 1/100 along each ray, 1/(100 √2) across both."""
    centres = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    model = Model("", ("a", "b"), np.tile(np.eye(3), (2, 1, 1)), centres, np.array([0]), np.zeros((1, 3)))
    found = unit_deviations([np.array([0, 1])], model, np.array([100.0, 100.0]))
    assert found[0] == pytest.approx(0.01 * np.sqrt(1.0 + 1.0 + 0.5))


def test_pictures(solved: Path, truth: Path, tmp_path: Path):
    assert run("view", solved, truth, "--export", tmp_path / "a.png", "--colour", "residual") == 0
    end = np.asarray(Image.open(tmp_path / "a.png"))
    assert end.shape == (800, 1200, 3)
    assert (np.abs(end.astype(int) - (0x1A, 0x9E, 0x8F)).max(axis=2) < 40).sum() > 500, "cameras"
    assert len(np.unique(end[770:, :400].reshape(-1, 3), axis=0)) > 60, "the scale of the colours"
    scene = read_scene(solved)
    start = np.asarray(picture(scene, Look(width=300, height=200, step=0, dark=True)))
    assert tuple(start[0, 0]) == (18, 22, 28)
    later = np.asarray(picture(scene, Look(width=300, height=200, dark=True)))
    assert (start != later).any(axis=2).mean() > 0.02


def test_a_second_model_in_the_same_places_does_not_hide_the_first(solved: Path):
    scene = read_scene(solved, solved)
    assert scene.other is not None
    rng = np.random.default_rng(0)
    near = replace(
        scene.other, images=(), xyz=scene.other.xyz + rng.normal(scale=2e-3 * scene.size, size=scene.other.xyz.shape)
    )

    shown = np.asarray(picture(replace(scene, other=near), Look(width=900, height=600))).astype(int)
    grey = int((np.abs(shown - rgb(GREY)).max(axis=2) < 12).sum())
    assert grey < 0.1 * len(scene.model.xyz)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{solved}", "--export", "x.gif"], "expected .html or .png"),
        (["{solved}", "--export", "nowhere/x.png"], "no directory"),
        (["{solved}", "--export", "x.png", "--step", "999"], "steps, 0 to"),
        (["{truth}", "--export", "x.png", "--step", "0"], "no trace.npz"),
        (["{solved}", "--export", "x.png", "--images", "nowhere"], "no directory"),
        (
            ["{solved}", "--export", "x.png", "--colour", "source"],
            "no source colour of its landmarks",
        ),
        (["nowhere", "--export", "x.png"], "nowhere is no directory"),
        (["{empty}", "--export", "x.png"], "holds no COLMAP model"),
    ],
)
def test_refusals(arguments, words, solved, truth, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    places = {"solved": solved, "truth": truth, "empty": tmp_path / "empty"}
    assert run("view", *(argument.format(**places) for argument in arguments)) == 2
    err = capsys.readouterr().err
    assert words in err
    assert err.count("\n") == 1


@needs_a_browser
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (500, "dark")])
def test_the_page(browser: Any, solved: Path, truth: Path, images: Path, tmp_path: Path, width: int, scheme: str):
    assert run("view", solved, truth, "--images", images, "--export", tmp_path / "page.html") == 0
    visit = Visit(browser, tmp_path / "page.html", width, scheme)
    page = visit.page
    canvas = page.locator("#scene canvas")
    canvas.wait_for()
    at_rest(canvas)
    assert visit.complaints == []
    assert visit.abroad == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.inner_text(".banner .title") == "Accepted"

    def pixels() -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(canvas.screenshot())).convert("RGB")).astype(int)

    def thumbnails() -> bool:
        violet = (pixels()[:, :, [0, 2]] > 200).all(axis=2) & (pixels()[:, :, 1] < 190)
        return int(violet.sum()) > 50

    eventually(page, thumbnails)
    at_rest(canvas)
    before = pixels()
    page.get_by_label("what images share").check()
    eventually(page, lambda: int((pixels() != before).any(axis=2).sum()) > 100)  # lines between images
    page.close()


@needs_a_browser
@pytest.mark.parametrize("width", [1400, 500])
def test_the_list_of_images(browser: Any, images: Path, solved: Path, tmp_path: Path, width: int):
    """Found by name, chosen by mouse and keyboard, looked through; those that do not agree are marked and first."""
    scene = read_scene(solved)
    scene = replace(scene, failing=np.array([7]), joint=np.array([2]), accepted=False, left_out=("lost.jpg",))
    export(scene, tmp_path / "page.html", thumbnails(scene.model.images, images), Look())
    visit = Visit(browser, tmp_path / "page.html", width)
    page = visit.page
    canvas, rows = page.locator("#scene canvas"), page.locator(".scene-row")
    assert page.inner_text(".scene-images summary") == "12 images, 2 marked, 1 left out"
    assert page.inner_text(".banner .title") == "Not accepted"
    assert rows.first.text_content() == "lost.jpgleft out"
    names = page.locator(".scene-row .name").all_text_contents()
    assert names[1:3] == [scene.model.images[7], scene.model.images[2]]
    assert "does not agree" in rows.nth(1).text_content()
    assert f"{scene.residuals[7]:.2f} px" in rows.nth(1).text_content()
    assert page.evaluate("document.documentElement.scrollWidth") <= width

    still = at_rest(canvas)
    rows.nth(4).click()
    chosen = page.locator(".scene-row[aria-selected=true]")
    assert chosen.count() == 1
    highlighted = at_rest(canvas)
    assert highlighted != still
    assert "detections" in page.inner_text(".scene-about")

    find = page.get_by_label("find an image")
    find.fill(scene.model.images[7][-6:])
    assert page.locator(".scene-row:visible").count() == 1
    find.fill("")
    find.press("ArrowDown")  # to the list, which keeps what is chosen
    before = chosen.text_content()
    page.keyboard.press("ArrowDown")
    assert chosen.text_content() != before
    page.keyboard.press("Home")
    assert scene.model.images[7] in chosen.text_content()
    assert page.evaluate("document.activeElement.getAttribute('aria-activedescendant')") == chosen.get_attribute("id")
    there = at_rest(canvas)
    page.keyboard.press("Enter")
    assert at_rest(canvas) != there  # through its camera
    page.keyboard.press("Escape")
    assert chosen.count() == 0
    page.get_by_label("order of the images").select_option("by name")
    assert page.locator(".scene-row .name").all_text_contents()[1:] == sorted(scene.model.images)
    assert visit.complaints == []
    page.close()


@needs_a_browser
def test_a_camera_of_the_picture_is_found_in_the_list(browser: Any, solved: Path, tmp_path: Path):
    assert run("view", solved, "--export", tmp_path / "page.html") == 0
    page = Visit(browser, tmp_path / "page.html").page
    canvas, chosen = page.locator("#scene canvas"), page.locator(".scene-row[aria-selected=true]")
    page.locator(".scene-row").nth(3).click()
    name = chosen.locator(".name").text_content()
    page.locator(".scene-rows").press("Escape")
    assert chosen.count() == 0
    at_rest(canvas)
    canvas.click()  # its middle, where that camera is now
    assert chosen.locator(".name").text_content() == name
    page.close()


@needs_a_browser
def test_the_server(browser: Any, solved: Path, truth: Path, capsys: pytest.CaptureFixture[str]):
    pytest.importorskip("viser", reason="viser is not installed: the view is not looked at")
    from initfree.viewer.server import Viewer

    scene = read_scene(solved, truth)
    assert scene.steps is not None
    viewer = Viewer(scene, [None] * len(scene.model.images), port=8765)
    try:
        assert viewer.server.get_host() == "127.0.0.1"
        visit = Visit(browser, viewer.address)
        visit.page.get_by_text("agree with each other").wait_for()
        visit.page.locator("canvas").first.wait_for()
        # No favicon or worker of its own may be missing either.
        assert visit.complaints == []
        assert visit.abroad == []
        viewer.slider.value = 0
        viewer._show()
        visit.page.get_by_text("varpro, step 0").wait_for()
        position = np.array([frustum.position for frustum in viewer.frusta])
        assert np.linalg.norm(position - scene.model.centres, axis=1).max() > 0.1
        assert len(viewer.points.points) == len(scene.steps.ids)
        viewer.slider.value = len(scene.steps)
        viewer._show()
        assert np.allclose([frustum.position for frustum in viewer.frusta], scene.model.centres, atol=1e-4)
        # The list of images: typing finds one, whose camera is marked and looked at.
        name = scene.model.images[5]
        field = visit.page.get_by_role("combobox", name="image", exact=True)
        field.fill(name)
        visit.page.get_by_role("option", name=name).click()
        visit.page.get_by_text("detections").wait_for()
        assert viewer._chosen == 5
        assert viewer.frusta[5].color == rgb(CHOSEN)
        (client,) = viewer.server.get_clients().values()
        assert np.allclose(client.camera.look_at, scene.model.centres[5], atol=1e-4)
        visit.page.get_by_role("button", name="look through it").click()
        eventually(visit.page, lambda: np.allclose(client.camera.position, scene.model.centres[5], atol=1e-3))
        viewer.choose(None)
        assert viewer.frusta[5].color == rgb(GOOD)
        visit.page.close()
        camera = viewer.server.initial_camera
        wide = float(np.linalg.norm(np.subtract(camera.position, camera.look_at)))

        def reach() -> float:
            cameras = [client.camera for client in viewer.server.get_clients().values()]
            return max((float(np.linalg.norm(camera.position - camera.look_at)) for camera in cameras), default=0.0)

        for width, low, high in ((1400, 0.99, 1.01), (500, 1.3, np.inf)):  # a narrow window shows the whole scene too
            other = Visit(browser, viewer.address, width)
            other.page.get_by_text("agree with each other").wait_for()
            eventually(other.page, lambda low=low, high=high: low * wide < reach() < high * wide)
            other.page.close()
            while viewer.server.get_clients():
                time.sleep(0.05)
    finally:
        viewer.stop()
    assert capsys.readouterr().out == ""
