"""Axes of range counters: from values to cells of a grid, with public edges.

The words and rules are those of boost-histogram: bins are half-open, ``[edge, next edge)``; what lies outside goes to
the flow bins below and above, which are cells of the grid like any other, with noise of their own. Edges are parameters
of the structure: they must be known without looking at the data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, NoReturn

import numpy as np
import numpy.typing as npt

from fastgame._arguments import (
    array_of,
    exact_below,
    has_utf8,
    integer,
    is_no_number,
    number,
    sequence,
    shown,
    text,
    unwrapped,
)
from fastgame._ticks import Ticks, Unreadable

__all__ = ["Axis", "Datetime", "Integer", "Regular", "StrCategory", "Variable"]

Places = npt.NDArray[np.int64]
Invalid = Literal["raise", "drop"]

_MOST_BINS = 1 << 62
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class Axis(ABC):
    """What all axes have.

    Parameters
    ----------
    size : int
        The number of bins, without flow bins.
    name : str, optional
        By which boxes and tables call it.
    underflow, overflow : bool
        Whether there is a bin for what lies below, or above.
    """

    def __init__(self, size: int, name: str | None, underflow: bool, overflow: bool) -> None:
        for word, flow in (("underflow", underflow), ("overflow", overflow)):
            if not isinstance(flow, bool | np.bool_):
                raise TypeError(f"{word} must be True or False; {type(flow).__name__} was given")
        size = integer(size, "size")
        if size < 1 or size + bool(underflow) + bool(overflow) > _MOST_BINS:
            raise ValueError(f"an axis must have from 1 to 2^62 bins, flow bins included; {shown(size)} were given")
        if name is not None and not isinstance(name, str):
            raise TypeError(f"the name of an axis must be text; {type(name).__name__} was given")
        if name is not None and not has_utf8(name):
            raise ValueError("the name of an axis must have a UTF-8 form; one with a lone surrogate was given")
        self.size, self.name = size, name
        self.underflow, self.overflow = bool(underflow), bool(overflow)

    @property
    def extent(self) -> int:
        """The number of bins, flow bins included: the size of the grid."""
        return self.size + self.underflow + self.overflow

    @property
    @abstractmethod
    def edges(self) -> Any:
        """All edges, one more than bins; of categories, these."""

    @abstractmethod
    def index(self, values: Any, *, invalid: Invalid = "raise") -> Places:
        """The places of values in the grid: an array of int64, from 0 to extent - 1; -1 where there is no bin.

        Parameters
        ----------
        values : list, array or column
            Each element of a list or an object column has a type of its own, whatever stands beside it; arrays and
            other columns have one type. What is missing (None, NaN, NaT, the NA of pandas) has no bin, nor has text
            that is no time on an axis of times.
        invalid : "raise" or "drop"
            Whether an element that is no value of the axis is an error or has no bin: text on a numeric axis, a truth
            value, a time with a zone among those without, any other object.

        Raises
        ------
        ValueError, TypeError
            With "raise" for such an element, with its position. Always for an array or column of a wrong type.
        """

    @abstractmethod
    def bound(self, value: Any) -> int:
        """The place in the grid of the bin that begins at an edge.

        Raises ValueError naming the nearest edges for a value that is no edge.
        """

    @abstractmethod
    def label(self, place: int) -> str:
        """The bin at a place of the grid, for people."""

    @abstractmethod
    def _edges_at(self, numbers: Places) -> Any:
        """Some of the edges, by their numbers from 0 to size, without making all."""

    def interval(self, bounds: Any) -> tuple[int, int]:
        """The half-open interval of the grid between two edges; None is the end of the axis, its flow bin included."""
        # A set has no first.
        several = isinstance(bounds, tuple | list) or (isinstance(bounds, np.ndarray) and bounds.ndim > 0)
        if not several or len(bounds) != 2:
            raise TypeError(f"{self._what()} takes a pair (from, to); {shown(bounds)} was given")
        low, high = bounds
        first = 0 if low is None else self.bound(low)
        last = self.extent if high is None else self.bound(high)
        if first > last:
            raise ValueError(f"{self._what()} takes (from, to) with from <= to; {shown(bounds)} was given")
        return first, last

    def _what(self) -> str:
        return "an axis" if self.name is None else f"the axis {self.name!r}"

    @abstractmethod
    def key(self, place: int) -> Any:
        """What stands for the bin at a place of the grid: its beginning, minus infinity or None below the first."""

    @property
    def inner(self) -> tuple[int, int]:
        """The places from the first bin up to, not including, the last flow bin."""
        return int(self.underflow), int(self.underflow) + self.size

    def _flow(self, places: Places, below: Any, above: Any, none: Any) -> Places:
        """Bins without the flow as places of the grid; -1 where there is none."""
        places = places + int(self.underflow)
        places[below] = 0 if self.underflow else -1
        places[above] = self.extent - 1 if self.overflow else -1
        places[none] = -1
        return places

    def _refuse(self, value: Any, low: Any, high: Any) -> NoReturn:
        raise ValueError(f"{self._what()} has no edge {shown(value)}; the nearest are {low!s} and {high!s}")

    def _place_of(self, place: Any) -> int:
        """A place of the grid without the flow bin below: -1 is that one."""
        number = integer(place, "place")
        if not 0 <= number < self.extent:
            raise ValueError(f"place must be from 0 to {self.extent - 1} on {self._what()}; {shown(number)} was given")
        return number - self.underflow

    def _shown(self, *parts: str, flows: tuple[str, ...] = ("underflow", "overflow")) -> str:
        named = [] if self.name is None else [f"name={self.name!r}"]
        flow = [f"{word}=False" for word in flows if not getattr(self, word)]
        return f"{type(self).__name__}({', '.join([*parts, *named, *flow])})"

    @property
    @abstractmethod
    def _identity(self) -> tuple[Any, ...]:
        """What makes two axes the same."""

    def __setattr__(self, name: str, value: Any) -> None:
        """Sets what is not set yet: an axis that a counter has must stay as it is."""
        if name in self.__dict__:
            raise AttributeError(f"axes cannot be changed: make a new one with another {name}")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        """Refuses."""
        raise AttributeError("axes cannot be changed")

    def __eq__(self, other: object) -> bool:
        """Whether bins and name are the same."""
        if type(other) is not type(self) or not isinstance(other, Axis):
            return NotImplemented
        return self._identity == other._identity and self.name == other.name

    def __hash__(self) -> int:
        """Goes with equality."""
        return hash((type(self).__name__, self.name, self._identity))


class Regular(Axis):
    """Bins of one width between two numbers.

    Parameters
    ----------
    bins : int
        How many.
    start, stop : float
        The first edge and the last.
    name : str, optional
    underflow, overflow : bool
        Bins for what is below `start`, and for `stop` and above.
    """

    def __init__(
        self,
        bins: int,
        start: float,
        stop: float,
        *,
        name: str | None = None,
        underflow: bool = True,
        overflow: bool = True,
    ) -> None:
        super().__init__(integer(bins, "bins"), name, underflow, overflow)
        self.start, self.stop = number(start, "start"), number(stop, "stop")
        if not (math.isfinite(self.start) and math.isfinite(self.stop) and self.start < self.stop):
            raise ValueError(f"start must be below stop, both finite; {shown(start)} and {shown(stop)} were given")
        if not math.isfinite(self.stop - self.start):
            raise ValueError(
                f"start and stop must be less than 2^1024 apart; {shown(start)} and {shown(stop)} were given"
            )
        # An edge is off by less than two units in the last place: so edges rise, and a place is found to within one.
        if (self.stop - self.start) / self.size < 8 * math.ulp(max(-self.start, self.stop)):
            raise ValueError(f"{shown(bins)} bins from {shown(start)} to {shown(stop)} are too narrow for floats")

    def _edge(self, number: Any) -> Any:
        """Edges by number. Division comes last, so that edges at whole numbers are whole."""
        length = self.stop - self.start
        # Times a number of up to 2^62.
        inner = self.start + (number * length / self.size if length < 1e280 else number / self.size * length)
        return np.where(number == self.size, self.stop, inner)

    @property
    def edges(self) -> npt.NDArray[np.float64]:
        """The edges: size + 1 numbers."""
        return self._edges_at(np.arange(self.size + 1))

    def _edges_at(self, numbers: Places) -> npt.NDArray[np.float64]:
        edges: npt.NDArray[np.float64] = self._edge(numbers)
        return edges

    def index(self, values: Any, *, invalid: Invalid = "raise") -> Places:
        """As `Axis.index`; NaN has no bin."""
        drop = _drops(invalid)
        numbers = _numbers(values, self._what(), drop)
        inside = (numbers >= self.start) & (numbers < self.stop)
        held = np.where(inside, numbers, self.start)
        places = ((held - self.start) / (self.stop - self.start) * self.size).astype(np.int64)
        places = np.clip(places, 0, self.size - 1)
        # The edges decide, not the division.
        places -= held < self._edge(places)
        places += held >= self._edge(places + 1)
        return self._flow(places, numbers < self.start, ~(numbers < self.stop) & ~np.isnan(numbers), np.isnan(numbers))

    def bound(self, value: Any) -> int:
        """As `Axis.bound`; minus infinity and infinity are the ends, flow bins included."""
        number = _number(value, self._what())
        if math.isinf(number):
            return 0 if number < 0 else self.extent
        width = (self.stop - self.start) / self.size
        if math.isnan(number):
            self._refuse(value, self._edge(0), self._edge(1))
        place = round(min(max((number - self.start) / width, 0), self.size))
        # A millionth of a thousandth of a bin is rounding, as in 3 * 0.1.
        if not abs(number - self._edge(place)) <= 1e-9 * width:
            low = min(max(place - (number < self._edge(place)), 0), self.size - 1)
            self._refuse(value, self._edge(low), self._edge(low + 1))
        return place + self.underflow

    def key(self, place: int) -> float:
        """As `Axis.key` says."""
        place = self._place_of(place)
        return -math.inf if place < 0 else float(self._edge(place))

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.size, self.start, self.stop, self.underflow, self.overflow

    def __repr__(self) -> str:
        """The call that makes it."""
        return self._shown(str(self.size), repr(self.start), repr(self.stop))

    def label(self, place: int) -> str:
        """As `Axis.label` says."""
        place = self._place_of(place)
        if place < 0:
            return f"< {self.start:.12g}"
        if place == self.size:
            return f">= {self.stop:.12g}"
        return f"[{self._edge(place):.12g}, {self._edge(place + 1):.12g})"


class Variable(Axis):
    """Bins between given edges.

    Parameters
    ----------
    edges : list of float
        Rising; one more than bins.
    name : str, optional
    underflow, overflow : bool
        Bins for what is below the first edge, and for the last and above.
    """

    def __init__(self, edges: Any, *, name: str | None = None, underflow: bool = True, overflow: bool = True) -> None:
        given = array_of(edges, "edges")
        if given.dtype.kind not in "iuf" or isinstance(given, np.ma.MaskedArray):
            kind = "a masked array" if isinstance(given, np.ma.MaskedArray) else f"an array of {given.dtype}"
            raise TypeError(f"edges must be numbers; {shown(edges, 40)} was given, {kind}")
        with np.errstate(over="ignore"):
            array = given.astype(np.float64)
        if array.ndim != 1 or len(array) < 2 or not (np.isfinite(array).all() and (np.diff(array) > 0).all()):
            raise ValueError("edges must be two finite numbers or more, each larger than the one before")
        super().__init__(len(array) - 1, name, underflow, overflow)
        self._edges = array.copy()
        self._edges.flags.writeable = False

    @property
    def edges(self) -> npt.NDArray[np.float64]:
        """The edges: size + 1 numbers."""
        return self._edges

    def _edges_at(self, numbers: Places) -> npt.NDArray[np.float64]:
        return self._edges[numbers]

    def index(self, values: Any, *, invalid: Invalid = "raise") -> Places:
        """As `Axis.index`; NaN has no bin."""
        drop = _drops(invalid)
        numbers = _numbers(values, self._what(), drop)
        places = np.searchsorted(self._edges, numbers, side="right").astype(np.int64) - 1
        above = (places >= self.size) & ~np.isnan(numbers)
        return self._flow(places, places < 0, above, np.isnan(numbers))

    def bound(self, value: Any) -> int:
        """As `Axis.bound`; minus infinity and infinity are the ends, flow bins included."""
        number = _number(value, self._what())
        if math.isinf(number):
            return 0 if number < 0 else self.extent
        place = int(np.searchsorted(self._edges, number))
        if place > self.size or self._edges[place] != number:
            low = min(max(place - 1, 0), self.size - 1)
            self._refuse(value, self._edges[low], self._edges[low + 1])
        return place + self.underflow

    def label(self, place: int) -> str:
        """As `Axis.label` says."""
        place = self._place_of(place)
        if place < 0:
            return f"< {self._edges[0]:g}"
        if place == self.size:
            return f">= {self._edges[-1]:g}"
        return f"[{self._edges[place]:g}, {self._edges[place + 1]:g})"

    def key(self, place: int) -> float:
        """As `Axis.key` says."""
        place = self._place_of(place)
        return -math.inf if place < 0 else float(self._edges[place])

    @property
    def _identity(self) -> tuple[Any, ...]:
        return tuple(self._edges.tolist()), self.underflow, self.overflow

    def __repr__(self) -> str:
        """The call that makes it."""
        return self._shown(repr(self._edges.tolist()))


class Integer(Axis):
    """A bin for each integer.

    Floats must be whole numbers; those of 2^53 or more (float32: 2^24, float16: 2^11) may be none that was meant, and
    have no bin. Infinity is beyond all bins.

    Parameters
    ----------
    start, stop : int
        The first integer, and the one after the last.
    name : str, optional
    underflow, overflow : bool
        Bins for what is below `start`, and for `stop` and above.
    """

    def __init__(
        self, start: int, stop: int, *, name: str | None = None, underflow: bool = True, overflow: bool = True
    ) -> None:
        self.start, self.stop = integer(start, "start"), integer(stop, "stop")
        # What lies beyond 64 bits is held at their ends, outside of the bins.
        if not -(1 << 63) < self.start < self.stop < 1 << 63:
            raise ValueError(
                f"start must be below stop, both less than 2^63 in absolute value; {shown(start)} and "
                f"{shown(stop)} were given"
            )
        super().__init__(self.stop - self.start, name, underflow, overflow)

    @property
    def edges(self) -> npt.NDArray[np.int64]:
        """The edges: size + 1 integers."""
        return self._edges_at(np.arange(self.size + 1))

    def _edges_at(self, numbers: Places) -> npt.NDArray[np.int64]:
        return self.start + numbers.astype(np.int64)

    def index(self, values: Any, *, invalid: Invalid = "raise") -> Places:
        """As `Axis.index`. Floats must be whole numbers; NaN has no bin."""
        drop = _drops(invalid)
        listed = _elements(values)
        if listed is not None:
            if set(map(type, listed)) == {int} and min(listed) >= _LEAST and max(listed) <= _MOST:
                return self._placed(np.array(listed, dtype=np.int64), np.zeros(len(listed), dtype=bool))
            return self._placed(*_each(listed, self._held, drop))
        array, none = _array(values, self._what())
        if array.dtype.kind == "f":
            # As tables have integers with missing ones among them.
            exact = exact_below(array.dtype)
            with np.errstate(over="ignore"):
                array = array.astype(np.float64)
            none = none | ~(np.isinf(array) | ((array == np.rint(array)) & (np.abs(array) < exact)))
            small, large = array < -(2.0**63), array >= 2.0**63
            numbers = np.where(none | small | large, 0.0, array).astype(np.int64)
            numbers[small], numbers[large] = _LEAST, _MOST
        elif array.dtype.kind == "u":
            numbers = np.minimum(array.astype(np.uint64), _MOST).astype(np.int64)
        elif array.dtype.kind == "i" or array.size == 0:
            numbers = array.astype(np.int64)
        else:
            raise TypeError(f"{self._what()} takes integers; an array of {array.dtype} was given")
        return self._placed(numbers, none)

    def _held(self, value: Any) -> int | None:
        """One element as an integer of 64 bits; None if it has no bin."""
        value = unwrapped(value)
        if _is_missing(value):
            return None
        if isinstance(value, float | np.floating):
            exact, value = exact_below(np.dtype(type(value))), float(value)
            if math.isinf(value):
                return _MOST if value > 0 else _LEAST
            if not abs(value) < exact or not value.is_integer():
                return None
            value = int(value)
        elif is_no_number(value) or not isinstance(value, int | np.integer):
            raise TypeError(f"{self._what()} takes integers; {type(value).__name__} was given")
        return min(max(int(value), _LEAST), _MOST)

    def _placed(self, numbers: Places, none: npt.NDArray[np.bool_]) -> Places:
        """Integers as places."""
        below, above = numbers < self.start, numbers >= self.stop
        places = np.where(below | above, self.start, numbers) - self.start
        return self._flow(places, below, above, none)

    def bound(self, value: Any) -> int:
        """As `Axis.bound`; minus infinity and infinity are the ends, flow bins included."""
        if isinstance(value, float | np.floating):
            if math.isinf(value):
                return 0 if value < 0 else self.extent
            if math.isnan(value) or value != math.floor(value):
                low = self.start if math.isnan(value) else min(max(math.floor(value), self.start), self.stop - 1)
                self._refuse(value, low, low + 1)
            value = int(value)
        try:
            number = integer(value, "a bound")
        except TypeError:
            raise TypeError(f"{self._what()} takes integers; {type(value).__name__} was given") from None
        if not self.start <= number <= self.stop:
            low = self.start if number < self.start else self.stop - 1
            self._refuse(value, low, low + 1)
        return number - self.start + self.underflow

    def label(self, place: int) -> str:
        """As `Axis.label` says."""
        place = self._place_of(place)
        if place < 0:
            return f"< {self.start}"
        return f">= {self.stop}" if place == self.size else str(self.start + place)

    def key(self, place: int) -> int | float:
        """As `Axis.key` says."""
        place = self._place_of(place)
        return -math.inf if place < 0 else self.start + place

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.start, self.stop, self.underflow, self.overflow

    def __repr__(self) -> str:
        """The call that makes it."""
        return self._shown(str(self.start), str(self.stop))


class Datetime(Axis):
    """Bins of wall-clock time: the steps of Ticks.

    Parameters
    ----------
    start, stop, every, tz
        As for `Ticks`: the first edge, the last, the length of a bin, and the time zone.
    name : str, optional
    underflow, overflow : bool
        Bins for what is before `start`, and for `stop` and after.
    """

    def __init__(
        self,
        start: Any,
        stop: Any,
        every: Any,
        *,
        tz: Any = None,
        name: str | None = None,
        underflow: bool = True,
        overflow: bool = True,
    ) -> None:
        self.ticks = Ticks(start, stop, every, tz=tz)
        self._given = (start, stop, every, tz)
        self._first = int(self.ticks.instants([self.ticks.start])[0][0])
        super().__init__(self.ticks.horizon, name, underflow, overflow)

    @property
    def edges(self) -> npt.NDArray[np.datetime64]:
        """The edges: size + 1 times (in UTC, if the axis has a time zone)."""
        return self._edges_at(np.arange(self.size + 1))

    def _edges_at(self, numbers: Places) -> npt.NDArray[np.datetime64]:
        instants = np.where(numbers == 0, self._first, self.ticks.ends(np.maximum(numbers, 1)))
        return instants.astype("datetime64[us]")

    def index(self, values: Any, *, invalid: Invalid = "raise") -> Places:
        """As `Axis.index`; NaT has no bin, nor has text that is no time."""
        drop = _drops(invalid)
        listed = _elements(values)
        if listed is not None:
            return self.index_instants(*_each(listed, self._instant, drop))
        texts = _texts(values)
        if texts is not None:
            return self.index_instants(*_each(texts, self._instant, drop))
        return self.index_instants(*self.ticks.instants(values))

    def _instant(self, value: Any) -> int | None:
        """One element in microseconds since 1970; None if it has no bin."""
        try:
            return self.ticks._element(value)
        except Unreadable:
            return None

    def index_instants(self, instants: npt.NDArray[np.int64], none: npt.NDArray[np.bool_]) -> Places:
        """As `index`, of microseconds since 1970, some of which are none: arrays of int64 and bool, of one shape."""
        steps = self.ticks.locate(instants)
        if not isinstance(none, np.ndarray) or none.dtype != np.bool_ or none.shape != steps.shape:
            raise TypeError(f"none must be an array of bool, one for each of instants; {shown(none, 40)} was given")
        return self._flow(steps - 1, steps < 1, steps > self.size, none)

    def bound(self, value: Any) -> int:
        """As `Axis.bound` says."""
        no_time = type(value).__name__ == "NaTType" or (isinstance(value, np.datetime64) and np.isnat(value))
        if no_time or _is_missing(value):
            self._refuse(value, self.ticks.start.isoformat(), self.ticks.time(1).isoformat())
        instant = self.ticks.instant(value)
        if instant == self._first:
            return int(self.underflow)
        step = int(np.clip(self.ticks.locate(np.array([instant - 1]))[0], 1, self.size))
        if self.ticks.ends(np.array([step]))[0] != instant:
            before = self.ticks.start if step == 1 else self.ticks.time(step - 1)
            self._refuse(value, before.isoformat(), self.ticks.time(step).isoformat())
        return step + self.underflow

    def label(self, place: int) -> str:
        """As `Axis.label` says."""
        place = self._place_of(place)
        if place < 0:
            return f"before {self.ticks.start.isoformat()}"
        return f"from {self.key(place + self.underflow).isoformat()}"

    def key(self, place: int) -> Any:
        """As `Axis.key` says."""
        place = self._place_of(place)
        if place < 0:
            return None
        return self.ticks.start if place == 0 else self.ticks.time(place)

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.ticks, self.underflow, self.overflow

    def __repr__(self) -> str:
        """The call that makes it."""
        start, stop, every, tz = self._given
        return self._shown(repr(start), repr(stop), repr(every), *([] if tz is None else [f"tz={str(tz)!r}"]))


class StrCategory(Axis):
    """A bin for each category of a public list.

    Parameters
    ----------
    categories : list of str
        All different.
    name : str, optional
    overflow : bool
        A bin for all others.
    """

    def __init__(self, categories: Sequence[str], *, name: str | None = None, overflow: bool = True) -> None:
        try:
            given = tuple(sequence(categories, "categories"))
        except TypeError:
            given = ()
        if not given or not all(isinstance(category, str) for category in given):
            raise TypeError("categories must be a list of text, with one at least")
        self.categories = tuple(str(category) for category in given)
        for position, category in enumerate(self.categories):
            if not has_utf8(category):
                raise ValueError(f"categories must have a UTF-8 form; the one at position {position} has none")
        if len(set(self.categories)) < len(self.categories):
            raise ValueError("categories must differ; one stands twice in the list")
        super().__init__(len(self.categories), name, False, overflow)
        self._places = {category: place for place, category in enumerate(self.categories)}

    def index(self, values: Any, *, invalid: Invalid = "raise") -> Places:
        """As `Axis.index`; a missing value has no bin."""
        drop = _drops(invalid)
        listed = _elements(values)
        if listed is not None:
            pass
        else:
            listed, drop = _values_of(values, self._what(), "takes text"), False
        places, none = _each(listed, self._place, drop)
        return np.where(none, -1, places)

    def _place(self, value: Any) -> int | None:
        if isinstance(value, str):
            return self._places.get(value, self.size if self.overflow else None)
        if _is_missing(value):
            return None
        raise TypeError(f"{self._what()} takes text; {type(value).__name__} was given")

    def bound(self, value: Any) -> int:
        """The place of a category."""
        if not isinstance(value, str) or value not in self._places:
            raise ValueError(f"{self._what()} has no category {shown(value)}; it has {_listed(self.categories)}")
        return self._places[value]

    def interval(self, bounds: Any) -> tuple[int, int]:
        """The bin of a category; None is all of them, with that of all others."""
        if bounds is None or (isinstance(bounds, tuple) and bounds == (None, None)):
            return 0, self.extent
        if not isinstance(bounds, str):
            raise TypeError(f"{self._what()} takes one category, or None for all; {shown(bounds)} was given")
        place = self.bound(bounds)
        return place, place + 1

    def label(self, place: int) -> str:
        """As `Axis.label` says."""
        place = self._place_of(place)
        return "others" if place == self.size else self.categories[place]

    def key(self, place: int) -> str | None:
        """The category; None for all others."""
        place = self._place_of(place)
        return None if place == self.size else self.categories[place]

    @property
    def edges(self) -> list[str]:
        """The categories, in their order."""
        return list(self.categories)

    def _edges_at(self, numbers: Places) -> list[str]:
        return [self.categories[number] for number in numbers if number < self.size]

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self.categories, self.overflow

    def __repr__(self) -> str:
        """The call that makes it."""
        return self._shown(repr(list(self.categories)), flows=("overflow",))


def _listed(words: Sequence[str]) -> str:
    shown = ", ".join(map(repr, words[:8]))
    return shown if len(words) <= 8 else f"{shown} and {len(words) - 8} more"


def _is_missing(value: Any) -> bool:
    """None, NaN and the NA of pandas."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType"


