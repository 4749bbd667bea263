"""The viewer and its pages in Chromium: names are text, and no other page gets at the scene."""

import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import numpy as np
import pytest
from browsing import Visit, browser, needs_a_browser  # noqa: F401
from commanding import run
from models import to_reconstruction
from synthetic import ring

from initfree.viewer import read_scene

pytest.importorskip("viser", reason="viser is not installed: the view is not looked at")
from initfree.viewer.server import Viewer

pytestmark = pytest.mark.slow

_RUN = "document.title='ran';window.ran=1"
SCRIPTS = (
    f"<script>{_RUN}</script>.jpg",
    f'<img src=x onerror="{_RUN}">.jpg',
    f'<iframe srcdoc="&lt;script&gt;top.{_RUN}&lt;/script&gt;"></iframe>.jpg',
    f'<svg onload="{_RUN}">.jpg',
    f"</script><script>{_RUN}//.jpg",
    "<!--<script>.jpg",
    f"[name](javascript:{_RUN.split(';')[0]}).jpg",
    "![name](http://example.com/name.png)",
)


def hostile_result(folder: Path) -> Path:
    """A result whose every name is a script: images in it and left out, joints, verdict, notes, and the folder's own."""
    model = to_reconstruction(ring(cameras=8, landmarks=200, min_observations=3))
    for name, k in zip(SCRIPTS, sorted(model.images), strict=True):
        model.images[k].name = name
    (folder / "sparse" / "0").mkdir(parents=True)
    model.write(str(folder / "sparse" / "0"))
    reports = {"detections": 3, "wrong": 1, "mean_pixels": 0.5, "rotation_degrees": 0.1, "centre_share_of_extent": 0.1}
    everything = " ".join(SCRIPTS)
    content = {
        "certificate": {"accepted": False, "reason": everything, "failing": [SCRIPTS[0]]},
        "weakest_joint": {"images": list(SCRIPTS[:2])},
        "problem": {"dropped": {"images": list(SCRIPTS)}},
        "uncertainty": {"noise_pixels": 0.5},
        "cameras": dict.fromkeys(SCRIPTS, reports),
    }
    (folder / "run.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def result(tmp_path_factory) -> Path:
    return hostile_result(tmp_path_factory.mktemp("view") / f'<img src=x onerror="{_RUN}">')


@pytest.fixture(scope="module")
def viewer(result) -> Iterator[Viewer]:
    scene = read_scene(result, result)
    made = Viewer(scene, [None] * len(scene.model.images), port=8870)
    yield made
    made.stop()


def ran(page: Any) -> bool:
    return page.title() == "ran" or page.evaluate("window.ran === 1")


@needs_a_browser
def test_no_script_in_a_name_runs_in_the_viewer(browser, viewer):  # noqa: F811
    """Defect 2: the script ran without a click. Every place where a name is shown, one after the other."""
    visit = Visit(browser, viewer.address)
    visit.page.get_by_text("not accepted").first.wait_for()
    visit.page.get_by_text("images left out").click()
    for name in SCRIPTS:
        visit.page.get_by_text(name).first.wait_for(state="attached")
    for k, name in enumerate(viewer.scene.model.images):
        viewer.choose(k)
        visit.page.locator("b", has_text=name).first.wait_for()
    visit.page.wait_for_timeout(300)
    assert not ran(visit.page)
    assert visit.page.locator("iframe, img[src=x], svg[onload]").count() == 0
    assert visit.abroad == []
    # And if a name were markup after all, its script would not run.
    visit.page.evaluate(
        f"document.body.insertAdjacentHTML('beforeend', '<img src=y onerror=\"{_RUN.replace(chr(39), '')}\">')"
    )
    visit.page.wait_for_timeout(300)
    assert not ran(visit.page)
    visit.page.close()


@needs_a_browser
@pytest.mark.parametrize("kind", ["export", "summary", "check"])
def test_no_script_in_a_name_runs_in_a_page_or_blanks_it(browser, result, tmp_path, kind):  # noqa: F811
    """Defect 10: `<!--<script>` swallowed the rest of the page, all its charts."""
    if kind == "export":
        page = tmp_path / "page.html"
        assert run("view", result, "--export", page) == 0
    else:
        assert run("check" if kind == "check" else "solve", result, "--output", tmp_path / "out", "--quiet") in (0, 3)
        page = tmp_path / "out" / "summary.html"
    visit = Visit(browser, page)
    visit.page.locator("#scene canvas").wait_for()
    if kind == "summary":
        assert visit.page.locator("div.chart").count() == visit.page.locator(".chart :is(svg, canvas)").count() > 3
    assert not ran(visit.page)
    assert visit.complaints == []
    assert visit.abroad == []
    visit.page.evaluate(
        f"document.body.insertAdjacentHTML('beforeend', '<img src=y onerror=\"{_RUN.replace(chr(39), '')}\">')"
    )
    visit.page.wait_for_timeout(300)
    assert not ran(visit.page)
    visit.page.close()


def ask(viewer: Viewer, method: str, path: str, **headers: str) -> tuple[int, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", viewer.server.get_port(), timeout=600)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        response.read()
        return response.status, dict(response.getheaders())
    finally:
        connection.close()


_SOCKET = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec_WebSocket_Version": "13",
    "Sec_WebSocket_Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def test_who_is_answered(viewer):
    """Defect 11: any Host, any Origin, no token."""
    address = urlparse(viewer.address)
    own = f"http://{address.netloc}"
    assert ask(viewer, "GET", address.path, Host=address.netloc)[0] == 200
    assert ask(viewer, "GET", address.path, Host="localhost:9999")[0] == 200, "a port that SSH forwards"
    assert ask(viewer, "GET", address.path, Host="[::1]:9999")[0] == 200
    for path in (
        "/",
        "/index.html",
        address.path[:-2] + "/",
        "/x" + address.path,
        f"/?token={address.path}",
        "//",
        "/%2e%2e/",
    ):
        status, headers = ask(viewer, "GET", path, Host=address.netloc)
        assert status == 403
        assert viewer._token not in str(headers)
    for host in ("evil.example.com", f"evil.example.com:{address.port}", "localhost.evil.com", "", "1.2.3.4.evil.com"):
        assert ask(viewer, "GET", address.path, Host=host)[0] == 403
    for path in (address.path + "../../../etc/passwd", address.path + "%2e%2e/%2e%2e/etc/passwd"):
        assert ask(viewer, "GET", path, Host=address.netloc)[0] in (403, 404)
    assert ask(viewer, "GET", address.path, Host=address.netloc, Origin=own, **_SOCKET)[0] == 101
    for origin in ("http://evil.example.com", "null", "http://localhost:1", f"https://{address.hostname}:1", ""):
        assert ask(viewer, "GET", address.path, Host=address.netloc, Origin=origin, **_SOCKET)[0] == 403
    assert ask(viewer, "GET", address.path, Host=address.netloc, **_SOCKET)[0] == 403, "no Origin: no browser"
    assert ask(viewer, "GET", "/", Host=address.netloc, Origin=own, **_SOCKET)[0] == 403
    policy = ask(viewer, "GET", address.path, Host=address.netloc)[1]["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'nonce-" in policy
    assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]


@pytest.mark.parametrize("method", ["HEAD", "POST", "nonsense"])
def test_other_methods_print_nothing(viewer, method, capfd, caplog):
    """Defect 11: HEAD printed a traceback."""
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        ask(viewer, method, urlparse(viewer.address).path)
    assert ask(viewer, "GET", "/")[0] == 403
    assert "".join(capfd.readouterr()) == ""
    assert caplog.text == ""


class Other(BaseHTTPRequestHandler):
    """Somebody else's site, which knows where viewers are, and even the token."""

    page = ""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.page.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@needs_a_browser
def test_a_page_of_another_origin_reads_nothing(browser, viewer):  # noqa: F811
    """Defect 11: a WebSocket knows no same-origin rule, and got the scene."""
    address = urlparse(viewer.address)
    Other.page = f"""<script>
    const found = [];
    const tried = (async () => {{
      for (const url of ["http://{address.netloc}/", "{viewer.address}", "http://127.0.0.1:{address.port}{address.path}"])
        for (const mode of ["cors", "no-cors"])
          try {{
            const text = await (await fetch(url, {{mode}})).text();
            if (text) found.push(url + mode);
          }} catch (e) {{}}
      for (const url of ["ws://{address.netloc}", "ws://{address.netloc}{address.path[:-1]}"])
        await new Promise((done) => {{
          const socket = new WebSocket(url, ["viser-v1.1.1"]);
          socket.onopen = () => {{ found.push(url); done(); }};
          socket.onmessage = () => found.push("message");
          socket.onerror = socket.onclose = done;
        }});
      const frame = document.createElement("iframe");
      frame.src = "{viewer.address}";
      document.body.append(frame);
      await new Promise((done) => {{ frame.onload = frame.onerror = done; setTimeout(done, 2000); }});
      try {{ if (frame.contentDocument.body.innerText.includes("landmarks")) found.push("frame"); }} catch (e) {{}}
      return found;
    }})();
    </script><body></body>"""
    other = ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{other.server_port}/")
        assert page.evaluate("tried") == []
        assert len(viewer.server.get_clients()) == 0
        page.close()
    finally:
        other.shutdown()


def test_names_do_not_change_the_scene(result):
    scene = read_scene(result)
    assert scene.model.images == SCRIPTS
    assert np.isfinite(scene.model.xyz).all()
