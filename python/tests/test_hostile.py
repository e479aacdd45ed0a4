# mypy: disable-error-code="misc"
# ruff: noqa: PLR0911, PLR0912, PLR0915, PLW0108, E501
"""Every public entry point against values that nobody means: a right answer or a documented exception.

The table of `entry_points.py` says for each parameter which kinds of values it takes. A value of another kind must be
refused, with a message that names the parameter and in one sentence, and then nothing has changed; a value of a kind
that is taken must give what its plain equivalent gives. Nothing panics, warns, prints or hangs.
"""

from __future__ import annotations

import array
import collections
import datetime as dt
import enum
import faulthandler
import functools
import inspect
import io
import math
import os
import pickle
import re
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import entry_points
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from entry_points import AXES, ROWS, TICKS, Row, fresh, public_parameters, public_properties
from helpers import DOCUMENTED, misaligned, read, read_only, record_field, tiny_noise
from scipy import sparse

import fastgame as fg


class HostileError(Exception):
    """What hostile objects raise: it may come out."""


def raise_hostile(*_: Any, **__: Any) -> Any:
    raise HostileError("hostile")


def hostile(*methods: str, **others: Any) -> Any:
    """An object of a new class in which some methods raise, and others are as given."""
    return type("Hostile", (), {**dict.fromkeys(methods, raise_hostile), **others})()


class TextThatLies(str):
    """Text that is not what it seems."""

    __slots__ = ()
    __eq__ = lambda self, other: True  # noqa: E731
    __hash__ = str.__hash__
    encode = raise_hostile
    __str__ = lambda self: "lie"  # noqa: E731


class IntegerThatLies(int):
    __index__ = lambda self: 7  # noqa: E731
    __int__ = __index__
    __repr__ = raise_hostile
    __str__ = raise_hostile


class FloatThatLies(float):
    __float__ = raise_hostile
    __repr__ = raise_hostile


class TupleThatLies(tuple[Any, ...]):
    __len__ = lambda self: 3  # noqa: E731
    __iter__ = raise_hostile


class Subclass(np.ndarray[Any, Any]):
    """An array class with methods that mislead."""

    astype = raise_hostile
    ravel = tolist = copy = reshape = astype
    shape = property(lambda self: (99,))
    dtype = property(lambda self: np.dtype("f8"))


class Word(enum.IntEnum):
    ONE = 1


def recursive() -> Any:
    items: list[Any] = [1]
    items.append(items)
    return items


def nested(depth: int) -> Any:
    items: Any = 1
    for _ in range(depth):
        items = [items]
    return items


def shrinking() -> Any:
    """A list whose elements empty it while it is read."""
    items: list[Any] = []

    class Element:
        def __index__(self) -> int:
            items.clear()
            return 1

        def __float__(self) -> float:
            items.clear()
            return 1.0

    items.extend(Element() for _ in range(3))
    return items


def growing() -> Any:
    items: list[Any] = []

    class Element:
        def __index__(self) -> int:
            items.extend([1] * 1000)
            return 1

    items.extend(Element() for _ in range(3))
    return items


