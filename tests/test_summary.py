"""summary.html: what it holds, what it costs, and that it reads well in a browser."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import Visit, at_rest, browser, eventually, needs_a_browser, overlaps
from commanding import run as run_command
from models import to_reconstruction
from PIL import Image
from synthetic import ring

import initfree
from initfree.drawing import thumbnails as thumbnails_module
from initfree.drawing.residual_figures import residual_figures
from initfree.drawing.steps import Steps
from initfree.drawing.summary import command
from initfree.io.write import write_into, write_result

pytestmark = pytest.mark.slow

__all__ = ["browser"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    to_reconstruction(ring(cameras=12, landmarks=400, noise=0.4, min_observations=3)).write(str(folder))
    return folder


@pytest.fixture(scope="module")
def result(model: Path) -> initfree.Result:
    return initfree.solve(initfree.load(model), initfree.SolveConfig(init="normal", loss="cauchy"))


@pytest.fixture(scope="module")
def written(result: initfree.Result, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "out"
    result.write(folder)
    return folder


def test_is_small_and_can_be_left_out(result: initfree.Result, written: Path, tmp_path: Path):
    assert (written / "summary.html").stat().st_size < 600_000
    write_result(result, tmp_path / "without", summary=False)
    assert not (tmp_path / "without" / "summary.html").exists()
    assert (tmp_path / "without" / "run.json").exists()


def test_the_steps_end_at_the_written_model(written: Path):
    import pycolmap

    steps, model = Steps.read(written / "trace.npz"), pycolmap.Reconstruction(str(written / "sparse" / "0"))
    by_name = {image.name: image.projection_center() for image in model.images.values()}
    centres = np.array([by_name[name] for name in steps.names])
    extent = float(np.linalg.norm(np.ptp(centres, axis=0)))
    assert np.linalg.norm(steps.centres[-1] - centres, axis=1).max() < 2e-3 * extent
    known = [k for k, j in enumerate(steps.ids.tolist()) if j in model.points3D]
    xyz = np.array([model.points3D[int(steps.ids[k])].xyz for k in known])
    assert np.median(np.linalg.norm(steps.xyz[-1][known] - xyz, axis=1)) < 2e-3 * extent
    assert np.nanmedian(np.linalg.norm(steps.centres[0] - centres, axis=1)) > 0.05 * extent


def test_what_is_refused_has_a_page_too(tmp_path: Path):
    """Random observations: nothing fits, and many figures are not there."""
    rng = np.random.default_rng(0)
    image, landmark = np.repeat(np.arange(6), 40), np.tile(np.arange(40), 6)
    problem = initfree.Problem.from_tracks(image, landmark, rng.uniform(0.0, 600.0, (240, 2)), sizes=(600, 600))
    result = initfree.solve(problem)
    assert not result.accepted
    result.write(tmp_path / "out")
    page = (tmp_path / "out" / "summary.html").read_text()
    assert "not accepted" in page
    words = re.sub(r"<meta[^>]*>|<(style|script).*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\b(nan|none|inf)\b", words, re.IGNORECASE)


def test_a_damaged_trace_is_named(tmp_path: Path):
    (tmp_path / "trace.npz").write_bytes(b"PK no")
    with pytest.raises(initfree.InputError, match=r"trace\.npz"):
        Steps.read(tmp_path / "trace.npz")


def test_the_command_repeats_the_run(written: Path, model: Path):
    run = json.loads((written / "run.json").read_text())
    assert command(run) == f"initfree solve {model} --output again --init normal --loss cauchy"
    other = run | {"configuration": run["configuration"] | {"refine": False, "seed": 3, "min_obs": 2}, "strategy": "single"}
    assert command(other).endswith("--strategy single --min-obs 2 --init normal --loss cauchy --no-refine --seed 3")
    assert command(run | {"input": "arrays"}).startswith("initfree.solve(problem, initfree.SolveConfig(init='normal'")


def test_unknown_intrinsics_are_told_and_repeated(model: Path, tmp_path: Path):
    """What was found replaces what was given in the result: the page and its command speak of both."""
    out = tmp_path / "out"
    assert run_command("solve", model, "-o", out, "--intrinsics", "unknown", "--origin", "image003.jpg", "--quiet") == 0
    run = json.loads((out / "run.json").read_text())
    assert run["intrinsics"]["given"] == "unknown"
    assert command(run) == f"initfree solve {model} --output again --intrinsics unknown --origin image003.jpg"
    told = next(line for line in (out / "summary.html").read_text().splitlines() if "Intrinsics: " in line)
    assert "Intrinsics: unknown; intrinsics found: one camera" in told
    assert run_command("solve", model, "-o", out, "--quiet") == 0
    assert "Intrinsics: given as known, used as they are." in (out / "summary.html").read_text()


def test_one_time_for_one_run(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run_command("solve", model, "-o", tmp_path / "out") == 0
    said = re.findall(r"accepted: .* \((\d+\.\d) s\)", capsys.readouterr().out)
    page = (tmp_path / "out" / "summary.html").read_text()
    assert said == re.findall(r"Took</p><p class=\"value\">(\d+\.\d) s<", page)
    assert len(said) == 1


def test_errors_are_counted_up_to_a_round_number_that_they_reach(result: initfree.Result):
    figures = residual_figures(result.problem, result.reconstruction)
    assert figures.edges[-1] in (1.0, 2.0)  # 0.4 px of noise
    assert figures.count.sum() + figures.beyond == result.problem.tracks.observations
    assert figures.beyond <= 0.01 * result.problem.tracks.observations
    assert np.count_nonzero(figures.count) > len(figures.count) / 2
    shown = [cell["size"] for row in figures.cells for cell in row if cell is not None]
    assert figures.high == pytest.approx(max(shown), abs=1e-4)


@needs_a_browser
@pytest.mark.parametrize("width", [1400, 500])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_reads_well(browser: Any, written: Path, width: int, scheme: str):
    visit = Visit(browser, written / "summary.html", width, scheme)
    page = visit.page
    page.wait_for_selector("#scene canvas")
    assert visit.complaints == []
    assert visit.abroad == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    background = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[scheme]
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == background
    for k in range(page.locator(".chart").count()):
        assert overlaps(page, page.locator(".chart").nth(k), "text") == []
    assert page.evaluate("[15000, 0.0015, 2e-3, 150, 0.5].map(short)") == ["1.5e4", "1.5e-3", "2e-3", "150", "0.5"]
    text = page.inner_text("main")
    for word in ("Every check", "it was solved with", "Convergence", "Residuals", "Uncertainty", "initfree solve"):
        assert word in text
    page.close()


@needs_a_browser
def test_the_slider_goes_back_to_the_noise(browser: Any, written: Path):
    visit = Visit(browser, written / "summary.html")
    page = visit.page
    canvas = page.locator("#scene canvas")
    canvas.scroll_into_view_if_needed()
    end = at_rest(canvas)
    page.locator(".scene-steps input").evaluate("e => { e.value = 0; e.dispatchEvent(new Event('input')); }")
    eventually(page, lambda: page.get_attribute("#scene", "data-step") == "0")
    assert "varpro, step 0" in page.inner_text(".scene-step")
    eventually(page, lambda: canvas.screenshot() != end)
    page.select_option(".scene-controls select", label="track length")
    assert "track length" in page.inner_text(".scene-legend")
    assert visit.complaints == []
    page.close()


def test_thumbnails_where_images_are_given(result: initfree.Result, tmp_path: Path):
    """One damaged image costs the page its thumbnails, and nobody the solve."""
    images = tmp_path / "images"
    images.mkdir()
    for name in result.problem.names:
        Image.new("RGB", (64, 48), (250, 80, 80)).save(images / name, "JPEG")
    for name in ("with", "without"):
        (tmp_path / name).mkdir()
    write_into(result, tmp_path / "with", images)
    assert (tmp_path / "with" / "summary.html").read_text().count("data:image/jpeg") == len(result.problem.names)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(thumbnails_module, "thumbnails", _damaged)
        write_into(result, tmp_path / "without", images)
    assert "data:image/jpeg" not in (tmp_path / "without" / "summary.html").read_text()


def _damaged(*_: object) -> None:
    raise initfree.InputError("image cannot be read")
