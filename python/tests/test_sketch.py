"""The sketch from Python: counts, error bars, moments, raw sketches, and what is refused."""

from __future__ import annotations

import collections
import copy
import functools
import math
import multiprocessing
import os
import pickle
import random
import struct
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from helpers import DOCUMENTED, Floats, raised_by, sketch, tiny_noise, whole
from test_misuse import in_a_child, name_of_error
from test_threads import run_together, ticks_during

import fastgame as fg

PRIVACY = fg.Zcdp(rho=0.5)
# The variance of the median of n standard normals.
MEDIAN_VARIANCE = {1: 1.0, 3: 0.4487, 5: 0.2868, 7: 0.2104, 9: 0.1661}


def raw_bytes(raw: fg.RawSketch) -> bytes:
    """All that a raw sketch holds."""
    return raw.__reduce__()[1][0]


def zipf_counts(exponent: float, keys: int = 20_000, total: int = 1_000_000) -> Any:
    """How often each of the keys 0, 1, ... occurs in a stream of Zipf's law."""
    shares = np.arange(1, keys + 1) ** -exponent
    return np.rint(total * shares / shares.sum()).astype(np.int64)


def test_a_year_of_updates_and_deletions_is_what_a_dictionary_says() -> None:
    counts = sketch(horizon=2**40, width=2**12, max_weight=5)
    generator = random.Random(1)
    expected: collections.Counter[Any] = collections.Counter()
    keys: list[Any] = [*range(30), *map(str, range(30)), *((number, "x") for number in range(30))]
    step = 1
    for _ in range(60):
        counts.advance(to=step)
        for _ in range(20):
            key, weight = generator.choice(keys), generator.randint(-5, 5)
            counts.update(key, weight)
            expected[key] += weight
        asked = generator.sample(keys, 10)
        assert whole([counts.estimate(key) for key in asked]).tolist() == [expected[key] for key in asked]
        step += generator.choice([1, 1, 7, 2**20])


def test_every_depth_and_width_counts() -> None:
    for depth in [1, 3, 5, 7, 9, 31, 63]:
        for width in [1, 2, 64, 2**16]:
            counts = sketch(width=width, depth=depth, max_weight=7)
            counts.update("a", 7)
            assert whole(counts.estimate("a")) == 7
            assert (counts.width, counts.depth, counts.max_weight, counts.hash_seed) == (width, depth, 7, 1)


def test_one_weight_stands_for_all_keys_and_one_each_for_each() -> None:
    weights: list[Any] = [
        2,
        np.int8(2),
        np.array(2, dtype=">u2"),
        [2, 2],
        np.array([2, 2]),
        pl.Series([2, 2]),
        pa.array([2, 2]),
    ]
    for weight in weights:
        counts = sketch(max_weight=2)
        counts.update(["a", "b"], weight)
        assert whole(counts.estimate(["a", "b", "c"])).tolist() == [2, 2, 0]
    counts = sketch()
    counts.update("a")
    counts.update(["a", "a"])
    assert whole(counts.estimate("a")) == 3


@pytest.mark.parametrize(
    "weights", [[1], [1, 1, 1], [], [[1, 1]], np.ones((2, 1), dtype=int), np.zeros((0, 2), dtype=int)]
)
def test_weights_of_another_length_are_refused(weights: Any) -> None:
    counts, raw = sketch(), fg.RawSketch(width=16, hash_seed=1)
    empty = raw_bytes(raw)
    for call in [counts.update, raw.update]:
        with pytest.raises(
            ValueError, match=r"weights must be one integer, or one for each of the 2 keys; .* was given"
        ):
            call(["a", "b"], weights)
        with pytest.raises(ValueError, match="weights must be one integer for a single key; an array of shape"):
            call("a", weights)
    assert raw_bytes(raw) == empty
    assert whole(counts.estimate(["a", "b"])).tolist() == [0, 0]


@pytest.mark.parametrize("weight", [4, -4, 2**31, 2**63 - 1, -(2**63), 2**64, 10**400], ids=hex)
def test_a_weight_over_the_bound_is_refused_with_its_place_and_changes_nothing(weight: int) -> None:
    counts, raw = sketch(max_weight=3), fg.RawSketch(width=16, max_weight=3, hash_seed=1)
    counts.update(["a", "b"], [3, -3])
    raw.update(["a", "b"], [3, -3])
    before = raw_bytes(raw)
    for call in [counts.update, raw.update]:
        with pytest.raises(ValueError, match=r"at position 1 is over the bound: its weight may be at most 3"):
            call(["a", "b", "c"], [1, weight, weight])
        with pytest.raises(ValueError, match="over the bound"):
            call(["a", "b", "c"], weight)
        with pytest.raises(ValueError, match="over the bound"):
            call("a", weight)
    assert raw_bytes(raw) == before
    assert whole(counts.estimate(["a", "b", "c"])).tolist() == [3, -3, 0]


