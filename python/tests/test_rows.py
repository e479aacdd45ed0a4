"""One row decides over itself alone: whatever stands in it, and wherever it stands, all other rows count as before.

Two tables that differ by one row go through every door into every sink. Releases may differ by what that row may add,
and by nothing else: see `row_doors.complaint`.
"""

from __future__ import annotations

import datetime as dt
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import row_doors
from helpers import counter, sketch, tiny_noise, vector, whole
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from row_doors import DOORS, SINKS, Line, Setting, run_command

import fastgame as fg
from fastgame import _files, _values, axis

#: Groups of tables for each door, by who is given them: 30 seconds in all, and ten minutes.
GROUPS = {"command": 4, "replay": 5, "update": 32}
SLOW = 23


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes the blocks in which files are read so small that rows cross them."""

    def small(size: int) -> None:
        monkeypatch.setattr(_files, "_BLOCK", size)

    return small


def tried(door: str, groups: int, folder: Path, small: Callable[[int], None], seed: int) -> None:
    """Tries a door with many sinks, roles and odd values."""
    chosen = random.Random(f"{door} {seed}")
    wrong = []
    rows = 0
    for _, setting in zip(range(groups), row_doors.settings(door, chosen), strict=False):
        small(setting.block)
        for complaint in row_doors.check(setting, row_doors.odds_of(setting, 5, chosen, folder), chosen, folder):
            rows += 1
            if complaint is not None:
                wrong.append(f"{complaint}\n    {setting}")
    # Doors and sinks that take nothing would be right always.
    assert rows > 5 * groups
    shortest = "\n".join(sorted(wrong, key=len)[:8])
    assert not wrong, f"{len(wrong)} of {rows} rows decide over others:\n{shortest}"


@pytest.mark.parametrize("door", DOORS)
def test_a_row_decides_over_itself_alone(door: str, tmp_path: Path, small_blocks: Callable[[int], None]) -> None:
    tried(door, GROUPS[DOORS[door].by], tmp_path, small_blocks, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("door", DOORS)
def test_a_row_decides_over_itself_alone_at_length(
    door: str, tmp_path: Path, small_blocks: Callable[[int], None]
) -> None:
    tried(door, SLOW * GROUPS[DOORS[door].by], tmp_path, small_blocks, seed=2)


ARBITRARY = settings(
    derandomize=True, deadline=None, max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
#: Pieces of which lines are made that a reader may stumble over.
PIECES = [
    b'"',
    b",",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b"\\",
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b" ",
    b"\t",
    b"2026-01-03",
    b"a",
]


def one_more(setting: Setting, value: Any, folder: Path, place: int) -> str | None:
    """What is wrong with a row more among others."""
    rows = [row_doors.row(setting, number) for number in range(12)]
    base = row_doors.outcome(setting, rows, folder)
    assert base.values is not None
    more = [*rows[:place], row_doors.odd_row(setting, 60, value), *rows[place:]]
    return row_doors.complaint(setting, base, row_doors.outcome(setting, more, folder), 0)


def setting_of(door: str, sink: str, role: str, kind: str = "text") -> Setting:
    return Setting(door, sink, role, kind, True, False, False, False, False, False, 200, 3)


@pytest.mark.parametrize("door", ["csv", "json lines"])
@ARBITRARY
@given(
    line=st.lists(st.sampled_from(PIECES) | st.binary(max_size=3), max_size=30).map(b"".join), place=st.integers(0, 12)
)
def test_any_line(door: str, line: bytes, place: int, tmp_path: Path, small_blocks: Callable[[int], None]) -> None:
    assume(b"\n" not in line and b"\r" not in line)
    small_blocks(200)
    assert one_more(setting_of(door, "vector", "key"), Line(line), tmp_path, place) is None


@pytest.mark.parametrize("sink", ["vector", "regular", "datetime", "category", "counter"])
@ARBITRARY
@given(text=st.text(max_size=20) | st.from_regex(r"\A[-+0-9.:TZe ]{1,25}\Z"), place=st.integers(0, 12))
def test_any_text(sink: str, text: str, place: int, tmp_path: Path) -> None:
    role = [*SINKS[sink].columns, "time"][0]
    for door in ("arrow table", "dict of lists"):
        try:
            assert one_more(setting_of(door, sink, role), text, tmp_path, place) is None
        except row_doors.Unheld:
            assert door == "arrow table"  # lone surrogates


# What was once wrong, kind by kind, with the right values.

CLOCK = ["--time", "time", "--start", "2026-01-01", "--end", "2026-01-02", "--every", "1d", "--rho", "1e6"]
HOME = ["--key", "page", "--keys", "pages.txt"]
TICKS = fg.Ticks("2026-01-01", "2026-01-02", "12h")
EVENING = dt.datetime(2026, 1, 1, 21, 30)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the commands run, with a public list."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages.txt").write_text("/home\n/about\n")
    return tmp_path


def told(*arguments: str) -> list[int]:
    """The values that a command releases, whole; it must succeed."""
    code, out, err = run_command([*arguments, "--format", "json"])
    assert code == 0, err
    return [round(line["value"]) for line in json.loads(out)]


def counted(times: Any, ticks: fg.Ticks = TICKS) -> list[int]:
    """How many rows there were up to each tick."""
    released = fg.replay({"time": times}, ticks, counter(ticks.horizon), time="time")
    return [round(value) for value in released.column("value").to_pylist()]


def in_objects(values: list[Any]) -> dict[str, Any]:
    """Columns whose elements have types of their own."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return {"list": values, "array": array, "pandas": pd.Series(array, dtype=object)}


