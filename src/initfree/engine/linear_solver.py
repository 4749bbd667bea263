"""Three ways to solve the damped reduced system: exactly, by a power series, by conjugate gradients.

The two inexact ones never form the matrix. They see H + D, D the damping, as a `DampedSystem`: through products and through
A, the cameras' own 12x12 blocks, which are factorised. Another one is a function in `LINEAR_SOLVERS`.

    power   H + D = A - E with A = U + D:  x = sum_k (A^-1 E)^k A^-1 b   (PoBA, PoVar: E = W V^-1 W')
    pcg     conjugate gradients, preconditioned by the diagonal blocks A of H + D itself (Schur-Jacobi)
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from initfree.config import SeriesStop
from initfree.data.tracks import Array
from initfree.errors import InputError

Product = Callable[[Array], Array]
"""of (cameras, 3, 4)"""


@dataclass(frozen=True)
class LinearSolver:
    """Which one, and when an inexact one stops."""

    name: str = "exact"
    """or a name in `LINEAR_SOLVERS`"""
    iterations: int = 20
    """most terms of the power series beyond the first, or steps of conjugate gradients"""
    tolerance: float = 1e-2
    """a series ends with a term of less than this share of the sum, conjugate gradients at this share of the residual"""
    stop: SeriesStop = "term"
    """what of a series the tolerance is for: |term_i| / |sum|, or PoVar's i |term_i| / |sum|, stricter with later terms"""

    def __post_init__(self) -> None:
        if self.name != "exact" and self.name not in LINEAR_SOLVERS:
            raise InputError(f"linear_solver is {self.name!r}; expected one of exact, {', '.join(LINEAR_SOLVERS)}")
        if self.iterations < 1 or not 0.0 <= self.tolerance < 1.0:
            raise InputError(
                f"the linear solver has {self.iterations} iterations and tolerance {self.tolerance}; "
                "expected at least one and a number from 0 to below 1"
            )


EXACT = LinearSolver()


class Preconditioner:
    """A^-1 for symmetric blocks A (cameras, 12, 12)."""

    def __init__(self, blocks: Array, damping: float | Array) -> None:
        """Raises LinAlgError where a damped block is not positive definite."""
        damped = blocks.copy()
        damped[:, np.arange(12), np.arange(12)] += np.broadcast_to(damping, len(blocks) * 12).reshape(-1, 12)
        self.half = np.linalg.inv(np.linalg.cholesky(damped))
        """L^-1 of A = LL'"""

    def __call__(self, x: Array) -> Array:
        half = self.half @ x.reshape(-1, 12, 1)
        return (self.half.transpose(0, 2, 1) @ half).reshape(x.shape)


@dataclass(frozen=True)
class DampedSystem:
    """(H + D) x = b as inexact solvers see it; vectors are (cameras, 3, 4)."""

    product: Product
    """(H + D) x"""
    coupling: Product
    """E x = W V^-1 W' x, what the elimination of the landmarks subtracts from U + D"""
    damping: float | Array
    """D: one number, or one for each entry of x"""
    blocks: Array
    """the cameras' own blocks (cameras, 12, 12) of H"""
    blocks_of_U: Callable[[], Array]
    """the same before the elimination, which take a while to sum and are kept"""

    @cached_property
    def schur_jacobi(self) -> Preconditioner:
        """A^-1 for the cameras' own blocks of H + D."""
        return Preconditioner(self.blocks, self.damping)

    @cached_property
    def uncoupled(self) -> Preconditioner:
        """A^-1 for A = U + D."""
        return Preconditioner(self.blocks_of_U(), self.damping)


def power_series(inverse: Product, coupling: Product, b: Array, limits: LinearSolver) -> Array:
    """sum_k (A^-1 E)^k A^-1 b. It converges wherever H + D and A + E are positive definite."""
    term = inverse(b)
    total = term.copy()
    for i in range(1, limits.iterations + 1):
        term = inverse(coupling(term))
        total += term
        count = i if limits.stop == "counted" else 1
        if not count * np.linalg.norm(term) > limits.tolerance * np.linalg.norm(total):
            break
    return total


def conjugate_gradients(product: Product, inverse: Product, b: Array, limits: LinearSolver) -> Array | None:
    """None where a direction has no positive curvature."""
    x, residual = np.zeros_like(b), b.copy()
    z = inverse(residual)
    direction, size = z, float(np.vdot(residual, z))
    target = limits.tolerance**2 * size
    for _ in range(limits.iterations):
        if size <= target:
            break
        image = product(direction)
        curvature = float(np.vdot(direction, image))
        if not curvature > 0.0:
            return None
        x += size / curvature * direction
        residual -= size / curvature * image
        z = inverse(residual)
        before, size = size, float(np.vdot(residual, z))
        direction = z + size / before * direction
    return x


LINEAR_SOLVERS: dict[str, Callable[[DampedSystem, Array, LinearSolver], Array | None]] = {
    "power": lambda system, b, limits: power_series(system.uncoupled, system.coupling, b, limits),
    "pcg": lambda system, b, limits: conjugate_gradients(system.product, system.schur_jacobi, b, limits),
}
"""x of (H + D) x = b by name, or None where H + D turns out not to be positive definite"""
