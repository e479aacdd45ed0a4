"""Scalar calls, beside an empty method call and the same on a numpy array."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

    import fastgame as fg

SIZE = 1024


@pytest.mark.benchmark(group="scalar: the price of a call")
def test_read_a_property(benchmark: BenchmarkFixture, counter: fg.ContinualCounter) -> None:
    benchmark(lambda: counter.horizon)


@pytest.mark.benchmark(group="scalar: the price of a call")
def test_read_the_clock(benchmark: BenchmarkFixture, counter: fg.ContinualCounter) -> None:
    benchmark(lambda: counter.now)


@pytest.mark.benchmark(group="scalar: the price of a call")
def test_advance(benchmark: BenchmarkFixture, counter: fg.ContinualCounter) -> None:
    benchmark(counter.advance)


@pytest.mark.benchmark(group="scalar: update")
def test_update_a_counter(benchmark: BenchmarkFixture, counter: fg.ContinualCounter) -> None:
    benchmark(counter.update, 1)


@pytest.mark.benchmark(group="scalar: update")
def test_update_one_cell(benchmark: BenchmarkFixture, vector: Callable[[int], fg.ContinualVector]) -> None:
    benchmark(vector(SIZE).update, 7)


@pytest.mark.benchmark(group="scalar: update")
def test_update_one_cell_numpy(benchmark: BenchmarkFixture) -> None:
    array = np.zeros(SIZE)

    def update() -> None:
        array[7] += 1.0

    benchmark(update)


@pytest.mark.benchmark(group="scalar: advance and release")
def test_release_a_counter(benchmark: BenchmarkFixture, counter: fg.ContinualCounter) -> None:
    def release() -> float:
        counter.advance()
        return counter.release()

    benchmark(release)


@pytest.mark.benchmark(group="scalar: advance and release")
def test_release_one_cell(benchmark: BenchmarkFixture, vector: Callable[[int], fg.ContinualVector]) -> None:
    cells = vector(SIZE)

    def release() -> float:
        cells.advance()
        return cells.release(7)

    benchmark(release)


@pytest.mark.benchmark(group="scalar: advance and release")
def test_add_one_normal_numpy(benchmark: BenchmarkFixture, rng: np.random.Generator) -> None:
    array = np.zeros(SIZE)
    benchmark(lambda: array[7] + rng.standard_normal())


@pytest.mark.benchmark(group="scalar: the same step again")
def test_repeat_a_release(benchmark: BenchmarkFixture, vector: Callable[[int], fg.ContinualVector]) -> None:
    cells = vector(SIZE)
    cells.release(7)
    benchmark(cells.release, 7)