@pytest.mark.parametrize("weight", [1.0, True, np.True_, np.float32(1), "1", None, 1j, np.timedelta64(1)], ids=repr)
def test_a_weight_that_is_no_integer_is_refused_with_its_place(weight: Any) -> None:
    counts, raw = sketch(), fg.RawSketch(width=16, hash_seed=1)
    empty = raw_bytes(raw)
    objects = np.array([1, weight], dtype=object)
    for call in [counts.update, raw.update]:
        with pytest.raises(TypeError, match="weights must be integers"):
            call("a", weight)
        with pytest.raises(TypeError, match=r"weights must be integers; .* was given at position 1"):
            call(["a", "b"], objects)
        with pytest.raises(TypeError, match="weights must be integers"):
            call(["a", "b"], [1, weight])
    assert raw_bytes(raw) == empty
    assert whole(counts.estimate(["a", "b"])).tolist() == [0, 0]


def test_weights_over_the_bound_are_clipped_or_dropped_where_that_was_asked_for() -> None:
    clipping, dropping = sketch(max_weight=3, on_excess="clip"), sketch(max_weight=3, invalid="drop")
    for counts in [clipping, dropping]:
        counts.update(["a", "b", "c", "d"], [2, 5, -(2**70), -3])
        counts.update(["e", "f"], 9)
        counts.update("g", -(2**64))
    keys = list("abcdefg")
    assert whole(clipping.estimate(keys)).tolist() == [2, 3, -3, -3, 3, 3, -3]
    assert whole(dropping.estimate(keys)).tolist() == [2, 0, 0, -3, 0, 0, 0]
    assert (clipping.dropped, dropping.dropped) == (0, 5)


def test_a_key_that_is_none_is_an_error_or_dropped_alone() -> None:
    counts = sketch()
    with pytest.raises(TypeError, match="null at position 1"):
        counts.update(["a", None])
    assert (counts.dropped, counts.sealed) == (0, False)
    counts = sketch(invalid="drop")
    counts.update([None, "a"])
    assert (counts.dropped, counts.sealed) == (1, False)
    for read in (lambda: counts.estimate(["a", None]), lambda: counts.top(1, among=["a", None])):
        with pytest.raises(TypeError, match="null at position 1"):
            read()
    assert not counts.sealed
    assert whole(counts.estimate("a")) == 1
    with pytest.raises(fg.SealedStepError):
        counts.update([None, "a"])
    assert counts.dropped == 1


def test_a_read_of_any_kind_seals_the_step() -> None:
    reads: list[Callable[[Any], Any]] = [
        lambda counts: counts.estimate("a"),
        lambda counts: counts.estimate(["a", "b"]),
        lambda counts: counts.estimate("a", error=True),
        lambda counts: counts.estimate("a", confidence=0.9),
        lambda counts: counts.top(1, among=["a", "b"]),
        lambda counts: counts.second_moment(),
        lambda counts: counts.second_moment(error=True),
    ]
    for read in reads:
        counts = sketch()
        raw = counts.raw()
        assert not counts.sealed
        read(counts)
        assert counts.sealed
        with pytest.raises(fg.SealedStepError):
            counts.update("a")
        with pytest.raises(fg.SealedStepError):
            counts.update([])
        with pytest.raises(fg.SealedStepError):
            counts.merge(raw)
        counts.advance()
        counts.update("a")
        assert whole(counts.estimate("a")) == 1


def test_an_answer_at_a_sealed_step_is_given_again() -> None:
    counts = fg.CountSketch(width=64, horizon=100, privacy=PRIVACY)
    counts.update(range(50))
    single = [counts.estimate(key) for key in range(20)]
    assert counts.estimate(range(20)).tolist() == single
    assert counts.estimate(range(1000))[:20].tolist() == single
    assert counts.estimate(range(20), error=True).value.tolist() == single
    assert counts.estimate(range(20), confidence=0.5).value.tolist() == single
    assert dict(counts.top(20, among=range(20))) == dict(enumerate(single))
    assert counts.second_moment() == counts.second_moment()
    counts.advance()
    assert counts.estimate(range(20)).tolist() != single


def test_results_have_the_shape_of_the_keys() -> None:
    counts = sketch()
    alone = counts.estimate("a", error=True)
    assert isinstance(alone, fg.Estimate)
    assert {type(part) for part in alone} == {float}
    interval = counts.estimate("a", confidence=0.9)
    assert isinstance(interval, fg.Interval)
    assert {type(part) for part in interval} == {float}
    column: Any
    for column in [counts.estimate(["a", "b"], error=True), counts.estimate(["a", "b"], confidence=0.9)]:
        assert [(part.shape, part.dtype) for part in column] == [((2,), np.float64)] * len(column)
    assert type(counts.second_moment()) is float
    assert {type(part) for part in counts.second_moment(error=True)} == {float}
    [entry] = counts.top(1, among=["a"])
    assert isinstance(entry, fg.Top)
    assert entry == (entry.key, entry.value) == ("a", counts.estimate("a"))


