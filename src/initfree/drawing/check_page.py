"""summary.html of `initfree check`: the verdict on a model of any program on one page."""

from typing import Any

import numpy as np

from initfree.drawing.page import environment, read
from initfree.drawing.residual_figures import ResidualFigures
from initfree.drawing.scene import Scene
from initfree.drawing.summary import LANDMARKS, STEP_LANDMARKS, STEPS, residual_charts, residual_plane

_BADGES = {"accepted": "yes", "not accepted": "no", "undecided": "no"}
_OPEN_DEGREES = 90.0
_PROMISES = {
    "accepted": "Accepted promises that the observations determine this model and agree with it, up to a similarity.",
    "not accepted": "Not accepted: something in these observations contradicts the model, or leaves it open.",
    "undecided": "Undecided: nothing contradicts the model, and not enough speaks for it.",
}


def check_page(report: dict[str, Any], scene: Scene, figures: ResidualFigures) -> str:
    """The page as HTML; `report` is what check.json holds."""
    images = list(report["images"].values())
    part = report["accepted"] and bool(report["accepted_without"])
    return environment().get_template("check.html.j2").render(
        report=report,
        badge="part" if part else _BADGES[report["verdict"]],
        verdict="accepted, in part" if part else report["verdict"],
        promise=_PROMISES[report["verdict"]],
        scene_data=scene.to_json(LANDMARKS, STEPS, STEP_LANDMARKS),
        cards=_cards(report, images),
        witnesses=sorted(report["witnesses"], key=lambda one: -np.inf if one["weight"] is None else -one["weight"]),
        checks=sorted(report["certificate"]["checks"], key=lambda one: np.inf if one["margin"] is None else one["margin"]),
        images=sorted(images, key=lambda one: (one["trusted"], one["fitting"] or 0.0)),
        charts=[*residual_charts([one["name"] for one in images if not one["trusted"]], figures), residual_plane(figures)],
        scripts=[read(name) for name in ("scene.js", "images.js", "panel.js", "chart.js")],
    )  # fmt: skip


def _cards(report: dict[str, Any], images: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    untrusted = sum(not image["trusted"] for image in images)
    deviations = [
        [one[key] for one in images if one[key] is not None] for key in ("rotation_degrees", "centre_share_of_extent")
    ]
    rotation, centre = (float(np.median(values)) if values else float("nan") for values in deviations)
    against = [one for one in report["intrinsics"].values() if one["contradicted"]]
    certificate = report["certificate"]
    return [
        ("Images", f"{len(images) - untrusted} of {len(images)}", "that the verdict vouches for"),
        ("Error", f"{certificate['median_pixels'] or 0.0:.2g} px", "median over the observations"),
        (
            "Fit",
            f"{100.0 * certificate['inlier_share']:.1f}%",
            "all matches" if report["database"] else "of what the model kept",
        ),
        _certainty(rotation, centre),
        (
            "Intrinsics",
            "contradicted" if against else "agree",
            "focal lengths, with those that the images have",
        ),
    ]


def _certainty(rotation: float, centre: float) -> tuple[str, str, str]:
    """Deviations against the model as a whole: one camera that nothing holds leaves all of them open."""
    if not (rotation < _OPEN_DEGREES and centre < 1.0):
        return "Certain to", "open", "the observations do not hold every camera"
    return "Certain to", f"± {rotation:.2g}°", f"and ± {100.0 * centre:.2g}% of the extent, in the median"
