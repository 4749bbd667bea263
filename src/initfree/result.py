"""What a solve returns."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from initfree.arrays.camera_reports import CameraReport, camera_reports
from initfree.arrays.synchronisation import Offset, offsets
from initfree.certificate import Certificate
from initfree.certificate.closer import agreed_system
from initfree.certificate.uncertainty import Uncertainty
from initfree.config import SolveConfig
from initfree.data.observations import Intrinsics
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index
from initfree.engine.levenberg_marquardt import Iteration
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


@dataclass(frozen=True)
class Result:
    """Cameras and landmarks, projective and metric, with the figures of every stage and the verdict."""

    problem: Problem
    """what is left of the problem that was given: without the images and observations that agree with nothing"""
    config: SolveConfig
    P: Array
    """(cameras, 3, 4) projective, normalised coordinates"""
    X: Array
    """(landmarks, 4) homogeneous"""
    before: Reconstruction
    """the projective reconstruction read as if it were metric"""
    upgraded: Upgraded
    """right after the metric upgrade, with its figures"""
    reconstruction: Reconstruction
    """the final one: adjusted, or as upgraded; labelled by image names and landmark ids"""
    certificate: Certificate
    stages: tuple[StageReport, ...]
    """of the start that won"""
    starts: tuple[StartReport, ...] = ()
    """every start of the `auto` strategy, in order; empty for a single pipeline"""
    winner: str = ""
    """name of the start that won"""
    start_config: SolveConfig | None = None
    """its configuration; `config` is what was asked for"""
    trace: Trace = field(default_factory=Trace, repr=False)
    """the way of the start that won, see `moments`"""
    notes: tuple[str, ...] = ()
    """what else the user should know, a sentence each"""
    given: Intrinsics | None = None
    """what the input said of its intrinsics, where `problem` has those that were found in their place"""

    def __post_init__(self) -> None:
        # The stages number cameras and landmarks; here, where they leave the solver, they get the problem's labels.
        object.__setattr__(self, "before", self._labelled(self.before))
        upgraded = replace(self.upgraded, reconstruction=self._labelled(self.upgraded.reconstruction))
        object.__setattr__(self, "upgraded", upgraded)
        object.__setattr__(self, "reconstruction", self._labelled(self.reconstruction))

    def _labelled(self, reconstruction: Reconstruction) -> Reconstruction:
        return replace(reconstruction, names=self.problem.names, ids=self.problem.landmark_ids)

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
    def uncertainty(self) -> Uncertainty:
        """Standard deviation of every camera's rotation, centre and focal length, against the reconstruction as a whole."""
        closer = self.certificate.evidence.closer
        if closer is not None:
            return closer.uncertainty
        return agreed_system(self.problem, self.reconstruction).uncertainty()

    @property
    def cameras(self) -> tuple[CameraReport, ...]:
        """Error, wrong detections and uncertainty of every camera."""
        return camera_reports(self.problem, self.reconstruction, self.uncertainty)

    def moments(self) -> tuple[Index, list[Moment]]:
        """Ids of some landmarks, and where they and the cameras were after each step, in the world of the result."""
        return self.trace.moments(self.upgraded.reconstruction, self.reconstruction)

    @property
    def synchronisation(self) -> dict[str, Offset]:
        """By how many frames cameras of an array are out of step, by name; those left out too, where it can be told."""
        return offsets(self.problem, self.reconstruction, self.cameras)

    def stage(self, name: str) -> StageReport:
        """The report of a stage by name."""
        return {stage.name: stage for stage in self.stages}[name]

    def subset(self, problem: Problem, cameras: Any, landmarks: Any, reconstruction: Reconstruction) -> "Result":
        """The result of a part of its problem, with the part's reconstruction; earlier stages are cut to it."""
        upgraded = self.upgraded.reconstruction.subset(cameras, landmarks)
        return replace(
            self,
            problem=problem,
            P=self.P[cameras],
            X=self.X[landmarks],
            before=self.before.subset(cameras, landmarks),
            upgraded=replace(self.upgraded, reconstruction=upgraded),
            reconstruction=reconstruction,
        )

    def to_colmap(self) -> "pycolmap.Reconstruction":
        """The metric reconstruction as a COLMAP model: names, keypoints and ids as in the input."""
        from initfree.io.export import to_colmap

        return to_colmap(self.problem, self.reconstruction)

    def write(self, directory: str | Path) -> None:
        """What `initfree solve --output` writes: DIRECTORY/sparse/0 and DIRECTORY/run.json, whole or not at all."""
        from initfree.io.write import write_result

        write_result(self, Path(directory))

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
