"""Unknown intrinsics: the simplest COLMAP camera that explains the images.

Images of one size and name pattern first share a camera with a central principal point and the estimated radial
distortion. Then the principal point, tangential distortion, k3, and one camera an image are added, each if it lowers the
error of held-out observations. Last, k2 and k1 are removed if they do not lower it. Cross-validation rejects parameters
that only follow noise. Distortion precedes the principal point because real lenses have it, and because each explains
much of the other for cameras that move straight ahead.
"""

import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

import numpy as np
import pycolmap

from initfree.auto.intrinsics import QUICK, Chosen, Recalibrated, Sight, recalibrated
from initfree.certificate.focal import FocalLengths
from initfree.data.problem import Problem, restricted
from initfree.data.recalibration import found_camera, keypoints_of
from initfree.data.reconstruction import Reconstruction
from initfree.data.thinning import LEAST, thinned
from initfree.data.tracks import Index, Tracks
from initfree.engine.levenberg_marquardt import NEAR
from initfree.engine.losses import scale_from_median
from initfree.stages.euclidean import AdjustConfig, FreeIntrinsics, adjust
from initfree.stages.euclidean.intrinsics import IntrinsicsAdjustment, View
from initfree.stages.euclidean.lenses import Deviations, Lenses
from initfree.stages.euclidean.residuals import INLIER_PIXELS, robust_cost

STEPS = ("principal point", "tangential", "k3")
"""in the order of the trials"""
HELD_OUT = 0.15
"""share of held-out observations, of tracks with at least four"""
DEVIATIONS = 4.0
"""standard deviations by which the mean held-out error must be lower"""
LEAST_SHARE = 0.02
"""share of the mean held-out error by which it must be lower"""
SQUARE = Deviations(aspect=1e-3)
"""parameters of an unknown lens with square pixels"""
HOPELESS = 3.0
"""times the cost of one camera an image, from which one camera for all is rejected"""
ROUGH_STEPS, STILL_HOPELESS = 10, 3.0
"""first steps, and the factor by which the cost may be too high after them (20 and more for BAL's photographs of many
makes, less than one for those of one)"""
KEPT = 6.0
"""squared deviations by which the cost must rise without k1 or k2 for them to stay"""
ENOUGH = 40_000
"""observations that suffice to select the camera model: a gain of the least share is then also significant. Half of them
did not determine fountain-p11's k2, a fifth not even its principal point"""
MIN_HELD_OUT = 30
"""observations: with fewer, the camera stays as simple as it is"""

_LEAST_SCALE = 0.01
"""pixels: exact observations must not make every difference significant"""

Features = frozenset[str]
_MODELS: tuple[tuple[Features, str], ...] = (
    (frozenset(), "SIMPLE_PINHOLE"),
    (frozenset({"k1"}), "SIMPLE_RADIAL"),
    (frozenset({"k1", "k2"}), "RADIAL"),
    (frozenset({"k1", "k2", "tangential"}), "OPENCV"),
    (frozenset({"k1", "k2", "tangential", "k3"}), "FULL_OPENCV"),
)
_OF = {"k1": "k1", "k": "k1", "k2": "k2", "p1": "tangential", "p2": "tangential", "k3": "k3"}
"""the step that frees each parameter, by pycolmap's names; focal lengths are always free, others never"""


def alike_images(problem: Problem) -> Index:
    """(cameras,) group of each image: one size, one folder, and one name apart from its digits.

    Images with one camera in the input stay together.
    """
    o = problem.observations
    keys: list[tuple[object, ...]] = []
    for k in problem.images:
        image = o.images[k]
        camera, path = o.cameras[image.camera_id], PurePosixPath(image.name)
        keys.append((camera.width, camera.height, str(path.parent), re.sub(r"\d+", "#", path.name)))
    ids = problem.camera_ids
    first = {int(camera): keys[int(np.flatnonzero(ids == camera)[0])] for camera in np.unique(ids)}
    distinct = list(dict.fromkeys(first.values()))
    return np.array([distinct.index(first[int(camera)]) for camera in ids], dtype=np.int64)


def simplest_cameras(problem: Problem, reconstruction: Reconstruction) -> Recalibrated | None:
    """A calibrated reconstruction from one with unknown intrinsics; None if its cameras lose images.

    All images of a group (`alike_images`) start with one camera. Camera ids are those of the input for separate cameras,
    else the first of each group.
    """
    if problem.calibrated:
        return None
    part, left = _enough(problem, ENOUGH)
    stage, shared, focal_lengths = _decided(part, reconstruction.subset(slice(None), left))
    sight = Sight(problem.tracks, keypoints_of(problem), (), SQUARE)
    own = _view(problem, reconstruction, problem.camera_ids)
    agreeing = sight.consensus(IntrinsicsAdjustment(sight.tracks, sight.keypoints, own))
    xyz = reconstruction.xyz.copy()
    xyz[left] = stage.view.xyz
    settled = sight.settled(replace(stage.view, xyz=xyz), agreeing, NEAR)
    found = recalibrated(problem, reconstruction, settled, "found", shared)
    return None if found is None else replace(found, focal_lengths=focal_lengths)


