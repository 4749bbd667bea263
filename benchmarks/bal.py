"""BAL from nothing, intrinsics unknown, against the classical optimum that Ceres reaches from BAL's own initial values.

Cost: 1/2 sum of squared pixels over all observations, rotation, translation, f, k1, k2 of every camera free, points behind
cameras as BAL counts them. `initfree` sees neither initial values nor intrinsics, and solves with its defaults; what it
finds is then adjusted by least squares like the other.

pip install pyceres
INITFREE_DATA=... OPENBLAS_NUM_THREADS=1 python benchmarks/bal.py --seeds 10
"""

import time
from collections.abc import Sequence
from dataclasses import replace

import numba
import numpy as np
import pyceres
import tyro
from data import bal_file
from rich.console import Console
from rich.table import Table

import initfree
from initfree.data.problem import Observations, Problem, build_problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Tracks
from initfree.io.bal import BalFile, read_bal
from initfree.io.load import load_observations
from initfree.result import Result
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust


@numba.njit(cache=True)
def project(camera: Array, X: Array, J: Array, B: Array) -> tuple[float, float]:
    """BAL's projection of one point, y down as in `read_bal`; J (2x9) and B (2x3) take its derivatives.

    x = R(w) X + t, p = -(x, y)/z, p' = f (1 + k1 n + k2 n²) p, and dx/dw = -R [X]× Jr(w).
    """
    w0, w1, w2 = camera[0], camera[1], camera[2]
    angle = np.sqrt(w0 * w0 + w1 * w1 + w2 * w2)
    W = np.array([[0.0, -w2, w1], [w2, 0.0, -w0], [-w1, w0, 0.0]])
    WW = W @ W
    if angle > 1e-8:
        a, b = np.sin(angle) / angle, (1.0 - np.cos(angle)) / angle**2
        c = (angle - np.sin(angle)) / angle**3
    else:
        a, b, c = 1.0, 0.5, 1.0 / 6.0
    R = np.eye(3) + a * W + b * WW
    right = np.eye(3) - b * W + c * WW
    skew = np.array([[0.0, -X[2], X[1]], [X[2], 0.0, -X[0]], [-X[1], X[0], 0.0]])
    x = R @ X + camera[3:6]
    u, v = -x[0] / x[2], x[1] / x[2]
    n = u * u + v * v
    f, k1, k2 = camera[6], camera[7], camera[8]
    d = 1.0 + n * (k1 + n * k2)
    s = 2.0 * (k1 + 2.0 * n * k2)
    inner = np.array([[-1.0 / x[2], 0.0, -u / x[2]], [0.0, 1.0 / x[2], -v / x[2]]])
    outer = f * np.array([[d + s * u * u, s * u * v], [s * u * v, d + s * v * v]])
    by_x = outer @ inner
    J[:, :3] = -by_x @ R @ skew @ right
    J[:, 3:6] = by_x
    J[0, 6], J[0, 7], J[0, 8] = d * u, f * n * u, f * n * n * u
    J[1, 6], J[1, 7], J[1, 8] = d * v, f * n * v, f * n * n * v
    B[:] = by_x @ R
    return f * d * u, f * d * v


@numba.njit(cache=True)
def linearise(cameras: Array, X: Array, uv: Array, r: Array, J: Array, B: Array) -> None:
    for i in range(len(uv)):
        u, v = project(cameras[i], X, J[i], B[2 * i : 2 * i + 2])
        r[2 * i], r[2 * i + 1] = u - uv[i, 0], v - uv[i, 1]


class Track(pyceres.CostFunction):
    """All observations of one landmark: a Python call a landmark, not an observation."""

    def __init__(self, uv: Array) -> None:
        super().__init__()
        self.uv = np.ascontiguousarray(uv)
        self.set_num_residuals(2 * len(uv))
        self.set_parameter_block_sizes([9] * len(uv) + [3])

    def Evaluate(self, parameters: Sequence[Array], residuals: Array, jacobians: Sequence[Array] | None) -> bool:
        n = len(self.uv)
        J, B = np.empty((n, 2, 9)), np.empty((2 * n, 3))
        cameras = np.stack([np.asarray(block) for block in parameters[:n]])
        linearise(cameras, np.array(parameters[n]), self.uv, residuals, J, B)
        if jacobians is not None:
            for i in range(n):
                if jacobians[i] is not None:
                    block = np.zeros((2 * n, 9))
                    block[2 * i : 2 * i + 2] = J[i]
                    jacobians[i][:] = block.reshape(-1)
            if jacobians[n] is not None:
                jacobians[n][:] = B.reshape(-1)
        return True


