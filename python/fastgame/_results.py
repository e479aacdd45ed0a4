"""What structures give back when they give more than numbers. For type checkers, `_results.pyi` says more."""

from __future__ import annotations

from typing import Any, NamedTuple


class Estimate(NamedTuple):
    """Released values with the standard deviation of their error, each a float or an array of them."""

    value: Any
    std: Any


class Interval(NamedTuple):
    """Released values with an interval that covers the truth, each a float or an array of them."""

    value: Any
    lower: Any
    upper: Any


class Top(NamedTuple):
    """A key and its estimate."""

    key: Any
    value: float


class WhatIf(NamedTuple):
    """A plan with something changed, its error at 95 %, and how many times the present error that is."""

    change: str
    plan: Any
    error: float
    ratio: float
