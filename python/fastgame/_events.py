"""From tables to events: at which step, of which key, with which weight. Everything here is private.

A row becomes an event at the step of its time, and another with the opposite weight at the step of its deletion. Rows
that are none (no time, no key, a weight beyond the bound) are left out one by one, so that a row decides over itself
alone; how many were is counted for the operator.
"""

from __future__ import annotations

import datetime as dt
import math
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from fastgame._errors import BadRowsError
from fastgame._rows import AFTER_RUN, BEFORE_RUN, RowCounts
from fastgame._ticks import Ticks, floor_microseconds, zone_mismatch
from fastgame._writing import naming

if TYPE_CHECKING:
    from fastgame._feeds import Sink

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
#: Which rows are bad; None if none is.
Bad = npt.NDArray[np.bool_] | None

#: Parts of the time that a store on disk is sorted by.
_PARTS = 64
#: What Arrow reads as a time, with a fraction of any length.
_ISO = (
    r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"([ T]([01]\d|2[0-3])(:?[0-5]\d(:?[0-5]\d(\.\d{1,9})?)?)?(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)?)?$"
)
#: What Arrow reads as a finite number.
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_HAS_ZONE = r"[ T].*(Z|[+-]\d{2}(:?\d{2})?)$"


class Times(NamedTuple):
    """The columns that say when."""

    ticks: Ticks
    time: str
    delete_time: str | None
    format: str | None


class Reader:
    """Turns batches of rows into events, for one structure each.

    Events of other steps than those from `first` to `last` are left out. With `strict`, the first batch with a bad row
    is an error.
    """

    def __init__(self, times: Times, counts: RowCounts, strict: bool, first: int, last: int) -> None:
        self.times = times
        self.first, self.last = first, last
        self.counts = counts
        #: Rows of other tables that were counted before.
        self.before = counts.read
        self.strict = strict

    def read(self, batch: pa.RecordBatch, sinks: list[Sink]) -> list[list[pa.RecordBatch]]:
        """Events of the sinks: columns step, key parts, weight."""
        first_row = self.counts.read - self.before
        self.counts.read += batch.num_rows
        steps, deleted, usable = self._steps(batch, first_row)
        return [list(self._events(batch, sink, steps, deleted, usable, first_row)) for sink in sinks]

    def _leave_out(
        self, usable: Bools | None, bad: Bools | None, reason: str, first_row: int, expected: bool = False
    ) -> Bools | None:
        """Counts the bad rows among the usable ones, and takes them out. None stands for all usable, or none bad."""
        if bad is None:
            return usable
        bad = bad if usable is None else bad & usable
        count = int(np.count_nonzero(bad))
        if count == 0:
            return usable
        self.counts.add(reason, count)
        if self.strict and not expected:
            row = first_row + int(np.argmax(bad)) + 1
            raise BadRowsError(
                f"not private: there are bad rows: {reason}, the first is row {row} of the data; mend them, or leave "
                "bad rows out (bad_rows='drop')"
            )
        return ~bad if usable is None else usable & ~bad

    def _steps(self, batch: pa.RecordBatch, first_row: int) -> tuple[Integers, Integers | None, Bools | None]:
        """Steps of rows and of their deletion, and which rows have both."""
        times = self.times
        last = times.ticks.horizon
        instants, bad = instants_of(column(batch, times.time), times, times.time)
        steps = times.ticks.locate(instants)
        usable = self._leave_out(None, bad, f"no time in {times.time!r}", first_row)
        outside = (steps < 1) | (steps > last) if steps.size and (steps.min() < 1 or steps.max() > last) else None
        usable = self._leave_out(usable, outside, f"{times.time!r} not between start and end", first_row)
        if times.delete_time is None:
            return steps, None, self._in_run(steps, None, usable, first_row)
        values = column(batch, times.delete_time)
        missing = np.asarray(values.is_null())
        gone, bad = instants_of(values, times, times.delete_time)
        deleted = times.ticks.locate(gone)
        bad = None if bad is None else bad & ~missing
        usable = self._leave_out(usable, bad, f"no time in {times.delete_time!r}", first_row)
        early = (gone < instants) & ~missing
        usable = self._leave_out(usable, early, f"{times.delete_time!r} before {times.time!r}", first_row)
        # Those that stay until the end are never deleted.
        deleted[missing] = last + 1
        return steps, deleted, self._in_run(steps, deleted, usable, first_row)

    def _in_run(self, steps: Integers, deleted: Integers | None, usable: Bools | None, first_row: int) -> Bools | None:
        """Leaves out the rows that neither come nor go in the steps of the run; there is nothing wrong with them."""
        if self.first <= 1 and self.last >= self.times.ticks.horizon:
            return usable
        outside = ~self._within(steps) if deleted is None else ~(self._within(steps) | self._within(deleted))
        late = outside & (steps > self.last)
        usable = self._leave_out(usable, outside & ~late, BEFORE_RUN, first_row, expected=True)
        return self._leave_out(usable, late, AFTER_RUN, first_row, expected=True)

    def _within(self, steps: Integers) -> Bools:
        """Which steps are those of the run."""
        return (steps >= self.first) & (steps <= self.last)

    def _events(
        self,
        batch: pa.RecordBatch,
        sink: Sink,
        steps: Integers,
        deleted: Integers | None,
        usable: Bools | None,
        first_row: int,
    ) -> Iterator[pa.RecordBatch]:
        taken, unfit = sink.take(batch)
        for bad, reason in unfit:
            usable = self._leave_out(usable, bad, reason, first_row)
        # All events of a structure have the same columns, whichever rows there are.
        weights: Any = None if deleted is None else np.ones(batch.num_rows, dtype=np.int64)
        if sink.weight is not None:
            weights, bad = weights_of(column(batch, sink.weight), sink.whole)
            beyond = None if sink.bound is None else np.abs(weights) > sink.bound
            usable = self._leave_out(usable, bad, f"no usable weight in {sink.weight!r}", first_row)
            usable = self._leave_out(usable, beyond, f"{sink.weight!r} beyond the bound", first_row)
        if deleted is None:
            yield _batch(steps, taken, weights, usable)
            return
        # Of a row that came in an earlier run, or goes in a later one, the other event alone.
        for when, amounts in ((steps, weights), (deleted, -weights)):
            inside = self._within(when)
            yield _batch(when, taken, amounts, inside if usable is None else inside & usable)


