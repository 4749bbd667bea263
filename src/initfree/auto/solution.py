"""Start and Solution: the input and the outcome of a start; finishing steps map solutions to solutions."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from initfree.certificate import Certificate, Evidence, judge
from initfree.certificate.focal import clear
from initfree.certificate.history import History
from initfree.config import SolveConfig
from initfree.data.problem import Problem
from initfree.data.reconstruction import Reconstruction
from initfree.data.tracks import Array
from initfree.engine.compilation import clock
from initfree.formulations.pose_rot import RelativeRotations
from initfree.result import Intermediate, Result, StageReport, StartReport
from initfree.stages.euclidean import robust_cost

MOST_STAY = 0.95
"""share of the observations that stay, with which a clearly determined focal length stays determined"""


@dataclass(frozen=True, eq=False)
class Start:
    """The beginning of a solve: options, and the observations used before the Euclidean adjustment."""

    name: str
    config: SolveConfig
    keep: NDArray[np.bool_] | None = None
    """observations used before the Euclidean adjustment, which uses all; None: all"""
    rotations: RelativeRotations | None = None
    cameras: Array | None = None
    """initial cameras (cameras, 3, 4) instead of the configured initialisation"""
    projective: Array | None = None
    """projective cameras (cameras, 3, 4) of another start's stage 1, instead of a stage 1"""
    focal: Array | None = None
    """guessed focal lengths (cameras,), used by all stages before the adjustment"""
    trimmed: float = 0.0
    """share of the observations that stage 1 suspects first (`trimming.trim`), instead of `keep`"""
    deferrable: bool = False
    """whether to end after stage 1 if its errors indicate wrong matches, in favour of other starts"""

    @property
    def whole(self) -> "Start":
        """The same start, run to its end."""
        return replace(self, deferrable=False)


@dataclass(frozen=True, eq=False)
class Solution:
    """A reconstruction with its evidence, its start and its stages."""

    evidence: Evidence
    """of problem, reconstruction and history"""
    start: Start
    intermediate: Intermediate
    stages: tuple[StageReport, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    """duration of the start"""

    @property
    def problem(self) -> Problem:
        return self.evidence.problem

    @property
    def reconstruction(self) -> Reconstruction:
        return self.evidence.reconstruction

    @property
    def history(self) -> History:
        return self.evidence.history

    @cached_property
    def certificate(self) -> Certificate:
        return judge(self.evidence)

    @property
    def accepted(self) -> bool:
        return self.certificate.accepted

    @property
    def doubtful(self) -> bool:
        return self.certificate.doubtful

    @cached_property
    def cost(self) -> float:
        """Robust Euclidean cost of all observations of the problem."""
        return robust_cost(self.problem, self.reconstruction)

    def adding(self, **facts: Any) -> "Solution":
        """The same reconstruction with more facts in its history."""
        return replace(self, evidence=self.evidence.adding(**facts))

    def noting(self, *notes: str) -> "Solution":
        """The same with more notes for the user."""
        return replace(self, notes=(*self.notes, *notes))

    def part(
        self,
        problem: Problem,
        reconstruction: Reconstruction,
        cameras: Any = slice(None),
        landmarks: Any = slice(None),
        **facts: Any,
    ) -> "Solution":
        """The solution with another reconstruction of some of its cameras and landmarks, and the same history with more
        facts."""
        history = replace(self.history, **(self._known_of(problem) | facts))
        evidence = Evidence(problem, reconstruction, history)
        return replace(self, evidence=evidence, intermediate=self.intermediate.subset(cameras, landmarks))

    def _known_of(self, problem: Problem) -> dict[str, Any]:
        """Figures that remain valid for the problem: those of the same observations, and clear ones of nearly all."""
        now, before = problem.tracks, self.problem.tracks
        same = now is before and self.evidence.asked("baselines")
        rise = self.evidence.focal_rise if self.evidence.asked("focal_rise") else self.history.focal_rise
        most_stay = now.observations >= MOST_STAY * before.observations
        return {
            "baselines": self.evidence.baselines if same else None,
            "focal_rise": rise if most_stay and clear(rise) else None,
        }

    def reporting(self, name: str, began: float, **figures: Any) -> "Solution":
        """With the report of a step that `began` then (`compilation.clock`)."""
        report = StageReport(name, clock() - began, **figures)
        return replace(self, stages=(*self.stages, report))

    def report(self) -> StartReport:
        """Of the start that led here."""
        e = self.evidence
        worst = float(e.by_camera.share.min())
        return StartReport(self.start.name, self.seconds, self.cost, self.accepted, e.inlier_share, worst, self.stages)

    def result(self, config: SolveConfig, starts: tuple[StartReport, ...], before: tuple[StageReport, ...] = ()) -> Result:
        """The result; `config` are the user's options, `before` the reports of computations that served several starts."""
        return Result.labelled(
            problem=self.problem,
            config=config,
            reconstruction=self.reconstruction,
            certificate=self.certificate,
            intermediate=self.intermediate,
            stages=(*before, *self.stages),
            starts=starts,
            winner=self.start.name,
            start_config=self.start.config,
            notes=self.notes,
        )


@dataclass(frozen=True)
class Deferred:
    """A start that ended after stage 1, because its errors indicate wrong matches."""

    start: Start


@dataclass(frozen=True)
class Disconnected:
    """A start whose observations do not connect all cameras."""

    start: Start


Outcome = Solution | Deferred | Disconnected
