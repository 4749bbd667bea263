"""Imports follow the flow of the data: the graph is read from the source, and held against a short table."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "initfree"
ROOMS = (
    ("errors", "data.tracks", "extras", "system_signals", "system_zlib"),
    ("arrays.rigs", "config", "data.camera_graph", "data.files", "data.names", "data.pairs", "data.reconstruction"),
    ("data.image_sizes", "data.observations"),
    ("data.from_arrays", "data.shared_landmarks"),
    ("data.problem",),
    ("data.recalibration", "data.thinning"),
    ("engine", "evaluation", "stages.initialization"),
    ("formulations", "stages.refinement", "stages.trace"),
    ("stages.euclidean", "stages.upgrade", "stages.varpro"),
    ("certificate", "two_view"),
    ("arrays.camera_reports",),
    ("arrays.exchanges", "arrays.synchronisation"),
    ("drawing", "result"),
    ("io", "stages.pipeline"),
    ("auto", "photographs"),
    ("models",),
    ("api", "viewer"),
    ("generator",),
    ("benchmark",),
    ("commands",),
    ("__main__",),
)
"""Modules and packages of initfree, from the ground up: a room imports from rooms above its line, never from its own line
or from below."""
FLOORS = {"data", "stages", "arrays"}
"""packages of rooms"""
DEFERRED = {
    ("config", "formulations"),  # names of formulations are looked up when a configuration is made
    ("config", "engine"),
    ("config", "stages.initialization"),
    ("config", "stages.upgrade"),
    ("result", "io"),  # result.write, result.to_colmap
}
"""imports inside a function that lead back: what is imported is there by then"""
FORBIDDEN = {"auto.repair": "certificate", "stages.pipeline": "certificate", "generator": "auto"}
"""what would be above, and still is none of a room's business"""


def name_of(path: Path) -> str:
    """ "auto.search" of auto/search.py, "auto" of auto/__init__.py."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


# The extension is a package of its own, which Blender loads: it knows nothing of initfree but the command.
EXTENSION = PACKAGE / "generator" / "blender" / "extension"
MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py") if EXTENSION not in path.parents}


def for_types_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(name: str) -> tuple[set[str], set[str]]:
    """Modules of initfree that a module imports: when it is loaded itself, and inside its functions."""
    at_once: set[str] = set()
    later: set[str] = set()

    def visit(node: ast.AST, found: set[str]) -> None:
        if for_types_only(node):
            return
        if isinstance(node, ast.Import):
            found.update(known for alias in node.names for known in [within(alias.name)] if known is not None)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            assert node.level == 0, f"{name}: relative import"
            for alias in node.names:
                submodule, module = within(f"{node.module}.{alias.name}"), within(node.module)
                found.update(known for known in [submodule or module] if known is not None)
        inside = later if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) else found
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(MODULES[name].read_text()), at_once)
    return at_once - {name}, later - {name}


def within(dotted: str) -> str | None:
    """The module of initfree that a dotted name means, without the package's own name."""
    if dotted == "initfree":
        return "__init__"
    inner = dotted.removeprefix("initfree.")
    return inner if inner != dotted and inner in MODULES else None


def room(name: str) -> str:
    first, _, rest = name.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first in FLOORS and rest else first


GRAPH = {name: imports(name) for name in MODULES}


def test_the_extension_for_blender_imports_nothing_of_initfree():
    for path in EXTENSION.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            assert not [name for name in names if name.partition(".")[0] == "initfree"], path


def test_every_room_has_its_place():
    assert sorted(one for row in ROOMS for one in row) == sorted({room(name) for name in MODULES} - {"__init__"} - FLOORS)


def test_imports_follow_the_flow():
    level = {one: k for k, row in enumerate(ROOMS) for one in row}
    against = []
    for name, (at_once, later) in GRAPH.items():
        for other in at_once | later:
            here, there = room(name), room(other)
            if "__init__" in (here, there) or here == there:  # the public names, loaded when they are used
                continue
            deferred = other not in at_once and (here, there) in DEFERRED
            if level[there] >= level[here] and not deferred:
                against.append(f"{name} imports {other}")
    assert sorted(against) == []


def test_no_module_imports_itself_on_a_detour():
    graph = {name: at_once - {"__init__"} for name, (at_once, _) in GRAPH.items() if name != "__init__"}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"modules import each other: {' <- '.join(error.args[1])}")


def test_deferred_imports_are_what_the_table_says():
    """An entry that nothing needs any more goes."""
    used = {(room(name), room(other)) for name, (_, later) in GRAPH.items() for other in later}
    assert used >= DEFERRED


def test_what_is_none_of_a_rooms_business():
    for place, other in FORBIDDEN.items():
        for name in MODULES:
            if name == place or name.startswith(f"{place}."):
                at_once, later = GRAPH[name]
                assert not [one for one in at_once | later if room(one) == other], f"{name} imports {other}"


def test_a_configuration_and_the_help_load_no_library():
    loaded = "[name for name in ('numba', 'scipy', 'pycolmap') if name in sys.modules]"
    code = f"import sys, initfree.config, initfree.commands.cli; print({loaded})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"
