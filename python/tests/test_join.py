"""Joins from Python: sizes, error bars, sides, plans, the replay of two tables; and what is refused."""

from __future__ import annotations

import collections
import copy
import datetime as dt
import gc
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from helpers import DOCUMENTED, Floats, raised_by, tiny_noise, whole
from hypothesis import given, settings
from hypothesis import strategies as st
from test_misuse import in_a_child, name_of_error
from test_replay import DAYS, FRAMES, START, TICKS, at, table
from test_threads import run_together

import fastgame as fg

PRIVACY = fg.Zcdp(rho=0.5)
# The variance of the median of n standard normals.
MEDIAN_VARIANCE = {1: 1.0, 3: 0.4487, 5: 0.2868, 7: 0.2104, 9: 0.1661}


def exact(horizon: int = 8, max_weight: int = 5, width: int = 2**14, **parameters: Any) -> fg.JoinSize:
    """A join whose noise does not show next to one pair of rows, and in which a dozen keys do not collide."""
    shape: dict[str, Any] = {"privacy": fg.Zcdp(8e9 * max_weight**2), "hash_seed": 1, **parameters}
    return fg.JoinSize(horizon=horizon, max_weight=max_weight, width=width, **shape)


def noisy(**parameters: Any) -> fg.JoinSize:
    """A join with ordinary noise, the same each time."""
    shape: dict[str, Any] = {"horizon": 8, "privacy": PRIVACY, "width": 64, "hash_seed": 1, "insecure_seed": 7}
    return fg.JoinSize(**{**shape, **parameters})


def size(join: fg.JoinSize) -> int:
    """The estimate, as the integer that it stands for."""
    return int(whole(join.estimate()))


def inner(left: collections.Counter[Any], right: collections.Counter[Any]) -> int:
    """The size of the join."""
    return sum(weight * right[key] for key, weight in left.items())


# Exact sizes.

Part = st.one_of(st.integers(-(2**63), 2**64 - 1), st.integers(-3, 3), st.text(max_size=5), st.binary(max_size=5))
Keys = st.lists(st.one_of(Part, st.tuples(Part, Part), st.tuples(Part, Part, Part)), min_size=1, max_size=6)
Actions = st.lists(
    st.tuples(st.booleans(), st.integers(0, 5), st.integers(-5, 5), st.sampled_from(["one", "column", "raw", "step"])),
    max_size=30,
)


def column_of(key: Any, times: int) -> Any:
    """A column in which a key stands so many times."""
    return tuple([part] * times for part in key) if isinstance(key, tuple) else [key] * times


def name_of(key: Any) -> Any:
    """What distinguishes keys: in Python 1 == True, but no bytes are text."""
    return tuple(map(name_of, key)) if isinstance(key, tuple) else (type(key).__name__, key)


@settings(max_examples=60, deadline=None)
@given(keys=Keys, actions=Actions)
def test_a_join_is_what_counters_say(keys: list[Any], actions: list[tuple[bool, int, int, str]]) -> None:
    # At most 6 keys in rows of 2^14 buckets: that some pair shares most of 5 rows has probability below 10^-8. Totals
    # are below 450, and the noise of a cell is 0.00004: half a pair of rows is 20 standard deviations of an estimate.
    join = exact(horizon=32)
    expected: tuple[collections.Counter[Any], ...] = (collections.Counter(), collections.Counter())
    for is_left, number, weight, how in actions:
        key, side, counts = keys[number % len(keys)], join.left if is_left else join.right, expected[not is_left]
        if how == "step":
            assert size(join) == inner(*expected)
            join.advance()
        elif how == "one":
            side.update(key, weight)
            counts[name_of(key)] += weight
        elif how == "column":
            side.update(column_of(key, 3), [weight, 1, -weight])
            counts[name_of(key)] += 1
        else:
            raw = join.raw()
            raw.update(key, weight)
            raw.update(column_of(key, 2), weight)
            side.merge(raw)
            counts[name_of(key)] += 3 * weight
    assert size(join) == inner(*expected)


