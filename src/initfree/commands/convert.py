"""`initfree convert`: from what can be read to what can be written."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from initfree.commands.options import Overwrite
from initfree.io.alignment import Alignment
from initfree.io.convert import convert as convert_files


def convert(
    input: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="IN")],
    output: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="OUT")],
    /,
    alignment: tyro.conf.OmitArgPrefixes[Alignment],
    to: str | None = None,
    images: Path | None = None,
    overwrite: Overwrite = False,
) -> int:
    """Convert a reconstruction, or its observations.

    Nothing is solved: cameras need poses in IN (a COLMAP model, such as `initfree solve` writes, BAL, Bundler, NVM, a
    calibrated caliscope folder); a table of observations (.csv) can be made of everything.

    The observations determine neither scale nor axes; measured things do. A place is the name of an image (its camera), the
    id of a point, or for arrays FRAME/POINT, FRAME/ (all points of a frame) and /POINT (a point in all frames).

    Examples: initfree convert out cameras.toml; initfree convert out splats --images photographs

    Args:
        input: What `initfree formats` lists.
        output: File or directory to write; its name decides the format unless --to does.
        to: colmap, ply, picture, nerfstudio, json, caliscope, anipose, multicamselfcal, dlt, splats, table or points.
        images: Directory of the images; `splats` writes them without distortion beside a model of PINHOLE cameras.
        overwrite: Replace at OUT also what no conversion wrote, or what was changed since.
    """
    name = convert_files(input, output, to, alignment, images, overwrite=overwrite)
    Console(highlight=False, markup=False, emoji=False).print(f"written: {output} ({name})", soft_wrap=True)
    return 0
