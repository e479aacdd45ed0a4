"""Every public entry point that takes arrays or numbers, against every kind of array and number.

Each call either gives the right answer or raises a documented exception and changes nothing. The tables below are parts
of that of `entry_points.py`, which names every parameter of the public surface.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import entry_points
import numpy as np
import pandas as pd
import pytest
from entry_points import SIZE, START, fresh
from helpers import DOCUMENTED, Integers, misaligned, raised_by, read, read_only, record_field, whole
from scipy import sparse

import fastgame as fg

BASE = np.array([2, 0, 1, 3, 1, 2], dtype=np.int64)


def state(structure: Any) -> tuple[object, ...]:
    """All that can be seen of a structure: reads it last, since reading seals."""
    seen = (structure.now, structure.sealed, structure.dropped, structure.horizon, repr(structure))
    return (*seen, np.array(whole(read(structure))).tolist())


@dataclass
class Entry:
    """One parameter that takes arrays."""

    #: "int" refuses floats, "float" takes both.
    takes: str
    #: "counter", "vector", "sketch", "range" or "join".
    kind: str
    #: Makes the call.
    call: Callable[[Any, Any], Any]
    #: Checks the structure and what the call returned, against the array that numpy makes of the argument.
    check: Callable[[Any, Any, Any], None]
    #: Elements, in an order, that are an allowed argument.
    good: Integers


def check_weights(count: Any, _: Any, given: Any) -> None:
    assert whole(count.release()) == START.sum() + given.sum()


def check_indices(cells: Any, _: Any, given: Any) -> None:
    assert np.array_equal(whole(read(cells)), START + np.bincount(given.ravel().astype(int), minlength=SIZE))


def check_release(_: Any, released: Any, given: Any) -> None:
    assert np.shape(released) == given.shape
    assert isinstance(released, float if given.shape == () else np.ndarray)
    assert np.array_equal(whole(released), START[given.astype(int)])


def update_values(cells: Any, values: Any) -> None:
    cells.update(np.arange(np.size(np.asarray(values))).reshape(np.shape(values)) % SIZE, values)


def check_values(cells: Any, _: Any, given: Any) -> None:
    expected = START.copy()
    np.add.at(expected, np.arange(given.size) % SIZE, given.ravel().astype(np.int64))
    assert np.array_equal(whole(cells.release()), expected)


def update_weights(sketch: Any, weights: Any) -> None:
    # Keys stand in one dimension; what has more is laid out so.
    if np.ndim(weights) > 1:
        flat = np.asarray(weights).reshape(-1)
        weights = [] if flat.size == 0 and isinstance(weights, list) else flat
    sketch.update(np.arange(np.size(np.asarray(weights))) % SIZE, weights)


def update_points(counter: Any, points: Any) -> None:
    # Of one axis: a dimension, and no more than one value in a second.
    if np.ndim(points) > 1:
        flat = np.asarray(points).reshape(-1)
        points = [] if flat.size == 0 and isinstance(points, list) else flat
    counter.update(points)


def check_totals(sketch: Any, _: Any, given: Any) -> None:
    expected = START.copy()
    np.add.at(expected, np.arange(given.size) % SIZE, given.ravel().astype(np.int64))
    assert np.array_equal(whole(read(sketch))[:SIZE], expected)


def update_side(join: Any, weights: Any) -> None:
    update_weights(join.left, weights)


def check_join(join: Any, _: Any, given: Any) -> None:
    assert whole(join.estimate()) == START.sum() + given.sum()


def update_rows(cells: Any, rows: Any) -> None:
    cells.update_rows(rows)


def check_rows(cells: Any, _: Any, given: Any) -> None:
    assert np.array_equal(whole(cells.release()), START + given.astype(np.int64).reshape(-1, SIZE).sum(axis=0))


def check_profile(_: Any, profile: Any, given: Any) -> None:
    elements = np.abs(given.ravel().astype(np.int64))
    assert (profile.total, profile.keys) == (elements.sum(), np.count_nonzero(elements))
    assert profile.second_moment == np.sum(elements**2)


ROWS = np.array([[1, 0, 2, 0, 3], [0, 1, 0, 2, 0]], dtype=np.int64)

ARRAYS: dict[tuple[str, str], Entry] = {
    ("ContinualCounter.update", "weights"): Entry(
        "int", "counter", lambda count, given: count.update(given), check_weights, BASE
    ),
    ("ContinualVector.update", "cells"): Entry(
        "int", "vector", lambda cells, given: cells.update(given), check_indices, BASE
    ),
    ("ContinualVector.release", "indices"): Entry(
        "int", "vector", lambda cells, given: cells.release(given), check_release, BASE
    ),
    ("ContinualVector.update", "values"): Entry("float", "vector", update_values, check_values, BASE),
    ("ContinualVector.update_row", "cells"): Entry(
        "int", "vector", lambda cells, given: cells.update_row(given), check_indices, BASE
    ),
    ("ContinualVector.update_rows", "rows"): Entry("float", "vector", update_rows, check_rows, ROWS),
    ("CountSketch.update", "weights"): Entry("int", "sketch", update_weights, check_totals, BASE),
    ("RangeCounter.update", "points"): Entry("int", "range", update_points, check_indices, BASE),
    ("RangeCounter.update", "weights"): Entry("int", "range", update_weights, check_totals, BASE),
    ("JoinSide.update", "weights"): Entry("int", "join", update_side, check_join, BASE),
    # No structure takes part.
    ("FrequencyProfile", "frequencies"): Entry(
        "float", "counter", lambda _, given: fg.FrequencyProfile(given), check_profile, BASE
    ),
}


def structure_call(name: str) -> Callable[[str], Callable[[Any], Any]]:
    """Calls of a constructor or plan method with one parameter replaced."""
    function: Any = fg
    for part in name.split("."):
        function = getattr(function, part)
    first: dict[str, Any] = {"size": 3} if "Vector" in name else {"width": 16} if "Sketch" in name else {}
    if "Range" in name:
        first = {"shape": 3}
    if not name.startswith("RawSketch"):
        first |= {"horizon": 8, "privacy": fg.Zcdp(0.5)}

    def of(parameter: str) -> Callable[[Any], Any]:
        base = {**first, "mechanism": "blt"} if parameter == "buffers" else first
        return lambda given: function(**{**base, parameter: given})

    return of


PLAN = fg.ContinualCounter.plan(horizon=8, privacy=fg.Zcdp(0.5))
SKETCH_PLAN = fg.CountSketch.plan(width=16, hash_seed=1, horizon=8, privacy=fg.Zcdp(0.5))
RANGE_PLAN = fg.RangeCounter.plan(shape=(4, 5), hash_seed=1, horizon=8, privacy=fg.Zcdp(0.5))
PROFILE = fg.FrequencyProfile([3, 2, 1])


def join_profile(**changed: Any) -> Any:
    """A profile, with one parameter replaced."""
    return fg.JoinProfile(**{"left_moment": 64.0, "right_moment": 64.0, "join_size": 4.0, **changed})


def uniform(**changed: Any) -> Any:
    """Likewise."""
    return fg.JoinProfile.uniform(**{"left_total": 4.0, "right_total": 4.0, "keys": 2, **changed})


def suggest_join(parameter: str) -> Callable[[Any], Any]:
    """Calls of JoinSize.suggest with one parameter replaced."""
    given: dict[str, Any] = {"horizon": 8, "privacy": fg.Zcdp(0.5), "profile": uniform(), "hash_seed": 1}
    given |= {"mechanism": "blt"} if parameter == "buffers" else {}
    return lambda value: fg.JoinSize.suggest(**{**given, parameter: value})


def suggest(parameter: str) -> Callable[[Any], Any]:
    """Calls of CountSketch.suggest with one parameter replaced."""
    given: dict[str, Any] = {"horizon": 8, "privacy": fg.Zcdp(0.5), "profile": PROFILE, "max_cells": 64, "hash_seed": 1}
    given |= {"mechanism": "blt"} if parameter == "buffers" else {}
    return lambda value: fg.CountSketch.suggest(**{**given, parameter: value})


def compared(**given: Any) -> list[Any]:
    """What a comparison computes; what it measures is another each time."""
    rows = SKETCH_PLAN.compare(**given).mechanisms
    return [(row.mechanism, row.error_at_end, row.memory) for row in rows]


# Parameters that are one integer: a call, and an allowed value.
INTEGERS: dict[tuple[str, str], tuple[Callable[[Any], Any], int]] = {
    ("Structure.advance", "to"): (lambda given: fresh("counter").advance(to=given), 3),
    ("Plan.error", "releases"): (lambda given: PLAN.error(0.9, given), 3),
    ("Plan.error", "at"): (lambda given: PLAN.error(at=given), 3),
    ("Plan.std", "at"): (lambda given: PLAN.std(at=given), 3),
    ("Plan.box", "at"): (lambda given: RANGE_PLAN.box(at=given), 3),
    ("Plan.compare", "reads"): (lambda given: compared(reads=given), 3),
    ("Plan.compare", "keys"): (lambda given: compared(keys=given), 3),
    ("Plan.cells_read", "keys"): (SKETCH_PLAN.cells_read, 3),
    ("Plan.fits_in_vector", "keys"): (SKETCH_PLAN.fits_in_vector, 3),
    ("FrequencyProfile.zipf", "keys"): (lambda given: fg.FrequencyProfile.zipf(total=9, keys=given), 3),
    **{
        ("CountSketch.suggest", name): (suggest(name), value)
        for name, value in [
            *[("horizon", 4), ("contributions", 2), ("insecure_seed", 5), ("max_cells", 9), ("max_weight", 2)],
            *[("hash_seed", 5), ("buffers", 2)],
        ]
    },
    **{
        ("JoinSize.suggest", name): (suggest_join(name), value)
        for name, value in [
            *[("horizon", 4), ("contributions", 2), ("insecure_seed", 5), ("max_weight", 2), ("hash_seed", 5)],
            ("buffers", 2),
        ]
    },
    ("JoinProfile.uniform", "keys"): (lambda given: uniform(keys=given), 3),
    ("CountSketch.top", "k"): (lambda given: fresh("sketch").top(given, among=[1, 2, 3, 4]), 3),
    ("RangeCounter.heavy_hitters", "limit"): (lambda given: fresh("range").heavy_hitters(4.5, limit=given), 3),
}
# Parameters that are one real number.
REALS: dict[tuple[str, str], tuple[Callable[[Any], Any], float]] = {
    ("Zcdp", "rho"): (fg.Zcdp, 1.0),
    ("Gdp", "mu"): (fg.Gdp, 1.0),
    ("PureDp", "epsilon"): (fg.PureDp, 1.0),
    ("ApproxDp", "epsilon"): (lambda given: fg.ApproxDp(given, 1e-6), 1.0),
    ("ApproxDp", "delta"): (lambda given: fg.ApproxDp(1.0, given), 0.5),
    ("Budget.epsilon", "delta"): (lambda given: fg.Zcdp(1.0).epsilon(given), 0.5),
    ("Budget.delta", "epsilon"): (lambda given: fg.Zcdp(1.0).delta(given), 1.0),
    ("Budget.split", "parts"): (lambda given: fg.Zcdp(1.0).split(0.25, given), 0.5),
    ("Plan.error", "confidence"): (PLAN.error, 0.5),
    ("CountSketch.suggest", "confidence"): (suggest("confidence"), 0.5),
    ("FrequencyProfile.zipf", "total"): (lambda given: fg.FrequencyProfile.zipf(total=given, keys=3), 9.0),
    ("FrequencyProfile.zipf", "exponent"): (
        lambda given: fg.FrequencyProfile.zipf(total=9, keys=3, exponent=given),
        0.5,
    ),
    ("CountSketch.estimate", "confidence"): (
        lambda given: fresh("sketch", insecure_seed=1).estimate(1, confidence=given),
        0.5,
    ),
    ("JoinSize.suggest", "confidence"): (suggest_join("confidence"), 0.5),
    ("JoinProfile", "left_moment"): (lambda given: join_profile(left_moment=given), 64.0),
    ("JoinProfile", "right_moment"): (lambda given: join_profile(right_moment=given), 64.0),
    # It may be negative, as totals may: not beyond the root of the product of the moments.
    ("JoinProfile", "join_size"): (lambda given: fg.JoinProfile(0.5, 0.5, given), 0.5),
    ("JoinProfile.uniform", "left_total"): (lambda given: uniform(left_total=given), 4.0),
    ("JoinProfile.uniform", "right_total"): (lambda given: uniform(right_total=given), 4.0),
    ("JoinSize.estimate", "confidence"): (
        lambda given: fresh("join", insecure_seed=1).estimate(confidence=given),
        0.5,
    ),
    ("RangeCounter.heavy_hitters", "threshold"): (lambda given: len(fresh("range").heavy_hitters(given).items), 4.5),
    ("Plan.box", "confidence"): (lambda given: RANGE_PLAN.box(confidence=given), 0.5),
    ("Plan.box", "second_moment"): (lambda given: RANGE_PLAN.box(second_moment=given), 0.5),
}
CLASSES = [fg.ContinualCounter, fg.ContinualVector, fg.CountSketch, fg.RangeCounter, fg.JoinSize]
for function in ["RawSketch", *(f"{kind.__name__}{plan}" for kind in CLASSES for plan in ["", ".plan"])]:
    make = structure_call(function)
    if function != "RawSketch":
        for parameter, value in [("horizon", 4), ("contributions", 2), ("insecure_seed", 5), ("buffers", 2)]:
            INTEGERS[function, parameter] = (make(parameter), value)
    if "Vector" in function:
        INTEGERS[function, "size"] = (make("size"), 3)
        REALS[function, "max_norm"] = (make("max_norm"), 2.0)
    else:
        INTEGERS[function, "max_weight"] = (make("max_weight"), 2)
    if any(name in function for name in ("Sketch", "Range", "Join")):
        for parameter, value in [("width", 32), ("depth", 3), ("hash_seed", 5)]:
            INTEGERS[function, parameter] = (make(parameter), value)


def test_the_tables_are_parts_of_the_one_of_all_entry_points() -> None:
    tables = [set(ARRAYS), set(INTEGERS), set(REALS)]
    assert sum(map(len, tables)) == len(set().union(*tables))
    assert set().union(*tables) <= set(entry_points.ROWS)


class Subclass(np.ndarray[Any, Any]):
    """An array class of somebody else, with methods that mislead."""

    def astype(self, *arguments: Any, **keywords: Any) -> Any:
        raise RuntimeError("not to be called")

    ravel = tolist = copy = astype


class Holder:
    """An object that numpy can make an array of."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array if dtype is None else self.array.astype(dtype)


