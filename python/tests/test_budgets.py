"""Budgets: values, exact conversions, splitting and adding up."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import special

import fastgame as fg

BUDGETS = [fg.Zcdp(rho=0.5), fg.Gdp(mu=0.25), fg.ApproxDp(epsilon=1.0, delta=1e-6)]


def test_the_kinds_agree_on_what_they_mean() -> None:
    assert fg.Zcdp(rho=0.5).rho == 0.5
    assert fg.Zcdp(rho=0.5).mu == pytest.approx(1.0, rel=1e-15)
    assert fg.Gdp(mu=3.0).mu == 3.0
    assert fg.Gdp(mu=3.0).rho == pytest.approx(4.5, rel=1e-15)
    approximate = fg.ApproxDp(epsilon=2.0, delta=1e-5)
    assert approximate.target_epsilon == 2.0
    assert approximate.target_delta == 1e-5
    assert approximate.rho == pytest.approx(approximate.mu**2 / 2, rel=1e-12)


@pytest.mark.parametrize("rho, epsilon", [(0.01, 0.575055), (0.1, 1.994527), (0.5, 4.886554), (1.0, 7.286081)])
def test_epsilon_is_the_golden_value(rho: float, epsilon: float) -> None:
    assert fg.Zcdp(rho).epsilon(delta=1e-6) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0, 12.0])
def test_delta_is_the_exact_curve_of_the_gaussian_mechanism(mu: float, epsilon: float) -> None:
    first = special.log_ndtr(mu / 2 - epsilon / mu)
    second = epsilon + special.log_ndtr(-mu / 2 - epsilon / mu)
    exact = math.exp(first) * -math.expm1(second - first)
    assert fg.Gdp(mu).delta(epsilon) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("rho", [1e-12, 1e-8, 1e-4, 0.01, 0.5, 1.0, 10.0, 1e3, 1e6])
@pytest.mark.parametrize("delta", [1e-300, 1e-100, 1e-30, 1e-12, 1e-6, 1e-3, 0.1, 0.5])
def test_epsilon_and_delta_are_each_others_inverse(rho: float, delta: float) -> None:
    budget = fg.Zcdp(rho)
    epsilon = budget.epsilon(delta)
    assert 0.0 <= epsilon < math.inf
    if epsilon == 0.0:
        assert budget.delta(0.0) <= delta * (1 + 1e-9)
    else:
        assert budget.delta(epsilon) == pytest.approx(delta, rel=1e-6)
        assert budget.epsilon(budget.delta(epsilon)) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 1e-6, 0.01, 1.0, 10.0, 100.0])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-6, 0.01, 0.5])
def test_an_approximate_budget_passes_through_its_point(epsilon: float, delta: float) -> None:
    if epsilon == 0.0 and delta == 1e-300:
        with pytest.raises(ValueError, match=r"delta must be larger, .*; 1e-300 was given"):
            fg.ApproxDp(epsilon=epsilon, delta=delta)
        return
    budget = fg.ApproxDp(epsilon=epsilon, delta=delta)
    assert budget.delta(epsilon) == pytest.approx(delta, rel=1e-6)
    assert budget.delta(epsilon) <= delta * (1 + 1e-9)
    assert budget.epsilon(delta) == pytest.approx(epsilon, rel=1e-9, abs=1e-12)


def test_epsilon_falls_with_delta_and_grows_with_rho() -> None:
    deltas = np.logspace(-12, -1, 40)
    falling = [fg.Zcdp(0.5).epsilon(delta) for delta in deltas]
    assert falling == sorted(falling, reverse=True)
    growing = [fg.Zcdp(rho).epsilon(1e-6) for rho in np.logspace(-6, 3, 40)]
    assert growing == sorted(growing)


def test_the_exact_epsilon_is_below_the_textbook_bound() -> None:
    for rho in [0.01, 0.1, 1.0, 5.0]:
        assert fg.Zcdp(rho).epsilon(1e-6) < rho + 2 * math.sqrt(rho * math.log(1e6))


def test_split_gives_each_part_its_fraction() -> None:
    first, second, third = fg.Zcdp(2.0).split(0.25, 0.25, 0.5)
    assert [first, second, third] == [fg.Zcdp(0.5), fg.Zcdp(0.5), fg.Zcdp(1.0)]
    assert fg.Gdp(2.0).split(1) == (fg.Zcdp(2.0),)
    assert [part.rho for part in fg.Zcdp(1.0).split(0.1, 0.2)] == pytest.approx([0.1, 0.2])


def test_split_parts_never_cost_more_than_the_whole() -> None:
    generator = np.random.default_rng(11)
    for _ in range(300):
        parts = generator.dirichlet(np.ones(generator.integers(1, 12))) + 1e-12
        rho = float(10.0 ** generator.uniform(-9, 6))
        shares = fg.Zcdp(rho).split(*(parts / parts.sum()))
        assert math.fsum(share.rho for share in shares) <= rho


def test_ten_tenths_are_accepted_although_they_do_not_sum_to_one_in_floats() -> None:
    assert len(fg.Zcdp(1.0).split(*[0.1] * 10)) == 10


def test_budgets_of_every_kind_add_up_to_the_sum_of_rho() -> None:
    for one in BUDGETS:
        for other in BUDGETS:
            both = one + other
            assert isinstance(both, fg.Zcdp)
            assert both.rho == pytest.approx(one.rho + other.rho, rel=1e-12)
            assert fg.total(one, other) == both


def test_total_takes_budgets_and_structures() -> None:
    counter = fg.ContinualCounter(horizon=4, privacy=fg.Zcdp(0.25))
    vector = fg.ContinualVector(3, horizon=4, privacy=fg.Gdp(1.0))
    assert fg.total(fg.Zcdp(0.25), counter, vector) == fg.Zcdp(1.0)
    assert fg.total(counter) == fg.Zcdp(0.25)


@pytest.mark.parametrize("arguments", [(), ([fg.Zcdp(1.0)],), (1.0,), (fg.Zcdp,), (None,), (fg.Zcdp(1.0), "0.5")])
def test_total_refuses_everything_else(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"total takes .*given"):
        fg.total(*arguments)


def test_adding_something_else_is_a_type_error() -> None:
    other: Any
    for other in [1, 0.5, None, "Zcdp"]:
        with pytest.raises(TypeError):
            fg.Zcdp(1.0) + other
        with pytest.raises(TypeError):
            other + fg.Zcdp(1.0)


def test_budgets_are_equal_by_kind_and_parameters() -> None:
    assert fg.Zcdp(0.5) == fg.Zcdp(rho=0.5)
    assert fg.Zcdp(0.5) != fg.Zcdp(0.25)
    # The same promise in other words is another value, as 1 km and 1000 m would be.
    assert fg.Zcdp(0.5) != fg.Gdp(1.0)
    assert fg.ApproxDp(1.0, 1e-6) != fg.ApproxDp(1.0, 1e-5)
    assert fg.Zcdp(0.5) != 0.5
    assert len({fg.Zcdp(0.5), fg.Zcdp(0.5), fg.Gdp(1.0), fg.Gdp(1.0)}) == 2


def test_equal_budgets_have_equal_hashes() -> None:
    assert hash(fg.Zcdp(0.5)) == hash(fg.Zcdp(np.float32(0.5)))
    assert fg.ApproxDp(-0.0, 1e-6) == fg.ApproxDp(0.0, 1e-6)
    assert hash(fg.ApproxDp(-0.0, 1e-6)) == hash(fg.ApproxDp(0.0, 1e-6))


@pytest.mark.parametrize("budget", BUDGETS, ids=repr)
def test_copies_and_pickles_are_equal_values(budget: fg.Budget) -> None:
    copies = [copy.copy(budget), copy.deepcopy([budget])[0]]
    copies += [pickle.loads(pickle.dumps(budget, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for other in copies:
        assert type(other) is type(budget)
        assert other == budget
        assert hash(other) == hash(budget)
        assert (other.rho, other.mu) == (budget.rho, budget.mu)


@pytest.mark.parametrize("budget", [*BUDGETS, fg.Zcdp(1 / 3), fg.Gdp(1e-100)], ids=repr)
def test_repr_evaluates_to_an_equal_budget(budget: fg.Budget) -> None:
    assert eval(repr(budget), vars(fg).copy()) == budget


def test_a_budget_cannot_be_changed() -> None:
    budget: Any = fg.Zcdp(0.5)
    for name in ["rho", "mu", "anything"]:
        with pytest.raises(AttributeError):
            setattr(budget, name, 7.0)
    assert budget.rho == 0.5


@pytest.mark.parametrize("number", [Decimal("0.5"), Fraction(1, 2), np.float16(0.5), np.array(0.5), np.longdouble(0.5)])
def test_any_real_number_is_a_parameter(number: Any) -> None:
    assert fg.Zcdp(number) == fg.Zcdp(0.5)


CONSTRUCTORS: list[tuple[str, Callable[[Any], object]]] = [
    ("rho", fg.Zcdp),
    ("mu", fg.Gdp),
    ("epsilon", lambda value: fg.ApproxDp(value, 1e-6)),
    ("delta", lambda value: fg.ApproxDp(1.0, value)),
    ("delta", lambda value: fg.Zcdp(1.0).epsilon(value)),
    ("epsilon", lambda value: fg.Zcdp(1.0).delta(value)),
    ("part", lambda value: fg.Zcdp(1.0).split(0.5, value)),
]


@pytest.mark.parametrize("name, make", CONSTRUCTORS)
@pytest.mark.parametrize("value", [-1, -1e-300, math.nan, math.inf, -math.inf, 10**400])
def test_a_number_that_is_no_loss_is_refused_with_what_is_allowed(
    name: str, make: Callable[[Any], object], value: float
) -> None:
    with pytest.raises(ValueError, match=rf"{name}s? must be .+; .+ was given"):
        make(value)


@pytest.mark.parametrize("name, make", [pair for pair in CONSTRUCTORS if pair[0] != "epsilon"])
def test_zero_is_refused(name: str, make: Callable[[Any], object]) -> None:
    with pytest.raises(ValueError, match=rf"{name}s? must be .+; 0.0 was given"):
        make(0)


@pytest.mark.parametrize("name, make", CONSTRUCTORS)
@pytest.mark.parametrize(
    "value", ["0.5", None, True, np.True_, 1j, [0.5], (0.5,), {}, b"0.5", fg.Zcdp(1.0), np.array("1")]
)
def test_what_is_no_number_is_refused_with_its_type(name: str, make: Callable[[Any], object], value: object) -> None:
    with pytest.raises(TypeError, match=rf"{name} must be a number; \w+ was given"):
        make(value)


def test_parts_over_one_or_none_at_all_are_refused() -> None:
    with pytest.raises(ValueError, match=r"parts must be .* at most 1; 1\.1 was given"):
        fg.Zcdp(1.0).split(0.5, 0.6)
    with pytest.raises(ValueError, match=r"parts must be one number or more"):
        fg.Zcdp(1.0).split()


@pytest.mark.parametrize("make", [fg.Zcdp, fg.Gdp, fg.ApproxDp])
def test_parameters_that_are_missing_or_unknown_are_named(make: Any) -> None:
    with pytest.raises(TypeError, match="missing"):
        make()
    with pytest.raises(TypeError, match="sigma"):
        make(*[0.5] * (2 if issubclass(make, fg.ApproxDp) else 1), sigma=2)


def test_the_base_class_is_not_made() -> None:
    with pytest.raises(TypeError):
        fg.Budget()