def test_an_interval_is_about_the_value_and_grows_with_the_confidence() -> None:
    counts = fg.CountSketch(width=256, horizon=8, privacy=PRIVACY, insecure_seed=1, hash_seed=1)
    counts.update(range(1000))
    widths = []
    for confidence in [0.01, 0.5, 0.9, 0.95, 0.99, 0.999999]:
        value, lower, upper = counts.estimate(3, confidence=confidence)
        assert value - lower == pytest.approx(upper - value)
        widths.append(upper - lower)
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]
    # The standard deviation is that of the normal law with the same 95 % interval.
    assert counts.estimate(3, error=True).std == pytest.approx(widths[3] / 2 / 1.959964, rel=1e-6)


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 1.5, math.nan, math.inf, 10**400])
def test_a_confidence_out_of_range_is_refused_and_reads_nothing(confidence: float) -> None:
    counts = sketch()
    with pytest.raises(ValueError, match=r"confidence must be .* given"):
        counts.estimate("a", confidence=confidence)
    assert not counts.sealed


def test_error_and_confidence_are_not_asked_for_together() -> None:
    counts: Any = sketch()
    for confidence in [0.9, 2.0]:
        with pytest.raises(TypeError, match="either error=True or confidence"):
            counts.estimate("a", error=True, confidence=confidence)
    for error in [None, 1, "yes"]:
        with pytest.raises(TypeError, match="error"):
            counts.estimate("a", error=error)
        with pytest.raises(TypeError, match="error"):
            counts.second_moment(error=error)
    assert not counts.sealed
    assert isinstance(counts.estimate("a", error=True, confidence=None), fg.Estimate)


@pytest.mark.parametrize("depth", MEDIAN_VARIANCE)
def test_the_noise_of_estimates_is_that_of_the_median(depth: int) -> None:
    # 2^14 keys asked of empty sketches of 2^18 buckets: 3 % of keys share a cell, so values are nearly independent. The
    # variance has relative sd sqrt(2 / 2^14) = 1.1 % (2 % for the sharing), mean sd / 128; limits 10 % and 5 sd, alpha
    # about 1e-5. Rejects pi / (2 n) at n = 3 (17 %), a mean for a median and a forgotten factor depth (at n >= 3).
    counts = fg.CountSketch(width=2**18, depth=depth, horizon=1, privacy=PRIVACY, insecure_seed=3, hash_seed=4)
    values = counts.estimate(range(2**14)) / counts.noise_std()
    assert counts.noise_std() == pytest.approx(math.sqrt(depth / (2 * 0.5)))
    assert np.var(values) == pytest.approx(MEDIAN_VARIANCE[depth], rel=0.1)
    assert abs(np.mean(values)) < 5 * math.sqrt(MEDIAN_VARIANCE[depth] / 2**14)


@pytest.mark.parametrize("exponent", [0.8, 1.2, 2.0])
@pytest.mark.parametrize("rho", [0.00001, 10.0])
def test_intervals_cover_the_truth_as_often_as_stated(exponent: float, rho: float) -> None:
    # 30 hash seeds, 1000 keys each, light and heavy: 3 * 10^4 pairs, keys of one sketch nearly independent. At 95 % the
    # binomial sd is 0.13 %; limits 93 % and 98 % allow for the quantile's own error. Rejects, at rho 10, error bars of
    # noise alone (they cover below 80 %) and those of the second moment (over 99.9 %); at rho 1e-5 and exponent 0.8,
    # where noise prevails, those of collisions alone (below 70 %).
    totals = zipf_counts(exponent)
    asked = np.concatenate([np.arange(100), np.arange(100, 20_000, 22)[:900]])
    inside = []
    for seed in range(30):
        # The budget that gives weights of up to 2^20 the noise that rho gives to single ones.
        budget = fg.Zcdp(rho * 2.0**40)
        counts = fg.CountSketch(
            width=1024, horizon=8760, privacy=budget, hash_seed=seed, insecure_seed=seed, max_weight=2**20
        )
        counts.update(np.arange(len(totals)), totals)
        truth = totals[asked]
        counts.advance(to=5000)
        _, lower, upper = counts.estimate(asked, confidence=0.95)
        inside.append((lower <= truth) & (truth <= upper))
    assert 0.93 < np.mean(inside) < 0.98


def moments(rho: float, seeds: range, width: int, depth: int, totals: Any) -> tuple[Floats, Floats]:
    """Released second moments with their standard deviations, the hash seed redrawn."""
    released = []
    for seed in seeds:
        counts = fg.CountSketch(
            width=width,
            depth=depth,
            horizon=16,
            privacy=fg.Zcdp(rho * 10**8),
            hash_seed=seed,
            insecure_seed=seed,
            max_weight=10_000,
        )
        counts.advance(to=7)
        counts.update(np.arange(len(totals)), totals)
        released.append(counts.second_moment(error=True))
    values = np.array(released)
    return values[:, 0], values[:, 1]


