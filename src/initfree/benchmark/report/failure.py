"""Failure against a residual: rates in bins of equally many runs, and how well the residual predicts failure.

A run failed if its rotation AUC@20 or translation AUC@20 is below 20 or its landmark RMSE above 30 (the paper's figures
"Metric upgrade failure rate"), or if it raised.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata

_MOST_BINS = 10
_FEWEST_A_BIN = 5
_EXACT = 1e-6
"""residuals up to this are zero but for rounding, normalised or in pixels: one bin, ties"""


@dataclass(frozen=True)
class Bin:
    """Runs with a residual in [low, high]; rates in percent with their 95% Wilson interval."""

    low: float
    high: float
    runs: int
    rate: float
    rate_low: float
    rate_high: float

    @property
    def exact(self) -> bool:
        """Whether all its residuals are zero but for rounding."""
        return self.high <= _EXACT


def usable(rows: pd.DataFrame, residual: str) -> pd.DataFrame:
    """Rows with a residual (a stage that never ran has none), raised to what rounding cannot tell from zero."""
    rows = rows[np.isfinite(rows[residual].to_numpy(float))]
    return rows.assign(**{residual: np.maximum(rows[residual].to_numpy(float), _EXACT)})


def failure_bins(rows: pd.DataFrame, residual: str) -> list[Bin]:
    """Up to ten bins of equally many runs by rising residual, after one for residuals that are zero but for rounding."""
    rows = usable(rows, residual).sort_values(residual, kind="stable")
    values, failed = rows[residual].to_numpy(float), rows["failed"].to_numpy(bool)
    exact = int(np.searchsorted(values, _EXACT, side="right"))
    count = min(_MOST_BINS, max(1, (len(rows) - exact) // _FEWEST_A_BIN))
    parts = [np.arange(exact), *np.array_split(np.arange(exact, len(rows)), count)]
    return [_bin(values[part], failed[part]) for part in parts if len(part)]


def _bin(values: NDArray[np.float64], failed: NDArray[np.bool_]) -> Bin:
    interval = binomtest(int(failed.sum()), len(failed)).proportion_ci(method="wilson")
    rate, low, high = (100.0 * x for x in (float(failed.mean()), float(interval.low), float(interval.high)))
    return Bin(float(values[0]), float(values[-1]), len(values), rate, low, high)


def roc_auc(rows: pd.DataFrame, residual: str) -> float:
    """Probability that a failed run has the larger residual than one that did not fail; ties count half.

    The area under the ROC curve of "residual above a threshold" as a predictor of failure: 0.5 says nothing, 1 separates.
    """
    rows = usable(rows, residual)
    failed = rows["failed"].to_numpy(bool)
    bad, good = int(failed.sum()), int((~failed).sum())
    if bad == 0 or good == 0:
        return float("nan")
    ranks = rankdata(rows[residual].to_numpy(float))
    return float((ranks[failed].sum() - bad * (bad + 1) / 2) / (bad * good))


def roc_curve(rows: pd.DataFrame, residual: str) -> tuple[list[float], list[float]]:
    """False and true alarm rates as the threshold on the residual falls; runs of equal residual move together."""
    rows = usable(rows, residual).sort_values(residual, ascending=False)
    values, failed = rows[residual].to_numpy(float), rows["failed"].to_numpy(bool)
    if failed.all() or not failed.any():
        return [], []
    ends = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)
    true = np.cumsum(failed)[ends] / failed.sum()
    false = np.cumsum(~failed)[ends] / (~failed).sum()
    return [0.0, *map(float, false)], [0.0, *map(float, true)]
