"""A table, and the same with one row more, through every door into every sink: what `test_rows` compares.

A *door* is a form in which rows come: files, Arrow, pandas, lists. A *kind* is how a door holds a column. A *sink* is
what the rows are counted in. The *role* is the column in which the further row is odd.
"""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import gzip
import io
import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import fastgame as fg
from fastgame import axis
from fastgame._cli import main

Floats = npt.NDArray[np.float64]
Values = list[Any]
Row = dict[str, Any]

#: Rows of a block, where a door has blocks of rows.
BLOCK_ROWS = 7
HORIZON = 8
#: The bound of weights.
WEIGHT = 3


class Raw(bytes):
    """A cell of a CSV file or a value of JSON as it is written. Empty in JSON: the field is not there."""


class Line(bytes):
    """A whole line of a file; it stands in every column of its row."""


class Unheld(Exception):
    """A door cannot hold a value."""


#: Stands for the value of a row in which nothing is odd.
PLAIN = Ellipsis


# Odd values. Each list grows; a door is given those that it can hold.
# fmt: off

#: Texts by the family of columns in which they are nearly something.
ODD_TEXTS: dict[str, Values] = {"names": [], "numbers": [], "times": []}
ODD_TEXTS["numbers"] += [
    # Nothing, and what stands for it elsewhere.
    *["", " ", "\t", "null", "NULL", "None", "NaN", "nan", "NA", "N/A", "NaT", "-", "\\N"],
    # Numbers that are none, or are written oddly.
    *["inf", "-inf", "Infinity", "+Inf", "1e400", "-1e400", "1e-400", "zz", "1.5.2", "--1", "1e", "1,5", "٣", "½"],
    *["+1", "-0", "01", "1.0", "1.", ".5", " 1", "1 ", "1_0", "0x1", "1e0", "1E+0", "10e-1", "1.0000000000000000001"],
    *["3.0000000000000001", "3.5", "-3", "4", "-4", "1" * 19, "1" * 40, "9" * 400, "0." + "0" * 50 + "1", "true"],
    *[str(n) for n in (2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64)],
    # Digits that need all of a float.
    *["0.1", "4.999999999999999999", "0.99999999999999999999", "9007199254740990.5"],
]
ODD_TEXTS["times"] += [
    # In many forms, with and without a zone.
    *["2026-01-03", "2026-01-03T09:30", "2026-01-03 09:30", "2026-01-03 09:30:15", "2026-01-03T09", "20260103"],
    *["2026-01-03 09:30Z", "2026-01-03 09:30z", "2026-01-03t09:30:00", "2026-01-03 09:30+00", "2026-01-03 09:30+0100"],
    *["2026-01-03 09:30+01:00", "2026-01-03 09:30 +01:00", "2026-01-03 09:30:00 UTC", "2026-01-03+01:00"],
    *["2026-01-03 09:30-24:00", "2026-01-03 09:30+99:99", "2026-01-03 09:30:00[Europe/Copenhagen]", "2026-W01-3"],
    # Fractions of a second.
    *["2026-01-03 09:30:00.1", "2026-01-03 09:30:00.123456", "2026-01-03 09:30:00.1234567", "2026-01-03 09:30:00."],
    *["2026-01-03T00:00:00.1234567891", "2026-01-02 23:59:59.999999999", "2026-01-03 09:30:00,5"],
    # Moments that are none, and the edges of calendars.
    *["2026-01-01 24:00", "2026-01-03 24:00:00", "2026-02-30", "2025-02-29", "2026-13-01", "2026-00-10", "2026-01-00"],
    *["2026-01-03 25:00", "2026-01-03 23:60", "2026-01-03 23:59:60", "0000-01-01", "0001-01-01", "9999-12-31 23:59"],
    *["10000-01-01", "+10000-01-01", "-0001-01-01", "1677-09-21", "2262-04-12", "2300-01-01 00:00:00.000000001"],
    *["26-01-03", "2026-1-3", "2026/01/03", "03.01.2026", "2026-01-03 9:30", "1767427200", "1767427200000", "now"],
    *[" 2026-01-03", "2026-01-03 ", "2026-01-03\t", "2026-01-03  09:30", "2026-01-03\u00a009:30"],
    *["2026-01-03 09:30 PM"],
    # The edges of the clock.
    *["2025-12-31 23:59:59.999999", "2026-01-01", "2026-01-08 23:59:59.999999", "2026-01-09"],
    # As a number, and cut off.
    *["20260103T0930", "2026-01", "2026", "2026-01-03T", "2026-01-03 09:", "2026-01-03 09:30:00.123456Z"],
]
ODD_TEXTS["names"] += [
    # Keys that are nearly listed ones.
    *["a", "a ", " a", "A", "a\u0000", "\u0000", "a\u0000b", "а", "é", "e\u0301", "\u00e9", "\ufeffa", "\u200b"],
    *["\U0001f600"],
    # What means something to a parser.
    *['"', '""', '"a', 'a"', 'a"b', '"a"', "'", "a,b", ",", ";", "a\tb", "#", "\\", "\\n", "a\nb", "a\r\nb", "\r"],
    *["\n"],
    *["{", "}", "[]", "{}", "null\n", "\u2028", "\x1a", "\x7f", "\x85", "x" * 5000],
    # Half of a pair: no UTF-8.
    *["\ud800", "a\udfff"],
]

#: Text that is not UTF-8, where a door has text in bytes.
ODD_BYTES: Values = [b"", b"a", b"1", b"\xff", b"a\xff", b"\xc3", b"\xed\xa0\x80", b"2026-01-03\xff", b"1\xff", b"\0"]

