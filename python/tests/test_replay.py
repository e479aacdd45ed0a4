"""replay: the same releases as a loop by hand, from tables of all kinds; and nothing public depends on the rows."""

from __future__ import annotations

import contextlib
import datetime as dt
import os
import re
import resource
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import tiny_noise
from hypothesis import given, settings
from hypothesis import strategies as st

import fastgame as fg

DAYS = 10
TICKS = fg.Ticks("2026-01-01", "2026-01-11", "1d")
TICKS_UTC = fg.Ticks("2026-01-01", "2026-01-11", "1d", tz="UTC")
START = dt.datetime(2026, 1, 1)
KEYS = ["a", "b", "c"]
SEED = 7


def at(day: float) -> dt.datetime:
    """A moment so many days after the start."""
    return START + dt.timedelta(days=day)


def counter(**parameters: Any) -> fg.ContinualCounter:
    return fg.ContinualCounter(
        **{"horizon": DAYS, "privacy": fg.Zcdp(rho=0.5), "insecure_seed": SEED, "max_weight": 5, **parameters}
    )


def vector(size: int = 3, **parameters: Any) -> fg.ContinualVector:
    given: dict[str, Any] = {"horizon": DAYS, "privacy": fg.Zcdp(rho=0.5), "insecure_seed": SEED, "max_norm": 5.0}
    return fg.ContinualVector(size, **{**given, **parameters})


def sketch(**parameters: Any) -> fg.CountSketch:
    given: dict[str, Any] = {"horizon": DAYS, "privacy": fg.Zcdp(rho=0.5), "insecure_seed": SEED, "max_weight": 5}
    return fg.CountSketch(**{"width": 256, "hash_seed": 1, **given, **parameters})


def feed(structure: Any, weight: str | None = "w", **parameters: Any) -> fg.Feed:
    """A structure that takes the columns of `table`."""
    if isinstance(structure, fg.ContinualCounter):
        return fg.Feed(structure, weight=weight, **parameters)
    return fg.Feed(structure, **{"key": "k", "keys": KEYS, "weight": weight, **parameters})


MAKERS: dict[str, Callable[..., Any]] = {"counter": counter, "vector": vector, "sketch": sketch}
STRUCTURES = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


def table(rows: int = 200, seed: int = 3) -> pa.Table:
    """Rows in no order, some before the start and some after the end."""
    rng = np.random.default_rng(seed)
    times = [START + dt.timedelta(seconds=second) for second in rng.integers(-(10**6), 10**6, rows).tolist()]
    return pa.table(
        {
            "t": pa.array(times, pa.timestamp("us")),
            "k": pa.array(rng.choice([*KEYS, "other"], rows).tolist()),
            "w": pa.array(rng.integers(-5, 6, rows)),
            "unused": pa.array([object.__name__] * rows),
        }
    )


def values(released: pa.Table) -> list[float]:
    return released.column("value").to_pylist()  # type: ignore[no-any-return]


def play(frame: Any, given: Any, ticks: fg.Ticks = TICKS, time: str = "t", **parameters: Any) -> Any:
    return fg.replay(frame, ticks, given, time=time, **parameters)


def whole(frame: Any, given: Any, **parameters: Any) -> list[int]:
    """The integers that releases with negligible noise stand for."""
    return np.rint(values(play(frame, given, **parameters))).astype(int).tolist()  # type: ignore[no-any-return]


def quiet(make: Callable[..., Any], **parameters: Any) -> Any:
    """A structure with negligible noise."""
    return make(privacy=tiny_noise(5), **parameters)


def by_hand(frame: pa.Table, structure: Any, weight: bool = True) -> list[float]:
    """What a loop of advance, update and release gives, for one row after the other."""
    rows = [row for row in frame.to_pylist() if at(0) <= row["t"] < at(DAYS)]
    found: list[float] = []
    for step in range(1, DAYS + 1):
        structure.advance(to=step)
        for row in rows:
            if (row["t"] - START).days + 1 == step:
                amount = row["w"] if weight else 1
                if isinstance(structure, fg.ContinualCounter):
                    structure.update(amount)
                elif isinstance(structure, fg.CountSketch):
                    structure.update([row["k"]], amount)
                elif row["k"] in KEYS:
                    structure.update([KEYS.index(row["k"])], [amount])
        if isinstance(structure, fg.CountSketch):
            released, _ = structure.estimate(KEYS, error=True)
        else:
            released = structure.release()
        found += np.atleast_1d(np.asarray(released, dtype=float)).tolist()
    return found


@STRUCTURES
@pytest.mark.parametrize("weight", [True, False])
def test_the_releases_are_those_of_a_loop_by_hand_bit_for_bit(make: Callable[..., Any], weight: bool) -> None:
    frame = table()
    released = play(frame, feed(make(), weight="w" if weight else None))
    assert values(released) == by_hand(frame, make(), weight)
    cells = 1 if make is counter else len(KEYS)
    assert released.column("time").to_pylist() == [at(day) for day in range(1, DAYS + 1) for _ in range(cells)]
    if cells > 1:
        assert released.column("k").to_pylist() == KEYS * DAYS


def test_several_structures_are_fed_in_one_go_each_as_if_alone() -> None:
    frame = table()
    counts = fg.RowCounts()
    together = play(frame, {name: feed(make()) for name, make in MAKERS.items()}, counts=counts)
    assert list(together) == list(MAKERS)
    for name, make in MAKERS.items():
        assert together[name].equals(play(frame, feed(make())))
    others = sum(row["k"] == "other" and at(0) <= row["t"] < at(DAYS) for row in frame.to_pylist())
    assert counts.read == frame.num_rows
    assert counts.dropped["key not in the list"] == others > 0


def test_a_bare_structure_takes_its_columns_from_the_call() -> None:
    bare = play(table(), vector(), key="k", keys=KEYS, weight="w")
    assert bare.equals(play(table(), feed(vector())))
    with pytest.raises(TypeError, match="key and weight must stand in the Feed of each structure"):
        play(table(), {"a": vector()}, key="k", weight="w")


def in_one_batch(frame: pa.Table) -> pa.RecordBatch:
    return frame.combine_chunks().to_batches()[0]


def halves(frame: pa.Table) -> Iterator[Any]:
    yield in_one_batch(frame[:50])
    yield frame[50:51].to_pandas()
    yield frame[51:51]
    yield pl.from_arrow(frame[51:])


FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "batch": in_one_batch,
    "reader": lambda frame: frame.to_reader(7),
    "generator": lambda frame: (batch for batch in frame.to_batches(max_chunksize=9)),
    "generator of all kinds": halves,
    "list": lambda frame: frame.to_batches(max_chunksize=9),
    "dict of arrays": lambda frame: {name: frame.column(name).to_numpy() for name in ("t", "k", "w")},
    "dict of lists": lambda frame: frame.to_pydict(),
    "dict of Polars columns": lambda frame: {name: pl.Series(frame.column(name)) for name in ("t", "k", "w")},
    "Polars": pl.from_arrow,
    "pandas": lambda frame: frame.to_pandas(),
    "pandas of pyarrow": lambda frame: frame.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas nullable": lambda frame: frame.to_pandas().convert_dtypes(),
    "pandas object": lambda frame: frame.to_pandas().assign(k=lambda given: given.k.astype(object)),
    "pandas categorical": lambda frame: frame.to_pandas().assign(k=lambda given: given.k.astype("category")),
    "Polars categorical": lambda frame: pl.DataFrame(frame).with_columns(pl.col("k").cast(pl.Categorical)),
    "Polars enum": lambda frame: pl.DataFrame(frame).with_columns(pl.col("k").cast(pl.Enum([*KEYS, "other"]))),
    "Polars text": lambda frame: pl.DataFrame(frame).with_columns(
        pl.col("t").dt.to_string("%Y-%m-%dT%H:%M:%S"), pl.col("w").cast(pl.String)
    ),
    "dictionary": lambda frame: frame.set_column(1, "k", frame.column("k").dictionary_encode()),
}


def cast(place: int, kind: Any) -> Callable[[pa.Table], Any]:
    """Makes a column of another type."""

    def change(frame: pa.Table) -> Any:
        column = frame.column(place)
        if kind == pa.string_view():
            column = column.cast(pa.string())
        return frame.set_column(place, frame.schema.names[place], column.cast(kind))

    return change


for kind in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())):
    FRAMES[f"keys {kind}"] = cast(1, kind)
for kind in (pa.timestamp("s"), pa.timestamp("ns"), pa.string(), pa.large_string(), pa.string_view()):
    FRAMES[f"times {kind}"] = cast(0, kind)
for kind in (pa.int8(), pa.float32(), pa.float64(), pa.decimal128(22, 2), pa.string(), pa.large_string()):
    FRAMES[f"weights {kind}"] = cast(2, kind)


@pytest.mark.parametrize("name", FRAMES)
@STRUCTURES
def test_a_table_gives_the_same_releases_in_every_form(make: Callable[..., Any], name: str) -> None:
    counts, expected = fg.RowCounts(), fg.RowCounts()
    released = play(FRAMES[name](table()), feed(make()), counts=counts)
    assert released.equals(play(table(), feed(make()), counts=expected))
    assert counts == expected


