"""Rows out of CSV, Parquet and JSON-lines files, a record batch at a time; keys as text, whatever the file has.

So a table gives the same keys in each form. What is no row at all (a line with a column too many or a quote that it
does not close, text that is not UTF-8, JSON that is broken) is left out alone, and counted.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from fastgame._core import _csv_rows
from fastgame._errors import BadRowsError
from fastgame._rows import RowCounts
from fastgame._values import check_key_column, column, is_bytes, is_text, text_of_bytes, valid

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
#: A row of CSV has at most so many bytes, and the names of the columns are among the first so many.
_LONGEST_ROW, _HEADER = 64 << 20, 4 << 20
#: Blocks of CSV that are read at the same time.
_READERS = 2
#: Arrow reads nested JSON recursively, and a row must not end the process.
_MOST_NESTED = 100
_NO_LINE = "not a row"
_BOM = b"\xef\xbb\xbf"
_EMPTY_LINES = re.compile(rb"(?:[ \t]*[\r\n])*")


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
    multiline : bool
        Quoted fields of CSV may have line breaks. Without it a row is a line, whatever it has, so that no row reaches
        another; with it a quote that is not closed swallows the rows behind it.
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
        multiline: bool = False,
    ) -> None:
        self.columns = columns
        self.counts = counts
        self.delimiter = delimiter
        self.strict = strict
        self.multiline = multiline
        self.files = [(path, kind or kind_of(path)) for path in expand(patterns)]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows of all files."""
        read = {"csv": self._csv, "parquet": self._parquet, "json": self._json}
        for path, kind in self.files:
            with self._named_errors(path, kind):
                yield from read[kind](path)

    @staticmethod
    @contextlib.contextmanager
    def _named_errors(path: str, kind: str) -> Iterator[None]:
        """Says which file it is that cannot be read."""
        try:
            yield
        except (pa.ArrowException, EOFError) as error:
            raise ValueError(f"{path} cannot be read as {kind}: {one_line(error)}") from None
        except OSError as error:
            if error.filename is not None:
                raise
            raise ValueError(f"{path} cannot be read as {kind}: {one_line(error)}") from None

    def _delimiter(self, path: str) -> str:
        return self.delimiter or ("\t" if _ending(path) == ".tsv" else ",")

    def schemas(self) -> Iterator[tuple[str, str, list[tuple[str, str]] | None, pa.Schema]]:
        """Path and form of each file, the names and types of its columns (None: it has no header), and what is read."""
        text = pa.schema([(name, pa.string()) for name in self.columns.all])
        for path, kind in self.files:
            with self._named_errors(path, kind):
                if kind == "json":
                    yield path, kind, None, text
                elif kind == "csv":
                    names, _ = self._header(path, self._delimiter(path))
                    if names:
                        self._refuse_missing(path, names)
                    yield path, kind, [(name, "text") for name in names], text
                else:
                    with pq.ParquetFile(path) as file:
                        schema = file.schema_arrow
                        yield (
                            path,
                            kind,
                            [(field.name, str(field.type)) for field in schema],
                            self._read_schema(path, schema),
                        )

    def _not_rows(self, path: str, count: int, what: str) -> None:
        self.counts.read += count
        self.counts.add(_NO_LINE, count)
        if self.strict and count:
            raise BadRowsError(
                f"{path} has a line that is no row: {what}; mend it, or leave such rows out (bad_rows='drop')"
            )

    def _refuse_missing(self, path: str, names: Sequence[str]) -> None:
        for name in self.columns.all:
            if list(names).count(name) != 1:
                what = "more than one column" if name in names else "no column"
                shown = ", ".join(map(repr, names))
                found = [mark for mark in ";\t|," if mark in names[0]] if len(names) == 1 else []
                hint = f" (is it --delimiter {found[0]!r}?)" if found else ""
                raise ValueError(f"{path} has {what} {name!r}; its columns are {shown}{hint}")

    def _csv(self, path: str) -> Iterator[pa.RecordBatch]:
        delimiter = self._delimiter(path)
        names, used = self._header(path, delimiter)
        if not names:
            return
        self._refuse_missing(path, names)
        with pa.input_stream(path, compression="detect") as stream, ThreadPoolExecutor(_READERS) as pool:
            stream.read(used)
            waiting: deque[Future[tuple[pa.RecordBatch, int]]] = deque()
            for block in self._csv_blocks(path, stream, delimiter, len(names)):
                waiting.append(pool.submit(self._csv_batch, block, delimiter, names))
                if len(waiting) > _READERS:
                    yield self._told(path, *waiting.popleft().result())
            while waiting:
                yield self._told(path, *waiting.popleft().result())

    def _header(self, path: str, delimiter: str) -> tuple[list[str], int]:
        """The names of the columns of a CSV file, none if it has nothing at all, and where they end."""
        with pa.input_stream(path, compression="detect") as stream:
            whole = stream.read(_HEADER)
        start = whole.removeprefix(_BOM)
        start = start[len(_EMPTY_LINES.match(start)[0]) :]  # type: ignore[index]
        lines = start.splitlines(keepends=True) if self.multiline else [start[: _end_of_line(start)]]
        used = len(whole) - len(start)

        def read() -> Iterator[str]:
            nonlocal used
            for line in lines:
                used += len(line)
                yield line.decode()

        if not start.strip():
            return [], used
        try:
            return next(csv.reader(read(), delimiter=delimiter, strict=True), []), used
        except UnicodeDecodeError:
            raise ValueError(
                f"{path} has names of columns that are not UTF-8: it is no CSV, or in another encoding; convert it "
                "first, as with iconv -t UTF-8"
            ) from None
        except csv.Error as error:
            raise ValueError(f"{path} has names of columns that cannot be read: {one_line(error)}") from None

    def _csv_blocks(self, path: str, stream: Any, delimiter: str, fields: int) -> Iterator[pa.Buffer]:
        """Blocks of whole rows; what is none is left out."""
        rest = b""
        is_last = is_skipping = False
        while not is_last:
            # As much again as is waiting, so that a long row is not looked at many times.
            chunk = stream.read(max(_BLOCK, len(rest)))
            is_last = not chunk
            if is_skipping and not is_last:
                end = _end_of_line(chunk)
                is_skipping = chunk[end - 1 : end] not in (b"\n", b"\r")
                chunk = chunk[end:]
            block = rest + (chunk if not is_last or not rest or rest.endswith(b"\n") else b"\n")
            used, good, bad = _csv_rows(block, ord(delimiter), fields, self.multiline, _LONGEST_ROW)
            rest = block[used:]
            if len(rest) > _LONGEST_ROW and not self.multiline:
                bad, rest, is_skipping = bad + 1, b"", True
            if is_last and rest:
                bad += 1
            self._not_rows(path, bad, f"a quote that is not closed, or not {fields} columns as in the header")
            rows = pa.py_buffer(block)[:used] if good is None else pa.py_buffer(good)
            if rows.size:
                yield rows

    def _csv_batch(self, block: pa.Buffer, delimiter: str, names: list[str]) -> tuple[pa.RecordBatch, int]:
        """A block of rows as columns of text, and how many of them are not UTF-8."""
        places = [str(names.index(name)) for name in self.columns.all]
        # Bytes: text that is no text must not end the reading of all rows.
        if block[: len(_BOM)].to_pybytes() == _BOM:
            # Here it is text, and Arrow would take it away.
            block = pa.py_buffer(b"\n" + block.to_pybytes())
        convert = pa.csv.ConvertOptions(
            column_types=dict.fromkeys(places, pa.binary()),
            include_columns=places,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        table = pa.csv.read_csv(
            pa.BufferReader(block),
            # One block, which is cut nowhere.
            read_options=pa.csv.ReadOptions(
                block_size=block.size + 1, use_threads=False, column_names=[str(place) for place in range(len(names))]
            ),
            parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=self.multiline),
            convert_options=convert,
        )
        columns = [column.combine_chunks() for column in table.columns]
        batch = pa.RecordBatch.from_arrays(columns, names=self.columns.all)
        return _as_text(batch, self.columns.all)

    def _told(self, path: str, batch: pa.RecordBatch, bad: int) -> pa.RecordBatch:
        self._not_rows(path, bad, "text that is not UTF-8")
        return batch

    def _parquet(self, path: str) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(path) as file:
            # Types are checked whether or not there are rows.
            read = self._read_schema(path, file.schema_arrow)
            yield pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in read], schema=read)
            for batch in file.iter_batches(columns=self.columns.all, batch_size=1 << 17):
                yield self._told(path, *_as_text(batch.select(self.columns.all), self.columns.keys))

    def _read_schema(self, path: str, schema: pa.Schema) -> pa.Schema:
        """What is read of a Parquet file: keys as text, all else as it is."""
        self._refuse_missing(path, schema.names)
        for name in self.columns.keys:
            check_key_column(schema.field(name).type, name)
        is_key = set(self.columns.keys)
        return pa.schema(
            [(name, pa.string() if name in is_key else schema.field(name).type) for name in self.columns.all]
        )

    def _json(self, path: str) -> Iterator[pa.RecordBatch]:
        reader = _JsonLines(self.columns, lambda count, what: self._not_rows(path, count, what))
        with pa.input_stream(path, compression="detect") as stream:
            for block, bad in _lines(stream):
                self._not_rows(path, bad, f"more than {_LONGEST_ROW >> 20} MB long")
                if block.strip():
                    yield reader.read(block)


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


