"""The documentation as a site: it builds without a warning, and reads well."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browsing import Visit, browser, needs_a_browser

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
__all__ = ["browser"]
pytest.importorskip("mkdocs", reason="mkdocs is not installed: the site is not built")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "WARNING -" not in ended.stderr
    return folder


def test_every_page_is_there(site: Path):
    for page in ("index.html", "quickstart/index.html", "results/index.html", "api/index.html", "mathematics/index.html"):
        assert (site / page).is_file(), page
    assert "rotation_auc5" in (site / "api" / "index.html").read_text()
    assert "<math" in (site / "mathematics" / "index.html").read_text(), "formulas need no script"
    options = (site / "commands" / "index.html").read_text()
    for told in ("initfree bench run", "--pairs {auto,exhaustive,sequential}", "--scale-points STR STR", "PATH"):
        assert told in options
    assert "{None}" not in options
    assert "ose_rows" in (site / "mathematics" / "index.html").read_text(), "the code beside its equation"


@pytest.mark.parametrize(
    ("question", "page", "answer"),
    [
        ("how do I solve a database", "quickstart", "initfree solve problem/database.db"),
        ("how do I calibrate an array", "arrays", "initfree solve recording/detections.csv"),
        ("what does accepted promise", "faq", "What does <code>accepted</code> promise?"),
        ("where does a new formulation go", "extend", "A formulation"),
    ],
)
def test_answers_are_a_click_away(site: Path, question: str, page: str, answer: str):
    """From the first page, by a link in its text."""
    first = (site / "index.html").read_text()
    links = set(re.findall(r'href="([\w-]+)/(?:#[\w-]+)?"', first))
    assert page in links, question
    # Highlighted code has a tag around every word.
    text = re.sub(r"<(?!/?code)[^>]+>", "", (site / page / "index.html").read_text())
    assert answer in text, question


@needs_a_browser
@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (500, "dark")])
@pytest.mark.parametrize("page", ["index.html", "examples/index.html", "mathematics/index.html"])
def test_reads_well(browser: Any, site: Path, page: str, width: int, scheme: str):
    visit = Visit(browser, site / page, width, scheme)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    broken = visit.page.evaluate("[...document.images].filter(i => i.complete && !i.naturalWidth).map(i => i.src)")
    assert broken == []
    # A page opened from disk cannot fetch its search index: that is the browser's rule, not the page's fault.
    assert [text for text in visit.complaints if "file:" not in text and "search" not in text] == []
    visit.page.close()


@needs_a_browser
def test_wide_tables_have_room_and_show_that_they_go_on(browser: Any, site: Path):
    hidden = {}
    for width in (1400, 500):
        visit = Visit(browser, site / "results" / "index.html", width)
        visit.page.wait_for_selector(".md-typeset__scrollwrap")
        first = visit.page.locator(".md-typeset__scrollwrap").first
        hidden[width] = first.evaluate("e => e.scrollWidth - e.clientWidth")
        assert "linear-gradient" in first.evaluate("e => getComputedStyle(e).backgroundImage"), "a shadow at the side"
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
        visit.page.close()
    assert hidden[1400] == 0, "twelve columns fit a wide window"
    assert hidden[500] > 0
