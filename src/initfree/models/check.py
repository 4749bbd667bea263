"""Is a model of any program right? Decided from its images' observations alone: no truth is needed.

The model's cameras are judged where they are, first of all on the observations that its maker started from, which also hold
what it deleted. An adjustment, and a solve from nothing, share the model's observations and their survivorship: how far the
first moves is evidence, the second is no witness at all for matches between things that only look alike.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pycolmap

from initfree.certificate import Certificate, certify, judge
from initfree.certificate.checks import NOT_DOUBLED, listed
from initfree.certificate.thresholds import MAX_LEFT_OUT, MAX_LEFT_OUT_ESTIMATED, MIN_IMAGES
from initfree.certificate.uncertainty import Uncertainty
from initfree.data.observations import Observations
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.drawing.verdict import counted
from initfree.engine.parallel import one_blas_thread
from initfree.errors import InputError
from initfree.io.convert import model_of
from initfree.io.load import load_observations
from initfree.models.judged import all_observations, own_problem, without_images
from initfree.models.witnesses import (
    DOUBT,
    Intrinsics,
    Witness,
    at_optimum,
    certified,
    contradicted,
    held,
    independent,
    intrinsics,
    placed,
    unjudged,
)

Verdict = Literal["accepted", "not accepted", "undecided"]
_ROUNDS = 3
"""times that images are taken away until the others are accepted"""
OWN, ALL = "its own observations", "all matches"
_AMBIGUOUS = {"no other", "not reversed", NOT_DOUBLED, "hinge", "determined"}
"""checks of the certificate that say that another reconstruction fits too"""


@dataclass(frozen=True)
class ImageReport:
    """What is known of one registered image."""

    name: str
    trusted: bool
    reasons: tuple[str, ...]
    """why not"""
    observations: int
    """of the model itself, on landmarks with three of them"""
    fitting: float | None
    """share of the observations that fit: of those of the database, else of the model's own"""
    rotation_degrees: float | None
    """one standard deviation"""
    centre_share_of_extent: float | None
    focal_share: float | None


@dataclass(frozen=True, eq=False)
class Check:
    """The verdict on a model, and what it rests on."""

    verdict: Verdict
    reason: str
    weight: float
    """of the strongest witness against it: below one if and only if nothing refuses it"""
    witnesses: tuple[Witness, ...]
    images: tuple[ImageReport, ...]
    intrinsics: tuple[Intrinsics, ...]
    ambiguity: str | None
    """whether, and how, another reconstruction fits as well"""
    take_again: str
    """where the images hold together least, and which of them to take again, or more of"""
    certificate: Certificate
    """of the observations of the database, else of the model's own"""
    model: pycolmap.Reconstruction
    source: str
    database: str | None
    accepted_without: tuple[str, ...] = ()
    """images without which the others are accepted: the model is not accepted with them, or nothing vouches for them"""

    @property
    def problem(self) -> Problem:
        """What was judged."""
        return self.certificate.evidence.problem

    @property
    def reconstruction(self) -> Reconstruction:
        """The model's cameras, and the landmarks of the problem."""
        return self.certificate.evidence.reconstruction

    @property
    def accepted(self) -> bool:
        return self.verdict == "accepted"

    @property
    def untrusted(self) -> tuple[ImageReport, ...]:
        """Images that the verdict does not vouch for."""
        return tuple(image for image in self.images if not image.trusted)

    @cached_property
    def deviations(self) -> Uncertainty:
        """Standard deviations of the judged cameras."""
        with one_blas_thread():
            return self.certificate.evidence.uncertainty

    def to_dict(self) -> dict[str, Any]:
        """check.json."""
        joint = self.certificate.evidence.joint
        names = self.problem.names
        return {
            "model": self.source,
            "database": self.database,
            "verdict": self.verdict,
            "accepted": self.accepted,
            "reason": self.reason,
            "accepted_without": self.accepted_without,
            "weight": self.weight,
            "witnesses": [asdict(one) for one in self.witnesses],
            "images": {image.name: asdict(image) for image in self.images},
            "intrinsics": {
                str(one.camera_id): asdict(one) | {"change": one.change, "contradicted": one.contradicted}
                for one in self.intrinsics
            },
            "ambiguity": self.ambiguity,
            "weakest_joint": {
                "images": [names[k] for k in np.flatnonzero(joint.smaller)],
                "joining_landmarks": joint.joining,
                "that_fit": joint.fitting,
            },
            "take_again": self.take_again,
            "certificate": self.certificate.to_dict(),
        }

    def write(self, directory: str | Path) -> None:
        """Write check.json and summary.html, as `initfree check --output` does."""
        from initfree.models.report import write_check

        write_check(self, Path(directory))

    def __repr__(self) -> str:
        return f"Check({self.verdict}: {self.reason})"


