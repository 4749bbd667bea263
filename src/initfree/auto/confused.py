"""Parts that look alike and were merged: cut the tracks that merged them, for another solve."""

import numpy as np

from initfree.certificate import Certificate
from initfree.certificate.checks import NOT_DOUBLED, NOT_TWICE, ONE_JOINT
from initfree.certificate.twins import merged_observations
from initfree.data.problem import Problem, restricted
from initfree.data.reconstruction import Reconstruction
from initfree.stages.euclidean.residuals import consensus


def only_doubled(certificate: Certificate) -> bool:
    """Whether the only failed check says that parts of the reconstruction may lie on top of each other."""
    failed = {finding.check for finding in certificate.findings if not finding.passed and not finding.doubt}
    doubled = {NOT_DOUBLED, NOT_TWICE}
    return bool(failed & doubled) and failed <= doubled | {ONE_JOINT}


def only_contradicted(certificate: Certificate) -> bool:
    """Whether the only failed check says that two parts have two joints: every start finds one of them."""
    return {finding.check for finding in certificate.findings if not (finding.passed or finding.doubt)} == {ONE_JOINT}


def without_confused_tracks(problem: Problem, reconstruction: Reconstruction, certificate: Certificate) -> Problem | None:
    """The problem without the smaller group's observations of landmarks that fit in both groups.

    These tracks joined the groups wrongly; tracks across them that do not fit may show the right joint. None if no such
    track remains.
    """
    smaller = certificate.evidence.duplication.smaller
    confused = merged_observations(problem.tracks, consensus(problem, reconstruction), smaller)
    found = restricted(problem, np.logical_not(confused)) if confused.any() else None
    return None if found is None else found[0]
