"""`initfree generate`: a dataset from a preset or a TOML file."""

from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from initfree.commands.options import OptionalOutput
from initfree.errors import InputError


def generate(
    config: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="NAME_OR_CONFIG.toml")] = None,
    /,
    output: OptionalOutput = None,
    seed: int = 0,
    noise: float | None = None,
    outliers: float | None = None,
    merged: float | None = None,
    density: float | None = None,
    landmark_share: float | None = None,
    observation_share: float | None = None,
    min_obs: int | None = None,
    cameras: int | None = None,
    points: int | None = None,
    model: str | None = None,
    width: int | None = None,
    height: int | None = None,
    focal: float | None = None,
    k1: float | None = None,
    focal_variation: float | None = None,
    rotation_noise: float | None = None,
    translation_noise: float | None = None,
    landmark_noise: float | None = None,
    shuffle: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    render: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    backend: Literal["raycast", "blender"] | None = None,
    engine: Literal["cycles", "workbench", "eevee"] | None = None,
    samples: int | None = None,
    depth: Literal["exr", "png"] | None = None,
    database: bool = True,
    list: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
) -> int:
    """Generate a structure-from-motion problem with exact ground truth.

    Args:
        config: A preset (see --list) or a TOML file; the flags below override its values.
        output: Directory to write into.
        seed: Same seed and parameters, same files.
        noise: Standard deviation of the pixel noise.
        outliers: Share of observations that are wrong matches between real keypoints.
        merged: Share of tracks merged with a track of unrelated images (repeated structure).
        density: Target mean of observations a landmark.
        landmark_share: Share of the landmarks to keep.
        observation_share: Share of the observations to keep.
        min_obs: Fewest observations a landmark may have.
        cameras: Number of cameras.
        points: Number of landmarks.
        model: COLMAP camera model.
        width: Image width, pixels.
        height: Image height, pixels.
        focal: Focal length, pixels.
        k1: First radial distortion term.
        focal_variation: Vary the focal length from image to image by up to this share.
        rotation_noise: Initial orientations in noisy/0, degrees.
        translation_noise: Initial camera centres in noisy/0, scene units.
        landmark_noise: Initial landmarks in noisy/0, scene units.
        shuffle: List the cameras in random order instead of along the trajectory.
        render: Write images and depth maps.
        backend: What renders: the built-in ray caster (default), or Blender (`initfree blender setup`).
        engine: Blender's engine: cycles (default; exact distortion, on the CPU), workbench (fast depth of pinhole
            cameras, with OpenGL), eevee (pictures of pinhole cameras, with a GPU).
        samples: Samples a pixel of Blender's pictures.
        depth: Format of the depth maps: single-precision EXR (default) or 16-bit PNG in hundredths.
        database: Write database.db for COLMAP's own mappers.
        list: Show the presets.
    """
    given = dict(locals())
    # Imported here so that the other commands start without the generator's libraries.
    from initfree.generator import generate as make
    from initfree.generator import presets, write
    from initfree.generator.presets import OVERRIDES

    console = Console(markup=False)
    if list:
        table = Table(box=None, pad_edge=False)
        table.add_column("preset", style="bold")
        table.add_column("what it is")
        for name, preset in presets().items():
            table.add_row(name, preset.description)
        console.print(table)
        return 0
    if config is None:
        raise InputError("what to generate? Give a preset's name or a TOML file (initfree generate --list)")
    if output is None:
        raise InputError(f"where to? Add --output DIR to `initfree generate {config}`")
    idle = next((flag for flag in ("backend", "engine", "samples", "depth") if given[flag] is not None), None)
    if idle and not render:
        raise InputError(f"--{idle} {given[idle]} is about images and depth maps; expected --render with it")
    overrides = {flag: value for flag, value in given.items() if flag in OVERRIDES and value is not False}
    with console.status("visibility") as status:
        dataset = make(config, seed, **overrides)
        written = write(
            dataset,
            output,
            database=database,
            render=render,
            progress=status.update,
        )
    figures = written["statistics"]
    console.print(
        f"{output}: {figures['cameras']} cameras, {figures['landmarks']} landmarks, "
        f"{figures['observations']} observations "
        f"({figures['observations_a_landmark']['mean']:.2f} a landmark), "
        f"{figures['covisibility']['connected_components']} connected component(s)"
    )
    return 0