def check(
    model: pycolmap.Reconstruction | str | Path,
    problem: Problem | Observations | str | Path | None = None,
    *,
    known: bool = False,
) -> Check:
    """Judge a reconstruction of any program.

    Args:
        model: A pycolmap.Reconstruction, or a path that `initfree convert` reads.
        problem: The observations that the model was made from, best with all verified matches (a COLMAP database): a
            problem, or a path that `load` reads. Without it the model's own are all there is, from which its maker has
            deleted what misses, and folded models may pass.
        known: Whether the intrinsics were calibrated beforehand, and not estimated from these images.
    """
    found = model if isinstance(model, pycolmap.Reconstruction) else model_of(Path(model))
    source = "a model in memory" if isinstance(model, pycolmap.Reconstruction) else str(model)
    seen, status = _observations(problem), "known" if known else "found"
    most = MAX_LEFT_OUT if known else MAX_LEFT_OUT_ESTIMATED
    with one_blas_thread():
        return _without_few(_check(found, source, seen, status), lambda rest: _check(rest, source, seen, status), most)


def _without_few(found: Check, judge_rest: Callable[[pycolmap.Reconstruction], Check], most: float) -> Check:
    """What becomes of a model that is not accepted, without the few images that witnesses name.

    Where nothing contradicts these images, the others are accepted, and these are named. Where something does, the model is
    wrong as it is, and says which images to remove.
    """
    reports, rest = {image.name: image for image in found.images}, found
    for _ in range(_ROUNDS):
        loose = {image.name for image in rest.images if image.reasons}
        kept = without_images(rest.model, loose)
        reports |= {image.name: image for image in rest.images if image.name in loose}
        if rest.accepted or not loose or kept.num_reg_images() < max((1.0 - most) * len(found.images), MIN_IMAGES):
            break
        try:
            rest = judge_rest(kept)
        except InputError:  # too little is left
            break
    if not rest.accepted or rest is found:
        return found
    gone = tuple(name for name in reports if name not in {image.name for image in rest.images})
    images = tuple(image if image.name not in gone else replace(image, trusted=False) for image in reports.values())
    others = f"{len(rest.images)} of {len(found.images)} images"
    if found.verdict == "not accepted":
        reason = f"{found.reason}; without {listed(gone)} it is accepted: {others}"
        return replace(found, reason=reason, images=images, accepted_without=gone)
    reason = f"{others}; nothing vouches for {listed(gone)}: {found.reason}"
    return replace(found, verdict="accepted", reason=reason, weight=rest.weight, images=images, accepted_without=gone)


def _observations(problem: Problem | Observations | str | Path | None) -> Observations | None:
    if isinstance(problem, Problem):
        return problem.observations
    return load_observations(Path(problem), "refine") if isinstance(problem, str | Path) else problem


