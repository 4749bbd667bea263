"""Runs inside Blender's own Python (bpy, numpy < 2), with FOLDER/job.json in it: `python worker.py FOLDER`, or
`blender --background --python worker.py -- FOLDER`.

It knows nothing of initfree: arrays come and go as .npz files, pictures as PNG and multilayer EXR.

job.json, kind "read":     blend -> scene.npz (meshes), curves.npz (polylines), settings.toml (what the panel saved)
job.json, kind "flight":   blend, object, cameras -> matrices.npy (an animated camera's)
job.json, kind "render":   blend (or null for mesh.npz), engine, images, size, samples, threads -> N.png, N.exr
job.json, kind "graphics": -> graphics.json (renderer, software)
"""

import json
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # Blender runs a script without its folder on the path

from worker_render import graphics, render
from worker_scene import curves, evaluated_meshes, flight, open_blend, saved_settings


def read(job: dict, folder: str) -> None:
    open_blend(job["blend"])
    with open(os.path.join(folder, "settings.toml"), "w", encoding="utf-8") as file:
        file.write(saved_settings())
    np.savez(os.path.join(folder, "scene.npz"), **evaluated_meshes())
    np.savez(os.path.join(folder, "curves.npz"), **curves())


def main(folder: str) -> None:
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
        job = json.load(file)
    if job["kind"] == "read":
        read(job, folder)
    elif job["kind"] == "flight":
        open_blend(job["blend"])
        np.save(os.path.join(folder, "matrices.npy"), flight(job["object"], job["cameras"]))
    elif job["kind"] == "render":
        render(job, folder)
    else:
        graphics(folder)


if __name__ == "__main__":
    main(sys.argv[-1])
