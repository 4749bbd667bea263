"""`initfree check`: is a model of any program right?"""

import time
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from initfree.commands.options import OptionalOutput, Overwrite
from initfree.drawing.verdict import counted
from initfree.engine.threads import set_threads
from initfree.errors import InputError
from initfree.io.run_json import plain, to_json
from initfree.models.check import Check
from initfree.models.check import check as check_model
from initfree.models.report import REPORT, SUMMARY, write_check

NOT_ACCEPTED = 3
_SHOWN = 12
"""images that are named one by one"""


def check(
    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")],
    /,
    database: Path | None = None,
    images: Path | None = None,
    output: OptionalOutput = None,
    known_intrinsics: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    json_: Annotated[bool, tyro.conf.arg(name="json"), tyro.conf.FlagCreatePairsOff] = False,
    quiet: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    threads: int | None = None,
    overwrite: Overwrite = False,
) -> int:
    """Judge a model of any program: is it right, and which images not?

    No truth is needed. Three answers: accepted (exit code 0); not accepted, or undecided (3); bad input is 2. With --output
    OUTPUT/check.json and OUTPUT/summary.html are written. Nothing is mended: that is `initfree adjust`, or `initfree solve`.

    Args:
        model: COLMAP model, or another of `initfree formats` that has poses.
        database: The observations that the model was made from, best with all verified matches: COLMAP's database.db, or
            another of `initfree formats` with the same images. Without it the model's own are all there is, from which its
            maker has deleted what misses: models of things that look alike may then pass.
        images: Folder of the photographs, in place of a database: they are matched first, which takes as long as COLMAP's
            feature extraction and matching. OUTPUT/database.db is kept and used again.
        output: Directory to write to.
        known_intrinsics: Intrinsics were calibrated beforehand, and not estimated from these images.
        json_: Print JSON, as in check.json.
        quiet: Print the verdict alone.
        threads: Threads that the kernels may use; by default all cores.
        overwrite: Replace in OUTPUT also what no `initfree check` wrote, or what was changed since.
    """
    began = time.perf_counter()
    if threads is not None:
        set_threads(threads)
    if images is not None:
        database = _matched(images, database, output, quiet, threads, overwrite)
    found = check_model(model, database, known=known_intrinsics)
    if output is not None:
        write_check(found, output, overwrite=overwrite)
    if json_:
        print(to_json(plain(found.to_dict())))
    else:
        _show(found, time.perf_counter() - began, quiet)
        if output is not None and not quiet:
            print(f"written: {output / REPORT} and {output / SUMMARY}")
    return 0 if found.accepted else NOT_ACCEPTED


def _matched(
    images: Path, database: Path | None, output: Path | None, quiet: bool, threads: int | None, overwrite: bool
) -> Path:
    """The matches of the photographs, as `initfree solve` makes them."""
    if database is not None:
        raise InputError("--images matches photographs and --database has their matches; expected one of the two")
    if output is None:
        raise InputError("--images keeps the matches of the photographs; expected --output to keep them in")
    from initfree.commands.photographs import matched
    from initfree.commands.solve_progress import Shown
    from initfree.photographs import Matching

    found, _, _ = matched(
        images, output, Matching(), Shown(quiet=quiet), image_list=None, threads=threads, overwrite=overwrite
    )
    return found


def _show(found: Check, seconds: float, quiet: bool) -> None:
    out = Console(highlight=False, markup=False, emoji=False)
    if not quiet:
        basis = f"all matches of {found.database}" if found.database else "its own observations alone"
        t = found.problem.tracks
        counts = counted(t.observations, "observation"), counted(t.landmarks, "landmark")
        out.print(f"{counted(len(found.images), 'image')}, judged on {basis}: {' of '.join(counts)}")
        table = Table(box=None, pad_edge=False)
        table.add_column("witness")
        table.add_column("weight", justify="right")
        table.add_column("finding", overflow="fold")
        for one in sorted(found.witnesses, key=lambda one: -one.weight):
            table.add_row(one.name, f"{one.weight:.2f}", one.sentence)
        out.print(table)
        for image in found.untrusted[:_SHOWN]:
            out.print(f"not to be trusted: {image.name}: {'; '.join(image.reasons)}", soft_wrap=True)
        if len(found.untrusted) > _SHOWN:
            out.print(f"not to be trusted: {len(found.untrusted) - _SHOWN} more images, all in {REPORT}", soft_wrap=True)
        if found.ambiguity:
            out.print(f"another reconstruction fits as well: {found.ambiguity}", soft_wrap=True)
        out.print(found.take_again, soft_wrap=True)
    out.print(f"{found.verdict}: {found.reason} ({seconds:.1f} s in all)", soft_wrap=True)
