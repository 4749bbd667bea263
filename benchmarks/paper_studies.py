"""Four studies beside the sweep `paper`: how "before the upgrade" may be read, the scale of the Cauchy loss, what stage 1
needs to converge, and what the rotation term does to the series.

    OPENBLAS_NUM_THREADS=1 python benchmarks/paper_studies.py --markdown docs/reproduction-appendix.md

About ten minutes of one core; `--only before` is one of them. Each writes a marked section of the file.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import pandas as pd
import tyro

from initfree import formulations
from initfree.benchmark.data import Data, Place, load_data
from initfree.benchmark.jobs import PIPELINE, Job, expand
from initfree.benchmark.pipeline_run import labelled, rotations_of, settings
from initfree.benchmark.presets import load
from initfree.benchmark.report.markdown import write_section
from initfree.benchmark.rows import scored
from initfree.config import SolveConfig
from initfree.data.reconstruction import Reconstruction, nearest_rotation
from initfree.data.tracks import Array
from initfree.engine.levenberg_marquardt import LMConfig
from initfree.engine.linear_solver import LinearSolver
from initfree.engine.parallel import one_blas_thread
from initfree.formulations.pose_rot import RotationTerm
from initfree.stages.initialization import initialize
from initfree.stages.pipeline import PROJECTIVE, State, run_stages
from initfree.stages.upgrade import Projective, upgrade
from initfree.stages.varpro import VariableProjection

PUBLIC = "linear1997-public"
METRICS = ["rotation_auc20", "translation_auc20", "landmark_rmse"]
SCALES = (None, 0.02, 0.05, 0.1, 0.3, 1.0)
LIMITS = ((50, 1e-6), (300, 1e-8), (1500, 1e-12))


def jobs_of(sets: tuple[str, ...], solver: str, **wanted: object) -> Iterator[Job]:
    """Of the sweep `paper`: three observations a landmark, the paper's starts."""
    for job in expand(load("paper")):
        if job.method != PIPELINE or job.solver is None or job.solver.linear_solver != solver or job.data.min_obs != 3:
            continue
        values = vars(job) | {"seed": job.data.seed}
        if job.data.set in sets and all(values[name] in value for name, value in wanted.items()):  # type: ignore[operator]
            yield job


def projective(job: Job, data: Data, place: Place, config: SolveConfig) -> State:
    """After stage 1 and the refinement."""
    state = State(data.problem, config)
    if formulations.make(config.formulation, config.alpha).uses_rotations:
        state = replace(state, rotations=rotations_of(job, config, data, place)[0])
    return run_stages(state, PROJECTIVE)


def solved(state: State, data: Data) -> bool:
    scene = Projective.of(state.problem, state.P, state.X)
    return not scored(labelled(state.problem, upgrade(PUBLIC, scene).reconstruction), data)["failed"]


def before(place: Place) -> str:
    """The projective cameras read as metric ones in four ways."""
    sets = ("paper1", "paper2", "paper3", "paper4", "paper6", "paper7", "paper8")
    chosen = {"formulation": ("pose", "rose", "rpose", "expose", "pose-rot"), "rotations": ("", "truth"), "loss": ("none",)}
    rows = []
    for job in jobs_of(sets, "power", seed=(0, 1), init=("normal", "uniform", "unit-circle"), **chosen):
        data = load_data(job.data, place)
        state = projective(job, data, place, settings(job))
        for name, model in readings(state).items():
            rows.append({"reading": name, "set": job.data.set} | scored(labelled(state.problem, model), data))
    means = pd.DataFrame(rows).fillna({m: 0.0 for m in METRICS[:2]}).groupby("reading", sort=False)[METRICS].mean()
    lines = ["| cameras read as | rotation AUC@20 | translation AUC@20 | landmark RMSE |", "| --- | ---: | ---: | ---: |"]
    lines += [
        f"| {name} | " + " | ".join(f"{v:.1f}" for v in row) + " |"
        for name, row in zip(means.index, means.to_numpy(), strict=True)
    ]
    return "\n".join([*lines, "| the paper | 16.3 | 6.2 | 25.9 |"])


def readings(state: State) -> dict[str, Reconstruction]:
    """Of one projective reconstruction: K read off P P', and [R | t] at once in three coordinate systems."""
    scene = Projective.of(state.problem, state.P, state.X)
    unit = scene.unit_pixels
    pixels = state.P * np.stack([unit, unit, np.ones_like(unit)], axis=1)[:, :, None]
    corner = np.array([[1.0, 0.0, 320.0], [0.0, 1.0, 240.0], [0.0, 0.0, 1.0]]) @ pixels
    return {
        "K [R, t], the sweep's `before`": upgrade("none", scene).reconstruction,
        "[R, t] in normalised coordinates": as_pose(state.P, state.X),
        "[R, t] in pixels from the centre": as_pose(pixels, state.X),
        "[R, t] in pixels from the corner": as_pose(corner, state.X),
    }


