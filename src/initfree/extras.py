"""Packages of the optional parts of the program."""

import json
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlparse

MODULES = {
    "view": ("viser",),
    "generate": ("pydantic", "pydantic_core", "embreex", "trimesh", "matplotlib", "PIL", "OpenEXR"),
    "sleap": ("h5py",),
    "video": ("av",),
    "bench": ("dask", "distributed", "filelock", "pyarrow", "pandas", "plotly"),
}
"""extra: the modules that its packages bring"""


def install(extra: str) -> str:
    """The line that installs an extra from where this copy comes: its clone, else a package index."""
    return f"pip install '{_origin()}[{extra}]'"


def _origin() -> str:
    """A clone that runs from its source, or that pip was pointed to (PEP 610); otherwise the name on an index."""
    clone = Path(__file__).resolve().parents[2]
    if (clone / "pyproject.toml").is_file():
        return str(clone)
    try:
        text = metadata.distribution("initfree").read_text("direct_url.json")
        found = Path(unquote(urlparse(json.loads(text or "{}").get("url", "")).path))
    except (metadata.PackageNotFoundError, ValueError, AttributeError):
        return "initfree"
    return str(found) if (found / "pyproject.toml").is_file() else "initfree"


def extra_of(module: str) -> str | None:
    """The extra that brings a module, "matplotlib.pyplot" as "matplotlib"; None where no extra does."""
    root = module.partition(".")[0]
    return next((extra for extra, modules in MODULES.items() if root in modules), None)


def missing_extra(error: ImportError, prog: str) -> str | None:
    """One sentence on what to install; None where the module that is missing belongs to no extra."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ModuleNotFoundError):
        cause = cause.__cause__
    extra = extra_of(cause.name or "") if cause is not None else None
    if cause is None or extra is None:
        return None
    # One install for all that a command stands on: bench brings generate's packages, view some of them.
    extra = "bench" if " bench" in prog else "view" if prog.endswith(" view") else extra
    return f"`{prog}` needs the package {cause.name}, which is not installed; expected: {install(extra)}"
