"""Terminal output of the commands."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from initfree.arrays.camera_reports import CameraReport
from initfree.data.names import natural
from initfree.drawing.verdict import UNDETERMINED, counted, reasons_below, verdict_of, why_not_the_cheapest
from initfree.evaluation import THRESHOLDS, Metrics
from initfree.result import Result

FEW = 5
"""names shown of many"""
ALL_SHOWN = 16
"""number of images up to which each has a line"""


def print_result(console: Console, result: Result, run: dict[str, Any], *, verbose: bool = False) -> None:
    """What was solved, the way there, and what came out.

    Figures are those of the result; those on the way, which say nothing of it, come with `verbose`.
    """
    problem, dropped = result.problem, result.problem.dropped
    t = problem.tracks
    counts = counted(t.cameras, "camera"), counted(t.landmarks, "landmark"), counted(t.observations, "observation")
    console.print(", ".join(counts), soft_wrap=True)
    if dropped.observations or dropped.images:
        pieces = f", {dropped.components} separate parts" if dropped.components > 1 else ""
        console.print(
            f"left out: {counted(dropped.landmarks, 'landmark')}, {counted(dropped.observations, 'observation')}, "
            f"{counted(len(dropped.images), 'image')}"
            f" (tracks shorter than {problem.min_obs}, wrong matches, images that do not agree{pieces})",
            soft_wrap=True,
        )
        if dropped.images:
            more = "" if len(dropped.images) <= FEW else f" and {len(dropped.images) - FEW} more"
            console.print(f"images left out: {', '.join(dropped.images[:FEW])}{more}", soft_wrap=True)
    if dropped.repeated_observations or dropped.undistortable_observations:
        console.print(
            f"not usable: {counted(dropped.repeated_observations, 'repeated observation')} of a landmark in an image, "
            f"{dropped.undistortable_observations} that the camera model cannot undistort",
            soft_wrap=True,
        )
    if result.starts:
        print_starts(console, result)
    _print_stages(console, result, verbose)
    evidence = result.certificate.evidence
    console.print(
        f"result: median error {evidence.median_pixels:.3g} px; {evidence.inlier_share:.1%} of the {t.observations} "
        f"observations fit (within {evidence.inlier_pixels:.2g} px, in front of their camera)",
        soft_wrap=True,
    )
    u = result.uncertainty
    if np.median(u.rotation) < UNDETERMINED:
        deviations = (
            f"rotation {np.median(u.rotation):.2g} degrees (worst camera {u.rotation.max():.2g}), "
            f"centre {np.median(u.centre):.2g} of the scene's extent (worst {u.centre.max():.2g})"
        )
    else:
        deviations = "not determined"
    console.print(f"one standard deviation: {deviations}", soft_wrap=True)
    print_cameras(console, result.cameras, run["uncertainty"].get("scene_extent_in_unit_of_scale"))
    late = [f"{name} is out of step: it {how}" for name, how in run["out_of_step"].items()]
    for note in [*(one for one in late if one not in run["verdict"]), *run["notes"]]:
        console.print(f"note: {note}", soft_wrap=True)


def _print_stages(console: Console, result: Result, verbose: bool) -> None:
    """The stages of the start that won; their costs have different units and are shown on request."""
    table = Table(box=None, pad_edge=False)
    table.add_column("stage")
    for column in ("steps", "seconds", *(("final cost", "mean residual") if verbose else ())):
        table.add_column(column, justify="right")
    table.add_column("ended")
    for stage in result.stages:
        cost = "" if stage.cost is None else f"{stage.cost:.6g}"
        mean = "" if stage.mean_residual is None else f"{stage.mean_residual:.3g} {stage.residual_unit}"
        figures = [cost, mean] if verbose else []
        table.add_row(stage.name, str(stage.iterations or ""), f"{stage.seconds:.2f}", *figures, stage.reason)
    console.print(table)
    upgraded = result.intermediate.upgraded
    if verbose:
        condition = f", conditioning {upgraded.conditioning:.3g}" if upgraded.singular_values else ""
        console.print(
            f"right after the metric upgrade {(result.start_config or result.config).upgrade}, before the adjustment: "
            f"{upgraded.positive_depths:.1%} of the observations have their landmark in front of the camera{condition}",
            soft_wrap=True,
        )


def print_cameras(console: Console, cameras: tuple[CameraReport, ...], extent: float | None = None) -> None:
    """A line for each camera of an array; of many images, those with the largest share of wrong detections.

    `extent`: of the scene, in the unit of --scale, where that is given; else places are shares of it.
    """
    shown, which = sorted(cameras, key=lambda one: natural(one.name)), "each camera"
    if len(cameras) > ALL_SHOWN:
        which = f"worst {FEW} of {len(cameras)} images"
        shown = sorted(cameras, key=lambda one: (-one.wrong_share, -np.nan_to_num(one.mean_pixels, nan=np.inf)))[:FEW]
    console.print(f"{which}, judged by all detections, also those left out:", soft_wrap=True)
    table = Table(box=None, pad_edge=False)
    table.add_column("camera", overflow="fold")
    found = any(one.focal_share is not None for one in shown)
    centre = "centre" if extent is None else "centre, unit of --scale"
    for column in ("detections", "wrong", "mean error", "rotation", centre, *(["focal length"] if found else [])):
        table.add_column(column, justify="right", no_wrap=True)
    for one in shown:
        place = [f"± {one.rotation_degrees:.2g}°", f"± {one.centre_share_of_extent * (extent or 1.0):.2g}"]
        if not one.rotation_degrees < UNDETERMINED:
            place = ["open", "open"]
        focal = [] if one.focal_share is None else [f"± {one.focal_share:.2g}"]
        table.add_row(one.name, str(one.detections), str(one.wrong), f"{one.mean_pixels:.3f} px", *place, *focal)
    console.print(table)
    for one in cameras:
        if one.moved is not None:
            note = f"{one.name} moved, or fell out of step, at frame {one.moved}: its detections fit on one side of it only"
            console.print(f"note: {note}", soft_wrap=True)


def print_verdict(console: Console, run: dict[str, Any]) -> None:
    """The verdict, filled and in colour where there is any, and the time; then what to do about a refusal."""
    verdict = verdict_of(run)
    part = bool(run["problem"]["dropped"]["images"])
    colour = "bold white on red" if not verdict.accepted else "bold black on yellow" if part else "bold black on green"
    title = Text(verdict.title, style=colour)
    console.print(Text.assemble(title, f": {verdict.sentence} ({run['seconds']:.1f} s)"), soft_wrap=True)


def print_next(console: Console, run: dict[str, Any], output: Path) -> None:
    """What to try after a refusal, and the commands that go on from here."""
    verdict = verdict_of(run)
    if not verdict.accepted:
        for reason in reasons_below(run)[:FEW]:
            console.print(f"  because: {reason}", soft_wrap=True)
    for advice in verdict.advice[:FEW]:
        console.print(f"  try: {advice.try_this} ({advice.means})", soft_wrap=True)
    images = run["options"].get("images")
    said = f" --images {shlex.quote(images)}" if images else ""
    console.print(f"next: initfree view {shlex.quote(str(output))}{said}", soft_wrap=True)
    if verdict.accepted and images:
        splats = shlex.quote(str(output / "splats"))
        console.print(f"next: initfree convert {shlex.quote(str(output))} {splats}{said}", soft_wrap=True)


def print_starts(console: Console, result: Result) -> None:
    """What was tried, and what became of it; one line where the first start was enough."""
    if len(result.starts) == 1:
        console.print(f"start: {result.winner}", soft_wrap=True)
        return
    table = Table(box=None, pad_edge=False)
    table.add_column("start")
    for column in ("seconds", "robust cost", "within 4 px", "worst image"):
        table.add_column(column, justify="right")
    table.add_column("")
    for start in result.starts:
        verdict = "result" if start.name == result.winner else ""
        shares = f"{start.inlier_share:.1%}", f"{start.worst_share:.1%}"
        table.add_row(start.name, f"{start.seconds:.2f}", f"{start.cost:.6g}", *shares, verdict)
    console.print(table)
    why = why_not_the_cheapest({"starts": [asdict(start) for start in result.starts], "winner": result.winner})
    if why:
        console.print(why, soft_wrap=True)


def print_metrics(console: Console, metrics: dict[str, Metrics]) -> None:
    """The paper's metrics, a column for each named model."""
    table = Table(box=None, pad_edge=False)
    table.add_column("")
    for name in metrics:
        table.add_column(name.replace("_", " "), justify="right")
    models = list(metrics.values())
    table.add_row("cameras recovered", *(f"{m.cameras_recovered}/{m.cameras}" for m in models))
    for kind in ("rotation", "translation"):
        for threshold in THRESHOLDS:
            values = (getattr(m, f"{kind}_auc{threshold}") for m in models)
            table.add_row(f"{kind} AUC@{threshold}", *(f"{value:.2f}" for value in values))
    table.add_row("landmarks compared", *(str(m.landmarks_compared) for m in models))
    for kind, label in (("median", "median"), ("rmse", "RMSE"), ("p90", "P90")):
        table.add_row(f"landmark {label}", *(f"{getattr(m, f'landmark_{kind}'):.4g}" for m in models))
    console.print(table)
