"""A COLMAP model as the problem that a certificate judges: its cameras, and the landmarks that its observations hold."""

from dataclasses import replace

import numpy as np
import pycolmap

from initfree.data.observations import Intrinsics
from initfree.data.problem import Problem, build_problem
from initfree.data.reconstruction import Reconstruction
from initfree.io import colmap


def known_cameras(
    model: pycolmap.Reconstruction, intrinsics: Intrinsics | str = "known", min_obs: int = 3
) -> tuple[Problem, Reconstruction]:
    """The problem of a model's own observations with its intrinsics, and its cameras and landmarks in the problem's order.

    `intrinsics` "found": as uncertain as the cameras, because the model's maker estimated them from these observations.
    """
    problem = build_problem(colmap.observations_of(model, "the model", "known"), min_obs)
    if intrinsics == "found":
        problem = replace(problem, intrinsics="found")
    return problem, placed(problem, colmap.reconstruction_of(model))


def placed(problem: Problem, model: Reconstruction) -> Reconstruction:
    """The model's cameras and landmarks in the problem's order, by names and ids; a landmark that it lacks is NaN."""
    place = {name: k for k, name in enumerate(model.names)}
    cameras = np.array([place[name] for name in problem.names])
    order = np.argsort(model.ids, kind="stable")
    at = order[np.minimum(np.searchsorted(model.ids[order], problem.landmark_ids), len(order) - 1)] if len(order) else None
    xyz = np.full((len(problem.landmark_ids), 3), np.nan)
    if at is not None:
        known = model.ids[at] == problem.landmark_ids
        xyz[known] = model.xyz[at[known]]
    n = len(cameras)
    return Reconstruction(
        model.R[cameras], model.t[cameras], np.ones(n), np.zeros((n, 2)), xyz, problem.names, problem.landmark_ids
    )