COLUMNS: dict[str, Callable[[Any], Any]] = {
    "integers": lambda numbers: numbers,
    "unsigned": lambda numbers: numbers.astype(np.uint64) + np.uint64(2**63),
    "list": lambda numbers: numbers.tolist(),
    "text": lambda numbers: [f"key {number}" for number in numbers],
    "bytes": lambda numbers: [b"%d" % number for number in numbers],
    "Polars": lambda numbers: pl.Series([f"key {number}" for number in numbers]),
    "Arrow": pa.array,
    "pandas": lambda numbers: pd.Series([f"key {number}" for number in numbers], dtype="category"),
    "composite": lambda numbers: (numbers % 3, [str(number // 3) for number in numbers]),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_all_kinds_are_joined(name: str) -> None:
    generator = np.random.default_rng(1)
    join = exact()
    totals = np.zeros((2, 10), dtype=np.int64)
    for _ in range(3):
        for place, side in enumerate([join.left, join.right]):
            numbers, weights = generator.integers(0, 10, 500), generator.integers(-5, 6, 500)
            side.update(COLUMNS[name](numbers), weights)
            np.add.at(totals[place], numbers, weights)
        assert size(join) == totals[0] @ totals[1]
        join.advance()


def test_keys_of_different_kinds_never_match() -> None:
    kinds: list[Any] = [1, "1", b"1", (1, 1), ("1", "1"), (b"1", 1), (1, 1, 1)]
    for left in kinds:
        for right in kinds:
            join = exact(horizon=1, width=2**10)
            join.left.update(left, 3)
            join.right.update(right, 2)
            assert size(join) == (6 if left is right else 0)


def test_equal_keys_in_other_clothes_match() -> None:
    join = exact()
    join.left.update([1, 2])
    join.right.update(np.array([1, 3], dtype=np.uint8))
    assert size(join) == 1
    join.advance()
    join.left.update(["a", "b"])
    join.right.update(pl.Series(["a", "c"]).cast(pl.Categorical))
    assert size(join) == 2
    join.advance()
    join.left.update(("a", 5))
    join.right.update((pa.array(["a", "b"]), np.array([5, 5])))
    assert size(join) == 3


def test_relations_that_are_empty_or_became_so_have_no_join() -> None:
    join = exact()
    assert size(join) == 0
    join.advance()
    join.left.update(range(10), 5)
    assert size(join) == 0
    join.advance()
    join.right.update([])
    join.right.update(range(10))
    assert size(join) == 50
    join.advance()
    join.left.update(range(10), -5)
    assert size(join) == 0
    join.advance()
    join.left.update(3, -5)
    assert size(join) == -5
    join.advance()
    join.right.update([3, 3], -2)
    assert size(join) == 15


def test_relations_of_one_key_are_multiplied() -> None:
    # One cell a row: the size is exact whatever the width.
    join = exact(width=32)
    join.left.update(["a"] * 1000, 5)
    join.right.update(["a"] * 2000)
    assert size(join) == 10_000_000


def near_overflow(join: fg.JoinSize) -> fg.RawSketch:
    """A raw sketch with a total of 2^62, made by doubling."""
    raw = join.raw()
    raw.update("a", 2**31)
    for _ in range(31):
        raw.merge(raw)
    return raw


def test_products_beyond_64_bits_are_finite_and_overflow_changes_nothing() -> None:
    join = exact(max_weight=2**31, width=32)
    raw = near_overflow(join)
    for side in [join.left, join.right]:
        side.merge(raw)
        with pytest.raises(OverflowError):
            side.merge(raw)
    assert not join.sealed
    assert join.estimate() == pytest.approx(2.0**124, rel=1e-9)
    estimate = join.estimate(error=True)
    assert all(part is not None and math.isfinite(part) for part in estimate)
    for by in ["moments", "rows"]:
        assert all(map(math.isfinite, join.estimate(confidence=0.99, by=by)))  # type: ignore[call-overload]
    join.advance()
    join.right.update("a", -(2**31))
    assert join.estimate() == pytest.approx(2.0**124, rel=1e-8)


# The sides, the clock, and what is refused.

SIDES = pytest.mark.parametrize("which", ["left", "right"])


def state(join: fg.JoinSize) -> list[Any]:
    """All that can be seen of a join; seals the step."""
    return [join.now, join.sealed, join.dropped, repr(join), size(join)]


@SIDES
def test_a_sealed_step_takes_no_updates_on_either_side(which: str) -> None:
    reads: list[Callable[[Any], Any]] = [
        lambda join: join.estimate(),
        lambda join: join.estimate(error=True),
        lambda join: join.estimate(confidence=0.9),
        lambda join: join.estimate(confidence=0.9, by="rows"),
    ]
    for read in reads:
        join = exact(width=64)
        side, raw = getattr(join, which), join.raw()
        side.update("a")
        assert not join.sealed
        read(join)
        assert join.sealed
        for refused in [lambda: side.update("a"), lambda: side.update([]), lambda: side.merge(raw)]:  # noqa: B023
            with pytest.raises(fg.SealedStepError, match="step 1 has been read and is sealed"):
                refused()
        join.advance()
        side.update("a")
        for other in [join.left, join.right]:
            other.update("a")
        assert size(join) == 3


def test_the_clock_is_that_of_all_structures() -> None:
    join = exact(horizon=3, width=64)
    assert (join.now, join.horizon) == (1, 3)
    join.advance(to=3)
    for to in [2, 0, 4, None]:
        with pytest.raises(fg.HorizonError, match="now is 3, the last step of the horizon"):
            join.advance(to=to)
    assert join.now == 3
    once = exact(horizon=1)
    once.left.update(1)
    once.right.update([1, 1])
    assert size(once) == 2
    with pytest.raises(fg.HorizonError):
        once.advance()


def test_a_side_keeps_its_join_alive_and_all_sides_are_one() -> None:
    side = exact().left
    gc.collect()
    side.update("a")
    assert "JoinSize" in repr(side)
    join = exact()
    sides = [join.left for _ in range(3)]
    for each in sides:
        each.update("a")
    join.right.update("a")
    assert size(join) == 3


@SIDES
def test_a_side_is_no_way_to_copy_a_join(which: str) -> None:
    join = noisy()
    side = getattr(join, which)
    for how in [copy.copy, copy.deepcopy, lambda given: copy.deepcopy([given])]:
        assert isinstance(raised_by(lambda how=how: how(side)), TypeError)  # type: ignore[misc]
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        # The oldest protocols write the name of the class alone, which cannot be read again.
        refused = raised_by(lambda protocol=protocol: pickle.loads(pickle.dumps(side, protocol)))  # type: ignore[misc]
        assert isinstance(refused, TypeError)
    kind: Any = fg.JoinSide
    for make in [kind, lambda: kind(join), lambda: object.__new__(kind), lambda: kind.__new__(kind)]:
        assert isinstance(raised_by(make), TypeError)
    with pytest.raises(TypeError, match="not an acceptable base type"):
        type("Sub", (kind,), {})


@SIDES
def test_a_side_cannot_be_used_in_a_forked_child(which: str) -> None:
    join = noisy()
    side, raw = getattr(join, which), join.raw()
    side.update("a")

    def child() -> list[str]:
        uses: list[Callable[[], Any]] = [
            lambda: side.update("a"),
            lambda: side.merge(raw),
            lambda: repr(side),
            join.estimate,
            join.advance,
        ]
        uses += [lambda: getattr(join, which).update("a"), lambda: join.estimate(confidence=0.9)]
        return [name_of_error(use) for use in uses]

    assert set(in_a_child(child)) == {"CopyError"}
    assert in_a_child(lambda: [join.width, join.depth, join.max_weight, join.hash_seed]) == [64, 5, 1, 1]
    untouched = noisy()
    getattr(untouched, which).update("a")
    assert join.estimate() == untouched.estimate()


def test_a_join_and_its_sides_show_no_counters() -> None:
    silent, busy = noisy(max_weight=1000), noisy(max_weight=1000)
    busy.left.update(["a"] * 777, 1000)
    busy.right.update("a", 777)
    for one, other in [(silent, busy), (silent.left, busy.left), (silent.right, busy.right)]:
        assert repr(one) == repr(other) == str(other)
    released = busy.estimate(error=True)
    assert repr(busy) == repr(silent)
    assert busy.memory == (silent.estimate(), silent.memory)[1]
    assert "the left relation of <JoinSize(width=64" in repr(busy.left)
    assert "the right relation of <JoinSize(width=64" in repr(busy.right)
    messages = [repr(busy.left), str(raised_by(lambda: busy.left.update("a", 1001)))]
    messages += [str(raised_by(lambda: busy.right.update("a")))]
    assert not any("777" in message or str(released.value) in message for message in messages)


def test_a_side_cannot_be_read() -> None:
    join: Any = noisy()
    for name in ["estimate", "top", "second_moment", "release", "advance", "now", "cells", "counters", "join", "raw"]:
        assert not hasattr(join.left, name)
    for name in ["release", "update", "merge", "top", "second_moment"]:
        assert not hasattr(join, name)
    for owner, name in [(join, "left"), (join, "right"), (join, "extra"), (join.left, "update"), (join.left, "extra")]:
        with pytest.raises((AttributeError, TypeError)):
            setattr(owner, name, 3)


@SIDES
@pytest.mark.parametrize("invalid", ["raise", "drop"])
def test_bad_elements_change_nothing(which: str, invalid: Any) -> None:
    join, untouched = (exact(max_weight=3, width=64, invalid=invalid) for _ in range(2))
    other = exact(max_weight=3, width=64, hash_seed=2)
    side: Any = getattr(join, which)
    bad: list[tuple[Callable[[], Any], str]] = [
        (lambda: side.update({"a"}), "keys must be integers, str, bytes"),
        (lambda: side.update(["a", "b"], [1]), "one for each of the 2 keys"),
        (lambda: side.update("a", [1]), "one integer for a single key"),
        (lambda: side.update(["a", "b"], np.array([1, 1.5])), "weights must be integers"),
        (lambda: side.update("a", None), "weights must be integers"),
        (lambda: side.update("a", True), "weights must be integers"),
        (lambda: side.update((["a"], [1, 2])), "must have one length"),
        (side.update, "missing"),
        (lambda: side.update("a", 1, 2), "argument"),
        (lambda: side.update("a", weight=2), "argument"),
        (lambda: side.merge(other.raw()), r"hash_seed; it is 1 here and 2 there"),
        (lambda: side.merge(fg.RawSketch(width=128, hash_seed=1, max_weight=3)), "width; it is 64 here and 128"),
        (lambda: side.merge(other), "RawSketch"),
        (lambda: side.merge(join.left), "RawSketch"),
        (lambda: side.merge(None), "RawSketch"),
    ]
    if invalid == "raise":
        bad += [
            (lambda: side.update(["a", None]), "null at position 1"),
            (lambda: side.update(["a", "b"], [1, 1.5]), "weights must be integers"),
            (lambda: side.update(1.5), "keys in floats must be whole numbers"),
            (lambda: side.update(["a", "b"], [3, -4]), "position 1 is over the bound: its weight may be at most 3"),
            (lambda: side.update("a", 2**70), "over the bound"),
        ]
    for call, message in bad:
        error = raised_by(call)
        assert isinstance(error, DOCUMENTED), repr(error)
        with pytest.raises(type(error), match=message):
            call()
    assert state(join) == state(untouched)


def test_weights_over_the_bound_are_clipped_or_dropped_where_that_was_asked_for() -> None:
    for which in ["left", "right"]:
        clipping, dropping = exact(max_weight=3, on_excess="clip"), exact(max_weight=3, invalid="drop")
        for join in [clipping, dropping]:
            getattr(join, which).update(["a", "b", "c", "d"], [2, 5, -(2**70), -3])
            getattr(join, which).update("e", -9)
            other = join.right if which == "left" else join.left
            other.update(["a", "b", "c", "d", "e"], [1, 1, 1, 1, -1])
        assert (size(clipping), size(dropping)) == (2 + 3 - 3 - 3 + 3, 2 - 3)
        assert (clipping.dropped, dropping.dropped) == (0, 3)


def test_what_a_raw_sketch_dropped_is_counted_and_a_raw_sketch_fits_both_sides() -> None:
    join = exact(invalid="drop")
    raw = fg.RawSketch(width=join.width, max_weight=5, hash_seed=1, invalid="drop")
    raw.update(["a", "b", "b"], [2, 9, 3])
    join.left.merge(raw)
    join.right.merge(raw)
    assert (size(join), join.dropped) == (4 + 9, 2)
    sketch = fg.CountSketch(width=64, horizon=1, privacy=tiny_noise(), hash_seed=3)
    join = exact(width=64, hash_seed=3, max_weight=1)
    raw = sketch.raw()
    raw.update("a")
    join.left.merge(raw)
    join.right.update("a")
    assert size(join) == 1


def test_a_raw_sketch_has_the_policies_of_its_join() -> None:
    raw = exact(invalid="drop").raw()
    raw.update("a", 6)
    assert raw.dropped == 1
    join = exact(on_excess="clip")
    raw = join.raw()
    raw.update("a", 9)
    join.left.merge(raw)
    join.right.update("a")
    assert size(join) == 5


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"width": 16}, r"width must be a power of two from 32 to 2\^30 .*16 was given"),
        ({"width": 2**31}, "width must be a power of two"),
        ({"depth": 4}, "depth must be an odd number from 1 to 63; 4 was given"),
        ({"depth": 65}, "depth must be an odd number from 1 to 63; 65 was given"),
        ({"max_weight": 0}, "max_weight must be"),
        ({"max_weight": 2**31 + 1}, "max_weight must be"),
        ({"hash_seed": -1}, "hash_seed must be"),
        ({"horizon": 0}, "horizon must be"),
        ({"mechanism": "forest"}, "mechanism must be"),
        ({"mechanism": "blt", "buffers": 11}, "buffers must be"),
        ({"buffers": 3}, "buffers are what the mechanism"),
        ({"privacy": fg.PureDp(1), "mechanism": "blt"}, "a pure budget is spent on Laplace noise"),
        ({"privacy": fg.PureDp(1), "mechanism": "tree-paper"}, "a pure budget is spent on Laplace noise"),
        ({"protect": "person"}, "protect must be"),
    ],
)
def test_parameters_out_of_range_are_refused_to_a_join_and_its_plan(parameters: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"horizon": 8, "privacy": PRIVACY, **parameters}
    for make in [fg.JoinSize, fg.JoinSize.plan]:
        with pytest.raises(ValueError, match=message):
            make(**given)


