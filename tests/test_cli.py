"""The command `initfree` itself: quick help, suggestions, missing extras, and a quiet end."""

import os
import shutil
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from commanding import write_ring

import initfree
from initfree import extras
from initfree.commands.cli import BENCH, COMMANDS, _load, main
from initfree.commands.warmup import _ring
from initfree.data.problem import Problem
from initfree.engine.compilation import kept, kernels, must_compile
from initfree.extras import extra_of

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(list(arguments))
    return int(stop.value.code or 0)


def python(*arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def test_help_and_version_load_no_library():
    program = (
        "import sys\nfrom initfree.commands.cli import main\n"
        "try:\n    main([{!r}])\nexcept SystemExit as stop:\n    assert not stop.code\n"
        "heavy = {{'numpy', 'numba', 'scipy', 'pycolmap', 'tyro', 'rich'}} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    for flag, word in (("--help", "solve"), ("--version", initfree.__version__)):
        process = python("-c", program.format(flag))
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert word in out


@pytest.mark.parametrize("table", [COMMANDS, BENCH])
def test_every_command_of_the_table_is_there(table):
    for place, summary in table.values():
        assert summary
        if place:
            assert callable(_load(place))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["slove"], "'solve'"),
        (["bench", "stat"], "'status'"),
        (["zzz"], "expected one of"),
        (["bench", "--what"], "no command"),
    ],
)
def test_mistyped_commands(arguments, word, capsys):
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert word in err
    assert err.count("\n") == 1
    assert out == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("solve x --outptu out", "'--outptu' is no option of `initfree solve`; did you mean '--output'?"),
        ("solve --outptu=out x", "'--outptu' is no option of `initfree solve`; did you mean '--output'?"),
        (
            "solve x -o y --lineer-solver power",
            "'--lineer-solver' is no option of `initfree solve`; did you mean '--linear-s",
        ),
        ("solve x -o y --bogus 3", "'--bogus' is no option of `initfree solve` ("),
        ("solve", "`initfree solve` needs INPUT and --output PATH"),
        ("convert a", "`initfree convert` needs OUT"),
        ("view a b c", "`initfree view` does not take c"),
        ("solve x -o y --strategy aut", "--strategy is 'aut'; expected one of auto, single"),
        ("solve x -o y --threads", "--threads has no value; expected one"),
        ("solve x -o y --threads a", "--threads is 'a'; expected INT"),
        ("solve x -o y --scale-points a", "--scale-points is 'a'; expected STR STR"),
        ("generate set1 -o y --noise abc", "--noise is 'abc'; expected FLOAT"),
        ("view x --max-points q", "--max-points is 'q'; expected INT"),
    ],
)
def test_a_command_line_that_cannot_be_read_is_one_sentence(arguments, says, capsys):
    assert run(*arguments.split()) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"initfree: error: {says}")
    assert err.count("\n") == 1
    assert out == ""


