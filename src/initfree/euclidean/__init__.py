"""The Euclidean end of the pipeline: robust bundle adjustment, triangulation and resection of metric cameras."""

from initfree.euclidean.adjustment import AdjustConfig, EuclideanAdjustment, adjust
from initfree.euclidean.resection import resect
from initfree.euclidean.state import FreeIntrinsics, MetricState
from initfree.euclidean.triangulation import Status, triangulate

__all__ = [
    "AdjustConfig",
    "EuclideanAdjustment",
    "FreeIntrinsics",
    "MetricState",
    "Status",
    "adjust",
    "resect",
    "triangulate",
]
