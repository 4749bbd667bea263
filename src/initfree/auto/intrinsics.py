"""Refinement of given intrinsics.

Intrinsics are freed if that explains the images significantly better. The result is a calibrated problem with the refined
cameras, and its reconstruction. Camera models stay as given, except for pinholes whose images have radial distortion:
without it, another focal length would explain much of the distortion and bend the reconstruction.
"""

from dataclasses import dataclass, replace

import numpy as np
import pycolmap
from numpy.typing import NDArray
from scipy.special import chdtri

from initfree.certificate.focal import FocalLengths
from initfree.data.observations import FocalPrior
from initfree.data.problem import Problem
from initfree.data.recalibration import keypoints_of, with_cameras
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array, Index, Tracks
from initfree.engine.levenberg_marquardt import LMConfig
from initfree.engine.losses import Cauchy
from initfree.stages.euclidean.intrinsics import SHORT, WEAK, IntrinsicsAdjustment, View, refine
from initfree.stages.euclidean.lenses import Deviations, Lenses, Prior, with_parameters
from initfree.stages.euclidean.residuals import INLIER_PIXELS
from initfree.stages.euclidean.triangulation import triangulate

CHANCE = 1e-6
"""probability of freeing right intrinsics, if errors were independent"""
LEAST_SYSTEMATIC = 0.05
"""pixels: least errors that free intrinsics must remove"""
LEAST_SHARE = 0.015
"""of the cost: the accuracy of models of real lenses and keypoints"""
PRINCIPAL_POINT_SHARE = 0.1
"""the same for a principal point, for which rotations compensate"""
DISTORTION_SHARE = 0.1
"""the same for a radial distortion that the given model does not have"""
SPLIT_SHARE = 0.2
"""the same for one camera an image where the given ones are equal"""
FOCAL_SHARE = 0.03
"""of the cost that principal points and distortion leave: least share that another focal length removes. At most 0.022
with the given intrinsics of corridor, house, dinosaur and uwo, 0.039 to 0.44 with focal lengths 3% too long on South
Building, uwo, fountain and herz-jesu"""
ATTRIBUTED = 1.1
"""times the gain of other principal points and distortion: least gain of another focal length"""
ALIKE = Deviations(focal=0.01, principal_point=0.03, distortion=0.03, aspect=1e-4)
"""relative differences between cameras of one make"""
QUICK = LMConfig(max_iterations=15, tolerance=1e-4, check_plateau=False)
"""for fits that only decide"""
_RADIAL = 2
"""distortion coefficients of OPENCV that are radial, the first ones"""
_MIDDLE = 0.25
"""of the longer side: largest distance of a principal point from the image centre"""
_SAME = 0.995
"""share of remaining consensus observations from which another adjustment changes nothing"""
_WIDE = (50.0, 10.0, INLIER_PIXELS)
"""scales of the loss for cameras far from the optimum"""
_SEVERAL = 3
"""images of a lens of photographs whose principal point may move"""
_GIVEN = "the given intrinsics were"

Chosen = NDArray[np.bool_]


@dataclass(frozen=True)
class Recalibrated:
    """A reconstruction with refined cameras."""

    problem: Problem
    """calibrated, with the refined cameras"""
    reconstruction: Reconstruction
    landmarks: Index
    """which of the landmarks before are left"""
    error: float
    """pixels: mean of the observations that agree"""
    note: str
    """what was done, a sentence for the user"""
    focal_lengths: FocalLengths | None = None
    """what other camera models say of them, where several were tried"""


