"""Plans under every mechanism: errors over time, comparisons, and how they are shown."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import MECHANISMS

import fastgame as fg
from fastgame._plan import as_json, as_text, comparison_as_json, error_label, plan_title

ZIPF = fg.FrequencyProfile.zipf(total=300_000, keys=4_000)
RELATIONS = fg.JoinProfile.uniform(left_total=1e6, right_total=1e6, keys=1000)


def plans(horizon: int = 1000, **given: Any) -> dict[str, fg.Plan]:
    """One of each kind."""
    common: dict[str, Any] = {"horizon": horizon, "privacy": fg.Zcdp(0.5), **given}
    return {
        "counter": fg.ContinualCounter.plan(**common),
        "vector": fg.ContinualVector.plan(200, **common),
        "sketch": fg.CountSketch.plan(width=256, hash_seed=1, **common),
        "range": fg.RangeCounter.plan(shape=500, hash_seed=1, **common),
        "grid": fg.RangeCounter.plan(shape=(90, 80), width=256, hash_seed=1, **common),
        "join": fg.JoinSize.plan(width=64, hash_seed=1, **common),
    }


KINDS = pytest.mark.parametrize("kind", plans())
ALL = pytest.mark.parametrize("mechanism", MECHANISMS)


@KINDS
@ALL
def test_errors_grow_over_time_as_the_noise_of_a_cell_does(kind: str, mechanism: str) -> None:
    plan = plans(**MECHANISMS[mechanism])[kind]
    # Laws of boxes, joins and sketches are inverted to 1e-4 or so.
    steps = [1, 2, 3, 10, 100, 500, 1000]
    errors, stds = [plan.error(at=step) for step in steps], [plan.std(at=step) for step in steps]
    assert plan.error() == plan.error(at=1000) and plan.std() == plan.std(at=1000)
    built: Any = plan.build()
    for step, error, std in zip(steps, errors, stds, strict=True):
        built.advance(to=step)
        ratio = built.noise_std() / plan.noise_std
        # A join multiplies the noise of two sides.
        power = 2 if kind == "join" else 1
        assert error == pytest.approx(errors[-1] * ratio**power, rel=1e-4)
        assert std == pytest.approx(stds[-1] * ratio**power, rel=1e-4)
    growing = plan.parameters["mechanism"] == "blt"
    assert all(
        (one < other) if growing else (one == pytest.approx(other, rel=1e-12))
        for one, other in itertools.pairwise(errors)
    )
    if kind in ("range", "grid"):
        box = plan.box()
        assert box.error == errors[-1] and plan.replace(estimator="cover").error(at=1) >= errors[0] * 0.99
    if kind == "sketch":
        assert plan.error(at=1, profile=ZIPF) <= 1.001 * plan.error(profile=ZIPF)
    for step in (0, 1001):
        with pytest.raises(ValueError, match="at must be"):
            plan.error(at=step)


@KINDS
@ALL
def test_what_if_replace_and_the_tables_know_every_mechanism(kind: str, mechanism: str, tmp_path: Path) -> None:
    plan = plans(**MECHANISMS[mechanism])[kind]
    pure = isinstance(plan.privacy, fg.PureDp)
    rows = plan.what_if()
    assert [row.plan.parameters["mechanism"] for row in rows] == [plan.parameters["mechanism"]] * len(rows)
    by_change = {row.change: row for row in rows}
    half = by_change["half the budget (epsilon)" if pure else "half the budget (rho)"]
    assert half.plan.privacy == plan.privacy.split(0.5)[0]
    power = 2 if kind == "join" else 1
    assert half.ratio == pytest.approx((2 if pure else math.sqrt(2)) ** power, rel=1e-4)
    assert by_change["contributions=5"].ratio == pytest.approx(5**power, rel=1e-4)
    assert all(row.ratio >= 1 and row.error == row.plan.error() for row in rows)

    assert plan.replace() == plan == plan.replace(horizon=7).replace(horizon=1000)
    tree = plan.replace(mechanism="tree", buffers=None)
    assert (tree.buffers, tree.parameters["buffers"]) == (None, None)
    assert (plan == tree) == (mechanism in ("tree", "pure"))
    if not pure:
        assert plan.replace(privacy=fg.Gdp(1.0)).noise_std == pytest.approx(plan.noise_std, rel=1e-12)

    text = as_text(plan)
    name = {
        "blt": f"blt with {plan.buffers} buffers",
        "blt, 1 buffer": "blt with 1 buffer\n",
        "pure": "tree of Laplace",
    }
    assert f"mechanism {name.get(mechanism, mechanism)}" in text == str(plan)
    bounded = "Laplace noise, delta 0 up to the sampler's error (docs/guarantees.md, section 12)"
    assert (bounded in text) == pure == ("gamma variable" in text)
    assert f"at most {plan.variables} {'gamma' if pure else 'normal'} variables" in text
    texts = dict(plan.summary())
    # Not of every step.
    growing = plan.parameters["mechanism"] == "blt"
    assert texts["noise of a cell"].endswith(", at the end") is growing
    assert texts.get("sd of an estimate", ", at the end" if growing else "").endswith(", at the end") is growing
    if kind == "vector":
        assert f"max_norm 1.0 ({'L1' if pure else 'L2'})" in texts["structure"]
    assert "<table>" in plan._repr_html_() and "mechanism" in plan._repr_html_()
    shown = json.loads(as_json(plan))
    assert (shown["buffers"], shown["parameters"]["privacy"]) == (plan.buffers, repr(plan.privacy))
    assert shown["parameters"]["buffers"] == MECHANISMS[mechanism].get("buffers")
    assert (shown["error_now"], shown["error_at_end"]) == (plan.error(at=1), plan.error())


@ALL
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_plans_of_every_mechanism_are_drawn(mechanism: str, tmp_path: Path) -> None:
    for kind, plan in plans(**MECHANISMS[mechanism]).items():
        if kind in ("counter", "sketch", "join"):
            plan.plot(tmp_path / f"{kind}.svg")
            assert (tmp_path / f"{kind}.svg").stat().st_size > 10_000
            title = plan_title(plan)
            assert title.startswith(plan.summary()[0][1] + ": the error that 95% of answers")
            assert title.endswith(f", mechanism {dict(plan.summary())['time'].partition('mechanism ')[2]}")
            unit = "pairs of the join" if kind == "join" else "units of the counts"
            assert error_label(plan) == f"error (in {unit})"
    if "blt" in mechanism:
        # Horizons that have no such parameters are left out.
        plan.replace(buffers=9).plot(tmp_path / "nine.svg")
        plan.replace(horizon=2, buffers=1).plot(tmp_path / "short.svg")


@pytest.mark.parametrize("buffers", range(1, 11))
def test_variables_and_buffers_are_those_that_were_asked_for(buffers: int) -> None:
    plan = fg.ContinualCounter.plan(horizon=2**20, privacy=fg.Zcdp(0.5), mechanism="blt", buffers=buffers)
    built: Any = plan.build()
    assert plan.buffers == built.buffers == plan.parameters["buffers"] == buffers
    assert plan.variables == buffers + 1
    # More buffers, less error: each adds less, and 6 are within 2 % of 10.
    if buffers > 1:
        assert plan.error() < plan.replace(buffers=buffers - 1).error()
    if buffers >= 6:
        assert plan.error() < 1.02 * plan.replace(buffers=10).error()
    chosen = plan.replace(buffers=None)
    assert chosen.parameters["buffers"] is None and chosen.buffers == 5
    assert chosen.error() == pytest.approx(plan.replace(buffers=5).error(), rel=1e-12)


def test_a_blt_has_the_error_of_the_table_beside_the_trees() -> None:
    # Variances relative to each other, from the design: 3.08 and 1.84 and 1.0002 at 2^10, 3.85, 2.03 and 1.008 at 2^20.
    for horizon, buffers, paper, tree, blt in [(2**10, 4, 3.08, 1.84, 1.0002), (2**20, 5, 3.85, 2.03, 1.008)]:
        plan = fg.ContinualCounter.plan(horizon=horizon, privacy=fg.Zcdp(0.5), mechanism="blt", buffers=buffers)
        others = [plan.replace(mechanism=word, buffers=None).noise_std for word in ("tree-paper", "tree")]
        ratios = [(other / plan.noise_std) ** 2 for other in others]
        assert ratios == pytest.approx([paper / blt, tree / blt], rel=4e-3)


# Comparisons.


@KINDS
@ALL
def test_a_comparison_has_the_numbers_of_its_plans(kind: str, mechanism: str) -> None:
    plan = plans(**MECHANISMS[mechanism])[kind]
    found = plan.compare(reads=5)
    words = [row.mechanism for row in found.mechanisms]
    assert words == (["tree"] if mechanism == "pure" else ["tree", "blt", "tree-paper"])
    for row in found.mechanisms:
        own = row.mechanism == "blt" and "buffers" in MECHANISMS[mechanism]
        assert row.plan == plan.replace(mechanism=row.mechanism, buffers=1 if own else None)
        assert (row.buffers, row.variables) == (row.plan.buffers, row.plan.variables)
        assert (row.error_now, row.error_at_end) == (row.plan.error(at=1), row.plan.error())
        assert type(row.memory) is int and row.memory >= row.plan.memory_at_start
        assert type(row.time) is float and 0 < row.time < 1e6
    assert found.choice in words
    by_word = {row.mechanism: row for row in found.mechanisms}
    if "blt" in by_word:
        ratio = by_word["blt"].error_at_end / by_word["tree"].error_at_end
        assert (found.choice == "blt") == (ratio <= 0.95)
        assert f"{ratio:.2f} of " in found.why
        assert f"{by_word['blt'].memory / by_word['tree'].memory:.2f} of its memory" in found.why
        assert f"{by_word['blt'].time / by_word['tree'].time:.1f} times the time" in found.why
    else:
        assert found.choice == "tree" and "pure" in found.why

    lines = str(found).splitlines()
    shape = plan.summary()[0][1].removeprefix(plan.structure)
    assert lines.pop(0) == f"Mechanisms for a {plan.structure}{shape}, {plan.privacy!r}, 1,000 steps"
    assert " ".join(lines[0].split()) == "mechanism error now at the end memory time a cell variables"
    assert len({len(line) for line in lines[: len(words) + 1]}) == 1, "columns are aligned"
    assert lines[-1] == f"Choose {found.choice!r}: {found.why}."
    assert "the choice goes by the error at the end, not by time" in str(found)
    assert "memory: the most after any of these reads" in str(found)
    for word, line in zip(words, lines[1:], strict=False):
        assert line.startswith(word)
    shown = json.loads(comparison_as_json(found))
    assert (shown["choice"], shown["why"], shown["noise_alone"]) == (found.choice, found.why, found.noise_alone)
    assert shown["structure"] == plan.structure and "mechanism" not in shown["parameters"]
    assert shown["parameters"].get("width") == plan.parameters.get("width")
    names = ["mechanism", "buffers", "error_now", "error_at_end", "memory", "time", "variables"]
    assert shown["mechanisms"] == [{name: getattr(row, name) for name in names} for row in found.mechanisms]


def test_a_comparison_takes_a_profile_where_keys_collide() -> None:
    found = plans()["sketch"].compare(reads=3, profile=ZIPF)
    alone = plans()["sketch"].compare(reads=3)
    for row, other in zip(found.mechanisms, alone.mechanisms, strict=True):
        assert row.error_at_end == row.plan.error(profile=ZIPF) > other.error_at_end
        assert row.error_now == row.plan.error(at=1, profile=ZIPF)
    # Where collisions are all of the error, no mechanism is worth anything.
    heavy = fg.FrequencyProfile(np.full(1000, 1e6))
    assert plans()["sketch"].compare(reads=3, profile=heavy).choice == "tree"
    assert plans()["join"].compare(reads=3, profile=RELATIONS).mechanisms[0].error_now > 0
    wrong: list[tuple[str, Any]] = [("counter", ZIPF), ("join", ZIPF), ("sketch", RELATIONS), ("range", ZIPF)]
    for kind, profile in wrong:
        with pytest.raises((ValueError, TypeError), match="rofile"):
            plans()[kind].compare(profile=profile)


def test_a_comparison_says_that_its_errors_are_of_noise_alone() -> None:
    words = "Errors are by noise alone"
    # Of the kinds in which keys collide; a grid of sketched components knows no profile.
    collide: list[tuple[str, Any]] = [("sketch", ZIPF), ("join", RELATIONS)]
    for kind, profile in collide:
        alone = plans()[kind].compare(reads=2)
        with_profile = plans()[kind].compare(reads=2, profile=profile)
        assert alone.noise_alone and words in str(alone)
        assert not with_profile.noise_alone and words not in str(with_profile)
    for kind, expected in [("counter", False), ("vector", False), ("range", False), ("grid", True)]:
        found = plans()[kind].compare(reads=2)
        assert found.noise_alone is expected is (words in str(found)), kind


def test_one_step_has_no_paper_and_no_buffers() -> None:
    found = plans(horizon=1)["counter"].compare()
    assert [row.mechanism for row in found.mechanisms] == ["tree", "blt"]
    assert found.choice == "tree"
    assert found.mechanisms[0].error_now == found.mechanisms[1].error_at_end
    assert (found.mechanisms[1].buffers, found.mechanisms[1].variables) == (0, 1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        *[
            (
                {"reads": given},
                f"reads must be None or a number of steps from 1 to the horizon, 1000; {given} was given",
            )
            for given in (0, 1001, -1, 2**63)
        ],
        ({"reads": 2**64}, "reads must be None or a number of steps from 1 to the horizon, 1000;"),
        ({"keys": 0}, "keys must be"),
        ({"keys": -5}, "keys must be"),
        ({"keys": 2**64}, "keys must be"),
    ],
)
def test_a_comparison_refuses_numbers_out_of_range(given: dict[str, Any], message: str) -> None:
    for plan in plans().values():
        with pytest.raises(ValueError, match=message):
            plan.compare(**given)
    positional: Any = plans()["counter"].compare
    with pytest.raises(TypeError):
        positional(3)


@pytest.mark.parametrize(("kind", "cells"), [("counter", 1), ("vector", 200)])
def test_no_more_cells_are_read_than_there_are(kind: str, cells: int) -> None:
    plan = plans()[kind]
    assert plan.compare(reads=2, keys=cells).mechanisms
    with pytest.raises(ValueError, match=f"keys must be .* from 1 to all, {cells}; {cells + 1} was given"):
        plan.compare(reads=2, keys=cells + 1)


def test_a_comparison_of_any_size_is_made() -> None:
    for plan in [
        fg.ContinualVector.plan(2**60, horizon=2**62, privacy=fg.Zcdp(0.5)),
        fg.JoinSize.plan(width=2**30, horizon=2**62, privacy=fg.PureDp(0.5)),
    ]:
        given: Any
        most = 2**60 if plan.structure == "ContinualVector" else 2**64 - 1
        for given in [{}, {"reads": 1}, {"reads": 2**62}, {"keys": 1}, {"keys": most, "reads": 2}]:
            assert plan.compare(**given).mechanisms[0].memory > plan.memory_at_start


# Cells, reads, and cells that are read at a step; None is all.
READS = [(1, 10, None), (100, 1, None), (100, 200, None), (1000, 200, None), (1000, 5, 100), (4000, 100, 40)]


@pytest.mark.parametrize("horizon", [1000, 2**40])
@pytest.mark.parametrize(("size", "reads", "keys"), READS)
@pytest.mark.parametrize("privacy", [fg.Zcdp(0.5), fg.PureDp(1.0)], ids=["zcdp", "pure"])
def test_the_memory_of_a_comparison_is_that_of_the_structure(
    privacy: fg.Budget, size: int, reads: int, keys: int | None, horizon: int
) -> None:
    # Within 30 %, beside what any structure takes. Reads that overlap by chance are those of another generator.
    generator = np.random.default_rng(7)
    plan = fg.ContinualVector.plan(size, horizon=horizon, privacy=privacy)
    for row in plan.compare(reads=reads, keys=keys).mechanisms:
        cells: Any = row.plan.build()
        most = 0
        for number in range(reads):
            cells.advance(to=1 + number * (horizon - 1) // max(1, reads - 1))
            cells.release() if keys is None else cells.release(generator.integers(0, size, size=keys))
            most = max(most, cells.memory)
        assert most == pytest.approx(row.memory, rel=0.3, abs=2500), row.mechanism


def test_the_memory_of_a_comparison_does_not_hang_on_the_digits_of_the_last_step() -> None:
    # They decide how many levels of the tree are left after the last read: from 33 to 49 kB here, of 73 to 81 at most.
    sizes = []
    for horizon in range(8_700, 8_760):
        plan = fg.ContinualVector.plan(1000, horizon=horizon, privacy=fg.Zcdp(0.5))
        sizes.append(plan.compare(reads=100).mechanisms[0].memory)
        assert sizes[-1] <= plan.memory
    assert max(sizes) < 1.3 * min(sizes)


# More cells or more reads than are measured: reads of all, many of them, and reads of few of many cells.
@pytest.mark.parametrize(("size", "reads", "keys"), [(20_000, 300, None), (20_000, 300, 5), (10**6, 1000, 1)])
@pytest.mark.parametrize("privacy", [fg.Zcdp(0.5), fg.PureDp(1.0)], ids=["zcdp", "pure"])
def test_the_memory_of_a_comparison_is_that_of_the_structure_where_less_is_measured(
    privacy: fg.Budget, size: int, reads: int, keys: int | None
) -> None:
    test_the_memory_of_a_comparison_is_that_of_the_structure(privacy, size, reads, keys, 2**20)


@ALL
def test_a_suggested_shape_is_nearly_best_for_its_mechanism(mechanism: str) -> None:
    given: dict[str, Any] = {"horizon": 1000, "hash_seed": 1, **MECHANISMS[mechanism]}
    sketch = fg.CountSketch.suggest(profile=ZIPF, **given)
    join = fg.JoinSize.suggest(profile=RELATIONS, **given)
    boxes = fg.RangeCounter.suggest(points=10_000, shape=(64, 64), **given)
    for plan in (sketch, join, boxes):
        parameters = plan.parameters
        assert all(parameters[name] == value for name, value in given.items())
        assert plan.build().mechanism == given.get("mechanism", "tree")
    shapes = [{"width": 2**bits, "depth": depth} for bits in range(7, 20) for depth in (3, 5, 7)]
    assert sketch.error(profile=ZIPF) <= 1.11 * min(sketch.replace(**shape).error(profile=ZIPF) for shape in shapes)
    assert join.error(profile=RELATIONS) <= 1.11 * min(
        join.replace(**shape).error(profile=RELATIONS) for shape in shapes
    )
    shapes = [{"levels": levels, "width": width} for levels in (1, 2, 3, 6) for width in (64, 4096)]
    assert boxes.error() <= 1.11 * min(boxes.replace(**shape).error() for shape in shapes)


@pytest.mark.parametrize("given", [{"privacy": fg.PureDp(1.0), "mechanism": "blt"}, {"buffers": 2}])
def test_what_is_refused_to_a_structure_is_refused_to_a_search(given: dict[str, Any]) -> None:
    given = {"horizon": 10, "privacy": fg.Zcdp(0.5), **given}
    searches: list[Any] = [
        lambda: fg.CountSketch.suggest(profile=ZIPF, **given),
        lambda: fg.JoinSize.suggest(profile=RELATIONS, **given),
        lambda: fg.RangeCounter.suggest(points=10, shape=9, **given),
    ]
    for search in searches:
        with pytest.raises(ValueError, match=r"pure budget|buffers are"):
            search()
