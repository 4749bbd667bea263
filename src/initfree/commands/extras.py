"""Packages of the optional parts of the program."""

MODULES = {
    "view": ("viser",),
    "generate": ("pydantic", "pydantic_core", "embreex", "trimesh", "matplotlib", "PIL", "OpenEXR"),
    "sleap": ("h5py",),
    "video": ("av",),
    "bench": ("dask", "distributed", "filelock", "pyarrow", "pandas", "plotly"),
}
"""extra: the modules that its packages bring"""


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
    return f"`{prog}` needs the package {cause.name}, which is not installed; expected: pip install 'initfree[{extra}]'"
