"""Values of columns, each read by itself: what stands around a value never changes what it means.

A column has a type, which is public; or it is a list of Python objects, and then each element has a type of its own
(`of_elements`). Text is read by one rule for each element: as Arrow casts it without the spaces around it. Whole
columns are cast at once only because that is the same, and faster. Keys and elements are of the large types, which no
number of rows fills: those of Arrow that are not large end at 2 GB in a column.
"""

from __future__ import annotations

import datetime as dt
import decimal
import numbers as number_classes
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fastgame._arguments import exact_below, has_utf8
from fastgame._ticks import Ticks, floor_microseconds, zone_mismatch
from fastgame._ticks import _is_missing as is_missing

Bools = npt.NDArray[np.bool_]
Integers = npt.NDArray[np.int64]
#: Which rows are bad; None if none is.
Bad = npt.NDArray[np.bool_] | None


def _digits_up_to(most: int) -> str:
    """A pattern of as many digits as a number has, at most that number."""
    digits = str(most)
    less = [
        rf"{digits[:place]}[0-{int(digit) - 1}]\d{{{len(digits) - place - 1}}}"
        for place, digit in enumerate(digits)
        if digit != "0"
    ]
    return "|".join([*less, digits])


#: The text that Arrow casts. What does not look so need not be tried, which takes a thousand times as long.
_DAY = (
    r"((\d\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29|"
    r"\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|(0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8])))"
)
_CLOCK = r"[ T]([01]\d|2[0-3])(:[0-5]\d(:[0-5]\d(\.\d{1,6})?)?)?"
_NAIVE_TIME = f"^{_DAY}({_CLOCK})?$"
_AWARE_TIME = rf"^{_DAY}{_CLOCK}(Z|[+-]([01]\d|2[0-3])(:?[0-5]\d)?)$"
_NUMBER = r"(?i)^[+-]?((\d+\.?\d*|\.\d+)(e[+-]?\d+)?|inf(inity)?|nan(\([a-z0-9_]*\))?)$"
_INTEGER = rf"^([+-]?(\d{{1,18}}|{_digits_up_to(2**63 - 1)})|-{2**63})$"
#: UTF-8, of bytes.
_UTF8 = (
    r"(?s)^([\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}|"
    r"\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*$"
)
_HAS_ZONE = r"[ T].*(Z|[+-]\d{2}(:?\d{2})?)$"
_EPOCH = dt.datetime(1970, 1, 1)
#: Times as numbers since 1970 in UTC: what `time_format` calls them, and how many microseconds one is.
_EPOCHS = {"epoch_s": 1_000_000, "epoch_ms": 1000}
_FAR = 1 << 62
_LAST = (1 << 63) - 1

#: What an element may be: one of these is there, or none for something else. Missing elements are null.
_ELEMENT = pa.struct(
    {
        "integer": pa.int64(),
        "unsigned": pa.uint64(),
        "real": pa.float64(),
        # Integers beyond 64 bits, and decimals.
        "digits": pa.string(),
        "text": pa.large_string(),
        "bytes": pa.large_binary(),
        "naive": pa.timestamp("us"),
        "aware": pa.timestamp("us", "UTC"),
    }
)
#: Keys of several types in one column.
_KEY = pa.struct({name: _ELEMENT.field(name).type for name in ("integer", "unsigned", "text", "bytes")})


class Times(NamedTuple):
    """The columns that say when."""

    ticks: Ticks
    time: str
    delete_time: str | None
    format: str | None


class Instants(NamedTuple):
    """Times in microseconds since 1970, which rows have none, and which of these have one of the other zone kind."""

    values: Integers
    bad: Bad
    other_zone: Bad = None


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_bytes(kind: pa.DataType) -> bool:
    """Whether a type is one of bytes."""
    tests = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary, pa.types.is_binary_view)
    return any(test(kind) for test in tests)


def is_elements(kind: pa.DataType) -> bool:
    """Whether each element of a column has a type of its own."""
    return bool(kind in (_ELEMENT, _KEY))


