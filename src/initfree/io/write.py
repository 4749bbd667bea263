"""What a solve leaves on disk: DIR/sparse/0 (a COLMAP model) and DIR/run.json, whole or not at all.

Of an array of cameras also DIR/landmarks.csv: which point of which frame a landmark is.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from initfree.io.alignment import MOMENTS, write_moments
from initfree.io.export import export
from initfree.io.run_json import describe, write_json
from initfree.io.staged import staged_directory

if TYPE_CHECKING:
    from initfree.result import Result


def write_result(result: "Result", output: Path, **report: Any) -> None:
    """Write to `output`, which is made if need be. `report` adds to, or replaces, entries of run.json."""
    with staged_directory(output) as staging:
        write_into(result, staging, **report)


def write_into(result: "Result", staging: Path, images: Path | None = None, **report: Any) -> None:
    """The files themselves, into a directory that exists; colours from the directory `images`."""
    sparse = staging / "sparse" / "0"
    sparse.mkdir(parents=True)
    exported = export(result.problem, result.reconstruction, images)
    exported.model.write(str(sparse))
    moments = result.problem.observations.moments
    if moments is not None:
        write_moments(staging / MOMENTS, moments, exported.points.ids.tolist())
    write_json(staging / "run.json", describe(result) | {"model": exported.figures()} | report)
