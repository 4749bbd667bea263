"""What a job sends back: rows, histories, reconstructions, and errors as rows."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tiny_sweeps import RING, rows_of, rows_of_sweep, sweep, without_seconds

from initfree import formulations
from initfree.benchmark import SetConfig
from initfree.benchmark.attribution import CAUSES, UNKNOWN, attribution, causes
from initfree.benchmark.config import UPGRADES, Condition
from initfree.benchmark.data import Place, load_data
from initfree.benchmark.jobs import expand
from initfree.benchmark.rows import SCHEMA
from initfree.benchmark.worker import run_job
from initfree.formulations import LinearFormulation

pytestmark = pytest.mark.slow

SHUFFLED = "unit-circle-shuffled"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("datasets")


def test_one_stage_one_serves_every_upgrade(cache: Path):
    rows = rows_of_sweep(cache, inits=("spectral",), adjust=True)
    assert list(rows["upgrade"]) == [*UPGRADES, "adjusted"]
    assert list(rows.columns) == SCHEMA.names
    for column in ("job", "ose_residual", "ose_cost", "refine_residual", "seconds_ose", "seconds_refine"):
        assert rows[column].nunique() == 1
    best = rows.set_index("upgrade").loc["adjusted"]
    assert not best["failed"]
    assert best["rotation_auc5"] > 99.0
    assert best["landmark_rmse"] < 1e-3
    assert best["accepted"] in (True, False)
    assert rows.set_index("upgrade")["accepted"].drop("adjusted").isna().all()


def test_the_same_job_gives_the_same_rows_from_a_new_cache(cache: Path, tmp_path: Path):
    jobs = expand(sweep(formulations=("pose", "rpose"), losses=("cauchy",), conditions=(Condition(noise=0.5),)))
    first = without_seconds(rows_of(jobs, cache))
    load_data.cache_clear()
    pd.testing.assert_frame_equal(first, without_seconds(rows_of(jobs, tmp_path)), check_exact=True)


def test_history_and_reconstruction(cache: Path):
    job = expand(sweep(inits=("spectral",)))[0]
    parcel = run_job(job, Place(cache), True)
    assert parcel.history is not None
    assert parcel.reconstruction is not None
    history = json.loads(gzip.decompress(parcel.history))
    assert len(history["ose"]) == parcel.rows[0]["ose_iterations"] + 1
    assert history["refinement"][-1]["cost"] <= history["refinement"][0]["cost"]
    with np.load(io.BytesIO(parcel.reconstruction)) as arrays:
        assert set(arrays) >= {"names", "truth_centres", "truth_R", "truth_xyz", "calibrated_centres", "before_xyz"}
        np.testing.assert_allclose(arrays["calibrated_centres"], arrays["truth_centres"], atol=1e-2)
        np.testing.assert_allclose(arrays["calibrated_xyz"], arrays["truth_xyz"], atol=1e-2)
        np.testing.assert_allclose(arrays["calibrated_R"], arrays["truth_R"], atol=1e-4)
    assert run_job(job, Place(cache), False).reconstruction is None


class Broken(LinearFormulation):
    """A formulation with a mistake in it."""

    def rows(self, m):
        raise ZeroDivisionError("a mistake\nin two lines")


def test_a_run_that_raises_is_a_row_with_its_error(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(formulations.base._REGISTER, "broken", Broken)
    rows = rows_of_sweep(cache, formulations=("broken",))
    assert list(rows["upgrade"]) == list(UPGRADES)
    assert set(rows["error"]) == {"ZeroDivisionError: a mistake in two lines"}
    assert rows["failed"].all()
    assert rows["rotation_auc20"].isna().all()


def test_a_set_that_cannot_be_made_is_a_row_with_its_error(cache: Path):
    rows = rows_of_sweep(cache, min_obs=(9,), methods=("oracle",))
    assert rows["failed"].all()
    assert all("at least 9 observations" in error for error in rows["error"])


def test_min_obs_filters_or_generates(cache: Path):
    five = {"min_obs": (5,), "methods": ("oracle",), "formulations": ()}
    dense = SetConfig("set8", cameras=12, points=100, density=5.0)
    filtered = rows_of_sweep(cache, sets=(dense,), **five).iloc[0]
    assert filtered["error"] == ""
    assert filtered["landmarks"] < 100
    assert filtered["observations"] >= 5 * filtered["landmarks"]
    generated = rows_of_sweep(cache, sets=(SetConfig("set2", cameras=16, points=100, densification="generate"),), **five)
    assert generated.iloc[0]["landmarks"] == 100
    assert generated.iloc[0]["observations"] >= 500


def test_starts_at_the_truth_and_methods(cache: Path):
    rows = rows_of_sweep(cache, inits=("truth",), upgrades=("calibrated",), methods=("auto", "oracle")).set_index("method")
    assert list(rows.index) == ["auto", "oracle", "initfree"]
    assert not rows["failed"].any()
    assert rows.loc["auto", "accepted"]
    assert rows.loc["initfree", "ose_iterations"] < 30


def test_colmaps_mappers_run_on_the_same_tracks(cache: Path):
    ring = SetConfig("set2", cameras=12, points=300)
    rows = rows_of_sweep(
        cache, sets=(ring,), formulations=(), methods=("colmap-incremental", "colmap-global"),
        conditions=(Condition(noise=0.3),),
    ).set_index("method")  # fmt: skip
    assert list(rows["error"]) == ["", ""]
    assert (rows["cameras_recovered"] == 12).all()
    assert (rows["rotation_auc5"] > 90.0).all()
    # Ids were mapped back: a wrong map would leave errors of the size of the scene.
    assert (rows["landmarks_compared"] > 100).all()
    assert (rows["landmark_rmse"] < 2.0).all()


def test_colmap_that_registers_nothing_is_an_error_row(cache: Path):
    thin = SetConfig("set2", cameras=20, points=60)
    rows = rows_of_sweep(cache, sets=(thin,), formulations=(), methods=("colmap-global",))
    assert rows["failed"].all()
    assert "registered no image" in rows["error"].iloc[0]


def _study(outcomes: dict[tuple[str, str], bool]) -> pd.DataFrame:
    """Rows of one run from several starts; the values say whether it failed."""
    shared = {"method": "initfree", "set": "set2", "seed": 0, "min_obs": 3, "noise": 0.0, "outliers": 0.0, "merged": 0.0}
    shared |= {"formulation": "pose", "rotations": "", "loss": "none", "error": ""}
    return pd.DataFrame([shared | {"init": i, "upgrade": u, "failed": bad} for (i, u), bad in outcomes.items()])


@pytest.mark.parametrize(
    ("outcomes", "init", "cause"),
    [
        ({("normal", "linear1997"): True, ("normal", "calibrated"): False}, "normal", CAUSES[0]),
        ({(SHUFFLED, "linear1997"): True, ("unit-circle", "calibrated"): False}, SHUFFLED, CAUSES[2]),
        ({("unit-circle", "linear1997"): True, ("unit-circle-spectral", "linear"): False}, "unit-circle", CAUSES[2]),
        ({("normal", "linear1997"): True, ("truth", "linear1997"): True}, "normal", CAUSES[3]),
        ({("normal", "linear1997"): True, ("truth", "linear"): True, ("truth", "calibrated"): False}, "normal", CAUSES[4]),
        ({("normal", "linear1997"): True, ("unit-circle", "calibrated"): False}, "normal", UNKNOWN),
    ],
)  # fmt: skip
def test_causes_of_failure(outcomes: dict, init: str, cause: str):
    found = causes(_study(outcomes))
    assert found.set_index("init").loc[init, "cause"] == cause


def test_a_failure_that_exact_steps_mend_is_the_solvers():
    bad, good = {("normal", "linear1997"): True}, {("normal", "linear1997"): False}
    series, exact = _study(bad).assign(linear_solver="power"), _study(good).assign(linear_solver="exact")
    both = pd.concat([series, exact], ignore_index=True)
    assert list(causes(both)["cause"]) == ["inexact solver"]
    other = pd.concat([both, series.assign(seed=1), exact.assign(seed=2, failed=True)], ignore_index=True)
    table = attribution(other).set_index("init").loc["all"]
    assert (table["runs"], table["failures"]) == (1, 1), "runs without a counterpart are not compared"
    assert list(causes(exact.assign(failed=True))["cause"]) == [UNKNOWN]


def test_attribution_adds_up(cache: Path):
    inits = ("normal", "unit-circle", "unit-circle-shuffled", "unit-circle-spectral", "truth")
    rows = rows_of_sweep(cache, formulations=("pose", "rpose"), inits=inits, sets=(RING,))
    table = attribution(rows).set_index("init")
    assert table.loc["all", "runs"] == 6
    failures = rows[(rows["upgrade"] == "linear1997") & rows["failed"] & rows["init"].isin(table.index)]
    assert table.loc["all", "failures"] == len(failures)
    if len(failures):
        assert table.loc["all", list(CAUSES)].sum() == pytest.approx(100.0)


def test_pixels_leave_focal_lengths_and_distortion_to_the_solver(cache: Path):
    """The paper's protocol: from the truth, in rescaled pixels, the pipeline still finds the metric reconstruction."""
    ring = SetConfig("set1", cameras=16, points=200, density=4.5)
    rows = rows_of_sweep(cache, sets=(ring,), inits=("truth",), intrinsics=("paper",), upgrades=("linear1997", "calibrated"))
    assert set(rows["intrinsics"]) == {"pixels"}
    assert (rows["rotation_auc5"] > 99.0).all()
    assert (rows["nullity"] == 1).all()
    assert set(rows["ose_reason"]) <= {"converged", "zero cost"}
    assert (rows["ose_gradient"] < 1e-4).all()
    bent = rows_of_sweep(
        cache, sets=(ring,), inits=("truth",), intrinsics=("rays", "paper"), upgrades=("calibrated",),
        conditions=(Condition(k1=-0.3),),
    ).set_index("intrinsics")  # fmt: skip
    # Distortion is undone in calibrated rays and left in pixels.
    assert bent.loc["rays", "rotation_auc5"] > 99.0
    assert bent.loc["pixels", "refine_residual"] > 10.0 * bent.loc["rays", "refine_residual"] + 0.1


def test_classical_bundle_adjustment_from_random_cameras_collapses(cache: Path):
    rows = rows_of_sweep(
        cache, sets=(SetConfig("set3", cameras=12, points=120, density=3.2),), formulations=(), methods=("classical",)
    )
    assert list(rows["error"]) == [""]
    assert rows["failed"].all()
    assert rows["refine_reason"].isin(["converged", "plateau", "limit"]).all()
