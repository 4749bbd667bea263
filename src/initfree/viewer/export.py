"""A scene as one self-contained page, or as a picture; neither needs a server, a screen or the network."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from initfree.drawing.page import environment, read
from initfree.drawing.raster import Look, picture
from initfree.drawing.scene import SOURCE, Scene
from initfree.drawing.thumbnails import as_url
from initfree.errors import InputError
from initfree.io.staged import staged_file

COMMAND = "view"
LANDMARKS, STEPS, STEP_LANDMARKS = 20_000, 60, 1200


def export(
    scene: Scene, path: Path, images: Sequence[NDArray[np.uint8] | None], look: Look, *, overwrite: bool = False
) -> None:
    """By the name of the file: .html or .png; a file that was not exported here is replaced only with `overwrite`."""
    kind = path.suffix.lower()
    if kind not in (".html", ".png"):
        raise InputError(f"export {path} ends with {path.suffix!r}; expected .html or .png")
    if not path.parent.is_dir():
        raise InputError(f"export {path}: there is no directory {path.parent}")
    if look.step is not None and (scene.steps is None or not 0 <= look.step < len(scene.steps)):
        available = "no trace.npz" if scene.steps is None else f"{len(scene.steps)} steps, 0 to {len(scene.steps) - 1}"
        raise InputError(f"step is {look.step}, but the folder has {available}")
    named = [one.name for one in scene.colourings]
    if look.colouring not in (None, *named):
        hint = " (`initfree solve --images` takes them from the images)" if look.colouring == SOURCE else ""
        raise InputError(f"the model has no {look.colouring} of its landmarks{hint}; expected one of {', '.join(named)}")
    if kind == ".png":
        with staged_file(path, COMMAND, overwrite=overwrite) as staged:
            picture(scene, look).save(staged)
        return
    data = scene.to_json(LANDMARKS, STEPS, STEP_LANDMARKS) | {
        "images": [as_url(image) for image in images],
        "list_open": True,
    }
    page = (
        environment()
        .get_template("view.html.j2")
        .render(scene=scene, scene_data=data, scripts=[read(name) for name in ("scene.js", "images.js", "panel.js")])
    )
    with staged_file(path, COMMAND, overwrite=overwrite) as staged:
        staged.write_text(page, encoding="utf-8")
