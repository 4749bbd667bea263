"""Cholesky factorisation of a dense matrix: in tiles on one thread and on two, beside LAPACK on one; in one run.

    OPENBLAS_NUM_THREADS=1 python benchmarks/dense_factorisation.py

Milliseconds, the fastest of many runs in turns; Gflop/s count n³/3. LAPACK is SciPy's OpenBLAS, the lower triangle in place.
Both have to get the matrix first, which counts: tiles from blocks of camera pairs, LAPACK from a copy that is ready. The
factors are compared before anything is timed.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import time
from collections.abc import Callable

import numpy as np
import tyro
from scipy.linalg import get_lapack_funcs

from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.threads import set_threads
from initfree.engine.tiles import TiledFactorisation

SLOTS = 6
"""numbers of a camera"""


def cameras_that_see_each_other(count: int) -> tuple[CameraPairs, np.ndarray, np.ndarray]:
    """All pairs, their blocks, and the positive definite matrix that these are of."""
    row, column = np.tril_indices(count)
    pairs = CameraPairs.only(count, np.stack([row, column], axis=1)[row > column])
    half = np.random.default_rng(0).normal(size=(SLOTS * count, SLOTS * count))
    H = half @ half.T + SLOTS * count * np.eye(SLOTS * count)
    blocks = H.reshape(count, SLOTS, count, SLOTS).transpose(0, 2, 1, 3)[pairs.row, pairs.column]
    return pairs, np.ascontiguousarray(blocks), H


def in_turns(functions: list[Callable[[], object]], seconds: float = 1.5) -> list[float]:
    """Milliseconds of each, the fastest."""
    best, began = [np.inf] * len(functions), time.perf_counter()
    while time.perf_counter() - began < seconds:
        for n, function in enumerate(functions):
            function()  # whatever the others left asleep or in the cache
            since = time.perf_counter()
            function()
            best[n] = min(best[n], time.perf_counter() - since)
    return [1e3 * taken for taken in best]


def main(cameras: tuple[int, ...] = (16, 32, 42, 64, 98, 128, 200)) -> None:
    """Print a table.

    Args:
        cameras: Of matrices with six numbers each.
    """
    (potrf,) = get_lapack_funcs(("potrf",), dtype=np.float64)
    print("| rows | tiles, one thread | Gflop/s | two | LAPACK, one thread | Gflop/s | one / LAPACK | two / LAPACK |")
    print("|---:|---:|---:|---:|---:|---:|---:|---:|")
    for count in cameras:
        pairs, blocks, H = cameras_that_see_each_other(count)
        size, turned = len(H), np.asfortranarray(H)
        room = np.empty_like(turned)
        tiles = TiledFactorisation(pairs, np.arange(size).reshape(count, SLOTS), size)

        def lapack(turned: np.ndarray = turned, room: np.ndarray = room) -> None:
            room[:] = turned
            potrf(room, lower=1, overwrite_a=1, clean=0)

        def ours(tiles: TiledFactorisation = tiles, blocks: np.ndarray = blocks) -> None:
            assert tiles.factorise(blocks, 0.0)

        ours()
        assert np.allclose(tiles.factor, np.linalg.cholesky(H)), size
        times = []
        for threads in (1, 2):
            set_threads(threads)
            times.append(in_turns([ours, lapack]))
        one, two, reference = times[0][0], times[1][0], min(times[0][1], times[1][1])
        flops = size**3 / 3e6
        print(
            f"| {size} | {one:.3f} | {flops / one:.1f} | {two:.3f} | {reference:.3f} | {flops / reference:.1f} "
            f"| {one / reference:.2f} | {two / reference:.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    tyro.cli(main)
