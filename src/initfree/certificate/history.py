"""How a reconstruction came about: what no figure of the problem and the reconstruction can tell."""

from dataclasses import dataclass

from initfree.certificate.baseline import Baselines
from initfree.certificate.focal import FocalLengths
from initfree.certificate.joint import Joint


@dataclass(frozen=True, eq=False)
class History:
    """Facts that a step of a solve adds and later steps keep (`dataclasses.replace`)."""

    searching: bool = False
    """a start of a search, or on the way to its end: other models of the cameras are asked of what is returned"""
    confirmed: bool = False
    """a second start found the same reconstruction"""
    left_out: tuple[str, ...] = ()
    """images that agree with nothing and are not part of the reconstruction"""
    left_out_because: str = ""
    """what was wrong with them"""
    resected: bool = False
    """some images were placed by the landmarks of the others"""
    intrinsics_doubt: str = ""
    """why the given intrinsics look wrong, if they do and nothing better was found"""
    joint: Joint | None = None
    """the weakest joint over the observations before wrong ones were left out"""
    focal_lengths: FocalLengths | None = None
    """focal lengths of the camera models that were tried"""
    focal_rise: float | None = None
    """`focal.focal_rise` of nearly the same observations, where it is far above its threshold"""
    baselines: Baselines | None = None
    """of these observations, where they are known already"""
