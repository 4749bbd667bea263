"""Rotations of all cameras from those of pairs."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from initfree.evaluation import rotation_errors
from initfree.formulations.pose_rot import RelativeRotations
from initfree.two_view.averaging import averaged_rotations, turned_cameras


def chain(cameras: int, noise: float, wrong: float, seed: int = 0) -> tuple[np.ndarray, RelativeRotations]:
    """True rotations, and relative ones between each camera and the four after it, around a loop; k > l as everywhere."""
    rng = np.random.default_rng(seed)
    R = Rotation.random(cameras, random_state=seed).as_matrix()
    ends = np.array([(k, (k + step) % cameras) for k in range(cameras) for step in range(1, 5)])
    pairs = np.unique(np.sort(ends, axis=1)[:, ::-1], axis=0)
    k, l = pairs.T
    turn = Rotation.from_rotvec(np.radians(noise) * rng.normal(size=(len(pairs), 3))).as_matrix()
    relative = turn @ R[k] @ R[l].transpose(0, 2, 1)
    bad = rng.uniform(size=len(pairs)) < wrong
    relative[bad] = Rotation.random(int(bad.sum()), random_state=seed + 1).as_matrix()
    return R, RelativeRotations(pairs, relative, rng.uniform(20.0, 60.0, len(pairs)))


@pytest.mark.parametrize("cameras", [8, 60, 700])
def test_exact_rotations_of_pairs_give_exact_rotations_of_cameras(cameras):
    R, relative = chain(cameras, 0.0, 0.0)
    found = averaged_rotations(relative, cameras)
    np.testing.assert_allclose(found @ found.transpose(0, 2, 1), np.broadcast_to(np.eye(3), found.shape), atol=1e-9)
    np.testing.assert_allclose(np.linalg.det(found), 1.0)
    assert rotation_errors(found, R).max() < 1e-4


def test_wrong_pairs_do_not_pull_the_others_along():
    R, relative = chain(120, 0.5, 0.15)
    errors = rotation_errors(averaged_rotations(relative, 120), R)
    assert np.median(errors) < 3.0
    assert np.quantile(errors, 0.99) < 8.0


def test_neither_the_order_of_cameras_nor_their_world_changes_what_is_found():
    _, relative = chain(50, 1.0, 0.05)
    order = np.random.default_rng(3).permutation(50)
    place = np.argsort(order)
    ends = place[relative.pairs]
    turned = ends[:, 0] < ends[:, 1]
    shuffled = RelativeRotations(
        np.sort(ends, axis=1)[:, ::-1],
        np.where(turned[:, None, None], relative.R.transpose(0, 2, 1), relative.R),
        relative.weight,
    )
    first, second = averaged_rotations(relative, 50), averaged_rotations(shuffled, 50)
    assert rotation_errors(second[place], first).max() < 1e-2


def test_pairs_that_leave_cameras_apart_give_nothing():
    _, relative = chain(20, 0.0, 0.0)
    assert averaged_rotations(relative, 21) is None
    assert turned_cameras(relative, 21) is None


def test_first_cameras_have_the_origin_a_unit_before_them():
    _, relative = chain(20, 0.0, 0.0)
    P = turned_cameras(relative, 20)
    np.testing.assert_array_equal(P[:, :, 3], np.broadcast_to([0.0, 0.0, 1.0], (20, 3)))
