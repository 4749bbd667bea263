"""Names of images, which the author of the input chose: data, never a path that is followed, markup or a terminal's command.

Every name passes `check_name` when it is read, so that no later line of a terminal or a text file breaks on it. Every name
that becomes a path passes `inside` or `relative`; every name in HTML passes `in_html` or the templates, which escape alike.
"""

import html
import re
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from initfree.errors import InputError

LONGEST = 1000
"""characters"""
_REFUSED = {"Cc", "Cs", "Zl", "Zp"}
"""Unicode's categories: control characters, halves of characters, ends of lines and paragraphs"""
_REORDER = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""let a terminal show what follows in another order"""
_ROOT = re.compile(r"[\\/]|[A-Za-z]:[\\/]")


def check_name(source: object, name: str) -> None:
    """Raise an `InputError` for a name that cannot be shown on a line or written to one."""
    if not 0 < len(name) <= LONGEST:
        raise InputError(f"{source}: the image {name!r} has a name of {len(name)} characters; expected 1 to {LONGEST}")
    if name.isprintable():
        return
    bad = next((c for c in name if unicodedata.category(c) in _REFUSED or c in _REORDER), None)
    if bad is not None:
        raise InputError(f"{source}: the image {name!r} has the character U+{ord(bad):04X} in its name; expected text")


def is_relative(name: str) -> bool:
    """Whether it is a path that stays below a folder."""
    return not _ROOT.match(name) and ".." not in re.split(r"[\\/]", name)


def relative(name: str, source: object, what: str = "image") -> str:
    """The name, where it is a path below a folder: not absolute and without `..`, on any system."""
    if not is_relative(name):
        raise InputError(f"{source}: the {what} {name!r} lies outside of any folder; expected a relative path without `..`")
    return name


def inside(folder: Path, name: str, what: str = "image") -> Path:
    """The path of a name below a folder, which it cannot leave."""
    return folder / relative(name, folder, what)


def without_form_as_text(names: Iterable[str]) -> list[str]:
    """Names that COLMAP's text format cannot hold: it ends a name at the first blank."""
    return [name for name in names if " " in name]


def in_html(text: str) -> str:
    """Text as it may stand between tags and in attributes."""
    return html.escape(text)


def in_script(text: str) -> str:
    """JSON that may stand inside a script element: no `<` of a string can end it or begin a comment."""
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def natural(name: str) -> list[tuple[int, str]]:
    """A key that orders "2.jpg" before "10.jpg"."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"([0-9]+)", name)]
