"""Nothing of the user's is lost: a command replaces what it wrote itself, and nothing else."""

import json
from pathlib import Path

import pandas as pd
import pytest
from benchmark.made import row
from commanding import run, write_ring

from initfree.benchmark.report.markdown import write_section
from initfree.benchmark.report.reproduction import MARK
from initfree.errors import InputError
from initfree.io.staged import staged_directory, staged_file
from initfree.io.written import RECORD


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return write_ring(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def solved(tmp_path_factory, model) -> Path:
    out = tmp_path_factory.mktemp("solved") / "out"
    assert run("solve", model, "-o", out) == 0
    return out


@pytest.fixture(scope="module")
def sweep(tmp_path_factory) -> Path:
    """A sweep of no rows but its description, as far as `bench export` and `bench report` look at it."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "rows").mkdir()
    pd.DataFrame([row()]).to_parquet(folder / "rows" / "part-000000-x.parquet")
    (folder / "sweep.json").write_text(json.dumps({"name": "tiny", "config": {}, "starts": []}))
    return folder


def files(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def refused(capsys: pytest.CaptureFixture[str], named: Path, *arguments: object) -> None:
    """Exit code 2, a sentence with the file's name, and every file as it was."""
    before = files(named.parent)
    capsys.readouterr()
    assert run(*arguments) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert str(named) in err
    assert "--overwrite" in err
    assert files(named.parent) == before


def user_file(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("the user's")
    return path


@pytest.mark.parametrize("name", ["sparse/0/cameras.bin", "sparse/0/notes.txt", "run.json", "summary.html", "trace.npz"])
def test_a_solve_replaces_nothing_of_the_users(tmp_path, model, name, capsys):
    out = tmp_path / "p"
    mine = user_file(out / name)
    refused(capsys, mine, "solve", model, "--output", out)
    assert run("solve", model, "--output", out, "--overwrite") == 0
    assert not mine.exists() or mine.read_bytes() != b"the user's"


@pytest.mark.slow
def test_colmaps_layout_of_a_project_is_safe_in_place(tmp_path, monkeypatch, capsys):
    """A database beside a model of COLMAP: the model stays, whether the project is named or is the working directory."""
    project = tmp_path / "p"
    assert run("generate", "thin4", "-o", tmp_path / "made") == 0
    project.mkdir()
    (tmp_path / "made" / "database.db").rename(project / "database.db")
    (tmp_path / "made" / "sparse").rename(project / "sparse")
    refused(capsys, project / "sparse" / "0", "solve", project / "database.db", "--output", project)
    monkeypatch.chdir(project)
    refused(capsys, Path("sparse"), "solve", "database.db", "-o", ".")


@pytest.mark.slow
def test_the_truth_of_a_generated_problem_is_no_solves_to_replace(tmp_path, capsys):
    problem = tmp_path / "problem"
    assert run("generate", "thin4", "-o", problem) == 0
    refused(capsys, problem / "sparse" / "0", "solve", problem / "database.db", "--output", problem)
    assert run("generate", "thin4", "-o", problem, "--seed", 1) == 0
    mine = problem / "covisibility.png"
    user_file(mine)
    refused(capsys, mine, "generate", "thin4", "-o", problem)
    assert run("generate", "thin4", "-o", problem, "--overwrite") == 0


def test_a_model_that_was_refined_in_place_is_the_users(tmp_path, model, capsys):
    out = tmp_path / "out"
    assert run("solve", model, "-o", out) == 0
    assert run("solve", model, "-o", out) == 0
    refined = user_file(out / "sparse" / "0" / "points3D.bin")
    refused(capsys, refined, "solve", model, "-o", out)


@pytest.mark.parametrize(
    "target", ["points.ply", "picture.png", "transforms.json", "cameras.json", "array.toml", "table.csv"]
)
def test_a_conversion_replaces_no_file_of_the_users(tmp_path, solved, target, capsys):
    mine = user_file(tmp_path / target)
    refused(capsys, mine, "convert", solved, mine)
    assert run("convert", solved, mine, "--overwrite") == 0
    assert run("convert", solved, mine) == 0
    mine.write_bytes(mine.read_bytes() + b"\n")
    refused(capsys, mine, "convert", solved, mine)


@pytest.mark.parametrize("kind", ["colmap", "multicamselfcal"])
def test_a_conversion_to_a_folder_wants_one_without_files_of_others(tmp_path, solved, model, kind, capsys):
    folder = tmp_path / "model"
    mine = user_file(folder / "images.txt")
    refused(capsys, mine, "convert", solved, folder, "--to", kind)
    mine.unlink()
    for _ in range(2):
        assert run("convert", solved, folder, "--to", kind) == 0


@pytest.mark.parametrize("name", ["page.html", "picture.png"])
def test_an_export_of_the_view_replaces_no_file_of_the_users(tmp_path, solved, name, capsys):
    mine = user_file(tmp_path / name)
    refused(capsys, mine, "view", solved, "--export", mine)
    assert run("view", solved, "--export", mine, "--overwrite") == 0
    assert run("view", solved, "--export", mine) == 0


def test_a_summary_of_the_view_does_not_replace_that_of_the_solve(solved, capsys):
    refused(capsys, solved / "summary.html", "view", solved, "--export", solved / "summary.html")


def test_tables_of_a_sweep_replace_no_file_of_the_users(tmp_path, sweep, capsys):
    mine = user_file(tmp_path / "rows.csv")
    refused(capsys, mine, "bench", "export", sweep, "-o", tmp_path)
    mine.unlink()
    for _ in range(2):
        assert run("bench", "export", sweep, "-o", tmp_path) == 0
    page = user_file(tmp_path / "report" / "index.html")
    refused(capsys, page, "bench", "report", sweep, "-o", tmp_path / "report")


@pytest.mark.parametrize("name", ["sweep.json", "plan.parquet"])
def test_a_sweep_starts_in_no_directory_with_such_files_of_others(tmp_path, name, capsys):
    mine = tmp_path / name
    mine.write_text("[]" if name == "plan.parquet" else '{"mine": true}')
    assert run("bench", "run", "smoke", "-o", tmp_path) == 2
    assert str(mine) in capsys.readouterr().err
    assert files(tmp_path).keys() == {name}


def test_the_section_of_a_file_is_replaced_and_the_rest_is_left(tmp_path):
    file = user_file(tmp_path / "results.md")
    for text in ("one\n", "two\n"):
        write_section(file, MARK, text)
    assert file.read_text().startswith("the user's\n\n")
    assert "one" not in file.read_text()


def write(folder: Path, names: list[str], by: str = "test") -> None:
    with staged_directory(folder, by, names) as staging:
        for name in names:
            user_file(staging / name).write_text(name)


def test_what_an_earlier_run_wrote_and_this_one_does_not_goes_unless_it_was_changed(tmp_path):
    user_file(tmp_path / "mine.txt")
    write(tmp_path, ["a.txt", "sparse/0/x", "sparse/1/x"])
    write(tmp_path, ["a.txt", "sparse/0/x"])
    assert set(files(tmp_path)) == {RECORD, "mine.txt", "a.txt", "sparse/0/x"}
    write(tmp_path, ["b.txt"])
    user_file(tmp_path / "b.txt")
    write(tmp_path, ["c.txt"])
    assert set(files(tmp_path)) == {RECORD, "mine.txt", "b.txt", "c.txt"}


def test_files_of_two_commands_live_side_by_side(tmp_path):
    write(tmp_path, ["a.txt"], "one")
    with staged_file(tmp_path / "b.txt", "two") as path:
        path.write_text("b")
    write(tmp_path, ["a.txt"], "one")
    with staged_file(tmp_path / "b.txt", "two") as path:
        path.write_text("b again")
    with pytest.raises(InputError, match=r"`initfree two` did not write it"), staged_file(tmp_path / "a.txt", "two"):
        pass
    assert files(tmp_path)["b.txt"] == b"b again"


@pytest.mark.parametrize("record", [None, "[1", "7", '{"files": [1]}'])
def test_without_its_record_everything_is_the_users(tmp_path, record: str | None):
    write(tmp_path, ["a.txt"])
    (tmp_path / RECORD).unlink()
    if record is not None:
        (tmp_path / RECORD).write_text(record)
    with pytest.raises(InputError, match="would be replaced"):
        write(tmp_path, ["a.txt"])


def test_links_in_an_output_are_the_users(tmp_path):
    elsewhere = user_file(tmp_path / "elsewhere" / "x")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "sparse").symlink_to(elsewhere.parent)
    with pytest.raises(InputError, match="would be replaced"):
        write(tmp_path / "out", ["sparse/x"])
    assert elsewhere.read_text() == "the user's"
