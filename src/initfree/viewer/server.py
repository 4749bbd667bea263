"""The scene in the browser, served from this machine by viser."""

import io
import math
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from threading import Event, Lock, Thread
from typing import Any

import numpy as np
import viser
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from initfree.data.names import in_html
from initfree.data.tracks import Array
from initfree.drawing.palette import CHOSEN, FAILED, GOOD, GREY, JOINT, NEUTRAL, SCALE, rgb
from initfree.drawing.scene import Scene, basis
from initfree.drawing.verdict import counted
from initfree.viewer.guarded import guarded_server

_PAUSE = 0.08
"""seconds between the steps of a play"""
_WIDE = 0.9
"""width over height of a window from which on the whole scene is seen"""
_FAR = 1e3
"""distance of landmarks without a position, in extents: out of sight"""

_POINT = 0.05
"""size of a landmark, in sizes of a camera"""
_THICK = 1.5
"""pixels, of the lines of a camera"""
_COLOURS = {"does not agree": FAILED, "weakest joint": JOINT, "": GOOD}
_BANNERS = {"yes": ("#0b6b5e", "Accepted"), "part": ("#85560a", "Accepted, in part"), "no": ("#a11f37", "Not accepted")}
_NO_IMAGE = "none"
_STYLE = "margin: 0 0.9em 0.4em; font-size: 0.875em; overflow-wrap: anywhere"