@pytest.mark.parametrize("rho", [0.00001, 0.01, 100.0])
def test_the_second_moment_is_unbiased_and_errs_as_much_as_it_says(rho: float) -> None:
    # 1000 sketches of 3 rows of 64 buckets, 200 keys: z-test of the mean at 5 sd, alpha 6e-7. The sd's own estimate has
    # relative sd 2.2 % (more with the tails): 15 %. The noise's share, width v, is 300 standard errors at rho 1e-5, 6
    # at 0.01: a moment from which it is not subtracted is rejected. F4 is 0.9 % of F2^2: the bound is nearly sharp.
    totals = np.random.default_rng(5).integers(1, 200, size=200)
    truth = float(np.sum(totals.astype(float) ** 2))
    values, stds = moments(rho, range(1000), 64, 3, totals)
    assert abs(np.mean(values) - truth) < 5 * np.std(values) / math.sqrt(1000)
    assert np.sqrt(np.mean(stds**2)) == pytest.approx(np.std(values), rel=0.15)


def test_top_is_sorted_and_never_longer_than_the_list() -> None:
    counts = sketch(max_weight=100)
    counts.update(["a", "b", "c", "d"], [3, 50, -7, 20])
    assert [entry.key for entry in counts.top(3, among=["a", "b", "c", "d", "e"])] == ["b", "d", "a"]
    assert [entry.key for entry in counts.top(2**60, among=["c", "e", "a"])] == ["a", "e", "c"]
    assert counts.top(0, among=["a"]) == counts.top(3, among=[]) == []
    assert [entry.key for entry in counts.top(3, among=["b", "a", "b"])] == ["b", "b", "a"]


def test_top_of_composite_keys_gives_tuples() -> None:
    counts = sketch(max_weight=9)
    counts.update((["EWR", "JFK", "JFK"], np.array([1, 2, 1], dtype=">u2")), [2, 9, 4])
    found = counts.top(2, among=(pa.array(["EWR", "JFK", "JFK"]), pl.Series([1, 2, 1])))
    assert [entry.key for entry in found] == [("JFK", 2), ("JFK", 1)]
    assert [entry.key for entry in counts.top(1, among=("JFK", [1, 2]))] == [("JFK", 2)]


def test_top_refuses_what_is_no_list_of_keys_and_reads_nothing() -> None:
    counts: Any = sketch()
    for among in ["abc", 5, b"abc", np.array(5), (1, "a"), pa.scalar(5), np.str_("abc")]:
        with pytest.raises(TypeError, match="among must be a column of keys; a single key was given"):
            counts.top(1, among=among)
    for k in [-1, 1.0, None, "1", True]:
        with pytest.raises((TypeError, ValueError), match="k must be"):
            counts.top(k, among=["a"])
    with pytest.raises(TypeError):
        counts.top(1, ["a"])
    with pytest.raises(TypeError, match="among"):
        counts.top(1)
    assert not counts.sealed


SHAPES: list[tuple[dict[str, Any], str]] = [
    *(({"width": width}, "width must be a power of two") for width in [0, 3, 1000, 2**31, 2**40, -2, 2**70]),
    *(({"depth": depth}, "depth must be an odd number from 1 to 63") for depth in [0, 2, 64, 65, -1, 2**70]),
    *(({"max_weight": weight}, "max_weight must be an integer from 1 to 2.31") for weight in [0, -1, 2**31 + 1, 2**70]),
    *(({"hash_seed": seed}, "hash_seed must be None or an integer from 0") for seed in [-1, 2**64]),
]


@pytest.mark.parametrize("bad, message", SHAPES, ids=str)
def test_a_shape_that_no_sketch_has_is_refused_with_what_is_allowed(bad: dict[str, Any], message: str) -> None:
    shape: dict[str, Any] = {"width": 16, **bad}
    make: Any
    for make in [fg.CountSketch, lambda **given: fg.CountSketch.plan(**given).build()]:
        with pytest.raises(ValueError, match=f"{message}.* was given"):
            make(horizon=8, privacy=PRIVACY, **shape)
    with pytest.raises(ValueError, match=f"{message}.* was given"):
        fg.RawSketch(**shape)


def test_a_sketch_too_large_for_memory_is_refused() -> None:
    for make in [lambda **shape: fg.CountSketch(horizon=8, privacy=PRIVACY, **shape), fg.RawSketch]:
        error = raised_by(lambda make=make: make(width=2**30, depth=63))  # type: ignore[misc]
        if error is not None:  # 540 GB: some systems promise even that
            assert isinstance(error, ValueError)
            assert "memory" in str(error)