@dataclass(frozen=True)
class Sight:
    """What the images show: the observations of a problem in pixels, and the cameras given for them."""

    tracks: Tracks
    keypoints: Array
    given: tuple[pycolmap.Camera, ...]
    """by image: what intrinsics are held about; empty where that is the beginning of each fit"""
    deviations: Deviations = WEAK
    """how weakly"""
    focal: tuple[FocalPrior, ...] | None = None
    """by image: what the input says of focal lengths, where it says something"""

    @classmethod
    def of(cls, problem: Problem) -> "Sight":
        cameras = problem.observations.cameras
        given = tuple(cameras[int(k)] for k in problem.camera_ids)
        return cls(problem.tracks, keypoints_of(problem), given, focal=problem.focal_priors)

    def with_principal_points(self, lenses: Lenses) -> Lenses:
        """Lenses with principal points that move; of photographs only those with several images, since one photograph turns
        as well as its principal point moves, and wrong matches move it far."""
        return lenses.with_principal_points(1 if self.focal is None else _SEVERAL)

    def fit(
        self,
        view: View,
        used: Chosen,
        limits: LMConfig = SHORT,
        *,
        scales: tuple[float, ...] = (INLIER_PIXELS,),
        prior: Prior | None = None,
    ) -> IntrinsicsAdjustment:
        """Adjust on the observations `used`, by default with weak priors about the given cameras."""
        weight = used.astype(np.float64)
        if prior is None:
            about = view.lenses
            if self.given:
                _, first = np.unique(about.lens, return_index=True)
                about = replace(about, cameras=tuple(self.given[k] for k in first))
            prior = view.lenses.prior(self.deviations, about.values, self.focal)
        return refine(self.tracks, self.keypoints, view, scales=scales, prior=prior, weight=weight, limits=limits)[0]

    def centred(self) -> "Sight":
        """Priors that hold principal points near the image centres: the better guess if the given ones are wrong."""
        cameras = []
        for camera in self.given:
            params = np.array(camera.params, dtype=np.float64)
            params[camera.principal_point_idxs()] = camera.width / 2.0, camera.height / 2.0
            cameras.append(with_parameters(camera, params))
        return replace(self, given=tuple(cameras))

    def consensus(self, stage: IntrinsicsAdjustment) -> Chosen:
        """Observations within 4 px of landmarks that at least three such observations agree on."""
        fits = stage.squared_residuals <= INLIER_PIXELS**2
        return fits & (np.bincount(self.tracks.landmark, weights=fits) >= 3)[self.tracks.landmark]

    def could_pay(self, before: View, after: IntrinsicsAdjustment, used: Chosen, share: float) -> bool:
        """Whether `pays` could hold after an adjustment of `before`: its cost then lies between that of `after` and its
        own."""
        stage = IntrinsicsAdjustment(self.tracks, self.keypoints, before, weight=used.astype(np.float64))
        cost = Cauchy(INLIER_PIXELS).total(stage.squared_residuals[used])
        return cost - after.data_cost > share * after.data_cost

    def settled(self, view: View, used: Chosen, damping: float = SHORT.damping) -> IntrinsicsAdjustment:
        """Adjust to convergence, with three or more cameras of one model and size held near their median
        (`Lenses.alike`)."""
        quick, short = (replace(limits, damping=damping) for limits in (QUICK, SHORT))
        if len(view.lenses.cameras) < 3 or self.focal is not None:
            return self.fit(view, used, short)
        first = self.fit(view, used, quick, prior=view.lenses.alike(ALIKE))
        # The first estimate counts noise in each camera's parameters as a difference between cameras.
        return self.fit(first.view, used, short, prior=first.view.lenses.alike(ALIKE))


def free_where_it_pays(
    problem: Problem, reconstruction: Reconstruction, *, principal_point: bool = False
) -> Recalibrated | None:
    """Refine the given intrinsics of an accepted reconstruction; None if the given ones explain the images as well.

    Focal lengths and distortion are free; principal points are free if `principal_point` says so, or if that pays; images
    with one given camera share the refined one unless separate cameras pay. Both sides are adjusted on the observations
    that agree with the refined one, see `pays`.
    """
    if not problem.calibrated:
        return None
    sight, cameras, ids = Sight.of(problem), problem.observations.cameras, problem.camera_ids
    lenses = Lenses.of(cameras, ids, principal_point=principal_point, shared=True)
    if not lenses.numbers.any():
        return None
    nothing = replace(lenses, free=((),) * len(lenses.free))
    given = View(reconstruction.R, reconstruction.t, reconstruction.xyz, nothing)
    agreeing = sight.consensus(IntrinsicsAdjustment(sight.tracks, sight.keypoints, given))
    free = sight.fit(replace(given, lenses=lenses), agreeing, QUICK)
    again = sight.consensus(free)
    if np.mean(again == agreeing) < _SAME:
        agreeing = again
        free = sight.fit(free.view, agreeing, QUICK)
    if not sight.could_pay(given, free, agreeing, LEAST_SHARE):
        return None
    fixed = sight.fit(given, agreeing, QUICK)
    if not pays(fixed, free, agreeing, LEAST_SHARE):
        return None
    attributed = _attributed(sight, fixed, free, agreeing)
    if attributed is None:
        return None
    free, sight = _freer(*attributed, agreeing, ids, principal_point is False)
    return recalibrated(problem, reconstruction, sight.settled(free.view, agreeing), "refined")


