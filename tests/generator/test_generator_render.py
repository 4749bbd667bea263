"""Rendering: depth maps agree with the landmarks, files can be read back."""

from dataclasses import replace

import numpy as np
import OpenEXR
import pytest
from PIL import Image

from initfree.errors import InputError
from initfree.generator import generate, load, write
from initfree.generator.presets import override
from initfree.generator.render import Rendering, render, save
from initfree.generator.scenes import Surface
from initfree.generator.scenes.solids import box
from initfree.generator.visibility import RayCaster

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("k1", [0.0, -0.12])
def test_depth_at_a_keypoint_is_the_landmarks_depth(k1):
    dataset = generate("set1", seed=0, k1=k1, density=5)
    picture = render(dataset.surface, RayCaster(dataset.surface), dataset.cameras[0], dataset.poses, 5)
    rows = np.flatnonzero(dataset.observations.image == 5)
    pixels = dataset.observations.pixel[rows].astype(int)
    found = picture.depth[pixels[:, 1], pixels[:, 0]]
    local = dataset.landmarks[dataset.observations.landmark[rows]] @ dataset.poses.rotations[5, 2]
    expected = local + dataset.poses.translations[5, 2]
    # A keypoint is up to half a pixel from the pixel's centre, and some sit at an edge.
    assert np.mean(np.abs(found - expected) < 0.01 * expected) > 0.9
    assert picture.image.shape == (480, 640, 3)
    assert (picture.depth == 0).mean() > 0.05
    assert picture.image[picture.depth > 0].std() > 20


def test_rendered_files(tmp_path):
    config = load("set7", points=300, width=96, height=72, focal=63.0)
    dataset = generate(config, seed=0)
    write(dataset, tmp_path / "exr", database=False, figures=False, render=True)
    write(generate(override(config, depth="png"), seed=0), tmp_path / "png", database=False, figures=False, render=True)
    assert len(list((tmp_path / "exr" / "images").iterdir())) == 20
    exact = OpenEXR.File(str(tmp_path / "exr" / "depth" / "0003.exr")).channels()["Z"].pixels
    coarse = np.array(Image.open(tmp_path / "png" / "depth" / "0003.png"))
    assert coarse.dtype == np.uint16
    assert np.abs(coarse / 100 - exact).max() <= 0.005 + 1e-4
    with Image.open(tmp_path / "exr" / "images" / "0003.png") as picture:
        assert picture.size == (96, 72)


def test_a_depth_beyond_sixteen_bits_is_refused(tmp_path):
    far = Rendering(np.zeros((2, 2, 3), np.uint8), np.full((2, 2), 700.0, np.float32))
    with pytest.raises(InputError, match=r"655\.35"):
        save(far, tmp_path / "a.png", tmp_path / "b.png")


def test_solids_with_equal_places_in_the_pattern_look_the_same():
    vertices, faces = box((0.0, 0.0, 0.0), (1.0, 2.0, 3.0))
    both = np.concatenate([vertices, vertices + np.array([20.0, 5.0, 0.0])])
    surface = Surface(
        both, np.concatenate([faces, faces + len(vertices)]), np.full((2 * len(faces), 3, 3), 180, np.uint8), textured=True,
        pattern=np.concatenate([vertices, vertices]),
    )  # fmt: skip
    weights = np.random.default_rng(0).dirichlet(np.ones(3), len(faces))
    first, second = (
        surface.color_at(np.einsum("nk,nkd->nd", weights, surface.corners[which]), which, weights)
        for which in (np.arange(len(faces)), len(faces) + np.arange(len(faces)))
    )
    assert np.array_equal(first, second)
    elsewhere = replace(surface, pattern=None)
    where = len(faces) + np.arange(len(faces))
    other = elsewhere.color_at(np.einsum("nk,nkd->nd", weights, surface.corners[where]), where, weights)
    assert not np.array_equal(first, other)