def test_unknown_missing_and_positional_arguments_are_refused() -> None:
    make: Any
    common: dict[str, Any] = {"horizon": 8, "privacy": PRIVACY}
    for make, given in [(fg.CountSketch, common), (fg.CountSketch.plan, common), (fg.RawSketch, {})]:
        with pytest.raises(TypeError, match=r"missing the keyword argument \"width\""):
            make(**given)
        for name in ["seed", "size", "Width", "max_norm", ""]:
            hint = r" \(did you mean \"width\"\?\)" if name == "Width" else ""
            known = "the keyword arguments are width, depth, "
            with pytest.raises(TypeError, match=rf"no argument \"{name}\"{hint}; {known}"):
                make(width=16, **given, **{name: 1})
        with pytest.raises(TypeError, match="positional"):
            make(16, **given)
        for word in ["Error", "", "clip "]:
            with pytest.raises(ValueError, match='on_excess must be "error" or "clip"'):
                make(width=16, on_excess=word, **given)
    for name in ["horizon", "privacy"]:
        with pytest.raises(TypeError, match=rf"missing the keyword argument \"{name}\""):
            make = fg.CountSketch
            make(width=16, **{key: value for key, value in common.items() if key != name})
    for name in ["horizon", "privacy", "insecure_seed", "mechanism"]:
        with pytest.raises(TypeError, match="no argument"):
            fg.RawSketch(width=16, **{name: 1})  # type: ignore[arg-type]


def test_a_hash_seed_is_drawn_unless_it_is_given() -> None:
    seeds = {fg.RawSketch(width=2).hash_seed for _ in range(5)}
    seeds |= {fg.CountSketch(width=2, horizon=1, privacy=PRIVACY).hash_seed for _ in range(5)}
    seeds |= {fg.CountSketch(width=2, horizon=1, privacy=PRIVACY, hash_seed=None, insecure_seed=1).hash_seed}
    assert len(seeds) == 11
    assert sketch(hash_seed=2**64 - 1).hash_seed == 2**64 - 1


def test_repr_shows_the_parameters_and_no_data() -> None:
    counts = fg.CountSketch(width=64, horizon=8, privacy=fg.Zcdp(1e6), hash_seed=77, max_weight=3)
    raw = counts.raw()
    assert repr(counts) == (
        "<CountSketch(width=64, depth=5, max_weight=3, hash_seed=77, horizon=8, privacy=Zcdp(rho=1000000.0), "
        "mechanism='tree', protect='update', contributions=1, on_excess='error', invalid='raise') at step 1>"
    )
    assert repr(raw) == "<RawSketch(width=64, depth=5, max_weight=3, hash_seed=77)>"
    before = repr(counts), repr(raw)
    counts.update(["secret"] * 100, 3)
    raw.update(["secret"] * 100, 3)
    counts.merge(raw)
    assert (repr(counts), repr(raw)) == before


def test_memory_does_not_depend_on_data() -> None:
    silent, busy = (fg.CountSketch(width=64, horizon=8, privacy=PRIVACY, hash_seed=1) for _ in range(2))
    busy.update(range(100))
    for counts in [silent, busy]:
        counts.estimate([1, 2, 3])
    assert silent.memory == busy.memory
    assert silent.memory > 64 * 5 * 8


def test_an_object_whose_class_was_changed_is_refused() -> None:
    counts = sketch()
    counts.update("a")
    changed: Any = counts
    for kind in [fg.ContinualCounter, fg.ContinualVector, fg.RawSketch, fg.Plan]:
        if raised_by(lambda kind=kind: setattr(changed, "__class__", kind)) is None:  # type: ignore[misc]
            for method in ["release", "update", "update_row", "update_rows"]:
                assert isinstance(raised_by(lambda m=method: getattr(changed, m)(0)), (*DOCUMENTED, AttributeError))  # type: ignore[misc]
            changed.__class__ = fg.CountSketch
    assert whole(counts.estimate("a")) == 1


def filled(seed: int, like: fg.CountSketch) -> tuple[fg.RawSketch, list[int], list[int]]:
    """A raw sketch with some updates, and these."""
    generator = random.Random(seed)
    keys = [generator.randrange(20) for _ in range(100)]
    weights = [generator.randint(-9, 9) for _ in keys]
    raw = like.raw()
    raw.update(keys, weights)
    return raw, keys, weights


def test_merges_in_any_order_and_grouping_are_one_pass() -> None:
    counts = sketch(max_weight=9)
    parts = [filled(seed, counts) for seed in range(4)]
    one_pass = counts.raw()
    for _, keys, weights in parts:
        one_pass.update(keys, weights)
    (a, *_), (b, *_), (c, *_), (d, *_) = parts
    left, right = counts.raw(), copy.copy(c)
    for part in [a, b, c, d]:
        left.merge(part)
    right.merge(d)
    tail = copy.deepcopy(b)
    tail.merge(right)
    tail.merge(a)
    assert raw_bytes(left) == raw_bytes(tail) == raw_bytes(one_pass)
    direct, merged = sketch(max_weight=9), sketch(max_weight=9)
    for part, keys, weights in parts:
        direct.update(keys, weights)
        merged.merge(part)
    counts.merge(one_pass)
    expected = whole(direct.estimate(range(20))).tolist()
    assert whole(merged.estimate(range(20))).tolist() == whole(counts.estimate(range(20))).tolist() == expected


