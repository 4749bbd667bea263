"""expOSE (Iglesias, Nilsson and Olsson 2023), and the variant that the paper prints."""

import numpy as np

from initfree.data.tracks import Array
from initfree.engine.quadratic import Quadratic
from initfree.formulations.base import affine_rows, homogeneous, ose_rows, register


class _ExponentialError:
    """(weight of a linear error) |B (y - (m,1))|² + (weight of the exponential) exp(-d), d = (m'x + z)/sqrt(|m|² + 1).

    Around d̄ the exponential is  1/2 exp(-d̄) [(d - d̄ - 1)² + 1]  (the printed r_exp), a Taylor expansion of order two.
    For d < 0, behind the camera, the expansion at zero replaces the exponential, whose curvature would overflow.
    """

    relinearises = True
    radial = False
    uses_rotations = False
    pair_matrices = False

    def __init__(self, alpha: float) -> None:
        self.alpha = alpha

    def _linear(self, m: Array) -> tuple[float, Array]:
        raise NotImplementedError

    def _exponential_weight(self) -> float:
        raise NotImplementedError

    @staticmethod
    def _direction(m: Array) -> Array:
        a = homogeneous(m)
        return a / np.linalg.norm(a, axis=1, keepdims=True)

    def quadratic(self, m: Array, y: Array) -> Quadratic:
        weight, B = self._linear(m)
        linear = Quadratic.from_rows(B, y, np.einsum("nka,na->nk", B, y - homogeneous(m)))
        a = self._direction(m)
        d = np.einsum("na,na->n", a, y)
        expanded = np.maximum(d, 0.0)
        half = 0.5 * self._exponential_weight() * np.exp(-expanded)
        # half [(δ - 1)² + 1] with δ = d - d̄, re-anchored at y where δ is (d - d̄) already.
        delta = d - expanded
        aa = np.stack([a[:, i] * a[:, j] for i in range(3) for j in range(i, 3)], axis=1)
        return Quadratic(
            S=weight * linear.S + half[:, None] * aa,
            anchor=y,
            g=weight * linear.g + (half * (delta - 1.0))[:, None] * a,
            c=weight * linear.c + half * ((delta - 1.0) ** 2 + 1.0),
        )

    def squared_residuals(self, m: Array, y: Array) -> Array:
        weight, B = self._linear(m)
        r = np.einsum("nka,na->nk", B, y - homogeneous(m))
        d = np.einsum("na,na->n", self._direction(m), y)
        behind = np.minimum(d, 0.0)
        exponential = np.exp(-np.maximum(d, 0.0)) - behind + 0.5 * behind**2
        return weight * np.einsum("nk,nk->n", r, r) + self._exponential_weight() * exponential


@register("expose")
class ExponentialObjectSpaceError(_ExponentialError):
    """(1-α) |x - z m|² + α exp(-d): the original method, with the object-space error."""

    def _linear(self, m: Array) -> tuple[float, Array]:
        return 1.0 - self.alpha, ose_rows(m)

    def _exponential_weight(self) -> float:
        return self.alpha


@register("expose-printed")
class PrintedExponentialError(_ExponentialError):
    """(1-α) exp(-d) + α |x - m|²: as the paper's appendix prints it, without the object-space error."""

    def _linear(self, m: Array) -> tuple[float, Array]:
        return self.alpha, affine_rows(m)

    def _exponential_weight(self) -> float:
        return 1.0 - self.alpha
