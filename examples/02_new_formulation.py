"""A formulation of one's own: a class with its residual rows, registered under a name. It works everywhere at once.

    python examples/02_new_formulation.py [OUTPUT]

The example is pOSE with both regularisers, of pOSE (x - m) and of rOSE (z - 1).
"""

import sys

import numpy as np

import initfree
from initfree.formulations import LinearFormulation, register
from initfree.formulations.base import affine_rows, ose_rows, weighted_rows
from initfree.generator import generate


@register("pose-and-depth")
class PoseAndDepth(LinearFormulation):
    """(1-α) |x - z m|² + α |y - (m, 1)|²."""

    def rows(self, m: np.ndarray) -> np.ndarray:
        depth = np.tile([0.0, 0.0, 1.0], (len(m), 1, 1))
        return weighted_rows(self.alpha, ose_rows(m), np.concatenate([affine_rows(m), depth], axis=1))


def main(output: str) -> None:
    dataset = generate("set2", seed=0, shuffle=True, noise=0.5)
    problem = initfree.load(dataset.to_colmap(noisy=True))
    for name in ("pose", "rose", "pose-and-depth"):
        result = initfree.solve(problem, initfree.SolveConfig(formulation=name))
        metrics = initfree.evaluate(result, dataset.to_colmap())
        stage = result.stage("varpro")
        print(f"{name:<15} {stage.iterations:3d} iterations   rotation AUC@5 {metrics.rotation_auc5:6.2f}")
    result.write(output)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "formulation-output")
