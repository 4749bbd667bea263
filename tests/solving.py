"""One pipeline, exactly as configured: most tests of stages ask for that."""

from typing import Any

import initfree


def single(problem: initfree.Problem, config: initfree.SolveConfig | None = None, **options: Any) -> initfree.Result:
    return initfree.solve(problem, config, "single", **options)