def _enough(problem: Problem, observations: float) -> tuple[Problem, Index]:
    """The problem with a subset of landmarks that has about so many observations, and their indices."""
    keep = thinned(problem, 0, observations)
    part = None if keep is None else restricted(problem, keep)
    return (problem, np.arange(problem.tracks.landmarks)) if part is None else part


def _decided(problem: Problem, reconstruction: Reconstruction) -> tuple[IntrinsicsAdjustment, Index, FocalLengths | None]:
    """The simplest cameras, the camera id of every image, and the focal lengths of all tried models."""
    ids, groups = problem.camera_ids, alike_images(problem)
    sight = Sight(problem.tracks, keypoints_of(problem), (), SQUARE)
    own = _view(problem, reconstruction, ids)
    agreeing = sight.consensus(IntrinsicsAdjustment(sight.tracks, sight.keypoints, own))
    trials = _Trials(sight, agreeing, _held_out(sight.tracks, agreeing))
    features: Features = frozenset({"k1", "k2"})
    first = np.unique(groups, return_index=True)[1]
    shared = ids[first][groups]
    stage: IntrinsicsAdjustment | None = None
    if len(first) < len(np.unique(ids)):
        together = _together(problem, reconstruction, groups)
        if together is not None:
            stage = trials.fit(_view(problem, together, shared), features)
            stage, features = _richer(trials, stage, features)
    apart = trials.fit(own, features)
    if stage is None or _better(stage, apart, trials.held):
        shared = ids
        stage, features = _richer(trials, apart, features)
    return _simpler(trials, stage, features), shared, trials.focal_lengths(len(np.unique(shared)))


@dataclass
class _Trials:
    """Cameras that are fitted to most of the observations and compared on the others."""

    sight: Sight
    agreeing: Chosen
    held: Chosen
    tried: list[IntrinsicsAdjustment] = field(default_factory=list)

    @property
    def used(self) -> Chosen:
        return self.agreeing & ~self.held

    def fit(self, view: View, features: Features) -> IntrinsicsAdjustment:
        """Fit all cameras, as the smallest model that has the features."""
        lenses = view.lenses
        cameras = tuple(_as_model(camera, features) for camera in lenses.cameras)
        free = tuple(_free_parameters(camera, features) for camera in cameras)
        stage = self.sight.fit(replace(view, lenses=Lenses(cameras, lenses.lens, free)), self.used, QUICK)
        self.tried.append(stage)
        return stage

    def focal_lengths(self, cameras: int) -> FocalLengths | None:
        """Focal lengths of the median camera in the models that were tried for as many cameras."""
        tried = [(stage.view.lenses.cameras, stage.data_cost) for stage in self.tried]
        fits = [
            (lenses[0].model_name, float(np.median([camera.mean_focal_length() for camera in lenses])), cost)
            for lenses, cost in tried
            if len(lenses) == cameras
        ]
        least = min((cost for _, _, cost in fits), default=0.0)
        return FocalLengths.of(fits, max(least / max(int(np.count_nonzero(self.used)), 1), _LEAST_SCALE**2))


def _together(problem: Problem, reconstruction: Reconstruction, groups: Index) -> Reconstruction | None:
    """The reconstruction with one camera for the images of a group; None if its cost is far too high.

    The fit stops early in that case: a cost that is far too high after a few steps stays too high.
    """
    free = FreeIntrinsics.unless(False)
    rough = AdjustConfig(free=free, scales=(10.0,), max_iterations=ROUGH_STEPS, tolerance=1e-4)
    fine = AdjustConfig(free=free, scales=(INLIER_PIXELS,), tolerance=1e-5, near=True)
    part, left = _enough(problem, LEAST)
    some = reconstruction.subset(slice(None), left)
    tried, _ = adjust(part, some, rough, groups=groups)
    if robust_cost(part, tried) >= STILL_HOPELESS * HOPELESS * robust_cost(part, some):
        return None
    begun = replace(reconstruction, R=tried.R, t=tried.t, focal=tried.focal, radial=tried.radial)
    found, _ = adjust(problem, begun, fine, groups=groups)
    return None if robust_cost(problem, found) >= HOPELESS * robust_cost(problem, reconstruction) else found


