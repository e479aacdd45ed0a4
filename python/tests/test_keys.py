"""Keys of every kind that people have, from every container, against the plain Python values that they stand for.

Cells of raw sketches are exact: two columns are the same keys if, and but for collisions in all rows only if, they give
the same cells.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import enum
import functools
import json
import math
import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import DOCUMENTED, Integers, raised_by, sketch, whole
from hypothesis import given, settings
from hypothesis import strategies as st

import fastgame as fg

Make = Callable[[Any], Any]
STRING_DTYPE: Any = getattr(getattr(np, "dtypes", None), "StringDType", None)


def cells(keys: Any, weights: Any = 1) -> bytes:
    """The exact cells that these keys give, as bytes."""
    raw = fg.RawSketch(width=256, depth=5, hash_seed=11, max_weight=1000)
    raw.update(keys, weights)
    return raw.__reduce__()[1][0]


def chunked(values: Any, kind: Any = None) -> Any:
    """Three chunks, one of them empty, the others slices with offsets."""
    middle = len(values) // 2
    padded = pa.array([values[0], *values[:middle], values[0]], kind)
    return pa.chunked_array([padded[1:-1], pa.array([], padded.type), pa.array(values[middle:], padded.type)])


def sliced(values: Any, kind: Any = None) -> Any:
    """A slice with an offset that is no multiple of eight."""
    return pa.array([*values[:1] * 3, *values, *values[:1] * 2], kind)[3:-2]


def misaligned(values: Any) -> Any:
    """Eight-byte integers at an odd address."""
    data = b"\0" + np.asarray(values, dtype="<i8").tobytes()
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(data).slice(1)])


def string_array(values: Any) -> Any:
    """Numpy's strings of any length, where numpy has them."""
    if STRING_DTYPE is None:
        pytest.skip("this numpy has no StringDType")
    return np.array(values, dtype=STRING_DTYPE())


def reindexed(values: Any, **how: Any) -> Any:
    """A pandas column whose labels say nothing about places."""
    column = pd.Series([*values, values[0]], **how)
    column.index = pd.Index(range(len(column), 0, -1))
    return column.iloc[:-1]


def polars(values: Any, kind: Any) -> Any:
    """A Polars column of a type."""
    return pl.Series(values, dtype=kind)


class Speaker:
    """A column that speaks Arrow, only once, and can do nothing else."""

    def __init__(self, column: Any) -> None:
        self.column = column

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        column, self.column = self.column, None
        return column.__arrow_c_stream__(requested_schema)


class ArraySpeaker:
    """The same for an array."""

    def __init__(self, column: Any) -> None:
        self.column = column

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self.column.__arrow_c_array__(requested_schema)


class Holder:
    """An object that numpy can make an array of."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.values, dtype=dtype)


class Index:
    """An integer of somebody else."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


DTYPES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i2", ">i4", ">i8", ">u2", ">u4", ">u8", "p", "P", "l", "L"]
ARROW_INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
POLARS_INTEGERS = [pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64]

# From a list of Python values to a column of them.
ANY: dict[str, Make] = {
    "list": list,
    "object array": lambda values: np.array(values, dtype=object),
    "pandas object": lambda values: pd.Series(values, dtype=object),
    "pandas object index": lambda values: pd.Index(values, dtype=object),
    "pandas category": lambda values: pd.Series(values, dtype="category"),
    "pandas categorical": pd.Categorical,
    "pandas": pd.Series,
    "pandas reindexed": reindexed,
    "arrow": pa.array,
    "arrow chunked": chunked,
    "arrow sliced": sliced,
    "arrow stream read once": lambda values: Speaker(chunked(values)),
    "arrow array alone": lambda values: ArraySpeaker(pa.array(values)),
    "arrow dictionary": lambda values: pa.array(values).dictionary_encode(),
    "arrow dictionary sliced": lambda values: pa.array([values[0], *values]).dictionary_encode()[1:],
    "arrow dictionary chunked": lambda values: chunked(values).dictionary_encode(),
    "arrow scalars": lambda values: [pa.scalar(value) for value in values],
    "polars": pl.Series,
    "polars chunked": lambda values: pl.concat([pl.Series(values[:2]), pl.Series(values[2:])], rechunk=False),
    "polars objects": lambda values: pl.Series(values, dtype=pl.Object),
    "array of somebody else": Holder,
    "deque": collections.deque,
}
INTEGERS: dict[str, Make] = {
    **ANY,
    **{f"numpy {dtype}": functools.partial(np.array, dtype=dtype) for dtype in DTYPES},
    "strided": lambda values: np.repeat(np.array(values), 3)[::3],
    "backwards": lambda values: np.array(values[::-1], dtype=">i4")[::-1],
    "field of a record": lambda values: np.array([(1, value) for value in values], dtype="i1,>i8")["f1"],
    "read only": lambda values: np.frombuffer(np.array(values, dtype="i8").tobytes(), dtype="i8"),
    "array.array": lambda values: array.array("q", values),
    "numpy scalars": lambda values: [np.int8(value) if value < 100 else np.uint64(value) for value in values],
    "somebody else's integers": lambda values: [Index(value) for value in values],
    **{f"arrow {kind}": functools.partial(pa.array, type=kind) for kind in ARROW_INTEGERS},
    **{f"arrow {kind} chunked": functools.partial(chunked, kind=kind) for kind in ARROW_INTEGERS},
    **{f"arrow {kind} sliced": functools.partial(sliced, kind=kind) for kind in ARROW_INTEGERS},
    "arrow misaligned": misaligned,
    **{f"polars {kind}": functools.partial(polars, kind=kind) for kind in POLARS_INTEGERS},
    "pandas Int64": lambda values: pd.Series(values, dtype="Int64"),
    "pandas UInt8": lambda values: pd.Series(values, dtype="UInt8"),
    "pandas arrow": lambda values: pd.Series(values, dtype=pd.ArrowDtype(pa.int16())),
    "pandas sparse": lambda values: pd.Series(pd.arrays.SparseArray(values)),
    "pandas index": pd.Index,
    "pandas sliced": lambda values: pd.Series([0, *values, 0])[1:-1],
}
TEXTS: dict[str, Make] = {
    **ANY,
    "numpy U": np.array,
    "numpy U strided": lambda values: np.repeat(np.array(values), 2)[::2],
    "numpy U swapped": lambda values: np.array(values).astype(">U9"),
    "StringDType": string_array,
    "numpy scalars": lambda values: list(np.array(values)),
    "arrow large": lambda values: sliced(values, pa.large_string()),
    "arrow view": lambda values: sliced(values, pa.string_view()),
    "arrow large dictionary": lambda values: pa.array(values, pa.large_string()).dictionary_encode(),
    "polars categorical": lambda values: pl.Series(values, dtype=pl.Categorical),
    "polars enum": lambda values: pl.Series(values, dtype=pl.Enum(sorted(set(values)))),
    "pandas string": lambda values: pd.Series(values, dtype="string"),
    "pandas string of Python": lambda values: pd.Series(values, dtype="string[python]"),
    "pandas string of arrow": lambda values: pd.Series(values, dtype="string[pyarrow]"),
    "pandas reindexed string": lambda values: reindexed(values, dtype="string"),
    "pandas reindexed category": lambda values: reindexed(values, dtype="category"),
    "pandas categorical index": pd.CategoricalIndex,
}
BYTES: dict[str, Make] = {
    **ANY,
    "numpy S": np.array,
    "numpy S strided": lambda values: np.repeat(np.array(values), 2)[::2],
    "numpy scalars": lambda values: list(np.array(values)),
    "arrow large": lambda values: sliced(values, pa.large_binary()),
    "arrow view": lambda values: sliced(values, pa.binary_view()),
}
INTEGER_VALUES = [5, 0, 5, 127, 31, 5, 0]
TEXT_VALUES = ["5", "", "JFK", "5", "Łódź 🛫", "JFK\0x", "5", "a longer text that no view holds inline"]
BYTE_VALUES = [b"5", b"", b"JFK", b"5", b"\xff\xfe", b"JFK\0x", b"5"]

