"""What a solve returns."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from initfree.arrays.camera_reports import CameraReport, camera_reports
from initfree.arrays.synchronisation import Offset, offsets
from initfree.certificate import Certificate
from initfree.certificate.uncertainty import Uncertainty
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.engine.levenberg_marquardt import Iteration
from initfree.engine.parallel import one_blas_thread
from initfree.errors import InputError
from initfree.stages.trace import Moment, Trace
from initfree.stages.upgrade.metric import Upgraded

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
    """why it ended: converged, plateau, limit, zero cost (`levenberg_marquardt.Convergence`)"""
    gradient: float | None = None
    """the gradient without units at the end (`levenberg_marquardt.gradient_cosine`)"""
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
    """robust Euclidean cost of all observations (`euclidean.robust_cost`), by which starts are ranked"""
    accepted: bool
    inlier_share: float
    worst_share: float
    stages: tuple[StageReport, ...]


@dataclass(frozen=True, eq=False)
class Intermediate:
    """What the stages before the Euclidean adjustment led to, in the start that won."""

    P: Array
    """(cameras, 3, 4) projective, normalised coordinates"""
    X: Array
    """(landmarks, 4) homogeneous"""
    before: Reconstruction
    """the projective reconstruction read as if it were metric"""
    upgraded: Upgraded
    """right after the metric upgrade, with its figures"""
    trace: Trace = field(default_factory=Trace, repr=False)
    """cameras and some landmarks after each step, see `Result.moments`"""

    def subset(self, cameras: Any, landmarks: Any) -> "Intermediate":
        """Some of the cameras and landmarks."""
        upgraded = replace(self.upgraded, reconstruction=self.upgraded.reconstruction.subset(cameras, landmarks))
        before = self.before.subset(cameras, landmarks)
        return replace(self, P=self.P[cameras], X=self.X[landmarks], before=before, upgraded=upgraded)

    def labelled(self, names: tuple[str, ...], ids: Index) -> "Intermediate":
        """With image names and landmark ids."""
        upgraded = replace(self.upgraded, reconstruction=replace(self.upgraded.reconstruction, names=names, ids=ids))
        return replace(self, before=replace(self.before, names=names, ids=ids), upgraded=upgraded)


@dataclass(frozen=True, eq=False)
class Result:
    """Cameras and landmarks, the verdict, and the figures of every stage."""

    problem: Problem
    """what is left of the problem that was given: without the images and observations that agree with nothing"""
    config: SolveConfig
    """what was asked for"""
    reconstruction: Reconstruction
    """cameras and landmarks, labelled by image names and landmark ids"""
    certificate: Certificate
    """the verdict and what it rests on"""
    intermediate: Intermediate
    """projective cameras and the metric upgrade, before the adjustment"""
    stages: tuple[StageReport, ...]
    """of the start that won"""
    starts: tuple[StartReport, ...] = ()
    """every start of the `auto` strategy, in order; empty for a single pipeline"""
    winner: str = ""
    """name of the start that won"""
    start_config: SolveConfig | None = None
    """configuration of the start that won"""
    notes: tuple[str, ...] = ()
    """what else the user should know, a sentence each"""

    @classmethod
    def labelled(cls, **parts: Any) -> "Result":
        """A result whose reconstructions carry the problem's image names and landmark ids: the stages number them."""
        names, ids = parts["problem"].names, parts["problem"].landmark_ids
        parts["reconstruction"] = replace(parts["reconstruction"], names=names, ids=ids)
        parts["intermediate"] = parts["intermediate"].labelled(names, ids)
        return cls(**parts)

    @property
    def accepted(self) -> bool:
        """Whether the certificate accepts the reconstruction."""
        return self.certificate.accepted

    @property
    def focal_pixels(self) -> Array:
        """(cameras,) focal length of every image in pixels, along x."""
        problem = self.problem
        return self.reconstruction.focal * problem.observations.image_unit[problem.images, 0]

    @property
    def poses(self) -> dict[str, Array]:
        """By image name, the matrix (4, 4) from world to camera."""
        r = self.reconstruction
        matrices = np.tile(np.eye(4), (len(r.R), 1, 1))
        matrices[:, :3, :3], matrices[:, :3, 3] = r.R, r.t
        return dict(zip(r.names, matrices, strict=True))

    @property
    def quaternions(self) -> Array:
        """(cameras, 4) rotations from world to camera as unit quaternions (w, x, y, z), as COLMAP's text files have them."""
        return Rotation.from_matrix(self.reconstruction.R).as_quat(canonical=True)[:, [3, 0, 1, 2]]

    @property
    def uncertainty(self) -> Uncertainty:
        """Standard deviation of every camera's rotation, centre and focal length, against the reconstruction as a whole."""
        with one_blas_thread():  # the same digits as within a solve
            return self.certificate.evidence.uncertainty

    @cached_property
    def cameras(self) -> tuple[CameraReport, ...]:
        """Error, wrong detections and uncertainty of every camera."""
        return camera_reports(self.problem, self.reconstruction, self.uncertainty)

    def moments(self) -> tuple[Index, list[Moment]]:
        """Ids of some landmarks, and where they and the cameras were after each step, in the world of the result."""
        return self.intermediate.trace.moments(self.intermediate.upgraded.reconstruction, self.reconstruction)

    def synchronisation(self) -> dict[str, Offset]:
        """By how many frames cameras of an array are out of step, by name; those left out too, where it can be told."""
        return self._offsets

    @cached_property
    def _offsets(self) -> dict[str, Offset]:
        return offsets(self.problem, self.reconstruction, self.cameras)

    def stage(self, name: str) -> StageReport:
        """The report of a stage by name."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise InputError(f"no stage is named {name!r}; expected one of {', '.join(stage.name for stage in self.stages)}")

    def to_colmap(self) -> "pycolmap.Reconstruction":
        """The metric reconstruction as a COLMAP model: names, keypoints and ids as in the input."""
        from initfree.io.export import to_colmap

        return to_colmap(self.problem, self.reconstruction)

    def write(self, directory: str | Path, *, overwrite: bool = False) -> None:
        """What `initfree solve --output` writes: DIRECTORY/sparse/0 and DIRECTORY/run.json, whole or not at all.

        Files there that no solve wrote, or that were changed since, are replaced only with `overwrite`.
        """
        from initfree.io.write import write_result

        write_result(self, Path(directory), overwrite=overwrite)

    def __repr__(self) -> str:
        verdict = "accepted" if self.accepted else "not accepted"
        cameras, landmarks = len(self.reconstruction.R), len(self.reconstruction.xyz)
        median = self.certificate.evidence.median_pixels
        return f"Result({cameras} cameras, {landmarks} landmarks, median error {median:.2g} px, {verdict})"

    def _repr_html_(self) -> str:
        """A short table for notebooks."""
        evidence = self.certificate.evidence
        rows = {
            "cameras": len(self.reconstruction.R),
            "landmarks": len(self.reconstruction.xyz),
            "observations": self.problem.tracks.observations,
            "median error": f"{evidence.median_pixels:.3g} px",
            "observations that fit": f"{evidence.inlier_share:.1%}",
            "verdict": f"{'accepted' if self.accepted else 'not accepted'}: {self.certificate.reason}",
        }
        return "<table>" + "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items()) + "</table>"
