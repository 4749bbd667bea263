"""Trajectories: positions, look-at rules, curves, pose files."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from initfree.errors import InputError
from initfree.generator import generate, write
from initfree.generator.config import Courthouse, Curve, Grid, Lateral, LookAt, Orbit, PoseFile, Ring, Rings
from initfree.generator.pose_files import read_poses
from initfree.generator.trajectories import poses, positions

CENTRE = np.array([1.0, 2.0, 3.0])


def along(trajectory, seed=0):
    return poses(trajectory, Courthouse(), CENTRE, seed)


def test_cameras_look_where_told_and_stand_upright():
    for look_at, expected in (
        (LookAt(), lambda c: CENTRE - c),
        (LookAt(kind="point", point=(9.0, 0.0, 1.0)), lambda c: np.array([9.0, 0.0, 1.0]) - c),
        (LookAt(kind="away"), lambda c: c - CENTRE),
        (LookAt(kind="parallel", direction=(0.0, 2.0, 0.0)), lambda c: np.tile([0.0, 1.0, 0.0], (len(c), 1))),
        (LookAt(kind="path"), lambda c: np.column_stack([-c[:, 1], c[:, 0], 0 * c[:, 0]])),
    ):
        made = along(Rings("rings", 9, (Ring(20.0, 5.0),), look_at=look_at))
        forward = expected(made.centres)
        forward /= np.linalg.norm(forward, axis=1, keepdims=True)
        assert np.abs(made.rotations[:, 2] - forward).max() < 1e-9
        assert np.abs(made.rotations @ np.swapaxes(made.rotations, 1, 2) - np.eye(3)).max() < 1e-12
        assert np.allclose(np.linalg.det(made.rotations), 1)
        # The image's x axis is level and its y axis points down.
        assert np.abs(made.rotations[:, 0, 2]).max() < 1e-12
        assert (made.rotations[:, 1, 2] < 0).all()


def test_rings_share_out_cameras_and_arcs_end_on_their_ends():
    centres, _ = positions(Rings("rings", 7, (Ring(10.0, 1.0), Ring(20.0, 2.0, start=90.0, arc=180.0))))
    assert np.allclose(np.linalg.norm(centres[:, :2], axis=1), [10] * 4 + [20] * 3)
    assert np.allclose(centres[4:, :2], [[0, 20], [-20, 0], [0, -20]])


def test_orbit_lateral_and_grid():
    orbit, _ = positions(Orbit("orbit", 40, 30.0, (5.0, 15.0), waves=2.0))
    assert (orbit[:, 2].min(), orbit[:, 2].max()) == pytest.approx((5.0, 15.0), abs=0.1)
    lateral, _ = positions(Lateral("lateral", 5, (0.0, 0.0, 0.0), (4.0, 0.0, 0.0)))
    assert np.allclose(lateral[:, 0], range(5))
    grid = along(Grid("grid", 12, (40.0, 30.0), 50.0))
    assert len(np.unique(grid.centres[:, 1].round(6))) == 3
    assert np.allclose(grid.rotations[:, 2], [0, 0, -1])
    # To and fro: neighbours in the file are neighbours in the air.
    assert np.linalg.norm(np.diff(grid.centres, axis=0), axis=1).max() < 11


def test_curves_pass_through_their_points_at_even_spacing():
    corners = ((0.0, 0.0, 1.0), (10.0, 0.0, 2.0), (10.0, 10.0, 3.0), (0.0, 10.0, 4.0))
    centres, _tangents = positions(Curve("curve", 400, corners))
    for corner in corners:
        assert np.linalg.norm(centres - corner, axis=1).min() < 0.05
    steps = np.linalg.norm(np.diff(centres, axis=0), axis=1)
    assert np.ptp(steps) < 1e-3 * steps.mean()
    assert np.allclose(centres[[0, -1]], [corners[0], corners[-1]])
    closed, _ = positions(Curve("curve", 100, corners, closed=True))
    assert np.linalg.norm(closed[0] - closed[-1]) == pytest.approx(np.linalg.norm(closed[1] - closed[0]), rel=0.01)
    straight, travel = positions(Curve("curve", 3, ((0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)), "bezier"))
    assert np.allclose(straight[:, 0], [0, 1.5, 3])
    assert np.allclose(travel / np.linalg.norm(travel, axis=1, keepdims=True), [1, 0, 0])
    with pytest.raises(InputError, match="bezier curve of 5 points"):
        positions(Curve("curve", 3, (*corners, corners[0]), "bezier"))
    with pytest.raises(InputError, match="no length"):
        positions(Curve("curve", 3, (corners[0], corners[0])))


def test_jitter_is_seeded_and_of_its_size():
    calm = Rings("rings", 400, (Ring(50.0, 5.0),))
    jumpy = Rings("rings", 400, (Ring(50.0, 5.0),), jitter=2.0)
    shift = along(jumpy, 1).centres - along(calm, 1).centres
    assert shift.std() == pytest.approx(2.0, rel=0.1)
    assert np.array_equal(along(jumpy, 1).centres, along(jumpy, 1).centres)
    assert not np.array_equal(along(jumpy, 1).centres, along(jumpy, 2).centres)


def test_poses_from_colmap_and_tum_files(tmp_path):
    dataset = generate("thin2", seed=0)
    write(dataset, tmp_path / "set", database=False, figures=False)
    colmap = read_poses(tmp_path / "set" / "sparse" / "0")
    assert np.allclose(colmap.centres, dataset.poses.centres)
    quaternions = Rotation.from_matrix(dataset.poses.rotations).inv().as_quat()
    stamps = np.arange(len(dataset.poses))
    np.savetxt(tmp_path / "tum.txt", np.column_stack([stamps, dataset.poses.centres, quaternions]))
    tum = along(PoseFile("poses", tmp_path / "tum.txt"))
    assert np.allclose(tum.rotations, dataset.poses.rotations)
    assert np.allclose(tum.centres, dataset.poses.centres)
    (tmp_path / "bad.txt").write_text("1 2 3\n")
    with pytest.raises(InputError, match="lines of 3 numbers"):
        read_poses(tmp_path / "bad.txt")
    with pytest.raises(InputError, match="no file or directory"):
        read_poses(tmp_path / "absent.txt")
