"""A scene as a picture, without a browser: the same view as that of the pages."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from initfree.data.tracks import Array
from initfree.drawing.palette import FAILED, GOOD, GREY, JOINT, NEUTRAL, coloured, rgb
from initfree.drawing.scene import Colouring, Scene, basis

_FINE = 2
"""drawn so many times as large and scaled down: smooth edges"""
_UNDER = 0.03
"""of the distance: so far behind lies a second model, nearly in the same places, that must not shine through the first"""
_BACKGROUND = {False: (255, 255, 255), True: (18, 22, 28)}
_FLOOR = {False: "#dfe3e8", True: "#2c3440"}
_INK = {False: (102, 112, 133), True: (152, 162, 179)}


@dataclass(frozen=True)
class Look:
    """Viewpoint and content of a picture."""

    width: int = 1200
    height: int = 800
    azimuth: float | None = None
    elevation: float | None = None
    """degrees; by default those of the scene's start"""
    closer: float = 1.0
    dark: bool = False
    colouring: str | None = None
    """of the landmarks; by default the first"""
    step: int | None = None
    """of the solve; None: the result"""
    sharing: bool = False
    """lines between images that share most"""
    legend: bool = False
    """what the colours of the landmarks mean, in a corner"""


def picture(scene: Scene, look: Look | None = None) -> Image.Image:
    """Landmarks, cameras as pyramids, the second model in grey, the weakest joint where the model is not accepted."""
    look = Look() if look is None else look
    view = _View(scene, look)
    model, colours = scene.model, _colouring(scene, look.colouring).rgb
    centres, R, xyz = model.centres, model.R, model.xyz
    if look.step is not None and scene.steps is not None:
        steps = scene.steps
        order = [steps.names.index(name) for name in model.images if name in steps.names]
        centres, R, xyz = steps.centres[look.step][order], steps.R[look.step][order], steps.xyz[look.step]
        row = {int(j): k for k, j in enumerate(model.ids)}
        known = np.array([row.get(int(j), -1) for j in steps.ids])
        colours = np.where((known < 0)[:, None], np.array(rgb(NEUTRAL)), colours[known]).astype(np.uint8)
    canvas = np.empty((view.h, view.w, 3), dtype=np.uint8)
    canvas[:] = _BACKGROUND[look.dark]
    depths = np.full((view.h, view.w), np.inf)
    if scene.other is not None:
        grey = np.tile(np.array(rgb(GREY), dtype=np.uint8), (len(scene.other.xyz), 1))
        _splat(canvas, depths, view, scene.other.xyz, grey, 1.0)
        depths += _UNDER * view.distance
    # Few points are drawn larger: the same amount of ink.
    _splat(canvas, depths, view, xyz, colours, float(np.clip(1.5 * np.cbrt(6000 / max(len(xyz), 1)), 1.5, 3.0)))
    image = Image.fromarray(canvas)
    draw = ImageDraw.Draw(image)
    shape, size = scene.shape, scene.size
    view.lines(draw, scene.floor_lines(), _FLOOR[look.dark], 1)
    if look.sharing:
        view.lines(draw, [(centres[i], centres[j]) for i, j, _ in scene.edges()], NEUTRAL, 1)
    joint = set(scene.joint.tolist()) if scene.accepted is False and look.step is None else set()
    if joint:
        view.lines(draw, [(centres[i], centres[j]) for i, j in scene.joint_edges()], JOINT, 2)
    if scene.other is not None:
        for k in range(len(scene.other.images)):
            view.frustum(draw, scene.other.centres[k], scene.other.R[k], np.array([0.6, 0.45]), size, GREY)
    failing = set(scene.failing.tolist())
    for k in range(len(centres)):
        colour = FAILED if k in failing else JOINT if k in joint else GOOD
        view.frustum(draw, centres[k], R[k], shape[k], size, colour)
    image = image.resize((look.width, look.height), Image.Resampling.LANCZOS)
    if scene.names_shown:
        _label(image, view.project(centres)[0] / _FINE, model.images, look.dark)
    if look.legend:
        _legend(image, _colouring(scene, look.colouring), look.dark)
        ImageDraw.Draw(image).text(
            (16, image.height - 46), scene.frame_words, fill=_INK[look.dark], font=ImageFont.load_default(15), anchor="lm"
        )
    return image


def _colouring(scene: Scene, name: str | None) -> Colouring:
    named = {one.name: one for one in scene.colourings}
    return named[name] if name in named else scene.colourings[0]