def _values_of(column: Any, what: str, rule: str) -> list[Any]:
    """The values of a column of a type; None for those of Arrow that are not UTF-8, which it does not check."""
    kind = type(column)
    if isinstance(column, str | bytes):
        return [column]
    # Numpy would cut zeros off the ends of texts.
    if hasattr(kind, "to_pylist"):
        # Tables have rows, which are no values of an axis.
        return [_text(value) for value in column] if hasattr(kind, "type") else list(column.to_pylist())
    if hasattr(kind, "to_list"):
        return list(column.to_list())
    # Of a masked array, None for what is masked.
    return list(array_of(column, what, rule).ravel().tolist())


def _text(value: Any) -> Any:
    try:
        return value.as_py()
    except UnicodeDecodeError:
        return None


def _drops(invalid: Any) -> bool:
    """Whether elements that are no value are left out."""
    if text(invalid, "invalid") not in ("raise", "drop"):
        raise ValueError(f'invalid must be "raise" or "drop"; {shown(invalid)} was given')
    return bool(invalid == "drop")


def _elements(values: Any) -> list[Any] | None:
    """The elements, where each has a type of its own; None for arrays and columns of one type."""
    if isinstance(values, list | tuple):
        return list(values)
    if isinstance(values, np.ma.MaskedArray) or hasattr(type(values), "columns"):
        return None
    if isinstance(values, np.ndarray) and values.dtype == np.dtype(object):
        return list(values.ravel().tolist())
    # A column of pandas or Polars.
    if isinstance(getattr(values, "dtype", None), np.dtype) and values.dtype == np.dtype(object):
        return list(values)
    return list(values) if str(getattr(values, "dtype", None)) == "Object" else None


