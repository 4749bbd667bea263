"""Failure against a residual: rates in bins of equally many runs, and how well the residual predicts failure.

A run failed if its rotation AUC@20 or translation AUC@20 is below 20 or its landmark RMSE above 30 (the paper's figures
"Metric upgrade failure rate"), or if it raised.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import binomtest, rankdata

_MOST_BINS = 10
_FEWEST_A_BIN = 5


@dataclass(frozen=True)
class Bin:
    """Runs with a residual in [low, high]; rates in percent with their 95% Wilson interval."""

    low: float
    high: float
    runs: int
    rate: float
    rate_low: float
    rate_high: float


def usable(rows: pd.DataFrame, residual: str) -> pd.DataFrame:
    """Rows with a positive finite residual; a stage that never ran has none."""
    values = rows[residual].to_numpy(float)
    return rows[np.isfinite(values) & (values > 0.0)]


def failure_bins(rows: pd.DataFrame, residual: str) -> list[Bin]:
    """Up to ten bins of equally many runs by rising residual; empty without rows."""
    rows = usable(rows, residual).sort_values(residual, kind="stable")
    count = min(_MOST_BINS, max(1, len(rows) // _FEWEST_A_BIN))
    bins: list[Bin] = []
    for part in np.array_split(np.arange(len(rows)), count) if len(rows) else []:
        values, failed = rows[residual].to_numpy(float)[part], rows["failed"].to_numpy(bool)[part]
        interval = binomtest(int(failed.sum()), len(part)).proportion_ci(method="wilson")
        rates = (100.0 * x for x in (float(failed.mean()), interval.low, interval.high))
        bins.append(Bin(float(values[0]), float(values[-1]), len(part), *rates))
    return bins


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
