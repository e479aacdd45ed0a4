"""Axes and boxes as text, for the command line: ``distance:0:5000:100`` and ``distance=0:500,origin=JFK``."""

from __future__ import annotations

import re
from typing import Any

from fastgame import axis
from fastgame.axis import Axis

_AXIS = (
    "name:lo:hi:bins (numbers), name:lo:hi (a bin for each integer), name:start:end:every (dates, such as "
    "when:2013-01-01:2014-01-01:1mo), or name:A,B,C (categories)"
)
_TIME = r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}(?::\d{2}(?::\d{2}(?:\.\d+)?)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"
_DATES = re.compile(rf"([^:]+):({_TIME}):({_TIME}):([0-9a-z]+)", re.ASCII)
_BETWEEN = re.compile(rf"({_TIME})?:({_TIME})?", re.ASCII)


def axis_of(text: str, tz: str | None = None) -> Axis:
    """An axis from its text; raises ValueError for text that is none."""
    name, *parts = text.split(":")
    try:
        if not name:
            raise ValueError("it has no name")
        dates = _DATES.fullmatch(text)
        if dates is not None:
            return axis.Datetime(dates[2], dates[3], dates[4], tz=tz, name=dates[1])
        if len(parts) == 1:
            categories = [category.strip() for category in parts[0].split(",")]
            if not all(categories):
                raise ValueError("a category has no name")
            return axis.StrCategory(categories, name=name)
        if len(parts) == 2:
            return axis.Integer(int(parts[0]), int(parts[1]), name=name)
        if len(parts) == 3:
            return axis.Regular(int(parts[2]), float(parts[0]), float(parts[1]), name=name)
    except ValueError as error:
        raise ValueError(f"the axis {text!r} cannot be read as {_AXIS}: {error}") from None
    raise ValueError(f"an axis is {_AXIS}; {text!r} was given")


def box_of(text: str, axes: dict[str, Axis]) -> dict[str, Any]:
    """A box from its text; raises ValueError for text that is none, or names no axis."""
    box: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, bounds = part.strip().partition("=")
        if not equals:
            raise ValueError(f"a box is name=lo:hi,name=category,...; {text!r} was given (at {part!r})")
        if name not in axes:
            raise ValueError(f"there is no axis {name!r}; the axes are {', '.join(map(repr, axes))}")
        if name in box:
            raise ValueError(f"the box {text!r} names the axis {name!r} twice")
        box[name] = _bounds(bounds, axes[name], text)
    return box


def _bounds(text: str, known: Axis, box: str) -> Any:
    if isinstance(known, axis.StrCategory):
        return text.strip()
    if isinstance(known, axis.Datetime):
        between = _BETWEEN.fullmatch(text.strip())
        if between is None:
            raise ValueError(
                f"the box {box!r} must say from:to for {known.name!r}, in dates or ISO times, or empty ends"
            )
        return between[1], between[2]
    low, colon, high = text.partition(":")
    if not colon:
        raise ValueError(f"the box {box!r} must say from:to for {known.name!r} (either may be empty: the end)")
    return tuple(None if not bound.strip() else _number(bound) for bound in (low, high))


def _number(text: str) -> float | int:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is no number") from None
