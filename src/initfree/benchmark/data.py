"""Observations and truth of a job: generated once into the sweep's cache, or read from a BAL file."""

import json
import os
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pycolmap

from initfree.benchmark.jobs import DataSpec
from initfree.benchmark.series_gap import series_gap
from initfree.benchmark.sources import bal_problems, densified
from initfree.data.camera_graph import spectral_gap, without_diagonal
from initfree.data.problem import Problem, build_problem
from initfree.data.recalibration import with_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.errors import InputError
from initfree.generator import Config, Dataset, generate, write
from initfree.generator.presets import load as load_generator
from initfree.generator.presets import override
from initfree.io import bal
from initfree.io.load import load_model, load_observations
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.stages.initialization import INITIALIZATIONS, initialize
from initfree.stages.upgrade.linear1997 import nullity

PAPER_SCALE = 41.0
"""rms distance of the landmarks from their mean in the paper's sets (a collapsed reconstruction has this RMSE), to which BAL
is scaled, so that a landmark RMSE of 30 means the same"""
FAR = 20.0
"""BAL's optimum has points near infinity; those beyond this many median distances from the middle are not compared"""


@dataclass(frozen=True)
class Place:
    """Where a worker finds and keeps files; no part of any key."""

    cache: Path
    data: Path | None = None
    """BAL files"""
    configs: tuple[tuple[str, str], ...] = ()
    """preset or TOML file of a set by its title, where these differ"""
    search: tuple[str, ...] = ()
    """directories for the sweep's imports"""


@dataclass(frozen=True)
class Data:
    """What a job works on, and what it is compared with."""

    problem: Problem
    truth: Reconstruction
    true_reconstruction: Reconstruction
    """the truth over the problem's cameras and landmarks, where stage 1 or an oracle may start"""
    seed: int = 0
    series_gaps: dict[str, float] = field(default_factory=dict)
    """by start, as they were needed"""

    @cached_property
    def nullity(self) -> int:
        """Dimension of the null space of the paper's linear upgrade at the true cameras: beyond 1 it is degenerate."""
        return nullity(true_cameras(self))

    @cached_property
    def spectral_gap(self) -> float:
        """λ2 of the camera graph, its edges the landmarks that two cameras share: about 1 where all share alike."""
        return spectral_gap(without_diagonal(self.problem.tracks.covisible))

    @cached_property
    def walk_gap(self) -> float:
        """The same of the walk camera → landmark → camera, which may end where it began: what one term of the power series,
        A^-1 E = U^-1 W V^-1 W', is for one number a camera and a landmark. Short tracks make it small, too."""
        tracks = self.problem.tracks
        lengths = np.diff(tracks.ptr)
        return spectral_gap(tracks.sharing(1.0 / np.sqrt(lengths[tracks.landmark])))

    def series_gap(self, init: str) -> float:
        """`series_gap.series_gap` from the first cameras of a start, of this data's own seed; NaN where it is too much."""
        if init not in self.series_gaps:
            cameras = initialize(init, self.problem.tracks, self.seed) if init in INITIALIZATIONS else None
            self.series_gaps[init] = float("nan") if cameras is None else series_gap(self.problem, cameras)
        return self.series_gaps[init]

    @property
    def scene_scale(self) -> float:
        """rms distance of the true landmarks from their mean."""
        return float(np.sqrt(self.truth.xyz.var(axis=0).sum()))


def dataset(spec: DataSpec, place: Place) -> Dataset:
    """The generated set, in memory."""
    return generate(_config(spec, place), spec.seed)


def _config(spec: DataSpec, place: Place) -> Config:
    wanted = json.loads(spec.definition)
    config = load_generator(dict(place.configs).get(spec.set, spec.set))
    trajectory, scene = wanted.get("trajectory") or {}, wanted["scene"]
    chosen = {
        "cameras": trajectory.get("cameras"),
        "points": scene.get("landmarks"),
        "density": wanted["density"]["mean_observations"],
        "track_angle": wanted["density"]["track_angle"],
        "visibility": wanted["visibility"]["kind"],
        "shuffle": wanted["shuffle"] or None,
    }
    config = override(config, **chosen, **vars(spec.condition))
    return config if spec.first is None else densified(config, spec.first)


@lru_cache(maxsize=4)
def load_data(spec: DataSpec, place: Place) -> Data:
    """Loaded once a worker, as long as its jobs are of the same data."""
    return _load_bal(spec, place) if spec.source == "bal" else _load_generated(spec, place)


