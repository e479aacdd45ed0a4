"""What structures give back when they give more than numbers."""

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


def pick(column: Any, place: int) -> Any:
    """The key at a place of a column as a plain Python value; of a tuple of columns, the tuple of its parts."""
    if isinstance(column, tuple):
        # A single value among the columns stands for every row.
        return tuple(part if isinstance(part, str | bytes | int) else pick(part, place) for part in column)
    item = column.iloc[place] if hasattr(column, "iloc") else column[place]
    for convert in ("as_py", "item"):
        if hasattr(item, convert):
            return getattr(item, convert)()
    return item


def top(among: Any, places: list[int], values: list[float]) -> list[Top]:
    """The keys at some places of a column, with their estimates."""
    return [Top(pick(among, place), value) for place, value in zip(places, values, strict=True)]
