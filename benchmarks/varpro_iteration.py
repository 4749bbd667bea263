"""One exact VarPro iteration: ours on one thread and on two, a generic dense-block Numba version, NumPy; in one run.

    INITFREE_DATA=... python benchmarks/varpro_iteration.py

An iteration solves all landmarks, assembles and factorises the reduced camera system, and evaluates the cost. All versions
compute the same step, which is checked before anything is timed. The second table has one attempted step of every stage:
VarPro with each linear solver, the projective refinement, the Euclidean adjustment (poses, focal lengths, k1, k2). Runs on
one thread, on two and of the generic version alternate, and the fastest of each counts. Compare the ratios: machines
differ, one run does not.

The bound: iterations a second of two processes of one thread each, which share nothing but the machine, over those of one
alone. Where cores share caches, memory and clock it is below 2, and no threads can be expected to pass it.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import time
from collections.abc import Callable
from contextlib import nullcontext
from multiprocessing import get_context
from multiprocessing.connection import Connection

import numba
import numpy as np
import tyro
from data import bal_file
from rich.console import Console
from rich.table import Table
from scipy.linalg import cho_factor, cho_solve

from initfree.data.problem import Problem, restricted
from initfree.engine.factorisation import factorisation
from initfree.engine.linear_solver import LinearSolver
from initfree.engine.reduced_system import ReducedSystem
from initfree.engine.threads import alone, run, set_threads
from initfree.formulations import make
from initfree.formulations.base import homogeneous
from initfree.formulations.pose import PseudoObjectSpaceError
from initfree.io.load import load
from initfree.stages.euclidean.parameters import FreeIntrinsics
from initfree.stages.euclidean.system import MetricSystem, squared_residuals
from initfree.stages.initialization import facing, initialize, spectral_positions
from initfree.stages.refinement.reprojection import ProjectiveRefinement, Reprojection
from initfree.stages.varpro import VariableProjection

ALPHA = 0.1
DAMPING = 1e-2
PROBLEMS = ("ladybug-49", "trafalgar-21", "dubrovnik-16")


def ours(problem: Problem, P: np.ndarray) -> tuple[Callable[[], np.ndarray], dict[str, Callable[[], object]]]:
    """The step as the engine computes it, and its parts."""
    t = problem.tracks
    q = make("pose", ALPHA).quadratic(problem.m, homogeneous(problem.m))
    system = ReducedSystem(t)
    found = q.eliminated(t, P)

    def landmarks() -> float:
        """With the cost."""
        return 0.5 * float(q.eliminated(t, P).squared.sum())

    def factorise() -> np.ndarray:
        solved = system.solve(DAMPING)
        assert solved is not None
        return solved[0]

    def iteration() -> np.ndarray:
        landmarks()
        system.assemble(q, P, found.X, whitening=found.M)
        return factorise()

    parts = {
        "landmarks": landmarks,
        "assembly": lambda: system.assemble(q, P, found.X, whitening=found.M),
        "factorisation": factorise,
    }
    return iteration, parts


@numba.njit(cache=True, fastmath=True)
def _dense_blocks(ptr, cam, A, b, P, H, g):
    """The generic way: per observation the 4x12 and 4x3 Jacobians, 12x3 coupling blocks, 12x12 updates."""
    cost = 0.0
    longest = 0
    for j in range(ptr.size - 1):
        longest = max(longest, ptr[j + 1] - ptr[j])
    W = np.empty((longest, 12, 3))
    WV = np.empty((12, 3))
    Ju = np.zeros((4, 12))
    Jv = np.empty((4, 3))
    X = np.empty(4)
    H[:, :] = 0.0
    g[:] = 0.0
    for j in range(ptr.size - 1):
        V = np.zeros((3, 3))
        rhs = np.zeros(3)
        for a in range(ptr[j], ptr[j + 1]):
            for r in range(4):
                d = b[a, r]
                for k in range(3):
                    d -= A[a, r, k] * P[cam[a], k, 3]
                for c in range(3):
                    Jv[r, c] = A[a, r, 0] * P[cam[a], 0, c] + A[a, r, 1] * P[cam[a], 1, c] + A[a, r, 2] * P[cam[a], 2, c]
                for c in range(3):
                    rhs[c] += Jv[r, c] * d
                    for e in range(3):
                        V[c, e] += Jv[r, c] * Jv[r, e]
        inverse = np.linalg.inv(V)
        X[:3] = inverse @ rhs
        X[3] = 1.0
        for a in range(ptr[j], ptr[j + 1]):
            i = cam[a]
            for r in range(4):
                for c in range(3):
                    Jv[r, c] = A[a, r, 0] * P[i, 0, c] + A[a, r, 1] * P[i, 1, c] + A[a, r, 2] * P[i, 2, c]
                for k in range(3):
                    for e in range(4):
                        Ju[r, 4 * k + e] = A[a, r, k] * X[e]
            for r in range(4):
                residual = -b[a, r]
                for k in range(12):
                    residual += Ju[r, k] * P[i, k // 4, k % 4]
                cost += 0.5 * residual * residual
                for k in range(12):
                    g[12 * i + k] += Ju[r, k] * residual
            for k in range(12):
                for c in range(3):
                    s = 0.0
                    for r in range(4):
                        s += Ju[r, k] * Jv[r, c]
                    W[a - ptr[j], k, c] = s
                for e in range(12):
                    s = 0.0
                    for r in range(4):
                        s += Ju[r, k] * Ju[r, e]
                    H[12 * i + k, 12 * i + e] += s
        for a in range(ptr[j], ptr[j + 1]):
            for k in range(12):
                for c in range(3):
                    s = 0.0
                    for e in range(3):
                        s += W[a - ptr[j], k, e] * inverse[e, c]
                    WV[k, c] = s
            for d in range(ptr[j], ptr[j + 1]):
                if cam[d] <= cam[a]:
                    for k in range(12):
                        for e in range(12):
                            s = 0.0
                            for c in range(3):
                                s += WV[k, c] * W[d - ptr[j], e, c]
                            H[12 * cam[a] + k, 12 * cam[d] + e] -= s
    return cost


def rows(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Residuals A y - b of pOSE, b = A (m, 1)."""
    A = PseudoObjectSpaceError(ALPHA).rows(problem.m)
    return A, np.einsum("nka,na->nk", A, homogeneous(problem.m))


