"""Divide and conquer: parts of the covisibility graph, solved independently, each with its verdict, and merged.

For problems that exceed the memory of one process, or run on several machines. A part returns its poses and landmarks,
which are small compared with its observations. One adjustment and one certificate judge the whole as after any other
start.
"""

import multiprocessing
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from initfree.auto.finish import finished
from initfree.auto.merging import Merged, PartialReconstruction, merge
from initfree.auto.repair import repair, repair_limits
from initfree.auto.search import Search
from initfree.auto.solution import Solution, Start
from initfree.auto.strategy import solve_auto
from initfree.certificate import Evidence
from initfree.config import SolveConfig
from initfree.data.camera_graph import smoothest, without_diagonal
from initfree.data.observations import Observations
from initfree.data.problem import Problem, build_problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index, Tracks
from initfree.engine.compilation import clock
from initfree.engine.parallel import in_order, one_blas_thread
from initfree.engine.threads import set_threads, threads
from initfree.errors import InputError
from initfree.result import Intermediate, Result, StageReport, StartReport
from initfree.stages.euclidean import resect, robust_cost
from initfree.stages.pipeline import OnProgress, State, adjust_euclidean, upgrade_metric

CAMERAS = 200
"""of a part, without its share of other cameras"""
SHARED = 0.3
"""other cameras of a part, as a share of its own: those that share most landmarks with it"""


@dataclass(frozen=True)
class Solved:
    """The result of a part, labelled by the names and ids of the whole."""

    reconstruction: Reconstruction
    report: StartReport
    reason: str
    """of its verdict"""


def parts_of(tracks: Tracks, cameras: int, shared: float = SHARED) -> list[Index]:
    """Cameras of overlapping parts: halves along the Fiedler vector of the graph until a part has at most so many cameras,
    each with the other cameras that share most landmarks with it."""
    graph = without_diagonal(tracks.covisible)
    return [_extended(graph, own, shared) for own in _halved(graph, np.arange(tracks.cameras), cameras)]


