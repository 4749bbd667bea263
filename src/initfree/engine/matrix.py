"""The matrix of the reduced camera system: in blocks that are factorised, or as products alone."""

from typing import Any, Protocol

import numpy as np

from initfree.data.tracks import Array, Index, Tracks
from initfree.engine import kernels, threads
from initfree.engine.blocks import ROW, assemble, write
from initfree.engine.camera_pairs import NO_PAIRS, CameraPairs
from initfree.engine.factorisation import factorisation
from initfree.engine.linear_solver import LINEAR_SOLVERS, DampedSystem, LinearSolver, Preconditioner
from initfree.engine.products import Products
from initfree.engine.quadratic import Quadratic, columns
from initfree.engine.reduction import reduction_of
from initfree.engine.vectors import rows_of, vectors

UNWEIGHTED = np.empty(0)


class CameraTerm(Protocol):
    """A cost on the cameras alone, added to the observations' (the rotation term of pOSE+rot)."""

    @property
    def pairs(self) -> Index:
        """Cameras (k, l), k > l, that it couples, (pairs, 2)."""
        ...

    def cost(self, P: Array) -> float: ...

    def add(self, P: Array, number: Index, diagonal: Index, blocks: Array, gradient: Array) -> None:
        """Add its Gauss-Newton blocks and its gradient (cameras, 3, 4).

        The 12x12 block of its pair n is blocks[number[n]], that of camera k with itself blocks[diagonal[k]].
        """
        ...


class LandmarkElimination:
    """The arrays of `elimination.eliminate_landmarks`, its arguments, and the sums over them."""

    def __init__(self, tracks: Tracks, *, coupled: bool) -> None:
        """`coupled`: whether blocks of two cameras are summed, too."""
        n, landmarks = tracks.observations, tracks.landmarks
        self.Z, self.XX = vectors(n, 9), vectors(landmarks, 10)
        self.A = np.empty(0)
        self.D, self.e = np.empty((n, 6)), np.empty((n, 3))
        self.M, self.u, self.shift = np.empty((landmarks, 3, 3)), np.empty((landmarks, 3)), np.empty(landmarks)
        self.K = np.empty((0, 3, 3))
        self.S, self.weight, self.X = UNWEIGHTED, UNWEIGHTED, UNWEIGHTED
        self._model: tuple[Any, ...] = ()
        self._solved = False
        """whether landmarks are where these quadratics have them"""
        self._tracks = tracks
        self.reduction = reduction_of(tracks, coupled=coupled)
        self.sums = np.empty(ROW * self.reduction.rows)

    def update(
        self, q: Quadratic, P: Array, X: Array, weight: Array, homogeneous: bool, damping: float, M: Array | None
    ) -> None:
        """At cameras P and landmarks X, whose whitening M may be known."""
        t = self._tracks
        if weight.size and not self.K.size:
            self.K, self.A = np.empty((t.landmarks, 3, 3)), vectors(t.observations, 9)
        self.S, self.weight, self.X = q.S, weight, X
        self._solved = M is not None
        solved = self.M if M is None else M, self.u, self.shift, self.K
        self._model = (t.ptr, t.cam), q.flat, columns(P), (homogeneous, damping), M is not None, solved
        self._assemble(self.D, eliminates=True)

    def uncoupled(self) -> None:
        """Sum the blocks of cameras with themselves, if these alone are, as they were before the landmarks' elimination."""
        self._assemble(self.S * self.weight[:, None] if self.weight.size else self.S, eliminates=False)

    def _assemble(self, D: Array, eliminates: bool) -> None:
        reduction, A = self.reduction, self.A if self.weight.size else UNWEIGHTED
        left = self.Z, A, D.reshape(-1), self.e.reshape(-1), self.XX
        seen = reduction.landmark_ranges, reduction.lists_of_rows, self._tracks.landmark, eliminates, self._model
        threads.run(assemble, reduction.work, *seen, self.weight, self.X, self.X.reshape(-1), left, self.sums)

    def write_own(self, blocks: Array, gradient: Array) -> None:
        """Blocks of cameras with themselves, if these alone are summed, (cameras, 12, 12), and the gradient."""
        every = np.arange(self._tracks.cameras)
        write(0, len(every), (every, every), self.reduction.of_pairs, self.sums, every, blocks, gradient)

    @property
    def columns(self) -> Array:
        """Z, column by column, (observations, 3, 3)"""
        return rows_of(self.Z, 3, 3)

    @property
    def gain(self) -> float:
        """What landmarks alone gain at fixed cameras; zero where they are at v* already, as with projected residuals."""
        if self.weight.size or self._solved:
            return 0.0
        gain = np.empty(len(self.reduction.ranges) - 1)
        threads.run(kernels.half_squares, self.reduction.range_work, self.reduction.ranges, self.u, gain)
        return float(gain.sum())


class Matrix(Protocol):
    """H, in some form."""

    def assemble(self, elimination: LandmarkElimination, P: Array, gradient: Array) -> None:
        """Fill it, and the gradient (cameras, 3, 4)."""
        ...

    def diagonal(self) -> Array:
        """(cameras, 12)"""
        ...

    def solve(self, damping: float | Array, b: Array) -> tuple[Array, Array] | None:
        """x of (H + diag(damping)) x = b, (cameras, 3, 4), and H x; None where that matrix is not positive definite."""
        ...


