"""The summary as a section of a Markdown file, between two marks; the rest of the file is left as it is."""

import os
from pathlib import Path

from initfree.benchmark.report.contents import Contents
from initfree.benchmark.report.formats import to_markdown
from initfree.benchmark.report.table import Table
from initfree.errors import InputError


def summary_markdown(contents: Contents) -> str:
    """Cards, lessons (where one can be told) and all tables but the long ones, ours with the paper's in brackets."""
    parts = [f"## Benchmark: the sweep `{contents.name}`\n"]
    parts.append("\n".join(f"- {card.title}: {card.value} ({card.detail})" for card in contents.cards) + "\n")
    if contents.checks:
        parts.append("Which of the paper's claims hold is told in one place: docs/reproduction.md.\n")
    if contents.differences:
        parts.append("### Why our numbers differ from the paper's\n")
        parts.append("\n".join(f"- {text}" for text in contents.differences) + "\n")
    parts += [_section(table) for table in contents.tables if not table.folded]
    return "\n".join(parts)


def _section(table: Table) -> str:
    note = f"{table.note}." + (" The paper's numbers in brackets." if table.paper() is not None else "")
    return f"### {table.title}\n\n{note}\n\n{to_markdown(table)}"


def write_markdown(contents: Contents, file: Path) -> None:
    """Write the sweep's section of `file`."""
    write_section(file, f"bench report {contents.name}", summary_markdown(contents))


def write_section(file: Path, mark: str, section: str) -> None:
    """Replace what stands between the comments `mark`: begin and `mark`: end of `file`, or append it with them.

    A file that is not there is made.
    """
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    section = f"{begin}\n{section}{end}"
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        if (begin in text) != (end in text) or text.find(end) < text.find(begin):
            raise InputError(f"{file} has one of the marks {begin!r} and {end!r} without the other; expected both or none")
        if begin in text:
            head, rest = text.split(begin, 1)
            text = head + section + rest.split(end, 1)[1]
        else:
            text = (text.rstrip("\n") + "\n\n" if text.strip() else "") + section + "\n"
        file.parent.mkdir(parents=True, exist_ok=True)
        staged = file.with_name(f".{file.name}.writing")
        staged.write_text(text, encoding="utf-8")
        os.replace(staged, file)
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror or error}") from error