class Holder:
    """An object that numpy can make an array of."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.array if dtype is None else self.array.astype(dtype)


#: Arrays in every form. The elements are those of the argument.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "plain": np.copy,
    "strided": lambda base: np.repeat(base, 2, axis=-1)[..., ::2],
    "reversed": lambda base: np.flip(np.flip(base).copy()),
    "fortran": np.asfortranarray,
    "byte-swapped": lambda base: base.astype(base.dtype.newbyteorder()),
    "misaligned": misaligned,
    "read only": read_only,
    "field of a record": record_field,
    "broadcast": lambda base: np.broadcast_to(base, (1, *base.shape))[0],
    "base class of a subclass": lambda base: base.view(np.recarray) if base.dtype.names else base.view(np.ndarray),
    "other object": Holder,
    "objects": lambda base: base.astype(object),
}

NOTHING = object()


@dataclass
class Value:
    """A hostile value: new each time, of some kinds, and perhaps with a plain equivalent."""

    make: Callable[[], Any]
    kinds: frozenset[str]
    plain: Any = NOTHING


VALUES: dict[str, Value] = {}


def value(name: str, make: Callable[[], Any], *kinds: str, plain: Any = NOTHING) -> None:
    assert name not in VALUES
    VALUES[name] = Value(make, frozenset(kinds), plain)


def constant(thing: Any, *kinds: str, plain: Any = NOTHING, name: str = "") -> None:
    value(name or f"{type(thing).__name__} {thing!r}"[:60], lambda: thing, *kinds, plain=plain)


def _shown(number: int) -> str:
    text = f"{number:#x}"
    return text if len(text) < 30 else f"{text[:9]}... of {number.bit_length()} bits"


def _scalars() -> None:
    for number in (-1, 0, 1, 2, 2**31, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**400, 10**5000):
        constant(number, "int", name=f"int {_shown(number)}")
    for number in (-(2**31), -(2**63), -(2**63) - 1, -(10**400)):
        constant(number, "int", name=f"int {_shown(number)}")
    for real in (0.0, -0.0, 1.0, 0.5, -1.0, 5e-324, 1e308, -1e308, math.inf, -math.inf):
        constant(real, "real")
    constant(math.nan, "real", "nan")
    constant(True, "bool")
    constant(False, "bool")
    constant(np.True_, "bool", plain=True)
    constant(None, "none")
    odd: list[Any] = [NotImplemented, ..., int, len, math, lambda: None, slice(0, 2)]
    for thing in odd:
        constant(thing, "callable" if callable(thing) else "odd", name=f"{type(thing).__name__} {str(thing)[:9]}")
    value("object", object, "odd")
    for code in "bhilqBHILQ":
        constant(np.dtype(code).type(1), "int", plain=1, name=f"numpy scalar {code}")
    constant(np.uint64(2**64 - 1), "int", plain=2**64 - 1)
    for code in "efdg":
        constant(np.dtype(code).type(1), "real", plain=1.0, name=f"numpy scalar {code}")
        constant(np.dtype(code).type("nan"), "real", "nan", plain=math.nan, name=f"numpy NaN {code}")
        constant(np.dtype(code).type("-inf"), "real", plain=-math.inf, name=f"numpy infinity {code}")
    constant(np.longdouble("1e4000"), "real", plain=math.inf, name="numpy 1e4000")
    for code in "FDG":
        constant(np.dtype(code).type(1), "odd", name=f"numpy scalar {code}")
    constant(1j, "odd")
    constant(np.str_("a"), "text", plain="a")
    constant(np.bytes_(b"a"), "bytes", plain=b"a")
    constant(np.void(b"ab"), "odd")
    constant(np.zeros((), dtype=[("a", "i8")])[()], "odd", "record", name="numpy record")
    for plain, kind in ((1, "int"), (1.0, "real")):
        constant(np.array(plain), kind, "0-d", plain=plain, name=f"0-d {plain}")
        constant(np.array(plain, dtype=object), kind, "0-d", plain=plain, name=f"0-d object {plain}")
    constant(np.array(1, dtype=">u2"), "int", "0-d", plain=1, name="0-d swapped")
    constant(np.array(math.nan), "real", "nan", "0-d", plain=math.nan, name="0-d NaN")
    constant(np.array("a"), "text 0-d", plain="a", name="0-d text")
    constant(np.array(True), "odd", name="0-d bool")
    constant(np.array(None, dtype=object), "odd", "missing", name="0-d None")
    constant(np.array("2020-01-02", dtype="M8[s]"), "time 0-d", name="0-d time")
    constant(np.ma.masked, "odd", "missing")
    constant(np.ma.array(1, mask=True), "odd", "missing", name="0-d masked")
    for fraction in (Decimal(1), Fraction(1), Decimal("1e400"), Decimal("NaN"), Decimal("sNaN"), Decimal("0.5")):
        constant(fraction, "real", "decimal")
    constant(Word.ONE, "int", plain=1)
    value("int subclass that lies", lambda: IntegerThatLies(1), "int", "lie")
    value("float subclass that lies", lambda: FloatThatLies(1.0), "real", "lie")
    for text in ("", "a", "1", "nan", "\0", "a\0b", "\ud800", "a\udfffb", "é\u202e\u0301", "k", "i", "dyadic", "1d"):
        constant(text, "text", text, name=f"text {text!a}")
    value("long text", lambda: "ab" * 50_000, "text")
    value("text that lies", lambda: TextThatLies("a"), "text", "lie")
    for data in (b"", b"a", b"\0"):
        constant(data, "bytes", name=f"bytes {data!r}")
    constant(pd.NA, "odd", "missing", name="pandas NA")
    constant(pd.NaT, "odd", "missing", "no time", name="pandas NaT")
    for unit in ("s", "us", "ns", "D", "Y", "as"):
        constant(np.datetime64(1, unit), "time", name=f"datetime64 {unit}")
    constant(np.datetime64("NaT"), "no time", "missing")
    constant(np.datetime64(2**62, "Y"), "time", name="datetime64 far away")
    constant(np.datetime64(-(2**63) + 1, "us"), "time", name="datetime64 long ago")
    constant(np.timedelta64(1, "D"), "duration")
    constant(np.timedelta64("NaT"), "duration", "missing")
    constant(np.timedelta64(1, "Y"), "duration")
    constant(np.timedelta64(2**62, "W"), "duration")
    constant(dt.date(2020, 1, 2), "time")
    constant(dt.date.min, "time")
    constant(dt.datetime(2020, 1, 2), "time")
    constant(dt.datetime.max, "time")
    constant(dt.datetime(2020, 1, 2, tzinfo=dt.timezone.utc), "time", name="datetime in UTC")
    constant(dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=20))), "time", name="first datetime")
    constant(pd.Timestamp("2020-01-02"), "time")
    constant(pd.Timestamp("2020-01-02", tz="UTC"), "time", name="Timestamp in UTC")
    constant(dt.time(1), "odd")
    constant(dt.timedelta(days=1), "duration")
    constant(dt.timedelta.max, "duration")
    constant(-dt.timedelta.resolution, "duration")
    constant(pd.Timedelta("1D"), "duration")
    constant(dt.timezone.utc, "zone")
    value("zone that lies", lambda: type("Zone", (dt.tzinfo,), {"utcoffset": raise_hostile})(), "zone", "lie")
    for text in (
        "2020-01-02",
        "2020-01-02T00:00Z",
        "0001-01-01",
        "9999-12-31T23:59:59.999999-23:59",
        "UTC",
        "../x",
        "9" * 5000 + "d",
    ):
        constant(text, "text", "time text", name=f"text {text[:40]}")


def _containers() -> None:
    empties: list[Any] = [[], ()]
    for empty in empties:
        constant(empty, "empty", "ints", "reals", name=f"empty {type(empty).__name__}")
    constant({}, "odd", "empty dict")
    for odd in (set(), {1}, frozenset({1}), {1: 1}, {"a": 1}, {1: 1}.keys()):
        constant(
            odd, "odd", "iterable", "set or dict", *([] if odd else ["empty set"]), name=f"{type(odd).__name__} {odd!r}"
        )
    value("values of a dict", lambda: {1: 1}.values(), "odd", "iterable")
    value("generator", lambda: (x for x in [1, 0]), "odd", "iterable")
    value("generator that raises", lambda: (raise_hostile() for _ in [1]), "odd", "iterable")
    value("iterator", lambda: iter([1, 0]), "odd", "iterable")
    value("map", lambda: map(int, "10"), "odd", "iterable")
    value("deque", lambda: collections.deque([1, 0]), "ints", "sequence", "iterable", plain=[1, 0])
    constant(range(2), "ints", "sequence", plain=[0, 1])
    value("array of C integers", lambda: array.array("i", [1, 0]), "ints", "sequence", plain=[1, 0])
    value("array of C floats", lambda: array.array("d", [1, 0]), "reals", "sequence", plain=[1.0, 0.0])
    value("bytearray", lambda: bytearray(b"\1\0"), "ints", "buffer", plain=[1, 0])
    value("memoryview", lambda: memoryview(b"\1\0"), "ints", "buffer", plain=[1, 0])
    value("memoryview of floats", lambda: memoryview(array.array("d", [1, 1])), "reals", "buffer", plain=[1.0, 1.0])
    value("released memoryview", _released, "odd", "own")
    value("user list", lambda: collections.UserList([1, 0]), "ints", "sequence", "iterable", plain=[1, 0])
    value("file", lambda: io.StringIO("1"), "odd", "iterable", "file")
    constant([1, 0], "ints", name="list of ints")
    constant((1, 0), "ints", "tuple", name="tuple of ints")
    constant([1, 0.5], "reals", name="list of reals")
    constant([Decimal(1), Fraction(1)], "reals", "decimal", name="list of fractions")
    constant([np.int8(1), np.uint64(0)], "ints", plain=[1, 0], name="list of numpy integers")
    constant([2**63, -1], "ints", name="list of signs")
    constant([1, 2**64], "ints", name="list beyond 64 bits")
    constant([1, 10**400], "ints", name="list beyond floats")
    constant([math.nan, 1.0], "reals", "with NaN", name="list with NaN")
    constant([1.0, -0.0, math.inf, 5e-324], "reals", "with infinity", name="list with infinity")
    for name, items in {
        "list of bools": [True, False],
        "list of a bool and an int": [1, True],
        "list of a bool and a float": [1.5, True],
        "list of an array of bools": [np.array([True, False])],
        "rows with a bool": [[1, True], [1, 0]],
        "rows with a bool and a float": [[1.0, True, 0.0, 0.0, 0.0]],
        "list of a numpy bool": [np.int8(1), np.True_],
        "list of complex": [1j],
        "list of sets": [{1}],
        "list of objects": [object()],
        "list of a masked array": [np.ma.array([1, 0], mask=[True, False])],
        "list of masked": [np.ma.masked, 1],
        "list of a tuple and a number": [(1, 0), 1],
    }.items():
        constant(items, "odd", name=name)
    constant([None, 1], "odd", "with None", name="list with None")
    constant([pd.NA, 1], "odd", "with None", name="list with NA")
    constant(["a", "b"], "texts", plain=NOTHING, name="list of texts")
    constant(["a", "\ud800"], "texts", name="list of surrogates")
    constant(["a", None], "texts with None", name="list of text and None")
    constant([b"a", b""], "byteses", name="list of bytes")
    constant(["a", 1], "mixed keys", name="list of text and int")
    constant(["a", 1.5], "odd", name="list of text and float")
    constant([TextThatLies("a")], "texts", "lie", name="list of text that lies")
    constant([dt.date(2020, 1, 2)], "times", name="list of dates")
    constant([np.datetime64("NaT")], "times", "no time", name="list of no time")
    constant([[1, 0], [0, 1]], "rows", name="list of rows")
    constant([(1, "a"), (2, "b")], "points", "pairs of columns", name="list of points")
    constant([np.array([1, 0]), np.array([0, 1])], "rows", name="list of arrays")
    constant([[1], [1, 2]], "ragged", name="ragged list")
    constant([[1, [2]], [3, 4]], "ragged", name="ragged rows")
    constant([[]], "no rows", name="list of an empty list")
    constant([[], []], "no rows", name="list of empty lists")
    value("recursive list", recursive, "odd")
    value("list nested 40 times", lambda: nested(40), "rows", "deep")
    value("list nested 5000 times", lambda: nested(5000), "odd", "deep")
    value("list that shrinks", shrinking, "odd", "lie")
    value("list that grows", growing, "odd", "lie")
    value("tuple that lies", lambda: TupleThatLies([1, 0]), "odd", "lie")


def _released() -> memoryview:
    view = memoryview(bytearray(b"\1"))
    view.release()
    return view


def _arrays() -> None:
    base = np.array([1, 0, 2])
    for name, layout in LAYOUTS.items():
        value(f"{name} ints", lambda f=layout: f(base), "ints", "array", plain=[1, 0, 2])
        value(f"{name} floats", lambda f=layout: f(base * 0.5), "reals", "array", plain=[0.5, 0.0, 1.0])
    for code in ("i1", "u1", ">u8", "u8"):
        value(f"array of {code}", lambda c=code: base.astype(c), "ints", "array", plain=[1, 0, 2])
    for code in ("f2", ">f4", "g"):
        value(f"array of {code}", lambda c=code: base.astype(c), "reals", "array", plain=[1.0, 0.0, 2.0])
    value("subclass that lies", lambda: base.view(Subclass), "ints", "lie")
    value("matrix", lambda: np.eye(2).view(np.matrix), "rows", "reals rows")
    value("array of -0.0 and denormals", lambda: np.array([-0.0, 5e-324, 1e308]), "reals")
    value("array of NaN", lambda: np.array([math.nan, 1.0]), "reals", "with NaN", plain=[math.nan, 1.0])
    value("array of infinity", lambda: np.array([math.inf, 1.0]), "reals", "with infinity", plain=[math.inf, 1.0])
    value("array of u8 beyond i8", lambda: np.array([2**64 - 1, 1], dtype="u8"), "ints", plain=[2**64 - 1, 1])
    for name, made in {
        "bools": lambda: base > 0,
        "complex": lambda: base * 1j,
        "void": lambda: base.view("V8"),
        "records": lambda: np.zeros(2, dtype=[("a", "i8"), ("b", "f8")]),
        "subarrays": lambda: np.zeros(2, dtype=[("a", "i8", (2,))]),
        "object bools": lambda: (base > 0).astype(object),
        "object lists": lambda: np.array([[1], None], dtype=object),
        "itself": _array_of_itself,
    }.items():
        value(f"array of {name}", made, "odd")
    value("array of durations", lambda: base.astype("m8[s]"), "odd", "durations")
    value("array of times", lambda: base.astype("M8[D]"), "times", "array")
    value("array of no times", lambda: np.array(["NaT", "2020-01-02"], dtype="M8[s]"), "times", "no time")
    value("array of generic times", lambda: np.array(["NaT"], dtype="M8"), "times", "no time")
    value("array of texts", lambda: np.array(["a", "b"]), "texts", plain=["a", "b"])
    value("array of object texts", lambda: np.array(["a", "b"], dtype=object), "texts", plain=["a", "b"])
    value("array of bytes", lambda: np.array([b"a", b"b"]), "byteses", plain=[b"a", b"b"])
    value("array of mixed", lambda: np.array(["a", 1], dtype=object), "mixed keys")
    value("array of None", lambda: np.array([None, 1], dtype=object), "odd", "with None")
    for shape in ((0,), (0, 3), (2, 0), (1, 0, 2)):
        for code in ("i8", "f8", "O"):
            kinds = {"i8": "ints", "f8": "reals", "O": "ints"}[code]
            value(
                f"empty array {shape} of {code}", lambda s=shape, c=code: np.empty(s, c), "empty array",
                *([kinds, "empty", "reals"] if shape == (0,) else ["no rows"]),
            )  # fmt: skip
        value(f"empty array {shape} of ?", lambda s=shape: np.empty(s, "?"), "odd", "empty bools")
    value("array of 2 x 2", lambda: np.array([[1, 0], [0, 1]]), "rows", "array")
    value("array of 1 x 1 x 1", lambda: np.ones((1, 1, 1), dtype=int), "rows", "deep")
    value("array of 32 dimensions", lambda: np.ones((1,) * 32, dtype=int), "rows", "deep")
    value("array too large", lambda: np.broadcast_to(np.int64(1), (2**50,)), "ints", "too large")
    value("array of text too large", lambda: np.broadcast_to(np.str_("a"), (2**50,)), "texts", "too large")
    value("masked", lambda: np.ma.array([1, 0, 2], mask=[True, False, False]), "odd", "masked")
    value("masked floats", lambda: np.ma.array([1.0, 0], mask=[True, False]), "odd", "masked", "masked reals")
    value("masked without mask", lambda: np.ma.array([1, 0, 2]), "odd", "masked")
    value("masked texts", lambda: np.ma.array(["a", "b"], mask=[True, False]), "odd", "masked", "masked texts")
    value("masked records", lambda: np.ma.zeros(2, dtype=[("a", "i8")]), "odd", "masked records")
    value("holder of masked", lambda: Holder(np.ma.array([1, 0], mask=[True, False])), "odd", "masked")
    value("masked times", lambda: np.ma.array(["2020-01-02"], dtype="M8[D]", mask=[True]), "odd", "masked times")
    value("sparse", lambda: sparse.csr_array(np.eye(2)), "odd", "sparse", "own")
    value("sparse row", lambda: sparse.coo_array(np.eye(1, entry_points.SIZE)), "odd", "sparse", "fits", "own")


def _array_of_itself() -> Any:
    items = np.empty(1, dtype=object)
    items[0] = items
    return items


def _tables() -> None:
    value("pandas ints", lambda: pd.Series([1, 0], index=[9, 9]), "ints", "column", plain=[1, 0])
    value("pandas nullable", lambda: pd.Series([1, 0], dtype="Int64"), "ints", "column", plain=[1, 0])
    value("pandas index", lambda: pd.Index([1, 0]), "ints", "column", plain=[1, 0])
    value("pandas floats", lambda: pd.Series([1.5, 0]), "reals", "column", plain=[1.5, 0.0])
    value("pandas NA among ints", lambda: pd.Series([1, None], dtype="Int64"), "odd", "with None", "column")
    value("pandas NA among floats", lambda: pd.Series([1, None], dtype="Float64"), "odd", "reals with None", "column")
    value("pandas NaN", lambda: pd.Series([1, math.nan]), "reals", "with NaN", "column")
    value("pandas texts", lambda: pd.Series(["a", "b"]), "texts", "column", plain=["a", "b"])
    value("pandas categories", lambda: pd.Series(["a", "b"], dtype="category"), "texts", "column", "category")
    value("pandas Categorical", lambda: pd.Categorical(["a", "b"]), "texts", "column", "category")
    value("pandas bools", lambda: pd.Series([True, False]), "odd", "column")
    value("pandas nullable bools", lambda: pd.Series([True, None], dtype="boolean"), "odd", "column")
    value("pandas times", lambda: pd.Series(pd.to_datetime(["2020-01-02"])), "times", "column")
    value("pandas aware times", lambda: pd.Series(pd.to_datetime(["2020-01-02"], utc=True)), "times", "column")
    value("pandas durations", lambda: pd.Series([pd.Timedelta("1D")]), "odd", "durations", "column")
    value("pandas table", lambda: pd.DataFrame({"i": [1, 0], "s": ["a", "b"]}), "points", "table")
    value("pandas table of numbers", lambda: pd.DataFrame([[1, 0], [0, 1]]), "rows", "table")
    value("pandas table with doubles", lambda: pd.DataFrame([[1, "a"]], columns=["i", "i"]), "odd", "table")
    value("pandas MultiIndex", lambda: pd.MultiIndex.from_tuples([(1, 2)]), "odd", "column", "tuples")
    value("pandas intervals", lambda: pd.interval_range(0, 2).to_series(), "odd", "column")
    value("empty pandas", lambda: pd.Series([], dtype="i8"), "ints", "reals", "empty", "column")
    value("polars ints", lambda: pl.Series([1, 0]), "ints", "column", plain=[1, 0])
    value("polars nulls", lambda: pl.Series([1, None]), "odd", "with None", "column")
    value("polars texts", lambda: pl.Series(["a", "b"]), "texts", "column", plain=["a", "b"])
    value("polars lists", lambda: pl.Series([[1], [2]]), "odd", "column", "lists")
    value("polars objects", lambda: pl.Series([object()], dtype=pl.Object), "odd", "column")
    value("polars bools", lambda: pl.Series([True, False]), "odd", "column")
    value("polars table", lambda: pl.DataFrame({"i": [1, 0], "s": ["a", "b"]}), "points", "table")
    value("polars lazy table", lambda: pl.LazyFrame({"i": [1, 0]}), "odd", "own")
    value("arrow ints", lambda: pa.array([1, 0]), "ints", "column", plain=[1, 0])
    value("arrow chunks", lambda: pa.chunked_array([[1], [], [0]]), "ints", "column", plain=[1, 0])
    value("arrow chunks with nulls", lambda: pa.chunked_array([[1], [None]]), "odd", "with None", "column")
    value("arrow slice", lambda: pa.array([5, None, 1, 0])[2:], "ints", "column", plain=[1, 0])
    value("arrow nulls alone", lambda: pa.nulls(2), "odd", "only None", "column")
    value("empty arrow", lambda: pa.chunked_array([], pa.int64()), "ints", "reals", "empty", "column")
    value("arrow floats", lambda: pa.array([1.5, 0.0]), "reals", "column", plain=[1.5, 0.0])
    value("arrow NaN", lambda: pa.array([math.nan, 1.0]), "reals", "with NaN", "column")
    value("arrow bools", lambda: pa.array([True, False]), "odd", "column")
    value("arrow texts", lambda: pa.array(["a", "b"]), "texts", "column", plain=["a", "b"])
    value("arrow dictionary", lambda: pa.array(["a", "b"]).dictionary_encode(), "texts", "column", plain=["a", "b"])
    value("arrow decimals", lambda: pa.array([Decimal("1.5")]), "reals", "decimals", "column", plain=[1.5])
    value("arrow lists", lambda: pa.array([[1], [0]]), "odd", "column", "lists")
    value("arrow times", lambda: pa.array([dt.datetime(2020, 1, 2)]), "times", "column")
    value("arrow scalar", lambda: pa.scalar(1), "int", "arrow scalar", plain=1)
    value("arrow text scalar", lambda: pa.scalar("a"), "text", "arrow scalar", plain="a")
    value("list of arrow scalars", lambda: [pa.scalar(1), pa.scalar(0)], "ints", plain=[1, 0])
    value("list of arrow texts", lambda: [pa.scalar("a"), pa.scalar("b")], "texts", plain=["a", "b"])
    value("list of arrow bools", lambda: [pa.scalar(True), 1], "odd")
    value("arrow null scalar", lambda: pa.scalar(None, pa.int64()), "odd", "missing")
    value("arrow table", lambda: pa.table({"i": [1, 0], "s": ["a", "b"]}), "points", "table")
    value("arrow batch", lambda: pa.record_batch({"i": [1, 0], "s": ["a", "b"]}), "points", "table")


def _objects() -> None:
    for method in (
        "__len__", "__index__", "__float__", "__int__", "__iter__", "__array__", "__eq__", "__repr__", "__str__",
        "__hash__", "__bool__", "__getattr__", "__getattribute__", "__getitem__", "__arrow_c_stream__",
        "__arrow_c_array__", "tocsr", "__lt__", "__call__", "__fspath__", "__radd__",
    ):  # fmt: skip
        value(f"object whose {method} raises", lambda m=method: hostile(m), "odd", "raises")
    value("object that raises all the time", lambda: hostile("__index__", "__float__", "__repr__", "__eq__",
          "__len__", "__iter__", "__hash__"), "odd", "raises")  # fmt: skip
    value("object whose class lies", lambda: hostile(__class__=property(lambda _: np.ndarray)), "odd", "lie")
    value("object that is text to isinstance", lambda: hostile(__class__=property(lambda _: str)), "odd", "lie")
    value("object that is a counter to isinstance", lambda: hostile(
        __class__=property(lambda _: fg.ContinualCounter)), "odd", "lie")  # fmt: skip
    value("object whose class raises", lambda: hostile(__class__=property(raise_hostile)), "odd", "raises")
    value("object whose __index__ is text", lambda: hostile(__index__=lambda _: "1"), "odd")
    value("object whose __index__ is huge", lambda: hostile(__index__=lambda _: 10**400), "int")
    value("object whose __index__ is a bool", lambda: hostile(__index__=lambda _: 1), "int", plain=1)
    value("object whose __float__ is text", lambda: hostile(__float__=lambda _: "1"), "odd")
    value("object whose __float__ is NaN", lambda: hostile(__float__=lambda _: math.nan), "real", "with NaN")
    value("object of negative length", lambda: hostile(__len__=lambda _: -1, __getitem__=lambda _, i: 1), "odd", "own")
    value(
        "object of huge length",
        lambda: hostile(__len__=lambda _: 2**62, __getitem__=lambda _, i: 1),
        "odd",
        "huge",
        "own",
    )
    value("object of false length", lambda: hostile(__len__=lambda _: 9, __iter__=lambda _: iter([1]),
          __getitem__=lambda _, i: [1][i]), "odd", "lie")  # fmt: skip
    value("object whose __iter__ is none", lambda: hostile(__iter__=lambda _: 1), "odd", "own")
    value("object whose __array__ is none", lambda: hostile(__array__=lambda *_, **__: [1, 0]), "odd")
    value("object whose __array__ is itself", lambda: hostile(__array__=lambda self, *_, **__: self), "odd")
    value("object of a broken interface", lambda: hostile(__array_interface__={"version": 3}), "odd")
    value("object of a false interface", lambda: hostile(
        __array_interface__={"version": 3, "shape": (-1,), "typestr": "<i8"}), "odd")  # fmt: skip
    for method in ("__arrow_c_stream__", "__arrow_c_array__"):
        for name, given in {"None": None, "1": 1, "a pair": (1, 2), "an object": object()}.items():
            value(f"object whose {method} is {name}", lambda m=method, g=given: hostile(
                **{m: lambda *_, **__: g}), "odd")  # fmt: skip
    value("object whose dtype raises", lambda: hostile(dtype=property(raise_hostile)), "odd", "raises")
    value("object that has any attribute", lambda: hostile(__getattr__=lambda self, name: self), "odd", "own")
    value("object that claims to be sparse", lambda: hostile(tocsr=lambda self: self), "odd")
    value("sparse rows that lie", lambda: hostile(tocsr=lambda self: self, shape=(2**62, entry_points.SIZE),
          indptr=[0], indices=[0], data=[1.0]), "odd")  # fmt: skip
    value("sparse offsets that lie", lambda: hostile(tocsr=lambda self: self, shape=(1, entry_points.SIZE),
          indptr=[0, 2**62], indices=[0], data=[1.0]), "odd")  # fmt: skip
    value("mapping that lies", lambda: _Mapping(), "odd", "lie", "set or dict")
    value("counter", lambda: fg.ContinualCounter(horizon=1, privacy=fg.Zcdp(1.0)), "structure")
    value("budget", lambda: fg.Zcdp(1.0), "budget")
    value("plan", lambda: entry_points.PLAN, "odd")
    value("raw sketch", lambda: fg.RawSketch(width=1), "odd")
    value("profile", lambda: fg.FrequencyProfile([1]), "frequency profile")
    value("join profile", lambda: fg.JoinProfile(1.0, 1.0, 1.0), "join profile")
    value("axis", lambda: AXES["Regular"], "axis")
    value("ticks", lambda: TICKS, "ticks")
    value("a feed", lambda: fg.Feed(1), "odd")  # type: ignore[arg-type]
    value("list of counters", lambda: [fresh("counter")], "odd", "structures")
    value("list of axes", lambda: [AXES["Regular"]], "axes")
    value("list of an axis twice", lambda: [AXES["Regular"]] * 2, "odd")
    value("list of many axes", lambda: [fg.axis.Integer(0, 2)] * 99, "odd")
    value("list of budgets", lambda: [fg.Zcdp(1.0)], "budgets")
    value("path", lambda: Path("/dev/null/x"), "path")


class _Mapping(dict[Any, Any]):
    __len__ = lambda self: 3  # noqa: E731
    __iter__ = raise_hostile
    get = items = keys = __contains__ = __getitem__ = raise_hostile


_scalars()
_containers()
_arrays()
_tables()
_objects()

#: Kinds that a parameter takes. It may still refuse a value for itself, as one out of range.
_INTEGERS = {"int", "ints", "rows", "deep", "empty", "empty array", "no rows"}
_NO_BIN = {"none", "with None", "reals with None", "only None", "masked", "masked reals", "empty bools"}
_REALS = _INTEGERS | {"real", "reals", "reals rows", "with NaN", "with infinity"}
TAKES: dict[str, set[str]] = {
    "integer": {"int"},
    "real": {"int", "real"},
    "flag": {"bool"},
    "flags": set(),
    "word": {"text"},
    "name": {"text", "none"},
    "text": {"text"},
    "column": {"text"},
    "number or name": {"int", "text"},
    "levels": {"int", "dyadic"},
    "path": {"text", "path", "bytes"},
    "integers": _INTEGERS | {"empty bools"},
    "integer array": {"ints", "empty array", "no rows", "rows", "deep"},
    "reals": _REALS,
    "real array": {"ints", "reals"},
    "rows": {"rows", "reals rows", "empty", "fits"},
    "pairs": {"ints", "rows", "empty", "empty array", "no rows"},
    "keys": {"int", "real", "reals", "text", "text 0-d", "bytes", "ints", "texts", "byteses", "mixed keys", "empty"},
    "listed keys": {"ints", "texts", "byteses", "masked", "record"},
    # Of an axis: what is missing, or no number, has no bin; where none is left out, it is refused.
    "numbers": _REALS | _NO_BIN,
    "whole numbers": _REALS | _NO_BIN,
    "times": {"time", "times", "texts with None", "time 0-d", "no time", "text", "texts", "none", "with None", "only None", "masked times",
              "masked texts", "empty", "empty array", "no rows", "empty bools"},
    "texts": {"text", "texts", "text 0-d", "none", "no time", "masked times", "texts with None", "only None", "masked texts", "empty",
              "empty array", "no rows", "empty bools"},
    "number": {"int", "real"},
    "whole number": {"int", "real"},
    "time": {"time", "time text", "text"},
    "duration": {"duration", "text"},
    "zone": {"zone", "text", "none"},
    "categories": {"texts"},
    "points": {"points", "table", "empty", "empty array", "no rows", "with None", "reals with None", "with NaN"},
    "boxes": {"empty dict"},
    "corners": {"ints", "with None"},
    "bounds": {"ints", "rows", "none", "empty", "empty array", "no rows", "empty bools", "with None", "reals", "deep", "tuples"},
    "bound or bounds": _REALS | {"none", "with None", "tuples", "no rows", "empty bools"},
    "budget": {"budget"},
    "items": {"budget", "budgets", "structure", "structures", "empty", "empty array", "empty dict"},
    "axes": {"axes", "axis"},
    "profile": {"frequency profile", "join profile"},
    "raw": set(),
    "ticks": {"ticks"},
    "counts": set(),
    "frame": {"empty", "empty set"},
    "table column": {"*"},
    "list of boxes": {"tuples", "ragged"},
    "name of a table": {"*"},
    "callable": {"callable"},
    "anything": {"*"},
    "nothing": set(),
    "nothing but None": {"none"},
}  # fmt: skip


def kinds_taken(takes: str) -> set[str]:
    for ending, more in ((" or None", {"none"}), (" or missing", {"missing", "nan"}), (" of one axis", {"table"})):
        if takes.endswith(ending):
            return kinds_taken(takes.removesuffix(ending)) | more
    return TAKES[takes]


def exact_state(subject: Any) -> Any:
    """All that can be seen of a structure, bit for bit. Reads, which seals; the structure is not used afterwards."""
    if isinstance(subject, fg.RawSketch):
        return pickle.dumps(subject)
    if isinstance(subject, fg.Structure):
        seen: tuple[object, ...] = (subject.now, subject.sealed, subject.dropped, subject.memory, repr(subject))
        return (*seen, np.asarray(read(subject)).tobytes())
    return pickle.dumps(subject) if isinstance(subject, fg.RowCounts) else repr(subject)


@functools.cache
def untouched(subject: str) -> Any:
    """The state of a subject that nothing was done to."""
    return exact_state(Row("", lambda *_: None, None, subject).make())


def outcome(row: Row, given: Any) -> tuple[Any, BaseException | None, Any]:
    """What a call returns, or raises, and the state behind it."""
    subject = row.make()
    returned, error = None, None
    try:
        returned = row.call(subject, given)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as raised:  # a PanicException is no Exception
        error = raised
    return returned, error, None if subject is None else exact_state(subject)


def same(a: Any, b: Any) -> bool:
    """Whether two results are the same, NaN like NaN."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes())
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float):
        return a == b or (math.isnan(a) and math.isnan(b))
    if isinstance(a, pa.Table):
        return bool(a.to_pydict() == b.to_pydict())
    if isinstance(a, fg.Structure | fg.RawSketch):
        return repr(a) == repr(b) and exact_state(a)[-1] == exact_state(b)[-1]
    return bool(a == b)


