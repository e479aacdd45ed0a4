"""How time and memory grow with cells, the horizon and reads, and what a second thread brings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np
import pytest

import fastgame as fg

if TYPE_CHECKING:
    from collections.abc import Callable

    from _report import Times

PRIVACY = fg.Zcdp(rho=0.5)
READS = 1 << 10
#: Far enough for most levels of the tree to change.
STRIDE = 1_000_003


def vector(size: int, horizon: int = 1 << 62) -> fg.ContinualVector:
    """With the norm bound 1."""
    return fg.ContinualVector(size, horizon=horizon, privacy=PRIVACY)


def advance(one: fg.ContinualVector) -> None:
    """To a step far away."""
    one.advance(to=one.now + STRIDE)


@pytest.mark.benchmark(group="growth with cells")
def test_growth_with_cells(turns: Callable[..., Times], rng: np.random.Generator) -> None:
    sizes = {bits: 1 << bits for bits in (10, 14, 18, 22, 24)}
    vectors = {bits: vector(size) for bits, size in sizes.items()}
    empty = {bits: one.memory for bits, one in vectors.items()}
    cells = {}

    def prepare() -> None:
        # Other cells each round, all over the vector: none waits in a cache that it does not fit in.
        for bits, one in vectors.items():
            cells[bits] = rng.choice(sizes[bits], READS, replace=False)
            advance(one)

    turns(
        {str(bits): lambda one=one, bits=bits: one.release(cells[bits]) for bits, one in vectors.items()},
        before=prepare,
        rounds=101,
        count=READS,
        empty=empty,
        after=lambda: {bits: one.memory for bits, one in vectors.items()},
    )


@pytest.mark.benchmark(group="growth with the horizon")
def test_growth_with_the_horizon(turns: Callable[..., Times], rng: np.random.Generator) -> None:
    rounds, size = 101, 1 << 16
    vectors = {bits: vector(size, 1 << bits) for bits in (10, 20, 40, 62)}
    steps = {bits: max((1 << bits) // (rounds + 1), 1) for bits in vectors}
    cells = rng.choice(size, READS, replace=False)
    turns(
        {str(bits): lambda one=one: one.release(cells) for bits, one in vectors.items()},
        before=lambda: [one.advance(to=one.now + steps[bits]) for bits, one in vectors.items()],
        rounds=rounds,
        count=READS,
        after=lambda: {bits: one.memory for bits, one in vectors.items()},
        empty={bits: vector(size, 1 << bits).memory for bits in vectors},
    )


@pytest.mark.benchmark(group="growth with reads")
def test_growth_with_reads(turns: Callable[..., Times], rng: np.random.Generator) -> None:
    cells = np.arange(READS)
    befores = (1, 10, 100, 1000)
    vectors = {}
    for before in befores:
        vectors[before] = vector(READS)
        for _ in range(before):
            vectors[before].release(cells)
            vectors[before].advance(to=vectors[before].now + int(rng.integers(1, 1 << 40)))
    turns(
        {str(before): lambda one=one: one.release(cells) for before, one in vectors.items()},
        before=lambda: [one.advance(to=one.now + int(rng.integers(1, 1 << 40))) for one in vectors.values()],
        rounds=25,
        count=READS,
        memory={before: one.memory for before, one in vectors.items()},
    )


@pytest.mark.benchmark(group="two threads, a vector each")
def test_two_threads(turns: Callable[..., Times], rng: np.random.Generator) -> None:
    """Two jobs, for a vector each: one after the other, and side by side."""
    size = 1 << 20
    vectors = [vector(size), vector(size)]
    cells = rng.choice(size, 10**5, replace=False)
    updated = rng.integers(0, size, 10**6)
    normals = [(np.random.default_rng(side), np.empty(10**6)) for side in range(2)]
    jobs = {
        "update of $10^6$ cells": lambda side: vectors[side].update(updated),
        "release of $10^5$ cells": lambda side: vectors[side].release(cells),
        # What the machine gives: no interpreter lock, no memory asked for.
        "numpy, $10^6$ normals": lambda side: normals[side][0].standard_normal(out=normals[side][1]),
    }

    def in_turn(job: Callable[[int], object]) -> None:
        for side in range(2):
            advance(vectors[side])
            job(side)

    with ThreadPoolExecutor(2) as pool:

        def side_by_side(job: Callable[[int], object]) -> None:
            for one in vectors:
                advance(one)
            list(pool.map(job, range(2)))

        turns(
            {
                f"{name}, {how}": lambda run=run, job=job: run(job)
                for name, job in jobs.items()
                for how, run in (("one thread", in_turn), ("two threads", side_by_side))
            },
            rounds=15,
        )