def _check(model: pycolmap.Reconstruction, source: str, seen: Observations | None, status: str) -> Check:
    posed = tuple(sorted(image.name for image in model.images.values() if image.has_pose))
    if len(posed) < 2:
        raise InputError(f"{source} has poses of {counted(len(posed), 'image')}; expected at least 2")
    own = has_observations(model)
    if not own and seen is None:
        raise InputError(
            f"{source} has poses but no observations, which alone can tell whether they are right; expected the database "
            "that it was made from beside it (--database)"
        )
    judged: dict[str, Certificate] = {}
    if own:
        judged[OWN] = certify(*own_problem(model, status, source))
    if seen is not None:
        judged[ALL] = certify(*all_observations(model, seen, status))
    e = judged[OWN if own else ALL].evidence
    cameras = intrinsics(e)
    witnesses = _certificates(judged)
    witnesses += [at_optimum(e), contradicted(e.problem, cameras), held(e), placed(e)]
    witnesses.append(unjudged(posed, [certificate.evidence.problem for certificate in judged.values()]))
    *_, certificate = judged.values()
    if _could_settle(witnesses, list(judged.values()), matched=seen is not None):
        witness = independent(certificate.evidence)
        if witness.weight < DOUBT:
            judged = {where: judge(one.evidence.adding(confirmed=frozenset({"start"}))) for where, one in judged.items()}
            witnesses[: len(judged)] = _certificates(judged)
            *_, certificate = judged.values()
        witnesses.append(witness)
    against = sorted((one for one in witnesses if one.refuses), key=lambda one: -one.weight)
    doubts = [one for one in witnesses if one.doubts]
    verdict: Verdict = "not accepted" if against else "undecided" if doubts else "accepted"
    sentences = [one.sentence for one in against or doubts] or [_agreement(certificate, seen is not None)]
    images = tuple(_images(model, posed, (*against, *doubts), certificate))
    return Check(
        verdict, "; ".join(sentences), max(one.weight for one in witnesses), tuple(witnesses), images, cameras,
        _ambiguity(certificate), _weakest(certificate), certificate, model, source, None if seen is None else seen.source,
    )  # fmt: skip


def _certificates(judged: dict[str, Certificate]) -> list[Witness]:
    """All matches may have what the model's own observations lack, where they hold the same images together."""
    *_, more = judged.values()
    return [
        certified(one, where, more if one is not more and set(one.evidence.names) <= set(more.evidence.names) else None)
        for where, one in judged.items()
    ]


def _could_settle(witnesses: list[Witness], certificates: list[Certificate], *, matched: bool) -> bool:
    """Whether nothing but doubts that a solve from nothing settles keeps the model from being accepted.

    Doubts about matches it settles only on all of them: what the model kept was chosen to fit.
    """
    others = witnesses[len(certificates) :]
    if any(one.refuses for one in witnesses) or any(one.doubts for one in others):
        return False
    failed = [finding for certificate in certificates for finding in certificate.findings if not finding.passed]
    return any(one.doubts for one in witnesses) and all(
        "start" in finding.settled_by and (matched or finding.settled_by == ("start",)) for finding in failed
    )


def has_observations(model: pycolmap.Reconstruction) -> bool:
    """Whether any keypoint of an image with a pose belongs to a point."""
    return any(image.has_pose and image.num_points3D > 0 for image in model.images.values())


def _agreement(certificate: Certificate, matched: bool) -> str:
    return certificate.reason if matched else f"{certificate.reason}; judged by what the model kept of its matches alone"


def _images(
    model: pycolmap.Reconstruction, posed: tuple[str, ...], witnesses: Iterable[Witness], certificate: Certificate
) -> Iterable[ImageReport]:
    kept = {image.name: int(image.num_points3D) for image in model.images.values()}
    place = {name: k for k, name in enumerate(certificate.evidence.names)}
    e = certificate.evidence
    share, u = e.by_camera.share, e.uncertainty
    for name in posed:
        reasons = tuple(one.sentence for one in witnesses if name in one.images)
        k = place.get(name)
        if k is None:
            yield ImageReport(name, False, reasons or ("too few observations hold it",), kept[name], None, None, None, None)
            continue
        figures = (float(values[k]) for values in (share, u.rotation, u.centre, u.focal))
        yield ImageReport(name, not reasons, reasons, kept[name], *figures)


def _ambiguity(certificate: Certificate) -> str | None:
    failed = [f.reason for f in certificate.findings if not f.passed and f.check in _AMBIGUOUS]
    return "; ".join(failed) or None


def _weakest(certificate: Certificate) -> str:
    """Where more photographs would help most."""
    e = certificate.evidence
    j = e.joint
    names = tuple(e.names[k] for k in np.flatnonzero(j.smaller))
    shape = ""
    if e.asked("hinge") and e.hinge.hold < 1.0:
        shape = f", {e.hinge.shape},"
    few = f"{j.fitting} of {j.joining} landmarks{shape} join {listed(names)} with the rest and fit both"
    return f"the images hold together least here: {few}; photographs that overlap both sides would help most"