def column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of a batch, without a dictionary and without views, which few functions of Arrow take."""
    return plain(batch.column(name))


def plain(values: pa.Array) -> pa.Array:
    """Values without a dictionary and without views."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(values.indices, plain(values.dictionary)).dictionary_decode()
    for is_view, short, long in (
        (pa.types.is_string_view, pa.string(), pa.large_string()),
        (pa.types.is_binary_view, pa.binary(), pa.large_binary()),
    ):
        if is_view(kind):
            try:
                return values.cast(short)
            except pa.ArrowInvalid:  # more than 2 GB in a batch
                return values.cast(long)
    return values


def _batch(steps: Integers, keys: list[Any], weights: Any, usable: Bools | None) -> pa.RecordBatch:
    columns = [pa.array(steps), *keys]
    names = ["step", *(f"key{place}" for place in range(len(keys)))]
    if weights is not None:
        columns.append(pa.array(weights))
        names.append("weight")
    batch = pa.RecordBatch.from_arrays(columns, names=names)
    return batch if usable is None else batch.filter(pa.array(usable))


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type is one of bytes."""
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests)


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a column that may have a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def check_time_column(kind: pa.DataType, times: Times, name: str) -> None:
    """Refuses a column that cannot hold times, or those of the other kind."""
    kind = value_type(kind)
    if pa.types.is_timestamp(kind):
        if times.format is not None:
            raise TypeError(f"the column {name!r} has times already; a format (time_format) is for text")
        if (kind.tz is None) != (times.ticks.tz is None):
            raise ValueError(zone_mismatch(times.ticks, kind.tz is not None, f"the column {name!r}"))
    elif pa.types.is_date(kind):
        if times.ticks.tz is not None:
            raise ValueError(zone_mismatch(times.ticks, False, f"the column {name!r}"))
    elif not is_text(kind) and not pa.types.is_null(kind):
        raise TypeError(f"the column {name!r} must hold timestamps, dates or ISO text; it is of type {kind}")
    elif times.format is not None:
        check_format(times.format, times.ticks)


def check_key_column(kind: pa.DataType, name: str, floats: bool = False) -> None:
    """Refuses a column whose values are no keys.

    With `floats` whole ones are integers: pandas makes floats of integers if one is missing, and the type of a column
    must not depend on a row.
    """
    kind = value_type(kind)
    whole = pa.types.is_integer(kind) or (floats and pa.types.is_floating(kind))
    if not (whole or is_text(kind) or is_bytes(kind) or pa.types.is_null(kind)):
        raise TypeError(
            f"keys must be integers, text or bytes; the column {name!r} is of type {kind} (cast it to one of them)"
        )


def check_same_kind(kind: pa.DataType, listed: pa.DataType, name: str, what: str = "the listed keys") -> None:
    """Refuses keys that can never be equal to others: 5, "5" and b"5" differ."""

    def of(kind: pa.DataType) -> str:
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return "integers"
        return "text" if is_text(kind) else "bytes"

    kind = value_type(kind)
    if not pa.types.is_null(kind) and of(kind) != of(listed):
        raise TypeError(f"the column {name!r} holds {of(kind)} and {what} are {of(listed)}: cast one of them")


def check_weight_column(kind: pa.DataType, name: str, what: str = "weights") -> None:
    """Refuses a column whose values are no numbers."""
    kind = value_type(kind)
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    if not (numbers or is_text(kind) or pa.types.is_null(kind)):
        raise TypeError(f"{what} must be numbers; the column {name!r} is of type {kind}")


def key_column(values: pa.Array, name: str) -> pa.Array:
    """Keys in one of few types, so that all batches have the same. What is no key becomes null."""
    values = plain(values)
    kind = values.type
    if pa.types.is_floating(kind):
        numbers = np.asarray(values.cast(pa.float64()).fill_null(math.nan))
        whole = (numbers == np.rint(numbers)) & (np.abs(numbers) < float(1 << 62))
        return pa.array(np.where(whole, numbers, 0.0).astype(np.int64), mask=~whole)
    if pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_integer(kind):
        return values if pa.types.is_uint64(kind) else values.cast(pa.int64())
    with suppress(pa.ArrowInvalid):  # more than 2 GB in a batch
        return values.cast(pa.string() if is_text(kind) else pa.binary())
    return values


def instants_of(values: pa.Array, times: Times, name: str) -> tuple[Integers, Bools | None]:
    """Times in microseconds since 1970, and which rows have none."""
    kind = values.type
    check_time_column(kind, times, name)
    bad = np.asarray(values.is_null()) if values.null_count else None
    if pa.types.is_null(kind):
        return np.zeros(len(values), dtype=np.int64), bad
    if is_text(kind):
        values, bad = _parsed(values, bad, times, name)
    unit = {pa.date32(): "D", pa.date64(): "ms"}.get(values.type) or values.type.unit
    raw = values.cast(pa.int32() if unit == "D" else pa.int64())
    numbers = np.asarray(raw.fill_null(0) if raw.null_count else raw).astype(np.int64, copy=False)
    factor = {"D": 86_400_000_000, "s": 1_000_000, "ms": 1000}.get(unit)
    if factor is not None:
        # Far beyond the calendar is far beyond, not back again.
        most = (1 << 62) // factor
        numbers = np.clip(numbers, -most, most) * factor
    elif unit == "ns":
        numbers = floor_microseconds(numbers.view("datetime64[ns]"))
    return numbers, bad


def check_format(form: str, ticks: Ticks) -> None:
    """Refuses a format that cannot be read, does not say the day, or has a zone where the ticks have none."""
    aware = "%z" in form
    shown = f"time_format {form!r:.80}"
    if aware != (ticks.tz is not None):
        raise ValueError(zone_mismatch(ticks, aware, shown))
    example = dt.datetime(2013, 12, 31, 23, 59, 58, tzinfo=dt.timezone.utc if aware else None)
    try:
        read = dt.datetime.strptime(example.strftime(form), form)
    except ValueError as error:
        raise ValueError(f"{shown} is none that strptime reads: {error}") from None
    if read.date() != example.date() or (read.tzinfo is None) == aware:
        raise ValueError(f"{shown} must say year, month and day, as %d/%m/%Y does")


def _by_format(values: pa.Array, form: str, ticks: Ticks) -> pa.Array:
    """Text in a format of its own as timestamps, null where it is none. Each text is read once: strptime is slow."""
    check_format(form, ticks)
    codes = values.dictionary_encode()
    instants = [_instant_by_format(text, form) for text in codes.dictionary.to_pylist()]
    read = pa.array(instants, pa.int64()).cast(pa.timestamp("us", "UTC" if ticks.tz is not None else None))
    return read.take(codes.indices)


def _instant_by_format(text: str, form: str) -> int | None:
    try:
        moment = dt.datetime.strptime(text.strip(), form)
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)


def _parsed(values: pa.Array, bad: Bools | None, times: Times, name: str) -> tuple[pa.Array, Bools | None]:
    """Text as timestamps; what is none becomes null, and bad."""
    if times.format is not None:
        parsed = _by_format(values, times.format, times.ticks)
        return parsed, np.asarray(parsed.is_null()) if parsed.null_count else None
    aware = times.ticks.tz is not None
    kind = pa.timestamp("us", "UTC" if aware else None)
    with suppress(pa.ArrowInvalid):
        return values.cast(kind), bad
    # Something is wrong: look closer.
    values = pc.utf8_trim_whitespace(_valid(values))
    form = np.asarray(pc.match_substring_regex(values, _ISO).fill_null(False))
    zone = np.asarray(pc.match_substring_regex(values, _HAS_ZONE).fill_null(False))
    other = form & (zone != aware)
    if other.any():
        place = int(np.argmax(other))
        mixed = " and other times of it are the other way round" if (form & (zone == aware)).any() else ""
        raise ValueError(
            zone_mismatch(times.ticks, not aware, f"a time of the column {name!r} (row {place + 1})") + mixed
        )
    # Fractions finer than a microsecond are cut off, which changes no step.
    values = pc.replace_substring_regex(values, r"(\.\d{6})\d+", r"\1")
    values = pc.if_else(pa.array(form), values, pa.scalar(None, values.type))
    parsed = pa.concat_arrays(cast_each(values, kind)) if len(values) else values.cast(kind)
    return parsed, np.asarray(parsed.is_null())


def _valid(values: pa.Array) -> pa.Array:
    """Text; null where it is not UTF-8, which Parquet does not check."""
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raw = values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary())
        return pa.concat_arrays(cast_each(raw, values.type))
    return values


def _numbers(values: pa.Array) -> pa.Array:
    """Text or decimals as floats; null where there is no finite number."""
    try:
        return values.cast(pa.float64())
    except pa.ArrowInvalid:
        if is_text(values.type):
            values = pc.utf8_trim_whitespace(_valid(values))
            form = pc.match_substring_regex(values, _NUMBER).fill_null(False)
            values = pc.if_else(form, values, pa.scalar(None, values.type))
        return pa.concat_arrays(cast_each(values, pa.float64()))


def whole_numbers(values: pa.Array) -> pa.Array | None:
    """Of text or decimals, those that are integers of 64 bits; None for columns of numbers. Floats would round them."""
    if not (is_text(values.type) or pa.types.is_decimal(values.type)):
        return None
    if is_text(values.type):
        values = pc.utf8_trim_whitespace(_valid(values))
        form = pc.match_substring_regex(values, r"^[+-]?\d{1,19}$").fill_null(False)
        values = pc.replace_substring_regex(values, r"^\+", "")
        values = pc.if_else(form, values, pa.scalar(None, values.type))
    return pa.concat_arrays(cast_each(values, pa.int64())) if len(values) else values.cast(pa.int64())


def cast_each(values: pa.Array, kind: pa.DataType) -> list[pa.Array]:
    """The values in another type; null where that fails. Halves again and again, as few fail."""
    try:
        return [values.cast(kind)]
    except pa.ArrowInvalid:
        if len(values) == 1:
            return [pa.nulls(1, kind)]
        half = len(values) // 2
        return cast_each(values[:half], kind) + cast_each(values[half:], kind)


def numbers_of(values: pa.Array) -> tuple[Any, Bad]:
    """Numbers, and which rows have none: integers of any type stay so, all else becomes floats."""
    bad = np.asarray(values.is_null()) if values.null_count else None
    if is_text(values.type) or pa.types.is_decimal(values.type) or pa.types.is_null(values.type):
        values = _numbers(values)
        bad = np.asarray(values.is_null())
    numbers = np.asarray(values.fill_null(0) if values.null_count else values)
    return (numbers.astype(np.float64, copy=False) if numbers.dtype.kind == "f" else numbers), bad


def weights_of(values: pa.Array, whole: bool) -> tuple[Any, Bad]:
    """Weights as int64 (`whole`) or float64, and which rows have none."""
    numbers, bad = numbers_of(values)
    if numbers.dtype.kind == "f":
        unfit = ~np.isfinite(numbers)
        if whole:
            unfit |= numbers != np.rint(numbers)
        if unfit.any():
            bad = unfit if bad is None else bad | unfit
            numbers = np.where(unfit, 0.0, numbers)
    if not whole:
        numbers = numbers.astype(np.float64)
    elif numbers.dtype.kind == "u":
        # Beyond 2^62 a weight is beyond every bound, and is clipped as any other.
        numbers = np.minimum(numbers.astype(np.uint64), 1 << 62).astype(np.int64)
    else:
        numbers = np.clip(numbers, -float(1 << 62), float(1 << 62)) if numbers.dtype.kind == "f" else numbers
        numbers = np.clip(numbers.astype(np.int64), -(1 << 62), 1 << 62)
    return numbers, bad


class Store:
    """The events of one structure until all are there: in memory, and beyond `memory` bytes on disk.

    On disk they are sorted into parts of the time, each small enough to be sorted by itself. What is there is private
    data: it is in one file that has no name, so that nothing is left of it however the process ends.
    """

    def __init__(self, horizon: int, memory: int) -> None:
        self.horizon = horizon
        self.memory = memory
        self.batches: list[pa.RecordBatch] = []
        self.bytes = 0
        self.file: Any = None
        #: Where the streams of each part begin in the file.
        self.places: dict[int, list[int]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Keeps a batch of events."""
        if batch.num_rows == 0:
            return
        self.batches.append(batch)
        self.bytes += batch.nbytes
        if self.bytes > self.memory:
            self._spill()

    def _parts(self, batch: pa.RecordBatch) -> npt.NDArray[np.int8]:
        """The part of each event."""
        steps = np.asarray(batch.column("step"))
        return ((steps - 1) // -(-self.horizon // _PARTS)).astype(np.int8)

    def _spill(self) -> None:
        with naming(tempfile.gettempdir()):
            if self.file is None:
                self.file = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `close`)
            self._write()
            # So that a full disk is met here, where it can be said.
            self.file.flush()
        self.batches.clear()
        self.bytes = 0

    def _write(self) -> None:
        """Writes a stream for each part that has events, one behind the other."""
        parts = [self._parts(batch) for batch in self.batches]
        for part in sorted({part for each in parts for part in np.unique(each).tolist()}):
            self.places.setdefault(part, []).append(self.file.tell())
            with pa.ipc.new_stream(self.file, self.batches[0].schema) as stream:
                for batch, each in zip(self.batches, parts, strict=True):
                    rows = batch.filter(pa.array(each == part))
                    if rows.num_rows:
                        stream.write_batch(rows)

    def in_order(self) -> Iterator[pa.RecordBatch]:
        """All events in the order of their steps."""
        if self.file is None:
            yield from _sorted(self.batches)
            return
        self._spill()
        for part in sorted(self.places):
            rows = self._read(self.places[part])
            # A single step needs no order.
            yield from rows if self.horizon <= _PARTS else _sorted(list(rows))

    def _read(self, places: list[int]) -> Iterator[pa.RecordBatch]:
        """The events of a part, as they came."""
        for place in places:
            self.file.seek(place)
            with pa.ipc.open_stream(self.file) as stream:
                yield from stream

    def close(self) -> None:
        """Removes what is on disk."""
        self.batches.clear()
        if self.file is not None:
            with suppress(OSError):  # on a full disk: of what could not be written, which goes with the file
                self.file.close()


