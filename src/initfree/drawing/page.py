"""The frame of every page: one file with its style, its scripts and its data inside."""

import base64
import hashlib
import json
from importlib.resources import files

import jinja2

from initfree.data.names import in_script

_TEMPLATES = files("initfree.drawing").joinpath("templates")


def read(name: str) -> str:
    """A style or script that all pages share."""
    return _TEMPLATES.joinpath(name).read_text(encoding="utf-8")


def environment(*loaders: jinja2.BaseLoader) -> jinja2.Environment:
    """Templates of the caller first, then the shared ones; `css` and `page_script` are there for `base.html.j2`."""
    shared = jinja2.PackageLoader("initfree.drawing")
    made = jinja2.Environment(
        loader=jinja2.ChoiceLoader([*loaders, shared]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(css=read("base.css"), page_script=read("page.js"), policy=_policy)
    made.filters["script_json"] = lambda value: in_script(json.dumps(value, separators=(",", ":"), allow_nan=False))
    made.filters.update(number=number, percent=lambda value, how: number(value, how, 100.0) + "%")
    return made


def _policy(*scripts: str) -> str:
    """A page loads nothing, and runs these scripts and no others, whatever the names in it are."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def number(value: float | None, how: str, factor: float = 1.0) -> str:
    """The value in a format such as ".2f", or a dash without one."""
    return "–" if value is None else format(factor * value, how)
