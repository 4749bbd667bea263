"""The Euclidean end of the pipeline: robust bundle adjustment, triangulation and resection of metric cameras."""

from initfree.euclidean.adjustment import AdjustConfig, EuclideanAdjustment, adjust
from initfree.euclidean.parameters import FreeIntrinsics
from initfree.euclidean.resection import resect
from initfree.euclidean.residuals import residuals, robust_cost
from initfree.euclidean.triangulation import Status, triangulate

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
