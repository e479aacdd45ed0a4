"""Tables of releases, written for people and programs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from fastgame._writing import Staged

FORMATS = ("table", "csv", "parquet", "json")
_ENDINGS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet", ".json": "json", ".txt": "table"}


def format_of(given: str | None, out: str | None) -> str:
    """The form to write: as given, else by the ending of the file, else a table to read."""
    if out is not None:
        check_target(out)
    if given is None and out is not None:
        ending = Path(out).suffix.lower()
        if ending not in _ENDINGS:
            raise ValueError(
                f"the form of {out} is not known by its ending ({', '.join(_ENDINGS)}); say it with --format "
                f"({', '.join(FORMATS)})"
            )
        return _ENDINGS[ending]
    if given == "parquet" and out is None:
        raise ValueError("parquet is not for the terminal: name a file with --out")
    return given or "table"


def check_target(out: str) -> None:
    """Refuses a file that cannot be written, before anything is read."""
    target = Path(out).resolve()
    if target.is_dir():
        raise ValueError(f"{out} is a folder; name a file in it")
    if not target.parent.is_dir():
        raise ValueError(f"there is no folder {target.parent} to write {out} into")


def staged(table: pa.Table, form: str, out: str | None) -> Staged:
    """A table that is to be written to a file, all or nothing, or to the standard output."""
    return Staged(lambda file: _write(table, form, file), out)


def _write(table: pa.Table, form: str, file: Any) -> None:
    if form == "table":
        file.write("".join(aligned(table)).encode())
        return
    if form == "parquet":
        pq.write_table(table, file)
        return
    table = _with_text_times(table)
    if form == "csv":
        pa.csv.write_csv(table, file, pa.csv.WriteOptions(quoting_style="needed"))
        return
    rows = ",\n".join(json.dumps(row, ensure_ascii=False) for row in table.to_pylist())
    file.write(f"[\n{rows}\n]\n".encode())


def _with_text_times(table: pa.Table) -> pa.Table:
    """Times as ISO text, with their offset if they have one."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            times = table.column(place)
            distinct = times.unique()
            text = pa.array([time.isoformat() for time in distinct.to_pylist()], pa.string())
            indices = pa.compute.index_in(times, value_set=distinct)
            table = table.set_column(place, field.name, text.take(indices.combine_chunks()))
    return table


def aligned(table: pa.Table) -> list[str]:
    """The lines of a table in columns, numbers with as many digits as their error leaves meaningful."""
    std = table.column("std").to_pylist() if "std" in table.schema.names else []
    least = min((value for value in std if value > 0), default=1.0)
    digits = max(0, 1 - math.floor(math.log10(least)))
    shown = _with_text_times(table)
    columns = []
    for field in shown.schema:
        number = f",.{digits}f" if pa.types.is_floating(field.type) else ""
        values = shown.column(field.name).to_pylist()
        if pa.types.is_boolean(field.type):
            values = ["yes" if value else "no" for value in values]
        cells = ["" if value is None else format(value, number) for value in values]
        columns.append((field.name, cells, not pa.types.is_string(field.type)))
    return columned(columns)


def columned(columns: Sequence[tuple[str, list[str], bool]]) -> list[str]:
    """Lines of columns: a heading, the cells, and whether they stand to the right."""
    padded = []
    for name, cells, right in columns:
        width = max(map(len, [name, *cells]))
        padded.append([cell.rjust(width) if right else cell.ljust(width) for cell in [name, "-" * width, *cells]])
    return ["  ".join(row).rstrip() + "\n" for row in zip(*padded, strict=True)]
