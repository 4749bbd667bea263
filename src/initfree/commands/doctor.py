"""`initfree doctor`: what is installed, what is missing, and how to get it."""

import os
import platform
import shutil
from importlib import metadata, util
from pathlib import Path

import initfree
from initfree.extras import MODULES, install

_LIBRARIES = ("numpy", "scipy", "numba", "pycolmap", "tyro", "rich")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def doctor() -> int:
    """Say what is installed and what is missing, each with the command that brings it."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _LIBRARIES)
    found = {
        "initfree": f"{initfree.__version__} in {Path(initfree.__file__).parent}",
        "python": f"{platform.python_version()}, {platform.system()} {platform.machine()}",
        "libraries": versions,
        "threads": _threads(),
        "BLAS": _blas(),
        "kernels": _kernels(),
        **{f"extra {extra}": _extra(extra) for extra in MODULES},
        "Blender": _blender(),
        "Chromium": _chromium(),
    }
    for name, text in found.items():
        print(f"{name:<15} {text}")
    return 0


def _threads() -> str:
    from numba.core import config

    asked = {name: os.environ[name] for name in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ}
    text = "".join(f", {name}={value}" for name, value in asked.items())
    return f"{vars(config)['NUMBA_NUM_THREADS']} for kernels, {os.cpu_count()} cores{text}"


def _blas() -> str:
    import scipy.linalg  # noqa: F401, loads SciPy's own
    from threadpoolctl import threadpool_info

    found = [
        f"{p['internal_api']}{' ' + p['version'] if p['version'] else ''}, {p['num_threads']} threads"
        for p in threadpool_info()
        if p["user_api"] == "blas"
    ]
    return "; ".join(sorted(set(found))) or "none that threadpoolctl knows: its threads cannot be limited"


def _kernels() -> str:
    import initfree.api  # noqa: F401, loads all kernels of a solve
    from initfree.engine.compilation import ABOUT_SECONDS, kept, kernels, must_compile, place

    all_kernels = [kernel for found in kernels().values() for kernel in found]
    where = next(filter(None, map(place, all_kernels)), None)
    count = sum(kept(kernel) > 0 for kernel in all_kernels)
    if must_compile():
        return f"not compiled yet: the first solve takes about {ABOUT_SECONDS} s longer; `initfree warmup` does it now"
    return f"{count} kept, in {where} and beside it"


def _extra(extra: str) -> str:
    missing = [module for module in MODULES[extra] if util.find_spec(module) is None]
    if not missing:
        return "installed"
    return f"not installed ({', '.join(missing)}): {install(extra)}"


def _blender() -> str:
    if _extra("generate") != "installed":
        return "needs the extra generate"
    from initfree.generator.blender.client import environment, installed

    return f"set up in {environment()}" if installed() else "not set up (optional, renders): initfree blender setup"


def _chromium() -> str:
    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if found is None and util.find_spec("playwright") is not None:
        root = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", Path.home() / ".cache" / "ms-playwright"))
        found = next(iter(sorted(root.glob("chromium*"))), None) if root.is_dir() else None
    return str(found) if found else "not found (optional, tests of the pages): playwright install chromium"
