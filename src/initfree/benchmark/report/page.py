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
from initfree.data.names import in_script
from initfree.drawing.page import environment, read


def render(contents: Contents, scenes: Scenes) -> str:
    """The page as HTML."""
    package = files("initfree.benchmark.report").joinpath("templates")
    templates = environment(jinja2.PackageLoader("initfree.benchmark.report"))
    templates.globals.update(rendered=cells, labels=labels, header=header)
    templates.globals["css"] = read("base.css") + package.joinpath("report.css").read_text(encoding="utf-8")
    templates.filters["neighbours"] = _neighbours
    templates.filters["figure_json"] = lambda figure: in_script(str(figure.to_json()))
    own = [package.joinpath(name).read_text(encoding="utf-8") for name in ("figures.js", "view.js")]
    return templates.get_template("page.html.j2").render(
        contents=contents,
        left_out=[*contents.left_out, *([] if scenes.shown else ["Reconstructions"])],
        info=contents.sweep.info,
        version=initfree.__version__,
        scenes=scenes,
        landmarks=LANDMARKS,
        scene_data=in_script(json.dumps(scenes.data, separators=(",", ":"))),
        scripts=[get_plotlyjs(), read("scene.js"), read("chart.js"), *own],
    )


def _neighbours(columns: list[Any], name: str) -> list[tuple[str, int]]:
    """Neighbours with the same value of an attribute, as (value, how many)."""
    return [(value, len(list(members))) for value, members in groupby(columns, key=attrgetter(name))]
