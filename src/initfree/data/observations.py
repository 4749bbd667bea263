"""The observations of an input: the only source of the solver. Poses and points are not stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from initfree.arrays.rigs import Mounts, check_mounts, of_several
from initfree.data.names import check_name
from initfree.data.pairs import VerifiedPairs
from initfree.data.tracks import Array, Index, rows_of_each
from initfree.errors import InputError

Intrinsics = Literal["known", "refine", "unknown"]
"""known: used unchanged; refine: used, and adjusted at the end; unknown: ignored, focal lengths and distortion are
estimated"""

_FARTHEST = 1e6
"""calibrated units: beyond, a coordinate is no observation but a broken number"""
LARGEST_IMAGE = 1_000_000
"""pixels of a side: no image is as large"""
_FARTHEST_PIXEL = 10.0 * LARGEST_IMAGE
_LARGEST_RATIO = 1e5
"""of a focal length, a principal point to the larger side of an image; of distortion to one"""
MOST_IMAGES = 100_000
_LARGEST_ID = 2**32 - 2
"""of an image or a camera, as COLMAP has them"""


@dataclass(frozen=True, eq=False)
class Image:
    """An image of the input: its name, its camera and its keypoints as the input has them."""

    name: str
    image_id: int
    camera_id: int
    keypoints: Array
    """(keypoints, 2) in pixels"""


@dataclass(frozen=True)
class FocalPrior:
    """What an input says of a focal length that nobody calibrated.

    Its tails are heavy, as those of the Cauchy distribution: one in three of what EXIF says of internet photographs is wrong
    by half and more (crops, lenses that a table lacks), and then says nothing.
    """

    pixels: float
    deviation: float
    """of the logarithm, where the prior is right"""


def heavy_tailed(deviation: Any, departure: Any) -> Any:
    """Deviation of the normal distribution whose slope at `departure` is that of a Cauchy one: σ (1 + (x/2σ)²)^½."""
    return deviation * np.sqrt(1.0 + (departure / (2.0 * deviation)) ** 2)


CALIBRATED, EXIF, GUESS = 0.01, 0.1, 0.5
"""deviations: of a calibration, of what a camera wrote into its file, and of a focal length that nobody knows (COLMAP's is
1.2 times the image's longer side; phones have 0.7 to 1, telephoto lenses 3)"""


@dataclass(frozen=True, eq=False)
class Observations:
    """All observations of an input, its cameras, and what else it states about its images."""

    source: str
    images: tuple[Image, ...]
    cameras: dict[int, Any]
    """pycolmap.Camera by camera id: the given intrinsics, and the camera models of the output"""
    intrinsics: Intrinsics
    """the input's statement; a solve never changes it"""
    image: Index
    """(observations,) index into `images`"""
    landmark_id: Index
    keypoint: Index
    """(observations,) index into the image's keypoints"""
    normalised: Array
    """(observations, 2) calibrated coordinates, or pixels from the middle of the image scaled to about [-1, 1]"""
    image_unit: Array
    """(images, 2) pixels per normalised unit, in x and y"""
    repeated: int = 0
    """observations left out because their image has an earlier one of the same landmark"""
    undistortable: int = 0
    """observations left out because the camera model maps no ray to them"""
    colour: NDArray[np.uint8] | None = None
    """(observations, 3) of their landmarks, where the input has colours"""
    pairs: VerifiedPairs | None = None
    """image pairs that the input has verified already"""
    moments: dict[int, tuple[str, str]] | None = None
    """of arrays of cameras, by landmark id: its frame and its point, as the input calls them"""
    mounts: Mounts | None = None
    """by image id, if the input has a rig of two cameras or more: sensor and frame of the image"""
    focal_priors: dict[int, FocalPrior] | None = None
    """by camera id, if the input says how reliable its focal lengths are; never changed, as `intrinsics`"""
    notes: tuple[str, ...] = ()
    """what the user should know of the input, a sentence each"""
    sizes_guessed: bool = False
    """whether the images' sizes are a guess from where the observations lie, and so the principal points"""

    @property
    def of_array(self) -> bool:
        """Whether the images are the cameras of an array, which recorded frames together."""
        return self.moments is not None and any(frame for frame, _ in self.moments.values())

    def __repr__(self) -> str:
        return f"Observations({self.source}: {len(self.images)} images, {len(self.image)} observations)"


def observe(
    source: str,
    images: Sequence[Image],
    cameras: dict[int, Any],
    image: Index,
    landmark_id: Index,
    keypoint: Index,
    *,
    intrinsics: Intrinsics,
    colour: NDArray[np.uint8] | None = None,
    pairs: VerifiedPairs | None = None,
    mounts: Mounts | None = None,
    focal_priors: dict[int, FocalPrior] | None = None,
) -> Observations:
    """Check and normalise observations (image, landmark_id, keypoint), one a row; every reader ends here.

    Normalised coordinates are calibrated rays, or scaled pixels if the intrinsics are unknown. Second observations of a
    landmark in an image, and those without a ray under the camera model, are left out and counted.
    """
    if intrinsics not in get_args(Intrinsics):
        raise InputError(f"intrinsics is {intrinsics!r}; expected one of {', '.join(get_args(Intrinsics))}")
    _check_images(source, images)
    _check_keypoints(source, images, image, keypoint)
    check_cameras(cameras, source)
    impossible = check_mounts(mounts or {})
    if impossible is not None:
        raise InputError(f"{source}: {impossible}; expected one at most")
    first = without_repeats(image, landmark_id)
    repeated = int(np.count_nonzero(~first))
    image, landmark_id, keypoint = image[first], landmark_id[first], keypoint[first]
    normalise = calibrated_keypoints if intrinsics != "unknown" else scaled_keypoints
    normalised, unit = normalise(images, cameras, image, keypoint)
    far = np.flatnonzero(np.abs(normalised).max(axis=1, initial=0.0) > _FARTHEST)
    if len(far):
        one, k = images[int(image[far[0]])], int(keypoint[far[0]])
        raise InputError(f"{source}: image {one.name!r} has keypoint {k} at {one.keypoints[k].tolist()}, far outside of it")
    kept = np.flatnonzero(np.isfinite(normalised).all(axis=1))
    if len(normalised) and not len(kept):
        raise InputError(f"{source}: no keypoint can be undistorted with the model's intrinsics")
    return Observations(
        source, tuple(images), cameras, intrinsics, image[kept], landmark_id[kept], keypoint[kept],
        normalised[kept], unit, repeated, len(normalised) - len(kept),
        None if colour is None else colour[first][kept], pairs, mounts=of_several(mounts or {}),
        focal_priors=focal_priors if intrinsics == "refine" else None,
    )  # fmt: skip


def calibrated_keypoints(
    images: Sequence[Image], cameras: dict[int, Any], image_of: Index, keypoint_of: Index
) -> tuple[Array, Array]:
    """Calibrated rays (pycolmap inverts intrinsics and distortion of any camera model), and pixels per unit."""
    normalised = np.empty((len(image_of), 2))
    unit = np.empty((len(images), 2))
    for k, here in enumerate(rows_of_each(image_of, len(images))):
        camera = cameras[images[k].camera_id]
        unit[k] = camera.focal_length_x, camera.focal_length_y
        if len(here):
            normalised[here] = camera.cam_from_img(images[k].keypoints[keypoint_of[here]])
    return normalised, unit


def scaled_keypoints(
    images: Sequence[Image], cameras: dict[int, Any], image_of: Index, keypoint_of: Index
) -> tuple[Array, Array]:
    """Pixels relative to the image's centre, divided by half the largest side: intrinsics unknown, distortion ignored."""
    centred = np.empty((len(image_of), 2))
    for k, here in enumerate(rows_of_each(image_of, len(images))):
        camera = cameras[images[k].camera_id]
        centred[here] = images[k].keypoints[keypoint_of[here]] - (camera.width / 2.0, camera.height / 2.0)
    scale = float(np.abs(centred).max(initial=1.0))
    return centred / scale, np.full((len(images), 2), scale)


def without_repeats(image: Index, landmark_id: Index) -> NDArray[np.bool_]:
    """Keep the first observation of a landmark in an image: a second one contradicts it."""
    order = np.lexsort((np.arange(len(image)), image, landmark_id))
    again = np.zeros(len(image), dtype=bool)
    again[order[1:]] = (np.diff(image[order]) == 0) & (np.diff(landmark_id[order]) == 0)
    return ~again


def guessed_sizes(lacking: str, size: Sequence[float] | Index, remedy: str) -> str:
    """The note of an input without the images' sizes."""
    w, h = (int(side) for side in size)
    return f"{lacking}: {w} x {h} pixels are a guess from where the detections lie, which bends what follows; add {remedy}"


LEAST_FOCAL = 10.0
"""pixels: below it coordinates are normalised, or of some other unit"""


def check_cameras(cameras: Mapping[int, Any], source: str) -> None:
    """Sizes and parameters that a camera can have, and a focal length in pixels."""
    for camera_id, camera in cameras.items():
        check_camera(camera_id, camera, source)
        if camera.mean_focal_length() < LEAST_FOCAL:
            raise InputError(
                f"{source}: camera {camera_id} has a focal length of {camera.mean_focal_length():g} px; expected pixels, at "
                f"least {LEAST_FOCAL:g} of them: errors are judged in pixels, and no detector finds points to a part of this"
            )


def check_camera(camera_id: int, camera: Any, source: str) -> None:
    """A size and parameters that a camera can have, or an error that names it."""
    side, params = max(camera.width, camera.height), [float(value) for value in camera.params]
    if not 1 <= min(camera.width, camera.height) <= side <= LARGEST_IMAGE:
        raise InputError(
            f"{source}: camera {camera_id} has images of {camera.width} x {camera.height} pixels; expected sides from 1 to "
            f"{LARGEST_IMAGE}"
        )
    focal = [params[k] for k in camera.focal_length_idxs()]
    if not focal:
        raise InputError(f"{source}: camera {camera_id} is of model {camera.model.name}, which has no focal length")
    broken = [value for value in params if not abs(value) <= _LARGEST_RATIO * side] or [f for f in focal if f <= 0.0]
    if broken:
        raise InputError(
            f"{source}: camera {camera_id} has {broken[0]:g} among its parameters {params}; expected finite numbers, "
            f"a positive focal length and nothing beyond {_LARGEST_RATIO:g} times the image"
        )


def check_count(source: str, images: int) -> None:
    """Many more images than anybody can solve are a mistake in the file, such as a wrong column."""
    if images > MOST_IMAGES:
        raise InputError(f"{source} has {images:,} images or cameras; expected at most {MOST_IMAGES:,}")


def _check_images(source: str, images: Sequence[Image]) -> None:
    check_count(source, len(images))
    seen: dict[str, int] = {}
    for image in images:
        check_name(source, image.name)
        for what, number in (("image", image.image_id), ("camera", image.camera_id)):
            if not 0 <= number <= _LARGEST_ID:
                raise InputError(f"{source}: image {image.name!r} has {what} id {number}; expected 0 to {_LARGEST_ID}")
        if image.name in seen:
            raise InputError(f"{source}: images {seen[image.name]} and {image.image_id} are both named {image.name!r}")
        seen[image.name] = image.image_id


def _check_keypoints(source: str, images: Sequence[Image], image: Index, keypoint: Index) -> None:
    """Those that are observed must exist and be pixels."""
    counts = np.array([len(one.keypoints) for one in images], dtype=np.int64)
    missing = np.flatnonzero((keypoint < 0) | (keypoint >= counts[image])) if len(image) else image
    if len(missing):
        at = images[int(image[missing[0]])]
        raise InputError(
            f"{source}: image {at.name!r} has {len(at.keypoints)} keypoints, none of number {keypoint[missing[0]]}"
        )
    if not len(image):
        return
    start = np.concatenate([[0], np.cumsum(counts)[:-1]])
    xy = np.concatenate([one.keypoints for one in images])[start[image] + keypoint]
    bad = np.flatnonzero(~(np.abs(xy) <= _FARTHEST_PIXEL).all(axis=1))
    if len(bad):
        name, k = images[int(image[bad[0]])].name, int(keypoint[bad[0]])
        raise InputError(
            f"{source}: image {name!r} has keypoint {k} at {xy[bad[0]].tolist()}; expected finite numbers of pixels"
        )
