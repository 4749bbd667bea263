"""Every example and every block of code in the README and the docs does what it says, on small data.

The blocks of a page run from top to bottom in one working directory, those of Python in one namespace.
"""

import re
import runpy
import shlex
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from initfree.commands.cli import main

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
SMALL = ["--points", "1000", "--width", "160", "--height", "120", "--focal", "105"]
"""what `initfree generate` gets beside the options of the page"""
SWEEP = """
sets = [{ name = "set2", cameras = 10, points = 80 }]
inits = ["normal", "spectral"]
methods = ["oracle"]

[solver]
max_iterations = 20
"""
"""in place of the preset `smoke`, which takes minutes"""
FINISHED = (0, 3)
"""exit codes: accepted, not accepted"""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of every fenced block."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[list[str]]:
    lines = (shlex.split(line, comments=True) for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line]


def run(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code in FINISHED, arguments


def run_initfree(arguments: list[str]) -> None:
    """A command of a page, on small data."""
    if "blender" in arguments:
        return  # an environment of its own, see test_generator_blender
    if arguments[0] == "generate" and "--list" not in arguments:
        arguments = [*arguments, *SMALL]
    if arguments[:3] == ["bench", "run", "smoke"]:
        Path("small.toml").write_text(SWEEP)
        arguments = ["bench", "run", "small.toml", *arguments[3:]]
    run(arguments)


def check_other(command: list[str]) -> None:
    """What installs, or takes long, is not run: that what it names exists is checked. An example that a page begins with,
    and goes on from, is run."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if command[:2] == ["pip", "install"]:
        named = [extras for package in command[2:] for extras in re.findall(r"\[(.*)\]", package)]
        extras = [extra for some in named for extra in some.split(",")]
        assert all(extra in project["optional-dependencies"] for extra in extras), command
    elif command[0] == "make":
        assert all(f"\n{target}:" in (ROOT / "Makefile").read_text() for target in command[1:]), command
    else:
        assert command[0] == "python", command
        assert (ROOT / command[1]).is_file(), command
        if command[1].startswith("examples/"):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(sys, "argv", command[1:])
                runpy.run_path(str(ROOT / command[1]), run_name="__main__")


@pytest.fixture(scope="module")
def sweep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished sweep, which pages on sweeps go on from."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "small.toml").write_text(SWEEP)
    run(["bench", "run", str(folder / "small.toml"), "--output", str(folder / "sweep")])
    return folder / "sweep"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_code_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest):
    monkeypatch.chdir(tmp_path)
    found = blocks(page)
    if any("initfree bench" in text for _, text in found):
        shutil.copytree(request.getfixturevalue("sweep"), "sweep")
    namespace: dict[str, object] = {"__name__": "__main__"}
    for language, text in found:
        assert language in ("", "python", "text", "toml"), language
        included = re.fullmatch(r'--8<-- "(.*)"\n', text)
        if included:  # a file of the repository, which other tests run
            assert (ROOT / included[1]).is_file(), included[1]
        elif language == "python":
            exec(compile(text, str(page), "exec"), namespace)
        elif language == "":
            for command in commands(text):
                if command[0] == "initfree":
                    run_initfree(command[1:])
                else:
                    check_other(command)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_run(example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(example.parent))
    monkeypatch.setattr(sys, "argv", [str(example), "out"])
    code: object = 0
    try:
        runpy.run_path(str(example), run_name="__main__")
    except SystemExit as ended:
        code = ended.code
    assert not code
    assert capsys.readouterr().out.strip()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_examples_are_short_and_have_a_picture(example: Path):
    number = example.stem.partition("_")[0]
    assert len(example.read_text().splitlines()) < 40
    page = (ROOT / "docs" / "examples.md").read_text()
    assert f'--8<-- "examples/{example.name}"' in page
    assert f"pictures/example-{number}.png" in page


def test_pictures_are_small_and_made_by_a_command():
    made = (ROOT / "docs" / "pictures.py").read_text()
    for picture in (ROOT / "docs" / "pictures").glob("*.png"):
        assert picture.stat().st_size < 200_000, picture.name
        assert f'"{picture.stem}": ' in made, picture.name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path):
    folders = (ROOT, ROOT / "src" / "initfree", ROOT / "src" / "initfree" / page.stem)
    for named in re.findall(r"`([\w/]+\.(?:py|toml|css))`", page.read_text()):
        assert any((folder / named).exists() for folder in folders), named


def test_the_tree_of_the_architecture_is_that_of_the_program():
    """Every room has its line, and every line its room."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    package = ROOT / "src" / "initfree"
    tree = page[page.index("initfree/\n") : page.index("## The way of the data")]
    told = re.findall(r"^  (\w+(?:/|\.py)) +\S", tree, re.MULTILINE)
    modules = {path.name for path in package.glob("*.py")} - {"__init__.py"}
    packages = {f"{path.parent.name}/" for path in package.glob("*/__init__.py")}
    assert len(told) == len(set(told))
    assert set(told) == modules | packages
    for place in ("formulations/", "stages/upgrade/", "io/", "commands/", "generator/presets/", "benchmark/presets/"):
        assert f"`{place}`" in page
        assert (package / place).is_dir()
