"""The one place that says whether a reconstruction is accepted.

How the thresholds were chosen, and how often the verdict is wrong on data that it never saw, stands in docs/certificate.md.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from initfree.certificate.alternative import Alternative, alternative, doubtful
from initfree.certificate.baseline import Baselines
from initfree.certificate.checks import CHECKS, Finding, listed
from initfree.certificate.closer import look_closer
from initfree.certificate.evidence import Evidence, gather
from initfree.certificate.focal import focal_rise
from initfree.certificate.reversal import reversal_rise
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.engine.parallel import beside


@dataclass(frozen=True)
class Certificate:
    """The verdict, its reason in plain words, and what it rests on."""

    accepted: bool
    doubtful: bool
    """not accepted only because of doubts, which a second start that finds the same reconstruction settles"""
    reason: str
    margin: float
    """the smallest margin of all checks that count: not negative if and only if accepted"""
    failing: tuple[str, ...]
    """images that do not agree with the others"""
    findings: tuple[Finding, ...]
    """of every check"""
    evidence: Evidence

    def __repr__(self) -> str:
        return f"Certificate({'accepted' if self.accepted else 'not accepted'}: {self.reason})"

    def to_dict(self) -> dict[str, Any]:
        """As run.json has it: the verdict, the figures, every check."""
        verdict = {name: getattr(self, name) for name in ("accepted", "reason", "doubtful", "margin", "failing")}
        return verdict | self.evidence.figures() | {"checks": [asdict(finding) for finding in self.findings]}


def certify(
    problem: Problem,
    reconstruction: Reconstruction,
    moving: Baselines | None = None,
    *,
    rise: float | None = None,
    found: bool = False,
) -> Certificate:
    """The verdict on a reconstruction; `moving` are the problem's baselines and `rise` its `focal_rise`, where they are
    known already, if need be of the problem that it is nearly all of; `found` says that the intrinsics of a calibrated
    problem were found with the reconstruction, and are as uncertain as that.

    What costs more is asked only where nothing else stands against the reconstruction; of unknown focal lengths beside it.
    """
    certificate = judge(gather(problem, reconstruction, moving))
    if not (certificate.accepted or certificate.doubtful):
        return certificate
    known = problem.calibrated or rise is not None
    with beside(lambda: rise if known else focal_rise(problem, reconstruction)) as told:
        certificate = judge(replace(certificate.evidence, closer=look_closer(problem, reconstruction, found=found)))
    if certificate.accepted or certificate.doubtful:
        certificate = judge(replace(certificate.evidence, reversal_rise=reversal_rise(problem, reconstruction)))
    if certificate.accepted or certificate.doubtful:
        other = _another(problem, reconstruction, certificate.evidence)
        certificate = judge(replace(certificate.evidence, alternative=other))
    if not problem.calibrated and (certificate.accepted or certificate.doubtful):
        certificate = judge(replace(certificate.evidence, focal_rise=told()))
    return certificate


def _another(problem: Problem, reconstruction: Reconstruction, evidence: Evidence) -> Alternative | None:
    """Another optimum, looked for where there is reason to."""
    if evidence.closer is None or not doubtful(evidence.closer.determination, evidence.parallax):
        return None
    return alternative(problem, reconstruction, evidence.closer.determination.system)


def judge(evidence: Evidence) -> Certificate:
    """Accepted if every check passes; doubts do not count where a second start confirmed the reconstruction."""
    findings = tuple(check(evidence) for check in CHECKS)
    counted = [finding for finding in findings if not (finding.doubt and evidence.confirmed)]
    failed = [finding for finding in counted if not finding.passed]
    against = [finding for finding in failed if not finding.doubt] or failed
    accepted = not against
    return Certificate(
        accepted=accepted,
        doubtful=not accepted and all(finding.doubt for finding in against),
        reason=_agreement(evidence, findings) if accepted else _objection(evidence, against),
        margin=min(finding.margin for finding in counted),
        failing=tuple(dict.fromkeys(name for finding in against for name in finding.failing)),
        findings=findings,
        evidence=evidence,
    )


def _agreement(e: Evidence, findings: tuple[Finding, ...]) -> str:
    reason = "the observations agree with every camera"
    if e.left_out:
        reason += f" but those left out: {listed(e.left_out)}"
    if e.taken_back:
        reason += "; some were found from the landmarks of the others"
    if e.confirmed and any(not finding.passed for finding in findings):
        reason += ", and two starts found the same"
    return reason


def _objection(e: Evidence, against: list[Finding]) -> str:
    doubt = [e.intrinsics_doubt] if e.intrinsics_doubt else []
    return "; ".join([*doubt, *(finding.reason for finding in against)])
