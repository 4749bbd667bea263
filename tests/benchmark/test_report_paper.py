"""The paper's experiment on tiny sets: the 2 x 2, its figure, the archive of rows, the page that is made of them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made import BAD, GOOD, frame, row
from tiny_sweeps import sweep

from initfree.benchmark import SetConfig, SolverConfig, Store
from initfree.benchmark.data import Place
from initfree.benchmark.jobs import expand
from initfree.benchmark.presets import as_table, load
from initfree.benchmark.report.cells import CELLS, PROTOCOL, PUBLIC, SURFACE, Cell, has_protocol, means, over_seeds
from initfree.benchmark.report.checks import Check, Variant
from initfree.benchmark.report.gap_plot import ring_points, series_points, series_runs
from initfree.benchmark.report.lessons import Answer, Lesson
from initfree.benchmark.report.paper import paper_table
from initfree.benchmark.report.reproduction import MARK, write_reproduction
from initfree.benchmark.report.selection import paper_grid
from initfree.benchmark.report.sweep import load_sweep
from initfree.benchmark.report.tables.bal import bal_pipeline, frame_free
from initfree.benchmark.store import archive as archived
from initfree.benchmark.store import gathered
from initfree.benchmark.sweep import set_files
from initfree.benchmark.worker import run_job
from initfree.errors import InputError


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The preset `paper`, its sets with ten cameras, two formulations and two seeds of it."""
    place = tmp_path_factory.mktemp("paper")
    ring = SetConfig(
        "set1", title="ring 4 within 90", visibility="frustum", cameras=16, points=80, density=4.0, track_angle=90.0
    )
    config = sweep(
        name="paper",
        sets=(SetConfig("paper1", cameras=10, points=300), SetConfig("set1", cameras=12, points=80, density=3.5), ring),
        formulations=("pose", "rose"), inits=("normal", "unit-circle"), intrinsics=("paper",), seeds=(0, 1),
        linear_solvers=("power", "exact"), inner_iterations=(20,), upgrades=("before", "linear1997", PUBLIC, "linear2004"),
        solver=SolverConfig(
            max_iterations=50, tolerance=1e-6, refine_tolerance=1e-6, linear_solver="power", inner_stop="counted",
            column_scaling=True,
        ),
    )  # fmt: skip
    jobs, store = expand(config), Store(place)
    store.create()
    for job in jobs:
        store.add(run_job(job, Place(store.cache, configs=set_files(config)), False))
    store.plan(jobs)
    store.describe({"name": "paper", "config": as_table(config), "starts": [{"started": "2026-11-19T00:00:00+00:00"}]})
    return place


def test_the_page_has_the_four_cells_and_the_archive_makes_it_again(directory: Path, tmp_path: Path):
    rows = load_sweep(directory).rows
    assert set(rows["error"]) == {""}
    assert set(rows["visibility"]) == {"frustum", "surface"}
    assert rows["spectral_gap"].between(0.0, 1.2).all()
    assert (rows["walk_gap"] < rows["spectral_gap"]).all(), "a walk that may end where it began mixes later"
    page = tmp_path / "reproduction.md"
    page.write_text("# Title\n\nKept.\n")
    write_reproduction([directory], page)
    text = page.read_text()
    assert text.startswith("# Title\n\nKept.\n")
    assert f"<!-- {MARK}: end -->" in text
    for cell in CELLS:
        assert f" {cell.title} |" in text
    (line,) = (line for line in text.splitlines() if line.startswith("| pOSE |"))
    theirs = paper_table("tab:summary_formulations_pose_linear1997").value("rotation_auc20", "pose")
    cells = [part.strip() for part in line.strip("|").split("|")]
    assert cells[1] == f"{theirs:.1f}"
    ours = means(paper_grid(PROTOCOL.of(rows)), "formulation", "rotation_auc20")["pose"]
    assert cells[2] == f"{ours} [{ours.one_seed}]"
    assert cells[3] == str(ours), "there is no other loss here"
    assert ours.seeds == 2
    for name in ("gap", "residuals"):
        assert (tmp_path / f"reproduction-{name}.png").read_bytes()[:4] == b"\x89PNG"
        assert f"(reproduction-{name}.png)" in text
    appendix = (tmp_path / "reproduction-appendix.md").read_text()
    for title in ("Set by set", "What a term gains", "Every claim"):
        assert f"\n## {title}\n" in appendix
    archive = tmp_path / "rows.parquet"
    archived(*gathered([directory]), archive)
    assert archive.stat().st_size < 200_000
    again = tmp_path / "again" / "reproduction.md"
    again.parent.mkdir()
    again.write_text("# Title\n\nKept.\n")
    # A second archive with some of the rows adds nothing.
    about, some = gathered([archive])
    archived(about, some.iloc[::3], tmp_path / "some.parquet")
    archived(*gathered([tmp_path / "some.parquet", archive]), archive)
    assert gathered([archive])[0]["jobs"] == some["job"].nunique()
    write_reproduction([archive], again)
    assert again.read_text() == text
    assert (again.parent / "reproduction-gap.png").read_bytes() == (tmp_path / "reproduction-gap.png").read_bytes()


def test_points_of_the_figure_are_the_rows(directory: Path):
    rows = load_sweep(directory).rows
    points = ring_points(rows)
    assert {(p.solver, p.terms) for p in points} == {("exact", 0), ("power", 20)}
    for p in points:
        mine = rows[(rows["set"] == p.set) & (rows["linear_solver"] == p.solver) & (rows["upgrade"] == PUBLIC)]
        assert p.runs == len(mine) == 8
        assert p.share == pytest.approx(100.0 * (~mine["failed"]).mean())
        assert p.low <= p.share <= p.high
        assert p.gap == pytest.approx(mine["walk_gap"].median())


