"""`initfree solve`: a reconstruction from observations, written as a COLMAP model.

What only some solves need (parts, compilation) is imported where it is needed: a small solve takes less than a second, of
which imports are the larger part.
"""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console

from initfree.api import solve as solve_problem
from initfree.api import solve_components
from initfree.auto.search import SHORT, most_starts
from initfree.commands.display import print_metrics, print_next, print_result, print_verdict
from initfree.commands.options import Output, Overwrite
from initfree.commands.photographs import is_unmatched, matched
from initfree.commands.solve_progress import Shown, SolveProgress
from initfree.config import SolveConfig, Strategy
from initfree.data.observations import Intrinsics
from initfree.data.reconstruction import Reconstruction
from initfree.drawing.summary import FILE as SUMMARY
from initfree.engine.compilation import expect_kept, must_compile
from initfree.engine.threads import set_threads
from initfree.errors import InputError
from initfree.evaluation import Metrics, evaluate_models
from initfree.io.alignment import Alignment, align_written
from initfree.io.colmap import find_model
from initfree.io.export import check_images
from initfree.io.load import image_names, load, load_model
from initfree.io.run_json import plain, write_json
from initfree.io.staged import staged_directory
from initfree.io.trajectories import write_trajectories
from initfree.io.write import COMMAND, planned, write_into
from initfree.io.written import check_replaceable
from initfree.photographs.settings import Matching
from initfree.result import Result

NOT_ACCEPTED = 3
_SCENE = 10
"""images from which a further scene that is not accepted is written: COLMAP's smallest model"""


def _refuse_to_overwrite(output: Path, *models: Path | None) -> None:
    """No model that was read may be the one that is written."""
    for read in models:
        model = find_model(read) if read is not None and read.is_dir() else None
        if model is not None and model.resolve() == (output / "sparse" / "0").resolve():
            raise InputError(f"output {output} would overwrite the model in {read}; expected another directory")


def solve(
    input: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="INPUT")],
    /,
    output: Output,
    photographs: tyro.conf.OmitArgPrefixes[Matching],
    world: tyro.conf.OmitArgPrefixes[Alignment],
    display: tyro.conf.OmitArgPrefixes[Shown],
    paper: tyro.conf.OmitArgPrefixes[SolveConfig],
    images: Path | None = None,
    image_list: Path | None = None,
    intrinsics: Intrinsics | None = None,
    overwrite: Overwrite = False,
    summary: bool = True,
    threads: int | None = None,
    truth: Path | None = None,
    min_obs: int = 3,
    parts: int | None = None,
    strategy: Strategy = "auto",
) -> int:
    """Reconstruct cameras and landmarks from photographs, or from image observations alone.

    Examples: initfree solve photographs --output out; initfree solve database.db --output out

    Writes OUTPUT/sparse/0 (a COLMAP model), OUTPUT/run.json, OUTPUT/summary.html (the run on a page) and OUTPUT/trace.npz
    (its steps, for `initfree view`); of photographs also OUTPUT/database.db, their features and matches, used again:
    an interrupted run continues. Poses and points of the input are not read. Images that nothing joins with
    the largest part form OUTPUT/sparse/1 and so on. The exit code is 0 if everything written is accepted by the certificate,
    3 if not, 2 for bad input; the last lines name the images that are left out.

    Args:
        input: Folder of photographs, video, COLMAP model or database, or anything else that `initfree formats` lists.
        output: Directory to write to.
        strategy: auto tries several starts, the first as configured here, until one is certified, and leaves out wrong
            matches at the end; single runs the paper's pipeline once, exactly as configured.
        min_obs: Fewest observations of a landmark that is used.
        intrinsics: Whether the input's intrinsics are used as they are, refined, or found anew; by default what the input
            says of them. Those of a BAL file are never used.
        image_list: File with the names of the images to use, one a line; by default all.
        images: Directory of the images, for the points' colours.
        truth: Model to evaluate against, and to take rotations from with --rotations truth.
        threads: Threads that the kernels may use; by default all cores. One step gives the same bits on any number of them.
        parts: Solve parts of at most so many cameras, a process for each core, and adjust and judge the whole they make: for
            thousands of images with known intrinsics. By default the whole at once.
        summary: Write OUTPUT/summary.html.
        overwrite: Replace in OUTPUT also what no solve wrote, or what was changed since.
    """
    began = time.perf_counter()
    # The help names groups of options by these parameters.
    matching, alignment, shown, config = photographs, world, display, paper
    if threads is not None:
        set_threads(threads)
    expect_kept()
    _refuse_to_overwrite(output, input, truth)
    if not overwrite:
        check_replaceable(output, planned(moments=False, summary=summary), COMMAND)
    if config.rotations == "truth" and truth is None:
        raise InputError("--rotations truth takes rotations from a model; give it with --truth MODEL")
    model = None if truth is None else load_model(truth)
    if is_unmatched(input):
        input, wanted, folder = matched(
            input, output, matching, shown, image_list=image_list, threads=threads, overwrite=overwrite
        )
        images = images or folder
    else:
        wanted = None if image_list is None else image_names(image_list)
    problem = load(input, min_obs, intrinsics, wanted)
    if images is not None:
        check_images(problem, images)
    if parts is not None:
        if strategy != "auto" or config.rotations == "truth":
            raise InputError("--parts solves each part with the strategy auto and estimated rotations; expected no other")
        from initfree.auto.parts import check_parts

        check_parts(problem, parts)
    o = problem.observations
    alignment.check([image.name for image in o.images], o.moments or {})
    # Staged before the solve: an output that cannot be written should not cost the user a solve.
    names = planned(moments=o.moments is not None, summary=summary, scenes=max(problem.dropped.components, 1))
    with staged_directory(output, COMMAND, names, overwrite=overwrite) as staging:
        several = strategy == "auto" and parts is None
        iterations = min(config.max_iterations, SHORT) if several else config.max_iterations
        starts = most_starts(problem) if several else None
        with SolveProgress(shown, most_starts=starts, most_iterations=iterations) as progress:
            _compile(progress)
            if parts is not None:
                from initfree.auto.parts import processes, solve_in_parts

                with processes() as executor:
                    results = [solve_in_parts(problem, config, cameras=parts, executor=executor, on_progress=progress)]
            elif strategy == "single" or config.rotations == "truth":
                results = [solve_problem(problem, config, strategy, truth=model, on_progress=progress)]
            else:
                first, *rest = solve_components(problem, config, strategy, on_progress=progress)
                results = [first, *(one for one in rest if one.accepted or len(one.problem.names) >= _SCENE)]
        result = results[0]
        metrics = None if model is None else _scored(result, model)
        scores = None if metrics is None else {stage: m.to_dict() for stage, m in metrics.items()}
        named = None if truth is None else str(truth)
        took = time.perf_counter() - began - progress.compiled
        asked = {"intrinsics": intrinsics, "image_list": image_list, "images": images, "truth": truth, "parts": parts}
        facts = {"options": _options(asked | asdict(alignment)), "truth": named, "metrics": scores, "seconds": took}
        misplaced: InputError | None = None

        def aligned(staging: Path) -> dict[str, Any] | None:
            # A place that was not reconstructed does not cost the solve.
            nonlocal misplaced
            try:
                return align_written(staging, alignment)
            except InputError as error:
                misplaced = error
                return None

        settle = aligned if alignment.asked else None
        run = write_into(result, staging, images, others=results[1:], summary=summary, settle=settle, **facts)
        if alignment.scale is not None and misplaced is None:
            run["uncertainty"]["scene_extent_in_unit_of_scale"] = _extent(result, staging)
            write_json(staging / "run.json", run)
        length = None if o.moments is None else write_trajectories(staging, alignment)
    if shown.json_lines:
        progress.finished(result, output, scores)
    else:
        _show(result, run, output, metrics, shown, length)
    if misplaced is not None:
        raise InputError(f"{misplaced} (the model was written as it is, to be aligned with `initfree convert`)")
    return 0 if all(one.accepted for one in results) else NOT_ACCEPTED


