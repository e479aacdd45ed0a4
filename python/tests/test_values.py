"""Values of columns: what one means does not depend on what stands around it."""

from __future__ import annotations

import datetime as dt
import decimal
import fractions
import itertools
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastgame as fg
from fastgame import _values
from fastgame._values import (
    Times,
    instants_of,
    key_column,
    of_elements,
    update_keys,
    weights_of,
    whole_numbers,
)

UTC = dt.timezone.utc
NAIVE = fg.Ticks("2026-01-01", "2027-01-01", "1d")
AWARE = fg.Ticks("2026-01-01", "2027-01-01", "1d", tz="UTC")
DAY = dt.datetime(2026, 1, 1)


def micro(*parts: int) -> int:
    return (dt.datetime(*parts) - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # type: ignore[arg-type]


def instants(values: Any, ticks: fg.Ticks = NAIVE, form: str | None = None) -> list[int | None]:
    array = values if isinstance(values, pa.Array) else of_elements(values)
    found = instants_of(array, Times(ticks, "t", None, form), "t")
    bad = np.zeros(len(array), dtype=bool) if found.bad is None else found.bad
    return [None if no else int(value) for value, no in zip(found.values, bad, strict=True)]


#: Text of times, and what each is without a zone.
TIMES: dict[str, int | None] = {
    "2026-01-02": micro(2026, 1, 2),
    " 2026-01-02\t": micro(2026, 1, 2),
    "2026-01-02T09": micro(2026, 1, 2, 9),
    "2026-01-02 09:30": micro(2026, 1, 2, 9, 30),
    "2026-01-02T09:30:15.25": micro(2026, 1, 2, 9, 30, 15, 250_000),
    "2026-01-02T09:30:15.1234569999": micro(2026, 1, 2, 9, 30, 15, 123_456),
    "9999-12-31": micro(9999, 12, 31),
    "0000-01-01": -62_167_219_200_000_000,
    "10000-01-01": None,
    "2026-02-30": None,
    "2026-01-02T24:00": None,
    "2026-01-02T09:30:60": None,
    "2026-01-02t09:30": None,
    "2026-01-02T09:30Z": None,
    "2026-01-02T09:30+01:00": None,
    "20260102": None,
    "soon": None,
    "": None,
    " ": None,
}
ZONED: dict[str, int | None] = {
    "2026-01-02T09:30Z": micro(2026, 1, 2, 9, 30),
    "2026-01-02 09:30+01:00 ": micro(2026, 1, 2, 8, 30),
    "2026-01-02T09:30:15.1234569999-0100": micro(2026, 1, 2, 10, 30, 15, 123_456),
    "2026-01-02": None,
    "2026-01-02T09:30": None,
    "2026-01-02T09:30z": None,
    "x": None,
}
#: Text of numbers, and what each is.
NUMBERS: dict[str, float | None] = {
    "1": 1.0, "+1": 1.0, " 1 ": 1.0, "-0": 0.0, "007": 7.0, "1.": 1.0, ".5": 0.5, "1e3": 1000.0, "1E+3": 1000.0,
    "1e400": np.inf, "-1e400": -np.inf, "inf": np.inf, "-inf": -np.inf, "Infinity": np.inf, " inf": np.inf,
    "1e-400": 0.0, "nan": np.nan, "0x10": None, "1_000": None, "1,5": None, "": None, " ": None, "zz": None,
    "1e": None, "٣": None,
    "9007199254740993": 2.0**53,
}  # fmt: skip


def same(a: Any, b: Any) -> bool:
    return bool(a == b or (isinstance(a, float) and isinstance(b, float) and np.isnan(a) and np.isnan(b)))


@pytest.mark.parametrize(("ticks", "texts"), [(NAIVE, TIMES), (AWARE, ZONED)])
def test_text_times_mean_what_each_of_them_says(ticks: fg.Ticks, texts: dict[str, int | None]) -> None:
    assert instants(pa.array(list(texts)), ticks) == list(texts.values())
    assert instants(list(texts), ticks) == list(texts.values())
    for text, instant in texts.items():
        assert instants(pa.array([text]), ticks) == [instant], text
        assert instants(pa.array([text, text, "zz"]), ticks) == [instant, instant, None], text


def numbers(texts: list[str]) -> list[float | None]:
    found, bad = _values.numbers_of(pa.array(texts))
    bad = np.zeros(len(texts), dtype=bool) if bad is None else bad
    return [None if no else float(number) for number, no in zip(found, bad, strict=True)]


def test_text_numbers_mean_what_each_of_them_says() -> None:
    found = numbers(list(NUMBERS))
    assert all(same(*pair) for pair in zip(found, NUMBERS.values(), strict=True)), found
    for text, number in NUMBERS.items():
        for around in ([text], [text, "1"], [text, "zz"], ["zz", text]):
            assert same(numbers(around)[around.index(text)], number), around


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from([*TIMES, *ZONED, *NUMBERS]), min_size=1, max_size=40), st.booleans())
def test_a_text_means_the_same_in_every_column(texts: list[str], aware: bool) -> None:
    ticks = AWARE if aware else NAIVE
    assert instants(pa.array(texts), ticks) == [instants(pa.array([text]), ticks)[0] for text in texts]
    assert all(same(*pair) for pair in zip(numbers(texts), [numbers([text])[0] for text in texts], strict=True))
    whole: Any = whole_numbers(pa.array(texts))
    alone: Any = [whole_numbers(pa.array([text])) for text in texts]
    assert whole.to_pylist() == [one.to_pylist()[0] for one in alone]


