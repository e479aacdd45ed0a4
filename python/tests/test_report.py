"""What the tables of times are made by: ratios within rounds, results of benches, blocks of pages."""

from __future__ import annotations

import json
from pathlib import Path

import _report
import pytest


def test_a_ratio_is_the_median_of_those_within_a_round() -> None:
    # The machine slows down fourfold: medians by themselves would say 1.5, the other way round 1/1.5.
    times = _report.Times({"a": [2.0, 6.0, 8.0], "b": [1.0, 4.0, 4.0]})
    assert times.ratio("a", "b") == 2.0
    assert times.ratio("b", "a") == 0.5
    assert times.ns("a", count=3) == 2e9


def test_parts_of_calls_are_added_within_a_round() -> None:
    times = _report.Times({"a": [1.0, 2.0, 9.0], "b": [4.0, 8.0, 4.0]}).with_sum("c", {"a": 2.0, "b": 0.25})
    assert times.seconds["c"] == [3.0, 6.0, 19.0]
    assert times.ratio("c", "a") == 3.0


def test_calls_with_different_numbers_of_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="as many rounds"):
        _report.Times({"a": [1.0, 2.0], "b": [1.0]})


def test_calls_take_turns_after_what_comes_before_a_round() -> None:
    seen: list[str] = []
    calls = {name: lambda name=name: seen.append(name) for name in "ab"}
    times = _report.in_turns(calls, rounds=2, before=lambda: seen.append("-"), loops=2, warm=1)
    assert "".join(seen) == "-aabb" * 3
    assert {name: len(values) for name, values in times.seconds.items()} == {"a": 2, "b": 2}


def test_a_call_may_run_more_often_than_others() -> None:
    seen: list[str] = []
    calls = {name: lambda name=name: seen.append(name) for name in "ab"}
    _report.one_round(calls, {}, loops={"a": 1, "b": 3})
    assert seen == ["a", "b", "b", "b"]


def test_one_call_of_several_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 6.0, 10.0, 11.0])
    monkeypatch.setattr(_report, "perf_counter", lambda: next(clock))
    seconds: dict[str, list[float]] = {}
    _report.one_round({"a": lambda: None, "b": lambda: None}, seconds, loops=2)
    assert seconds == {"a": [3.0], "b": [0.5]}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """A file as pytest-benchmark writes it, with benches that took turns and one that did not."""
    path = tmp_path / "results.json"
    benches: list[dict[str, object]] = [
        {"name": f"test_a[{width}]", "params": {"width": width}, "extra_info": {"seconds": {"x": [width]}, "count": 2}}
        for width in (1, 2)
    ]
    benches.append({"name": "test_b", "params": None, "extra_info": {"seconds": {"x": [1.0]}, "bytes": 7}})
    benches.append({"name": "test_c", "params": None, "extra_info": {}})
    path.write_text(json.dumps({"benchmarks": benches}))
    return path


def test_benches_are_found_by_name_and_parameters(results: Path) -> None:
    benches = _report.Benches.read(results)
    assert [one.about for one in benches.of("test_a")] == [{"width": 1}, {"width": 2}]
    assert benches.one("test_a", width=2).ns("x") == 1e9
    assert benches.one("test_b").found == {"bytes": 7}
    for wrong in ("test_a", "test_c"):
        with pytest.raises(LookupError, match=wrong):
            benches.one(wrong)


def test_medians_of_criterion_are_found_by_its_names(tmp_path: Path) -> None:
    path = tmp_path / "read_dense" / "call" / "2_10" / "new" / "estimates.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"median": {"point_estimate": 3.5}, "mean": {"point_estimate": 9.0}}))
    assert _report.criterion("read/dense", "call/2^10", root=tmp_path) == 3.5
    with pytest.raises(SystemExit, match="cargo bench"):
        _report.criterion("read/dense", "batch/2^10", root=tmp_path)


def test_only_the_named_block_of_a_page_is_replaced() -> None:
    page = "a\n<!-- begin: x -->\nold\n<!-- end -->\nb\n<!-- begin: x, y -->\nkept\n<!-- end -->\n"
    new = _report.replaced(page, "<!-- begin: x -->", "new")
    assert new == page.replace("\nold\n", "\n\nnew\n\n")
    for broken, begin in ((page, "<!-- begin: z -->"), (page.rpartition("<!-- end -->")[0], "<!-- begin: x, y -->")):
        with pytest.raises(LookupError, match="no block"):
            _report.replaced(broken, begin, "new")