def test_what_a_term_gains_is_that_of_the_start(directory: Path):
    rows = load_sweep(directory).rows
    by_start = rows[rows["method"] == "initfree"].groupby(["set", "seed", "min_obs", "init"])["series_gap"]
    assert (by_start.nunique() == 1).all()
    assert rows["series_gap"].between(0.0, 1.0).all()
    points = series_points(pd.concat([rows] * 2, ignore_index=True))
    runs = 2 * len(series_runs(rows))
    assert runs
    assert sum(p.runs for p in points) <= runs
    assert all(p.low <= p.share <= p.high for p in points)


def test_a_claim_of_one_run_is_explained_by_seeds_that_have_it():
    asked = Lesson("one", "One run", "shown", "it does", lambda rows, upgrade: Answer(False, "no"))
    check = Check(asked, Answer(False, "no"), (), 0.0, {}, (3, 10))
    assert (check.standing, check.because) == ("explained", "in 3 of 10 single seeds")
    assert replace(check, single=(0, 10)).standing == "open"
    turning = replace(check, single=(0, 10), variants=(Variant("exact steps", Answer(True, "yes")),))
    assert (turning.standing, turning.because) == ("explained", "with exact steps")
    assert replace(check, answer=Answer(None, "no rows"), single=(0, 0)).standing == "not told"


def test_a_cell_is_its_rows_under_the_names_of_the_tables():
    power = {"linear_solver": "power", "inner_iterations": 20.0}
    rows = frame(
        row(set="paper2", upgrade=PUBLIC, visibility="frustum", **power),
        row(set="paper2", upgrade="linear1997", **power, **BAD),
        row(set="paper2", upgrade=PUBLIC, linear_solver="power", inner_iterations=10.0, **BAD),
        row(set="paper2", upgrade=PUBLIC, linear_solver="exact"),
        row(set="set2", upgrade=PUBLIC, **power),
        row(set="ring 4 within 90", upgrade=PUBLIC, **power),
    )
    here = PROTOCOL.of(rows)
    assert here[["set", "upgrade", "linear_solver"]].to_numpy().tolist() == [["set2", "linear1997", "exact"]]
    assert not here["failed"].any()
    plain = Cell(upgrade="linear1997").of(rows)
    assert plain.loc[plain["upgrade"] == "linear1997", "failed"].tolist() == [True]
    assert len(Cell("exact").of(rows)) == len(Cell(visibility=SURFACE).of(rows)) == len(Cell(terms=10).of(rows)) == 1
    assert has_protocol(rows)
    assert not has_protocol(frame(row()))


def test_on_bal_the_frame_free_upgrade_stands_in_for_the_papers():
    rows = frame(
        row(set="ladybug-49", upgrade="linear1997", **BAD), row(set="ladybug-49", upgrade="linear"), row(set="set2")
    )
    assert bal_pipeline(rows)["failed"].tolist() == [True]
    assert bal_pipeline(frame_free(rows))["failed"].tolist() == [False]


def test_a_run_that_left_nothing_counts_as_a_collapse():
    nothing = {"rotation_auc20": 0.0, "translation_auc20": 0.0, "landmark_rmse": float("nan"), "cameras_recovered": 0.0}
    rows = frame(row(set="paper1", upgrade=PUBLIC, linear_solver="power", inner_iterations=20.0, failed=True, **nothing))
    assert PROTOCOL.of(rows)["landmark_rmse"].tolist() == [41.0]


def test_intervals_are_over_whole_seeds():
    mean = over_seeds([1.0, 2.0, 3.0])
    assert (mean.value, mean.seeds) == (2.0, 3)
    assert mean.half == pytest.approx(4.302653 / np.sqrt(3.0), rel=1e-5)
    assert mean.reach == pytest.approx(4.302653 * np.sqrt(4.0 / 3.0), rel=1e-5), "one more seed varies as well"
    assert mean.covers(6.9)
    assert not mean.covers(7.0)
    assert str(over_seeds([5.0])) == "5.0"
    assert not over_seeds([5.0]).covers(5.0), "one seed has no interval"
    grid = frame(
        *(row(set=f"set{k}", seed=s, **(GOOD if s else BAD)) for k in (1, 2) for s in (0, 1)), row(set="set1", seed=2, **BAD)
    )
    assert means(grid, "formulation", "rotation_auc20")["pose"].value == pytest.approx((99.0 + 2.0) / 2.0), (
        "seed 2 is cut short"
    )


def test_the_preset_is_what_the_page_says():
    config = load("paper")
    assert config.solver == SolverConfig(
        max_iterations=50, tolerance=1e-6, refine_tolerance=1e-6, linear_solver="power", inner_iterations=20,
        inner_tolerance=0.01, inner_stop="counted", column_scaling=True,
    )  # fmt: skip
    jobs = [job for job in expand(config) if job.data.seed == 3]
    cells = pd.DataFrame([(j.data.set, j.data.visibility, j.solver and j.solver.linear_solver) for j in jobs])
    for visibility, name in (("frustum", "paper4"), ("surface", "set4")):
        assert {"power", "exact"} <= set(cells[(cells[0] == name) & (cells[1] == visibility)][2])


def test_what_is_no_archive_is_one_sentence(tmp_path: Path):
    file = tmp_path / "rows.parquet"
    file.write_bytes(b"PAR1")
    with pytest.raises(InputError, match="is no archive of rows"):
        load_sweep(file)
    pd.DataFrame({"a": [1]}).to_parquet(file)
    with pytest.raises(InputError, match="is no archive of rows"):
        load_sweep(file)
