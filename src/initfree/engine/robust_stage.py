"""What the refinement and the Euclidean adjustment have in common: a stage under a loss, which may be graduated."""

from collections.abc import Sequence
from typing import Any

from initfree.data.tracks import Tracks
from initfree.engine.levenberg_marquardt import Convergence, LMConfig, OnIteration, coarse, joined, minimise
from initfree.engine.losses import Cauchy, LeastSquares, Loss


class RobustStage:
    """Base of a `levenberg_marquardt.Stage` whose cost is in pixels and goes through `_loss`."""

    _tracks: Tracks
    _loss: Loss = LeastSquares()

    def linearise(self) -> float:
        """Build the quadratic at the current state; return the state's cost under it."""
        raise NotImplementedError

    def attempt(self, damping: float) -> Any:
        """The state after the damped step, or None if the damped system is singular."""
        raise NotImplementedError

    def accept(self, trial: Any) -> None:
        """Make the trial the current state."""
        raise NotImplementedError

    def gradient_cosine(self) -> float:
        """`levenberg_marquardt.gradient_cosine` at the current state."""
        raise NotImplementedError

    def minimise(
        self, config: LMConfig, loss: Loss = LeastSquares(), on_iteration: OnIteration | None = None
    ) -> Convergence:
        """Run to convergence under a loss; call again with a narrower one to graduate it."""
        self._loss = loss
        return minimise(self, config, on_iteration, zero_cost=1e-26 * self._tracks.observations)

    def minimise_graduated(
        self, config: LMConfig, scales: Sequence[float], on_iteration: OnIteration | None = None
    ) -> Convergence:
        """Cauchy at each scale in turn, wide to narrow; one history, costs of the last scale count."""
        parts = []
        for scale in scales:
            stage = config if scale == scales[-1] else coarse(config)
            parts.append(self.minimise(stage, Cauchy(scale), on_iteration))
        return joined(parts)
