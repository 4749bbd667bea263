"""Cholesky factorisation of surveys: in a band, beside nested dissection; and the band of cameras that all share landmarks.

    OPENBLAS_NUM_THREADS=1 python benchmarks/sparse_factorisation.py

Surveys of so many cameras (`survey.py`), six numbers a camera, random blocks. CPU milliseconds on one thread, the fastest of
some runs; multiply-adds in millions. What both solve is compared before anything is timed.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import tyro
from survey import NOISE, problem_of, survey

from initfree.engine.band_cholesky import BandFactorisation
from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.sparse_cholesky import SparseFactorisation
from initfree.engine.threads import set_threads
from initfree.generator import generate

SLOTS = 6
"""numbers of a camera"""


def milliseconds(work: Callable[[], object], runs: int = 5) -> float:
    """CPU time of the fastest run."""
    best = np.inf
    for _ in range(runs):
        began = time.process_time()
        work()
        best = min(best, time.process_time() - began)
    return 1e3 * best


def main(cameras: tuple[int, ...] = (100, 200, 500, 1000, 2000)) -> None:
    """Print a table.

    Args:
        cameras: Sizes of surveys.
    """
    set_threads(1)
    print("| cameras | rows | multiply-adds, band | dissection | band, ms | dissection, ms | band / dissection |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for count in cameras:
        tracks = problem_of(generate(survey(count), seed=0, noise=NOISE, shuffle=True)).tracks
        pairs, rng = CameraPairs.covisible(tracks), np.random.default_rng(0)
        column = np.arange(SLOTS * tracks.cameras).reshape(-1, SLOTS)
        blocks, b = 1e-2 * rng.normal(size=(len(pairs), SLOTS, SLOTS)), rng.normal(size=column.size)
        ways = BandFactorisation(pairs, column, column.size), SparseFactorisation(pairs, column, column.size)
        shift = float(SLOTS * tracks.cameras)
        assert all(way.factorise(blocks, shift) for way in ways)
        assert np.allclose(ways[0].solve(b), ways[1].solve(b))
        band, dissection = (milliseconds(partial(way.factorise, blocks, shift)) for way in ways)
        millions = " | ".join(f"{way.flops / 1e6:.0f}" for way in ways)
        print(f"| {count} | {column.size} | {millions} | {band:.1f} | {dissection:.1f} | {band / dissection:.2f} |")


if __name__ == "__main__":
    tyro.cli(main)