def test_unknown_missing_and_positional_arguments_are_refused() -> None:
    make: Any
    for make in [fg.JoinSize, fg.JoinSize.plan]:
        with pytest.raises(TypeError, match=r'no argument "size"; the keyword arguments are width, depth, max_weight'):
            make(horizon=8, privacy=PRIVACY, size=3)
        with pytest.raises(TypeError, match='missing the keyword argument "privacy"'):
            make(horizon=8)
        with pytest.raises(TypeError, match="positional"):
            make(8, PRIVACY)


def test_threads_on_both_sides_lose_nothing() -> None:
    join = exact(horizon=2**40, max_weight=1, width=2**10)
    sides = [join.left, join.right]

    def work(number: int) -> Any:
        generator = np.random.default_rng(number)
        added = np.zeros(8, dtype=np.int64)
        for _ in range(40):
            # Below and above the size from which the interpreter lock is released.
            keys = generator.integers(0, 8, size=int(generator.choice([1, 10, 5000])))
            raw = join.raw()
            raw.update(keys)
            try:
                sides[number % 2].update(keys)
                added += np.bincount(keys, minlength=8)
                sides[number % 2].merge(raw)
                added += np.bincount(keys, minlength=8)
            except fg.SealedStepError:
                join.advance()
            if generator.random() < 0.2:
                join.estimate(error=True)
            assert 1 <= join.now <= join.horizon
        return added

    added = run_together(work)
    join.advance()
    left, right = (np.sum(added[place::2], axis=0) for place in range(2))
    # Noise of a cell is below 0.001. A row that is lost is about a third of a norm.
    norms = float(np.linalg.norm(left) + np.linalg.norm(right))
    assert join.estimate() == pytest.approx(float(left @ right), abs=0.01 * norms)


def test_threads_that_read_one_step_together_get_one_answer() -> None:
    join = noisy(insecure_seed=None, width=2**12)
    for _ in range(5):
        answers = run_together(lambda number: join.estimate(error=True).value if number % 2 else join.estimate())
        assert len(set(answers)) == 1
        join.advance()


# Error bars.


def test_an_answer_at_a_sealed_step_is_given_again() -> None:
    join = noisy(insecure_seed=None)
    join.left.update(range(50))
    join.right.update(range(50))
    value = join.estimate()
    assert join.estimate() == value == join.estimate(error=True).value
    assert join.estimate(error=True) == join.estimate(error=True)
    by: Literal["moments", "rows"]
    for by in ("moments", "rows"):
        assert join.estimate(confidence=0.5, by=by).value == value
        assert join.estimate(confidence=0.5, by=by) == join.estimate(confidence=0.5, by=by)
    assert join.estimate() == value
    join.advance()
    assert join.estimate() != value


def test_results_are_floats_with_names() -> None:
    join = noisy()
    assert type(join.estimate()) is float
    estimate, interval = join.estimate(error=True), join.estimate(confidence=0.9)
    assert isinstance(estimate, fg.JoinEstimate)
    assert isinstance(interval, fg.Interval)
    assert estimate == (estimate.value, estimate.std, estimate.std_of_rows)
    assert interval == (interval.value, interval.lower, interval.upper)
    assert {type(part) for part in (*estimate, *interval)} == {float}
    assert join.estimate(confidence=0.9, by="moments") == interval
    assert join.estimate(confidence=None) == join.estimate(error=False) == estimate.value


def test_intervals_are_about_the_value_and_grow_with_the_confidence() -> None:
    join = noisy()
    join.left.update(range(500))
    join.right.update(range(500))
    by: Literal["moments", "rows"]
    for by in ("moments", "rows"):
        widths = []
        for confidence in [0.5, 0.9, 0.95, 0.99, 0.999999]:
            value, lower, upper = join.estimate(confidence=confidence, by=by)
            assert value - lower == pytest.approx(upper - value)
            widths.append(upper - lower)
        assert widths == sorted(widths)
        assert widths[0] < widths[-1]
    _, std, of_rows = join.estimate(error=True)
    assert of_rows is not None
    # Student's quantile with four degrees of freedom, and the table of docs/joins.md.
    value, lower, upper = join.estimate(confidence=0.95, by="rows")
    assert (upper - lower) / 2 == pytest.approx(2.776445 * of_rows, rel=1e-6)
    value, lower, upper = join.estimate(confidence=0.95)
    assert (upper - lower) / 2 == pytest.approx(std / math.sqrt(0.2868 * 0.189), rel=0.01)


def test_the_error_bar_is_the_formula_for_relations_that_are_known() -> None:
    join = exact(width=64, max_weight=1)
    join.left.update(range(1000))
    join.right.update(range(500))
    bar = join.estimate(error=True)
    # Second moments 1000 and 500 are released with an error of sqrt(2 / width), 18 %, each; their median over 5 rows is
    # nearer.
    std = math.sqrt(MEDIAN_VARIANCE[5] * (1000 * 500 + min(bar.value**2, 1000 * 500)) / 64)
    assert bar.std == pytest.approx(std, rel=0.3)


