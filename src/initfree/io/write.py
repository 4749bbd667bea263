"""Output of a solve: DIR/sparse/0 (a COLMAP model), DIR/run.json, DIR/summary.html (the same for people) and
DIR/trace.npz (its steps), all or none.

Of an array of cameras also DIR/landmarks.csv: which point of which frame a landmark is.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from initfree.data.reconstruction import nearest_rotation
from initfree.drawing.residual_figures import residual_figures
from initfree.drawing.scene import scene_of
from initfree.drawing.steps import FILE as TRACE
from initfree.drawing.steps import Steps, steps_of
from initfree.drawing.summary import FILE as SUMMARY
from initfree.drawing.summary import LANDMARKS, summary_page
from initfree.drawing.verdict import verdict_of
from initfree.errors import InputError
from initfree.io.alignment import MOMENTS, write_moments
from initfree.io.export import export
from initfree.io.load import load_colmap
from initfree.io.run_json import describe, plain, write_json
from initfree.io.staged import staged_directory
from initfree.io.trajectories import LENGTHS, POINTS

if TYPE_CHECKING:
    import pycolmap
    from scipy.sparse import csr_array

    from initfree.io.export import Exported
    from initfree.result import Result


COMMAND = "solve"
"""that writes these files"""
_MOST_PICTURES = 200
"""images up to which the page has thumbnails: some three kilobytes each"""


def planned(*, moments: bool, summary: bool = True, scenes: int = 1) -> list[str]:
    """What `write_into` writes, of an array of cameras (`moments`) or of images."""
    models = [f"sparse/{number}" for number in range(scenes)]
    return [*models, "run.json", TRACE, *([SUMMARY] if summary else []), *([MOMENTS, POINTS, LENGTHS] if moments else [])]


def write_result(result: "Result", output: Path, *, overwrite: bool = False, **report: Any) -> None:
    """Write to `output`, which is made if need be. `report` adds to, or replaces, entries of run.json."""
    names = planned(moments=result.problem.observations.moments is not None)
    with staged_directory(output, COMMAND, names, overwrite=overwrite) as staging:
        write_into(result, staging, **report)


def write_into(
    result: "Result",
    staging: Path,
    images: Path | None = None,
    *,
    others: Sequence["Result"] = (),
    summary: bool = True,
    settle: Callable[[Path], dict[str, Any] | None] | None = None,
    **report: Any,
) -> dict[str, Any]:
    """Write the files themselves into a directory that exists; return what run.json holds.

    Args:
        result: The scene of sparse/0, run.json, summary.html and trace.npz.
        staging: The directory.
        images: Directory of the images, for colours.
        others: Other scenes of the input: sparse/1 and so on, each with its own run.json beside the model.
        summary: Write summary.html.
        settle: Moves the written model into another frame, and says what is known of it.
        report: Adds to, or replaces, entries of run.json.
    """
    exported = _export(result, staging / "sparse" / "0", images)
    moments = result.problem.observations.moments
    if moments is not None:
        write_moments(staging / MOMENTS, moments, exported.points.ids.tolist())
    notes = [*result.problem.observations.notes, *result.notes, *exported.notes]
    facts = {"model": exported.figures(), "notes": notes, "scenes": _scenes([result, *others])}
    run = plain(describe(result) | facts | report)
    run["verdict"] = verdict_of(run).sentence
    steps, model = _steps(result, exported.model), exported.model
    if steps is not None:
        steps.write(staging / TRACE)
    if settle is not None and (frame := settle(staging)) is not None:
        run["frame"] = frame
        model = load_colmap(staging)
        steps = None if steps is None else Steps.read(staging / TRACE)
    write_json(staging / "run.json", run)
    for number, other in enumerate(others, 1):
        folder = staging / "sparse" / str(number)
        figures = _export(other, folder, images).figures()
        own = plain(describe(other) | {"model": figures})
        # What is not here stands in the other scenes.
        own["problem"]["dropped"]["images"] = []
        write_json(folder / "run.json", own | {"verdict": verdict_of(own).sentence})
    if summary:
        assert model is not None
        scene = scene_of(model, run, steps=steps, sharing=_sharing(result), most=LANDMARKS)
        pictures = _pictures(scene.model.images, images)
        page = summary_page(run, scene, residual_figures(result.problem, result.reconstruction), pictures)
        (staging / SUMMARY).write_text(page, encoding="utf-8")
    return run


def _pictures(names: tuple[str, ...], images: Path | None) -> list[str | None]:
    """Thumbnails for the page, where Pillow is installed; a damaged image costs the page its thumbnails, not the solve."""
    if images is None or len(names) > _MOST_PICTURES:
        return []
    try:
        from initfree.drawing.thumbnails import as_url, thumbnails

        return [as_url(one) for one in thumbnails(names, images)]
    except (ImportError, InputError):
        return []


def _export(result: "Result", folder: Path, images: Path | None) -> "Exported":
    """The model, written to `folder`."""
    folder.mkdir(parents=True)
    exported = export(result.problem, result.reconstruction, images)
    exported.model.write(str(folder))
    return exported


def _scenes(results: Sequence["Result"]) -> list[dict[str, Any]]:
    """Where each scene is, its images and its verdict."""
    return [
        {
            "model": f"sparse/{number}",
            "accepted": one.accepted,
            "reason": one.certificate.reason,
            "images": list(one.problem.names),
        }
        for number, one in enumerate(results)
    ]


def _steps(result: "Result", model: "pycolmap.Reconstruction") -> Steps | None:
    """The way of the solve in the world of the written model, which is upright and has another unit."""
    found, ids = result.reconstruction, {image.name: image for image in model.images.values() if image.has_pose}
    order = [k for k, name in enumerate(found.names) if name in ids]
    if len(order) < 2:
        return None
    poses = [ids[found.names[k]].cam_from_world() for k in order]
    R, t = np.array([pose.rotation.matrix() for pose in poses]), np.array([pose.translation for pose in poses])
    turn = nearest_rotation((R.transpose(0, 2, 1) @ found.R[order]).sum(axis=0))
    theirs, ours = -np.einsum("nji,nj->ni", R, t), found.centres[order] @ turn.T
    spread = float(np.linalg.norm(ours - ours.mean(axis=0)))
    s = float(np.linalg.norm(theirs - theirs.mean(axis=0))) / spread if spread > 0.0 else 1.0
    return steps_of(*result.moments(), found.names, (s, turn, theirs.mean(axis=0) - s * ours.mean(axis=0)))


def _sharing(result: "Result") -> "csr_array":
    """Landmarks that images share, in the order of their ids, as the model has them."""
    problem = result.problem
    order = np.argsort([problem.observations.images[k].image_id for k in problem.images], kind="stable")
    return problem.tracks.covisible[order][:, order]
