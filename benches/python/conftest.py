"""What the benchmarks share. Run by `make bench`; `pip install '.[bench]'` has what they need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import fastgame as fg

if TYPE_CHECKING:
    from collections.abc import Callable

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
