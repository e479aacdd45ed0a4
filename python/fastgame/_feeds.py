"""What each kind of structure takes from the rows of a table, and what it releases. One class a kind.

`Sink.take` turns columns into what the structure is updated with, and says which rows it cannot take; `Sink.update`
updates; `Sink.read` releases at the present step. What `take` is given is private; `labels` and `types` are public.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastgame._arguments import has_lists, integer, sequence, shown, text, words
from fastgame._core import ContinualCounter, ContinualVector, CountSketch, JoinSize, RangeCounter
from fastgame._intervals import confidence_of, estimates, quantile, quantile_of_sums
from fastgame._ranges import _is_single, boxes
from fastgame._ticks import Ticks
from fastgame._values import (
    Bad,
    Times,
    cast_each,
    check_key_column,
    check_same_kind,
    check_time_column,
    check_weight_column,
    column,
    instants_of,
    is_elements,
    is_text,
    is_whole,
    key_column,
    keys_of_kind,
    numbers_of,
    places_of,
    update_keys,
    valid,
    value_type,
    whole_numbers,
)
from fastgame.axis import Axis, Datetime, Regular, StrCategory, Variable

Floats = npt.NDArray[np.float64]

#: Columns of the releases that no key may be called.
_TAKEN = ("time", "rank", "value", "std", "lower", "upper", "separated")


class Released(NamedTuple):
    """What one read gave: values, standard deviations, and which labels they are of (None: all, in order)."""

    value: Floats
    std: Floats
    places: npt.NDArray[np.int64] | None = None
    #: Further columns; NaN where there is no number.
    more: Mapping[str, npt.NDArray[Any]] = MappingProxyType({})


class Sink(ABC):
    """A structure, and how it is fed."""

    #: Whether weights are whole numbers.
    whole = True
    #: Whether it releases; of two sinks of one structure only the second does.
    reads = True
    #: Further columns of its releases, and their types.
    more: Mapping[str, type] = MappingProxyType({})
    #: Whether the columns of keys stand among those of the releases, and so must not have their names.
    labelled = True

    def __init__(self, feed: Any, ticks: Ticks) -> None:
        structure: Any = feed.structure
        if structure.horizon < ticks.horizon:
            raise ValueError(
                f"the horizon of a structure must be at least that of the ticks, {ticks.horizon}; one with "
                f"{structure.horizon} was given"
            )
        self.structure = structure
        self.weight: str | None = None if feed.weight is None else text(feed.weight, "weight")
        self.keys = names_of(feed.key)
        taken = [name for name in self.keys if name in _TAKEN and self.labelled]
        if taken:
            raise ValueError(
                f"a key column must not be named {taken[0]!r}, as a column of the releases is: rename it in the data"
            )
        bound = self.bound_of(structure)
        if self.weight is None and bound < 1 and structure.on_excess == "error":
            raise ValueError(
                f"rows without a weight count 1, and max_norm is {bound:g}: every row would be beyond the bound (raise "
                'it, name a column of weights, or use on_excess="clip")'
            )
        #: The largest absolute weight; None where the structure clips.
        self.bound: float | None = bound if structure.on_excess == "error" else None
        self.top: int | None = None if feed.top is None else integer(feed.top, "top")
        self.confidence = confidence_of(feed.confidence)
        if self.top is not None:
            self.more = {"lower": float, "upper": float, "separated": bool}
        #: Columns that say what a release is of, a row each.
        self.labels: dict[str, Any] = {}

    @staticmethod
    def bound_of(structure: Any) -> float:
        """The largest absolute weight of a row."""
        return float(structure.max_weight)

    @property
    def columns(self) -> list[str]:
        """The columns that are needed of the table."""
        return [*self.keys, *([] if self.weight is None else [self.weight])]

    def check(self, schema: pa.Schema) -> None:
        """Refuses a table whose columns do not fit. Their names and types are taken as public."""
        for place, name in enumerate(self.keys):
            self.check_key(schema.field(name).type, place, name)
        if self.weight is not None:
            check_weight_column(schema.field(self.weight).type, self.weight)

    @abstractmethod
    def check_key(self, kind: pa.DataType, place: int, name: str) -> None:
        """Refuses a key column of a type that cannot fit."""

    @abstractmethod
    def take(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], list[tuple[Bad, str]]]:
        """What the structure is updated with, column by column, and the rows that it cannot take, with the reason."""

    @abstractmethod
    def update(self, taken: list[pa.Array], weights: Any, count: int) -> None:
        """Updates the structure with so many rows; without weights each counts 1."""

    @abstractmethod
    def read(self, releases: int) -> Released:
        """Releases what was asked for, at the present step. The public clock has so many releases in all."""

    def _largest(self, value: Floats, std: Floats, half: Floats) -> Released:
        """The largest first, so many as `top` says, with intervals of that half width.

        The largest of many are those whose errors are large, so an interval must hold for all that were listed.
        """
        order = np.argsort(-value, kind="stable")
        places, left_out = order[: self.top], order[self.top :]
        lower, upper = value - half, value + half
        separated = lower[places] > np.max(upper[left_out], initial=-np.inf)
        more = {"lower": lower[places], "upper": upper[places], "separated": separated}
        return Released(value[places], std[places], places, more)


def sink_of(feed: Any, ticks: Ticks) -> Sink:
    """The sink for the structure of a feed."""
    kinds: list[tuple[type, type[Sink]]] = [
        (ContinualCounter, CounterSink),
        (ContinualVector, VectorSink),
        (CountSketch, SketchSink),
        (RangeCounter, RangeSink),
    ]
    for structure, sink in kinds:
        if isinstance(feed.structure, structure):
            return sink(feed, ticks)
    if isinstance(feed.structure, JoinSize):
        raise TypeError("a JoinSize has two sides, and takes a table for each: use replay_join")
    names = ", ".join(structure.__name__ for structure, _ in kinds)
    raise TypeError(f"structures must be one of {names}; {type(feed.structure).__name__} was given")


def _refuse_given(feed: Any, kind: str, names: Sequence[str]) -> None:
    given = [name for name in names if getattr(feed, name) is not None]
    if given:
        raise TypeError(f"a {kind} takes no {' or '.join(given)}")


class CounterSink(Sink):
    """All rows count."""

    def __init__(self, feed: Any, ticks: Ticks) -> None:
        _refuse_given(feed, "ContinualCounter, which counts all rows,", ["key", "keys", "top", "boxes"])
        super().__init__(feed, ticks)

    def check_key(self, kind: pa.DataType, place: int, name: str) -> None:
        """There is none."""

    def take(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], list[tuple[Bad, str]]]:
        """As `Sink.take`."""
        return [], []

    def update(self, taken: list[pa.Array], weights: Any, count: int) -> None:
        """As `Sink.update`."""
        self.structure.update(np.ones(count, dtype=np.int64) if weights is None else weights)

    def read(self, releases: int) -> Released:
        """As `Sink.read`."""
        return Released(np.array([self.structure.release()]), np.array([self.structure.noise_std()]))


class KeySink(Sink):
    """Rows have a key, and a public list says which keys are released."""

    def __init__(self, feed: Any, ticks: Ticks) -> None:
        kind = type(feed.structure).__name__
        _refuse_given(feed, kind, ["boxes"])
        super().__init__(feed, ticks)
        if not self.keys:
            raise TypeError(f"key must name the column of keys that a {kind} takes; none was given")
        if feed.keys is None:
            raise TypeError(
                f"keys must be the public list of keys that a {kind} releases; none was given (the keys that occur in "
                "the data are not public)"
            )
        self.listed = [_arrow_column(part) for part in (feed.keys if isinstance(feed.keys, tuple) else (feed.keys,))]
        rows = {len(part) for part in self.listed}
        if len(self.listed) != len(self.keys) or len(rows) != 1:
            raise ValueError(
                f"keys must have one column for each of {', '.join(self.keys)}, all of one length; columns of lengths "
                f"{[len(part) for part in self.listed]} were given"
            )
        (self.count,) = rows
        if any(part.null_count for part in self.listed):
            raise ValueError("keys must not be missing; there is a null in the list")
        if self.top is not None and not 1 <= self.top <= self.count:
            raise ValueError(f"top must be from 1 to the number of keys, {self.count}; {shown(self.top)} was given")
        self.labels = {name: _label(part) for name, part in zip(self.keys, self.listed, strict=True)}

    def check_key(self, kind: pa.DataType, place: int, name: str) -> None:
        """As `Sink.check_key`."""
        check_key_column(kind, name, floats=True)
        check_same_kind(kind, self.listed[place].type, name)

    def take(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], list[tuple[Bad, str]]]:
        """As `Sink.take`: key columns, of which some rows may be null."""
        return _keys_of(batch, self.keys)


class VectorSink(KeySink):
    """A cell for each listed key; rows with another one are left out."""

    whole = False

    def __init__(self, feed: Any, ticks: Ticks) -> None:
        super().__init__(feed, ticks)
        if self.count != self.structure.size:
            raise ValueError(
                f"keys must name each of the vector's {self.structure.size} cells; {self.count} keys were given"
            )
        # Part after part: the place of what was found so far, and of the part's value, make a code.
        self.stages = []
        listed = np.zeros(self.count, dtype=np.int64)
        for part in self.listed:
            values = part.unique()
            codes = listed * len(values) + _index_in(part, values)
            known, listed = np.unique(codes, return_inverse=True)
            self.stages.append((values, known))
        if len(self.stages[-1][1]) < self.count:
            _, first, counts = np.unique(listed, return_index=True, return_counts=True)
            place = first[counts > 1].min()
            twice = tuple(part[place].as_py() for part in self.listed)
            shown = repr(twice[0] if len(twice) == 1 else twice)
            raise ValueError(f"keys must differ, as each is a cell; one stands twice in the list: {shown:.80}")
        self.order = np.argsort(listed)

    @staticmethod
    def bound_of(structure: Any) -> float:
        """As `Sink.bound_of`."""
        return float(structure.max_norm)

    def take(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], list[tuple[Bad, str]]]:
        """As `Sink.take`: cells."""
        columns, bad = super().take(batch)
        found: Any = 0
        for given, (values, known) in zip(columns, self.stages, strict=True):
            index = _index_in(keys_of_kind(given, values.type), values)
            codes = found * len(values) + index
            place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
            found = np.where((index >= 0) & (found >= 0) & (known[place] == codes), place, -1)
        cells = np.where(found >= 0, self.order[found], -1)
        unlisted = cells < 0 if cells.size and cells.min() < 0 else None
        return [pa.array(cells)], [*bad, (unlisted, "key not in the list")]

    def update(self, taken: list[pa.Array], weights: Any, count: int) -> None:
        """As `Sink.update`."""
        self.structure.update(np.asarray(taken[0]), weights)

    def read(self, releases: int) -> Released:
        """As `Sink.read`."""
        value, std = self.structure.release(), np.full(self.count, self.structure.noise_std())
        if self.top is None:
            return Released(value, std)
        return self._largest(value, std, std * quantile(self.structure, self.confidence, self.count * releases))


class SketchSink(KeySink):
    """Any key counts; the listed ones are released."""

    def update(self, taken: list[pa.Array], weights: Any, count: int) -> None:
        """As `Sink.update`."""
        update_keys(self.structure.update, taken, weights)

    def read(self, releases: int) -> Released:
        """As `Sink.read`."""
        listed = _single(self.listed)
        if self.top is None:
            return Released(*self.structure.estimate(listed, error=True))
        value, half = estimates(self.structure, listed, self.confidence, self.count * releases)
        # One standard deviation for all keys, from the cells that were read just now.
        std = self.structure.estimate(_single([part[:1] for part in self.listed]), error=True).std
        return self._largest(value, np.full(self.count, std), half)


class RangeSink(Sink):
    """Rows are points, with a column for each axis; boxes of a public list are released."""

    def __init__(self, feed: Any, ticks: Ticks) -> None:
        _refuse_given(feed, "RangeCounter", ["keys"])
        super().__init__(feed, ticks)
        dims = len(self.structure.shape)
        self.axes: tuple[Axis, ...] | None = self.structure.axes
        if not self.keys and self.axes is not None and all(axis.name for axis in self.axes):
            self.keys = tuple(str(axis.name) for axis in self.axes)
        if len(self.keys) != dims:
            raise TypeError(f"key must name a column for each of the {dims} axes; {self.keys or 'none'} was given")
        if feed.boxes is None:
            raise TypeError("boxes must be the public list of boxes that a RangeCounter releases; none was given")
        named = _named(feed.boxes)
        if not named:
            raise ValueError("boxes must have at least one box; none was given")
        if self.top is not None and not 1 <= self.top <= len(named):
            raise ValueError(f"top must be from 1 to the number of boxes, {len(named)}; {shown(self.top)} was given")
        # Bounds off an edge are refused before anything is read.
        corners = [self._corners(box) for box in named.values()]
        self.low, self.high = (np.array([corner[side] for corner in corners]) for side in (0, 1))
        self.labels = {"box": pa.array(list(named), pa.string())}

    def _corners(self, box: Any) -> tuple[Any, Any]:
        low: Any
        high: Any
        if self.axes is not None:
            low, high = boxes(self.axes, box, None) if isinstance(box, Mapping) else boxes(self.axes, *box)
        else:
            low, high = (
                [integer(end, "a corner of a box") for end in ([corner] if _is_single(corner) else corner)]
                for corner in box
            )
        low, high = np.atleast_1d(low), np.atleast_1d(high)
        if np.shape(low) != (len(self.structure.shape),):
            raise ValueError(f"each of the boxes must be a single one; {shown(box)} was given")
        for place, (lo, hi, size) in enumerate(zip(low, high, self.structure.shape, strict=True)):
            if not 0 <= lo <= hi <= size:
                raise ValueError(
                    f"a box must have 0 <= lo <= hi <= {size} on axis {place}; {shown(lo)} and {shown(hi)} were given"
                )
        return low, high

    def check_key(self, kind: pa.DataType, place: int, name: str) -> None:
        """As `Sink.check_key`."""
        axis = None if self.axes is None else self.axes[place]
        if isinstance(axis, Datetime):
            check_time_column(kind, _times(axis, name), name)
        elif isinstance(axis, StrCategory):
            check_key_column(kind, name, floats=True)
            kind = value_type(kind)
            if not (is_text(kind) or is_elements(kind) or pa.types.is_null(kind)):
                raise TypeError(f"the axis {name!r} has categories and takes text; the column is of type {kind}")
        else:
            check_weight_column(kind, name, "coordinates")

    def take(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], list[tuple[Bad, str]]]:
        """As `Sink.take`: places on the axes."""
        found, bad = [], []
        for number, name in enumerate(self.keys):
            places = self._places(number, column(batch, name), name)
            found.append(pa.array(places))
            bad.append((places < 0 if places.size and places.min() < 0 else None, f"no bin for {name!r}"))
        return found, bad

    def _places(self, number: int, values: pa.Array, name: str) -> Any:
        axis = None if self.axes is None else self.axes[number]
        if isinstance(axis, Datetime):
            found = instants_of(values, _times(axis, name), name)
            none = np.zeros(len(values), dtype=bool) if found.bad is None else found.bad
            return axis.index_instants(found.values, none)
        if isinstance(axis, StrCategory):
            return places_of(values, ["text"], lambda part: self._places_of_text(axis, part))
        kinds = ["integer", "unsigned", "real", "digits", "text"]
        return places_of(values, kinds, lambda part: self._places_of_type(number, part))

    @staticmethod
    def _places_of_text(axis: StrCategory, values: pa.Array) -> Any:
        values = valid(values.cast(pa.large_string()))
        known = pc.index_in(values, value_set=pa.array(axis.categories, pa.large_string()), skip_nulls=True)
        places = np.asarray(known.fill_null(axis.size if axis.overflow else -1)).astype(np.int64)
        places[np.asarray(values.is_null())] = -1
        return places

    def _places_of_type(self, number: int, values: pa.Array) -> Any:
        axis = None if self.axes is None else self.axes[number]
        numbers, missing = numbers_of(values)
        places = self._places_of_numbers(number, numbers)
        if missing is not None:
            places[missing] = -1
        exact = whole_numbers(values)
        if exact is not None and not isinstance(axis, Regular | Variable):
            # Beyond 2^53 floats are not the integers that were written.
            there = np.asarray(exact.is_valid())
            places[there] = self._places_of_numbers(number, np.asarray(exact.drop_null()))
        return places

    def _places_of_numbers(self, number: int, numbers: Any) -> Any:
        if self.axes is not None:
            return self.axes[number].index(numbers)
        whole = is_whole(numbers)
        inside = whole & (numbers >= 0) & (numbers < self.structure.shape[number])
        return np.where(inside, np.where(inside, numbers, 0).astype(np.int64), -1)

    def update(self, taken: list[pa.Array], weights: Any, count: int) -> None:
        """As `Sink.update`."""
        places = np.stack([np.asarray(part) for part in taken], axis=1)
        self.structure._update_places(places, 1 if weights is None else weights)

    def read(self, releases: int) -> Released:
        """As `Sink.read`."""
        value, std = self.structure._count_places(self.low, self.high, True)
        if self.top is None:
            return Released(value, std)
        wide = quantile_of_sums(self.structure, self.confidence, len(self.low) * releases)
        return self._largest(value, std, std * wide)


class JoinSink(Sink):
    """Rows of one side of a join, with any key."""

    labelled = False
    more = MappingProxyType({"std_of_rows": float})

    def __init__(self, feed: Any, ticks: Ticks, side: Any, kinds: dict[int, pa.DataType]) -> None:
        super().__init__(feed, ticks)
        if not self.keys:
            raise TypeError("key must name the column that is joined on; none was given")
        self.side = side
        #: The types of the key's parts, as far as they have been seen on either side.
        self.kinds = kinds

    def check_key(self, kind: pa.DataType, place: int, name: str) -> None:
        """As `Sink.check_key`; keys of two kinds never match."""
        check_key_column(kind, name, floats=True)
        if not (pa.types.is_null(value_type(kind)) or is_elements(kind)):
            check_same_kind(kind, value_type(self.kinds.setdefault(place, kind)), name, "the other keys")

    def take(self, batch: pa.RecordBatch) -> tuple[list[pa.Array], list[tuple[Bad, str]]]:
        """As `Sink.take`."""
        return _keys_of(batch, self.keys)

    def update(self, taken: list[pa.Array], weights: Any, count: int) -> None:
        """As `Sink.update`."""
        update_keys(self.side.update, taken, weights)

    def read(self, releases: int) -> Released:
        """As `Sink.read`."""
        value, std, of_rows = self.structure.estimate(error=True)
        more = {"std_of_rows": np.array([np.nan if of_rows is None else of_rows])}
        return Released(np.array([value]), np.array([std]), None, more)


def join_sinks(left: Any, right: Any, ticks: Ticks) -> list[Sink]:
    """The sinks of both sides; the second one releases."""
    kinds: dict[int, pa.DataType] = {}
    sinks = [
        JoinSink(feed, ticks, side, kinds)
        for feed, side in ((left, left.structure.left), (right, right.structure.right))
    ]
    if len(sinks[0].keys) != len(sinks[1].keys):
        raise ValueError(
            f"both sides must be joined on as many columns; {sinks[0].keys} and {sinks[1].keys} were given"
        )
    sinks[0].reads = False
    return list(sinks)


def _keys_of(batch: pa.RecordBatch, names: Sequence[str]) -> tuple[list[pa.Array], list[tuple[Bad, str]]]:
    """Key columns, and the rows that have none."""
    found = [key_column(column(batch, name)) for name in names]
    bad = [
        (np.asarray(values.is_null()) if values.null_count else None, f"no key in {name!r}")
        for name, values in zip(names, found, strict=True)
    ]
    return found, bad


def _named(boxes: Any) -> dict[str, Any]:
    """Boxes by name."""
    if isinstance(boxes, Mapping):
        if not all(isinstance(name, str) for name in boxes):
            raise TypeError("boxes must be a list of boxes, or a dict of them by name (text)")
        if not all(
            isinstance(box, Mapping) or (isinstance(box, tuple | list) and len(box) == 2) for box in boxes.values()
        ):
            raise TypeError("boxes must be dicts from the names of axes to (from, to), or two corners each")
        return dict(boxes)
    if isinstance(boxes, str | bytes) or not hasattr(type(boxes), "__len__"):
        raise TypeError(f"boxes must be a list of boxes, or a dict of them by name; {shown(boxes)} was given")
    named: dict[str, Any] = {}
    for given in sequence(boxes, "boxes"):
        box = given
        if not isinstance(box, Mapping) and not (isinstance(box, tuple | list) and len(box) == 2):
            raise TypeError(
                f"a box is a dict from the names of axes to (from, to), or two corners; {shown(box)} was given"
            )
        if not isinstance(box, Mapping):
            box = tuple(corner if _is_single(corner) else sequence(corner, "a corner of a box") for corner in box)
        name = box_name(box)
        if name in named:
            raise ValueError(f"a box stands twice among those to release, or two have one name: {name!r}")
        named[name] = box
    return named


def box_name(box: Any) -> str:
    """A box as text: ``distance=0:500,delay=60:``."""
    if not isinstance(box, Mapping):
        low, high = box
        pairs = [[end] if _is_single(end) else end for end in (low, high)]
        if len(pairs[0]) != len(pairs[1]):
            raise ValueError(f"a box must have two corners of one length; {shown(box)} was given")
        return ",".join(f"{_end_name(a)}:{_end_name(b)}" for a, b in zip(*pairs, strict=True))
    parts = []
    for name, bounds in box.items():
        ends = bounds if isinstance(bounds, tuple) else (bounds,)
        parts.append(f"{name}=" + ":".join("" if end is None else _end_name(end) for end in ends))
    return ",".join(parts)


def _end_name(end: Any) -> str:
    if hasattr(type(end), "__index__"):
        return shown(integer(end, "a corner of a box"))
    try:
        return str(end)
    except Exception:
        return shown(end)


def _label(listed: pa.Array) -> pa.Array:
    """Listed keys as a column of the releases."""
    short = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(listed.type)
    return listed if short is None else listed.cast(short)


def _times(axis: Datetime, name: str) -> Times:
    return Times(axis.ticks, name, None, None)


def _single(columns: list[Any]) -> Any:
    return tuple(columns) if len(columns) > 1 else columns[0]


def names_of(key: Any, word: str = "key") -> tuple[str, ...]:
    """The names of the columns of keys."""
    if key is None:
        return ()
    names = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, tuple | list) else ()
    if not names or not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise TypeError(f"{word} must be the name of a column, or a tuple of different names; {shown(key)} was given")
    return names


def _arrow_column(column: Any) -> Any:
    """A public list of keys as an Arrow array of one of the types that events have."""
    if isinstance(column, str | bytes):
        raise TypeError(f"keys must be a list or column of keys, or a tuple of them; {shown(column)} was given")
    if has_lists(column):
        raise TypeError(
            "keys must be a list or column of keys; there is a list in it (composite keys are a tuple of columns)"
        )
    kind = type(column)
    if not any(hasattr(kind, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "__array__")):
        # A set has another order in every process.
        column = sequence(column, "keys")
    try:
        if hasattr(kind, "__arrow_c_stream__"):
            column = pa.chunked_array(column).combine_chunks()
        try:
            array = pa.array(column)
        except OverflowError:
            array = pa.array(column, pa.uint64())
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"keys must be a list or column of keys of one type: {words(error)}") from None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    check_key_column(array.type, "keys")
    return key_column(array)


def _index_in(column: Any, values: Any) -> Any:
    """Where each element stands among the values; -1 if nowhere."""
    if column.type != values.type:
        # Integers of two types; what does not fit into the listed one's is not listed.
        column = cast_each(column, values.type)
    found = pc.index_in(column, value_set=values, skip_nulls=True)
    return np.asarray(found.fill_null(-1)).astype(np.int64)
