"""summary.html: input, output, verdict and command of a run on one page."""

import shlex
from collections.abc import Sequence
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from initfree.config import SolveConfig
from initfree.data.names import natural
from initfree.drawing.page import environment, number, read
from initfree.drawing.palette import coloured
from initfree.drawing.residual_figures import ResidualFigures
from initfree.drawing.scene import Scene
from initfree.drawing.verdict import UNDETERMINED, counted, verdict_of, why_not_the_cheapest

FILE = "summary.html"
_MIN_OBS = 3
"""the default of `initfree solve`"""
_LEAST = 1e-3
"""of a card's figure: less is as good as nothing, in pixels, degrees and percent alike"""
LANDMARKS, STEPS, STEP_LANDMARKS = 6000, 40, 500
_SCALE = ["#{:02x}{:02x}{:02x}".format(*colour) for colour in coloured(np.linspace(0.0, 1.0, 24), 0.0, 1.0)]
_GIVEN = {"known": "given as known", "refine": "given as a guess", "unknown": "unknown"}
_STAGES = {
    "varpro": "stage 1: object-space error",
    "radial": "radial refinement: pixels²",
    "refinement": "stage 2: projective refinement, pixels²",
    "adjustment": "stage 4: bundle adjustment, pixels²",
    "trimming": "trimming",
    "repair": "repair",
}


def summary_page(run: dict[str, Any], scene: Scene, figures: ResidualFigures, pictures: Sequence[str | None] = ()) -> str:
    """The page as HTML; `run` is what run.json holds, `pictures` the images of the scene as addresses, if there are any."""
    template = environment().get_template("summary.html.j2")
    return template.render(
        run=run,
        verdict=verdict_of(run),
        why=why_not_the_cheapest(run),
        cameras=sorted(run["cameras"].items(), key=lambda item: natural(item[0])),
        scene=scene,
        scene_data=scene.to_json(LANDMARKS, STEPS, STEP_LANDMARKS) | {"images": list(pictures)},
        cards=_cards(run),
        dropped=_dropped(run),
        intrinsics=_intrinsics(run),
        charts=_charts(run, figures),
        uncertain=_uncertainty(run),
        plane=residual_plane(figures),
        checks=_checks(run),
        command=command(run),
        scripts=[read(name) for name in ("scene.js", "images.js", "panel.js", "chart.js")],
    )


def command(run: dict[str, Any]) -> str:
    """What a shell needs to do the same again, or Python where the input was no file: what differs from the defaults."""
    configuration = run["configuration"]
    # JSON has lists for tuples.
    values = {f.name: tuple(v) if isinstance(v := configuration[f.name], list) else v for f in fields(SolveConfig)}
    chosen = {f.name: values[f.name] for f in fields(SolveConfig) if values[f.name] != f.default}
    if not Path(str(run["input"])).exists():
        options = ", ".join(f"{name}={value!r}" for name, value in chosen.items())
        return f"initfree.solve(problem, initfree.SolveConfig({options}), strategy={run['strategy']!r})"
    words = ["initfree", "solve", str(run["input"]), "--output", "again"]
    if run["strategy"] != "auto":
        words += ["--strategy", run["strategy"]]
    if configuration["min_obs"] != _MIN_OBS:
        words += ["--min-obs", str(configuration["min_obs"])]
    for name, value in (chosen | run.get("options", {})).items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, bool):
            words.append(flag if value else flag.replace("--", "--no-", 1))
        elif isinstance(value, list | tuple):
            words += [flag, *map(str, value)]
        else:
            words += [flag, str(value)]
    return shlex.join(words)


def _cards(run: dict[str, Any]) -> list[tuple[str, str, str]]:
    problem, certificate, model = run["problem"], run["certificate"], run["model"]
    images = problem["cameras"] + len(problem["dropped"]["images"])
    u = run["uncertainty"]
    rotation, centre = (_finite(u[key]) for key in ("rotation_degrees", "centre_share_of_extent"))
    starts, fit = len(run["starts"]), number(certificate["inlier_share"], ".1f", 100.0)
    return [
        ("Cameras" if problem.get("array") else "Images", f"{problem['cameras']} of {images}", "placed"),
        ("Landmarks", f"{model['points']:,}", f"in the model; it was solved with {problem['landmarks']:,}"),
        ("Error", f"{_digits(certificate['median_pixels'])} px", "median over all observations, at the end"),
        ("Fit", f"{fit}%", f"of {problem['observations']:,} observations within 4 px"),
        _certain(float(np.median(rotation)), float(np.median(centre))),
        ("Took", f"{run['seconds']:.1f} s", f"{starts} start{'s' if starts != 1 else ''}" if starts else "one pipeline"),
    ]  # fmt: skip


def _certain(rotation: float, centre: float) -> tuple[str, str, str]:
    if not rotation < UNDETERMINED:
        return ("Certain to", "–", "the observations do not determine the cameras")
    return ("Certain to", f"± {_digits(rotation)}°", f"and ± {_digits(100 * centre)}% of the extent")


def _finite(values: dict[str, Any]) -> Any:
    found = np.array([np.nan if v is None else v for v in values.values()], dtype=np.float64)
    found = found[np.isfinite(found)]
    return found if len(found) else np.array([np.nan])


