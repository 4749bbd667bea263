"""The paper's metrics (appendix: Detailed Metrics): pose AUCs over camera pairs, landmark errors after Umeyama."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np

from initfree.data.reconstruction import Reconstruction, nearest_rotation
from initfree.data.tracks import Array, Index
from initfree.errors import InputError

THRESHOLDS = (5, 10, 20)
_MISSING = 180.0
_PAIRS_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Metrics:
    """AUCs in percent, higher is better; landmark errors in the truth's unit, NaN where no landmark can be compared.

    Attributes:
        rotation_auc5: AUC of the relative rotation errors of all camera pairs up to 5 degrees.
        rotation_auc10: The same up to 10 degrees.
        rotation_auc20: The same up to 20 degrees.
        translation_auc5: AUC of the angles between true and estimated baselines up to 5 degrees.
        translation_auc10: The same up to 10 degrees.
        translation_auc20: The same up to 20 degrees.
        landmark_median: Median distance between true and estimated landmarks after a similarity.
        landmark_rmse: Root mean square of these distances.
        landmark_p90: Their 90th percentile.
        cameras: Cameras of the truth.
        cameras_recovered: Cameras of the truth that the estimate has.
        landmarks_compared: Landmarks that both have.
    """

    rotation_auc5: float
    rotation_auc10: float
    rotation_auc20: float
    translation_auc5: float
    translation_auc10: float
    translation_auc20: float
    landmark_median: float
    landmark_rmse: float
    landmark_p90: float
    cameras: int
    cameras_recovered: int
    landmarks_compared: int

    def to_dict(self) -> dict[str, float | int]:
        return asdict(self)


def auc(errors: Array, threshold: float) -> float:
    """100/τ ∫_0^τ share(e <= θ) dθ, which is the mean of max(0, 1 - e/τ), in percent."""
    return 100.0 * float(np.mean(np.maximum(0.0, 1.0 - errors / threshold)))


def rotation_errors(estimate: Array, truth: Array) -> Array:
    """Degrees between R_i R_j' and R*_i R*_j' for every pair i < j.

    With E_i = R*_i' R_i the relative rotations differ by the angle between E_i and E_j. That angle comes from the
    chordal distance, |E_i - E_j| = 2 sqrt(2) sin(θ/2): arccos of the trace loses half the digits near zero.
    """
    E = (truth.transpose(0, 2, 1) @ estimate).reshape(-1, 9)

    def degrees(i: Index, j: Index) -> Array:
        chord = np.linalg.norm(E[i] - E[j], axis=1)
        return np.degrees(2.0 * np.arcsin(np.minimum(chord / (2.0 * np.sqrt(2.0)), 1.0)))

    return _over_pairs(degrees, len(E))


def global_rotation(estimate: Array, truth: Array) -> Array:
    """The G that turns the estimate's world onto the truth's, R_i ~ R*_i G: the chordal mean of R*_i' R_i."""
    return nearest_rotation((truth.transpose(0, 2, 1) @ estimate).sum(axis=0))


def translation_errors(estimate: Array, truth: Array, G: Array) -> Array:
    """Degrees between the directions c_j - c_i of camera centres (rows), sign ignored, for every pair i < j.

    `G` turns the estimate's world onto the truth's. Coinciding centres have no direction and count as wrong.
    """

    def degrees(i: Index, j: Index) -> Array:
        a = (estimate[j] - estimate[i]) @ G.T
        b = truth[j] - truth[i]
        norm = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
        cross = np.linalg.norm(np.cross(a, b), axis=1)
        dot = np.abs(np.einsum("nk,nk->n", a, b))
        return np.where(norm > 0.0, np.degrees(np.arctan2(cross, dot)), _MISSING)

    return _over_pairs(degrees, len(truth))