class Index:
    """An integer of somebody else."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value

    def __float__(self) -> float:
        return float(self.value)


INT_DTYPES = [
    "b",
    "h",
    "i",
    "l",
    "q",
    "B",
    "H",
    "I",
    "L",
    "Q",
    ">i2",
    ">i4",
    ">i8",
    ">u2",
    ">u4",
    ">u8",
    "<i4",
    "p",
    "P",
]
FLOAT_DTYPES = ["e", "f", "d", "g", ">f2", ">f4", ">f8", "<f4", np.dtype("g").newbyteorder().str]

# Layouts of allowed elements. Right for every entry that takes their dtype.
LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda base, dtype: base.astype(dtype),
    "strided": lambda base, dtype: np.repeat(base.astype(dtype), 2, axis=-1)[..., ::2],
    "reversed": lambda base, dtype: base.astype(dtype)[..., ::-1],
    "fortran": lambda base, dtype: np.asfortranarray(base.astype(dtype)),
    "misaligned": lambda base, dtype: misaligned(base.astype(dtype)),
    "read only": lambda base, dtype: read_only(base.astype(dtype)),
    "field of a record": lambda base, dtype: record_field(base.astype(dtype)),
    "subclass": lambda base, dtype: base.astype(dtype).view(Subclass),
    "other object": lambda base, dtype: Holder(base.astype(dtype)),
    "object": lambda base, dtype: base.astype(dtype).astype(object),
    "object of scalars": lambda base, dtype: np.frompyfunc(np.dtype(dtype).type, 1, 1)(base),
}

ENTRIES = pytest.mark.parametrize("entry", ARRAYS.values(), ids=[" ".join(key) for key in ARRAYS])


def run_right(entry: Entry, given: Any) -> None:
    """The call gives what numpy's view of the argument says."""
    structure = fresh(entry.kind)
    released = entry.call(structure, given)
    model = np.asarray(given)
    if model.dtype == object:
        model = np.asarray(np.frompyfunc(int, 1, 1)(model)).astype(np.int64)
    entry.check(structure, released, model)