def _sorted(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches in the order of their steps; those that are so already as they are."""
    columns = [np.asarray(batch.column("step")) for batch in batches]
    if all(np.all(steps[1:] >= steps[:-1]) for steps in columns) and all(
        left[-1] <= right[0] for left, right in pairwise(columns)
    ):
        yield from batches
        return
    # First in pieces that stay in the cache, then each part of the time by itself: many times as fast as all at once.
    least, most = min(int(steps.min()) for steps in columns), max(int(steps.max()) for steps in columns)
    starts = least + np.arange(_PARTS) * -(-(most - least + 1) // _PARTS)
    parts: list[list[pa.RecordBatch]] = [[] for _ in starts]
    for batch in batches:
        ordered = _by_step(batch)
        cuts = [*np.searchsorted(np.asarray(ordered.column("step")), starts).tolist(), ordered.num_rows]
        for part, (start, end) in zip(parts, pairwise(cuts), strict=True):
            if end > start:
                part.append(ordered.slice(start, end - start))
    for part in parts:
        if part:
            yield from _by_step(pa.Table.from_batches(part).combine_chunks()).to_batches()


def _by_step(rows: Any) -> Any:
    """A table or batch in the order of its steps."""
    steps = np.asarray(rows.column("step"))
    steps = steps - steps.min()
    # Of the short type it is a radix sort.
    order = np.argsort(steps.astype(np.int16) if steps.max() < 1 << 15 else steps, kind="stable")
    return rows.take(pa.array(order))
