"""From tables to events: at which step, of which key, with which weight. Everything here is private.

A row becomes an event at the step of its time, and another with the opposite weight at the step of its deletion. Rows
that are none (no time, no key, a weight beyond the bound) are left out one by one, so that a row decides over itself
alone; how many were is counted for the operator.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc

from fastgame._errors import BadRowsError
from fastgame._rows import AFTER_RUN, BEFORE_RUN, RowCounts
from fastgame._values import Bools, Instants, Integers, Times, column, instants_of, weights_of
from fastgame._writing import naming

if TYPE_CHECKING:
    from fastgame._feeds import Sink

#: Parts of the time that a store on disk is sorted by.
_PARTS = 64


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

    def _leave_out_timeless(self, usable: Bools | None, found: Instants, name: str, first_row: int) -> Bools | None:
        """Leaves out the rows without a time, or with one of the other zone kind: the clock says which is right."""
        zone = "a time zone" if self.times.ticks.tz is None else "no time zone"
        usable = self._leave_out(usable, found.other_zone, f"{zone} in {name!r}", first_row)
        return self._leave_out(usable, found.bad, f"no time in {name!r}", first_row)

    def _steps(self, batch: pa.RecordBatch, first_row: int) -> tuple[Integers, Integers | None, Bools | None]:
        """Steps of rows and of their deletion, and which rows have both."""
        times = self.times
        last = times.ticks.horizon
        found = instants_of(column(batch, times.time), times, times.time)
        instants = found.values
        steps = times.ticks.locate(instants)
        usable = self._leave_out_timeless(None, found, times.time, first_row)
        outside = (steps < 1) | (steps > last) if steps.size and (steps.min() < 1 or steps.max() > last) else None
        usable = self._leave_out(usable, outside, f"{times.time!r} not between start and end", first_row)
        if times.delete_time is None:
            return steps, None, self._in_run(steps, None, usable, first_row)
        values = column(batch, times.delete_time)
        missing = np.asarray(values.is_null())
        found = instants_of(values, times, times.delete_time)
        gone = found.values
        deleted = times.ticks.locate(gone)
        found = found._replace(bad=None if found.bad is None else found.bad & ~missing)
        usable = self._leave_out_timeless(usable, found, times.delete_time, first_row)
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


def _batch(steps: Integers, keys: list[Any], weights: Any, usable: Bools | None) -> pa.RecordBatch:
    columns = [pa.array(steps), *keys]
    names = ["step", *(f"key{place}" for place in range(len(keys)))]
    if weights is not None:
        columns.append(pa.array(weights))
        names.append("weight")
    batch = pa.RecordBatch.from_arrays(columns, names=names)
    return batch if usable is None else batch.filter(pa.array(usable))


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