class Viewer:
    """A server with a scene and its controls; `stop` ends it.

    viser prints when it begins and ends even where it is not verbose; the command has its own line.
    """

    def __init__(
        self,
        scene: Scene,
        images: Sequence[NDArray[np.uint8] | None],
        *,
        host: str = "127.0.0.1",
        port: int = 8080,
        dark: bool = False,
    ) -> None:
        self.scene = scene
        with redirect_stdout(io.StringIO()):
            self.server, self._token = guarded_server(host, port)
        self._lock, self._stop = Lock(), Event()
        self._thread: Thread | None = None
        self.server.gui.configure_theme(dark_mode=dark, show_logo=False, show_share_button=False)
        self.server.scene.set_up_direction(scene.up)
        self._look()
        self._draw(images)
        self._controls()

    @property
    def address(self) -> str:
        """With the token without which nothing is served."""
        host = self.server.get_host()
        shown = "localhost" if host in ("0.0.0.0", "127.0.0.1") else f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.server.get_port()}/{self._token}/"

    def stop(self) -> None:
        self._stop.set()
        with redirect_stdout(io.StringIO()):
            self.server.stop()

    def _look(self) -> None:
        start = self.scene.start
        centre, (up, a, b) = start.centre, basis(self.scene.up)
        turn, lift = np.radians(start.azimuth), np.radians(start.elevation)
        back = 2.2 * start.reach * (np.sin(lift) * up + np.cos(lift) * (np.cos(turn) * a + np.sin(turn) * b))

        camera = self.server.initial_camera
        camera.look_at, camera.position, camera.up = centre, centre + back, self.scene.up

        def step_back(client: viser.ClientHandle) -> None:
            """In a window that is higher than wide the scene would stand out on both sides."""
            aspect = client.camera.aspect
            if aspect < _WIDE:
                client.camera.up_direction = self.scene.up
                client.camera.position = centre + (_WIDE / aspect) * back
                client.camera.look_at = centre

        self.server.on_client_connect(step_back)

    def _draw(self, images: Sequence[NDArray[np.uint8] | None]) -> None:
        scene, api = self.scene, self.server.scene
        model, size = scene.model, scene.size
        self.points = api.add_point_cloud(
            "/landmarks", model.xyz.astype(np.float32), scene.colourings[0].rgb,
            point_size=_POINT * size, point_shape="circle", precision="float32",
        )  # fmt: skip
        self.frusta = []
        for k in range(len(model.images)):
            self.frusta.append(
                self._frustum(f"/cameras/{k}", model.centres[k], model.R[k], scene.shape[k], self._colour(k), images[k])
            )
            self.frusta[-1].on_click(lambda _, k=k: self.choose(k))
        self._lines("/floor", scene.floor_lines(), GREY, visible=True)
        if scene.names_shown:
            for k, name in enumerate(model.images):
                api.add_label(f"/names/{k}", name, position=tuple(model.centres[k]))
        lines = [(model.centres[i], model.centres[j]) for i, j, _ in scene.edges()]
        self.sharing = self._lines("/shared", lines, NEUTRAL, visible=False)
        weak = [(model.centres[i], model.centres[j]) for i, j in scene.joint_edges()]
        self.joint = self._lines("/joint", weak, JOINT, visible=scene.accepted is False)
        self.other: list[Any] = []
        if scene.other is not None:
            grey = np.tile(np.array(rgb(GREY), dtype=np.uint8), (len(scene.other.xyz), 1))
            cloud = api.add_point_cloud("/other/landmarks", scene.other.xyz.astype(np.float32), grey, point_size=0.04 * size)
            self.other = [cloud] + [
                self._frustum(f"/other/{k}", centre, R, np.array([0.6, 0.45]), GREY, None)
                for k, (centre, R) in enumerate(zip(scene.other.centres, scene.other.R, strict=True))
            ]

    def _colour(self, k: int) -> str:
        return _COLOURS[self.scene.flags[k]]

    def _frustum(
        self, name: str, centre: Array, R: Array, shape: Array, colour: str, image: NDArray[np.uint8] | None
    ) -> viser.CameraFrustumHandle:
        return self.server.scene.add_camera_frustum(
            name,
            fov=2.0 * math.atan(float(shape[1])),
            aspect=float(shape[0] / shape[1]),
            scale=0.6 * self.scene.size,
            color=rgb(colour),
            image=image,
            wxyz=_wxyz(R),
            position=tuple(centre),
            thickness=_THICK,
            thickness_units="screen",
        )

    def _lines(self, name: str, pairs: list[tuple[Array, Array]], colour: str, *, visible: bool) -> Any:
        if not pairs:
            return None
        points = np.array(pairs, dtype=np.float32)
        return self.server.scene.add_line_segments(
            name, points, rgb(colour), thickness=1.5, thickness_units="screen", visible=visible
        )

    def _controls(self) -> None:
        gui, scene = self.server.gui, self.scene
        gui.add_html(_words(scene))
        self.colour = gui.add_dropdown("landmarks by", [one.name for one in scene.colourings])
        self.scale = gui.add_html(_scale(scene, scene.colourings[0].name))
        self.colour.on_update(lambda _: self._show())
        size = gui.add_slider("point size", 0.2, 5.0, 0.2, 1.0)
        size.on_update(lambda _: setattr(self.points, "point_size", _POINT * size.value * scene.size))
        shown = gui.add_checkbox("landmarks", True)
        shown.on_update(lambda _: setattr(self.points, "visible", shown.value))
        cameras = gui.add_checkbox("cameras", True)
        cameras.on_update(lambda _: self._visible(self.frusta, cameras.value))
        if self.sharing is not None:
            sharing = gui.add_checkbox("what images share", False)
            sharing.on_update(lambda _: setattr(self.sharing, "visible", sharing.value))
        if self.joint is not None:
            joint = gui.add_checkbox("weakest joint", scene.accepted is False)
            joint.on_update(lambda _: setattr(self.joint, "visible", joint.value))
        if self.other and scene.other is not None:
            other = gui.add_checkbox(f"over it: {scene.other.name}", True)
            other.on_update(lambda _: self._visible(self.other, other.value))
        self.slider: Any = None
        if scene.steps is not None and len(scene.steps) > 1:
            last = len(scene.steps)
            self.slider = gui.add_slider("step of the solve", 0, last, 1, last)
            self.caption = gui.add_html(_paragraphs("result"))
            self.slider.on_update(lambda _: self._show())
            gui.add_button("play from the start").on_click(lambda _: self.play())
        # A list in which typing finds an image.
        self._listed = [_listed(scene, k) for k in range(len(scene.model.images))]
        self._chosen: int | None = None
        self.image = gui.add_dropdown(scene.thing, [_NO_IMAGE, *(self._listed[k] for k in scene.worst_first)])
        self.image.on_update(lambda event: self._choose(event.client))
        self.camera = gui.add_html(_paragraphs("Click a camera, or choose an image, for its figures."))
        self.through = gui.add_button("look through it", disabled=True)
        self.through.on_click(lambda event: self._look_through(event.client))
        if scene.left_out:
            with gui.add_folder(f"{counted(len(scene.left_out), 'image')} left out", expand_by_default=False):
                gui.add_html(_paragraphs(*scene.left_out))

    def _visible(self, handles: Sequence[Any], yes: bool) -> None:
        with self.server.atomic():
            for handle in handles:
                handle.visible = yes

    def choose(self, k: int | None) -> None:
        """An image as if it were chosen in the list; None chooses none."""
        self.image.value = _NO_IMAGE if k is None else self._listed[k]

    def _choose(self, client: viser.ClientHandle | None) -> None:
        """Mark the camera of the chosen image, look at it, and say its figures."""
        value = self.image.value
        k = None if value == _NO_IMAGE else self._listed.index(value)
        with self.server.atomic():
            if self._chosen is not None:
                self.frusta[self._chosen].color = rgb(self._colour(self._chosen))
                self.frusta[self._chosen].thickness = _THICK
            self._chosen = k
            self.through.disabled = k is None
            if k is None:
                self.camera.content = _paragraphs("Click a camera, or choose an image, for its figures.")
                return
            self.frusta[k].color, self.frusta[k].thickness = rgb(CHOSEN), 3.0 * _THICK
            tip, flag = self.scene.tips[k], self.scene.flags[k]
            self.camera.content = _paragraphs(
                *tip.split("\n")[1:], *([flag] if flag else []), title=self.scene.model.images[k]
            )
        for one in [client] if client is not None else self.server.get_clients().values():
            one.camera.look_at = self.frusta[k].position

    def _look_through(self, client: viser.ClientHandle | None) -> None:
        if self._chosen is None:
            return
        frustum = self.frusta[self._chosen]
        axes = Rotation.from_quat(np.roll(frustum.wxyz, -1)).as_matrix()
        for one in [client] if client is not None else self.server.get_clients().values():
            one.camera.up_direction = -axes[:, 1]
            one.camera.position = frustum.position
            one.camera.look_at = np.asarray(frustum.position) + self.scene.start.reach * axes[:, 2]

    def play(self) -> None:
        """From the first step to the result, once."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._thread = Thread(target=self._played, daemon=True)
        self._thread.start()

    def _played(self) -> None:
        assert self.scene.steps is not None
        for k in range(len(self.scene.steps) + 1):
            if self._stop.is_set():
                return
            self.slider.value = k
            time.sleep(_PAUSE)

    def _show(self) -> None:
        """Landmarks and cameras of the chosen step, in the chosen colours."""
        with self._lock, self.server.atomic():
            scene, model = self.scene, self.scene.model
            colours = next(one for one in scene.colourings if one.name == self.colour.value).rgb
            self.scale.content = _scale(scene, self.colour.value)
            steps, k = scene.steps, None if self.slider is None else int(self.slider.value)
            if steps is None or k is None or k >= len(steps):
                centres, R = model.centres, model.R
                self.points.points, self.points.colors = model.xyz.astype(np.float32), colours
                if self.slider is not None:
                    self.caption.content = _paragraphs("result")
            else:
                place = {name: n for n, name in enumerate(steps.names)}
                order = np.array([place.get(name, -1) for name in model.images])
                centres, R = np.where((order < 0)[:, None], np.nan, steps.centres[k][order]), steps.R[k][order]
                rows = {int(j): row for row, j in enumerate(model.ids)}
                known = np.array([rows.get(int(j), -1) for j in steps.ids])
                shade = np.where((known < 0)[:, None], np.array(rgb(NEUTRAL)), colours[known]).astype(np.uint8)
                self.points.points, self.points.colors = _seen(steps.xyz[k], self.scene.size), shade
                cost = f", cost {steps.cost[k]:.4g}" if np.isfinite(steps.cost[k]) else ""
                self.caption.content = _paragraphs(f"{steps.stages[k]}, step {steps.index[k]}{cost}")
            for frustum, centre, turn in zip(self.frusta, _seen(centres, scene.size), R, strict=True):
                frustum.position, frustum.wxyz = tuple(float(v) for v in centre), _wxyz(turn)


def _seen(points: Array, size: float) -> NDArray[np.float32]:
    return np.where(np.isfinite(points), points, _FAR * size).astype(np.float32)


def _wxyz(R: Array) -> tuple[float, float, float, float]:
    """The camera's turn in the world."""
    x, y, z, w = Rotation.from_matrix(R.T).as_quat()
    return float(w), float(x), float(y), float(z)


