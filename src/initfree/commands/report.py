"""`initfree bench report`: a sweep as a page to read; `initfree bench reproduction`: what of the paper sweeps reproduce."""

from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from initfree.commands.options import OptionalOutput, Output, Overwrite


def report(
    directory: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="DIR")],
    /,
    output: OptionalOutput = None,
    markdown: Path | None = None,
    overwrite: Overwrite = False,
) -> int:
    """Write the report on a sweep: one self-contained page, and every table as CSV and LaTeX.

    Args:
        directory: Output of `initfree bench run`, finished or not.
        output: Directory to write into; by default DIR/report.
        markdown: File whose section on this sweep is written anew, such as benchmarks/RESULTS.md.
        overwrite: Replace in OUTPUT also what no report wrote, or what was changed since.
    """
    from initfree.benchmark.report import write_report

    console = Console(highlight=False, markup=False, emoji=False, stderr=True)
    with console.status("reading rows, making tables and figures"):
        page = write_report(directory, output, markdown, overwrite=overwrite)
    written = f"written: {page}, tables in {page.parent / 'tables'}" + (f", summary in {markdown}" if markdown else "")
    Console(highlight=False, markup=False, emoji=False).print(written, soft_wrap=True)
    return 0


def reproduction(
    directories: Annotated[tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="DIR ...")],
    /,
    output: Output,
    overwrite: Overwrite = False,
) -> int:
    """Write what of the paper is reproduced, claim by claim, from one or more sweeps.

    Args:
        directories: Outputs of `initfree bench run`, finished or not: of paper, solvers, protocol, bal.
        output: Markdown file whose section is written anew, such as docs/reproduction.md; a plot is put beside it.
        overwrite: Replace also a plot that was not written here, or was changed since.
    """
    from initfree.benchmark.report.reproduction import write_reproduction

    console = Console(highlight=False, markup=False, emoji=False, stderr=True)
    with console.status("reading rows, asking the paper's claims"):
        write_reproduction(list(directories), output, overwrite=overwrite)
    Console(highlight=False, markup=False, emoji=False).print(f"written: {output}", soft_wrap=True)
    return 0
