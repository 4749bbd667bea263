"""Bundle adjustment of a model of any program: what COLMAP's does, in a fraction of its time.

Minimise 1/2 Σ ρ(|π_i(X_j) - m_ij|²) over poses of frames, points and what is free of the cameras, π any camera model of
COLMAP. No priors but those that are given: the optimum is Ceres'.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pycolmap

from initfree.certificate import Evidence
from initfree.certificate.uncertainty import Uncertainty
from initfree.data.tracks import Array, Index
from initfree.engine.levenberg_marquardt import Convergence, Iteration, LMConfig
from initfree.engine.losses import LOSSES, LeastSquares, Loss
from initfree.engine.parallel import one_blas_thread
from initfree.errors import InputError
from initfree.evaluation import similarity
from initfree.io.convert import model_of
from initfree.models.arrays import ModelArrays
from initfree.models.judged import own_problem
from initfree.stages.euclidean.intrinsics import IntrinsicsAdjustment, View
from initfree.stages.euclidean.layout import Positions
from initfree.stages.euclidean.lenses import Deviations, Lenses

Freed = Literal["focal", "distortion", "principal-point"]
LossName = Literal["squared", "cauchy", "soft-l1", "huber"]
_NO_PRIOR = Deviations(*[1e150] * 5)
_AS_PREDICTED = 0.5
"""of the decrease that a last step promised: it gained little because there was little to gain"""
LEAST_POSITIONS = 3
"""known places that a model is turned and scaled by before they pull at it"""


@dataclass(frozen=True)
class Known:
    """Where an image's centre is known to be."""

    centre: tuple[float, float, float]
    deviation: float = 1.0
    """standard deviation of each coordinate, in the unit of the centre"""


@dataclass(frozen=True)
class AdjustOptions:
    """What is free, under which loss, and when to stop; the defaults are COLMAP's."""

    free: tuple[Freed, ...] = ("focal", "distortion")
    """of the cameras' intrinsics"""
    loss: LossName = "squared"
    scale: float = 1.0
    """of the loss, in pixels"""
    fix_poses: tuple[str, ...] = ()
    """images whose poses stay; of a rig, the pose of the frame"""
    fix_cameras: tuple[int, ...] = ()
    """cameras whose intrinsics stay"""
    fix_points: tuple[int, ...] = ()
    """points that stay"""
    positions: Mapping[str, Known] = field(default_factory=dict)
    """by image name; with three or more the model is first turned, moved and scaled to them"""
    max_iterations: int = 100
    """most attempted steps"""
    tolerance: float = 1e-9
    """ends when a step lowers the cost by less than this share"""

    def __post_init__(self) -> None:
        for name in self.free:
            if name not in get_args(Freed):
                raise InputError(f"free intrinsics are {self.free}; expected some of {', '.join(get_args(Freed))}")
        if self.loss not in get_args(LossName):
            raise InputError(f"the loss is {self.loss!r}; expected one of {', '.join(get_args(LossName))}")
        if not self.scale > 0.0:
            raise InputError(f"the scale of the loss is {self.scale}; expected a positive number of pixels")
        if not all(known.deviation > 0.0 and np.isfinite([*known.centre]).all() for known in self.positions.values()):
            raise InputError("a known position has no positive deviation or no finite centre; expected both")

    @classmethod
    def like(cls, options: pycolmap.BundleAdjustmentOptions) -> "AdjustOptions":
        """What `pycolmap.bundle_adjustment` would do with these options; sensors stay where they are in their rigs."""
        if not (options.refine_rig_from_world and options.refine_points3D):
            raise InputError("poses or points are all constant in the options; expected them to be refined")
        refined: dict[Freed, bool] = {
            "focal": options.refine_focal_length,
            "distortion": options.refine_extra_params,
            "principal-point": options.refine_principal_point,
        }
        free: tuple[Freed, ...] = tuple(name for name, moves in refined.items() if moves)
        kind = options.ceres.loss_function_type
        names: dict[Any, LossName] = {
            pycolmap.LossFunctionType.TRIVIAL: "squared",
            pycolmap.LossFunctionType.CAUCHY: "cauchy",
            pycolmap.LossFunctionType.SOFT_L1: "soft-l1",
            pycolmap.LossFunctionType.HUBER: "huber",
        }
        steps = options.ceres.solver_options.max_num_iterations
        return cls(free, names[kind], options.ceres.loss_function_scale, max_iterations=steps)

    @property
    def robust(self) -> Loss:
        """The loss itself."""
        return LeastSquares() if self.loss == "squared" else LOSSES[self.loss](self.scale)