def _ending(path: str) -> str:
    """The ending of a file's name, but for that of its compression."""
    name = path.lower()
    for ending in _COMPRESSED:
        name = name.removesuffix(ending)
    return os.path.splitext(name)[1]


def kind_of(path: str) -> str:
    """The form of a file, by its ending."""
    kind = _ENDINGS.get(_ending(path))
    if kind is None:
        raise ValueError(
            f"the form of {path} is not known by its ending ({', '.join(_ENDINGS)}, also with "
            f"{', '.join(_COMPRESSED)}); say it with --input-format ({', '.join(FORMATS)})"
        )
    return kind


def one_line(error: BaseException) -> str:
    """The message of an error on one line."""
    return " ".join(str(error).split()) or type(error).__name__


def _end_of_line(text: bytes) -> int:
    """Where the first line ends, with the first character of its line break."""
    ends = [end for end in (text.find(b"\n"), text.find(b"\r")) if end >= 0]
    return min(ends, default=len(text) - 1) + 1


def _as_text(batch: pa.RecordBatch, names: Sequence[str]) -> tuple[pa.RecordBatch, int]:
    """The named columns of bytes or integers as text, without the rows in which that fails, and how many these were."""
    columns = []
    bad: Any = None
    for name in batch.schema.names:
        values = batch.column(name)
        if name in names:
            values = column(batch, name)
            text = text_of_bytes(values) if is_bytes(values.type) else valid(values)
            text = text if is_text(text.type) else text.cast(pa.string())
            if text.null_count > values.null_count:
                wrong = np.asarray(text.is_null()) & np.asarray(values.is_valid())
                bad = wrong if bad is None else bad | wrong
            values = text
        columns.append(values)
    batch = pa.RecordBatch.from_arrays(columns, names=batch.schema.names)
    return (batch, 0) if bad is None else (batch.filter(pa.array(~bad)), int(np.count_nonzero(bad)))


