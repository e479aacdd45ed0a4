"""Rows out of CSV, Parquet and JSON-lines files, a record batch at a time; keys as text, whatever the file has.

So a table gives the same keys in each form. What is no row at all (a line with a column too many, text that is not
UTF-8, JSON that is broken) is left out alone, and counted.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from fastgame._errors import BadRowsError
from fastgame._events import cast_each, check_key_column
from fastgame._rows import RowCounts

FORMATS = ("csv", "parquet", "json")
_ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
_COMPRESSED = (".gz", ".bz2", ".zst", ".lz4", ".br")
_BLOCK = 4 << 20
#: A row of CSV must fit into two blocks. Where one does not, larger blocks are tried.
_CSV_BLOCKS = (_BLOCK, 64 << 20)
#: Arrow reads nested JSON recursively, and a row must not end the process.
_MOST_NESTED = 100
_NO_LINE = "not a row"
_BOM = b"\xef\xbb\xbf"


class Columns(NamedTuple):
    """What is read of each row. The time is left as the file has it, or text."""

    time: Sequence[str]
    keys: Sequence[str]
    weights: Sequence[str]

    @property
    def all(self) -> list[str]:
        """Every column once."""
        return list(dict.fromkeys([*self.time, *self.keys, *self.weights]))


class Files:
    """Files of rows, to be read once.

    Parameters
    ----------
    patterns : list of str
        Paths, or patterns with * and ?. All must name files.
    columns : Columns
        What to read.
    kind : "csv", "parquet" or "json", optional
        The form of all; by the ending of each without it.
    delimiter : str, optional
        Of CSV; tab for .tsv, else a comma.
    counts : RowCounts
        Is told how many lines are no rows.
    strict : bool
        A line that is no row is an error.
    whole : int
        CSV files of up to so many bytes are read at once by all processors, larger ones block by block.
    """

    def __init__(
        self,
        patterns: Sequence[str],
        columns: Columns,
        *,
        counts: RowCounts,
        kind: str | None = None,
        delimiter: str | None = None,
        strict: bool = False,
        whole: int = 1 << 29,
    ) -> None:
        self.columns = columns
        self.counts = counts
        self.delimiter = delimiter
        self.strict = strict
        self.whole = whole
        self.files = [(path, kind or kind_of(path)) for path in expand(patterns)]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows of all files."""
        read = {"csv": self._csv, "parquet": self._parquet, "json": self._json}
        for path, kind in self.files:
            try:
                yield from read[kind](path)
            except (pa.ArrowException, EOFError) as error:
                raise ValueError(f"{path} cannot be read as {kind}: {one_line(error)}") from None
            except OSError as error:
                if error.filename is not None:
                    raise
                raise ValueError(f"{path} cannot be read as {kind}: {one_line(error)}") from None

    def _not_rows(self, path: str, count: int, what: str) -> None:
        self.counts.read += count
        self.counts.add(_NO_LINE, count)
        if self.strict and count:
            raise BadRowsError(f"{path} has a line that is no row: {what}; mend it, or leave bad rows out")

    def _refuse_missing(self, path: str, names: Sequence[str]) -> None:
        for name in self.columns.all:
            if list(names).count(name) != 1:
                what = "more than one column" if name in names else "no column"
                raise ValueError(f"{path} has {what} {name!r}; its columns are {', '.join(map(repr, names))}")

    def _csv(self, path: str) -> Iterator[pa.RecordBatch]:
        delimiter = self.delimiter or ("\t" if ".tsv" in path.lower() else ",")
        names, more = _header(path, delimiter)
        if names is None:
            return
        self._refuse_missing(path, names)
        done = 0
        for block in _CSV_BLOCKS if more else ():
            broken: list[str] = []

            def skip(row: Any, broken: list[str] = broken) -> str:
                # What is raised here goes nowhere.
                broken.append(f"{row.actual_columns} columns where {row.expected_columns} are expected")
                return "skip"

            rows = 0
            try:
                for batch in self._csv_batches(path, delimiter, block, skip):
                    fresh = batch.slice(max(0, done - rows))
                    rows += batch.num_rows
                    if fresh.num_rows:
                        yield self._as_text(path, fresh, fresh.schema.names)
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error):
                    raise
                done = max(done, rows)
                continue
            self._not_rows(path, len(broken), broken[0] if broken else "")
            return
        if more:
            raise ValueError(f"{path} has a row of more than {_CSV_BLOCKS[-1] >> 20} MB, or a quote that is not closed")

    def _csv_batches(self, path: str, delimiter: str, block: int, skip: Callable[[Any], str]) -> Iterator[Any]:
        parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip)
        read = pa.csv.ReadOptions(block_size=block)
        # Bytes: text that is no text must not end the reading of all rows.
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(self.columns.all, pa.binary()),
            include_columns=self.columns.all,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        options = {"read_options": read, "parse_options": parse, "convert_options": convert}
        plain = not path.lower().endswith(_COMPRESSED)
        if plain and os.path.getsize(path) <= self.whole:
            yield from pa.csv.read_csv(path, **options).to_batches()
        else:
            yield from pa.csv.open_csv(path, **options)

    def _as_text(self, path: str, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """The named columns of bytes or integers as text; rows where that fails are none."""
        columns = {}
        bad: Any = None
        for name in batch.schema.names:
            values = batch.column(name)
            if name in names:
                pieces = cast_each(values, pa.string()) if len(values) else [values.cast(pa.string())]
                text = pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)
                if text.null_count > values.null_count:
                    wrong = np.asarray(text.is_null()) & np.asarray(values.is_valid())
                    bad = wrong if bad is None else bad | wrong
                values = text
            columns[name] = values
        batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        if bad is None:
            return batch
        self._not_rows(path, int(np.count_nonzero(bad)), "text that is not UTF-8")
        return batch.filter(pa.array(~bad))

    def _parquet(self, path: str) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            self._refuse_missing(path, schema.names)
            for name in self.columns.keys:
                check_key_column(schema.field(name).type, name)
            # Types are checked whether or not there are rows.
            empty = [pa.record_batch([part.combine_chunks() for part in schema.empty_table().columns], schema.names)]
            for batch in chain(empty, file.iter_batches(columns=self.columns.all, batch_size=1 << 17)):
                plain = batch.select(self.columns.all)
                for place, name in enumerate(plain.schema.names):
                    if pa.types.is_dictionary(plain.column(name).type):
                        plain = plain.set_column(place, name, plain.column(name).dictionary_decode())
                yield self._as_text(path, plain, self.columns.keys)

    def _json(self, path: str) -> Iterator[pa.RecordBatch]:
        reader = _JsonLines(self.columns, lambda count, what: self._not_rows(path, count, what))
        rows = 0
        seen = set()
        with pa.input_stream(path, compression="detect") as stream:
            for number, block in enumerate(_lines(stream)):
                if number == 0 and block.lstrip().startswith(b"["):
                    raise ValueError(f"{path} is a JSON array; rows must be JSON lines, an object a line")
                batch = reader.read(block)
                rows += batch.num_rows
                seen |= {name for name in batch.schema.names if batch.column(name).null_count < batch.num_rows}
                yield batch
        required = [*self.columns.time[:1], *self.columns.keys, *self.columns.weights]
        missing = [name for name in required if name not in seen]
        if rows and missing:
            raise ValueError(f"{path} has no row with a value for {missing[0]!r}")


