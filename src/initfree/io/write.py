"""What a solve leaves on disk: DIR/sparse/0 (a COLMAP model), DIR/run.json, DIR/summary.html (the same for people) and
DIR/trace.npz (its steps), whole or not at all.

Of an array of cameras also DIR/landmarks.csv: which point of which frame a landmark is.
"""

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
from initfree.io.alignment import MOMENTS, write_moments
from initfree.io.export import export
from initfree.io.run_json import describe, plain, write_json
from initfree.io.staged import staged_directory

if TYPE_CHECKING:
    import pycolmap
    from scipy.sparse import csr_array

    from initfree.result import Result


COMMAND = "solve"
"""that writes these files"""


def planned(*, moments: bool, summary: bool = True) -> list[str]:
    """What `write_into` writes, of an array of cameras (`moments`) or of images."""
    return ["sparse/0", "run.json", TRACE, *([SUMMARY] if summary else []), *([MOMENTS] if moments else [])]


def write_result(result: "Result", output: Path, *, overwrite: bool = False, **report: Any) -> None:
    """Write to `output`, which is made if need be. `report` adds to, or replaces, entries of run.json."""
    names = planned(moments=result.problem.observations.moments is not None)
    with staged_directory(output, COMMAND, names, overwrite=overwrite) as staging:
        write_into(result, staging, **report)


def write_into(
    result: "Result", staging: Path, images: Path | None = None, *, summary: bool = True, **report: Any
) -> tuple[str, ...]:
    """The files themselves, into a directory that exists; colours from the directory `images`. What the user should know of
    them, a sentence each."""
    sparse = staging / "sparse" / "0"
    sparse.mkdir(parents=True)
    exported = export(result.problem, result.reconstruction, images)
    exported.model.write(str(sparse))
    moments = result.problem.observations.moments
    if moments is not None:
        write_moments(staging / MOMENTS, moments, exported.points.ids.tolist())
    told = {"model": exported.figures(), "notes": [*result.notes, *exported.notes]}
    run = plain(describe(result) | told | report)
    write_json(staging / "run.json", run)
    steps = _steps(result, exported.model)
    if steps is not None:
        steps.write(staging / TRACE)
    if summary:
        scene = scene_of(exported.model, run, steps=steps, sharing=_sharing(result), most=LANDMARKS)
        page = summary_page(run, scene, residual_figures(result.problem, result.reconstruction))
        (staging / SUMMARY).write_text(page, encoding="utf-8")
    return exported.notes


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
