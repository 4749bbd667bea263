"""Houses of random size and height on flat ground: something for an aerial survey to fly over."""

import numpy as np

from initfree.generator.scenes.courthouse import FLOOR, PALE, ROOF, STONE, assemble
from initfree.generator.scenes.solids import box, gable
from initfree.generator.scenes.surface import Surface


def town(blocks: int, spacing: float, rng: np.random.Generator) -> Surface:
    """`blocks` x `blocks` plots, a gabled or flat-roofed house on each, centred on the origin."""
    half = blocks * spacing / 2
    parts = [(box((-half, -half, -0.5), (half, half, 0.0)), FLOOR)]
    for x, y in np.stack(np.meshgrid(*[np.arange(blocks)] * 2), axis=-1).reshape(-1, 2) * spacing - half:
        width, depth = rng.uniform(0.35, 0.75, 2) * spacing
        height = rng.uniform(4, 18)
        left, front = x + (spacing - width) / 2, y + (spacing - depth) / 2
        low, high = (left, front), (left + width, front + depth)
        parts.append((box((*low, 0.0), (*high, height)), STONE if rng.uniform() < 0.5 else PALE))
        if rng.uniform() < 0.7:
            parts.append((gable(low, high, height, height + 0.3 * min(width, depth), rng.choice(["x", "y"])), ROOF))
    return assemble(parts)
