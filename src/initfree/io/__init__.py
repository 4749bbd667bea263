"""Readers and writers, one format a file.

`io.NAME` imports a reader when it is first asked for: an input has one format, and to load the readers of all takes longer
than to read a small one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from initfree.io import (
        bal,
        bundler,
        caliscope,
        database,
        deeplabcut,
        idiap,
        kapture,
        metashape,
        multicamselfcal,
        nerfstudio,
        nvm,
        openmvg,
        openpose,
        opensfm,
        sleap,
        table,
    )

__all__ = [
    "bal",
    "bundler",
    "caliscope",
    "database",
    "deeplabcut",
    "idiap",
    "kapture",
    "metashape",
    "multicamselfcal",
    "nerfstudio",
    "nvm",
    "openmvg",
    "openpose",
    "opensfm",
    "sleap",
    "table",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'initfree.io' has no attribute {name!r}")
    return import_module(f"initfree.io.{name}")