def run_refused(entry: Entry, given: Any, *documented: type[BaseException]) -> str:
    """The call raises a documented exception with a message, and nothing has changed."""
    structure, untouched = fresh(entry.kind), fresh(entry.kind)
    error = raised_by(lambda: entry.call(structure, given))
    assert isinstance(error, documented or DOCUMENTED), repr(error)
    assert state(structure) == state(untouched)
    return str(error)


@ENTRIES
@pytest.mark.parametrize("dtype", INT_DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_integer_arrays_of_every_dtype_and_layout_are_right(entry: Entry, dtype: Any, layout: str) -> None:
    run_right(entry, LAYOUTS[layout](entry.good, dtype))


@ENTRIES
@pytest.mark.parametrize("dtype", FLOAT_DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_float_arrays_are_right_where_reals_are_meant_and_refused_for_integers(
    entry: Entry, dtype: Any, layout: str
) -> None:
    given = LAYOUTS[layout](entry.good, dtype)
    if entry.takes == "float":
        run_right(entry, given)
    else:
        assert "must be integers" in run_refused(entry, given, TypeError)


# Containers of allowed elements that are no arrays.
CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda base: base.tolist(),
    "tuple": lambda base: tuple(map(tuple, base)) if base.ndim > 1 else tuple(base),
    "list of numpy scalars": lambda base: [list(row) for row in base] if base.ndim > 1 else list(base),
    "list of arrays": lambda base: list(base.reshape(-1, 1) if base.ndim == 1 else base),
    "pandas": lambda base: pd.DataFrame(base) if base.ndim > 1 else pd.Series(base, index=range(9, 9 - len(base), -1)),
    "pandas nullable": lambda base: (
        pd.DataFrame(base).astype("Int64") if base.ndim > 1 else pd.Series(base, dtype="Int64")
    ),
    "pandas index": lambda base: base if base.ndim > 1 else pd.Index(base),
    "memoryview": memoryview,
    "array interface": lambda base: memoryview(base.astype("i4")),
    "matrix": lambda base: base.view(np.matrix),
    "objects with __index__": np.frompyfunc(Index, 1, 1),
}


@ENTRIES
@pytest.mark.parametrize("container", CONTAINERS)
def test_containers_that_are_no_arrays_are_right(entry: Entry, container: str) -> None:
    given = CONTAINERS[container](entry.good)
    if entry.call is update_rows and container == "objects with __index__":
        run_right(entry, given.tolist())
    else:
        run_right(entry, given)


@ENTRIES
@pytest.mark.parametrize("make", [range, np.arange, lambda n: bytearray(range(n)), lambda n: list(range(n))])
def test_sequences_of_bytes_and_ranges_are_integers(entry: Entry, make: Callable[[int], Any]) -> None:
    if entry.call is update_rows:
        run_refused(entry, make(SIZE), ValueError)
    else:
        run_right(entry, make(SIZE))


@ENTRIES
@pytest.mark.parametrize(
    "scalar", [2, np.int8(2), np.uint64(2), np.array(2), np.array(2, dtype=">u2"), Index(2)], ids=repr
)
def test_scalars_are_right(entry: Entry, scalar: Any) -> None:
    if entry.call is update_rows:
        run_refused(entry, scalar, ValueError)
    else:
        run_right(entry, scalar)


@ENTRIES
@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 1)])
@pytest.mark.parametrize("dtype", ["i8", "u1", "f8", "O", "?", "U1", "c16"])
def test_empty_arrays_do_nothing_or_are_refused_for_their_dtype(entry: Entry, shape: Any, dtype: str) -> None:
    given = np.empty(shape, dtype=dtype)
    allowed = "iuO" if entry.takes == "int" else "iufO"
    if entry.call is update_rows and shape != (0,):
        run_refused(entry, given, ValueError, TypeError)
    elif given.dtype.kind in allowed:
        run_right(entry, given)
    else:
        run_refused(entry, given, TypeError)


