"""The page in headless Chromium, where that and Playwright are installed."""

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from made import row
from PIL import Image

from initfree.benchmark.report import write_report

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: the page is not looked at")
_CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
pytestmark = pytest.mark.skipif(_CHROMIUM is None, reason="Chromium is not installed: the page is not looked at")
_FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
_PATIENCE = 60_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page with what it complained about and what it asked the network for."""

    def __init__(self, browser: Any, path: Path) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        self.page.set_default_timeout(_PATIENCE)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type == "error" else None)
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(path.as_uri())


@pytest.fixture(scope="module")
def visit(browser: Any, report: Path) -> Visit:
    return Visit(browser, report)


@pytest.fixture
def page(visit: Visit) -> Any:
    visit.page.click("#filters button")
    return visit.page


def shown(page: Any) -> list[list[str]]:
    return page.eval_on_selector_all("#runs tbody tr", "rows => rows.map(r => [...r.cells].map(c => c.textContent))")


def test_loads_whole_without_errors_or_network(visit: Visit):
    visit.page.wait_for_selector("#view3d canvas")
    assert visit.page.locator(".card").count() == 7
    assert visit.page.locator(".js-plotly-plot").count() == 8, "two of failures, sets, pairs, BAL, scene, two of curves"
    assert [url for url in visit.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert visit.complaints == []


def test_fits_a_laptop(visit: Visit):
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_filters(page: Any):
    assert len(shown(page)) == 82
    page.select_option("#filters select[name=formulation]", "rpose")
    page.select_option("#filters select[name=set]", "set2")
    found = shown(page)
    assert len(found) == 8
    assert {(line[0].split(" ≥")[0], line[1]) for line in found} == {("Set 2", "RpOSE")}
    page.select_option("#filters select[name=outcome]", "failed")
    failed = shown(page)
    assert 0 < len(failed) < 8
    assert all(float(line[4]) < 20 for line in failed)
    assert page.text_content("#count") == f"{len(failed)} runs, {len(failed)} failed"
    page.click("#filters button")
    assert len(shown(page)) == 82


def coloured(page: Any, colour: tuple[int, int, int]) -> int:
    unit = np.asarray(Image.open(io.BytesIO(page.locator("#view3d").screenshot())).convert("RGB")).astype(int)
    return int((np.abs(unit - colour).max(axis=2) < 40).sum())


@pytest.mark.parametrize(("outcome", "colour"), [("succeeded", (0x1A, 0x9E, 0x8F)), ("failed", (0xD1, 0x49, 0x5B))])
def test_the_scene_shows_the_estimate_in_the_colour_of_its_outcome(page: Any, outcome: str, colour: tuple[int, int, int]):
    page.select_option("#filters select[name=outcome]", outcome)
    page.locator("#view3d canvas").scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    assert coloured(page, colour) > 300
    assert outcome in page.text_content("#chosen")


def test_a_row_of_a_table_opens_its_reconstruction(page: Any):
    link = page.locator("#rescue-minobs3 a[data-filter]").first
    job = page.evaluate("a => JSON.parse(a.dataset.filter).job", link.element_handle())
    link.click()
    assert page.get_attribute("#view3d", "data-job") == job
    page.locator("#summary-formulations-pose-linear1997 a[data-filter]").nth(2).click()
    assert {line[1] for line in shown(page)} == {"RpOSE"}


def test_dark_and_light(page: Any):
    def colours() -> tuple[str, str]:
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return background, page.evaluate("document.getElementById('figure-failure-linear1997').layout.font.color")

    light = colours()
    page.click("#theme")
    dark = colours()
    page.click("#theme")
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[0] == "rgb(18, 22, 28)"
    assert light[1] != dark[1]
    assert colours() == light


def test_prints_without_what_only_a_screen_can_use(visit: Visit):
    visit.page.emulate_media(media="print")
    assert not visit.page.locator("nav").is_visible()
    assert not visit.page.locator("#filters").is_visible()
    assert visit.page.locator("#summary-formulations-pose-linear1997 table").is_visible()
    visit.page.emulate_media(media="screen")


def test_a_page_without_reconstructions_has_no_errors(browser: Any, tmp_path: Path):
    (tmp_path / "rows").mkdir()
    pd.DataFrame([row()]).to_parquet(tmp_path / "rows" / "part-000000-x.parquet")
    visit = Visit(browser, write_report(tmp_path))
    visit.page.wait_for_selector("#left-out")
    assert visit.complaints == []
    visit.page.close()
