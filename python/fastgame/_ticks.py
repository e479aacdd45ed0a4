"""Wall-clock time to public steps."""

from __future__ import annotations

import datetime as dt
import math
import re
from bisect import bisect_left
from functools import cached_property
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from fastgame._arguments import array_of, integer, plain, shown, sized

__all__ = ["Ticks"]

Microseconds = npt.NDArray[np.int64]

_SECOND = 1_000_000
_HOUR = 3600 * _SECOND
_DAY = 24 * _HOUR
_EPOCH = dt.datetime(1970, 1, 1)

#: What one of each unit is in months, days and microseconds.
_UNITS = {
    "us": (0, 0, 1),
    "ms": (0, 0, 1000),
    "s": (0, 0, _SECOND),
    "m": (0, 0, 60 * _SECOND),
    "min": (0, 0, 60 * _SECOND),
    "h": (0, 0, _HOUR),
    "d": (0, 1, 0),
    "w": (0, 7, 0),
    "mo": (1, 0, 0),
    "q": (3, 0, 0),
    "y": (12, 0, 0),
}
_DURATION = re.compile(r"([0-9]{1,30})([a-z]+)")
#: How ISO text begins; Python takes any sign between date and time.
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d|$)", re.ASCII)
#: Steps that follow the calendar are a day long or more, and the calendar ends with the year 9999.
_MOST_LISTED = 366 * 10_000
_HORIZON = 1 << 62

_EVERY = (
    'a duration such as "15m", "1h", "1d", "1w", "1mo", "1q", "1y" or "1d12h" (units us, ms, s, m, h, d, w, mo, q, y), '
    "or a timedelta"
)
_TIME = 'ISO text such as "2013-01-01" or "2013-01-01T05:00-05:00", a date or datetime, or a numpy datetime64'


class Unreadable(ValueError):
    """Text that is no time."""


class _Every(NamedTuple):
    """A duration. Months and days are those of the calendar; the rest is absolute."""

    months: int
    days: int
    microseconds: int