def expand(patterns: Sequence[str]) -> list[str]:
    """The files that paths and patterns name, in the order given, those of a pattern sorted."""
    paths = []
    for pattern in patterns:
        if os.path.exists(pattern) or not glob.has_magic(pattern):
            found = [pattern]
        else:
            found = sorted(glob.glob(pattern, recursive=True))
            if not found:
                raise ValueError(f"no file matches {pattern!r}")
        paths += found
    seen: dict[tuple[int, int], str] = {}
    for path in paths:
        if os.path.isdir(path):
            raise ValueError(f"{path} is a folder; name files, or a pattern such as '{os.path.join(path, '*.csv')}'")
        if os.path.exists(path) and not os.path.isfile(path):
            raise ValueError(
                f"{path} is no file but a pipe or a device, which cannot be read twice: write a file first"
            )
        with open(path, "rb"):
            pass  # whether it may be read
        file = identity(path)
        if file in seen:
            what = "named twice" if seen[file] == path else f"the file {seen[file]}, which is named too"
            raise ValueError(f"{path} is {what}; its rows would count twice")
        seen[file] = path
    return paths


def identity(path: str) -> tuple[int, int]:
    """What a file is, whatever it is called: links, also hard ones, are one file."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def kind_of(path: str) -> str:
    """The form of a file, by its ending."""
    name = path.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    kind = _ENDINGS.get(os.path.splitext(name)[1])
    if kind is None:
        raise ValueError(
            f"the form of {path} is not known by its ending ({', '.join(_ENDINGS)}, also with "
            f"{', '.join(_COMPRESSED)}); say it with --input-format ({', '.join(FORMATS)})"
        )
    return kind


def one_line(error: BaseException) -> str:
    """The message of an error on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _header(path: str, delimiter: str) -> tuple[list[str] | None, bool]:
    """The names of the columns of a CSV file, None if it has nothing at all; and whether there may be rows."""
    with pa.input_stream(path, compression="detect") as stream:
        start = stream.read(_BLOCK)
    if not start.removeprefix(_BOM).strip():
        return None, False
    more = len(start.strip().splitlines()) > 1
    if not more:
        start = start.rstrip() + b"\n"  # without which Arrow sees no header
    parse = pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=lambda _: "skip")
    # Without the rest of the last line, which the block cuts.
    cut = start.rfind(b"\n") + 1 if len(start) == _BLOCK else 0
    block = pa.BufferReader(start[:cut] if cut else start)
    options = pa.csv.ConvertOptions(check_utf8=False)
    read = pa.csv.ReadOptions(block_size=2 * _BLOCK)
    try:
        names = pa.csv.open_csv(block, read_options=read, parse_options=parse, convert_options=options).schema.names
    except UnicodeDecodeError:
        raise ValueError(f"{path} has names of columns that are not UTF-8") from None
    return list(names), more


