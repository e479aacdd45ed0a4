"""What the benchmarks share. Run by `make bench`; `pip install '.[bench]'` has what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import scipy.sparse as sp
from _report import Times, one_round

import fastgame as fg

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pytest_benchmark.fixture import BenchmarkFixture

#: Long enough for any number of rounds.
HORIZON = 1 << 62


def pytest_configure(config: pytest.Config) -> None:
    """Says what is missing before every test fails on an unknown fixture."""
    if not config.pluginmanager.hasplugin("benchmark"):
        raise pytest.UsageError("the benchmarks need pytest-benchmark: pip install '.[bench]'")


@pytest.fixture
def vector() -> Callable[[int], fg.ContinualVector]:
    """Makes a vector of a size; the norm bound is that of a row of ones."""

    def make(size: int) -> fg.ContinualVector:
        return fg.ContinualVector(size, horizon=HORIZON, privacy=fg.Zcdp(rho=0.5), max_norm=float(np.sqrt(size)))

    return make


@pytest.fixture
def counter() -> fg.ContinualCounter:
    """A counter."""
    return fg.ContinualCounter(horizon=HORIZON, privacy=fg.Zcdp(rho=0.5))


@pytest.fixture
def rng() -> np.random.Generator:
    """The generator of the inputs, and of numpy's side."""
    return np.random.default_rng(1)


@pytest.fixture
def turns(benchmark: BenchmarkFixture) -> Callable[..., Times]:
    """Times calls that are compared: every round runs each of them, so that what slows one slows all.

    A function of the calls by name. A round runs each `loops` times (or as often as that says for it), in the order
    given; `before` runs once a round and is not timed. The JSON of pytest-benchmark has the seconds of every call and
    round in `extra_info`, beside `count`, how many things a call does, and whatever else is given (of a function, what
    it says at the end); `scripts/_report.py` reads it. What pytest-benchmark itself prints is the time of a round.
    """

    def run(
        calls: Mapping[str, Callable[[], object]],
        *,
        rounds: int = 11,
        before: Callable[[], object] = lambda: None,
        loops: int | Mapping[str, int] = 1,
        warm: int = 1,
        count: int = 1,
        **found: object,
    ) -> Times:
        seconds: dict[str, list[float]] = {}

        def prepare() -> tuple[tuple[object, ...], dict[str, object]]:
            before()
            return (calls, seconds, loops), {}

        benchmark.pedantic(one_round, setup=prepare, rounds=rounds, warmup_rounds=warm)
        # The first ones warmed up.
        times = Times({name: values[-rounds:] for name, values in seconds.items()})
        found = {name: what() if callable(what) else what for name, what in found.items()}
        benchmark.extra_info.update(found, seconds=times.seconds, count=count)
        return times

    return run