PASSES = (HostileError,)
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def complaint(error: BaseException, row: Row, parameter: str) -> str | None:
    """What is wrong with an error."""
    if isinstance(error, PASSES) or (isinstance(error, AttributeError) and row.subject in ("new Axis", "new Feed")):
        return None
    if parameter == "path" and isinstance(error, OSError):
        return None
    if not isinstance(error, (*DOCUMENTED, MemoryError)):
        return f"{type(error).__name__}: {error}"
    message = str(error)
    singular = parameter.removesuffix("s") if len(parameter) > 3 else parameter
    names = rf"\b({parameter}|{singular}{'|' + row.names if row.names else ''})\b"
    if isinstance(error, MemoryError):
        return None
    if not re.search(names, message):
        return f"does not name {parameter}: {message[:150]!r}"
    if "\n" in message or ADDRESS.search(message) or len(message) > 700 or "panicked" in message:
        return f"is not one readable sentence: {message[:200]!r}"
    return None


def problems_of(row: Row, parameter: str, values: dict[str, Value]) -> Iterator[str]:
    """What goes wrong with hostile values."""
    taken = kinds_taken(row.takes)
    for name, value in values.items():
        if value.kinds & {"too large", "huge"} and row.takes in ("table column", "listed keys"):
            continue  # Arrow walks through all of it
        if row.takes.startswith("callable") and ("callable" in value.kinds or "__call__" in name):
            continue  # what is called may fail, after releases
        given = value.make()
        returned, error, state = outcome(row, given)
        if "lie" in value.kinds and isinstance(error, Exception) and not isinstance(error, SystemError | Warning):
            continue  # what it lacks is what it said it had
        if error is not None:
            wrong = complaint(error, row, parameter)
            # The words are those of the value itself.
            if wrong is not None and not ("own" in value.kinds and isinstance(error, DOCUMENTED)):
                yield f"{name}: {wrong}"
            if row.subject is not None and state != untouched(row.subject):
                yield f"{name}: changes what it refuses ({type(error).__name__}: {error})"
        elif "*" not in taken:
            if "lie" in value.kinds:
                continue  # whatever is right for what it says
            if not taken & value.kinds:
                yield f"{name}: taken, and gives {str(returned)[:80]}"
            elif value.plain is not NOTHING:
                plain = np.array(value.plain) if row.takes == "integer array" else value.plain
                expected, refused, expected_state = outcome(row, plain)
                if refused is not None or not same(returned, expected) or state != expected_state:
                    yield f"{name}: gives {str(returned)[:80]} and not {str(expected)[:80]} ({refused})"


