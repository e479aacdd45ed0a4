"""A plan says, without data, what is measured later."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import whole
from scipy import stats

import fastgame as fg

PARAMETERS = [
    {"horizon": 1},
    {"horizon": 2},
    {"horizon": 8760},
    {"horizon": 2**62},
    {"horizon": 100, "protect": "lifetime"},
    {"horizon": 100, "mechanism": "tree-paper"},
    {"horizon": 100, "contributions": 7},
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_a_plan_agrees_with_the_structure(parameters: dict[str, Any]) -> None:
    for privacy in [fg.Zcdp(0.5), fg.Gdp(0.1), fg.ApproxDp(1.0, 1e-6)]:
        given: dict[str, Any] = {"privacy": privacy, **parameters}
        pairs: list[tuple[fg.Plan, Any]] = [
            (fg.ContinualCounter.plan(max_weight=3, **given), fg.ContinualCounter(max_weight=3, **given)),
            (fg.ContinualVector.plan(5, max_norm=0.3, **given), fg.ContinualVector(5, max_norm=0.3, **given)),
            (fg.CountSketch.plan(width=16, hash_seed=3, **given), fg.CountSketch(width=16, hash_seed=3, **given)),
        ]
        for plan, structure in pairs:
            built: Any = plan.build()
            assert type(built) is type(structure)
            assert plan.noise_std == structure.noise_std() == built.noise_std()
            assert plan.lattice_step == structure.lattice_step == built.lattice_step
            assert plan.privacy is privacy
            assert repr(built) == repr(structure)


def test_the_noise_is_the_same_at_every_step() -> None:
    count = fg.ContinualCounter(horizon=20, privacy=fg.Zcdp(0.5))
    stated = set()
    for step in range(1, 21):
        count.advance(to=step)
        stated.add(count.noise_std())
    assert len(stated) == 1


def test_what_is_refused_to_a_structure_is_refused_to_its_plan() -> None:
    bad: Any
    for bad in [
        {"horizon": 0},
        {"contributions": 0},
        {"mechanism": "blt"},
        {"insecure_seed": -1},
        {"privacy": fg.Zcdp(1e300)},
    ]:
        given: dict[str, Any] = {"horizon": 8, "privacy": fg.Zcdp(0.5), **bad}
        messages = []
        for make in [fg.ContinualCounter, fg.ContinualCounter.plan]:
            with pytest.raises(ValueError) as refusal:
                make(**given)
            messages.append(str(refusal.value))
        assert messages[0] == messages[1]


def test_each_build_is_a_new_structure_with_noise_of_its_own() -> None:
    plan = fg.ContinualVector.plan(20, horizon=8, privacy=fg.Zcdp(0.001))
    one: Any
    other: Any
    for one, other in itertools.combinations([plan.build() for _ in range(5)], 2):
        assert not np.array_equal(one.release(), other.release())
    built: Any = fg.ContinualVector.plan(3, horizon=8, privacy=fg.Zcdp(1e6)).build()
    built.update(1)
    assert whole(built.release()).tolist() == [0, 1, 0]


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("horizon", [1, 1000])
def test_errors_are_covered_as_often_as_stated(confidence: float, horizon: int) -> None:
    # 2 * 10^5 cells, binomial test at alpha 1e-6 (4.9 sd) beside the half lattice step on either side: at 0.95 that is
    # 0.25 % and at most 0.2 %. Rejects a scale that is 5 % off (1.1 %), a one-sided quantile and a missing square root.
    given: dict[str, Any] = {"horizon": horizon, "privacy": fg.Zcdp(0.5), "insecure_seed": 9}
    plan = fg.ContinualVector.plan(200_000, **given)
    cells = fg.ContinualVector(200_000, **given)
    cells.advance(to=(horizon + 1) // 2)
    bound = plan.error(confidence)
    covered = float(np.mean(np.abs(cells.release()) <= bound))
    half, sd = plan.lattice_step / 2 / plan.noise_std, math.sqrt(confidence * (1 - confidence) / 200_000)
    z = stats.norm.ppf(0.5 + confidence / 2)
    assert bound == pytest.approx(z * plan.noise_std, rel=1e-9)
    low, high = 2 * stats.norm.cdf(z - half) - 1, 2 * stats.norm.cdf(z + half) - 1
    assert low - 4.9 * sd < covered < high + 4.9 * sd


def test_many_releases_stay_within_the_error_together() -> None:
    # 5 * 10^4 cells as repetitions, 16 releases each, binomial test at alpha 1e-6: rejects the error of one release
    # (0.95^16 or so are covered). The union bound is no sharper than that.
    given: dict[str, Any] = {"horizon": 16, "privacy": fg.Zcdp(0.5), "insecure_seed": 10}
    plan = fg.ContinualVector.plan(50_000, **given)
    cells = fg.ContinualVector(50_000, **given)
    worst = np.zeros(50_000)
    for step in range(1, 17):
        cells.advance(to=step)
        worst = np.maximum(worst, np.abs(cells.release()))
    covered = float(np.mean(worst <= plan.error(0.95, releases=16)))
    assert covered > 0.95 - 4.9 * math.sqrt(0.95 * 0.05 / 50_000)
    assert np.mean(worst <= plan.error(0.95)) < 0.8


def test_error_is_the_union_bound_with_the_defaults_of_its_signature() -> None:
    plan = fg.ContinualCounter.plan(horizon=8, privacy=fg.Zcdp(0.5))
    assert plan.error() == plan.error(0.95) == plan.error(0.95, 1) == plan.error(confidence=0.95, releases=1)
    assert plan.error(0.95, 5) == pytest.approx(plan.error(0.99, 1), rel=1e-9)
    errors = [plan.error(0.95, 10**exponent) for exponent in range(19)]
    assert errors == sorted(errors)
    assert errors[-1] < 11 * plan.noise_std


def heavy_reads(structure: Any, whole_vector: bool, generator: np.random.Generator) -> int:
    """The most memory during reads at many steps, dense and sparse in time, of all cells or of any."""
    most = int(structure.memory)
    horizon = structure.horizon
    steps = {1, horizon, *(min(horizon, 1 + 2**k) for k in range(62)), *(min(horizon, 2**k) for k in range(62))}
    steps |= {int(step) for step in generator.integers(1, horizon, size=100, endpoint=True)}
    steps |= {step for step in range(max(1, horizon - 20), horizon + 1)}
    for step in sorted(steps):
        structure.advance(to=step)
        if whole_vector:
            structure.release()
        else:
            structure.release(np.flatnonzero(generator.random(structure.size) < generator.choice([0.01, 0.3, 0.9])))
        most = max(most, int(structure.memory))
    return most


@pytest.mark.parametrize("size", [1, 10, 1000, 50_000])
@pytest.mark.parametrize("horizon", [1, 8, 2**20, 2**62])
def test_memory_stays_within_the_plan(size: int, horizon: int) -> None:
    plan = fg.ContinualVector.plan(size, horizon=horizon, privacy=fg.Zcdp(0.5))
    generator = np.random.default_rng(12)
    assert heavy_reads(plan.build(), True, generator) <= plan.memory
    assert heavy_reads(plan.build(), False, generator) <= plan.memory_one_by_one
    assert plan.memory_at_start <= plan.memory <= plan.memory_one_by_one


def test_memory_at_start_is_that_of_a_new_structure() -> None:
    for size in [1, 1000, 10**6]:
        plan = fg.ContinualVector.plan(size, horizon=2**20, privacy=fg.Zcdp(0.5))
        built: Any = plan.build()
        assert built.memory == pytest.approx(plan.memory_at_start, abs=2000)


def test_a_plan_of_any_size_costs_nothing() -> None:
    plan = fg.ContinualVector.plan(2**60, horizon=2**62, privacy=fg.Zcdp(0.5))
    assert plan.memory >= plan.memory_at_start >= 2**63
    with pytest.raises(ValueError, match="fits in memory"):
        plan.build()


def test_repr_shows_the_parameters_and_the_noise() -> None:
    plan = fg.ContinualCounter.plan(horizon=8, privacy=fg.Zcdp(0.5), max_weight=3)
    shown = repr(plan)
    for part in ["ContinualCounter(max_weight=3, horizon=8", "Zcdp(rho=0.5)", f"{plan.noise_std:.6f}"]:
        assert part in shown


def test_the_papers_formula_costs_what_the_readme_says() -> None:
    def ratio(horizon: int) -> float:
        plans = [
            fg.ContinualCounter.plan(horizon=horizon, privacy=fg.Zcdp(0.5), mechanism=mechanism)
            for mechanism in ("tree", "tree-paper")
        ]
        return (plans[1].noise_std / plans[0].noise_std) ** 2

    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"{ratio(8_760):.1f} times the variance at a year of hours" in readme
    assert f"{ratio(2**62):.1f} times" in readme
