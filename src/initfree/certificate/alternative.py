"""Another optimum: a different reconstruction that fits the observations as well.

The covariance describes the neighbourhood of one optimum. Critical configurations (cameras and landmarks on one twisted
cubic; Hartley and Kahl 2007) have a second one far away with equally good figures, and a solve may end in either. It lies
along the directions in which the cameras are least certain. So the cameras are moved far along the two weakest
directions, both ways, landmarks are triangulated, and a short adjustment on some of the landmarks follows; only a new
optimum is adjusted on all. This runs only if the cameras are less certain than in most reconstructions.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from initfree.certificate.closeness import closeness
from initfree.certificate.modes import Determination, weakest_modes
from initfree.certificate.thresholds import AS_GOOD, DIFFERENT_AUC20, LEAST_NOISE, SAFE_PARALLAX, SIGNIFICANT
from initfree.certificate.uncertainty import CameraSystem
from initfree.data.problem import Problem, restricted
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.engine.losses import Cauchy
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.stages.euclidean.residuals import INLIER_PIXELS, residuals
from initfree.stages.euclidean.triangulation import triangulate

CERTAIN_DRIFT, CERTAIN_AUC20 = 0.003, 98.0
"""drift (share of the extent) and AUC@20 of reconstructions drawn from the covariance, below and above which no
alternative is searched"""
_MOVES = ((0, 0.1), (0, 1.0), (1, 1.0))
"""mode (0 is the weakest) and step: root mean square over cameras in radians and extents; each in both directions"""
_ENOUGH = 120
"""observations of every camera in the short adjustment"""
_FEW = 0.5
"""share of the observations below which a selection pays"""
_EFFORT = 400_000
"""observations times adjustments: large problems have fewer of these, at least two"""
_FIRST_STEPS, _STEPS = 10, 30
_HOPELESS = 4.0
"""times the cost of the reconstruction after the first steps"""
_BACK = 2.0
"""percent of AUC@20 that may be missing against the reconstruction if a start has returned to it"""


@dataclass(frozen=True)
class Alternative:
    """Another optimum, far from the given one."""

    reconstruction: Reconstruction
    ratio: float
    """its robust cost over that of the reconstruction, of the observations that fit either; below 1 where it fits better"""
    chance: float
    """random difference of the ratio from 1: 25 squared deviations of the noise"""
    rotation_auc20: float
    translation_auc20: float
    """percent, of it against the reconstruction"""

    @property
    def margin(self) -> float:
        """Excess of its cost over the limit for fitting as well; negative if it fits as well."""
        return self.ratio - 1.0 - max(AS_GOOD, self.chance)

    def figures(self) -> dict[str, float]:
        """As run.json has them."""
        return {
            "alternative_cost": self.ratio,
            "alternative_rotation_auc20": self.rotation_auc20,
            "alternative_translation_auc20": self.translation_auc20,
        }


def doubtful(determination: Determination, parallax: float) -> bool:
    """Whether the cameras are uncertain enough to search for another optimum."""
    auc = min(determination.rotation_auc20, determination.translation_auc20)
    return determination.drift > CERTAIN_DRIFT or auc < CERTAIN_AUC20 or parallax < SAFE_PARALLAX


def alternative(problem: Problem, reconstruction: Reconstruction, system: CameraSystem) -> Alternative | None:
    """The other optimum of the lowest cost, or the first that fits as well; None if all searches returned to the given
    one."""
    if not system.solvable or system.tracks.cameras < 3:
        return None
    _, directions = weakest_modes(system, 2)
    best: Alternative | None = None
    part, few = _some(problem, reconstruction)
    trials = int(np.clip(_EFFORT // max(part.tracks.observations, 1), 2, 2 * len(_MOVES)))
    for mode, size, sign in [(mode, size, sign) for mode, size in _MOVES for sign in (1.0, -1.0)][:trials]:
        direction = directions[mode]
        step = sign * size * direction / np.sqrt(np.mean(np.sum(direction**2, axis=1)))
        other = _optimum(part, few, moved(part, few, system, step))
        if other is not None and part is not problem:
            other = _with_all(problem, reconstruction, few, other)
        if other is None:
            continue
        best = better_of(best, as_alternative(problem, reconstruction, other))
        if best is not None and best.margin < 0.0:
            break
    return best


def _some(problem: Problem, reconstruction: Reconstruction) -> tuple[Problem, Reconstruction]:
    """The problem of a subset of landmarks, enough for every camera; a small problem stays whole."""
    tracks = problem.tracks
    key = np.random.default_rng(0).permutation(tracks.landmarks)[tracks.landmark]
    order = np.lexsort((key, tracks.cam))
    rank = np.arange(tracks.observations) - np.repeat(tracks.camera_ptr[:-1], np.diff(tracks.camera_ptr))
    chosen = np.zeros(tracks.landmarks, dtype=bool)
    chosen[tracks.landmark[order[rank < _ENOUGH]]] = True
    keep = chosen[tracks.landmark]
    found = restricted(problem, keep, least=2) if keep.mean() < _FEW else None
    return (problem, reconstruction) if found is None else (found[0], reconstruction.subset(slice(None), found[1]))


def _with_all(
    problem: Problem, reconstruction: Reconstruction, few: Reconstruction, other: Reconstruction
) -> Reconstruction | None:
    """Another optimum of few landmarks, adjusted on all; None if it is the given one."""
    if min(closeness(few.R, few.centres, other.R, other.centres, 20.0)) >= DIFFERENT_AUC20:
        return None
    xyz, _ = triangulate(problem, other, scale=INLIER_PIXELS)
    return _adjusted(
        problem,
        replace(reconstruction, R=other.R, t=other.t, focal=other.focal, radial=other.radial, xyz=xyz),
        INLIER_PIXELS,
        _STEPS,
    )


def as_alternative(problem: Problem, reconstruction: Reconstruction, other: Reconstruction) -> Alternative | None:
    """The other reconstruction as an alternative to this one; None if they are the same."""
    auc = closeness(reconstruction.R, reconstruction.centres, other.R, other.centres, 20.0)
    if min(auc) >= DIFFERENT_AUC20:
        return None
    ratio, count = compared_costs(problem, reconstruction, other)
    return Alternative(other, ratio, 0.5 * SIGNIFICANT / count, *auc)


def better_of(one: Alternative | None, other: Alternative | None) -> Alternative | None:
    """The alternative with the lower cost."""
    return min((a for a in (one, other) if a is not None), key=lambda a: a.ratio, default=None)


def moved(problem: Problem, reconstruction: Reconstruction, system: CameraSystem, step: Array) -> Reconstruction:
    """Rotate and move every camera by its row (ω, γ) of `step`, in the frame of `system`, and triangulate all landmarks."""
    R = system.cameras[0]
    centres = system.centres - np.einsum("nji,nj->ni", R, step[:, 3:6])
    R = np.ascontiguousarray(Rotation.from_rotvec(step[:, :3]).as_matrix() @ R)
    t = -np.einsum("nij,nj->ni", R, centres)
    reconstruction = replace(reconstruction, R=R, t=t)
    return replace(reconstruction, xyz=triangulate(problem, reconstruction, scale=INLIER_PIXELS)[0])


def _optimum(problem: Problem, reconstruction: Reconstruction, start: Reconstruction) -> Reconstruction | None:
    """The result of a short adjustment; None if its first steps return to the given optimum, or stay far too high."""
    other = _adjusted(problem, start, 10.0, _FIRST_STEPS)
    if compared_costs(problem, reconstruction, other)[0] > _HOPELESS or _distance(reconstruction, other) < _BACK:
        return None
    return _adjusted(problem, other, INLIER_PIXELS, _STEPS)


def _adjusted(problem: Problem, start: Reconstruction, scale: float, steps: int) -> Reconstruction:
    free = FreeIntrinsics.of(problem)
    limits = AdjustConfig(free=free, scales=(scale,), max_iterations=steps, tolerance=1e-6)
    return adjust(problem, start, limits)[0]


def _distance(one: Reconstruction, other: Reconstruction) -> float:
    """100 less the smaller AUC@20 of one against the other."""
    return 100.0 - min(closeness(one.R, one.centres, other.R, other.centres, 20.0))


def compared_costs(problem: Problem, one: Reconstruction, other: Reconstruction) -> tuple[float, int]:
    """Ratio of the robust costs over the observations that fit either, and the number of these observations.

    An observation that fits neither is a wrong match; one that fits only one reconstruction supports it.
    """
    seen = [residuals(problem, reconstruction) for reconstruction in (one, other)]
    counted = seen[0].within(INLIER_PIXELS) | seen[1].within(INLIER_PIXELS)
    count = max(int(np.count_nonzero(counted)), 1)
    least = 0.5 * count * LEAST_NOISE**2
    costs = [Cauchy(INLIER_PIXELS).total(r.error[counted] ** 2) + least for r in seen]
    return costs[1] / costs[0], count