@ENTRIES
@pytest.mark.parametrize("empty", [[], (), [[], []], pd.Series([], dtype=object), pd.Series([], dtype=float)], ids=str)
def test_empty_lists_do_nothing(entry: Entry, empty: Any) -> None:
    if entry.call is update_rows and np.ndim(empty) > 1:
        run_refused(entry, empty, ValueError)
    else:
        run_right(entry, empty)


# What has no numeric meaning.
NO_NUMBERS: dict[str, Callable[[Any], Any]] = {
    "booleans": lambda base: base > 0,
    "list of booleans": lambda base: (base > 0).tolist(),
    "bool": lambda _: True,
    "numpy bool": lambda _: np.True_,
    "object booleans": lambda base: (base > 0).astype(object),
    "complex": lambda base: base.astype(complex),
    "object complex": lambda base: base.astype(complex).astype(object),
    "single complex": lambda base: base.astype("c8"),
    "strings": lambda base: base.astype(str),
    "object strings": lambda base: base.astype(str).astype(object),
    "bytes": lambda base: base.astype("S"),
    "str": lambda _: "12",
    "bytes object": lambda _: b"12",
    "datetimes": lambda base: base.astype("M8[s]"),
    "timedeltas": lambda base: base.astype("m8[s]"),
    "object timedeltas": np.frompyfunc(lambda x: np.timedelta64(int(x), "s"), 1, 1),
    "structured": lambda base: base.astype([("a", "i8"), ("b", "f8")]),
    "void": lambda base: base.astype("i8").view("V8"),
    "None": lambda _: None,
    "list of None": lambda base: [None] * len(base),
    "object": lambda _: object(),
    "a class": lambda _: int,
    "generator": lambda base: (x for x in base),
    "iterator": lambda base: iter(base.tolist()),
    "map": lambda base: map(int, base.ravel()),
    "set": lambda base: set(base.ravel().tolist()),
    "dict": lambda base: dict.fromkeys(base.ravel().tolist(), 1),
    "slice": lambda _: slice(0, 2),
    "ellipsis": lambda _: ...,
    "masked": lambda base: np.ma.array(base, mask=base > 1),
    "masked without mask": np.ma.array,
    "masked constant": lambda _: np.ma.masked,
    "list of pandas NA": lambda base: [1, pd.NA],
    "pandas NA": lambda _: pd.NA,
    "pandas booleans": lambda base: pd.DataFrame(base > 0) if base.ndim > 1 else pd.Series(base > 0),
    "pandas strings": lambda base: pd.Series(base.ravel().astype(str)),
    "pandas dates": lambda base: pd.Series(base.ravel().astype("M8[s]")),
    "categories": lambda base: pd.Categorical(base.ravel().astype(str)),
    "a structure": lambda _: fg.ContinualCounter(horizon=1, privacy=fg.Zcdp(1.0)),
    "a budget": lambda _: fg.Zcdp(1.0),
    "mixed": lambda base: [1, "a", None],
}


