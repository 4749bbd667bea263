"""What a formulation hands to the engine: one quadratic in y = P X for every observation."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from initfree.data.tracks import Array, Tracks
from initfree.engine import elimination, kernels, threads


@dataclass(frozen=True)
class Quadratic:
    """Per observation, the squared residual c + 2 g'(y - ȳ) + (y - ȳ)' S (y - ȳ).

    S is symmetric 3x3 and stored as (00, 01, 02, 11, 12, 22).
    """

    S: Array
    """(observations, 6)"""
    anchor: Array
    """ȳ, (observations, 3)"""
    g: Array
    """(observations, 3)"""
    c: Array
    """(observations,)"""

    @classmethod
    def from_rows(cls, A: Array, anchor: Array, r: Array) -> "Quadratic":
        """Linear residuals r + A (y - ȳ), A (observations, rows, 3): S = A'A, g = A'r, c = r'r."""
        return cls(squares(A), anchor, np.einsum("nka,nk->na", A, r), np.einsum("nk,nk->n", r, r))

    @cached_property
    def vanishes(self) -> bool:
        """Whether it is zero at ȳ, of every observation: g and c are zeros then, which eliminations need not read."""
        return not (self.g.any() or self.c.any())

    @property
    def flat(self) -> tuple[Array, Array, Array]:
        """S, ȳ and g, if it is not zero, as `elimination` takes them."""
        return self.S.reshape(-1), self.anchor.reshape(-1), self.g[: 0 if self.vanishes else None].reshape(-1)

    def squared_residuals(self, y: Array) -> Array:
        """The value at y for every observation."""
        values = np.empty(len(y))
        threads.run(kernels.quadratic_costs, len(y), self.S, self.anchor, self.g, self.c, y, values)
        return values

    def eliminated(self, tracks: Tracks, P: Array) -> "Eliminated":
        """v*(P): the landmarks that minimise it for fixed cameras."""
        t = tracks
        X, squared, M = np.empty((t.landmarks, 4)), np.empty(t.observations), np.empty((t.landmarks, 3, 3))
        threads.run(elimination.eliminate, t.ptr, t.ptr, t.cam, *self.flat, self.c, columns(P), X, squared, M)
        return Eliminated(self, tracks, P, X, squared, M)

    def weighted(self, w: Array) -> "Quadratic":
        """Every quadratic times its robust weight."""
        if self.vanishes:
            return replace(self, S=self.S * w[:, None])
        return Quadratic(self.S * w[:, None], self.anchor, self.g * w[:, None], self.c * w)


def squares(A: Array) -> Array:
    """S = A'A of every observation's rows, (observations, 6)."""
    return np.stack([np.einsum("nk,nk->n", A[:, :, a], A[:, :, b]) for a in range(3) for b in range(a, 3)], axis=1)


@dataclass(frozen=True)
class Eliminated:
    """Landmarks in closed form, as the quadratics and the cameras leave them."""

    quadratic: Quadratic
    tracks: Tracks
    P: Array
    X: Array
    """[x; 1], (landmarks, 4)"""
    squared: Array
    """the quadratic's value there, (observations,)"""
    M: Array
    """M_j'M_j = V_j^-1, (landmarks, 3, 3)"""

    @cached_property
    def y(self) -> Array:
        """P X, which few formulations need, (observations, 3)"""
        return project(self.tracks, self.P, self.X)


def columns(P: Array) -> Array:
    """Of the cameras, as `elimination` takes them."""
    padded = np.zeros((len(P), 4, 4))
    padded[:, :, :3] = P.transpose(0, 2, 1)
    return padded.reshape(-1)


def project(tracks: Tracks, P: Array, X: Array) -> Array:
    """y = P X of every observation, (observations, 3)."""
    y = np.empty((tracks.observations, 3))
    threads.run(elimination.project, tracks.ptr, tracks.ptr, tracks.cam, columns(P), X, y.reshape(-1))
    return y
