"""Parts that look alike and were merged: divide the tracks that merged them, for another solve."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from initfree.certificate import Certificate
from initfree.certificate.checks import NOT_DOUBLED, NOT_TWICE, ONE_JOINT
from initfree.certificate.closeness import closeness
from initfree.certificate.coincident import parts_of_twins
from initfree.certificate.twins import merged_observations
from initfree.data.observations import Observations
from initfree.data.pairs import VerifiedPairs
from initfree.data.problem import Problem, build_problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Index
from initfree.errors import InputError
from initfree.stages.euclidean.residuals import consensus

NEAR_AUC20 = 50.0
"""percent that the cameras of a joint solved anew have against the rough ones, at least; the similarity between two parts
of a compromise is off by some degrees"""


def only_doubled(certificate: Certificate) -> bool:
    """Whether the only failed check says that parts of the reconstruction may lie on top of each other."""
    failed = {finding.check for finding in certificate.findings if not finding.passed and not finding.doubt}
    doubled = {NOT_DOUBLED, NOT_TWICE}
    return bool(failed & doubled) and failed <= doubled | {ONE_JOINT}


def only_contradicted(certificate: Certificate) -> bool:
    """Whether the only failed check says that two parts have two joints: every start finds one of them."""
    return {finding.check for finding in certificate.findings if not (finding.passed or finding.doubt)} == {ONE_JOINT}


def joined_otherwise(certificate: Certificate) -> Reconstruction | None:
    """The reconstruction with the other joint of its two parts, where the order of the photographs speaks for it."""
    e = certificate.evidence
    if not (only_contradicted(certificate) and e.joint_by_order < 0) or e.contradiction is None:
        return None
    return e.contradiction.other


def follows(found: Reconstruction, names: tuple[str, ...], certificate: Certificate) -> bool:
    """Whether a reconstruction of these images has the cameras of the other joint rather than those of the judged one."""
    joined, e = joined_otherwise(certificate), certificate.evidence
    if joined is None:
        return False
    place = {name: k for k, name in enumerate(e.names)}
    chosen = np.array([place[name] for name in names])
    there, here = (
        min(closeness(found.R, found.centres, one.R[chosen], one.centres[chosen], 20.0))
        for one in (joined, e.reconstruction)
    )
    return there > max(here, NEAR_AUC20)


def with_divided_tracks(problem: Problem, reconstruction: Reconstruction, certificate: Certificate) -> Problem | None:
    """The problem with two tracks in place of each that fits in two groups of images, one in either.

    These tracks joined the groups wrongly; tracks across them that do not fit may show the right joint. None if no such
    track remains, or nothing else joins the groups.
    """
    counts = consensus(problem, reconstruction)
    if only_contradicted(certificate):
        group = certificate.evidence.joint.smaller
    else:
        apart = parts_of_twins(problem.tracks, problem.unit, reconstruction.cameras, reconstruction.xyz, counts)
        group = certificate.evidence.duplication.smaller if apart is None else apart
    confused = merged_observations(problem.tracks, counts, group)
    if not confused.any():
        return None
    divided = _divided(problem, np.unique(problem.landmark_ids[problem.tracks.landmark[confused]]), group)
    among = np.zeros(len(divided.images), dtype=bool)
    among[problem.images] = True
    try:
        found = build_problem(divided, problem.min_obs, among)
    except InputError:
        return None
    whole = np.array_equal(found.images, problem.images)
    return replace(found, intrinsics=problem.intrinsics, rays=problem.rays) if whole else None


def _divided(problem: Problem, landmarks: Index, group: NDArray[np.bool_]) -> Observations:
    """The observations in which the group's of these landmarks are of new ones."""
    o = problem.observations
    mine = np.zeros(len(o.images), dtype=bool)
    mine[problem.images[group]] = True
    chosen = mine[o.image] & np.isin(o.landmark_id, landmarks)
    new = int(o.landmark_id.max()) + 1 + np.searchsorted(landmarks, o.landmark_id)
    pairs = None if o.pairs is None else _apart(o.pairs, mine, o.image[chosen], o.keypoint[chosen])
    return replace(o, landmark_id=np.where(chosen, new, o.landmark_id), pairs=pairs)


def _apart(pairs: VerifiedPairs, mine: NDArray[np.bool_], image: Index, keypoint: Index) -> VerifiedPairs:
    """Verified pairs without the matches of these keypoints of the group's images with any of the others."""
    most = int(max(pairs.keypoint.max(initial=0), keypoint.max(initial=0))) + 1
    of_match = np.repeat(pairs.image, np.diff(pairs.ptr), axis=0)
    divided = np.isin(of_match * most + pairs.keypoint, image * most + keypoint).any(axis=1)
    keep = ~(divided & (mine[of_match[:, 0]] != mine[of_match[:, 1]]))
    ptr = np.concatenate([[0], np.cumsum(keep)])[pairs.ptr].astype(np.int64)
    return replace(pairs, ptr=ptr, keypoint=pairs.keypoint[keep])