@pytest.mark.parametrize("odd", ["inf", "-inf", "Infinity", "1e400"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize("of_axis", ["x:0:5", "x:0:5:5"])
def test_infinities_count_alike_with_a_bad_number_among_them(odd: str, ending: str, of_axis: str) -> None:
    def released(more: list[str]) -> list[int]:
        texts = [odd] * 20 + more
        lines = {
            "csv": ["time,x", *(f"2026-01-01 09:30,{text}" for text in texts)],
            # A number where JSON has one.
            "jsonl": [
                f'{{"time": "2026-01-01 09:30", "x": {text if text == "1e400" else json.dumps(text)}}}'
                for text in texts
            ],
        }[ending]
        Path(f"rows.{ending}").write_text("".join(f"{line}\n" for line in lines))
        return told("range", f"rows.{ending}", *CLOCK, "--axis", of_axis, "--box", "x=5:", "--box", "x=:0")

    assert released(["zz"]) == released([])
    assert released([]) == ([0, 20] if odd == "-inf" else [20, 0])


@pytest.mark.parametrize("odd", ["inf", "-inf", "1e400", " 7", "+7"])
@pytest.mark.parametrize(
    "one", [axis.Integer(0, 5, name="x"), axis.Regular(5, 0, 5, name="x"), axis.Variable([0, 1, 5], name="x")], ids=repr
)
def test_texts_of_numbers_count_alike_in_a_replay(odd: str, one: axis.Axis) -> None:
    def released(more: list[str]) -> list[float]:
        texts = [odd] * 20 + more
        structure = fg.RangeCounter(axes=one, horizon=1, privacy=tiny_noise())
        table = pa.table({"time": [EVENING] * len(texts), "x": texts})
        ticks = fg.Ticks("2026-01-01", "2026-01-02", "1d")
        boxes = [{"x": (5, None)}, {"x": (None, 0)}]
        values: list[float] = whole(
            fg.replay(table, ticks, structure, time="time", boxes=boxes).column("value")
        ).tolist()
        return values

    assert released(["zz"]) == released([]) == ([0, 20] if odd == "-inf" else [20, 0])


@pytest.mark.parametrize("form", ["list", "array", "pandas"])
def test_a_date_in_front_leaves_datetimes_where_they_are(form: str) -> None:
    assert counted(in_objects([dt.date(2026, 1, 1)] + [EVENING] * 50)[form]) == [1, 51]
    assert counted(in_objects([EVENING] * 50 + [dt.date(2026, 1, 1)])[form]) == [1, 51]


@pytest.mark.parametrize("form", ["list", "array", "pandas"])
@pytest.mark.parametrize("place", [0, 30])
def test_a_zoned_datetime_is_alone_among_those_without_a_zone(form: str, place: int) -> None:
    times: list[Any] = [EVENING] * 30
    times.insert(place, EVENING.replace(tzinfo=dt.timezone.utc))
    zoned = fg.Ticks("2026-01-01", "2026-01-02", "12h", tz="UTC")
    assert counted(in_objects(times)[form]) == [0, 30]
    assert counted(in_objects(times)[form], zoned) == [0, 1]


def test_ids_in_floats_are_no_keys_and_small_whole_floats_are_integers() -> None:
    keys = [1.2e18] * 5 + [2.0**53, 7.0, 7.0, float("nan"), 2.0**53 - 1]
    listed = [1_200_000_000_000_000_000, 2**53, 2**53 - 1, 7]
    frame = pd.DataFrame({"time": [EVENING] * len(keys), "key": keys})
    released = fg.replay(frame, TICKS, vector(4), time="time", key="key", keys=listed)
    assert whole(released.column("value")).tolist()[-4:] == [0, 0, 1, 2]


def test_whole_floats_from_two_to_the_53_on_are_no_coordinates() -> None:
    xs = [2.0**53 - 1, 2.0**53, 2.0**53 + 2, 1e300]
    one = axis.Integer(2**53 - 2, 2**53 + 3, name="x")
    structure = fg.RangeCounter(axes=one, horizon=2, privacy=tiny_noise())
    frame = pd.DataFrame({"time": [EVENING] * len(xs), "x": xs})
    boxes = [{"x": (2**53 + n, 2**53 + n + 1)} for n in range(-2, 3)]
    released = fg.replay(frame, TICKS, structure, time="time", boxes=boxes)
    assert whole(released.column("value")).tolist()[-5:] == [0, 1, 0, 0, 0]


@pytest.mark.parametrize(
    "line",
    [
        b'2026-01-01 09:30,"/home',
        b'2026-01-01 09:30,"/home"x',
        b'"2026-01-01 09:30,/home',
        b'"',
        b"2026-01-01 09:30,\xff,more",
        b"\xff,\xff,\xff",
        b"2026-01-01 09:30,\xff",
    ],
    ids=[
        "open quote",
        "text after a quote",
        "open quote in the time",
        "quote",
        "not UTF-8 and long",
        "long",
        "not UTF-8",
    ],
)
@pytest.mark.parametrize("place", ["first", "last"])
def test_a_line_that_is_no_row_is_left_out_alone(line: bytes, place: str) -> None:
    lines = [b"2026-01-01 09:30,/home"] * 20
    lines.insert(0 if place == "first" else 20, line)
    Path("rows.csv").write_bytes(b"".join(line + b"\n" for line in [b"time,page", *lines]))
    assert told("count", "rows.csv", *CLOCK, *HOME)[0] in (20, 21)


def test_a_byte_order_mark_is_text_in_every_row(small_blocks: Callable[[int], None]) -> None:
    # Arrow leaves one out in front of what it is given: there the row would have another key than elsewhere.
    small_blocks(200)
    row = "/about,2026-01-01 09:30\n"
    for place in range(12):
        rows = row * place + "\ufeff/home,2026-01-01 09:30\n" + row * 12
        Path("rows.csv").write_text(f"page,time\n{rows}")
        assert told("count", "rows.csv", *CLOCK, *HOME) == [0, place + 12]


@pytest.mark.parametrize("kind", ["object", "string[python]", "numpy"])
def test_half_a_pair_is_left_out_alone(kind: str) -> None:
    keys = ["a", "\ud800", "a"]
    column = np.array(keys) if kind == "numpy" else pd.Series(keys, dtype=kind)
    frame = {"time": [EVENING] * 3, "key": column}
    released = fg.replay(frame, TICKS, vector(2), time="time", key="key", keys=["a", "b"])
    assert whole(released.column("value")).tolist()[-2:] == [2, 0]


@pytest.mark.parametrize("size", [150, 151, 152, 153, 4 << 20])
def test_a_row_with_breaks_in_quotes_is_whole_across_blocks(size: int, small_blocks: Callable[[int], None]) -> None:
    # A quoted line break of two characters, of which a block ends with the first (apache/arrow#51368).
    small_blocks(size)
    head = "time,page,note\r\n"
    row = '2026-01-01 09:30,/home,"a\r\nb"\r\n'
    filling = size - len(head) - row.index("\r") - 1
    rest = '2026-01-01 09:30,/about,"' + "x" * 20 + '"\r\n'
    lines, left = divmod(filling, len(rest))
    text = head + rest * (lines - 1) + rest.replace("x" * 20, "x" * (20 + left)) + row * 4
    assert text.encode()[size - 1 : size + 1] == b"\r\n"
    Path("rows.csv").write_bytes(text.encode())
    assert told("count", "rows.csv", *CLOCK, *HOME, "--multiline") == [4, lines]


def test_a_quoted_line_break_makes_another_row_without_multiline_alone() -> None:
    # What somebody typed into a field, in a file whose writer leaves breaks as they are.
    Path("rows.csv").write_text('page,time\n/about,2026-01-01 09:30\n"x\n/home,2026-01-01 09:31\n",2026-01-01 09:32\n')
    assert told("count", "rows.csv", *CLOCK, *HOME) == [1, 1]
    assert told("count", "rows.csv", *CLOCK, *HOME, "--multiline") == [0, 1]


@pytest.mark.parametrize("place", [0, 7, 20])
def test_a_time_that_is_not_utf8_is_left_out_alone_with_a_format(place: int) -> None:
    texts = [b"01/01/2026 09:30"] * 20
    texts.insert(place, b"01/01/2026 09:30\xff")
    pq.write_table(pa.table({"time": pa.array(texts, pa.binary()).view(pa.string())}), "rows.parquet")
    assert told("count", "rows.parquet", *CLOCK, "--time-format", "%d/%m/%Y %H:%M") == [20]


ZONED, NAIVE = "2026-01-01T09:30+01:00", "2026-01-01 09:30"


@pytest.mark.parametrize(("most", "one", "zone"), [(ZONED, NAIVE, ["--tz", "UTC"]), (NAIVE, ZONED, [])])
@pytest.mark.parametrize("place", [0, 20])
@pytest.mark.parametrize("state", [[], ["--state", "job.fg", "--until", "2026-01-02"]])
def test_a_text_of_the_other_zone_kind_is_left_out_alone(
    most: str, one: str, zone: list[str], place: int, state: list[str]
) -> None:
    texts = [most] * 20
    texts.insert(place, one)
    Path("rows.csv").write_text("".join(f"{line}\n" for line in ["time", *texts]))
    assert told("count", "rows.csv", *CLOCK, *zone, *state) == [20]
    ticks = fg.Ticks("2026-01-01", "2026-01-02", "1d", tz="UTC" if zone else None)
    assert counted(pa.array(texts), ticks) == [20]


def test_a_typed_column_of_the_other_zone_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="time zone"):
        counted(pa.array([EVENING], pa.timestamp("us", "UTC")))


@pytest.mark.parametrize("cells", [[0, 1, 2], [0, 0, 0]])
def test_each_element_of_an_update_of_a_vector_is_a_unit(cells: list[int]) -> None:
    structure = vector(3, invalid="drop")
    structure.update(cells)
    assert whole(structure.release()).tolist() == [cells.count(cell) for cell in range(3)]
    assert structure.dropped == 0


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT], ids=repr)
@pytest.mark.parametrize("raw", ["no", "of a sketch", "new"])
def test_a_missing_key_is_dropped_alone(missing: Any, raw: str) -> None:
    structure = sketch(width=64, depth=3, invalid="drop")
    fresh = fg.RawSketch(width=64, depth=3, hash_seed=1, invalid="drop")
    target: Any = {"no": structure, "of a sketch": structure.raw(), "new": fresh}[raw]
    target.update([missing, "a"])
    assert target.dropped == 1
    if raw != "no":
        structure.merge(target)
    assert round(structure.estimate("a")) == 1


