"""`initfree adjust`: bundle adjustment of a model of any program."""

import csv
import time
from io import StringIO
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from initfree.commands.options import Output, Overwrite
from initfree.data.files import read_text
from initfree.engine.threads import set_threads
from initfree.errors import InputError
from initfree.io.colmap import find_model
from initfree.io.run_json import write_json
from initfree.io.staged import staged_directory
from initfree.models.adjust import Adjusted, AdjustOptions, Freed, Known, LossName
from initfree.models.adjust import adjust as adjust_model

COMMAND = "adjust"
REPORT = "adjust.json"
_SPARSE = "sparse/0"


def adjust(
    model: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="MODEL")],
    /,
    output: Output,
    free: tuple[Freed, ...] = ("focal", "distortion"),
    loss: LossName = "squared",
    loss_scale: float = 1.0,
    fix_poses: tuple[str, ...] = (),
    fix_cameras: tuple[int, ...] = (),
    fix_points: tuple[int, ...] = (),
    positions: Path | None = None,
    deviations: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    max_iterations: int = 100,
    threads: int | None = None,
    overwrite: Overwrite = False,
) -> int:
    """Adjust poses, points and cameras of a model to its own observations, as COLMAP's bundle_adjuster does.

    Writes OUTPUT/sparse/0 and OUTPUT/adjust.json. All camera models of COLMAP, cameras that images share, rigs (sensors stay
    where they are in them). Nothing is judged: that is `initfree check`.

    Args:
        model: COLMAP model, or another of `initfree formats` that has poses.
        output: Directory to write to.
        free: What moves of the cameras: focal, distortion, principal-point.
        loss: squared, cauchy, soft-l1 or huber.
        loss_scale: Scale of the loss in pixels.
        fix_poses: Names of images whose poses stay.
        fix_cameras: Ids of cameras whose intrinsics stay.
        fix_points: Ids of points that stay.
        positions: CSV of known centres: image, x, y, z and the standard deviation; with three or more the model is first
            turned, moved and scaled to them.
        deviations: Write standard deviations of every camera too.
        max_iterations: Most steps.
        threads: Threads that the kernels may use; by default all cores.
        overwrite: Replace in OUTPUT also what no `initfree adjust` wrote, or what was changed since.
    """
    began = time.perf_counter()
    if threads is not None:
        set_threads(threads)
    known = {} if positions is None else read_positions(positions)
    options = AdjustOptions(free, loss, loss_scale, fix_poses, fix_cameras, fix_points, known, max_iterations)
    read = find_model(model) if model.is_dir() else None
    if read is not None and read.resolve() == (output / _SPARSE).resolve():
        raise InputError(f"output {output} would overwrite the model in {model}; expected another directory")
    with staged_directory(output, COMMAND, (_SPARSE, REPORT), overwrite=overwrite) as staging:
        found = adjust_model(model, options)
        (staging / _SPARSE).mkdir(parents=True)
        found.model.write(str(staging / _SPARSE))
        write_json(staging / REPORT, report(found, model, options, deviations))
    seconds = time.perf_counter() - began
    console = Console(highlight=False, markup=False, emoji=False)
    pixels = found.model.compute_mean_reprojection_error()
    console.print(f"{found.model.num_reg_images()} images, {found.observations} observations", soft_wrap=True)
    console.print(
        f"cost {found.initial_cost:.6g} to {found.cost:.6g} in {len(found.steps)} steps ({found.convergence.reason}), mean "
        f"error {pixels:.3g} px, {seconds:.1f} s in all",
        soft_wrap=True,
    )
    if found.behind:
        console.print(f"note: {found.behind} observations are behind their camera and do not pull", soft_wrap=True)
    console.print(f"written: {output / _SPARSE} and {output / REPORT}", soft_wrap=True)
    return 0


def report(found: Adjusted, model: Path, options: AdjustOptions, deviations: bool) -> dict[str, object]:
    """adjust.json."""
    history = [{"cost": s.cost, "damping": s.damping, "accepted": s.accepted, "seconds": s.seconds} for s in found.steps]
    names = ("rotation_degrees", "centre_share_of_extent", "focal_share")
    return {
        "model": str(model),
        "free": options.free,
        "loss": options.loss,
        "loss_scale": options.scale,
        "observations": found.observations,
        "observations_behind": found.behind,
        "initial_cost": found.initial_cost,
        "cost": found.cost,
        "reason": found.convergence.reason,
        "mean_reprojection_error": found.model.compute_mean_reprojection_error(),
        "steps": history,
        "cameras": {
            str(k): {"model": camera.model_name, "params": [float(p) for p in camera.params]}
            for k, camera in found.model.cameras.items()
        },
        "deviations": {
            image: dict(zip(names, values, strict=True)) for image, values in found.deviations.items()
        } if deviations else None,
    }  # fmt: skip


def read_positions(path: Path) -> dict[str, Known]:
    """image, x, y, z, deviation on each line; a first line that has no numbers names the columns."""
    found: dict[str, Known] = {}
    for number, row in enumerate(csv.reader(StringIO(read_text(path))), 1):
        if not row or row[0].startswith("#"):
            continue
        try:
            x, y, z, deviation = (float(value) for value in row[1:])
        except ValueError as error:
            if number == 1:
                continue
            raise InputError(f"{path}, line {number}, has {row[1:]}; expected x, y, z and a deviation") from error
        found[row[0]] = Known((x, y, z), deviation)
    if not found:
        raise InputError(f"{path} has no positions; expected image, x, y, z and a deviation on each line")
    return found
