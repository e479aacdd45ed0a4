"""Axes: from values to bins, against oracles, at edges and beside them."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle
from bisect import bisect_right
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fastgame import Ticks
from fastgame import axis as axes_module
from fastgame.axis import Axis, Datetime, Integer, Regular, StrCategory, Variable

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
FLOWS = st.fixed_dictionaries({"underflow": st.booleans(), "overflow": st.booleans()})
UTC = dt.timezone.utc


def place_of(edges: Any, value: Any, axis: Axis) -> int:
    """The oracle: half-open bins [edge, next edge), flow bins or -1 outside, -1 for NaN."""
    if math.isnan(value):
        return -1
    number = bisect_right(edges, value) - 1
    if number < 0:
        return 0 if axis.underflow else -1
    if number >= axis.size:
        return axis.extent - 1 if axis.overflow else -1
    return number + axis.underflow


def around(values: Any) -> list[float]:
    """Floats and those one unit in the last place beside them."""
    return [near for v in values for near in (math.nextafter(v, -math.inf), v, math.nextafter(v, math.inf))]


def made(make: Callable[..., Axis], *arguments: Any, **flow: Any) -> Axis:
    try:
        return make(*arguments, **flow)
    except ValueError:
        assume(False)
        raise


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(1, 60), FINITE, FINITE, FLOWS, st.lists(FINITE, max_size=20))
def test_regular_bins_are_between_their_edges(
    bins: int, start: float, stop: float, flow: dict[str, bool], values: list[float]
) -> None:
    regular = made(Regular, bins, start, stop, **flow)
    edges = regular.edges.tolist()
    assert len(edges) == bins + 1 and edges[0] == start and edges[-1] == stop
    assert edges == sorted(set(edges))
    given_values = [*values, *around(edges), math.nan, math.inf, -math.inf, 0.0, -0.0]
    expected = [place_of(edges, value, regular) for value in given_values]
    assert regular.index(given_values).tolist() == expected


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(FINITE, min_size=2, max_size=20, unique=True), FLOWS, st.lists(FINITE, max_size=20))
def test_variable_bins_are_between_their_edges(edges: list[float], flow: dict[str, bool], values: list[float]) -> None:
    edges = sorted(edges)
    variable = made(Variable, edges, **flow)
    given_values = [*values, *around(edges), math.nan, math.inf, -math.inf, 0.0, -0.0]
    assert variable.index(given_values).tolist() == [place_of(edges, value, variable) for value in given_values]
    for number, edge in enumerate(edges):
        assert variable.bound(edge) == number + variable.underflow


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.integers(-(2**63), 2**63 - 2),
    st.one_of(st.integers(1, 20), st.integers(2**59, 2**62 - 2)),
    FLOWS,
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=10),
)
def test_integer_bins_hold_one_integer_each(start: int, size: int, flow: dict[str, bool], values: list[int]) -> None:
    integer = made(Integer, start, start + size, **flow)
    near = [start + d for d in (-2, -1, 0, 1)] + [start + size + d for d in (-1, 0, 1)]
    given_values = [v for v in [*values, *near, -(2**63), 2**63 - 1] if -(2**63) <= v < 2**63]

    def expected(value: float) -> int:
        if value < start:
            return 0 if integer.underflow else -1
        if value >= start + size:
            return integer.extent - 1 if integer.overflow else -1
        return int(value) - start + integer.underflow

    assert integer.index(np.array(given_values, dtype=np.int64)).tolist() == [expected(v) for v in given_values]
    # Beyond 64 bits, and with missing values among them: integers stay what they are.
    python: list[Any] = [*given_values, 2**64, -(2**70), None, math.nan]
    assert integer.index(python).tolist() == [*(expected(v) for v in python[:-2]), -1, -1]
    # Of floats from 2^53 on nobody knows which integer was meant.
    floats = [float(v) for v in given_values] + [math.inf, -math.inf, 2.0**53 - 1, -(2.0**53), 1e300, 0.5, math.nan]
    known = [v for v in floats if math.isinf(v) or (abs(v) < 2**53 and v == int(v))]
    places = [expected(v) if v in known else -1 for v in floats]
    assert integer.index(np.array(floats)).tolist() == integer.index(floats).tolist() == places
    unsigned = [v for v in [*given_values, 2**63, 2**64 - 1] if v >= 0]
    assert integer.index(np.array(unsigned, dtype=np.uint64)).tolist() == [expected(v) for v in unsigned]
    assert integer.bound(start) == int(integer.underflow)
    assert integer.bound(start + size) == size + integer.underflow


@pytest.mark.parametrize("bins, start, stop", [(99_991, 0.1, 0.7), (1_000, -0.3, 0.3), (3, 1e15, 1e15 + 3), (10, 0, 1)])
def test_every_edge_is_in_its_own_bin_and_below_it_in_the_one_before(bins: int, start: float, stop: float) -> None:
    # boost-histogram 1.8 divides and puts 31 % of the edges of the first of these into the bin before.
    regular = Regular(bins, start, stop)
    edges = regular.edges
    assert np.array_equal(regular.index(edges), np.arange(1, bins + 2))
    assert np.array_equal(regular.index(np.nextafter(edges, -np.inf)), np.arange(bins + 1))
    assert [regular.bound(edge) for edge in edges[:: max(1, bins // 1000)]] == list(
        range(1, bins + 2, max(1, bins // 1000))
    )


@pytest.mark.parametrize("bins, start, stop", [(2**49, 0, 1), (2**40, -1e300, 1e300), (2**48 - 1, 0.1, 0.7)])
def test_regular_axes_with_more_bins_than_fit_in_memory(bins: int, start: float, stop: float) -> None:
    regular = Regular(bins, start, stop)
    generator = np.random.default_rng(1)
    numbers = np.concatenate([[0, 1, bins - 1], generator.integers(0, bins, 1000)])
    edges = regular._edges_at(numbers)
    assert np.array_equal(regular.index(edges), numbers + 1)
    assert np.array_equal(regular.index(np.nextafter(edges, -np.inf)), numbers)
    assert [regular.key(int(number) + 1) for number in numbers] == edges.tolist()
    assert [regular.bound(edge) for edge in edges] == (numbers + 1).tolist()
    assert regular.extent == bins + 2


def test_axes_of_the_largest_extents() -> None:
    largest = Integer(-(2**61), 2**61, underflow=False, overflow=False)
    assert largest.extent == 2**62
    assert largest.index([-(2**61), 0, 2**61 - 1, 2**61]).tolist() == [0, 2**61, 2**62 - 1, -1]
    assert largest.interval((0, None)) == (2**61, 2**62)
    years = Datetime("0001-01-01", "9999-12-31", "1us")
    assert years.index(np.array(["0001-01-01", "9999-12-31"], dtype="datetime64[us]")).tolist() == [1, years.extent - 1]
    with pytest.raises(ValueError, match=r"from 1 to 2\^62 bins"):
        Integer(-(2**61), 2**61)


MAKERS: dict[str, Callable[..., Axis]] = {
    "Regular": lambda **more: Regular(10, 0, 1, **more),
    "Variable": lambda **more: Variable([0, 0.3, 1e9], **more),
    "Integer": lambda **more: Integer(-3, 4, **more),
    "Datetime": lambda **more: Datetime("2026-01-01", "2026-01-03", "1h", **more),
    "Datetime in a zone": lambda **more: Datetime(
        "2026-03-01", "2026-04-01", "1d", **{"tz": "Europe/Copenhagen", **more}
    ),
    "Datetime of months": lambda **more: Datetime("2026-01-31", "2027-01-15", "1mo", **more),
    "Datetime of datetimes": lambda **more: Datetime(
        dt.datetime(2026, 1, 1, tzinfo=UTC), dt.datetime(2026, 2, 1, tzinfo=UTC), dt.timedelta(hours=7), **more
    ),
}
NUMERIC = ["Regular", "Variable", "Integer"]
ALL_AXES: dict[str, Callable[..., Axis]] = {
    **MAKERS,
    "StrCategory": lambda **more: StrCategory(["b", "a", "", ", underflow=False", "ø"], **more),
}


def inner_edges(one: Any) -> list[Any]:
    """Edges as `bound` takes them."""
    if isinstance(one, StrCategory):
        return one.edges
    return [one.key(place) for place in range(int(one.underflow), one.size + int(one.underflow))]


@pytest.mark.parametrize("name", MAKERS)
def test_a_bound_is_the_place_where_points_at_the_edge_fall(name: str) -> None:
    for underflow in (False, True):
        for overflow in (False, True):
            one = MAKERS[name](underflow=underflow, overflow=overflow)
            keys = inner_edges(one)
            assert one.index(keys).tolist() == [one.bound(key) for key in keys] == list(range(*one.inner))
            last = one.ticks.end if isinstance(one, Datetime) else one.edges[-1].item()
            assert one.bound(last) == one.inner[1]
            assert one.index([last]).tolist() == [one.inner[1] if overflow else -1]
            assert one.interval((None, None)) == (0, one.extent)
            assert one.interval((keys[0], None)) == (int(underflow), one.extent)
            assert one.interval((keys[1], keys[1])) == (int(underflow) + 1,) * 2
            assert len(one.edges) == one.size + 1
            assert one.extent == one.size + underflow + overflow
            assert len({one.label(place) for place in range(one.extent)}) == one.extent
            with pytest.raises(ValueError, match="from <= to"):
                one.interval((keys[1], keys[0]))


@pytest.mark.parametrize(
    "one, value, nearest",
    [
        (Regular(10, 0, 1), 0.25, "0.2 and 0.3"),
        (Regular(10, 0, 1), 0.26, "0.2 and 0.3"),
        (Regular(10, 0, 1), -5, "0.0 and 0.1"),
        (Regular(10, 0, 1), 5, "0.9 and 1.0"),
        (Regular(10, 0, 1), math.nan, "0.0 and 0.1"),
        (Regular(1, 0, 1), 0.5, "0.0 and 1.0"),
        (Variable([0, 1, 5]), 2, "1.0 and 5.0"),
        (Variable([0, 1, 5]), -2, "0.0 and 1.0"),
        (Variable([0, 1, 5]), 6, "1.0 and 5.0"),
        (Variable([0, 1, 5]), math.nan, "and 5.0"),
        (Integer(0, 5), 2.5, "2 and 3"),
        (Integer(0, 5), np.float32(2.5), "2 and 3"),
        (Integer(0, 5), -1, "0 and 1"),
        (Integer(0, 5), 6, "4 and 5"),
        (Integer(0, 5), 99.5, "4 and 5"),
        (Integer(0, 5), -1e300, "0 and 1"),
        (Integer(0, 5), math.nan, "0 and 1"),
        (Integer(0, 1), 2**70, "0 and 1"),
        (Datetime("2026-01-01", "2026-01-03", "1h"), "2026-01-01T00:30", "2026-01-01T00:00:00 and 2026-01-01T01:00:00"),
        (Datetime("2026-01-01", "2026-01-03", "1h"), "2025-01-01", "2026-01-01T00:00:00 and 2026-01-01T01:00:00"),
        (Datetime("2026-01-01", "2026-01-03", "1h"), "2027-01-01", "2026-01-02T23:00:00 and 2026-01-03T00:00:00"),
        (Datetime("1970-01-01", "1970-01-03", "1h"), None, "1970-01-01T00:00:00 and 1970-01-01T01:00:00"),
        (Datetime("1970-01-01", "1970-01-03", "1h"), pd.NaT, "1970-01-01T00:00:00 and 1970-01-01T01:00:00"),
        (Datetime("1970-01-01", "1970-01-03", "1h"), np.datetime64("NaT"), "1970-01-01T00:00:00 and"),
    ],
    ids=str,
)
def test_what_is_no_edge_is_refused_with_the_two_nearest(one: Axis, value: Any, nearest: str) -> None:
    with pytest.raises(ValueError, match=rf"has no edge .*; the nearest are .*{nearest}"):
        one.bound(value)


def test_an_edge_may_be_off_by_rounding_alone() -> None:
    regular = Regular(10, 0, 1)
    assert regular.bound(3 * 0.1) == regular.bound(0.3) == 4
    for wrong in [0.3 + 1e-9, 0.3 - 1e-9]:
        with pytest.raises(ValueError, match="no edge"):
            regular.bound(wrong)
    with pytest.raises(ValueError, match="no edge"):
        Variable([0, 0.3, 1]).bound(3 * 0.1)


def test_infinity_is_the_end_of_a_numeric_axis() -> None:
    for name in NUMERIC:
        for value in (math.inf, np.float32(np.inf), np.inf):
            one = MAKERS[name]()
            assert (one.bound(-value), one.bound(value)) == (0, one.extent)


@pytest.mark.parametrize("name", NUMERIC)
@pytest.mark.parametrize(
    "column",
    [["1"], [b"1"], [True], [1, None, True], np.array([True]), [1j], [dt.datetime(2026, 1, 1)], [[1], [2, 3]]],
    ids=str,
)
def test_what_is_no_number_is_refused_on_numeric_axes(name: str, column: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as refusal:
        MAKERS[name]().index(column)
    assert "takes" in str(refusal.value) or column == [[1], [2, 3]]
    for value in ["1", b"1", True, np.True_, None, [1], 1j]:
        with pytest.raises(TypeError, match=r"takes (numbers|integers); "):
            MAKERS[name]().bound(value)
    for pair in [5, (1,), (0, 1, 2), None]:
        with pytest.raises(TypeError, match=r"takes a pair \(from, to\)"):
            MAKERS[name]().interval(pair)


BIG = 2**60 + 1  # no float


def tables_with_nulls(values: list[Any], kind: str) -> dict[str, Any]:
    """One column in the libraries; a None is a null there."""
    return {
        "list": values,
        "object": np.array(values, dtype=object),
        "pandas": pd.Series(values, dtype={"int": "Int64", "float": "Float64", "str": "str"}[kind]),
        "pandas object": pd.Series(values, dtype=object),
        "polars": pl.Series(values, dtype={"int": pl.Int64, "float": pl.Float64, "str": pl.String}[kind]),
        "pyarrow": pa.array(values),
        "pyarrow chunks": pa.chunked_array([pa.array(values[:1]), pa.array(values[1:])]),
        "pandas of arrow": pd.Series(
            values, dtype=pd.ArrowDtype({"int": pa.int64(), "float": pa.float64(), "str": pa.string()}[kind])
        ),
    }


@pytest.mark.parametrize("library", tables_with_nulls([1, 2], "int"))
def test_columns_with_nulls_keep_the_other_values_as_they_are(library: str) -> None:
    integer = Integer(BIG - 1, BIG + 2)
    column = tables_with_nulls([BIG, None, BIG + 1], "int")[library]
    assert integer.index(column).tolist() == [2, -1, 3]
    assert Regular(4, 0, 2).index(tables_with_nulls([0.5, None, 1.5], "float")[library]).tolist() == [2, -1, 4]
    assert Regular(4, 0, 2).index(tables_with_nulls([0, None, 1], "int")[library]).tolist() == [1, -1, 3]
    category = StrCategory(["a", "b"])
    assert category.index(tables_with_nulls(["b", None, "a", "z"], "str")[library]).tolist() == [1, -1, 0, 2]
    empty = tables_with_nulls([1, 2], "int")[library][:0]
    for one in [integer, Regular(4, 0, 2), category]:
        assert one.index(empty).tolist() == []


@pytest.mark.parametrize(
    "dtype", ["i1", "u1", "i2", "u4", "i8", "u8", ">i4", ">i8", "<u2", ">u8", "f2", "f4", ">f8", "g"]
)
def test_numbers_of_every_dtype_are_found(dtype: str) -> None:
    column = np.array([0, 1, 2, 3, 99], dtype=dtype)
    for view in [column, column[::-1][::-1], np.repeat(column, 2)[::2]]:
        assert Integer(0, 3).index(view).tolist() == [1, 2, 3, 4, 4]
        assert Regular(3, 0, 3).index(view).tolist() == [1, 2, 3, 4, 4]
        assert Variable([0, 1, 3]).index(view).tolist() == [1, 2, 2, 3, 3]


def test_integers_beyond_64_bits_are_outside() -> None:
    column = np.array([2**63, 2**64 - 1, 5], dtype=np.uint64)
    assert Integer(0, 10).index(column).tolist() == [11, 11, 6]
    assert Integer(0, 10, overflow=False).index(column).tolist() == [-1, -1, 6]
    assert Regular(2, 0, 2**64).index(column).tolist() == [2, 3, 1]  # 2^64 - 1 is rounded to a float
    assert Regular(2, 0, 1).index([2**64, -(10**400), 10**400]).tolist() == [3, 0, 3]
    top = Integer(2**62 + 5, 2**63 - 1)
    assert top.index([2**62 + 1024, 2**63, 2.0**62 + 1024, 2.0**63]).tolist() == [1020, top.extent - 1, -1, -1]
    with pytest.raises(ValueError, match=r"less than 2\^63"):
        Integer(-(2**63), 0)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.datetimes(dt.datetime(2000, 1, 1), dt.datetime(2030, 1, 1)),
    st.integers(1, 60 * 24 * 200),
    st.sampled_from(["1h", "7h", "1d", "1mo", "90s"]),
    st.sampled_from([None, "UTC", "Europe/Copenhagen", "America/St_Johns"]),
    FLOWS,
    st.lists(st.datetimes(dt.datetime(1999, 1, 1), dt.datetime(2031, 1, 1)), max_size=10),
)
def test_datetime_bins_are_the_steps_of_ticks(
    start: dt.datetime, minutes: int, every: str, tz: str | None, flow: dict[str, bool], values: list[dt.datetime]
) -> None:
    stop = start + dt.timedelta(minutes=minutes)
    one: Any = made(Datetime, start, stop, every, tz=tz, **flow)
    assume(one.size < 3000)
    ticks = Ticks(start, stop, every, tz=tz)
    edges = one.edges.astype("datetime64[us]").astype(np.int64).tolist()
    assert edges == sorted(set(edges)) and len(edges) == ticks.horizon + 1
    zone = None if tz is None else ZoneInfo(tz)
    aware = [value if zone is None else value.replace(tzinfo=zone) for value in values]
    utc = [value if zone is None else value.astimezone(UTC).replace(tzinfo=None) for value in aware]
    micro = [(value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) for value in utc]
    expected = [place_of(edges, value, one) for value in micro]
    assert one.index(aware).tolist() == expected
    naive_utc = np.array(micro, dtype="datetime64[us]")
    assert one.index(naive_utc).tolist() == expected
    # At the edges and a microsecond beside.
    near = np.array([edge + d for edge in edges for d in (-1, 0, 1)])
    assert one.index(near.astype("datetime64[us]")).tolist() == [place_of(edges, v, one) for v in near.tolist()]


def test_a_day_in_a_zone_is_as_long_as_it_is_there() -> None:
    one = Datetime("2026-03-28", "2026-03-31", "1d", tz="Europe/Copenhagen")
    assert np.diff(one.edges).astype("timedelta64[h]").astype(int).tolist() == [24, 23, 24]
    zone = ZoneInfo("Europe/Copenhagen")
    times = [dt.datetime(2026, 3, 29, 0, 0, tzinfo=zone), dt.datetime(2026, 3, 29, 23, 59, tzinfo=zone)]
    assert one.index(times).tolist() == [2, 2]
    assert one.index(pd.Series(times)).tolist() == [2, 2]
    assert one.index(pl.Series(times)).tolist() == [2, 2]
    assert one.index(pa.array(times)).tolist() == [2, 2]
    assert one.bound(times[0]) == 2
    assert one.key(2) == times[0]
    months = Datetime("2026-01-31", "2026-06-30", "1mo")
    assert [str(edge)[:10] for edge in months.edges] == [
        *("2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30", "2026-05-31", "2026-06-30")
    ]


@pytest.mark.parametrize(
    "column",
    [
        [dt.datetime(2026, 1, 2), None],
        np.array(["2026-01-02", "NaT"], dtype="datetime64[D]"),
        np.array(["2026-01-02", "NaT"], dtype="datetime64[ns]"),
        pd.Series([pd.Timestamp("2026-01-02"), pd.NaT]),
        pd.Series(["2026-01-02", None]),
        pd.Series(["2026-01-02", pd.NA], dtype=object),
        np.array(["2026-01-02", float("nan")], dtype=object),
        pl.Series([dt.datetime(2026, 1, 2), None]),
        pl.Series([dt.date(2026, 1, 2), None]),
        pa.array([dt.datetime(2026, 1, 2), None]),
        pa.chunked_array([pa.array([dt.date(2026, 1, 2)]), pa.array([None], pa.date32())]),
    ],
    ids=lambda column: type(column).__module__ + str(getattr(column, "dtype", "")),
)
def test_missing_times_have_no_bin(column: Any) -> None:
    one = Datetime("2026-01-01", "2026-01-04", "1d")
    assert one.index(column).tolist() == [2, -1]
    # Nor do they where zero is a bin.
    old = Datetime("1970-01-01", "2030-01-01", "1mo")
    assert old.index(column).tolist()[1] == -1


def test_times_with_and_without_a_zone_do_not_mix() -> None:
    naive, aware = dt.datetime(2026, 1, 2), dt.datetime(2026, 1, 2, tzinfo=UTC)
    without, within = Datetime("2026-01-01", "2026-01-04", "1d"), Datetime("2026-01-01", "2026-01-04", "1d", tz="UTC")
    for one, wrong in [(without, aware), (within, naive)]:
        for column in [[wrong], pd.Series([wrong]), pl.Series([wrong]), pa.array([wrong]), [naive, aware]]:
            with pytest.raises(ValueError, match="time zone"):
                one.index(column)
    with pytest.raises(ValueError, match="time zone"):
        without.bound(aware)
    # As the edges were given: a reading of the clocks there.
    assert within.bound(naive) == within.bound(naive.replace(tzinfo=UTC)) == 2
    for junk in [[5], [1.5], [b"2026-01-01"], [True]]:
        with pytest.raises(TypeError):
            without.index(junk)
    assert without.index(["soon"]).tolist() == [-1]


def test_categories() -> None:
    category = StrCategory(["b", "a"])
    assert category.index(["a", "b", "c", None, math.nan, pd.NA, ""]).tolist() == [1, 0, 2, -1, -1, -1, 2]
    assert StrCategory(["b", "a"], overflow=False).index(["a", "c", None]).tolist() == [1, -1, -1]
    for column in [pd.Categorical(["a", "z"]), pd.Series(["a", "z"], dtype="category"), np.array(["a", "z"])]:
        assert category.index(column).tolist() == [1, 2]
    for column in [pl.Series(["a", "z"], dtype=pl.Categorical), pa.array(["a", "z"]).dictionary_encode()]:
        assert category.index(column).tolist() == [1, 2]
    for junk in [[1], [b"a"], [True], [["a"]], [1.5]]:
        with pytest.raises(TypeError, match="takes text"):
            category.index(junk)
    assert (category.interval("a"), category.interval(None), category.interval((None, None))) == (
        (1, 2),
        (0, 3),
        (0, 3),
    )
    assert [category.key(place) for place in range(3)] == ["b", "a", None]
    assert [category.label(place) for place in range(3)] == ["b", "a", "others"]
    with pytest.raises(ValueError, match=r"has no category 'c'; it has 'b', 'a'"):
        category.interval("c")
    with pytest.raises(ValueError, match=r"'c0', .*'c7' and 92 more"):
        StrCategory([f"c{number}" for number in range(100)]).bound("x")
    for pair in [("a", "b"), ("a",), 5, ["a"], ("a", None)]:
        with pytest.raises(TypeError, match="takes one category, or None for all"):
            category.interval(pair)
    with pytest.raises(ValueError, match="no category"):
        category.bound(["a"])
    with pytest.raises(ValueError, match="must differ"):
        StrCategory(["a", "b", "a"])
    # What ends when it is read, or has no order of its own, is no list.
    wrong: Any
    for wrong in ["ab", [1], ["a", None], [], 5, None, [b"a"], (c for c in "ab"), {"a": 1}, {"a"}]:
        with pytest.raises(TypeError, match="categories must be a list of text"):
            StrCategory(wrong)
    for text in ["\ud800", "a\udfff"]:
        with pytest.raises(ValueError, match="categories must have a UTF-8 form; the one at position 1 has none"):
            StrCategory(["a", text])
        with pytest.raises(ValueError, match="the name of an axis must have a UTF-8 form"):
            StrCategory(["a"], name=text)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Regular(0, 0, 1),
        lambda: Regular(-1, 0, 1),
        lambda: Regular(10, 1, 0),
        lambda: Regular(10, 1, 1),
        lambda: Regular(10, 0, math.inf),
        lambda: Regular(10, math.nan, 1),
        lambda: Regular(10, -1.7e308, 1.7e308),
        lambda: Regular(2**60, 0, 1),
        lambda: Regular(3, 1, math.nextafter(1, 2)),
        lambda: Regular(10, 1e16, 1e16 + 20),
        lambda: Regular(10, 0, 5e-324),
        lambda: Variable([1]),
        lambda: Variable([]),
        lambda: Variable([1, 1]),
        lambda: Variable([2, 1]),
        lambda: Variable([0, math.nan]),
        lambda: Variable([0, math.inf]),
        lambda: Variable([[0, 1]]),
        lambda: Variable(5),
        lambda: Integer(1, 1),
        lambda: Integer(2, 1),
        lambda: Integer(0, 2**63),
        lambda: Datetime("2026-01-02", "2026-01-01", "1d"),
        lambda: Datetime("2026-01-01", "2026-01-02", "0d"),
        lambda: Datetime("2026-01-01", "2026-01-02", "1d", tz="Nowhere"),
    ],
)
def test_bins_that_are_none_are_refused(make: Callable[[], Axis]) -> None:
    with pytest.raises(ValueError):
        make()


def test_parameters_of_the_wrong_type_are_refused() -> None:
    wrong: list[Callable[[], Any]] = [
        lambda: Regular(2.5, 0, 1),  # type: ignore[arg-type]
        lambda: Integer(0.0, 5),  # type: ignore[arg-type]
        lambda: Regular(2, 0, 1, name=5),  # type: ignore[arg-type]
        lambda: Regular(2, 0, 1, overflow="no"),  # type: ignore[arg-type]
        lambda: Integer(0, 2, underflow=5),  # type: ignore[arg-type]
        lambda: Regular(2, 0, 1, "x"),  # type: ignore[call-arg]
        lambda: Datetime(5, 6, "1d"),
        lambda: Axis(1, None, True, True),  # type: ignore[abstract]
    ]
    for make in wrong:
        with pytest.raises(TypeError):
            make()


@pytest.mark.parametrize("name", ALL_AXES)
def test_axes_are_plain_values(name: str) -> None:
    make = ALL_AXES[name]
    variants: list[dict[str, Any]] = [
        {},
        {"name": "x"},
        {"name": "y'\""},
        {"overflow": False},
        {"name": "x", "overflow": False},
    ]
    if name != "StrCategory":
        variants.append({"underflow": False})
    if name.startswith("Datetime") and "datetimes" not in name:
        variants.append({"tz": "America/New_York"})
    axes = [make(**variant) for variant in variants]
    namespace = {**vars(axes_module), "datetime": dt}
    for one, variant in zip(axes, variants, strict=True):
        same = make(**variant)
        for other in [
            same,
            copy.copy(one),
            copy.deepcopy(one),
            *(pickle.loads(pickle.dumps(one, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
            eval(repr(one), dict(namespace)),
        ]:
            assert other == one and hash(other) == hash(one) and repr(other) == repr(one) and other is not one
            assert (other.extent, other.name) == (one.extent, one.name)
            assert other.index(inner_edges(one)).tolist() == one.index(inner_edges(one)).tolist()
    assert len(set(axes)) == len(axes)
    assert all(one != other for place, one in enumerate(axes) for other in axes[:place])
    assert axes[0] not in ("x", None, 5)


def test_axes_of_different_classes_and_bins_differ() -> None:
    all_different = [
        *(Regular(10, 0, 1), Regular(11, 0, 1), Regular(10, 0, 2), Regular(10, -1, 1), Integer(0, 10), Integer(0, 11)),
        *(Variable([0, 1]), Variable([0, 2]), Regular(1, 0, 1), Integer(0, 1), StrCategory(["a"]), StrCategory(["b"])),
        *(Datetime("2026-01-01", "2026-01-02", every) for every in ("1h", "2h")),
    ]
    assert len(set(all_different)) == len(all_different)
    assert Variable([0.0, 1]) == Variable(np.array([-0.0, 1], dtype=np.float32))
    assert hash(Variable([0.0, 1])) == hash(Variable([-0.0, 1]))


@pytest.mark.parametrize("name", ALL_AXES)
def test_an_axis_cannot_be_changed(name: str) -> None:
    one = ALL_AXES[name](name="x")
    for attribute in list(vars(one)):
        with pytest.raises(AttributeError, match="cannot be changed"):
            setattr(one, attribute, 5)
        with pytest.raises(AttributeError, match="cannot be changed"):
            delattr(one, attribute)
    for attribute in ["edges", "extent", "inner"]:
        with pytest.raises(AttributeError):
            setattr(one, attribute, 5)
    assert one == ALL_AXES[name](name="x")


def test_the_edges_of_a_variable_axis_cannot_be_changed() -> None:
    edges = np.array([0.0, 1.0, 2.0])
    variable = Variable(edges)
    edges[1] = 1.5
    assert variable.edges.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        variable.edges[0] = 5


def test_messages_name_the_axis() -> None:
    with pytest.raises(TypeError, match="the axis 'price' takes numbers"):
        Regular(10, 0, 1, name="price").index(["1"])
    with pytest.raises(ValueError, match="the axis 'price' has no edge"):
        Regular(10, 0, 1, name="price").bound(0.55)


def test_masked_elements_have_no_bin() -> None:
    masked: Any = np.ma.array([1, 2, 3], mask=[False, True, False])
    assert Integer(0, 5).index(masked).tolist() == [2, -1, 4]
    assert Regular(5, 0, 5).index(masked).tolist() == [2, -1, 4]


def test_text_that_is_no_time_has_no_bin_and_leaves_the_others_theirs() -> None:
    days = Datetime("2026-01-01", "2026-01-08", "1d")
    assert days.index(["2026-01-02", "junk", None, "2026-01-30"]).tolist() == [2, -1, -1, 8]
    with pytest.raises(ValueError, match="has a time zone"):
        days.index(["2026-01-02T00:00Z"])


def test_large_integers_beside_an_underflow_stay_integers() -> None:
    from fastgame._ranges import values  # noqa: PLC0415

    assert values((Integer(2**60, 2**60 + 9),), [0, 2], [2]).tolist() == [-math.inf, 2**60 + 1]


@pytest.mark.parametrize("odd", [math.nan, 1.5, math.inf, 2**63, np.uint64(3), np.float32(3), None, 2**70, -(2**70)])
def test_an_odd_element_of_a_list_leaves_the_places_of_the_others(odd: Any) -> None:
    # In an array of one type all would become floats, and large integers their neighbours.
    large = 2**60 + 1
    for base in ([large] * 3, (large, large, large), np.array([large] * 3, dtype=object)):
        integer = Integer(0, 2**61)
        alone = integer.index(base).tolist()
        assert alone == [large + 1] * 3
        for place in (0, 3):
            mixed = [*base[:place], odd, *base[place:]]
            for form in (mixed, np.array(mixed, dtype=object)):
                found = integer.index(form).tolist()
                del found[place]
                assert found == alone


def test_a_fine_time_in_a_list_leaves_the_others_theirs() -> None:
    days = Datetime("2026-01-01", "2026-01-08", "1d")
    far, fine = np.datetime64("9999-12-31"), np.datetime64("2026-01-02T03", "ns")
    assert days.index([far, fine]).tolist() == [8, 2]
    assert days.ticks.instants([far, fine])[0].tolist()[1] == fine.astype("datetime64[us]").astype(np.int64)
    assert Ticks("2026-01-01", "9999-12-31", "1y").step([np.datetime64("9000-01-01"), fine]).tolist() == [6975, 1]


def test_a_tuple_is_never_rows() -> None:
    from fastgame._ranges import points  # noqa: PLC0415

    axes = (Integer(0, 9), Integer(0, 9))
    for rows in (((1, 2), (3, 4)), ((1, 2), (3, 4), (5, 6)), ([1, 2], [3, 4], [5, 6])):
        with pytest.raises(ValueError, match="give points as a list of rows"):
            points(axes, rows, False)
    assert points(axes, [(1, 2), (3, 4)], False).tolist() == [[2, 3], [4, 5]]
    assert points(axes, ([1, 3], [2, 4]), False).tolist() == [[2, 3], [4, 5]]
    with pytest.raises(TypeError, match="must have 2 values each"):
        points(axes, {"a": [1, 2], "b": [3, 4]}.values(), False)


NAIVE, AWARE = dt.datetime(2026, 1, 1, 21, 30), dt.datetime(2026, 1, 1, 21, 30, tzinfo=UTC)
ODD: list[Any] = [
    None, math.nan, math.inf, -math.inf, 0, 1, 2, 3.0, 2.5, -1, 2**60, 2**60 + 1, 2.0**53, 2.0**53 - 1, 2**70,
    10**400, True, False, np.True_, np.int8(3), np.uint64(2**63), np.float32(2.0**24), np.float32(2.0**24 - 1),
    np.float16(2048), np.float16(2047), np.longdouble(2) ** 60, 1j, b"a", "a", "b", "z", "1", "", "2026-01-01",
    "2026-01-02T03:00", "2026-01-02T03:00Z", "2026-13-01", dt.date(2026, 1, 1), NAIVE, AWARE, dt.timedelta(1),
    np.datetime64("2026-01-02"), np.datetime64("NaT"), np.datetime64("9999-12-31"),
    np.datetime64("2026-01-03T00:00:00.000000001"), np.timedelta64(1), pd.Timestamp("2026-01-02"),
    pd.Timestamp("2026-01-02", tz="UTC"), pd.NaT, pd.NA, Decimal(2), Fraction(1, 2), [1], [1, 2], (1,), {"a": 1}, {1},
    object(), np.array([1, 2]), pa.scalar(2), pa.scalar(None), pa.scalar("a"),
]  # fmt: skip
EVERY: dict[str, Axis] = {
    "Regular": Regular(4, 0, 4),
    "Variable": Variable([0, 1, 2**60], overflow=False),
    "Integer": Integer(0, 2**61),
    "Integer at 2^53": Integer(2**53 - 2, 2**53 + 2, underflow=False, overflow=False),
    "Datetime": Datetime("2026-01-01", "2026-01-08", "1d"),
    "Datetime in a zone": Datetime("2026-01-01", "2026-01-08", "1d", tz="UTC", overflow=False),
    "StrCategory": StrCategory(["a", "b"]),
    "StrCategory alone": StrCategory(["a", "b"], overflow=False),
}
EACH_AXIS = pytest.mark.parametrize("name", EVERY)


def objects(values: list[Any]) -> Any:
    made = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        made[place] = value
    return made


@EACH_AXIS
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.data())
def test_the_places_of_a_list_are_those_of_its_elements(name: str, data: Any) -> None:
    one = EVERY[name]
    values = [ODD[number] for number in data.draw(st.lists(st.integers(0, len(ODD) - 1), min_size=1, max_size=8))]
    alone = [one.index([value], invalid="drop").tolist() for value in values]
    assert all(len(places) == 1 for places in alone)
    for form in (values, tuple(values), objects(values), pd.Series(objects(values), dtype=object)):
        assert one.index(form, invalid="drop").tolist() == [place for (place,) in alone]
    wrong = []
    for position, value in enumerate(values):
        try:
            assert one.index([value]).tolist() == alone[position]
        except (TypeError, ValueError):
            assert alone[position] == [-1]
            wrong.append(position)
    for form in (values, objects(values)):
        if wrong:
            with pytest.raises((TypeError, ValueError), match=f"at position {wrong[0]}$"):
                one.index(form)
        else:
            assert one.index(form).tolist() == [place for (place,) in alone]


@pytest.mark.parametrize(
    ("name", "values", "places"),
    [
        ("Datetime", [dt.date(2026, 1, 1), NAIVE, "2026-01-01"], [1, 1, 1]),
        ("Datetime", [AWARE, NAIVE, "2026-01-02T00:00Z", NAIVE], [-1, 1, -1, 1]),
        ("Datetime", ["2026-01-01", NAIVE, np.datetime64("2026-01-03"), 5, True, "soon"], [1, 1, 3, -1, -1, -1]),
        ("Datetime in a zone", [NAIVE, AWARE, "2026-01-02", "2026-01-02T00:00Z"], [-1, 1, -1, 2]),
        ("Integer", [2**60 + 1, 0.5], [2**60 + 2, -1]),
        ("Integer", [1, "x", 2.5, 3.0, None, True], [2, -1, -1, 4, -1, -1]),
        ("Integer", [2.0**53, 2.0**53 - 1, np.float32(2**24), np.float16(2048)], [-1, 2**53, -1, -1]),
        ("Integer", [math.inf, -math.inf, math.nan], [2**61 + 1, 0, -1]),
        ("Regular", [1, "x", 2.5, Decimal(1), 10**400], [2, -1, 3, -1, 5]),
        ("StrCategory", ["a", 5, None, "z", b"b", "b"], [0, -1, -1, 2, -1, 1]),
    ],
)  # fmt: skip
def test_an_element_that_is_no_value_is_left_out_alone(name: str, values: list[Any], places: list[int]) -> None:
    one = EVERY[name]
    assert one.index(values, invalid="drop").tolist() == places
    from fastgame import RangeCounter, Zcdp  # noqa: PLC0415

    named = copy.copy(one)
    named.__dict__["name"] = "x"
    given: dict[str, Any] = {"horizon": 1, "privacy": Zcdp(1e6), "width": 64, "insecure_seed": 1}
    left_out = sum(place < 0 for place in places)
    for column in (values, objects(values)):
        counter = RangeCounter(axes=[one], invalid="drop", **given)
        counter.update(column)
        two = RangeCounter(axes=[one, Regular(2, 0, 2, name="y")], invalid="drop", **given)
        two.update((column, [1] * len(column)))
        rows = RangeCounter(axes=[one, Regular(2, 0, 2, name="y")], invalid="drop", **given)
        rows.update([(value, 1) for value in column])
        table = RangeCounter(axes=[named, Regular(2, 0, 2, name="y")], invalid="drop", **given)
        table.update({"x": column, "y": [1.0] * len(column)})
        assert [each.dropped for each in (counter, two, rows, table)] == [left_out] * 4
        total = counter.grid(1).value.sum()
        assert total == pytest.approx(sum(one.inner[0] <= place < one.inner[1] for place in places), abs=0.5)
        strict = RangeCounter(axes=[one], **given)
        if left_out:
            with pytest.raises((TypeError, ValueError), match=r"at position \d"):
                strict.update(column)
        else:
            strict.update(column)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("filled", [False, True])
def test_a_column_of_a_wrong_type_stays_an_error(name: str, filled: bool) -> None:
    one = EVERY[name]
    gap = [] if filled else [None]
    columns: list[Any] = [pa.array([True, *gap]), pa.array([Decimal("1.5"), *gap]), pa.array([b"a", *gap])]
    if name.startswith(("Regular", "Variable", "Integer")):
        columns += [
            pa.array(["1", *gap]),
            pl.Series(["1", *gap]),
            pd.Series(["1", *gap], dtype="string"),
            np.array(["1"]),
        ]
        columns += [pa.array([NAIVE, *gap]), np.array([NAIVE], dtype="datetime64[us]")]
    else:
        columns += [pa.array([1, *gap]), pl.Series([1.5, *gap]), pd.Series([1, *gap], dtype="Int64"), np.array([1])]
    for column in columns:
        for invalid in ("raise", "drop"):
            with pytest.raises((TypeError, ValueError)):
                one.index(column, invalid=invalid)


@pytest.mark.parametrize(("kind", "bits"), [("float16", 11), ("float32", 24), ("float64", 53)])
def test_large_floats_are_no_integers_with_and_without_nulls(kind: str, bits: int) -> None:
    integer = Integer(0, 2**60)
    values = [2.0**bits, -(2.0**bits), 2.0**bits - 1, math.inf, 0.5]
    typed = np.array(values, dtype=kind)
    places = [-1, -1, 2**bits, integer.extent - 1, -1]
    assert integer.index(typed).tolist() == integer.index(list(typed)).tolist() == places
    arrow = pa.array(typed)
    with_null = pa.concat_arrays([arrow, pa.nulls(1, arrow.type)])
    assert integer.index(arrow).tolist() == places
    assert integer.index(with_null).tolist() == [*places, -1]
    assert integer.index(pa.chunked_array([arrow, with_null])).tolist() == [*places, *places, -1]
    if kind != "float16":
        assert integer.index(pl.Series(with_null)).tolist() == [*places, -1]
        assert integer.index(pd.Series(with_null, dtype=pd.ArrowDtype(arrow.type))).tolist() == [*places, -1]
        nullable = pd.Series([*typed, pd.NA], dtype=kind.capitalize())
        assert integer.index(nullable).tolist() == [*places, -1]


def test_columns_of_nothing_have_no_bins() -> None:
    for one in EVERY.values():
        for column in ([None, None], pa.nulls(2), pl.Series([None, None]), pd.Series([None, None], dtype=object)):
            assert one.index(column).tolist() == [-1, -1], (one, column)


def test_what_becomes_of_invalid_elements_is_raise_or_drop() -> None:
    for given_word, error in (("keep", ValueError), (None, TypeError), (True, TypeError)):
        with pytest.raises(error, match="invalid must be"):
            Integer(0, 3).index([1], invalid=given_word)  # type: ignore[arg-type]
