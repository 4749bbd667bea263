"""Images without distortion and their model, as trainers of Gaussian splats read them: images/, sparse/0, PINHOLE cameras.

Most of them (the first one and those that follow its loader) take no other camera model, and read the images beside it.
"""

import shutil
import tempfile
from pathlib import Path

import pycolmap

from initfree.data.names import inside
from initfree.errors import InputError
from initfree.io.quiet import quiet


def write_undistorted(model: pycolmap.Reconstruction, images: Path, directory: Path) -> None:
    """Into a directory that exists; COLMAP does it, for every camera model that it has."""
    names = sorted(image.name for image in model.images.values() if image.has_pose)
    missing = next((name for name in names if not inside(images, name).is_file()), None)
    if missing is not None:
        raise InputError(f"images {images} lacks {missing!r}; expected all {len(names)} images of the model")
    with tempfile.TemporaryDirectory(prefix="initfree-") as scratch:
        distorted, made = Path(scratch, "distorted"), Path(scratch, "made")
        distorted.mkdir()
        model.write(str(distorted))
        with quiet():
            try:
                pycolmap.undistort_images(made, distorted, images)
            except (RuntimeError, ValueError) as error:
                raise InputError(f"the images in {images} cannot be undistorted: {str(error).splitlines()[0]}") from error
        # COLMAP leaves out what it cannot read, and adds folders for its own dense stereo.
        unread = next((name for name in names if not (made / "images" / name).is_file()), None)
        if unread is not None:
            raise InputError(f"{images / unread} cannot be read as an image")
        shutil.move(made / "images", directory / "images")
        (directory / "sparse").mkdir()
        shutil.move(made / "sparse", directory / "sparse" / "0")