def as_pose(P: Array, X: Array) -> Reconstruction:
    """R the rotation nearest to the left 3x3, t the last column, both at determinant 1."""
    scale = np.cbrt(np.linalg.det(P[:, :, :3]))[:, None]
    w = np.where(np.abs(X[:, 3]) < 1e-15, 1e-15, X[:, 3])
    n = len(P)
    return Reconstruction(
        nearest_rotation(P[:, :, :3]), P[:, :, 3] / scale, np.ones(n), np.zeros((n, 2)), X[:, :3] / w[:, None]
    )


def cauchy(place: Place) -> str:
    """Set 2 from normal cameras, where the paper shows rescues: runs solved by the scale of the loss."""
    chosen = {"formulation": ("pose", "rose"), "init": ("normal",), "loss": ("cauchy",)}
    jobs = list(jobs_of(("paper2",), "power", **chosen))
    lines = ["| scale of the Cauchy loss, normalised units | pOSE | rOSE |", "| --- | ---: | ---: |"]
    for scale in SCALES:
        good = {"pose": [], "rose": []}
        for job in jobs:
            data = load_data(job.data, place)
            state = projective(job, data, place, replace(settings(job), loss_scale=scale))
            good[job.formulation].append(solved(state, data))
        name = "three robust deviations of the residuals (the sweep's)" if scale is None else f"{scale:g}"
        lines.append(f"| {name} | " + " | ".join(f"{sum(one)} of {len(one)}" for one in good.values()) + " |")
    return "\n".join(lines)


def stages(place: Place) -> str:
    """Exact steps, normal cameras: how stage 1 ends under three limits."""
    lines = ["| | steps, gain | stage 1 ends | cost (median) | solved |", "| --- | --- | --- | ---: | ---: |"]
    for name, formulation, limits in (
        ("Set 1, expOSE", "expose", LIMITS),
        ("Set 2, RpOSE", "rpose", LIMITS[:2]),
        ("Set 2, pOSE+rot", "pose-rot", LIMITS[:1]),
    ):
        chosen = {"formulation": (formulation,), "init": ("normal",), "loss": ("none",), "rotations": ("", "truth")}
        jobs = list(jobs_of((f"paper{name[4]}",), "exact", seed=(0, 1, 2), **chosen))
        for steps, gain in limits:
            ends, costs, good = [], [], 0
            for job in jobs:
                data = load_data(job.data, place)
                config = replace(settings(job), max_iterations=steps, tolerance=gain)
                state = projective(job, data, place, config)
                report = next(one for one in state.reports if one.name == "varpro")
                ends.append(f"{report.reason} ({report.iterations})")
                costs.append(report.cost)
                good += solved(state, data)
            said = f"{steps}, {gain:.0e}", ", ".join(ends), f"{np.median(costs):.2g}", f"{good} of {len(jobs)}"
            lines.append(f"| {name} | " + " | ".join(said) + " |")
    return "\n".join(lines)


def spectrum(place: Place) -> str:
    """Of (U + D)^-1 (H + D), whose inverse the series sums: what a term leaves of the error along x is 1 - μ."""
    lines = [
        "| normal cameras, after six exact steps | smallest μ, without the gauge's | largest μ |",
        "| --- | ---: | ---: |",
    ]
    chosen = {"formulation": ("pose-rot",), "init": ("normal",), "loss": ("none",), "rotations": ("truth",)}
    for job in jobs_of(("paper1", "paper2"), "power", seed=(0,), **chosen):
        data = load_data(job.data, place)
        problem, config = data.problem, settings(job)
        formulation = formulations.make(config.formulation, config.alpha)
        term = RotationTerm(rotations_of(job, config, data, place)[0], config.beta)
        for name, camera_term, gauge in (("pOSE's terms alone", None, 16), ("with the rotation term", term, 7)):
            first = initialize(job.init, problem.tracks, config.seed)
            options = {"camera_term": camera_term, "column_scaling": True}
            descent = VariableProjection(problem.tracks, problem.m, formulation, first, **options)
            descent.minimise(LMConfig(6, 0.0, check_plateau=False))
            series = VariableProjection(
                problem.tracks, problem.m, formulation, descent.P, solver=LinearSolver("power"), **options
            )
            found = series.series_spectrum(LMConfig().damping)
            lines.append(f"| Set {job.data.set[-1]}, {name} | {found[gauge]:.3f} | {found[-1]:.3f} |")
    return "\n".join(lines)


STUDIES = {"before": before, "cauchy": cauchy, "stages": stages, "spectrum": spectrum}


def main(
    only: tuple[Literal["before", "cauchy", "stages", "spectrum"], ...] = ("before", "cauchy", "stages", "spectrum"),
    markdown: Path | None = None,
) -> None:
    """Print the tables.

    Args:
        only: Of the three studies these.
        markdown: Write each into its marked section of this file, too.
    """
    with TemporaryDirectory() as cache, one_blas_thread():
        for name in only:
            table = STUDIES[name](Place(Path(cache)))
            print(table, flush=True)
            if markdown is not None:
                write_section(markdown, f"paper_studies {name}", table + "\n")


if __name__ == "__main__":
    tyro.cli(main)
