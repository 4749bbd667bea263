"""The paper's selection between the linear and the refined upgrade."""

from initfree.upgrade.linear import linear
from initfree.upgrade.metric import Projective, Upgraded
from initfree.upgrade.refined import refined


def selected(scene: Projective) -> Upgraded:
    """Whichever of `linear` and `refined` is better."""
    return better(linear(scene), refined(scene))


def better(first: Upgraded, second: Upgraded) -> Upgraded:
    """The one with more observations in front of their cameras; a tie goes to the smaller dual-quadric residual."""
    return max((first, second), key=lambda metric: (metric.positive_depths, -metric.quadric_residual))
