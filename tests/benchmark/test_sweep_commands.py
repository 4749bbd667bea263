"""`initfree bench`: status, export and what they say about bad input."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from tiny_sweeps import sweep

from initfree.benchmark import Store
from initfree.benchmark.data import Place
from initfree.benchmark.jobs import expand
from initfree.benchmark.presets import as_table
from initfree.benchmark.report.sweep import load_sweep
from initfree.benchmark.summary import latex, summary
from initfree.benchmark.worker import run_job
from initfree.commands.cli import main
from initfree.errors import InputError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with a row of each kind, half done."""
    config = sweep(formulations=("pose", "rose"), inits=("spectral",), min_obs=(3, 9), upgrades=("linear1997", "calibrated"))
    store = Store(tmp_path_factory.mktemp("sweep") / "half done")
    store.create()
    jobs = expand(config)
    about = {"name": "tiny", "config": as_table(config), "jobs": len(jobs), "rows": 8, "finished": None}
    store.describe(about)
    store.plan(jobs)
    for job in jobs[:3]:
        store.add(run_job(job, Place(store.cache), False))
    return store.directory


def _run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["bench", *arguments])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_status_says_what_is_missing_and_what_went_wrong(directory: Path, capsys: pytest.CaptureFixture[str]):
    assert _run("status", str(directory)) == 0
    said = capsys.readouterr().out
    assert "6 rows, 1 of 4 runs missing" in said
    assert "2 rows:" in said
    assert "at least 9 observations" in said


def test_export_csv_has_every_row(directory: Path, tmp_path: Path):
    assert _run("export", str(directory), "--output", str(tmp_path / "out")) == 0
    rows = Store(directory).rows()
    read = pd.read_csv(tmp_path / "out" / "rows.csv", keep_default_na=False, na_values=[""])
    assert list(read["key"]) == list(rows["key"])
    assert read["rotation_auc20"].to_numpy() == pytest.approx(rows["rotation_auc20"].to_numpy(), nan_ok=True, abs=0.0)
    table = pd.read_csv(tmp_path / "out" / "summary.csv")
    assert table["runs"].sum() == 6
    assert table["errors"].sum() == 2


def test_export_latex_is_a_table(directory: Path):
    assert _run("export", str(directory), "--format", "latex") == 0
    text = (directory / "export" / "summary.tex").read_text()
    assert text == latex(summary(Store(directory).rows()))
    assert text.count(r"\\") == 1 + len(summary(Store(directory).rows()))
    assert r"failed \%" in text


def test_errors_count_as_zero_in_the_summary(directory: Path):
    table = summary(Store(directory).rows()).set_index(["formulation", "upgrade"])
    assert table.loc[("pose", "calibrated"), "Rot. A20"] == pytest.approx(50.0, abs=1.0)
    assert table.loc[("pose", "calibrated"), "failed %"] == 50.0
    assert table.loc[("pose", "calibrated"), "errors"] == 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["status", "nowhere"], "holds no sweep"),
        (["export", "nowhere"], "holds no sweep"),
        (["run", "no-such-preset", "--output", "out"], "no preset or file no-such-preset"),
        (["run", "smoke", "--output", "out", "--workers", "0"], "--workers is 0"),
        (["run", "smoke", "--output", "file"], "cannot write to output"),
        (["run", "bal", "--output", "out", "--data", "nowhere"], "does not exist"),
    ],
)
def test_bad_input_is_one_sentence_and_code_2(
    arguments: list[str], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert _run(*arguments) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert "Traceback" not in said
    assert not Path("out").exists()


def test_rows_of_another_configuration_stay_but_do_not_count(
    directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    copied = Store(shutil.copytree(directory, tmp_path / "copy"))
    config = sweep(formulations=("pose",), inits=("spectral",), min_obs=(3,), upgrades=("calibrated",))
    copied.plan(expand(config))
    assert len(copied.rows()) == 1
    assert len(load_sweep(copied.directory).rows) == 1
    assert _run("status", str(copied.directory)) == 0
    said = capsys.readouterr().out
    assert "1 rows, all" in said
    assert "5 rows of other configurations lie there too" in said


def test_one_driver_at_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    store = Store(tmp_path)
    store.create()
    with store.driving():
        assert _run("run", "smoke", "--output", str(tmp_path)) == 2
    assert "belongs to a sweep that is running" in capsys.readouterr().err
    with store.driving(), pytest.raises(InputError, match="is running"), store.driving():
        pass


def test_a_directory_that_cannot_be_locked_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / ".lock").mkdir()
    assert _run("run", "smoke", "--output", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert f"cannot write to output {tmp_path}" in said.replace("\n", "")
    assert not (tmp_path / "sweep.json").exists()


def test_a_directory_without_a_plan_is_not_called_done(directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    copied = Path(shutil.copytree(directory, tmp_path / "copy"))
    (copied / "plan.parquet").unlink()
    assert _run("status", str(copied)) == 2
    assert "start the sweep again" in " ".join(capsys.readouterr().err.split())


def test_a_broken_part_is_named(directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    store = Store(tmp_path)
    store.create()
    store.describe(Store(directory).about())
    (tmp_path / "rows" / "part-000000-x.parquet").write_bytes(b"PAR1")
    assert _run("status", str(tmp_path)) == 2
    assert "part-000000-x.parquet cannot be read" in capsys.readouterr().err
