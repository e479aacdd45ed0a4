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
from helpers import raised_by
from hypothesis import given as given_by
from hypothesis import settings
from hypothesis import strategies as st
from scipy import special

import fastgame as fg

GAUSSIAN = [fg.Zcdp(rho=0.5), fg.Gdp(mu=0.25), fg.ApproxDp(epsilon=1.0, delta=1e-6)]
BUDGETS = [*GAUSSIAN, fg.PureDp(epsilon=0.75)]


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


def test_without_a_delta_the_pure_budget_is_named() -> None:
    for zero in (0, 0.0, -0.0):
        with pytest.raises(ValueError, match=r"delta must be .* \(for delta = 0 there is PureDp\); -?0\.0 was given"):
            fg.ApproxDp(epsilon=1, delta=zero)


@pytest.mark.parametrize("given", [None, "1", 0.5, [fg.Zcdp(1.0)]])
def test_what_is_no_budget_is_named_by_its_plain_type(given: Any) -> None:
    name = type(given).__name__
    with pytest.raises(TypeError, match=f"privacy must be a budget: .*; {name} was given"):
        fg.ContinualCounter(horizon=2, privacy=given)
    with pytest.raises(TypeError, match=f"total takes budgets and structures; {name} was given"):
        fg.total(given)


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
            if isinstance(one, fg.PureDp) and isinstance(other, fg.PureDp):
                assert both == fg.total(one, other) == fg.PureDp(1.5)
                continue
            assert isinstance(both, fg.Zcdp)
            assert both.rho == pytest.approx(one.rho + other.rho, rel=1e-12)
            assert fg.total(one, other) == both


def test_a_thousand_tenths_are_no_less_than_a_hundred() -> None:
    assert fg.total(*[fg.PureDp(0.1)] * 1000).epsilon(0) == math.nextafter(100, math.inf)
    assert fg.total(*[fg.Zcdp(0.1)] * 10).rho == math.nextafter(1, math.inf)
    assert sum([fg.PureDp(0.1)] * 999, fg.PureDp(0.1)).epsilon(0) >= 100


LOSSES = st.floats(1e-100, 0.5) | st.floats(0.01, 10).map(lambda loss: round(loss, 2))


@settings(max_examples=300, deadline=None, derandomize=True)
@given_by(st.lists(LOSSES, min_size=1, max_size=60))
def test_sums_are_the_exact_ones_rounded_up(losses: list[float]) -> None:
    # Rejects sums to nearest, and sums that are rounded up at each term.
    for kind in (fg.Zcdp, fg.PureDp):
        budgets: list[Any] = [kind(loss) for loss in losses]
        for terms, found in [(losses, fg.total(*budgets)), (losses[-2:], sum(budgets[-2:-1], budgets[-1]))]:
            value = found.rho if kind is fg.Zcdp else found.target_epsilon
            assert Fraction(value) >= sum(map(Fraction, terms)) > Fraction(math.nextafter(value, 0))


@settings(max_examples=100, deadline=None, derandomize=True)
@given_by(st.lists(st.tuples(st.sampled_from([fg.Zcdp, fg.Gdp, fg.PureDp]), LOSSES), min_size=2, max_size=20))
def test_mixed_sums_are_those_of_their_rho_rounded_up(items: list[tuple[Any, float]]) -> None:
    budgets = [fg.Zcdp(1.0), *(kind(loss) for kind, loss in items)]
    exact = sum(Fraction(budget.rho) for budget in budgets)
    found = fg.total(*budgets).rho
    assert Fraction(found) >= exact > Fraction(math.nextafter(found, 0))


