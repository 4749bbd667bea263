"""docs/reproduction.md: what of the paper is reproduced, written from sweeps and from nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from initfree.benchmark.presets import as_table, load
from initfree.benchmark.report.attribution import attribution_tables
from initfree.benchmark.report.checks import Check, check_all
from initfree.benchmark.report.formats import to_markdown
from initfree.benchmark.report.in_short import in_short
from initfree.benchmark.report.markdown import write_section
from initfree.benchmark.report.names import PAPER_UPGRADE, display
from initfree.benchmark.report.solver_plot import solver_plot
from initfree.benchmark.report.sweep import Sweep, load_sweep
from initfree.benchmark.report.table import Table
from initfree.benchmark.report.tables import appendix_tables, summary_tables
from initfree.benchmark.report.tables.axes import conditions_table, weights_table
from initfree.benchmark.report.tables.bal import bal_summary_table
from initfree.benchmark.report.tables.protocol import nullity_table, sound_sets_table, stopping_table
from initfree.benchmark.report.tables.solvers import Descent, descents, solvers_table
from initfree.benchmark.store import Store
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


def write_reproduction(directories: list[Path], output: Path, *, overwrite: bool = False) -> None:
    """Write the marked section of `output` from the sweeps, and the plot of linear solvers beside it.

    A plot that was not written here is replaced only with `overwrite`.
    """
    if not directories:
        raise InputError("no sweeps given; expected directories of `initfree bench run`")
    sweep, runs = merged(directories), [_run(directory) for directory in directories]
    checks = check_all(sweep.rows)
    solved = descents(sweep)
    plot = output.with_name(f"{output.stem}-solvers.png") if solved else None
    if plot is not None:
        with staged_file(plot, "bench reproduction", overwrite=overwrite) as staged:
            solver_plot(solved, staged)
    write_section(output, MARK, markdown(sweep, runs, checks, solved, plot))


def merged(directories: list[Path]) -> Sweep:
    """Several sweeps as one; a run that two of them have counts once."""
    sweeps = [load_sweep(directory) for directory in directories]
    rows = pd.concat([one.rows for one in sweeps], ignore_index=True).drop_duplicates("key").reset_index(drop=True)
    return replace(sweeps[0], rows=rows, more=tuple(directories[1:]))


def _run(directory: Path) -> Run:
    store = Store.existing(directory)
    jobs, missing, _ = store.progress()
    rows = store.rows().drop_duplicates("job")
    seeds = {int(seed): len(part) for seed, part in rows.groupby("seed")}
    about = store.about()
    name = str(about["name"])
    return Run(name, jobs, missing, seeds, tuple(sorted(rows["set"].unique())), _changed(name, about.get("config", {})))


def _changed(name: str, config: dict[str, Any]) -> str:
    """What of a sweep's configuration is other than in the preset of its name."""
    try:
        preset = as_table(load(name))
    except InputError:
        return ""
    return ", ".join(sorted(key for key, value in config.items() if preset.get(key, value) != value))


def markdown(sweep: Sweep, runs: list[Run], checks: list[Check], solved: list[Descent], plot: Path | None) -> str:
    """The section's text."""
    rows = sweep.rows
    parts = ["## In short\n", in_short(rows, checks, solved), "## Every claim\n", _claims(checks)]
    parts += ["## What was run\n", _ran(runs), "## Did the stages converge, and can the upgrade work?\n"]
    parts += [_shown(table) for table in (stopping_table(rows), nullity_table(rows), sound_sets_table(rows))]
    parts += ["## What the failures are due to\n", *(_shown(table) for table in attribution_tables(rows))]
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
        f"Judged after the paper's linear upgrade (`{PAPER_UPGRADE}`), exact linear solves; figures are means over seeds, "
        "of the rotation AUC@20 where a claim names nothing else. What holds in 10% to 90% of the resamples of the seeds "
        "cannot be told.\n"
    )
    lines = ["| claim | verdict | ours | the paper's |", "| --- | --- | --- | --- |"]
    for c in checks:
        verdict = f"**{c.verdict}**" + (f"; it is with {c.turned}" if c.turned else "")
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