#: Elements of lists, as times without a zone.
ELEMENTS: list[tuple[Any, int | None]] = [
    (dt.date(2026, 1, 1), micro(2026, 1, 1)),
    (dt.datetime(2026, 1, 1, 21, 30), micro(2026, 1, 1, 21, 30)),
    (dt.datetime(2026, 1, 1, 21, 30, tzinfo=UTC), None),
    (pd.Timestamp("2026-01-01 21:30"), micro(2026, 1, 1, 21, 30)),
    (pd.Timestamp("2026-01-01 21:30", tz="UTC"), None),
    (np.datetime64("2026-01-01"), micro(2026, 1, 1)),
    (np.datetime64("2026-01-01T00:00:00.123456789", "ns"), micro(2026, 1, 1, 0, 0, 0, 123_456)),
    (pa.scalar(DAY), micro(2026, 1, 1)),
    ("2026-01-01T21:30", micro(2026, 1, 1, 21, 30)),
    ("2026-01-01T21:30Z", None),
    (None, None), (float("nan"), None), (pd.NaT, None), (pd.NA, None), (np.datetime64("NaT"), None),
    (5, None), (1.5, None), (True, None), (b"2026-01-01", None), ("\ud800", None), ([1], None), (object(), None),
    (dt.time(9), None), (dt.timedelta(1), None), (10**5000, None),
]  # fmt: skip


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(ELEMENTS), max_size=12), st.sampled_from(["list", "tuple", "array", "pandas"]))
def test_an_element_means_the_same_in_every_list(pairs: list[tuple[Any, int | None]], kind: str) -> None:
    values = np.empty(len(pairs), dtype=object)
    for place, (value, _) in enumerate(pairs):
        values[place] = value
    frame: Any = {
        "list": list(values),
        "tuple": tuple(values),
        "array": values,
        "pandas": pd.Series(values, dtype=object),
    }
    counter = fg.ContinualCounter(horizon=365, privacy=fg.Zcdp(rho=1e6), insecure_seed=1)
    counts = fg.RowCounts()
    table = fg.replay({"t": frame[kind]}, NAIVE, counter, time="t", counts=counts)
    assert round(table.column("value").to_pylist()[-1]) == sum(instant is not None for _, instant in pairs)
    assert counts.read == len(pairs)
    assert instants(list(values)) == [instant for _, instant in pairs]


def test_dates_beside_datetimes_and_zones_beside_none_are_not_moved() -> None:
    """The first element decided over all of them: 5,000 rows went to another step."""
    counter = fg.ContinualCounter(horizon=2, privacy=fg.Zcdp(rho=1e6), insecure_seed=1)
    ticks = fg.Ticks("2026-01-01", "2026-01-02", "12h")
    times: list[Any] = [dt.date(2026, 1, 1), *[dt.datetime(2026, 1, 1, 21, 30)] * 5000]
    table = fg.replay({"t": times}, ticks, counter, time="t")
    assert [round(value) for value in table.column("value").to_pylist()] == [1, 5001]
    zoned = [dt.datetime(2026, 1, 1, 1, tzinfo=UTC), *[dt.datetime(2026, 1, 1, 21, 30)] * 3000]
    counter = fg.ContinualCounter(horizon=2, privacy=fg.Zcdp(rho=1e6), insecure_seed=1)
    table = fg.replay(pd.DataFrame({"t": pd.Series(zoned, dtype=object)}), ticks, counter, time="t")
    assert [round(value) for value in table.column("value").to_pylist()] == [0, 3000]