def classical(bal: BalFile, iterations: int = 60) -> float:
    """Ceres, from the file's own cameras and points."""
    cameras, xyz = [row.copy() for row in bal.parameters], [row.copy() for row in bal.xyz]
    order = np.lexsort((bal.camera, bal.landmark))
    problem = pyceres.Problem()
    keep = []
    for mine in np.split(order, np.flatnonzero(np.diff(bal.landmark[order])) + 1):
        keep.append(Track(bal.uv[mine]))
        blocks = [cameras[k] for k in bal.camera[mine]] + [xyz[bal.landmark[mine[0]]]]
        problem.add_residual_block(keep[-1], None, blocks)
    options = pyceres.SolverOptions()
    options.linear_solver_type = pyceres.LinearSolverType.DENSE_SCHUR
    options.max_num_iterations = iterations
    options.function_tolerance = 1e-7
    options.minimizer_progress_to_stdout = False
    summary = pyceres.SolverSummary()
    pyceres.solve(options, problem, summary)
    return summary.final_cost


def shuffled(observations: Observations, seed: int) -> Observations:
    """The same observations with the images in random order."""
    order = np.random.default_rng(seed).permutation(len(observations.images))
    place = np.argsort(order)
    return replace(
        observations,
        images=tuple(observations.images[k] for k in order),
        image=place[observations.image],
        image_unit=observations.image_unit[order],
    )


def in_units_of(everything: Problem, result: Result) -> Reconstruction:
    """The reconstruction with f, k1, k2 of its cameras in the normalised units of `everything`."""
    if not result.problem.calibrated:
        return result.reconstruction
    focal, radial = np.ones(len(result.problem.names)), np.zeros((len(result.problem.names), 2))
    for k, camera_id in enumerate(result.problem.camera_ids.tolist()):
        camera = result.problem.observations.cameras[camera_id]
        found = dict(zip(camera.params_info.split(", "), camera.params, strict=True))
        focal[k] = camera.mean_focal_length() / everything.observations.image_unit[everything.images[k], 0]
        radial[k] = found.get("k", found.get("k1", 0.0)), found.get("k2", 0.0)
    return replace(result.reconstruction, focal=focal, radial=radial)


def least_squares(everything: Problem, result: Result) -> float:
    """The cost of what was found, over all observations, short tracks included."""
    if result.problem.names != everything.names:
        return float("inf")
    xyz = np.full((everything.tracks.landmarks, 3), np.nan)
    xyz[np.searchsorted(everything.landmark_ids, result.problem.landmark_ids)] = result.reconstruction.xyz
    free = FreeIntrinsics(focal=True, radial=2, focal_sigma=1e3, radial_sigma=1e3)
    limits = AdjustConfig(free=free, cheirality=False, tolerance=1e-8)
    tracks: Tracks = everything.tracks
    start = replace(in_units_of(everything, result), xyz=xyz)
    reconstruction, _ = adjust(everything, start, limits)
    R, t, focal, radial = (values[tracks.cam] for values in reconstruction.cameras)
    x = np.einsum("nij,nj->ni", R, reconstruction.xyz[tracks.landmark]) + t
    ray = x[:, :2] / x[:, 2:]
    n = np.sum(ray**2, axis=1)
    seen = (focal * (1.0 + radial[:, 0] * n + radial[:, 1] * n**2))[:, None] * ray
    return 0.5 * float(np.sum(((seen - everything.m) * everything.unit) ** 2))


def main(
    problems: tuple[str, ...] = ("trafalgar-21", "dubrovnik-16", "ladybug-49"), seeds: int = 10, first_seed: int = 0
) -> None:
    """Print one table.

    Args:
        problems: Names and camera counts of BAL problems in INITFREE_DATA/bal.
        seeds: Runs of each, with the images in a random order each.
        first_seed: Seed of the first.
    """
    table = Table()
    for column in (
        "problem",
        "Ceres",
        "s",
        "within 1.001",
        "within 1.01",
        "worst",
        "certified",
        "median s",
        "most s",
    ):
        table.add_column(column, justify="right", no_wrap=True)
    console = Console(width=150)
    for name in problems:
        path = bal_file(name)
        began = time.perf_counter()
        optimum = classical(read_bal(path))
        ceres = time.perf_counter() - began
        ratios, seconds, certified = [], [], 0
        for seed in range(first_seed, first_seed + seeds):
            observations = shuffled(load_observations(path), seed)
            began = time.perf_counter()
            result = initfree.solve(build_problem(observations), initfree.SolveConfig(seed=seed))
            seconds.append(time.perf_counter() - began)
            certified += result.certificate.accepted
            ratios.append(least_squares(build_problem(observations, 2), result) / optimum)
            console.log(name, seed, f"{ratios[-1]:.5f}", result.certificate.accepted, f"{seconds[-1]:.1f} s", result.winner)
        r = np.array(ratios)
        table.add_row(
            name, f"{optimum:.1f}", f"{ceres:.0f}", f"{np.sum(r <= 1.001)}/{seeds}", f"{np.sum(r <= 1.01)}/{seeds}",
            f"{r.max():.5f}", f"{certified}/{seeds}", f"{np.median(seconds):.1f}", f"{max(seconds):.1f}",
        )  # fmt: skip
    console.print(table)


if __name__ == "__main__":
    tyro.cli(main)
