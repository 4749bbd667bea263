"""BAL problems in a sweep: the truth is BAL's own optimum, and a start at it stays there."""

from pathlib import Path

import numpy as np
import pytest
from models import to_bal
from synthetic import ring
from tiny_sweeps import sweep

from initfree.benchmark.config import Condition
from initfree.benchmark.data import PAPER_SCALE, Place, load_data
from initfree.benchmark.jobs import expand
from initfree.benchmark.worker import run_job
from initfree.errors import InputError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("bal")
    scene = ring(14, 150, noise=0.3, keep=0.7, min_observations=3)
    (place / f"ring-problem-14-{scene.tracks.landmarks}-pre.txt").write_text(to_bal(scene))
    return place


def test_bal_rows(folder: Path):
    config = sweep(
        source="bal", sets=(), inits=("truth",), methods=("oracle",), upgrades=("linear1997", "calibrated"), min_obs=(3, 5)
    )  # fmt: skip
    jobs = expand(config, folder)
    assert {job.data.set for job in jobs} == {"ring-14"}
    rows = [row for job in jobs for row in run_job(job, Place(folder / "cache", folder), True).rows]
    assert not any(row["error"] for row in rows)
    good = [row for row in rows if row["upgrade"] != "linear1997"]
    assert len(good) == 2 * 2
    assert all(row["rotation_auc20"] > 95.0 and not row["failed"] for row in good)
    by_density = [next(row["landmarks"] for row in rows if row["min_obs"] == least) for least in (3, 5)]
    assert by_density[0] > by_density[1]


def test_bal_truth_is_the_optimum_at_the_papers_scale(folder: Path):
    spec = expand(sweep(source="bal", sets=()), folder)[0].data
    data = load_data(spec, Place(folder / "cache", folder))
    assert data.scene_scale == pytest.approx(PAPER_SCALE)
    # Focal lengths in normalised units: 500 px for all.
    unit = data.problem.observations.image_unit[0, 0]
    assert np.median(data.true_reconstruction.focal) * unit == pytest.approx(500.0, rel=0.05)


def test_bal_has_no_conditions_and_no_mappers(folder: Path):
    with pytest.raises(InputError, match="as they are"):
        expand(sweep(source="bal", sets=(), conditions=(Condition(noise=1.0),)), folder)
    with pytest.raises(InputError, match="colmap-global is not run on BAL"):
        expand(sweep(source="bal", sets=(), methods=("auto", "colmap-global")), folder)


def test_rotations_on_bal_use_the_files_intrinsics(folder: Path):
    config = sweep(
        source="bal", sets=(), inits=("truth",), formulations=("pose", "pose-rot"), rotations=("estimated",),
        upgrades=("calibrated",),
    )  # fmt: skip
    jobs = expand(config, folder)
    rows = {job.formulation: run_job(job, Place(folder / "cache", folder), True).rows[0] for job in jobs}
    assert [rows[name]["intrinsics"] for name in ("pose", "pose-rot")] == ["pixels", "rays"]
    assert rows["pose-rot"]["error"] == ""
    assert rows["pose-rot"]["rotation_auc20"] > 95.0


def test_on_bal_a_seed_repeats_only_what_it_changes(folder: Path):
    """Random cameras and estimated rotations; not a start without random numbers, nor what runs are compared with."""
    inits, methods = ("normal", "unit-circle"), ("oracle", "classical")
    config = sweep(
        source="bal", sets=(), formulations=("pose", "pose-rot"), rotations=("estimated",), inits=inits, methods=methods,
        seeds=(3, 4),
    )  # fmt: skip
    runs = {seed: [job for job in expand(config, folder) if job.data.seed == seed] for seed in (3, 4)}
    found = {seed: {(job.method, job.formulation, job.init) for job in jobs} for seed, jobs in runs.items()}
    assert found[3] - found[4] == {("oracle", "", ""), ("initfree", "pose", "unit-circle")}
    assert found[4] < found[3]


def test_a_start_at_the_truth_of_a_bal_file_runs_once(folder: Path):
    jobs = expand(sweep(source="bal", sets=(), inits=("normal", "truth"), seeds=(3, 4)), folder)
    assert [job.data.seed for job in jobs if job.init == "truth"] == [3]
    assert [job.data.seed for job in jobs if job.init == "normal"] == [3, 4]
