"""The way of a solve as a file: trace.npz, beside the model and in its world, 16 bits a number."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from initfree.data.files import read_arrays
from initfree.data.tracks import Array, Index
from initfree.drawing.packed import Box, turns
from initfree.errors import InputError
from initfree.stages.trace import Moment

FILE = "trace.npz"
MOST = 60
"""steps in the file"""
_KINDS: dict[str, tuple[str, tuple[int | str, ...]]] = {
    "stages": ("U", ("s",)),
    "index": ("iu", ("s",)),
    "cost": ("f", ("s",)),
    "names": ("U", ("c",)),
    "ids": ("iu", ("l",)),
    "origin": ("f", (3,)),
    "side": ("f", ()),
    "turns": ("u", ("s", "c", 4)),
    "centres": ("u", ("s", "c", 3)),
    "xyz": ("u", ("s", "l", 3)),
}
"""members: kinds of number or text, and the shape for s steps of c cameras and l landmarks"""
_BOX = 6.0
"""half the box's side over the farthest camera or landmark of the end"""


@dataclass(frozen=True)
class Steps:
    """Cameras and some landmarks after every step, the first ones first; NaN where something is far outside."""

    stages: tuple[str, ...]
    index: Index
    cost: Array
    R: Array
    """(steps, cameras, 3, 3)"""
    centres: Array
    """(steps, cameras, 3)"""
    xyz: Array
    """(steps, landmarks, 3)"""
    names: tuple[str, ...]
    ids: Index

    def __len__(self) -> int:
        return len(self.index)

    def thinned(self, most: int, landmarks: int) -> "Steps":
        """Fewer steps, the first and the last among them, and fewer landmarks."""
        k = np.unique(np.linspace(0, len(self) - 1, min(most, len(self))).round().astype(int))
        every = max(1, -(-len(self.ids) // landmarks))
        stages = tuple(self.stages[i] for i in k)
        some = self.xyz[k][:, ::every]
        return Steps(stages, self.index[k], self.cost[k], self.R[k], self.centres[k], some, self.names, self.ids[::every])

    def moved(self, s: float, turn: Array, shift: Array) -> "Steps":
        """In a world that a similarity leads to."""
        centres, xyz = (s * points @ turn.T + shift for points in (self.centres, self.xyz))
        return replace(self, R=self.R @ turn.T, centres=centres, xyz=xyz)

    def write(self, path: Path) -> None:
        last = np.concatenate([self.centres[-1], self.xyz[-1]])
        last = last[np.isfinite(last).all(axis=1)]
        last = last if len(last) else np.zeros((1, 3))
        far = np.linalg.norm(last - np.median(last, axis=0), axis=1)
        box = Box.around(last[far <= np.quantile(far, 0.95)], _BOX)
        content: dict[str, Any] = {
            "stages": np.array(self.stages),
            "index": self.index,
            "cost": self.cost,
            "names": np.array(self.names),
            "ids": self.ids,
            "origin": box.origin,
            "side": np.array(box.side),
            "turns": turns(self.R),
            "centres": box.places(self.centres),
            "xyz": box.places(self.xyz),
        }
        np.savez_compressed(path, **content)

    @classmethod
    def read(cls, path: Path) -> "Steps":
        content = read_arrays(path, _KINDS)
        steps, cameras, landmarks = (content[name].size for name in ("stages", "names", "ids"))
        for name, (kinds, shape) in _KINDS.items():
            counts = {"s": steps, "c": cameras, "l": landmarks}
            expected = tuple(counts[n] if isinstance(n, str) else n for n in shape)
            found = content[name]
            if found.dtype.kind not in kinds or found.shape != expected:
                raise InputError(f"{path}: {name} has shape {found.shape} of {found.dtype}; expected {expected}")
        origin, side = content["origin"], float(content["side"])
        if not (np.isfinite(origin).all() and 0.0 < side < np.inf):
            raise InputError(f"{path}: its box is {side:g} wide at {origin.tolist()}; expected finite numbers")
        quaternions = content["turns"].astype(np.float64) / 32767.0 - 1.0
        R = Rotation.from_quat(quaternions.reshape(-1, 4)).as_matrix().reshape(*quaternions.shape[:2], 3, 3)
        return cls(
            tuple(content["stages"].tolist()),
            content["index"],
            content["cost"],
            R,
            _opened(content["centres"], origin, side),
            _opened(content["xyz"], origin, side),
            tuple(content["names"].tolist()),
            content["ids"],
        )


def _opened(steps: NDArray[np.uint16], origin: Array, side: float) -> Array:
    values = origin + side * steps.astype(np.float64) / 65534.0
    values[steps == 65535] = np.nan
    return values


def steps_of(
    ids: Index, moments: list[Moment], names: tuple[str, ...], world: tuple[float, Array, Array], most: int = MOST
) -> Steps | None:
    """The moments in a world that a similarity leads to; None where there are none."""
    if not moments:
        return None
    kept = np.unique(np.linspace(0, len(moments) - 1, min(most, len(moments))).round().astype(int))
    some = [moments[k] for k in kept]
    return Steps(
        tuple(m.stage for m in some),
        np.array([m.index for m in some]),
        np.array([m.cost for m in some]),
        np.stack([m.R for m in some]),
        np.stack([m.centres for m in some]),
        np.stack([m.xyz for m in some]),
        names,
        ids,
    ).moved(*world)
