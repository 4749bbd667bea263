"""The one form every scene takes: triangles that hide things, and places where landmarks may sit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from initfree.generator.scenes.texture import stone

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Candidates:
    """Places on the surface where a landmark could be: position, unit normal, colour (uint8)."""

    positions: Floats
    normals: Floats
    colors: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.positions)

    def __getitem__(self, rows: object) -> "Candidates":
        return Candidates(self.positions[rows], self.normals[rows], self.colors[rows])  # type: ignore[index]


@dataclass(frozen=True)
class Surface:
    """Triangles with a colour each (or each corner), and, where landmarks are given, the landmarks."""

    vertices: Floats
    faces: NDArray[np.int64]
    colors: NDArray[np.uint8]
    """(faces, 3, 3): an RGB colour for every corner of every triangle."""
    two_sided: bool = True
    """False where triangles bound solids: their backs are never seen, and a camera inside one is an error."""
    textured: bool = False
    """True adds the procedural stone pattern to the colours."""
    fixed: Candidates | None = None
    """Landmarks come from here instead of being sampled by area."""
    sampled: NDArray[np.bool_] | None = None
    """(faces,) triangles that landmarks lie on; None: all. The others only hide them."""
    margin: float = 0.0
    """Distance before a landmark where the search for occluders ends (beyond the float tolerance)."""
    pattern: Floats | None = None
    """(vertices, 3) places of the vertices in the stone pattern; None: where they are. Solids with the same places look the
    same."""

    @property
    def corners(self) -> Floats:
        """Triangle corners (faces, 3, 3)."""
        return self.vertices[self.faces]

    @property
    def normals(self) -> Floats:
        """Unit normal of every triangle (zero for degenerate ones)."""
        return self._cross() / np.maximum(np.linalg.norm(self._cross(), axis=1, keepdims=True), 1e-300)

    @property
    def bounds(self) -> Floats:
        """Lowest and highest corner (2, 3) of all triangles and given landmarks."""
        points = self.vertices if self.fixed is None else np.concatenate([self.vertices, self.fixed.positions])
        return np.stack([points.min(axis=0), points.max(axis=0)])

    @property
    def centre(self) -> Floats:
        """The centroid: of the given landmarks, or of the surface by area."""
        if self.fixed is not None:
            return self.fixed.positions.mean(axis=0)
        return np.average(self.corners.mean(axis=1), axis=0, weights=self._areas())

    def sample(self, rng: np.random.Generator, count: int) -> Candidates:
        """`count` candidates by area; given landmarks in random order, as many as there are at most."""
        if self.fixed is not None:
            return self.fixed[rng.permutation(len(self.fixed))[:count]]
        cumulative = np.cumsum(self._areas())
        face = np.searchsorted(cumulative, rng.uniform(0, cumulative[-1], count), side="right")
        face = np.minimum(face, np.flatnonzero(self._areas())[-1])
        # The square root makes the density uniform over the triangle.
        root, second = np.sqrt(rng.uniform(size=count)), rng.uniform(size=count)
        weights = np.stack([1 - root, root * (1 - second), root * second], axis=1)
        positions = np.einsum("nk,nkd->nd", weights, self.corners[face])
        return Candidates(positions, self.normals[face], self.color_at(positions, face, weights))

    def color_at(self, positions: Floats, face: NDArray[np.int64], weights: Floats) -> NDArray[np.uint8]:
        """Colours of points on triangles, by barycentric weights, with the stone pattern if any."""
        colors = np.einsum("nk,nkc->nc", weights, self.colors[face].astype(float))
        if self.textured:
            places = positions if self.pattern is None else np.einsum("nk,nkd->nd", weights, self.pattern[self.faces[face]])
            colors = colors * stone(places)[:, None]
        return np.clip(colors + 0.5, 0, 255).astype(np.uint8)

    def _areas(self) -> Floats:
        """Twice the area of every triangle that landmarks lie on, zero for the others."""
        areas = np.linalg.norm(self._cross(), axis=1)
        return areas if self.sampled is None else np.where(self.sampled, areas, 0.0)

    def _cross(self) -> Floats:
        a, b, c = np.moveaxis(self.corners, 1, 0)
        return np.cross(b - a, c - a)
