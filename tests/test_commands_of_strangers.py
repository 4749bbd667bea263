"""Whole commands on models of strangers: what the readers let through must not end in a traceback later."""

import shutil
from pathlib import Path

import pycolmap
import pytest
from commanding import run, write_ring

from initfree.drawing.check_page import check_page
from initfree.drawing.residual_figures import residual_figures
from initfree.io.run_json import plain
from initfree.models.check import check
from initfree.models.report import scene_of_check
from initfree.models.witnesses import Witness

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_ring(tmp_path_factory.mktemp("model"))


@pytest.fixture
def damaged(model, tmp_path) -> Path:
    """A model of which one image is a light year away."""
    path = Path(shutil.copytree(model, tmp_path / "damaged"))
    found = pycolmap.Reconstruction(str(path))
    frame = found.images[min(found.images)].frame
    assert frame is not None
    frame.rig_from_world = pycolmap.Rigid3d(pycolmap.Rotation3d(), [1e200, 0.0, 0.0])
    found.write_text(str(path))
    return path


def test_every_command_refuses_a_pose_that_cannot_be_computed_with(model, damaged, tmp_path, capsys):
    out = tmp_path / "out"
    assert run("evaluate", damaged, model) == 2
    assert run("evaluate", model, damaged) == 2
    assert run("check", damaged, "--output", out) == 2
    assert run("adjust", damaged, "--output", out) == 2
    assert run("convert", damaged, out) == 2
    assert run("view", damaged, "--export", tmp_path / "page.html") == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 6
    assert all(str(damaged) in line and "1e+200" in line for line in told)
    assert not out.exists()


def test_a_weight_that_is_no_number_refuses(model):
    """A model whose observations miss by infinitely much weighs as much; JSON has no number for that."""
    assert Witness("one", float("nan"), "").refuses
    assert Witness("one", float("inf"), "").refuses
    assert not Witness("one", 0.99, "").refuses
    found = check(model)
    told = plain(found.to_dict())
    told["witnesses"][-1]["weight"] = None
    page = check_page(told, scene_of_check(found, 100), residual_figures(found.problem, found.reconstruction))
    assert told["witnesses"][-1]["sentence"] in page
