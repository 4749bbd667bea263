"""Parts that are joined along a line, at a spot, or all over a wall."""

import numpy as np
import pytest

from initfree.certificate.hinge import thinnest_hinge
from initfree.data.tracks import Array, Tracks


def two_parts(shape: Array, wrong: int = 0) -> tuple[Tracks, Array]:
    """Two groups of six cameras with 150 landmarks each, and 20 between them that two of each see, all over a box."""
    rng = np.random.default_rng(5)
    groups = np.arange(6), np.arange(6, 12)
    own = [np.sort(rng.choice(group, 3, replace=False)) for group in groups for _ in range(150)]
    joining = [np.sort(np.concatenate([rng.choice(group, 2, replace=False) for group in groups])) for _ in range(20)]
    middles = np.repeat([[-10.0, 0.0, 0.0], [10.0, 0.0, 0.0]], 150, axis=0)
    between = shape * rng.uniform(-0.5, 0.5, (20, 3))
    between[:wrong] += rng.normal(scale=3.0, size=(wrong, 3))
    cams = own + joining
    tracks = Tracks(np.concatenate(cams), np.concatenate([[0], np.cumsum([len(c) for c in cams])]), 12)
    return tracks, np.concatenate([middles + rng.normal(scale=2.0, size=(300, 3)), between])


@pytest.mark.parametrize(
    ("shape", "wrong", "words"),
    [((0.05, 0.05, 8.0), 0, "along a line"), ((0.05, 0.05, 8.0), 1, "along a line"), ((0.1, 0.1, 0.1), 0, "at a spot")],
)
def test_parts_that_turn_about_what_joins_them_are_found(shape: tuple[float, float, float], wrong: int, words: str):
    tracks, xyz = two_parts(np.array(shape), wrong)
    hinge = thinnest_hinge(tracks, np.ones(tracks.observations, dtype=bool), xyz)
    assert hinge.hold < 1.0
    assert hinge.shape == words
    assert hinge.joining == 20
    assert set(np.flatnonzero(hinge.smaller)) in ({0, 1, 2, 3, 4, 5}, {6, 7, 8, 9, 10, 11})


def test_a_wall_holds_what_it_joins_whatever_its_scale():
    tracks, xyz = two_parts(np.array([1.0, 6.0, 6.0]))
    counts = np.ones(tracks.observations, dtype=bool)
    hinge = thinnest_hinge(tracks, counts, xyz)
    assert hinge.hold > 2.0
    assert thinnest_hinge(tracks, counts, 1e4 * xyz + 7.0).hold == pytest.approx(hinge.hold)
