"""Sparse use of a large vector: one update and one query of a cell, every step.

The rivals keep all cells ready. *Refresh*: the noise of every cell is drawn anew each step (Epasto et al. 2023), by the
tree of this library, or by numpy, whose normals are no mechanism but the least that any refresh has to draw. *Batches*:
updates wait until there are as many as cells; then all are applied and all noise is drawn (Holland 2025), and answers
come from what was released last. Its time a step is that of putting one update aside and looking up one answer, and
its share of the refresh.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import fastgame as fg

if TYPE_CHECKING:
    from collections.abc import Callable

    from _report import Times

HORIZON = 1 << 40
PRIVACY = fg.Zcdp(rho=0.5)
STEPS = 1000
EXPONENT = 1.2


def errors(size: int, rng: np.random.Generator) -> dict[str, float]:
    """Standard deviations of the noise, and what an answer of batches lacks, for the cell that was just updated.

    Which cell that is follows Zipf's law. The first batch is measured; later ones are like it. Of the noise of batches,
    the time is in batches, so its tree is smaller.
    """
    shares = np.arange(1, size + 1) ** -EXPONENT
    cells = rng.choice(size, size, p=shares / shares.sum())
    order = np.argsort(cells, kind="stable")
    first = np.searchsorted(cells[order], cells[order])
    waiting = np.arange(size) - first + 1  # updates of the cell in this batch, the last one too
    std = {
        name: fg.ContinualVector.plan(size, horizon=horizon, privacy=PRIVACY).noise_std
        for name, horizon in (("tree", HORIZON), ("batches", HORIZON // size))
    }
    lacking = float(np.sqrt(np.mean(waiting.astype(float) ** 2)))
    return {"noise": std["tree"], "batch_noise": std["batches"], "lacking": lacking, "most": int(waiting.max())}


@pytest.mark.parametrize("bits", [10, 16, 20, 24])
@pytest.mark.benchmark(group="one update and one query a step")
def test_sparse_vector(turns: Callable[..., Times], rng: np.random.Generator, bits: int) -> None:
    size = 1 << bits
    sparse, dense, batched = (fg.ContinualVector(size, horizon=HORIZON, privacy=PRIVACY) for _ in range(3))
    rounds, cells = 7 if bits < 24 else 3, []

    def draw_cells() -> None:
        # Others each round: none waits in a cache.
        cells[:] = rng.integers(0, size, (STEPS, 2)).tolist()

    waiting, released, noise = np.zeros(size, np.int64), np.zeros(size), np.zeros(size)
    many = rng.integers(0, size, size)

    def ours() -> None:
        for updated, asked in cells:
            sparse.update(updated)
            sparse.release(asked)
            sparse.advance()

    def refresh() -> None:
        (updated, asked), *_ = cells
        dense.update(updated)
        dense.release()[asked]
        dense.advance()

    def numpy_refresh() -> None:
        (updated, asked), *_ = cells
        released[updated] += 1
        rng.standard_normal(out=noise)
        released[asked] + noise[asked]

    def put_aside() -> None:
        for place, (updated, asked) in enumerate(cells):
            waiting[place] = updated
            released[asked]

    def apply() -> None:
        batched.update(many)
        batched.release()
        batched.advance()

    calls = {"ours": ours, "numpy": numpy_refresh, "refresh": refresh, "put aside": put_aside, "apply": apply}
    # The first and the fourth do many steps, the last one as many as there are cells.
    turns(calls, rounds=rounds, before=draw_cells, size=size, steps=STEPS, **errors(size, rng))