_UTC = dt.timezone.utc
ODD_VALUES: Values = [
    # Missing, of every make.
    *[None, pd.NA, pd.NaT, np.datetime64("NaT"), pa.scalar(None), pa.scalar(None, pa.int64()), float("nan"), np.nan],
    # Truth values, which are no numbers.
    *[True, False, np.True_, pa.scalar(True)],
    # Numbers at the edges of their types.
    *[0, 1, -1, 3, 4, -4, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1],
    *[2**64 - 1, 2**64, 10**30, 10**400, 1_200_000_000_000_000_000],
    *[0.0, -0.0, 1.0, 1.5, 3.0, 3.0000000000000004, -3.5, 2.0**53, 2.0**53 + 2, 1.2e18, 2.0**62, 2.0**63, -(2.0**63)],
    *[1e300, 5e-324, float("inf"), float("-inf")],
    *[Decimal(1), Decimal("1.0"), Decimal("1.5"), Decimal("1E+2"), Decimal("NaN"), Decimal("Infinity"), Decimal(2**64)],
    *[Decimal("1.000000001"), Decimal("9" * 29), Fraction(1), Fraction(3, 2), 1 + 0j],
    *[np.int8(1), np.uint64(2**64 - 1), np.float32(1.0), np.float16(1.5), np.float64("inf"), np.int64(2), np.array(1)],
    *[pa.scalar(1), pa.scalar(1.0), pa.scalar("a"), pa.scalar(dt.datetime(2026, 1, 3)), pa.scalar(b"a")],
    # Times of every make, with and without a zone.
    *[dt.date(2026, 1, 3), dt.datetime(2026, 1, 3, 21, 30), dt.datetime(2026, 1, 3, 9, 30, tzinfo=_UTC)],
    *[dt.datetime(2026, 1, 3, 9, tzinfo=dt.timezone(dt.timedelta(hours=14))), dt.datetime.min, dt.datetime.max],
    *[dt.datetime.min.replace(tzinfo=_UTC), dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=12)))],
    *[dt.date.min, dt.date.max, dt.time(9, 30), dt.timedelta(days=1), np.timedelta64(1, "D")],
    *[np.datetime64("2026-01-03"), np.datetime64("2026-01-03T09:30"), np.datetime64("2026-01-03T09:30:00.1", "ns")],
    *[np.datetime64("2026", "Y"), np.datetime64("10000-01-01"), np.datetime64("-9999-01-01")],
    *[np.datetime64(2**62, "us")],
    *[pd.Timestamp("2026-01-03 09:30"), pd.Timestamp("2026-01-03 09:30", tz="UTC"), pd.Timestamp.max],
    *[pd.Timestamp("2026-01-03 23:59:59.999999999"), pd.Period("2026-01-03", "D"), pd.Timedelta(1, "D")],
    # Text and bytes of other makes.
    *[np.str_("a"), np.bytes_(b"a"), bytearray(b"a"), memoryview(b"a"), "a", "1"],
    # What is no single value.
    *[[], [1], ["a"], (), (1,), {}, {"a": 1}, set(), np.array([1, 2]), np.array([]), pa.array([1]), pd.Series([1])],
    *[range(2), object(), type, NotImplemented],
]

#: Cells of CSV as they are written.
ODD_CELLS: Values = [
    *map(
        Raw, [b'"', b'""', b'"""', b'""""', b'"a', b'a"', b'"a"', b'"a"b', b'"a""b"', b'"a" ', b' "a"', b'a"b"', b"'a'"]
    ),
    *map(Raw, [b'"a,b"', b'"a,b', b"a,b", b",", b",,,", b'",', b',"', b'"1"', b'"2026-01-03 09:30"', b'""1""', b'\\"']),
    *map(Raw, [b"\0", b"a\0", b"\xff", b'"\xff', b"\xff,\xff", b"\xef\xbb\xbf"]),
    *map(Raw, [b"\xef\xbb\xbfa", b"\xc3\x28", b"\xfe\xff"]),
    *map(
        Raw, [b"x" * 3000, b'"' * 301, b"," * 300, b'"' + b"y" * 3000, b"\x1a", b"\x0b", b"\x0c", b"\x1c", b"\xc2\x85"]
    ),
    *map(Raw, [b"\xe2\x80\xa8", b"#", b"\t", b";", b'"\t"', b'"a"\t']),
]

#: Lines of CSV as they are.
ODD_CSV_LINES: Values = [
    *map(Line, [b"", b" ", b",", b",,", b",,,,,,,,,,,,", b'"', b'""', b'"""']),
    *map(Line, [b"\0", b"\xff", b"\xef\xbb\xbf", b"\t", b"#"]),
    *map(Line, [b"2026-01-03 09:30", b'"2026-01-03 09:30', b'2026-01-03 09:30,"']),
    *map(Line, [b'2026-01-03 09:30,"/home', b"zz" * 2000]),
    *map(Line, [b"2026-01-03 09:30,a,1,1,1,1,1,1,1,1", b"2026-01-03 09:30,\xff,1,1,1,1,1,1,1", b'"\xff,']),
    *map(Line, [b"'", b"time,key"]),
    *map(Line, [b'2026-01-03 09:30,a,"1', b'","', b'",",",",",",",', b"\xff,\xff,\xff,\xff,\xff,\xff,\xff", b"\x1a"]),
    *map(Line, [b'"a" "b",']),
]

#: Values of JSON as they are written, whether or not they may be.
ODD_JSON: Values = [
    *map(
        Raw, [b"", b"null", b"true", b"false", b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"1e-400", b"-0"]
    ),
    *map(Raw, [b"-0.0", b"1.0", b"1.5", b"1e0", b"10e-1", b"+1", b"01", b"0x1"]),
    *map(Raw, [b".5", b"1.", b"9" * 30, b"9" * 5000, b"1_0"]),
    *map(Raw, [b"9007199254740993", b"9007199254740993.0", b"9223372036854775808", b"-9223372036854775809"]),
    *map(Raw, [b"1.2e18", b"4"]),
    *map(Raw, [b"[]", b"[1]", b"{}", b'{"a": 1}']),
    *map(Raw, [b"[" * 200 + b"]" * 200, b'{"a":' * 200 + b"1" + b"}" * 200, b"[[null]]"]),
    *map(Raw, [b'"\\ud800"', b'"\\ud83d\\ude00"', b'"\\u0000"', b'"\\u0061"', b'"a\\nb"', b'"\\x61"', b'"a', b'a"']),
    *map(Raw, [b"'a'", b"a"]),
    *map(Raw, [b'"\xff"', b'"\xed\xa0\x80"', b'"a\0b"', b'"a\tb"', b'"\xef\xbb\xbfa"', b'"a", "time": "2026-01-03"']),
    *map(Raw, [b'"a" /**/']),
    *map(Raw, [b'"a"}, {"a": 1', b'"a"} {"a": 1', b'"a"}}', b'"' + b"x" * 3000 + b'"']),
    *map(Raw, [b'"a",', b'"' + b"\\" * 301 + b'"']),
]

