"""Calls with one element or a few, beside a call that does nothing; and with a thousand, for the work of an element."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pytest

import fastgame as fg

if TYPE_CHECKING:
    from collections.abc import Callable

    from _report import Times

SIZE, MANY = 1024, 1000
HORIZON = 1 << 62
#: A call is too short for the clock; this many are timed at once.
LOOPS, ROUNDS = 1_000, 21


def sketch() -> fg.CountSketch:
    """Its cells stay in a core's own cache."""
    return fg.CountSketch(horizon=HORIZON, privacy=fg.Zcdp(rho=0.5), width=4096, depth=5, hash_seed=1)


@pytest.mark.benchmark(group="small: one element")
def test_scalar_calls(
    turns: Callable[..., Times], vector: Callable[[int], fg.ContinualVector], counter: fg.ContinualCounter
) -> None:
    """Those that read do so at one step, and draw nothing. A thousand elements in one call tell the work of one."""
    cells, read_cells, one, read = vector(SIZE), vector(SIZE), sketch(), sketch()
    numbers = list(range(MANY))
    texts = [f"key-{number}" for number in numbers]
    thousands = {
        "vector.update, a thousand": partial(cells.update, numbers),
        "vector.release, a thousand": partial(read_cells.release, numbers),
        "sketch.update, a thousand": partial(one.update, numbers),
        "sketch.update, text, a thousand": partial(one.update, texts),
        "sketch.estimate, a thousand": partial(read.estimate, numbers),
    }
    released = fg.ContinualCounter(horizon=HORIZON, privacy=fg.Zcdp(rho=0.5))
    array = np.zeros(SIZE)

    def add() -> None:
        array[7] += 1.0

    singles = {
        "a property": lambda: counter.horizon,
        "nothing": partial(counter.noise_std),
        "counter.update": partial(counter.update, 1),
        "counter.release": partial(released.release),
        "vector.update": partial(cells.update, 7),
        "vector.release": partial(read_cells.release, 7),
        "sketch.update": partial(one.update, 5),
        "sketch.update, text": partial(one.update, "five"),
        "sketch.estimate": partial(read.estimate, 5),
        "numpy, array[7] += 1": add,
    }
    loops = {**dict.fromkeys(singles, LOOPS), **dict.fromkeys(thousands, 20)}
    turns({**singles, **thousands}, loops=loops, rounds=ROUNDS)


@pytest.mark.parametrize("elements", [1, 2, 5, 10, MANY])
@pytest.mark.benchmark(group="small: a few elements")
def test_small_batches(turns: Callable[..., Times], vector: Callable[[int], fg.ContinualVector], elements: int) -> None:
    """Those that read do so at one step, and draw nothing."""
    cells, read_cells, one, read = vector(SIZE), vector(SIZE), sketch(), sketch()
    array, ones, weights = np.arange(elements), np.ones(elements), np.ones(elements, np.int64)
    numbers, texts = array.tolist(), [f"key-{number}" for number in array]
    turns(
        {
            "nothing": partial(one.noise_std),
            "vector.update, list": partial(cells.update, numbers),
            "vector.update, array": partial(cells.update, array),
            "vector.update, arrays": partial(cells.update, array, ones),
            "vector.release, list": partial(read_cells.release, numbers),
            "vector.release, array": partial(read_cells.release, array),
            "sketch.update, list": partial(one.update, numbers),
            "sketch.update, texts": partial(one.update, texts),
            "sketch.update, array": partial(one.update, array),
            "sketch.update, arrays": partial(one.update, array, weights),
            "sketch.estimate, list": partial(read.estimate, numbers),
            "sketch.estimate, array": partial(read.estimate, array),
        },
        loops=max(LOOPS // elements, 20),
        rounds=ROUNDS,
    )


@pytest.mark.benchmark(group="small: advance and read")
def test_advance_and_read_one(
    turns: Callable[..., Times],
    vector: Callable[[int], fg.ContinualVector],
    counter: fg.ContinualCounter,
    rng: np.random.Generator,
) -> None:
    cells, one, array = vector(SIZE), sketch(), np.zeros(SIZE)
    clock = fg.ContinualCounter(horizon=HORIZON, privacy=fg.Zcdp(rho=0.5))

    def release() -> float:
        cells.advance()
        return cells.release(7)

    def release_counter() -> float:
        counter.advance()
        return counter.release()

    def estimate() -> float:
        one.advance()
        return one.estimate(5)

    turns(
        {
            "advance alone": partial(clock.advance),
            "counter.release": release_counter,
            "vector.release": release,
            "sketch.estimate": estimate,
            "numpy, array[7] + a normal": lambda: array[7] + rng.standard_normal(),
        },
        loops=LOOPS,
        rounds=ROUNDS,
    )
