"""viser's server for its user alone: an address with a secret in it, and nothing for a page of somebody else.

viser answers whoever asks. A page of another site, open in the same browser, could ask too: by the machine's address (a
WebSocket knows no same-origin rule) or by a name of its own that it points to this machine (DNS rebinding); so could other
users of the machine. Here a request needs the token in its path, a Host that is this machine, and, where a WebSocket is
asked for, the Origin of our own page. What is served may load nothing from elsewhere and run no script but viser's
(Content-Security-Policy; viser's own has to be allowed to make functions of strings).
"""

import http
import ipaddress
import logging
import secrets
import socket
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from types import SimpleNamespace
from typing import Any

import viser
import websockets
import websockets.asyncio.server as server
from viser.infra import _infra
from websockets import Headers
from websockets.http11 import Request, Response

_SILENT = logging.getLogger("initfree.viewer.server")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_POLICY = (
    "default-src 'none'; script-src 'nonce-{nonce}' 'unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; "
    "img-src data: blob:; font-src data:; connect-src data: blob: ws://{host} wss://{host}; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
# viser unpacks its program and adds it as a script element: the only ones with the nonce are made by scripts that have it.
_ADD_NONCE = (
    '<script nonce="{nonce}">(()=>{{const n=document.currentScript.nonce,c=document.createElement;document.createElement='
    "function(...a){{const e=c.apply(this,a);if(String(a[0]).toLowerCase()==='script')e.nonce=n;return e}}}})()</script>"
)
_NO = "This page opens with the address that `initfree view` printed, and only there.\n"
_starting = Lock()


def guarded_server(host: str, port: int) -> tuple[viser.ViserServer, str]:
    """A server and the token that its path begins with."""
    guard = _Guard(host, secrets.token_urlsafe(16), secrets.token_urlsafe(16))

    def serve(*arguments: Any, process_request: Callable[..., Any], **options: Any) -> Any:
        def process(connection: Any, request: Request) -> Response | None:
            return guard.answer(connection, request, process_request)

        return server.serve(*arguments, process_request=process, logger=_SILENT, **options)

    # viser has no place for a function that looks at requests first; its module gets another `serve` while it starts.
    names = SimpleNamespace(**vars(websockets))
    names.asyncio = SimpleNamespace(server=SimpleNamespace(**(vars(server) | {"serve": serve})))
    with _starting:
        setattr(_infra, "websockets", names)  # noqa: B010  # no public name of that module
        try:
            return viser.ViserServer(host=host, port=port, label="initfree", verbose=False), guard.token
        finally:
            setattr(_infra, "websockets", websockets)  # noqa: B010


class _Guard:
    """Looks at every request before viser does."""

    def __init__(self, host: str, token: str, nonce: str) -> None:
        self.token, self.nonce = token, nonce
        self._hosts = {"localhost", host.lower(), socket.gethostname().lower()}

    def answer(self, connection: Any, request: Request, then: Callable[..., Any]) -> Response | None:
        host = ",".join(request.headers.get_all("Host"))
        _, token, path = f"{request.path.partition('?')[0]}//".split("/", 2)
        allowed = secrets.compare_digest(token.encode(errors="replace"), self.token.encode()) and self._is_ours(host)
        if request.headers.get("Upgrade") is not None:
            allowed &= request.headers.get_all("Origin") in ([f"http://{host}"], [f"https://{host}"])
        if not allowed:
            return _response(http.HTTPStatus.FORBIDDEN, _NO.encode())
        response = then(connection, replace(request, path="/" + path.rstrip("/"), headers=_plain(request.headers)))
        if response is None:
            return None
        kind = response.headers.get("Content-Type", "text/plain; charset=utf-8")
        status = http.HTTPStatus(response.status_code)
        if not kind.startswith("text/html"):
            return _response(status, response.body, kind)
        return _response(status, self._with_nonce(response.body), kind, _POLICY.format(nonce=self.nonce, host=host))

    def _is_ours(self, host: str) -> bool:
        """Whether a Host is an address, which no name server can point elsewhere, or one of this machine's names."""
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
        try:
            ipaddress.ip_address(name.strip("[]"))
            return True
        except ValueError:
            return name.lower() in self._hosts

    def _with_nonce(self, page: bytes) -> bytes:
        marked = page.replace(b"<script ", f'<script nonce="{self.nonce}" '.encode())
        return marked.replace(b"<head>", b"<head>" + _ADD_NONCE.format(nonce=self.nonce).encode(), 1)


def _response(
    status: http.HTTPStatus, body: bytes, kind: str = "text/plain; charset=utf-8", policy: str = "default-src 'none'"
) -> Response:
    about = {
        "Content-Type": kind,
        "Content-Length": str(len(body)),
        "Content-Security-Policy": policy,
        "Connection": "close",
    }
    return Response(status.value, status.phrase, Headers(_HEADERS | about), body)


def _plain(headers: Headers) -> Headers:
    """Without the wish for a packed answer, in which no nonce could be written."""
    return Headers([(name, value) for name, value in headers.raw_items() if name.lower() != "accept-encoding"])
