"""The history of a reconstruction: facts that do not follow from problem and reconstruction."""

from dataclasses import dataclass
from typing import Literal

from initfree.certificate.baseline import Baselines
from initfree.certificate.focal import FocalLengths
from initfree.certificate.joint import Joint

Witness = Literal["start", "matches", "lens", "cameras", "joint", "noise"]
"""Witnesses that can settle a doubt. `start`: another start; `matches`: one that chose other matches; `lens`: the same
cameras with another lens; `cameras`: with one camera an image; `joint`: the misfits across the weakest joint; `noise`:
errors with little in common that no 3x4 matrices lessen. A search computes the first two, the certificate itself the
others."""


@dataclass(frozen=True, eq=False)
class History:
    """Facts that a step of a solve adds and later steps keep (`dataclasses.replace`)."""

    searching: bool = False
    """whether the search goes on: other models of the cameras are only tried on a solution that is returned"""
    confirmed: frozenset[Witness] = frozenset()
    """what witnesses that found the same reconstruction could have known better"""
    left_out: tuple[str, ...] = ()
    """rejected images, which are not part of the reconstruction"""
    left_out_because: str = ""
    """reason of their rejection"""
    alone: bool = False
    """the other images were solved again without these, from nothing, and stand where they stood"""
    resected: bool = False
    """some images were resected from the landmarks of the others"""
    intrinsics_doubt: str = ""
    """why the given intrinsics look wrong, if no better ones were found"""
    joint: Joint | None = None
    """the weakest joint over all observations before wrong ones were removed"""
    focal_lengths: FocalLengths | None = None
    """focal lengths of the camera models that were tried"""
    focal_rise: float | None = None
    """`focal.focal_rise` of nearly the same observations, where it is far above its threshold"""
    baselines: Baselines | None = None
    """baselines of these observations, if already computed"""
