"""What the site takes from beside docs/: results and changes as pages, links to files of the repository as links to them."""

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"results.md": ROOT / "benchmarks" / "RESULTS.md", "changelog.md": ROOT / "CHANGELOG.md"}
PICTURES = {path.name: path for path in sorted((ROOT / "benchmarks").glob("*.png"))}
_LINKS = {"../benchmarks/RESULTS.md": "results.md", "../CHANGELOG.md": "changelog.md"}


def on_files(files: Files, config: Any) -> Files:
    for name, path in PAGES.items():
        files.append(File.generated(config, name, content=_inside(path.read_text(encoding="utf-8"))))
    for name, path in PICTURES.items():
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    return _outside(markdown)


def _inside(text: str) -> str:
    """Links of a page that stands elsewhere, seen from docs/."""
    return re.sub(r"\]\((?:\.\./)?docs/", "](", text)


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
