"""The scene of a reconstruction: cameras, landmarks with their colours, and connections between images."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pycolmap
from numpy.typing import NDArray
from scipy.sparse import csr_array

from initfree.data.camera_graph import without_diagonal
from initfree.data.tracks import Array, Index
from initfree.drawing.packed import Box, encoded, turns
from initfree.drawing.palette import SCALE, coloured
from initfree.drawing.steps import Steps

GREY = (128, 128, 128)
"""what a written model has where no colour is known"""
NEIGHBOURS = 4
"""of each image, those it shares most with, are joined by lines"""
_MOST_EDGES = 3000
_JOINT_EDGES = 80
_BOX = 3.0
_FROM = (35.0, 24.0)
"""azimuth and elevation of a look at cameras that look many ways"""
_ONE_WAY = 0.5
"""length of the mean of the cameras' axes from which they look one way"""
_ASIDE, _ABOVE, _ELEVATIONS = 14.0, 14.0, (8.0, 60.0)
"""degrees from straight behind, so that depth shows"""
_BACK = 2.7
"""distance of the eye from what it looks at, in reaches; that of scene.js"""
_IN_FRONT, _SMALLEST, _NEARER = 2.0, 2.6, 0.8
"""of the eye: farther back than the cameras, at most so much farther than the scene needs; closer than a ring needs"""
_MOST_NAMES = 40
"""cameras of an array of which a picture has the names"""
_SQUARES = 10.0
"""of the floor, at most, along the scene"""
_FRAMED = 0.9
"""share of the scene that a picture frames"""


SOURCE = "source colour"


@dataclass(frozen=True)
class Colouring:
    """A colour for every landmark, and what it means."""

    name: str
    rgb: NDArray[np.uint8]
    low: str = ""
    high: str = ""
    """ends of the scale; empty where the colours are their own"""


@dataclass(frozen=True)
class Model:
    """Cameras x = R (X - c) and landmarks, under a name."""

    name: str
    images: tuple[str, ...]
    R: Array
    centres: Array
    ids: Index
    xyz: Array

    def moved(self, s: float, turn: Array, shift: Array) -> "Model":
        """In a world that a similarity leads to."""
        centres, xyz = (s * points @ turn.T + shift for points in (self.centres, self.xyz))
        return replace(self, R=self.R @ turn.T, centres=centres, xyz=xyz)


@dataclass(frozen=True)
class Start:
    """A view of the scene: what it looks at, how far that reaches, and from where, in degrees around `up`."""

    centre: Array
    reach: float
    azimuth: float
    elevation: float


def basis(up: tuple[float, float, float]) -> tuple[Array, Array, Array]:
    """Up and two horizontal axes, from which azimuths count; those of scene.js."""
    u = np.array(up, dtype=np.float64) / np.linalg.norm(up)
    a = np.cross(u, (0.0, 0.0, 1.0) if abs(u[2]) < 0.9 else (1.0, 0.0, 0.0))
    a /= np.linalg.norm(a)
    return u, a, np.cross(u, a)


