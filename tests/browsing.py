"""Pages in headless Chromium, where that and Playwright are installed."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

try:
    from playwright import sync_api as playwright
except ImportError:
    playwright = None
_CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
_FLAGS = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
_PATIENCE = 300_000
"""milliseconds: a busy machine is no failure"""
_LOOK = 50
"""milliseconds between two looks at a page that changes"""
needs_a_browser = pytest.mark.skipif(
    playwright is None or _CHROMIUM is None, reason="Playwright or Chromium is not installed: pages are not looked at"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    assert playwright is not None
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        yield browser
        browser.close()


class Visit:
    """A page with what it complained about and what it asked the network for."""

    def __init__(self, browser: Any, where: Path | str, width: int = 1280, scheme: str = "light") -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
        self.page.set_default_timeout(_PATIENCE)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type == "error" else None)
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(where.as_uri() if isinstance(where, Path) else where)

    @property
    def abroad(self) -> list[str]:
        """Requests that leave the machine."""
        local = ("file:", "data:", "blob:", "http://127.0.0.1", "http://localhost", "ws:")
        return [url for url in self.requests if not url.startswith(local)]


def eventually(page: Any, condition: Callable[[], bool]) -> None:
    """The condition holds now, or as soon as the page has got there."""
    for _ in range(_PATIENCE // _LOOK):
        if condition():
            return
        page.wait_for_timeout(_LOOK)
    assert condition()


def at_rest(element: Any) -> bytes:
    """Its picture, drawn and unchanged over several frames."""
    before, same = b"", 0
    while same < 3:
        element.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        now = element.screenshot()
        same, before = (same + 1 if now == before else 0), now
    return before


def overlaps(page: Any, inside: Any, selector: str) -> list[tuple[str, str]]:
    """Pairs of texts inside an element that lie on each other, and texts that its page cuts."""
    boxes = inside.locator(selector).evaluate_all(
        "all => all.map(e => [e.textContent, e.getBoundingClientRect()])"
        ".map(([t, b]) => [t, b.left, b.top, b.right, b.bottom]).filter(b => b[0].trim() && b[3] > b[1])"
    )
    width = page.evaluate("document.documentElement.clientWidth")
    found = [(one[0], "the edge") for one in boxes if one[1] < -1 or one[3] > width + 1]
    for k, a in enumerate(boxes):
        for b in boxes[k + 1 :]:
            if min(a[3], b[3]) - max(a[1], b[1]) > 2 and min(a[4], b[4]) - max(a[2], b[2]) > 2:
                found.append((a[0], b[0]))
    return found
