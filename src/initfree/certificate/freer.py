"""Freer camera models: whether they fit better, and whether they move the cameras.

All starts share a camera model: a given or found lens, one camera for many images. A wrong model bends all of them alike,
with small residuals if poses and landmarks can compensate. So the reconstruction is also adjusted with more free
parameters. Two figures result: the significance of the better fit,

    2 (E - E') / σ²,      squared deviations of the noise, χ² with one degree of freedom for each added parameter,

and the movement of the cameras by the paper's metrics. Neither suffices alone: real lenses never fit exactly, and cameras
of sparse right surveys move.

The freest model is an arbitrary 3x4 matrix. The excess cost of Euclidean cameras over it shows that some part of the
model is wrong.
"""

from dataclasses import dataclass, replace

import numpy as np

from initfree.certificate.closeness import closeness
from initfree.data.problem import Problem, restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.thinning import thinned
from initfree.data.tracks import Array, Index
from initfree.engine.levenberg_marquardt import NEAR, LMConfig
from initfree.engine.losses import Cauchy
from initfree.stages.euclidean import FreeIntrinsics, residuals, robust_cost
from initfree.stages.euclidean.adjustment import EuclideanAdjustment
from initfree.stages.euclidean.residuals import INLIER_PIXELS
from initfree.stages.euclidean.triangulation import triangulate
from initfree.stages.refinement.reprojection import ProjectiveRefinement, Reprojection

HELD = 1e-6
"""deviation of a held parameter: with the same number of free parameters no other kernel is compiled"""
ENOUGH = 10_000
"""observations that suffice for the movement of the cameras"""
_MOST = 0.6
"""share of the observations up to which a subset is used"""
_STEPS = 30
_TOLERANCE = 1e-5
_TURNS = 4
"""adjustments between which twists of a rolling shutter are found"""
_FIT = 0.1
"""pixels: errors that are nothing to either"""

RADIAL = FreeIntrinsics(focal=True, radial=2, focal_sigma=HELD)
"""k1 and k2 beside what the lens has, its focal length held"""
FOCAL = FreeIntrinsics(focal=True, radial=2, radial_sigma=HELD)
LENS = FreeIntrinsics(focal=True, radial=2)


@dataclass(frozen=True, eq=False)
class Freed:
    """An adjustment with more free parameters, compared with an equally long one without."""

    saved: float
    """share of the robust cost that it removes"""
    deviations: float
    """squared: 2 (E - E')/σ²"""
    rotation_auc20: float
    translation_auc20: float
    """percent, of the freer cameras against the others"""

    @property
    def closeness(self) -> float:
        """The smaller AUC@20."""
        return min(self.rotation_auc20, self.translation_auc20)

    def figures(self, name: str) -> dict[str, float]:
        """As run.json has them."""
        return {f"{name}_saved": self.saved, f"{name}_deviations": self.deviations, f"{name}_auc20": self.closeness}


def some(problem: Problem, reconstruction: Reconstruction) -> tuple[Problem, Reconstruction]:
    """The problem of a sufficient subset of landmarks, and its reconstruction."""
    keep = thinned(problem, 0, ENOUGH, worthwhile=_MOST)
    found = None if keep is None else restricted(problem, keep)
    return (problem, reconstruction) if found is None else (found[0], reconstruction.subset(slice(None), found[1]))


def settled(problem: Problem, reconstruction: Reconstruction) -> Reconstruction:
    """Adjust with the same lens and landmarks placed anew, as the reference for others."""
    state = reconstruction.contiguous()
    xyz, _ = triangulate(problem, state, state.xyz, scale=INLIER_PIXELS)
    return _adjusted(problem, replace(state, xyz=xyz), FreeIntrinsics(), problem.camera_ids)


def freed(problem: Problem, held: Reconstruction, free: FreeIntrinsics, groups: Index) -> Freed:
    """The effect of the parameters `free`, shared within `groups` of cameras, on a reconstruction that is `settled`."""
    other = _adjusted(problem, held, free, groups)
    before, after = robust_cost(problem, held), robust_cost(problem, other)
    auc = closeness(held.R, held.centres, other.R, other.centres, 20.0)
    return Freed((before - after) / max(before, 1e-300), 2.0 * (before - after) / _variance(problem, other), *auc)


