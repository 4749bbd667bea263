"""What stands in a report, worked out once for the page and for the files."""

import json
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from initfree.benchmark.report.attribution import attribution_tables
from initfree.benchmark.report.bal_figure import bal_figure
from initfree.benchmark.report.checks import Check, check_all, differences
from initfree.benchmark.report.failure import roc_auc
from initfree.benchmark.report.figures import failure_figure
from initfree.benchmark.report.names import display
from initfree.benchmark.report.overview import Card, cards
from initfree.benchmark.report.set_figure import SetPicture, sets_figure
from initfree.benchmark.report.solver_figure import solver_figure
from initfree.benchmark.report.sweep import Sweep
from initfree.benchmark.report.table import Table
from initfree.benchmark.report.tables import appendix_tables, full_tables, method_tables, summary_tables
from initfree.benchmark.report.tables.axes import conditions_table, weights_table
from initfree.benchmark.report.tables.bal import bal_pipeline, bal_summary_table, bal_table
from initfree.benchmark.report.tables.bal_pairs import bal_pairs_table, controlled_pairs, find_pairs
from initfree.benchmark.report.tables.gap import gap_table
from initfree.benchmark.report.tables.protocol import nullity_table, sound_sets_table, stopping_table
from initfree.benchmark.report.tables.solvers import descents, solvers_table

_PAIRS = (
    "Each row varies one factor and keeps the rest. Left: costs of both runs; red: failed, green: recovered. Right: "
    "reconstructions in colour over the truth in grey; rotation and translation AUC@20."
)


@dataclass(frozen=True)
class Figure:
    """A Plotly figure with its caption; `spec` is None where the sweep lacks what it shows."""

    name: str
    title: str
    """as the page names it where it is left out"""
    caption: str
    spec: go.Figure | None


@dataclass(frozen=True)
class Section:
    """A heading of the page, one line on what it shows, then tables, figures and folded tables."""

    name: str
    title: str
    lead: str
    tables: list[Table] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)

    def present(self) -> "Section":
        """Without the tables and figures for which the sweep has nothing."""
        figures = [figure for figure in self.figures if figure.spec is not None]
        return replace(self, tables=[table for table in self.tables if not table.empty], figures=figures)

    def missing(self) -> list[str]:
        """Titles of what `present` leaves out; the section's own where nothing stays."""
        tables = [table.title for table in self.tables if table.empty]
        figures = [figure.title for figure in self.figures if figure.spec is None]
        whole = len(tables) + len(figures) == len(self.tables) + len(self.figures)
        return [self.title] if whole else [*tables, *figures]


@dataclass(frozen=True)
class Contents:
    """What the sweep has: `early` sections stand above the view of reconstructions, `late` ones below it."""

    name: str
    sweep: Sweep
    cards: list[Card]
    checks: list[Check]
    """claims of the paper that the rows have something to say about"""
    differences: list[str]
    early: list[Section]
    late: list[Section]
    left_out: list[str]
    """titles of sections, tables and figures for which the sweep has nothing"""

    @property
    def tables(self) -> list[Table]:
        return [table for section in (*self.early, *self.late) for table in section.tables]


def assemble(sweep: Sweep) -> Contents:
    """Everything but the reconstructions."""
    name = str(sweep.info.get("name") or sweep.directory.resolve().name)
    checks = check_all(sweep.rows)
    asked = [check for check in checks if check.answer.holds is not None]
    shown = cards(sweep.rows, checks, sweep.info.get("jobs"))
    early, late = _early(sweep), _late(sweep)
    silent = [check.lesson.claim for check in checks if check.answer.holds is None]
    left_out = [f"{len(silent)} of the paper's {len(checks)} claims ({'; '.join(silent)})"] if silent else []
    left_out += [title for section in (*early, *late) for title in section.missing()]
    early, late = ([p for section in part if (p := section.present()).tables or p.figures] for part in (early, late))
    return Contents(name, sweep, shown, asked, differences(sweep.rows), early, late, left_out)


def _early(sweep: Sweep) -> list[Section]:
    """What stands above the view of reconstructions, in the order of the page."""
    rows = sweep.rows
    main = {table.name: table for table in summary_tables(rows)}
    extra = {table.name: table for table in appendix_tables(rows)}
    return [
        _attribution(rows),
        _protocol(rows),
        _solvers(sweep),
        Section(
            "axes",
            "Conditions and weights",
            "What spoils the observations, and the weights and coordinates of the protocol.",
            [conditions_table(rows), weights_table(rows)],
        ),
        *_averages(main),
        _upgrades(rows, main["upgrade"]),
        _pairs(sweep),
        Section(
            "selected",
            "Selected upgrade",
            "The summary again, after the selected upgrade.",
            [t for name, t in extra.items() if "selected" in name],
        ),
        Section(
            "runtime",
            "Runtime and rotations",
            "Where the time goes, and what true rotations are worth.",
            [extra["runtime"], extra["rotations"]],
        ),
        Section("methods", "Whole methods", "Other ways to reconstruct the same tracks.", method_tables(rows)),
        _bal(sweep),
    ]


