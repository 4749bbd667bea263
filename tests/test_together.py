"""Processes side by side: results into neighbouring folders, a database that another program writes, ports that are open."""

import os
import shutil
import sqlite3
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from mutations import inputs
from test_staged import write_result

from initfree.errors import InputError
from initfree.io.load import load_observations
from initfree.io.staged import staged_file
from initfree.io.written import read_record

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    return inputs(tmp_path_factory.mktemp("sound"))["database.db"]


def listing(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_staging_folder_that_another_process_takes_for_a_leftover(tmp_path, monkeypatch):
    """Defect 6: it is removed between its making and its lock; then it is made again."""
    make, made = tempfile.mkdtemp, []

    def taken(**options: str) -> str:
        made.append(make(**options))
        if len(made) < 3:
            os.rmdir(made[-1])
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", taken)
    write_result(tmp_path / "out", "mine")
    assert len(made) == 3
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_many_results_into_neighbouring_folders(tmp_path):
    """Defect 6: 9 of 900 failed."""

    def several(k: int) -> None:
        for n in range(30):
            write_result(tmp_path / f"{k}" / "out" if n % 2 else tmp_path / f"{k}-{n}", "x")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(several, range(8)))
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".initfree-")]
    assert len(list(tmp_path.iterdir())) == 8 * 16


def test_files_into_one_folder_keep_each_others_records(tmp_path):
    def one(k: int) -> None:
        with staged_file(tmp_path / f"{k}.json", "convert") as path:
            path.write_text(str(k))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(40)))
    assert {entry.path for entry in read_record(tmp_path)} == {f"{k}.json" for k in range(40)}


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_a_database_that_another_program_has_open(sound, tmp_path, mode):
    """Defect 13: what is committed is read, what is not is not, and nothing appears beside the file."""
    path = Path(shutil.copyfile(sound, tmp_path / "database.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute(f"PRAGMA journal_mode = {mode}")
        writer.execute("UPDATE images SET name = 'committed.jpg' WHERE image_id = 1")
        writer.execute("BEGIN")
        writer.execute("UPDATE images SET name = 'half done.jpg' WHERE image_id = 2")
        before = listing(tmp_path)
        names = {image.name for image in load_observations(path).images}
        assert "committed.jpg" in names
        assert "half done.jpg" not in names
        assert {name: data for name, data in listing(tmp_path).items() if not name.endswith("-shm")} == {
            name: data for name, data in before.items() if not name.endswith("-shm")
        }
        assert set(listing(tmp_path)) == set(before)
        writer.execute("ROLLBACK")


def test_the_log_of_a_program_that_was_killed(sound, tmp_path):
    """Defect 13: the log is read, and no `-shm` is made for it."""
    work = tmp_path / "work"
    work.mkdir()
    path = Path(shutil.copyfile(sound, work / "database.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("UPDATE images SET name = 'in the log.jpg' WHERE image_id = 1")
        left = tmp_path / "left"
        left.mkdir()
        for name in ("database.db", "database.db-wal"):
            shutil.copyfile(work / name, left / name)
    before = listing(left)
    assert "in the log.jpg" in {image.name for image in load_observations(left / "database.db").images}
    assert listing(left) == before


def test_a_journal_that_has_to_be_undone_is_not_passed_over(sound, tmp_path):
    """Defect 13: with `immutable` half of a transaction was read as if it were at rest."""
    work, left = tmp_path / "work", tmp_path / "left"
    work.mkdir()
    left.mkdir()
    path = Path(shutil.copyfile(sound, work / "database.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = delete")
        writer.execute("PRAGMA cache_spill = 1")
        writer.execute("PRAGMA cache_size = 1")
        writer.execute("BEGIN")
        writer.execute("UPDATE images SET name = 'half done' || image_id")
        writer.execute("UPDATE keypoints SET data = zeroblob(length(data))")
        for name in ("database.db", "database.db-journal"):
            shutil.copyfile(work / name, left / name)
        writer.execute("ROLLBACK")
    before = listing(left)
    with pytest.raises(InputError, match=r"database\.db"):
        load_observations(left / "database.db")
    assert listing(left) == before


def test_a_database_that_is_being_written_is_refused(sound, tmp_path):
    """Defect 13."""
    path = Path(shutil.copyfile(sound, tmp_path / "database.db"))
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("PRAGMA journal_mode = delete")
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(InputError, match="locked"):
            load_observations(path)


def test_a_sweep_listens_to_this_machine_alone():
    """Defect 8: Dask's pages, which ask for no password, were open to the network."""
    psutil = pytest.importorskip("psutil")
    sweep = pytest.importorskip("initfree.benchmark.sweep")
    before = {one.laddr.port for one in psutil.Process().net_connections("tcp") if one.status == "LISTEN"}
    with sweep._local(1):
        us = psutil.Process()
        family = [us, *us.children(recursive=True)]
        listening = [one.laddr for each in family for one in each.net_connections("tcp") if one.status == "LISTEN"]
    own = [address for address in listening if address.port not in before]
    assert own
    assert {address.ip for address in own} == {"127.0.0.1"}
