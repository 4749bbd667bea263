"""Degradation: pixel noise, wrong matches, merged tracks, and initial values that are off.

Rows stay rows: a degraded observation is the same keypoint of the same image as the true one, at a noisy
pixel or under a wrong landmark. Each part draws from its own stream, so one does not change another.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.projections import Projections
from initfree.generator.streams import stream
from initfree.generator.trajectories import Poses

Floats = NDArray[np.float64]


def degrade(
    observations: Projections,
    images: int,
    landmarks: int,
    degradation: config.Degradation,
    seed: int,
    equal: NDArray[np.int64] | None = None,
) -> Projections:
    """Landmarks that look the same (pairs `equal`) first, then merged tracks, wrong matches, noise."""
    landmark = observations.landmark
    if degradation.equal > 0 and degradation.merged > 0:
        raise InputError(f"equal = {degradation.equal:g} and merged = {degradation.merged:g}: expected one of them")
    if degradation.equal > 0 and equal is not None:
        landmark = merge_equal(observations, landmarks, equal, degradation.equal, stream(seed, "equal parts"))
    if degradation.merged > 0:
        landmark = merge_tracks(observations, images, landmarks, degradation.merged, stream(seed, "merged tracks"))
    if degradation.outliers > 0:
        landmark = swap_tracks(observations.image, landmark, degradation.outliers, stream(seed, "outliers"))
    noise = degradation.noise * stream(seed, "pixel noise").standard_normal(observations.pixel.shape)
    return Projections(observations.image, landmark, observations.pixel + noise)


def swap_tracks(
    image: NDArray[np.int32], landmark: NDArray[np.int32], share: float, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Wrong matches: within each image, the chosen keypoints pass their tracks on in a random cycle.

    Every keypoint stays a real one and no track sees an image twice, as a matcher's errors would have it.
    """
    chosen = rng.permutation(len(image))[: max(2, round(share * len(image)))]
    counts = np.bincount(image[chosen], minlength=int(image.max()) + 1)
    # A cycle needs two: where one keypoint alone was drawn, another of its image joins.
    for lonely in np.flatnonzero(counts == 1):
        others = np.setdiff1d(np.flatnonzero(image == lonely), chosen)
        if len(others):
            chosen = np.append(chosen, rng.choice(others))
    chosen = chosen[np.argsort(image[chosen], kind="stable")]
    first = np.flatnonzero(np.diff(image[chosen], prepend=-1))
    last = np.append(first[1:], len(chosen)) - 1
    source = np.arange(len(chosen)) + 1
    source[last] = first
    wrong = landmark.copy()
    wrong[chosen] = landmark[chosen[source]]
    return wrong


def merge_tracks(
    observations: Projections, images: int, landmarks: int, share: float, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Repeated structure: tracks joined in twos whose images have nothing to do with each other.

    Two tracks may join when no image of one shares more than a small part of its landmarks with an image of
    the other: none, where the cameras allow it, then 1%, 2%, 5%, 10%; failing that, when they have no image
    in common. The longer track gives its landmark.
    """
    pairs = max(1, round(share * landmarks / 2))
    overlap = relatedness(observations, images, landmarks)
    lengths = observations.track_lengths(landmarks)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    seen_by = [observations.image[starts[j] : starts[j + 1]] for j in range(landmarks)]
    landmark = observations.landmark.copy()
    free = [int(j) for j in rng.permutation(landmarks) if lengths[j]]
    done = 0
    for limit in (0.0, 0.01, 0.02, 0.05, 0.1, np.nextafter(1.0, 0.0)):
        related = (overlap > limit) | np.eye(images, dtype=bool)
        for _ in range(8):
            left = []
            for a, b in zip(free[::2], free[1::2], strict=False):
                if done < pairs and not related[np.ix_(seen_by[a], seen_by[b])].any():
                    kept, lost = (a, b) if lengths[a] >= lengths[b] else (b, a)
                    landmark[starts[lost] : starts[lost + 1]] = kept
                    done += 1
                else:
                    left += [a, b]
            free = [int(j) for j in rng.permutation(left + free[len(free) // 2 * 2 :])]
            if done == pairs:
                return landmark
    raise InputError(
        f"merged = {share:g} is impossible: only {2 * done} of {2 * pairs} tracks have a partner without common images"
    )


def merge_equal(
    observations: Projections, landmarks: int, equal: NDArray[np.int64], share: float, rng: np.random.Generator
) -> NDArray[np.int32]:
    """Repeated structure as a matcher takes it: two equal landmarks become one track, where no image sees both.

    A landmark of three equal ones may be drawn twice; the first pair wins.
    """
    lengths = observations.track_lengths(landmarks)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    landmark, used = observations.landmark.copy(), np.zeros(landmarks, bool)
    for kept, lost in equal[rng.permutation(len(equal))[: round(share * len(equal))]]:
        rows = [slice(starts[j], starts[j + 1]) for j in (kept, lost)]
        alone = not np.intersect1d(observations.image[rows[0]], observations.image[rows[1]]).size
        if alone and not used[kept] and not used[lost]:
            landmark[rows[1]] = kept
            used[[kept, lost]] = True
    return landmark


def relatedness(observations: Projections, images: int, landmarks: int) -> Floats:
    """Landmarks that two images share, as a share of what the one that sees fewer sees."""
    shared = observations.covisibility(images, landmarks).toarray().astype(float)
    own = np.maximum(shared.diagonal(), 1)
    return shared / np.minimum(own[:, None], own[None, :])


def initial_values(poses: Poses, landmarks: Floats, degradation: config.Degradation, seed: int) -> tuple[Poses, Floats]:
    """Where classical bundle adjustment starts: the truth, off by the given noise."""
    turns = stream(seed, "initial rotations").standard_normal((len(poses), 3))
    moves = stream(seed, "initial translations").standard_normal((len(poses), 3))
    shifts = stream(seed, "initial landmarks").standard_normal(landmarks.shape)
    rotations, translations = poses.rotations, poses.translations
    if degradation.rotation_noise > 0 or degradation.translation_noise > 0:
        wobble = Rotation.from_rotvec(np.radians(degradation.rotation_noise) * turns).as_matrix()
        rotations = wobble @ poses.rotations
        centres = poses.centres + degradation.translation_noise * moves
        translations = -np.einsum("nij,nj->ni", rotations, centres)
    return Poses(rotations, translations), landmarks + degradation.landmark_noise * shifts
