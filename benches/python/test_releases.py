"""Releases of many cells, each at a step of its own, beside numpy's exact value plus one normal a cell.

Numpy's side has the cost of the simplest noise there is, from a generator that is not cryptographic: fresh noise for
every answer, whose error for the same privacy grows with the number of answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

    import fastgame as fg

SIZE = 1 << 20
READS = 100_000
#: A step that leaves room for many rounds and makes most reads split at a new level.
GAP = 1 << 30


@pytest.mark.benchmark(group="release: 10^5 cells by index")
class TestIndices:
    def test_release(
        self, benchmark: BenchmarkFixture, vector: Callable[[int], fg.ContinualVector], rng: np.random.Generator
    ) -> None:
        cells, indices = vector(SIZE), rng.choice(SIZE, size=READS, replace=False)

        def release() -> np.ndarray:
            cells.advance(to=cells.now + GAP)
            return cells.release(indices)

        benchmark(release)

    def test_release_again_at_the_same_step(
        self, benchmark: BenchmarkFixture, vector: Callable[[int], fg.ContinualVector], rng: np.random.Generator
    ) -> None:
        cells, indices = vector(SIZE), rng.choice(SIZE, size=READS, replace=False)
        cells.release(indices)
        benchmark(cells.release, indices)

    def test_numpy_take_and_add_normals(self, benchmark: BenchmarkFixture, rng: np.random.Generator) -> None:
        array, indices = np.zeros(SIZE), rng.choice(SIZE, size=READS, replace=False)
        benchmark(lambda: array[indices] + rng.standard_normal(READS))


@pytest.mark.parametrize("size", [1 << 10, 1 << 20])
@pytest.mark.benchmark(group="release: whole vector")
class TestWhole:
    def test_release(self, benchmark: BenchmarkFixture, vector: Callable[[int], fg.ContinualVector], size: int) -> None:
        cells = vector(size)

        def release() -> np.ndarray:
            cells.advance(to=cells.now + GAP)
            return cells.release()

        benchmark(release)

    def test_numpy_add_normals(self, benchmark: BenchmarkFixture, rng: np.random.Generator, size: int) -> None:
        array = np.zeros(size)
        benchmark(lambda: array + rng.standard_normal(size))
