"""What happens to real images and to no simulated ones: cameras that are not as given, shutters, matches that contradict.

Each is a function of the observations as rows (image, landmark, pixel); what is not asked for does nothing. They come before
the `degradation`, which adds noise and wrong matches to whatever they leave.
"""

from dataclasses import dataclass

import numpy as np
import pycolmap
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.cameras import project
from initfree.generator.projections import Projections
from initfree.generator.streams import stream
from initfree.generator.trajectories import Poses

Floats = NDArray[np.float64]

_MATCHES = 40
"""landmarks that a wrong pair of images takes for one, at most"""
_WAVELENGTH = 0.25
"""of the images' width"""


@dataclass(frozen=True)
class Taken:
    """How the images were taken: one row an image."""

    poses: Poses
    cameras: list[pycolmap.Camera]
    moment: Floats
    """0 of the first image of the trajectory, 1 of the last"""
    group: NDArray[np.int64]
    """which trajectory of several"""


def befall(
    observations: Projections,
    landmarks: Floats,
    taken: Taken,
    adversity: config.Adversity,
    equal: NDArray[np.int64],
    seed: int,
) -> Projections:
    """The observations as the adversity leaves them."""
    seen = observations
    if adversity.shutter > 0.0:
        seen = rolling_shutter(seen, landmarks, taken, adversity.shutter)
    if adversity.joint_share > 0.0:
        seen = contradictory_joint(seen, landmarks, taken, adversity, stream(seed, "joint"))
    if adversity.joint_random > 0.0:
        seen = random_joint(seen, len(landmarks), taken, adversity.joint_random, stream(seed, "random joint"))
    if adversity.wrong_pairs > 0:
        seen = wrong_pairs(seen, len(landmarks), taken, adversity.wrong_pairs, equal, stream(seed, "wrong pairs"))
    if adversity.still > 0.0:
        seen = still(seen, len(landmarks), adversity.still, stream(seed, "still"))
    if adversity.waves > 0.0:
        seen = waves(seen, landmarks, taken, adversity.waves, adversity.waving, stream(seed, "waves"))
    if adversity.mirrored > 0:
        seen = mirrored(seen, taken, adversity.mirrored, stream(seed, "mirrored"))
    if adversity.noise_ratio > 1.0 or adversity.heavy > 0.0:
        seen = uneven_noise(seen, len(taken.cameras), adversity, stream(seed, "uneven noise"))
    return seen


