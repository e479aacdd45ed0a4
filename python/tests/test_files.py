"""Files: rows out of CSV, Parquet and JSON lines. A line decides over itself alone, and never over the others."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fastgame as fg
from fastgame import _files
from fastgame._files import Columns, Files, read_keys

ALL = Columns(["t"], ["k"], ["w"])
TIME_AND_KEY = Columns(["t"], ["k"], [])


def read(path: Path | str, columns: Columns = TIME_AND_KEY, **parameters: Any) -> tuple[list[tuple[Any, ...]], int]:
    """The rows of a file, and how many lines were none."""
    counts = fg.RowCounts()
    batches = list(Files([str(path)], columns, counts=counts, **parameters))
    rows = [tuple(row[name] for name in columns.all) for batch in batches for row in batch.to_pylist()]
    assert counts.read == sum(counts.dropped.values())
    assert set(counts.dropped) <= {"not a row"}
    return rows, counts.read


def both(path: Path, content: bytes, **parameters: Any) -> tuple[list[tuple[Any, ...]], int]:
    """The rows of a CSV file, which are the same whatever the blocks are, down to some letters each."""
    path.write_bytes(content)
    at_once = read(path, **parameters)
    least = 1 if len(content) < 1000 else 1 << 18
    for size in (least, least + 1, 7 * least):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_files, "_BLOCK", size)
            assert read(path, **parameters) == at_once
    return at_once


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    return tmp_path / "rows.csv"


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    return tmp_path / "rows.jsonl"


@pytest.mark.parametrize(
    ("content", "rows"),
    [
        (b"\xef\xbb\xbft,k\r\n1,a\r\n2,b", [("1", "a"), ("2", "b")]),
        (b"k,t\nb,2\n", [("2", "b")]),
        (b't,k\n3,"e""f"\n4,"g,h"\n5,"a"b"c\n6,d"e"\n', [("3", 'e"f'), ("4", "g,h"), ("5", 'ab"c'), ("6", 'd"e"')]),
        (b't,k\n1,\n2,""\n,3\n', [("1", None), ("2", ""), (None, "3")]),
        (
            b"t,k\n1,NA\n2,null\n3,007\n4, a \n5,1e3\n",
            [("1", "NA"), ("2", "null"), ("3", "007"), ("4", " a "), ("5", "1e3")],
        ),
        (b"t,k\n\n1,a\n\n", [("1", "a")]),
        (b"t,k\r1,a\r", [("1", "a")]),
        (b"t,k\r\n1,a\r\n\r\n2,b", [("1", "a"), ("2", "b")]),
        (b"t,k,z,z\n1,a,2,3\n", [("1", "a")]),
        (b't,k\n1,"\xc3\xa9"\n', [("1", "é")]),
        (b"", []),
        (b"\n \n", []),
        (b"\xef\xbb\xbf", []),
        (b"t,k", []),
        (b"t,k\n", []),
        (b'\xef\xbb\xbf"t","k"\r\n', []),
    ],
)
def test_csv_is_read_as_text(csv: Path, content: bytes, rows: list[tuple[Any, ...]]) -> None:
    assert both(csv, content) == (rows, 0)


def test_tabs_and_other_delimiters(tmp_path: Path) -> None:
    assert both(tmp_path / "rows.tsv", b"t\tk\n1\ta,b\n") == ([("1", "a,b")], 0)
    assert both(tmp_path / "rows.txt", b"t;k\n1;a,b\n", delimiter=";") == ([("1", "a,b")], 0)
    assert both(tmp_path / "rows.data", b"t,k\n1,a\n", kind="csv") == ([("1", "a")], 0)


def test_a_line_of_csv_that_is_no_row_is_left_out_alone(csv: Path) -> None:
    content = b"t,k,z\n1,a,\n2\n3,b,c,d\n4,\xff,\n5,c,\xff\n6,d,\n"
    assert both(csv, content) == ([("1", "a"), ("5", "c"), ("6", "d")], 3)
    assert both(csv, b"t,k\n1\n1,2,3\n") == ([], 2)


@pytest.mark.parametrize("line", [b"2\n", b"3,b,c\n", b"4,\xff\n"])
def test_strict_reading_refuses_a_line_that_is_no_row(csv: Path, line: bytes) -> None:
    csv.write_bytes(b"t,k\n1,a\n" + line)
    with pytest.raises(fg.BadRowsError, match=r"rows\.csv has a line that is no row: "):
        read(csv, strict=True)


@pytest.mark.parametrize("kind", ["key", "unused", "lines in quotes"])
def test_a_row_longer_than_a_block_is_a_row(csv: Path, kind: str) -> None:
    text = b"x" * (9 << 20)
    long = {
        "key": b"2," + text + b",",
        "unused": b"2,b," + text,
        "lines in quotes": b'2,b,"' + b"x\n" * (9 << 19) + b'"',
    }
    before = (b"0,y,%s\n" % (b"z" * 995)) * 5_000 + b"1\n"
    content = b"t,k,z\n" + before + long[kind] + b"\n3,c,\n1,2,3,4\n"
    rows, bad = both(csv, content, multiline=kind == "lines in quotes")
    assert bad == 2
    assert rows[:5_000] == [("0", "y")] * 5_000
    assert rows[5_000:] == [("2", text.decode() if kind == "key" else "b"), ("3", "c")]


#: The names of columns, a short row with a key, and one with a key and so many further letters.
LONG: dict[str, tuple[bytes, bytes, bytes]] = {
    "rows.csv": (b"t,k,z\n", b"%d,%s,\n", b"%d,%s,%s\n"),
    "rows.jsonl": (b"", b'{"t":"%d","k":"%s"}\n', b'{"t":"%d","k":"%s","z":"%s"}\n'),
}


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("length", [999, 1000, 1001, 5000, 1 << 20])
def test_a_row_that_is_too_long_is_left_out_alone_wherever_blocks_are_cut(
    tmp_path: Path, name: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_files, "_LONGEST_ROW", 1000)
    head, short, long = LONG[name]
    whole = long % (2, b"b", b"x" * (length - len(long % (2, b"b", b""))))
    assert len(whole) == length
    path = tmp_path / name
    for before in range(0, 60, 7):
        path.write_bytes(head + short % (1, b"a" * before) + whole + short % (3, b"c"))
        for block in (64, 997, 4 << 20):
            monkeypatch.setattr(_files, "_BLOCK", block)
            rows, bad = read(path)
            assert (rows[1:], bad) == (([("2", "b"), ("3", "c")], 0) if length <= 1000 else ([("3", "c")], 1))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_a_quote_that_its_line_does_not_close_makes_that_line_bad_and_no_other(csv: Path, end: bytes) -> None:
    for bad in (b'2,"b', b'"2,b', b'2,"b""', b'2,"', b'"', b'2,"b","', b"2,b,"):
        assert both(csv, end.join([b"t,k", bad, b"3,c", b'4,"d"'])) == ([("3", "c"), ("4", "d")], 1), bad
        assert both(csv, end.join([b"t,k", b"1,a", bad, b"3,c", bad])) == ([("1", "a"), ("3", "c")], 2), bad


def test_with_multiline_quoted_fields_have_line_breaks(csv: Path) -> None:
    content = b't,k\n1,"a\nb"\n2,"c\r\nd"\n3,"e""\n"\n4,"g,\rh"\n'
    rows = [("1", "a\nb"), ("2", "c\r\nd"), ("3", 'e"\n'), ("4", "g,\rh")]
    assert both(csv, content, multiline=True) == (rows, 0)
    assert both(csv, b'"t","k"\n' + content[4:], multiline=True) == (rows, 0)
    csv.write_bytes(b't,"a\nname",k\n1,2,3\n')
    assert read(csv, multiline=True) == ([("1", "3")], 0)
    # What it costs: a quote that is not closed reaches the rows behind it.
    assert both(csv, b't,k\n1,a\n2,"b\n3,c\n', multiline=True) == ([("1", "a")], 1)
    assert both(csv, b't,k\n1,a\n2,"b\n3,c"\n4,d\n', multiline=True) == ([("1", "a"), ("2", "b\n3,c"), ("4", "d")], 0)


def test_without_multiline_a_line_break_in_quotes_ends_the_row_and_lines_behind_it_may_be_forged(csv: Path) -> None:
    """What the threat model says: the unit is a line, and whoever writes the file must not let texts have breaks."""
    assert both(csv, b't,k\n1,"a\n2,b\n3,c"\n4,d\n') == ([("2", "b"), ("3", 'c"'), ("4", "d")], 1)


@pytest.mark.parametrize("size", [4 << 20, 1 << 16])
def test_quoted_line_breaks_may_lie_on_the_border_of_blocks(csv: Path, size: int, monkeypatch: Any) -> None:
    """Arrow alone loses a key there (apache/arrow#51368)."""
    monkeypatch.setattr(_files, "_BLOCK", size)
    for shift in range(-4, 5):
        head = b"t,k\n"
        padding = b"x" * (size + shift - len(head) - len(b'1,"\r'))
        csv.write_bytes(head + b'1,"' + padding + b'\r\nb"\n' + b"2,c\r\n" * 4)
        rows, bad = read(csv, multiline=True)
        assert (rows, bad) == ([("1", padding.decode() + "\r\nb"), *[("2", "c")] * 4], 0)


def csv_rows(content: bytes, columns: int, multiline: bool) -> tuple[list[list[str]], int]:
    """The rows by the rules alone, a letter at a time."""
    rows: list[list[str]] = []
    bad = place = 0
    text = content.decode("latin-1")
    while place < len(text):
        start, row, quoted, closed = place, [""], False, True
        field_start = True
        while True:
            letter = text[place : place + 1]
            if quoted and letter == '"' and text[place + 1 : place + 2] == '"':
                row[-1] += '"'
                place += 1
            elif quoted and letter == '"':
                quoted = False
            elif letter == "" or (letter in "\r\n" and not (quoted and multiline)):
                closed = not quoted
                break
            elif not quoted and field_start and letter == '"':
                quoted, field_start = True, False
            elif not quoted and letter == ",":
                row.append("")
                field_start = True
                place += 1
                continue
            else:
                row[-1] += letter
            field_start = False
            place += 1
        is_empty = place == start
        place += 2 if text[place : place + 2] == "\r\n" else 1
        if not is_empty and closed and len(row) == columns:
            rows.append(row)
        else:
            bad += not is_empty
    return rows, bad


@settings(
    max_examples=400, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    content=st.text(alphabet='ab",\r\n', max_size=60).map(str.encode),
    block=st.integers(4, 40),
    multiline=st.booleans(),
)
def test_csv_is_read_by_the_rules_alone(csv: Path, content: bytes, block: int, multiline: bool) -> None:
    csv.write_bytes(b"t,k\n" + content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_files, "_BLOCK", block)
        found, bad = read(csv, multiline=multiline)
    expected, bad_expected = csv_rows(content, 2, multiline)
    assert [[part or "" for part in row] for row in found] == expected
    assert bad == bad_expected


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (b"t,j\n", "has no column 'k'; its columns are 't', 'j'"),
        (b"t,k,k\n", "has more than one column 'k'"),
        (b"T,K\n", "has no column 't'"),
        (b"t;k\n", "has no column 't'; its columns are 't;k'"),
        (b"t,k,\xff\n", "has names of columns that are not UTF-8"),
    ],
)
def test_columns_that_are_missing_or_twice_are_named(csv: Path, header: bytes, message: str) -> None:
    for content in (header, header + b"1,2,3\n"):
        csv.write_bytes(content)
        with pytest.raises(ValueError, match=r"rows\.csv " + message):
            read(csv)


