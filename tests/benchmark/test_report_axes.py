"""Tables of what else the outcome depends on."""

import pytest
from made import BAD, frame, row

from initfree.benchmark.report.tables.axes import conditions_table, weights_table


def test_conditions_are_compared_on_the_same_runs():
    rows = frame(
        row(),
        row(formulation="rpose"),
        row(k1=-0.3, **BAD),
        row(k1=-0.3, formulation="rpose"),
        row(noise=1.0, outliers=0.05, loss="cauchy"),
        # No spoilt run of this start: it would be compared with nothing.
        row(init="unit-circle", **BAD),
        # Not the paper's upgrade.
        row(k1=-0.3, upgrade="calibrated"),
    )
    table = conditions_table(rows).frame.set_index(["condition", "loss"])
    assert table.loc[("no noise, ≥ 3 obs.", "none"), "pose"] == 99.0
    assert table.loc[("no noise, k1 -0.3, ≥ 3 obs.", "none")].to_dict() == {"pose": 2.0, "rpose": 99.0}
    assert table.loc[("1 px, 5% wrong matches, ≥ 3 obs.", "cauchy"), "pose"] == 99.0
    assert len(table) == 3


def test_weights_are_compared_on_the_same_runs():
    rotated = {"formulation": "pose-rot", "rotations": "estimated", "intrinsics": "rays"}
    rows = frame(
        row(alpha=0.05, beta=1.0, intrinsics="pixels", **BAD),
        row(alpha=0.005, beta=1.0, intrinsics="pixels"),
        row(alpha=0.05, beta=1.0, intrinsics="rays"),
        row(alpha=0.05, beta=1.0, **rotated),
        row(alpha=0.005, beta=0.01, **(rotated | BAD)),
        row(alpha=0.05, beta=1.0, intrinsics="pixels", init="unit-circle", **BAD),
    )
    table = weights_table(rows).frame.set_index(["coordinates", "alpha", "beta"])
    assert table.loc[("rescaled pixels", "0.05", ""), "pose"] == 2.0
    assert table.loc[("rescaled pixels", "0.005", ""), "pose"] == 99.0
    assert table.loc[("calibrated rays", "0.05", "1"), "pose-rot"] == 99.0
    assert table.loc[("calibrated rays", "0.005", "0.01"), "pose-rot"] == 2.0
    assert len(table) == 5


@pytest.mark.parametrize("table", [conditions_table, weights_table])
def test_a_sweep_with_one_condition_has_no_such_table(table):
    assert table(frame(row(), row(seed=1))).empty
