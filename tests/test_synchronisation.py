"""Cameras out of step: the offset is found to a few hundredths of a frame, and nobody else is accused."""

import json

import pytest
from rooms import Room, room
from test_alignment import exit_code

import initfree

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def fast() -> Room:
    """A light that crosses images at some 12 px a frame."""
    return room(
        "walls", seed=3, frames=400, cameras=8, speed=0.3, wrong=0.01,
        focal_off=0.0, principal_point_off=0.0, distortion_given="true",
    )  # fmt: skip


@pytest.mark.parametrize("frames", [-0.5, 1.0, -3.4])
def test_the_offset_of_a_camera_is_found_whether_it_was_left_out_or_not(fast, frames):
    result = initfree.solve(fast.out_of_step(2, frames).problem("known"))
    found = result.synchronisation()
    assert {name for name, offset in found.items() if offset.significant} == {"cam02"}
    assert found["cam02"].frames == pytest.approx(frames, abs=0.04)
    assert found["cam02"].deviation < 0.02
    assert all(abs(offset.frames) < 0.02 for name, offset in found.items() if name != "cam02")


def test_an_offset_that_refined_intrinsics_take_in_is_told_though_too_small(fast):
    result = initfree.solve(fast.out_of_step(2, 0.2).problem("known"))
    found = result.synchronisation()
    assert {name for name, offset in found.items() if offset.significant} == {"cam02"}
    assert 0.0 < found["cam02"].frames < 0.25


def test_an_offset_too_small_to_move_a_camera_out_is_found_too(fast):
    """Refined intrinsics absorb part of it."""
    result = initfree.solve(fast.out_of_step(2, 0.12).problem("known"))
    assert result.accepted
    found = result.synchronisation()
    assert {name for name, offset in found.items() if offset.significant} == {"cam02"}
    assert 0.04 < found["cam02"].frames < 0.15


def test_in_step_nobody_is_named_and_points_without_frames_tell_nothing(fast):
    result = initfree.solve(fast.problem("known"))
    assert not any(offset.significant for offset in result.synchronisation().values())
    assert len(result.synchronisation()) == 8
    problem = initfree.Problem.from_tracks(fast.cam, fast.frame, fast.xy, cameras=list(fast.given))
    assert initfree.solve(problem).synchronisation() == {}


def test_the_command_names_the_camera(fast, tmp_path, capsys):
    """From a table, intrinsics unknown, one frame out of step."""
    table = fast.out_of_step(2, 1.0).write_table(tmp_path / "late.csv")
    assert exit_code("solve", table, "--output", tmp_path / "out") in (0, 3)
    assert "cam02" in capsys.readouterr().out
    assert "synchronisation" in json.loads((tmp_path / "out" / "run.json").read_text())


def test_a_camera_that_was_turned_is_named_with_its_frame(fast):
    """Two degrees from frame 250 on; the light is slow against that."""
    result = initfree.solve(fast.touched(4, 250, 2.0).problem("known"))
    moved = {one.name: one.moved for one in result.cameras if one.moved is not None}
    assert moved == {"cam04": "250"}
    assert not any(offset.significant for offset in result.synchronisation().values())
