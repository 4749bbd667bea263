"""The estimate of what is left of a sweep."""

import pytest
from tiny_sweeps import sweep

from initfree.benchmark.jobs import expand
from initfree.benchmark.remaining import Remaining


def test_kinds_that_ran_say_what_their_like_will_take():
    jobs = expand(sweep(formulations=("pose", "expose"), inits=("normal",), seeds=tuple(range(20)), methods=()))
    fast = [job for job in jobs if job.formulation == "pose"]
    slow = [job for job in jobs if job.formulation == "expose"]
    assert len(fast) == len(slow) == 20
    remaining = Remaining(jobs, workers=2)
    assert remaining.seconds is None
    for job in fast[:9]:
        remaining.ran(job, 1.0)
    assert remaining.seconds is None
    remaining.ran(slow[0], 11.0)
    assert remaining.seconds == pytest.approx((11 * 1.0 + 19 * 11.0) / 2)
    # A run whose worker died is one less, and says nothing about its kind.
    remaining.ran(slow[1], None)
    assert remaining.seconds == pytest.approx((11 * 1.0 + 18 * 11.0) / 2)
    for job in fast[9:] + slow[2:]:
        remaining.ran(job, 1.0)
    assert remaining.seconds == 0.0