def damped_solve(H: np.ndarray, g: np.ndarray) -> np.ndarray:
    H.flat[:: len(H) + 1] += DAMPING
    return cho_solve(cho_factor(H, lower=True, check_finite=False), -g, check_finite=False).reshape(-1, 3, 4)


def dense_blocks(problem: Problem, P: np.ndarray) -> Callable[[], np.ndarray]:
    A, b = rows(problem)
    n = 12 * problem.tracks.cameras
    H, g = np.empty((n, n)), np.empty(n)

    def iteration() -> np.ndarray:
        _dense_blocks(problem.tracks.ptr, problem.tracks.cam, A, b, P, H, g)
        return damped_solve(H, g)

    return iteration


def plain_numpy(problem: Problem, P: np.ndarray) -> Callable[[], np.ndarray]:
    A, b = rows(problem)
    t = problem.tracks

    def iteration() -> np.ndarray:
        n = 12 * t.cameras
        H, g = np.zeros((n, n)), np.zeros(n)
        for j in range(t.landmarks):
            span = slice(t.ptr[j], t.ptr[j + 1])
            cameras, rows_, b_ = t.cam[span], A[span], b[span]
            Jv = rows_ @ P[cameras][:, :, :3]
            d = b_ - (rows_ @ P[cameras][:, :, 3:])[:, :, 0]
            stacked = Jv.reshape(-1, 3)
            inverse = np.linalg.inv(stacked.T @ stacked)
            X = np.append(inverse @ (stacked.T @ d.reshape(-1)), 1.0)
            Ju = np.einsum("oka,e->okae", rows_, X).reshape(len(cameras), 4, 12)
            residual = rows_ @ (P[cameras] @ X)[:, :, None] - b_[:, :, None]
            W = Ju.transpose(0, 2, 1) @ Jv
            WV = W @ inverse
            for a, i in enumerate(cameras):
                g[12 * i : 12 * i + 12] += (Ju[a].T @ residual[a])[:, 0]
                H[12 * i : 12 * i + 12, 12 * i : 12 * i + 12] += Ju[a].T @ Ju[a]
                for d_, k in enumerate(cameras[: a + 1]):
                    H[12 * i : 12 * i + 12, 12 * k : 12 * k + 12] -= WV[a] @ W[d_].T
        return damped_solve(H, g)

    return iteration


