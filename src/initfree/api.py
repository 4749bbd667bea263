"""The library: the same functions as the commands, with the same names and defaults."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path

# Libraries first, then what stands on them: nested in one another, imports go a hundred calls deep, where Python takes and
# returns a piece of stack with almost every call.
import numba  # noqa: F401
import numpy as np
import pycolmap
import scipy.sparse.csgraph
import scipy.sparse.linalg
import scipy.spatial.transform  # noqa: F401

import initfree.certificate  # noqa: F401
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
from initfree.io.load import load_model, load_observations
from initfree.result import Intermediate, Result
from initfree.stages.pipeline import OnProgress, State, run_stages
from initfree.two_view.rotations import check_rotations

Model = Result | Reconstruction | pycolmap.Reconstruction | str | Path
"""whatever holds a reconstruction: in memory, or a path"""


def solve(
    problem: Problem,
    config: SolveConfig | None = None,
    strategy: Strategy = "auto",
    *,
    truth: Model | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """From observations to a metric reconstruction and a verdict.

    `auto` tries several starts, the first as configured, until one is certified, and leaves out wrong matches at the end;
    `single` runs the paper's pipeline once, exactly as configured. `truth` is looked at for rotations only, and only with
    `rotations="truth"`.
    """
    config = SolveConfig() if config is None else config
    if strategy not in ("auto", "single"):
        raise InputError(f"strategy is {strategy!r}; expected one of auto, single")
    model = None if truth is None else as_model(truth)
    check_rotations(problem, config, model)
    with one_blas_thread():
        way = solve_auto if strategy == "auto" else solve_single
        return way(problem, config, truth=model, on_progress=on_progress)


def solve_each(
    problem: Problem,
    configs: Sequence[SolveConfig],
    strategy: Strategy = "single",
    *,
    executor: Executor | None = None,
) -> Iterator[Result]:
    """`solve` of one problem with each of the configurations, side by side; results come in their order.

    For hundreds of starts of a small problem: a start for each core keeps them busier than all cores on one start, whose
    kernels have too little to share. By default the threads of this process; `initfree.auto.parts.processes()` as the
    `executor`, or Dask's, for what the interpreter would do one after the other.
    """
    work = partial(_solved, problem, strategy=strategy)
    with one_blas_thread():
        yield from in_order(work, configs) if executor is None else executor.map(work, configs)


def _solved(problem: Problem, config: SolveConfig, strategy: Strategy) -> Result:
    return solve(problem, config, strategy)


def solve_components(
    problem: Problem,
    config: SolveConfig | None = None,
    strategy: Strategy = "auto",
    *,
    on_progress: OnProgress | None = None,
) -> tuple[Result, ...]:
    """Every scene that the images show: a result each, with its own verdict; the first is that of `solve`.

    What follows is solved of the images that no result before has: other components of the input, those with most images
    first, each whatever its verdict; and images that an accepted reconstruction left out, where they form an accepted one
    of their own. No two results have an image in common, and each stands in a world of its own. Components of two images
    are none.
    """
    found: list[Result] = []
    taken: set[str] = set()
    rest: Problem | None = problem
    while rest is not None:
        result = solve(rest, config, strategy, on_progress=on_progress)
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
    """The stages once, exactly as configured, and the verdict on what they led to."""
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
    """The paper's metrics of a result, a model in memory or a model on disk.

    Images match by name; landmarks by the observations that they share (`shared_landmarks`), or by id where one of the two
    is a bare `Reconstruction`, which has none.
    """
    (model, seen), (true, true_seen) = _read(estimate), _read(truth)
    if seen is not None and true_seen is not None:
        mine, theirs = landmark_matches(seen, true_seen)
        # What matches nothing gets an id that nothing else has.
        ids = -1 - np.arange(len(model.ids))
        known = np.isin(model.ids, mine)
        order = np.argsort(mine)
        ids[known] = theirs[order][np.searchsorted(mine[order], model.ids[known])]
        model = replace(model, ids=ids)
    return evaluate_models(model, true)


def _read(source: Model) -> tuple[Reconstruction, Observations | None]:
    """Poses and landmarks, and the observations that tell which landmarks they are."""
    if isinstance(source, Reconstruction):
        return source, None
    if isinstance(source, Result):
        return source.reconstruction, source.problem.observations
    if not isinstance(source, pycolmap.Reconstruction):
        path = Path(source)
        directory = colmap.find_model(path) if path.is_dir() else None
        if directory is None:
            return load_model(path), load_observations(path, "unknown")
        source = colmap.read_model(directory)
    return colmap.reconstruction_of(source), colmap.observations_of(source, "the model", "unknown")


def as_model(source: Model) -> Reconstruction:
    """Poses and landmarks of any of the accepted kinds."""
    if isinstance(source, Reconstruction):
        return source
    if isinstance(source, Result):
        return source.reconstruction
    if isinstance(source, pycolmap.Reconstruction):
        return colmap.reconstruction_of(source)
    return load_model(source)
