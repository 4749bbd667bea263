"""Photographs for tests: the generator renders them, from a ring around the courthouse."""

from pathlib import Path

from initfree.generator import generate, write

CAMERAS = 16


def render(folder: Path) -> Path:
    """`folder`/images, of 640 x 480 pixels, and the truth in `folder`/sparse/0."""
    dataset = generate("set1", seed=0, cameras=CAMERAS, points=1000, density=4.0, width=640, height=480, focal=600.0)
    write(dataset, folder, render=True, figures=False, database=False)
    return folder
