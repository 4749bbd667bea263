"""Wrong matches identified by stage 1 itself, for image pairs that share too little for a vote.

With a few percent of wrong matches, variable projection succeeds often enough to identify them, and is cheap enough to
repeat. Suspected observations get a small weight and are not removed: a track of three would be lost with one of them.
"""

import numpy as np
from numpy.typing import NDArray

from initfree import formulations
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.tracks import Array
from initfree.engine.levenberg_marquardt import LMConfig, OnIteration
from initfree.stages.initialization import initialize
from initfree.stages.refinement.reprojection import reprojection_errors
from initfree.stages.varpro import VariableProjection

ROUNDS = 5
SUSPECTED = 0.01
"""weight of the squared residuals of a suspected observation"""
LEAST_PIXELS = 4.0
"""error below which an observation is not suspected"""
LEAST_OBSERVATIONS = 10
"""number of best observations of a camera that are never suspected"""


def trim(
    problem: Problem, config: SolveConfig, share: float, on_iteration: OnIteration | None = None
) -> tuple[Array, NDArray[np.bool_]]:
    """Stage 1 anew, five times, with the worst `share` of the last round's observations suspected.

    Every round starts from the configured initialisation, because a fold caused by wrong matches would persist. Returns the
    last cameras and the observations to keep.
    """
    tracks = problem.tracks
    first = initialize(config.init, tracks, config.seed)
    formulation = formulations.make(config.formulation, config.alpha)
    weight = np.ones(tracks.observations)
    P, error = first, weight
    for _ in range(ROUNDS):
        stage = VariableProjection(tracks, problem.m, formulation, first, weight=weight)
        stage.minimise(LMConfig(config.max_iterations, config.tolerance), on_iteration)
        P, error = stage.P, reprojection_errors(tracks, problem.m, problem.unit, stage.P, stage.X)
        limit = max(LEAST_PIXELS, float(np.quantile(error, 1.0 - share)))
        weight = np.where(error <= limit, 1.0, SUSPECTED)
    order = np.lexsort((error, tracks.cam))
    rank = np.empty(tracks.observations, dtype=np.int64)
    begin = np.searchsorted(tracks.cam[order], np.arange(tracks.cameras))
    rank[order] = np.arange(tracks.observations) - begin[tracks.cam[order]]
    return P, (weight == 1.0) | (rank < LEAST_OBSERVATIONS)