@dataclass(frozen=True, eq=False)
class Adjusted:
    """An adjusted model, and how it came about."""

    model: pycolmap.Reconstruction
    convergence: Convergence
    observations: int
    behind: int
    """observations that begin behind their camera or beyond twice its focal length, which neither pull nor cost"""
    _free: bool

    @property
    def initial_cost(self) -> float:
        """1/2 of the (robust) sum of squared residuals before, priors included."""
        return self.convergence.initial_cost

    @property
    def cost(self) -> float:
        """The same after."""
        return self.convergence.cost

    @property
    def steps(self) -> tuple[Iteration, ...]:
        return tuple(self.convergence.history)

    @cached_property
    def deviations(self) -> dict[str, tuple[float, float, float]]:
        """By image name one standard deviation of its rotation (degrees), its centre (share of the scene's extent) and its
        focal length (share; zero where intrinsics were not free), against the model as a whole."""
        problem, reconstruction = own_problem(self.model, "found" if self._free else "known")
        with one_blas_thread():
            u: Uncertainty = Evidence(problem, reconstruction).uncertainty
        values = zip(u.rotation.tolist(), u.centre.tolist(), u.focal.tolist(), strict=True)
        return dict(zip(problem.names, values, strict=True))

    def __repr__(self) -> str:
        steps, cost = len(self.steps), self.convergence
        return f"Adjusted({self.observations} observations, cost {cost.initial_cost:.6g} to {cost.cost:.6g}, {steps} steps)"


def adjust(
    model: pycolmap.Reconstruction | str | Path,
    options: AdjustOptions | pycolmap.BundleAdjustmentOptions | None = None,
) -> Adjusted:
    """Adjust a reconstruction to its own observations, as `pycolmap.bundle_adjustment` does, in a fraction of its time.

    All camera models of COLMAP, cameras that images share, rigs whose sensors stay where they are. Every registered image
    takes part.

    Args:
        model: A pycolmap.Reconstruction, which stays as it is, or a path that `initfree convert` reads.
        options: What is free, under which loss; COLMAP's own options are taken too.
    """
    if options is None:
        options = AdjustOptions()
    elif isinstance(options, pycolmap.BundleAdjustmentOptions):
        options = AdjustOptions.like(options)
    with one_blas_thread():
        return _adjust(model if isinstance(model, pycolmap.Reconstruction) else model_of(Path(model)), options)


