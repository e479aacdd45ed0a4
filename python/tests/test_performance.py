"""The benchmark report: what its tables and verdicts make of given times."""

from __future__ import annotations

import importlib
from typing import Any

import _report
import pytest


@pytest.fixture
def script() -> Any:
    """scripts/performance.py."""
    return importlib.import_module("performance")


def reads(access: str, seconds: dict[str, float], base: float = 100.0) -> _report.Bench:
    """Reads of one pattern, all of which take `base` seconds but for those given, and the floor, which takes one."""
    every = {f"tree, {shape}, 2^{level}": base for shape in ("batches", "calls") for level in (10, 16, 40, 62)}
    floors = {f"floor, 2^{level}": 1.0 for level in (10, 16, 40, 62)}
    rounds = {name: [value, 2 * value] for name, value in {**every, **floors, **seconds}.items()}
    return _report.Bench("reads", {"access": access}, _report.Times(rounds))


def test_the_worst_pattern_and_horizon_count(script: Any) -> None:
    slow, fast = {"tree, batches, 2^40": 300.0}, {"tree, batches, 2^10": 50.0, "floor, 2^62": 10.0}
    benches = _report.Benches([reads("dense", slow), reads("random", fast), reads("sparse", {})])
    assert script.in_cache(benches, "batches") == 300.0
    assert script.in_cache(benches, "calls") == 100.0
    # Within one pattern, either way round.
    assert script.flatness(benches, "batches") == 3.0
    assert script.flatness(benches, "calls") == 1.0


def test_steps_of_a_large_vector_are_shared_among_what_a_call_does(script: Any) -> None:
    seconds = {"ours": [2.0, 4.0], "refresh": [3.0, 6.0], "put aside": [1.0, 2.0], "apply": [8.0, 16.0]}
    bench = _report.Bench("test_sparse_vector", {"bits": 4}, _report.Times(seconds), found={"steps": 10, "size": 16})
    benches = _report.Benches([bench])
    for _ in range(2):  # a second look finds the same
        (found,) = script.of_sparse(benches)
        assert found.times.seconds["ours"] == pytest.approx([0.2, 0.4])
        assert found.times.seconds["batches"] == pytest.approx([0.6, 1.2])
        assert found.ratio("refresh", "ours") == pytest.approx(15.0)


def test_the_work_of_a_call_is_not_counted_as_its_overhead(script: Any) -> None:
    seconds = {"nothing": [1.0, 2.0], "vector.update": [5.0, 10.0], "counter.update": [2.5, 5.0]}
    seconds["vector.update, a thousand"] = [3000.0, 6000.0]
    bench = _report.Bench("test_scalar_calls", {}, _report.Times(seconds))
    assert script.overhead(bench, "vector.update") == pytest.approx(2.0)
    assert script.overhead(bench, "counter.update") == 2.5
    (target,) = script.small_targets(_report.Benches([bench]))
    assert target.value == 2.5


@pytest.mark.parametrize(
    ("value", "at_least", "met"),
    [(1.5, False, True), (1.5001, False, False), (1.4999, True, False), (1.5, True, True)],
)
def test_a_verdict_is_of_the_ratio_and_not_of_its_digits(script: Any, value: float, at_least: bool, met: bool) -> None:
    target = script.Target("x", 1.5, value, at_least)
    assert target.met is met
    assert target.row()[-1] == ("met" if met else "**missed**")


def test_a_machine_that_gives_no_second_core_is_not_taken_for_ours(script: Any) -> None:
    names = {"release": 1.6, "numpy": 1.1}
    seconds = {f"{name}, one thread": [speedup] for name, speedup in names.items()}
    seconds |= {f"{name}, two threads": [1.0] for name in names}
    benches = _report.Benches([_report.Bench("test_two_threads", {}, _report.Times(seconds))])
    (target,) = script.thread_targets(benches)
    assert target.value == 1.6
    assert not target.met


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0.5, "0.50 ns"), (12.34, "12.3 ns"), (999.4, "999 ns"), (999.6, "1.00 µs"), (2.5e7, "25.0 ms"), (1e11, "100 s")],
)
def test_times_have_three_digits(script: Any, ns: float, text: str) -> None:
    assert script.time(ns) == text


def test_large_ratios_have_three_digits(script: Any) -> None:
    assert [script.digits(value) for value in (0.123, 9.99, 9.999, 99.96, 88_321.0)] == [
        "0.12",
        "9.99",
        "10.0",
        "100",
        "88,300",
    ]
