"""The CountSketch, beside what one would write without it: `sketch_rivals.py` has the loops, and datasketches a sketch.

10^6 keys of 64 bits at depth 5. No rival checks its input, adds noise, or keeps anything private. That of datasketches
is a count-min: one cell of every row and their minimum, no signs. It takes keys one by one, so most of its time is
that of the calls.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import datasketches
import numpy as np
import pyarrow as pa
import pytest
import sketch_rivals as rivals

import fastgame as fg

if TYPE_CHECKING:
    from collections.abc import Callable

    from _report import Times

KEYS, DEPTH, WIDTHS = 10**6, 5, (2**12, 2**16, 2**20)
#: Steps between reads, far enough for most levels of the tree to change.
STRIDE = 1_000_003
LAWS = ("uniform", "Zipf 1.2")


def keys_of(law: str, rng: np.random.Generator) -> np.ndarray:
    """Keys that are all different, or so frequent as Zipf's law says, spread over all 64 bits."""
    if law == "uniform":
        return rng.integers(0, 2**64, KEYS, dtype=np.uint64)
    return rng.zipf(1.2, KEYS).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)


def sketch(width: int, horizon: int = 2**60) -> fg.CountSketch:
    """A sketch whose keys all benches send to the same places."""
    return fg.CountSketch(horizon=horizon, privacy=fg.Zcdp(rho=0.5), width=width, depth=DEPTH, hash_seed=1)


def stepped(*sketches: fg.CountSketch) -> Callable[[], None]:
    """Moves the clocks, far."""

    def advance() -> None:
        for one in sketches:
            one.advance(to=one.now + STRIDE)

    return advance


def signed(keys: np.ndarray) -> list[int]:
    """What datasketches takes."""
    return keys.view(np.int64).tolist()


def each(call: Callable[[int], object], keys: list[int]) -> None:
    """One call a key, as fast as Python can."""
    deque(map(call, keys), maxlen=0)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.benchmark(group="sketch: update")
def test_update_sketch(turns: Callable[..., Times], rng: np.random.Generator, width: int, law: str) -> None:
    keys, one, parameters = keys_of(law, rng), sketch(width), rivals.Parameters(DEPTH, rng)
    raw, count_min, numbers = one.raw(), datasketches.count_min_sketch(DEPTH, width), signed(keys)
    same, shift, cubic, plain = (np.zeros((DEPTH, width), np.int64) for _ in range(4))
    turns(
        {
            "update": lambda: one.update(keys),
            "RawSketch.update": lambda: raw.update(keys),
            "numba, the same hash": lambda: rivals.update_same(keys, same, *parameters.tables),
            "numba, multiply-shift": lambda: rivals.update_shift(keys, shift, *parameters.shift),
            "numba, cubic polynomial": lambda: rivals.update_cubic(keys, cubic, parameters.cubic),
            "numpy": lambda: rivals.update_numpy(keys, plain, *parameters.shift),
            "datasketches": lambda: each(count_min.update, numbers),
        },
        count=KEYS,
    )


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.benchmark(group="sketch: estimate")
def test_estimate_sketch(turns: Callable[..., Times], rng: np.random.Generator, width: int, law: str) -> None:
    keys, one, parameters = keys_of(law, rng), sketch(width), rivals.Parameters(DEPTH, rng)
    same, plain, numbers = np.zeros((DEPTH, width), np.int64), np.zeros((DEPTH, width), np.int64), signed(keys)
    count_min = datasketches.count_min_sketch(DEPTH, width)
    one.update(keys)
    rivals.update_same(keys, same, *parameters.tables)
    rivals.update_numpy(keys, plain, *parameters.shift)
    each(count_min.update, numbers)
    same, plain = same.astype(float), plain.astype(float)
    turns(
        {
            "estimate": lambda: one.estimate(keys),
            "estimate again": lambda: one.estimate(keys),
            "numba, the same hash": lambda: rivals.estimate_same(keys, same, *parameters.tables),
            "numpy": lambda: rivals.estimate_numpy(keys, plain, *parameters.shift),
            "datasketches": lambda: each(count_min.get_estimate, numbers),
        },
        before=stepped(one),
        count=KEYS,
    )


@pytest.mark.benchmark(group="sketch: estimate, long horizon and short")
def test_estimate_sketch_of_any_horizon(turns: Callable[..., Times], rng: np.random.Generator) -> None:
    keys, long, short = keys_of("uniform", rng), sketch(2**16, 2**60), sketch(2**16, 2**16)

    def advance() -> None:
        for one in (long, short):
            one.advance(to=one.now + 997)

    turns({"2^60": lambda: long.estimate(keys), "2^16": lambda: short.estimate(keys)}, before=advance, count=KEYS)


@pytest.mark.benchmark(group="sketch: kinds of keys")
def test_update_sketch_with_kinds_of_keys(turns: Callable[..., Times], rng: np.random.Generator) -> None:
    numbers = rng.integers(0, 10**5, KEYS // 2)
    texts = [f"key-{number:06}" for number in numbers.tolist()]
    columns = {
        "numpy `uint64`": numbers.astype(np.uint64),
        "list of `int`": numbers.tolist(),
        "numpy `U10`": np.array(texts),
        "list of `str`": texts,
        "Arrow `string`": pa.array(texts),
        "Arrow dictionary of `string`": pa.array(texts).dictionary_encode(),
        "two columns: `uint64`, Arrow `string`": (numbers.astype(np.uint64), pa.array(texts)),
    }
    one = sketch(2**16)
    turns({name: lambda keys=keys: one.update(keys) for name, keys in columns.items()}, count=numbers.size)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.benchmark(group="sketch: two threads")
def test_sketches_in_two_threads(turns: Callable[..., Times], rng: np.random.Generator, width: int) -> None:
    """Two batches, for a sketch each: one after the other, and side by side."""
    batches, sketches = [keys_of("uniform", rng) for _ in range(2)], [sketch(width) for _ in range(2)]
    parameters = rivals.Parameters(DEPTH, rng)
    cells = [np.zeros((DEPTH, width), np.int64) for _ in range(2)]
    calls = {
        "update": lambda side: sketches[side].update(batches[side]),
        # What the machine gives at most: no interpreter lock, no memory asked for.
        "numba": lambda side: rivals.update_same_unlocked(batches[side], cells[side], *parameters.tables),
        # The last: it seals the step.
        "estimate": lambda side: sketches[side].estimate(batches[side]),
    }
    advance = stepped(*sketches)

    def in_turn(call: Callable[[int], object]) -> None:
        advance()
        call(0)
        call(1)

    with ThreadPoolExecutor(2) as pool:

        def side_by_side(call: Callable[[int], object]) -> None:
            advance()
            deque(pool.map(call, (0, 1)), maxlen=0)

        turns(
            {
                f"{name}, {how}": lambda run=run, call=call: run(call)
                for name, call in calls.items()
                for how, run in (("one thread", in_turn), ("two threads", side_by_side))
            },
            count=2 * KEYS,
        )
