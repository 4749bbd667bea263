"""The frame of a model from measurements: a length, an origin, a ground plane or a vertical.

Observations determine a reconstruction up to a similarity. The user fixes it by named places: cameras, points, and for
arrays points in frames, which landmarks.csv beside a solved model lists.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from initfree.data.files import opened
from initfree.data.tracks import Array
from initfree.drawing.steps import FILE as TRACE
from initfree.drawing.steps import Steps
from initfree.errors import InputError, in_words

MOMENTS = "landmarks.csv"
_PLACES = {"origin": 1, "ground": None, "up": 2}
"""what --align may say, and of how many places"""
_LEAST_SPREAD = 1e-3
"""least width over length of points that span a plane"""


@dataclass(frozen=True)
class Alignment:
    """Measurements that fix the frame of a model."""

    scale: float | None = None
    """Distance between the two places of --scale-points, in the unit that the model is to have."""
    scale_points: tuple[str, str] | None = None
    """Two places a known distance apart; of /A /B, the median of their distance over all frames that have both."""
    origin: str | None = None
    """Place that becomes the origin; of several points their median."""
    ground: tuple[str, ...] = ()
    """Places of at least three points on the ground: it becomes z = 0 or parallel to it, z points to the cameras' side, x
    from the first point to the last."""
    up: tuple[str, str] | None = None
    """Two places, the second straight above the first: z points that way."""
    align: tuple[str, ...] = ()
    """The last three in one option: any of origin=PLACE, ground=PLACE,PLACE,..., up=PLACE,PLACE."""

    @property
    def asked(self) -> bool:
        return self != Alignment()

    def spelled_out(self) -> "Alignment":
        """The same with the parts of `align` in their own fields."""
        said: dict[str, tuple[str, ...]] = {}
        for word in self.align:
            key, _, value = word.partition("=")
            places = tuple(place for place in value.split(",") if place)
            if key not in _PLACES or not places or key in said:
                raise InputError(
                    f"--align has {word!r}; expected origin=PLACE, ground=PLACE,PLACE,... or up=PLACE,PLACE, each once"
                )
            if _PLACES[key] is not None and len(places) != _PLACES[key]:
                raise InputError(f"--align {word}: {len(places)} places; expected {_PLACES[key]}")
            if getattr(self, key):
                raise InputError(f"--{key} and --align {word} say the same thing; expected one of them")
            said[key] = places
        if not said:
            return self
        up = said.get("up")
        return replace(
            self,
            origin=said["origin"][0] if "origin" in said else self.origin,
            ground=said.get("ground", self.ground),
            up=self.up if up is None else (up[0], up[1]),
            align=(),
        )

    def check(self, names: Sequence[str], moments: dict[int, tuple[str, str]]) -> None:
        """Refuse, before a solve, options that no result could satisfy."""
        wanted = self.spelled_out()
        if wanted.scale is not None and not (np.isfinite(wanted.scale) and wanted.scale > 0.0):
            raise InputError(f"--scale is {wanted.scale:g}; expected a positive length")
        if (wanted.scale is None) != (wanted.scale_points is None):
            raise InputError(
                "--scale and --scale-points belong together; expected a length and the two places it lies between"
            )
        places = [wanted.origin, *wanted.ground, *(wanted.up or ()), *(wanted.scale_points or ())]
        known = Places({name: np.zeros(3) for name in names}, dict.fromkeys(moments, np.zeros(3)), moments)
        for place in places:
            # Ids of points are the model's.
            if place is not None and not place.isdecimal():
                known.find(place)


@dataclass(frozen=True)
class Places:
    """The named places of a model."""

    cameras: dict[str, Array]
    points: dict[int, Array]
    moments: dict[int, tuple[str, str]]

    def find(self, name: str) -> dict[str, Array]:
        """Positions by "frame/point", or one by the name itself."""
        if name in self.cameras:
            return {name: self.cameras[name]}
        if "/" in name:
            frame, point = name.split("/", 1)
            found = {
                "/".join(moment): self.points[k]
                for k, moment in self.moments.items()
                if k in self.points and frame in ("", moment[0]) and point in ("", moment[1])
            }
            if found:
                return found
            hint = f"; {MOMENTS} lists frames and points" if self.moments else f"; {MOMENTS}, which lists them, is missing"
            raise InputError(f"place {name!r}: the model has no such point{hint}")
        if name.isdecimal() and int(name) in self.points:
            return {name: self.points[int(name)]}
        raise InputError(
            f"place {name!r} is no image ({', '.join(list(self.cameras)[:3])}, ...) and no id of a point of the model; "
            "expected one, or FRAME/POINT, FRAME/ or /POINT of an array"
        )

    def middle(self, name: str) -> Array:
        return np.median(list(self.find(name).values()), axis=0)

    def distance(self, first: str, second: str) -> float:
        """Distance of two places; of two points that move together, the median over the frames that have both."""
        a, b = self.find(first), self.find(second)
        if len(a) > 1 and len(b) > 1:
            by_frame = {name.split("/")[0]: xyz for name, xyz in b.items()}
            pairs = [(xyz, by_frame[frame]) for name, xyz in a.items() if (frame := name.split("/")[0]) in by_frame]
            if not pairs:
                raise InputError(f"no frame has both {first!r} and {second!r}; expected two points seen at the same time")
            return float(np.median([np.linalg.norm(p - q) for p, q in pairs]))
        return float(np.linalg.norm(self.middle(first) - self.middle(second)))


def align(
    model: pycolmap.Reconstruction, wanted: Alignment, moments: dict[int, tuple[str, str]]
) -> tuple[float, Array, Array, float | None]:
    """Rotate, move and scale the model, X -> s Q X + t, by the measurements in `wanted`; s, Q, t and the z of the floor."""
    if not wanted.asked:
        return 1.0, np.eye(3), np.zeros(3), None
    wanted = wanted.spelled_out()
    if (wanted.scale is None) != (wanted.scale_points is None):
        raise InputError("--scale and --scale-points belong together; expected a length and the two places it lies between")
    if wanted.ground and wanted.up is not None:
        raise InputError("--ground and --up both say which way is up; expected one of them")
    images = [image for _, image in sorted(model.images.items()) if image.has_pose]
    cameras = {image.name: np.asarray(image.projection_center()) for image in images}
    places = Places(cameras, {k: np.asarray(point.xyz) for k, point in model.points3D.items()}, moments)
    scale = 1.0
    if wanted.scale is not None and wanted.scale_points is not None:
        if not (np.isfinite(wanted.scale) and wanted.scale > 0.0):
            raise InputError(f"--scale is {wanted.scale:g}; expected a positive length")
        length = places.distance(*wanted.scale_points)
        if not length > 0.0:
            raise InputError(f"--scale-points {' '.join(wanted.scale_points)} are the same place; expected two")
        scale = wanted.scale / length
    turn, height = np.eye(3), None
    if wanted.ground:
        turn, height = _ground(wanted.ground, places)
    elif wanted.up is not None:
        up = places.middle(wanted.up[1]) - places.middle(wanted.up[0])
        if not np.linalg.norm(up) > 0.0:
            raise InputError(f"--up {' '.join(wanted.up)} are the same place; expected two, the second above the first")
        turn = _frame(up, np.eye(3)[np.argmin(np.abs(up))])
    origin = np.zeros(3) if wanted.origin is None else places.middle(wanted.origin)
    if wanted.origin is None and height is not None:
        # On the ground, below the middle of the cameras.
        middle = turn @ np.mean(list(cameras.values()), axis=0)
        origin = turn.T @ np.array([middle[0], middle[1], height])
    shift = -scale * (turn @ origin)
    model.transform(pycolmap.Sim3d(scale, pycolmap.Rotation3d(turn), shift))
    return scale, turn, shift, None if height is None else scale * height + float(shift[2])


def _ground(names: tuple[str, ...], places: Places) -> tuple[Array, float]:
    """Rotation to axes with z up, and the height of the ground in them: the plane of least squares through the points."""
    points = np.array([xyz for name in names for xyz in places.find(name).values()])
    middle = points.mean(axis=0)
    spread = np.linalg.svd(points - middle, full_matrices=False)[1] if len(points) >= 3 else np.zeros(2)
    if not spread[1] > _LEAST_SPREAD * spread[0]:
        raise InputError(f"--ground {' '.join(names)}: {len(points)} points on a line; expected at least three that span it")
    up = np.linalg.svd(points - middle)[2][2]
    side = np.median([(centre - middle) @ up for centre in places.cameras.values()])
    turn = _frame(up if side >= 0.0 else -up, points[-1] - points[0])
    return turn, float((turn @ middle)[2])


def _frame(up: Array, along: Array) -> Array:
    """Rows x, y, z: z up, x as `along` without its part along z."""
    z = up / np.linalg.norm(up)
    x = along - (along @ z) * z
    if np.linalg.norm(x) <= 1e-9 * np.linalg.norm(along):
        x = np.cross(z, np.eye(3)[np.argmin(np.abs(z))])
    x /= np.linalg.norm(x)
    return np.stack([x, np.cross(z, x), z]).astype(np.float64)


def align_written(directory: Path, wanted: Alignment) -> dict[str, Any]:
    """Align the model that a solve has written into its directory, and its steps; what is known of the frame then."""
    model = pycolmap.Reconstruction(directory / "sparse" / "0")
    scale, turn, shift, floor = align(model, wanted, read_moments(directory))
    model.write(str(directory / "sparse" / "0"))
    if (directory / TRACE).is_file():
        Steps.read(directory / TRACE).moved(scale, turn, shift).write(directory / TRACE)
    wanted = wanted.spelled_out()
    return {"z_up": bool(wanted.ground or wanted.up), "floor": floor, "unit": wanted.scale is not None}


def write_moments(path: Path, moments: dict[int, tuple[str, str]], ids: list[int]) -> None:
    """id, frame and point of the landmarks `ids`."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "frame", "point"])
        writer.writerows([k, *moments[k]] for k in ids)


def read_moments(source: Path) -> dict[int, tuple[str, str]]:
    """Read the moments of a solved folder; empty without any."""
    path = source / MOMENTS
    if not path.is_file():
        return {}
    try:
        with TextIOWrapper(opened(path), encoding="utf-8", newline="") as stream:
            return {int(row["id"]): (row["frame"], row["point"]) for row in csv.DictReader(stream)}
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read ({in_words(error)}); expected the columns id, frame, point") from error