@pytest.mark.parametrize("form", ["relation", "arrow"])
def test_a_result_of_duckdb_is_taken(form: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        result = connection.from_arrow(table()).filter("true")
        released = play(result if form == "relation" else result.arrow(), feed(vector()))
    assert released.equals(play(table(), feed(vector())))


KEY_TYPES: list[tuple[Any, list[Any]]] = [
    *((kind, [1, 2, 3]) for kind in (pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64())),
    *((kind, [b"1", b"2", b"3"]) for kind in (pa.binary(), pa.large_binary(), pa.binary(1), pa.binary_view())),
]


@pytest.mark.parametrize("make", [vector, sketch])
@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_integers_and_bytes_of_all_types_are_the_same_keys(make: Callable[..., Any], memory: int) -> None:
    for kind, keys in KEY_TYPES:
        for listed in (other for other, same in KEY_TYPES if same == keys):
            frame = pa.table({"t": [at(3), at(1), None], "k": pa.array([keys[0], keys[1], keys[2]], kind)})
            found = whole(frame, quiet(make), key="k", keys=pa.array(keys, listed), memory=memory)
            assert found[-3:] == [1, 1, 0], (kind, listed)


def test_keys_beyond_the_type_of_the_list_are_not_in_it() -> None:
    counts = fg.RowCounts()
    frame = pa.table({"t": [at(0)] * 4, "k": pa.array([1, 257, 2**63, None], pa.uint64())})
    assert whole(frame, quiet(vector), key="k", keys=pa.array([0, 1, 2], pa.int8()), counts=counts)[:3] == [0, 1, 0]
    assert counts.dropped == {"no key in 'k'": 1, "key not in the list": 2}


@pytest.mark.parametrize("make", [vector, sketch])
def test_batches_may_have_integers_of_several_types(make: Callable[..., Any]) -> None:
    kinds = [pa.int8(), pa.int64(), pa.int32(), pa.null()]
    frames = [
        pa.table({"t": [at(3), at(1)], "k": pa.array([None] * 2 if pa.types.is_null(kind) else [1, 2], kind)})
        for kind in kinds
    ]
    for memory in (0, 1 << 30):
        assert whole(frames, quiet(make), key="k", keys=[1, 2, 3], memory=memory)[-3:] == [3, 3, 0]
    with pytest.raises(TypeError, match="is of type uint64 here and int8 before"):
        play([*frames, frames[0].set_column(1, "k", pa.array([1, 2], pa.uint64()))], make(), key="k", keys=[1, 2, 3])


@pytest.mark.parametrize("make", [vector, sketch])
def test_composite_keys_are_the_pairs_and_not_all_combinations(make: Callable[..., Any]) -> None:
    frame = pa.table(
        {
            "t": [at(0)] * 6,
            "k": ["a", "a", "b", "b", None, "a"],
            "n": pa.array([1, 2, 1, 2, 1, None], pa.int32()),
        }
    )
    counts = fg.RowCounts()
    keys = (["b", "a", "c"], [2, 1, 1])
    released = play(frame, quiet(make), key=("k", "n"), keys=keys, counts=counts)
    assert np.rint(values(released))[:3].tolist() == [1, 1, 0]
    assert released.select(["k", "n"]).slice(0, 3).to_pydict() == {"k": keys[0], "n": keys[1]}
    assert counts.dropped["no key in 'k'"] == counts.dropped["no key in 'n'"] == 1
    assert counts.dropped.get("key not in the list", 0) == (2 if make is vector else 0)


@pytest.mark.parametrize(
    ("clip", "expected", "dropped"),
    [
        (False, 1 + 5 - 5, {"no usable weight in 'w'": 5, "'w' beyond the bound": 4}),
        (True, 1 + 5 - 5 + 5 + 5 - 5 + 5, {"no usable weight in 'w'": 5}),
    ],
)
@pytest.mark.parametrize("kind", [pa.float64(), pa.string()])
@STRUCTURES
def test_weights_are_used_cut_down_or_left_out(
    make: Callable[..., Any], kind: Any, clip: bool, expected: int, dropped: dict[str, int]
) -> None:
    weights = [1.0, 5.0, -5.0, 6.0, 2.0**63, -(2.0**63), 1e300, float("nan"), float("inf"), -float("inf"), 0.5, None]
    texts = [None if weight is None else repr(weight) for weight in weights]
    frame = pa.table({"t": [at(0)] * len(weights), "k": ["a"] * len(weights), "w": pa.array(texts).cast(kind)})
    counts = fg.RowCounts()
    structure = quiet(make, on_excess="clip" if clip else "error")
    if make is vector:  # takes halves
        found = values(play(frame, feed(structure), counts=counts))[0]
        assert found == pytest.approx(expected + 0.5, abs=0.1)
        assert counts.dropped == {**dropped, "no usable weight in 'w'": 4}
    else:
        assert whole(frame, feed(structure), counts=counts)[0] == expected
        assert counts.dropped == dropped


@pytest.mark.parametrize(
    ("kind", "weights"),
    [(pa.uint64(), [1, 2**64 - 1, 2**63]), (pa.int64(), [1, 2**63 - 1, 6]), (pa.float16(), [1, 60000, 6])],
)
def test_weights_at_the_ends_of_their_type_are_cut_down(kind: Any, weights: list[int]) -> None:
    frame = pa.table({"t": [at(0)] * 3, "w": pa.array(weights, kind)})
    assert whole(frame, feed(quiet(counter, on_excess="clip")))[0] == 1 + 5 + 5
    low = pa.table({"t": [at(0)] * 2, "w": pa.array([-(2**63), -6])})
    assert whole(low, feed(quiet(counter, on_excess="clip")))[0] == -10


def test_a_vector_takes_real_weights_up_to_its_bound() -> None:
    frame = pa.table({"t": [at(0)] * 4, "k": ["a", "b", "b", "c"], "w": [0.25, 1 / 3, 1 / 3, np.nextafter(1 / 3, 1)]})
    counts = fg.RowCounts()
    released = play(frame, feed(vector(privacy=tiny_noise(1 / 3), max_norm=1 / 3)), counts=counts)
    assert values(released)[:3] == pytest.approx([0.25, 2 / 3, 0], abs=0.05)
    assert counts.dropped == {"'w' beyond the bound": 1}


def test_rows_without_weights_are_refused_before_reading_where_each_would_be_beyond_the_bound() -> None:
    with pytest.raises(ValueError, match=r"rows without a weight count 1, and max_norm is 0\.5"):
        play(table(0), vector(max_norm=0.5), key="k", keys=KEYS)
    play(table(), vector(max_norm=0.5, on_excess="clip"), key="k", keys=KEYS)


@STRUCTURES
@pytest.mark.parametrize("memory", [0, 1 << 30])
@pytest.mark.parametrize("weight", [None, "w"])
def test_a_deletion_takes_out_what_the_row_put_in(make: Callable[..., Any], memory: int, weight: str | None) -> None:
    rows: list[tuple[float, Any]] = [
        (0, at(2)),
        (0.5, None),
        (1, at(1)),  # in the moment of its coming
        (1, at(1.5)),  # in the same step
        (3, at(2.9)),  # before: a bad row
        (4, at(100)),  # after the end: stays
        (-1, at(3)),  # came before the start: out of range as a whole
        (9.9, at(9.95)),
    ]
    frame = pa.table(
        {
            "t": pa.array([at(come) for come, _ in rows], pa.timestamp("us")),
            "x": pa.array([gone for _, gone in rows], pa.timestamp("us")),
            "k": ["a"] * len(rows),
            "w": [3] * len(rows),
        }
    )
    counts = fg.RowCounts()
    structure = quiet(make, protect="lifetime")
    found = whole(frame, feed(structure, weight=weight), delete_time="x", counts=counts, memory=memory)
    assert found[:: 1 if make is counter else 3] == [
        (1 if weight is None else 3) * count for count in [2, 2, 1, 1, 2, 2, 2, 2, 2, 2]
    ]
    assert counts.dropped == {"'t' not between start and end": 1, "'x' before 't'": 1}


def test_a_clipped_weight_is_taken_out_as_it_was_put_in() -> None:
    frame = pa.table({"t": [at(0)] * 2, "x": [at(1)] * 2, "k": ["a"] * 2, "w": [2.0**63, -0.3]})
    for make in (counter, vector):
        structure = quiet(make, protect="lifetime", on_excess="clip")
        assert set(whole(frame, feed(structure), delete_time="x")[3:]) == {0}


def test_a_deletion_time_that_cannot_be_read_makes_a_bad_row_and_a_missing_one_does_not() -> None:
    frame = pa.table({"t": ["2026-01-01"] * 4, "x": ["2026-01-02", "soon", "", None]})
    counts = fg.RowCounts()
    found = whole(frame, quiet(counter, protect="lifetime"), delete_time="x", counts=counts)
    assert found[:2] == [2, 1]
    assert counts.dropped == {"no time in 'x'": 2}


def test_deletions_need_the_protection_of_lifetimes() -> None:
    frame = pa.table({"t": [at(0)], "x": [at(1)]})
    with pytest.raises(ValueError, match='delete_time needs structures with protect="lifetime"'):
        play(frame, counter(), delete_time="x")


ROWS = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-30, 30 * DAYS)),
        st.one_of(st.none(), st.sampled_from([*KEYS, "other"])),
        st.one_of(st.none(), st.integers(-7, 7)),
        st.one_of(st.none(), st.integers(-30, 30 * DAYS)),
    ),
    max_size=30,
)
Rows = list[tuple[int | None, str | None, int | None, int | None]]


def _times(rows: Rows) -> tuple[list[int | None], list[int | None]]:
    return [row[0] for row in rows], [row[3] for row in rows]


def as_table(rows: Rows) -> pa.Table:
    """Rows with times in half hours of the day, deletion last."""
    moments = [[None if part is None else at(part / 30) for part in parts] for parts in _times(rows)]
    return pa.table(
        {
            "t": pa.array(moments[0], pa.timestamp("us")),
            "k": pa.array([row[1] for row in rows], pa.string()),
            "w": pa.array([row[2] for row in rows], pa.int64()),
            "x": pa.array(moments[1], pa.timestamp("us")),
        }
    )


