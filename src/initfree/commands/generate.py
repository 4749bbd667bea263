"""`initfree generate`: a dataset from a preset or a TOML file."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console
from rich.table import Table

from initfree.commands.options import OptionalOutput, Overwrite
from initfree.drawing.verdict import counted
from initfree.errors import InputError

Flag = tyro.conf.FlagCreatePairsOff


@dataclass(frozen=True)
class Parameters:
    """Values of the preset or the TOML file to override."""

    noise: float | None = None
    """Standard deviation of the pixel noise."""
    outliers: float | None = None
    """Share of observations that are wrong matches between real keypoints."""
    merged: float | None = None
    """Share of tracks merged with a track of unrelated images (repeated structure)."""
    density: float | None = None
    """Target mean of observations a landmark."""
    landmark_share: float | None = None
    """Share of the landmarks to keep."""
    observation_share: float | None = None
    """Share of the observations to keep."""
    image_share: float | None = None
    """Share of what an image sees that it keeps, exactly."""
    visibility: Literal["surface", "frustum"] | None = None
    """Who sees a landmark: cameras that no surface hides it from, or all that have it in their image (frustum)."""
    min_obs: int | None = None
    """Fewest observations a landmark may have."""
    cameras: int | None = None
    """Number of cameras."""
    points: int | None = None
    """Number of landmarks."""
    model: str | None = None
    """COLMAP camera model."""
    width: int | None = None
    """Image width, pixels."""
    height: int | None = None
    """Image height, pixels."""
    focal: float | None = None
    """Focal length, pixels."""
    k1: float | None = None
    """First radial distortion term."""
    focal_variation: float | None = None
    """Vary the focal length from image to image by up to this share."""
    rotation_noise: float | None = None
    """Initial orientations in noisy/0, degrees."""
    translation_noise: float | None = None
    """Initial camera centres in noisy/0, scene units."""
    landmark_noise: float | None = None
    """Initial landmarks in noisy/0, scene units."""
    shuffle: Flag[bool] = False
    """List the cameras in random order instead of along the trajectory."""


@dataclass(frozen=True)
class Rendering:
    """How images and depth maps are made."""

    backend: Literal["raycast", "blender"] | None = None
    """What renders: the built-in ray caster (default), or Blender (`initfree blender setup`)."""
    engine: Literal["cycles", "workbench", "eevee"] | None = None
    """Blender's engine: cycles (default; exact distortion, on the CPU), workbench (fast depth of pinhole cameras, with
    OpenGL), eevee (pictures of pinhole cameras, with a GPU)."""
    samples: int | None = None
    """Samples a pixel of Blender's pictures."""
    depth: Literal["exr", "png"] | None = None
    """Format of the depth maps: single-precision EXR (default) or 16-bit PNG in hundredths."""


def generate(
    config: Annotated[
        str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME_OR_CONFIG.toml", help_behavior_hint="")
    ] = None,
    /,
    *,
    output: OptionalOutput = None,
    seed: int = 0,
    parameters: tyro.conf.OmitArgPrefixes[Parameters],
    render: Flag[bool] = False,
    rendering: tyro.conf.OmitArgPrefixes[Rendering],
    database: bool = True,
    list: Flag[bool] = False,
    overwrite: Overwrite = False,
) -> int:
    """Generate a structure-from-motion problem with exact ground truth.

    Example: initfree generate set1 --output problem --noise 0.5 --seed 1

    Args:
        config: A preset (see --list) or a TOML file; the flags below override its values.
        output: Directory to write into.
        seed: Same seed and parameters, same files.
        render: Write images and depth maps.
        database: Write database.db for COLMAP's own mappers.
        list: Show the presets.
        overwrite: Replace in OUTPUT also what was not generated, or what was changed since.
    """
    if list:
        _list_presets()
        return 0
    if config is None:
        raise InputError("what to generate? Give a preset's name or a TOML file (initfree generate --list)")
    if output is None:
        raise InputError(f"where to? Add --output DIR to `initfree generate {config}`")
    idle = next(((flag, value) for flag, value in asdict(rendering).items() if value is not None), None)
    if idle and not render:
        raise InputError(f"--{idle[0]} {idle[1]} is about images and depth maps; expected --render with it")
    overrides = {flag: value for flag, value in {**asdict(parameters), **asdict(rendering)}.items() if value is not False}
    figures = _write(config, output, seed, overrides, render=render, database=database, overwrite=overwrite)
    made = [counted(figures[f"{what}s"], what) for what in ("camera", "landmark", "observation")]
    parts = counted(figures["covisibility"]["connected_components"], "connected part")
    each = figures["observations_a_landmark"]["mean"]
    Console(highlight=False, markup=False, emoji=False).print(
        f"written: {output}: {', '.join(made)} ({each:.2f} a landmark), {parts}", soft_wrap=True
    )
    return 0


def _list_presets() -> None:
    # Imported here, as below, so that the other commands start without the generator's libraries.
    from initfree.generator import presets

    table = Table(box=None, pad_edge=False)
    table.add_column("preset", style="bold")
    table.add_column("what it is")
    for name, preset in presets().items():
        table.add_row(name, preset.description)
    Console(markup=False, emoji=False).print(table)


def _write(config: str, output: Path, seed: int, overrides: dict[str, Any], **how: bool) -> dict[str, Any]:
    """Generate and write the dataset; its statistics."""
    from initfree.generator import generate, write

    with Console(markup=False, emoji=False).status("visibility") as status:
        dataset = generate(config, seed, **overrides)
        return write(dataset, output, **how, progress=status.update)["statistics"]