class Ticks:
    """A public clock: the steps between two moments, each as long as `every`.

    Step 1 begins at `start`; the last step ends at `end`, and is shorter than the others where `every` does not fit in
    whole. Nothing of it comes from the data: start and end are parameters of a release, and must be known without
    looking.

    Hours, minutes and seconds are absolute. Days, weeks, months and years follow the calendar of the time zone: a day
    begins at its midnight, and has 23 or 25 hours when clocks change. Months that lack the day of `start` end on their
    last. Times without a zone are taken as they are and are never mixed with those that have one.

    Parameters
    ----------
    start, end : str, date, datetime or datetime64
        The first moment, and the one after the last. ISO text is read as by `datetime.fromisoformat`.
    every : str or timedelta
        The length of a step: "15m", "1h", "1d", "1w", "1mo", "1y", or several together.
    tz : str or tzinfo, optional
        The time zone, such as "America/New_York". Without it, that of `start` and `end`, or none. Moments that stand
        twice in the zone are the earlier ones.

    Raises
    ------
    ValueError, TypeError
        Times or durations that cannot be read, an end that is not after the start, a mixture of times with and without
        a zone, or of two zones.

    Examples
    --------
    >>> ticks = Ticks("2013-01-01", "2014-01-01", "1d", tz="America/New_York")
    >>> ticks.horizon
    365
    >>> ticks.step("2013-01-01T12:00-05:00")
    1
    """

    def __init__(self, start: Any, end: Any, every: Any, *, tz: Any = None) -> None:
        self._given = (start, end, every, tz)
        first, last = _moment(start, "start"), _moment(end, "end")
        self._zone = _zone(first, last, tz)
        try:
            self._local_start = _local(first, self._zone)
            self._start = _instant(self._local_start)
            self._end = _instant(_local(last, self._zone))
            self._shown(self._start), self._shown(self._end)
        except OverflowError:
            raise ValueError(
                f"start and end must be in the years 1 to 9999, in UTC too; start={shown(start)} and end={shown(end)} "
                "were given"
            ) from None
        self._every = _every(every)
        if self._end <= self._start:
            raise ValueError(f"end must be after start; start={shown(start)} and end={shown(end)} were given")
        # Without clock changes a day is as long as any other.
        if self._zone is None or isinstance(self._zone, dt.timezone):
            # What is longer than the calendar is as long as that; it must stay within 64 bits.
            length = min(self._every.microseconds + self._every.days * _DAY, _HORIZON)
            self._every = _Every(self._every.months, 0, length)
        horizon = -((self._start - self._end) // self._every.microseconds) if self._regular else self._last_listed()
        if horizon > _HORIZON:
            raise ValueError(
                f"there can be at most 2^62 steps; {horizon} from {shown(start)} to {shown(end)} were asked for"
            )
        self._horizon = int(horizon)

    @property
    def horizon(self) -> int:
        """The number of steps: what the structures take as `horizon`."""
        return self._horizon

    @property
    def tz(self) -> dt.tzinfo | None:
        """The time zone; None where times have none."""
        return self._zone

    @property
    def start(self) -> dt.datetime:
        """When step 1 begins."""
        return self._shown(self._start)

    @property
    def end(self) -> dt.datetime:
        """When the last step ends."""
        return self._shown(self._end)

    def step(self, times: Any) -> Any:
        """The step in which a moment lies: from its beginning on, up to and without its end.

        Parameters
        ----------
        times : str, datetime or datetime64, or an array or list of them
            With a zone if and only if the ticks have one; arrays of datetime64, which have none, are then in UTC.
            Columns of pandas, Polars and pyarrow know whether they have one.

        Returns
        -------
        int, or an array of int64 of the shape of `times`.

        Raises
        ------
        ValueError
            A time before `start`, or not before `end`, or missing, or with a zone where the ticks have none, or the
            other way round.
        """
        if isinstance(times, str | dt.date | np.datetime64):
            return int(self._strictly(np.array([self._given_instant(times)]))[0])
        instants, missing = self.instants(times)
        if missing.any():
            raise ValueError("times must not be missing; there is a NaT (drop it)")
        return self._strictly(instants).reshape(np.shape(times))

    def instants(self, times: Any) -> tuple[Microseconds, npt.NDArray[np.bool_]]:
        """Times in microseconds since 1970, and which are missing: two flat arrays. Raises as `step`."""
        aware = _column_is_aware(times)
        if aware is not None and aware != (self._zone is not None):
            raise ValueError(zone_mismatch(self, aware, "the column of times"))
        if isinstance(times, list | tuple) and any(isinstance(time, np.datetime64) for time in times):
            # One by one: numpy would put all in the finest unit, in which the far ones do not fit.
            parts = [self.instants(np.array([time]) if isinstance(time, np.datetime64) else [time]) for time in times]
            return np.concatenate([part for part, _ in parts]), np.concatenate([none for _, none in parts])
        unit = getattr(getattr(times, "dtype", None), "unit", None)
        if aware and unit is not None and hasattr(type(times), "to_numpy"):
            # Pandas makes datetimes of them else, which end with the year 9999.
            times = times.to_numpy(dtype=f"datetime64[{unit}]")
        array = array_of(times, "times", "must be times").ravel()
        if array.dtype.kind == "M":
            missing = np.isnat(array)
            if isinstance(array, np.ma.MaskedArray):
                # What a mask hides is no time.
                array, missing = np.ma.getdata(array), missing.filled(True)
            return floor_microseconds(array), missing
        # Of a masked array, None for what is masked.
        given = array.tolist()
        none = [_is_missing(time) for time in given]
        instants = [0 if no else self._given_instant(time) for time, no in zip(given, none, strict=True)]
        return np.array(instants, dtype=np.int64), np.array(none, dtype=bool)

    def _element(self, time: Any) -> int | None:
        """One element of a list, as `instants` reads it, whatever stands beside it; None if it is missing.

        Raises `Unreadable` for text that is no time, else as `step`.
        """
        if isinstance(time, np.datetime64):
            (instant,), (missing,) = self.instants(np.array([time]))
            return None if missing else int(instant)
        return None if _is_missing(time) else self._given_instant(time)

    def instant(self, time: Any, name: str = "times") -> int:
        """A moment in microseconds since 1970; one without a zone is a reading of the clocks in that of the ticks."""
        moment = _moment(time, name)
        if moment.tzinfo is not None and self._zone is None:
            raise ValueError(zone_mismatch(self, True, f"the time {shown(time)}"))
        try:
            return _instant(_local(moment, self._zone))
        except OverflowError:
            raise ValueError(f"{name} must be in the years 1 to 9999, in UTC too; {shown(time)} was given") from None

    def time(self, step: Any) -> Any:
        """When a step ends: what is released at it counts everything before this moment.

        Parameters
        ----------
        step : int, or an array of int
            From 1 to `horizon`.

        Returns
        -------
        datetime in the zone of the ticks; for an array, datetime64[us] (in UTC, where the ticks have a zone).

        Raises
        ------
        ValueError, TypeError
            A step out of range; what is no integer, or an array of another type.
        """
        step = plain(step, "step")
        if not sized(step) or (isinstance(step, np.ndarray) and step.ndim == 0):
            number = integer(step, "step")
            self._check(number, number)
            return self._shown(self._end_of(number))
        steps = array_of(step, "steps", "must be integers")
        if steps.dtype.kind not in "iu" or isinstance(steps, np.ma.MaskedArray):
            kind = "a masked array" if isinstance(steps, np.ma.MaskedArray) else f"an array of {steps.dtype}"
            raise TypeError(f"steps must be integers; {kind} was given")
        steps = np.ascontiguousarray(steps)
        if steps.size:
            self._check(int(steps.min()), int(steps.max()))
        return self.ends(steps.astype(np.int64)).astype("datetime64[us]")

    def ends(self, steps: Microseconds) -> Microseconds:
        """The ends of steps, an array of int64, in microseconds since 1970; all of them in range."""
        _check_int64(steps, "steps")
        # An array may claim to be larger than memory; before it is searched, this says so.
        steps = np.ascontiguousarray(steps)
        if steps.size:
            self._check(int(steps.min()), int(steps.max()))
        if self._regular:
            # Before the product can leave 64 bits, it is beyond the end.
            full = np.minimum(steps, (self._end - self._start) // self._every.microseconds)
            ends = self._start + full * self._every.microseconds
            return np.where(full < steps, self._end, ends)
        return self._listed[steps]

    def locate(self, instants: Microseconds) -> Microseconds:
        """The steps of moments in microseconds since 1970; 0 before the start, horizon + 1 from the end on."""
        _check_int64(instants, "instants")
        if self._regular:
            steps = instants - self._start
            steps //= self._every.microseconds
            steps += 1
        else:
            steps = np.searchsorted(self._listed[1:], instants, side="right").astype(np.int64) + 1
        if instants.size and (instants.min() < self._start or instants.max() >= self._end):
            # Set, not computed: the difference of two far moments may have wrapped.
            steps[instants < self._start] = 0
            steps[instants >= self._end] = self.horizon + 1
        return steps

    def __eq__(self, other: object) -> bool:
        """Whether start, end, the length of steps and the name of the zone are the same."""
        if not isinstance(other, Ticks):
            return NotImplemented
        return self._identity == other._identity

    def __hash__(self) -> int:
        """Goes with equality."""
        return hash(self._identity)

    def __repr__(self) -> str:
        """The call that makes it, and the number of steps."""
        start, end, every, tz = self._given
        zone = "" if tz is None else f", tz={str(tz)!r}"
        return f"<Ticks({start!r}, {end!r}, {every!r}{zone}): {self.horizon} steps>"

    @property
    def _identity(self) -> tuple[Any, ...]:
        return self._start, self._end, self._every, str(self._zone)

    @property
    def _regular(self) -> bool:
        """Whether all steps but the last have one length."""
        return self._every.months == 0 and self._every.days == 0

    def _last_listed(self) -> int:
        """How many steps there are, where each has a length of its own."""

        class Ends:
            def __len__(self) -> int:
                return _MOST_LISTED + 1

            def __getitem__(_, step: int) -> int:
                try:
                    return self._calendar(step)
                except (OverflowError, ValueError):
                    return self._end  # beyond the year 9999

        return bisect_left(Ends(), self._end, lo=1)

    def _calendar(self, step: int) -> int:
        """When a step of the calendar ends, were it not cut short."""
        every, local = self._every, self._local_start
        month = local.month - 1 + step * every.months
        year, month = local.year + month // 12, month % 12 + 1
        next_month = dt.date(year + month // 12, month % 12 + 1, 1) if year < dt.MAXYEAR else None
        last_day = 31 if next_month is None else (next_month - dt.timedelta(days=1)).day
        moved = local.replace(year=year, month=month, day=min(local.day, last_day), fold=0)
        return _instant(moved + dt.timedelta(days=step * every.days)) + step * every.microseconds

    @cached_property
    def _listed(self) -> Microseconds:
        """The ends of all steps at their numbers, behind the start."""
        ends = [self._calendar(step) for step in range(1, self.horizon)]
        return np.array([self._start, *ends, self._end], dtype=np.int64)

    def _end_of(self, step: int) -> int:
        return int(self.ends(np.array([step], dtype=np.int64))[0])

    def _shown(self, instant: int) -> dt.datetime:
        naive = _EPOCH + dt.timedelta(microseconds=instant)
        return naive if self._zone is None else naive.replace(tzinfo=dt.timezone.utc).astimezone(self._zone)

    def _given_instant(self, time: Any) -> int:
        moment = _moment(time, "times")
        if (moment.tzinfo is None) != (self._zone is None):
            raise ValueError(zone_mismatch(self, moment.tzinfo is not None, f"the time {shown(time)}"))
        return _instant(moment)

    def _strictly(self, instants: Microseconds) -> Microseconds:
        steps = self.locate(instants)
        outside = np.flatnonzero((steps < 1) | (steps > self.horizon))
        if outside.size:
            place = "" if instants.size == 1 else f" at position {outside[0]}"
            try:
                time = self._shown(int(instants[outside[0]])).isoformat()
            except OverflowError:
                time = "one beyond the years 1 to 9999"
            raise ValueError(
                f"times must be from {self.start.isoformat()} on and before {self.end.isoformat()}; "
                f"{time} was given{place}"
            )
        return steps

    def _check(self, least: int, most: int) -> None:
        if least < 1 or most > self.horizon:
            given = least if least < 1 else most
            raise ValueError(f"step must be from 1 to the horizon, {self.horizon}; {shown(given)} was given")


def zone_mismatch(ticks: Ticks, aware: bool, what: str) -> str:
    """Says that times have a zone and the ticks have none, or the other way round."""
    if aware:
        return f"{what} has a time zone and the ticks have none: give them one with tz= (Ticks) or --tz"
    return f"{what} has no time zone and the ticks are in {ticks.tz}: give it one, or make ticks without a zone"


def floor_microseconds(times: npt.NDArray[Any]) -> Microseconds:
    """datetime64 of any unit in microseconds since 1970, rounded down."""
    unit, _ = np.datetime_data(times.dtype)
    if unit in ("ns", "ps", "fs", "as"):
        per = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}[unit]
        # Numpy rounds toward 1970.
        return times.astype(f"datetime64[{unit}]").astype(np.int64) // per
    # What does not fit is far away on its side, and must not wrap around.
    least, most = (np.array(limit).view("datetime64[us]").astype(times.dtype) for limit in (-(1 << 62), 1 << 62))
    clipped: Microseconds = np.clip(times, least, most).astype("datetime64[us]").astype(np.int64)
    return clipped


def _column_is_aware(times: Any) -> bool | None:
    """Whether a column of pandas, Polars or pyarrow has a time zone; None for anything else."""
    kind = type(times).__module__.partition(".")[0]
    if kind == "pandas" and getattr(getattr(times, "dtype", None), "kind", "") == "M":
        # Of Arrow types in pandas, the Arrow type has the zone.
        return getattr(getattr(times.dtype, "pyarrow_dtype", times.dtype), "tz", None) is not None
    column_type = getattr(times, {"polars": "dtype", "pyarrow": "type"}.get(kind, ""), None)
    if str(column_type) in ("Date", "date32[day]", "date64[ms]"):
        return False
    for zone in ("time_zone", "tz"):
        if hasattr(column_type, zone):
            return getattr(column_type, zone) is not None
    return None


def _is_missing(time: Any) -> bool:
    """None, the NaT and NA of pandas, and the NaN that stands among its texts."""
    nan = isinstance(time, float) and math.isnan(time)
    return time is None or nan or type(time).__name__ in ("NaTType", "NAType")


def _check_int64(given: Any, name: str) -> None:
    is_plain = isinstance(given, np.ndarray) and not isinstance(given, np.ma.MaskedArray)
    if not is_plain or given.dtype != np.int64 or given.ndim == 0:
        what = f"an array of {given.dtype}" if is_plain else type(given).__name__
        raise TypeError(f"{name} must be an array of int64; {what} was given")


def _every(given: Any) -> _Every:
    if isinstance(given, np.timedelta64):
        every = _Every(0, 0, _whole_microseconds(given))
    elif isinstance(given, dt.timedelta):
        every = _Every(0, 0, given // dt.timedelta(microseconds=1))
    elif isinstance(given, str):
        parts = _DURATION.findall(given)
        if "".join(number + unit for number, unit in parts) != given or not all(unit in _UNITS for _, unit in parts):
            raise ValueError(f"every must be {_EVERY}; {shown(given)} was given")
        every = _Every(*(sum(int(number) * _UNITS[unit][place] for number, unit in parts) for place in range(3)))
    else:
        raise TypeError(f"every must be {_EVERY}; {type(given).__name__} was given")
    if min(every) < 0 or not any(every) or max(every) >= 1 << 63:
        raise ValueError(f"every must be more than nothing and less than 2^63 microseconds; {shown(given)} was given")
    return every


def _whole_microseconds(given: np.timedelta64) -> int:
    """A timedelta64 in microseconds, of which it must be a whole number."""
    unit, count = np.datetime_data(given.dtype)
    per = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}.get(unit, 1)
    microseconds = {"us": 1, "ms": 1000, "s": _SECOND, "m": 60 * _SECOND, "h": _HOUR, "D": _DAY, "W": 7 * _DAY}
    if np.isnat(given) or (per == 1 and unit not in microseconds):
        raise ValueError(f"every must be {_EVERY}; {shown(given)} was given")
    length, rest = divmod(int(given.astype(np.int64)) * count * microseconds.get(unit, 1), per)
    if rest:
        raise ValueError(f"every must be a whole number of microseconds; {shown(given)} was given")
    return length


def _moment(given: Any, name: str) -> dt.datetime:
    """A moment as a datetime, with a zone if it was given one."""
    if isinstance(given, np.datetime64):
        if np.isnat(given):
            raise ValueError(f"{name} must be {_TIME}; NaT was given")
        try:
            return _EPOCH + dt.timedelta(microseconds=int(floor_microseconds(np.array([given]))[0]))
        except OverflowError:
            raise ValueError(f"{name} must be in the years 1 to 9999; {shown(given)} was given") from None
    if isinstance(given, str):
        text = given.strip()
        # Python 3.10 does not know the Z.
        text = text[:-1] + "+00:00" if text[-1:] in ("Z", "z") and ":" in text else text
        try:
            if _ISO.match(text):
                return dt.datetime.fromisoformat(text)
        except ValueError:
            pass
        raise Unreadable(f"{name} must be {_TIME}; {shown(given)} was given")
    if isinstance(given, dt.datetime):
        if type(given).__name__ == "NaTType":  # pandas' is a datetime
            raise ValueError(f"{name} must be {_TIME}; NaT was given")
        if hasattr(given, "to_pydatetime"):
            return given.to_pydatetime(warn=False)  # type: ignore[no-any-return]
        return given
    if isinstance(given, dt.date):
        return dt.datetime(given.year, given.month, given.day)
    raise TypeError(f"{name} must be {_TIME}; {type(given).__name__} was given")


def _zone(start: dt.datetime, end: dt.datetime, given: Any) -> dt.tzinfo | None:
    """The zone that the ticks are in."""
    zone = _chosen_zone(start, end, given)
    # The zones of pytz are not those of `datetime`: they must not be set with `replace`.
    name = getattr(zone, "zone", None)
    return ZoneInfo(name) if isinstance(name, str) else zone


def _chosen_zone(start: dt.datetime, end: dt.datetime, given: Any) -> dt.tzinfo | None:
    if isinstance(given, str):
        try:
            return ZoneInfo(given)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            example = '"UTC", "Europe/Copenhagen" or "America/New_York"'
            raise ValueError(
                f"tz must be the name of a time zone, such as {example}; {shown(given)} was given"
            ) from None
    if given is not None:
        if not isinstance(given, dt.tzinfo):
            raise TypeError(f"tz must be the name of a time zone or a tzinfo; {type(given).__name__} was given")
        return given
    if (start.tzinfo is None) != (end.tzinfo is None):
        raise ValueError("start and end must both have a time zone or both have none; one of each was given")
    if start.tzinfo is None or str(start.tzinfo) == str(end.tzinfo):
        return start.tzinfo
    if start.utcoffset() == end.utcoffset() and not isinstance(start.tzinfo, ZoneInfo):
        return start.tzinfo
    raise ValueError(
        f"start and end are in two time zones, {start.tzinfo} and {end.tzinfo}: name the one of the calendar with tz="
    )


def _local(moment: dt.datetime, zone: dt.tzinfo | None) -> dt.datetime:
    """The moment in the zone; one without a zone is a reading of the clocks there."""
    if zone is None:
        return moment
    if moment.tzinfo is not None:
        return moment.astimezone(zone)
    local = moment.replace(tzinfo=zone)
    if local.astimezone(dt.timezone.utc).astimezone(zone).replace(tzinfo=None) != moment:
        raise ValueError(f"no clock shows {moment.isoformat()} in {zone}: it is skipped when the clocks change")
    return local


def _instant(moment: dt.datetime) -> int:
    """Microseconds since 1970; in UTC, if the moment has a zone."""
    # Not by `astimezone`, which ends with the year 9999.
    offset = moment.utcoffset() or dt.timedelta(0)
    return (moment.replace(tzinfo=None) - _EPOCH - offset) // dt.timedelta(microseconds=1)