def _categories(column: Any) -> list[int]:
    """Counts of a and b, by an update that drops what is none."""
    one = axis.StrCategory(["a", "b"], name="site")
    structure = fg.RangeCounter(axes=one, horizon=1, privacy=tiny_noise(), invalid="drop")
    structure.update(column)
    return [round(structure.count({"site": name})) for name in ("a", "b")]


@pytest.mark.parametrize("more", [[], [None], ["b"]], ids=repr)
@pytest.mark.parametrize("made", [list, pa.array, pd.Series, pl.Series])
def test_a_nul_at_the_end_is_part_of_a_text_whatever_else_is_there(made: Callable[[Any], Any], more: list[Any]) -> None:
    # Arrays of text in numpy have none, and Polars makes one where nothing is missing.
    assert _categories(made(["a\0", *more])) == [0, more.count("b")]


def test_text_that_is_not_utf8_is_dropped_alone_by_an_update() -> None:
    column = pa.array([b"a", b"\xc3", b"b"], pa.binary()).view(pa.string())
    assert _categories(column) == [1, 1]
    keyed = sketch(invalid="drop")
    keyed.update(column)
    assert whole(keyed.estimate(["a", "b"])).tolist() == [1, 1]
    weighted = sketch(invalid="drop")
    weighted.update(["a", "b", "a"], pa.array([1, None, 1]))
    assert round(weighted.estimate("a")) == 2


