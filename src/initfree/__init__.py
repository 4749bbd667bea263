"""Bundle adjustment that starts from nothing: from image observations to a metric reconstruction.

problem = initfree.load("path/to/model")
result = initfree.solve_auto(problem)                                       # several starts until one is certified
result = initfree.solve(problem, initfree.SolveConfig(formulation="pose"))  # or one pipeline, exactly as configured
print(initfree.evaluate(result, "path/to/truth"))
result.to_colmap().write("out")
"""

# pycolmap 4 brings a zlib of its own and shows its symbols to what is loaded later: Python's zlib, loaded after it, frees
# with one what the other allocated and aborts (Numba compresses what it keeps). Loaded first, each has its own.
import zlib  # noqa: F401
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from initfree.auto.strategy import solve_auto
    from initfree.config import SolveConfig
    from initfree.errors import InputError
    from initfree.evaluation import evaluate
    from initfree.io.load import load
    from initfree.metrics import Metrics
    from initfree.pipeline import solve
    from initfree.problem import Problem
    from initfree.result import Result

__version__ = "0.1.0"
__all__ = ["InputError", "Metrics", "Problem", "Result", "SolveConfig", "evaluate", "load", "solve", "solve_auto"]

_HOMES = {
    "InputError": "errors",
    "Metrics": "metrics",
    "Problem": "problem",
    "Result": "result",
    "SolveConfig": "config",
    "evaluate": "evaluation",
    "load": "io.load",
    "solve": "pipeline",
    "solve_auto": "auto.strategy",
}
"""module of each public name: Numba, SciPy and pycolmap (half a second) are loaded with the first name that is used, so
that `initfree --help` is there at once"""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'initfree' has no attribute {name!r}")
    value = getattr(import_module(f"initfree.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