def best_ms(function: Callable[[], object], repeats: int = 15) -> float:
    """The fastest of several calls: what the code costs when nothing else runs."""
    function()
    seconds = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        seconds.append(time.perf_counter() - began)
    return 1e3 * min(seconds)


def in_turns(calls: tuple[tuple[int, Callable[[], object], int], ...], seconds: float) -> tuple[float, ...]:
    """`best_ms` of each function on one or two threads, the fastest of so many calls at a time, in turns: what else runs on
    the machine disturbs all alike."""
    best, began = [np.inf] * len(calls), time.perf_counter()
    set_threads(2)
    while time.perf_counter() - began < seconds:
        for n, (threads, function, repeats) in enumerate(calls):
            # The second thread stays where it is: a new one takes a while to find its core.
            with alone() if threads == 1 else nullcontext():
                best[n] = min(best[n], best_ms(function, repeats))
    set_threads(1)
    return tuple(best)


def one_and_two(function: Callable[[], object], seconds: float = 1.5) -> tuple[float, ...]:
    """On one thread and on two."""
    return in_turns(((1, function, 10), (2, function, 10)), seconds)


def side_by_side(name: str, pipe: Connection) -> None:
    """A process that iterates for as many seconds as it is told, and tells how often it did in one; 0 ends it."""
    problem = load(bal_file(name), min_obs=2)
    set_threads(1)
    iteration, _ = ours(problem, initialize("normal-affine", problem.tracks, 0))
    while seconds := pipe.recv():
        count, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            iteration()
            count += 1
        pipe.send(count / (time.perf_counter() - began))


def bound(name: str, rounds: int = 6, seconds: float = 0.4) -> float:
    """Iterations of two independent processes over those of one, the most of several rounds each."""
    context, pipes, workers = get_context("spawn"), [], []
    for _ in range(2):
        here, there = context.Pipe()
        workers.append(context.Process(target=side_by_side, args=(name, there), daemon=True))
        workers[-1].start()
        pipes.append(here)
    most = [0.0, 0.0]
    for k in range(rounds + 1):
        for n in range(2):
            chosen = pipes[: n + 1]
            for pipe in chosen:
                pipe.send(seconds)
            done = sum(pipe.recv() for pipe in chosen)
            if k > 0:  # the first round loads and warms
                most[n] = max(most[n], done)
    for pipe, worker in zip(pipes, workers, strict=True):
        pipe.send(0.0)
        worker.join()
    return most[1] / most[0]


@numba.njit(nogil=True)
def _roots(begin, end, numbers):
    """Some ten microseconds a member, whatever else there is in the cache."""
    for k in range(begin, end):
        for n in range(2000):
            numbers[64 * k] = np.sqrt(numbers[64 * k] + n)


def cost_of_a_pass(repeats: int = 2000) -> float:
    """Microseconds, the median, that a pass on two threads takes longer than half of the same work without one."""
    numbers = np.zeros(64 * 8)
    work = 10**6 * np.arange(9)
    seconds: list[list[float]] = [[], []]
    calls = (lambda: _roots(0, 4, numbers)), (lambda: run(_roots, work, numbers))
    set_threads(2)
    for _ in range(repeats):
        for call, taken in zip(calls, seconds, strict=True):
            began = time.perf_counter()
            call()
            taken.append(time.perf_counter() - began)
    set_threads(1)
    half, shared = np.median(seconds, axis=1)
    return 1e6 * float(shared - half)


def some(problem: Problem, share: float) -> Problem:
    """The problem with a share of its landmarks, by chance."""
    t = problem.tracks
    kept = np.random.default_rng(0).random(t.landmarks) < share
    found = restricted(problem, kept[t.landmark], least=2)
    return problem if share >= 1.0 or found is None else found[0]