@ENTRIES
@pytest.mark.parametrize("what", NO_NUMBERS)
def test_what_is_no_number_is_a_type_error_that_names_the_argument(
    entry: Entry, what: str, request: pytest.FixtureRequest
) -> None:
    given = NO_NUMBERS[what](entry.good)
    if given is None and "release" in request.node.name:
        return  # the default: all cells
    if (entry.call is update_values and isinstance(given, (set, dict, slice))) or isinstance(
        given, types.GeneratorType
    ):
        run_refused(entry, given, TypeError)
        return
    message = run_refused(entry, given, TypeError)
    name = next(key[1] for key, other in ARRAYS.items() if other is entry)
    assert name in message
    assert "given" in message or "masked" in message


@ENTRIES
@pytest.mark.parametrize(
    "ragged", [[[0], [0, 1]], [[0, 1], 2], [0, [1]], [[0, [1]], [2, 3]], [np.zeros(2), np.zeros(3)]]
)
def test_ragged_lists_are_refused(entry: Entry, ragged: Any) -> None:
    if entry.call is update_values:
        structure, untouched = fresh("vector"), fresh("vector")
        with pytest.raises(ValueError):
            structure.update([0, 1], ragged)
        assert state(structure) == state(untouched)
    else:
        run_refused(entry, ragged, ValueError)


