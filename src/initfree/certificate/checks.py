"""The checks of the evidence, one a function; `CHECKS` is the list.

A check returns a `Finding`. Its margin is negative if the check fails; then `reason` explains the failure and `failing`
names the images that do not agree with the others. A doubt is a failure that witnesses settle, and only those that could
have said otherwise: a second start knows another optimum, but has the same lens, and often the same matches.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.certificate import thresholds as T
from initfree.certificate.evidence import Evidence, max_noise, significantly
from initfree.certificate.freer import Freed
from initfree.certificate.history import Witness
from initfree.data.tracks import Array

_NAMED = 8
"""images that a reason names"""
NOT_DOUBLED, NOT_TWICE, LEFT_OUT = "not doubled", "nothing twice", "left out"
PURITY, CAMERA_PURITY, EVEN_CAMERAS = "purity", "purity of every camera", "even cameras"
FOCAL_LENGTH, ONE_FOCAL_LENGTH = "focal length", "one focal length"
DETERMINED, CERTAIN_CAMERAS, CERTAIN_FOCAL_LENGTH = "determined", "certain cameras", "certain focal length"
LENS, METRIC, SHARED = "lens", "metric cameras", "shared cameras"
ONE_JOINT, NONE_BELONGS = "one joint", "none belongs"
_MANY_TWINS = 0.3
"""share of landmarks with a twin that is worth a word"""
_CERTAIN = 1.0
"""margin of a check without a scale"""


@dataclass(frozen=True)
class Finding:
    """The outcome of one check."""

    check: str
    margin: float
    """distance of the figure from its threshold; negative if the check fails"""
    reason: str
    """why the check fails, or would fail"""
    failing: tuple[str, ...] = ()
    """images that do not agree with the others"""
    settled_by: tuple[Witness, ...] = ()
    """all whom it takes to settle it; empty where nothing does"""

    @property
    def doubt(self) -> bool:
        """Whether anything settles it."""
        return bool(self.settled_by)

    @property
    def passed(self) -> bool:
        return self.margin >= 0.0


Check = Callable[[Evidence], Finding | None]
"""None where it does not apply"""


def enough_images(e: Evidence) -> Finding:
    n = len(e.names)
    margin = _CERTAIN if n >= T.MIN_IMAGES else -_CERTAIN
    return Finding("enough images", margin, f"{n} images do not check each other, expected at least {T.MIN_IMAGES}")


def baselines(e: Evidence) -> Finding:
    """Whether the observations need cameras that move, to three places at least."""
    # Corrected for the degrees of freedom of the unknowns.
    noise = e.noise * (e.equations / max(e.equations - e.unknowns, 1)) ** 0.5
    limit = max(T.BASELINE_NOISE * noise, T.LEAST_BASELINE)
    reasons = e.baselines.reasons(limit) if len(e.names) >= T.MIN_IMAGES else []
    return Finding("baselines", -_CERTAIN if reasons else _CERTAIN, "; ".join(reasons))


def redundancy(e: Evidence) -> Finding:
    margin = (e.equations - e.unknowns) / e.equations - T.MIN_REDUNDANCY
    reason = f"{e.equations} equations for {e.unknowns} unknowns leave nothing to check the fit with"
    return Finding("redundancy", margin if len(e.names) >= T.MIN_IMAGES else _CERTAIN, reason)


def spread(e: Evidence) -> Finding:
    k = int(np.argmin(e.by_camera.spread))
    reason = f"the observations of image {e.names[k]!r} lie on a line or a spot"
    least = min(T.MIN_SPREAD, T.MIN_SPREAD_SHARE * e.size)
    below = e.by_camera.spread < least
    return Finding("spread", e.by_camera.spread[k] / max(least, 1e-9) - 1.0, reason, _few(e, below))


def noise(e: Evidence) -> Finding:
    most = max_noise(e.size)
    reason = f"even the better cameras miss their observations by {e.noise:.2g} px, expected at most {most:.3g} px"
    return Finding("noise", (most - e.noise) / most, reason)


def share(e: Evidence) -> Finding:
    reason = f"only {e.inlier_share:.0%} of the observations lie within {e.inlier_pixels:.2g} px in front of their camera"
    return Finding("share", e.inlier_share - T.MIN_SHARE, reason)


def purity(e: Evidence) -> Finding:
    """Errors of every size: of a bent reconstruction, or, as far as some, of heavy-tailed noise."""
    witnesses: tuple[Witness, ...] = ("start", "noise") if e.purity >= T.MIN_PURITY_OF_NOISE else ()
    reason = f"only {e.purity:.0%} of the observations that come near fit within {e.radius:.2g} px"
    return Finding(PURITY, e.purity - T.MIN_PURITY, reason, settled_by=witnesses)


def _of_cameras(e: Evidence, check: str, value: Array, least: float | Array, unit: float, sentence: str) -> Finding:
    """A limit for every camera: the reason names the worst camera, and all below the limit are failing."""
    above = (value - least) / unit
    k, below = int(np.argmin(above)), above < 0.0
    others = f" ({np.count_nonzero(below)} such images)" if np.count_nonzero(below) > 1 else ""
    return Finding(check, float(above[k]), f"image {e.names[k]!r} {sentence.format(value[k])}{others}", _named(e, below))


def camera_share(e: Evidence) -> Finding:
    sentence = "fits only {:.0%} of its observations"
    return _of_cameras(e, "share of every camera", e.by_camera.share, T.MIN_CAMERA_SHARE, 1.0, sentence)


def camera_purity(e: Evidence) -> Finding:
    least = significantly(T.MIN_CAMERA_PURITY, e.by_camera.near)
    sentence = f"fits only {{:.0%}} of the observations that come near it within {e.radius:.2g} px"
    return _of_cameras(e, CAMERA_PURITY, e.by_camera.purity, least, 1.0, sentence)


def camera_consensus(e: Evidence) -> Finding:
    sentence = "is held by {:.0f} observations of landmarks that others agree on"
    count = e.by_camera.consensus
    return _of_cameras(e, "consensus of every camera", count, T.MIN_CONSENSUS, T.MIN_CONSENSUS, sentence)


def camera_consensus_share(e: Evidence) -> Finding:
    sentence = "has only {:.0%} of its observations on landmarks that others agree on"
    shares = e.by_camera.consensus_share
    return _of_cameras(e, "consensus share of every camera", shares, T.MIN_CONSENSUS_SHARE, 1.0, sentence)


def joint(e: Evidence) -> Finding:
    """Two right parts may be joined wrongly, or by too few landmarks."""
    j = e.joint
    joining = "1 landmark joins" if j.joining == 1 else f"{j.joining} landmarks join"
    reason = f"{joining} {_part(e, j.smaller)} with the others, and {j.fitting} of them fit both"
    margin = j.share - float(significantly(T.MIN_JOINT_SHARE, np.array(max(j.joining, 1.0))))
    if j.fitting < j.least:
        margin = min(margin, j.fitting / j.least - 1.0)
        reason += f", expected at least {j.least}"
    return Finding("weakest joint", margin, reason, _named(e, j.smaller) if margin < 0.0 else ())


def even_joints(e: Evidence) -> Finding:
    """A cut that holds much less than the rest: two parts of different scales, or turned about the few that fit."""
    return _relative_joint(e, "even joints", T.MIN_RELATIVE_JOINT_SHARE, settled_by=("joint",))


def safe_joints(e: Evidence) -> Finding:
    """A cut that holds less than the rest: a doubt."""
    return _relative_joint(e, "safe joints", T.SAFE_RELATIVE_JOINT_SHARE, settled_by=("joint",))


def _relative_joint(e: Evidence, check: str, least: float, *, settled_by: tuple[Witness, ...]) -> Finding:
    j = e.joint
    reason = (
        f"{j.fitting} of the {j.joining} landmarks that join {_part(e, j.smaller)} with the others fit both, where "
        f"{j.overall:.0%} of all observations fit"
    )
    margin = j.share - float(significantly(least * j.overall**2, np.array(max(j.joining, 1))))
    return Finding(check, margin, reason, settled_by=settled_by)


def one_joint(e: Evidence) -> Finding | None:
    """What does not fit across the weakest joint must not agree on another one: see `certificate.contradiction`."""
    c = e.contradiction
    if c is None:
        return None
    reason = (
        f"{_part(e, e.joint.smaller)} are joined with the others by matches that contradict each other: {c.fitting} "
        f"landmarks say so, and {c.agreeing} of {c.misfits} others agree on another joint, turned by {c.turn:.0f}° "
        f"and {c.scale:.2g} times as large: two places may look alike"
    )
    if e.joint_by_order < 0:
        reason += ", and the order of the photographs speaks for that joint"
    contradicted = e.joint_by_order < 0 or (c.found and e.joint_by_order == 0 and not e.other_joint_doubles)
    return Finding(ONE_JOINT, -_CERTAIN if contradicted else _CERTAIN, reason, _few(e, e.joint.smaller))


def hinge(e: Evidence) -> Finding:
    """Two parts must not be joined along a line or at a spot alone, see `certificate.hinge`."""
    h = e.hinge
    reason = (
        f"not determined: {_part(e, h.smaller)} and the others are joined by {h.joining} landmarks {h.shape}, about which "
        "they may turn"
    )
    return Finding("hinge", min(h.hold - 1.0, _CERTAIN), reason, _few(e, h.smaller))


def determined(e: Evidence) -> Finding:
    """Reconstructions drawn from the covariance must be close to this one."""
    d = e.determination
    auc = min(d.rotation_auc20, d.translation_auc20)
    margin = min((auc - T.MIN_EXPECTED_AUC20) / 100.0, T.MAX_DRIFT - d.drift)
    if not d.system.solvable:
        return Finding(DETERMINED, -_CERTAIN, "not determined: too little fits to tell how certain anything is")
    if margin >= 0.0:
        return Finding(DETERMINED, margin, "")
    return Finding(DETERMINED, margin, f"not determined: {d.weakest.sentence(e.names)}", _few(e, d.weakest.smaller))


def certain_cameras(e: Evidence) -> Finding | None:
    """Cameras with few or badly distributed observations must be certain; only if the whole is determined."""
    if not determined(e).passed:
        return None
    u = e.determination.deviations
    above = np.minimum(1.0 - u.rotation / T.MAX_CAMERA_TURN, 1.0 - u.centre / T.MAX_CAMERA_SHIFT)
    k = int(np.argmin(above))
    reason = (
        f"image {e.names[k]!r} is poorly determined: the standard deviation of its rotation is {u.rotation[k]:.2g} degrees, "
        f"that of its position {u.centre[k]:.2g} of the scene's extent"
    )
    return Finding(CERTAIN_CAMERAS, float(above[k]), reason, _named(e, above < 0.0))


def not_doubled(e: Evidence) -> Finding:
    """Equal parts of the scene may have been taken for one."""
    d = e.duplication
    reason = (
        f"{_part(e, d.smaller)} and the others look at the same places from the same sides, but share only "
        f"{d.sharing:.0%} of what they should: parts that look alike may have been taken for one"
    )
    if d.twins > _MANY_TWINS:
        reason += f" ({d.twins:.0%} of the landmarks that only one of the groups sees are there twice)"
    return Finding(NOT_DOUBLED, d.sharing - T.MIN_SHARING, reason)


def not_twice(e: Evidence) -> Finding:
    """Many landmarks in the place of others: parts of a scene lie on top of each other."""
    reason = (
        f"{e.twin_share:.0%} of the landmarks are there twice, seen by images that share neither: parts that look alike may "
        "have been taken for one"
    )
    return Finding(NOT_TWICE, T.MAX_TWIN_SHARE - e.twin_share, reason)


def held_by_intact(e: Evidence) -> Finding | None:
    """The cameras must not depend on the rest of tracks that contradicted themselves."""
    ratio = e.drift_of_intact
    if ratio is None:
        return None
    reason = (
        "not determined: parts of the scene are held to each other by tracks of which only a part fits; without these, "
        f"places are {ratio:.0f} times as uncertain"
    )
    return Finding("held by intact tracks", min(1.0 - ratio / T.MAX_DRIFT_OF_INTACT, _CERTAIN), reason)


def lens(e: Evidence) -> Finding | None:
    """Another radial distortion that fits significantly better must not rotate the cameras."""
    if e.history.searching:
        return None
    f = e.with_radial
    reason = (
        "the lens does not fit: with another radial distortion the cameras turn (AUC@20 "
        f"{f.rotation_auc20:.0f} against these), and the images fit better by {f.deviations:.0f} squared deviations"
    )
    margin = max((f.rotation_auc20 - T.MIN_TURNED_AUC20) / 100.0, 1.0 - f.deviations / T.MIN_LENS_DEVIATIONS)
    return Finding(LENS, min(margin, _CERTAIN), reason)


def metric_cameras(e: Evidence) -> Finding | None:
    """Projective cameras must not fit much better than another lens does, or a rolling shutter that leaves the cameras where
    they stand."""
    if e.history.searching:
        return None
    ratio = e.projective_ratio
    if ratio > T.MAX_PROJECTIVE_RATIO:
        ratio *= 1.0 - max(e.with_lens.saved, 0.0)
    if ratio > T.MAX_PROJECTIVE_RATIO and e.with_shutter.closeness >= T.MIN_TURNED_AUC20:
        remaining = ratio * (1.0 - max(e.with_shutter.saved, 0.0))
        ratio = remaining if remaining <= T.CLEAR_PROJECTIVE_RATIO else ratio
    reason = (
        f"the images fit {ratio:.1f} times worse with these cameras than with such as no lens makes: a camera zoomed, or "
        "something moves, or parts of the scene do not belong together"
    )
    return Finding(METRIC, T.MAX_PROJECTIVE_RATIO - ratio, reason)


def shared_cameras(e: Evidence) -> Finding | None:
    """One focal length an image, if it fits significantly better, must not move the cameras."""
    if e.history.searching:
        return None
    if e.projective_ratio <= T.CLEAR_PROJECTIVE_RATIO:
        return Finding(SHARED, T.MAX_PROJECTIVE_RATIO - e.projective_ratio, "")
    f = e.with_own_focal_lengths
    reason = (
        f"the images do not share their focal length: with one each they cost {f.saved:.0%} less, and the cameras stand "
        f"elsewhere (AUC@20 {f.rotation_auc20:.0f} / {f.translation_auc20:.0f} against these)"
    )
    margin = max(T.MIN_OWN_CAMERAS_SAVED - f.saved, (f.closeness - T.MIN_OWN_CAMERAS_AUC20) / 100.0)
    return Finding(SHARED, margin, reason)


def one_scene(e: Evidence) -> Finding | None:
    """Near and far landmarks must give the same cameras, see `certificate.depth_halves`."""
    if e.history.searching or e.near_far is None:
        return None
    rotation, most = e.near_far.rotation_auc20, T.CLEAR_NEAR_FAR
    margin = 1.0 - (100.0 - rotation) / most
    if margin < 0.0 and e.random_halves is not None:
        chance = e.random_halves
        most = max(most, T.MAX_NEAR_FAR * (100.0 - chance.rotation_auc20), e.near_far_expected)
        gain = e.near_far.gain / max(chance.gain, np.finfo(float).tiny)
        margin = 1.0 - min((100.0 - rotation) / most, gain / T.MAX_NEAR_FAR_GAIN)
    reason = (
        f"near and far landmarks contradict each other (AUC@20 {rotation:.0f} between the cameras of either): something "
        "moves on its own, and nothing tells which is the scene"
    )
    return Finding("one scene", margin, reason)


def parallax(e: Evidence) -> Finding:
    reason = f"the median landmark has a parallax of {e.parallax:.2g} degrees, expected at least {T.MIN_PARALLAX}"
    return Finding("parallax", e.parallax / T.MIN_PARALLAX - 1.0, reason)


def safe_parallax(e: Evidence) -> Finding:
    """Little parallax: a doubt. Most wrong reconstructions of critical configurations have little."""
    reason = f"the median landmark has a parallax of {e.parallax:.2g} degrees only"
    return Finding("safe parallax", e.parallax / T.SAFE_PARALLAX - 1.0, reason, settled_by=("start",))


def not_reversed(e: Evidence) -> Finding | None:
    """The depths of a distant object may be reversed: see `reversal.reversal_rise`."""
    if e.reversal_rise is None:
        return None
    better = "better" if e.reversal_rise < 0.0 else "as well"
    reason = f"ambiguous: the same turned inside out (depths reversed, as seen from afar) fits {better}"
    return Finding("not reversed", e.reversal_rise / T.SIGNIFICANT - 1.0, reason)


def no_other(e: Evidence) -> Finding | None:
    """Another reconstruction must not fit as well: see `certificate.alternative`."""
    a = e.alternative
    if a is None:
        return None
    cost = f"at {a.ratio:.0%} of its cost" if abs(a.ratio - 1.0) >= 0.01 else "at the same cost"
    reason = (
        f"ambiguous: another reconstruction, far from this one (AUC@20 {a.rotation_auc20:.0f} / {a.translation_auc20:.0f} "
        f"against it), fits the images {cost}"
    )
    return Finding("no other", min(a.margin, _CERTAIN), reason)


def focal_length(e: Evidence) -> Finding | None:
    """Other focal lengths must fit worse, unless the intrinsics are exact: see `focal.focal_rise`.

    Of focal lengths that are held, at the end of a search: wrong matches, which are left out only then, hide what they cost.
    """
    if (e.history.searching and e.problem.calibrated) or e.focal_rise is None:
        return None
    longer = f"{T.LONGER_FOCAL - 1.0:.0%}"
    reason = f"the images do not determine the focal length: one {longer} longer fits as well, with other depths"
    return Finding(FOCAL_LENGTH, e.focal_rise / T.SIGNIFICANT - 1.0, reason)


def one_focal_length(e: Evidence) -> Finding | None:
    """Camera models that fit as well must agree on the focal length: see `focal.FocalLengths`."""
    f = e.focal_lengths
    if f is None:
        return None
    reason = (
        f"the images do not determine the focal length: it is {f.shortest:.0f} px with a {f.models[0]} camera and "
        f"{f.longest:.0f} px with a {f.models[1]} one, which fit about as well"
    )
    return Finding(ONE_FOCAL_LENGTH, 1.0 - f.spread / T.MAX_FOCAL_SPREAD, reason)


def certain_focal_length(e: Evidence) -> Finding | None:
    """Estimated focal lengths must be certain."""
    if e.problem.exact or (e.history.searching and e.problem.calibrated) or not e.system.solvable:
        return None
    focal = e.uncertainty.focal
    k = int(np.argmax(focal))
    reason = (
        "the images do not determine the focal length: the standard deviation of that of image "
        f"{e.names[k]!r} is {focal[k]:.0%}"
    )
    margin = 1.0 - float(focal[k]) / T.MAX_FOCAL_DEVIATION
    return Finding(CERTAIN_FOCAL_LENGTH, margin, reason, _few(e, focal > T.MAX_FOCAL_DEVIATION))


def left_out(e: Evidence) -> Finding | None:
    """Some images may be left out, fewer if intrinsics are estimated, because wrong images may have falsified them: not
    those of images that were solved again alone."""
    gone = e.history.left_out
    if not gone:
        return None
    whole = len(e.names) + len(gone)
    most = T.MAX_LEFT_OUT if e.problem.exact or e.history.alone else T.MAX_LEFT_OUT_ESTIMATED
    reason = (
        f"only {len(e.names)} of {whole} images form one consistent reconstruction, without {listed(gone)}"
        f" ({e.history.left_out_because.split('; ')[0]})"
    )
    return Finding(LEFT_OUT, most - len(gone) / whole, reason)


def none_belongs(e: Evidence) -> Finding | None:
    """An image that was left out must not fit the others: see `certificate.left_out`."""
    if not e.history.left_out:
        return None
    belonging = e.belonging
    reason = ""
    if belonging:
        name, count, of = max(belonging, key=lambda one: one[1])
        reason = (
            f"image {name!r} was left out, though {count} of its {of} observations fit the others: matches contradict each "
            "other, and two places may look alike"
        )
    return Finding(NONE_BELONGS, -_CERTAIN if belonging else _CERTAIN, reason)


def even_cameras(e: Evidence) -> Finding:
    """A camera clearly worse than the others: a doubt."""
    above = uneven(e)
    k = int(np.argmin(above))
    reason = (
        f"image {e.names[k]!r} fits {e.by_camera.purity[k]:.0%} of the observations that come near it within "
        f"{e.radius:.2g} px, clearly worse than the others"
    )
    return Finding(EVEN_CAMERAS, float(above[k]), reason, settled_by=("start", "lens", "cameras"))


def uneven(e: Evidence) -> Array:
    """(cameras,) purity beyond what is expected of every camera: negative if clearly worse than the others."""
    expected = T.SAFE_CAMERA_PURITY if e.unevenness <= T.MAX_UNEVENNESS else T.CLEAR_CAMERA_PURITY
    return e.by_camera.purity - significantly(expected, e.by_camera.near)


def systematic(e: Evidence) -> Finding:
    """Errors of neighbours that agree: a doubt."""
    reason = (
        f"errors of neighbouring observations point the same way, by about {e.systematic:.2g} px: the reconstruction may "
        "be bent, or a distortion is not in the model; no second start confirms it"
    )
    return Finding("coherent errors", T.MAX_SYSTEMATIC - e.systematic, reason, settled_by=("start", "lens", "cameras"))


def settles(e: Evidence, witness: Witness) -> bool:
    """Whether the certificate itself settles what this witness would know. Lens and cameras wait for the end of a search."""
    if witness == "lens":
        return e.history.searching or _stays(e.with_lens)
    if witness == "cameras":
        return e.history.searching or _stays(e.with_own_focal_lengths)
    if witness == "noise":
        return e.systematic <= T.MAX_SYSTEMATIC_OF_NOISE and e.projective_ratio <= T.MAX_PROJECTIVE_OF_NOISE
    if witness == "joint":
        c = e.contradiction
        if c is None or not (c.asked or "matches" in e.history.confirmed):
            return False
        return e.joint_by_order > 0 or (e.joint_by_order == 0 and (not c.found or e.other_joint_doubles))
    return False


def _stays(freed: Freed) -> bool:
    """Whether freer cameras stand where they did, or the images do not need them."""
    return freed.closeness >= T.DIFFERENT_AUC20 or freed.deviations <= T.MIN_LENS_DEVIATIONS


CHECKS: tuple[tuple[Check, ...], ...] = (
    (
        enough_images,
        baselines,
        redundancy,
        spread,
        noise,
        share,
        purity,
        camera_share,
        camera_purity,
        camera_consensus,
        camera_consensus_share,
        joint,
        even_joints,
        parallax,
        one_focal_length,
        left_out,
        safe_joints,
        safe_parallax,
        even_cameras,
        systematic,
    ),
    (
        hinge,
        determined,
        certain_cameras,
        not_doubled,
        not_twice,
        one_joint,
        none_belongs,
        held_by_intact,
        certain_focal_length,
    ),
    (not_reversed,),
    (no_other,),
    (focal_length, lens, metric_cameras, shared_cameras, one_scene),
)
"""in groups of rising cost: if a check of one group fails, other than as a doubt, later groups are skipped"""


def _part(e: Evidence, group: NDArray[np.bool_]) -> str:
    few = _named(e, group)
    return f"image {few[0]!r}" if len(few) == 1 else f"{len(few)} images ({few[0] if few else ''}, ...)"


def _few(e: Evidence, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    """The images without which the rest may hold; none where that is more than may be left out."""
    return _named(e, chosen) if 0 < np.count_nonzero(chosen) <= T.MAX_LEFT_OUT * len(e.names) else ()


def _named(e: Evidence, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(e.names[k] for k in np.flatnonzero(chosen))


def listed(names: tuple[str, ...]) -> str:
    """The first few of many names."""
    return ", ".join(names[:_NAMED]) + (", ..." if len(names) > _NAMED else "")