def given_cameras(cameras: list[pycolmap.Camera], of_image: NDArray[np.int64], given: str) -> list[pycolmap.Camera]:
    """What the input says of the cameras, one an image, with the ids that it has for them.

    `shared`: the median focal length for all images, as one camera; `pinhole`: without distortion; `exchanged`: those of the
    first two images, each for the other.
    """
    own = [cameras[k] for k in of_image]
    if given == "shared":
        middle = own[int(np.argsort([camera.mean_focal_length() for camera in own])[len(own) // 2])]
        return [_like(middle, 1)] * len(own)
    if given == "pinhole":
        return [
            pycolmap.Camera(
                camera_id=c.camera_id, model="SIMPLE_PINHOLE", width=c.width, height=c.height,
                params=[c.mean_focal_length(), c.principal_point_x, c.principal_point_y], has_prior_focal_length=True,
            )
            for c in own
        ]  # fmt: skip
    if given == "exchanged":
        if len(own) < 2 or own[0].camera_id == own[1].camera_id:
            raise InputError("given = exchanged: the first two images have one camera; expected two (focal_variation)")
        return [_like(own[1], own[0].camera_id), _like(own[0], own[1].camera_id), *own[2:]]
    return own


def _like(camera: pycolmap.Camera, number: int) -> pycolmap.Camera:
    return pycolmap.Camera(
        camera_id=number, model=camera.model, width=camera.width, height=camera.height, params=camera.params,
        has_prior_focal_length=True,
    )  # fmt: skip


def rolling_shutter(seen: Projections, landmarks: Floats, taken: Taken, share: float) -> Projections:
    """Every row of an image from where the camera is by then: `share` of the way to the next image from the first row to
    the last, about the middle of the image."""
    order = np.argsort(taken.moment, kind="stable")
    R, centres = taken.poses.rotations, taken.poses.centres
    pixel = seen.pixel.copy()
    for place, k in enumerate(order):
        other = order[min(place + 1, len(order) - 1)] if place + 1 < len(order) else order[place - 1]
        sense = 1.0 if place + 1 < len(order) else -1.0
        rows = np.flatnonzero(seen.image == k)
        when = share * sense * (pixel[rows, 1] / taken.cameras[k].height - 0.5)
        turn = Rotation.from_matrix(R[other] @ R[k].T).as_rotvec()
        local = np.einsum("ij,nj->ni", R[k], landmarks[seen.landmark[rows]] - centres[k])
        moved = local - when[:, None] * (R[k] @ (centres[other] - centres[k]))
        moved = Rotation.from_rotvec(when[:, None] * turn).apply(moved)
        there, visible = project(taken.cameras[k], moved)
        pixel[rows[visible]] = there[visible]
    return Projections(seen.image, seen.landmark, pixel)


def contradictory_joint(
    seen: Projections, landmarks: Floats, taken: Taken, adversity: config.Adversity, rng: np.random.Generator
) -> Projections:
    """Of the tracks that the first trajectory's images and others share, a share is seen by the others as if these were of
    another scale, about their middle: two joints that contradict each other."""
    chosen = _crossing(seen, len(landmarks), taken)
    chosen = rng.permutation(chosen)[: round(adversity.joint_share * len(chosen))]
    others = taken.group > 0
    middle = taken.poses.centres[others].mean(axis=0)
    pixel = seen.pixel.copy()
    rows = np.flatnonzero(np.isin(seen.landmark, chosen) & others[seen.image])
    for k in np.unique(seen.image[rows]):
        mine = rows[seen.image[rows] == k]
        place = middle + adversity.joint_scale * (landmarks[seen.landmark[mine]] - middle)
        there, visible = project(taken.cameras[k], place @ taken.poses.rotations[k].T + taken.poses.translations[k])
        pixel[mine[visible]] = there[visible]
    return Projections(seen.image, seen.landmark, pixel)


def random_joint(seen: Projections, count: int, taken: Taken, share: float, rng: np.random.Generator) -> Projections:
    """Of the same tracks a share is matched at random: in the others' images they exchange their places."""
    chosen = _crossing(seen, count, taken)
    chosen = rng.permutation(chosen)[: round(share * len(chosen))]
    landmark = seen.landmark.copy()
    for k in np.flatnonzero(taken.group > 0):
        mine = np.flatnonzero((seen.image == k) & np.isin(seen.landmark, chosen))
        landmark[mine] = np.roll(landmark[mine], 1)
    return Projections(seen.image, landmark, seen.pixel)


def _crossing(seen: Projections, count: int, taken: Taken) -> NDArray[np.int64]:
    """Landmarks that images of the first trajectory and of another see."""
    first = taken.group[seen.image] == 0
    sides = [np.bincount(seen.landmark[side], minlength=count) > 0 for side in (first, ~first)]
    return np.flatnonzero(sides[0] & sides[1])


def wrong_pairs(
    seen: Projections, count: int, taken: Taken, pairs: int, equal: NDArray[np.int64], rng: np.random.Generator
) -> Projections:
    """So many pairs of images, one of either of two equal parts, are matched: what both see of the equal landmarks becomes
    one track each, where no image sees both."""
    sees = np.zeros((len(taken.cameras), count), dtype=bool)
    sees[seen.image, seen.landmark] = True
    shared = sees[:, equal[:, 0]].astype(np.int64) @ sees[:, equal[:, 1]].T.astype(np.int64)
    candidates = np.argwhere((shared >= min(_MATCHES // 2, shared.max())) & (shared > 0))
    landmark, used = seen.landmark.copy(), np.zeros(count, dtype=bool)
    for a, b in rng.permutation(candidates)[:pairs]:
        both = equal[sees[a, equal[:, 0]] & sees[b, equal[:, 1]]]
        for kept, lost in rng.permutation(both)[:_MATCHES]:
            if not (used[kept] or used[lost] or (sees[:, kept] & sees[:, lost]).any()):
                landmark[seen.landmark == lost] = kept
                used[[kept, lost]] = True
    return Projections(seen.image, landmark, seen.pixel)


def still(seen: Projections, count: int, share: float, rng: np.random.Generator) -> Projections:
    """Tracks that stay where they are in the image: a bonnet, a mark on the lens, a line of text."""
    chosen = rng.random(count) < share
    first = np.full(count, -1)
    first[seen.landmark[::-1]] = np.arange(len(seen.landmark))[::-1]
    pixel = np.where(chosen[seen.landmark, None], seen.pixel[first[seen.landmark]], seen.pixel)
    return Projections(seen.image, seen.landmark, pixel)


def waves(
    seen: Projections, landmarks: Floats, taken: Taken, pixels: float, share: float, rng: np.random.Generator
) -> Projections:
    """The lower part of the scene moves as water does: neighbours alike, every image at another moment."""
    low = landmarks[:, 2] <= np.quantile(landmarks[:, 2], share)
    phase = rng.uniform(0.0, 2.0 * np.pi, (len(taken.cameras), 2))
    width = np.array([camera.width for camera in taken.cameras], dtype=np.float64)
    along = 2.0 * np.pi * seen.pixel / (_WAVELENGTH * width[seen.image, None])
    away = np.where(low[seen.landmark, None], pixels * np.sin(along[:, ::-1] + phase[seen.image]), 0.0)
    return Projections(seen.image, seen.landmark, seen.pixel + away)


def mirrored(seen: Projections, taken: Taken, images: int, rng: np.random.Generator) -> Projections:
    """So many images the wrong way round."""
    chosen = rng.permutation(len(taken.cameras))[:images]
    width = np.array([camera.width for camera in taken.cameras], dtype=np.float64)
    pixel = seen.pixel.copy()
    rows = np.isin(seen.image, chosen)
    pixel[rows, 0] = width[seen.image[rows]] - pixel[rows, 0]
    return Projections(seen.image, seen.landmark, pixel)


def uneven_noise(seen: Projections, images: int, adversity: config.Adversity, rng: np.random.Generator) -> Projections:
    """Noise that differs from image to image by up to a ratio, about half a pixel; a share of the observations has ten times
    as much."""
    level = (
        0.5 * adversity.noise_ratio ** rng.uniform(-0.5, 0.5, images) if adversity.noise_ratio > 1.0 else np.zeros(images)
    )
    deviation = level[seen.image] + np.where(rng.random(len(seen.image)) < adversity.heavy, 5.0, 0.0)
    return Projections(seen.image, seen.landmark, seen.pixel + deviation[:, None] * rng.standard_normal(seen.pixel.shape))
