"""The way of a solve: cameras and some landmarks after each accepted step, few and small enough to be always kept.

Stages before the metric upgrade move projective cameras. Any projective frame shows the same reconstruction, so their steps
are shown in the frame that the upgrade chose at the end, X = H X_metric, each turned, moved and scaled onto the final scene
(their own scale and place drift and mean nothing): what is seen is how its shape came about.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from initfree.data.reconstruction import Reconstruction, nearest_rotation
from initfree.data.tracks import Array, Index
from initfree.evaluation import similarity

LANDMARKS = 1200
"""kept of every step, evenly spaced among all"""
STEPS = 48
"""kept of every stage at most; of more, every second, every fourth ..., and the last"""

Single = NDArray[np.float32]
Snapshot = Callable[[], tuple[Array, Array]]
"""cameras (cameras, 3, 4) and landmarks (landmarks, 3 or 4) where a stage is now"""


@dataclass(frozen=True)
class Step:
    """Cameras and landmarks after a step, in single precision."""

    index: int
    """attempted steps of the stage so far"""
    cost: float
    cameras: Single
    """(cameras, 3, 4): projective, or [R | t]"""
    landmarks: Single
    """(some landmarks, 3 or 4)"""


@dataclass
class Passage:
    """The steps of one stage."""

    stage: str
    ids: Index
    """landmarks that are kept"""
    metric: bool
    steps: list[Step] = field(default_factory=list)
    _stride: int = 1
    _seen: int = 0

    def add(self, step: Step) -> None:
        """Keep the step, or let it stand for the newest; memory stays bounded whatever the number of steps."""
        if self.steps and (self._seen - 1) % self._stride:
            self.steps[-1] = step
        else:
            self.steps.append(step)
        self._seen += 1
        if len(self.steps) > STEPS:
            self.steps = self.steps[::2]
            self._stride *= 2


@dataclass(frozen=True)
class Moment:
    """What a person sees of one step: metric cameras and landmarks; NaN where something is nowhere."""

    stage: str
    index: int
    cost: float
    R: Array
    centres: Array
    xyz: Array


class Trace:
    """Passages in the order of the stages, kept by `pipeline.State`."""

    def __init__(self) -> None:
        self.passages: list[Passage] = []

    def begin(self, stage: str, ids: Index, snapshot: Snapshot, *, metric: bool) -> Callable[[int, float], None]:
        """Keep where a stage begins; the function that is returned keeps where it is after a step, by index and cost."""
        kept = self.passages[0].ids if self.passages else ids[:: max(1, -(-len(ids) // LANDMARKS))]
        kept, _, rows = np.intersect1d(kept, ids, assume_unique=True, return_indices=True)
        passage = Passage(stage, kept, metric)
        self.passages.append(passage)

        def add(index: int, cost: float) -> None:
            P, X = snapshot()
            with np.errstate(over="ignore"):  # infinite where single precision ends: no place to show
                passage.add(Step(index, cost, P.astype(np.float32), X[rows].astype(np.float32)))

        add(0, float("nan"))
        return add

    def subset(self, cameras: Any) -> "Trace":
        """The same of some cameras."""
        of_some = Trace()
        for one in self.passages:
            steps = [replace(step, cameras=step.cameras[cameras]) for step in one.steps]
            of_some.passages.append(replace(one, steps=steps))
        return of_some

    def moments(self, upgraded: Reconstruction, final: Reconstruction) -> tuple[Index, list[Moment]]:
        """Landmark ids, and every step in the world of the final reconstruction; none where nothing can be compared.

        `upgraded` is what the metric upgrade made of the last projective step; both are labelled.
        """
        if not self.passages:
            return np.empty(0, dtype=np.int64), []
        ids = self.passages[0].ids
        goal = np.full((len(ids), 3), np.nan)
        _, mine, theirs = np.intersect1d(ids, final.ids, return_indices=True)
        goal[mine] = final.xyz[theirs]
        projective = [passage for passage in self.passages if not passage.metric]
        frame = _frame(projective[-1], upgraded) if projective else None
        found: list[Moment] = []
        for passage in self.passages:
            rows = np.searchsorted(ids, passage.ids)
            for step in passage.steps:
                P, X = step.cameras.astype(np.float64), step.landmarks.astype(np.float64)
                if passage.metric:
                    R, centres, some = P[:, :, :3], -np.einsum("nji,nj->ni", P[:, :, :3], P[:, :, 3]), X
                elif frame is not None:
                    R, centres, some = _seen_in(frame, P, X)
                else:
                    continue
                s, turn, shift = _onto(some, goal[rows])
                xyz = np.full((len(ids), 3), np.nan)
                xyz[rows] = s * some @ turn.T + shift
                found.append(Moment(passage.stage, step.index, step.cost, R @ turn.T, s * centres @ turn.T + shift, xyz))
        return ids, found


def _onto(x: Array, y: Array) -> tuple[float, Array, Array]:
    """The similarity that brings x onto y, with medians for the scale: that of least squares shrinks what is still noise."""
    both = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
    x, y = x[both], y[both]
    if len(x) < 3:
        return 1.0, np.eye(3), np.zeros(3)
    middle_x, middle_y = np.median(x, axis=0), np.median(y, axis=0)
    far_x, far_y = np.linalg.norm(x - middle_x, axis=1), np.linalg.norm(y - middle_y, axis=1)
    # A few landmarks far away must not decide.
    near = (far_x <= np.quantile(far_x, 0.8)) & (far_y <= np.quantile(far_y, 0.8))
    if np.count_nonzero(near) < 3:
        return 1.0, np.eye(3), np.zeros(3)
    _, turn, _ = similarity(x[near], y[near])
    s = float(np.median(far_y[near]) / max(float(np.median(far_x[near])), 1e-300))
    return s, turn, y[near].mean(axis=0) - s * turn @ x[near].mean(axis=0)


def _frame(last: Passage, upgraded: Reconstruction) -> Array | None:
    """G (4, 4) with X_metric ~ G X for the last projective step: linear in G, [x, 1] x G X = 0 for every landmark."""
    _, a, b = np.intersect1d(last.ids, upgraded.ids, return_indices=True)
    X, xyz = last.steps[-1].landmarks[a].astype(np.float64), upgraded.xyz[b]
    near = np.linalg.norm(xyz - np.median(xyz, axis=0), axis=1)
    good = np.isfinite(near) & (near <= np.nanquantile(near, 0.8))
    X, xyz = X[good], xyz[good]
    if len(X) < 6:
        return None
    X = X / np.linalg.norm(X, axis=1, keepdims=True)
    middle, size = xyz.mean(axis=0), max(float(xyz.std()), 1e-300)
    x = (xyz - middle) / size
    # Three equations a landmark: (G X)_k - x_k (G X)_4 = 0.
    rows = np.zeros((len(X), 3, 16))
    for k in range(3):
        rows[:, k, 4 * k : 4 * k + 4] = X
        rows[:, k, 12:] = -x[:, k : k + 1] * X
    G = np.linalg.svd(rows.reshape(-1, 16), full_matrices=False)[2][-1].reshape(4, 4)
    undo = np.diag([size, size, size, 1.0])
    undo[:3, 3] = middle
    G = undo @ G
    return G if np.isfinite(G).all() and abs(np.linalg.det(G)) > 1e-300 else None


def _seen_in(frame: Array, P: Array, X: Array) -> tuple[Array, Array, Array]:
    """R, centres and landmarks of projective cameras in a frame: the closest calibrated cameras to P G^-1."""
    Y = X @ frame.T
    with np.errstate(divide="ignore", invalid="ignore"):
        xyz = Y[:, :3] / Y[:, 3:]
    Q = P @ np.linalg.inv(frame)
    M = Q[:, :, :3]
    sign = np.where(np.linalg.det(M) < 0.0, -1.0, 1.0)
    R = nearest_rotation(M * sign[:, None, None])
    return R, -np.einsum("nij,nj->ni", np.linalg.pinv(M), Q[:, :, 3]), xyz