def test_a_total_of_different_units_needs_the_unit_that_all_protect() -> None:
    row = fg.ContinualCounter(horizon=4, privacy=fg.Zcdp(0.25))
    other = fg.ContinualVector(3, horizon=4, privacy=fg.Zcdp(0.5))
    ten = fg.RangeCounter(shape=4, horizon=4, privacy=fg.Zcdp(0.25), contributions=10)
    life = fg.JoinSize(width=32, horizon=4, privacy=fg.Zcdp(0.25), protect="lifetime")
    lives = fg.CountSketch(width=16, horizon=4, privacy=fg.Zcdp(0.25), protect="lifetime", contributions=10)
    budget = fg.Zcdp(1.0)
    assert fg.total(row, other, budget) == fg.Zcdp(1.75)
    assert fg.total(ten, budget, ten) == fg.Zcdp(1.5)
    for given, words in [
        ((row, ten), "a ContinualCounter protects a row; a RangeCounter protects 10 rows)"),
        ((row, budget, life), "a ContinualCounter protects a row; a JoinSize protects a row, its deletion included)"),
        (
            (budget, ten, row, lives),
            "a RangeCounter protects 10 rows; a ContinualCounter protects a row; a CountSketch protects 10 rows, "
            "their deletions included)",
        ),
    ]:
        with pytest.raises(fg.IncompatibleError, match="different ones") as error:
            fg.total(*given)
        assert words in str(error.value) and "unit=" in str(error.value)
        named = fg.total(*given, unit="a visitor: at most 10 visits and 2 orders")
        assert named.rho == sum(item.rho if isinstance(item, fg.Budget) else item.privacy.rho for item in given)
    assert fg.total(row, unit="a row") == fg.total(row) and fg.total(budget, unit="a row") == budget
    assert fg.total(row, ten, unit="a person") == fg.Zcdp(0.5)


@pytest.mark.parametrize("given", ["", "  ", 3, b"a row", ["a row"]])
def test_a_unit_is_text_that_says_something(given: Any) -> None:
    row = fg.ContinualCounter(horizon=4, privacy=fg.Zcdp(0.25))
    for item in (row, row.privacy):
        with pytest.raises(ValueError if isinstance(given, str) else TypeError, match=r"unit must .* given"):
            fg.total(item, unit=given)


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


@pytest.mark.parametrize(
    "budget", [*BUDGETS, fg.Zcdp(1 / 3), fg.Gdp(1e-100), fg.PureDp(1 / 3), fg.PureDp(700), fg.PureDp(1e-100)], ids=repr
)
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
    ("delta", lambda value: fg.PureDp(1.0).epsilon(value)),
    ("epsilon", lambda value: fg.PureDp(1.0).delta(value)),
    ("part", lambda value: fg.PureDp(1.0).split(0.5, value)),
    ("epsilon", fg.PureDp),
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


def allows_zero(make: Callable[[Any], object]) -> bool:
    """An epsilon of 0, but not of a budget that is nothing else; a delta of 0, of a pure budget."""
    return raised_by(lambda: make(0.0)) is None


def test_zero_is_allowed_where_it_means_something() -> None:
    assert [name for name, make in CONSTRUCTORS if allows_zero(make)] == ["epsilon", "delta", "epsilon", "epsilon"]
    assert fg.PureDp(2.0).epsilon(0) == fg.PureDp(2.0).epsilon(-0.0) == 2.0


@pytest.mark.parametrize("name, make", [pair for pair in CONSTRUCTORS if not allows_zero(pair[1])])
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


@pytest.mark.parametrize("make", [fg.Zcdp, fg.Gdp, fg.ApproxDp, fg.PureDp])
def test_parameters_that_are_missing_or_unknown_are_named(make: Any) -> None:
    with pytest.raises(TypeError, match="missing"):
        make()
    with pytest.raises(TypeError, match="sigma"):
        make(*[0.5] * (2 if issubclass(make, fg.ApproxDp) else 1), sigma=2)


def test_the_base_class_is_not_made() -> None:
    with pytest.raises(TypeError):
        fg.Budget()


# Pure budgets: the curve of randomised response, which every mechanism of that epsilon is within.

