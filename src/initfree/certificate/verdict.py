"""The verdict: whether a reconstruction is accepted.

docs/certificate.md reports how the thresholds were chosen, and the error rate of the verdict on other data.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from initfree.certificate.checks import CHECKS, Finding, listed, settles
from initfree.certificate.evidence import Evidence
from initfree.certificate.history import History
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.errors import InputError


@dataclass(frozen=True, eq=False)
class Certificate:
    """The verdict on a reconstruction, its reason, and the figures behind it.

    Attributes:
        accepted: Whether every check passes.
        doubtful: Not accepted, but only for doubts, which a second start with the same reconstruction would settle.
        reason: The reason of the verdict in words.
        margin: Smallest margin of all checks that count; not negative if and only if accepted.
        failing: Images that do not agree with the others.
        findings: One for each check that was made.
        evidence: The figures, each computed at its first use.
    """

    accepted: bool
    doubtful: bool
    reason: str
    margin: float
    failing: tuple[str, ...]
    findings: tuple[Finding, ...]
    evidence: Evidence

    def __repr__(self) -> str:
        return f"Certificate({'accepted' if self.accepted else 'not accepted'}: {self.reason})"

    def to_dict(self) -> dict[str, Any]:
        """As run.json has it: the verdict, the figures, every check."""
        verdict = {name: getattr(self, name) for name in ("accepted", "reason", "doubtful", "margin", "failing")}
        return verdict | self.evidence.figures() | {"checks": [asdict(finding) for finding in self.findings]}


def certify(problem: Problem, reconstruction: Reconstruction, history: History | None = None) -> Certificate:
    """The verdict on a reconstruction of a problem, whose labelled images and landmarks may stand in any order."""
    return judge(Evidence(problem, in_order_of(problem, reconstruction), history))


def in_order_of(problem: Problem, reconstruction: Reconstruction) -> Reconstruction:
    """The reconstruction in the problem's order of cameras and landmarks, by names and ids where it has them."""
    r, tracks = reconstruction, problem.tracks
    if (len(r.R), len(r.xyz)) != (tracks.cameras, tracks.landmarks):
        raise InputError(
            f"the reconstruction has {len(r.R)} cameras and {len(r.xyz)} landmarks; expected the problem's "
            f"{tracks.cameras} and {tracks.landmarks}"
        )
    cameras, landmarks = np.arange(tracks.cameras), np.arange(tracks.landmarks)
    if r.names and r.names != problem.names:
        place = {name: k for k, name in enumerate(r.names)}
        missing = [name for name in problem.names if name not in place]
        if missing:
            raise InputError(f"the reconstruction has no camera of image {missing[0]!r}; expected the problem's images")
        cameras = np.array([place[name] for name in problem.names])
    if len(r.ids) and not np.array_equal(r.ids, problem.landmark_ids):
        order = np.argsort(r.ids, kind="stable")
        landmarks = order[np.minimum(np.searchsorted(r.ids[order], problem.landmark_ids), len(order) - 1)]
        missing = problem.landmark_ids[r.ids[landmarks] != problem.landmark_ids]
        if len(missing):
            raise InputError(f"the reconstruction has no landmark {missing[0]}; expected the problem's landmarks")
    return r.subset(cameras, landmarks)


def judge(evidence: Evidence) -> Certificate:
    """Accept the reconstruction if every check passes; a doubt does not count if every witness that it needs settled it."""
    findings: list[Finding] = []
    for group in CHECKS:
        found = [finding for check in group if (finding := check(evidence)) is not None]
        findings += found
        if any(not (finding.passed or finding.doubt) for finding in found):
            break
    counted = [finding for finding in findings if finding.passed or not settled(evidence, finding)]
    failed = [finding for finding in counted if not finding.passed]
    against = [finding for finding in failed if not finding.doubt] or failed
    accepted = not against
    return Certificate(
        accepted=accepted,
        doubtful=not accepted and all(finding.doubt for finding in against),
        reason=_agreement(evidence, findings) if accepted else _objection(evidence.history, against),
        margin=min(finding.margin for finding in counted),
        failing=tuple(dict.fromkeys(name for finding in against for name in finding.failing)),
        findings=tuple(findings),
        evidence=evidence,
    )


def settled(e: Evidence, finding: Finding) -> bool:
    """Whether a finding that fails is a doubt that does not count: all who could have said otherwise do not."""
    return finding.doubt and all(witness in e.history.confirmed or settles(e, witness) for witness in finding.settled_by)


def _agreement(evidence: Evidence, findings: list[Finding]) -> str:
    history, placed = evidence.history, len(evidence.names)
    missing = tuple(dict.fromkeys((*history.left_out, *evidence.problem.dropped.images)))
    reason = "the observations agree with every camera"
    if missing:
        reason = f"the observations agree with {placed} of {placed + len(missing)} cameras; left out: {listed(missing)}"
    if history.resected:
        reason += "; some were found from the landmarks of the others"
    if history.confirmed and any(not finding.passed for finding in findings):
        reason += ", and two starts found the same"
    return reason


def _objection(history: History, against: list[Finding]) -> str:
    doubt = [history.intrinsics_doubt] if history.intrinsics_doubt else []
    return "; ".join([*doubt, *(finding.reason for finding in against)])