def _lines(stream: Any) -> Iterator[tuple[bytes, int]]:
    """Blocks of whole lines, and how many were left out as they are too long."""
    rest = b""
    is_first, is_skipping, is_last = True, False, False
    while not is_last:
        chunk = stream.read(max(_BLOCK, len(rest)))
        is_last = not chunk
        if is_first:
            chunk, is_first = chunk.removeprefix(_BOM), False
        if is_skipping:
            end = chunk.find(b"\n") + 1
            is_skipping, chunk = not end, chunk[end:] if end else b""
        block = rest + chunk
        cut = len(block) if is_last else block.rfind(b"\n") + 1
        block, rest = block[:cut], block[cut:]
        bad = 0
        if len(rest) >= _LONGEST_ROW:
            rest, is_skipping, bad = b"", True, 1
        if len(block) >= _LONGEST_ROW:
            lines = block.split(b"\n")
            block = b"\n".join(line for line in lines if len(line) < _LONGEST_ROW)
            bad += sum(len(line) >= _LONGEST_ROW for line in lines)
        if block.strip() or bad:
            yield block, bad


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
            # In one block, so that a long row is not read line by line, in many times the time and memory.
            how = pa.json.ReadOptions(block_size=max(2 * _BLOCK, len(block) + 1))
            table = pa.json.read_json(pa.BufferReader(block), parse_options=options, read_options=how)
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
            for name, texts in values.items():
                value = row.get(name)
                kinds[name].add(type(value))
                text = _text(value, name in self.columns.weights)
                if text is None and value is not None and name in self.columns.time:
                    text = ""  # a bad time, not a missing one
                texts.append(text)
        self.not_rows(bad, "JSON that is no object")
        for name, found in kinds.items():
            self.types[name] = pa.int64() if found - {type(None)} == {_Whole} else pa.string()
        arrays = [pa.array(texts, pa.string()) for texts in values.values()]
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
    columns = tuple(table.column(name).cast(pa.string()).combine_chunks() for name in names)
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
