"""Options that several commands have."""

import ast
import re
from dataclasses import fields, is_dataclass
from inspect import cleandoc, getsource
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro

Output = Annotated[Path, tyro.conf.arg(aliases=["-o"])]
"""where to write"""
Overwrite = Annotated[bool, tyro.conf.FlagCreatePairsOff, tyro.conf.arg(name="overwrite")]
"""replace also what this command did not write"""
OptionalOutput = Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="PATH", help_behavior_hint="")]
"""where to write, if not where the command would by itself"""


def in_plain_words(function: Any) -> Any:
    """The same function, of which the help shows PATH for `Path | None`, and no default where there is none.

    tyro would show {None}|PATH (default: None), and break lines where the source does. The options in dataclasses are
    among them.
    """
    seen = set()
    function.__doc__ = _unbroken(function.__doc__)

    def improve(owner: Any) -> None:
        hints = get_type_hints(owner, include_extras=True)
        helps = _helps(owner) if is_dataclass(owner) else {}
        for name, hint in hints.items():
            inner = _unwrapped(hint)
            if is_dataclass(inner) and inner not in seen:
                seen.add(inner)
                improve(inner)
            said = None if get_origin(hint) is Annotated else _metavar(hint)
            if said is not None:
                hints[name] = Annotated[hint, tyro.conf.arg(metavar=said, help_behavior_hint="", help=helps.get(name))]
            elif name in helps and not is_dataclass(inner):
                hints[name] = Annotated[hint, tyro.conf.arg(help=helps[name])]
        owner.__annotations__ = hints
        for field in fields(owner) if is_dataclass(owner) else ():
            field.type = hints[field.name]

    improve(function)
    return function


def _helps(owner: Any) -> dict[str, str]:
    """The docstrings of a dataclass's fields, each on one line."""
    (tree,) = ast.parse(dedent(getsource(owner))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for field, below in pairwise(tree.body):
        if isinstance(field, ast.AnnAssign) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[ast.unparse(field.target)] = " ".join(str(below.value.value).split())
    return found


def _unbroken(doc: str | None) -> str:
    """A docstring with a line for each paragraph, and for each argument."""
    paragraphs = cleandoc(doc or "").split("\n\n")
    return "\n\n".join(re.sub(r"\n +(?=\S)(?!\w+: )" if "Args:" in one else r"\n", " ", one) for one in paragraphs)


def _unwrapped(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _metavar(hint: Any) -> str | None:
    """Of what may be left out; None of what has a default, or must be given."""
    if get_origin(hint) not in (Union, UnionType) or NoneType not in get_args(hint):
        return None
    (inner,) = (one for one in get_args(hint) if one is not NoneType)
    if get_origin(inner) is Literal:
        return f"{{{','.join(map(str, get_args(inner)))}}}"
    if get_origin(inner) is tuple:
        return " ".join(one.__name__.upper() for one in get_args(inner))
    return {Path: "PATH", int: "INT", float: "FLOAT", str: "STR"}.get(inner)