CASES = [
    *(pytest.param(make, INTEGER_VALUES, id=f"integers: {name}") for name, make in INTEGERS.items()),
    *(pytest.param(make, TEXT_VALUES, id=f"text: {name}") for name, make in TEXTS.items() if "swapped" not in name),
    *(pytest.param(make, BYTE_VALUES, id=f"bytes: {name}") for name, make in BYTES.items()),
    pytest.param(TEXTS["numpy U swapped"], ["5", "JFK", "", "5"], id="text: numpy U swapped"),
    pytest.param(lambda values: pa.array(values, pa.binary(3)), [b"abc", b"\0\0\0", b"abc"], id="bytes: fixed size"),
    pytest.param(lambda values: sliced(values, pa.binary(3)), [b"abc", b"\0\0\1", b"abc"], id="bytes: fixed sliced"),
]
COLUMNS = pytest.mark.parametrize("make, values", CASES)


@COLUMNS
def test_a_column_of_any_kind_is_the_keys_that_it_holds(make: Make, values: list[Any]) -> None:
    weights = list(range(1, len(values) + 1))
    one_by_one = fg.RawSketch(width=256, depth=5, hash_seed=11, max_weight=1000)
    for key, weight in zip(values, weights, strict=True):
        one_by_one.update(key, weight)
    assert cells(make(values), weights) == one_by_one.__reduce__()[1][0]


@COLUMNS
def test_a_column_of_any_kind_counts_as_a_dictionary_does(make: Make, values: list[Any]) -> None:
    counts = sketch(max_weight=10)
    weights = [3, -1, 4, -1, 5, -9, 2, 6][: len(values)]
    expected: collections.Counter[Any] = collections.Counter()
    for step in range(1, 3):
        counts.advance(to=step)
        counts.update(make(values), weights)
        for key, weight in zip(values, weights, strict=True):
            expected[key] += weight
        estimates = counts.estimate(make(values))
        assert whole(estimates).tolist() == [expected[key] for key in values]
        assert whole([counts.estimate(key) for key in values]).tolist() == whole(estimates).tolist()


@COLUMNS
def test_top_gives_plain_keys_back_from_a_column_of_any_kind(make: Make, values: list[Any]) -> None:
    counts = sketch()
    counts.update(values)
    distinct = list(dict.fromkeys(values))
    most, *others = counts.top(len(distinct), among=make(distinct))
    assert most.key == "5" if isinstance(values[0], str) else most.key in {5, b"5", b"abc"}
    assert whole(most.value) == values.count(most.key)
    assert {entry.key for entry in [most, *others]} == set(distinct)
    assert {type(entry.key) for entry in [most, *others]} == {type(values[0])}
    assert all(one.value >= other.value for one, other in zip([most, *others], others, strict=False))


@COLUMNS
def test_a_column_of_any_kind_may_be_part_of_a_composite_key(make: Make, values: list[Any]) -> None:
    rows = [(value, place % 2, "x") for place, value in enumerate(values)]
    counts = sketch()
    column: Any = make(values)
    counts.update((column, np.arange(len(values)) % 2, "x"))
    expected = collections.Counter(rows)
    assert whole([counts.estimate(row) for row in rows]).tolist() == [expected[row] for row in rows]
    found = counts.top(2, among=(make(values), pl.Series([place % 2 for place in range(len(values))]), "x"))
    assert all(type(part) in (int, str, bytes) for entry in found for part in entry.key)
    assert whole([entry.value for entry in found]).tolist() == [expected[entry.key] for entry in found]


# One key in each row, by every name.
SAME: list[list[Any]] = [
    [
        5,
        np.int32(5),
        np.uint64(5),
        np.array(5),
        np.array(5, dtype=">u2"),
        Index(5),
        pa.scalar(5),
        pa.scalar(5, pa.int8()),
    ],
    [-1, np.int8(-1), np.int64(-1), np.array(-1, dtype=object), pa.scalar(-1, pa.int16())],
    [2**64 - 1, np.uint64(2**64 - 1), pa.scalar(2**64 - 1, pa.uint64())],
    [-(2**63), np.int64(-(2**63))],
    [2**63, np.uint64(2**63)],
    [2**63 - 1, np.int64(2**63 - 1), np.uint64(2**63 - 1)],
    ["5", np.str_("5"), np.array("5"), np.array("5", dtype=object), pa.scalar("5"), pa.scalar("5", pa.large_string())],
    [b"5", np.bytes_(b"5"), np.array(b"5"), pa.scalar(b"5")],
    [(5,), (np.int8(5),), (np.array(5),), (pa.scalar(5),)],
    [("5",)],
    [(b"5",)],
    [(5, "5"), (np.uint8(5), np.str_("5"))],
    [("5", 5)],
    [(5, 5)],
    [(5, 5, 5)],
    [("5", "5")],
    [("55", "")],
    [("", "55")],
    [""],
    [b""],
    ["\0"],
    [0],
    ["é"],
    ["e\u0301"],
]