HUGE = [
    2**31,
    -(2**31),
    2**53 + 1,
    2**62,
    2**63 - 1,
    -(2**63),
    2**63,
    -(2**63) - 1,
    2**64 - 1,
    2**64,
    2**70,
    -(2**70),
    10**400,
]


@ENTRIES
@pytest.mark.parametrize("huge", HUGE)
def test_huge_integers_are_refused_or_dropped_alone_however_they_are_given(
    entry: Entry, huge: int, request: pytest.FixtureRequest
) -> None:
    if entry.check is check_profile:
        # Allowed as far as a counter could hold it.
        if abs(huge) < 2**64 and float(abs(huge)) <= 2**63:
            assert entry.call(None, [0, huge]).total == float(abs(huge))
        else:
            assert isinstance(raised_by(lambda: entry.call(None, [0, huge])), OverflowError)
        return
    other = np.zeros(SIZE, dtype=object)
    rows = entry.call is update_rows
    forms: list[Any] = [
        [huge],
        [0, huge],
        [-1 if entry.takes == "float" else 0, huge, 0],
        np.array([huge], dtype=object),
    ]
    if not rows:
        forms.append(huge)
    if -(2**63) <= huge < 2**63:
        forms += [np.int64(huge), np.array([0, huge], dtype=">i8"), np.array([[huge]], dtype=np.int64)]
    if 0 <= huge < 2**64:
        forms += [np.uint64(huge), np.array([0, huge], dtype=np.uint64), np.array([huge], dtype=">u8")]
    for form in forms:
        given: Any = form
        if rows:
            width = np.resize(other, (len(np.atleast_1d(np.asarray(form, dtype=object)).ravel()), SIZE)).copy()
            width[:, 1] = np.atleast_1d(np.asarray(form, dtype=object)).ravel()
            given = width
        message = run_refused(entry, given, ValueError, OverflowError)
        assert "position" in message
        structure = fresh(entry.kind, invalid="drop")
        if "release" not in request.node.name:
            entry.call(structure, given)
            assert structure.dropped == 1
            assert not structure.sealed


@ENTRIES
def test_negative_indices_do_not_count_from_the_end(entry: Entry, request: pytest.FixtureRequest) -> None:
    if request.node.name.endswith(("indices]", "points]")):
        place = "outside of the grid" if entry.kind == "range" else "outside of the vector"
        for given in [
            -1,
            [0, -1],
            np.array([-SIZE], dtype="i1"),
            [SIZE],
            np.uint8(255),
            np.array([2, SIZE], dtype=">u2"),
        ]:
            assert f"{place}; allowed are 0 to 4" in run_refused(entry, given, ValueError)
    else:
        run_right(entry, -entry.good)
        run_right(entry, (-entry.good).astype("i1"))


@ENTRIES
@pytest.mark.parametrize("dtype", [*FLOAT_DTYPES, "O", "list", "tuple"])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_are_refused_or_dropped_alone(entry: Entry, dtype: Any, bad: float) -> None:
    numbers = entry.good.astype(float)
    numbers[..., 1] = bad
    given: Any
    if dtype in {"list", "tuple"}:
        given = numbers.tolist() if dtype == "list" else tuple(numbers.tolist())
    else:
        given = numbers.astype(dtype)
    if entry.takes == "int":
        run_refused(entry, given, TypeError)
        return
    assert "NaN or infinite" in run_refused(entry, given, ValueError)
    if entry.check is check_profile:
        return  # there is nothing to drop from
    dropping = fresh(entry.kind, invalid="drop")
    entry.call(dropping, given)
    assert dropping.dropped == len(np.atleast_2d(numbers))
    assert np.array_equal(whole(dropping.release()), START)


@ENTRIES
@pytest.mark.parametrize("number", [Decimal(2), Fraction(4, 2), 2.0, np.float16(2), np.longdouble(2)], ids=repr)
def test_other_real_numbers_are_reals_and_no_integers(entry: Entry, number: Any) -> None:
    if entry.takes == "int":
        run_refused(entry, number, TypeError)
        run_refused(entry, [number, number], TypeError)
    elif entry.call is update_rows:
        structure = fresh("vector")
        structure.update_rows([[number] * SIZE])
        assert np.array_equal(whole(structure.release()), START + 2)
    else:
        structure = fresh("vector")
        structure.update(0, number)
        structure.update([1, 2], [number, number])
        assert np.array_equal(whole(structure.release()), START + np.array([2, 2, 2, 0, 0]))