@pytest.mark.parametrize("ending", ["gz", "bz2"])
def test_compressed_files_are_read(tmp_path: Path, ending: str) -> None:
    compress: Any = {"gz": gzip.compress, "bz2": bz2.compress}[ending]
    for name, content in (("rows.csv", b"t,k\n1,a\n"), ("rows.jsonl", b'{"t":"1","k":"a"}\n')):
        path = tmp_path / f"{name}.{ending}"
        path.write_bytes(compress(content))
        assert read(path) == ([("1", "a")], 0)


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.jsonl.gz"])
@pytest.mark.parametrize("how", ["cut in the middle", "cut at the end", "not compressed"])
def test_a_broken_compressed_file_is_an_error_that_names_it(tmp_path: Path, name: str, how: str) -> None:
    is_csv = name.startswith("rows.csv")
    content = b"".join(
        b"%d,%x\n" % (n, n**5) if is_csv else b'{"t":"%d","k":"%x"}\n' % (n, n**5) for n in range(10_000)
    )
    content = (b"t,k\n" if is_csv else b"") + content
    packed = gzip.compress(content)
    path = tmp_path / name
    path.write_bytes({"cut in the middle": packed[: len(packed) // 2], "cut at the end": packed[:-4]}.get(how, content))
    with pytest.raises(ValueError, match=rf"{name} cannot be read as (csv|json): "):
        read(path)


def save(path: Path, columns: Any) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_parquet_gives_keys_as_text_and_leaves_the_rest(tmp_path: Path) -> None:
    cases: list[tuple[Any, list[Any]]] = [
        (pa.array([1, None], pa.int32()), ["1", None]),
        (pa.array([2**64 - 1, 0], pa.uint64()), [str(2**64 - 1), "0"]),
        (pa.array(["a", "b"]).dictionary_encode(), ["a", "b"]),
        (pa.array(["a", None], pa.large_string()), ["a", None]),
        (pa.array(["a", "b"], pa.string_view()), ["a", "b"]),
        (pa.array([b"a", b"\xc3\xa9"]), ["a", "é"]),
        (pa.array([b"ab", b"cd"], pa.binary(2)), ["ab", "cd"]),
        (pa.nulls(2), [None, None]),
    ]
    for keys, shown in cases:
        path = save(tmp_path / "rows.parquet", {"k": keys, "t": pa.array([5, 6]), "z": [[1], [2]]})
        assert read(path) == ([(5, shown[0]), (6, shown[1])], 0), keys.type
    path = save(tmp_path / "rows.parquet", {"k": pa.array([b"\xff", b"b"]), "t": pa.array([5, 6])})
    assert read(path) == ([(6, "b")], 1)


@pytest.mark.parametrize("rows", [0, 1])
def test_keys_of_reals_are_refused_with_and_without_rows(tmp_path: Path, rows: int) -> None:
    path = save(tmp_path / "rows.parquet", {"t": [1] * rows, "k": pa.array([0.5] * rows, pa.float64())})
    with pytest.raises(TypeError, match="keys must be integers, text or bytes; the column 'k' is of type double"):
        read(path)


def test_weights_of_a_wrong_type_are_refused_with_and_without_rows(tmp_path: Path) -> None:
    for rows in (0, 1):
        path = save(tmp_path / "rows.parquet", {"t": ["2026-01-01"] * rows, "w": pa.array([True] * rows, pa.bool_())})
        files = Files([str(path)], Columns(["t"], [], ["w"]), counts=fg.RowCounts())
        with pytest.raises(TypeError, match="weights must be numbers"):
            fg.replay(files, TICKS, counter(), time="t", weight="w")


@pytest.mark.parametrize("content", [b"", b"PAR1", b"t,k\n1,2\n" * 100, None])
def test_what_is_no_parquet_is_an_error_that_names_it(tmp_path: Path, content: bytes | None) -> None:
    path = save(tmp_path / "rows.parquet", {"t": list(range(1000)), "k": list(range(1000))})
    path.write_bytes(path.read_bytes()[:-10] if content is None else content)
    with pytest.raises(ValueError, match=r"rows\.parquet cannot be read as parquet: "):
        read(path)


@pytest.mark.parametrize(
    ("content", "rows", "bad"),
    [
        (b'\xef\xbb\xbf{"t":"1","k":"a"}\r\n{"k":"b","t":"2","z":[1,{"k":"c"}]}', [("1", "a"), ("2", "b")], 0),
        (b'{"t":"1","k":5}\n{"t":"2","k":-0}\n{"t":"3","k":123456789012345678901234567890}\n',
         [("1", "5"), ("2", "0"), ("3", "123456789012345678901234567890")], 0),
        (b'{"t":"1","k":1.5}\n{"t":"2","k":true}\n{"t":"3","k":null}\n{"t":"4","k":[1]}\n{"t":"5","k":{}}\n{"t":"6"}\n'
         b'{"t":"7","k":"a"}\n', [*((str(n), None) for n in range(1, 7)), ("7", "a")], 0),
        (b'{"t":"1","k":"a"}\n{"t":"2","k":\n[]\nnull\n5\n"x"\nfoo\n\n{"t":"3","k":"b"}\n',
         [("1", "a"), ("3", "b")], 6),
        (b'{"t":"1","k":"a"}{"t":"2","k":"b"}\n{"t":"3",\n"k":"c"}\n{"t":"4","k":"d"}\n', [("4", "d")], 3),
        (b'{"t":"1","k":"\\u00e9\\ud83d\\ude00\\/\\n"}\n{"t":"2","k":"\\ud800"}\n', [("1", "é😀/\n"), ("2", None)], 0),
        (b'{"t":"1","k":"\xff"}\n{"t":"2","k":"a","z":"\xff"}\n{"t":"3","k":"a"}\n', [("3", "a")], 2),
        (b'{"t":"2026-01-01","k":"2026-01-01"}\n', [("2026-01-01", "2026-01-01")], 0),
        (b'{"t":"2026-01-01T00:00:00Z","k":"12:30"}\n', [("2026-01-01T00:00:00Z", "12:30")], 0),
        (b'{"t":"1","k":"a","k":"b"}\n', [("1", "b")], 0),
        (b'{"t":"1","\\u006b":"a"}\n', [("1", "a")], 0),
        (b'{"t":"1","k":"a","z":NaN}\n', [("1", "a")], 0),
        (b'{"t":"1","k":"a","z":%s}\n' % (b"9" * 6000), [("1", "a")], 0),
        (b'{"t":1.5,"k":"a"}\n{"t":[],"k":"a"}\n{"t":null,"k":"a"}\n{"t":"1","k":"a"}\n',
         [("", "a"), ("", "a"), (None, "a"), ("1", "a")], 0),
        (b'{"t":"1","k":"a"}{"t":"2","k":"b"}\n{"t":"3","k":"c"}\n', [("3", "c")], 1),
        (b'{"t":"1","k":"a"}\r{"t":"2","k":"b"}\n', [], 1),
        (b"", [], 0),
        (b"\n\n", [], 0),
        (b"null\n", [], 1),
    ],
)  # fmt: skip
def test_json_lines(lines: Path, content: bytes, rows: list[tuple[Any, ...]], bad: int) -> None:
    lines.write_bytes(content)
    assert read(lines) == (rows, bad)


def test_weights_of_json_may_be_any_number(lines: Path) -> None:
    lines.write_bytes(
        b"".join(b'{"t":"1","k":"a","w":%s}\n' % w for w in (b"1", b"2.5", b'"3"', b"1e3", b"true", b"NaN"))
    )
    assert [row[2] for row in read(lines, ALL)[0]] == ["1", "2.5", "3", "1000.0", None, "nan"]


@pytest.mark.parametrize("depth", [50, 500, 100_000, 1_500_000])
def test_nested_json_does_not_end_the_process(depth: int) -> None:
    """Arrow reads it recursively, and overflows the stack: so in a process of its own."""
    code = f"""
from fastgame._files import _JsonLines, Columns
deep = b'{{"t":"1","k":"a","z":' + b"[" * {depth} + b"]" * {depth} + b"}}\\n"
batch = _JsonLines(Columns(["t"], ["k"], []), lambda count, what: None).read(deep + b'{{"t":"2","k":"b"}}\\n')
assert batch.to_pylist()[-1] == {{"t": "2", "k": "b"}}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_line_longer_than_a_block_and_many_blocks(lines: Path) -> None:
    usual = b'{"t":"1","k":"a"}\n'
    lines.write_bytes(usual * 300_000 + b'{"t":"2","k":"b","z":"%s"}\n' % (b"x" * (9 << 20)) + b"broken\n" + usual)
    rows, bad = read(lines)
    assert (len(rows), bad, rows[0], rows[300_000:]) == (300_002, 1, ("1", "a"), [("2", "b"), ("1", "a")])


def test_a_column_of_json_that_is_nowhere_filled_is_no_error_as_a_row_with_it_would_decide(lines: Path) -> None:
    for content in (b'{"t":"1","j":"a"}\n', b'[{"t":"1","k":"a"}]\n', b"[\n"):
        lines.write_bytes(content)
        rows, bad = read(lines)
        lines.write_bytes(content + b'{"t":"2","k":"b"}\n')
        assert read(lines) == ([*rows, ("2", "b")], bad)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(-5, 5), st.floats(), st.text(max_size=5),
    st.sampled_from(["2026-01-01", "a", "\\", '"', "\x7f", "\ud800", "}{", "\n"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
)
OBJECTS = st.dictionaries(st.sampled_from(["t", "k", "w", "z", ""]), VALUES, max_size=4)
BROKEN = st.sampled_from(
    [
        b"null",
        b"5",
        b"[]",
        b"{",
        b"{}",
        b"}",
        b"",
        b" ",
        b"\r",
        b"{}{}",
        b"{} {}",
        b"{}\r{}",
        b'{"t":"1","t":2}',
        b"\xff",
        b'{"k":"\xff"}',
        b'{"k":"\x00"}',
        b'{"k":"\t"}',
        b'{"k":01}',
        b'{"k":+1}',
        b'{"k":1.}',
        b'{"k":-}',
        b'{"z":Infinity}',
        b'{"k":"a",}',
        b'{"k":"a"}//',
        b'{"k":"\\x"}',
        b'{"k":"\\u12"}',
        b"{'k':1}",
        b'{"k":1e999}',
        b'{"w":1E2}',
        b'{"t":"1",',
        b'"k":"a"}',
        b'\xef\xbb\xbf{"k":1}',
        b"\x0b",
        b'{"k":"a"}\x0b',
        b'{"k":"\xed\xa0\x80"}',
        b'{"k":"\xc0\x80"}',
        b" {} ",
    ]
)


def as_json(row: dict[str, Any], ascii_only: bool) -> bytes:
    return json.dumps(row, ensure_ascii=ascii_only).encode(errors="replace")


@given(
    rows=st.lists(
        st.one_of(
            st.builds(as_json, OBJECTS, st.booleans()),
            st.builds(lambda key, weight: b'{"t":"1","k":%d,"w":%d}' % (key, weight), st.integers(), st.integers(0, 3)),
            BROKEN,
            st.binary(max_size=6),
        ),
        max_size=6,
    ),
    integers=st.booleans(),
    end=st.sampled_from([b"\n", b"\r\n", b""]),
)  # fmt: skip
@settings(max_examples=500, deadline=None)
def test_json_read_at_once_is_json_read_line_by_line(rows: list[bytes], integers: bool, end: bytes) -> None:
    """Else a broken line would decide how others of its block are read."""
    block = (end or b"\n").join(rows) + end
    found = []
    for line_by_line in (False, True):
        bad: list[int] = []
        reader = _files._JsonLines(ALL, lambda count, _, bad=bad: bad.append(count))  # type: ignore[misc]
        if integers:
            reader.types.update({"k": pa.int64(), "w": pa.int64()})
        batch = reader._line_by_line(block) if line_by_line else reader.read(block)
        found.append((batch.to_pylist(), sum(bad)))
    assert found[0] == found[1]


TICKS = fg.Ticks("2026-03-01", "2026-04-01", "1d", tz="America/New_York")
KEYS = ["a", "b", "3", ""]


def counter(**parameters: Any) -> fg.ContinualCounter:
    return fg.ContinualCounter(horizon=31, privacy=fg.Zcdp(rho=0.5), insecure_seed=1, max_weight=5, **parameters)


def vector() -> fg.ContinualVector:
    return fg.ContinualVector(len(KEYS), horizon=31, privacy=fg.Zcdp(rho=0.5), insecure_seed=1, max_norm=5.0)


def releases(path: Path, **parameters: Any) -> Any:
    counts = fg.RowCounts()
    files = Files([str(path)], ALL, counts=counts, **parameters)
    released = fg.replay(files, TICKS, vector(), time="t", key="k", keys=KEYS, weight="w", counts=counts)
    return released, counts


def test_a_table_gives_the_same_releases_as_csv_parquet_and_json(tmp_path: Path) -> None:
    texts = [
        "2026-03-05T12:00:00Z",
        "2026-03-08T01:59:59-05:00",
        "2026-03-08T03:00:00-04:00",
        "2026-03-09T00:00:00-0400",
        "2026-03-08 23:59:59.999999999-04",
        "2026-03-31T23:59:59.999999-04:00",
        "2026-04-01T00:00:00-04:00",
        None,
        "never",
    ]
    rows = [(text, key, weight) for text in texts for key in [*KEYS, None, "z"] for weight in (1, 5, 6, None, -3)]
    frame = pa.table({name: [row[place] for row in rows] for place, name in enumerate("tkw")})
    csv, parquet, lines = (tmp_path / f"rows.{ending}" for ending in ("csv", "parquet", "jsonl"))
    csv.write_text("t,k,w\n" + "".join(
        ",".join("" if part is None else f'"{part}"' for part in row) + "\n" for row in rows
    ))  # fmt: skip
    pq.write_table(frame, parquet)
    lines.write_text("".join(json.dumps(dict(zip("tkw", row, strict=True))) + "\n" for row in rows))
    expected = releases(csv)
    assert releases(parquet) == releases(lines) == expected
    assert expected[1].dropped["no time in 't'"] == 2 * 30
    # Timestamps of nanoseconds, a dictionary of keys and real weights give the same as their texts.
    times = [None if text in (None, "never") else text for text in texts]
    stamps = _nanoseconds(times)
    typed = pa.table({
        "t": pa.array([stamp for stamp in stamps for _ in range(30)], pa.timestamp("ns", "UTC")),
        "k": frame.column("k").dictionary_encode(),
        "w": frame.column("w").cast(pa.float64()),
    })  # fmt: skip
    pq.write_table(typed, parquet)
    assert releases(parquet)[0].equals(expected[0])


def _nanoseconds(texts: list[str | None]) -> list[int | None]:
    """By pandas, which is none of what is tested."""
    import pandas as pd  # noqa: PLC0415

    return [None if text is None else pd.Timestamp(text).value for text in texts]


def test_a_text_time_of_the_other_zone_kind_is_left_out_alone(csv: Path) -> None:
    csv.write_text("t,k,w\n2026-03-05T12:00:00Z,a,1\n2026-03-05T12:00:00,a,1\nx,a,1\n")
    _, counts = releases(csv)
    assert counts.dropped == {"no time zone in 't'": 1, "no time in 't'": 1}


def test_patterns_name_files_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b1", "a2", "a10", "c[1]"):
        (tmp_path / f"{name}.csv").write_text(f"t,k\n1,{name}\n")
    monkeypatch.chdir(tmp_path)

    def keys(*patterns: str) -> list[str]:
        files = Files(patterns, TIME_AND_KEY, counts=fg.RowCounts())
        return [row["k"] for batch in files for row in batch.to_pylist()]

    assert keys("b1.csv", "a*.csv") == ["b1", "a10", "a2"]
    assert keys("c[1].csv") == ["c[1]"]  # a file of that name goes before the pattern
    with pytest.raises(ValueError, match=r"a2\.csv is named twice"):
        keys("a2.csv", "a*.csv")
    with pytest.raises(ValueError, match=r"no file matches 'z\*\.csv'"):
        keys("z*.csv")
    with pytest.raises(FileNotFoundError):
        keys("z.csv")
    with pytest.raises(ValueError, match=r"\. is a folder; name files, or a pattern"):
        keys(".")
    with pytest.raises(ValueError, match="the form of rows is not known by its ending"):
        Path("rows").touch()
        keys("rows")


def test_a_pipe_is_refused_since_it_cannot_be_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rows.csv")
    with pytest.raises(ValueError, match="is no file but a pipe or a device"):
        read(tmp_path / "rows.csv")


def test_a_file_that_may_not_be_read_is_an_error(csv: Path) -> None:
    csv.write_text("t,k\n")
    csv.chmod(0)
    if os.access(csv, os.R_OK):
        csv = csv / "below"  # the superuser reads all: a path through a file, then
    with pytest.raises(OSError, match=r"Permission denied|Not a directory"):
        read(csv)


def test_the_list_of_keys(tmp_path: Path) -> None:
    text = tmp_path / "keys.txt"
    text.write_bytes(b"\xef\xbb\xbfa\r\n\r\nb c\n d")
    assert [part.to_pylist() for part in read_keys(str(text), ["k"])] == [["a", "b c", " d"]]
    with pytest.raises(ValueError, match="for 2 parts of a key a table with a header is needed"):
        read_keys(str(text), ["k", "n"])
    text.write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match=r"keys\.txt must be text in UTF-8"):
        read_keys(str(text), ["k"])
    table = save(tmp_path / "keys.parquet", {"n": [1, 2], "k": ["a", "b"]})
    assert [part.to_pylist() for part in read_keys(str(table), ["k", "n"])] == [["a", "b"], ["1", "2"]]
    csv = tmp_path / "keys.csv"
    csv.write_text("k\n")
    assert [part.to_pylist() for part in read_keys(str(csv), ["k"])] == [[]]
    csv.write_text("k,n\na,1\nb\n")
    with pytest.raises(fg.BadRowsError):
        read_keys(str(csv), ["k"])