def test_numbers_since_1970_are_times() -> None:
    seconds = micro(2026, 1, 2, 9, 30) // 10**6
    columns: list[Any] = [
        pa.array([seconds]), pa.array([float(seconds)]), pa.array([str(seconds)]), pa.array([f" {seconds}.0"]),
        pa.array([seconds], pa.uint64()), pa.array([decimal.Decimal(seconds)]), [seconds], [str(seconds)],
        [float(seconds)], [decimal.Decimal(seconds)],
    ]  # fmt: skip
    for values in columns:
        assert instants(values, AWARE, "epoch_s") == [micro(2026, 1, 2, 9, 30)], values
    assert instants(pa.array(["1.25", "-1", "nan", "1e400", "x", "9" * 18, None]), AWARE, "epoch_s") == [
        1_250_000, -1_000_000, None, None, None, (1 << 62) // 10**6 * 10**6, None,
    ]  # fmt: skip
    assert instants(pa.array([1_500, -1]), AWARE, "epoch_ms") == [1_500_000, -1_000]
    # Moments, which only a clock with a zone can place.
    with pytest.raises(ValueError, match="time_format 'epoch_s' has a time zone and the ticks have none"):
        instants(pa.array([1]), NAIVE, "epoch_s")
    with pytest.raises(TypeError, match=r"it is of type int64 .*time_format='epoch_s' or 'epoch_ms'"):
        instants(pa.array([1]), AWARE)


def test_a_year_and_a_month_are_times_by_their_formats() -> None:
    assert instants(pa.array(["2026", "x"]), NAIVE, "%Y") == [micro(2026, 1, 1), None]
    assert instants(pa.array(["2026-03", "2026-13"]), NAIVE, "%Y-%m") == [micro(2026, 3, 1), None]
    for form in ("%m", "%d", "%H:%M", "%Y %d"):
        with pytest.raises(ValueError, match="must say year, month and day"):
            instants(pa.array(["x"]), NAIVE, form)


def test_text_that_is_not_utf8_is_left_out_alone_with_every_format() -> None:
    offsets = pa.array([0, 10, 11, 21], pa.int32()).buffers()[1]
    broken = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"2026-01-02\xff2026-01-03")])
    for form in (None, "%Y-%m-%d"):
        assert instants(broken, NAIVE, form) == [micro(2026, 1, 2), None, micro(2026, 1, 3)]
    assert key_column(broken).to_pylist() == ["2026-01-02", None, "2026-01-03"]
    assert key_column(broken.dictionary_encode()).to_pylist() == ["2026-01-02", None, "2026-01-03"]


def test_text_without_a_utf8_form_is_left_out_alone_in_every_column_of_pandas() -> None:
    for kind in ("object", pd.StringDtype("python")):
        series = pd.Series(["2026-01-01", "a\udfff", None], dtype=kind)
        counts = fg.RowCounts()
        counter = fg.ContinualCounter(horizon=365, privacy=fg.Zcdp(rho=1e6), insecure_seed=1)
        table = fg.replay(pd.DataFrame({"t": series}), NAIVE, counter, time="t", counts=counts)
        assert round(table.column("value").to_pylist()[-1]) == 1
        assert counts.dropped == {"no time in 't'": 2}


@pytest.mark.parametrize(("kind", "most"), [(pa.float64(), 2**53), (pa.float32(), 2**24), (pa.float16(), 2**11)])
def test_floats_are_keys_where_they_are_one_integer(kind: Any, most: int) -> None:
    numbers = [0.0, -0.0, 1.0, -1.0, float(most - 1), float(1 - most), float(most), float(-most), float("inf"), 0.5]
    values = pa.array(np.array(numbers, dtype=kind.to_pandas_dtype()))
    assert key_column(values).to_pylist() == [0, 0, 1, -1, most - 1, 1 - most, None, None, None, None]