def test_one_key_by_every_name_is_one_key_and_all_others_are_others() -> None:
    for names in SAME:
        assert len({cells(name) for name in names}) == 1
        assert cells(names[0]) != cells([])
    # Equal cells of two different keys: 5 buckets of 256 and signs agree with probability 2^-45.
    assert len({cells(names[0]) for names in SAME}) == len(SAME)


def test_a_scalar_counts_as_a_column_of_one_and_is_answered_by_a_float() -> None:
    counts = sketch()
    for names in SAME:
        counts.update(names[0])
    for names in SAME:
        for name in names:
            estimate: Any = counts.estimate(name)
            assert isinstance(estimate, float)
            assert whole(estimate) == 1
        if not isinstance(names[0], tuple):
            column = counts.estimate([names[0]])
            assert column.shape == (1,)
            assert column[0] == counts.estimate(names[0])


def test_integers_of_both_signs_and_all_sizes_mix_in_a_list() -> None:
    values = [-1, 2**64 - 1, -(2**63), 2**63, 0, -5, "5", b"5", 5]
    assert cells(values) == cells(np.array(values, dtype=object)) == cells(pd.Series(values, dtype=object))
    counts = sketch()
    counts.update(values)
    assert whole(counts.estimate(values)).tolist() == [1] * len(values)
    assert {entry.key for entry in counts.top(20, among=values)} == set(values)


def test_kinds_in_an_object_column_of_pandas_stay_what_they_are() -> None:
    # Arrow would find one type for these: "a" and b"a" would be one key, 1 and True too.
    for mixed in [pd.Series(["a", b"a"]), pd.Series(["a", b"a"], dtype="category"), pd.Index(["a", b"a"])]:
        assert cells(mixed) == cells(["a", b"a"]) != cells(["a", "a"])


@pytest.mark.parametrize("make", [list, collections.deque, collections.UserList])
def test_numpy_is_not_asked_for_one_type_of_all_elements(make: Make) -> None:
    # It would make text of the integers here, and an integer of a bool.
    assert cells(make([1, "1", b"1", -1, 2**64 - 1])) == cells(np.array([1, "1", b"1", -1, 2**64 - 1], dtype=object))
    assert "a bool was given at position 1" in refused(make([5, True]), TypeError)


def test_a_dictionary_may_hold_values_and_nulls_that_no_key_points_to() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], pa.uint8()), pa.array(["a", None, "b", "unused"]))
    assert cells(column) == cells(["b", "a", "b"])
    assert cells(pd.Series(["a", "b", "a"], dtype="category")[:1]) == cells(["a"])


def test_a_single_value_among_columns_stands_for_every_row() -> None:
    rows = [("EWR", 3), ("EWR", 4), ("EWR", 3)]
    expected = fg.RawSketch(width=256, hash_seed=11, max_weight=1000)
    for row in rows:
        expected.update(row)
    for origin in ["EWR", np.str_("EWR"), np.array("EWR"), pa.scalar("EWR"), ["EWR"] * 3]:
        one: Any = origin
        assert cells((one, [3, 4, 3])) == expected.__reduce__()[1][0]
        found = sketch().top(3, among=(one, [3, 4, 3]))
        assert {entry.key for entry in found} == set(rows)


def test_parts_of_a_composite_key_keep_their_places_and_kinds() -> None:
    parts: list[Any] = [(1, 2), (2, 1), (1, "2"), ("1", 2), (1, b"2"), (12,), (1, 2, 0), (0, 1, 2), ("1", "2"), ("12",)]
    assert len({cells(part) for part in parts}) == len(parts)


keys_of_all_kinds = st.lists(
    st.one_of(st.integers(-(2**63), 2**64 - 1), st.text(max_size=5), st.binary(max_size=5)), max_size=30
)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(keys_of_all_kinds, st.data())
def test_random_keys_with_deletions_count_as_in_a_dictionary(keys: list[Any], data: Any) -> None:
    weights = data.draw(st.lists(st.integers(-9, 9), min_size=len(keys), max_size=len(keys)))
    counts = sketch(width=2**16, max_weight=9)
    counts.update(keys, weights)
    expected: dict[Any, int] = {}
    for key, weight in zip(keys, weights, strict=True):
        expected[key] = expected.get(key, 0) + weight
    assert whole(counts.estimate(keys)).tolist() == [expected[key] for key in keys]
    assert cells(keys, weights) == cells(pd.Series(keys, dtype=object), np.array(weights, dtype="i1"))


# Whoever changes these breaks every saved raw sketch: "value-breaking" in the change log.
GOLDEN_KEYS: list[Any] = [0, 5, -1, 2**64 - 1, "JFK", "", b"JFK", (5, "JFK"), ("JFK", 5), "Łódź"]
GOLDEN_CELLS = [
    [-844, -834, -969],
    [-491, 673, -242],
    [-692, 843, 965],
    [642, -321, 896],
    [-842, -705, -452],
    [-365, -233, 459],
    [622, 857, -435],
    [-115, 655, -155],
    [-279, 282, 522],
    [510, -34, 61],
]


def places(key: Any) -> list[int]:
    """For each of three rows of 1024 buckets, the bucket of a key, negative (less one) with a negative sign."""
    raw = fg.RawSketch(width=1024, depth=3, hash_seed=2024)
    raw.update(key)
    counters: Integers = np.frombuffer(raw.__reduce__()[1][0], dtype="<i8")[-3072:].reshape(3, 1024)
    rows, buckets = np.nonzero(counters)
    assert rows.tolist() == [0, 1, 2]
    return [
        int(bucket if counters[row, bucket] == 1 else -bucket - 1) for row, bucket in zip(rows, buckets, strict=True)
    ]


def test_keys_go_to_the_cells_where_they_always_went() -> None:
    assert [places(key) for key in GOLDEN_KEYS] == GOLDEN_CELLS


CHILD = """
import json, fastgame as fg
keys = ["JFK", "Łódź", b"JFK", 5, -1]
raw = fg.RawSketch(width=64, depth=3, hash_seed=5)
raw.update(keys)
raw.update(("JFK", [1, 2, 3]))
counts = fg.CountSketch(width=64, depth=3, hash_seed=5, insecure_seed=6, horizon=4, privacy=fg.Zcdp(rho=0.5))
counts.merge(raw)
print(json.dumps([raw.__reduce__()[1][0].hex(), counts.estimate(keys).tolist(), counts.second_moment()]))
"""