#: Lines of JSON as they are.
ODD_JSON_LINES: Values = [
    *map(Line, [b"", b" ", b"null", b"true", b"1", b'"a"', b"[]", b"{}", b"{", b"}", b"[", b"]", b"{}{}", b"[{}]"]),
    *map(Line, [b"{},", b","]),
    *map(Line, [b'{"time": "2026-01-03 09:30"}', b'{"time": "2026-01-03 09:30"', b'{"time": {"time": 1}}']),
    *map(Line, [b'{"time": 1, "time": 2}']),
    *map(Line, [b'{"x": 1} {"x": 2}', b"\0", b"\xff", b"\xef\xbb\xbf{}", b'{"\xff": 1}', b'{"\\ud800": 1}']),
    *map(Line, [b"{" * 300, b"// a"]),
    *map(Line, [b'{"a":' * 5000, b"[" * 20000, b'{"z": "' + b"x" * 3000 + b'"}', b"{'time': 1}", b'"', b'"{"']),
    *map(Line, [b"{}\x0b", b"\x0c"]),
]
# fmt: on


# Kinds: how columns are held.


class Kind(NamedTuple):
    """The form of a column's clean values, and the type that its door gives it."""

    form: str
    type: Any = None


_TEXTS = {"text": pa.string(), "large text": pa.large_string(), "text view": pa.string_view()}
ARROW_KINDS = {
    **{name: Kind("text", kind) for name, kind in _TEXTS.items()},
    "dictionary of text": Kind("text", pa.dictionary(pa.int32(), pa.string())),
    **{unit: Kind("stamp", pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    **{name: Kind("date", kind) for name, kind in {"date32": pa.date32(), "date64": pa.date64()}.items()},
    **{name: Kind("whole", getattr(pa, name)()) for name in ("int64", "int8", "uint64", "uint8")},
    "dictionary of int64": Kind("whole", pa.dictionary(pa.int32(), pa.int64())),
    **{name: Kind("float", getattr(pa, name)()) for name in ("float64", "float32")},
    "decimal": Kind("decimal", pa.decimal128(38, 9)),
    **{name: Kind("bytes", kind) for name, kind in {"bytes": pa.binary(), "large bytes": pa.large_binary()}.items()},
}
_FORMS = ("text", "stamp", "date", "whole", "float", "decimal", "bytes")
#: Columns of Python's values, which may hold anything.
ANY_KINDS = {form: Kind(form) for form in _FORMS}
NUMPY_KINDS = {
    **{f"object of {form}": Kind(form, object) for form in _FORMS},
    **{"U": Kind("text", np.str_), "int64": Kind("whole", np.int64), "float64": Kind("float", np.float64)},
    **{unit: Kind("stamp", f"datetime64[{unit}]") for unit in ("s", "us", "ns")},
}
PANDAS_KINDS = {
    **{f"object of {form}": Kind(form, object) for form in _FORMS},
    **{name: Kind("text", name) for name in ("str", "string[python]", "string[pyarrow]", "category")},
    **{name: Kind("whole", name) for name in ("int64", "Int64", "int8", "UInt64")},
    **{name: Kind("float", name) for name in ("float64", "Float64", "float32")},
    **{unit: Kind("stamp", f"datetime64[{unit}]") for unit in ("s", "us", "ns")},
}
TEXT_KINDS = {"text": Kind("text")}


def _zoned(kind: Any) -> Any:
    """A type of times with a zone; others as they are."""
    if isinstance(kind, pa.DataType):
        return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) else kind
    return kind.replace("]", ", UTC]") if isinstance(kind, str) and kind.startswith("datetime64") else kind


def _in_arrow(values: Values, kind: Kind) -> pa.Array:
    """A column of Arrow. Text may have any bytes, as a writer that does not check would leave them."""
    if kind.form != "text":
        if pa.types.is_dictionary(kind.type):
            # Arrow ends the process at scalars of its own in a dictionary.
            return pa.array(values, kind.type.value_type).dictionary_encode()
        return pa.array(values, kind.type)
    raw = [value.encode("utf-8", "surrogatepass") if type(value) is str else value for value in values]
    if not all(value is None or type(value) is bytes for value in raw):
        raise Unheld
    if pa.types.is_dictionary(kind.type):
        codes = pa.array(raw, pa.binary()).dictionary_encode()
        return pa.DictionaryArray.from_arrays(codes.indices, codes.dictionary.view(pa.string()))
    binary = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    return pa.array(raw, binary[kind.type]).view(kind.type)


def _in_valid_arrow(values: Values, kind: Kind) -> pa.Array:
    """As `_in_arrow`, for those that trust text to be UTF-8."""
    column = _in_arrow(values, kind)
    column.validate(full=True)
    return column


def _in_numpy(values: Values, kind: Kind) -> Any:
    if kind.type is object:
        column = np.empty(len(values), dtype=object)
        for place, value in enumerate(values):
            column[place] = value
        return column
    if kind.type is np.str_ and not all(type(value) is str for value in values):
        raise Unheld
    kept, kind_type = values, kind.type
    if str(kind_type).endswith(", UTC]"):  # numpy has no zones
        kind_type = kind_type.replace(", UTC]", "]")
        kept = [
            value.astimezone(_UTC).replace(tzinfo=None) if getattr(value, "tzinfo", None) else value for value in values
        ]
    column = np.array(kept, dtype=kind_type)
    if column.ndim != 1:
        raise Unheld
    return column


def _in_pandas(values: Values, kind: Kind) -> Any:
    if kind.type is object:
        return pd.Series(_in_numpy(values, kind), dtype=object)
    plain = {"text": str, "whole": int, "float": int | float, "stamp": dt.datetime | np.datetime64}[kind.form]
    if not all(value is None or (isinstance(value, plain) and not isinstance(value, bool)) for value in values):
        raise Unheld
    if kind.type == "category":
        # With nothing in it pandas would say that its categories are numbers.
        listed = pd.Index(sorted({value for value in values if value is not None}), dtype="str")
        return pd.Series(pd.Categorical(values, categories=listed))
    return pd.Series(values, dtype=kind.type)


def _in_csv(values: Values, kind: Kind) -> Values:
    def cell(value: Any) -> bytes:
        if value is None or isinstance(value, Raw | Line):
            return value or b""
        if isinstance(value, bytes) or not isinstance(value, str | int | float):
            raise Unheld
        text = str(value)
        if "\n" in text or "\r" in text:
            raise Unheld
        quoted = text == "" or any(mark in text for mark in '",')
        return (f'"{text.replace(chr(34), chr(34) * 2)}"' if quoted else text).encode("utf-8", "surrogatepass")

    return [value if isinstance(value, Line) else cell(value) for value in values]


def _in_json(values: Values, kind: Kind) -> Values:
    def value_of(value: Any) -> bytes:
        return value if isinstance(value, Raw | Line) else json.dumps(value).encode()

    return [value_of(value) for value in values]


# Doors.


class Door(NamedTuple):
    """A form in which rows come."""

    #: The kinds of its columns.
    kinds: dict[str, Kind]
    #: A column of values; any error says that it cannot hold them.
    hold: Callable[[Values, Kind], Any]
    #: Columns as what is given on; of a file its path, in a folder.
    made: Callable[[dict[str, Any], Path], Any]
    #: Who is given it: replay, command, update.
    by: str
    #: Further odd values, and whole lines.
    odd: Values = []  # noqa: RUF012 (never changed)
    lines: Values = []  # noqa: RUF012


def _blocks(columns: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Columns that can be sliced, a few rows at a time, and at least once."""
    rows = len(next(iter(columns.values())))
    for start in range(0, max(rows, 1), BLOCK_ROWS):
        yield {name: column[start : start + BLOCK_ROWS] for name, column in columns.items()}


def _batches(columns: dict[str, Any]) -> list[pa.RecordBatch]:
    return [pa.record_batch(block) for block in _blocks(columns)]


def _table(columns: dict[str, Any]) -> pa.Table:
    """In chunks."""
    return pa.Table.from_batches(_batches(columns))


def _csv_file(columns: dict[str, Any], path: Path) -> str:
    lines = [b",".join(name.encode() for name in columns)]
    for row in zip(*columns.values(), strict=True):
        lines.append(row[0] if isinstance(row[0], Line) else b",".join(row))
    content = b"\n".join(lines) + b"\n"
    path.write_bytes(gzip.compress(content, 1) if path.suffix == ".gz" else content)
    return str(path)


def _json_file(columns: dict[str, Any], path: Path) -> str:
    lines = []
    for row in zip(*columns.values(), strict=True):
        pairs = [b'"%s": %s' % (name.encode(), value) for name, value in zip(columns, row, strict=True) if value != b""]
        lines.append(row[0] if isinstance(row[0], Line) else b"{" + b", ".join(pairs) + b"}")
    path.write_bytes(b"".join(line + b"\n" for line in lines))
    return str(path)


def _parquet_file(columns: dict[str, Any], path: Path) -> str:
    pq.write_table(_table(columns), path, row_group_size=BLOCK_ROWS)
    return str(path)


def _of_arrow(made: Callable[[pa.Table], Any]) -> Callable[[dict[str, Any], Path], Any]:
    return lambda columns, folder: made(_table(columns))


def _relation(table: pa.Table) -> Any:
    """A relation of DuckDB, if it can hold the values."""
    relation = duckdb.from_arrow(table)
    pa.RecordBatchReader.from_stream(relation).read_all()
    return relation


DOORS = {
    "csv": Door(
        TEXT_KINDS,
        _in_csv,
        lambda columns, at: _csv_file(columns, at / "rows.csv"),
        "command",
        ODD_CELLS,
        ODD_CSV_LINES,
    ),
    "csv.gz": Door(
        TEXT_KINDS,
        _in_csv,
        lambda columns, at: _csv_file(columns, at / "rows.csv.gz"),
        "command",
        ODD_CELLS,
        ODD_CSV_LINES,
    ),
    "json lines": Door(
        {name: kind for name, kind in ANY_KINDS.items() if name in ("text", "whole", "float")},
        _in_json,
        lambda columns, at: _json_file(columns, at / "rows.jsonl"),
        "command",
        ODD_JSON,
        ODD_JSON_LINES,
    ),
    "parquet": Door(ARROW_KINDS, _in_arrow, lambda columns, at: _parquet_file(columns, at / "rows.parquet"), "command"),
    "arrow table": Door(ARROW_KINDS, _in_arrow, _of_arrow(lambda table: table), "replay"),
    "arrow batches": Door(ARROW_KINDS, _in_arrow, lambda columns, at: _batches(columns), "replay"),
    "arrow stream": Door(ARROW_KINDS, _in_arrow, _of_arrow(lambda table: table.to_reader()), "replay"),
    "polars": Door(ARROW_KINDS, _in_valid_arrow, _of_arrow(pl.from_arrow), "replay"),
    "duckdb": Door(ARROW_KINDS, _in_valid_arrow, _of_arrow(_relation), "replay"),
    "pandas of arrow": Door(
        ARROW_KINDS, _in_valid_arrow, _of_arrow(lambda table: table.to_pandas(types_mapper=pd.ArrowDtype)), "replay"
    ),
    "pandas": Door(PANDAS_KINDS, _in_pandas, lambda columns, at: pd.DataFrame(columns), "replay"),
    "pandas in blocks": Door(
        PANDAS_KINDS, _in_pandas, lambda columns, at: [pd.DataFrame(block) for block in _blocks(columns)], "replay"
    ),
    "dict of lists": Door(ANY_KINDS, lambda values, kind: values, lambda columns, at: columns, "replay"),
    "dicts of lists": Door(
        ANY_KINDS, lambda values, kind: values, lambda columns, at: list(_blocks(columns)), "replay"
    ),
    "dict of arrays": Door(NUMPY_KINDS, _in_numpy, lambda columns, at: columns, "replay"),
    "list": Door(ANY_KINDS, lambda values, kind: values, lambda columns, at: columns, "update"),
    "numpy": Door(NUMPY_KINDS, _in_numpy, lambda columns, at: columns, "update"),
    "arrow": Door(ARROW_KINDS, _in_arrow, lambda columns, at: columns, "update"),
    "series": Door(PANDAS_KINDS, _in_pandas, lambda columns, at: columns, "update"),
    "polars series": Door(
        ARROW_KINDS,
        _in_valid_arrow,
        lambda columns, at: {name: pl.from_arrow(column) for name, column in columns.items()},
        "update",
    ),
}

# Columns.

FAMILIES = {
    "times": {"time", "gone", "day"},
    "names": {"key", "part", "site"},
    "numbers": {"weight", "x", "cell"},
}
#: The forms of values that a column may have, the usual one first.
FORMS = {
    **dict.fromkeys(FAMILIES["times"], ("stamp", "text", "date")),
    **dict.fromkeys(("key", "part"), ("text", "whole", "float", "bytes")),
    "site": ("text",),
    **dict.fromkeys(FAMILIES["numbers"], ("whole", "text", "float", "decimal")),
}
LISTED: dict[str, Values] = {
    "text": ["a", "b", "c", "1", "1.0", "01", " ", "nan", "null", "é", "2026-01-03", "9007199254740993"],
    "whole": [1, 2, 3, 0, -1, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 1_200_000_000_000_000_000],
    "bytes": [b"a", b"b", b"c", b"1", b"", b"\xff"],
}
LISTED["float"] = LISTED["whole"]
PARTS: dict[str, Values] = {"text": ["u", "v"], "whole": [1, 2], "float": [1, 2], "bytes": [b"u", b"v"]}


def clean(column: str, form: str, number: int, zoned: bool) -> Any:
    """The value of a column in a row with a number, in which nothing is odd."""
    if column in FAMILIES["times"]:
        moment = dt.datetime(2026, 1, 1 + number % HORIZON, 5 * number % 24, number % 60)
        if column == "gone":
            if number % 3 == 0:
                return None
            moment += dt.timedelta(days=2)
        if zoned:
            moment = moment.replace(tzinfo=dt.timezone(dt.timedelta(hours=1)))
        return {"stamp": moment, "text": moment.isoformat(" "), "date": moment.date()}[form]
    if column in FAMILIES["names"]:
        value = (PARTS[form][:2] if column == "part" else LISTED[form][:3])[number % (2 if column == "part" else 3)]
        return float(value) if form == "float" else value
    whole = [1, 2, 3][number % 3] if column == "weight" else number % 5
    return {"whole": int, "text": str, "float": float, "decimal": Decimal}[form](whole)


# Sinks.


@dataclass(frozen=True)
class Setting:
    """A door, a sink, a role, and all else that the two tables have in common."""

    door: str
    sink: str
    role: str
    kind: str
    #: Whether there are columns of weights and of deletions.
    weighted: bool
    deleted: bool
    zoned: bool
    #: Whether there is noise, the same for both tables; without it there is hardly any.
    seeded: bool
    clips: bool
    #: Whether events go through files.
    spills: bool
    #: Bytes of a block of a file.
    block: int
    #: Of the order of columns.
    order: int

    @property
    def columns(self) -> dict[str, Kind]:
        """All columns in their order, and how each is held."""
        names = ["note", *SINKS[self.sink].columns]
        if DOORS[self.door].by != "update":
            names += ["time", *(["gone"] if self.deleted else [])]
        names += ["weight"] if self.weighted else []
        random.Random(self.order).shuffle(names)
        kinds = DOORS[self.door].kinds
        return {name: kinds[self.kind] if name == self.role else self._usual(name) for name in names if name in FORMS}

    def _usual(self, name: str) -> Kind:
        kinds = DOORS[self.door].kinds.values()
        found = [[kind for kind in kinds if kind.form == form] for form in FORMS[name]]
        # The parts of keys are alike.
        return next(kinds[0] for kinds in found if kinds)

    @property
    def typed(self) -> bool:
        """Whether the role's column has a type of its own, and not each of its elements."""
        return DOORS[self.door].kinds[self.kind].type not in (None, object)

    def form(self, name: str) -> str:
        """The form of a column's values."""
        return self.columns[name].form

    def parameters(self, kind: Any) -> dict[str, Any]:
        """Of the structure."""
        bound = {"max_norm": float(WEIGHT)} if kind is fg.ContinualVector else {"max_weight": WEIGHT}
        return {
            **bound,
            "horizon": HORIZON,
            "privacy": fg.Zcdp(0.5 if self.seeded else 1e9),
            "insecure_seed": 11 if self.seeded else None,
            "protect": "lifetime" if self.deleted else "update",
            "on_excess": "clip" if self.clips else "error",
            "invalid": "drop",
            **({} if kind in (fg.ContinualCounter, fg.ContinualVector) else {"hash_seed": 5}),
        }

    def keys(self) -> Any:
        """The public list."""
        listed = LISTED[self.form("key")]
        if DOORS[self.door].by == "command":
            listed = LISTED["text"]
        if "part" not in SINKS[self.sink].columns:
            return listed
        parts = PARTS["text" if DOORS[self.door].by == "command" else self.form("part")]
        return [key for key in listed for _ in parts], [part for _ in listed for part in parts]


class Outcome(NamedTuple):
    """What a run gave."""

    #: What must be equal: the exception or the exit code, the text, times, labels, and errors that are public.
    said: Any
    #: A row a step, a column a label; None if there was no release.
    values: Floats | None


class Sink(NamedTuple):
    """What rows are counted in."""

    #: Columns beside those of time and weight.
    columns: tuple[str, ...]
    structure: Callable[[Setting], Any]
    #: What replay is told.
    feed: Callable[[Setting], dict[str, Any]]
    #: What the command is told; None if it has no such sink.
    command: list[str] | None
    #: Whether what a row adds is the same whatever else there is.
    linear: bool = True
    #: Of a join: which side the row is on.
    side: str = ""
    #: Updates, and reads by `read`, where it is not fed by replay.
    update: Callable[[Any, dict[str, Any]], object] | None = None
    read: Callable[[Setting, Any], Any] | None = None


_KEYED = ["--key", "key", "--keys", "keys.csv"]
_BOTH = ["--key", "key", "--key", "part", "--keys", "keys.csv"]
_SHAPE = ["--width", "4096", "--hash-seed", "5"]


def _of(kind: Any, **own: Any) -> Callable[[Setting], Any]:
    return lambda setting: kind(**own, **setting.parameters(kind))


def _vector(setting: Setting) -> Any:
    keys = setting.keys()
    return fg.ContinualVector(
        len(keys[0] if isinstance(keys, tuple) else keys), **setting.parameters(fg.ContinualVector)
    )


def _keyed(*columns: str) -> Callable[[Setting], dict[str, Any]]:
    return lambda setting: {"key": columns if len(columns) > 1 else columns[0], "keys": setting.keys()}


def _day(setting: Setting) -> Any:
    zone = "Europe/Copenhagen" if setting.zoned else None
    return axis.Datetime("2026-01-01", "2026-01-09", "1d", tz=zone, name="day")


AXES: dict[str, Callable[[Setting], Any]] = {
    "integer": lambda setting: axis.Integer(0, 5, name="x"),
    "regular": lambda setting: axis.Regular(5, 0, 5, name="x"),
    "variable": lambda setting: axis.Variable([0, 1, 2, 3, 5], name="x"),
    "far integer": lambda setting: axis.Integer(2**53 - 2, 2**53 + 4, name="x"),
    "datetime": _day,
    "category": lambda setting: axis.StrCategory(["a", "b", "c", "1"], name="site"),
}
_AXIS_TEXTS = {
    "integer": "x:0:5",
    "regular": "x:0:5:5",
    "far integer": f"x:{2**53 - 2}:{2**53 + 4}",
    "datetime": "day:2026-01-01:2026-01-09:1d",
    "category": "site:a,b,c,1",
}


def _bins(one: Any) -> Values:
    """All bins of an axis, flow bins too, as bounds of boxes."""
    if isinstance(one, axis.StrCategory):
        return list(one.categories)
    edges = one.edges if not isinstance(one, axis.Datetime) else [f"2026-01-0{day}" for day in range(1, 10)]
    edges = [edge.item() if isinstance(edge, np.generic) else edge for edge in edges]
    return [(None, edges[0]), *pairwise(edges), (edges[-1], None)]


def _range(*names: str) -> Sink:
    """Counts by axes, in all boxes of one bin on each."""

    def boxes(setting: Setting) -> dict[str, Any]:
        found: Values = [{}]
        for one in (AXES[name](setting) for name in names):
            found = [{**box, one.name: bounds} for box in found for bounds in _bins(one)]
        return {"boxes": found}

    def structure(setting: Setting) -> Any:
        return fg.RangeCounter(axes=[AXES[name](setting) for name in names], **setting.parameters(fg.RangeCounter))

    command: list[str] | None = None
    if all(name in _AXIS_TEXTS for name in names):
        command = ["range", *(word for name in names for word in ("--axis", _AXIS_TEXTS[name])), "--hash-seed", "5"]
    columns = tuple({"datetime": "day", "category": "site"}.get(name, "x") for name in names)
    return Sink(columns, structure, boxes, command)


def _box_text(box: dict[str, Any]) -> str:
    def end(value: Any) -> str:
        return "" if value is None else str(value)

    return ",".join(
        f"{name}={':'.join(map(end, bounds)) if isinstance(bounds, tuple) else bounds}" for name, bounds in box.items()
    )


def _update_points(structure: Any, columns: dict[str, Any]) -> None:
    names = [one.name for one in structure.axes]
    points = columns[names[0]] if len(names) == 1 else tuple(columns[name] for name in names)
    structure.update(points, *([columns["weight"]] if "weight" in columns else []))


def _update_keys(*names: str, side: str = "") -> Callable[[Any, dict[str, Any]], object]:
    def update(structure: Any, columns: dict[str, Any]) -> None:
        keys = columns[names[0]] if len(names) == 1 else tuple(columns[name] for name in names)
        target = getattr(structure, side) if side else structure
        target.update(keys, *([columns["weight"]] if "weight" in columns else []))

    return update


def _updated(name: str, update: Callable[[Any, dict[str, Any]], object]) -> Sink:
    """A sink of replay, fed by its own update."""

    def read(setting: Setting, structure: Any) -> Any:
        if isinstance(structure, fg.CountSketch):
            return structure.estimate(setting.keys())
        if isinstance(structure, fg.RangeCounter):
            return [structure.count(box) for box in SINKS[name].feed(setting)["boxes"]]
        return structure.estimate() if isinstance(structure, fg.JoinSize) else structure.release()

    return _SINKS[name]._replace(update=update, read=read, command=None)


_SKETCH = _of(fg.CountSketch, width=4096)
_JOIN = _of(fg.JoinSize, width=4096)
_SINKS = {
    "counter": Sink((), _of(fg.ContinualCounter), lambda setting: {}, ["count"]),
    "vector": Sink(("key",), _vector, _keyed("key"), ["count", *_KEYED]),
    "vector of pairs": Sink(("key", "part"), _vector, _keyed("key", "part"), ["count", *_BOTH]),
    "sketch": Sink(("key",), _SKETCH, _keyed("key"), ["top", *_KEYED, "-k", "99", *_SHAPE], linear=False),
    "sketch of pairs": Sink(
        ("key", "part"), _SKETCH, _keyed("key", "part"), ["top", *_BOTH, "-k", "99", *_SHAPE], linear=False
    ),
    **{name: _range(name) for name in AXES},
    "grid": _range("integer", "category"),
    "time grid": _range("datetime", "regular"),
    **{
        side: Sink(("key",), _JOIN, lambda setting: {}, ["join", "--on", "key", *_SHAPE], linear=False, side=side)
        for side in ("left", "right")
    },
    "left of pairs": Sink(
        ("key", "part"),
        _JOIN,
        lambda setting: {},
        ["join", "--on", "key", "--on", "part", *_SHAPE],
        linear=False,
        side="left",
    ),
}
SINKS = {
    **_SINKS,
    "update of counter": _updated("counter", lambda structure, columns: structure.update(columns["weight"])),
    "update of vector": Sink(
        ("cell",),
        lambda setting: fg.ContinualVector(6, **setting.parameters(fg.ContinualVector)),
        lambda setting: {},
        None,
        update=lambda structure, columns: structure.update(
            columns["cell"], *([columns["weight"]] if "weight" in columns else [])
        ),
        read=lambda setting, structure: structure.release(),
    ),
    "update of sketch": _updated("sketch", _update_keys("key")),
    "update of sketch of pairs": _updated("sketch of pairs", _update_keys("key", "part")),
    **{f"update of {name}": _updated(name, _update_points) for name in (*AXES, "grid", "time grid")},
    **{f"update of {side}": _updated(side, _update_keys("key", side=side)) for side in ("left", "right")},
}


# Runs.


def _clock(setting: Setting) -> fg.Ticks:
    return fg.Ticks("2026-01-01", "2026-01-09", "1d", tz="Europe/Copenhagen" if setting.zoned else None)


def row(setting: Setting, number: int) -> Row:
    """A row in which nothing is odd."""
    return {name: clean(name, kind.form, number, setting.zoned) for name, kind in setting.columns.items()}


def odd_row(setting: Setting, number: int, value: Any) -> Row:
    """A row that is odd in the role's column alone, or the line that it is."""
    if isinstance(value, Line):
        return dict.fromkeys(setting.columns, value)
    return row(setting, number) if value is PLAIN else {**row(setting, number), setting.role: value}


def given(setting: Setting, rows: Sequence[Row], folder: Path) -> Any:
    """Rows as the door gives them on; `Unheld` if it cannot hold them."""
    door = DOORS[setting.door]
    try:
        columns = {
            name: door.hold(
                [one[name] for one in rows], kind._replace(type=_zoned(kind.type)) if setting.zoned else kind
            )
            for name, kind in setting.columns.items()
        }
        return door.made(columns, folder)
    except Exception as error:
        raise Unheld from error


def outcome(setting: Setting, rows: Sequence[Row], folder: Path) -> Outcome:
    """What comes of rows."""
    by = DOORS[setting.door].by
    frame = given(setting, rows, folder)
    if by == "update":
        return _by_update(setting, frame)
    return (_by_command if by == "command" else _by_replay)(setting, frame, folder)


def _other(setting: Setting, folder: Path) -> Any:
    """The other side of a join: clean rows in the same form."""
    folder = folder / "other"
    folder.mkdir(exist_ok=True)
    return given(setting, [row(setting, number) for number in range(40)], folder)


def _raised(error: Exception) -> Outcome:
    # The width of a column of text in numpy is its type, and so public.
    return Outcome((type(error).__name__, re.sub(r"<U\d+", "<U", str(error))), None)


def _by_update(setting: Setting, columns: dict[str, Any]) -> Outcome:
    sink = SINKS[setting.sink]
    structure = sink.structure(setting)
    assert sink.update is not None
    assert sink.read is not None
    try:
        if sink.side:
            other = _update_keys("key", side="right" if sink.side == "left" else "left")
            other(structure, {"key": [clean("key", "text", number, False) for number in range(40)]})
        structure.advance(to=3)
        sink.update(structure, columns)
        values = []
        for step in (3, 4):
            structure.advance(to=step)
            values.append(np.atleast_1d(np.asarray(sink.read(setting, structure), dtype=np.float64)))
    except Exception as error:
        return _raised(error)
    return Outcome((), np.array(values))


def _by_replay(setting: Setting, frame: Any, folder: Path) -> Outcome:
    sink = SINKS[setting.sink]
    how: dict[str, Any] = {"time": "time", "memory": 0 if setting.spills else 1 << 30}
    how |= {"weight": "weight"} if setting.weighted else {}
    how |= {"delete_time": "gone"} if setting.deleted else {}
    structure = sink.structure(setting)
    try:
        if sink.side:
            key = ("key", "part") if "part" in sink.columns else "key"
            other = _other(setting, folder)
            left, right = (frame, other) if sink.side == "left" else (other, frame)
            how |= {f"right_{name}": how[name] for name in ("weight", "delete_time") if name in how}
            released = fg.replay_join(left, right, _clock(setting), structure, key=key, **how)
        else:
            released = fg.replay(frame, _clock(setting), structure, **sink.feed(setting), **how)
    except Exception as error:
        return _raised(error)
    names = released.schema.names
    return _of_rows(sink, released.num_rows, {name: released.column(name).to_pylist() for name in names}, ())


def _by_command(setting: Setting, path: str, folder: Path) -> Outcome:
    sink = SINKS[setting.sink]
    assert sink.command is not None
    command, *options = sink.command
    files = [path]
    if sink.side:
        other = _other(setting, folder)
        files = [path, other] if sink.side == "left" else [other, path]
    if "keys.csv" in options:
        options[options.index("keys.csv")] = str(folder / "keys.csv")
        keys = setting.keys()
        names = ("key", "part") if isinstance(keys, tuple) else ("key",)
        listed = {
            name: _in_csv(list(part), Kind("text"))
            for name, part in zip(names, keys if len(names) > 1 else [keys], strict=True)
        }
        _csv_file(listed, folder / "keys.csv")
    if command == "range":
        texts = [_box_text(box) for box in sink.feed(setting)["boxes"]]
        options += [word for text in texts for word in ("--box", text)]
    options += ["--time", "time", "--start", "2026-01-01", "--end", "2026-01-09", "--every", "1d", "--format", "csv"]
    options += ["--tz", "Europe/Copenhagen"] if setting.zoned else []
    options += ["--rho", "0.5", "--insecure-seed", "11"] if setting.seeded else ["--rho", "1e9"]
    options += ["--max-weight", str(WEIGHT), "--on-excess", "clip" if setting.clips else "error"]
    for given, option, column in ((setting.weighted, "weight", "weight"), (setting.deleted, "delete-time", "gone")):
        options += [f"--{option}", column] if given else []
        options += [f"--right-{option}", column] if given and sink.side else []
    options += ["--protect", "lifetime"] if setting.deleted else []
    code, out, err = run_command([command, *files, *options])
    if code:
        return Outcome((code, out, err), None)
    table = list(csv.DictReader(io.StringIO(out)))
    columns: dict[str, Values] = {name: [line[name] for line in table] for name in table[0]}
    columns["value"] = [float(text) for text in columns["value"]]
    return _of_rows(sink, len(table), columns, (code, err))


def run_command(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Runs a command in this process: exit code, standard output, and standard error without what is not private."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline=""), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(arguments)
    except SystemExit as ended:
        code = int(ended.code or 0)
    except Exception as error:
        code = -1
        err.write(f"{type(error).__name__}: {error}")
    out.flush()
    told = [line for line in err.getvalue().splitlines() if not line.startswith("not private")]
    return code, out.buffer.getvalue().decode(), "\n".join(told)


def _of_rows(sink: Sink, count: int, columns: dict[str, Values], said: Any) -> Outcome:
    """Releases as a row a step. Ranks stand in any order, and what is computed of releases differs as they do."""
    names = [name for name in columns if name in {"time", "key", "part", "box", *(["std"] if sink.linear else [])}]
    labels = list(zip(*([str(value) for value in columns[name]] for name in names), strict=True))
    order = sorted(range(count), key=lambda place: labels[place]) if "rank" in columns else list(range(count))
    labels, values = [labels[place] for place in order], [columns["value"][place] for place in order]
    steps = len(set(columns["time"]))
    assert steps == HORIZON
    return Outcome((said, tuple(columns), tuple(labels)), np.array(values).reshape(steps, -1))


# What one row may do.


def complaint(setting: Setting, base: Outcome, more: Outcome, first: int) -> str | None:
    """What is wrong with what one row changed; it happened at the step `first`, or at any if that is 0."""
    if (base.values is None) != (more.values is None) or base.said != more.said:
        return "what is said differs"
    if base.values is None or more.values is None:
        return None
    change = more.values - base.values
    near = tolerance(setting)
    changed = np.abs(change) > near
    found = None
    if np.abs(change).max() > bound(setting) + near:
        found = f"a row changed a release by {np.abs(change).max():.6g}, and may by {bound(setting):.6g}"
    elif first and changed[: first - 1].any():
        found = "a row changed what was before it"
    elif SINKS[setting.sink].linear and np.count_nonzero(changed.any(axis=0)) > 1:
        found = "a row changed more than one cell"
    elif SINKS[setting.sink].linear and changed.any():
        (cell,) = change.T[changed.any(axis=0)]
        steps = np.flatnonzero(np.abs(cell) > near)
        if np.ptp(cell[steps]) > near or steps[-1] - steps[0] + 1 != len(steps):
            found = "a row came or went more than once"
    return found


def bound(setting: Setting) -> float:
    """By how much a row may change a release."""
    sink = SINKS[setting.sink]
    if not sink.side:
        return WEIGHT
    # With each row of the other side that has its key, and the noise of a cell there.
    counts: dict[Any, int] = {}
    for number in range(40):
        one = row(setting, number)
        key = one["key"], one.get("part")
        counts[key] = counts.get(key, 0) + int(one.get("weight", 1))
    return WEIGHT * (max(counts.values()) + (10 * sink.structure(setting).noise_std() if setting.seeded else 0))


def tolerance(setting: Setting) -> float:
    """What is rounding, or noise where there should be none."""
    if setting.seeded:
        structure = SINKS[setting.sink].structure(setting)
        # Weights of vectors need not lie on the lattice of the releases.
        return structure.lattice_step * 1.001 if isinstance(structure, fg.ContinualVector) else 1e-6
    return 0.2 if SINKS[setting.sink].side else 0.02


def agrees(setting: Setting, change: Floats, expected: Floats | None) -> bool:
    """Whether a row changed what it changed elsewhere. With noise, medians and products need not."""
    if expected is None or (setting.seeded and not SINKS[setting.sink].linear):
        return True
    return bool(np.abs(change - expected).max() <= 3 * tolerance(setting))


def settings(door: str, chosen: random.Random) -> Iterator[Setting]:
    """Settings of a door without end, in an order that has each sink early."""
    sinks = [name for name, sink in SINKS.items() if fits(DOORS[door].by, sink)]
    while True:
        chosen.shuffle(sinks)
        for name in sinks:
            sink = SINKS[name]
            roles = [*sink.columns, "weight"]
            roles += ["time", "gone"] if DOORS[door].by != "update" else []
            role = chosen.choice([*roles, *sink.columns])
            kinds = [kind for kind, held in DOORS[door].kinds.items() if held.form in FORMS[role]]
            # Text can be the oddest.
            texts = [kind for kind in kinds if DOORS[door].kinds[kind].form == "text"]
            yield Setting(
                door,
                name,
                role,
                chosen.choice(chosen.choice([kinds, texts])),
                weighted=role == "weight" or name == "update of counter" or chosen.random() < 0.3,
                deleted=role == "gone" or chosen.random() < 0.3,
                zoned=chosen.random() < 0.3,
                seeded=chosen.random() < 0.5,
                clips=chosen.random() < 0.2,
                spills=chosen.random() < 0.1,
                block=chosen.choice([160, 200, 333, 1000, 4 << 20]),
                order=chosen.randrange(1000),
            )


def fits(by: str, sink: Sink) -> bool:
    """Whether a sink can be fed so."""
    return {"command": sink.command is not None, "update": sink.update is not None, "replay": sink.update is None}[by]


def odds_of(setting: Setting, count: int, chosen: random.Random, folder: Path) -> Values:
    """Odd values that the door can hold in the role, some of them of its family, and whole lines."""
    door = DOORS[setting.door]
    (family,) = (name for name, columns in FAMILIES.items() if setting.role in columns)
    texts = [text for found in ODD_TEXTS.values() for text in found]
    found: Values = []
    for _ in range(20 * count):
        if len(found) == count:
            break
        every = chosen.choice([ODD_TEXTS[family], [*texts, *ODD_BYTES], ODD_VALUES, ODD_VALUES, door.odd, door.lines])
        with contextlib.suppress(Unheld, IndexError):
            value = chosen.choice(every)
            given(setting, [odd_row(setting, 0, value)], folder)
            found.append(value)
    return found


def is_counted(setting: Setting) -> bool:
    """Whether rows in which nothing is odd are counted in a cell of their own that is released."""
    if setting.zoned and any(
        name in FAMILIES["times"] and kind.form == "date" for name, kind in setting.columns.items()
    ):
        return False
    by = DOORS[setting.door].by
    keys = {kind.form for name, kind in setting.columns.items() if name in ("key", "part")}
    return by != "update" and not SINKS[setting.sink].side and not (by == "command" and keys - {"text"})


def check(setting: Setting, values: Values, chosen: random.Random, folder: Path) -> Iterator[str | None]:
    """Adds a row to some tables, anywhere; yields for each what is wrong, or None.

    The odd values of the rows are `values`; a row in which nothing is odd comes first. What a row adds must be the same
    in every table.
    """
    few, many = ([row(setting, number) for number in range(count)] for count in (3, 40))
    dirty = list(many)
    for value in chosen.sample(values, min(len(values), chosen.randint(1, 3))):
        for number in (50, 51):
            dirty.insert(chosen.randint(0, len(dirty)), odd_row(setting, number, value))
    tables = {"clean": many, "dirty": dirty, "empty": [], "nothing in it": [{**one, setting.role: None} for one in few]}
    names = ["few", "dirty", chosen.choice(["clean", "empty", "nothing in it"])]
    tables["few"] = few
    bases: dict[str, Outcome] = {}
    for name in names:
        with contextlib.suppress(Unheld):
            bases[name] = outcome(setting, tables[name], folder)
    if DOORS[setting.door].by == "update" and setting.typed and bases["few"].values is None:
        return  # The type of the column is refused.
    for value in [PLAIN, *values]:
        number = chosen.randrange(60, 100)
        more = odd_row(setting, number, value)
        known = setting.role != "time" and not isinstance(value, Line | Raw) and DOORS[setting.door].by != "update"
        first = 1 + number % HORIZON if known else 0
        expected: Floats | None = None
        for name, base in bases.items():
            rows = tables[name]
            place = chosen.choice([0, len(rows), min(len(rows), BLOCK_ROWS), chosen.randint(0, len(rows))])
            try:
                found = outcome(setting, [*rows[:place], more, *rows[place:]], folder)
            except Unheld:
                continue
            wrong = complaint(setting, base, found, first)
            if base.values is not None and found.values is not None:
                change = found.values - base.values
                if wrong is None and not agrees(setting, change, expected):
                    wrong = "what a row adds depends on others"
                if wrong is None and value is PLAIN and is_counted(setting):
                    weight = int(more.get("weight", 1))
                    if abs(change.max() - weight) > 2 * tolerance(setting):
                        wrong = f"a row of weight {weight} adds {change.max():.6g}"
                expected = change if expected is None else expected
            shown = "nothing odd" if value is PLAIN else f"{value!r:.80}"
            where = f"{shown} in row {place} of {len(rows)}, {name}: {_short(base)} -> {_short(found)}"
            yield None if wrong is None else f"{wrong}: {where}"


def _short(found: Outcome) -> str:
    return "released" if found.values is not None else f"{found.said!r:.200}"
