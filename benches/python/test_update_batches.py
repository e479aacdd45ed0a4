"""Batches of updates, sparse and dense, beside numpy and scipy without any check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

    import fastgame as fg

SIZE = 1 << 16
NON_ZEROS = 8
DENSE_SIZE = 1024


def sparse_rows(rows: int, rng: np.random.Generator) -> sp.csr_array:
    """Rows with ones at `NON_ZEROS` sorted places."""
    indices = np.sort(rng.integers(0, SIZE, size=(rows, NON_ZEROS)), axis=1).ravel()
    offsets = np.arange(rows + 1) * NON_ZEROS
    return sp.csr_array((np.ones(indices.size), indices, offsets), shape=(rows, SIZE))


@pytest.mark.parametrize("rows", [1, 10, 1_000, 100_000])
@pytest.mark.benchmark(group="update: sparse rows of 8")
class TestSparse:
    def test_update_batch(
        self,
        benchmark: BenchmarkFixture,
        vector: Callable[[int], fg.ContinualVector],
        rng: np.random.Generator,
        rows: int,
    ) -> None:
        benchmark(vector(SIZE).update_batch, sparse_rows(rows, rng))

    def test_numpy_add_at(self, benchmark: BenchmarkFixture, rng: np.random.Generator, rows: int) -> None:
        batch = sparse_rows(rows, rng)
        benchmark(np.add.at, np.zeros(SIZE), batch.indices, batch.data)

    def test_numpy_bincount(self, benchmark: BenchmarkFixture, rng: np.random.Generator, rows: int) -> None:
        batch, array = sparse_rows(rows, rng), np.zeros(SIZE)

        def update() -> None:
            np.add(array, np.bincount(batch.indices, batch.data, minlength=SIZE), out=array)

        benchmark(update)


@pytest.mark.parametrize("rows", [1, 10, 1_000])
@pytest.mark.benchmark(group="update: dense rows of 1024")
class TestDense:
    def test_update_batch(
        self, benchmark: BenchmarkFixture, vector: Callable[[int], fg.ContinualVector], rows: int
    ) -> None:
        benchmark(vector(DENSE_SIZE).update_batch, np.ones((rows, DENSE_SIZE)))

    def test_numpy_sum(self, benchmark: BenchmarkFixture, rows: int) -> None:
        batch, array = np.ones((rows, DENSE_SIZE)), np.zeros(DENSE_SIZE)
        benchmark(lambda: np.add(array, batch.sum(axis=0), out=array))

    def test_numpy_norms_and_sum(self, benchmark: BenchmarkFixture, rows: int) -> None:
        batch, array = np.ones((rows, DENSE_SIZE)), np.zeros(DENSE_SIZE)

        def update() -> None:
            # What privacy cannot do without: the norm of every row.
            assert np.linalg.norm(batch, axis=1).max() <= DENSE_SIZE
            np.add(array, batch.sum(axis=0), out=array)

        benchmark(update)