def test_a_single_row_has_no_spread() -> None:
    join = noisy(depth=1)
    with pytest.raises(ValueError, match=r'by="rows" needs depth 3 or more, .*; depth is 1'):
        join.estimate(confidence=0.9, by="rows")
    assert not join.sealed
    assert join.estimate(error=True).std_of_rows is None
    assert join.estimate(confidence=0.9).lower < join.estimate() < join.estimate(confidence=0.9).upper


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, math.nan, math.inf, 10**400])
@pytest.mark.parametrize("by", ["moments", "rows"])
def test_a_confidence_out_of_range_is_refused_and_reads_nothing(confidence: float, by: Any) -> None:
    join = noisy()
    with pytest.raises(ValueError, match=r"confidence must be .* given"):
        join.estimate(confidence=confidence, by=by)
    assert not join.sealed


def test_arguments_of_an_estimate_that_do_not_fit_are_refused_and_read_nothing() -> None:
    join: Any = noisy()
    for by in ["Rows", "", "row", None, 1, b"rows"]:
        with pytest.raises(ValueError, match=r'by must be "moments" or "rows"; .* was given'):
            join.estimate(confidence=0.9, by=by)
    for by in ["moments", "rows"]:
        with pytest.raises(TypeError, match="with it"):
            join.estimate(by=by)
        with pytest.raises(TypeError, match="with it"):
            join.estimate(error=True, by=by)
    for confidence in [0.9, 2.0]:
        with pytest.raises(TypeError, match="either error=True or confidence"):
            join.estimate(error=True, confidence=confidence)
    for error in [None, 1, "yes"]:
        with pytest.raises(TypeError, match="error"):
            join.estimate(error=error)
    with pytest.raises(TypeError, match="confidence must be a number; str was given"):
        join.estimate(confidence="0.9")
    with pytest.raises(TypeError, match="positional"):
        join.estimate(True)
    assert not join.sealed


# Statistics.

RUNS = 400


def zipf_counts(exponent: float, keys: int, total: int, shift: int = 0) -> Any:
    """How often each of the keys 0, 1, ... occurs in a stream of Zipf's law."""
    shares = np.roll(np.arange(1, keys + 1) ** -exponent, shift)
    return np.rint(total * shares / shares.sum()).astype(np.int64)


RELATIONS: dict[str, tuple[Any, Any, int]] = {
    # 500 keys on each side, half of them shared.
    "flat": (np.repeat([20, 0], [500, 250]), np.repeat([0, 10], [250, 500]), 2**10),
    "zipf 1.2": (zipf_counts(1.2, 1000, 20_000), zipf_counts(1.2, 1000, 20_000, 1), 2**14),
}


def redrawn(counts: tuple[Any, Any, int], runs: int, **parameters: Any) -> list[fg.JoinSize]:
    """Joins of two relations, with new hash functions and noise in each."""
    left, right, bound = counts
    joins = []
    for seed in range(runs):
        shape: dict[str, Any] = {"horizon": 1, "width": 256, "hash_seed": seed, "insecure_seed": seed, **parameters}
        # Weights up to the bound, and a budget that grows with it: the noise of a cell has standard deviation 20.
        depth = shape.get("depth", 5)
        join = fg.JoinSize(max_weight=bound, privacy=fg.Zcdp(depth * bound**2 / 2 / 20**2), **shape)
        keys = np.arange(len(left))
        join.left.update(keys, left)
        join.right.update(keys, right)
        joins.append(join)
    return joins


@pytest.mark.parametrize("name", RELATIONS)
def test_intervals_cover_as_often_as_documented(name: str) -> None:
    # 400 seeds. "rows" covers some 97 % (docs/joins.md): fewer than 90 % have probability 10^-9. "moments" covers all
    # but all. Rejects intervals of the wrong size: those of 50 % as if they were of 95 %, and a quarter of the widths.
    truth = float(RELATIONS[name][0] @ RELATIONS[name][1])
    joins = redrawn(RELATIONS[name], RUNS)

    def covered(by: Any, confidence: float, part: float = 1.0) -> float:
        bars = np.array([join.estimate(confidence=confidence, by=by) for join in joins])
        return float(np.mean(np.abs(bars[:, 0] - truth) <= part * (bars[:, 2] - bars[:, 1]) / 2))

    assert covered("moments", 0.95) >= 0.95
    assert covered("rows", 0.95) >= 0.90
    assert covered("rows", 0.5) < 0.85
    assert covered("rows", 0.95, 0.25) < 0.80
    if name == "flat":
        assert covered("moments", 0.95, 0.25) < 0.90


@pytest.mark.parametrize("depth", [1, 5])
def test_estimates_are_unbiased_and_spread_as_planned(depth: int) -> None:
    # 2000 seeds: the mean has a standard error of 0.022 standard deviations; the limits are 5 of them (alpha 6e-7), and
    # at depth 5 the 0.05 more by which the median of skewed rows lies below (docs/joins.md). The standard deviation is
    # known to 1.6 %, the limit is 10 % (alpha 1e-9, with 1 % for the negative term and the law of the median). Rejects
    # a bias of 0.2, and a plan without collisions or without keys against noise.
    left, right, _ = RELATIONS["flat"]
    truth = float(left @ right)
    joins = redrawn(RELATIONS["flat"], 2000, depth=depth)
    errors = np.array([join.estimate() for join in joins]) - truth
    plan = fg.JoinSize.plan(horizon=1, width=256, depth=depth, max_weight=2**10, privacy=joins[0].privacy)
    profile = fg.JoinProfile(float(left @ left), float(right @ right), truth)
    std = plan.std(profile=profile)
    assert abs(errors.mean()) < (5 / math.sqrt(2000) + (0.05 if depth > 1 else 0)) * std
    assert errors.std() == pytest.approx(std, rel=0.1)
    terms = plan.join_terms(profile)
    for term in [terms.sketch, terms.cross]:
        assert errors.std() != pytest.approx(math.sqrt(std**2 - term**2), rel=0.1)
    # Error bars agree, too: their squares are unbiased or a little more.
    bars = np.array([join.estimate(error=True)[1:] for join in joins], dtype=float)
    assert math.sqrt(np.mean(bars[:, 0] ** 2)) == pytest.approx(std, rel=0.1)
    if depth > 1:
        assert math.sqrt(np.mean(bars[:, 1] ** 2)) == pytest.approx(std, rel=0.1)


def noise_of(which: str, seed: int, same_side: bool = False) -> float:
    """The noise of one cell of a side, seen through a heavy key on the other: depth 1, so the sign is the key's."""
    join = fg.JoinSize(width=32, depth=1, horizon=1, privacy=PRIVACY, hash_seed=1, insecure_seed=seed)
    other = join.right if (which == "left") != same_side else join.left
    other.update(np.ones(2000, dtype=np.int64))
    return join.estimate() / 2000


def test_both_sides_have_noise_of_their_own_also_under_a_seed() -> None:
    # 2000 seeds. Correlation: z-test at alpha 1e-6 (4.9 / sqrt 2000 = 0.11). Rejects noise that is shared (correlation
    # 1), which the last line makes, and noise that one side lacks (the variances, here within 15 %: 4.9 sd).
    noise = np.array([[noise_of(which, seed) for seed in range(2000)] for which in ("left", "right")])
    assert abs(np.corrcoef(noise)[0, 1]) < 0.11
    variance = fg.JoinSize.plan(width=32, depth=1, horizon=1, privacy=PRIVACY).noise_std ** 2
    assert np.mean(noise**2, axis=1) == pytest.approx([variance] * 2, rel=0.155)
    shared = [noise[0], [noise_of("right", seed, same_side=True) for seed in range(2000)]]
    assert np.corrcoef(shared)[0, 1] > 0.99