def shuttered(problem: Problem, held: Reconstruction) -> Freed:
    """The effect of a rolling shutter on a reconstruction that is `settled`: rows are read one after the other.

    A camera that moves evenly meanwhile has a twist (ω, ν) in a unit of rows: a point x in its frame is seen as x + y (ω x x
    + ν) in row y. To first order its observations move by y J (ω x x + ν); twists and cameras are found in turn.
    """
    still, other = problem, held
    for _ in range(_TURNS):
        still = replace(problem, m=problem.m - _moved_by_rows(problem, other))
        other = _adjusted(still, other, FreeIntrinsics(), problem.camera_ids)
    before, after = robust_cost(problem, held), robust_cost(still, other)
    freedom = _freedom(problem)
    saved = 1.0 - after / max(before, 1e-300) * freedom / max(freedom - 6 * problem.tracks.cameras, 1)
    auc = closeness(held.R, held.centres, other.R, other.centres, 20.0)
    return Freed(saved, 2.0 * (before - after) / _variance(still, other), *auc)


def _moved_by_rows(problem: Problem, reconstruction: Reconstruction) -> Array:
    """(observations, 2): how far the twist that fits an image's residuals best moves its observations."""
    t, (R, centre, focal, _) = problem.tracks, reconstruction.cameras
    x = np.einsum("nij,nj->ni", R[t.cam], reconstruction.xyz[t.landmark]) + centre[t.cam]
    r = residuals(problem, reconstruction)
    z, f, row = np.where(r.in_front, x[:, 2], np.inf), focal[t.cam], problem.m[:, 1]
    J = np.zeros((t.observations, 2, 3))
    J[:, 0, 0] = J[:, 1, 1] = f / z
    J[:, :, 2] = -f[:, None] * x[:, :2] / z[:, None] ** 2
    spin = np.cross(np.eye(3), x[:, None, :]).swapaxes(1, 2)
    A = row[:, None, None] * np.concatenate([J @ spin, J], axis=2)
    off = np.where(r.within(INLIER_PIXELS)[:, None], -r.vectors / problem.unit, 0.0)
    weight = (r.within(INLIER_PIXELS) / (1.0 + (r.error / INLIER_PIXELS) ** 2))[:, None, None]
    N, b = np.zeros((t.cameras, 6, 6)), np.zeros((t.cameras, 6))
    np.add.at(N, t.cam, A.swapaxes(1, 2) @ (weight * A))
    np.add.at(b, t.cam, np.einsum("nai,na->ni", weight * A, off))
    N += 1e-9 * np.trace(N, axis1=1, axis2=2)[:, None, None] * np.eye(6) + 1e-300 * np.eye(6)
    return np.einsum("nai,ni->na", A, np.linalg.solve(N, b[:, :, None])[:, :, 0][t.cam])


def euclidean_to_projective(problem: Problem, reconstruction: Reconstruction) -> float:
    """Robust cost of the metric cameras over that of projective ones, which start there and may move any way they like; each
    for a degree of freedom, of which projective cameras leave 5n - 8 fewer: 1 where the model is right."""
    P = np.concatenate([reconstruction.R, reconstruction.t[:, :, None]], axis=2)
    X = np.column_stack([reconstruction.xyz, np.ones(len(reconstruction.xyz))])
    stage = ProjectiveRefinement(problem.tracks, Reprojection(problem.m, problem.unit), P, X)
    loss = Cauchy(INLIER_PIXELS)
    stage.minimise(LMConfig(_STEPS, 1e-4, check_plateau=False), loss)
    nothing = loss.total(np.full(problem.tracks.observations, _FIT**2))
    ratio = (robust_cost(problem, reconstruction) + nothing) / (loss.total(stage.squared_residuals) + nothing)
    freedom = _freedom(problem)
    return ratio * max(freedom - 5 * problem.tracks.cameras + 8, 0) / max(freedom, 1)


def _freedom(problem: Problem) -> int:
    """Equations beyond the unknowns of metric cameras."""
    t = problem.tracks
    return 2 * t.observations - 3 * t.landmarks - 6 * t.cameras + 7


def _adjusted(problem: Problem, start: Reconstruction, free: FreeIntrinsics, groups: Index) -> Reconstruction:
    stage = EuclideanAdjustment(problem.tracks, problem.m, problem.unit, start, free=free, groups=groups)
    stage.minimise(LMConfig(_STEPS, _TOLERANCE, NEAR, check_plateau=False), Cauchy(INLIER_PIXELS))
    return stage.state


def _variance(problem: Problem, reconstruction: Reconstruction) -> float:
    """Pixels²: of a coordinate, from the median of the squared errors, 2 σ² ln 2, at least (0.1 px)²."""
    t = problem.tracks
    error = residuals(problem, reconstruction).error
    fitting = error[error <= INLIER_PIXELS]
    median = float(np.median(fitting**2)) if len(fitting) else INLIER_PIXELS**2
    corrected = median / (2.0 * np.log(2.0)) * 2 * t.observations / max(_freedom(problem), 1)
    return max(corrected, _FIT**2)


def by_image(problem: Problem) -> Index:
    """Groups of one camera an image."""
    return np.arange(problem.tracks.cameras)
