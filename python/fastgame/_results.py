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


class MechanismPlan(NamedTuple):
    """A plan with one mechanism: errors at 95 %, nanoseconds and variables for a cell that is read.

    The memory, in bytes, is the most that there is after any of the reads.
    """

    mechanism: str
    buffers: int | None
    plan: Any
    error_now: float
    error_at_end: float
    memory: int
    time: float
    variables: int


class Comparison(NamedTuple):
    """Plans of all mechanisms that the budget allows, and which to choose, and why. It prints as a table.

    `noise_alone`: whether the errors leave out what keys that collide add, as no profile was given.
    """

    mechanisms: tuple[MechanismPlan, ...]
    choice: str
    why: str
    noise_alone: bool

    def __str__(self) -> str:
        from fastgame._plan import comparison_as_text  # noqa: PLC0415 (it imports this module)

        return comparison_as_text(self)


class Grid(NamedTuple):
    """Released counts of a grid, their standard deviations (or None), and for each axis the edges of its bins."""

    value: Any
    std: Any
    edges: tuple[Any, ...]


class HeavyHitters(NamedTuple):
    """Keys with large released counts, the largest first, and whether none was left out for being over the limit."""

    items: list[Top]
    complete: bool


class BoxPlan(NamedTuple):
    """What a count of a box costs, and how far off it is: noise alone, with collisions, and at a confidence."""

    cells_read: float
    noise_std: float
    std: float
    error: float


class JoinEstimate(NamedTuple):
    """A join size with standard deviations of its error: by second moments, and by the spread of the rows (or None).

    The first is an upper bound on average, several times too large where few keys are most of a relation; the second
    follows the error there, and varies itself by a third or so at depth 5.
    """

    value: float
    std: float
    std_of_rows: float | None


class JoinTerms(NamedTuple):
    """The parts of the error of a join size, as standard deviations, and what they say about width and budget."""

    sketch: float
    cross: float
    noise: float
    balanced_width: float
    relative_std: float
