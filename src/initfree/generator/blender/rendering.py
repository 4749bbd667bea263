"""Pictures and depth maps by Blender.

Cycles traces rays through the cameras' exact distortion, on the CPU. Workbench and EEVEE draw triangles, which
only pinhole cameras allow, with OpenGL.
"""

import math
import os
from collections.abc import Callable, Iterator

import numpy as np
import pycolmap

from initfree.errors import InputError
from initfree.generator import config
from initfree.generator.blender.client import graphics, require, run, scratch
from initfree.generator.cameras import fold_radius
from initfree.generator.dataset import Dataset
from initfree.generator.render import SUN, Rendering

FAR = 1e9
"""Workbench's depth of nothing is 1e10."""
_TERMS = {
    "SIMPLE_PINHOLE": "",
    "PINHOLE": "",
    "SIMPLE_RADIAL": "k1",
    "RADIAL": "k1 k2",
    "OPENCV": "k1 k2 p1 p2",
    "FULL_OPENCV": "k1 k2 p1 p2 k3 q1 q2 q3",
    "SIMPLE_FISHEYE": "",
    "FISHEYE": "",
    "SIMPLE_RADIAL_FISHEYE": "k1",
    "RADIAL_FISHEYE": "k1 k2",
    "OPENCV_FISHEYE": "k1 k2 k3 k4",
    "THIN_PRISM_FISHEYE": "k1 k2 p1 p2 k3 k4 s1 s2",
}
"""Distortion terms of COLMAP's models, in its order: radial k (over q), tangential p, thin prism s."""
_NONE = dict.fromkeys(("k1", "k2", "k3", "k4", "q1", "q2", "q3", "p1", "p2", "s1", "s2"), 0.0)


def check(dataset: Dataset) -> None:
    """Everything that can be known to fail before the first picture: Blender, the lenses, the engine."""
    require()
    engine = dataset.config.render.engine
    for camera in dataset.cameras:
        terms = lens(camera)
        if engine != "cycles" and (terms["fisheye"] or any(terms[name] for name in _NONE)):
            raise InputError(
                f"{engine} draws pinhole cameras, not {camera.model_name} with {camera.params_info} = "
                f"{', '.join(f'{value:g}' for value in camera.params)}; expected engine = cycles, which renders the "
                "exact distortion"
            )
    if engine == "cycles":
        return
    found = graphics()
    if engine == "eevee" and found["software"]:
        raise InputError(
            f"EEVEE needs a GPU, and here {found['renderer']} draws in software; expected engine = cycles "
            "(pictures on the CPU) or engine = workbench (fast depth)"
        )


def render_all(dataset: Dataset, progress: Callable[[str], None] = lambda stage: None) -> Iterator[Rendering]:
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
        "engine": dataset.config.render.engine,
        "samples": dataset.config.render.samples,
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
    """The camera's parameters by the names that the worker's camera shader has for them."""
    name = camera.model_name
    if name not in _TERMS:
        raise InputError(f"Blender renders {', '.join(_TERMS)}, not {name}; expected backend = raycast for it")
    extra = [float(camera.params[k]) for k in camera.extra_params_idxs()]
    fisheye = name.endswith("FISHEYE")
    return {
        "fx": camera.focal_length_x,
        "fy": camera.focal_length_y,
        "cx": camera.principal_point_x,
        "cy": camera.principal_point_y,
        "fisheye": fisheye,
        # A fisheye's radius is the angle to the optical axis; depth exists up to a right angle.
        "fold": min(fold_radius(camera), math.pi / 2 if fisheye else 1e9),
        **_NONE,
        **dict(zip(_TERMS[name].split(), extra, strict=True)),
    }


def _read(folder, number: int, dataset: Dataset) -> Rendering:
    """The picture, and the depth: Cycles gives the position that each pixel's central ray hit."""
    import OpenEXR
    from PIL import Image

    with Image.open(folder / f"{number}.png") as picture:
        image = np.array(picture.convert("RGB"))
    channels = OpenEXR.File(str(folder / f"{number}.exr"), separate_channels=True).channels()
    drawn = next((layer.pixels for name, layer in channels.items() if name.endswith(".Depth.Z")), None)
    if drawn is not None:
        return Rendering(image, np.where(drawn < FAR, drawn, 0.0).astype(np.float32))
    found = {name.rsplit(".", 1)[-1]: name for name in channels if ".Position." in name}
    if set(found) != {"X", "Y", "Z"}:
        raise InputError(f"Blender wrote neither depth nor position; its channels are {', '.join(channels)}")
    position = np.stack([channels[found[axis]].pixels for axis in "XYZ"], axis=-1).astype(float)
    depth = position @ dataset.poses.rotations[number, 2] + dataset.poses.translations[number, 2]
    # Rays that hit nothing leave the position at exactly zero.
    depth[(position == 0).all(axis=-1)] = 0.0
    return Rendering(image, depth.astype(np.float32))
