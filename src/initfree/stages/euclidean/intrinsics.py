"""Levenberg-Marquardt over poses, landmarks and the intrinsics of any COLMAP camera model, in pixels of the images.

The other Euclidean stage knows f, k1 and k2 in normalised coordinates, with derivatives by hand, and is what starts need.
This one ends a reconstruction: residual img_from_cam(R X + t) - keypoint, the camera models pycolmap's, weak priors about
the given intrinsics.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from initfree.data.tracks import Array, Index, Tracks
from initfree.engine import threads
from initfree.engine.factorisation import Factorisation, factorisation
from initfree.engine.levenberg_marquardt import Convergence, LMConfig, gradient_cosine
from initfree.engine.losses import LeastSquares
from initfree.engine.robust_stage import RobustStage
from initfree.errors import InputError
from initfree.stages.euclidean import kernels
from initfree.stages.euclidean.layout import Layout, MergedPairs
from initfree.stages.euclidean.lenses import Deviations, Lenses, Prior
from initfree.stages.euclidean.opencv_lenses import projection
from initfree.stages.euclidean.system import LensSystem

WEAK = Deviations()
SHORT = LMConfig(max_iterations=50, tolerance=1e-6)
"""a reconstruction that fits already needs four to twelve steps"""
_FIXED = 1e60
"""1/σ² of what does not move"""


@dataclass(frozen=True)
class View:
    """Cameras, with their lenses, and landmarks."""

    R: Array
    """(cameras, 3, 3), world to camera, or to the frame that carries it (`layout`)"""
    t: Array
    """(cameras, 3)"""
    xyz: Array
    """(landmarks, 3)"""
    lenses: Lenses

    def points(self, tracks: Tracks) -> Array:
        """R X + t of every observation."""
        x = np.empty((tracks.observations, 3))
        threads.run(kernels.points, tracks.ptr, tracks.ptr, tracks.cam, self.R, self.t, self.xyz, x)
        return x


@dataclass(frozen=True)
class _Trial:
    view: View
    squared: Array
    cost: float
    predicted: float
    step: float


class IntrinsicsAdjustment(RobustStage):
    """Minimise 1/2 sum ρ(w |r|²) + 1/2 sum ((θ - θ0)/σ)² over poses, landmarks and the free parameters of the lenses.

    Two focal lengths of a lens have a prior of their ratio too, (fx/fx0 - fy/fy0)/σ.

    Damping as in `EuclideanAdjustment`: λ diag(J'J) for cameras and lenses, λ times the mean diagonal for a landmark.
    """

    def __init__(
        self, tracks: Tracks, keypoints: Array, view: View, *, prior: Prior | None = None, weight: Array | None = None,
        layout: Layout | None = None,
    ) -> None:  # fmt: skip
        """`keypoints` (observations, 2) in pixels; a `weight` of zero switches an observation off.

        `prior`: by default weak and about the lenses that `view` begins with. `layout`: by default all images and landmarks
        move, each by itself.
        """
        prior = view.lenses.prior(WEAK) if prior is None else prior
        if len(view.lenses.lens) != tracks.cameras:
            raise InputError(f"{len(view.lenses.lens)} images have a lens; expected {tracks.cameras}")
        self._tracks = tracks
        self._weight = np.ones(tracks.observations) if weight is None else np.asarray(weight, dtype=np.float64)
        self._projection = projection(view.lenses, tracks.cam, keypoints)
        self.view = view
        self._layout = Layout.of_images(tracks.cameras, tracks.landmarks) if layout is None else layout
        free, numbers = ~self._layout.still, view.lenses.numbers
        poses = self._poses = 6 * int(np.count_nonzero(free))
        place = poses + np.concatenate([[0], np.cumsum(numbers)])
        # Rows of all free numbers, and one for fixed ones and for those that lenses with fewer than others do not have.
        size = int(place[-1]) + 1
        first = np.where(free, 6 * (np.cumsum(free) - 1), size - 1)[self._layout.frame]
        pose = np.minimum(first[:, None] + np.arange(6), np.where(first < poses, size, size - 1)[:, None])
        self._column = np.concatenate([pose, _columns(view.lenses.lens, place, numbers)], axis=1)
        self._given = prior.about
        self._prior = np.zeros(size)
        self._prior[poses:-1] = prior.deviation**-2.0
        self._prior[-1] = _FIXED
        pairs = view.lenses.aspects
        self._aspects = poses + pairs
        self._per_focal = np.array([1.0, -1.0]) / (prior.aspect * self._given[pairs])
        self._squared = self._evaluate(view)
        self._linear: tuple[Array, Array, Array, Array] = (np.empty(0), np.empty(0), np.empty(0), np.empty(0))
        self._irls = self._weight

    @cached_property
    def _system(self) -> LensSystem:
        return LensSystem(self._tracks, self._column.shape[1] - 6)

    @cached_property
    def _merged(self) -> MergedPairs | None:
        """Where images have all their numbers in common."""
        return (
            MergedPairs(self._system.pairs, self._column)
            if len(np.unique(self._column, axis=0)) < len(self._column)
            else None
        )

    @cached_property
    def _factorisation(self) -> Factorisation:
        merged = self._merged
        pairs, column = (self._system.pairs, self._column) if merged is None else (merged.pairs, merged.column)
        return factorisation(pairs, column, len(self._prior))

    def _evaluate(self, view: View) -> Array:
        """Weighted squared residuals."""
        return self._weight * self._squared_residuals(view)

    def _squared_residuals(self, view: View) -> Array:
        x = self._layout.seen(view.points(self._tracks), self._tracks.cam)
        return self._projection.squared_residuals(view.lenses, x)

    def release(self) -> None:
        """Let go of what takes steps: beside several fits of one problem it would be most of the memory."""
        for name in ("_system", "_merged", "_factorisation"):
            self.__dict__.pop(name, None)
        self._linear = (np.empty(0), np.empty(0), np.empty(0), np.empty(0))

    def _departure(self, lenses: Lenses) -> Array:
        """θ - θ0 at its place in the reduced system; zero for poses."""
        result = np.zeros(len(self._prior))
        result[self._poses : -1] = lenses.values - self._given
        return result

    def _cost(self, view: View, squared: Array) -> float:
        departure = self._departure(view.lenses)
        ratio = np.sum(self._per_focal * departure[self._aspects], axis=1)
        held = float(self._prior @ departure**2 + ratio @ ratio)
        if self._layout.positions is not None:
            off = self._layout.misplaced(view.R, view.t)
            held += float(np.einsum("ni,nij,nj->", off, self._layout.positions.information, off))
        return self._loss.total(squared) + 0.5 * held

    def linearise(self) -> float:
        y, cam = self.view.points(self._tracks), self._tracks.cam
        residual, by_x, by_lens = self._projection.linearised(self.view.lenses, self._layout.seen(y, cam))
        self._linear = y, residual, self._layout.by_frame(by_x, cam), by_lens
        self._irls = self._weight
        if not isinstance(self._loss, LeastSquares):
            self._irls = self._weight * self._loss.weights(self._squared)
        return self._cost(self.view, self._squared)

    def gradient_cosine(self) -> float:
        # Of the poses: lenses that the images do not determine are held by their prior alone.
        self._assemble(0.0)
        gradient, diagonal = (self._fold(each)[: self._poses] for each in (self._system.gradient, self._system.diagonal))
        return gradient_cosine(gradient, diagonal, self._cost(self.view, self._squared))

    def _assemble(self, damping: float) -> None:
        """The system of observations and known positions; priors of lenses come to the sum."""
        self._system.assemble(self.view.R, self._linear, self._irls, damping, self._layout.still_landmarks)
        positions = self._layout.positions
        if positions is not None:
            gradient, block = self._layout.pulls(self.view.R, self.view.t)
            np.add.at(self._system.gradient[:, :6], positions.image, gradient)
            np.add.at(self._system.blocks[:, :6, :6], self._system.pairs.diagonal[positions.image], block)
            np.add.at(self._system.diagonal[:, :6], positions.image, np.einsum("nss->ns", block))

    def _fold(self, by_slot: Array) -> Array:
        """Sum of (cameras, slots) over the cameras that share a number."""
        result = np.zeros(len(self._prior))
        np.add.at(result, self._column, by_slot)
        return result

    def _add_aspects(self) -> None:
        """What the priors of two focal lengths' ratio have off the diagonal, in the block of a camera with that lens."""
        for (x, y), (by_x, by_y) in zip(self._aspects, self._per_focal, strict=True):
            camera = int(np.argmax((self._column == x).any(axis=1)))
            block = self._system.blocks[self._system.pairs.diagonal[camera]]
            p, q = (int(np.argmax(self._column[camera] == row)) for row in (x, y))
            block[p, q] += by_x * by_y
            block[q, p] += by_x * by_y

    def attempt(self, damping: float) -> _Trial | None:
        t, view = self._tracks, self.view
        self._assemble(damping)
        self._add_aspects()
        departure = self._departure(view.lenses)
        gradient, held = self._fold(self._system.gradient) + self._prior * departure, self._prior.copy()
        ratio = np.sum(self._per_focal * departure[self._aspects], axis=1)
        gradient[self._aspects] += self._per_focal * ratio[:, None]
        held[self._aspects] += self._per_focal**2
        diagonal = self._fold(self._system.diagonal) + held
        shift = damping * np.where(diagonal > 0.0, diagonal, 1.0)
        blocks = self._system.blocks if self._merged is None else self._merged.blocks(self._system.blocks)
        if not self._factorisation.factorise(blocks, shift + held):
            return None
        step = self._factorisation.solve(-gradient)
        if not np.all(np.isfinite(step)):
            return None
        step[-1] = 0.0
        poses = step[self._column[:, :6]]
        lenses = view.lenses.at(view.lenses.values + step[self._poses : -1])
        if any(min(camera.focal_length_x, camera.focal_length_y) <= 0.0 for camera in lenses.cameras):
            return None
        turn = Rotation.from_rotvec(poses[:, :3]).as_matrix()
        xyz, gain = self._system.back_substitute(step[self._column], view.xyz)
        moved = View(turn @ view.R, (turn @ view.t[:, :, None])[:, :, 0] + poses[:, 3:], xyz, lenses)
        R, shifts = self._layout.poses(moved.R, moved.t)
        threads.run(kernels.stay_in_front, t.ptr, t.ptr, t.cam, self._weight, R, shifts, view.xyz, moved.xyz)
        predicted = 0.5 * float(shift @ step**2 - gradient @ step) + gain
        squared = self._evaluate(moved)
        return _Trial(moved, squared, self._cost(moved, squared), predicted, float(np.linalg.norm(step)))

    def accept(self, trial: _Trial) -> None:
        self.view, self._squared = trial.view, trial.squared

    @property
    def used(self) -> Array:
        """Weights of the observations, as given."""
        return self._weight

    @property
    def data_cost(self) -> float:
        """The cost without priors."""
        return self._loss.total(self._squared)

    @property
    def unknowns(self) -> int:
        """Free numbers, less the seven of the gauge; landmarks that nothing holds do not count."""
        t = self._tracks
        held = np.bincount(t.landmark, weights=self._weight > 0.0, minlength=t.landmarks) > 0
        return len(self._prior) - 1 + 3 * int(np.count_nonzero(held)) - 7

    @property
    def unusable(self) -> NDArray[np.bool_]:
        """(observations,) at or behind their camera, or beyond the worst error: they have no derivative."""
        x = self._layout.seen(self.view.points(self._tracks), self._tracks.cam)
        _, by_x, _ = self._projection.linearised(self.view.lenses, x)
        return np.logical_not(by_x.any(axis=(1, 2)))

    @property
    def squared_residuals(self) -> Array:
        """|r|² of every observation in pixels², without loss and weight."""
        return self._squared_residuals(self.view)


def _columns(lens: Index, place: Index, numbers: Index) -> Index:
    """(cameras, most numbers): rows of a camera's lens; the last row of all where it has fewer."""
    most = max(int(numbers.max(initial=0)), 1)
    of_lens = np.where(np.arange(most) < numbers[:, None], place[:-1, None] + np.arange(most), place[-1])
    return of_lens[lens].astype(np.int64)


def refine(
    tracks: Tracks,
    keypoints: Array,
    view: View,
    *,
    scales: Sequence[float] = (4.0,),
    prior: Prior | None = None,
    weight: Array | None = None,
    limits: LMConfig = SHORT,
) -> tuple[IntrinsicsAdjustment, Convergence]:
    """Adjust under Cauchy losses of `scales` pixels in turn; the stage, whose `view` is the result, and the history."""
    own = replace(view, **{name: np.array(getattr(view, name), dtype=np.float64, order="C") for name in ("R", "t", "xyz")})
    stage = IntrinsicsAdjustment(tracks, keypoints, own, prior=prior, weight=weight)
    convergence = stage.minimise_graduated(limits, scales)
    stage.release()
    return stage, convergence
