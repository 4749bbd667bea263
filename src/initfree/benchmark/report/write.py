"""From a sweep's directory to files."""

from pathlib import Path

from initfree.benchmark.report.contents import assemble
from initfree.benchmark.report.formats import to_csv, to_latex
from initfree.benchmark.report.markdown import write_markdown
from initfree.benchmark.report.page import render
from initfree.benchmark.report.scenes import collect
from initfree.benchmark.report.sweep import load_sweep
from initfree.io.staged import staged_directory


def write_report(
    directory: Path, output: Path | None = None, markdown: Path | None = None, *, overwrite: bool = False
) -> Path:
    """Write `output`/index.html and `output`/tables/*.csv, *.tex; return the page's path.

    Args:
        directory: Of a sweep, finished or not.
        output: Where to write; by default `directory`/report.
        markdown: Also write the summary into the marked section of this file.
        overwrite: Replace in `output` also what no report wrote.
    """
    output = directory / "report" if output is None else output
    sweep = load_sweep(directory)
    with staged_directory(output, "bench report", ["index.html", "tables"], overwrite=overwrite) as staging:
        contents = assemble(sweep)
        (staging / "index.html").write_text(render(contents, collect(sweep)), encoding="utf-8")
        (staging / "tables").mkdir()
        for table in contents.tables:
            (staging / "tables" / f"{table.name}.csv").write_text(to_csv(table), encoding="utf-8")
            (staging / "tables" / f"{table.name}.tex").write_text(to_latex(table), encoding="utf-8")
    if markdown is not None:
        write_markdown(contents, markdown)
    return output / "index.html"
