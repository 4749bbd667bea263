"""A command line that cannot be read ends in one sentence, as every other error; tyro prints boxes of several lines."""

import re
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from difflib import get_close_matches
from functools import partial, wraps
from io import StringIO
from shutil import get_terminal_size
from textwrap import fill
from typing import Any

import tyro

from initfree.errors import InputError

_FRAME = "│╭╮╰╯ "
_RULE = "──"
"""between the parts of a box"""
_INDENT = 5
"""of the options in tyro's boxes"""
_SIMILAR = 0.7


def parsed(function: Callable[..., int], prog: str, arguments: list[str]) -> Callable[[], int]:
    """The call that the arguments describe; SystemExit(0) after a help, an `InputError` for what cannot be read."""

    @wraps(function)
    def later(*values: Any, **options: Any) -> Callable[[], int]:
        return partial(function, *values, **options)

    said = StringIO()
    if {"-h", "--help"} & set(arguments):
        with redirect_stdout(_Captured()) as shown, suppress(SystemExit):
            tyro.cli(later, prog=prog, args=["--help"])
        print(_wrapped(shown.getvalue()), end="")
        sys.exit(0)
    try:
        with redirect_stderr(said):
            return tyro.cli(later, prog=prog, args=arguments)
    except SystemExit as ended:
        if ended.code != 2:
            raise
    with redirect_stdout(StringIO()) as help_, suppress(SystemExit):
        tyro.cli(later, prog=prog, args=["--help"])
    flags = set(re.findall(r"(?<![\w-])--?[a-zA-Z][\w-]*", help_.getvalue()))
    raise InputError(f"{in_a_sentence(said.getvalue(), prog, arguments, flags)} (`{prog} --help` lists its options)")


class _Captured(StringIO):
    """In colour where the terminal shows colours."""

    def isatty(self) -> bool:
        return bool(sys.__stdout__ and sys.__stdout__.isatty())


def _wrapped(help_: str) -> str:
    """Paragraphs in the width of the terminal, of which tyro wraps only options; without defaults that are nothing."""
    width = get_terminal_size().columns
    help_ = re.sub(r"\s*\(default:\s*(None)?\s*\)", "", help_)
    return "\n".join(fill(line, width) if line[:1].isalnum() else line.rstrip() for line in help_.split("\n"))


def in_a_sentence(box: str, prog: str, arguments: list[str], flags: set[str]) -> str:
    """What the box says, in the words of all other errors; `flags`: those that there are."""
    given = [word.partition("=")[0] for word in arguments if re.match("--?[a-zA-Z]", word)]
    unknown = next((flag for flag in given if flag not in flags), None)
    if unknown is not None:
        close = get_close_matches(unknown, sorted(flags), n=1, cutoff=_SIMILAR)
        return f"{unknown!r} is no option of `{prog}`" + (f"; did you mean {close[0]!r}?" if close else "")
    lines = [line[1:].rstrip(_FRAME) for line in box.splitlines()]
    text = " ".join(_RULE if set(line.strip()) <= set("─-") else line.strip() for line in lines if line.strip())
    options = [line.strip() for line in lines if len(line) - len(line.lstrip()) == _INDENT]
    if "Missing from" in text:
        needed = [line.split(", ")[-1] for line in options if not line.startswith(prog)]
        return f"`{prog}` needs {' and '.join(needed)}"
    if match := re.search(rf"Unrecognized options: (.*?) {_RULE}", text):
        return f"`{prog}` does not take {match[1].replace(', ', ' ')}"
    if match := re.search(r"invalid choice '(.*)' for argument '(.*)'\. Expected one of \((.*?)\)", text):
        return f"{match[2]} is {match[1]!r}; expected one of {match[3].replace(chr(39), '').rstrip(',')}"
    if match := re.search(r"Missing value for argument '(.*?)'", text):
        return f"{match[1].split('/')[-1]} has no value; expected one"
    if match := re.search(rf"Error parsing (\S+):.*?(?:from|base 10:|float:) (.*?)\.? (?:Got errors|{_RULE})", text):
        value = " ".join(re.findall(r"'([^']*)'", match[2]))
        kind = next((line.removeprefix(match[1]).strip() for line in options if line.startswith(match[1])), "")
        kind = kind.replace("{None}|", "").strip("{}")
        return f"{match[1]} is {value!r}" + (f"; expected {kind}" if kind else "")
    return text