def _adjust(model: pycolmap.Reconstruction, options: AdjustOptions) -> Adjusted:
    arrays = ModelArrays.of(model)
    lenses = _lenses(model, arrays.camera_ids, options)
    still = np.zeros(len(arrays.frame_ids), dtype=bool)
    still[arrays.frame[_numbers(arrays.names, options.fix_poses, "image")]] = True
    still_landmarks = np.isin(arrays.point_ids, np.array(options.fix_points, dtype=np.int64))
    if np.count_nonzero(still_landmarks) < len(set(options.fix_points)):
        missing = sorted(set(options.fix_points) - set(arrays.point_ids.tolist()))
        raise InputError(f"the model has no point {missing[0]} with observations; expected ids of its points")
    layout, view = arrays.layout(still, still_landmarks), arrays.view(lenses)
    if options.positions:
        if still.any() or still_landmarks.any():
            raise InputError("positions are known and poses or points are constant; expected one of the two")
        positions = _positions(arrays.names, options.positions)
        layout, view = replace(layout, positions=positions), _aligned(view, layout.poses(view.R, view.t), positions)
    prior = lenses.prior(_NO_PRIOR)
    stage = IntrinsicsAdjustment(arrays.tracks, arrays.keypoints, view, prior=prior, layout=layout)
    if (unusable := stage.unusable).any():
        # As in Ceres they cost nothing: a constant would hide what the others gain from the tolerance.
        used = np.where(unusable, 0.0, 1.0)
        stage = IntrinsicsAdjustment(arrays.tracks, arrays.keypoints, view, prior=prior, layout=layout, weight=used)
    limits = LMConfig(options.max_iterations, options.tolerance, check_plateau=False)
    convergence = stage.minimise(limits, options.robust)
    last = convergence.history[-1] if convergence.history else None
    if convergence.reason == "plateau" and last is not None and last.accepted and last.gain_ratio > _AS_PREDICTED:
        convergence.reason = "converged"
    stage.release()
    if not np.isfinite(convergence.cost):
        raise InputError(
            f"the cost of the model is {convergence.cost}; expected poses and points that observations can pull"
        )
    return Adjusted(
        arrays.written(model, stage.view),
        convergence,
        arrays.tracks.observations,
        int(np.count_nonzero(unusable)),
        bool(options.free),
    )


def _lenses(model: pycolmap.Reconstruction, camera_ids: Index, options: AdjustOptions) -> Lenses:
    ids, lens = np.unique(camera_ids, return_inverse=True)
    unknown = sorted(set(options.fix_cameras) - set(model.cameras))
    if unknown:
        raise InputError(f"the model has no camera {unknown[0]}; expected ids of its cameras")
    cameras = tuple(model.cameras[int(k)] for k in ids)
    free = tuple(() if int(k) in options.fix_cameras else _free(c, options) for k, c in zip(ids, cameras, strict=True))
    return Lenses(cameras, lens.astype(np.int64), free)


def _free(camera: pycolmap.Camera, options: AdjustOptions) -> tuple[int, ...]:
    chosen: list[int] = []
    chosen += camera.focal_length_idxs() if "focal" in options.free else []
    chosen += camera.extra_params_idxs() if "distortion" in options.free else []
    chosen += camera.principal_point_idxs() if "principal-point" in options.free else []
    return tuple(sorted(int(k) for k in chosen))


def _numbers(names: tuple[str, ...], chosen: Sequence[str], what: str) -> Index:
    place = {name: k for k, name in enumerate(names)}
    missing = [name for name in chosen if name not in place]
    if missing:
        raise InputError(f"the model has no registered {what} named {missing[0]!r}; expected names of its images")
    return np.array([place[name] for name in chosen], dtype=np.int64)


def _positions(names: tuple[str, ...], known: Mapping[str, Known]) -> Positions:
    image = _numbers(names, list(known), "image")
    centre = np.array([one.centre for one in known.values()], dtype=np.float64)
    information = np.array([np.eye(3) / one.deviation**2 for one in known.values()])
    return Positions(image, centre, information)


def _aligned(view: View, poses: tuple[Array, Array], positions: Positions) -> View:
    """The view moved as a whole to the known centres: a pull from afar would tear it apart first."""
    R, t = poses
    centres = -np.einsum("nji,nj->ni", R, t)[positions.image]
    if len(centres) < LEAST_POSITIONS or np.ptp(centres, axis=0).max() == 0.0:
        return view
    s, turn, shift = similarity(centres, positions.centre)
    if s <= 0.0:
        raise InputError(
            "the known positions and the model's have no similarity in common; expected places that are not one"
        )
    moved = view.R @ turn.T
    return replace(view, R=moved, t=s * view.t - (moved @ shift), xyz=s * view.xyz @ turn.T + shift)
