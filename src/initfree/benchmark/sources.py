"""Where observations come from: presets of the generator, and BAL files found by path."""

import json
import os
import re
from pathlib import Path, PurePath
from typing import Any

from initfree.benchmark.config import SetConfig
from initfree.errors import InputError
from initfree.generator.config import ColmapModel, Config
from initfree.generator.existing import find_model
from initfree.generator.presets import as_table, override
from initfree.generator.presets import load as load_generator
from initfree.io.bal import is_bal

OVERRIDDEN = ("cameras", "points", "density", "visibility", "track_angle")
"""fields of a set that are flags of the generator's configuration"""
_BAL_NAME = re.compile(r"(?:problem-)?(\d+)-\d+(?:-pre)?$")


def generator_config(one: SetConfig, shuffle: bool) -> Config:
    """The generator's configuration of a set."""
    chosen = {name: getattr(one, name) for name in OVERRIDDEN}
    return load_generator(one.name, **chosen, shuffle=shuffle or None)


def set_title(one: SetConfig) -> str:
    """What rows call a set."""
    return one.title or load_generator(one.name).name


def has_data(one: SetConfig) -> bool:
    """Whether the files that a set needs are on this machine."""
    try:
        scene = load_generator(one.name).scene
        if isinstance(scene, ColmapModel):
            find_model(scene.path)
            return True
        return not hasattr(scene, "path") or Path(scene.path).exists()  # type: ignore[union-attr]
    except InputError:
        return False


def definition(config: Config) -> str:
    """The configuration as JSON, for keys: files by their name alone, which every machine shares."""
    table = as_table(config)
    table.pop("description")
    for section in ("scene", "trajectory"):
        part: Any = table.get(section)
        if isinstance(part, dict) and part.get("path"):
            part["path"] = PurePath(part["path"]).name
    return json.dumps(table, sort_keys=True, separators=(",", ":"))


def densified(config: Config, min_obs: int) -> Config:
    """The same set with the generator's minimum raised; a target mean rises by as much."""
    raised = min_obs - config.density.min_observations
    mean = config.density.mean_observations
    return override(config, min_obs=min_obs, density=None if mean is None else mean + raised)


def bal_problems(data: Path | None) -> dict[str, Path]:
    """BAL files by name and number of cameras (ladybug-49), in a directory or its `bal`, or the one file."""
    if data is None:
        root = os.environ.get("INITFREE_DATA")
        if not root:
            raise InputError("which BAL files? Give a file or a directory of them with --data PATH, or set INITFREE_DATA")
        data = Path(root)
    if not data.exists():
        raise InputError(f"{data} does not exist; expected a BAL file or a directory of them")
    files = [data] if data.is_file() else [f for d in (data, data / "bal") if d.is_dir() for f in sorted(d.iterdir())]
    found = {_bal_name(file): file for file in files if is_bal(file) and _BAL_NAME.search(_stem(file))}
    if data.is_file() and not found:
        found = {_stem(data): data}
    if not found:
        raise InputError(f"{data} holds no BAL files; expected names such as ladybug-problem-49-7776-pre.txt.bz2")
    return dict(sorted(found.items()))


def _stem(file: Path) -> str:
    return file.name.split(".")[0]


def _bal_name(file: Path) -> str:
    """ladybug-problem-49-7776-pre -> ladybug-49; the dataset's directory names files that begin with "problem"."""
    stem = _stem(file)
    match = _BAL_NAME.search(stem)
    assert match is not None
    place = stem[: match.start()].strip("-") or file.parent.name
    return f"{place}-{match.group(1)}"