def _each(values: list[Any], convert: Callable[[Any], int | None], drop: bool) -> tuple[Places, npt.NDArray[np.bool_]]:
    """Elements one by one as integers, and which have none. What is no value is an error, or has none with `drop`."""
    found, none = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=bool)
    for position, value in enumerate(values):
        try:
            number = convert(value)
        except (TypeError, ValueError) as error:
            if not drop:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"{error} at position {position}") from None
            number = None
        if number is None:
            none[position] = True
        else:
            found[position] = number
    return found, none


def _texts(values: Any) -> list[Any] | None:
    """The elements of a column of text, some of which may be missing; None for another."""
    if not hasattr(type(values), "__array__"):
        return None
    if hasattr(type(values), "to_pylist") and hasattr(type(values), "type"):
        return _values_of(values, "times", "must be times") if "string" in str(values.type) else None
    array = array_of(values, "times", "must be times")
    if array.ndim == 0 or array.dtype.kind not in "UTO":
        return None
    given = list(array.ravel().tolist())
    return given if all(isinstance(value, str) or _is_missing(value) for value in given) else None


def _filled(values: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]] | None:
    """A column of pyarrow, Polars or pandas that has nulls, with zeros for them: numpy makes floats of its integers."""
    nulls = getattr(values, "null_count", 0)
    nulls = nulls() if callable(nulls) else nulls
    dtype = getattr(values, "dtype", None)
    if isinstance(nulls, int) and nulls:
        missing = np.asarray(values.is_null())
        kept = np.asarray(values.drop_null() if hasattr(values, "drop_null") else values.drop_nulls())
    elif not isinstance(dtype, np.dtype) and hasattr(values, "isna") and not hasattr(type(values), "columns"):
        missing = np.asarray(values.isna())
        if not missing.any():
            return None
        kept = np.asarray(values[~missing]).astype(getattr(dtype, "numpy_dtype", object))
    else:
        return None
    if not len(kept) and "null" in str(getattr(values, "type", dtype)).lower():
        kept = np.zeros(0)
    array = np.zeros(len(missing), dtype=kept.dtype)
    array[~missing] = kept
    return array, missing


