"""Runs inside Blender's own Python (bpy, numpy < 2): `python worker.py FOLDER`, with FOLDER/job.json in it.

It knows nothing of initfree: arrays come and go as .npz files, pictures as PNG and multilayer EXR.

job.json, kind "read":     blend, object (or null), cameras -> scene.npz (vertices, faces, colors), path.npz
job.json, kind "render":   blend (or null for mesh.npz), engine, images, size, samples, threads -> N.png, N.exr
job.json, kind "graphics": -> graphics.json (renderer, software)
"""

import json
import os
import sys

import numpy as np
from worker_render import graphics, render
from worker_scene import evaluated_meshes, open_blend, path_of


def read(job: dict, folder: str) -> None:
    open_blend(job["blend"])
    if job["object"]:
        np.savez(os.path.join(folder, "path.npz"), **path_of(job["object"], job["cameras"]))
        return
    vertices, faces, colors = evaluated_meshes()
    np.savez(os.path.join(folder, "scene.npz"), vertices=vertices, faces=faces, colors=colors)


def main(folder: str) -> None:
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
        job = json.load(file)
    if job["kind"] == "read":
        read(job, folder)
    elif job["kind"] == "render":
        render(job, folder)
    else:
        graphics(folder)


if __name__ == "__main__":
    main(sys.argv[1])