def test_other_processes_with_other_hash_seeds_of_python_agree() -> None:
    answers = set()
    for seed in ["0", "1", "4294967295", "random"]:
        run = subprocess.run(
            [sys.executable, "-c", CHILD],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"},
            capture_output=True,
            check=True,
        )
        answers.add(run.stdout)
    assert len(answers) == 1
    [answer] = answers
    assert json.loads(answer)[1] == [2.90625, 1.3125, 0.90625, 5.125, 0.84375]


WITHOUT_PYARROW = """
import sys
sys.modules["pyarrow"] = None
import numpy as np, pandas as pd, polars as pl, fastgame as fg
def cells(keys):
    raw = fg.RawSketch(width=256, hash_seed=1)
    raw.update(keys)
    return raw.__reduce__()[1][0]
text, numbers = ["a", "b", "a"], [5, 6, 5]
counts = fg.CountSketch(width=256, horizon=1, privacy=fg.Zcdp(rho=1e6))
kinds = [(text, [None, "string", "category", object]), (numbers, [None, "Int64", "u2", "category", object])]
for values, kinds in kinds:
    for column in [*(pd.Series(values, dtype=kind) for kind in kinds), pl.Series(values), np.array(values)]:
        assert cells(column) == cells(values), column
        assert {entry.key for entry in counts.top(3, among=column)} == set(values)
for column in [pd.Series(["a", None]), pd.Series(["a", None], dtype="string"), pd.Series([5, None], dtype="Int64")]:
    try:
        cells(column)
    except TypeError as error:
        assert "null at position 1" in str(error), error
    else:
        raise AssertionError(column)
dropping = fg.RawSketch(width=256, hash_seed=1, invalid="drop")
# Pandas would make floats of these, in which the first is no key.
dropping.update(pd.Series([2**60 + 1, None], dtype="Int64"))
assert dropping.dropped == 1
alone = fg.RawSketch(width=256, hash_seed=1, invalid="drop")
alone.update(2**60 + 1)
assert dropping.__reduce__()[1][0][64:] == alone.__reduce__()[1][0][64:]
"""


def test_pyarrow_is_not_needed() -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_PYARROW], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


class Colour(enum.IntEnum):
    RED = 5


class Code(str, enum.Enum):
    JFK = "JFK"


class Text(str):
    """Text of somebody else, with methods that mislead."""

    __slots__ = ()

    def __str__(self) -> str:
        return "misleading"

    def __hash__(self) -> int:
        return 1

    encode = __str__  # type: ignore[assignment]


def test_subclasses_of_the_kinds_are_the_values_that_they_hold() -> None:
    assert cells(Colour.RED) == cells([Colour.RED]) == cells(5)
    assert cells(Code.JFK) == cells("JFK")
    assert cells(Text("JFK")) == cells([Text("JFK")]) == cells("JFK")
    [entry] = sketch().top(1, among=[Colour.RED])
    assert type(entry.key) is int


def test_labels_of_a_pandas_column_are_no_methods() -> None:
    for label in ["as_py", "__index__", "__arrow_c_stream__", "__len__", "iloc", "dtype", "categories"]:
        column = pd.Series(["a", "b"], index=[label, "x"])
        assert cells(column) == cells(["a", "b"])
        assert {entry.key for entry in sketch().top(2, among=column)} == {"a", "b"}


NULLS: dict[str, Any] = {
    "list": [1, 2, None],
    "list of NaN": ["a", "b", float("nan")],
    "list of numpy NaN": ["a", "b", np.float64("nan")],
    "list of NA": ["a", "b", pd.NA],
    "list of NaT": [1, 2, pd.NaT],
    "list of scalars": [1, 2, pa.scalar(None, pa.string())],
    "objects": np.array([1, "b", None], dtype=object),
    "arrow integers": pa.array([1, 2, None]),
    "arrow text": pa.array(["a", "b", None]),
    "arrow view": pa.array(["a", "b", None], pa.string_view()),
    "arrow bytes": pa.array([b"a", b"b", None]),
    "arrow fixed": pa.array([b"a", b"b", None], pa.binary(1)),
    "arrow chunked": pa.chunked_array([[1, 2], [None, 3]]),
    "arrow sliced": pa.array([None, 1, 2, None])[1:],
    "arrow dictionary key": pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", "b"])),
    "arrow dictionary value": pa.DictionaryArray.from_arrays(pa.array([0, 0, 1]), pa.array(["a", None])),
    "arrow dictionary chunks": pa.chunked_array([["a", "b"], [None]]).dictionary_encode(),
    "polars": pl.Series([1, 2, None]),
    "polars text": pl.Series(["a", "b", None]),
    "polars categorical": pl.Series(["a", "b", None], dtype=pl.Categorical),
    "polars objects": pl.Series([1, "a", None], dtype=pl.Object),
    "pandas Int64": pd.Series([1, 2, None], dtype="Int64"),
    "pandas text": pd.Series(["a", "b", None]),
    "pandas string": pd.Series(["a", "b", None], dtype="string"),
    "pandas category": pd.Series(["a", "b", None], dtype="category"),
    "pandas category of integers": pd.Series([1, 2, None], dtype="category"),
    "pandas objects": pd.Series([1, "b", None], dtype=object),
    "pandas reindexed": pd.Series(["a", "b"]).reindex([0, 1, 7]),
    "part of a composite": (["a", "b", None], [1, 2, 3]),
    "later part of a composite": ("x", pa.array([1, 2, None])),
}
if STRING_DTYPE is not None:
    NULLS["StringDType of None"] = np.array(["a", "b", None], dtype=STRING_DTYPE(na_object=None))
    NULLS["StringDType of NaN"] = np.array(["a", "b", np.nan], dtype=STRING_DTYPE(na_object=np.nan))


def refused(keys: Any, *errors: type[BaseException]) -> str:
    """The message with which keys are refused wherever they are given; nothing has changed then."""
    counts, raw = sketch(), fg.RawSketch(width=16, hash_seed=1)
    counts.update(1)
    before = raw.__reduce__()[1][0]
    messages = set()
    for call in [counts.update, counts.estimate, lambda keys: counts.top(1, among=keys), raw.update]:
        error = raised_by(lambda call=call: call(keys))  # type: ignore[misc]
        assert isinstance(error, errors or DOCUMENTED), repr(error)
        messages.add(str(error))
    assert (counts.sealed, counts.dropped, counts.now) == (False, 0, 1)
    assert whole(counts.estimate(1)) == 1
    assert abs(counts.second_moment() - 1) < 0.5
    assert raw.__reduce__()[1][0] == before
    [message] = messages
    return message


