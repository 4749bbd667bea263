"""A courthouse of closed solids, the stand-in for the paper's Tanks and Temples "Courthouse" scan.

The main front looks towards -y. Every wall is a solid of its own thickness, so that the hall inside is real:
cameras in it see walls, columns, floor and ceiling, and a camera inside a wall can be recognised.
"""

import numpy as np

from initfree.generator.scenes.solids import Solid, box, cylinder, gable, loft, wall
from initfree.generator.scenes.surface import Surface

STONE, PALE, DARK, ROOF, FLOOR, WOOD = (
    (196, 178, 148),
    (222, 212, 192),
    (122, 112, 104),
    (138, 84, 66),
    (150, 140, 132),
    (120, 78, 44),
)

HALF_LENGTH, HALF_DEPTH, FLOOR_HEIGHT, EAVES = 46.0, 27.0, 2.4, 21.0


def courthouse() -> Surface:
    """The whole building, about 110 m by 80 m by 40 m with its forecourt; the same on every call."""
    parts = [*_ground(), *_walls(), *_portico(), *_roof(), *_tower(), *_hall()]
    return assemble(parts)


def assemble(parts: list[tuple[Solid, tuple[int, int, int]]]) -> Surface:
    """One surface from solids and their colours."""
    offsets = np.cumsum([0, *(len(solid[0]) for solid, _ in parts)])
    faces = [solid[1] + offset for (solid, _), offset in zip(parts, offsets[:-1], strict=True)]
    colors = [np.broadcast_to(np.array(color, np.uint8), (len(solid[1]), 3, 3)) for solid, color in parts]
    return Surface(
        vertices=np.concatenate([solid[0] for solid, _ in parts]),
        faces=np.concatenate(faces),
        colors=np.concatenate(colors),
        two_sided=False,
        textured=True,
    )


def _ground() -> list:
    podium = [
        (box((-58, -46, -0.5), (58, 40, 0)), FLOOR),
        (box((-48, -29, 0), (48, 29, FLOOR_HEIGHT)), PALE),
        (box((-26, -37, 0), (26, -29, FLOOR_HEIGHT)), PALE),
    ]
    steps = [(box((-22, -37 - 0.6 * (8 - k), 0.3 * k), (22, -37, 0.3 * (k + 1))), STONE) for k in range(8)]
    return podium + steps


def _walls() -> list:
    """Four walls with two storeys of windows; the front has a portal behind the portico, the back a door."""

    def windows(length: float, skip: tuple[float, float] | None) -> list[tuple[float, float, float, float]]:
        columns = np.arange(5.0, length - 4.0, 6.5)
        openings = []
        for left in columns:
            if skip and skip[0] < left + 2.6 and left < skip[1]:
                continue
            openings += [(left, left + 2.6, 4.5, 9.5), (left, left + 2.6, 12.5, 17.5)]
        return openings

    thickness = 1.2
    # The side walls stand between front and back: solids that overlap have faces that fight for the light.
    between = HALF_DEPTH - thickness
    length, depth = 2 * HALF_LENGTH, 2 * between
    portal, door = (length / 2 - 4, length / 2 + 4), (length / 2 + 11, length / 2 + 15)
    front = [*windows(length, portal), (*portal, FLOOR_HEIGHT, 13.0)]
    back = [*windows(length, door), (*door, FLOOR_HEIGHT, 7.5)]
    sides = (
        ((-HALF_LENGTH, -HALF_DEPTH), (HALF_LENGTH, -HALF_DEPTH), front),
        ((HALF_LENGTH, -between), (HALF_LENGTH, between), windows(depth, None)),
        ((HALF_LENGTH, HALF_DEPTH), (-HALF_LENGTH, HALF_DEPTH), back),
        ((-HALF_LENGTH, between), (-HALF_LENGTH, -between), windows(depth, None)),
    )
    parts = [
        (solid, STONE)
        for start, end, openings in sides
        for solid in wall(start, end, FLOOR_HEIGHT, EAVES, thickness, openings)
    ]
    # A band between the storeys, and sills, stand proud of the walls and hide things at grazing views.
    low, high = 10.6, 11.2
    x, y = HALF_LENGTH, HALF_DEPTH
    bands = [
        box((-x - 0.4, -y - 0.4, low), (-5.0, -y, high)),
        box((5.0, -y - 0.4, low), (x + 0.4, -y, high)),
        box((-x - 0.4, y, low), (x + 0.4, y + 0.4, high)),
        box((-x - 0.4, -y, low), (-x, y, high)),
        box((x, -y, low), (x + 0.4, y, high)),
    ]
    return parts + [(band, PALE) for band in bands]


