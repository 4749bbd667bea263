"""`initfree bench`: the sweep, how far it is, and what came out."""

from pathlib import Path
from typing import Annotated, Literal

import tyro
from rich.console import Console
from rich.table import Table

from initfree.commands.options import OptionalOutput, Overwrite
from initfree.errors import InputError


def run(
    config: Annotated[str | None, tyro.conf.Positional, tyro.conf.arg(metavar="PRESET_OR_CONFIG.toml")] = None,
    /,
    output: OptionalOutput = None,
    scheduler: str | None = None,
    workers: int | None = None,
    data: Path | None = None,
    list: tyro.conf.FlagCreatePairsOff[bool] = False,
) -> int:
    """Run a sweep, or what is missing of it: stop it at any time and start it again.

    Example: initfree bench run smoke --output bench-output

    Args:
        config: A preset (see --list) or a TOML file.
        output: Directory of the sweep; rows that are there are not run again.
        scheduler: Address of a Dask scheduler (tcp://...); by default a local cluster is started.
        workers: Processes of the local cluster; by default one a core.
        data: BAL file or a directory of them (source = "bal"); by default in INITFREE_DATA.
        list: Show the presets.
    """
    if list:
        return _list_presets()
    if config is None:
        raise InputError("which sweep? Give a preset's name or a TOML file (initfree bench run --list)")
    if output is None:
        raise InputError(f"where to? Add --output DIR to `initfree bench run {config}`")
    from initfree.benchmark import load
    from initfree.benchmark import run as run_sweep
    from initfree.benchmark.presets import find
    from initfree.commands.progress import SweepProgress

    sweep = load(config)
    search = (str(find(config).resolve().parent),) if sweep.imports else ()
    with SweepProgress(Console(stderr=True, markup=False, emoji=False)) as progress:
        run_sweep(sweep, output, scheduler=scheduler, workers=workers, data=data, search=search, on_progress=progress)
    return status(output)


def _list_presets() -> int:
    from initfree.benchmark import presets

    table = Table(box=None, pad_edge=False)
    table.add_column("preset", style="bold")
    table.add_column("what it is")
    for name, preset in presets().items():
        table.add_row(name, preset.description)
    Console(markup=False, emoji=False).print(table)
    return 0


def status(directory: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")], /) -> int:
    """Say how far a sweep is: runs done and missing, rows solved and errors, set by set.

    Args:
        directory: Output of `initfree bench run`.
    """
    from initfree.benchmark import Store

    store = Store.existing(directory)
    about, rows = store.about(), store.rows()
    jobs, missing, others = store.progress()
    table = Table(box=None, pad_edge=False)
    table.add_column("set")
    for column in ("rows", "solved", "errors"):
        table.add_column(column, justify="right")
    for name, part in rows.groupby("set"):
        table.add_row(str(name), str(len(part)), str(int((~part["failed"]).sum())), str(int((part["error"] != "").sum())))
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(table)
    done = f"{missing} of {jobs} runs missing" if missing else f"all {jobs} runs done"
    console.print(f"{directory}: sweep {about['name']}, {len(rows)} rows, {done}", soft_wrap=True)
    if others:
        console.print(f"{others} rows of other configurations lie there too, and are not counted")
    for error, count in rows.loc[rows["error"] != "", "error"].value_counts().head(5).items():
        console.print(f"{count} rows: {error}", soft_wrap=True, markup=False)
    return 0


def export(
    directories: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR ...")],
    /,
    format: Literal["csv", "latex", "parquet"] = "csv",
    output: OptionalOutput = None,
    overwrite: Overwrite = False,
) -> int:
    """Write a sweep's rows and their summary as files for other programs; those of several sweeps as one.

    Args:
        directories: Outputs of `initfree bench run`, or archives of their rows.
        format: csv: rows.csv and summary.csv; latex: summary.tex; parquet: rows.parquet, an archive that
            `bench reproduction` reads like the sweep.
        output: Directory to write into; by default DIR/export of the first.
        overwrite: Replace in OUTPUT also what was not exported, or what was changed since.
    """
    from initfree.benchmark.store import archive, gathered
    from initfree.benchmark.summary import latex, summary
    from initfree.io.staged import staged_directory

    if not directories:
        raise InputError("no sweeps given; expected directories of `initfree bench run`, or Parquet files of their rows")
    about, rows = gathered(directories)
    if rows.empty:
        raise InputError(f"{directories[0]} has no rows yet; run `initfree bench run` first")
    output = output or directories[0] / "export"
    files = {"csv": ["rows.csv", "summary.csv"], "latex": ["summary.tex"], "parquet": ["rows.parquet"]}[format]
    with staged_directory(output, "bench export", files, overwrite=overwrite) as staging:
        if format == "csv":
            rows.to_csv(staging / "rows.csv", index=False)
            summary(rows).to_csv(staging / "summary.csv", index=False)
        elif format == "parquet":
            archive(about, rows, staging / "rows.parquet")
        else:
            (staging / "summary.tex").write_text(latex(summary(rows)), encoding="utf-8")
    Console(highlight=False, markup=False, emoji=False).print(f"written: {' and '.join(files)} in {output}", soft_wrap=True)
    return 0
