"""The page in headless Chromium, where that and Playwright are installed."""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from browsing import Visit, browser, eventually, needs_a_browser, overlaps
from made import row
from PIL import Image

from initfree.benchmark.report import write_report

__all__ = ["browser"]
pytestmark = needs_a_browser


@pytest.fixture(scope="module")
def visit(browser: Any, report: Path) -> Visit:
    return Visit(browser, report)


@pytest.fixture
def page(visit: Visit) -> Any:
    visit.page.click("#filters button")
    return visit.page


def shown(page: Any) -> list[list[str]]:
    return page.eval_on_selector_all("#runs tbody tr", "rows => rows.map(r => [...r.cells].map(c => c.textContent))")


def test_the_banner_of_a_trial_can_be_read(visit: Visit):
    """It was white on white: the class that the verdict of a run has is another."""
    color = visit.page.evaluate(
        """() => {
            const p = document.createElement("p");
            p.className = "trial";
            document.querySelector("main").append(p);
            const found = [getComputedStyle(p).color, getComputedStyle(document.body).backgroundColor];
            p.remove();
            return found;
        }"""
    )
    assert color[0] != color[1]


def test_loads_whole_without_errors_or_network(visit: Visit):
    visit.page.wait_for_selector("#view3d canvas")
    assert visit.page.locator(".card").count() == 7
    assert visit.page.locator(".js-plotly-plot").count() == 5, "two of failures, sets, pairs, BAL"
    assert visit.page.locator(".curves svg").count() == 2
    assert [url for url in visit.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    assert visit.complaints == []


def test_fits_a_laptop(visit: Visit):
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= 1280


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_a_phone(browser: Any, report: Path, scheme: str):
    """Nothing is cut or overlaps at 500 pixels; sections are behind a button; wide tables say that they scroll."""
    visit = Visit(browser, report, width=500, scheme=scheme)
    page = visit.page
    page.wait_for_selector("#view3d canvas")
    assert page.evaluate("document.documentElement.scrollWidth") <= 500
    assert page.locator("nav").bounding_box()["height"] < 70
    assert not page.locator("nav a").first.is_visible()
    page.click("#menu")
    assert page.locator("nav a").first.is_visible()
    page.locator("nav a").nth(2).click()
    assert not page.locator("nav a").first.is_visible()
    for k in range(page.locator(".js-plotly-plot").count()):
        assert (
            overlaps(page, page.locator(".js-plotly-plot").nth(k), ".infolayer .annotation-text, .infolayer .xtitle") == []
        )
    wide = page.evaluate(
        "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth + 4 && e.clientWidth)"
        ".map(e => getComputedStyle(e.parentElement, '::before').content)"
    )
    assert wide
    assert all("scroll" in words for words in wide)
    assert visit.complaints == []
    page.close()


def test_says_what_failed_means_where_it_first_says_it(visit: Visit):
    text = visit.page.inner_text("main").lower()
    assert 0 <= text.index("a run failed if") == text.index("failed") - len("a run ")


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
    eventually(page, lambda: coloured(page, colour) > 300)
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
