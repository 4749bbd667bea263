"""Pictures and depth maps by Blender's Cycles, through the cameras' exact distortion."""

import os
from collections.abc import Callable, Iterator

import numpy as np
import pycolmap

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.blender.client import run, scratch
from initfree.generator.cameras import fold_radius
from initfree.generator.dataset import Dataset
from initfree.generator.render import SUN, Rendering

SAMPLES = 32

_TERMS = {
    "SIMPLE_PINHOLE": (),
    "PINHOLE": (),
    "SIMPLE_RADIAL": ("k1",),
    "RADIAL": ("k1", "k2"),
    "OPENCV": ("k1", "k2", "p1", "p2"),
}


def render_all(
    dataset: Dataset, progress: Callable[[str], None] = lambda stage: None, samples: int = SAMPLES
) -> Iterator[Rendering]:
    """One rendering for every image, in order."""
    surface = dataset.surface
    assert surface is not None
    lenses = [lens(camera) for camera in dataset.cameras]
    images = []
    for i, camera in enumerate(dataset.camera_of_image):
        world = np.eye(4)
        world[:3, :3], world[:3, 3] = dataset.poses.rotations[i].T, dataset.poses.centres[i]
        images.append({"lens": lenses[camera], "camera_to_world": world.tolist()})
    scene = dataset.config.scene
    size = [dataset.cameras[0].width, dataset.cameras[0].height]
    job = {
        "kind": "render",
        "blend": str(scene.path.resolve()) if isinstance(scene, config.Blend) else None,
        "images": images,
        "size": size,
        "samples": samples,
        "threads": os.cpu_count() or 1,
    }
    with scratch() as folder:
        np.savez(
            folder / "mesh.npz",
            vertices=surface.vertices,
            faces=surface.faces,
            colors=surface.colors,
            textured=surface.textured,
            sun=SUN,
        )
        run(job, folder, progress)
        for i in range(len(images)):
            yield _read(folder, i, dataset)


def lens(camera: pycolmap.Camera) -> dict[str, float]:
    """The parameters of COLMAP's OPENCV model that this camera amounts to."""
    name = camera.model_name
    if name not in _TERMS:
        raise InputError(f"Blender renders {', '.join(_TERMS)}, not {name}; expected backend = raycast for it")
    values = dict.fromkeys(("k1", "k2", "p1", "p2"), 0.0)
    extra = [float(camera.params[k]) for k in camera.extra_params_idxs()]
    values.update(zip(_TERMS[name], extra, strict=True))
    return {
        "fx": camera.focal_length_x,
        "fy": camera.focal_length_y,
        "cx": camera.principal_point_x,
        "cy": camera.principal_point_y,
        "fold": min(fold_radius(camera), 1e9),
        **values,
    }


def _read(folder, number: int, dataset: Dataset) -> Rendering:
    """The picture, and the depth from the position that each pixel's central ray hit."""
    import OpenEXR
    from PIL import Image

    with Image.open(folder / f"{number}.png") as picture:
        image = np.array(picture.convert("RGB"))
    channels = OpenEXR.File(str(folder / f"{number}.exr"), separate_channels=True).channels()
    found = {name.rsplit(".", 1)[-1]: name for name in channels if ".Position." in name}
    if set(found) != {"X", "Y", "Z"}:
        raise InputError(f"Blender wrote no position pass; its channels are {', '.join(channels)}")
    position = np.stack([channels[found[axis]].pixels for axis in "XYZ"], axis=-1).astype(float)
    depth = position @ dataset.poses.rotations[number, 2] + dataset.poses.translations[number, 2]
    # Rays that hit nothing leave the position at exactly zero.
    depth[(position == 0).all(axis=-1)] = 0.0
    return Rendering(image, depth.astype(np.float32))