def _attributed(
    sight: Sight, fixed: IntrinsicsAdjustment, free: IntrinsicsAdjustment, used: Chosen
) -> tuple[Sight, IntrinsicsAdjustment] | None:
    """Attribute the misfit to the focal length or to other intrinsics; returns the fit and its priors.

    `free` if another focal length explains clearly more than any principal point and distortion with the given one, or
    much of the rest. Otherwise the fit with the given focal length, if the model's distortion, or an added radial one,
    explains as much. Else None: the model lacks the cause, and the focal length would absorb it. (A lens with k1 = -0.2
    given as a pinhole and moved straight ahead: a focal length 35% longer explains as much as the distortion.)
    """
    lenses = fixed.view.lenses
    cameras = tuple(_with_distortion(camera) for camera in lenses.cameras)
    others = tuple((*c.principal_point_idxs(), *c.extra_params_idxs()) for c in cameras)
    other = replace(sight, given=tuple(cameras[g] for g in lenses.lens))
    rest = other.fit(replace(fixed.view, lenses=Lenses(cameras, lenses.lens, others)), used, QUICK)
    explained = fixed.data_cost - rest.data_cost
    if fixed.data_cost - free.data_cost > ATTRIBUTED * explained:
        return sight, free
    everything = tuple((*c.focal_length_idxs(), *k) for c, k in zip(cameras, others, strict=True))
    with_focal = other.fit(replace(rest.view, lenses=replace(rest.view.lenses, free=everything)), used, QUICK)
    if pays(rest, with_focal, used, FOCAL_SHARE):
        return sight, free
    own_free = free.view.lenses.free
    own = tuple(tuple(sorted({*k} - {*c.focal_length_idxs()})) for c, k in zip(lenses.cameras, own_free, strict=True))
    if not any(own):
        if not any(_lacks_distortion(camera) for camera in lenses.cameras):
            return None
        sight, view = with_radial(sight, fixed.view)
        distorted = sight.fit(view, used, QUICK)
        if not pays(fixed, distorted, used, DISTORTION_SHARE):
            return None
    else:
        distorted = sight.fit(replace(fixed.view, lenses=replace(lenses, free=own)), used, QUICK)
    return (sight, distorted) if ATTRIBUTED * (fixed.data_cost - distorted.data_cost) > explained else None


def _lacks_distortion(camera: pycolmap.Camera) -> bool:
    """Whether it is a pinhole with a principal point near the image centre, to which distortion can be added."""
    off = np.abs(_principal_point(camera) - [camera.width / 2.0, camera.height / 2.0])
    return not camera.extra_params_idxs() and bool((off < _MIDDLE * max(camera.width, camera.height)).all())


def with_radial(sight: Sight, view: View) -> tuple[Sight, View]:
    """The same with free radial distortion for pinholes, in addition to the free parameters."""
    lenses = view.lenses
    cameras, indices = [], []
    for before, chosen in zip(lenses.cameras, lenses.free, strict=True):
        if not _lacks_distortion(before):
            cameras.append(before)
            indices.append(chosen)
            continue
        camera = _with_distortion(before)
        focal = camera.focal_length_idxs() if {*chosen} & {*before.focal_length_idxs()} else []
        middle = camera.principal_point_idxs() if {*chosen} & {*before.principal_point_idxs()} else []
        cameras.append(camera)
        indices.append(tuple(sorted([*focal, *middle, *camera.extra_params_idxs()[:_RADIAL]])))
    distorted = [_lacks_distortion(camera) for camera in lenses.cameras]
    given = tuple(
        _with_distortion(camera) if distorted[g] else camera for camera, g in zip(sight.given, lenses.lens, strict=True)
    )
    return replace(sight, given=given), replace(view, lenses=Lenses(tuple(cameras), lenses.lens, tuple(indices)))


