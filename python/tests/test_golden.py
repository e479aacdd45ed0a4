"""Seeded releases, value by value: how the binding turns `insecure_seed` into a generator, and what it hands out.

What a seed promises, and what a change of these values means, stands in `crates/fastgame-core/tests/golden.rs`, which
pins far more releases of the core.
"""

from __future__ import annotations

import platform
import sys
from typing import Any

import numpy as np
import pytest

import fastgame as fg

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the promise is for one platform"
)

BASE: dict[str, Any] = {"horizon": 1000, "privacy": fg.Zcdp(0.5), "insecure_seed": 7}
SKETCH: dict[str, Any] = {"depth": 3, "hash_seed": 1, "max_weight": 2, **BASE}


def counter() -> list[Any]:
    counter = fg.ContinualCounter(max_weight=2, **BASE)
    counter.update([1, 2])
    first = counter.release()
    counter.advance(to=400)
    return [first, counter.release()]


def vector() -> list[Any]:
    vector = fg.ContinualVector(4, max_norm=0.5, mechanism="tree-paper", **BASE)
    vector.update([0, 3], [0.25, -0.375])
    first = vector.release(2)
    vector.advance(to=400)
    return [first, *vector.release([3, 3]), *vector.release()]


def sketch() -> list[Any]:
    sketch = fg.CountSketch(width=64, protect="lifetime", **SKETCH)
    sketch.update([1, 1, -5], [2, 2, 1])
    sketch.update(["a"])
    first = sketch.estimate("a")
    sketch.advance(to=400)
    return [first, *sketch.estimate([1, -5]), sketch.second_moment()]


def ranges() -> list[Any]:
    ranges = fg.RangeCounter(shape=(50, 20), width=16, **SKETCH)
    ranges.update([(3, 4), (49, 19)], [2, 1])
    first = ranges.count((0, 0), (10, 10))
    ranges.advance(to=400)
    return [first, *ranges.count([(0, 0), (7, 3)], [(50, 20), (8, 9)])]


def join() -> list[Any]:
    join = fg.JoinSize(width=32, contributions=3, **SKETCH)
    join.left.update([1, 2, 2], 2)
    join.right.update([2, 3])
    first = join.estimate()
    join.advance(to=400)
    return [first, join.estimate()]


GOLDEN = {
    "counter": [18.125, -0.75],
    "vector": [1.84375, 0.828125, 0.828125, 1.875, 3.015625, 3.0, 0.828125],
    "sketch": [2.75, -1.5, 5.5, -3234.166639196683],
    "ranges": [-79.4375, 71.75, -19.086503623188403],
    "join": [17975.625, -1577.1875],
}


@pytest.mark.parametrize("history", [counter, vector, sketch, ranges, join])
def test_seeded_releases_are_the_same_bit_by_bit(history: Any) -> None:
    assert np.array(history()).tolist() == GOLDEN[history.__name__]