def _load_generated(spec: DataSpec, place: Place) -> Data:
    folder = place.cache.expanduser() / f"{spec.set}-{spec.seed}-{spec.key}"
    if not folder.is_dir():
        _make(spec, place, folder)
    noisy = folder / "noisy" / "0"
    problem = _problem(noisy if noisy.is_dir() else folder, spec)
    truth = load_model(folder)
    return Data(problem, truth, true_reconstruction(problem, truth), spec.seed)


def _make(spec: DataSpec, place: Place, folder: Path) -> None:
    """Made beside its place and renamed as a whole: a killed worker leaves none, and the first of two wins."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".making-", dir=folder.parent) as made:
        write(dataset(spec, place), Path(made) / folder.name, database=False, figures=False)
        try:
            os.rename(Path(made) / folder.name, folder)
        except OSError:
            if not folder.is_dir():
                raise


def _problem(path: Path, spec: DataSpec) -> Problem:
    """Named after its set, not its file: what it complains of is in a row, which is the same on every machine."""
    # A BAL file's intrinsics are never read by its reader; a COLMAP model's are, unless asked not to.
    intrinsics = "unknown" if spec.intrinsics == "pixels" else None
    return build_problem(replace(load_observations(path, intrinsics), source=spec.set), spec.min_obs)


def true_reconstruction(problem: Problem, truth: Reconstruction) -> Reconstruction:
    """The truth over the problem's cameras and landmarks."""
    image = {name: k for k, name in enumerate(truth.names)}
    point = {int(i): k for k, i in enumerate(truth.ids)}
    cameras = [image[name] for name in problem.names]
    xyz = truth.xyz[[point[int(i)] for i in problem.landmark_ids]]
    n = len(cameras)
    focal = np.ones(n)
    if not problem.calibrated:
        o = problem.observations
        pixels = np.array([o.cameras[k].mean_focal_length() for k in problem.camera_ids.tolist()])
        focal = pixels / o.image_unit[problem.images, 0]
    return Reconstruction(truth.R[cameras], truth.t[cameras], focal, np.zeros((n, 2)), xyz)


def _load_bal(spec: DataSpec, place: Place) -> Data:
    """The truth is BAL's own optimum: classical bundle adjustment from the file's estimates, over these observations."""
    file = bal_problems(place.data)[spec.set]
    problem, numbers = _problem(file, spec), bal.read_bal(file)
    estimate = bal.reconstruction_of(file)
    f, k1, k2 = numbers.parameters[problem.images, 6:].T
    # π of BAL is in focal lengths; ours too, with f in normalised units.
    unit = problem.observations.image_unit[problem.images, 0]
    start = replace(true_reconstruction(problem, estimate), focal=f / unit, radial=np.column_stack([k1, k2]))
    free = FreeIntrinsics.unless(calibrated=False)
    limits = AdjustConfig(free=free, scales=(4.0,), max_iterations=200)
    best, _ = adjust(problem, start, limits)
    middle = np.median(best.xyz, axis=0)
    distance = np.linalg.norm(best.xyz - middle, axis=1)
    near = distance <= FAR * np.median(distance)
    scale = PAPER_SCALE / float(np.sqrt(best.xyz[near].var(axis=0).sum()))
    best = replace(best, xyz=scale * best.xyz, t=scale * best.t)
    truth = Reconstruction.of_poses(problem.names, best.R, best.t, problem.landmark_ids[near], best.xyz[near])
    if spec.intrinsics == "rays":
        whole = replace(best, names=problem.names, ids=problem.landmark_ids)
        problem = _with_intrinsics(problem, numbers.parameters[:, 6:])
        best = true_reconstruction(problem, whole)
    return Data(problem, truth, best)


def _with_intrinsics(problem: Problem, parameters: Array) -> Problem:
    """The BAL problem seen through the file's own f, k1, k2, for formulations that need calibrated rays."""
    cameras = {}
    for camera_id, given in problem.observations.cameras.items():
        f, k1, k2 = parameters[camera_id - 1]
        cameras[camera_id] = pycolmap.Camera(
            camera_id=camera_id, model="RADIAL", width=given.width, height=given.height,
            params=[f, given.width / 2.0, given.height / 2.0, k1, k2],
        )  # fmt: skip
    seen = with_cameras(problem, cameras)
    if seen is None:
        raise InputError(f"{problem.observations.source}: the file's distortion leaves an image without rays")
    return seen[0]


def true_cameras(data: Data) -> Array:
    """K [R | t] in normalised coordinates, the world scaled so that the median depth of an observation is 1."""
    truth, tracks = data.true_reconstruction, data.problem.tracks
    P = np.concatenate([truth.R, truth.t[:, :, None] / np.median(truth.depths(tracks))], axis=2)
    P[:, :2] *= truth.focal[:, None, None]
    return P
