"""One self-contained page: style, scripts, figures and reconstructions are inside it."""

import json
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from typing import Any

import jinja2
from plotly.offline import get_plotlyjs

import initfree
from initfree.benchmark.report.contents import Contents
from initfree.benchmark.report.formats import cells, header, labels
from initfree.benchmark.report.scenes import LANDMARKS, Scenes


def render(contents: Contents, scenes: Scenes) -> str:
    """The page as HTML."""
    package = files("initfree.benchmark.report").joinpath("templates")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("initfree.benchmark.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals.update(rendered=cells, labels=labels, header=header)
    environment.filters["neighbours"] = _neighbours
    environment.filters["figure_json"] = lambda figure: _script_safe(str(figure.to_json()))
    return environment.get_template("page.html.j2").render(
        contents=contents,
        left_out=[*contents.left_out, *([] if scenes.shown else ["Reconstructions"])],
        info=contents.sweep.info,
        version=initfree.__version__,
        scenes=scenes,
        landmarks=LANDMARKS,
        scene_data=_script_safe(json.dumps(scenes.data, separators=(",", ":"))),
        css=package.joinpath("page.css").read_text(encoding="utf-8"),
        scripts=[package.joinpath(name).read_text(encoding="utf-8") for name in ("theme.js", "view.js")],
        plotly=get_plotlyjs(),
    )


def _neighbours(columns: list[Any], name: str) -> list[tuple[str, int]]:
    """Neighbours with the same value of an attribute, as (value, how many)."""
    return [(value, len(list(members))) for value, members in groupby(columns, key=attrgetter(name))]


def _script_safe(text: str) -> str:
    """JSON that may stand inside a script element."""
    return text.replace("</", "<\\/")
