"""Linear solvers in the report, how stages ended, and the document that is written from sweeps."""

import gzip
import json
from pathlib import Path

import pandas as pd
import pytest
from made import BAD, frame, made_sweep, row

from initfree.benchmark.report.checks import check_all
from initfree.benchmark.report.reproduction import MARK, merged, write_reproduction
from initfree.benchmark.report.solver_figure import solver_figure
from initfree.benchmark.report.sweep import load_sweep
from initfree.benchmark.report.tables.protocol import nullity_table, sound_sets_table, stopping_table
from initfree.benchmark.report.tables.solvers import descents, solvers_table
from initfree.errors import InputError

pytestmark = pytest.mark.slow

COSTS = {"exact": [10.0, 2.0, 1.0], "power": [10.0, 6.0, 5.0, 1.005], "truth": [1.0]}


def solver_sweep(directory: Path, name: str = "set2", truth_seed: int = 0, costs: dict[str, list[float]] = COSTS) -> Path:
    """Exact steps reach the best cost, which the run from the truth tells, the power series comes within 1%."""
    for part in ("rows", "histories"):
        (directory / part).mkdir(parents=True)
    runs = [row(set=name, linear_solver=s, job=s, **(BAD if s == "power" else {})) for s in ("exact", "power")]
    runs.append(row(set=name, seed=truth_seed, linear_solver="exact", init="truth", job="truth"))
    pd.DataFrame(runs).to_parquet(directory / "rows" / "part-000000-x.parquet")
    (directory / "sweep.json").write_text(json.dumps({"name": "solvers"}))
    for job, curve in costs.items():
        history = {"ose": [{"cost": cost, "seconds": 0.5 * k} for k, cost in enumerate(curve)]}
        with gzip.open(directory / "histories" / f"{job}.json.gz", "wt") as file:
            json.dump(history, file)
    return directory


def test_time_to_the_best_cost_by_solver(tmp_path: Path):
    found = descents(load_sweep(solver_sweep(tmp_path / "solvers")))
    assert sorted(one.solver for one in found) == ["exact", "power"], "the run from the truth only says what is best"
    table = solvers_table(found).frame.set_index("solver")
    assert table.loc["exact", "seconds/0.01%"] == 1.0
    assert table.loc["power", "seconds/1%"] == 1.5
    assert table.loc["power", "reached/0.01%"] == 0.0
    assert pd.isna(table.loc["power", "seconds/0.01%"])
    assert table["good"].to_dict() == {"exact": 100.0, "power": 0.0}
    figure = solver_figure(found)
    assert figure is not None
    assert len(figure.data) == 4
    assert solver_figure([]) is None
    assert solvers_table([]).empty


def test_a_run_from_the_truth_of_a_bal_file_serves_all_seeds(tmp_path: Path):
    """Not that of a generated set, whose data another seed changes."""
    costs = {**COSTS, "truth": [0.5]}
    for name, best in (("ladybug-49", 0.5), ("set2", 1.0)):
        sweep = load_sweep(solver_sweep(tmp_path / name, name, truth_seed=1, costs=costs))
        (exact,) = (one for one in descents(sweep) if one.solver == "exact")
        assert exact.excess[-1] == pytest.approx(1.0 / best - 1.0)


def test_how_stages_ended():
    ends = [("converged", "zero cost"), ("plateau", "limit"), ("plateau", "converged")]
    rows = frame(*(row(seed=k, ose_reason=o, refine_reason=r, **(BAD if k == 1 else {})) for k, (o, r) in enumerate(ends)))
    table = stopping_table(rows).frame.set_index("stage")
    assert table.loc["stage 1", "plateau"] == pytest.approx(200.0 / 3.0)
    assert table.loc["stage 1", "failed"] == 50.0
    assert table.loc["refinement", "limit"] == pytest.approx(100.0 / 3.0)


def test_degenerate_sets_are_told_and_left_out():
    rows = frame(row(nullity=1.0), row(set="set8", nullity=2.0, **BAD), row(set="set8-jitter", nullity=1.0))
    table = nullity_table(rows).frame.set_index("set")
    assert list(table.index) == ["set1", "set8", "set8-jitter"]
    assert list(table["nullity"]) == [1.0, 2.0, 1.0]
    assert list(table["linear1997"]) == [0.0, 100.0, 0.0]
    sound = sound_sets_table(rows).frame.iloc[0]
    assert sound["rotation_auc20/not degenerate"] == 99.0
    assert sound["rotation_auc20/all sets"] == pytest.approx((99.0 + 2.0) / 2.0)
    assert sound_sets_table(frame(row(nullity=1.0))).empty


def test_the_document_of_what_is_reproduced(tmp_path: Path):
    sweeps = [made_sweep(tmp_path / "paper"), solver_sweep(tmp_path / "solvers")]
    for directory in sweeps:
        rows = load_sweep(directory).rows
        pd.DataFrame({"job": rows["job"], "key": rows["key"]}).to_parquet(directory / "plan.parquet")
    both = merged(sweeps)
    assert len(both.rows) == sum(len(load_sweep(one).rows) for one in sweeps)
    assert both.history("power")["ose"], "files of the second sweep are found"
    file = tmp_path / "reproduction.md"
    file.write_text("# Title\n\nKept.\n")
    write_reproduction(sweeps, file)
    text = file.read_text()
    assert text.startswith("# Title\n\nKept.\n")
    assert f"<!-- {MARK}: begin -->" in text
    for part in (
        "## In short",
        "## What was run",
        "## Every claim",
        "Linear solvers on the same runs",
        "RpOSE is the weakest",
    ):
        assert part in text
    claims = text[text.index("## Every claim") : text.index("## What was run")]
    table, folded = claims.split("<details")
    lines = [line for line in table.splitlines() if line.startswith("| ")][2:]
    checks = check_all(both.rows)
    assert len(lines) == len(checks) == folded.count("\n- **")
    assert max(map(len, lines)) < 400, "a row is a line or two"
    assert folded.rstrip().endswith("</details>")
    for check, line in zip(checks, lines, strict=True):
        assert f"| {check.lesson.claim} | **{check.verdict}**" in line
    assert (tmp_path / "reproduction-solvers.png").read_bytes()[:4] == b"\x89PNG"
    with pytest.raises(InputError, match="no sweeps"):
        write_reproduction([], file)
