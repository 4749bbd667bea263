"""Two runs of the paper's experiment before and after the metric upgrade, over their truth."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from initfree.benchmark.report.cells import PUBLIC, Cell
from initfree.benchmark.report.names import display
from initfree.benchmark.report.sweep import Sweep
from initfree.data.tracks import Array

_SHOWN = ("set3", "set2")
_STAGES = {"before": "before the upgrade", PUBLIC: "after it"}
_ROOM = 1.35
"""of the cameras' extent"""


def upgrade_plot(sweep: Sweep, file: Path) -> bool:
    """Runs from random cameras on Sets 3 and 2 in the paper's protocol, from above; False where no picture was kept."""
    found = [run for name in _SHOWN if (run := _run(sweep, name)) is not None]
    if not found:
        return False
    figure = Figure(figsize=(3.0 * 2 * len(found), 3.3), layout="constrained")
    panels = iter(figure.subplots(1, 2 * len(found), squeeze=False)[0])
    for name, arrays in found:
        for stage, words in _STAGES.items():
            axis = next(panels)
            _scene(axis, arrays, stage)
            axis.set_title(f"{display(name)}, {words}", fontsize=10)
    figure.savefig(file, dpi=100, metadata={"Software": None})
    return True


def _run(sweep: Sweep, name: str) -> tuple[str, dict[str, Array]] | None:
    """The first run whose reconstructions were kept: solved on Set 3; on Set 2 failed, with something to show."""
    rows: pd.DataFrame = Cell(upgrade=PUBLIC).of(sweep.rows)
    rows = rows[(rows["set"] == name) & rows["formulation"].isin(["pose", "rose"]) & (rows["init"] != "unit-circle")]
    rows = rows[(rows["loss"] == "none") & (rows["min_obs"] == 3) & (rows["upgrade"] == "linear1997")]
    odd = (rows["failed"] != (name == "set2")).astype(int) + rows["cameras_recovered"].eq(0)
    rows = rows.assign(odd=odd).sort_values(["odd", "seed"], kind="stable")
    for job in rows["job"]:
        path = sweep.reconstruction(str(job))
        if path is not None:
            with np.load(path) as content:
                arrays = {key: content[key].astype(float) for key in content.files if key != "names"}
            if all(f"{stage}_centres" in arrays for stage in _STAGES):
                return name, arrays
    return None


def _scene(axis: Axes, arrays: dict[str, Array], stage: str) -> None:
    truth, middle = arrays["truth_centres"], arrays["truth_centres"].mean(axis=0)
    half = _ROOM * float(np.abs(truth - middle).max())
    axis.plot(*arrays["truth_xyz"][:, :2].T, ".", color="#cfd4da", markersize=1.5)
    axis.plot(*truth[:, :2].T, "o", color="#aeb6bf", markersize=4, fillstyle="none")
    if not np.isfinite(arrays[f"{stage}_xyz"]).any():
        axis.text(
            float(middle[0]),
            float(middle[1]),
            "no real transform (NaN)",
            ha="center",
            va="center",
            fontsize=9,
            color="#b2182b",
        )
    axis.plot(*arrays[f"{stage}_xyz"][:, :2].T, ".", color="#2166ac", markersize=1.5)
    axis.plot(*arrays[f"{stage}_centres"][:, :2].T, "o", color="#b2182b", markersize=3)
    axis.set_xlim(middle[0] - half, middle[0] + half)
    axis.set_ylim(middle[1] - half, middle[1] + half)
    axis.set_aspect("equal")
    axis.set_xticks([])
    axis.set_yticks([])