def _options(asked: dict[str, Any]) -> dict[str, Any]:
    """Options beside the configuration, as run.json keeps them and the summary's command repeats them."""
    said = {name: value for name, value in asked.items() if value not in (None, ())}
    return {name: str(value) if isinstance(value, Path) else plain(value) for name, value in said.items()}


def _compile(progress: SolveProgress) -> None:
    """Compile the kernels, once on a machine, with a notice: otherwise a first run looks hung."""
    if must_compile():
        from initfree.commands.warmup import compile_all

        with progress.compiling():
            compile_all()


def _extent(result: Result, staging: Path) -> float:
    """The scene's extent in the unit of the written model."""
    written, solved = load_model(staging / "sparse" / "0"), result.reconstruction
    at = [written.names.index(name) for name in solved.names]
    spread = [float(np.linalg.norm(centres - centres.mean(axis=0))) for centres in (written.centres[at], solved.centres)]
    return result.uncertainty.extent * spread[0] / spread[1]


def _show(
    result: Result, run: dict[str, Any], output: Path, metrics: dict[str, Metrics] | None, shown: Shown, length: str | None
) -> None:
    """What happened, what was written, and last the verdict and what to do next; with --quiet the verdict alone."""
    out = Console(highlight=False, markup=False, emoji=False)
    if not shown.quiet:
        print_result(out, result, run, verbose=shown.verbose)
        if metrics is not None:
            print_metrics(out, metrics)
        if length is not None:
            out.print(length, soft_wrap=True)
        page = f", {output / SUMMARY} (the run on a page)" if (output / SUMMARY).is_file() else ""
        models = " ".join(str(output / scene["model"]) for scene in run["scenes"])
        out.print(f"read: {result.problem.observations.source}", soft_wrap=True)
        out.print(f"written: {models} and {output / 'run.json'}{page}", soft_wrap=True)
    print_verdict(out, run)
    if not shown.quiet:
        print_next(out, run, output)


def _scored(result: Result, truth: Reconstruction) -> dict[str, Metrics]:
    """The metrics after each stage that has a reconstruction."""
    stages = {
        "before_upgrade": result.intermediate.before,
        "after_upgrade": result.intermediate.upgraded.reconstruction,
    }
    if result.config.adjust:
        stages["after_adjustment"] = result.reconstruction
    return {name: evaluate_models(reconstruction, truth) for name, reconstruction in stages.items()}
