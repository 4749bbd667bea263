"""Images made small, for the pyramids of their cameras."""

import base64
import io
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from initfree.data.image_sizes import check_image
from initfree.data.names import inside
from initfree.errors import InputError

SIDE = 96
"""pixels, of the longer side"""
_FORMATS = ("JPEG", "PNG", "TIFF", "BMP", "PPM", "WEBP")
"""of Pillow's, which for others starts programs (EPS)"""


def thumbnails(names: tuple[str, ...], images: Path | None) -> list[NDArray[np.uint8] | None]:
    """(height, width, 3) of each image; None where there is no folder, or no such image in it."""
    if images is None:
        return [None] * len(names)
    if not images.is_dir():
        raise InputError(f"images {images} is no directory; expected one with the images that the model names")
    found = [_small(inside(images, name)) for name in names]
    if all(one is None for one in found):
        raise InputError(f"images {images} has none of the model's images; expected {names[0]!r} and so on in it")
    return found


def _small(path: Path) -> NDArray[np.uint8] | None:
    if not path.is_file():
        return None
    check_image(path)
    try:
        with _opened(path) as image:
            image.draft("RGB", (2 * SIDE, 2 * SIDE))
            small = image.convert("RGB")
            small.thumbnail((SIDE, SIDE))
            return np.asarray(small)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise InputError(f"{path} cannot be read as an image: {error}") from error


def _opened(path: Path) -> Image.Image:
    """Without Pillow's warning of large images: those are refused here, or are not too large."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Image.open(path, formats=_FORMATS)


def as_url(image: NDArray[np.uint8] | None) -> str | None:
    """JPEG inside a page."""
    if image is None:
        return None
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "JPEG", quality=72)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
