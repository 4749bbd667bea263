"""Benchmark data by path: the directory that INITFREE_DATA names. Nothing of it is in the project."""

import os
import sys
from pathlib import Path


def data_directory() -> Path:
    """INITFREE_DATA, or an end with a sentence that says what is missing."""
    value = os.environ.get("INITFREE_DATA")
    if not value or not Path(value).is_dir():
        sys.exit("set INITFREE_DATA to the directory that holds bal/, real/ and south_building/")
    return Path(value)


def bal_file(name: str) -> Path:
    """`name` as in dubrovnik-16: the first problem of that name with that many cameras."""
    place, cameras = name.rsplit("-", 1)
    found = sorted((data_directory() / "bal").glob(f"{place}-problem-{cameras}-*"))
    if not found:
        sys.exit(f"no {place} problem with {cameras} cameras in {data_directory() / 'bal'}")
    return found[0]