def _over_pairs(errors: Callable[[Index, Index], Array], n: int) -> Array:
    """errors(i, j) of all pairs i < j of n, a million at a time: ten thousand cameras have fifty million pairs."""
    if n * n <= _PAIRS_AT_ONCE:
        return errors(*_pairs(n))
    result = np.empty(n * (n - 1) // 2)
    begin = first = 0
    while first < n - 1:
        last = min(first + max(1, _PAIRS_AT_ONCE // n), n - 1)
        i = np.repeat(np.arange(first, last), n - 1 - np.arange(first, last))
        j = np.concatenate([np.arange(k + 1, n) for k in range(first, last)])
        result[begin : begin + len(i)] = errors(i, j)
        begin, first = begin + len(i), last
    return result


@lru_cache(8)
def _pairs(n: int) -> tuple[Index, Index]:
    """All i < j below n, row by row."""
    return np.triu_indices(n, 1)


def similarity(source: Array, target: Array, weight: Array | None = None) -> tuple[float, Array, Array]:
    """Umeyama (1991): s, R, t that minimise sum w |s R x + t - y|²."""
    w = np.full(len(source), 1.0 / len(source)) if weight is None else weight / weight.sum()
    mu_x, mu_y = w @ source, w @ target
    x, y = source - mu_x, target - mu_y
    covariance = (w[:, None] * y).T @ x
    R = nearest_rotation(covariance)
    variance = float(w @ np.sum(x**2, axis=1))
    s = float(np.trace(R.T @ covariance)) / variance if variance > 0.0 else 0.0
    return s, R, mu_y - s * R @ mu_x


def landmark_errors(estimate: Array, truth: Array) -> Array:
    """Distances after the similarity alignment."""
    s, R, t = similarity(estimate, truth)
    return np.linalg.norm(s * estimate @ R.T + t - truth, axis=1)


def evaluate_models(estimate: Reconstruction, truth: Reconstruction) -> Metrics:
    """Compare by image name and landmark id. Cameras of the truth that the estimate lacks count as 180 degrees."""
    index = {name: k for k, name in enumerate(estimate.names)}
    found = [(index[name], k) for k, name in enumerate(truth.names) if name in index]
    finite = [(e, k) for e, k in found if np.isfinite(estimate.R[e]).all() and np.isfinite(estimate.t[e]).all()]
    if len(truth.names) < 2:
        raise InputError(f"the truth has {len(truth.names)} cameras; expected at least 2 to compare pairs")
    if not (np.isfinite(truth.R).all() and np.isfinite(truth.t).all()):
        raise InputError("a pose of the truth is not finite; expected rotations and translations of all its cameras")
    if not found:
        raise InputError(
            f"estimate and truth share no image name (estimate: {estimate.names[:1]}, truth: {truth.names[:1]})"
        )
    pairs = len(truth.names) * (len(truth.names) - 1) // 2
    rotation = np.full(pairs, _MISSING)
    translation = np.full(pairs, _MISSING)
    if finite:
        e, k = np.array(finite).T
        R, R_true = estimate.R[e], truth.R[k]
        compared = len(k) * (len(k) - 1) // 2
        rotation[:compared] = rotation_errors(R, R_true)
        G = global_rotation(R, R_true)
        translation[:compared] = translation_errors(estimate.centres[e], truth.centres[k], G)
    _, a, b = np.intersect1d(estimate.ids, truth.ids, return_indices=True)
    usable = np.isfinite(estimate.xyz[a]).all(axis=1) & np.isfinite(truth.xyz[b]).all(axis=1)
    a, b = a[usable], b[usable]
    errors = landmark_errors(estimate.xyz[a], truth.xyz[b]) if len(a) >= 3 else np.full(1, np.nan)
    return Metrics(
        *(auc(rotation, threshold) for threshold in THRESHOLDS),
        *(auc(translation, threshold) for threshold in THRESHOLDS),
        landmark_median=float(np.median(errors)),
        landmark_rmse=float(np.sqrt(np.mean(errors**2))),
        landmark_p90=float(np.percentile(errors, 90)),
        cameras=len(truth.names),
        cameras_recovered=len(finite),
        landmarks_compared=len(a),
    )
