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

    from _report import Times

    import fastgame as fg

SIZE = 1 << 20
READS = 100_000
#: A step that leaves room for many rounds and makes most reads split at a new level.
GAP = 1 << 30


@pytest.mark.benchmark(group="release: 10^5 cells by index")
def test_release_by_index(
    turns: Callable[..., Times], vector: Callable[[int], fg.ContinualVector], rng: np.random.Generator
) -> None:
    cells, indices, array = vector(SIZE), rng.choice(SIZE, size=READS, replace=False), np.zeros(SIZE)
    turns(
        {
            "new": lambda: cells.release(indices),
            "again": lambda: cells.release(indices),
            "numpy": lambda: array[indices] + rng.standard_normal(READS),
        },
        before=lambda: cells.advance(to=cells.now + GAP),
        count=READS,
    )


@pytest.mark.parametrize("size", [1 << 10, 1 << 20])
@pytest.mark.benchmark(group="release: whole vector")
def test_release_of_all(
    turns: Callable[..., Times], vector: Callable[[int], fg.ContinualVector], rng: np.random.Generator, size: int
) -> None:
    cells, array = vector(size), np.zeros(size)

    def release() -> np.ndarray:
        cells.advance(to=cells.now + GAP)
        return cells.release()

    turns(
        {"new": release, "again": cells.release, "numpy": lambda: array + rng.standard_normal(size)},
        loops=max((1 << 18) // size, 1),
        count=size,
    )