def _attribution(rows: pd.DataFrame) -> Section:
    lead = "Which stage the failures of the paper's pipeline are due to."
    return Section("attribution", "Why runs fail", lead, attribution_tables(rows))


def _protocol(rows: pd.DataFrame) -> Section:
    return Section(
        "protocol",
        "Convergence and degenerate sets",
        "Whether the stages converged, and where the paper's linear upgrade cannot tell the metric frame.",
        [stopping_table(rows), nullity_table(rows), sound_sets_table(rows)],
    )


def _solvers(sweep: Sweep) -> Section:
    solved = descents(sweep)
    figure = Figure(
        "solvers",
        "Time to the optimum by linear solver",
        "Percent of runs whose stage 1 is within 1% (solid) or 0.01% (dotted) of the best cost of its problem.",
        solver_figure(solved),
    )
    lead = "The paper's power series beside exact steps and conjugate gradients."
    return Section("solvers", "Linear solvers", lead, [solvers_table(solved)], [figure])


def _averages(main: dict[str, Table]) -> list[Section]:
    """Means by formulation, by start, by loss and by density."""
    return [
        Section(
            "formulations",
            "Formulations",
            "The five object-space errors, averaged over sets, starts and losses.",
            [t for name, t in main.items() if name.startswith("summary-formulations")],
        ),
        Section(
            "initialisation",
            "Initialisation and loss",
            "How much the start matters, and the loss.",
            [t for name, t in main.items() if name.startswith(("init-", "robust-"))],
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
    ]


def _upgrades(rows: pd.DataFrame, effect: Table) -> Section:
    failures = [
        Figure(
            f"failure-{u}",
            f"Failure rate after the {u} upgrade",
            f"Failure rate after the {u} upgrade, runs in bins of equal size; bars: 95% intervals.",
            failure_figure(rows, u),
        )
        for u in ("linear1997", "selected")
    ]
    return Section(
        "upgrade",
        "Metric upgrade and failure",
        "The same projective solutions before and after each upgrade; what predicts failure.",
        [effect, gap_table(rows)],
        failures,
    )


def _pairs(sweep: Sweep) -> Section:
    pairs = controlled_pairs(sweep.rows, _kept(sweep))
    return Section(
        "pairs",
        "One factor decides",
        "Pairs of runs on the paper's sets that differ in the initialisation, the loss or the density alone.",
        [],
        [Figure("pairs", "Pairs of runs that one factor decides", _PAIRS, bal_figure(pairs, sweep))],
    )


def _kept(sweep: Sweep) -> set[str]:
    """Jobs whose reconstruction is in the sweep's folder."""
    return {str(job) for job in sweep.rows["job"].unique() if sweep.reconstruction(str(job)) is not None}


def _bal(sweep: Sweep) -> Section:
    rows = sweep.rows
    pairs = find_pairs(rows, _kept(sweep))
    caption = (
        "Each row varies one factor and keeps the rest. Left: costs of both runs, as far as they have the stage; red: "
        "failed, green: recovered. Right: reconstructions, landmarks (dots) and cameras (squares) in colour over the "
        "truth in grey, on the plane along which the true scene spreads most; rotation and translation AUC@20. The paper: "
        "the OSE residual decreases in both cases, the refinement residual separates them more clearly."
    )
    stages = bal_pipeline(rows)
    ose, refinement = roc_auc(stages, "ose_residual"), roc_auc(stages, "refine_residual")
    if not np.isnan(ose + refinement):
        caption += (
            f" Here, over {len(stages)} runs, as a predictor of failure: ROC AUC {ose:.2f} of the OSE residual, "
            f"{refinement:.2f} of the refinement residual."
        )
    title = "Failure and recovery modes on BAL"
    return Section(
        "bal",
        "BAL",
        "Failure and recovery on real problems; the truth is their own bundle adjustment.",
        [bal_summary_table(rows), bal_pairs_table(pairs), bal_table(rows)],
        [Figure("bal-pairs", title, caption, bal_figure(pairs, sweep))],
    )


def _late(sweep: Sweep) -> list[Section]:
    """What stands below the view of reconstructions."""
    rows = sweep.rows
    caption = (
        "Cameras and viewing directions from above, landmarks in grey; below: landmarks that each pair of cameras shares."
    )
    figures = [Figure("sets", "The sets", caption, sets_figure(_sets(sweep)))]
    shown = Section("sets", "The sets", "What was reconstructed.", [], figures)
    full = Section(
        "full",
        "Full tables",
        "Every set, formulation and initialisation; rows open the reconstruction.",
        full_tables(rows),
    )
    return [shown, full]


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
