"""Metric upgrade: the transform that turns a projective reconstruction into a metric one, one method a file."""

from collections.abc import Callable
from typing import get_args

import numpy as np

from initfree.config import UpgradeName
from initfree.stages.upgrade.calibrated import calibrated
from initfree.stages.upgrade.libmv import linear1997_public, linear2004
from initfree.stages.upgrade.linear import linear
from initfree.stages.upgrade.linear1997 import linear1997
from initfree.stages.upgrade.metric import Projective, Upgraded, metric_from_frame
from initfree.stages.upgrade.refined import refined, refined1997
from initfree.stages.upgrade.selected import selected, selected_linear


def none(scene: Projective) -> Upgraded:
    """No upgrade: read the projective cameras as if they were metric (the paper's "before metric upgrade")."""
    focal = np.ones(len(scene.P)) if scene.calibrated else None
    return metric_from_frame(scene, scene.P, scene.X, focal)


UPGRADES: dict[str, Callable[[Projective], Upgraded]] = {
    "none": none,
    "linear1997": linear1997,
    "linear1997-public": linear1997_public,
    "linear2004": linear2004,
    "linear": linear,
    "calibrated": calibrated,
    "refined": refined,
    "refined1997": refined1997,
    "selected": selected,
    "selected-linear": selected_linear,
}
"""by name; what a program adds here it may name in its configurations"""
assert set(UPGRADES) == set(get_args(UpgradeName))


def upgrade(name: str, scene: Projective) -> Upgraded:
    """The metric reconstruction of a projective one."""
    return UPGRADES[name](scene)


__all__ = ["UPGRADES", "Projective", "Upgraded", "upgrade"]
