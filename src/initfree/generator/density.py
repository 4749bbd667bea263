"""Thinning: which of the visible observations the dataset has."""

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import betainc, pdtr

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.observe import select_landmarks
from initfree.generator.projections import Projections
from initfree.generator.scenes import Candidates
from initfree.generator.streams import stream


def thin(
    landmarks: Candidates,
    observations: Projections,
    centres: NDArray[np.float64],
    density: config.Density,
    seed: int,
) -> tuple[Candidates, Projections]:
    """Apply the shares, the track angle, the target mean and the minimum, in this order.

    Landmarks are renumbered; `centres` are the cameras'.
    """
    if density.landmark_share < 1:
        count = max(1, round(density.landmark_share * len(landmarks)))
        chosen = np.sort(stream(seed, "landmark share").permutation(len(landmarks))[:count])
        landmarks, observations = select_landmarks(landmarks, observations, chosen)
    kept = np.ones(len(observations), bool)
    if density.observation_share < 1:
        kept = stream(seed, "observation share").uniform(size=len(observations)) < density.observation_share
    if density.image_share < 1:
        kept &= _share_of_images(observations, len(centres), density.image_share, seed)
    if density.track_angle < 180:
        kept &= _within_angle(observations, landmarks.positions, centres, density, seed)
    if density.mean_observations is not None:
        kept = _towards_mean(observations, kept, len(landmarks), density, seed)
    often = np.bincount(observations.landmark[kept], minlength=len(landmarks)) >= density.min_observations
    if not often.any():
        raise InputError(
            f"no landmark keeps {density.min_observations} observations: "
            f"observation_share = {density.observation_share} and image_share = {density.image_share} leave too few here"
        )
    kept &= often[observations.landmark]
    kept = _restore(observations, kept, often, len(centres), density, seed)
    return select_landmarks(landmarks, observations[kept], np.flatnonzero(often))


def _share_of_images(observations: Projections, images: int, share: float, seed: int) -> NDArray[np.bool_]:
    """round(share n) of the n observations of every image, drawn without replacement."""
    draw = stream(seed, "image share").uniform(size=len(observations))
    order = np.lexsort((draw, observations.image))
    seen = np.bincount(observations.image, minlength=images)
    place = np.arange(len(order)) - np.repeat(np.cumsum(seen) - seen, seen)
    kept = np.empty(len(order), bool)
    kept[order] = place < np.round(share * seen)[observations.image[order]]
    return kept


def _towards_mean(
    observations: Projections,
    kept: NDArray[np.bool_],
    landmarks: int,
    density: config.Density,
    seed: int,
) -> NDArray[np.bool_]:
    """Landmark j keeps min(c_j, m + k) of its c_j observations, drawn without replacement; k is Poisson, or negative
    binomial where tracks are dispersed.

    m is the minimum of observations and the rate (mean of k) is the one that gives the target mean, so every landmark
    that is seen m times stays, and one target leaves as many landmarks as another.
    """
    target, least = density.mean_observations, density.min_observations
    assert target is not None
    available = np.bincount(observations.landmark[kept], minlength=landmarks)
    often = available >= least
    if not often.any():
        return kept
    highest = float(available[often].mean())
    if not least <= target <= highest:
        most = np.floor(10.0 * highest) / 10.0
        raise InputError(
            f"a mean of {target:g} observations a landmark is impossible: the minimum is {least} and "
            f"{highest:.2f} are visible; expected a density of at most {most:g} (--density {most:g})"
        )
    quantile = stream(seed, "track lengths").uniform(size=landmarks)

    steps = np.arange(int(available.max()) + 1)

    def lengths(rate: float) -> NDArray[np.int64]:
        # The quantile of the draw, by looking it up in the cumulative distribution.
        return np.minimum(available, least + np.searchsorted(_cumulative(steps, rate, density.track_dispersion), quantile))

    def excess(rate: float) -> float:
        return float(lengths(rate)[often].mean()) - target

    # The mean grows with the rate in steps, so bisection it is.
    low, high = 1e-9, 4.0 * highest + 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) < 0 else (low, middle)
    wanted = lengths(high)
    priority = stream(seed, "observation order").uniform(size=len(observations)) + ~kept
    return kept & (_rank(observations, priority, landmarks) < wanted[observations.landmark])


def _cumulative(steps: NDArray[np.int64], mean: float, dispersion: float) -> NDArray[np.float64]:
    """P(k <= steps) for k of this mean and of variance mean + dispersion mean²."""
    if dispersion == 0:
        return pdtr(steps, mean)
    size = 1.0 / dispersion
    return betainc(size, steps + 1.0, size / (size + mean))


def _rank(observations: Projections, priority: NDArray[np.float64], landmarks: int) -> NDArray[np.int64]:
    """Place of each row among the rows of its landmark, lowest priority first."""
    return _ranked(np.concatenate([[0], np.cumsum(observations.track_lengths(landmarks))]), priority)


@njit(cache=True)
def _ranked(ptr: NDArray[np.int64], priority: NDArray[np.float64]) -> NDArray[np.int64]:
    rank = np.empty(len(priority), np.int64)
    for j in range(len(ptr) - 1):
        order = np.argsort(priority[ptr[j] : ptr[j + 1]], kind="mergesort")
        for place in range(len(order)):
            rank[ptr[j] + order[place]] = place
    return rank


def _within_angle(
    observations: Projections,
    positions: NDArray[np.float64],
    centres: NDArray[np.float64],
    density: config.Density,
    seed: int,
) -> NDArray[np.bool_]:
    """Rows seen from within the track angle of their landmark's random anchor view, or nearest to it."""
    rays = centres[observations.image] - positions[observations.landmark]
    rays /= np.linalg.norm(rays, axis=1, keepdims=True)
    draw = stream(seed, "track anchors").uniform(size=len(observations))
    is_anchor = _rank(observations, draw, len(positions)) == 0
    anchors = np.zeros_like(positions)
    anchors[observations.landmark[is_anchor]] = rays[is_anchor]
    cosine = np.einsum("nd,nd->n", rays, anchors[observations.landmark])
    nearest = _rank(observations, -cosine, len(positions)) < density.min_observations
    return nearest | (cosine >= np.cos(np.radians(density.track_angle)))


def _restore(
    observations: Projections,
    kept: NDArray[np.bool_],
    often: NDArray[np.bool_],
    images: int,
    density: config.Density,
    seed: int,
) -> NDArray[np.bool_]:
    """Give cameras that thinning left with too few observations some of theirs back."""
    kept = kept.copy()
    counts = np.bincount(observations.image[kept], minlength=images)
    spare = often[observations.landmark] & ~kept
    order = stream(seed, "restored observations").permutation(len(observations))
    for camera in np.flatnonzero(counts < density.min_camera_observations):
        missing = density.min_camera_observations - counts[camera]
        rows = order[(spare & (observations.image == camera))[order]][:missing]
        if len(rows) < missing:
            raise InputError(
                f"camera {camera} sees {counts[camera] + len(rows)} landmarks; expected at least "
                f"{density.min_camera_observations} (more landmarks, or a camera that faces the scene)"
            )
        kept[rows] = True
    return kept
