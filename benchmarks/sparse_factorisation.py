"""Cholesky factorisation of systems that are not dense: in tiles from each row's first number on, beside nested dissection.

    OPENBLAS_NUM_THREADS=1 python benchmarks/sparse_factorisation.py

Surveys of so many cameras (`survey.py`), six numbers a camera, random blocks. Milliseconds on one thread / on two, the
fastest of many runs in turns; multiply-adds in millions. What both solve is compared before anything is timed.
"""

import os

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", MKL_NUM_THREADS="1")

from functools import partial

import numpy as np
import tyro
from dense_factorisation import SLOTS, in_turns
from survey import NOISE, problem_of, survey

from initfree.engine.camera_pairs import CameraPairs
from initfree.engine.sparse_cholesky import SparseFactorisation
from initfree.engine.threads import set_threads
from initfree.engine.tiles import TiledFactorisation
from initfree.generator import generate


def main(cameras: tuple[int, ...] = (100, 200, 500, 1000, 2000)) -> None:
    """Print a table.

    Args:
        cameras: Sizes of surveys.
    """
    print("| cameras | rows | multiply-adds, tiles | dissection | tiles, ms | dissection, ms | tiles / dissection |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for count in cameras:
        tracks = problem_of(generate(survey(count), seed=0, noise=NOISE, shuffle=True)).tracks
        pairs, rng = CameraPairs.covisible(tracks), np.random.default_rng(0)
        column = np.arange(SLOTS * tracks.cameras).reshape(-1, SLOTS)
        blocks, b = 1e-2 * rng.normal(size=(len(pairs), SLOTS, SLOTS)), rng.normal(size=column.size)
        ways = TiledFactorisation(pairs, column, column.size), SparseFactorisation(pairs, column, column.size)
        shift = float(SLOTS * tracks.cameras)
        assert all(way.factorise(blocks, shift) for way in ways)
        assert np.allclose(ways[0].solve(b), ways[1].solve(b))
        times = []
        for threads in (1, 2):
            set_threads(threads)
            times.append(in_turns([partial(way.factorise, blocks, shift) for way in ways], 3.0))
        millions = [pairs.envelope(column, column.size).flops / 1e6, ways[1].flops / 1e6]
        tiles, dissection = (f"{one:.1f} / {two:.1f}" for one, two in zip(*times, strict=True))
        ratios = " / ".join(f"{ours / theirs:.2f}" for ours, theirs in times)
        print(f"| {count} | {column.size} | {millions[0]:.0f} | {millions[1]:.0f} | {tiles} | {dissection} | {ratios} |")


if __name__ == "__main__":
    tyro.cli(main)
