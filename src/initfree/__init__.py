"""Bundle adjustment that starts from nothing: from image observations to a metric reconstruction.

problem = initfree.load("path/to/model")                      # or initfree.Problem.from_tracks(image, landmark, xy)
result = initfree.solve(problem)                              # several starts until one is certified
result = initfree.solve(problem, initfree.SolveConfig(formulation="pose"), strategy="single")  # one, as configured
print(result.accepted, result.certificate.reason)
print(initfree.evaluate(result, "path/to/truth"))
result.write("out")
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from initfree.api import evaluate, solve, solve_components, solve_each
    from initfree.auto.parts import solve_in_parts
    from initfree.certificate import Certificate
    from initfree.config import SolveConfig
    from initfree.data.problem import Problem
    from initfree.data.reconstruction import Reconstruction
    from initfree.errors import InputError
    from initfree.evaluation import Metrics
    from initfree.io.load import load
    from initfree.models.adjust import Adjusted, AdjustOptions, adjust
    from initfree.models.check import Check, check
    from initfree.models.from_arrays import model_from_arrays
    from initfree.result import Result

if sys.platform == "linux":
    from initfree import system_zlib

    system_zlib.load()

__version__ = "0.1.0"
__all__ = [
    "AdjustOptions",
    "Adjusted",
    "Certificate",
    "Check",
    "InputError",
    "Metrics",
    "Problem",
    "Reconstruction",
    "Result",
    "SolveConfig",
    "adjust",
    "check",
    "evaluate",
    "load",
    "model_from_arrays",
    "solve",
    "solve_components",
    "solve_each",
    "solve_in_parts",
]

_HOMES = {
    "AdjustOptions": "models.adjust",
    "Adjusted": "models.adjust",
    "Certificate": "certificate",
    "Check": "models.check",
    "InputError": "errors",
    "Metrics": "evaluation",
    "Problem": "data.problem",
    "Reconstruction": "data.reconstruction",
    "Result": "result",
    "SolveConfig": "config",
    "adjust": "models.adjust",
    "check": "models.check",
    "evaluate": "api",
    "load": "io.load",
    "model_from_arrays": "models.from_arrays",
    "solve": "api",
    "solve_components": "api",
    "solve_each": "api",
    "solve_in_parts": "auto.parts",
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
    return sorted(__all__)