def test_merging_into_itself_doubles() -> None:
    raw = fg.RawSketch(width=64, hash_seed=1)
    raw.update(["a", "a", "b"])
    raw.merge(raw)
    counts = sketch(width=64)
    counts.merge(raw)
    assert whole(counts.estimate(["a", "b"])).tolist() == [4, 2]


def test_a_merged_sketch_is_not_used_up_and_not_linked() -> None:
    counts = sketch()
    raw = counts.raw()
    raw.update("a")
    counts.merge(raw)
    raw.update("a")
    counts.merge(raw)
    assert whole(counts.estimate("a")) == 3
    assert raw_bytes(counts.raw()) == raw_bytes(fg.RawSketch(width=1024, hash_seed=1))


OTHER_SHAPES = {"width": 32, "depth": 3, "max_weight": 2, "hash_seed": 8}


@pytest.mark.parametrize("field", OTHER_SHAPES)
def test_what_does_not_fit_is_named(field: str) -> None:
    ours: dict[str, Any] = {"width": 16, "depth": 5, "max_weight": 1, "hash_seed": 7}
    theirs = {**ours, field: OTHER_SHAPES[field]}
    counts = fg.CountSketch(horizon=8, privacy=tiny_noise(), **ours)
    raw, other = fg.RawSketch(**ours), fg.RawSketch(**theirs)
    other.update("a")
    into: Any
    for into in [counts, raw]:
        with pytest.raises(fg.IncompatibleError, match=rf"\b{field}\b.*\b{ours[field]}\b.*\b{theirs[field]}\b"):
            into.merge(other)
    assert not counts.sealed
    assert raw_bytes(raw) == raw_bytes(fg.RawSketch(**ours))
    assert whole(counts.estimate("a")) == 0


def test_policies_may_differ() -> None:
    counts = sketch(on_excess="clip")
    raw = fg.RawSketch(width=1024, hash_seed=1, invalid="drop")
    raw.update(["a", "b"], [1, 2])
    counts.merge(raw)
    assert whole(counts.estimate(["a", "b"])).tolist() == [1, 0]
    clipping = counts.raw()
    clipping.update("b", 5)
    assert raw_bytes(clipping) != raw_bytes(counts.raw())


def test_only_raw_sketches_are_merged() -> None:
    other: Any
    into: Any
    for other in [sketch(), None, 5, raw_bytes(fg.RawSketch(width=16)), fg.RawSketch]:
        for into in [sketch(), fg.RawSketch(width=1024, hash_seed=1)]:
            with pytest.raises(TypeError, match="RawSketch"):
                into.merge(other)


def test_a_raw_sketch_cannot_be_read() -> None:
    raw: Any = fg.RawSketch(width=16)
    for name in ["estimate", "top", "second_moment", "release", "advance", "now", "privacy", "cells", "counters"]:
        assert not hasattr(raw, name)


def near_overflow() -> fg.RawSketch:
    """A raw sketch with a total of 2^62, made by doubling."""
    raw = fg.RawSketch(width=16, hash_seed=1, max_weight=2**31)
    raw.update("a", 2**31)
    for _ in range(31):
        raw.merge(raw)
    return raw


def test_a_merge_that_would_overflow_changes_nothing() -> None:
    raw = near_overflow()
    before = raw_bytes(raw)
    with pytest.raises(OverflowError):
        raw.merge(raw)
    assert raw_bytes(raw) == before
    counts = fg.CountSketch(width=16, hash_seed=1, max_weight=2**31, horizon=8, privacy=tiny_noise(2.0**31))
    counts.merge(raw)
    with pytest.raises(OverflowError):
        counts.merge(raw)
    counts.update("a", -(2**31))
    counts.merge(raw)  # 2^63 - 2^31 is in range
    assert counts.estimate("a") == pytest.approx(2.0**63 - 2.0**31, rel=1e-12)


def pickled(raw: fg.RawSketch, protocol: int) -> Any:
    """A copy by way of bytes."""
    return pickle.loads(pickle.dumps(raw, protocol))