def _digits(value: Any) -> str:
    if value is None or not np.isfinite(value):
        return "–"
    return f"{float(value):.2g}" if abs(value) >= _LEAST or value == 0.0 else f"< {_LEAST:g}"


def _dropped(run: dict[str, Any]) -> list[tuple[str, str]]:
    """How many of what, and why."""
    d, problem, model = run["problem"]["dropped"], run["problem"], run["model"]
    least = run["configuration"]["min_obs"]
    found = [
        (d["repeated_observations"], "observations", "the landmark was seen twice in one image"),
        (d["undistortable_observations"], "observations", "the camera model cannot undistort them"),
        (
            d["observations"],
            "observations",
            f"of tracks shorter than {least}, of wrong matches, or of images that do not agree",
        ),
        (d["landmarks"], "landmarks", "nothing or too little was left of them"),
        (len(d["images"]), "images", "too few observations, or they agree with nothing"),
        (max(d["components"] - 1, 0), "separate parts", "nothing joins them with the largest, which was solved"),
        (
            model["outlier_observations_left_out"],
            "observations",
            "more than 4 px off: not written to the model",
        ),
        (model["points_left_out"], "landmarks", "too few fitting observations or too small an angle to be written"),
    ]
    taken = (problem["cameras"], problem["landmarks"], problem["observations"])
    lines = [("{:,} images, {:,} landmarks, {:,} observations".format(*taken), "solved with")]
    lines += [(counted(count, what.removesuffix("s")), why) for count, what, why in found if count]
    back = model["points_of_two_observations_brought_back"]
    if back:
        lines.append((f"{back:,} landmarks", "of two observations, brought back once the cameras were known"))
    return lines


def _intrinsics(run: dict[str, Any]) -> str:
    """The input's statement on intrinsics, with the note of the solve that changed or found them."""
    given = run["intrinsics"]["given"]
    change = next((note for note in run["notes"] if note.startswith(("the given intrinsics", "intrinsics found"))), None)
    if change is not None:
        return f"{_GIVEN[given]}; {change}"
    became = "used as they are" if given == "known" else "a focal length and a distortion of each image were found"
    return f"{_GIVEN[given]}, {became}"


def _charts(run: dict[str, Any], figures: ResidualFigures) -> dict[str, list[dict[str, Any]]]:
    costs = []
    for stage in run["stages"]:
        history = stage["history"]
        if len(history) < 2:
            continue
        y = [stage["initial_cost"], *(step["cost"] for step in history)]
        title = f"{_STAGES.get(stage['name'], stage['name'])}: {stage['reason']}"
        series = [{"x": list(range(len(y))), "y": [_short(v) for v in y]}]
        costs.append({"kind": "lines", "title": title, "x": "attempted step", "log": True, "series": series})
    return {"costs": costs, "residuals": residual_charts(run["certificate"]["failing"], figures)}


def residual_plane(figures: ResidualFigures) -> dict[str, Any]:
    """Errors over the image plane, all images on top of each other."""
    return {
        "kind": "plane",
        "title": "mean error over the image",
        "cells": figures.cells,
        "aspect": figures.aspect,
        "longest": figures.longest,
        "high": figures.high,
        "scale": _SCALE,
    }


def residual_charts(failing: Sequence[str], figures: ResidualFigures) -> list[dict[str, Any]]:
    """Median error of each image, those that fail marked, and observations by error."""
    names = list(figures.names)
    marked = [k for k, name in enumerate(names) if name in failing]
    median = {"kind": "bars", "title": "median error of each image, px", "unit": "px", "names": names, "marked": marked}
    edges = figures.edges
    labels = [f"{low:.3g} to {high:.3g} px" for low, high in pairwise(edges)]
    beyond = f" ({figures.beyond:,} beyond)" if figures.beyond else ""
    spread = {
        "kind": "bars",
        "title": "observations by error, px",
        "x": f"0 to {edges[-1]:g} px{beyond}",
        "unit": "observations",
        "names": labels,
        "ticks": [[k, f"{edges[k]:g}"] for k in range(0, len(edges), (len(edges) - 1) // 4)],
    }
    return [
        median | {"values": [_short(v) for v in figures.median]},
        spread | {"values": [int(v) for v in figures.count]},
    ]


def _uncertainty(run: dict[str, Any]) -> list[dict[str, Any]]:
    u, failing = run["uncertainty"], run["certificate"]["failing"]
    found = []
    for key, title, unit, factor in (
        ("rotation_degrees", "rotation, degrees", "°", 1.0),
        ("centre_share_of_extent", "place, % of the scene's extent", "%", 100.0),
        ("focal_share", "focal length, %", "%", 100.0),
    ):
        if not u[key]:
            continue
        names = list(u[key])
        values = [None if v is None else _short(factor * v) for v in u[key].values()]
        marked = [k for k, name in enumerate(names) if name in failing]
        found.append({"kind": "bars", "title": title, "unit": unit, "names": names, "values": values, "marked": marked})
    return found


def _short(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(f"{value:.4g}")


def _checks(run: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that fail first, then the rest from the smallest margin on."""
    return sorted(run["certificate"]["checks"], key=lambda check: np.inf if check["margin"] is None else check["margin"])
