"""Work side by side."""

from threading import Event, Thread

from threadpoolctl import threadpool_info, threadpool_limits

from initfree.engine.parallel import one_blas_thread


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def test_the_last_to_leave_lifts_the_limit_of_blas():
    """Lifted by the first of two solves side by side, the other would go on with sums in another order."""
    inside, leave = Event(), Event()

    def hold() -> None:
        with one_blas_thread():
            inside.set()
            leave.wait(60.0)

    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        other = Thread(target=hold)
        with one_blas_thread():
            other.start()
            assert inside.wait(60.0)
        assert blas_threads() == {1}
        leave.set()
        other.join()
        assert blas_threads() == before == {2}
