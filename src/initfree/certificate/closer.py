"""What is asked of a reconstruction that looks right: how certain it is, whether it is determined, whether it is doubled."""

from dataclasses import dataclass

from initfree.certificate.hinge import Hinge, thinnest_hinge
from initfree.certificate.modes import Determination, determination
from initfree.certificate.twins import Duplication, duplication
from initfree.certificate.uncertainty import CameraSystem, Uncertainty, camera_system
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.stages.euclidean import FreeIntrinsics
from initfree.stages.euclidean.residuals import consensus


@dataclass(frozen=True)
class CloserLook:
    """Figures that need the reduced camera system, or all landmarks in all images."""

    uncertainty: Uncertainty
    determination: Determination
    duplication: Duplication
    hinge: Hinge

    def figures(self) -> dict[str, float]:
        """As run.json has them; deviations of the worst camera."""
        u, d = self.uncertainty, self.determination
        return {
            "rotation_deviation": float(u.rotation.max()),
            "centre_deviation": float(u.centre.max()),
            "focal_deviation": float(u.focal.max()),
            "expected_rotation_auc20": d.rotation_auc20,
            "expected_translation_auc20": d.translation_auc20,
            "drift": d.drift,
            "sharing": self.duplication.sharing,
            "twins": self.duplication.twins,
            "hinge_thickness": self.hinge.thickness,
            "hinge_lever": self.hinge.lever,
        }


def look_closer(problem: Problem, reconstruction: Reconstruction, *, found: bool = False) -> CloserLook:
    """Over the observations that agree; `found` says that the intrinsics of a calibrated problem were found with it."""
    system = agreed_system(problem, reconstruction, found=found)
    cameras, xyz = reconstruction.cameras, reconstruction.xyz
    counts = system.weight > 0.0
    doubled = duplication(problem.tracks, problem.m, problem.unit, cameras, xyz, counts)
    return CloserLook(system.uncertainty(), determination(system), doubled, thinnest_hinge(problem.tracks, counts, xyz))


def agreed_system(problem: Problem, reconstruction: Reconstruction, *, found: bool = False) -> CameraSystem:
    """The reduced camera system over the observations that agree."""
    return camera_system(
        problem.tracks,
        problem.m,
        problem.unit,
        reconstruction.cameras,
        reconstruction.xyz,
        consensus(problem, reconstruction),
        free=FreeIntrinsics.unless(problem.calibrated and not found),
        groups=problem.camera_ids,
    )