COPIES: dict[str, Callable[[Any], Any]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle protocol {protocol}": functools.partial(pickled, protocol=protocol)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@pytest.mark.parametrize("how", COPIES)
def test_a_raw_sketch_is_copied_with_all_that_it_holds_and_then_is_another(how: str) -> None:
    raw = fg.RawSketch(width=16, depth=3, max_weight=4, hash_seed=9, on_excess="clip", invalid="drop")
    raw.update(["a", "b"], [9, -2])
    twin = COPIES[how](raw)
    assert raw_bytes(twin) == raw_bytes(raw)
    assert (twin.width, twin.depth, twin.max_weight, twin.hash_seed) == (16, 3, 4, 9)
    twin.update(("a", [5, 6]), [-9, 3])
    raw.update(("a", [5, 6]), [-4, 3])
    assert raw_bytes(twin) == raw_bytes(raw)
    twin.update("a")
    assert raw_bytes(twin) != raw_bytes(raw)


def test_bytes_that_are_no_raw_sketch_are_refused() -> None:
    from_bytes: Any = fg.RawSketch._from_bytes  # type: ignore[attr-defined]
    raw = fg.RawSketch(width=2, depth=1, hash_seed=1)
    raw.update("a")
    good = raw_bytes(raw)
    assert raw_bytes(from_bytes(good)) == good

    def with_field(place: int, value: int) -> bytes:
        return good[: 8 * place] + struct.pack("<Q", value) + good[8 * place + 8 :]

    huge = [0, 3, 2**30, 2**31, 2**32, 2**63, 2**64 - 1]
    bad = [b"", b"x", good[:-1], good[:-8], good + b"\0", good + bytes(8), good[8:], bytes(len(good)), good[::-1]]
    bad += [with_field(1, width) for width in huge]
    bad += [with_field(2, depth) for depth in [*huge, 2, 65] if depth != 1]
    bad += [with_field(3, weight) for weight in [0, 2**31 + 1, 2**32, 2**64 - 1]]
    bad += [with_field(5, 4), with_field(6, 0), with_field(6, 2**63), with_field(8, 2), with_field(9, 2**63)]
    bad += [with_field(1, 2**29)[:56] + bytes(8), with_field(0, 0)]
    for form in bad:
        assert isinstance(raised_by(lambda form=form: from_bytes(form)), ValueError), form  # type: ignore[misc]
    for wrong in [None, "text", 5]:
        with pytest.raises(TypeError):
            from_bytes(wrong)


def fill_in_a_worker(work: tuple[fg.RawSketch, int]) -> fg.RawSketch:
    """What a process of a pool does: fills a copy of the empty sketch with its share."""
    raw, share = work
    raw.update(np.arange(100) % (share + 1))
    raw.update([f"worker {share}", "all"])
    return raw


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_raw_sketches_are_filled_in_other_processes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(__file__))
    counts = sketch()
    with multiprocessing.get_context(method).Pool(2) as pool:
        for raw in pool.map(fill_in_a_worker, [(counts.raw(), share) for share in range(4)]):
            counts.merge(raw)
    expected = sum(np.bincount(np.arange(100) % (share + 1), minlength=4) for share in range(4))
    assert whole(counts.estimate(range(4))).tolist() == np.asarray(expected).tolist()
    assert whole(counts.estimate([f"worker {share}" for share in range(4)])).tolist() == [1] * 4
    assert whole(counts.estimate("all")) == 4


def test_a_raw_sketch_lives_on_in_a_forked_child_and_the_live_one_does_not() -> None:
    counts = sketch()
    raw = counts.raw()

    def child() -> Any:
        raw.update("a")
        return [raw_bytes(raw).hex(), name_of_error(lambda: counts.merge(raw)), name_of_error(counts.raw)]

    form, *errors = in_a_child(child)
    assert errors == ["CopyError", "CopyError"]
    assert raw_bytes(raw) == raw_bytes(counts.raw())
    counts.merge(fg.RawSketch._from_bytes(bytes.fromhex(form)))  # type: ignore[attr-defined]
    assert whole(counts.estimate("a")) == 1


def test_threads_that_share_a_sketch_lose_nothing() -> None:
    counts = sketch(horizon=2**40, width=2**10)
    raw = counts.raw()

    def work(number: int) -> Any:
        generator = np.random.default_rng(number)
        added = np.zeros(16, dtype=np.int64)
        for _ in range(40):
            # Below and above the size from which the interpreter lock is released.
            keys = generator.integers(0, 16, size=int(generator.choice([1, 10, 5000])))
            try:
                counts.update(keys)
                added += np.bincount(keys, minlength=16)
            except fg.SealedStepError:
                counts.advance()
            raw.update(keys)
            added += np.bincount(keys, minlength=16)
            if generator.random() < 0.1:
                counts.estimate(range(16), error=True)
            if generator.random() < 0.1:
                copy.copy(raw).merge(raw)
        return added

    added = run_together(work)
    counts.advance()
    counts.merge(raw)
    assert whole(counts.estimate(range(16))).tolist() == np.sum(added, axis=0).tolist()


def test_raw_sketches_that_threads_merge_crosswise_do_not_lock_up() -> None:
    raws = [fg.RawSketch(width=2**11, hash_seed=1) for _ in range(2)]
    raws[0].update("a")

    def work(number: int) -> None:
        # 32 merges in all double the total at most: 2^32.
        for _ in range(4):
            raws[number % 2].merge(raws[1 - number % 2])

    run_together(work)


def test_other_threads_run_during_a_long_raw_update() -> None:
    raw = fg.RawSketch(width=2**16, hash_seed=1)
    keys = np.arange(3 * 10**6)
    _, ticks = ticks_during(lambda: raw.update(keys))
    assert len(ticks) >= 3