def value_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values of a column that may have a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """A column of a batch, without a dictionary and without views, which few functions of Arrow take."""
    return plain(batch.column(name))


def plain(values: pa.Array) -> pa.Array:
    """Values without a dictionary and without views."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        # One long value may stand in many rows.
        return _large(plain(values.dictionary)).take(values.indices)
    if pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if pa.types.is_binary_view(kind) else values


def _large(values: pa.Array) -> pa.Array:
    """Text and bytes in the types that hold any number of them; all else as it is."""
    if is_text(values.type):
        return values.cast(pa.large_string())
    return values.cast(pa.large_binary()) if is_bytes(values.type) else values


def valid(values: pa.Array) -> pa.Array:
    """Values; text is null where it is not UTF-8, which neither Parquet nor Arrow's interface checks."""
    if not is_text(values.type):
        return values
    return text_of_bytes(values.cast(pa.large_binary() if pa.types.is_large_string(values.type) else pa.binary()))


def text_of_bytes(values: pa.Array) -> pa.Array:
    """Bytes as text; null where they are not UTF-8."""
    if values.type == pa.binary():
        return cast_each(values, pa.string(), _UTF8)
    return cast_each(values.cast(pa.large_binary()), pa.large_string(), _UTF8)


def cast_each(values: pa.Array, kind: pa.DataType, form: str | None = None) -> pa.Array:
    """The values in another type; null where that fails. All text that can be cast is of the `form`."""
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, kind)
    fits = _fits(values, kind) if form is None else pc.match_substring_regex(values, form)
    if fits is not None:
        return _halves(pc.if_else(fits, values, pa.scalar(None, values.type)), kind)
    return _halves(values, kind)