def test_a_time_beyond_all_calendars_is_in_the_last_bin_alone() -> None:
    times = pd.Series(np.array(["2026-01-03", 2**62], "datetime64[us]")).dt.tz_localize("UTC")
    one = axis.Datetime("2026-01-01", "2026-01-09", "1d", tz="UTC", name="day")
    structure = fg.RangeCounter(axes=one, horizon=1, privacy=tiny_noise(), invalid="drop")
    structure.update(times)
    assert round(structure.count({"day": ("2026-01-03", "2026-01-04")})) == 1


FAR = pa.scalar(1 << 62, pa.timestamp("us"))
NO_TEXT = pa.array([b"\xff"], pa.binary()).view(pa.string())[0]


@pytest.mark.parametrize("odd", [FAR, pa.scalar(1 << 30, pa.date32()), NO_TEXT], ids=lambda odd: str(odd.type))
def test_a_scalar_that_python_cannot_hold_is_left_out_alone(odd: Any) -> None:
    assert counted([EVENING] * 3 + [odd]) == [0, 3]
    frame = {"time": [EVENING] * 3, "key": ["a", odd, "a"]}
    released = fg.replay(frame, TICKS, vector(2), time="time", key="key", keys=["a", "b"])
    assert whole(released.column("value")).tolist()[-2:] == [2, 0]
    for one in (axis.Integer(0, 4), axis.Regular(4, 0, 4), axis.Variable([0, 4])):
        assert one.index([1, odd, 1], invalid="drop").tolist()[1] == -1