def _portico() -> list:
    """Eight columns under an architrave and a pediment."""
    parts = []
    for x in np.linspace(-22.0, 22.0, 8):
        parts += [
            (box((x - 1.7, -36.2, FLOOR_HEIGHT), (x + 1.7, -32.8, 3.0)), PALE),
            (cylinder(x, -34.5, 3.0, 15.6, 1.35, 1.1), PALE),
            (box((x - 1.6, -36.1, 15.6), (x + 1.6, -32.9, 16.2)), PALE),
        ]
    parts += [
        (box((-24.5, -36.6, 16.2), (24.5, -HALF_DEPTH, 18.4)), STONE),
        (box((-25.3, -37.2, 18.4), (25.3, -HALF_DEPTH, 19.2)), PALE),
        (gable((-25.3, -37.2), (25.3, -HALF_DEPTH), 19.2, 27.0, "y"), ROOF),
        (gable((-19.0, -37.5), (19.0, -37.2), 20.0, 25.6, "y"), DARK),
    ]
    return parts


def _roof() -> list:
    """Ceiling and cornice, a hipped roof, chimneys and dormers that leave no symmetry."""
    outline = np.array([[-47.5, -28.5], [47.5, -28.5], [47.5, 28.5], [-47.5, 28.5]])
    ridge = np.array([[-26.0, -0.3], [26.0, -0.3], [26.0, 0.3], [-26.0, 0.3]])
    parts = [
        (box((-47.5, -28.5, EAVES), (47.5, 28.5, 22.2)), PALE),
        (loft(outline, 22.2, ridge, 31.5), ROOF),
    ]
    chimneys = (
        (-36, 8, 2.0, 31),
        (-20, -7, 1.5, 32.5),
        (12, 9, 2.4, 33),
        (20, -14, 1.6, 30),
        (-4, 15, 1.8, 32),
    )
    parts += [(box((x - s, y - s, 22), (x + s, y + s, top)), DARK) for x, y, s, top in chimneys]
    dormers = ((-30, 18, 2.2), (-12, 18, 2.2), (4, 18, 3.0), (28, -19, 2.4), (-33, -19, 2.8))
    for x, y, half in dormers:
        parts += [
            (box((x - half, y - 4, 22), (x + half, y + 4, 27.0)), STONE),
            (gable((x - half - 0.4, y - 4.4), (x + half + 0.4, y + 4.4), 27.0, 29.5, "y"), ROOF),
        ]
    return parts


def _tower() -> list:
    """A clock tower on the back right and an annexe on the back left."""
    parts = [
        (box((25, 29, 0), (39, 40, 33)), STONE),
        (box((24.2, 28.2, 33), (39.8, 40.8, 34)), PALE),
        (box((27, 31, 34), (37, 38.5, 39)), STONE),
        (box((30, 40.0, 25), (34, 40.3, 29)), DARK),
        (box((39.0, 32, 25), (39.3, 36, 29)), DARK),
    ]
    base = np.array([[26.4, 30.4], [37.6, 30.4], [37.6, 39.1], [26.4, 39.1]])
    tip = np.array([[31.9, 34.7], [32.1, 34.7], [32.1, 34.9], [31.9, 34.9]])
    parts.append((loft(base, 39, tip, 47), ROOF))
    parts += [
        (box((-40, 29, 0), (-14, 38, 11)), STONE),
        (gable((-41, 28.8), (-13, 39), 11, 15.5, "x"), ROOF),
    ]
    return parts


def _hall() -> list:
    """Inside: two rows of columns, a gallery along the back, a bench, a partition with a doorway."""
    parts = []
    for x in np.linspace(-36.0, 36.0, 7):
        for y in (-14.0, 14.0):
            parts += [
                (box((x - 1.3, y - 1.3, FLOOR_HEIGHT), (x + 1.3, y + 1.3, 3.2)), PALE),
                (cylinder(x, y, 3.2, EAVES, 0.9, 0.8), PALE),
            ]
    inner_x, inner_y = HALF_LENGTH - 1.2, HALF_DEPTH - 1.2
    parts += [
        (box((-inner_x, 21.0, 10.8), (inner_x, inner_y, 11.4)), WOOD),
        (box((-inner_x, 21.0, 11.4), (inner_x, 21.2, 12.4)), WOOD),
        (box((34, -6, FLOOR_HEIGHT), (40, 6, 4.4)), WOOD),
        (box((-30, -5, FLOOR_HEIGHT), (-28, 5, 3.4)), WOOD),
        (box((-24, -5, FLOOR_HEIGHT), (-22, 5, 3.4)), WOOD),
    ]
    return parts
