"""The Euclidean end of the pipeline: robust bundle adjustment, triangulation and resection of metric cameras."""

from initfree.stages.euclidean.adjustment import AdjustConfig, EuclideanAdjustment, adjust
from initfree.stages.euclidean.parameters import FreeIntrinsics
from initfree.stages.euclidean.resection import resect
from initfree.stages.euclidean.residuals import residuals, robust_cost
from initfree.stages.euclidean.triangulation import Status, triangulate

__all__ = [
    "AdjustConfig",
    "EuclideanAdjustment",
    "FreeIntrinsics",
    "Status",
    "adjust",
    "resect",
    "residuals",
    "robust_cost",
    "triangulate",
]