def cases(wanted: Callable[[Row], object]) -> list[Any]:
    """Rows of the table, of those that draw files as slow tests."""
    return [
        pytest.param(
            key, row, id=f"{key[0]} {key[1]} {number}", marks=pytest.mark.slow if key[0] == "Plan.plot" else ()
        )
        for key, rows in ROWS.items()
        for number, row in enumerate(rows)
        if wanted(row)
    ]


@contextmanager
def a_limit(seconds: float) -> Iterator[None]:
    """Ends the run, with the places of all threads, if something hangs."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def test_the_table_has_every_public_parameter() -> None:
    assert set(ROWS) == public_parameters()


@pytest.mark.parametrize("key, row", cases(lambda _: True))
def test_hostile_values_are_refused_or_right(
    key: tuple[str, str], row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # Some values are paths, also to the folder above.
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    if row.good is not entry_points.REFUSED:
        row.alone(row.good)
    with a_limit(300):
        problems = list(problems_of(row, key[1], VALUES))
    assert not problems, "\n".join(problems)
    assert capfd.readouterr() == ("", "")


#: Those that take arrays.
_ARRAYS = ("integers", "reals", "rows", "integers or None", "keys", "pairs", "numbers of one axis")


@pytest.mark.parametrize("key, row", cases(lambda row: row.takes in _ARRAYS and np.ndim(row.good)))
def test_the_allowed_array_is_the_same_in_every_layout(
    key: tuple[str, str], row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    base = np.asarray(row.good)
    expected, error, state = outcome(row, base)
    assert error is None
    for layout, change in LAYOUTS.items():
        returned, error, changed = outcome(row, change(base))
        if (key[0], layout, type(error)) == ("Ticks.time", "objects", TypeError):
            continue  # as it is documented
        assert error is None, (layout, error)
        assert same(returned, expected), layout
        assert changed == state, layout


def test_properties_are_read_without_a_word_and_are_not_set() -> None:
    made: dict[str, Any] = {
        "ApproxDp": fg.ApproxDp(1.0, 1e-6), "PureDp": fg.PureDp(1.0), "Budget": fg.Zcdp(1.0),
        "ContinualCounter": fresh("counter"), "Structure": fresh("counter"), "ContinualVector": fresh("vector"),
        "CountSketch": fresh("sketch"), "RangeCounter": fresh("range"), "JoinSize": fresh("join"),
        "RawSketch": fg.RawSketch(width=1), "FrequencyProfile": entry_points.PROFILE,
        "JoinProfile": entry_points.JOIN_PROFILE, "Plan": entry_points.RANGE_PLAN, "Ticks": TICKS,
        "Axis": AXES["Regular"], **{name: AXES[name] for name in entry_points.TAKES_POINTS},
    }  # fmt: skip
    tuples = {name for name, kind in entry_points.public_classes() if issubclass(kind, tuple)}
    for name, word in public_properties():
        if name in tuples:
            continue
        getattr(made[name], word)
        for given in (None, 1, math.nan, object()):
            with pytest.raises((AttributeError, TypeError)):
                setattr(made[name], word, given)


def test_a_closed_structure_answers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for (entry, parameter), rows in ROWS.items():
        for row in rows:
            subject = row.make() if row.subject is not None else None
            if not isinstance(subject, fg.Structure) or row.good is entry_points.REFUSED or entry.endswith("__exit__"):
                continue
            subject.close()
            with pytest.raises(fg.StateError, match="closed"):
                row.call(subject, row.good)
                pytest.fail(f"{entry} {parameter}")
    # What has no parameters, of structures in memory and in stores.
    for kind in (fg.ContinualCounter, fg.ContinualVector, fg.CountSketch, fg.RangeCounter, fg.JoinSize):
        own: dict[Any, dict[str, Any]] = {fg.ContinualVector: {"size": 2}, fg.RangeCounter: {"shape": 4}}
        given: Any = {"horizon": 8, "privacy": fg.Zcdp(0.5), **own.get(kind, {})}
        if kind in (fg.CountSketch, fg.JoinSize):
            given["width"] = 32
        for structure in (kind(**given), fg.open(tmp_path / kind.__name__, kind, **given)):
            structure.close()
            structure.close()
            for word in dir(kind):
                method = getattr(structure, word)
                if word.startswith("_") or not callable(method) or word in ("close", "noise_std", "plan", "suggest"):
                    continue
                if any(one.default is one.empty for one in inspect.signature(method).parameters.values()):
                    continue  # above
                with pytest.raises(fg.StateError, match="closed"):
                    method()
                    pytest.fail(f"{kind.__name__}.{word}")


def test_a_path_is_no_open_file_and_no_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    make = functools.partial(fg.open, horizon=8, privacy=fg.Zcdp(0.5))
    calls: list[Callable[[Any], Any]] = [lambda path: make(path, fg.ContinualCounter), fg.open, fg.inspect]
    plot: Callable[[Any], Any] = entry_points.PLAN.plot
    with a_limit(60), (tmp_path / "file").open("w+b") as file:
        for call in calls:
            with pytest.raises(fg.StateError, match="pipe"):
                call(pipe)
        for call in (*calls, plot):
            for given in (file.fileno(), np.int64(file.fileno()), file, io.BytesIO(), True, -1):
                with pytest.raises(TypeError, match="path must be text or a path; "):
                    call(given)
        assert file.read() == b""


def test_an_argument_that_uses_the_structure_meets_no_lock() -> None:
    # What is converted is converted before the structure is locked.
    uses: list[tuple[str, Callable[[Any, Any], Any]]] = [
        ("counter", lambda s, v: s.update([v])),
        ("vector", lambda s, v: s.update([v])),
        ("vector", lambda s, v: s.release([v])),
        ("sketch", lambda s, v: s.update([v])),
        ("range", lambda s, v: s.update([v])),
    ]
    for kind, use in uses:
        structure, twin = fresh(kind, insecure_seed=7), fresh(kind, insecure_seed=7)
        element = hostile(__index__=lambda _, s=structure: s.advance() or 1)
        with a_limit(60):
            use(structure, element)
        twin.advance()
        use(twin, 1 if kind == "sketch" else [1])
        assert exact_state(structure) == exact_state(twin)


def test_an_axis_that_lies_gives_no_nonsense() -> None:
    for size in (2**62, 10**400, -1):
        axis = entry_points.Bare(3, "n", False, False)
        axis.__dict__["size"] = size
        with pytest.raises(DOCUMENTED):
            fg.RangeCounter(axes=[axis, axis], horizon=8, privacy=tiny_noise())
    for places in (np.array([9]), np.array([-5]), np.array([0.5]), np.array([True]), ["a"], None, 7):
        axis = entry_points.Bare(3, None, False, False)
        axis.__dict__["index"] = lambda _, p=places, **_more: p
        counter = fg.RangeCounter(axes=[axis], horizon=8, privacy=tiny_noise(), hash_seed=1, insecure_seed=1)
        try:
            counter.update([1])
        except (*DOCUMENTED, AttributeError, IndexError):
            pass
        else:
            pytest.fail(f"{places} was taken")


class NewClass:
    """What nobody has put in the table."""

    def __init__(self, size: int) -> None:
        self.size = size

    def method(self, given: int) -> None:
        pass

    def __mul__(self, factor: int) -> int:
        return factor

    @staticmethod
    def make(value: int) -> None:
        pass


def new_function(one: int, *more: int, word: str, **others: int) -> None:
    pass


def test_what_is_new_is_missed_in_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    known = public_parameters()
    module = types.ModuleType("new")
    module.__all__ = ["NewClass"]  # type: ignore[attr-defined]
    module.NewClass = NewClass  # type: ignore[attr-defined]
    for name, thing in (("NewClass", NewClass), ("new_function", new_function), ("new", module)):
        monkeypatch.setattr(fg, name, thing, raising=False)
    monkeypatch.setattr(fg, "__all__", [*fg.__all__, "NewClass", "new_function", "new"])
    monkeypatch.setattr(fg.Ticks, "more", lambda self, given: given, raising=False)
    monkeypatch.setattr(fg.Ticks, "step", lambda self, times, another: times)
    assert public_parameters() - known == {
        ("NewClass", "size"),
        ("NewClass.method", "given"),
        ("NewClass.__mul__", "factor"),
        ("NewClass.make", "value"),
        *{("new_function", parameter) for parameter in inspect.signature(new_function).parameters},
        ("Ticks.more", "given"),
        ("Ticks.step", "another"),
    }


def test_the_values_are_judged() -> None:
    # The judge itself: each of these is a fault.
    def judged(call: Callable[[Any], Any], takes: str = "nothing") -> list[str]:
        row = Row(takes, lambda _, given: call(given), None)
        return list(problems_of(row, "given", {"a": Value(lambda: 1, frozenset({"int"}), 2)}))

    def raising(error: BaseException) -> Callable[[Any], Any]:
        def call(_: Any) -> Any:
            raise error

        return call

    class PanicException(BaseException):
        pass

    assert judged(raising(TypeError("given must be a word; int was given"))) == []
    for wrong in (PanicException("given"), SystemError("given"), RecursionError("given"), UserWarning("given")):
        assert judged(raising(wrong))
    for words in ("a word", "given\nand more", "given at 0x7f0000000000", "given" * 200):
        assert judged(raising(ValueError(words)))
    assert judged(lambda given: given)
    assert judged(lambda given: given, "integer")
    assert judged(lambda given: 0, "integer") == []