EPSILONS = [1e-100, 1e-12, 1e-3, 0.1, 0.5, 1.0, 2.0, 5.0, 20.0, 36.0, 50.0, 300.0, 700.0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_pure_budget_has_the_curve_of_randomised_response(epsilon: float) -> None:
    budget = fg.PureDp(epsilon)
    assert budget.target_epsilon == budget.epsilon(0) == epsilon
    for part in [0.0, 1e-3, 0.5, 0.999, 1.0, 2.0]:
        at = part * epsilon
        # (e^epsilon - e^at) / (e^epsilon + 1).
        exact = -math.expm1(at - epsilon) / (1 + math.exp(-epsilon)) if at < epsilon else 0.0
        assert budget.delta(at) == pytest.approx(exact, rel=1e-9, abs=0)
    for delta in [1e-300, 1e-12, 1e-6, 0.1, 0.5, 0.99]:
        exact = epsilon + math.log1p(-delta * (1 + math.exp(-epsilon))) if delta < math.tanh(epsilon / 2) else 0.0
        assert budget.epsilon(delta) == pytest.approx(exact, rel=1e-9, abs=1e-15)
    assert budget.delta(0) == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_pure_budget_is_covered_by_the_gaussian_one_that_it_names(epsilon: float) -> None:
    pure = fg.PureDp(epsilon)
    assert pure.rho == pytest.approx(pure.mu**2 / 2, rel=1e-12)
    if epsilon < 30:
        assert special.erf(pure.mu / math.sqrt(8)) == pytest.approx(math.tanh(epsilon / 2), rel=1e-12)
    # The complement, where the error function is 1: erfc(mu / sqrt 8) = 2 / (1 + e^epsilon).
    exact = math.log(2) - np.logaddexp(0.0, epsilon)
    tail = math.log(2) + special.log_ndtr(-pure.mu / 2)
    assert tail == pytest.approx(exact, rel=1e-9)
    # Nothing that the pure budget allows is more than the Gaussian allows, at any epsilon; and half a percent less mu
    # would not do.
    covering, less = fg.Gdp(pure.mu), fg.Gdp(pure.mu * 0.995)
    curve = [part * epsilon for part in (0.0, 0.01, 0.3, 0.5, 0.9, 0.99, 0.999)]
    assert all(pure.delta(at) <= covering.delta(at) * (1 + 1e-9) for at in curve)
    if epsilon < 30:
        assert any(pure.delta(at) > less.delta(at) for at in curve)


def test_pure_budgets_add_up_by_epsilon_and_others_by_rho() -> None:
    one, other, gaussian = fg.PureDp(0.5), fg.PureDp(1.5), fg.Gdp(1.0)
    assert one + other == other + one == fg.total(one, other) == fg.PureDp(2.0)
    assert fg.total(one) == one and fg.total(one, one, other) == fg.PureDp(2.5)
    for both in (one + gaussian, gaussian + one, fg.total(gaussian, one)):
        assert type(both) is fg.Zcdp
        assert both.rho == pytest.approx(one.rho + 0.5, rel=1e-12)
    mixed = fg.total(one, other, gaussian)
    assert type(mixed) is fg.Zcdp and mixed.rho == pytest.approx(one.rho + other.rho + 0.5, rel=1e-12)
    counter = fg.ContinualCounter(horizon=4, privacy=one)
    sketch = fg.CountSketch(width=16, horizon=4, privacy=other, hash_seed=1)
    blt = fg.ContinualCounter(horizon=4, privacy=gaussian, mechanism="blt")
    assert fg.total(counter, sketch, one) == fg.PureDp(2.5)
    assert fg.total(counter, blt) == one + gaussian
    # Together more than a pure budget may be, and as a Gaussian one no more than that.
    with pytest.raises(ValueError, match=r"epsilon must be .*700.*; 800.0 was given"):
        fg.PureDp(400) + fg.PureDp(400)
    assert fg.total(fg.PureDp(400), fg.PureDp(400), fg.Zcdp(1)).rho > 2 * fg.PureDp(400).rho


def test_parts_of_a_pure_budget_are_pure_and_no_more_than_the_whole() -> None:
    assert fg.PureDp(2.0).split(0.25, 0.75) == (fg.PureDp(0.5), fg.PureDp(1.5))
    generator = np.random.default_rng(12)
    for _ in range(300):
        parts = generator.dirichlet(np.ones(generator.integers(1, 12))) + 1e-12
        epsilon = float(10.0 ** generator.uniform(-9, 2.8))
        shares = fg.PureDp(epsilon).split(*(parts / parts.sum()))
        assert all(type(share) is fg.PureDp for share in shares)
        assert math.fsum(share.target_epsilon for share in shares) <= epsilon
    assert len(fg.PureDp(1.0).split(*[0.1] * 10)) == 10
    with pytest.raises(ValueError, match=r"parts must be .* at most 1; 1\.1 was given"):
        fg.PureDp(1.0).split(0.5, 0.6)
    with pytest.raises(ValueError, match=r"parts must be large enough"):
        fg.PureDp(1e-100).split(0.5)


def test_pure_budgets_are_equal_by_epsilon_alone() -> None:
    assert fg.PureDp(0.5) == fg.PureDp(epsilon=np.float32(0.5)) != fg.PureDp(0.25)
    assert fg.PureDp(0.5) != fg.Gdp(fg.PureDp(0.5).mu)
    assert fg.PureDp(0.5) not in [fg.Zcdp(0.5), fg.Gdp(0.5), 0.5]
    assert len({fg.PureDp(0.5), fg.PureDp(0.5), fg.Zcdp(0.5), fg.Gdp(0.5)}) == 3
    assert repr(fg.PureDp(0.5)) == "PureDp(epsilon=0.5)"
    budget: Any = fg.PureDp(0.5)
    for name in ["epsilon", "delta", "rho", "target_epsilon", "target_delta"]:
        with pytest.raises(AttributeError):
            setattr(budget, name, 1.0)
    assert not hasattr(budget, "target_delta")


@pytest.mark.parametrize("epsilon", [0, -1, 1e-101, math.nextafter(700, 701), 1e300, math.nan, math.inf])
def test_a_pure_epsilon_out_of_range_is_refused(epsilon: float) -> None:
    with pytest.raises(ValueError, match=r"epsilon must be positive \(from 1e-100 to 700\) .* was given"):
        fg.PureDp(epsilon)


def test_under_a_pure_budget_the_bound_of_a_vector_is_of_absolute_values() -> None:
    given: dict[str, Any] = {"horizon": 4, "max_norm": 1.0}
    for privacy, refused in [(fg.Zcdp(0.5), [0.8, 0.8]), (fg.PureDp(1.0), [0.6, 0.6])]:
        cells = fg.ContinualVector(3, privacy=privacy, **given)
        cells.update_row([0, 2], [0.5, -0.5])
        cells.update([1], [-1.0])
        with pytest.raises(ValueError, match="norm"):
            cells.update_row([0, 1], refused)
        with pytest.raises(ValueError, match=r"1"):
            cells.update_rows([[0.5, 0.25, 0.25], [*refused, 0.0]])
        dropping = fg.ContinualVector(3, privacy=privacy, invalid="drop", **given)
        dropping.update_rows([[0.5, 0.25, 0.25], [*refused, 0.0]])
        assert dropping.dropped == 1
    fg.ContinualVector(3, privacy=fg.Zcdp(0.5), **given).update_row([0, 1], [0.6, 0.6])
    # Twice an index is once the sum: within the bound where it cancels.
    fg.ContinualVector(3, privacy=fg.PureDp(1.0), **given).update_row([0, 0], [0.75, -0.5])


@pytest.mark.parametrize("values", [[0.6, 0.6], [3.0, -1.0], [1e9, 1e9], [1.0, 1e-9], [1e-3, -5.0], [0.25, 0.25]])
def test_clipping_under_a_pure_budget_scales_the_sum_of_absolute_values_down(values: list[float]) -> None:
    # At epsilon 700 and horizon 1 noise is b = 1/700; a value is found to 0.02, 14 b (probability below 1e-5 each).
    cells = fg.ContinualVector(2, horizon=1, privacy=fg.PureDp(700), on_excess="clip", max_norm=1.0, insecure_seed=1)
    cells.update_row([0, 1], values)
    expected = np.array(values) / max(1.0, np.abs(values).sum())
    assert cells.release() == pytest.approx(expected, abs=0.02)


def test_clipping_never_leaves_more_than_the_bound() -> None:
    # 1000 updates of random direction, all clipped to an L1 norm of 1 and added in one direction by their signs: what
    # is left is at most 1 each, and 0.999 at least.
    generator = np.random.default_rng(3)
    cells = fg.ContinualVector(8, horizon=1, privacy=fg.PureDp(700), on_excess="clip", insecure_seed=1)
    cells.update_rows(np.abs(generator.standard_cauchy((1000, 8))) + 1)
    assert 999 < cells.release().sum() < 1000 + 8 * 0.02
