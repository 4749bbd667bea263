"""Bundle adjustment that starts from nothing: from image observations to a metric reconstruction.

problem = initfree.load("path/to/model")
result = initfree.solve_auto(problem)                                       # several starts until one is certified
result = initfree.solve(problem, initfree.SolveConfig(formulation="pose"))  # or one pipeline, exactly as configured
print(initfree.evaluate(result, "path/to/truth"))
result.to_colmap().write("out")
"""

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