def test_ids_in_floats_never_stand_for_others() -> None:
    """A missing key makes floats of pandas' integers, in which 1.2e18 and its neighbours are one."""
    ids = [1_200_000_000_000_000_000, 1_200_000_000_000_000_001]
    frame = pd.DataFrame({"t": [DAY] * 4, "k": [*ids, 7, None]})
    assert frame["k"].dtype == np.float64
    vector = fg.ContinualVector(2, horizon=1, privacy=fg.Zcdp(rho=1e6), insecure_seed=1)
    table = fg.replay(frame, fg.Ticks("2026-01-01", "2026-01-02", "1d"), vector, time="t", key="k", keys=[ids[0], 7])
    assert [round(value) for value in table.column("value").to_pylist()] == [0, 1]
    exact = frame.assign(k=pd.array([*ids, 7, None], dtype="Int64"))
    vector = fg.ContinualVector(2, horizon=1, privacy=fg.Zcdp(rho=1e6), insecure_seed=1)
    table = fg.replay(exact, fg.Ticks("2026-01-01", "2026-01-02", "1d"), vector, time="t", key="k", keys=[ids[0], 7])
    assert [round(value) for value in table.column("value").to_pylist()] == [1, 1]


def test_batches_of_lists_and_of_columns_are_not_mixed_for_keys() -> None:
    sketch = fg.CountSketch(horizon=1, privacy=fg.Zcdp(rho=1e6), width=64)
    frames = [{"t": [DAY], "k": ["a"]}, pa.table({"t": [DAY], "k": ["a"]})]
    with pytest.raises(TypeError, match="the column 'k' is of type string here and Python objects before"):
        fg.replay(frames, fg.Ticks("2026-01-01", "2026-01-02", "1d"), sketch, time="t", key="k", keys=["a"])


def test_keys_of_a_list_have_a_type_each() -> None:
    given = [5, "5", b"5", 5.0, 2**63, -1, 2.0**53, 0.5, None, float("nan"), True, 2**64, "\ud800", np.int8(5)]
    keys = key_column(of_elements(given))
    seen: list[tuple[Any, int]] = []
    kept = np.asarray(keys.is_valid())
    update_keys(
        lambda part, weights: seen.extend(zip(part.to_pylist(), weights, strict=True)),
        [keys.filter(pa.array(kept))],
        np.arange(len(given))[kept],
    )
    found = sorted(seen, key=lambda pair: pair[1])
    assert [key for key, _ in found] == [5, "5", b"5", 5, 2**63, -1, 5]
    assert [place for _, place in found] == [0, 1, 2, 3, 4, 5, 13]


def test_composite_keys_of_lists_are_fed_row_by_row() -> None:
    sketch = fg.CountSketch(horizon=1, privacy=fg.Zcdp(rho=1e6), width=1024, hash_seed=1, insecure_seed=1)
    rows: list[tuple[Any, Any]] = [("a", 1), (1, "a"), ("a", "a"), (1, 1), ("a", None), (True, 1), ("a", 1)]
    frame = {"t": [DAY] * len(rows), "x": [x for x, _ in rows], "y": [y for _, y in rows]}
    table = fg.replay(
        frame,
        fg.Ticks("2026-01-01", "2026-01-02", "1d"),
        sketch,
        time="t",
        key=("x", "y"),
        keys=(["a", "a"], ["a", "b"]),
    )
    assert [round(value) for value in table.column("value").to_pylist()] == [1, 0]
    counted: dict[Any, int] = {("a", 1): 2, (1, "a"): 1, (1, 1): 1}
    for key, count in counted.items():
        assert round(sketch.estimate(key)) == count


def test_weights_of_a_list_have_a_type_each() -> None:
    given = [1, "2", 3.0, decimal.Decimal(4), fractions.Fraction(5), np.int8(6), 2**70, 0.5, "0.5", "x", None, True]
    bad: Any
    weights, bad = weights_of(of_elements(given), True)
    assert bad.tolist() == [False] * 7 + [True] * 5
    assert weights.tolist()[:7] == [1, 2, 3, 4, 5, 6, 1 << 62]
    weights, bad = weights_of(of_elements(given), False)
    assert bad.tolist() == [False] * 9 + [True] * 3
    assert weights.tolist()[7:9] == [0.5, 0.5]


