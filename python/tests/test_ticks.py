"""Ticks: durations, calendars, time zones, and that steps agree with a calendar that is stepped by hand."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import Integers
from hypothesis import given, settings
from hypothesis import strategies as st

from fastgame import Ticks

UTC = dt.timezone.utc
MICROSECOND = dt.timedelta(microseconds=1)
NEW_YORK = "America/New_York"
#: New York has hours, Lord Howe half hours; Sao Paulo and Beirut have days without a midnight, Apia lacks a whole day.
ZONES = [None, NEW_YORK, "America/Sao_Paulo", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Apia", "UTC"]


def lengths(ticks: Ticks) -> list[dt.timedelta]:
    """How long each step is."""
    ends = [ticks.start, *(ticks.time(step) for step in range(1, ticks.horizon + 1))]
    absolute = [end if end.tzinfo is None else end.astimezone(UTC) for end in ends]
    return [after - before for before, after in itertools.pairwise(absolute)]


def hours(ticks: Ticks) -> list[float]:
    return [length / dt.timedelta(hours=1) for length in lengths(ticks)]


def next_month(day: dt.datetime, months: int) -> dt.datetime:
    """So many months later, on the last of the month where it has no such day; one month at a time."""
    year, month = day.year, day.month
    for _ in range(months):
        year, month = (year + 1, 1) if month == 12 else (year, month + 1)
    for number in range(day.day, 0, -1):
        try:
            return day.replace(year=year, month=month, day=number)
        except ValueError:
            continue
    raise AssertionError


def to_utc(local: dt.datetime, zone: str | None) -> dt.datetime:
    """A reading of the clocks as a moment; without a zone as it is."""
    return local if zone is None else local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).replace(tzinfo=None)


def edges(start: dt.datetime, end: dt.datetime, every: dict[str, int], zone: str | None) -> list[dt.datetime]:
    """Where steps begin and end, in UTC, by adding one length after the other."""
    first, last = to_utc(start, zone), to_utc(end, zone)
    found = [first]
    for step in range(1, 10_000):
        local = next_month(start, step * every["months"]) + dt.timedelta(days=step * every["days"])
        found.append(min(to_utc(local, zone) + step * dt.timedelta(hours=every["hours"]), last))
        if found[-1] == last:
            return found
    raise AssertionError


@pytest.mark.parametrize(
    ("every", "length"),
    [
        ("1h", dt.timedelta(hours=1)),
        ("1d", dt.timedelta(days=1)),
        ("1w", dt.timedelta(days=7)),
        ("15m", dt.timedelta(minutes=15)),
        ("15min", dt.timedelta(minutes=15)),
        ("90s", dt.timedelta(seconds=90)),
        ("1ms", dt.timedelta(milliseconds=1)),
        ("1us", MICROSECOND),
        ("1d12h", dt.timedelta(days=1, hours=12)),
        ("1h1h", dt.timedelta(hours=2)),
        (dt.timedelta(hours=5), dt.timedelta(hours=5)),
        (pd.Timedelta("5h"), dt.timedelta(hours=5)),
        (np.timedelta64(5, "h"), dt.timedelta(hours=5)),
        (np.timedelta64(2, "D"), dt.timedelta(days=2)),
        (np.timedelta64(1, "W"), dt.timedelta(days=7)),
        (np.timedelta64(3_600_000_000_000, "ns"), dt.timedelta(hours=1)),
        (np.timedelta64(1, ("s", 25)), dt.timedelta(seconds=25)),
    ],
)
def test_a_step_has_the_length_that_is_asked_for(every: Any, length: dt.timedelta) -> None:
    ticks = Ticks("2026-01-01", "2026-03-01", every)
    assert ticks.time(1) - ticks.start == length
    assert ticks.horizon == -(-dt.timedelta(days=59) // length)


@pytest.mark.parametrize(("every", "steps"), [("1mo", 24), ("1q", 8), ("1y", 2), ("5mo", 5), ("1y6mo", 2), ("3y", 1)])
def test_months_quarters_and_years_follow_the_calendar(every: str, steps: int) -> None:
    ticks = Ticks("2023-01-01", "2025-01-01", every)
    assert ticks.horizon == steps
    assert ticks.time(steps) == dt.datetime(2025, 1, 1)


def test_months_from_the_31st_end_on_their_last_day_and_do_not_drift() -> None:
    ticks = Ticks("2023-12-31", "2024-06-30", "1mo")
    assert [ticks.time(step).date().isoformat()[5:] for step in range(1, ticks.horizon + 1)] == [
        "01-31",
        "02-29",
        "03-31",
        "04-30",
        "05-31",
        "06-30",
    ]


def test_a_year_from_the_29th_of_february_ends_on_the_28th_but_in_leap_years() -> None:
    ticks = Ticks("2096-02-29", "2105-01-01", "1y")  # 2100 is none
    days = [ticks.time(step).date().isoformat() for step in range(1, ticks.horizon)]
    assert days == [f"{year}-02-{'29' if year == 2104 else '28'}" for year in range(2097, 2105)]


def test_days_have_23_and_25_hours_when_clocks_change() -> None:
    assert hours(Ticks("2026-03-07", "2026-03-10", "1d", tz=NEW_YORK)) == [24, 23, 24]
    assert hours(Ticks("2026-10-31", "2026-11-03", "1d", tz=NEW_YORK)) == [24, 25, 24]
    assert hours(Ticks("2026-04-04", "2026-04-07", "1d", tz="Australia/Lord_Howe")) == [24, 24.5, 24]


def test_hours_are_absolute_when_clocks_change() -> None:
    spring = Ticks("2026-03-08", "2026-03-09", "1h", tz=NEW_YORK)
    autumn = Ticks("2026-11-01", "2026-11-02", "1h", tz=NEW_YORK)
    assert (spring.horizon, autumn.horizon) == (23, 25)
    assert set(hours(spring)) == set(hours(autumn)) == {1.0}
    assert spring.time(2).isoformat() == "2026-03-08T03:00:00-04:00"
    assert [autumn.time(step).isoformat()[11:] for step in (1, 2, 3)] == [
        "01:00:00-04:00",
        "01:00:00-05:00",
        "02:00:00-05:00",
    ]


def test_a_day_without_a_midnight_begins_when_the_clocks_have_changed() -> None:
    ticks = Ticks("2017-10-14", "2017-10-17", "1d", tz="America/Sao_Paulo")
    assert hours(ticks) == [24, 23, 24]
    assert ticks.time(1).isoformat() == "2017-10-15T01:00:00-02:00"
    assert ticks.step(["2017-10-14T23:59:59.999999-03:00", "2017-10-15T01:00:00-02:00"]).tolist() == [1, 2]


def test_a_day_with_two_midnights_begins_at_the_first() -> None:
    ticks = Ticks("2025-11-01", "2025-11-04", "1d", tz="America/Havana")
    assert hours(ticks) == [24, 25, 24]
    assert ticks.time(1).isoformat() == "2025-11-02T00:00:00-04:00"


def test_a_day_that_a_zone_skips_is_a_step_of_no_length() -> None:
    ticks = Ticks("2011-12-29", "2012-01-01", "1d", tz="Pacific/Apia")
    assert hours(ticks) == [24, 0, 24]
    assert ticks.step(["2011-12-29T23:59-10:00", "2011-12-31T00:00+14:00"]).tolist() == [1, 3]


def test_a_start_that_no_clock_shows_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no clock shows 2017-10-15T00:00:00 in America/Sao_Paulo"):
        Ticks("2017-10-15", "2018-01-01", "1d", tz="America/Sao_Paulo")


def test_a_start_that_clocks_show_twice_is_the_earlier_one_unless_it_says_so() -> None:
    assert hours(Ticks("2026-11-01T01:30", "2026-11-01T03:00", "1h", tz=NEW_YORK)) == [1, 1, 0.5]
    assert hours(Ticks("2026-11-01T01:30-05:00", "2026-11-01T03:00", "1h", tz=NEW_YORK)) == [1, 0.5]


def test_under_a_fixed_offset_all_days_have_24_hours() -> None:
    ticks = Ticks("2026-01-01T00:00-05:00", "2027-01-01T00:00-05:00", "1d")
    assert set(hours(ticks)) == {24.0}
    assert ticks.time(1).isoformat() == "2026-01-02T00:00:00-05:00"
    assert ticks.step("2026-01-02T04:59:59.999999Z") == 1
    assert ticks.step("2026-01-02T05:00Z") == 2


def test_the_last_step_is_cut_short_where_the_end_is_on_no_edge() -> None:
    assert hours(Ticks("2026-01-01", "2026-01-01T02:30", "1h")) == [1, 1, 0.5]
    assert hours(Ticks("2026-01-01", "2026-01-01T00:30", "1y")) == [0.5]
    assert hours(Ticks("2026-03-07", "2026-03-08T12:00", "1d", tz=NEW_YORK)) == [24, 11]


@given(data=st.data())
@settings(max_examples=250, deadline=None)
def test_step_and_time_agree_with_a_calendar_stepped_by_hand(data: st.DataObject) -> None:
    zone = data.draw(st.sampled_from(ZONES))
    # Around the changes of clocks of all these zones.
    start = dt.datetime(2011, 12, 25) + dt.timedelta(minutes=30 * data.draw(st.integers(0, 48 * 2500)))
    if zone is not None:
        moment = start.replace(tzinfo=UTC).astimezone(ZoneInfo(zone))
        start = moment.replace(tzinfo=None)
    every = data.draw(
        st.fixed_dictionaries({"months": st.integers(0, 4), "days": st.integers(0, 3), "hours": st.integers(0, 30)})
    )
    if not any(every.values()):
        every["hours"] = 1
    steps = data.draw(st.integers(1, 40))
    end = next_month(start, steps * every["months"]) + steps * dt.timedelta(days=every["days"], hours=every["hours"])
    end += dt.timedelta(minutes=data.draw(st.integers(0, 300)))
    if zone is not None:
        end = end.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    if to_utc(end, zone) <= to_utc(start, zone):
        return
    duration = f"{every['months']}mo{every['days']}d{every['hours']}h"
    expected = edges(start, end, every, zone)
    ticks = Ticks(start, end, duration, tz=zone)
    assert ticks.horizon == len(expected) - 1
    numbers = np.arange(1, ticks.horizon + 1)
    assert ticks.time(numbers).tolist() == expected[1:]
    assert [to_utc_of(ticks.time(int(step))) for step in numbers] == expected[1:]
    # The first and the last microsecond of each step, and some moment in it.
    for step, (begin, stop) in enumerate(itertools.pairwise(expected), start=1):
        if begin == stop:
            continue
        inside = begin + data.draw(st.floats(0, 1, exclude_max=True)) * (stop - begin)
        for moment in (begin, min(inside, stop - MICROSECOND), stop - MICROSECOND):
            assert ticks.step(moment if zone is None else moment.replace(tzinfo=UTC)) == step
            assert ticks.step(np.array([moment], "datetime64[us]")).tolist() == [step]


def to_utc_of(time: dt.datetime) -> dt.datetime:
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


@pytest.mark.parametrize("zone", [None, NEW_YORK, "UTC"])
@pytest.mark.parametrize("every", ["1us", "7s", "1h", "1d", "1mo", "1y"])
def test_a_step_that_ends_now_is_over_and_the_next_has_begun(zone: str | None, every: str) -> None:
    ticks = Ticks("2001-02-03T04:05:06.000007", "2099-01-01", every, tz=zone)
    steps = np.unique(np.linspace(1, ticks.horizon - 1, 50).astype(np.int64))
    ends = ticks.time(steps)
    assert ticks.step(ends).tolist() == (steps + 1).tolist()
    assert ticks.step(ends - np.timedelta64(1, "us")).tolist() == steps.tolist()


def test_times_outside_are_refused_and_named() -> None:
    ticks = Ticks("2026-01-01", "2026-02-01", "1d")
    inside = ["2026-01-01", "2026-01-31T23:59:59.999999"]
    assert ticks.step(inside).tolist() == [1, 31]
    for time in ("2025-12-31T23:59:59.999999", "2026-02-01"):
        with pytest.raises(
            ValueError, match=r"from 2026-01-01T00:00:00 on and before 2026-02-01T00:00:00; 202.* given"
        ):
            ticks.step(time)
    with pytest.raises(ValueError, match="at position 2"):
        ticks.step([*inside, "2026-02-01"])


@pytest.mark.parametrize(
    "far",
    [
        np.array([2**55], "datetime64[s]"),
        np.array([-(2**55)], "datetime64[s]"),
        np.array([2**61], "datetime64[h]"),
        np.array([2**40], "datetime64[Y]"),
        np.array([2**63 - 1], "datetime64[us]"),
        np.array([-(2**63) + 1], "datetime64[us]"),
        np.array("2025-12-31", "datetime64[us]"),
        np.datetime64(2**62, "s"),
        "0001-01-01T00:00+05:00",
        "9999-12-31T23:00-05:00",
    ],
)
@pytest.mark.parametrize("every", ["1h", "1mo"])
def test_times_far_away_are_outside_and_do_not_come_round_again(far: Any, every: str) -> None:
    ticks = Ticks("2026-01-01", "2026-02-01", every, tz="UTC" if isinstance(far, str) else None)
    with pytest.raises(ValueError, match="times must be"):
        ticks.step(far)


def test_a_clock_of_microseconds_over_all_years_stays_exact() -> None:
    ticks = Ticks("0001-01-01", "9999-12-31", "1us")
    assert ticks.horizon == (dt.datetime(9999, 12, 31) - dt.datetime(1, 1, 1)) // MICROSECOND
    assert ticks.step("9999-12-30T23:59:59.999999") == ticks.horizon
    assert ticks.time(ticks.horizon) == dt.datetime(9999, 12, 31)
    assert ticks.step("0001-01-01") == 1
    assert ticks.time(1) == dt.datetime(1, 1, 1, 0, 0, 0, 1)


@pytest.mark.parametrize("every", ["9223372036854775807us", "9223372036854775807d", "99999999999mo", "99999999999d"])
@pytest.mark.parametrize("zone", [None, NEW_YORK])
def test_a_step_longer_than_the_calendar_is_one_step(every: str, zone: str | None) -> None:
    ticks = Ticks("2026-01-01", "2027-01-01", every, tz=zone)
    assert ticks.horizon == 1
    assert ticks.step(np.array(["2026-12-31"], "datetime64[us]")).tolist() == [1]
    assert ticks.time(1) == ticks.end


PER_DAY = {unit: 86_400 * 10**power for unit, power in {"s": 0, "ms": 3, "us": 6, "ns": 9, "ps": 12}.items()}
PER_DAY.update({"m": 1440, "h": 24, "D": 1})


@pytest.mark.parametrize("unit", PER_DAY)
def test_datetime64_of_any_unit_is_rounded_down(unit: str) -> None:
    for days in (0, 1, -1, -30):  # also before 1970, where numpy rounds the other way
        ticks = Ticks("1969-01-01", "1971-01-01", "1d")
        time = np.array([days * PER_DAY[unit]]).view(f"datetime64[{unit}]")
        assert ticks.step(time).tolist() == [366 + days]
    if unit in ("ns", "ps"):
        last = np.array([-30 * PER_DAY[unit] - 1]).view(f"datetime64[{unit}]")
        assert Ticks("1969-01-01", "1971-01-01", "1d").step(last).tolist() == [335]


COLUMNS: dict[str, Any] = {
    "list of text": ["2026-01-01", "2026-01-02T12:00"],
    "list of datetimes": [dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2, 12)],
    "list of dates": [dt.date(2026, 1, 1), dt.date(2026, 1, 2)],
    "list of datetime64": [np.datetime64("2026-01-01"), np.datetime64("2026-01-02")],
    "list of Timestamps": [pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-02 12:00")],
    "array": np.array(["2026-01-01", "2026-01-02"], "datetime64[ns]"),
    "pandas": pd.Series(pd.to_datetime(["2026-01-01", "2026-01-02"])),
    "pandas text": pd.Series(["2026-01-01", "2026-01-02"]),
    "pandas index": pd.DatetimeIndex(["2026-01-01", "2026-01-02"]),
    "Polars": pl.Series([dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)]),
    "Polars dates": pl.Series([dt.date(2026, 1, 1), dt.date(2026, 1, 2)]),
    "Polars text": pl.Series(["2026-01-01", "2026-01-02"]),
    "pyarrow": pa.array([dt.datetime(2026, 1, 1), dt.datetime(2026, 1, 2)]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_all_libraries_are_taken(name: str) -> None:
    assert Ticks("2026-01-01", "2026-02-01", "1d").step(COLUMNS[name]).tolist() == [1, 2]


#: Two in the morning of New York, which is the day before in UTC-8.
AWARE: dict[str, Any] = {
    "text": ["2026-01-02T02:00-05:00"],
    "datetime": [dt.datetime(2026, 1, 2, 2, tzinfo=ZoneInfo(NEW_YORK))],
    "Timestamp": [pd.Timestamp("2026-01-02 02:00", tz=NEW_YORK)],
    "pandas": pd.Series(pd.to_datetime(["2026-01-02 02:00"])).dt.tz_localize(NEW_YORK),
    "pandas index": pd.DatetimeIndex(["2026-01-02 02:00"]).tz_localize(NEW_YORK),
    "Polars": pl.Series([dt.datetime(2026, 1, 2, 2)]).dt.replace_time_zone(NEW_YORK),
    "pyarrow": pa.array([dt.datetime(2026, 1, 2, 7)], pa.timestamp("us", NEW_YORK)),
    "chunked": pa.chunked_array([pa.array([dt.datetime(2026, 1, 2, 7)], pa.timestamp("us", "UTC"))]),
}


@pytest.mark.parametrize("name", AWARE)
def test_times_with_a_zone_fit_ticks_with_any_zone_and_none_without(name: str) -> None:
    for zone, step in ((NEW_YORK, 2), ("Europe/Copenhagen", 2), ("America/Los_Angeles", 1)):
        assert Ticks("2026-01-01", "2026-02-01", "1d", tz=zone).step(AWARE[name]).tolist() == [step]
    with pytest.raises(ValueError, match=r"has a time zone and the ticks have none: give them one with tz="):
        Ticks("2026-01-01", "2026-02-01", "1d").step(AWARE[name])


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in ("array", "list of datetime64")])
def test_times_without_a_zone_do_not_fit_ticks_with_one(name: str) -> None:
    with pytest.raises(ValueError, match="has no time zone and the ticks are in UTC"):
        Ticks("2026-01-01", "2026-02-01", "1d", tz="UTC").step(COLUMNS[name])


def test_arrays_of_datetime64_are_in_utc_where_the_ticks_have_a_zone() -> None:
    ticks = Ticks("2026-01-01", "2026-02-01", "1d", tz=NEW_YORK)
    assert ticks.step(np.array(["2026-01-02T04:59", "2026-01-02T05:00"], "datetime64[s]")).tolist() == [1, 2]
    with pytest.raises(ValueError, match="has no time zone"):
        ticks.step(np.datetime64("2026-01-02"))


@pytest.mark.parametrize(
    "missing",
    [[np.datetime64("NaT")], np.datetime64("NaT"), pd.NaT, [pd.NaT], pl.Series([dt.datetime(2026, 1, 1), None])],
)
def test_missing_times_are_refused(missing: Any) -> None:
    with pytest.raises(ValueError, match="NaT"):
        Ticks("2026-01-01", "2026-02-01", "1d").step(missing)
    for column in [None, [None], ["2026-01-01", None], np.array(["2026-01-01", math.nan], dtype=object)]:
        with pytest.raises(ValueError, match="must not be missing"):
            Ticks("2026-01-01", "2026-02-01", "1d").step(column)


def test_steps_have_the_shape_of_the_times() -> None:
    ticks = Ticks("2026-01-01", "2026-02-01", "1d")
    assert ticks.step("2026-01-02") == 2
    assert type(ticks.step("2026-01-02")) is int
    assert ticks.step([]).shape == (0,)
    assert ticks.step(np.empty((0, 3), "datetime64[us]")).shape == (0, 3)
    assert ticks.step([["2026-01-01", "2026-01-02"]]).tolist() == [[1, 2]]
    assert ticks.step(np.array("2026-01-02", "datetime64[us]")).shape == ()
    grid: Integers = np.array([[1, 2], [3, 31]])
    assert ticks.time(grid).shape == (2, 2)
    assert ticks.step(ticks.time(grid) - np.timedelta64(1, "us")).tolist() == grid.tolist()


@pytest.mark.parametrize("step", [0, -1, 32, 2**70, [0], [1, 32], np.array([2**64 - 1], np.uint64)])
def test_steps_out_of_range_are_refused(step: Any) -> None:
    with pytest.raises(ValueError, match=r"step must be from 1 to the horizon, 31; -?\d+ was given"):
        Ticks("2026-01-01", "2026-02-01", "1d").time(step)


@pytest.mark.parametrize("step", [1.0, "1", [1.0], None])
def test_steps_are_integers(step: Any) -> None:
    with pytest.raises(TypeError):
        Ticks("2026-01-01", "2026-02-01", "1d").time(step)


def test_a_zone_of_pandas_or_an_offset_of_any_name_is_taken() -> None:
    stamps = pd.Timestamp("2026-03-07", tz=NEW_YORK), pd.Timestamp("2026-03-10", tz=NEW_YORK)
    assert hours(Ticks(*stamps, "1d")) == [24, 23, 24]
    named = dt.timezone(dt.timedelta(hours=5, minutes=30), "office")
    assert Ticks("2026-01-01", "2026-02-01", "1d", tz=named).time(1).isoformat() == "2026-01-02T00:00:00+05:30"


def test_a_zone_of_pytz_is_that_of_the_database() -> None:
    pytz = pytest.importorskip("pytz")
    assert hours(Ticks("2026-03-07", "2026-03-10", "1d", tz=pytz.timezone(NEW_YORK))) == [24, 23, 24]


def test_equal_steps_are_equal_and_hash_alike() -> None:
    ticks = Ticks("2026-01-01", "2027-01-01", "1d")
    same = [
        Ticks(dt.date(2026, 1, 1), dt.datetime(2027, 1, 1), "24h"),
        Ticks(np.datetime64("2026-01-01"), pd.Timestamp("2027-01-01"), dt.timedelta(days=1)),
    ]
    others = [
        Ticks("2026-01-01", "2027-01-01", "1d", tz="UTC"),
        Ticks("2026-01-01", "2027-01-02", "1d"),
        Ticks("2026-01-01", "2027-01-01", "1w"),
        Ticks("2026-01-01T01:00", "2027-01-01", "1d"),
    ]
    assert all(ticks == other and hash(ticks) == hash(other) for other in same)
    assert not any(ticks == other for other in others)
    assert ticks != "2026-01-01"
    # A day of the calendar is no 24 hours.
    assert Ticks("2026-01-01", "2027-01-01", "1d", tz=NEW_YORK) != Ticks("2026-01-01", "2027-01-01", "24h", tz=NEW_YORK)


def test_repr_shows_the_call_and_the_number_of_steps() -> None:
    assert repr(Ticks("2026-01-01", "2027-01-01", "1d")) == "<Ticks('2026-01-01', '2027-01-01', '1d'): 365 steps>"
    shown = repr(Ticks("2026-01-01", "2027-01-01", "1w", tz=ZoneInfo(NEW_YORK)))
    assert shown == "<Ticks('2026-01-01', '2027-01-01', '1w', tz='America/New_York'): 53 steps>"


def test_start_end_and_zone_are_given_back() -> None:
    ticks = Ticks("2026-01-01", "2026-07-01", "1d", tz=NEW_YORK)
    assert str(ticks.tz) == NEW_YORK
    assert ticks.start.isoformat() == "2026-01-01T00:00:00-05:00"
    assert ticks.end.isoformat() == "2026-07-01T00:00:00-04:00"
    assert Ticks("2026-01-01", "2026-07-01", "1d").tz is None


@pytest.mark.parametrize(
    "every",
    [
        "",
        "1",
        "h",
        "1H",
        "1 h",
        "-1h",
        "0h",
        "1.5h",
        "1d-1h",
        "1fortnight",
        "١h",
        "1h ",
        "0mo0d",
        dt.timedelta(0),
        dt.timedelta(-1),
        np.timedelta64(0, "s"),
        np.timedelta64("NaT"),
        np.timedelta64(1, "M"),
        np.timedelta64(5),
        np.timedelta64(1, "ns"),
        np.timedelta64(-5, "D"),
        "9223372036854775808us",
    ],
)
def test_durations_that_cannot_be_read_are_refused(every: Any) -> None:
    with pytest.raises(ValueError, match=r"every must be .* was given"):
        Ticks("2026-01-01", "2027-01-01", every)


@pytest.mark.parametrize("every", [5, None, 1.0, dt.time(1), pd.NaT, ["1d"]])
def test_durations_of_another_type_are_refused(every: Any) -> None:
    with pytest.raises(TypeError, match=r'every must be a duration such as "15m".* was given'):
        Ticks("2026-01-01", "2027-01-01", every)


@pytest.mark.parametrize(
    "start",
    [
        "",
        "foo",
        "2026",
        "2026-01",
        "2026-13-01",
        "2026-01-32",
        "2025-02-29",
        "20260101",
        "2026-W01-1",
        "2026-01-01x00:00",
        "2026-01-01T25:00",
        "２０２６-01-01",
        pd.NaT,
        np.datetime64("NaT"),
    ],
)
def test_times_that_cannot_be_read_are_refused(start: Any) -> None:
    with pytest.raises(ValueError, match=r"start must be ISO text such as .* was given"):
        Ticks(start, "2027-01-01", "1d")


@pytest.mark.parametrize("start", [5, None, 1.0, dt.time(1), b"2026-01-01"])
def test_times_of_another_type_are_refused(start: Any) -> None:
    with pytest.raises(TypeError, match=r"start must be ISO text such as .* was given"):
        Ticks(start, "2027-01-01", "1d")


@pytest.mark.parametrize(
    ("start", "end", "zone", "message"),
    [
        (
            "2026-01-01",
            "2026-01-01",
            None,
            "end must be after start; start='2026-01-01' and end='2026-01-01' were given",
        ),
        ("2026-01-02", "2026-01-01", None, "end must be after start"),
        ("2026-01-01T00:00Z", "2026-01-02", None, "both have a time zone or both have none"),
        ("2026-01-01", "2026-01-02T00:00Z", None, "both have a time zone or both have none"),
        ("2026-01-01T00:00+01:00", "2026-01-02T00:00+02:00", None, r"two time zones, UTC\+01:00 and UTC\+02:00: name"),
        (
            "2026-01-01",
            "2026-01-02",
            "Mars/Base",
            "tz must be the name of a time zone, such as .*'Mars/Base' was given",
        ),
        ("2026-01-01", "2026-01-02", "", "tz must be the name"),
        ("2026-01-01", "2026-01-02", "../zone", "tz must be the name"),
        ("2026-01-01", "2026-01-02", "America", "tz must be the name"),
        ("2026-01-01", "9999-12-31T23:00", NEW_YORK, "in the years 1 to 9999"),
        ("0001-01-01", "2026-01-01", "Asia/Tokyo", "in the years 1 to 9999"),
    ],
)
def test_an_impossible_clock_is_refused(start: str, end: str, zone: str | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ticks(start, end, "1d", tz=zone)


def test_a_zone_is_a_name_or_a_tzinfo() -> None:
    with pytest.raises(TypeError, match="tz must be the name of a time zone or a tzinfo; int was given"):
        Ticks("2026-01-01", "2026-01-02", "1d", tz=5)
