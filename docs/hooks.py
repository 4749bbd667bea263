"""Of the site, from beside docs/: results and changes as pages, all options of the commands as the program shows them,
formulas as MathML, links to files of the repository as links to them."""

import os
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"results.md": ROOT / "benchmarks" / "RESULTS.md", "changelog.md": ROOT / "CHANGELOG.md"}
PICTURES = {path.name: path for path in sorted((ROOT / "benchmarks").glob("*.png"))}
_LINKS = {"../benchmarks/RESULTS.md": "results.md", "../CHANGELOG.md": "changelog.md"}
_FORMULA = re.compile(r"^\$\$\n(.*?)\n\$\$$|(?<![\w`$\\])\$([^$\n`]+)\$(?![\w$])", re.MULTILINE | re.DOTALL)
_MADE: list[str] = []
"""formulas of the page that is being made; Markdown keeps only their numbers"""
_HELP = """
from contextlib import redirect_stdout, suppress
from initfree.commands.cli import BENCH, COMMANDS, main
for words in [[name] for name, (place, _) in COMMANDS.items() if place] + [["bench", name] for name in BENCH]:
    print("\\f" + " ".join(words))
    with suppress(SystemExit):
        main([*words, "--help"])
"""


def on_files(files: Files, config: Any) -> Files:
    for name, path in PAGES.items():
        files.append(File.generated(config, name, content=_inside(path.read_text(encoding="utf-8"))))
    for name, path in PICTURES.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    files.append(File.generated(config, "commands.md", content=commands()))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    _MADE.clear()
    parts = re.split(r"(^```.*?^```$)", _outside(markdown), flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _FORMULA.sub(_formula, part) for part in parts)


def on_page_content(html: str, **_: Any) -> str:
    return re.sub(r"formula(\d+)x", lambda match: _MADE[int(match[1])], html)


def _formula(match: re.Match[str]) -> str:
    block = match[1] is not None
    _MADE.append(convert(match[1] or match[2], display="block" if block else "inline"))
    return f"formula{len(_MADE) - 1}x"


def commands() -> str:
    """A page of all commands with the options of each, from their help."""
    wide = {**os.environ, "COLUMNS": "2000", "PYTHONPATH": str(ROOT / "src")}
    told = subprocess.run([sys.executable, "-c", _HELP], env=wide, capture_output=True, text=True, check=True)
    page = ["# Commands and options", "", "As `initfree COMMAND --help` shows them.", ""]
    for one in told.stdout.split("\f")[1:]:
        name, _, help_ = one.partition("\n")
        page += [f"## initfree {name}", "", *_described(help_), ""]
    return "\n".join(page)


def _described(help_: str) -> list[str]:
    """The help of a command as Markdown: its paragraphs, and a table for each section of options."""
    about, *sections = re.split(r"^ (\S.*?)\s*\n -{10,}\s*$", help_, flags=re.MULTILINE)
    lines = [f"`{line[7:]}`" if line.startswith("usage: ") else _cell(line) for line in about.splitlines()]
    for title, text in zip(sections[::2], sections[1::2], strict=True):
        rows = [row for row in text.splitlines() if row.strip() and not row.strip().startswith("---")]
        lines += ["", f"**{title}**", "", "| option | meaning |", "|---|---|"]
        for row in rows:
            option, _, words = row.strip().partition("  ")
            if row.startswith("   "):  # below an option that takes the whole width
                lines[-1] = lines[-1].removesuffix(" |") + _cell(row.strip()) + " |"
            elif option.startswith("-") or words:
                lines.append(f"| `{option.replace('|', chr(92) + '|')}` | {_cell(words.strip())} |")
    return lines


def _cell(text: str) -> str:
    """Words in which nothing is Markdown but code."""
    return re.sub(r"([|*_<\[])(?=[^`]*(?:`[^`]*`[^`]*)*$)", r"\\\1", text)


def _inside(text: str) -> str:
    """Links of a page that stands elsewhere, seen from docs/."""
    return re.sub(r"\]\((?:\.\./)?docs/", "](", text).replace("](benchmarks/RESULTS.md", "](results.md")


def _outside(text: str) -> str:
    """Links that leave docs/: to the page made of the file, to the example on its page, or the bare name."""

    def replaced(match: re.Match[str]) -> str:
        words, target = match[1], match[2]
        page, _, anchor = target.partition("#")
        if page in _LINKS:
            return f"[{words}]({_LINKS[page]}{'#' + anchor if anchor else ''})"
        example = re.fullmatch(r"\.\./examples/(\d\d)_\w+\.py", page)
        if example:
            return f"[{words}](examples.md#example-{example[1]})"
        name = posixpath.normpath(posixpath.join("docs", page))
        return words if f"`{name}`" in words or words == name else f"{words} (`{name}`)"

    return re.sub(r"(?<!!)\[([^\]]*)\]\((\.\./[^)\s]*)\)", replaced, text)
