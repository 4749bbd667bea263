"""Evaluate whatever holds a metric reconstruction against whatever holds the truth."""

from pathlib import Path

import pycolmap

from initfree.io import colmap
from initfree.io.load import load_model
from initfree.metrics import Metrics, evaluate_models
from initfree.model import MetricModel
from initfree.result import Result

Model = Result | MetricModel | pycolmap.Reconstruction | str | Path


def evaluate(result_or_model: Model, truth: Model) -> Metrics:
    """The paper's metrics of a result, a model in memory or a model on disk; images match by name, landmarks by id."""
    return evaluate_models(as_model(result_or_model), as_model(truth))


def as_model(source: Model) -> MetricModel:
    """Poses and landmarks of any of the accepted kinds."""
    if isinstance(source, MetricModel):
        return source
    if isinstance(source, Result):
        return source.model()
    if isinstance(source, pycolmap.Reconstruction):
        return colmap.metric_model(source)
    return load_model(source)
