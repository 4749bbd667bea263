"""What `write_report` leaves on disk, and what it does with sweeps that are not whole."""

import base64
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made import BAD, GOOD, row

from initfree.benchmark.report import write_report
from initfree.benchmark.report.contents import Contents
from initfree.benchmark.report.markdown import write_markdown
from initfree.benchmark.report.scenes import collect, curve
from initfree.benchmark.report.sweep import load_sweep
from initfree.commands.cli import main
from initfree.errors import InputError

pytestmark = pytest.mark.slow


def test_page_and_tables(report: Path):
    text, folder = report.read_text(encoding="utf-8"), report.parent
    for part in ('src="http', "src='http", 'rel="stylesheet"', "cdn.plot.ly/plotly"):
        assert part not in text, "the page must need no network"
    tables = sorted(p.name for p in (folder / "tables").iterdir())
    assert {p.removesuffix(".csv") for p in tables if p.endswith(".csv")} == {
        p.removesuffix(".tex") for p in tables if p.endswith(".tex")
    }
    csv = pd.read_csv(folder / "tables" / "summary-formulations-pose-linear1997.csv")
    assert csv["formulation"].tolist() == ["pose", "rose", "rpose", "expose", "pose-rot", "auto", "oracle"]
    assert csv["rotation_auc20 (paper)"].iloc[0] == 34.25
    assert [p.name for p in folder.iterdir() if p.name.startswith(".")] == [".initfree"]


def test_rows_alone_are_enough(tmp_path: Path):
    (tmp_path / "rows").mkdir()
    pd.DataFrame([row()]).to_parquet(tmp_path / "rows" / "part-000000-x.parquet")
    text = write_report(tmp_path).read_text(encoding="utf-8")
    left_out = re.findall(r'id="left-out">(.*?)</p>', text)[0]
    for title in ("32 of the paper&#39;s 32 claims", "Robust rescue", "BAL", "Reconstructions"):
        assert title in left_out
    assert "Formulations" not in left_out
    shown = set(re.findall(r'<section id="(.*?)"', text))
    assert {"section-summary", "section-formulations", "section-about"} <= shown
    assert not shown & {"section-lessons", "section-rescue", "section-bal", "section-sets", "reconstructions"}
    assert set(re.findall(r'<a href="#(.*?)"', text)) == shown, "the sidebar names what the page has, no row links elsewhere"


def test_a_sweep_of_bal_alone(tmp_path: Path):
    (tmp_path / "rows").mkdir()
    runs = [row(set="ladybug-49", init=init, **kind) for init, kind in (("normal", BAD), ("unit-circle", GOOD))]
    pd.DataFrame(runs).to_parquet(tmp_path / "rows" / "part-000000-x.parquet")
    text = write_report(tmp_path, markdown=tmp_path / "R.md").read_text(encoding="utf-8")
    assert re.findall(r'<section id="(.*?)"', text) == ["section-summary", "section-bal", "section-about"]
    assert "Failure and recovery modes on BAL" in re.findall(r'id="left-out">(.*?)</p>', text)[0], "nothing kept to draw"
    assert sorted(p.stem for p in (tmp_path / "report" / "tables").glob("*.csv")) == ["bal", "bal-pairs", "bal-summary"]
    written = (tmp_path / "R.md").read_text()
    assert [line for line in written.splitlines() if line.startswith("#")] == [
        f"## Benchmark: the sweep `{tmp_path.name}`",
        "### Recovered on BAL, percent of runs",
        "### One factor decides",
    ]