def _view(problem: Problem, reconstruction: Reconstruction, camera_ids: Index) -> View:
    """The reconstruction with its estimated RADIAL cameras, one a camera id."""
    r = reconstruction
    lenses = Lenses.of(
        {int(k): found_camera(problem, r.focal, r.radial, int(k)) for k in np.unique(camera_ids)}, camera_ids
    )  # fmt: skip
    return View(r.R, r.t, r.xyz, lenses)


def _richer(trials: _Trials, stage: IntrinsicsAdjustment, features: Features) -> tuple[IntrinsicsAdjustment, Features]:
    """With all steps that lower the held-out error."""
    for step in STEPS:
        more = features | {step}
        if step in features or np.count_nonzero(trials.held) < MIN_HELD_OUT:
            continue
        trial = trials.fit(stage.view, more)
        if _better(stage, trial, trials.held):
            stage, features = trial, more
    return stage, features


def _simpler(trials: _Trials, stage: IntrinsicsAdjustment, features: Features) -> IntrinsicsAdjustment:
    """Without k2, and without k1, if the cost does not rise; an equal held-out error is not enough.

    Missing distortion biases the focal length (a k1 of -0.05 by 7% for cameras that move straight ahead).
    """
    for step in ("k2", "k1"):
        less = features - {step}
        if less & {"tangential", "k2", "k3"} or np.count_nonzero(trials.held) < MIN_HELD_OUT:
            break
        trial = trials.fit(stage.view, less)
        variance = 2.0 * stage.data_cost / max(2 * int(np.count_nonzero(trials.used)) - stage.unknowns, 1)
        dropped = trial.unknowns - stage.unknowns
        if 2.0 * (trial.data_cost - stage.data_cost) > -KEPT * dropped * max(variance, _LEAST_SCALE**2):
            break
        stage, features = trial, less
    return stage


def _as_model(camera: pycolmap.Camera, features: Features) -> pycolmap.Camera:
    """The camera as the smallest model that has the features."""
    model = next(name for has, name in _MODELS if features - {"principal point"} <= has)
    known = {_long(name): value for name, value in zip(_names(camera), camera.params, strict=True)}
    known |= {"fx": known.get("f", known.get("fx")), "fy": known.get("f", known.get("fy"))}
    known["f"] = camera.mean_focal_length()
    blank = pycolmap.Camera.create_from_model_name(camera.camera_id, model, 1.0, camera.width, camera.height)
    params = [known.get(_long(name), 0.0) for name in _names(blank)]
    return pycolmap.Camera(
        camera_id=camera.camera_id, model=model, width=camera.width, height=camera.height, params=params
    )  # fmt: skip


def _free_parameters(camera: pycolmap.Camera, features: Features) -> tuple[int, ...]:
    free = {*camera.focal_length_idxs(), *(camera.principal_point_idxs() if "principal point" in features else ())}
    return tuple(k for k, name in enumerate(_names(camera)) if k in free or _OF.get(name) in features)


def _names(camera: pycolmap.Camera) -> list[str]:
    return camera.params_info.split(", ")


def _long(name: str) -> str:
    return "k1" if name == "k" else name


def _held_out(tracks: Tracks, agreeing: Chosen) -> Chosen:
    """One observation each of tracks that keep at least three without it."""
    rng = np.random.default_rng(0)
    seen = np.bincount(tracks.landmark, weights=agreeing, minlength=tracks.landmarks)
    rank = np.where(agreeing & (seen >= 4)[tracks.landmark], rng.random(tracks.observations), -1.0)
    order = np.lexsort((rank, tracks.landmark))
    last = order[tracks.ptr[1:] - 1]
    last = last[rank[last] >= 0.0]
    most = int(HELD_OUT * np.count_nonzero(agreeing))
    if len(last) > most:
        last = rng.choice(last, most, replace=False)
    result = np.zeros(tracks.observations, dtype=bool)
    result[last] = True
    return result


def _better(before: IntrinsicsAdjustment, after: IntrinsicsAdjustment, held: Chosen) -> bool:
    """Whether the common held-out observations fit significantly better (a paired test).

    The Cauchy loss of three deviations of their noise keeps a few wrong ones from deciding.
    """
    first, second = before.squared_residuals[held], after.squared_residuals[held]
    if len(first) < MIN_HELD_OUT:
        return False
    c2 = min(scale_from_median(second, 3.0, _LEAST_SCALE), INLIER_PIXELS) ** 2
    error = c2 * np.log1p(first / c2)
    gain = error - c2 * np.log1p(second / c2)
    mean = float(gain.mean())
    return mean > DEVIATIONS * float(gain.std()) / np.sqrt(len(gain)) and mean > LEAST_SHARE * float(error.mean())