def _halved(graph: csr_array, members: Index, most: int) -> list[Index]:
    """`graph` is that of `members` alone."""
    if len(members) <= most:
        return [members]
    along = smoothest(graph, 1)[:, 0]
    order = np.argsort(along, kind="stable")
    halves = np.sort(order[: len(order) // 2]), np.sort(order[len(order) // 2 :])
    return [part for half in halves for part in _halved(csr_array(graph[half][:, half]), members[half], most)]


def _extended(graph: csr_array, own: Index, shared: float) -> Index:
    common = np.asarray(graph[own].sum(axis=0)).reshape(-1)
    common[own] = 0.0
    others = np.argsort(-common, kind="stable")[: int(np.ceil(shared * len(own)))]
    return np.sort(np.concatenate([own, others[common[others] > 0.0]]))


def problem_of(problem: Problem, cameras: Index) -> Problem:
    """The problem of some cameras without the observations of others, for another process."""
    o = problem.observations
    number = np.full(len(o.images), -1, dtype=np.int64)
    number[problem.images[cameras]] = np.arange(len(cameras))
    rows = np.flatnonzero(number[o.image] >= 0)
    part = Observations(
        source=o.source,
        images=tuple(o.images[k] for k in problem.images[cameras]),
        cameras=o.cameras,
        intrinsics=o.intrinsics,
        image=number[o.image[rows]],
        landmark_id=o.landmark_id[rows],
        keypoint=o.keypoint[rows],
        normalised=o.normalised[rows],
        image_unit=o.image_unit[problem.images[cameras]],
    )
    return build_problem(part, problem.min_obs)


def processes(count: int | None = None) -> ProcessPoolExecutor:
    """Workers for `solve_in_parts`, by default one a core, which share the cores' threads evenly."""
    count = threads() if count is None else count
    # A fork of a process with threads may wait for ever for a lock that one of them held.
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, fresh, initializer=set_threads, initargs=(max(1, threads() // count),))


def solve_part(problem: Problem, config: SolveConfig) -> Solved:
    """One part by the strategy `auto`; a task of its own, on any machine."""
    began = clock()
    with one_blas_thread():
        result = solve_auto(problem, config)
    evidence, cost = result.certificate.evidence, robust_cost(result.problem, result.reconstruction)
    shares = evidence.inlier_share, float(evidence.by_camera.share.min())
    report = StartReport("part", clock() - began, cost, result.accepted, *shares, result.stages)
    return Solved(result.reconstruction, report, result.certificate.reason)


def check_parts(problem: Problem, cameras: int) -> None:
    """Refuse what cannot be solved in parts of so many cameras."""
    if not problem.calibrated:
        raise InputError("parts are solved with known intrinsics; expected some, or the strategy auto on the whole")
    if cameras < 3:
        raise InputError(f"parts of {cameras} cameras; expected at least 3")


def solve_in_parts(
    problem: Problem,
    config: SolveConfig | None = None,
    *,
    cameras: int = CAMERAS,
    executor: Executor | None = None,
    on_progress: OnProgress | None = None,
) -> Result:
    """Solve a problem in parts of at most so many cameras, merge them, and judge the whole.

    `executor` is one of the standard library's, such as `processes()`, or Dask's `Client.get_executor()` for several
    machines; by default the threads of this process. Rejected parts are dropped, and their cameras resected from the
    landmarks of the others. Only for known intrinsics, because each part would find its own.
    """
    config = SolveConfig() if config is None else config
    check_parts(problem, cameras)
    began = clock()
    pieces = [problem_of(problem, chosen) for chosen in parts_of(problem.tracks, cameras)]
    work: Callable[[Problem], Solved] = partial(solve_part, config=config)
    running: Iterable[Solved] = in_order(work, pieces) if executor is None else executor.map(work, pieces)
    solved = []
    with one_blas_thread():
        for number, part in enumerate(running):
            solved.append(part)
            if on_progress is not None:
                on_progress(f"part of {len(pieces)}", number, None)
        return _whole(problem, config, solved, clock() - began, on_progress)


def _whole(
    problem: Problem, config: SolveConfig, solved: list[Solved], seconds: float, on_progress: OnProgress | None
) -> Result:
    """One adjustment and one verdict over the agreeing parts."""
    accepted = [part for part in solved if part.report.accepted]
    if not accepted:
        raise InputError(f"none of {len(solved)} parts was accepted; the first because {solved[0].reason}")
    t = problem.tracks
    merged = merge([_numbered(problem, part.reconstruction) for part in accepted], t.cameras, t.landmarks)
    start = _completed(problem, merged, config.seed)
    P = np.concatenate([start.R, start.t[:, :, None]], axis=2)
    X = np.column_stack([start.xyz, np.ones(t.landmarks)])
    report = StageReport("parts", seconds, iterations=len(solved))
    # The cameras are metric already: the upgrade changes nothing.
    read = replace(config, upgrade="none")
    state = State(problem, read, P=P, X=X, reports=(report,), on_progress=on_progress)
    state = adjust_euclidean(upgrade_metric(state))
    assert state.reconstruction is not None
    assert state.before is not None
    assert state.upgraded is not None
    limits = repair_limits(problem, config.max_iterations, config.adjust_tolerance)
    reconstruction, _ = repair(problem, state.reconstruction, limits, config.seed)
    starts = tuple(replace(part.report, name=f"part {number}") for number, part in enumerate(solved))
    note = f"solved in {len(solved)} parts; {len(accepted)} were accepted on their own, and {len(merged.parts)} agree"
    solution = Solution(
        Evidence(problem, reconstruction), Start("parts", config),
        Intermediate(P, X, state.before, state.upgraded, state.trace), state.reports, (note,),
    )  # fmt: skip
    return finished(Search(problem, config), solution).result(config, starts)


def _numbered(problem: Problem, reconstruction: Reconstruction) -> PartialReconstruction:
    """The part's cameras and landmarks by the indices of the whole, ascending; others are left out."""
    index = {name: k for k, name in enumerate(problem.names)}
    known = [k for k, name in enumerate(reconstruction.names) if name in index]
    cameras = np.array([index[reconstruction.names[k]] for k in known], dtype=np.int64)
    order = np.argsort(cameras)
    _, mine, theirs = np.intersect1d(problem.landmark_ids, reconstruction.ids, assume_unique=True, return_indices=True)
    part = reconstruction.subset(np.array(known, dtype=np.int64)[order], theirs)
    return PartialReconstruction(part, cameras[order], mine)


def _completed(problem: Problem, merged: Merged, seed: int) -> Reconstruction:
    """Resect cameras of rejected parts from the landmarks of the others, where possible."""
    missing = np.flatnonzero(~merged.placed)
    if not len(missing):
        return merged.reconstruction
    return resect(problem, merged.reconstruction, missing, seed=seed)[0]