@pytest.mark.parametrize("name", NULLS)
def test_a_missing_key_is_refused_with_its_place(name: str) -> None:
    message = refused(NULLS[name], TypeError)
    assert "there is a null at position 2" in message
    assert "drop it or fill it" in message


def test_a_missing_key_by_itself_is_refused() -> None:
    for missing in [None, float("nan"), pd.NA, pd.NaT, pa.scalar(None), np.array(None)]:
        assert "there is a null (drop it" in refused(missing, TypeError)


NO_KEYS: dict[str, Any] = {
    "fraction": 0.5,
    "infinity": math.inf,
    "fractions": [1, 5.5],
    "numpy fraction": np.float64(5.5),
    "array of fractions": np.array([1.0, 2.5]),
    "long fractions": np.array([1.5], dtype="g"),
    "arrow fractions": pa.array([1.5]),
    "arrow halves": pa.array(np.array([1.5], dtype="e")),
    "arrow fraction": pa.scalar(5.5),
    "dictionary of fractions": pa.array([1.5, 2.0]).dictionary_encode(),
    "polars fractions": pl.Series([1.5]),
    "pandas fractions": pd.Series([1.5]),
    "pandas Float64": pd.Series([1.5], dtype="Float64"),
    "integers that a null made floats": pd.Series([1, None]),
    "category of fractions": pd.Series([1.5, 2.5], dtype="category"),
    "bool": True,
    "numpy bool": np.True_,
    "bool without dimensions": np.array(True),
    "bools": np.array([True, False]),
    "list of bools": [1, True],
    "list of numpy bools": [np.True_],
    "bool among objects": np.array([1, True], dtype=object),
    "arrow bools": pa.array([True]),
    "arrow bool scalar": pa.scalar(True),
    "dictionary of bools": pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([True])),
    "polars bools": pl.Series([True]),
    "pandas bools": pd.Series([True]),
    "pandas nullable bools": pd.Series([True], dtype="boolean"),
    "pandas bool among objects": pd.Series([1, True], dtype=object),
    "category of bools": pd.Series([True], dtype="category"),
    "complex": 1j,
    "Decimal": decimal.Decimal(5),
    "arrow decimals": pa.array([decimal.Decimal(5)]),
    "date": datetime.date(2013, 1, 1),
    "dates": np.array(["2013-01-01"], dtype="M8[D]"),
    "date time": np.datetime64("2013"),
    "time delta": np.timedelta64(5),
    "list of time deltas": [np.timedelta64(5)],
    "not a time": np.array(["NaT"], dtype="M8[s]"),
    "Timestamp": pd.Timestamp("2013"),
    "pandas dates": pd.Series(pd.date_range("2013", periods=2)),
    "pandas periods": pd.Series(pd.period_range("2013", periods=2)),
    "pandas intervals": pd.Series(pd.interval_range(0, 2)),
    "arrow dates": pa.array([datetime.date(2013, 1, 1)]),
    "arrow times": pa.array([datetime.datetime(2013, 1, 1)]),
    "arrow durations": pa.array([datetime.timedelta(1)]),
    "arrow extension": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0123456789abcdef"], pa.binary(16))),
    "polars dates": pl.Series([datetime.date(2013, 1, 1)]),
    "polars objects": pl.Series([object()], dtype=pl.Object),
    "polars decimals": pl.Series([decimal.Decimal(5)]),
    "polars 128 bits": pl.Series([5], dtype=pl.Int128),
    "nested lists": [[1, 2], [3, 4]],
    "ragged lists": [[1], [2, 3]],
    "list of tuples": [(1, "a"), (2, "b")],
    "list of arrays": [np.array(5)],
    "list of columns": [pa.array([1])],
    "arrow lists": pa.array([[1]]),
    "arrow structs": pa.array([{"a": 1}]),
    "arrow table": pa.table({"a": [1]}),
    "polars lists": pl.Series([[1]]),
    "polars frame": pl.DataFrame({"a": [1]}),
    "pandas frame": pd.DataFrame({"a": [1]}),
    "pandas index of tuples": pd.MultiIndex.from_tuples([(1, "a")]),
    "tuple in a tuple": ((1, 2), [1, 2]),
    "set": {1, 2},
    "dict": {1: 2},
    "iterator": iter([1, 2]),
    "bytearray": bytearray(b"JFK"),
    "list of bytearrays": [bytearray(b"JFK")],
    "memoryview": memoryview(b"JFK"),
    "records": np.zeros(2, dtype="i4,i4"),
    "void": np.zeros(2, dtype="V3"),
    "masked": np.ma.array([1, 2], mask=[False, True]),
    "masked constant": np.ma.masked,
    "slice": slice(2),
    "ellipsis": ...,
    "object": object(),
    "class": int,
    "class with columns": pl.Series,
    "sketch": fg.RawSketch(width=16),
}


@pytest.mark.parametrize("name", NO_KEYS)
def test_what_is_no_key_is_a_type_error_that_says_what_was_given(name: str) -> None:
    message = refused(NO_KEYS[name], TypeError)
    assert message.startswith("keys ")
    assert "given" in message or "null" in message or "masked" in message


@pytest.mark.parametrize(
    "bad",
    [5.5, 2.0**53, np.float32(2**24), True, np.True_, None, 1j, object(), [1], (1,), datetime.date(2013, 1, 1)],
    ids=repr,
)
@pytest.mark.parametrize("make", [list, lambda values: pd.Series(values, dtype=object), collections.deque])
def test_the_place_of_a_bad_key_is_named(bad: Any, make: Make) -> None:
    values = ["a", 1, bad, b"c", None]
    assert "at position 2" in refused(make(values), TypeError)
    objects = np.empty(5, dtype=object)
    objects[:] = values
    assert "at position 2" in refused(objects, TypeError)
    assert "at position 2" in refused(("x", objects), TypeError)


@pytest.mark.parametrize("huge", [2**64, -(2**63) - 1, 2**200, -(10**5000)], ids=hex)
def test_integers_beyond_64_bits_are_refused_with_their_place(huge: int) -> None:
    for form in [[1, huge], np.array([1, huge], dtype=object), pd.Series([1, huge], dtype=object), ([1, huge], "x")]:
        assert "from -2^63 to 2^64 - 1; one beyond was given at position 1" in refused(form, OverflowError)
    assert refused(huge, OverflowError).endswith("was given")
    assert refused(Index(huge), OverflowError).endswith("was given")


