"""One pipeline, exactly as configured, which most tests of stages need; and a result as the finishing steps take it."""

from typing import Any

import initfree
from initfree.auto.solution import Solution, Start
from initfree.certificate import Evidence


def single(problem: initfree.Problem, config: initfree.SolveConfig | None = None, **options: Any) -> initfree.Result:
    return initfree.solve(problem, config, "single", **options)


def solution_of(result: initfree.Result, reconstruction: initfree.Reconstruction | None = None, **facts: Any) -> Solution:
    """The solution that a result is, or one with another reconstruction of its problem."""
    start = Start(result.winner or "single", result.start_config or result.config)
    evidence = result.certificate.evidence
    if reconstruction is not None:
        evidence = Evidence(result.problem, reconstruction, evidence.history)
    return Solution(evidence.adding(**facts), start, result.intermediate, result.stages, result.notes)
