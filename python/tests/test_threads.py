"""One object shared by many threads, and other threads during a long call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from helpers import counter, vector, whole

import fastgame as fg

THREADS = 8
SECONDS = 2.0


def run_together(work: Callable[[int], Any], threads: int = THREADS, timeout: float = 60) -> list[Any]:
    """What `work` returns in each of several threads that start together; fails if one raises or hangs."""
    results: list[Any] = [None] * threads
    errors: list[BaseException] = []
    barrier = threading.Barrier(threads)

    def run(number: int) -> None:
        try:
            barrier.wait(30)
            results[number] = work(number)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(timeout)
    assert not any(thread.is_alive() for thread in running), "deadlock"
    assert not errors, errors
    return results


def test_a_counter_shared_by_threads_loses_and_repeats_nothing() -> None:
    count = counter(horizon=2**40, max_weight=10)

    def work(number: int) -> int:
        generator = np.random.default_rng(number)
        end = time.monotonic() + SECONDS
        added = 0
        while time.monotonic() < end:
            # Below and above the size from which the interpreter lock is released.
            weights = generator.integers(-10, 11, size=int(generator.choice([1, 10, 10_000])))
            try:
                count.update(weights)
                added += int(weights.sum())
            except fg.SealedStepError:
                count.advance()
            if generator.random() < 0.3:
                count.release()
            if generator.random() < 0.3:
                assert 1 <= count.now <= count.horizon
                assert "at step" in repr(count)
        return added

    added = run_together(work)
    count.advance()
    assert whole(count.release()) == sum(added)


def test_a_vector_shared_by_threads_loses_and_repeats_nothing() -> None:
    size = 6000
    cells = vector(size, horizon=2**40, max_norm=1000.0)

    def work(number: int) -> Any:
        generator = np.random.default_rng(100 + number)
        end = time.monotonic() + SECONDS
        added = np.zeros(size, dtype=np.int64)
        while time.monotonic() < end:
            indices = generator.integers(0, size, size=int(generator.choice([1, 10, 5000])))
            try:
                cells.update(indices)
                np.add.at(added, indices, 1)
            except fg.SealedStepError:
                cells.advance()
            if generator.random() < 0.1:
                released = cells.release(indices)
                # The step may have moved on meanwhile; within one call a cell has one answer.
                assert len(set(zip(indices.tolist(), released.tolist(), strict=True))) == len(set(indices.tolist()))
            if generator.random() < 0.02:
                assert cells.release().shape == (size,)
        return added

    added = run_together(work)
    cells.advance()
    assert np.array_equal(whole(cells.release()), np.sum(added, axis=0))


def test_a_range_counter_shared_by_threads_loses_and_repeats_nothing() -> None:
    shape = (40, 30)
    counter = fg.RangeCounter(shape=shape, horizon=2**40, privacy=fg.Zcdp(1e9), hash_seed=1)

    def work(number: int) -> Any:
        generator = np.random.default_rng(200 + number)
        end = time.monotonic() + SECONDS
        added = np.zeros(shape, dtype=np.int64)
        while time.monotonic() < end:
            points = generator.integers(0, shape, size=(int(generator.choice([1, 10, 5000])), 2))
            try:
                counter.insert(points)
                np.add.at(added, tuple(points.T), 1)
            except fg.SealedStepError:
                counter.advance()
            if generator.random() < 0.2:
                lo = generator.integers(0, shape, size=(int(generator.choice([1, 500])), 2))
                counts = counter.count(np.concatenate([lo, lo]), np.concatenate([lo + 1, lo + 1]))
                # The step may have moved on meanwhile; within one call a box has one answer.
                assert np.array_equal(counts[: len(lo)], counts[len(lo) :])
            if generator.random() < 0.02:
                assert counter.grid(error=True).value.shape == shape
        return added

    added = run_together(work)
    counter.advance()
    assert np.array_equal(whole(counter.grid().value), np.sum(added, axis=0))


def test_threads_that_release_one_step_together_get_one_answer() -> None:
    cells = fg.ContinualVector(5000, horizon=50, privacy=fg.Zcdp(0.01))
    for _ in range(20):
        answers = run_together(lambda number: cells.release() if number % 2 else cells.release(range(5000)))
        assert all(np.array_equal(answer, answers[0]) for answer in answers)
        cells.advance()


def test_threads_that_use_up_the_horizon_together_stop_at_its_end() -> None:
    count = counter(horizon=5000)

    def work(_: int) -> int:
        steps = 0
        while True:
            try:
                count.advance()
                steps += 1
            except fg.HorizonError:
                return steps

    assert sum(run_together(work)) == 4999
    assert count.now == 5000


def test_structures_of_different_threads_do_not_share_noise() -> None:
    def work(_: int) -> Any:
        return [fg.ContinualCounter(horizon=8, privacy=fg.Zcdp(0.0001)).release() for _ in range(200)]

    # Standard deviation 140 on a lattice of step 2: the chance that two of eight rows of 200 agree is nil.
    assert len({tuple(row) for row in run_together(work)}) == THREADS


def ticks_during(call: Callable[[], Any], every: float = 0.0005) -> tuple[float, list[float]]:
    """How long a call took, and when another Python thread, that wakes up every millisecond or so, ran meanwhile."""
    ticks: list[float] = []
    done, started = threading.Event(), threading.Event()

    def tick() -> None:
        while not done.is_set():
            started.set()
            time.sleep(every)
            ticks.append(time.monotonic())

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    started.wait(30)
    start = time.monotonic()
    call()
    end = time.monotonic()
    done.set()
    ticker.join(30)
    return end - start, [moment for moment in ticks if start < moment < end]


def test_other_threads_run_during_a_long_release() -> None:
    cells = fg.ContinualVector(10**7, horizon=2, privacy=fg.Zcdp(0.5))
    seconds, ticks = ticks_during(cells.release)
    # Holding the interpreter lock would allow none at all. A loaded machine may skip many.
    assert len(ticks) >= 10
    gaps = np.diff([ticks[0] - seconds / 4, *ticks])
    assert gaps.max() < seconds / 2


def test_other_threads_run_during_a_long_update() -> None:
    count = counter()
    # One-dimensional and of the native type: numpy, which releases the lock for its own copies, has no part in it.
    weights = np.ones(2 * 10**7, dtype=np.int64)
    _, ticks = ticks_during(lambda: count.update(weights))
    assert len(ticks) >= 3
    assert whole(count.release()) == 2 * 10**7


def test_the_array_of_an_update_may_change_as_soon_as_the_call_has_begun() -> None:
    # The argument is copied before the interpreter lock is released: what is added was checked. A thread writes huge
    # and small values in turn; each update either is refused as a whole or adds small values only.
    cells = vector(1, horizon=2, max_norm=1.0)
    rows = np.ones((300_000, 1))
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            rows[-1000:] = 1e6
            rows[-1000:] = 1.0

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    accepted = 0
    for _ in range(50):
        try:
            cells.update_rows(rows)
            accepted += 1
        except ValueError as error:
            assert "over the bound" in str(error)
    done.set()
    writer.join(30)
    assert whole(cells.release(0)) == accepted * 300_000
