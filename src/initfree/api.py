"""The public functions: the same as the commands, with the same names and defaults."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pycolmap

from initfree.auto.strategy import solve_auto
from initfree.certificate import certify
from initfree.config import SolveConfig, Strategy
from initfree.data.observations import Observations
from initfree.data.problem import Problem, of_other_images
from initfree.data.reconstruction import Reconstruction
from initfree.data.shared_landmarks import landmark_matches
from initfree.engine.parallel import in_order, one_blas_thread
from initfree.errors import InputError
from initfree.evaluation import Metrics, evaluate_models
from initfree.io import colmap
from initfree.io.load import as_problem, load_colmap, load_model, load_observations
from initfree.result import Intermediate, Result
from initfree.stages.pipeline import OnProgress, State, run_stages
from initfree.two_view.rotations import check_rotations

Source = Problem | pycolmap.Reconstruction | str | Path
"""a problem, or an input of `load`"""
Model = Result | Reconstruction | pycolmap.Reconstruction | str | Path
"""a reconstruction in memory, or the path of one"""


def solve(
    problem: Source,
    config: SolveConfig | None = None,
    strategy: Strategy = "auto",
    *,
    truth: Model | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """Reconstruct cameras and landmarks from observations, and judge the reconstruction.

    Args:
        problem: A `Problem`; or a path or a pycolmap.Reconstruction, which `load` reads with its defaults.
        config: Options of the stages.
        strategy: auto tries several starts, the first as configured, until the certificate accepts one, and removes wrong
            matches at the end; single runs the paper's pipeline once, exactly as configured.
        truth: Reconstruction whose rotations are used with `rotations="truth"`, and for nothing else.
        on_progress: Called with each step of each stage.
    """
    result = _solve(as_problem(problem), config, strategy, truth, on_progress)
    parts, gone = result.problem.dropped.components, len(result.problem.dropped.images)
    if parts < 2:
        return result
    note = f"nothing joins the {parts} parts of the input; {gone} images are not in this one: solve_components solves each"
    return replace(result, notes=(*result.notes, note))


def _solve(
    problem: Problem,
    config: SolveConfig | None,
    strategy: Strategy,
    truth: Model | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    config = as_config(config)
    if strategy not in ("auto", "single"):
        raise InputError(f"strategy is {strategy!r}; expected one of auto, single")
    model = None if truth is None else as_model(truth)
    check_rotations(problem, config, model)
    with one_blas_thread():
        run = solve_auto if strategy == "auto" else solve_single
        return run(problem, config, truth=model, on_progress=on_progress)


def as_config(config: SolveConfig | None) -> SolveConfig:
    """The given options, or the defaults."""
    if config is not None and not isinstance(config, SolveConfig):
        raise InputError(f"config is {config!r}; expected a SolveConfig, such as SolveConfig(seed=1)")
    return SolveConfig() if config is None else config


def solve_each(
    problem: Source,
    configs: Sequence[SolveConfig],
    strategy: Strategy = "single",
    *,
    executor: Executor | None = None,
) -> Iterator[Result]:
    """Solve one problem with each of several configurations, in parallel; yield the results in order.

    Hundreds of starts of a small problem use the cores best with one start for each core.

    Args:
        problem: As for `solve`.
        configs: Options of each solve.
        strategy: As for `solve`.
        executor: By default the threads of this process. Processes (`initfree.auto.parts.processes()`, or Dask's executor)
            also run in parallel what holds the interpreter's lock.
    """
    work = partial(_solved, as_problem(problem), strategy=strategy)
    with one_blas_thread():
        yield from in_order(work, configs) if executor is None else executor.map(work, configs)


def _solved(problem: Problem, config: SolveConfig, strategy: Strategy) -> Result:
    return solve(problem, config, strategy)


def solve_components(
    problem: Source,
    config: SolveConfig | None = None,
    strategy: Strategy = "auto",
    *,
    on_progress: OnProgress | None = None,
) -> tuple[Result, ...]:
    """Solve every scene that the images show, each with a verdict of its own; the first result is that of `solve`.

    The others come from images without a result so far: from other connected components of the input, largest first,
    accepted or not; and from images that an accepted reconstruction left out, if they form an accepted one. No two results
    share an image, and each has a frame of its own. Components of two images are ignored.

    Args:
        problem: As for `solve`.
        config: Options of each solve.
        strategy: As for `solve`.
        on_progress: Called with each step of each stage.
    """
    problem = as_problem(problem)
    found: list[Result] = []
    taken: set[str] = set()
    rest: Problem | None = problem
    while rest is not None:
        result = _solve(rest, config, strategy, on_progress=on_progress)
        if result.accepted or not found or set(problem.names).isdisjoint(rest.names):
            found.append(result)
        taken |= set(result.problem.names if result.accepted else rest.names)
        rest = of_other_images(problem, taken)
    return tuple(found)


def solve_single(
    problem: Problem,
    config: SolveConfig,
    *,
    truth: Reconstruction | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """Run the stages once, exactly as configured, and judge the reconstruction."""
    state = run_stages(State(problem, config, truth=truth, on_progress=on_progress))
    assert state.before is not None
    assert state.upgraded is not None
    assert state.reconstruction is not None
    return Result.labelled(
        problem=problem,
        config=config,
        reconstruction=state.reconstruction,
        certificate=certify(problem, state.reconstruction),
        intermediate=Intermediate(state.P, state.X, state.before, state.upgraded, state.trace),
        stages=state.reports,
    )


def evaluate(estimate: Model, truth: Model) -> Metrics:
    """Compare a reconstruction with the truth by the paper's metrics.

    Images match by name. Landmarks match by common observations (`shared_landmarks`), or by id if one of the two is a bare
    `Reconstruction`, which has no observations.

    Args:
        estimate: A result, a reconstruction in memory, or the path of one.
        truth: The same.
    """
    (model, seen), (true, true_seen) = _read(estimate), _read(truth)
    if seen is not None and true_seen is not None:
        mine, theirs = landmark_matches(seen, true_seen)
        # A landmark without a match gets an id that no other has.
        ids = -1 - np.arange(len(model.ids))
        known = np.isin(model.ids, mine)
        order = np.argsort(mine)
        ids[known] = theirs[order][np.searchsorted(mine[order], model.ids[known])]
        model = replace(model, ids=ids)
    return evaluate_models(model, true)


def _read(source: Model) -> tuple[Reconstruction, Observations | None]:
    """Poses and landmarks, and the observations that identify the landmarks."""
    if isinstance(source, Reconstruction):
        return source, None
    if isinstance(source, Result):
        return source.reconstruction, source.problem.observations
    if isinstance(source, pycolmap.Reconstruction):
        return colmap.reconstruction_of(source), colmap.observations_of(source, "the model", "unknown")
    model = load_colmap(path := Path(source))
    if model is None:
        return load_model(path), load_observations(path, "unknown")
    return colmap.reconstruction_of(model), colmap.observations_of(model, str(path), "unknown")


def as_model(source: Model) -> Reconstruction:
    """Poses and landmarks of any kind of `Model`."""
    if isinstance(source, Reconstruction):
        return source
    if isinstance(source, Result):
        return source.reconstruction
    if isinstance(source, pycolmap.Reconstruction):
        return colmap.reconstruction_of(source)
    return load_model(source)
