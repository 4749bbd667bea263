"""What a solve returns."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from initfree.certificate.verdict import Certificate
from initfree.config import SolveConfig
from initfree.engine.levenberg_marquardt import Iteration
from initfree.model import MetricModel
from initfree.problem import Problem
from initfree.tracks import Array
from initfree.upgrade.metric import Metric

if TYPE_CHECKING:
    import pycolmap


@dataclass(frozen=True)
class StageReport:
    """Figures of one stage."""

    name: str
    seconds: float
    iterations: int = 0
    """attempted steps"""
    accepted: int = 0
    reason: str = ""
    """why it ended"""
    initial_cost: float | None = None
    cost: float | None = None
    """1/2 of the (robust) sum of squared residuals"""
    mean_residual: float | None = None
    """mean norm of an observation's residual, in `residual_unit`"""
    residual_unit: str = ""
    mean_pixels: float | None = None
    """mean reprojection error after the stage, where it has one"""
    history: tuple[Iteration, ...] = ()


@dataclass(frozen=True)
class StartReport:
    """Figures of one start of the `auto` strategy."""

    name: str
    seconds: float
    cost: float
    """robust Euclidean cost of all observations (`repair.robust_cost`), by which starts are ranked"""
    accepted: bool
    inlier_share: float
    worst_share: float
    stages: tuple[StageReport, ...]


@dataclass(frozen=True)
class Result:
    """Cameras and landmarks, projective and metric, with the figures of every stage."""

    problem: Problem
    config: SolveConfig
    P: Array
    """(cameras, 3, 4) projective, normalised coordinates"""
    X: Array
    """(landmarks, 4) homogeneous"""
    before: Metric
    """the projective reconstruction read as if it were metric"""
    upgraded: Metric
    """right after the metric upgrade"""
    metric: Metric
    """the final reconstruction: adjusted, or as upgraded"""
    certificate: Certificate
    stages: tuple[StageReport, ...]
    """of the start that won"""
    starts: tuple[StartReport, ...] = ()
    """every start of the `auto` strategy, in order; empty for a single pipeline"""
    winner: str = ""
    """name of the start that won"""
    start_config: SolveConfig | None = None
    """its configuration; `config` is what was asked for"""
    notes: tuple[str, ...] = ()
    """what else the user should know, a sentence each"""

    def stage(self, name: str) -> StageReport:
        """The report of a stage by name."""
        return {stage.name: stage for stage in self.stages}[name]

    def model(self, metric: Metric | None = None) -> MetricModel:
        """The final reconstruction by image name and landmark id, or that of an earlier stage: `before`, `upgraded`."""
        metric = metric or self.metric
        return MetricModel(self.problem.names, metric.R, metric.t, self.problem.landmark_ids, metric.xyz)

    def to_colmap(self) -> "pycolmap.Reconstruction":
        """The metric reconstruction as a COLMAP model: names, keypoints and ids as in the input."""
        from initfree.io.export import to_colmap

        return to_colmap(self.problem, self.metric)
