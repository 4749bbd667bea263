"""The result of a solve."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial.transform import Rotation

from initfree.arrays.camera_reports import CameraReport, camera_reports
from initfree.arrays.exchanges import Exchange, exchanges
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

_GUESSED_MIDDLE = 0.025
"""deviation of an image's middle, as a share of its longer side, where detections alone say how large it is: they leave
about a twentieth of it free, on one side or the other"""


@dataclass(frozen=True)
class StageReport:
    """Figures of one stage.

    Attributes:
        name: Name of the stage.
        seconds: Seconds that it took.
        iterations: Attempted steps.
        accepted: Steps that lowered the cost.
        reason: Why it ended: converged, plateau, limit, zero cost (`levenberg_marquardt.Convergence`).
        gradient: The scale-free gradient at the end (`levenberg_marquardt.gradient_cosine`).
        initial_cost: Cost before the first step.
        cost: Final cost: half the (robust) sum of squared residuals.
        mean_residual: Mean norm of an observation's residual, in `residual_unit`.
        residual_unit: Unit of `mean_residual`.
        mean_pixels: Mean reprojection error after the stage, where there is one.
        history: Cost and damping of every step.
    """

    name: str
    seconds: float
    iterations: int = 0
    accepted: int = 0
    reason: str = ""
    gradient: float | None = None
    initial_cost: float | None = None
    cost: float | None = None
    mean_residual: float | None = None
    residual_unit: str = ""
    mean_pixels: float | None = None
    history: tuple[Iteration, ...] = ()


@dataclass(frozen=True)
class StartReport:
    """Figures of one start of the strategy auto.

    Attributes:
        name: Name of the start.
        seconds: Seconds that it took.
        cost: Robust Euclidean cost of all observations (`euclidean.robust_cost`), by which starts are ranked.
        accepted: Whether the certificate accepts the reconstruction.
        inlier_share: Share of the observations within 4 px.
        worst_share: The same share in the worst image.
        stages: Reports of its stages.
    """

    name: str
    seconds: float
    cost: float
    accepted: bool
    inlier_share: float
    worst_share: float
    stages: tuple[StageReport, ...]


@dataclass(frozen=True, eq=False)
class Intermediate:
    """Reconstructions of the winning start before the Euclidean adjustment.

    Attributes:
        P: Projective cameras in normalised coordinates, (cameras, 3, 4).
        X: Homogeneous landmarks, (landmarks, 4).
        before: The projective reconstruction, taken as if it were metric.
        upgraded: The reconstruction after the metric upgrade, and the figures of the upgrade.
        trace: Cameras and some landmarks after each step, see `Result.moments`.
    """

    P: Array
    X: Array
    before: Reconstruction
    upgraded: Upgraded
    trace: Trace = field(default_factory=Trace, repr=False)

    def subset(self, cameras: Any, landmarks: Any) -> "Intermediate":
        """The same of some cameras and landmarks."""
        upgraded = replace(self.upgraded, reconstruction=self.upgraded.reconstruction.subset(cameras, landmarks))
        before = self.before.subset(cameras, landmarks)
        trace = self.trace.subset(cameras)
        return replace(self, P=self.P[cameras], X=self.X[landmarks], before=before, upgraded=upgraded, trace=trace)

    def labelled(self, names: tuple[str, ...], ids: Index) -> "Intermediate":
        """With image names and landmark ids."""
        upgraded = replace(self.upgraded, reconstruction=replace(self.upgraded.reconstruction, names=names, ids=ids))
        return replace(self, before=replace(self.before, names=names, ids=ids), upgraded=upgraded)


@dataclass(frozen=True, eq=False)
class Result:
    """A reconstruction, its certificate and the report of every stage.

    Attributes:
        problem: The observations that were used: the given problem without rejected images and observations.
        config: The given options.
        reconstruction: Cameras and landmarks, labelled by image names and landmark ids.
        certificate: The verdict, its reason, and the figures behind it.
        intermediate: Projective cameras and the metric upgrade, before the adjustment.
        stages: Reports of the winning start's stages and of the finishing steps.
        starts: Reports of all starts of the strategy auto, in order; empty for a single pipeline.
        winner: Name of the winning start.
        start_config: Options of the winning start.
        notes: Remarks for the user, a sentence each.
    """

    problem: Problem
    config: SolveConfig
    reconstruction: Reconstruction
    certificate: Certificate
    intermediate: Intermediate
    stages: tuple[StageReport, ...]
    starts: tuple[StartReport, ...] = ()
    winner: str = ""
    start_config: SolveConfig | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def labelled(cls, **parts: Any) -> "Result":
        """A result whose reconstructions have the problem's image names and landmark ids; the stages only number them."""
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
        """Focal lengths of the images in pixels, along x, (cameras,)."""
        problem = self.problem
        return self.reconstruction.focal * problem.observations.image_unit[problem.images, 0]

    @property
    def poses(self) -> dict[str, Array]:
        """Matrices (4, 4) from world to camera, by image name; `reconstruction.matrices` has them in one array."""
        return dict(zip(self.reconstruction.names, self.reconstruction.matrices, strict=True))

    @property
    def quaternions(self) -> dict[str, Array]:
        """Unit quaternions (w, x, y, z) from world to camera, by image name, in the convention of COLMAP's text files."""
        w_last = Rotation.from_matrix(self.reconstruction.R).as_quat(canonical=True)
        return dict(zip(self.reconstruction.names, np.roll(w_last, 1, axis=1), strict=True))

    @property
    def uncertainty(self) -> Uncertainty:
        """Standard deviations of the cameras' rotations, centres and focal lengths, relative to the whole reconstruction."""
        with one_blas_thread():  # as in a solve: sums in another order have other last digits
            u = self.certificate.evidence.uncertainty
        o = self.problem.observations
        if not o.sizes_guessed:
            return u
        # A principal point that is off by p pixels turns its camera by p / f.
        used = [o.cameras[o.images[k].camera_id] for k in self.problem.images]
        off = _GUESSED_MIDDLE * np.array([max(camera.width, camera.height) for camera in used])
        return replace(u, rotation=np.hypot(u.rotation, np.degrees(np.arctan(off / self.focal_pixels))))

    @cached_property
    def cameras(self) -> tuple[CameraReport, ...]:
        """Error, wrong detections and uncertainty of each camera."""
        return camera_reports(self.problem, self.reconstruction, self.uncertainty)

    def moments(self) -> tuple[Index, list[Moment]]:
        """Ids of some landmarks, and positions of these and of the cameras after each step, in the result's frame."""
        return self.intermediate.trace.moments(self.intermediate.upgraded.reconstruction, self.reconstruction)

    def synchronisation(self) -> dict[str, Offset]:
        """Offsets in frames of the cameras of an array, by name; those of rejected cameras too, where they are determined.

        The first call computes them, with several bundle adjustments.
        """
        return self._offsets

    @cached_property
    def _offsets(self) -> dict[str, Offset]:
        return offsets(self.problem, self.reconstruction, self.cameras)

    def exchanges(self) -> dict[str, Exchange]:
        """Mistakes in the table of an array that would explain cameras which do not fit, by name."""
        return self._exchanges

    @cached_property
    def _exchanges(self) -> dict[str, Exchange]:
        return exchanges(self.problem, self.reconstruction, self.cameras)

    def stage(self, name: str) -> StageReport:
        """The report of the named stage."""
        for stage in self.stages:
            if stage.name == name:
                return stage
        raise InputError(f"no stage is named {name!r}; expected one of {', '.join(stage.name for stage in self.stages)}")

    def to_colmap(self) -> "pycolmap.Reconstruction":
        """The metric reconstruction as a COLMAP model: names, keypoints and ids as in the input."""
        from initfree.io.export import to_colmap

        return to_colmap(self.problem, self.reconstruction)

    def write(self, directory: str | Path, *, overwrite: bool = False) -> None:
        """Write DIRECTORY/sparse/0 and DIRECTORY/run.json, as `initfree solve --output` does: both, or neither.

        Files that a solve did not write, or that changed since, are replaced only with `overwrite`.
        """
        from initfree.io.write import write_result

        write_result(self, Path(directory), overwrite=overwrite)

    def __repr__(self) -> str:
        verdict = "accepted" if self.accepted else "not accepted"
        cameras, landmarks = len(self.reconstruction.R), len(self.reconstruction.xyz)
        median = self.certificate.evidence.median_pixels
        gone = len(self.problem.dropped.images)
        placed = f"{cameras} of {cameras + gone}" if gone else f"{cameras}"
        return f"Result({placed} cameras, {landmarks} landmarks, median error {median:.2g} px, {verdict})"

    def _repr_html_(self) -> str:
        """A short table for notebooks."""
        evidence = self.certificate.evidence
        rows = {
            "cameras": f"{len(self.reconstruction.R)} of {len(self.reconstruction.R) + len(self.problem.dropped.images)}",
            "landmarks": len(self.reconstruction.xyz),
            "observations": self.problem.tracks.observations,
            "median error": f"{evidence.median_pixels:.3g} px",
            "observations that fit": f"{evidence.inlier_share:.1%}",
            "verdict": f"{'accepted' if self.accepted else 'not accepted'}: {self.certificate.reason}",
        }
        return "<table>" + "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in rows.items()) + "</table>"