def _array(values: Any, what: str) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """A column of numbers of one type, with zeros for what is missing, and what is: so integers stay integers."""
    if hasattr(type(values), "columns"):
        raise TypeError(f"{what} takes numbers; {type(values).__name__} was given")
    filled = _filled(values)
    array = array_of(values, what, "takes numbers") if filled is None else filled[0]
    if array.dtype.kind == "O":
        # The nullable types of pandas.
        array = array.astype(getattr(getattr(values, "dtype", None), "numpy_dtype", object))
    if array.dtype.kind not in "iuf" and array.size:
        raise TypeError(f"{what} takes numbers; an array of {array.dtype} was given")
    if isinstance(array, np.ma.MaskedArray):
        array, missing = np.ma.getdata(array).reshape(-1), np.ma.getmaskarray(array).reshape(-1)
        return np.where(missing, np.zeros((), array.dtype), array), missing
    array = array.reshape(-1)
    missing = np.zeros(len(array), dtype=bool) if filled is None else filled[1]
    return array, missing | np.isnan(array) if array.dtype.kind == "f" else missing


def _numbers(values: Any, what: str, drop: bool) -> npt.NDArray[np.float64]:
    """As floats; NaN for what is none."""
    listed = _elements(values)
    if listed is None:
        array, missing = _array(values, what)
        with np.errstate(over="ignore"):
            return np.where(missing, math.nan, array.astype(np.float64))
    found = np.full(len(listed), math.nan)
    if set(map(type, listed)) <= {int, float}:
        with suppress(OverflowError):
            return np.fromiter(listed, dtype=np.float64, count=len(listed))
    for position, value in enumerate(listed):
        element = unwrapped(value)
        if is_no_number(element) or not isinstance(element, int | float | np.integer | np.floating):
            if drop or _is_missing(element):
                continue
            raise TypeError(f"{what} takes numbers; {type(element).__name__} was given at position {position}")
        found[position] = number(element, f"a value of {what}")
    return found


def _number(value: Any, what: str) -> float:
    try:
        return number(value, what)
    except TypeError:
        raise TypeError(f"{what} takes numbers; {type(value).__name__} was given") from None