def _label(image: Image.Image, places: Array, names: tuple[str, ...], dark: bool) -> None:
    """The names of the cameras, each above its place."""
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(14)
    for (x, y), name in zip(places.tolist(), names, strict=True):
        if np.isfinite([x, y]).all():
            draw.text((x, y - 8), name, fill=_INK[dark], font=font, anchor="mb")


def _legend(image: Image.Image, colouring: Colouring, dark: bool) -> None:
    """The scale with its ends, at the lower left; colours of the images need none."""
    if not colouring.low:
        return
    draw, font, ink = ImageDraw.Draw(image), ImageFont.load_default(15), _INK[dark]
    x, y, long, high = 16, image.height - 26, 120, 12
    first = f"{colouring.name}: {colouring.low}"
    draw.text((x, y + high / 2), first, fill=ink, font=font, anchor="lm")
    x += int(draw.textlength(first, font=font)) + 10
    for k, colour in enumerate(coloured(np.arange(long, dtype=np.float64), 0.0, long - 1.0).tolist()):
        draw.line([(x + k, y), (x + k, y + high)], fill=tuple(colour))
    draw.text((x + long + 10, y + high / 2), colouring.high, fill=ink, font=font, anchor="lm")


class _View:
    """The perspective of a look: that of scene.js."""

    def __init__(self, scene: Scene, look: Look) -> None:
        self.w, self.h = look.width * _FINE, look.height * _FINE
        start = scene.start
        up, a, b = basis(scene.up)
        turn = np.radians(start.azimuth if look.azimuth is None else look.azimuth)
        lift = np.radians(start.elevation if look.elevation is None else look.elevation)
        back = np.sin(lift) * up + np.cos(lift) * (np.cos(turn) * a + np.sin(turn) * b)
        right = -np.sin(turn) * a + np.cos(turn) * b
        self.distance = 2.7 * start.reach / look.closer
        self.eye = start.centre + self.distance * back
        self.axes = np.stack([right, np.cross(-back, right), -back])
        self.focal = min(0.95 * self.w, 1.5 * self.h)

    def project(self, points: Array) -> tuple[Array, Array]:
        """Pixels and depths; what is behind or too near is NaN."""
        x = (points - self.eye) @ self.axes.T
        depth = np.where(x[:, 2] > 0.02 * self.distance, x[:, 2], np.nan)
        pixel = self.focal * x[:, :2] / depth[:, None] + np.array([self.w, self.h]) / 2.0
        return pixel, depth

    def lines(self, draw: ImageDraw.ImageDraw, pairs: list[tuple[Array, Array]], colour: str, width: int) -> None:
        for pair in pairs:
            pixel, _ = self.project(np.stack(pair))
            if np.isfinite(pixel).all():
                draw.line([tuple(p) for p in pixel.tolist()], fill=colour, width=width * _FINE)

    def frustum(self, draw: ImageDraw.ImageDraw, centre: Array, R: Array, shape: Array, size: float, colour: str) -> None:
        corners = np.array([[x * shape[0], y * shape[1], 1.0] for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1))])
        pixel, _ = self.project(np.vstack([centre, centre + size * corners @ R]))
        if not np.isfinite(pixel).all():
            return
        tip, *rest = [tuple(p) for p in pixel.tolist()]
        draw.line([*rest, rest[0]], fill=colour, width=_FINE + 1)
        for corner in rest:
            draw.line([tip, corner], fill=colour, width=_FINE + 1)


def _splat(
    canvas: NDArray[np.uint8], depths: Array, view: _View, xyz: Array, colours: NDArray[np.uint8], size: float
) -> None:
    """Landmarks as discs, the nearest in front."""
    pixel, depth = view.project(xyz)
    good = np.isfinite(depth) & np.isfinite(pixel).all(axis=1)
    pixel, depth, colours = pixel[good], depth[good], colours[good]
    radius = size * _FINE * np.clip(view.distance / depth, 0.6, 2.5)
    order = np.argsort(-depth)
    reach = int(np.ceil(radius.max())) if len(radius) else 0
    x, y = np.round(pixel[order]).astype(int).T if len(order) else (np.empty(0, int), np.empty(0, int))
    for dy in range(-reach, reach + 1):
        for dx in range(-reach, reach + 1):
            inside = (dx * dx + dy * dy <= radius[order] ** 2) & (x + dx >= 0) & (x + dx < view.w)
            inside &= (y + dy >= 0) & (y + dy < view.h)
            px, py, near = x[inside] + dx, y[inside] + dy, depth[order][inside]
            front = near <= depths[py, px]
            # Far to near: where two discs meet in a pixel, the later assignment is the nearer.
            depths[py[front], px[front]] = near[front]
            canvas[py[front], px[front]] = colours[order][inside][front]
