"""The command line in a test's own process, and a small model to give it."""

from pathlib import Path

import pytest
from models import to_reconstruction
from synthetic import ring

from initfree.commands.cli import main


def run(*arguments: object) -> int:
    """The exit code."""
    with pytest.raises(SystemExit) as stop:
        main([str(a) for a in arguments])
    return int(stop.value.code or 0)


def write_ring(directory: Path) -> Path:
    """Ten cameras around 150 landmarks, as a COLMAP model."""
    to_reconstruction(ring(cameras=10, landmarks=150, min_observations=3)).write_text(str(directory))
    return directory
