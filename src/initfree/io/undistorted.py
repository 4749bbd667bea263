"""Images without distortion and their model, as trainers of Gaussian splats read them: images/, sparse/0, PINHOLE cameras.

Most of them (the first one and those that follow its loader) take no other camera model, and read the images beside it.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pycolmap

from initfree.data.image_sizes import check_image
from initfree.data.names import inside
from initfree.errors import InputError

_UNDISTORT = "import sys, pycolmap; pycolmap.logging.minloglevel = 2; pycolmap.undistort_images(*sys.argv[1:])"


def write_undistorted(model: pycolmap.Reconstruction, images: Path, directory: Path) -> None:
    """Into a directory that exists; COLMAP does it, for every camera model that it has."""
    camera_of = {image.name: model.cameras[image.camera_id] for image in model.images.values() if image.has_pose}
    names = sorted(camera_of)
    missing = next((name for name in names if not inside(images, name).is_file()), None)
    if missing is not None:
        raise InputError(f"images {images} lacks {missing!r}; expected all {len(names)} images of the model")
    for name in names:
        _check_size(images / name, camera_of[name])
    with tempfile.TemporaryDirectory(dir=directory) as scratch:
        distorted, made = Path(scratch, "distorted"), Path(scratch, "made")
        distorted.mkdir()
        model.write(str(distorted))
        # In a process of its own, which COLMAP aborts where it cannot read or write an image.
        command = [sys.executable, "-c", _UNDISTORT, made, distorted, images]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            said = next(iter(done.stderr.splitlines()), "")
            raise InputError(f"the images in {images} cannot be undistorted, COLMAP ends with {done.returncode}: {said}")
        # COLMAP leaves out what it cannot read, and adds folders for its own dense stereo.
        unread = next((name for name in names if not (made / "images" / name).is_file()), None)
        if unread is not None:
            raise InputError(f"{images / unread} cannot be read as an image")
        shutil.move(made / "images", directory / "images")
        (directory / "sparse").mkdir()
        shutil.move(made / "sparse", directory / "sparse" / "0")


def _check_size(path: Path, camera: pycolmap.Camera) -> None:
    found = check_image(path)
    if found not in (None, (camera.width, camera.height)):
        raise InputError(
            f"{path} has {found[0]} x {found[1]} pixels; expected {camera.width} x {camera.height}, as its camera"
        )
