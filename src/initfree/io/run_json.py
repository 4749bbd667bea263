"""run.json: options, figures and verdict of a run."""

import json
import math
import platform
import sys
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from initfree.result import Result

_PACKAGES = ("initfree", "numpy", "scipy", "numba", "pycolmap")


def describe(result: "Result") -> dict[str, Any]:
    """The run as plain values; `seconds` are those of its stages."""
    problem, upgraded = result.problem, result.intermediate.upgraded
    return {
        "input": problem.observations.source,
        "configuration": asdict(result.config) | {"min_obs": problem.min_obs},
        # They are loaded: asking for the metadata of what is installed reads and parses a file each.
        "versions": {name: import_module(name).__version__ for name in _PACKAGES} | {"python": platform.python_version()},
        "problem": {
            "cameras": problem.tracks.cameras,
            "landmarks": problem.tracks.landmarks,
            "observations": problem.tracks.observations,
            "dropped": asdict(problem.dropped),
            "array": problem.observations.of_array,
        },
        "strategy": "auto" if result.starts else "single",
        "winner": result.winner or None,
        "winner_configuration": None if result.start_config is None else asdict(result.start_config),
        "starts": [asdict(start) for start in result.starts],
        "stages": [asdict(stage) for stage in result.stages],
        "upgrade": {
            "method": (result.start_config or result.config).upgrade,
            "singular_values": list(upgraded.singular_values),
            "conditioning": upgraded.conditioning,
            "positive_depths": upgraded.positive_depths,
            "quadric_residual": upgraded.quadric_residual,
            "anisotropy": upgraded.anisotropy,
        },
        "intrinsics": {
            "given": problem.observations.intrinsics,
            "sizes_guessed": problem.observations.sizes_guessed,
            "known": problem.exact,
            "status": problem.intrinsics,
            "focal_pixels": dict(zip(problem.names, result.focal_pixels.tolist(), strict=True)),
            "radial": dict(zip(problem.names, result.reconstruction.radial.tolist(), strict=True)),
            "cameras": _cameras(result) if problem.calibrated else None,
        },
        "positive_depths": result.reconstruction.positive_depths(problem.tracks),
        "certificate": result.certificate.to_dict(),
        "weakest_joint": _joint(result),
        "uncertainty": _uncertainty(result),
        "cameras": {report.name: asdict(report) for report in result.cameras},
        "synchronisation": {name: asdict(offset) for name, offset in result.synchronisation().items()},
        "out_of_step": {name: str(offset) for name, offset in result.synchronisation().items() if offset.significant},
        "exchanges": {name: str(one) for name, one in result.exchanges().items()},
        "notes": list(result.notes),
        "truth": None,
        "metrics": None,
        "seconds": sum(stage.seconds for stage in result.stages),
        "peak_rss_mib": peak_rss_mib(),
    }


def _cameras(result: "Result") -> dict[str, dict[str, Any]]:
    """By camera id: COLMAP's model and its parameters, as the result has them."""
    problem = result.problem
    used = {int(k): problem.observations.cameras[int(k)] for k in np.unique(problem.camera_ids)}
    return {str(k): {"model": camera.model_name, "params": [float(p) for p in camera.params]} for k, camera in used.items()}


def _joint(result: "Result") -> dict[str, Any]:
    """The weakest joint: images of the smaller part, and the landmarks that join them with the others."""
    evidence = result.certificate.evidence
    j = evidence.joint
    images = [evidence.names[k] for k in np.flatnonzero(j.smaller)]
    return {"images": images, "joining_landmarks": j.joining, "that_fit": j.fitting}


def _uncertainty(result: "Result") -> dict[str, Any]:
    """Standard deviations by image."""
    u, names = result.uncertainty, result.problem.names
    return {
        "noise_pixels": u.noise,
        "scene_extent": u.extent,
        "rotation_degrees": dict(zip(names, u.rotation.tolist(), strict=True)),
        "centre_share_of_extent": dict(zip(names, u.centre.tolist(), strict=True)),
        "focal_share": None if result.problem.exact else dict(zip(names, u.focal.tolist(), strict=True)),
    }


def peak_rss_mib() -> float:
    """Peak resident memory of this process; not a number where the system does not say (Windows)."""
    try:
        import resource
    except ImportError:
        return math.nan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024.0 * 1024.0 if sys.platform == "darwin" else 1024.0)


def write_json(path: Path, value: dict[str, Any]) -> None:
    """JSON that any parser takes: not-a-number and infinity, which JSON has not, become null."""
    path.write_text(to_json(value, indent=1) + "\n")


def to_json(value: dict[str, Any], indent: int | None = None) -> str:
    """The text of `write_json`."""
    return json.dumps(plain(value), indent=indent, allow_nan=False)


def plain(value: Any) -> Any:
    """What JSON can hold: not-a-number and infinity are None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value
