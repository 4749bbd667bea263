"""docs/reproduction.md: what of the paper is reproduced, written from sweeps and from nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from initfree.benchmark.presets import as_table, load
from initfree.benchmark.report.attribution import attribution_tables
from initfree.benchmark.report.cells import PROTOCOL, SURFACE, Cell, both_solvers, has_protocol
from initfree.benchmark.report.checks import Check, check_all
from initfree.benchmark.report.formats import to_markdown
from initfree.benchmark.report.gap_plot import gap_plot, residual_plot
from initfree.benchmark.report.in_short import in_short
from initfree.benchmark.report.markdown import write_section
from initfree.benchmark.report.names import PAPER_UPGRADE, display
from initfree.benchmark.report.paper_page import pages
from initfree.benchmark.report.selection import is_bal, paper_grid
from initfree.benchmark.report.solver_plot import solver_plot
from initfree.benchmark.report.sweep import Sweep, load_sweep
from initfree.benchmark.report.table import Table
from initfree.benchmark.report.tables import appendix_tables, summary_tables
from initfree.benchmark.report.tables.axes import conditions_table, weights_table
from initfree.benchmark.report.tables.bal import bal_summary_table, frame_free
from initfree.benchmark.report.tables.protocol import nullity_table, sound_sets_table, stopping_table
from initfree.benchmark.report.tables.solvers import Descent, descents, solvers_table
from initfree.benchmark.report.upgrade_plot import upgrade_plot
from initfree.benchmark.store import described
from initfree.errors import InputError
from initfree.io.staged import staged_file

MARK = "bench reproduction"
_FOLD = '<details markdown="1"><summary>Each claim: its place in the paper, intervals, one thing changed</summary>'
"""folded on the forge and on the site, whose Markdown needs the attribute"""
_SHOWN = ("summary-formulations-pose-linear1997", "init-average-linear1997", "densification", "upgrade", "rotations")


@dataclass(frozen=True)
class Run:
    """How much of a sweep is there."""

    name: str
    jobs: int
    missing: int
    seeds: dict[int, int]
    """jobs by seed"""
    sets: tuple[str, ...]
    changed: str
    """fields in which its configuration is not that of the preset of its name"""
    date: str = ""
    """of its latest start"""


def write_reproduction(directories: list[Path], output: Path, *, overwrite: bool = False) -> None:
    """Write the marked section of `output` from the sweeps, and its figures beside it.

    From the sweep `paper` it is a short paper with two figures, and every claim and table are in an appendix beside it
    (`reproduction.md` and `reproduction-appendix.md`); from others it is the claims and tables alone. Figures that were not
    written here are replaced only with `overwrite`.
    """
    if not directories:
        raise InputError("no sweeps given; expected directories of `initfree bench run`, or Parquet files of their rows")
    sweep, runs = merged(directories), [_run(directory) for directory in directories]
    rows = sweep.rows
    if not has_protocol(rows):
        write_section(output, MARK, _tables(sweep, runs, check_all(rows), output, overwrite))
        return
    judged = replace(sweep, rows=_with_others(rows))
    changed = {what: cell.of(rows) for what, cell in CHANGED.items()} | _sound(judged.rows)
    checks = check_all(judged.rows, changed | {"the frame-free linear upgrade": frame_free(rows)})
    appendix = output.with_name(f"{output.stem}-appendix.md")
    figures = {name: output.with_name(f"{output.stem}-{name}.png") for name in ("gap", "residuals")}
    with staged_file(figures["gap"], "bench reproduction", overwrite=overwrite) as staged:
        gap_plot(rows, staged)
    with staged_file(figures["residuals"], "bench reproduction", overwrite=overwrite) as staged:
        residual_plot(paper_grid(PROTOCOL.of(rows), min_obs=None), staged)
    figures["upgrade"] = output.with_name(f"{output.stem}-upgrade.png")
    if any(sweep.reconstruction(str(job)) for job in rows["job"].unique()):
        with staged_file(figures["upgrade"], "bench reproduction", overwrite=overwrite) as staged:
            upgrade_plot(sweep, staged)
    files = {name: file for name, file in figures.items() if file.is_file()} | {"appendix": appendix}
    page, details = pages(rows, checks, _about(runs), files)
    write_section(output, MARK, page)
    tables = _tables(judged, runs, checks, appendix, overwrite, both_solvers(rows))
    write_section(appendix, MARK, f"{details}\n{tables}")


CHANGED = {
    "exact steps": Cell("exact"),
    "occlusion": Cell(visibility=SURFACE),
    "occlusion and exact steps": Cell("exact", SURFACE),
    "rank 3 and signs enforced in the upgrade": Cell(upgrade="linear1997"),
    "the upgrade of 2004": Cell(upgrade="linear2004"),
}
"""the cells of the sweep `paper` in which one thing is other than in the paper's"""


