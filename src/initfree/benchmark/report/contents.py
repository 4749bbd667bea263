"""What stands in a report, worked out once for the page and for the files."""

import json
from dataclasses import dataclass, field

import numpy as np
import plotly.graph_objects as go

from initfree.benchmark.report.attribution import attribution_tables
from initfree.benchmark.report.checks import Check, check_all, differences
from initfree.benchmark.report.figures import Curves, curves_figure, failure_figure
from initfree.benchmark.report.names import display
from initfree.benchmark.report.overview import Card, cards
from initfree.benchmark.report.set_figure import SetPicture, sets_figure
from initfree.benchmark.report.sweep import Sweep
from initfree.benchmark.report.table import Table
from initfree.benchmark.report.tables import appendix_tables, full_tables, method_tables, summary_tables
from initfree.benchmark.report.tables.bal import bal_rows, bal_table, run_name
from initfree.benchmark.report.tables.gap import gap_table

_MOST_CURVES = 60


@dataclass(frozen=True)
class Figure:
    """A Plotly figure with its caption; `spec` is None where the sweep lacks what it shows."""

    name: str
    caption: str
    spec: go.Figure | None


@dataclass(frozen=True)
class Section:
    """A heading of the page, one line on what it shows, then tables and figures."""

    name: str
    title: str
    lead: str
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    folded: bool = False
    """tables open on demand: they are long"""


@dataclass(frozen=True)
class Contents:
    """`early` sections stand above the view of reconstructions, `late` ones below it."""

    name: str
    sweep: Sweep
    cards: list[Card]
    checks: list[Check]
    differences: list[str]
    early: list[Section]
    late: list[Section]

    @property
    def tables(self) -> list[Table]:
        return [table for section in (*self.early, *self.late) for table in section.tables]


def assemble(sweep: Sweep) -> Contents:
    """Everything but the reconstructions."""
    name = str(sweep.info.get("name") or sweep.directory.resolve().name)
    checks = check_all(sweep.rows)
    shown = cards(sweep.rows, checks, sweep.info.get("jobs"))
    return Contents(name, sweep, shown, checks, differences(sweep.rows), _early(sweep), _late(sweep))


def _early(sweep: Sweep) -> list[Section]:
    """All sections with tables or figures, in the order of the page."""
    rows = sweep.rows
    main = {table.name: table for table in summary_tables(rows)}
    extra = {table.name: table for table in appendix_tables(rows)}
    by_formulation = [t for name, t in main.items() if name.startswith("summary-formulations")]
    by_init = [t for name, t in main.items() if name.startswith("init-")]
    failures = [
        Figure(
            f"failure-{u}",
            f"Failure rate after the {u} upgrade, runs in bins of equal size; bars: 95% intervals.",
            failure_figure(rows, u),
        )
        for u in ("linear1997", "selected")
    ]
    selected = [t for name, t in extra.items() if "selected" in name]
    return [
        Section(
            "attribution",
            "Why runs fail",
            "Which stage the failures of the paper's pipeline are due to.",
            attribution_tables(rows),
        ),
        Section(
            "formulations",
            "Formulations",
            "The five object-space errors, averaged over sets, starts and losses.",
            by_formulation,
        ),
        Section(
            "initialisation", "Initialisation", "How much the start matters, without and with the Cauchy loss.", by_init
        ),
        Section(
            "rescue",
            "Robust rescue",
            "Runs that fail without the Cauchy loss and succeed with it, found in the rows.",
            [main["rescue-minobs3"], main["rescue-minobs6"]],
        ),
        Section(
            "densification",
            "Densification",
            "What six observations a landmark change against three.",
            [main["densification"], main["densification-by-formulation"]],
        ),
        Section(
            "upgrade",
            "Metric upgrade and failure",
            "The same projective solutions before and after each upgrade; what predicts failure.",
            [main["upgrade"], gap_table(rows)],
            failures,
        ),
        Section("selected", "Selected upgrade", "The summary again, after the selected upgrade.", selected),
        Section(
            "runtime",
            "Runtime and rotations",
            "Where the time goes, and what true rotations are worth.",
            [extra["runtime"], extra["rotations"]],
        ),
        Section("methods", "Whole methods", "Other ways to reconstruct the same tracks.", method_tables(rows)),
    ]


def _late(sweep: Sweep) -> list[Section]:
    """What stands below the view of reconstructions."""
    rows = sweep.rows
    caption = (
        "Cameras and viewing directions from above, landmarks in grey; below: landmarks that each pair of cameras shares."
    )
    bal_caption = "Cost by iteration, relative to the first; red: failed, green: recovered."
    bal = Section(
        "bal",
        "BAL",
        "Failure and recovery on real problems.",
        [bal_table(rows)],
        [Figure("bal-curves", bal_caption, _bal_curves(sweep))],
    )
    shown = Section("sets", "The sets", "What was reconstructed.", [], [Figure("sets", caption, sets_figure(_sets(sweep)))])
    full = Section(
        "full",
        "Full tables",
        "Every set, formulation and initialisation; rows open the reconstruction.",
        full_tables(rows),
        [],
        True,
    )
    return [shown, bal, full]


def _sets(sweep: Sweep) -> list[SetPicture]:
    """One picture a set: its first seed and smallest minimum of observations."""
    found: dict[str, SetPicture] = {}
    for path in sorted(sweep.sets(), key=lambda path: [int(part) for part in path.stem.rsplit("-", 2)[1:]]):
        name = path.stem.rsplit("-", 2)[0]
        if name in found:
            continue
        with np.load(path, allow_pickle=False) as file:
            figures = json.loads(str(file["statistics"])) if "statistics" in file.files else {}
            density = figures.get("observations_a_landmark")
            words = f"{len(file['truth_centres'])} cameras" + (f", {density:.1f} obs./lmk." if density else "")
            found[name] = SetPicture(
                f"<b>{display(name)}</b><br>{words}",
                file["truth_centres"].astype(float),
                file["truth_R"][:, 2].astype(float),
                file["truth_xyz"].astype(float)[::3],
                file["covisibility"],
            )
    return [found[name] for name in sorted(found)]


def _bal_curves(sweep: Sweep) -> go.Figure | None:
    found: list[Curves] = []
    for _, row in bal_rows(sweep.rows).drop_duplicates("job").head(_MOST_CURVES).iterrows():
        history = sweep.history(str(row["job"]))
        ose, refinement = ([step["cost"] for step in history.get(stage, [])] for stage in ("ose", "refinement"))
        found.append(Curves(f"{row['set']}, {run_name(row)}", bool(row["failed"]), ose, refinement))
    return curves_figure(found)
