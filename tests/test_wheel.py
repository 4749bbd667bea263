"""What is built is what is needed: the wheel holds every file that the program reads, its metadata and its README."""

import email
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
pytest.importorskip("hatchling", reason="hatchling is not installed: no wheel is built")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def test_every_file_of_the_program_is_inside(wheel: zipfile.ZipFile):
    package = ROOT / "src" / "initfree"
    files = {path.relative_to(ROOT / "src").as_posix() for path in package.rglob("*") if path.is_file()}
    files = {name for name in files if "__pycache__" not in name}
    assert {name.rpartition(".")[2] for name in files} >= {"py", "toml", "css", "js", "j2", "typed"}
    assert files <= set(wheel.namelist())
    assert not [name for name in wheel.namelist() if name.startswith(("tests/", "docs/", "benchmarks/"))]


def test_metadata(wheel: zipfile.ZipFile):
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    metadata = email.message_from_bytes(wheel.read(name))
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).lstrip().startswith("# initfree")
    assert metadata["License-Expression"] == "BSD-3-Clause"
    shown = " ".join(str(metadata.get_payload()).split())
    links = re.findall(r"\]\(([^)\s]*)\)", shown)
    assert [link for link in links if not link.startswith("https://")] == [], "files of the repository are not on an index"
    assert "a measured promise, not a proof: its limits" in shown
    assert "pip install 'initfree[view,generate]'" in shown
    assert "| initfree | against | command |" in shown
    extras = set(metadata.get_all("Provides-Extra", []))
    assert {"view", "generate", "bench", "docs", "test"} <= extras
    assert "initfree = initfree.commands.cli:main" in wheel.read(name.replace("METADATA", "entry_points.txt")).decode()


def test_the_citation_has_the_same_version():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"version: {project['version']}" in (ROOT / "CITATION.cff").read_text()