def _with_others(rows: pd.DataFrame) -> pd.DataFrame:
    """The paper's cell, and what is of no cell: BAL."""
    return pd.concat([PROTOCOL.of(rows), rows[is_bal(rows)]], ignore_index=True)


def _sound(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {"only sets where the linear upgrade is not degenerate": rows[~(rows["nullity"] > 1)]}


def _about(runs: list[Run]) -> dict[str, Any]:
    """What a citation of the page needs."""
    return {
        "version": version("initfree"),
        "date": max((run.date for run in runs), default=""),
        "done": sum(run.jobs - run.missing for run in runs),
        "jobs": sum(run.jobs for run in runs),
    }


def _tables(
    sweep: Sweep, runs: list[Run], checks: list[Check], output: Path, overwrite: bool, both: pd.DataFrame | None = None
) -> str:
    """Every claim and table, with the plot of linear solvers beside the file where histories are there.

    `both`: rows of the paper's cell by both solvers, if a page in front says in short what came out.
    """
    solved = descents(sweep)
    plot = output.with_name(f"{output.stem}-solvers.png") if solved else None
    if plot is not None:
        with staged_file(plot, "bench reproduction", overwrite=overwrite) as staged:
            solver_plot(solved, staged)
    return markdown(sweep, runs, checks, solved, plot, both)


def merged(directories: list[Path]) -> Sweep:
    """Several sweeps as one; a run that two of them have counts once."""
    sweeps = [load_sweep(directory) for directory in directories]
    rows = pd.concat([one.rows for one in sweeps], ignore_index=True).drop_duplicates("key").reset_index(drop=True)
    return replace(sweeps[0], rows=rows, more=tuple(directories[1:]))


def _run(source: Path) -> Run:
    about, rows = described(source)
    first = rows.drop_duplicates("job")
    seeds = {int(str(seed)): len(part) for seed, part in first.groupby("seed")}
    sets, name = tuple(sorted(first["set"].unique())), str(about["name"])
    date = str(about.get("starts", [{}])[-1].get("started", ""))[:10]
    return Run(name, int(about["jobs"]), int(about["missing"]), seeds, sets, _changed(name, about.get("config", {})), date)


def _changed(name: str, config: dict[str, Any]) -> str:
    """What of a sweep's configuration is other than in the preset of its name."""
    try:
        preset = as_table(load(name))
    except InputError:
        return ""
    return ", ".join(sorted(key for key, value in config.items() if preset.get(key, value) != value))


def markdown(
    sweep: Sweep, runs: list[Run], checks: list[Check], solved: list[Descent], plot: Path | None, both: pd.DataFrame | None
) -> str:
    """The section's text."""
    rows = sweep.rows
    parts = [] if both is not None else ["## In short\n", in_short(rows, checks, solved)]
    parts += ["## Every claim\n", _claims(checks)]
    parts += ["## What was run\n", _ran(runs), "## Did the stages converge, and can the upgrade work?\n"]
    parts += [_shown(table) for table in (stopping_table(rows), nullity_table(rows), sound_sets_table(rows))]
    parts += [
        "## What the failures are due to\n",
        *(_shown(table) for table in attribution_tables(rows if both is None else both)),
    ]
    if solved:
        parts += ["## The paper's linear solver\n", _shown(solvers_table(solved))]
    if plot is not None:
        caption = "Percent of seeds whose stage 1 is within 1% and 0.01% of the best cost, by linear solver"
        parts.append(f"![{caption}]({plot.name})\n\n{caption}.\n")
    axes = [_shown(table) for table in (conditions_table(rows), weights_table(rows))]
    if any(axes):
        parts += ["## Beyond the paper's conditions\n", *axes]
    parts.append("## The paper's tables, ours beside the paper's\n")
    tables = [*summary_tables(rows), *appendix_tables(rows), bal_summary_table(rows)]
    parts += [_shown(table) for table in tables if table.name in _SHOWN or table.name == "bal-summary"]
    return "\n".join(part for part in parts if part)


def _ran(runs: list[Run]) -> str:
    lines = ["| command | runs done | of | seeds (runs of each) | sets |", "| --- | ---: | ---: | --- | --- |"]
    for run in runs:
        seeds = ", ".join(_seeds(run.seeds))
        sets = ", ".join(display(name) for name in run.sets)
        what = f"`initfree bench run {run.name}`" + (f", a part of it: other {run.changed}" if run.changed else "")
        lines.append(f"| {what} | {run.jobs - run.missing} | {run.jobs} | {seeds} | {sets} |")
    listed = " ".join(f"DIR_{run.name.upper().replace('-', '_')}" for run in runs)
    again = f"`initfree bench reproduction {listed} --output docs/reproduction.md` writes this section again."
    return "\n".join(lines) + f"\n\nWhat is missing runs when the command is started again. {again}\n"


def _seeds(jobs: dict[int, int]) -> Iterator[str]:
    """Seeds in a row with the same number of jobs as one."""
    for count, group in groupby(sorted(jobs), key=lambda seed: jobs[seed]):
        seeds = list(group)
        yield f"{seeds[0]} to {seeds[-1]} ({count} each)" if len(seeds) > 1 else f"{seeds[0]} ({count})"


def _claims(checks: list[Check]) -> str:
    """The verdicts on one screen; below, folded, the figures with their intervals and what changes them."""
    head = (
        f"Judged after the paper's linear upgrade (`{PAPER_UPGRADE}`); figures are means over seeds, of the rotation AUC@20 "
        "where a claim names nothing else. What neither holds nor fails in 97.5% of the resamples of the seeds cannot be "
        "told.\n"
    )
    lines = ["| claim | verdict | ours | the paper's |", "| --- | --- | --- | --- |"]
    for c in checks:
        verdict = f"**{c.verdict}**" + (f"; it is {c.because}" if c.standing == "explained" else "")
        lines.append("| " + " | ".join(_cell(text) for text in (c.lesson.claim, verdict, c.short, c.lesson.paper)) + " |")
    said = [
        f"- **{c.lesson.claim}** ({c.lesson.where}): {c.verdict}. Ours: {c.figure}. The paper's: {c.lesson.paper}."
        + (f" {c.why}" if c.why else "")
        for c in checks
    ]
    about = (
        "Brackets: 95% intervals over seeds, resampled set by set; one seed has no interval. Each claim was asked again "
        "with one thing changed: where that turns the answer, it is why ours differ."
    )
    fold = [_FOLD, "", about, "", *said, "", "</details>"]
    return head + "\n" + "\n".join([*lines, "", *fold]) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "/")


def _shown(table: Table) -> str:
    if table.empty:
        return ""
    note = f"{table.note}." + (" The paper's numbers in brackets." if table.paper() is not None else "")
    return f"### {table.title}\n\n{note}\n\n{to_markdown(table)}"