def test_help_fits_the_terminal(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    assert run("solve", "--help") == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 60


def test_completion_knows_commands_and_flags(capsys):
    assert run("completion", "bash") == 0
    out = capsys.readouterr().out
    for word in ("solve", "reproduction", "--linear-solver", "--scheduler", "--no-summary"):
        assert f"'{word}'" in out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_reads_its_completion(shell, tmp_path, capsys):
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed: its completion is not tried")
    assert run("completion", shell) == 0
    script = tmp_path / "script"
    script.write_text(capsys.readouterr().out)
    subprocess.run([found, "-n", script], check=True)


_OFFERED = [
    ("so", ["solve"]),
    ("solve --lin", ["--linear-solver"]),
    ("solve --linear-solver p", ["pcg", "power"]),
    ("solve ph", ["photos"]),
    ("solve ", ["database.db", "photos"]),
    ("solve photos --output ph", ["photos"]),
    ("bench rep", ["report", "reproduction"]),
    ("bench run smo", ["smoke"]),
    ("generate set1", ["set1"]),
]
_BASH = """
source {script}
COMP_WORDS=(initfree {words}); COMP_CWORD={last}
_tyro_initfree; printf '%s\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes(shell, tmp_path, capsys):
    """Commands, flags, their values, presets; files where an input is expected."""
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed: its completion is not tried")
    assert run("completion", shell) == 0
    script, folder = tmp_path / "script", tmp_path / "folder"
    script.write_text(capsys.readouterr().out)
    (folder / "photos").mkdir(parents=True)
    (folder / "database.db").touch()
    for words, offered in _OFFERED:
        typed = [*words.split(), ""] if words.endswith(" ") else words.split()
        quoted = " ".join(f"'{word}'" for word in typed)
        program = {
            "bash": _BASH.format(script=script, words=quoted, last=len(typed)),
            "fish": f"source {script}; complete -C 'initfree {words}'",
        }[shell]
        told = subprocess.run([found, "-c", program], cwd=folder, capture_output=True, text=True, check=True)
        lines = [line.partition("\t")[0].rstrip("/") for line in told.stdout.splitlines()]
        assert sorted(lines) == offered, words
        assert told.stderr == ""


def test_no_command_shows_the_help(capsys):
    assert run() == 2
    assert "usage" in capsys.readouterr().out


def test_public_names_are_loaded_when_used():
    assert set(initfree.__all__) <= set(dir(initfree))
    for name in initfree.__all__:
        assert getattr(initfree, name).__name__ == name
    with pytest.raises(AttributeError, match="nothing_of_this_name"):
        _ = initfree.nothing_of_this_name


def test_every_optional_package_has_an_extra():
    modules = {"pillow": "PIL"}
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for extra in ("view", "generate", "bench", "sleap"):
        for requirement in extras[extra]:
            package = str(requirement).partition(">")[0]
            if not package.startswith("initfree["):
                # Two extras may bring the same package: any of them will do.
                named = extra_of(modules.get(package, package))
                assert named is not None
                assert any(str(one).startswith(package) for one in extras[named])


@pytest.mark.parametrize(
    ("module", "arguments", "extra"),
    [
        ("pydantic", ["generate", "set1", "-o", "out"], "generate"),
        ("embreex", ["generate", "set1", "-o", "out"], "generate"),
        ("matplotlib", ["generate", "set1", "-o", "out"], "generate"),
        ("pandas", ["bench", "status", "out"], "bench"),
        ("pydantic", ["bench", "run", "smoke", "-o", "out"], "bench"),
        ("plotly", ["bench", "report", "out"], "bench"),
        ("pydantic", ["blender", "status"], "generate"),
        ("PIL", ["view", "out"], "view"),
    ],
)
def test_missing_extras_are_named(module, arguments, extra, tmp_path):
    """In a process of its own, where the module cannot be imported."""
    program = f"import sys; sys.modules[{module!r}] = None\nfrom initfree.commands.cli import main\nmain({arguments!r})"
    process = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert process.returncode == 2, process.stderr
    assert f"[{extra}]'" in process.stderr
    assert process.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


_SIGNAL_AT = """
import os, sys
from initfree.commands.cli import main
class At:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, At())
main(["solve", "missing", "-o", "out", "--help"])
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["pycolmap", "pycolmap._core", "numpy", "numba", "initfree.commands.solve"])
def test_a_signal_while_libraries_load_ends_quietly(number, module):
    """Sent the moment that a library is imported."""
    process = python("-c", _SIGNAL_AT.format(module=module, number=int(number)))
    out, err = process.communicate()
    assert process.returncode == 128 + number
    assert (out, err) == ("", "")


def test_doctor_names_what_is_there_and_how_to_get_the_rest(capsys, monkeypatch):
    assert run("doctor") == 0
    out = capsys.readouterr().out
    for word in ("initfree", initfree.__version__, "numba", "threads", "BLAS", "kernels", "Blender", "Chromium"):
        assert word in out
    assert "None" not in out
    monkeypatch.setitem(extras.MODULES, "bench", ("a_module_that_is_nowhere",))
    assert run("doctor") == 0
    assert f"pip install '{Path(initfree.__file__).parents[2]}[bench]'" in capsys.readouterr().out.replace("\n", " ")


def test_kernels_are_known_to_be_kept_after_a_solve():
    import initfree.api

    _ = initfree.solve(Problem.from_tracks(*_ring(8, 60)))
    assert not must_compile()
    loaded = kernels()
    assert "initfree.engine.kernels" in loaded
    assert sum(kept(kernel) > 0 for found in loaded.values() for kernel in found) >= 10


def test_kernels_are_known_to_be_missing_where_nothing_is_kept(tmp_path):
    program = "import initfree.api; from initfree.engine.compilation import must_compile; print(must_compile())"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    process = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert process.stdout == "True\n"


@pytest.mark.parametrize("before", [[], ["-m", "cProfile"]])
def test_a_solve_ends_with_all_that_it_printed_also_under_a_profiler(before, tmp_path):
    model = write_ring(tmp_path)
    process = python(*before, "-m", "initfree", "solve", str(model), "-o", str(tmp_path / "out"))
    out, err = process.communicate()
    assert process.returncode == 0, err
    assert f"next: initfree view {tmp_path / 'out'}\n" in out
    assert ("function calls" in out) == bool(before)


def test_names_are_shown_as_they_are(tmp_path, capsys):
    output = tmp_path / "[red]:star:.ply"
    assert run("convert", str(write_ring(tmp_path)), str(output)) == 0
    assert output.name in capsys.readouterr().out