def _lines(stream: Any) -> Iterator[bytes]:
    """Blocks of whole lines."""
    rest = bytearray()
    first = True
    while chunk := stream.read(_BLOCK):
        if first:
            chunk, first = chunk.removeprefix(_BOM), False
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield bytes(rest + chunk[:cut])
            rest = bytearray(chunk[cut:])
        else:
            rest += chunk
    if rest.strip():
        yield bytes(rest)


class _JsonLines:
    """Reads blocks of JSON lines: at once where all is as expected, else line by line. The result is the same."""

    def __init__(self, columns: Columns, not_rows: Callable[[int, str], None]) -> None:
        self.columns = columns
        self.not_rows = not_rows
        #: As the last block had them; integers are as good as text.
        self.types: dict[str, pa.DataType] = dict.fromkeys(columns.all, pa.string())

    def read(self, block: bytes) -> pa.RecordBatch:
        """The columns of a block, all text."""
        if not _one_object_each(block):
            return self._line_by_line(block)
        options = pa.json.ParseOptions(
            explicit_schema=pa.schema(list(self.types.items())), unexpected_field_behavior="ignore"
        )
        try:
            table = pa.json.read_json(
                pa.BufferReader(block), parse_options=options, read_options=pa.json.ReadOptions(block_size=2 * _BLOCK)
            )
        except pa.ArrowException:
            return self._line_by_line(block)
        if table.num_rows != block.strip().count(b"\n") + 1:
            return self._line_by_line(block)  # a line has two objects
        columns = [table.column(name).combine_chunks().cast(pa.string()) for name in self.types]
        columns = [part.combine_chunks() if isinstance(part, pa.ChunkedArray) else part for part in columns]
        return pa.RecordBatch.from_arrays(columns, names=list(self.types))

    def _line_by_line(self, block: bytes) -> pa.RecordBatch:
        values: dict[str, list[str | None]] = {name: [] for name in self.types}
        kinds: dict[str, set[type]] = {name: set() for name in self.types}
        bad = 0
        for line in block.split(b"\n"):
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode(), parse_int=_Whole)
            except (ValueError, RecursionError):
                row = None
            if not isinstance(row, dict):
                bad += 1
                continue
            for name, column in values.items():
                value = row.get(name)
                kinds[name].add(type(value))
                text = _text(value, name in self.columns.weights)
                if text is None and value is not None and name in self.columns.time:
                    text = ""  # a bad time, not a missing one
                column.append(text)
        self.not_rows(bad, "JSON that is no object")
        for name, found in kinds.items():
            self.types[name] = pa.int64() if found - {type(None)} == {_Whole} else pa.string()
        arrays = [pa.array(column, pa.string()) for column in values.values()]
        return pa.RecordBatch.from_arrays(arrays, names=list(values))