def test_an_element_that_fails_when_it_is_looked_at_is_left_out_alone() -> None:
    class Zone(dt.tzinfo):
        def utcoffset(self, _: Any) -> Any:
            raise RuntimeError

        dst = tzname = utcoffset

    given = [dt.datetime(2026, 1, 1, tzinfo=Zone()), DAY]
    assert instants(given) == [None, micro(2026, 1, 1)]
    assert instants(given, AWARE) == [None, None]


DAYS = ["2026-01-03", "2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "0000-01-01", "2026-04-31", "2026-1-3"]
CLOCKS = ["", "09", "09:30", "09:30:15", "09:30:15.1", "09:30:15.123456", "09:30:15.", "0930", "24:00", "23:59:60"]
ZONES = ["", "Z", "z", " Z", "+01", "+0100", "+01:00", "-24:00", "+23:59", "+1", "+01:60", "UTC"]
TIME_TEXTS = ["".join(parts) for parts in itertools.product(DAYS, ["", "T", " ", "t"], CLOCKS, ZONES)]
NUMBER_TEXTS = ["".join(parts) for size in range(5) for parts in itertools.product("01.e+-infaty(", repeat=size)]
LAST = 2**63 - 1
INTEGERS = [str(sign * (LAST + near)) for sign in (1, -1) for near in range(-40, 40)] + [str(10**n) for n in range(25)]


@pytest.mark.parametrize(
    ("texts", "kind", "form"),
    [
        (TIME_TEXTS, pa.timestamp("us"), _values._NAIVE_TIME),
        (TIME_TEXTS, pa.timestamp("us", "UTC"), _values._AWARE_TIME),
        (random.Random(1).sample(NUMBER_TEXTS, 8000), pa.float64(), _values._NUMBER),
        (INTEGERS, pa.int64(), _values._INTEGER),
    ],
    ids=["naive", "aware", "numbers", "integers"],
)
def test_what_arrow_casts_is_of_the_form(texts: list[str], kind: pa.DataType, form: str) -> None:
    # What is not is left out untried, but only where another row is: it must be left out in any case.
    fits = pc.match_substring_regex(pa.array(texts), form).to_pylist()
    cast = [_values.cast_each(pa.array([text]), kind).is_valid()[0].as_py() for text in texts]
    assert any(cast)
    assert fits == cast


@given(st.lists(st.binary(max_size=6), min_size=1, max_size=30))
def test_text_is_valid_where_python_reads_it(texts: list[bytes]) -> None:
    found = _values.valid(pa.array([b"\xff", *texts], pa.binary()).view(pa.string()))
    for text, is_valid in zip(texts, found.is_valid().to_pylist()[1:], strict=True):
        try:
            text.decode()
            assert is_valid
        except UnicodeDecodeError:
            assert not is_valid


ODD: dict[str, Callable[[int], Any]] = {
    "times": lambda n: instants([f"2026-02-30 09:30:00.{i:06}" for i in range(n)]),
    "other zone": lambda n: instants([f"2026-02-03 09:30:00.{i:06}Z" for i in range(n)]),
    "nanoseconds": lambda n: instants([f"2026-02-03 09:30:00.{i:06}000" for i in range(n)]),
    "numbers": lambda n: weights_of(pa.array([f"1,{i}" for i in range(n)]), False),
    "not UTF-8": lambda n: _values.valid(pa.array([b"\xff%d" % i for i in range(n)]).view(pa.string())),
    "bytes": lambda n: _values.text_of_bytes(pa.array([b"\xff%d" % i for i in range(n)])),
    "decimals": lambda n: whole_numbers(pa.array([decimal.Decimal(2 * i + 1) / 2 for i in range(n)])),
    "no sign": lambda n: _values.cast_each(pa.array([LAST + 1 + i for i in range(n)], pa.uint64()), pa.int64()),
    "a sign": lambda n: _values.cast_each(pa.array([-1 - i for i in range(n)]), pa.uint64()),
}


@pytest.mark.parametrize("odd", ODD)
def test_a_column_of_odd_values_is_not_read_one_by_one(odd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # One by one they take 20 microseconds each, or more. Casts are counted, as machines differ in speed.
    casts = 0
    halves = _values._halves

    def counted(values: pa.Array, kind: pa.DataType) -> pa.Array:
        nonlocal casts
        casts += 1
        return halves(values, kind)

    monkeypatch.setattr(_values, "_halves", counted)
    start = time.process_time()
    ODD[odd](20_000)
    assert casts < 100
    assert time.process_time() - start < 10