def test_the_noise_of_empty_relations_has_no_mean() -> None:
    # A row of two empty relations is a sum of 2^14 products of noises: over 300 seeds its mean has standard error
    # v sqrt(width / 300), and noise that is shared by the sides has mean v width: 2217 of them.
    shape: dict[str, Any] = {"width": 2**14, "depth": 1, "horizon": 8, "privacy": PRIVACY, "hash_seed": 1}
    rows: Floats = np.array([fg.JoinSize(**shape, insecure_seed=seed).estimate() for seed in range(300)])
    v = fg.JoinSize.plan(**shape).noise_std ** 2
    assert abs(rows.mean()) < 5 * v * math.sqrt(2**14 / 300)
    assert np.std(rows) == pytest.approx(fg.JoinSize.plan(**shape).std(), rel=0.2)
    assert fg.JoinSize.plan(**shape).std() == pytest.approx(v * 2**7, rel=0.01)


# Plans.

FLAT = fg.JoinProfile.uniform(left_total=1e4, right_total=5e3, keys=500)


def plan_of(**parameters: Any) -> fg.Plan:
    return fg.JoinSize.plan(**{"horizon": 100, "privacy": PRIVACY, "hash_seed": 1, **parameters})


def test_profiles_are_of_moments_or_of_totals_and_compare() -> None:
    profile = fg.JoinProfile(1e6, 4e6, 2e6)
    assert (profile.left_moment, profile.right_moment, profile.join_size) == (1e6, 4e6, 2e6)
    assert profile == fg.JoinProfile(left_moment=10**6, right_moment=np.float32(4e6), join_size=2e6)
    assert profile != fg.JoinProfile(1e6, 4e6, 1e6)
    assert profile != fg.FrequencyProfile([1])
    assert repr(profile) == "JoinProfile(left_moment=1000000.0, right_moment=4000000.0, join_size=2000000.0)"
    assert eval(repr(profile), vars(fg)) == profile
    # 20 rows a key on the left, 10 on the right.
    assert fg.JoinProfile(500 * 400, 500 * 100, 500 * 200) == FLAT
    for name in ["left_moment", "join_size"]:
        with pytest.raises(AttributeError):
            setattr(profile, name, 1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((1, 1, 2), "join_size must be at most the square root"),
        ((-1, 1, 0), "left_moment must be from 0"),
        ((1, math.nan, 0), "right_moment must be from 0"),
        ((2.0**161, 1, 0), "left_moment must be from 0 to 2\\^160"),
        ((1, 1, math.inf), "join_size must be"),
    ],
)
def test_a_profile_of_no_relations_is_refused(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fg.JoinProfile(*given)


def test_totals_out_of_range_are_refused() -> None:
    good: dict[str, Any] = {"left_total": 1, "right_total": 1, "keys": 1}
    for name, bad in [("left_total", -1), ("right_total", 2.0**81), ("keys", 0), ("left_total", math.nan)]:
        with pytest.raises(ValueError, match=f"{name} must be"):
            fg.JoinProfile.uniform(**{**good, name: bad})
    with pytest.raises(TypeError, match="positional"):
        fg.JoinProfile.uniform(1, 1, 1)  # type: ignore[call-arg]


@pytest.mark.parametrize("depth", [1, 3, 5, 9])
def test_the_terms_of_a_join_are_those_of_the_formula(depth: int) -> None:
    plan = plan_of(width=256, depth=depth)
    v, median = plan.noise_std**2, MEDIAN_VARIANCE[depth]
    left, right, join = FLAT.left_moment, FLAT.right_moment, FLAT.join_size
    terms = plan.join_terms(FLAT)
    assert isinstance(terms, fg.JoinTerms)
    expected = [(left * right + join**2) / 256, v * (left + right), 256 * v**2]
    assert [term**2 for term in terms[:3]] == pytest.approx([median * term for term in expected], rel=2e-3)
    assert terms.balanced_width == pytest.approx(math.sqrt(left * right + join**2) / v, rel=2e-3)
    std = plan.std(profile=FLAT)
    assert std**2 == pytest.approx(sum(term**2 for term in terms[:3]))
    assert terms.relative_std == pytest.approx(std / join)
    assert plan.std() == pytest.approx(plan.join_terms(fg.JoinProfile(0, 0, 0)).noise)
    assert plan.error() < plan.error(profile=FLAT) < plan.error(0.99, profile=FLAT)
    assert plan.error(0.95, 5, profile=FLAT) == pytest.approx(plan.error(0.99, profile=FLAT), rel=1e-9)
    assert plan.error(at=1, profile=FLAT) == plan.error(at=100, profile=FLAT)


def test_a_plan_of_a_join_is_as_the_others() -> None:
    given: dict[str, Any] = {"width": 128, "depth": 3, "max_weight": 2, "contributions": 2, "protect": "lifetime"}
    plan = plan_of(**given)
    built: Any = plan.build()
    assert type(built) is fg.JoinSize
    assert repr(built) == repr(fg.JoinSize(horizon=100, privacy=PRIVACY, hash_seed=1, **given))
    assert (built.width, built.depth, built.max_weight, built.hash_seed) == (128, 3, 2, 1)
    assert plan.noise_std == built.noise_std()
    assert plan.lattice_step == built.lattice_step
    assert plan.memory_at_start <= built.memory <= plan.memory_at_start + 2048
    assert (plan.structure, plan.cells, plan.cells_read()) == ("JoinSize", 2 * 3 * 128, 2 * 3 * 128)
    assert plan == plan_of(**given) == plan.replace() == fg.JoinSize.plan(**plan.parameters)
    assert plan != plan.replace(width=64)
    assert plan.fits_in_vector(3) is None
    with pytest.raises(ValueError, match="width must be"):
        plan.replace(width=16)
    with pytest.raises(TypeError, match='no argument "size"'):
        plan.replace(size=3)
    # Noise of a side is that of a sketch; one row is in one of them.
    sketch = fg.CountSketch.plan(horizon=100, privacy=PRIVACY, hash_seed=1, **given)
    assert plan.noise_std == sketch.noise_std
    join = plan.build()
    for step in range(1, 101):
        join.advance(to=step)
        join.estimate()  # type: ignore[attr-defined]
        assert join.memory <= plan.memory


def test_a_suggested_join_is_nearly_best() -> None:
    given: dict[str, Any] = {"horizon": 100, "privacy": PRIVACY, "hash_seed": 1, "max_weight": 1}
    for confidence in [0.9, 0.95, 0.999]:
        best = fg.JoinSize.suggest(profile=FLAT, confidence=confidence, **given)
        assert (best.structure, best.parameters["depth"] % 2) == ("JoinSize", 1)
        assert {name: best.parameters[name] for name in given} == given
        error = best.error(confidence, profile=FLAT)
        for depth in [3, 5, 7, 9]:
            for bits in range(5, 21):
                other = best.replace(width=2**bits, depth=depth)
                assert error < 1.06 * other.error(confidence, profile=FLAT)
    assert fg.JoinSize.suggest(profile=FLAT, **given) == fg.JoinSize.suggest(profile=FLAT, confidence=0.95, **given)


def test_what_a_suggestion_does_not_take_is_refused() -> None:
    suggest: Any = fg.JoinSize.suggest
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, 'missing the keyword argument "profile"'),
        (
            {"profile": fg.FrequencyProfile([1])},
            "profile must be a fastgame.JoinProfile .*; FrequencyProfile was given",
        ),
        ({"profile": None}, "profile must be a fastgame.JoinProfile .*; NoneType was given"),
        ({"profile": FLAT, "width": 64}, 'no argument "width"'),
        ({"profile": FLAT, "depth": 3}, 'no argument "depth"'),
        ({"profile": FLAT, "cells": 64}, 'no argument "cells"'),
        ({"profile": FLAT, "max_cells": None}, "max_cells must be an integer; NoneType was given"),
    ]
    for changed, message in cases:
        with pytest.raises(TypeError, match=message):
            suggest(horizon=8, privacy=PRIVACY, **changed)
    for confidence in [0, 1, math.nan]:
        with pytest.raises(ValueError, match="confidence must be"):
            suggest(horizon=8, privacy=PRIVACY, profile=FLAT, confidence=confidence)


