"""Named configurations: plain TOML files beside this one, to copy and edit."""

import dataclasses
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from initfree.errors import InputError
from initfree.generator.config import ColmapModel, Config
from initfree.generator.presets import files

_DIRECTORY = Path(__file__).parent

OVERRIDES = {
    "noise": "degradation",
    "outliers": "degradation",
    "merged": "degradation",
    "equal": "degradation",
    "rotation_noise": "degradation",
    "translation_noise": "degradation",
    "landmark_noise": "degradation",
    "density": "density.mean_observations",
    "landmark_share": "density",
    "observation_share": "density",
    "image_share": "density",
    "track_angle": "density",
    "visibility": "visibility.kind",
    "min_obs": "density.min_observations",
    "cameras": "trajectory",
    "points": "scene.landmarks",
    "model": "camera",
    "width": "camera",
    "height": "camera",
    "focal": "camera",
    "k1": "camera",
    "focal_variation": "camera",
    "focal_drift": "camera",
    "shutter": "adversity",
    "joint_share": "adversity",
    "joint_scale": "adversity",
    "joint_random": "adversity",
    "wrong_pairs": "adversity",
    "still": "adversity",
    "waves": "adversity",
    "mirrored": "adversity",
    "noise_ratio": "adversity",
    "heavy": "adversity",
    "backend": "render",
    "engine": "render",
    "samples": "render",
    "depth": "render",
    "shuffle": "",
}
"""Flag -> table of the configuration (with the field's name where it differs from the flag's). Those of cameras that change
and of adversities are for Python alone: the presets adversarial-* have them."""


def presets() -> dict[str, Config]:
    """All presets by name, in order."""
    return {path.stem: load(path.stem) for path in sorted(_DIRECTORY.glob("*.toml"))}


def load(name_or_path: str | Path, **overrides: Any) -> Config:
    """The preset of that name, or the configuration in that TOML or .blend file, with flags laid over it.

    Paths inside a TOML file are relative to it. A .blend file holds what the panel initfree saved in it.
    """
    path = files.find(_DIRECTORY, name_or_path)
    if path.suffix == ".blend":
        from initfree.generator.blender.scene import settings_of

        table = files.parse(settings_of(path), path)
        table["scene"] = {**table.get("scene", {}), "path": path.name}
    else:
        table = files.read(path)
    for section in ("scene", "trajectory"):
        value = table.get(section)
        if isinstance(value, dict) and isinstance(value.get("path"), str):
            value["path"] = str(path.parent / value["path"])
    return override(_parse(table, str(path)), **overrides)


def override(config: Config, **overrides: Any) -> Config:
    """The same configuration with these flags (names of OVERRIDES; None leaves a field alone)."""
    chosen = {flag: value for flag, value in overrides.items() if value is not None}
    unknown = sorted(set(chosen) - set(OVERRIDES))
    if unknown:
        raise InputError(f"unknown parameter {unknown[0]}; expected one of {', '.join(OVERRIDES)}")
    if not chosen:
        return config
    table = TypeAdapter(Config).dump_python(config)
    for flag, value in chosen.items():
        section, _, name = OVERRIDES[flag].partition(".")
        if isinstance(config.scene, ColmapModel) and section in ("scene", "trajectory", "camera"):
            raise InputError(f"{flag} = {value}: {config.name} is an existing COLMAP model and brings its own")
        target = table[section] if section else table
        if target is None or (name or flag) not in target:
            raise InputError(f"{flag} = {value}: the {section} of {config.name} has no such parameter")
        target[name or flag] = value
    return _parse(table, config.name)


def as_table(config: Config) -> dict[str, Any]:
    """The configuration as plain JSON values."""
    return TypeAdapter(Config).dump_python(config, mode="json")


def _parse(table: dict[str, Any], source: str) -> Config:
    try:
        config = TypeAdapter(Config).validate_python(table)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        value = "" if first["type"] == "missing" else f" = {_shown(first['input'])}"
        raise InputError(f"{source}: {where}{value}: {first['msg']}") from error
    if config.trajectory is None and not isinstance(config.scene, ColmapModel):
        raise InputError(f"{source}: no trajectory; expected a table [trajectory] with a kind")
    if config.render.engine != "cycles" and config.render.backend != "blender":
        raise InputError(f"{source}: engine = {config.render.engine} is Blender's; expected backend = blender with it")
    return config


def _shown(value: object) -> str:
    plain = dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value  # type: ignore[call-overload]
    text = repr(plain)
    return text if len(text) <= 60 else f"{text[:57]}..."
