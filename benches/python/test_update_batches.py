"""Batches of updates, sparse and dense, beside numpy and scipy without any check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.sparse as sp

if TYPE_CHECKING:
    from collections.abc import Callable

    from _report import Times

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
def test_sparse_rows(
    turns: Callable[..., Times], vector: Callable[[int], fg.ContinualVector], rng: np.random.Generator, rows: int
) -> None:
    batch, cells, array, counts = sparse_rows(rows, rng), vector(SIZE), np.zeros(SIZE), np.zeros(SIZE)
    turns(
        {
            "ours": lambda: cells.update_rows(batch),
            "numpy, add.at": lambda: np.add.at(array, batch.indices, batch.data),
            "numpy, bincount": lambda: np.add(
                counts, np.bincount(batch.indices, batch.data, minlength=SIZE), out=counts
            ),
        },
        loops=max(10_000 // rows // 10, 1),
        count=rows,
    )


@pytest.mark.parametrize("rows", [1, 10, 1_000])
@pytest.mark.benchmark(group="update: dense rows of 1024")
def test_dense_rows(turns: Callable[..., Times], vector: Callable[[int], fg.ContinualVector], rows: int) -> None:
    batch, cells, array = np.ones((rows, DENSE_SIZE)), vector(DENSE_SIZE), np.zeros(DENSE_SIZE)

    def with_norms() -> None:
        # What privacy cannot do without: the norm of every row.
        assert np.linalg.norm(batch, axis=1).max() <= DENSE_SIZE
        np.add(array, batch.sum(axis=0), out=array)

    turns(
        {
            "ours": lambda: cells.update_rows(batch),
            "numpy, norms and sum": with_norms,
            "numpy, sum": lambda: np.add(array, batch.sum(axis=0), out=array),
        },
        loops=max(1_000 // rows, 1),
        count=rows,
    )