@pytest.mark.parametrize("content", [None, b"not parquet"])
def test_a_directory_that_is_no_sweep(tmp_path: Path, content: bytes | None):
    if content is not None:
        (tmp_path / "rows").mkdir()
        (tmp_path / "rows" / "part-000000-x.parquet").write_bytes(content)
    with pytest.raises(InputError, match=str(tmp_path)):
        write_report(tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_columns_that_are_missing_are_named(tmp_path: Path):
    (tmp_path / "rows").mkdir()
    pd.DataFrame([row()]).drop(columns="failed").to_parquet(tmp_path / "rows" / "part-000000-x.parquet")
    with pytest.raises(InputError, match="failed"):
        write_report(tmp_path)


def test_markdown_section_is_replaced_and_the_rest_kept(contents: Contents, tmp_path: Path):
    file = tmp_path / "RESULTS.md"
    file.write_text("# Results\n\nbefore\n")
    write_markdown(contents, file)
    first = file.read_text()
    file.write_text(first.replace("pOSE+rot", "something else") + "\nafter\n")
    write_markdown(contents, file)
    assert file.read_text() == first + "\nafter\n"
    assert first.startswith("# Results\n\nbefore\n\n<!-- bench report made: begin -->")
    assert "| pOSE+rot |" in first


def test_markdown_with_one_mark_is_refused(contents: Contents, tmp_path: Path):
    file = tmp_path / "RESULTS.md"
    file.write_text("<!-- bench report made: begin -->\n")
    with pytest.raises(InputError, match="without the other"):
        write_markdown(contents, file)
    assert file.read_text() == "<!-- bench report made: begin -->\n"


def test_reconstructions_survive_their_encoding(sweep: Path):
    scenes = collect(load_sweep(sweep))
    assert scenes.shown == scenes.available == 82
    entry = scenes.data["jobs"][0]
    model, truth = entry["upgrades"]["linear1997"], scenes.data["truths"][entry["truth"]]
    places, turns, points = (np.frombuffer(base64.b64decode(model[part]), "<u2") for part in ("centres", "turns", "points"))
    assert (len(places), len(turns), len(points)) == (12 * 3, 12 * 4, 200 * 3), "every second of 400 landmarks"
    with np.load(sweep / "reconstructions" / f"{entry['job']}.npz") as file:
        centres, xyz = file["linear1997_centres"], file["linear1997_xyz"][::2]
    steps = np.concatenate([places, points]).reshape(-1, 3)
    decoded = np.asarray(truth["origin"]) + truth["side"] * steps / 65534.0
    known = (steps != 65535).all(axis=1)
    assert known.mean() > 0.9
    # Half a step of the box's side, and its rounding to four decimals.
    limit = 0.5 * truth["side"] / 65534.0 + 2e-4
    assert np.abs(decoded - np.concatenate([centres, xyz]))[known].max() <= limit
    assert len(scenes.data["truths"]) <= 2


def test_a_budget_leaves_out_repetitions_first(sweep: Path):
    whole = collect(load_sweep(sweep))
    one = len(json.dumps(whole.data["jobs"][0]["upgrades"]))
    part = collect(load_sweep(sweep), budget=30 * one)
    assert 0 < part.shown < part.available
    assert {job["formulation"] for job in part.data["jobs"]} == {job["formulation"] for job in whole.data["jobs"]}
    assert {job["init"] for job in part.data["jobs"]} == {job["init"] for job in whole.data["jobs"]}


def test_curves_keep_their_ends():
    points = curve([{"cost": 1.0 / (k + 1), "seconds": 0.0} for k in range(500)])
    assert points[0] == [0, 1.0]
    assert points[-1] == [499, 0.002]
    assert len(points) <= 60
    assert curve([]) == []


def test_the_command(sweep: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for directory, code in ((sweep, 0), (tmp_path / "nowhere", 2)):
        with pytest.raises(SystemExit) as ended:
            main(
                ["bench", "report", str(directory), "--output", str(tmp_path / "out"), "--markdown", str(tmp_path / "R.md")]
            )
        assert ended.value.code == code
    said = capsys.readouterr()
    assert f"written: {tmp_path / 'out' / 'index.html'}" in said.out
    assert "nowhere holds no rows" in said.err
    assert "bench report made" in (tmp_path / "R.md").read_text()
    assert not (tmp_path / "nowhere").exists()


def test_the_figure_of_bal_draws_both_runs_of_a_pair(contents: Contents):
    """The made-up sweep has one pair on BAL: two curves a stage, and two clouds with their cameras a picture."""
    bal = next(section for section in contents.early if section.name == "bal")
    spec = bal.figures[0].spec
    assert spec is not None
    axes = [trace.xaxis for trace in spec.data]
    assert {axis: axes.count(axis) for axis in axes} == {"x": 2, "x2": 2, "x3": 4, "x4": 4}
    failed, recovered = (spec.data[k].y[-1] for k in (1, 3))
    assert failed > recovered, "the refinement tells them apart"
    assert any("normal fails, unit circle recovers" in note.text for note in spec.layout.annotations)
