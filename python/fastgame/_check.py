"""What a command would read, and in which forms: for `--check`, which releases nothing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fastgame._events import Reader
from fastgame._feeds import RangeSink, Sink
from fastgame._output import columned
from fastgame._replay import check_columns
from fastgame._rows import RowCounts
from fastgame._values import Times
from fastgame.axis import Axis, Datetime, Integer, StrCategory

if TYPE_CHECKING:
    from fastgame._files import Files

_NUMBERS = "numbers: 5, -1.5, 2e3"
_WHOLE = "whole numbers: 5, -1"
_EPOCHS = {"epoch_s": "seconds", "epoch_ms": "milliseconds"}


class Input(NamedTuple):
    """Files, the columns that say when, and what is fed."""

    files: Files
    times: Times
    sinks: Sequence[Sink]


def lines_of(one: Input) -> Iterator[str]:
    """The columns of each file with their types, and what is read of them. Raises where they do not fit.

    Names and types of columns are taken as public; no row is looked at.
    """
    uses = {name: "; ".join(dict.fromkeys(texts)) for name, texts in _uses(one).items()}
    for path, kind, columns, schema in one.files.schemas():
        check_columns(schema, one.times, one.sinks)
        what = (
            "which has no header: the names are looked for in each line"
            if columns is None
            else f"{len(columns)} columns"
        )
        yield f"{path}: {kind}, {what}\n"
        shown = [(name, "any") for name in uses] if columns is None else columns
        names, types = [name for name, _ in shown], [kind for _, kind in shown]
        read = [uses.get(name, "(not read)") for name in names]
        yield from columned([("column", names, False), ("type", types, False), ("is read as", read, False)])


def count(one: Input, counts: RowCounts) -> None:
    """Reads all rows and counts those that would be left out. Not private."""
    reader = Reader(one.times, counts, False, 1, one.times.ticks.horizon)
    for batch in one.files:
        for events in reader.read(batch, list(one.sinks)):
            for _ in events:
                pass


def _uses(one: Input) -> dict[str, list[str]]:
    """What is read of each column."""
    uses: dict[str, list[str]] = {}

    def add(name: str | None, text: str) -> None:
        if name is not None:
            uses.setdefault(name, []).append(text)

    add(one.times.time, f"the time: {_of_times(one.times)}")
    add(one.times.delete_time, f"the time of deletion, empty in rows that stay: {_of_times(one.times)}")
    for sink in one.sinks:
        for place, name in enumerate(sink.keys):
            if isinstance(sink, RangeSink) and sink.axes is not None:
                add(name, f"a coordinate: {_of_axis(sink.axes[place])}")
            else:
                add(name, "a key: text as it stands, integers, bytes in UTF-8; empty is none")
        bound = "" if sink.bound is None else f", at most {sink.bound:g} in absolute value"
        add(sink.weight, f"the weight: {_WHOLE if sink.whole else _NUMBERS}{bound}")
    return uses


def _of_times(times: Times) -> str:
    zone = times.ticks.tz is not None
    if times.format is None:
        example = "2026-01-31T09:30Z, 2026-01-31 09:30:15.25+01:00" if zone else "2026-01-31, 2026-01-31 09:30:15.25"
        return f"ISO text with{'' if zone else 'out'} a time zone ({example}), or timestamps of this kind"
    if times.format in _EPOCHS:
        return f"numbers of {_EPOCHS[times.format]} since 1970 in UTC"
    example = dt.datetime(2026, 1, 31, 9, 30, 15, tzinfo=dt.timezone.utc if zone else None).strftime(times.format)
    return f"text as {times.format}: {example}"


def _of_axis(axis: Axis) -> str:
    if isinstance(axis, Datetime):
        return _of_times(Times(axis.ticks, "", None, None))
    if isinstance(axis, StrCategory):
        return "text, one of the categories or another"
    return _WHOLE if isinstance(axis, Integer) else _NUMBERS