def feeds(**parameters: Any) -> dict[str, fg.Feed]:
    return {name: feed(make(protect="lifetime", **parameters)) for name, make in MAKERS.items()}


@given(rows=ROWS, data=st.data())
@settings(max_examples=60, deadline=None)
def test_order_batches_and_disk_change_nothing(rows: Rows, data: st.DataObject) -> None:
    counts, other_counts = fg.RowCounts(), fg.RowCounts()
    expected = play(as_table(rows), feeds(), delete_time="x", counts=counts)
    shuffled = as_table(data.draw(st.permutations(rows)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    edges = zip([0, *cuts], [*cuts, len(rows)], strict=True)
    batches = [in_one_batch(shuffled[low:high]) for low, high in edges if high > low]
    memory = data.draw(st.sampled_from([0, 100, 1000, 1 << 30]))
    released = play(batches, feeds(), delete_time="x", counts=other_counts, memory=memory)
    assert {name: values(one) for name, one in released.items()} == {
        name: values(one) for name, one in expected.items()
    }
    assert counts == other_counts


@given(
    rows=ROWS,
    extra=ROWS.map(lambda rows: rows[:1]),
    place=st.integers(0, 30),
    horizon=st.sampled_from([DAYS, 1000]),
)
@settings(max_examples=80, deadline=None)
def test_a_row_more_changes_neither_shape_nor_times_nor_noise(
    rows: Rows, extra: Rows, place: int, horizon: int
) -> None:
    """Differences are those of the exact counts, to the bit: the same noise was drawn.

    Rejects an implementation that skips a release, a tick or a cell where nothing happened: all later noise would
    shift. (The test after this one checks that such a one is seen.)
    """
    neighbour = [*rows[:place], *extra, *rows[place:]]
    one, other = (
        play(as_table(each), {name: feeds(horizon=horizon)[name] for name in ("counter", "vector")}, delete_time="x")
        for each in (rows, neighbour)
    )
    exact_one, exact_other = (exact(each) for each in (rows, neighbour))
    for name in one:
        assert one[name].drop_columns("value").equals(other[name].drop_columns("value"))
        difference = np.array(values(other[name])) - np.array(values(one[name]))
        assert difference.tolist() == (exact_other[name] - exact_one[name]).tolist()
    sketches = [play(as_table(each), feeds()["sketch"], delete_time="x") for each in (rows, neighbour)]
    assert sketches[0].select(["time", "k"]).equals(sketches[1].select(["time", "k"]))


def exact(rows: Rows) -> dict[str, Any]:
    """The exact counts, by the rules of the documentation."""
    cells = np.zeros((DAYS, len(KEYS)))
    every = np.zeros(DAYS)
    for time, key, weight, gone in rows:
        if time is None or not 0 <= time < 30 * DAYS or weight is None or abs(weight) > 5:
            continue
        if gone is not None and gone < time:
            continue
        life = slice(time // 30, DAYS if gone is None else max(gone // 30, 0))
        every[life] += weight
        if key in KEYS:
            cells[life, KEYS.index(key)] += weight
    return {"counter": every, "vector": cells.ravel()}


def test_noise_that_depends_on_the_data_would_be_seen() -> None:
    """The check above, against releases that are made only where something happened."""
    rows: Rows = [(0, "a", 1, None), (200, "b", 1, None)]
    noise = []
    for each in (rows, [*rows, (100, "c", 1, None)]):
        structure = counter(protect="lifetime")
        found = []
        days = {(time or 0) // 30 + 1 for time, *_ in each}
        for step in range(1, DAYS + 1):
            if step in days:
                structure.advance(to=step)
                structure.update(1)
                structure.release()
        structure.advance(to=DAYS)
        found.append(structure.release() - len(each))
        noise.append(found)
    assert noise[0] != noise[1]


WEIRD: dict[str, list[tuple[Any, Any, Any]]] = {
    "no time": [(None, "a", 1)],
    "far future": [(dt.datetime(9999, 12, 31), "a", 1)],
    "far past": [(dt.datetime(1, 1, 1), "a", 1)],
    "unlisted key": [(at(1), "nobody", 1)],
    "no key": [(at(1), None, 1)],
    "empty key": [(at(1), "", 1)],
    "no weight": [(at(1), "a", None)],
    "huge weight": [(at(1), "a", 2**63 - 1)],
    "least weight": [(at(1), "a", -(2**63))],
}


@pytest.mark.parametrize("name", WEIRD)
@STRUCTURES
@pytest.mark.parametrize("others", [0, 100])
def test_a_weird_row_changes_nothing_but_its_own_count(make: Callable[..., Any], name: str, others: int) -> None:
    schema = pa.schema([("t", pa.timestamp("us")), ("k", pa.string()), ("w", pa.int64())])
    usual = table(others).select(["t", "k", "w"]).cast(schema)
    row = pa.table(
        {field.name: pa.array([part], field.type) for field, part in zip(schema, WEIRD[name][0], strict=True)}
    )
    expected = play(usual, feed(make()))
    for frame in (pa.concat_tables([usual, row]), pa.concat_tables([row, usual])):
        released = play(frame, feed(make()))
        if make is counter and name.endswith("key"):
            assert (np.array(values(released)) - np.array(values(expected))).tolist() == [0] + [1] * (DAYS - 1)
        elif make is not sketch or not name.endswith("key"):  # a sketch holds all keys
            assert released.equals(expected)
        assert released.drop_columns(["value", "std"]).equals(expected.drop_columns(["value", "std"]))


#: Texts that Arrow reads as a time at once, and some that it does not.
TEXTS = st.one_of(
    st.from_regex(
        r"2026-01-0[0-9]([ T][0-2][0-9](:?[0-6][0-9](:?[0-6][0-9](\.[0-9]{0,10})?)?)?)?(Z|[+-]0[0-9]:?[03]0)?",
        fullmatch=True,
    ),
    st.sampled_from(
        ["2026-01-02", " 2026-01-02 ", "2026-02-30", "", "now", "2026-01-02T24:00", "20260102", "0000-01-01"]
    ),
)


@given(text=TEXTS)
@settings(max_examples=60, deadline=None)
def test_whether_a_time_can_be_read_does_not_depend_on_other_rows(text: str) -> None:
    for ticks, fine in (
        (TICKS, "2026-01-01"),
        (fg.Ticks("2026-01-01", "2026-01-11", "1d", tz="UTC"), "2026-01-01T00:00Z"),
    ):

        def days(texts: list[str], ticks: fg.Ticks = ticks) -> list[int]:
            try:
                return whole({"t": texts}, quiet(counter), ticks=ticks)
            except ValueError as error:
                assert "time zone" in str(error)
                return []

        alone = days([text])
        beside = days([text, fine, "no time"])
        assert beside == [count + 1 for count in alone]


@given(
    text=st.one_of(
        st.from_regex(r"\s?[+-]?[0-9]{0,3}\.?[0-9]{0,3}([eE][+-]?[0-9]{0,3})?\s?", fullmatch=True),
        st.text(max_size=4),
        st.sampled_from(["inf", "-Infinity", "nan", "0x1", "1_0", "1e999", "9" * 400]),
    )
)
@settings(max_examples=60, deadline=None)
def test_whether_a_weight_can_be_read_does_not_depend_on_other_rows(text: str) -> None:
    def sums(texts: list[str]) -> list[float]:
        frame = {"t": [START] * len(texts), "k": ["a"] * len(texts), "w": texts}
        return values(play(frame, feed(vector(on_excess="clip"))))

    noise = sums([])
    assert sums([text, "nothing", "2"]) == [one + 2 * (place % 3 == 0) for place, one in enumerate(sums([text]))]
    assert noise == sums(["nothing"])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_text_that_is_not_utf8_is_a_bad_row(place: int) -> None:
    """Arrow does not check it, nor does Parquet."""
    columns = [pa.array(["2026-01-01"] * 2), pa.array(["a"] * 2), pa.array(["1"] * 2)]
    whole_text = columns[place][0].as_py().encode()
    offsets = pa.py_buffer(np.array([0, len(whole_text), len(whole_text) + 1], np.int32))
    columns[place] = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(whole_text + b"\xff")])
    counts = fg.RowCounts()
    assert whole(pa.table(columns, ["t", "k", "w"]), feed(quiet(vector)), counts=counts)[:3] == [1, 0, 0]
    assert list(counts.dropped.values()) == [1]


def test_zones_are_those_of_each_row() -> None:
    aware = fg.Ticks("2026-01-01", "2026-01-11", "1d", tz="America/New_York")
    assert whole(
        {"t": ["2026-01-01T05:00Z", "2026-01-02T00:00:00-05:00", "2026-01-02T04:59+00"]}, quiet(counter), ticks=aware
    )[:2] == [2, 3]
    # The clock says which kind is right; a row of the other one is left out alone.
    mixed = ["2026-01-01T05:00Z", "2026-01-01", dt.date(2026, 1, 1), dt.datetime(2026, 1, 1, 5, tzinfo=dt.timezone.utc)]
    for ticks, reason in (
        (aware, "no time zone in 't'"),
        (fg.Ticks("2026-01-01", "2026-01-11", "1d"), "a time zone in 't'"),
    ):
        counts = fg.RowCounts()
        assert whole({"t": mixed}, quiet(counter), ticks=ticks, counts=counts)[0] == 2
        assert counts.dropped == {reason: 2}


@pytest.mark.parametrize("kind", [pa.timestamp("us"), pa.date32(), pa.timestamp("ns", "UTC")])
def test_columns_with_and_without_zones_are_not_mixed(kind: Any) -> None:
    zone = "UTC" if getattr(kind, "tz", None) is None else None
    with pytest.raises(ValueError, match="time zone"):
        play({"t": pa.array([], kind)}, counter(), ticks=fg.Ticks("2026-01-01", "2026-01-11", "1d", tz=zone))


@pytest.mark.parametrize("form", ["table", "reader", "pandas", "Polars", "batch"])
def test_types_are_checked_also_where_there_are_no_rows(form: str) -> None:
    """Else a single row would decide whether there is an error."""
    for rows in (0, 1):
        frame = pa.table({"t": pa.array([at(0)] * rows, pa.timestamp("us")), "w": pa.array([True] * rows, pa.bool_())})
        shaped = {
            "table": frame,
            "reader": frame.to_reader(),
            "pandas": frame.to_pandas(),
            "Polars": pl.DataFrame(frame),
            "batch": pa.RecordBatch.from_pylist(frame.to_pylist(), schema=frame.schema),
        }[form]
        with pytest.raises(TypeError, match="weights must be numbers"):
            play(shaped, counter(), weight="w")
        with pytest.raises(ValueError, match="the column 'zzz' is missing"):
            play(frame.to_reader(), counter(), weight="zzz")


@pytest.mark.parametrize("form", ["dict", "table", "pandas", "Polars", "batches", "dicts"])
def test_where_a_column_is_missing_those_that_are_there_are_listed(form: str) -> None:
    frame = {"t": [at(0)], "n": [1], "k": ["a"]}
    shaped = {
        "dict": frame,
        "table": pa.table(frame),
        "pandas": pd.DataFrame(frame),
        "Polars": pl.DataFrame(frame),
        "batches": pa.table(frame).to_batches(),
        "dicts": iter([frame]),
    }[form]
    with pytest.raises(ValueError, match=r"^the column 'w' is missing; the columns are 't', 'n', 'k'$"):
        play(shaped, counter(), weight="w")
    with pytest.raises(ValueError, match=r"^the column 't' is missing; there are no columns$"):
        play({}, counter())


def test_a_column_that_stands_twice_in_a_data_frame_is_refused() -> None:
    frame = pd.DataFrame([[at(0), 1, 2]], columns=["t", "w", "w"])
    with pytest.raises(ValueError, match="the column 'w' stands more than once; the columns are 't', 'w', 'w'"):
        play(frame, counter(), weight="w")
    assert play(frame, counter()).num_rows == DAYS, "one that is not read may"


def not_computed(module: str, *calls: str) -> Any:
    """A table as those of Spark and Dask look from outside, which a test should not need."""
    own: dict[str, Any] = {call: lambda self: 1 / 0 for call in calls}
    more = {"columns": property(lambda self: ["t"]), "__iter__": lambda self: iter([1]), "__module__": module}
    return type("DataFrame", (), {**more, **own})()


#: The module of its class, its methods, and the one to call.
NOT_COMPUTED = {
    "Spark 3": ("pyspark.sql.dataframe", ["collect", "toPandas"], ".toPandas()"),
    "Spark 4": ("pyspark.sql.classic.dataframe", ["collect", "toPandas", "toArrow"], ".toArrow()"),
    "Spark Connect": ("pyspark.sql.connect.dataframe", ["collect", "toPandas", "toArrow"], ".toArrow()"),
    "pandas on Spark": ("pyspark.pandas.frame", ["to_pandas"], ".to_pandas()"),
    "Dask": ("dask.dataframe.dask_expr._collection", ["compute", "__array__", "__len__"], ".compute()"),
    "Dask before 2025": ("dask_expr._collection", ["compute", "__array__", "__len__"], ".compute()"),
    "another": ("elsewhere", ["collect", "compute"], ".collect()"),
}


@pytest.mark.parametrize("name", [*NOT_COMPUTED, "Polars"])
def test_what_is_not_computed_yet_is_told_with_the_call_that_does_it(name: str) -> None:
    module, calls, call = NOT_COMPUTED.get(name, ("", [], ".collect()"))
    frame = pl.LazyFrame({"t": [at(0)]}) if name == "Polars" else not_computed(module, *calls)
    kind = type(frame).__name__
    message = re.escape(f"must be a table; a {kind} was given, which {call} makes one of")
    with pytest.raises(TypeError, match=f"^frame {message}"):
        play(frame, counter())
    with pytest.raises(TypeError, match=f"^frame {message}"):
        play([frame], counter())
    for axes in (["t"], ["t", "u"]):
        grid = [fg.axis.Integer(0, 9, name=axis) for axis in axes]
        ranges = fg.RangeCounter(axes=grid, horizon=8, privacy=fg.Zcdp(1))
        with pytest.raises(TypeError, match=f"^points {message}"):
            ranges.update(frame)


def test_times_of_all_types_fall_into_their_steps() -> None:
    for kind, times in [
        (pa.date32(), [dt.date(2026, 1, 2)]),
        (pa.date64(), [dt.date(2026, 1, 2)]),
        (pa.timestamp("s"), [2**62, -(2**62), 1767312000]),
        (pa.timestamp("ms"), [2**62, -(2**62), 1767312000_000]),
        (pa.timestamp("ns"), [2**63 - 1, 1767398399_999_999_999]),
        (pa.string(), ["2026-01-02T23:59:59.999999999", "2026-01-02T23:59:60"]),
        (pa.null(), [None]),
    ]:
        found = whole({"t": pa.array(times, kind)}, quiet(counter))
        assert found == [0] + [0 if kind == pa.null() else 1] * (DAYS - 1), kind


def test_a_format_of_its_own_is_read_and_what_does_not_fit_is_a_bad_row() -> None:
    counts = fg.RowCounts()
    texts = ["02/01/2026", "2026-01-02", None, "xx"]
    for column in (pa.array(texts), pa.array(texts).cast(pa.string_view())):
        assert whole({"t": column}, quiet(counter), time_format="%d/%m/%Y", counts=counts)[:2] == [0, 1]
    assert counts.dropped == {"no time in 't'": 6}
    with pytest.raises(TypeError, match="has times already"):
        play(table(), counter(), time_format="%d/%m/%Y")


def test_every_reason_is_counted_exactly() -> None:
    frame = pa.table(
        {
            "t": [at(0), None, at(-1), at(DAYS), at(0), at(0), at(0), at(0), at(0), at(0), at(9.99)],
            "x": [None, None, None, None, at(-1), None, None, None, None, None, None],
            "k": ["a", "a", "a", "a", "a", None, "z", "a", "a", "a", "b"],
            "w": [1.0, 1, 1, 1, 1, 1, 1, None, 0.5, 6, 5],
        }
    )
    expected = {
        "no time in 't'": 1,
        "'t' not between start and end": 2,
        "'x' before 't'": 1,
        "no key in 'k'": 1,
        "key not in the list": 1,
        "no usable weight in 'w'": 1,
        "'w' beyond the bound": 1,
    }
    for frames in (frame, frame.to_batches(max_chunksize=1)):
        counts = fg.RowCounts()
        found = whole(frames, feed(quiet(vector, protect="lifetime")), delete_time="x", counts=counts)
        assert found[-3:] == [2, 5, 0] or found[-3:] == [1, 5, 0]
        assert (counts.read, counts.dropped) == (frame.num_rows, expected)


BAD: dict[str, tuple[Any, Any, Any]] = {
    name: WEIRD[name][0] for name in ("no time", "far future", "no key", "no weight", "huge weight", "unlisted key")
}


@pytest.mark.parametrize("name", BAD)
def test_with_raise_a_bad_row_is_an_error_and_the_structure_is_still_new(name: str) -> None:
    row = {"t": [at(0), BAD[name][0]], "k": ["a", BAD[name][1]], "w": pa.array([1, BAD[name][2]], pa.int64())}
    structure = vector()
    with pytest.raises(fg.BadRowsError, match=r"there are bad rows: .*, the first is row 2 of the data"):
        play(row, feed(structure), bad_rows="raise")
    assert (structure.now, structure.sealed) == (1, False)
    good = {"t": [at(0)], "k": ["a"], "w": [1]}
    assert play(good, feed(structure), bad_rows="raise").equals(play(good, feed(vector())))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of its own for temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def spilled(folder: Path) -> list[os.stat_result]:
    """The open files of this process that are in a folder, with a name or without."""
    found = []
    for link in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(OSError):  # the one that lists them
            if os.readlink(link).startswith(f"{folder}/"):
                found.append(link.stat())
    return found


@pytest.mark.parametrize("days", [10, 300])
def test_events_on_disk_give_the_same_and_have_no_name(temporary: Path, days: int) -> None:
    ticks = fg.Ticks("2026-01-01", at(days), "1d")
    frame = table(5000)
    seen: list[int] = []

    def batches() -> Iterator[Any]:
        for batch in frame.to_batches(max_chunksize=100):
            yield batch
            assert list(temporary.iterdir()) == []
            seen.append(len(spilled(temporary)))

    expected = {name: feed(make(horizon=days)) for name, make in MAKERS.items()}
    released = {name: feed(make(horizon=days)) for name, make in MAKERS.items()}
    assert play(batches(), released, ticks=ticks, memory=1000) == play(frame, expected, ticks=ticks)
    assert max(seen) == len(MAKERS), "one file a structure"
    assert spilled(temporary) == []


def test_the_file_of_events_is_the_users_alone(temporary: Path) -> None:
    modes: set[int] = set()

    def batches() -> Iterator[Any]:
        yield table()
        modes.update(stat.S_IMODE(found.st_mode) for found in spilled(temporary))

    play(batches(), counter(), memory=0)
    assert modes == {0o600}


@pytest.mark.parametrize("when", ["reading", "bad rows", "columns", "releasing"])
def test_no_file_is_left_when_it_ends_in_an_error(temporary: Path, when: str) -> None:
    def batches() -> Iterator[Any]:
        yield table().select(["t"])
        assert spilled(temporary)
        if when == "reading":
            raise RuntimeError("reading")
        yield {"t": [None]} if when == "bad rows" else {"u": [1]} if when == "columns" else {"t": [at(1)]}

    def stop(done: int, _: int) -> None:
        if when == "releasing" and done == 5:
            raise RuntimeError("releasing")

    with pytest.raises((RuntimeError, ValueError)):
        play(batches(), counter(), memory=0, progress=stop, bad_rows="raise" if when == "bad rows" else "drop")
    assert list(temporary.iterdir()) == [] and spilled(temporary) == []


@pytest.mark.parametrize("when", ["between two batches", "within a write"])
def test_a_killed_process_leaves_no_events_on_disk(tmp_path: Path, when: str) -> None:
    program = f"""
import os, signal
import pyarrow as pa
import fastgame as fg
real, calls = pa.ipc.new_stream, []
def end():
    links = [f"/proc/self/fd/{{name}}" for name in os.listdir("/proc/self/fd")]
    links = [os.readlink(link) for link in links if os.path.lexists(link)]
    print("spilled" if any(link.startswith({str(tmp_path)!r}) for link in links) else "in memory", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
def new_stream(*arguments):
    stream = real(*arguments)
    calls.append(1)
    if len(calls) == 20 and {when!r} == "within a write":
        end()
    return stream
pa.ipc.new_stream = new_stream
ticks = fg.Ticks("2026-01-01", "2026-04-01", "1d")
def batches():
    for day in range(30):
        yield pa.table({{"t": [f"2026-02-{{1 + day % 28:02}}", f"2026-01-{{1 + day:02}}"] * 100}})
    end()
fg.replay(batches(), ticks, fg.ContinualCounter(horizon=90, privacy=fg.Zcdp(1)), time="t", memory=5000)
"""
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "spilled\n"), done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_with_its_place_and_changes_nothing(temporary: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    structure = counter()
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
        with pytest.raises(OSError, match="File too large") as caught:
            play(table(5000).to_batches(max_chunksize=100), structure, memory=1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (caught.value.filename, caught.value.strerror) == (str(temporary), "File too large")
    assert (structure.now, structure.sealed) == (1, False)
    assert spilled(temporary) == []


@pytest.mark.parametrize(("every", "steps"), [(1, range(1, 11)), (3, [3, 6, 9, 10]), (5, [5, 10]), (99, [10])])
@STRUCTURES
def test_releases_are_at_every_so_many_steps_and_at_the_last(make: Callable[..., Any], every: int, steps: Any) -> None:
    told: list[tuple[int, int]] = []
    released = play(table(), feed(quiet(make)), release_every=every, progress=lambda *given: told.append(given))
    cells = 1 if make is counter else 3
    assert released.column("time").to_pylist() == [at(step) for step in steps for _ in range(cells)]
    assert told == [(step, DAYS) for step in steps]
    everything = whole(table(), feed(quiet(make)))
    chosen = [everything[(step - 1) * cells + cell] for step in steps for cell in range(cells)]
    assert np.rint(values(released)).astype(int).tolist() == chosen


@pytest.mark.parametrize("make", [vector, sketch])
def test_top_releases_the_largest_by_their_rank(make: Callable[..., Any]) -> None:
    frame = pa.table({"t": [at(0)] * 6, "k": ["a", "b", "b", "c", "c", "c"]})
    released = play(frame, quiet(make), key="k", keys=KEYS, top=2)
    assert released.num_rows == 2 * DAYS
    assert released.slice(0, 2).select(["rank", "k"]).to_pydict() == {"rank": [1, 2], "k": ["c", "b"]}
    everything = play(frame, quiet(make), key="k", keys=KEYS)
    assert sorted(values(everything)[:3])[:0:-1] == values(released)[:2]


def test_ticks_may_be_fewer_than_the_steps_of_the_structure() -> None:
    released = play(table(), counter(horizon=1000))
    assert released.num_rows == DAYS
    with pytest.raises(ValueError, match="must be at least that of the ticks, 10; one with 9 was given"):
        play(table(), counter(horizon=9))


@pytest.mark.parametrize(
    "empty",
    [
        table(0),
        table(0).to_batches(),
        iter(()),
        [],
        table(0).to_pandas(),
        pl.DataFrame(table(0)),
        {"t": [], "k": [], "w": []},
    ],
    ids=["table", "batches", "generator", "list", "pandas", "Polars", "dict"],
)
def test_without_rows_everything_is_released(empty: Any) -> None:
    released = play(empty, {name: feed(make()) for name, make in MAKERS.items()})
    out_of_range = table().set_column(0, "t", pa.array([at(-5)] * 200))
    assert released == play(out_of_range, {name: feed(make()) for name, make in MAKERS.items()})
    assert [one.num_rows for one in released.values()] == [DAYS, 3 * DAYS, 3 * DAYS]


def test_used_structures_are_refused() -> None:
    read = counter()
    read.release()
    moved = counter()
    moved.advance()
    for used in (read, moved):
        with pytest.raises(ValueError, match="a structure must be new; one at step"):
            play(table(), used)


def test_times_are_given_in_the_zone_of_the_ticks() -> None:
    for zone, shown in [
        ("America/New_York", "America/New_York"),
        ("UTC", "UTC"),
        (dt.timezone.utc, "UTC"),
        (dt.timezone(dt.timedelta(hours=-3.5)), "-03:30"),
        (dt.timezone(dt.timedelta(hours=5.5), "office"), "+05:30"),
    ]:
        ticks = fg.Ticks("2026-01-01", "2026-01-11", "1d", tz=zone)
        released = play({"t": []}, counter(), ticks=ticks)
        assert released.schema.field("time").type == pa.timestamp("us", shown)
        assert released.column("time").to_pylist() == [ticks.time(step) for step in range(1, DAYS + 1)]


def test_the_error_that_is_stated_is_that_of_the_structure() -> None:
    assert set(play(table(), counter()).column("std").to_pylist()) == {counter().noise_std()}


@pytest.mark.parametrize(
    "parameters", [{"mechanism": "blt"}, {"mechanism": "blt", "buffers": 3}, {"privacy": fg.PureDp(1)}]
)
@pytest.mark.parametrize("every", [1, 3])
def test_the_error_of_each_step_is_stated_also_where_it_grows(parameters: dict[str, Any], every: int) -> None:
    structure, again = counter(**parameters), counter(**parameters)
    released = play(table(), structure, release_every=every)
    steps = [TICKS.step([time - dt.timedelta(seconds=1)])[0] for time in released.column("time").to_pylist()]
    assert len(steps) > 3 and steps[-1] == DAYS
    expected = []
    for step in steps:
        again.advance(to=int(step))
        expected.append(again.noise_std())
    assert released.column("std").to_pylist() == expected == sorted(expected)
    assert (len(set(expected)) == len(steps)) == ("mechanism" in parameters)


COUNTER = counter()
MISUSE: dict[str, tuple[type[Exception], str, dict[str, Any]]] = {
    "no ticks": (TypeError, "ticks must be fastgame.Ticks; int was given", {"ticks": 5}),
    "a structure of another kind": (TypeError, "structures must be .* str was given", {"given": "counter"}),
    "none": (ValueError, "at least one structure", {"given": {}}),
    "twice": (ValueError, "stands twice", {"given": dict.fromkeys("ab", COUNTER)}),
    "bad_rows": (ValueError, 'bad_rows must be "drop" or "raise"; \'keep\' was given', {"bad_rows": "keep"}),
    "release_every": (ValueError, "release_every must be at least 1; 0 was given", {"release_every": 0}),
    "no column": (ValueError, "the column 'zzz' is missing; the columns are 't', 'k', 'w', ", {"time": "zzz"}),
    "weights of text": (TypeError, "weights must be numbers; the column 't'", {"weight": "t"}),
    "times of numbers": (TypeError, "must hold timestamps, dates or ISO text; it is of type int64", {"time": "w"}),
    "a counter with keys": (TypeError, "takes no key or keys", {"key": "k", "keys": KEYS}),
    "no key": (TypeError, "key must name the column", {"given": vector()}),
    "no keys": (TypeError, "the public list of keys", {"given": vector(), "key": "k"}),
    "keys of another number": (
        ValueError,
        "vector's 3 cells; 2 keys",
        {"given": vector(), "key": "k", "keys": ["a", "b"]},
    ),
    "keys twice": (ValueError, "one stands twice", {"given": vector(), "key": "k", "keys": ["a", "b", "a"]}),
    "null keys": (ValueError, "there is a null", {"given": vector(), "key": "k", "keys": ["a", "b", None]}),
    "one text": (TypeError, "keys must be a list or column", {"given": vector(), "key": "k", "keys": "abc"}),
    "mixed keys": (TypeError, "keys of one type", {"given": vector(), "key": "k", "keys": ["a", 1, 2]}),
    "keys of reals": (TypeError, "integers, text or bytes", {"given": vector(), "key": "k", "keys": [1.5, 2, 3]}),
    "keys of another kind": (TypeError, "cast one of them", {"given": vector(), "key": "k", "keys": [1, 2, 3]}),
    "uneven parts": (ValueError, "all of one length", {"given": vector(), "key": ("k", "w"), "keys": (KEYS, [1])}),
    "top of all": (ValueError, "top must be from 1", {"given": sketch(), "key": "k", "keys": KEYS, "top": 4}),
    "the same key twice": (TypeError, "different names", {"given": vector(), "key": ("k", "k"), "keys": (KEYS, KEYS)}),
    "text for a table": (TypeError, "frame must be a table .* str was given", {"frame": "rows.csv"}),
    "numbers for tables": (TypeError, "frame must be a table .* int was given", {"frame": [1, 2]}),
    "uneven columns": (TypeError, "do not make a table", {"frame": {"t": [at(0)] * 2, "w": [1]}, "weight": "w"}),
    "a column of anything": (
        TypeError,
        "a column that Arrow cannot hold",
        {"frame": pd.DataFrame({"t": pd.Series([1 + 2j])})},
    ),
}
for reserved in ("time", "rank", "value", "std"):
    MISUSE[f"a key named {reserved}"] = (
        ValueError,
        f"must not be named '{reserved}'",
        {"given": vector(), "key": reserved, "keys": KEYS},
    )


@pytest.mark.parametrize("name", MISUSE)
def test_misuse_is_refused_in_words(name: str) -> None:
    kind, message, parameters = MISUSE[name]
    parameters = {"frame": table(), "given": counter(), **parameters}
    with pytest.raises(kind, match=message):
        play(**parameters)


def test_a_column_that_stands_twice_is_refused() -> None:
    twice = pa.Table.from_arrays([pa.array([at(0)])] * 2, names=["t", "t"])
    with pytest.raises(ValueError, match="'t' stands more than once"):
        play(twice, counter())


def test_integers_that_pandas_made_floats_of_are_the_same_keys() -> None:
    # One missing key does that to a column; whether a table is taken must not depend on it.
    import pandas as pd  # noqa: PLC0415

    for make in (vector, sketch):
        counts = fg.RowCounts()
        times = [at(0.5)] * 5
        given = pd.DataFrame({"t": times, "k": [1.0, 2.0, 2.0, float("nan"), 1.5]})
        released = fg.replay(given, TICKS, make(privacy=fg.Zcdp(1e9)), time="t", key="k", keys=[1, 2, 3], counts=counts)
        assert np.rint(released["value"].to_numpy()[:3]).tolist() == [1, 2, 0]
        assert counts.dropped == {"no key in 'k'": 2}


def test_a_format_of_its_own_reads_no_day_that_is_none_and_knows_zones() -> None:
    texts = ["01/07/2025 23:30:00.5 -0500", "30/02/2025 00:00:00.0 +0000", "31/06/2025 00:00:00.0 +0000", "x", None]
    ticks = fg.Ticks("2025-01-01", "2026-01-01", "1d", tz="UTC")
    counts = fg.RowCounts()
    released = fg.replay(
        {"t": texts},
        ticks,
        fg.ContinualCounter(horizon=365, privacy=fg.Zcdp(1e9)),
        time="t",
        time_format="%d/%m/%Y %H:%M:%S.%f %z",
        counts=counts,
    )
    before = np.rint(released["value"].to_numpy()).astype(int)
    # 23:30 in New York is the next day in UTC: counted from the end of the second of July on.
    assert before[181] == 0 and before[182] == 1 and before[-1] == 1
    assert counts.dropped == {"no time in 't'": 4}


def test_lists_may_hold_missing_values_of_pandas_and_integers_of_64_bits() -> None:
    import pandas as pd  # noqa: PLC0415

    times = [pd.Timestamp(at(0.5)), pd.NaT, None]
    given = {"t": times, "k": pa.array([2**64 - 1, 5, 5], pa.uint64())}
    released = play(given, feed(vector(2, privacy=fg.Zcdp(1e9)), None, key="k", keys=[2**64 - 1, 5]))
    assert np.rint(released["value"].to_numpy()[-2:]).tolist() == [1, 0]