def stages(problem: Problem, P: np.ndarray) -> dict[str, Callable[[], object]]:
    """One attempted step of each stage, all of it but the first linearisation."""
    t, formulation = problem.tracks, make("pose", ALPHA)
    solvers = {"exact": LinearSolver(), "power series": LinearSolver("power"), "PCG": LinearSolver("pcg")}
    found: dict[str, Callable[[], object]] = {}
    for name, solver in solvers.items():
        varpro = VariableProjection(t, problem.m, formulation, P, solver=solver)

        def step(varpro: VariableProjection = varpro) -> None:
            varpro.linearise()
            varpro.attempt(DAMPING)

        found[f"VarPro, {name}"] = step
    start = VariableProjection(t, problem.m, formulation, initialize("spectral", t, 0))
    refinement = ProjectiveRefinement(t, Reprojection(problem.m, problem.unit), start.P, start.X)
    refinement.linearise()
    found["refinement"] = lambda: refinement.attempt(DAMPING)
    cameras = facing(spectral_positions(t))
    pose = np.ascontiguousarray(cameras[:, :, :3]), np.ascontiguousarray(cameras[:, :, 3])
    intrinsics = np.ones(t.cameras), np.zeros((t.cameras, 2))
    system = MetricSystem(t, FreeIntrinsics(focal=True, radial=2).slots)
    image, weight = (problem.m, problem.unit, False), np.ones(t.observations)
    xyz = start.X[:, :3].copy()
    column = np.arange(9 * t.cameras).reshape(-1, 9)
    factor = factorisation(system.pairs, column, column.size)

    def adjustment() -> None:
        """The step itself: linearised, assembled, factorised, substituted back, evaluated."""
        system.assemble((*pose, *intrinsics), xyz, image, weight, DAMPING)
        assert factor.factorise(system.blocks, 1.0 + DAMPING * system.diagonal.reshape(-1))
        step = factor.solve(-system.gradient.reshape(-1))
        moved, _ = system.back_substitute(step.reshape(-1, 9), xyz)
        squared_residuals(t, (*pose, *intrinsics), moved, image)

    found["adjustment"] = adjustment
    return found


def main(
    problems: tuple[str, ...] = PROBLEMS, numpy: bool = True, steps: bool = True, share: float = 1.0, seconds: float = 5.0
) -> None:
    """Print the tables.

    Args:
        problems: Problems of bal/.
        numpy: With the plain NumPy version, which takes seconds.
        steps: With the second table.
        share: Of the landmarks; the bound is that of all.
        seconds: That one thread, two and the generic version take turns for: the longer, the more likely each is alone once.
    """
    table = Table(title="one exact VarPro iteration, ms on one thread / on two; bound: two processes over one")
    columns = ("problem", "observations", "landmarks, cost", "assembly", "factorisation", "one thread", "two", "ratio")
    for column in (*columns, "bound", "dense blocks", "ratio", *(("NumPy", "ratio") if numpy else ())):
        table.add_column(column, justify="right")
    by_stage = Table(title="one attempted step of each stage, ms on one thread / on two")
    for name in problems:
        problem = some(load(bal_file(name), min_obs=2), share)
        P = initialize("normal-affine", problem.tracks, 0)
        set_threads(1)
        iteration, parts = ours(problem, P)
        generic, plain = dense_blocks(problem, P), plain_numpy(problem, P)
        reference = iteration()
        for other in (generic, plain) if numpy else (generic,):
            assert np.allclose(other(), reference, rtol=1e-6, atol=1e-9 * np.abs(reference).max()), name
        set_threads(2)
        assert np.array_equal(iteration(), reference), name
        one, two, slow = in_turns(((1, iteration, 10), (2, iteration, 10), (1, generic, 1)), seconds)
        cells = [name, str(problem.tracks.observations)]
        cells += ["{:.2f} / {:.2f}".format(*one_and_two(part)) for part in parts.values()]
        cells += [
            f"{one:.2f}",
            f"{two:.2f}",
            f"{one / two:.2f}x",
            f"{bound(name):.2f}x",
            f"{slow:.1f}",
            f"{slow / one:.1f}x",
        ]
        if numpy:
            slower = best_ms(plain, 1)
            cells += [f"{slower:.0f}", f"{slower / one:.0f}x"]
        table.add_row(*cells)
        if not steps:
            continue
        timed = {stage: one_and_two(step) for stage, step in stages(problem, P).items()}
        if not by_stage.columns:
            for column in ("problem", *timed):
                by_stage.add_column(column, justify="right")
        by_stage.add_row(name, *(f"{a:.1f} / {b:.1f} ({a / b:.2f}x)" for a, b in timed.values()))
    for result in (table, by_stage) if steps else (table,):
        Console(width=180).print(result)
    print(f"a pass on two threads costs {cost_of_a_pass():.0f} microseconds more than half of its work")


if __name__ == "__main__":
    tyro.cli(main)
