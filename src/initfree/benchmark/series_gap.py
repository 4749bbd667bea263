"""What a term of the power series gains on a problem: the one number on which the series' fate depends."""

import numpy as np

from initfree import formulations
from initfree.data.problem import Problem
from initfree.data.tracks import Array
from initfree.engine.levenberg_marquardt import Iteration, LMConfig
from initfree.engine.linear_solver import LinearSolver
from initfree.stages.varpro import VariableProjection

_LOOKS = (3, 6, 10)
"""steps after which it is computed: the series has to get through the worst of them"""
_MOST_CAMERAS = 64
_ALPHA = 0.05


def series_gap(problem: Problem, cameras: Array) -> float:
    """Smallest μ = 1 - (contraction of the series) on the first ten steps of a descent with exact steps from these cameras.

    Stage 1 of pOSE, its columns scaled, the damping that Levenberg-Marquardt begins with. Twenty terms leave (1 - μ)^20
    of the error along the slowest direction: next to nothing at μ = 0.2, more than a third at 0.05. NaN beyond 64
    cameras: the matrix is made dense.
    """
    if len(cameras) > _MOST_CAMERAS:
        return float("nan")
    formulation = formulations.make("pose", _ALPHA)
    descent = VariableProjection(problem.tracks, problem.m, formulation, cameras, column_scaling=True)
    visited = {}

    def keep(index: int, step: Iteration) -> None:
        visited[index + 1] = descent.P + 0.0

    limits = LMConfig(max(_LOOKS), tolerance=0.0, check_plateau=False)
    descent.minimise(limits, keep)
    gaps = []
    for look in _LOOKS:
        P = visited.get(look, descent.P)
        series = VariableProjection(
            problem.tracks, problem.m, formulation, P, solver=LinearSolver("power"), column_scaling=True
        )
        gaps.append(series.series_gap(limits.damping))
    return float(np.min(gaps))