def test_a_long_double_beyond_floats_is_refused_without_a_warning() -> None:
    if np.finfo(np.longdouble).max > np.finfo(float).max:
        cells = fresh("vector")
        with pytest.raises(ValueError, match="NaN or infinite"):
            cells.update(0, np.longdouble("1e4000"))
        assert state(cells) == state(fresh("vector"))


def test_fractions_are_truncated_in_no_index() -> None:
    cells = fresh("vector")
    for index in [0.5, [0.5], np.array([1.0])]:
        with pytest.raises(TypeError, match="must be integers"):
            cells.update(index)


@ENTRIES
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
def test_an_error_inside_the_argument_comes_out_as_it_is(entry: Entry, error: type[BaseException]) -> None:
    class BrokenArray:
        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            raise error("broken")

    class BrokenNumber:
        def __index__(self) -> int:
            raise error("broken")

        __float__ = __index__

    structure, untouched = fresh(entry.kind), fresh(entry.kind)
    elements = np.array([BrokenNumber()] * SIZE, dtype=object)
    for broken in [BrokenArray(), elements[np.newaxis] if entry.call is update_rows else elements]:
        with pytest.raises(error, match="broken"):
            if entry.call is update_values:
                structure.update(range(SIZE), broken)
            else:
                entry.call(structure, broken)
    assert state(structure) == state(untouched)


def test_an_array_too_large_for_memory_is_a_memory_error() -> None:
    cells = fresh("vector")
    enormous = np.broadcast_to(np.int64(0), (2**50,))
    for call in [cells.update, cells.release, fresh("counter").update]:
        with pytest.raises(MemoryError):
            call(enormous)
    assert state(cells) == state(fresh("vector"))


def test_a_vector_too_large_for_memory_is_refused() -> None:
    for size in [2**60, 2**62, 2**63, 2**64, 2**70]:
        with pytest.raises(ValueError, match=r"size must be .*fits in memory.*; \d+ was given"):
            fg.ContinualVector(size, horizon=8, privacy=fg.Zcdp(0.5))


BROKEN_SPARSE: list[tuple[str, Callable[[Any], None]]] = [
    ("an index beyond the width", lambda rows: rows.indices.__setitem__(0, SIZE)),
    ("a negative index", lambda rows: rows.indices.__setitem__(0, -1)),
    ("offsets that fall", lambda rows: rows.indptr.__setitem__(1, 99)),
    ("negative offsets", lambda rows: rows.indptr.__setitem__(1, -1)),
    ("offsets from one", lambda rows: rows.indptr.__setitem__(0, 1)),
    ("offsets beyond the end", lambda rows: rows.indptr.__setitem__(-1, 99)),
    ("NaN", lambda rows: rows.data.__setitem__(0, math.nan)),
    ("complex data", lambda rows: setattr(rows, "data", rows.data.astype(complex))),
    ("boolean data", lambda rows: setattr(rows, "data", rows.data > 0)),
    ("object data", lambda rows: setattr(rows, "data", np.array(["a"] * len(rows.data), dtype=object))),
    ("float indices", lambda rows: setattr(rows, "indices", rows.indices.astype(float))),
    ("too few values", lambda rows: setattr(rows, "data", rows.data[:-1])),
    ("two-dimensional data", lambda rows: setattr(rows, "data", np.ones((2, 9)))),
    ("no indices", lambda rows: setattr(rows, "indices", None)),
]


@pytest.mark.parametrize("break_it", [case[1] for case in BROKEN_SPARSE], ids=[case[0] for case in BROKEN_SPARSE])
def test_a_sparse_matrix_that_is_inconsistent_is_refused(break_it: Callable[[Any], None]) -> None:
    rows = sparse.csr_array(ROWS.astype(float))
    break_it(rows)
    cells = fresh("vector")
    error = raised_by(lambda: cells.update_rows(rows))
    assert isinstance(error, DOCUMENTED), repr(error)
    assert state(cells) == state(fresh("vector"))


@pytest.mark.parametrize("dtype", ["i1", "u2", "i8", "f4", "f8", "g"])
@pytest.mark.parametrize("indices", ["i4", "i8"])
def test_sparse_matrices_of_every_dtype_are_right(dtype: str, indices: str) -> None:
    rows = sparse.csr_array(ROWS.astype(dtype))
    rows.indices, rows.indptr = rows.indices.astype(indices), rows.indptr.astype(indices)
    cells = fresh("vector")
    cells.update_rows(rows)
    check_rows(cells, None, ROWS)