def _listed(scene: Scene, k: int) -> str:
    """An image in a list: its name, what is to be said of it, its mean error."""
    residual = scene.residuals[k]
    parts = [scene.model.images[k], scene.flags[k], "" if residual is None else f"{residual:.2f} px"]
    return "  ".join(part for part in parts if part)


def _words(scene: Scene) -> str:
    counts = f"{len(scene.model.images)} cameras, {len(scene.model.ids):,} landmarks shown"
    counts += f"; {scene.frame_words}" if scene.frame_words else ""
    if scene.accepted is None:
        return _paragraphs(counts, title=scene.model.name)
    colour, title = _BANNERS[scene.tone]
    box = f"{_STYLE}; background: {colour}; color: #fff; padding: 0.6em 0.8em; border-radius: 8px"
    verdict = in_html(scene.verdict[:1].upper() + scene.verdict[1:])
    return f'<div style="{box}"><b style="font-size: 1.25em">{title}</b><br>{verdict}</div>{_paragraphs(counts)}'


def _scale(scene: Scene, name: str) -> str:
    one = next(one for one in scene.colourings if one.name == name)
    if not one.low:
        return _paragraphs("colours of the images")
    colours = f"linear-gradient(90deg, {', '.join(SCALE)})"
    bar = f"display: inline-block; width: 90px; height: 9px; border-radius: 3px; background: {colours}"
    return f'<p style="{_STYLE}">{in_html(one.low)} <span style="{bar}"></span> {in_html(one.high)}</p>'


def _paragraphs(*texts: str, title: str = "") -> str:
    """HTML of plain texts, which names from the input are part of: viser's markdown would keep the HTML in them."""
    lines = [f"<b>{in_html(title)}</b>"] if title else []
    return "".join(f'<p style="{_STYLE}">{line}</p>' for line in [*lines, *map(in_html, texts)])
