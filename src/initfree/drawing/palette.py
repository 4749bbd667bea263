"""Colours with a meaning, the same in every picture."""

import numpy as np
from numpy.typing import NDArray

from initfree.data.tracks import Array

GOOD, FAILED, NEUTRAL, GREY, JOINT = "#1a9e8f", "#d1495b", "#5b7fb9", "#9aa4b2", "#d98613"
CHOSEN = "#2f7bff"

SCALE = ("#3b2f8c", "#2f6fb0", "#1fa187", "#8fd03f", "#f6d32d", "#f28c28", "#d1352b")
"""from little to much: readable on white and on black, and in the eyes of the colour-blind by its lightness"""


def rgb(colour: str) -> tuple[int, int, int]:
    """ "#1a9e8f" as three numbers."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def coloured(values: Array, low: float, high: float) -> NDArray[np.uint8]:
    """(n, 3): values on the scale; what is not finite is grey."""
    stops = np.array([rgb(colour) for colour in SCALE], dtype=np.float64)
    share = np.clip((values - low) / max(high - low, 1e-300), 0.0, 1.0)
    known = np.isfinite(share)
    at = np.where(known, share, 0.0) * (len(stops) - 1)
    found = np.stack([np.interp(at, np.arange(len(stops)), channel) for channel in stops.T], axis=1)
    found[~known] = rgb(GREY)
    return np.round(found).astype(np.uint8)