def test_the_argument_is_not_changed() -> None:
    for entry in ARRAYS.values():
        given = entry.good.copy()
        entry.call(fresh(entry.kind), given)
        assert np.array_equal(given, entry.good)
    rows = sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, SIZE))
    fresh("vector").update_rows(rows)
    assert rows.nnz == 2


INTEGER_PARAMETERS = pytest.mark.parametrize("call, good", INTEGERS.values(), ids=[" ".join(key) for key in INTEGERS])
REAL_PARAMETERS = pytest.mark.parametrize("call, good", REALS.values(), ids=[" ".join(key) for key in REALS])


@INTEGER_PARAMETERS
def test_an_integer_parameter_takes_every_integer_type(call: Callable[[Any], Any], good: int) -> None:
    call(good)
    for dtype in INT_DTYPES:
        call(np.dtype(dtype).type(good))
        call(np.array(good, dtype=dtype))
    call(Index(good))


@INTEGER_PARAMETERS
@pytest.mark.parametrize(
    "bad",
    [1.0, np.float64(1), "1", b"1", True, np.True_, np.array(True), 1j, [1], (1,), np.array([1]), {}, object(), int,
     Decimal(1), math.nan, np.array("1"), np.ma.masked, pd.NA, np.timedelta64(1, "s"), fg.Zcdp(1.0)],
    ids=repr,
)  # fmt: skip
def test_an_integer_parameter_refuses_everything_else_with_its_type(
    call: Callable[[Any], Any], good: int, bad: Any
) -> None:
    with pytest.raises(TypeError, match=r"\w+ must be an integer; \w+ was given"):
        call(bad)


@INTEGER_PARAMETERS
@pytest.mark.parametrize("bad", [-1, -(2**63), -(2**64), -(2**200), 2**200], ids=hex)
def test_an_integer_parameter_out_of_range_is_refused_with_what_is_allowed(
    call: Callable[[Any], Any], good: int, bad: int
) -> None:
    with pytest.raises(ValueError, match=r"\w+ must be .*given"):
        call(bad)


@INTEGER_PARAMETERS
def test_none_is_no_integer(call: Callable[[Any], Any], good: int, request: pytest.FixtureRequest) -> None:
    words = ["insecure_seed", "hash_seed", "advance to", " at", "cells_read keys", " buffers", "compare"]
    if any(name in request.node.name for name in words):
        call(None)  # documented: no seed or any, the next step, the last one, all cells, as many as suit
        return
    with pytest.raises(TypeError, match="NoneType"):
        call(None)


@REAL_PARAMETERS
def test_a_real_parameter_takes_every_number_type(call: Callable[[Any], Any], good: float) -> None:
    expected = repr(call(good)).replace(" at step", "")
    numbers: list[Any] = [np.dtype(dtype).type(good) for dtype in FLOAT_DTYPES]
    numbers += [np.array(good, dtype=dtype) for dtype in FLOAT_DTYPES]
    numbers += [Decimal(good), Fraction(good)]
    if good == int(good):
        numbers += [int(good), Index(int(good)), *(np.dtype(dtype).type(good) for dtype in INT_DTYPES)]
    for number in numbers:
        assert repr(call(number)).replace(" at step", "") == expected


@REAL_PARAMETERS
@pytest.mark.parametrize(
    "bad",
    ["1", b"1", True, np.True_, np.array(True), 1j, np.complex64(1), np.array(1j), [0.5], (0.5,), {}, object(), float,
     np.array("1"), np.void(b"1"), np.ma.masked, pd.NA, pd.NaT, np.timedelta64(1, "s"), fg.Zcdp(1.0)],
    ids=repr,
)  # fmt: skip
def test_a_real_parameter_refuses_everything_else_with_its_type(
    call: Callable[[Any], Any], good: float, bad: Any
) -> None:
    with pytest.raises(TypeError, match=r"\w+ must be a number; \w+ was given"):
        call(bad)


@REAL_PARAMETERS
@pytest.mark.parametrize(
    "bad", [-1, -(10**400), 10**400, math.nan, math.inf, -math.inf, np.float16("nan"), Decimal("NaN")]
)
def test_a_real_parameter_out_of_range_is_refused_with_what_is_allowed(
    call: Callable[[Any], Any], good: float, bad: float
) -> None:
    with pytest.raises(ValueError, match=r"\w+ must be .*given"):
        call(bad)


def test_an_integer_with_more_digits_than_python_prints_is_refused_too() -> None:
    for horizon in [10**5000, -(10**5000)]:
        with pytest.raises(
            ValueError, match=r"horizon must be a number of time steps from 1 to 2\^62; .* 39 digits or more"
        ):
            fg.ContinualCounter(horizon=horizon, privacy=fg.Zcdp(0.5))
        with pytest.raises(fg.HorizonError, match=r"; .* 39 digits or more"):
            fresh("counter").advance(to=horizon)