def test_a_suggestion_keeps_within_its_cells() -> None:
    # A large budget, and relations that are worth any width: without a limit 2^30 buckets a row, 51 GB.
    given: dict[str, Any] = {"horizon": 8, "privacy": fg.Zcdp(1e6), "hash_seed": 1}
    large = fg.JoinProfile(1e13, 1e13, 1e6)
    assert fg.JoinSize.suggest(profile=large, max_cells=2**40, **given).cells > 2**30
    default = fg.JoinSize.suggest(profile=large, **given)
    assert 2**23 < default.cells <= 2**24
    assert default == fg.JoinSize.suggest(profile=large, max_cells=2**24, **given)
    for most in [192, 193, 500, 10_000, 2**20]:
        found = fg.JoinSize.suggest(profile=large, max_cells=most, **given)
        assert found.cells <= most
        # The best of those that are allowed, but for the 5 % of the width.
        for depth in (3, 5, 7):
            bits = (most // (2 * depth)).bit_length() - 1
            if bits >= 5:
                other = found.replace(depth=depth, width=2**bits)
                assert found.error(profile=large) <= 1.06 * other.error(profile=large)
    # A limit that does not bind changes nothing.
    given["privacy"] = fg.Zcdp(0.5)
    assert fg.JoinSize.suggest(profile=FLAT, **given) == fg.JoinSize.suggest(profile=FLAT, max_cells=2**60, **given)
    expected = fg.JoinSize.suggest(profile=FLAT, max_cells=500, **given)
    for kind in (np.int16, np.uint16, np.int32, np.uint64):
        assert fg.JoinSize.suggest(profile=FLAT, max_cells=kind(500), **given) == expected
    wrong: Any
    for wrong in (500.0, "500", True):
        with pytest.raises(TypeError, match=f"max_cells must be an integer; {type(wrong).__name__} was given"):
            fg.JoinSize.suggest(profile=FLAT, max_cells=wrong, **given)
    for most in [0, 3, 191]:
        with pytest.raises(ValueError, match=f"max_cells must be at least 192; {most} was given"):
            fg.JoinSize.suggest(profile=large, max_cells=most, **given)


def test_profiles_go_with_their_own_structures() -> None:
    bad: Any
    plan: Any = plan_of()
    sketch: Any = fg.CountSketch.plan(width=64, horizon=8, privacy=PRIVACY)
    for bad in [fg.FrequencyProfile([1]), None, 5, (1, 1, 1)]:
        with pytest.raises(TypeError, match=r"profile must be a fastgame\.JoinProfile"):
            plan.join_terms(bad)
    for method in ["error", "std"]:
        with pytest.raises(TypeError, match=r"profile must be a fastgame\.JoinProfile"):
            getattr(plan, method)(profile=fg.FrequencyProfile([1]))
        with pytest.raises(TypeError, match=r"profile must be a fastgame\.FrequencyProfile"):
            getattr(sketch, method)(profile=FLAT)
    for method in [plan.summary, plan.what_if]:
        with pytest.raises(TypeError, match=r"profile must be a fastgame\.JoinProfile"):
            method(fg.FrequencyProfile([1]))
    with pytest.raises(TypeError, match="a CountSketch is no join"):
        sketch.join_terms(FLAT)
    with pytest.raises(TypeError, match="a JoinSize has no boxes"):
        plan.box()
    for bad in [0, 1, math.nan]:
        with pytest.raises(ValueError, match="confidence must be"):
            plan.error(bad, profile=FLAT)
    with pytest.raises(ValueError, match="releases must be"):
        plan.error(0.9, 0)


def test_steps_beyond_the_horizon_have_no_error() -> None:
    plan = plan_of()
    for method in [plan.error, plan.std]:
        for at_step in [0, 101]:
            with pytest.raises(ValueError, match="at must be"):
                method(at=at_step)


def test_the_summary_says_what_an_error_is_made_of() -> None:
    plan = plan_of(width=256)
    assert "give a JoinProfile of what is expected" in str(plan)
    assert "cell by cell" not in str(plan)  # it is read whole always
    rows = dict(plan.summary(FLAT))
    assert "a join of 100,000, second moments 2e+05 and 5e+04" in rows["expected relations"]
    assert "of the join: colliding keys" in rows["sd of an estimate"]
    assert "balanced width" in rows
    assert "all, for each estimate" in rows["cells read"]
    assert not any("TOO SMALL" in text or "give a" in text for _, text in plan.summary(FLAT))
    small = fg.JoinProfile.uniform(left_total=50, right_total=50, keys=50)
    assert any("TOO SMALL A BUDGET" in text for _, text in plan.summary(small))
    for row in plan.what_if(FLAT):
        assert row.error == row.plan.error(profile=FLAT)
        assert row.ratio == pytest.approx(row.error / plan.error(profile=FLAT))
    assert "Plan of a JoinSize" in plan._repr_html_()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_plans_of_joins_are_drawn_also_near_the_least_width(tmp_path: Path) -> None:
    for width, profile in [(32, FLAT), (256, None)]:
        plan_of(width=width).plot(tmp_path / "plan.svg", profile=profile)
        assert (tmp_path / "plan.svg").stat().st_size > 10_000
        (tmp_path / "plan.svg").unlink()


# The replay of two tables.

COLUMNS_OF: dict[str, Any] = {"time": "t", "key": "k", "right_time": "s", "right_key": "j"}


def tables(left_rows: int = 200, right_rows: int = 150) -> tuple[pa.Table, pa.Table]:
    """Rows in no order, some before the start and some after the end; columns of different names."""
    left, right = table(left_rows, 3), table(right_rows, 4)
    return left, right.rename_columns(["s", "j", "n", "unused"])


def replayed(left: Any, right: Any, join: fg.JoinSize | None = None, **parameters: Any) -> Any:
    """What replay_join gives."""
    given_join = noisy(horizon=DAYS, max_weight=5) if join is None else join
    return fg.replay_join(left, right, TICKS, given_join, **{**COLUMNS_OF, **parameters})


Row = tuple[dt.datetime, Any, int, dt.datetime | None]


def rows_of(frame: pa.Table, time: str, key: Any, weight: str | None, gone: str | None = None) -> list[Row]:
    names = (key,) if isinstance(key, str) else key
    found = []
    for row in frame.to_pylist():
        parts = tuple(row[name] for name in names)
        part = parts[0] if isinstance(key, str) else parts
        found.append((row[time], part, 1 if weight is None else row[weight], None if gone is None else row[gone]))
    return found


def by_hand(left: list[Row], right: list[Row], join: fg.JoinSize, steps: list[int] | None = None) -> list[Any]:
    """What a loop of advance, update and estimate gives, for one row after the other."""
    found = []
    for step in range(1, DAYS + 1):
        join.advance(to=step)
        for rows, side in ((left, join.left), (right, join.right)):
            for come, key, weight, gone in rows:
                if (come - START).days + 1 == step and come >= START:
                    side.update(key, weight)
                if gone is not None and START <= come < at(DAYS) and max((gone - START).days, 0) + 1 == step:
                    side.update(key, -weight)
        if steps is None or step in steps:
            found.append(tuple(join.estimate(error=True)))
    return found


def released(frame: pa.Table) -> list[Any]:
    return [(row["value"], row["std"], row["std_of_rows"]) for row in frame.to_pylist()]


@pytest.mark.parametrize("weight", [None, "w"])
@pytest.mark.parametrize("right_weight", [None, "n"])
@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_a_replay_is_a_loop_by_hand_bit_for_bit(weight: str | None, right_weight: str | None, memory: int) -> None:
    left, right = tables()
    counts = fg.RowCounts()
    found = replayed(left, right, weight=weight, right_weight=right_weight, memory=memory, counts=counts)
    join = noisy(horizon=DAYS, max_weight=5)
    assert released(found) == by_hand(rows_of(left, "t", "k", weight), rows_of(right, "s", "j", right_weight), join)
    assert found.column("time").to_pylist() == [at(day) for day in range(1, DAYS + 1)]
    assert found.schema.names == ["time", "value", "std", "std_of_rows"]
    assert counts.read == 350
    used = sum(at(0) <= come < at(DAYS) for come in [*left.column("t").to_pylist(), *right.column("s").to_pylist()])
    assert sum(counts.dropped.values()) == 350 - used > 0


def test_columns_of_the_right_table_are_named_as_on_the_left_without_other_names() -> None:
    left, right = tables()
    same = right.rename_columns(["t", "k", "w", "unused"])
    plain: dict[str, Any] = {"right_time": None, "right_key": None}
    assert replayed(left, same, **plain).equals(replayed(left, right))
    # Weights are not: each side says its own.
    assert replayed(left, same, weight="w", **plain).equals(replayed(left, right, weight="w"))
    both = replayed(left, right, weight="w", right_weight="n")
    assert replayed(left, same, weight="w", right_weight="w", **plain).equals(both)


def test_the_order_and_the_batches_of_rows_change_nothing() -> None:
    left, right = tables()
    expected = replayed(left, right, weight="w", right_weight="n")
    generator = np.random.default_rng(5)
    for _ in range(3):
        mixed = [frame.take(generator.permutation(frame.num_rows)) for frame in (left, right)]
        assert replayed(*mixed, weight="w", right_weight="n").equals(expected)
    batches = [frame.to_reader(7) for frame in (left, right)]
    assert replayed(*batches, weight="w", right_weight="n").equals(expected)
    assert replayed(right, left, time="s", key="j", right_time="t", right_key="k", weight="n", right_weight="w")
    assert replayed(pl.DataFrame(left), right.to_pandas(), weight="w", right_weight="n", memory=1000).equals(expected)


@pytest.mark.parametrize("name", FRAMES)
def test_tables_of_every_form_are_taken_on_both_sides(name: str) -> None:
    left, right = table(), table(seed=4)
    given: dict[str, Any] = {"right_time": None, "right_key": None, "weight": "w", "right_weight": "w"}
    expected = replayed(left, right, **given)
    assert replayed(FRAMES[name](left), right, **given).equals(expected)
    assert replayed(left, FRAMES[name](right), **given).equals(expected)


@pytest.mark.parametrize("memory", [0, 1 << 30])
@pytest.mark.parametrize("which", ["left", "right", "both"])
def test_rows_that_go_again_are_taken_out(memory: int, which: str) -> None:
    left, right = tables()
    generator = np.random.default_rng(6)
    lists = []
    for frame, time in ((left, "t"), (right, "s")):
        stays = generator.random(frame.num_rows) < 0.3
        later = [come + dt.timedelta(hours=int(generator.integers(0, 200))) for come in frame.column(time).to_pylist()]
        lists.append([None if stay else gone for stay, gone in zip(stays, later, strict=True)])
    left = left.append_column("gone", pa.array(lists[0], pa.timestamp("us")))
    right = right.append_column("left us", pa.array(lists[1], pa.timestamp("us")))
    gone = "gone" if which in ("left", "both") else None
    right_gone = "left us" if which in ("right", "both") else None

    def join() -> fg.JoinSize:
        return noisy(horizon=DAYS, max_weight=5, protect="lifetime")

    deletions: dict[str, Any] = {"delete_time": gone, "right_delete_time": right_gone, "memory": memory}
    found = replayed(left, right, join(), weight="w", right_weight="n", **deletions)
    hand = by_hand(rows_of(left, "t", "k", "w", gone), rows_of(right, "s", "j", "n", right_gone), join())
    assert released(found) == hand
    with pytest.raises(ValueError, match='delete_time needs structures with protect="lifetime"'):
        replayed(left, right, **deletions)


def test_releases_at_some_steps_count_all_before() -> None:
    left, right = tables()
    found = replayed(left, right, release_every=3)
    assert found.column("time").to_pylist() == [at(day) for day in (3, 6, 9, 10)]
    exactly = replayed(left, right, exact(horizon=DAYS, width=2**10), release_every=3)
    every = replayed(left, right, exact(horizon=DAYS, width=2**10))
    assert whole(exactly.column("value")).tolist() == [whole(every.column("value"))[day - 1] for day in (3, 6, 9, 10)]
    join = noisy(horizon=DAYS, max_weight=5)
    hand = by_hand(rows_of(left, "t", "k", None), rows_of(right, "s", "j", None), join, [3, 6, 9, 10])
    assert released(found) == hand


def test_the_size_of_a_join_over_time_is_that_of_counters() -> None:
    left, right = tables()
    found = replayed(left, right, exact(horizon=DAYS), weight="w", right_weight="n")
    totals: tuple[collections.Counter[Any], ...] = (collections.Counter(), collections.Counter())
    for day, value in enumerate(whole(found.column("value")), 1):
        for counts, rows in zip(totals, (rows_of(left, "t", "k", "w"), rows_of(right, "s", "j", "n")), strict=True):
            for come, key, weight, _ in rows:
                if at(day - 1) <= come < at(day):
                    counts[key] += weight
        assert value == inner(*totals)


def test_composite_keys_are_joined() -> None:
    left = pa.table({"t": [at(0), at(1), at(2)], "k": ["a", "a", "b"], "m": [1, 2, 1]})
    right = pa.table({"s": [at(0), at(3), at(4)], "j": ["a", "b", "b"], "i": pa.array([2, 1, 2], pa.int8())})
    parts: dict[str, Any] = {"key": ("k", "m"), "right_key": ("j", "i")}
    found = replayed(left, right, exact(horizon=DAYS), **parts)
    assert whole(found.column("value")).tolist() == [0, 1, 1, 2, 2, 2, 2, 2, 2, 2]
    hand = by_hand(rows_of(left, "t", ("k", "m"), None), rows_of(right, "s", ("j", "i"), None), noisy(horizon=DAYS))
    assert released(replayed(left, right, noisy(horizon=DAYS), **parts)) == hand
    with pytest.raises(ValueError, match="joined on as many columns"):
        replayed(left, right, key="k", right_key=("j", "i"))
    with pytest.raises(TypeError, match="'i' holds integers and the other keys are text"):
        replayed(left, right, key=("k", "m"), right_key=("i", "j"))


EXTRA = [{"t": at(3.5), "k": "a"}, {"t": at(3.5), "k": "never seen"}, {"t": at(-5), "k": "a"}, {"t": None, "k": None}]


@pytest.mark.parametrize("extra", EXTRA, ids=str)
@pytest.mark.parametrize("which", ["left", "right", "both empty"])
def test_nothing_public_depends_on_the_rows(which: str, extra: dict[str, Any]) -> None:
    empty = pa.table({"t": pa.array([], pa.timestamp("us")), "k": pa.array([], pa.string())})
    left, right = (table(50, 3), table(50, 4)) if which != "both empty" else (empty, empty)
    more = pa.table({"t": pa.array([extra["t"]], pa.timestamp("us")), "k": pa.array([extra["k"]], pa.string())})
    plain: dict[str, Any] = {"right_time": None, "right_key": None}
    with_it = [pa.concat_tables([side.select(["t", "k"]), more]) for side in (left, right)]
    base = replayed(left, right, noisy(horizon=DAYS), **plain)
    changed_left, changed_right = (with_it[0], right) if which != "right" else (left, with_it[1])
    found = replayed(changed_left, changed_right, noisy(horizon=DAYS), **plain)
    assert (found.schema, found.num_rows) == (base.schema, DAYS)
    assert found.column("time").equals(base.column("time"))
    assert found.schema.metadata == base.schema.metadata

    def rows(frame: pa.Table) -> list[Row]:
        return [row for row in rows_of(frame, "t", "k", None) if row[0] is not None]

    # The same seed: noise is the same, and the estimates are those of the counters with one row more.
    assert released(found) == by_hand(rows(changed_left), rows(changed_right), noisy(horizon=DAYS))
    # Nothing before the row is another, and nothing at all if it does not count.
    first = 3 if extra["t"] == at(3.5) else DAYS
    assert released(found)[:first] == released(base)[:first]
    if first < DAYS:
        assert all(one != other for one, other in zip(released(found)[3:], released(base)[3:], strict=True))


def test_empty_tables_give_noise_at_every_step() -> None:
    for kind in (pa.string(), pa.int64(), pa.null()):
        empty = pa.table({"t": pa.array([], pa.timestamp("us")), "k": pa.array([], kind)})
        found = fg.replay_join(empty, empty, TICKS, noisy(horizon=DAYS), time="t", key="k")
        assert released(found) == by_hand([], [], noisy(horizon=DAYS))
    assert fg.replay_join([], [], TICKS, noisy(horizon=DAYS), time="t", key="k").num_rows == DAYS
    left, _ = tables()
    missing = pa.table({"s": pa.array([at(1)]), "j": pa.array([None], pa.null())})
    counts = fg.RowCounts()
    assert released(replayed(left, missing, counts=counts)) == by_hand(
        rows_of(left, "t", "k", None), [], noisy(horizon=DAYS, max_weight=5)
    )
    assert counts.dropped["no key in 'j'"] == 1


KINDS: dict[str, Any] = {"text": pa.array(["1"]), "bytes": pa.array([b"1"]), "integers": pa.array([1])}


@pytest.mark.parametrize("left", KINDS)
@pytest.mark.parametrize("right", KINDS)
def test_keys_of_two_kinds_are_refused(left: str, right: str) -> None:
    frames = pa.table({"t": [at(0)], "k": KINDS[left]}), pa.table({"s": [at(0)], "j": KINDS[right]})
    join = exact(horizon=DAYS)
    if left == right:
        assert whole(replayed(*frames, join).column("value")).tolist() == [1] * DAYS
        return
    with pytest.raises(TypeError, match=f"the column 'j' holds {right} and the other keys are {left}: cast one"):
        replayed(*frames, join)
    # Nothing was released: the join is as new. Also where one side has no rows.
    assert (join.now, join.sealed) == (1, False)
    with pytest.raises(TypeError, match="cast one"):
        replayed(frames[0], frames[1][:0], join)
    with pytest.raises(TypeError, match="cast one"):
        replayed(frames[0][:0], frames[1], join)


INTEGERS = [pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.int64()]


@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_integers_of_all_types_are_the_same_keys_on_both_sides(memory: int) -> None:
    for one in INTEGERS:
        for other in INTEGERS:
            left = pa.table({"t": [at(0)] * 2, "k": pa.array([1, 2], one)})
            right = pa.table({"s": [at(0)] * 2, "j": pa.array([2, 3], other)})
            found = replayed(left, right, exact(horizon=DAYS, width=2**10), memory=memory)
            assert whole(found.column("value")).tolist() == [1] * DAYS
    large = pa.table({"t": [at(0)] * 2, "k": pa.array([2**63 + 5, 1], pa.uint64())})
    for right in ({"s": [at(0)], "j": [-(2**63) + 5]}, {"s": [at(0)], "j": [0]}):
        found = replayed(large, right, exact(horizon=DAYS, width=2**10))
        assert whole(found.column("value")).tolist() == [0] * DAYS


@pytest.mark.parametrize("name", ["value", "std", "rank", "std_of_rows"])
def test_a_key_may_have_any_name_as_it_is_not_released(name: str) -> None:
    left, right = {"t": [at(0)], name: ["a"]}, {"t": [at(0)], name: ["a"]}
    found = fg.replay_join(left, right, TICKS, exact(horizon=DAYS), time="t", key=name)
    assert whole(found.column("value")).tolist() == [1] * DAYS


def test_bad_rows_are_left_out_or_an_error_that_names_their_place_in_their_table() -> None:
    left, right = {"t": [at(0)] * 3, "k": ["a"] * 3}, {"s": [at(0)] * 2, "j": ["a", "a"], "n": [1, 9]}
    counts = fg.RowCounts()
    found = replayed(left, right, exact(horizon=DAYS), right_weight="n", counts=counts)
    assert whole(found.column("value")).tolist() == [3] * DAYS
    assert (counts.read, counts.dropped) == (5, {"'n' beyond the bound": 1})
    join = exact(horizon=DAYS)
    with pytest.raises(fg.BadRowsError, match="'n' beyond the bound, the first is row 2 of the data"):
        replayed(left, right, join, right_weight="n", bad_rows="raise")
    assert (join.now, join.sealed) == (1, False)
    clipped = replayed(left, right, exact(horizon=DAYS, on_excess="clip"), right_weight="n", bad_rows="raise")
    assert whole(clipped.column("value")).tolist() == [18] * DAYS


def test_other_mistakes_are_refused_before_anything_is_released() -> None:
    left, right = tables()
    call: Any = replayed
    used, sealed = noisy(horizon=DAYS), noisy(horizon=DAYS)
    used.advance()
    sealed.estimate()
    stream = left.to_reader(10)
    mistakes: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (
            lambda: call(left, right, fg.CountSketch(width=2, horizon=DAYS, privacy=PRIVACY)),
            TypeError,
            "a JoinSize; Cou",
        ),
        (lambda: call(left, right, used), ValueError, "must be new"),
        (lambda: call(left, right, sealed), ValueError, "must be new"),
        (lambda: call(left, right, noisy(horizon=DAYS - 1)), ValueError, "at least that of the ticks, 10; one with 9"),
        (lambda: call(left, right, key="absent"), ValueError, "the column 'absent' is missing"),
        (lambda: call(left, right, right_key="k"), ValueError, "the column 'k' is missing; the columns are 's'"),
        (lambda: call(left, right, right_time="t"), ValueError, "the column 't' is missing"),
        (lambda: call(left, right, weight="n"), ValueError, "the column 'n' is missing"),
        (lambda: call(left, right, weight="t"), TypeError, "'t'"),
        (lambda: call(5, right), TypeError, "table"),
        (lambda: call(left, "right.csv"), TypeError, "table"),
        (lambda: call(left, right, key=()), TypeError, "key must be the name of a column"),
        (lambda: call(left, right, key=("k", "k")), TypeError, "different names"),
        (lambda: call(left, right, release_every=0), ValueError, "release_every must be at least 1"),
        (lambda: call(left, right, bad_rows="keep"), ValueError, "bad_rows must be"),
        (lambda: call(stream, stream, right_time="t", right_key="k"), ValueError, "one stream, which is read once"),
        (lambda: fg.replay_join(left, right, 5, noisy(), time="t", key="k"), TypeError, "ticks must be"),  # type: ignore[arg-type]
        (lambda: fg.replay(left, TICKS, noisy(horizon=DAYS), time="t", key="k"), TypeError, "use replay_join"),
    ]
    for mistake, kind, message in mistakes:
        with pytest.raises(kind, match=message):
            mistake()


