"""`initfree evaluate`: the paper's metrics of a model on disk."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from initfree.api import evaluate as evaluate_model
from initfree.commands.display import print_metrics
from initfree.io.run_json import to_json


def evaluate(
    estimate: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="ESTIMATE")],
    truth: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="TRUTH")],
    /,
    json_: Annotated[bool, tyro.conf.arg(name="json"), tyro.conf.FlagCreatePairsOff] = False,
) -> int:
    """Compare a reconstruction with the truth.

    Prints rotation and translation AUC at 5, 10 and 20 degrees over all camera pairs (cameras that ESTIMATE lacks count
    as failures) and landmark errors after similarity alignment. Images match by name, landmarks by the observations that
    they share: ids of another program mean nothing.

    Example: initfree evaluate out problem/sparse/0

    Args:
        estimate: COLMAP model, or another of `initfree formats` that has poses.
        truth: The same.
        json_: Print JSON instead of a table.
    """
    metrics = evaluate_model(estimate, truth)
    if json_:
        print(to_json(metrics.to_dict()))
    else:
        console = Console(highlight=False, markup=False, emoji=False)
        print_metrics(console, {"estimate": metrics})
        if not metrics.landmarks_compared:
            console.print("no landmark of the estimate shares two observations with one of the truth: none were compared")
    return 0
