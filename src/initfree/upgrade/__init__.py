"""Metric upgrade: the transform that turns a projective reconstruction into a metric one, one method a file."""

from collections.abc import Callable
from typing import Literal, get_args

import numpy as np

from initfree.upgrade.calibrated import calibrated
from initfree.upgrade.linear import linear
from initfree.upgrade.linear1997 import linear1997
from initfree.upgrade.metric import Metric, Projective, metric_from_frame
from initfree.upgrade.refined import refined
from initfree.upgrade.selected import selected

UpgradeName = Literal["none", "linear1997", "linear", "calibrated", "refined", "selected"]


def none(scene: Projective) -> Metric:
    """No upgrade: read the projective cameras as if they were metric (the paper's "before metric upgrade")."""
    focal = np.ones(len(scene.P)) if scene.calibrated else None
    return metric_from_frame(scene, scene.P, scene.X, focal)


_METHODS: dict[UpgradeName, Callable[[Projective], Metric]] = {
    "none": none,
    "linear1997": linear1997,
    "linear": linear,
    "calibrated": calibrated,
    "refined": refined,
    "selected": selected,
}
assert set(_METHODS) == set(get_args(UpgradeName))


def upgrade(name: UpgradeName, scene: Projective) -> Metric:
    """The metric reconstruction of a projective one."""
    return _METHODS[name](scene)


__all__ = ["Metric", "Projective", "UpgradeName", "upgrade"]