def _fits(values: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Which numbers another type of integers can hold; None where that is not known, or not of all."""
    if not pa.types.is_integer(kind):
        return None
    if pa.types.is_integer(values.type):
        # Of 64 bits both: one has a sign, and the other none.
        if pa.types.is_uint64(values.type):
            return pc.less_equal(values, pa.scalar(_LAST, pa.uint64()))
        return pc.greater_equal(values, 0)
    if not (pa.types.is_decimal128(values.type) or pa.types.is_decimal256(values.type)):
        return None
    # Of those that are nearly too large some may be.
    small = pc.less_equal(pc.abs(values.cast(pa.float64())), float(_LAST))
    return pc.and_(pc.equal(pc.floor(values), values), small)


def _halves(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """As `cast_each`, of values nearly all of which can be cast."""
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        if len(values) == 1:
            return pa.nulls(1, kind)
    half = len(values) // 2
    return pa.concat_arrays([_halves(values[:half], kind), _halves(values[half:], kind)])


def _read(values: pa.Array, kind: pa.DataType, form: str, mend: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """Text in another type, as it is mended; null where it cannot be read. What can be as it is means the same."""
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        return cast_each(mend(values), kind, form)


# Elements of lists.


def of_elements(given: Sequence[Any]) -> pa.Array:
    """Python objects as a column whose elements have types of their own."""
    found: dict[str, list[Any]] = {}
    missing = np.zeros(len(given), dtype=bool)
    for place, value in enumerate(given):
        name, kept = _element(value)
        if name is None:
            missing[place] = kept
            continue
        if name not in found:
            found[name] = [None] * len(given)
        found[name][place] = kept
    children = [
        pa.array(found[field.name], field.type) if field.name in found else pa.nulls(len(given), field.type)
        for field in _ELEMENT
    ]
    return pa.StructArray.from_arrays(children, fields=list(_ELEMENT), mask=pa.array(missing))


def _element(value: Any) -> tuple[str | None, Any]:
    """What an element is, and itself in that form; None for nothing that is known, with whether it is missing."""
    try:
        value = _unwrapped(value)
        if is_missing(value) or (isinstance(value, np.datetime64) and np.isnat(value)):
            return None, True
        for classes, read in _CLASSES:
            if isinstance(value, classes):
                return read(value)
    except Exception:
        # An object may do anything when it is looked at; a scalar of Arrow may be none that Python can hold.
        return None, False
    return None, False


def _element_of_integer(value: Any) -> tuple[str, Any]:
    number = int(value)
    if -(1 << 63) <= number < 1 << 64:
        return "integer" if number < 1 << 63 else "unsigned", number
    # As good as any number so far away; Python does not write the longest.
    far = "-inf" if number < 0 else "inf"
    return "digits", str(number) if number.bit_length() < 4096 else far


def _element_of_datetime(value: dt.datetime) -> tuple[str, int]:
    offset = value.utcoffset()
    local = value.replace(tzinfo=None) - (offset or dt.timedelta(0))
    return "naive" if offset is None else "aware", _microseconds(local)


def _microseconds(moment: dt.datetime) -> int:
    return (moment - _EPOCH) // dt.timedelta(microseconds=1)


#: How elements of each class are read; the first class that fits.
_CLASSES: list[tuple[Any, Callable[[Any], tuple[str | None, Any]]]] = [
    (str, lambda value: ("text", str(value)) if has_utf8(value) else (None, False)),
    (bytes, lambda value: ("bytes", bytes(value))),
    # Integers to Python and numpy, and hardly meant so.
    ((bool, np.bool_, np.timedelta64), lambda _: (None, False)),
    ((int, np.integer), _element_of_integer),
    ((float, np.floating), lambda value: ("real", float(value))),
    (decimal.Decimal, lambda value: ("digits", str(value))),
    (number_classes.Rational, lambda value: ("real", float(value))),
    (np.datetime64, lambda value: ("naive", int(floor_microseconds(np.array([value]))[0]))),
    (dt.datetime, _element_of_datetime),
    (dt.date, lambda value: ("naive", _microseconds(dt.datetime(value.year, value.month, value.day)))),
]


def _unwrapped(value: Any) -> Any:
    """What stands in an array without dimensions, and in the scalars of Arrow."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if hasattr(type(value), "as_py"):
        value = value.as_py()
    if hasattr(type(value), "to_pydatetime"):  # pandas' datetimes; NaT has none
        try:
            return value.to_pydatetime(warn=False)
        except (ValueError, TypeError):
            return None
    return value


def _by_kind(values: pa.Array, names: Sequence[str], read: Callable[[str, pa.Array], Any], *targets: Any) -> Bools:
    """Reads the elements of some kinds, kind by kind, into arrays; which of them were there."""
    there = np.zeros(len(values), dtype=bool)
    for name in names:
        child = values.field(name)
        places = np.flatnonzero(np.asarray(child.is_valid()))
        if not places.size:
            continue
        there[places] = True
        for target, found in zip(targets, read(name, child.take(pa.array(places))), strict=True):
            target[places] = found
    return there


# Times.


def check_time_column(kind: pa.DataType, times: Times, name: str) -> None:
    """Refuses a column that cannot hold times, or those of the other kind."""
    kind = value_type(kind)
    is_epoch = times.format in _EPOCHS
    if pa.types.is_timestamp(kind):
        if times.format is not None:
            raise TypeError(f"the column {name!r} has times already; a format (time_format) is for others")
        if (kind.tz is None) != (times.ticks.tz is None):
            raise ValueError(zone_mismatch(times.ticks, kind.tz is not None, f"the column {name!r}"))
    elif pa.types.is_date(kind):
        if times.format is not None:
            raise TypeError(f"the column {name!r} has dates already; a format (time_format) is for others")
        if times.ticks.tz is not None:
            raise ValueError(zone_mismatch(times.ticks, False, f"the column {name!r}"))
    elif not (is_text(kind) or pa.types.is_null(kind) or is_elements(kind) or (is_epoch and _is_number(kind))):
        epoch = "" if is_epoch else f" (numbers since 1970 are read with time_format={' or '.join(map(repr, _EPOCHS))})"
        raise TypeError(
            f"the column {name!r} must hold timestamps, dates or ISO text; it is of type {kind}"
            f"{epoch if _is_number(kind) else ''}"
        )
    if times.format is not None:
        check_format(times.format, times.ticks)


def instants_of(values: pa.Array, times: Times, name: str) -> Instants:
    """Times of a column that was checked or has elements, in microseconds since 1970."""
    kind = values.type
    check_time_column(kind, times, name)
    if not is_elements(kind):
        return _instants_of_type(values, times)
    names = ["text", "naive", "aware"]
    if times.format in _EPOCHS:
        names += ["integer", "unsigned", "real", "digits"]
    instants = np.zeros(len(values), dtype=np.int64)
    bad, other = np.zeros(len(values), dtype=bool), np.zeros(len(values), dtype=bool)

    def read(name: str, part: pa.Array) -> tuple[Any, Any, Any]:
        wrong = {"naive": times.ticks.tz is not None, "aware": times.ticks.tz is None}.get(name, False)
        if wrong:
            return 0, True, True
        found = _instants_of_type(part, times)
        return tuple(False if each is None else each for each in found)  # type: ignore[return-value]

    there = _by_kind(values, names, read, instants, bad, other)
    return Instants(instants, bad | ~there, other)


def _instants_of_type(values: pa.Array, times: Times) -> Instants:
    kind = values.type
    values, other = valid(values), None
    if pa.types.is_null(kind):
        return Instants(np.zeros(len(values), dtype=np.int64), np.ones(len(values), dtype=bool))
    if times.format in _EPOCHS and not pa.types.is_timestamp(kind):
        return _since_1970(values, _EPOCHS[times.format])
    if is_text(kind):
        if times.format is None:
            values, other = _iso(values, times)
        else:
            values = _by_format(values, times.format, times.ticks)
    unit = {pa.date32(): "D", pa.date64(): "ms"}.get(values.type) or values.type.unit
    bad = np.asarray(values.is_null()) if values.null_count else None
    raw = values.cast(pa.int32() if unit == "D" else pa.int64())
    numbers = np.asarray(raw.fill_null(0) if raw.null_count else raw).astype(np.int64, copy=False)
    factor = {"D": 86_400_000_000, "s": 1_000_000, "ms": 1000}.get(unit)
    if factor is not None:
        numbers = _times_factor(numbers, factor)
    elif unit == "ns":
        numbers = floor_microseconds(numbers.view("datetime64[ns]"))
    return Instants(numbers, bad, other)


def _times_factor(numbers: Integers, factor: int) -> Integers:
    """A product that stays far beyond the calendar where it is, and does not come back."""
    most = _FAR // factor
    return np.clip(numbers, -most, most) * factor


def _since_1970(values: pa.Array, factor: int) -> Instants:
    """Numbers of seconds or milliseconds as microseconds: whole ones exactly, others to the nearest."""
    found, bad = numbers_of(values)
    unfit = ~np.isfinite(found) if found.dtype.kind == "f" else np.zeros(len(found), dtype=bool)
    bad = unfit if bad is None else bad | unfit
    if found.dtype.kind == "f":
        with np.errstate(over="ignore", invalid="ignore"):
            held = np.clip(np.where(bad, 0.0, found.astype(np.float64)) * factor, -float(_FAR), float(_FAR))
        instants = np.rint(held).astype(np.int64)
    else:
        held = np.minimum(found, np.uint64(_FAR)) if found.dtype.kind == "u" else found
        instants = _times_factor(held.astype(np.int64), factor)
    exact = whole_numbers(values)
    if exact is not None:
        there = np.asarray(exact.is_valid())
        instants[there] = _times_factor(np.asarray(exact.drop_null()), factor)
    return Instants(instants, bad)


def check_format(form: str, ticks: Ticks) -> None:
    """Refuses a format that cannot be read, does not say the year, or has a zone where the ticks have none."""
    shown = f"time_format {form!r:.80}"
    if "%" not in form and form not in _EPOCHS:
        known = " or ".join(map(repr, _EPOCHS))
        raise ValueError(
            f"{shown} must say year, month and day in the words of strptime, as %d/%m/%Y does, or be {known}"
        )
    aware = "%z" in form or form in _EPOCHS
    if aware != (ticks.tz is not None):
        raise ValueError(zone_mismatch(ticks, aware, shown))
    if form in _EPOCHS:
        return
    example = dt.datetime(2013, 12, 31, 23, 59, 58, tzinfo=dt.timezone.utc if aware else None)
    try:
        read = dt.datetime.strptime(example.strftime(form), form)
    except ValueError as error:
        raise ValueError(f"{shown} is none that strptime reads: {error}") from None
    # A month or a year stands for its first moment.
    days = [example.date(), dt.date(2013, 12, 1), dt.date(2013, 1, 1)]
    if read.date() not in days or (read.tzinfo is None) == aware:
        raise ValueError(f"{shown} must say year, month and day, or year and month, or the year, as %d/%m/%Y does")


def _by_format(values: pa.Array, form: str, ticks: Ticks) -> pa.Array:
    """Text in a format of its own as timestamps, null where it is none. Each text is read once: strptime is slow."""
    codes = values.dictionary_encode()
    instants = [_instant_by_format(text, form) for text in codes.dictionary.to_pylist()]
    read = pa.array(instants, pa.int64()).cast(pa.timestamp("us", "UTC" if ticks.tz is not None else None))
    return read.take(codes.indices)


def _instant_by_format(text: str, form: str) -> int | None:
    try:
        moment = dt.datetime.strptime(text.strip(), form)
        if moment.tzinfo is not None:
            moment = moment.astimezone(dt.timezone.utc).replace(tzinfo=None)
    except (ValueError, OverflowError):
        return None
    return _microseconds(moment)


def _iso(values: pa.Array, times: Times) -> tuple[pa.Array, Bad]:
    """ISO text as timestamps, null where it is none, and which of these are times of the other zone kind."""
    aware = times.ticks.tz is not None
    naive, zoned = (pa.timestamp("us"), _NAIVE_TIME), (pa.timestamp("us", "UTC"), _AWARE_TIME)
    read = _read(values, *(zoned if aware else naive), _mended_time)
    failed = np.flatnonzero(np.asarray(read.is_null()) & np.asarray(values.is_valid()))
    if not failed.size:
        return read, None
    # The reason alone: such a row is left out in any case.
    zone = np.asarray(pc.match_substring_regex(pc.utf8_trim_whitespace(values.take(pa.array(failed))), _HAS_ZONE))
    other = np.zeros(len(values), dtype=bool)
    other[failed] = zone if not aware else ~zone
    places = np.flatnonzero(other)
    again = _read(values.take(pa.array(places)), *(naive if aware else zoned), _mended_time)
    other[places] = np.asarray(again.is_valid())
    return read, other


def _mended_time(values: pa.Array) -> pa.Array:
    """Without the spaces around it, and without what is finer than a microsecond, which changes no step."""
    return pc.replace_substring_regex(pc.utf8_trim_whitespace(values), r"(\.\d{6})\d+", r"\1")


# Numbers.


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def check_weight_column(kind: pa.DataType, name: str, what: str = "weights") -> None:
    """Refuses a column whose values are no numbers."""
    kind = value_type(kind)
    if not (_is_number(kind) or is_text(kind) or pa.types.is_null(kind) or is_elements(kind)):
        raise TypeError(f"{what} must be numbers; the column {name!r} is of type {kind}")


def numbers_of(values: pa.Array) -> tuple[Any, Bad]:
    """Numbers of a typed column, and which rows have none: integers and floats stay so, all else becomes floats.

    What is beyond the floats is infinite; what says that it is no number is NaN.
    """
    if is_text(values.type):
        values = _read(valid(values), pa.float64(), _NUMBER, pc.utf8_trim_whitespace)
    elif pa.types.is_decimal(values.type) or pa.types.is_null(values.type):
        values = cast_each(values, pa.float64())
    bad = np.asarray(values.is_null()) if values.null_count else None
    if pa.types.is_floating(values.type):
        return values.to_numpy(zero_copy_only=False), bad  # NaN where there is none
    return np.asarray(values.fill_null(0) if values.null_count else values), bad


def whole_numbers(values: pa.Array) -> pa.Array | None:
    """Of text or decimals, those that are integers of 64 bits; None for columns of numbers. Floats would round them."""
    if pa.types.is_decimal(values.type) and values.type.bit_width <= 64:
        values = values.cast(pa.decimal128(38, values.type.scale))
    if pa.types.is_decimal(values.type):
        return cast_each(values, pa.int64())
    if not is_text(values.type):
        return None
    # Arrow also reads other digits than those of ten.
    values = pc.utf8_trim_whitespace(valid(values))
    form = pc.match_substring_regex(values, r"^[+-]?\d{1,19}$").fill_null(False)
    values = pc.replace_substring_regex(values, r"^\+", "")
    return cast_each(pc.if_else(form, values, pa.scalar(None, values.type)), pa.int64(), _INTEGER)


def weights_of(values: pa.Array, whole: bool) -> tuple[Any, Bad]:
    """Weights as int64 (`whole`) or float64, and which rows have none."""
    if is_elements(values.type):
        weights = np.zeros(len(values), dtype=np.int64 if whole else np.float64)
        bad = np.zeros(len(values), dtype=bool)

        def read(_: str, part: pa.Array) -> tuple[Any, Any]:
            found, unfit = weights_of(part, whole)
            return found, False if unfit is None else unfit

        there = _by_kind(values, ["integer", "unsigned", "real", "digits", "text"], read, weights, bad)
        return weights, bad | ~there
    numbers, unfit = numbers_of(values)
    if numbers.dtype.kind == "f":
        none = ~np.isfinite(numbers)
        if whole:
            none |= numbers != np.rint(numbers)
        if none.any():
            unfit = none if unfit is None else unfit | none
            numbers = np.where(none, 0.0, numbers)
    if not whole:
        return numbers.astype(np.float64), unfit
    # Beyond 2^62 a weight is beyond every bound, and is clipped as any other.
    if numbers.dtype.kind == "u":
        return np.minimum(numbers.astype(np.uint64), _FAR).astype(np.int64), unfit
    if numbers.dtype.kind == "f":
        numbers = np.clip(numbers.astype(np.float64), -float(_FAR), float(_FAR))
    return np.clip(numbers.astype(np.int64), -_FAR, _FAR), unfit


def places_of(values: pa.Array, names: Sequence[str], place: Callable[[pa.Array], Integers]) -> Integers:
    """Places of a typed column; of elements, those of some kinds, each kind by itself, and -1 for all others."""
    if not is_elements(values.type):
        return place(values)
    places = np.full(len(values), -1, dtype=np.int64)
    _by_kind(values, names, lambda _, part: (place(part),), places)
    return places


# Keys.


def check_key_column(kind: pa.DataType, name: str, floats: bool = False) -> None:
    """Refuses a column whose values are no keys.

    With `floats` whole ones are integers: pandas makes floats of integers if one is missing, and the type of a column
    must not depend on a row.
    """
    kind = value_type(kind)
    whole = pa.types.is_integer(kind) or (floats and (pa.types.is_floating(kind) or is_elements(kind)))
    if not (whole or is_text(kind) or is_bytes(kind) or pa.types.is_null(kind)):
        raise TypeError(
            f"keys must be integers, text or bytes; the column {name!r} is of type {kind} (cast it to one of them)"
        )


def check_same_kind(kind: pa.DataType, listed: pa.DataType, name: str, what: str = "the listed keys") -> None:
    """Refuses keys that can never be equal to others: 5, "5" and b"5" differ. Elements may be of any kind."""

    def of(kind: pa.DataType) -> str:
        if pa.types.is_integer(kind) or pa.types.is_floating(kind):
            return "integers"
        return "text" if is_text(kind) else "bytes"

    kind = value_type(kind)
    if pa.types.is_null(kind) or is_elements(kind) or is_elements(listed):
        return
    if of(kind) != of(listed):
        raise TypeError(f"the column {name!r} holds {of(kind)} and {what} are {of(listed)}: cast one of them")


def key_column(values: pa.Array) -> pa.Array:
    """Keys in one of few types, so that all batches have the same. What is no key becomes null."""
    values = valid(plain(values))
    kind = values.type
    if is_elements(kind):
        return _keys_of_elements(values)
    if pa.types.is_floating(kind):
        return _whole(values)
    if pa.types.is_null(kind):
        return values.cast(pa.large_string())
    if pa.types.is_integer(kind):
        return values if pa.types.is_uint64(kind) else values.cast(pa.int64())
    return _large(values)


def _whole(values: pa.Array) -> pa.Array:
    """Floats as integers; null for fractions, and where neighbours among the integers are one float."""
    numbers = values.to_numpy(zero_copy_only=False)  # NaN where there is none
    whole = is_whole(numbers)
    return pa.array(np.where(whole, numbers, 0).astype(np.int64), mask=~whole)


def is_whole(numbers: npt.NDArray[Any]) -> Bools:
    """Which numbers are integers, and of floats those that stand for one alone."""
    if numbers.dtype.kind != "f":
        return np.ones(len(numbers), dtype=bool)
    whole: Bools = (numbers == np.rint(numbers)) & (np.abs(numbers) < exact_below(numbers.dtype))
    return whole


def _keys_of_elements(values: pa.Array) -> pa.Array:
    if values.type == _KEY:
        return values
    integer = pc.coalesce(values.field("integer"), _whole(values.field("real")))
    parts = [integer, *(values.field(name) for name in ("unsigned", "text", "bytes"))]
    none = np.logical_and.reduce([np.asarray(part.is_null()) for part in parts])
    return pa.StructArray.from_arrays(parts, fields=list(_KEY), mask=pa.array(none))


def keys_of_kind(keys: pa.Array, kind: pa.DataType) -> pa.Array:
    """Keys of the kind that a listed type has; null for those of others, which can be equal to none of it."""
    if not is_elements(keys.type):
        return keys
    if is_text(kind):
        return keys.field("text")
    if is_bytes(kind):
        return keys.field("bytes")
    if pa.types.is_uint64(kind):
        return pc.coalesce(keys.field("unsigned"), cast_each(keys.field("integer"), pa.uint64()))
    return keys.field("integer")


def update_keys(update: Callable[[Any, Any], None], keys: Sequence[pa.Array], weights: Any) -> None:
    """Updates with keys, one column for each part: those of elements kind by kind."""
    mixed = [place for place, part in enumerate(keys) if is_elements(part.type)]
    if not mixed:
        update(tuple(keys) if len(keys) > 1 else keys[0], 1 if weights is None else weights)
        return
    kinds = np.zeros(len(keys[0]), dtype=np.int64)
    for place in mixed:
        which = np.array([np.asarray(child.is_valid()) for child in keys[place].flatten()])
        kinds = kinds * len(_KEY) + which.argmax(axis=0)
    for kind in np.unique(kinds).tolist():
        rows = pa.array(np.flatnonzero(kinds == kind))
        code, chosen = kind, list(keys)
        for place in reversed(mixed):
            code, child = divmod(code, len(_KEY))
            chosen[place] = keys[place].field(child)
        parts = [part.take(rows) for part in chosen]
        update(parts[0] if len(parts) == 1 else tuple(parts), 1 if weights is None else weights[kinds == kind])