def _with_distortion(camera: pycolmap.Camera) -> pycolmap.Camera:
    """The camera as OPENCV, if its own model has hardly any distortion."""
    if camera.model_name not in ("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL"):
        return camera
    params = [camera.focal_length_x, camera.focal_length_y, camera.principal_point_x, camera.principal_point_y]
    k1 = sum(camera.params[k] for k in camera.extra_params_idxs())
    return pycolmap.Camera(
        camera_id=camera.camera_id, model="OPENCV", width=camera.width, height=camera.height,
        params=[*params, k1, 0.0, 0.0, 0.0],
    )  # fmt: skip


def refine_intrinsics(
    problem: Problem, reconstruction: Reconstruction, *, principal_point: bool | None = None
) -> Recalibrated | None:
    """Refine guessed intrinsics from the reconstruction that they led to.

    Principal points are free if `principal_point` says so, by default if that pays. None if the refined cameras lose images.
    """
    if not problem.calibrated:
        return None
    sight, ids = Sight.of(problem), problem.camera_ids
    everything = np.ones(sight.tracks.observations, dtype=bool)
    lenses = Lenses.of(problem.observations.cameras, ids, principal_point=bool(principal_point), shared=True)
    start = View(reconstruction.R, reconstruction.t, reconstruction.xyz, lenses)
    best = sight.fit(start, everything, QUICK, scales=_WIDE)
    if principal_point is None:
        more = replace(start, lenses=sight.with_principal_points(lenses))
        other = sight.centred().fit(more, everything, QUICK, scales=_WIDE)
        # Only where the latter agree: wrong matches cost both the same, and more than the gain.
        near = sight.consensus(other)
        both = sight.fit(best.view, near, QUICK), sight.centred().fit(other.view, near, QUICK)
        if pays(*both, near, PRINCIPAL_POINT_SHARE):
            best, sight = other, sight.centred()
    agreeing = sight.consensus(best)
    if not agreeing.any():
        return None
    best, sight = _freer(sight, sight.fit(best.view, agreeing), agreeing, ids, False)
    return recalibrated(problem, reconstruction, sight.settled(best.view, agreeing), "refined")


def principal_points_told(problem: Problem, reconstruction: Reconstruction, ratio: float) -> bool:
    """Whether the agreeing observations fit more than `ratio` times worse with central principal points, all else free."""
    sight, ids, r = Sight.of(problem).centred(), problem.camera_ids, reconstruction
    now = View(r.R, r.t, r.xyz, Lenses.of(problem.observations.cameras, ids, shared=True))
    agreeing = sight.consensus(IntrinsicsAdjustment(sight.tracks, sight.keypoints, now))
    middle = Lenses.of({int(k): camera for k, camera in zip(ids, sight.given, strict=True)}, ids, shared=True)
    best = sight.fit(now, agreeing, QUICK)
    return sight.fit(replace(now, lenses=middle), agreeing, QUICK).data_cost > ratio * best.data_cost


def pays(before: IntrinsicsAdjustment, after: IntrinsicsAdjustment, used: Chosen, share: float) -> bool:
    """Whether more free parameters lower the cost significantly and by a useful amount.

    2 (E - E')/σ² is χ² with as many degrees of freedom as added parameters, if these were right before and errors
    independent. Errors of real images are not independent, so the change must also have some size.
    """
    decrease = before.data_cost - after.data_cost
    freedom = after.unknowns - before.unknowns
    count = int(np.count_nonzero(used))
    equations = 2 * count - after.unknowns
    if freedom <= 0 or equations <= 0 or decrease <= share * before.data_cost:
        return False
    variance = max(2.0 * after.data_cost / equations, 1e-12)
    return bool(2.0 * decrease / variance > chdtri(freedom, CHANCE) and np.sqrt(2.0 * decrease / count) > LEAST_SYSTEMATIC)