@pytest.mark.parametrize("text", [pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str)
def test_the_type_of_keys_holds_any_number_of_them(text: pa.DataType) -> None:
    # Those of Arrow's types that end at 2 GB would end a run at the row that is one too many.
    values = pa.array(["a", None, "b"]).cast(text)
    assert _values.key_column(values).type == pa.large_string()
    assert _values.of_elements(["a"]).field("text").type == pa.large_string()


@pytest.mark.slow
@pytest.mark.parametrize("rows", [100_000, 110_000])
@pytest.mark.parametrize("form", ["dictionary", "objects", "two tables", "file"])
def test_a_key_that_makes_two_gigabytes_is_one_like_others(rows: int, form: str) -> None:
    long = "x" * 20_000
    codes = pa.array(np.minimum(np.arange(rows + 1), 1).astype(np.int32))
    column = pa.DictionaryArray.from_arrays(codes, pa.array(["a", long]))
    times = [EVENING] * (rows + 1)
    table = pa.table({"time": pa.array(times), "page": column})
    if form == "file":
        pq.write_table(table, "rows.parquet")
        (Path("pages.txt")).write_text("a\nb\n")
        assert told("count", "rows.parquet", *CLOCK, *HOME) == [1, 0]
        return
    frames: dict[str, Any] = {
        "dictionary": table,
        "objects": {"time": times, "page": ["a", *[long] * rows]},
        # Not in the order of time, and so sorted together.
        "two tables": [table, pa.table({"time": pa.array([EVENING, dt.datetime(2026, 1, 1)]), "page": ["a", "b"]})],
    }
    structure = sketch(width=64, depth=3, horizon=2)
    released = fg.replay(frames[form], TICKS, structure, time="time", key="page", keys=["a", "b"], memory=8 << 30)
    assert whole(released.column("value")).tolist()[-2:] == ([2, 1] if form == "two tables" else [1, 0])