@dataclass(frozen=True)
class Scene:
    """A model with all parts that a picture may show."""

    model: Model
    shape: Array
    """(cameras, 2) half the width and height of each image over its focal length"""
    colourings: tuple[Colouring, ...]
    sharing: csr_array
    """landmarks that each two images share"""
    tips: tuple[str, ...]
    """figures of each camera, as text"""
    residuals: tuple[float | None, ...]
    """mean error of each camera in pixels, as far as it is known"""
    joint: Index
    """cameras on the smaller side of the weakest joint"""
    failing: Index
    """cameras that do not agree with the others"""
    left_out: tuple[str, ...]
    """images that are not in the model"""
    verdict: str
    accepted: bool | None
    steps: Steps | None = None
    other: Model | None = None
    """the truth, or a second model, in the world of the first"""
    up: tuple[float, float, float] = (0.0, -1.0, 0.0)
    floor: float | None = None
    """its z, where that is known"""
    unit: bool = False
    """whether lengths are in a unit that the user gave"""
    thing: str = "image"
    """what has a name: an image, or a camera of an array"""

    @cached_property
    def square(self) -> float:
        """Side of the floor's squares: 1, 2 or 5 times a power of ten."""
        least = float(np.ptp(self.core, axis=0).max()) / _SQUARES
        ten = 10.0 ** np.floor(np.log10(max(least, 1e-12)))
        return float(ten * next(step for step in (1.0, 2.0, 5.0, 10.0) if step * ten >= least))

    def floor_lines(self) -> list[tuple[Array, Array]]:
        """Squares below the cameras; none where no floor is known."""
        if self.floor is None:
            return []
        low, high = (
            self.square * f(g(self.core[:, :2], axis=0) / self.square) for f, g in ((np.floor, np.min), (np.ceil, np.max))
        )
        lines = []
        for axis in (0, 1):
            for value in np.arange(low[axis], high[axis] + self.square / 2, self.square):
                ends = np.array([[0.0, 0.0, self.floor], [0.0, 0.0, self.floor]])
                ends[:, axis] = value
                ends[:, 1 - axis] = low[1 - axis], high[1 - axis]
                lines.append((ends[0], ends[1]))
        return lines

    @property
    def names_shown(self) -> bool:
        """Those of the cameras of an array are worth their place in a picture."""
        return self.thing == "camera" and len(self.model.images) <= _MOST_NAMES

    @property
    def frame_words(self) -> str:
        """What is known of the frame, for a legend."""
        unit = f"{self.square:g}" + (" (unit of --scale)" if self.unit else "")
        return f"floor, squares of {unit}" if self.floor is not None else ""

    @property
    def core(self) -> Array:
        """Cameras and the landmarks near them, which a picture must show; distant ones may be cut."""
        xyz = self.model.xyz
        if not len(xyz):
            return self.model.centres
        far = np.linalg.norm(xyz - np.median(xyz, axis=0), axis=1)
        return np.concatenate([self.model.centres, xyz[far <= np.quantile(far, 0.9)]])

    @cached_property
    def start(self) -> Start:
        """Where every picture begins: behind the cameras if these look one way, else from the side and above."""
        core = self.core
        low, high = np.quantile(core, (0.05, 0.95), axis=0)
        centre = (low + high) / 2.0
        reach = float(np.quantile(np.linalg.norm(core - centre, axis=1), _FRAMED))
        cameras = self.model.centres - centre
        azimuth, elevation = _FROM
        ahead = self.model.R[:, 2].mean(axis=0) if len(self.model.R) else np.zeros(3)
        if np.linalg.norm(ahead) > _ONE_WAY:
            up, a, b = basis(self.up)
            back = -ahead / np.linalg.norm(ahead)
            azimuth = float(np.degrees(np.arctan2(back @ b, back @ a))) + _ASIDE
            elevation = float(np.clip(np.degrees(np.arcsin(np.clip(back @ up, -1.0, 1.0))) + _ABOVE, *_ELEVATIONS))
            # Far enough back for the cameras to be in front of the eye, unless that makes the scene small.
            behind = float((cameras @ back).max()) / _BACK
            reach = min(max(reach, _IN_FRONT * behind), _SMALLEST * reach)
        elif len(cameras):
            reach = max(reach, _NEARER * float(np.linalg.norm(cameras, axis=1).max()))
        return Start(centre, max(reach, 1e-9), azimuth, elevation)

    @property
    def tone(self) -> str:
        """Of the verdict: that on a part of the images does not look like that on all."""
        return "no" if not self.accepted else "part" if self.left_out or len(self.failing) else "yes"

    @property
    def flags(self) -> tuple[str, ...]:
        """What is to be said of each camera; nothing of those that agree."""
        failing, joint = set(self.failing.tolist()), set(self.joint.tolist()) if self.accepted is False else set()
        words = (
            ("does not agree" if k in failing else "weakest joint" if k in joint else "") for k in range(len(self.tips))
        )
        return tuple(words)

    @property
    def worst_first(self) -> list[int]:
        """The cameras: those that do not agree, those of the weakest joint, the others, each by falling residual."""
        rank = {"does not agree": 0, "weakest joint": 1, "": 2}
        keys = [(rank[flag], -(residual or 0.0)) for flag, residual in zip(self.flags, self.residuals, strict=True)]
        return sorted(range(len(keys)), key=keys.__getitem__)

    @property
    def size(self) -> float:
        """Length of a pyramid: small against the scene, and against the distance to the next camera."""
        extent = float(np.linalg.norm(np.ptp(self.core, axis=0)))
        centres = self.model.centres
        if len(centres) < 2:
            return 0.06 * extent
        step = max(1, len(centres) // 200)
        some = np.linalg.norm(centres[::step, None] - centres[None], axis=2)
        nearest = np.median(np.partition(some, 1, axis=1)[:, 1])
        return float(np.clip(0.5 * nearest, 0.015 * extent, 0.06 * extent))

    def edges(self) -> list[tuple[int, int, float]]:
        """Images that share most, with their share of the largest number shared."""
        upper = without_diagonal(self.sharing)
        pairs: dict[tuple[int, int], float] = {}
        for k in range(len(self.model.images)):
            row = slice(upper.indptr[k], upper.indptr[k + 1])
            best = np.argsort(upper.data[row])[::-1][:NEIGHBOURS]
            for other, count in zip(upper.indices[row][best], upper.data[row][best], strict=True):
                if count > 0:
                    pairs[(min(k, int(other)), max(k, int(other)))] = float(count)
        most = max(pairs.values(), default=1.0)
        ranked = sorted(pairs.items(), key=lambda item: -item[1])[:_MOST_EDGES]
        return [(i, j, round(count / most, 3)) for (i, j), count in ranked]

    def joint_edges(self) -> list[tuple[int, int]]:
        """Pairs of images across the weakest joint that share landmarks, those that share most."""
        if not len(self.joint):
            return []
        inside = np.zeros(len(self.model.images), dtype=bool)
        inside[self.joint] = True
        found = self.sharing[self.joint].tocoo()
        rows, columns, counts = self.joint[found.coords[0]], found.coords[1], found.data
        across = (~inside[columns]) & (counts > 0)
        order = np.argsort(-counts[across], kind="stable")[:_JOINT_EDGES]
        return [(int(i), int(j)) for i, j in zip(rows[across][order], columns[across][order], strict=True)]

    def to_json(self, landmarks: int, steps: int, step_landmarks: int) -> dict[str, Any]:
        """What `panel.js` reads, with at most so many landmarks and steps."""
        model, core = self.model, self.core
        box, start = Box.around(core, _BOX), self.start
        every = max(1, -(-len(model.ids) // landmarks))
        kept = slice(None, None, every)
        moments = self.steps.thinned(steps, step_landmarks) if self.steps is not None and len(self.steps) else None
        order = np.argsort(model.ids[kept], kind="stable")
        return {
            "box": box.to_json(),
            "up": list(self.up),
            "centre": [float(f"{v:.5g}") for v in start.centre],
            "reach": float(f"{start.reach:.5g}"),
            "from": [round(start.azimuth, 2), round(start.elevation, 2)],
            "size": float(f"{self.size:.4g}"),
            "shape": [[round(float(v), 3) for v in row] for row in self.shape],
            "models": [_packed(one, box, kept if one is model else slice(None)) for one in self._models(landmarks)],
            "colourings": [_colouring(one, kept) for one in self.colourings],
            "edges": self.edges(),
            "joint": [int(k) for k in self.joint],
            "joint_edges": self.joint_edges(),
            "joint_shown": self.accepted is False,
            "failing": [int(k) for k in self.failing],
            "tips": list(self.tips),
            "flags": list(self.flags),
            "residuals": [None if v is None else round(v, 3) for v in self.residuals],
            "worst_first": self.worst_first,
            "left_out": list(self.left_out),
            "thing": self.thing,
            "names_shown": self.names_shown,
            "floor": [[float(f"{v:.6g}") for v in (*a, *b)] for a, b in self.floor_lines()],
            "frame_words": self.frame_words,
            "steps": [] if moments is None else _moments(moments, model.images, box),
            "step_rows": None if moments is None else _rows(model.ids[kept], order, moments.ids),
        }

    def _models(self, landmarks: int) -> list[Model]:
        if self.other is None:
            return [self.model]
        every = max(1, -(-len(self.other.ids) // landmarks))
        return [self.model, replace(self.other, xyz=self.other.xyz[::every], ids=self.other.ids[::every])]


def _packed(model: Model, box: Box, kept: slice) -> dict[str, Any]:
    return {
        "name": model.name,
        "names": list(model.images),
        "centres": encoded(box.places(model.centres)),
        "turns": encoded(turns(model.R)),
        "points": encoded(box.places(model.xyz[kept])),
    }


def _colouring(one: Colouring, kept: slice) -> dict[str, Any]:
    scale = list(SCALE) if one.low else None
    return {"name": one.name, "rgb": encoded(one.rgb[kept]), "low": one.low, "high": one.high, "scale": scale}


def _moments(steps: Steps, images: tuple[str, ...], box: Box) -> list[dict[str, Any]]:
    at = {name: k for k, name in enumerate(steps.names)}
    order = np.array([at.get(name, -1) for name in images])
    centres = box.places(np.where((order < 0)[:, None], np.nan, steps.centres[:, order]))
    R, points = turns(steps.R[:, order]), box.places(steps.xyz)
    found = []
    for k in range(len(steps)):
        cost = float(f"{steps.cost[k]:.5g}") if np.isfinite(steps.cost[k]) else None
        places = {"centres": encoded(centres[k]), "turns": encoded(R[k]), "points": encoded(points[k])}
        found.append({"stage": steps.stages[k], "index": int(steps.index[k]), "cost": cost, **places})
    return found


def _rows(shown: Index, order: Index, ids: Index) -> list[int]:
    """Where the landmarks of the steps are among those shown; -1: they are not."""
    at = np.clip(np.searchsorted(shown[order], ids), 0, max(len(shown) - 1, 0))
    if not len(shown):
        return [-1] * len(ids)
    return np.where(shown[order][at] == ids, order[at], -1).tolist()


def model_of(model: pycolmap.Reconstruction, name: str, most: int | None = None) -> Model:
    """Cameras by image id, and landmarks, evenly spaced ones where there are more than `most`."""
    images = [model.images[k] for k in sorted(model.images) if model.images[k].has_pose]
    poses = [image.cam_from_world() for image in images]
    R = np.array([pose.rotation.matrix() for pose in poses]).reshape(-1, 3, 3)
    t = np.array([pose.translation for pose in poses]).reshape(-1, 3)
    ids = np.array(sorted(model.points3D), dtype=np.int64)
    if most is not None:
        ids = ids[:: max(1, -(-len(ids) // most))]
    xyz = np.array([model.points3D[k].xyz for k in ids.tolist()]).reshape(-1, 3)
    return Model(name, tuple(image.name for image in images), R, -np.einsum("nji,nj->ni", R, t), ids, xyz)


def scene_of(
    model: pycolmap.Reconstruction,
    run: dict[str, Any],
    *,
    steps: Steps | None = None,
    sharing: csr_array | None = None,
    most: int = 20_000,
) -> Scene:
    """The scene of a written model and its run.json (empty where there is none).

    `sharing` (images x images, by image id) is counted from the landmarks shown where it is not given.
    """
    shown = model_of(model, "model", most)
    images = [model.images[k] for k in sorted(model.images) if model.images[k].has_pose]
    at = {image.image_id: k for k, image in enumerate(images)}
    cameras = [model.cameras[image.camera_id] for image in images]
    focal = np.array([camera.mean_focal_length() for camera in cameras])
    shape = np.array([[0.5 * camera.width, 0.5 * camera.height] for camera in cameras]).reshape(-1, 2) / focal[:, None]
    points = [model.points3D[k] for k in shown.ids.tolist()]
    seen = [np.array([at[e.image_id] for e in point.track.elements if e.image_id in at], dtype=np.int64) for point in points]
    if sharing is None:
        rows = np.repeat(np.arange(len(seen)), [len(one) for one in seen])
        columns = np.concatenate([np.empty(0, dtype=np.int64), *seen])
        matrix = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(seen), len(images)))
        sharing = csr_array(matrix.T @ matrix)
    name = {image: k for k, image in enumerate(shown.images)}
    certificate, frame = run.get("certificate") or {}, run.get("frame") or {}
    joint = [name[one] for one in (run.get("weakest_joint") or {}).get("images", []) if one in name]
    failing = [name[one] for one in certificate.get("failing", []) if one in name]
    dropped = ((run.get("problem") or {}).get("dropped") or {}).get("images", [])
    return Scene(
        model=shown,
        shape=np.clip(shape, 0.05, 2.5),
        colourings=_colourings(points, seen, shown, focal, run),
        sharing=sharing,
        tips=tuple(_tip(image, run) for image in shown.images),
        residuals=_residuals(shown.images, points, seen, run),
        joint=np.array(joint, dtype=np.int64),
        failing=np.array(failing, dtype=np.int64),
        left_out=tuple(dropped),
        verdict=str(run.get("verdict") or certificate.get("reason") or ""),
        accepted=certificate.get("accepted"),
        steps=steps,
        up=(0.0, 0.0, 1.0) if frame.get("z_up") else (0.0, -1.0, 0.0),
        floor=frame.get("floor"),
        unit=bool(frame.get("unit")),
        thing="camera" if (run.get("problem") or {}).get("array") else "image",
    )


def _residuals(
    images: tuple[str, ...], points: list[Any], seen: list[Index], run: dict[str, Any]
) -> tuple[float | None, ...]:
    """Those of the run; of another program's model the mean of what it says of the landmarks of each image."""
    reports = run.get("cameras") or {}
    if any((reports.get(name) or {}).get("mean_pixels") is not None for name in images):
        return tuple((reports.get(name) or {}).get("mean_pixels") for name in images)
    camera = np.concatenate([np.empty(0, dtype=np.int64), *seen])
    error = np.repeat([point.error for point in points], [len(one) for one in seen])
    known = np.isfinite(error) & (error > 0.0)
    count = np.bincount(camera[known], minlength=len(images))
    total = np.bincount(camera[known], weights=error[known], minlength=len(images))
    return tuple(float(t / n) if n else None for t, n in zip(total, count, strict=True))


def _tip(image: str, run: dict[str, Any]) -> str:
    report = (run.get("cameras") or {}).get(image)
    if not report:
        return image
    words = [image, f"{report['detections']} detections, {report['wrong']} wrong"]
    if report["mean_pixels"] is not None:
        words.append(f"mean error {report['mean_pixels']:.2g} px")
    if report["rotation_degrees"] is not None and report["centre_share_of_extent"] is not None:
        words.append(f"± {report['rotation_degrees']:.2g}°, ± {100.0 * report['centre_share_of_extent']:.2g}% of the extent")
    return "\n".join(words)


def _colourings(
    points: list[Any], seen: list[Index], model: Model, focal: Array, run: dict[str, Any]
) -> tuple[Colouring, ...]:
    """Source colour where there is one, residual, track length, uncertainty."""
    if not points:
        return (Colouring("nothing", np.empty((0, 3), dtype=np.uint8)),)
    source = np.array([point.color for point in points], dtype=np.uint8).reshape(-1, 3)
    residual = np.array([point.error for point in points], dtype=np.float64)
    length = np.array([len(one) for one in seen], dtype=np.float64)
    noise = float((run.get("uncertainty") or {}).get("noise_pixels") or max(float(np.median(residual)) / 1.2, 1e-3))
    uncertainty = 100.0 * noise * unit_deviations(seen, model, focal) / extent_of(model)
    found = [
        _scaled("residual", residual, "px"),
        _scaled("track length", length, "images"),
        _scaled("uncertainty", uncertainty, "% of the extent"),
    ]
    if (source != np.array(GREY, dtype=np.uint8)).any():
        found.insert(0, Colouring(SOURCE, source))
    else:
        found.insert(0, _shaded(model, z_up=bool((run.get("frame") or {}).get("z_up"))))
    return tuple(found)


def _shaded(model: Model, *, z_up: bool) -> Colouring:
    """By depth where the cameras look one way, else by height: shape for the eye where no colours are known."""
    ahead = model.R[:, 2].mean(axis=0)
    if np.linalg.norm(ahead) > _ONE_WAY:
        axis = ahead / np.linalg.norm(ahead)
        return _scaled("depth", (model.xyz - model.centres.mean(axis=0)) @ axis, "")
    return _scaled("height", model.xyz[:, 2] if z_up else -model.xyz[:, 1], "")


def _scaled(name: str, values: Array, unit: str) -> Colouring:
    finite = values[np.isfinite(values)]
    low, high = (0.0, 1.0) if not len(finite) else np.quantile(finite, (0.02, 0.98)).tolist()
    return Colouring(name, coloured(values, low, high), f"{low:.2g}", f"{high:.2g} {unit}".strip())


def extent_of(model: Model) -> float:
    """Median distance of landmarks, or of cameras, from their middle, whichever is larger."""
    spreads = [
        float(np.median(np.linalg.norm(points - np.median(points, axis=0), axis=1)))
        for points in (model.xyz, model.centres)
        if len(points)
    ]
    return max(*spreads, 1e-9)


def unit_deviations(seen: list[Index], model: Model, focal: Array) -> Array:
    """Standard deviation of every landmark's place for one pixel of noise, its cameras being held.

    An observation at distance d and focal length f determines the two directions across its ray v to d/f: the landmark's
    information matrix is the sum of (f/d)² (I - v v').
    """
    camera = np.concatenate([np.empty(0, dtype=np.int64), *seen])
    landmark = np.repeat(np.arange(len(seen)), [len(one) for one in seen])
    ray = model.xyz[landmark] - model.centres[camera]
    distance = np.maximum(np.linalg.norm(ray, axis=1), 1e-100)  # of which the square is a number
    v = ray / distance[:, None]
    information = ((focal[camera] / distance) ** 2)[:, None, None] * (np.eye(3) - v[:, :, None] * v[:, None, :])
    summed = np.zeros((len(seen), 3, 3))
    np.add.at(summed, landmark, information)
    values = np.linalg.eigvalsh(summed)
    with np.errstate(divide="ignore"):
        return np.sqrt(np.sum(1.0 / np.maximum(values, 1e-300), axis=1))