class _Whole(str):
    """A whole number of JSON, of any length, as text."""

    __slots__ = ()

    def __new__(cls, digits: str) -> _Whole:
        return super().__new__(cls, "0" if digits == "-0" else digits)


def _one_object_each(block: bytes) -> bool:
    """Whether a block is made of lines from { to }, not nested deeply, in UTF-8: what Arrow can be given.

    It takes objects over several lines, several in a line, and text that is not UTF-8; it ends the process at a null
    for a row, and at deep nesting.
    """
    lines = block.strip()
    ends = lines.count(b"}\n{") + lines.count(b"}\r\n{")
    if not (lines.startswith(b"{") and lines.endswith(b"}") and ends == lines.count(b"\n")):
        return False
    if lines.count(b"{") + lines.count(b"[") > ends + 1 and any(
        line.count(b"{") + line.count(b"[") > _MOST_NESTED for line in lines.split(b"\n")
    ):
        return False
    try:
        return b"\0" not in lines and bool(lines.decode())
    except UnicodeDecodeError:
        return False


def _text(value: Any, number: bool) -> str | None:
    """A value of JSON as text; None for what is neither text nor a whole number (nor, for weights, any number)."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a pair
            return None
        return str(value)
    return repr(value) if number and isinstance(value, float) else None


def read_keys(path: str, names: Sequence[str], kind: str | None = None) -> tuple[pa.Array, ...]:
    """The public list of keys: a text file with a key a line, or a table with columns of these names."""
    if kind is None and path.lower().endswith(".txt"):
        if len(names) != 1:
            raise ValueError(
                f"{path} has a key a line; for {len(names)} parts of a key a table with a header is needed"
            )
        try:
            with open(path, encoding="utf-8-sig", newline=None) as file:
                lines = [line.rstrip("\n") for line in file]
        except UnicodeDecodeError:
            raise ValueError(f"{path} must be text in UTF-8") from None
        return (pa.array([line for line in lines if line], pa.string()),)
    counts = RowCounts()
    files = Files([path], Columns((), names, ()), counts=counts, kind=kind, strict=True)
    batches = list(files)
    if not batches:
        return tuple(pa.array([], pa.string()) for _ in names)
    table = pa.Table.from_batches(batches)
    columns = tuple(table.column(name).combine_chunks() for name in names)
    return tuple(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column for column in columns)


def has_values(path: str, name: str) -> bool:
    """Whether a file is a table, by its ending, that has a column of this name with a value in it."""
    if path.lower().endswith(".txt"):
        return False
    files = Files([path], Columns((name,), (), ()), counts=RowCounts())
    try:
        return any(batch.column(name).null_count < batch.num_rows for batch in files)
    except ValueError:  # no such column
        return False
