"""One row of a sweep's table: its columns, and how a reconstruction becomes one."""

from dataclasses import asdict, fields
from typing import Any

import pyarrow as pa

from initfree.benchmark.data import Data
from initfree.benchmark.jobs import Job
from initfree.data.reconstruction import Reconstruction
from initfree.evaluation import Metrics, evaluate_models
from initfree.result import StageReport

Frame = Any
"""a pandas.DataFrame: its own annotations make of most expressions a union that nothing accepts"""
FAILED_AUC = 20.0
FAILED_RMSE = 30.0

_METRICS = [field.name for field in fields(Metrics) if field.name != "cameras"]
SECONDS = ("seconds_ose", "seconds_refine", "seconds_upgrade", "seconds_adjust", "seconds_total")
"""the only columns that differ between two runs of a job"""

SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("key", "job", "method", "set")]
    + [("seed", pa.int64()), ("min_obs", pa.int64())]
    + [(name, pa.float64()) for name in ("noise", "outliers", "merged", "k1")]
    + [
        (name, pa.string())
        for name in ("formulation", "init", "loss", "rotations", "upgrade", "intrinsics", "linear_solver")
    ]
    + [(name, pa.float64()) for name in ("alpha", "beta")]
    + [(name, pa.float64()) for name in ("cameras", "landmarks", "observations")]
    + [(name, pa.float64()) for name in _METRICS]
    + [("scene_scale", pa.float64()), ("nullity", pa.float64()), ("failed", pa.bool_())]
    + [(name, pa.float64()) for name in ("ose_residual", "ose_cost", "ose_iterations", "ose_pixels", "ose_gradient")]
    + [("visibility", pa.string())]
    + [(name, pa.float64()) for name in ("spectral_gap", "walk_gap", "series_gap", "inner_iterations")]
    + [("ose_reason", pa.string())]
    + [(name, pa.float64()) for name in ("refine_residual", "refine_iterations", "refine_gradient")]
    + [("refine_reason", pa.string()), ("euclidean_cost", pa.float64())]
    + [("accepted", pa.bool_()), ("reason", pa.string())]
    + [(name, pa.float64()) for name in SECONDS]
    + [("error", pa.string())]
)


def row(job: Job, upgrade: str, data: Data | None = None, error: str = "", **columns: Any) -> dict[str, Any]:
    """A row with the job's configuration and whatever else is known; it counts as failed until `scored` says otherwise."""
    spec = job.data
    start: dict[str, Any] = {name: "" if field_is_text(name) else None for name in SCHEMA.names}
    start |= {
        "key": job.row_key(upgrade), "job": job.key, "method": job.method, "set": spec.set, "seed": spec.seed,
        "min_obs": spec.min_obs, **asdict(spec.condition), "formulation": job.formulation, "init": job.init,
        "loss": job.loss, "rotations": job.rotations, "upgrade": upgrade,
        "visibility": spec.visibility, "intrinsics": spec.intrinsics, "failed": True,
        "error": error,
    }  # fmt: skip
    if job.solver is not None:
        start |= {"alpha": job.solver.alpha, "beta": job.solver.beta, "linear_solver": job.solver.linear_solver}
        start |= {"inner_iterations": None if job.solver.linear_solver == "exact" else job.solver.inner_iterations}
    if data is not None:
        tracks = data.problem.tracks
        start |= {"cameras": len(data.truth.names), "landmarks": tracks.landmarks, "observations": tracks.observations}
        start |= {"scene_scale": data.scene_scale, "nullity": data.nullity, "spectral_gap": data.spectral_gap}
        start |= {"walk_gap": data.walk_gap, "series_gap": data.series_gap(job.init)}
    return start | columns


def field_is_text(name: str) -> bool:
    return pa.types.is_string(SCHEMA.field(name).type)


def scored(model: Reconstruction, data: Data) -> dict[str, Any]:
    """The paper's metrics, and whether the run failed by the paper's definition."""
    metrics = evaluate_models(model, data.truth)
    # NaN, where no landmark could be compared, is no success.
    good = (
        metrics.rotation_auc20 >= FAILED_AUC
        and metrics.translation_auc20 >= FAILED_AUC
        and metrics.landmark_rmse <= FAILED_RMSE
    )
    return {name: getattr(metrics, name) for name in _METRICS} | {"failed": not good}


def stage_columns(ose: StageReport | None, refinement: StageReport | None) -> dict[str, Any]:
    """Figures of the projective stages, the same in every row of a job."""
    columns = {}
    if ose is not None:
        columns |= {
            "ose_residual": ose.mean_residual,
            "ose_cost": ose.cost,
            "ose_iterations": ose.iterations,
            "ose_pixels": ose.mean_pixels,
            "ose_reason": ose.reason,
            "ose_gradient": ose.gradient,
        }
    if refinement is not None:
        columns |= {
            "refine_residual": refinement.mean_residual,
            "refine_iterations": refinement.iterations,
            "refine_reason": refinement.reason,
            "refine_gradient": refinement.gradient,
        }
    return columns
