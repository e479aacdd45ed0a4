"""Boxes of a range counter: at a new step, at the same one, where no noise is drawn, and sums of an exact grid."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import fastgame as fg

if TYPE_CHECKING:
    from collections.abc import Callable

    from _report import Times

SIDE = 1 << 12
POINTS = 10**6
BOXES = 200


@pytest.mark.benchmark(group="boxes of 2^12 x 2^12")
def test_boxes(turns: Callable[..., Times], rng: np.random.Generator) -> None:
    ranges = fg.RangeCounter(shape=(SIDE, SIDE), horizon=1 << 40, privacy=fg.Zcdp(rho=0.5))
    points = rng.integers(0, SIDE, (POINTS, 2))
    ranges.update(points)
    grid = np.zeros((SIDE, SIDE), np.int64)
    np.add.at(grid, tuple(points.T), 1)
    corners = np.sort(rng.integers(0, SIDE, (BOXES, 2, 2)), axis=1)
    lo, hi = corners[:, 0], corners[:, 1] + 1
    ranges.count(lo, hi)
    turns(
        {
            "new": lambda: ranges.count(lo, hi),
            "again": lambda: ranges.count(lo, hi),
            "grid": lambda: [grid[a:c, b:d].sum() for (a, b), (c, d) in zip(lo.tolist(), hi.tolist(), strict=True)],
        },
        before=lambda: ranges.advance(to=ranges.now + 61),
        rounds=9,
        count=BOXES,
    )