def _freer(
    sight: Sight, stage: IntrinsicsAdjustment, used: Chosen, camera_ids: Index, principal_point: bool
) -> tuple[IntrinsicsAdjustment, Sight]:
    """With radial distortion, one camera an id, and free principal points, if each pays; and their priors."""
    if any(_lacks_distortion(camera) for camera in stage.view.lenses.cameras):
        distortable, view = with_radial(sight, stage.view)
        distorted = distortable.fit(view, used, QUICK)
        if pays(stage, distorted, used, DISTORTION_SHARE):
            sight, stage = distortable, distorted
    lenses = stage.view.lenses
    if len(np.unique(camera_ids)) > len(lenses.cameras):
        own = sight.fit(replace(stage.view, lenses=lenses.split(camera_ids)), used, QUICK)
        stage = own if pays(stage, own, used, SPLIT_SHARE) else stage
    if principal_point:
        free = replace(stage.view, lenses=sight.with_principal_points(stage.view.lenses))
        more = sight.centred().fit(free, used, QUICK)
        if pays(stage, more, used, PRINCIPAL_POINT_SHARE):
            return more, sight.centred()
    return stage, sight


def recalibrated(
    problem: Problem, reconstruction: Reconstruction, stage: IntrinsicsAdjustment, word: str, camera_ids: Index | None = None
) -> Recalibrated | None:
    """The problem with the stage's cameras, and its reconstruction; unconstrained landmarks are triangulated."""
    view, ids = stage.view, problem.camera_ids if camera_ids is None else camera_ids
    found = with_cameras(problem, view.lenses.by_id(ids), camera_ids)
    if found is None or not stage.used.any():
        return None
    part, left = found
    t = part.tracks
    flat, straight = np.ones(t.cameras), np.zeros((t.cameras, 2))
    held = np.bincount(problem.tracks.landmark, weights=stage.used, minlength=problem.tracks.landmarks)[left] >= 2
    xyz = view.xyz[left].copy()
    reconstruction = replace(reconstruction, R=view.R, t=view.t, focal=flat, radial=straight, xyz=xyz)
    if not held.all():
        anew, _ = triangulate(part, reconstruction, xyz, scale=INLIER_PIXELS)
        xyz[~held] = anew[~held]
    error = float(np.mean(np.sqrt(stage.squared_residuals[stage.used > 0.0])))
    description = note(part, word, problem if word == "refined" else None)
    return Recalibrated(part, reconstruction, left, error, description)


def note(problem: Problem, word: str, given: Problem | None = None) -> str:
    """A sentence on the cameras of the problem, and their differences from the given ones."""
    cameras = [problem.observations.cameras[int(k)] for k in problem.camera_ids]
    focal = np.array([camera.mean_focal_length() for camera in cameras])
    distinct = len({tuple(camera.params) for camera in cameras})
    length = f"{focal[0]:.1f} px" if distinct == 1 else f"{focal.min():.1f} to {focal.max():.1f} px"
    who = "one camera" if distinct == 1 else f"{distinct} cameras"
    models = ", ".join(sorted({camera.model_name for camera in cameras}))
    now = f"{who} ({models}), focal length {length}"
    if given is None:
        return f"intrinsics {word}: {now}"
    by_name = dict(zip(given.names, given.camera_ids.tolist(), strict=True))
    before = [given.observations.cameras[by_name[name]] for name in problem.names]
    change = focal / np.array([camera.mean_focal_length() for camera in before]) - 1.0
    moved = np.array([_principal_point(a) - _principal_point(b) for a, b in zip(cameras, before, strict=True)])
    spread = "" if np.ptp(change) < 5e-4 else f" ({change.min():+.1%} to {change.max():+.1%})"
    points = f", principal points by up to {np.linalg.norm(moved, axis=1).max():.0f} px" if moved.any() else ""
    return f"{_GIVEN} {word}; focal lengths changed by {np.median(change):+.1%}{spread}{points}: {now}"


def other_notes(notes: tuple[str, ...]) -> tuple[str, ...]:
    """Notes other than those on refined intrinsics, which the last refinement replaces."""
    return tuple(one for one in notes if not one.startswith(_GIVEN))


def _principal_point(camera: pycolmap.Camera) -> Array:
    return np.array([camera.principal_point_x, camera.principal_point_y])