class BlockMatrix:
    """12x12 blocks of the camera pairs that share landmarks or are coupled by the camera term; solved exactly."""

    def __init__(self, tracks: Tracks, term: CameraTerm | None) -> None:
        self._tracks, self._term = tracks, term
        coupled = NO_PAIRS if term is None else term.pairs
        self.pairs = CameraPairs.covisible(tracks, coupled)
        self._number = self.pairs.number(coupled)
        covisible = CameraPairs.covisible(tracks)
        self._covisible = covisible.row, covisible.column
        self._work = covisible.work(12)
        self._place = self.pairs.number(np.column_stack([covisible.row, covisible.column]))
        self.blocks = np.zeros((len(self.pairs), 12, 12))
        column = np.arange(12 * tracks.cameras).reshape(-1, 12)
        self._factorisation = factorisation(self.pairs, column, column.size)

    def assemble(self, elimination: LandmarkElimination, P: Array, gradient: Array) -> None:
        if self._term is not None:
            self.blocks[:] = 0.0
        written = elimination.reduction.of_pairs, elimination.sums, self._place, self.blocks, gradient
        threads.run(write, self._work, self._covisible, *written)
        if self._term is not None:
            self._term.add(P, self._number, self.pairs.diagonal, self.blocks, gradient)

    def diagonal(self) -> Array:
        return np.einsum("nii->ni", self.blocks[self.pairs.diagonal])

    def solve(self, damping: float | Array, b: Array) -> tuple[Array, Array] | None:
        if not self._factorisation.factorise(self.blocks, damping):
            return None
        x = self._factorisation.solve(b.reshape(-1))
        return x.reshape(b.shape), (b.reshape(-1) - damping * x).reshape(b.shape)


class ImplicitMatrix:
    """Products only, and the cameras' own blocks; solved inexactly in linear memory."""

    def __init__(self, tracks: Tracks, term: CameraTerm | None, solver: LinearSolver) -> None:
        self._term, self._solver = term, solver
        self._products = Products(tracks)
        self._coupled = np.empty((0, 2), dtype=np.int64) if term is None else term.pairs
        self._pairs = CameraPairs.only(tracks.cameras, self._coupled)
        self._number = self._pairs.number(self._coupled)
        self._term_blocks = np.zeros((len(self._pairs), 12, 12))
        self._between: Any = None
        """the term's blocks of two cameras, as one sparse matrix"""
        self._schur = np.empty((tracks.cameras, 12, 12))
        self._U: Any = None
        """blocks before the landmarks' elimination, of a solver that reads them"""
        self._elimination: LandmarkElimination

    def assemble(self, elimination: LandmarkElimination, P: Array, gradient: Array) -> None:
        self._elimination, self._U = elimination, None
        elimination.write_own(self._schur, gradient)
        if self._term is not None:
            self._term_blocks[:] = 0.0
            self._term.add(P, self._number, self._pairs.diagonal, self._term_blocks, gradient)
            self._schur += self._term_blocks[self._pairs.diagonal]
            self._between = self._off_diagonal()

    def _blocks_of_U(self) -> Array:
        if self._U is None:
            self._U = np.empty_like(self._schur)
            self._elimination.uncoupled()
            self._elimination.write_own(self._U, np.empty((len(self._U), 3, 4)))
            if self._term is not None:
                self._U += self._term_blocks[self._pairs.diagonal]
        return self._U

    def _off_diagonal(self) -> Any:
        # A slow import that exact solvers do without.
        from scipy.sparse import bsr_array

        n = len(self._schur)
        blocks, (k, l) = self._term_blocks[self._number], self._coupled.T
        row, column = np.concatenate([k, l]), np.concatenate([l, k])
        order = np.lexsort((column, row))
        data = np.concatenate([blocks, blocks.transpose(0, 2, 1)])[order]
        starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=n))])
        return bsr_array((data, column[order], starts), shape=(12 * n, 12 * n))

    def diagonal(self) -> Array:
        return np.einsum("nii->ni", self._schur)

    def product(self, x: Array, share: float = 1.0) -> Array:
        """H x; with share = 0 what couples cameras and landmarks: -E x."""
        c = self._elimination
        result = self._products.of(x, c.S, c.weight, c.X, c.Z, c.K, share)
        if self._term is not None:
            self._add_term(x, share, result)
        return result

    def _add_term(self, x: Array, share: float, result: Array) -> None:
        flat, into = x.reshape(-1, 12), result.reshape(-1, 12)
        if share:
            into += np.einsum("nij,nj->ni", self._term_blocks[self._pairs.diagonal], flat)
        into += (self._between @ flat.reshape(-1)).reshape(-1, 12)

    def solve(self, damping: float | Array, b: Array) -> tuple[Array, Array] | None:
        shift = np.broadcast_to(damping, b.size).reshape(b.shape)
        system = DampedSystem(
            lambda x: self.product(x) + shift * x, lambda x: -self.product(x, 0.0), damping, self._schur, self._blocks_of_U
        )
        try:
            x = LINEAR_SOLVERS[self._solver.name](system, b, self._solver)
        except np.linalg.LinAlgError:
            return None
        return None if x is None else (x, self.product(x))

    def spectrum(self, damping: float | Array) -> Array:
        """Eigenvalues μ of A^-1 (A - E), A = U + D, ascending: a term of the power series leaves 1 - μ of the error along
        each. Dense: for small problems."""
        n = 12 * len(self._schur)
        half = Preconditioner(self._blocks_of_U(), np.broadcast_to(damping, n)).half
        whole = np.empty((n, n))
        for k, unit in enumerate(np.eye(n)):
            step = (half.transpose(0, 2, 1) @ unit.reshape(-1, 12, 1)).reshape(-1, 3, 4)
            whole[k] = unit + (half @ self.product(step, 0.0).reshape(-1, 12, 1)).reshape(-1)
        found: Array = np.linalg.eigvalsh(0.5 * (whole + whole.T)).astype(np.float64)
        return found
