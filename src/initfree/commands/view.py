"""`initfree view`: a reconstruction in the browser, as a page or as a picture."""

from pathlib import Path
from typing import Annotated, Literal

import tyro

from initfree.commands.options import Overwrite
from initfree.drawing.raster import Look
from initfree.drawing.scene import SOURCE
from initfree.drawing.thumbnails import thumbnails
from initfree.errors import InputError
from initfree.io.written import check_replaceable
from initfree.viewer.export import COMMAND
from initfree.viewer.export import export as write_export
from initfree.viewer.reading import MOST, read_scene

Colour = Literal["source", "depth", "height", "residual", "track-length", "uncertainty"]
_NAMES = {"source": SOURCE, "track-length": "track length"}


def view(
    directory: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")],
    second: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="[DIR2]", help_behavior_hint="")] = None,
    /,
    images: Path | None = None,
    export: tuple[Path, ...] = (),
    step: int | None = None,
    colour: Colour | None = None,
    dark: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    host: str = "127.0.0.1",
    port: int = 8080,
    max_points: int = MOST,
    check: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    database: Path | None = None,
    overwrite: Overwrite = False,
) -> int:
    """See a reconstruction: cameras, landmarks, what joins the images, the way of the solve, the verdict.

    Serves a view for the browser until it is interrupted, on this machine alone unless --host says otherwise. Over SSH,
    forward the port it prints: ssh -L 8080:localhost:8080 MACHINE. With --export nothing is served.

    Example: initfree view out --images photographs

    Args:
        directory: What `initfree solve` wrote, or any COLMAP model.
        second: A second one, or the truth, laid over the first after a similarity alignment.
        images: Directory of the images, for thumbnails in the cameras.
        export: Files to write in place of serving: PAGE.html (self-contained) or PICTURE.png.
        step: Step of the solve that a picture shows, 0 is the first; by default the result.
        colour: What colours the landmarks of a picture.
        dark: Dark background.
        host: Address to serve at; 0.0.0.0 lets other machines look.
        port: Port to serve at; the next free one if it is taken.
        max_points: Landmarks shown at most.
        check: Judge the model as `initfree check` does, and show what it says.
        database: With --check, the observations that the model was made from.
        overwrite: Replace also files that no export wrote, or that were changed since.
    """
    if not overwrite:
        for path in export:
            check_replaceable(path.parent, [path.name], COMMAND)
    if database is not None and not check:
        raise InputError("--database is what --check asks; expected both")
    if check:
        from initfree.models.report import checked_scene

        scene = checked_scene(directory, database, max_points)
    else:
        scene = read_scene(directory, second, max_points)
    pictures = thumbnails(scene.model.images, images)
    if export:
        for path in export:
            name = None if colour is None else _NAMES.get(colour, colour)
            write_export(scene, path, pictures, Look(dark=dark, colouring=name, step=step, legend=True), overwrite=overwrite)
            print(f"written: {path}")
        return 0
    from initfree.viewer.server import Viewer

    viewer = Viewer(scene, pictures, host=host, port=port, dark=dark)
    print(f"view: {viewer.address} (Ctrl-C ends it)", flush=True)
    try:
        viewer.server.sleep_forever()
    except KeyboardInterrupt:
        viewer.stop()
    return 0