def test_a_seed_repeats_the_answers_whatever_the_build() -> None:
    def answers() -> list[Any]:
        counts = fg.CountSketch(width=64, horizon=100, privacy=PRIVACY, hash_seed=5, insecure_seed=6)
        released: list[Any] = []
        for step in [1, 2, 50, 100]:
            counts.advance(to=step)
            counts.update(["a", "b", 5, b"a"], 1)
            counts.update(("a", [5, 6]))
            released += [counts.estimate("a"), counts.estimate(["b", "c"]).tolist(), counts.second_moment()]
        return released

    assert answers() == answers()


def test_static_is_one_step() -> None:
    counts = fg.CountSketch(width=64, horizon=1, privacy=PRIVACY, hash_seed=5)
    counts.update(["a"] * 3)
    assert counts.noise_std() == pytest.approx(math.sqrt(5))
    counts.estimate("a")
    with pytest.raises(fg.HorizonError):
        counts.advance()


def test_a_budget_counts_once_whatever_is_asked() -> None:
    counts = fg.CountSketch(width=64, horizon=100, privacy=fg.Zcdp(0.25))
    for step in range(1, 20):
        counts.advance(to=step)
        counts.estimate(range(100), error=True)
        counts.top(3, among=range(10))
    assert fg.total(counts, fg.Zcdp(0.5)).rho == 0.75


def test_intervals_are_never_narrower_than_the_noise() -> None:
    # One cell, one key: the cells say nothing of the noise. 400 sketches (seeds 0 to 399), 95 % intervals; at least
    # 91.5 % cover (binomial, alpha below 1e-3 for 95 %). Rejects the empirical quantile alone (covers 69 %).
    covered = 0
    for seed in range(400):
        sketch = fg.CountSketch(horizon=1, privacy=fg.Zcdp(0.5), width=1, depth=1, hash_seed=seed, insecure_seed=seed)
        sketch.update("x")
        interval = sketch.estimate("x", confidence=0.95)
        covered += interval.lower <= 1 <= interval.upper
    assert covered >= 366


def test_sketches_that_differ_in_the_hash_seed_do_not_share_noise() -> None:
    def moment(hash_seed: int) -> float:
        sketch = fg.CountSketch(horizon=8, privacy=fg.Zcdp(0.5), width=64, hash_seed=hash_seed, insecure_seed=3)
        return sketch.second_moment()

    assert moment(1) == moment(1) != moment(2)


def test_a_key_that_unwraps_to_itself_is_refused() -> None:
    class Endless:
        def as_py(self) -> Any:
            return self

    raw = fg.RawSketch(width=4)
    key: Any = Endless()
    with pytest.raises(TypeError, match="keys must be"):
        raw.update(key)


def test_raw_sketches_whose_updates_cancel_can_be_added_for_ever() -> None:
    raw = fg.RawSketch(width=4, max_weight=5, hash_seed=1)
    raw.update(5, 5)
    raw.update(5, -5)
    for _ in range(80):
        raw.merge(raw)


def test_a_raw_sketch_that_memory_does_not_hold_is_an_error_and_no_abort() -> None:
    script = """
import resource, fastgame as fg
sketch = fg.CountSketch(horizon=8, privacy=fg.Zcdp(0.5), width=2**24, hash_seed=1)
size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (size + 2**28, size + 2**28))
try:
    sketch.raw()
except (MemoryError, ValueError) as error:
    print("refused")
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout.strip()) == (0, "refused"), run.stderr


def test_a_raw_sketch_that_was_in_use_when_forked_is_refused_and_does_not_hang() -> None:
    script = """
import os, threading, time, numpy as np, fastgame as fg
raw = fg.RawSketch(width=2**16, hash_seed=1)
keys = np.arange(3_000_000)
stop = threading.Event()
def feed():
    while not stop.is_set():
        raw.update(keys)
thread = threading.Thread(target=feed)
thread.start()
time.sleep(0.3)
if (child := os.fork()) == 0:
    try:
        raw.update(1)
    except fg.StateError:
        pass
    os._exit(0)
for _ in range(500):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    time.sleep(0.01)
else:
    os.kill(child, 9)
stop.set()
thread.join()
print(done == child)
"""
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.stdout.strip() == "True", run.stderr


def test_what_raw_sketches_drop_is_counted_where_they_are_merged() -> None:
    counts = fg.CountSketch(horizon=8, privacy=fg.Zcdp(0.5), width=16, hash_seed=1, invalid="drop")
    raw = pickle.loads(pickle.dumps(counts.raw()))
    raw.update([1, 2, 3], [5, 1, -7])
    part = copy.copy(raw)
    part.update(1, 2)
    raw.merge(part)
    assert (raw.dropped, part.dropped, counts.dropped) == (5, 3, 0)
    counts.merge(raw)
    assert counts.dropped == 5