def test_lone_surrogates_are_refused_with_their_place() -> None:
    bad = ["a", "b\ud800"]
    forms = [bad, np.array(bad), np.array(bad, dtype=object), pd.Series(bad, dtype=object), (bad, "x")]
    for form in forms:
        assert "a lone surrogate was given at position 1" in refused(form, ValueError)
    assert refused("\udfff", ValueError).endswith("a lone surrogate was given")
    categories = pd.Series(pd.Categorical.from_codes([0, 1], categories=pd.Index(bad, dtype=object)))
    assert isinstance(raised_by(lambda: sketch().update(categories)), DOCUMENTED)
    assert cells_and_dropped(categories) == (cells(["a"]), 1)


#: Floats of so many binary digits, from Python values, alone and in columns.
FLOATS: dict[str, tuple[int, Make]] = {
    "list": (53, list),
    "objects": (53, lambda values: np.array(values, dtype=object)),
    "list of doubles": (53, lambda values: list(np.array(values, dtype="f8"))),
    "list of singles": (24, lambda values: list(np.array(values, dtype="f4"))),
    "list of halves": (11, lambda values: list(np.array(values, dtype="f2"))),
    "list of long doubles": (53, lambda values: list(np.array(values, dtype="g"))),
    "list of arrow doubles": (53, lambda values: [pa.scalar(value, pa.float64()) for value in values]),
    "list of arrow singles": (24, lambda values: [pa.scalar(value, pa.float32()) for value in values]),
    "list of arrow halves": (11, lambda values: [pa.scalar(np.float16(value), pa.float16()) for value in values]),
    "doubles": (53, lambda values: np.array(values, dtype="f8")),
    "doubles swapped": (53, lambda values: np.array(values, dtype=">f8")),
    "singles": (24, lambda values: np.array(values, dtype="f4")),
    "singles strided": (24, lambda values: np.repeat(np.array(values, dtype=">f4"), 2)[::2]),
    "halves": (11, lambda values: np.array(values, dtype="f2")),
    "long doubles": (53, lambda values: np.array(values, dtype="g")),
    "arrow doubles": (53, lambda values: sliced(values, pa.float64())),
    "arrow singles": (24, lambda values: sliced(values, pa.float32())),
    "arrow halves": (11, lambda values: pa.array(np.array(values, dtype="f2"))),
    "arrow chunked": (53, lambda values: chunked(values, pa.float64())),
    "arrow dictionary": (53, lambda values: pa.array(values, pa.float64()).dictionary_encode()),
    "arrow dictionary of singles": (24, lambda values: pa.array(values, pa.float32()).dictionary_encode()),
    "pandas doubles": (53, lambda values: pd.Series(values, dtype="f8")),
    "pandas singles": (24, lambda values: pd.Series(values, dtype="f4")),
    "pandas Float64": (53, lambda values: pd.Series(values, dtype="Float64")),
    "pandas Float32": (24, lambda values: pd.Series(values, dtype="Float32")),
    "pandas category": (53, lambda values: pd.Series(values, dtype="category")),
    "pandas index": (53, lambda values: pd.Index(values, dtype="f8")),
    "polars doubles": (53, lambda values: pl.Series(values, dtype=pl.Float64)),
    "polars singles": (24, lambda values: pl.Series(values, dtype=pl.Float32)),
}


@pytest.mark.parametrize("digits, make", FLOATS.values(), ids=FLOATS)
def test_a_whole_float_is_the_integer_that_it_equals_below_its_limit(digits: int, make: Make) -> None:
    most = 2**digits - 1
    values = [0, 5, -5, most, -most, 1]
    floats = [-0.0, 5.0, -5.0, float(most), float(-most), 1.0]
    assert cells(make(floats), range(1, 7)) == cells(values, range(1, 7))
    counts = sketch()
    counts.update(make(floats))
    assert whole(counts.estimate(make(floats))).tolist() == [1] * 6
    assert whole(counts.estimate(values)).tolist() == [1] * 6
    found = counts.top(6, among=make(floats))
    assert {entry.key for entry in found} == set(values)
    assert {type(entry.key) for entry in found} == {int}
    composite = (make(floats), "x")
    assert cells(composite) == cells((values, "x"))


@pytest.mark.parametrize("digits, make", FLOATS.values(), ids=FLOATS)
def test_a_float_that_may_be_another_integer_is_no_key(digits: int, make: Make) -> None:
    for bad in [2.0**digits, -(2.0**digits), 0.5, -1.5, math.inf, -math.inf]:
        message = refused(make([1.0, bad, 2.0]), TypeError)
        assert "another float was given at position 1" in message
        assert "nullable integers" in message
        assert cells_and_dropped(make([1.0, bad, 2.0])) == (cells([1, 2]), 1)


def test_a_single_float_is_a_key_or_none() -> None:
    for name in [5.0, np.float64(5), np.float32(5), np.float16(5), np.longdouble(5), np.array(5.0), pa.scalar(5.0)]:
        assert cells(name) == cells(5)
        assert isinstance(sketch().estimate(name), float)
    for bad in [2.0**53, np.float32(2**24), np.float16(2048), np.array(0.5), pa.scalar(2.0**24, pa.float32())]:
        assert refused(bad, TypeError).count("another float was given (") == 1
    if np.finfo(np.longdouble).nmant > 52:
        # The double nearest to it is whole.
        bad = np.longdouble(3) + np.finfo(np.longdouble).eps * 2
        assert "another float" in refused(bad, TypeError)
        assert "another float was given at position 1" in refused(np.array([3, bad], dtype="g"), TypeError)


def test_a_missing_id_that_made_floats_of_a_column_costs_no_other_id_of_less_than_2_to_the_53() -> None:
    small, large = pd.Series([7, None, 2**53 - 1]), pd.Series([1_200_000_000_000_000_000, None, 7])
    assert cells_and_dropped(small) == (cells([7, 2**53 - 1]), 1)
    # The large one may be another id by now; in a column of nullable integers it is itself.
    assert cells_and_dropped(large) == (cells([7]), 2)
    nullable = pd.Series([1_200_000_000_000_000_001, None, 7], dtype="Int64")
    assert cells_and_dropped(nullable) == (cells([1_200_000_000_000_000_001, 7]), 1)


def cells_and_dropped(keys: Any, weights: Any = 1) -> tuple[bytes, int]:
    """The cells that keys give where what is none is left out, as those of `cells`, and how many were left out."""
    raw = fg.RawSketch(width=256, depth=5, hash_seed=11, max_weight=1000, invalid="drop")
    raw.update(keys, weights)
    with_policy = bytearray(raw.__reduce__()[1][0])
    plain = bytearray(cells([]))
    # All but the fields of policy and dropped.
    for place in (5, 7):
        with_policy[8 * place : 8 * place + 8] = plain[8 * place : 8 * place + 8]
    return bytes(with_policy), raw.dropped


