"""A sweep on a Dask cluster that is already there, with a formulation that the user brings."""

from pathlib import Path

import pandas as pd
import pytest
from distributed import LocalCluster
from tiny_sweeps import RING, sweep

from initfree.benchmark import SetConfig, Store, run
from initfree.benchmark.sweep import Progress
from initfree.errors import InputError

pytestmark = pytest.mark.slow

MODULE = """
from initfree.formulations import register
from initfree.formulations.pose import PseudoObjectSpaceError

@register("pose-of-a-user")
class PoseOfAUser(PseudoObjectSpaceError):
    pass
"""


@pytest.fixture(scope="module")
def scheduler():
    """Workers in this process, reached by address like any others."""
    options = {"dashboard_address": ":0", "protocol": "tcp://", "threads_per_worker": 1}
    with LocalCluster(n_workers=1, processes=False, **options) as cluster:
        yield cluster.scheduler_address


def test_a_formulation_in_user_code_is_a_second_row(scheduler: str, tmp_path: Path):
    (tmp_path / "formulation_of_a_user.py").write_text(MODULE)
    config = sweep(
        formulations=("pose", "pose-of-a-user"), upgrades=("calibrated",), imports=("formulation_of_a_user",)
    )  # fmt: skip
    seen: list[Progress] = []
    store = run(config, tmp_path / "out", scheduler=scheduler, search=(str(tmp_path),), on_progress=seen.append)
    rows = store.rows().set_index("formulation")
    assert list(rows.index) == ["pose", "pose-of-a-user"]
    # The same residuals under another name: the same reconstruction.
    assert rows.loc["pose", "ose_cost"] == rows.loc["pose-of-a-user", "ose_cost"]
    assert (seen[0].done, seen[-1].done, seen[-1].jobs) == (0, 2, 2)
    about = store.about()
    assert about["finished"]
    assert about["config"]["imports"] == ["formulation_of_a_user"]


def test_more_upgrades_and_sets_run_into_the_same_directory(scheduler: str, tmp_path: Path):
    run(sweep(upgrades=("linear1997",)), tmp_path, scheduler=scheduler)
    first = Store(tmp_path).rows()
    more = sweep(
        upgrades=("linear1997", "calibrated"), sets=(RING, SetConfig("set2", title="smaller", cameras=10, points=90))
    )
    store = run(more, tmp_path, scheduler=scheduler)
    rows = store.rows()
    assert len(rows) == 4
    kept = rows[rows["key"].isin(first["key"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(kept, first, check_exact=True)
    assert [start["missing"] for start in store.about()["starts"]] == [1, 2]


def test_no_scheduler_no_directory(tmp_path: Path):
    with pytest.raises(InputError, match="no Dask scheduler answers at nonsense"):
        run(sweep(), tmp_path / "out", scheduler="nonsense://127.0.0.1:1")
    assert not (tmp_path / "out").exists()