def test_a_table_joined_with_itself_is_read_twice() -> None:
    frame = {"t": [at(0)] * 3, "k": ["a", "a", "b"]}
    found = fg.replay_join(frame, frame, TICKS, exact(horizon=DAYS), time="t", key="k")
    assert whole(found.column("value")).tolist() == [5] * DAYS


def test_progress_is_told_once_a_release_and_the_join_may_be_asked_for_more() -> None:
    left, right = tables()
    join = noisy(horizon=DAYS, max_weight=5)
    told: list[tuple[int, int]] = []
    intervals: list[Any] = []

    def progress(done: int, steps: int) -> None:
        told.append((done, steps))
        intervals.append(join.estimate(confidence=0.9))

    found = replayed(left, right, join, release_every=4, progress=progress)
    assert told == [(4, DAYS), (8, DAYS), (10, DAYS)]
    assert [interval.value for interval in intervals] == found.column("value").to_pylist()


def test_a_single_row_has_no_spread_in_the_table_either() -> None:
    left, right = tables()
    found = replayed(left, right, noisy(horizon=DAYS, depth=1))
    assert found.column("std_of_rows").to_pylist() == [None] * DAYS
    assert found.schema.field("std_of_rows").type == pa.float64()
    assert all(std > 0 for std in found.column("std").to_pylist())
