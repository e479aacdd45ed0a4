"""Keys back out of the columns that they were given in."""

from __future__ import annotations

import importlib
import operator
from typing import Any

import numpy as np

from fastgame._arguments import words
from fastgame._results import Top


def lasting(column: Any) -> Any:
    """A column that can be read twice and picked from: what only speaks Arrow, perhaps once, becomes pyarrow's."""
    if isinstance(column, tuple):
        return tuple(map(lasting, column))
    kind = type(column)
    if kind is list:
        return list(column)  # its elements may change it while they are read
    if hasattr(kind, "__getitem__") or hasattr(kind, "__array__"):
        return column
    for interface, function in [("__arrow_c_stream__", "chunked_array"), ("__arrow_c_array__", "array")]:
        if hasattr(kind, interface):
            try:
                pyarrow = importlib.import_module("pyarrow")  # not needed for anything else
            except ImportError:
                raise TypeError(f"to give the keys of a {kind.__name__} back, pyarrow must be installed") from None
            try:
                return getattr(pyarrow, function)(column)
            except (TypeError, ValueError) as error:
                raise TypeError(
                    f"keys must be a column; {kind.__name__} was given, which is none: {words(error)}"
                ) from None
    return column


def pick(column: Any, place: int) -> Any:
    """The key at a place as a plain Python value; of a tuple of columns, the tuple of its parts.

    A single value among the columns stands for every row. Methods are looked for in the type: a pandas column answers
    to the names of its rows, whatever they are.
    """
    if isinstance(column, tuple):
        return tuple(pick(part, place) for part in column)
    kind = type(column)
    if isinstance(column, str | bytes | int | float | np.generic) or hasattr(kind, "as_py"):
        return plain(column)
    if hasattr(kind, "iloc"):
        return plain(column.iloc[place])
    if hasattr(kind, "__len__") and hasattr(kind, "__getitem__") and not isinstance(column, np.ndarray):
        return plain(column[place])
    if hasattr(kind, "__index__") and not hasattr(kind, "__array__"):
        return plain(column)
    array = np.asarray(column)
    return plain(array[place] if array.ndim else array[()])


def plain(item: Any) -> Any:
    """A key as int, str or bytes."""
    if hasattr(type(item), "as_py"):
        item = item.as_py()
    elif isinstance(item, np.generic):
        item = item.item()
    if isinstance(item, str | bytes):
        return item
    # What keys were read from holds whole floats alone.
    return int(item) if isinstance(item, float | np.floating) else int(operator.index(item))


def top(among: Any, places: list[int], values: list[float]) -> list[Top]:
    """The keys at some places of a column, with their estimates."""
    return [Top(pick(among, place), value) for place, value in zip(places, values, strict=True)]
