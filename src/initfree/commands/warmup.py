"""`initfree warmup`: compile all kernels of a solve once, so that the first solve does not."""

import time
from collections.abc import Iterator

import numpy as np
import pycolmap
from rich.console import Console

from initfree.api import solve
from initfree.config import SolveConfig, Strategy
from initfree.data.problem import Problem
from initfree.data.tracks import Array
from initfree.engine.compilation import ABOUT_SECONDS, kept, kernels, must_compile
from initfree.engine.sparse_cholesky import compile_fronts

_FOCAL, _SIZE = 600.0, (800, 600)
_K = np.array([[_FOCAL, 0.0, _SIZE[0] / 2], [0.0, _FOCAL, _SIZE[1] / 2], [0.0, 0.0, 1.0]])


def warmup() -> int:
    """Compile all kernels once and keep the machine code, by solving small problems in every way.

    Later solves, of any size, start without compiling until the program, Numba or the machine changes.
    """
    console = Console(highlight=False, markup=False, emoji=False)
    began = time.perf_counter()
    about = f"compiling kernels, once, about {ABOUT_SECONDS} s on an idle machine"
    console.print(about if must_compile() else "kernels are compiled; checking")
    with console.status("") as status:
        for what, problem, config, strategy in _solves():
            status.update(what)
            solve(problem, config, strategy)
            console.print(f"{time.perf_counter() - began:6.1f} s  {what}", soft_wrap=True)
        compile_fronts()
    count = sum(kept(kernel) > 0 for found in kernels().values() for kernel in found)
    console.print(f"{count} kernels are kept for later runs ({time.perf_counter() - began:.1f} s)", soft_wrap=True)
    return 0


def compile_all() -> None:
    """Compile what solves need, on a small problem: a first solve's own stages then take what they will always take.

    With known intrinsics and without, whichever the solve at hand has: no later solve of the other kind compiles untold.
    """
    image, landmark, xy = _ring()
    for cameras in (_K, None):
        solve(Problem.from_tracks(image, landmark, xy, cameras=cameras, sizes=_SIZE))
    compile_fronts()


def _solves() -> Iterator[tuple[str, Problem, SolveConfig, Strategy]]:
    image, landmark, xy = _ring()
    known = Problem.from_tracks(image, landmark, xy, cameras=_K, sizes=_SIZE)
    unknown = Problem.from_tracks(image, landmark, xy, sizes=_SIZE)
    refined = Problem.from_tracks(image, landmark, xy, cameras=_K, sizes=_SIZE, intrinsics="refine")
    params = [_FOCAL, _FOCAL, _SIZE[0] / 2, _SIZE[1] / 2, 0.0, 0.0, 0.0, 0.0]
    lens = pycolmap.Camera(model="OPENCV", width=_SIZE[0], height=_SIZE[1], params=params)
    large = Problem.from_tracks(image, landmark, xy, cameras=lens, intrinsics="refine")
    wrong = np.random.default_rng(1).random(len(xy)) < 0.15
    mixed = xy.copy()
    mixed[wrong] = np.roll(xy[wrong], 7, axis=0)
    matches = Problem.from_tracks(image, landmark, mixed, cameras=_K, sizes=_SIZE)
    yield "known intrinsics", known, SolveConfig(), "auto"
    yield "unknown intrinsics", unknown, SolveConfig(), "auto"
    yield "intrinsics to refine", refined, SolveConfig(), "auto"
    yield "a lens of eight numbers", large, SolveConfig(), "auto"
    yield "wrong matches", matches, SolveConfig(), "auto"
    for formulation in ("pose", "rose", "expose", "pose-rot"):
        yield f"formulation {formulation}", known, SolveConfig(formulation=formulation, max_iterations=5), "single"
    yield "formulation rpose", unknown, SolveConfig(formulation="rpose", max_iterations=5), "single"
    robust = SolveConfig(loss="cauchy", max_iterations=5)
    yield "robust stage 1", known, robust, "single"
    yield "inexact steps", known, SolveConfig(linear_solver="power", max_iterations=5), "single"


def _ring(cameras: int = 12, landmarks: int = 150) -> tuple[Array, Array, Array]:
    """(image, landmark, xy) of cameras on a ring that look at a ball of landmarks, with half a pixel of noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(landmarks, 3))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    image, landmark, xy = [], [], []
    for k, angle in enumerate(np.linspace(0.0, 2.0 * np.pi, cameras, endpoint=False)):
        forward = np.array([-np.cos(angle), -np.sin(angle), 0.1])
        forward /= np.linalg.norm(forward)
        right = np.cross(forward, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        R = np.stack([right, np.cross(forward, right), forward])
        x = (X + 4.0 * forward) @ R.T
        seen = np.flatnonzero(rng.random(landmarks) < 0.6)
        image.append(np.full(len(seen), k))
        landmark.append(seen)
        xy.append(_FOCAL * x[seen, :2] / x[seen, 2:] + np.array(_SIZE) / 2 + rng.normal(scale=0.5, size=(len(seen), 2)))
    return np.concatenate(image), np.concatenate(landmark), np.concatenate(xy)
