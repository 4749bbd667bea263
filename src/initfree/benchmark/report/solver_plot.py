"""The figure of linear solvers as a file, for documents that hold no scripts."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from initfree.benchmark.report.names import display, in_order
from initfree.benchmark.report.solver_figure import COLOURS
from initfree.benchmark.report.tables.solvers import NEAR, Descent

_STYLES = {"1%": "-", "0.01%": ":"}


def solver_plot(found: list[Descent], file: Path) -> None:
    """Percent of seeds within 1% (solid) and 0.01% (dotted) of the best cost, by the second, a panel a problem."""
    names = sorted({one.set for one in found})
    figure = Figure(figsize=(3.4 * len(names), 3.2))
    axes = figure.subplots(1, len(names), sharey=True, squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        mine = [one for one in found if one.set == name]
        end = max(float(one.seconds[-1]) for one in mine)
        for solver in in_order(one.solver for one in mine):
            for label, share in NEAR.items():
                times = np.sort([one.seconds_to(share) for one in mine if one.solver == solver])
                reached = times[np.isfinite(times)]
                y = 100.0 * np.arange(len(reached) + 1) / len(times)
                axis.step(
                    [1e-2, *reached, end], [*y, y[-1]], _STYLES[label], where="post", color=COLOURS.get(solver, "#888"),
                    label=f"{display(solver)}, within {label}",
                )  # fmt: skip
        axis.set(title=display(name), xlabel="seconds of stage 1", xscale="log", ylim=(-3, 104))
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("runs there (%)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=3, fontsize=8, frameon=False)
    figure.tight_layout(rect=(0, 0.14, 1, 1))
    # No version in the file: the same runs give the same bytes.
    figure.savefig(file, dpi=110, metadata={"Software": None})