def plain_list(column: Any) -> list[Any]:
    """The Python values of a column."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            return list(getattr(column, method)())
    return list(column)


@pytest.mark.parametrize("name", [name for name in NULLS if "composite" not in name])
def test_a_missing_key_is_dropped_alone(name: str) -> None:
    values = plain_list(NULLS[name])
    weights = list(range(1, len(values) + 1))
    good = [(value, weight) for value, weight in zip(values, weights, strict=True) if weight != 3]
    expected = cells([value for value, _ in good], [weight for _, weight in good])
    assert cells_and_dropped(NULLS[name], weights) == (expected, 1)


def test_a_row_with_a_missing_part_is_dropped_alone() -> None:
    assert cells_and_dropped(NULLS["part of a composite"], [1, 2, 3]) == (cells((["a", "b"], [1, 2]), [1, 2]), 1)
    assert cells_and_dropped(NULLS["later part of a composite"]) == (cells(("x", [1, 2])), 1)


ODD: list[Any] = [
    None, math.nan, pd.NA, pd.NaT, True, np.True_, 0.5, math.inf, 2.0**53, np.float32(2**24), np.float16(2048), 2**64,
    -(2**63) - 1, Index(2**70), "\ud800", 1j, decimal.Decimal(5), datetime.date(2026, 1, 1), np.datetime64("2026"),
    np.timedelta64(5, "s"), pa.scalar(None), pa.scalar(True), pa.scalar(2.0**24, pa.float32()),
]  # fmt: skip
#: No keys in a column; by themselves they stand in a column's place.
ODD_IN_A_LIST: list[Any] = [
    *ODD, object(), [1], (1,), {1}, {"a": 1}, bytearray(b"a"), np.array(5), np.array([1]), pa.array([1]), int,
    np.ma.masked, fg.RawSketch(width=16),
]  # fmt: skip


@pytest.mark.parametrize("bad", ODD_IN_A_LIST, ids=lambda bad: ascii(bad)[:40])
def test_what_is_no_key_is_dropped_alone_wherever_it_stands(bad: Any) -> None:
    values, weights = ["a", 7, b"c"], [2, 3, 5]
    expected = cells(values, weights)
    for place in range(4):
        column: list[Any] = [*values]
        column.insert(place, bad)
        with_weights = [*weights]
        # Its weight goes with it, whatever that is.
        with_weights.insert(place, 10**6)
        objects = np.empty(4, dtype=object)
        objects[:] = column
        for made in [column, collections.deque(column), objects, pd.Series(objects, dtype=object)]:
            assert cells_and_dropped(made, with_weights) == (expected, 1)
        assert cells_and_dropped((column, "x"), with_weights) == (cells((values, "x"), weights), 1)
        assert cells_and_dropped(("x", objects, [1, 2, 3, 4]), 1) == (
            cells(("x", values, np.delete([1, 2, 3, 4], place))),
            1,
        )


@pytest.mark.parametrize("bad", ODD, ids=lambda bad: ascii(bad)[:40])
def test_a_single_value_that_is_no_key_is_dropped(bad: Any) -> None:
    assert cells_and_dropped(bad, 7) == (cells([]), 1)
    assert cells_and_dropped(("a", bad)) == (cells([]), 1)
    # It stands for every row.
    assert cells_and_dropped((["a", "b"], bad)) == (cells([]), 2)
    assert cells_and_dropped(([], bad)) == (cells([]), 0)


def test_a_row_of_a_composite_key_with_two_bad_parts_is_one_row() -> None:
    rows = (["a", None, "b", "c"], [1, None, 2.5, 4])
    assert cells_and_dropped(rows, [1, 2, 3, 4]) == (cells((["a", "c"], [1, 4]), [1, 4]), 2)


def test_every_bad_row_is_dropped_where_all_are_bad() -> None:
    for column in [[None, None], np.array([math.nan, 0.5]), pa.nulls(2), pd.Series([None, None], dtype=object)]:
        assert cells_and_dropped(column, [1, 2]) == (cells([]), 2)


#: Columns whose type has no keys, and what stands in a column's place and is none: mistakes of the caller's.
WRONG = [
    "bools", "arrow bools", "dictionary of bools", "polars bools", "pandas bools", "pandas nullable bools",
    "category of bools", "dates", "not a time", "pandas dates", "pandas periods", "pandas intervals", "arrow decimals",
    "arrow dates", "arrow times", "arrow durations", "arrow extension", "polars dates", "polars decimals",
    "arrow lists", "arrow structs", "arrow table", "polars lists", "polars frame", "pandas frame", "tuple in a tuple",
    "set", "dict", "iterator", "bytearray", "memoryview", "records", "void", "masked", "slice", "object", "class",
    "sketch",
]  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_column_of_a_type_without_keys_is_an_error_also_where_bad_keys_are_dropped(name: str) -> None:
    raw = fg.RawSketch(width=256, hash_seed=11, invalid="drop")
    counts = sketch(invalid="drop")
    join = fg.JoinSize(width=32, horizon=4, privacy=fg.Zcdp(0.5), invalid="drop")
    for call in [raw.update, counts.update, counts.raw().update, join.left.update, join.right.update]:
        made: Any = iter([1, 2]) if name == "iterator" else NO_KEYS[name]
        with pytest.raises(TypeError, match=r"^keys "):
            call(made)
    assert (raw.dropped, counts.dropped, join.dropped) == (0, 0, 0)
    with pytest.raises(ValueError, match="one length"):
        raw.update((["a", None], [1, 2, 3]))
    with pytest.raises(ValueError, match="one for each of the 2 keys"):
        raw.update(["a", None], [1])


def test_every_structure_with_keys_drops_those_that_are_none() -> None:
    counts = sketch(invalid="drop")
    counts.update([None, "a", 0.5, "a"])
    assert counts.dropped == 2
    part = counts.raw()
    part.update(pd.Series(["a", None]))
    sent = pickle.loads(pickle.dumps(part))
    sent.update(math.nan)
    assert (part.dropped, sent.dropped) == (1, 2)
    counts.merge(sent)
    assert counts.dropped == 4
    assert whole(counts.estimate("a")) == 3
    join = fg.JoinSize(width=1024, horizon=4, privacy=fg.Zcdp(1e9), hash_seed=1, invalid="drop")
    join.left.update([None, "a", "a", True])
    join.right.update((pa.array(["a", None]),))
    join.right.update(pa.array(["a", None]), [1, 1])
    assert join.dropped == 4
    assert whole(join.estimate()) == 2


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(["a", 7, b"c", 2.0, *ODD]), st.integers(-3, 3)), max_size=12))
def test_each_row_decides_over_itself_alone(rows: list[tuple[Any, int]]) -> None:
    alone = [(key, weight) for key, weight in rows if cells_and_dropped([key])[1] == 0]
    expected = cells([key for key, _ in alone], [weight for _, weight in alone])
    column = [key for key, _ in rows]
    assert cells_and_dropped(column, [weight for _, weight in rows]) == (expected, len(rows) - len(alone))


def test_arrays_of_more_dimensions_are_refused_with_their_shape() -> None:
    for shape in [(2, 2), (1, 1), (0, 3), (2, 0, 1)]:
        message = refused(np.zeros(shape, dtype=int), ValueError)
        assert f"shape {list(shape)} was given (a tuple of columns makes composite keys)" in message
    assert "shape [1, 2]" in refused(np.array([[1, 2]]).view(np.matrix), ValueError)
    assert "shape" in refused(np.array([["a"]]), ValueError)


def test_columns_of_a_composite_key_have_one_length() -> None:
    assert "[2, 3] were given" in refused(([1, 2], [1, 2, 3]), ValueError)
    assert "[1, 2] were given" in refused(([1], [1, 2], "x"), ValueError)
    assert "[0, 2] were given" in refused(([], [1, 2]), ValueError)
    assert "at least one part" in refused((), ValueError)


def test_a_dictionary_with_keys_that_point_nowhere_is_refused() -> None:
    for index in [7, -7, 2**31 - 1]:
        for values in [pa.array(["a", "b"]), pa.array(["a", None])]:
            column = pa.DictionaryArray.from_arrays(pa.array([0, index], pa.int32()), values, safe=False)
            assert "no value for position 1" in refused(column, ValueError)


EMPTY: list[Any] = [
    [], np.array([], dtype="i8"), np.array([], dtype=">u2"), np.array([], dtype="U1"), np.array([], dtype="S"),
    np.array([], dtype=object), pa.array([], pa.int8()), pa.array([], pa.string()), pa.array([], pa.binary_view()),
    pa.array([], pa.string()).dictionary_encode(), pa.chunked_array([], pa.string()), pa.nulls(0), pl.Series([]),
    pl.Series([], dtype=pl.Int64), pl.Series([], dtype=pl.String), pl.Series([], dtype=pl.Categorical),
    pd.Series([], dtype=object), pd.Series([], dtype="Int64"), pd.Series([], dtype="string"), pd.Categorical([]),
    pd.Series([], dtype="category"), pd.Index([], dtype="int64"), range(0), ([], []), ("x", []), (pl.Series([]), 5),
]  # fmt: skip


@pytest.mark.parametrize("empty", EMPTY, ids=lambda empty: f"{type(empty).__name__} {getattr(empty, 'dtype', '')}")
def test_an_empty_column_is_no_keys(empty: Any) -> None:
    assert cells(empty) == cells([])
    assert cells(empty, []) == cells(empty, 7) == cells([])
    counts = sketch()
    counts.update(empty)
    assert counts.top(3, among=empty) == []
    released: Any = counts.estimate(empty)
    assert released.shape == (0,)
    assert released.dtype == np.float64
    assert counts.estimate(empty, error=True).std.shape == (0,)


def test_ranges_are_columns_of_integers() -> None:
    assert cells(range(3, 9, 2)) == cells([3, 5, 7])
    assert [entry.key for entry in sketch().top(0, among=range(3))] == []
    assert {entry.key for entry in sketch().top(9, among=range(3))} == {0, 1, 2}


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError, RecursionError])
def test_an_error_inside_a_column_comes_out_as_it_is(error: type[BaseException]) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise error("broken")

    broken: list[Any] = [
        type("Stream", (), {"__arrow_c_stream__": fail})(),
        type("Array", (), {"__arrow_c_array__": fail})(),
        type("Numpy", (), {"__array__": fail})(),
        [1, type("Integer", (), {"__index__": fail})()],
        [1, type("Scalar", (), {"as_py": fail})()],
        ("x", type("Stream", (), {"__arrow_c_stream__": fail})()),
    ]
    for keys in broken:
        counts = sketch()
        calls: list[Make] = [counts.update, counts.estimate]
        for call in calls:
            with pytest.raises(error, match="broken"):
                call(keys)
        assert not counts.sealed


def test_a_column_that_says_nonsense_is_refused() -> None:
    nonsense: list[Any] = [
        type("Stream", (), {"__arrow_c_stream__": lambda *_: 5})(),
        type("Array", (), {"__arrow_c_array__": lambda *_: (1, 2)})(),
        type("Array", (), {"__arrow_c_array__": lambda *_: None})(),
        type("Integer", (), {"__index__": lambda _: "5"})(),
    ]
    for keys in nonsense:
        assert isinstance(raised_by(lambda keys=keys: sketch().update(keys)), DOCUMENTED)  # type: ignore[misc]
        assert isinstance(raised_by(lambda keys=keys: sketch().top(1, among=keys)), DOCUMENTED)  # type: ignore[misc]


def test_a_column_that_changes_while_it_is_read_does_no_harm() -> None:
    values: list[Any] = [1, 2, 3]

    class Shrinking:
        def __index__(self) -> int:
            values.clear()
            return 7

    values.append(Shrinking())
    values += [4] * 1000
    assert cells(values) == cells([1, 2, 3, 7])


@pytest.mark.parametrize("seed", [0, 1, 2**64 - 1])
def test_many_keys_of_all_kinds_are_counted_exactly_where_they_do_not_collide(seed: int) -> None:
    # 3000 keys in 5 rows of 2^17 buckets: a key whose median is wrong needs 3 collisions, probability at most
    # 10 (3000 / 2^17)^3 = 1.2e-4 a key; so up to 4 keys (expected 0.36, Poisson tail < 1e-3) are let pass. Rejects a
    # hash that sends keys of different kinds to the same cells.
    generator = random.Random(seed)
    keys: list[Any] = list(range(1000)) + [str(number) for number in range(1000)] + [b"%d" % n for n in range(1000)]
    weights = [generator.randint(-1000, 1000) for _ in keys]
    counts = sketch(width=2**17, max_weight=1000, hash_seed=seed)
    counts.update(keys, weights)
    assert np.sum(whole(counts.estimate(keys)) != np.array(weights)) <= 4
