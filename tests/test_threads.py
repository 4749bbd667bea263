"""Kernels in parts on a pool of threads."""

from threading import Thread

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from initfree.engine.kernels import kernel
from initfree.engine.threads import bounds, run, set_threads


@kernel()
def count(begin, end, done):
    for k in range(begin, end):
        done[k] += 1


@kernel()
def add(begin, end, factor, nested, into):
    """Arguments of every kind: numbers, a nested tuple of arrays, and a truth value."""
    (x, y), twice = nested
    for k in range(begin, end):
        into[k] = factor * (x[k] + y[k]) * (2.0 if twice else 1.0)


@kernel(allocates=True)
def invert(begin, end, matrices):
    for k in range(begin, end):
        matrices[k] = np.linalg.inv(matrices[k])


@pytest.fixture(autouse=True)
def shared(any_threads: None) -> None:
    """Even the smallest work is cut into parts."""


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize(
    "work", [0, 1, 3, 1000, np.array([0]), np.array([0, 0, 7, 7, 100, 101]), np.arange(10**6)], ids=lambda w: str(np.size(w))
)
def test_a_kernel_does_every_member_of_a_range_once(number: int, work: int | np.ndarray):
    set_threads(number)
    done = np.zeros(work if isinstance(work, int) else len(work) - 1, dtype=np.int64)
    for passed in range(1, 4):
        run(count, work, done)
        assert_array_equal(done, passed)


def test_every_kind_of_argument_arrives():
    set_threads(2)
    x, y, into = np.arange(100.0), np.ones(100), np.empty(100)
    for twice in (False, True):
        run(add, 100, 3.0, ((x, y), twice), into)
        assert_array_equal(into, (2.0 if twice else 1.0) * 3.0 * (x + 1.0))
    run(add, 50, 3, ((x.astype(np.int32), y), False), into)  # other types, another machine code
    assert_array_equal(into[:50], 3.0 * (x[:50] + 1.0))


@pytest.mark.slow
def test_what_fails_in_a_part_is_raised_and_the_next_pass_runs():
    set_threads(2)
    matrices = np.tile(2.0 * np.eye(2), (40, 1, 1))
    matrices[35] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        run(invert, 40, matrices)
    done = np.zeros(40, dtype=np.int64)
    run(count, 40, done)
    assert_array_equal(done, 1)


@pytest.mark.parametrize("number", [2, 4])
def test_passes_follow_each_other_and_no_part_is_lost_or_done_twice(number: int):
    set_threads(number)
    done = np.zeros(64, dtype=np.int64)
    for passed in range(1, 1001):
        run(count, 64, done)
        assert (done == passed).all()


def test_threads_that_want_the_pool_at_once_all_get_their_work_done():
    set_threads(3)
    done = np.zeros((4, 100), dtype=np.int64)

    def passing(mine: np.ndarray) -> None:
        for _ in range(300):
            run(count, 100, mine)

    workers = [Thread(target=passing, args=(mine,)) for mine in done]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert_array_equal(done, 300)


def test_bounds_are_those_of_equal_work():
    assert bounds(np.array([0, 1, 2, 3, 103, 104]), 4) == [0, 4, 4, 4, 5]
    assert bounds(10, 4) == [0, 2, 5, 7, 10]
