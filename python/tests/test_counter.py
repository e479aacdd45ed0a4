"""The counter against an exact model, its clock and seal, and the statistics of its noise."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from helpers import assert_variance, counter, tiny_noise, whole
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from scipy import stats

import fastgame as fg

# docs/proof-tree-calibration.md: squared sensitivity of the tree at h = ceil(log2 T), in units of the node variance.
TAU = {0: 1.0, 1: 0.6666666667, 2: 0.9047619048, 3: 1.0095238095, 10: 1.7907827955, 20: 2.9019321698, 62: 7.5685988739}
TAU_LIFETIME = {0: 1.0, 1: 0.6666666667, 2: 1.1428571429, 3: 1.4666666667, 10: 3.0533940446, 62: 14.6094199701}


def test_releases_follow_inserts_and_deletes() -> None:
    count = counter(max_weight=5)
    count.update()
    count.update(1)
    count.update([1, -1, 5, -3])
    count.update(np.array([[2, -4], [0, 5]]))
    assert whole(count.release()) == 7
    count.advance()
    count.update(-5)
    assert whole(count.release()) == 2


def test_a_release_is_a_python_float_on_the_lattice() -> None:
    for seed in range(50):
        count = fg.ContinualCounter(horizon=8, privacy=fg.Zcdp(0.3), insecure_seed=seed)
        count.update(seed % 2)
        released = count.release()
        assert type(released) is float
        assert released % count.lattice_step == 0.0
        assert math.frexp(count.lattice_step)[0] == 0.5, "a power of two"


def test_a_year_of_random_weights_is_followed_exactly() -> None:
    generator = np.random.default_rng(1)
    count = counter(horizon=400, max_weight=9)
    exact = 0
    for _ in range(399):
        for _ in range(generator.integers(0, 3)):
            weights = generator.integers(-9, 10, size=generator.integers(0, 20))
            count.update(weights)
            exact += int(weights.sum())
        if generator.random() < 0.5:
            assert whole(count.release()) == exact
            assert count.sealed
        count.advance()
        assert not count.sealed


def test_a_sealed_step_repeats_its_answer() -> None:
    count = fg.ContinualCounter(horizon=8, privacy=fg.Zcdp(0.01))
    answers = {count.release() for _ in range(20)}
    count.advance(to=count.now)
    answers.add(count.release())
    assert len(answers) == 1


def test_an_update_at_a_sealed_step_is_refused_and_changes_nothing() -> None:
    count = counter()
    count.update(1)
    before = count.release()
    weights: Any
    for weights in [1, [1, 1], [], 0]:
        with pytest.raises(fg.SealedStepError, match=r"step 1 .* sealed; advance the clock"):
            count.update(weights)
    assert count.release() == before
    count.advance()
    assert whole(count.release()) == 1


def test_the_clock_moves_forward_to_the_horizon_and_no_further() -> None:
    count = counter(horizon=8)
    assert (count.now, count.horizon) == (1, 8)
    count.advance()
    count.advance(to=2)
    count.advance(to=7)
    with pytest.raises(fg.HorizonError, match=r"step 6.*now is 7.*horizon is 8"):
        count.advance(to=6)
    with pytest.raises(fg.HorizonError, match=r"step 9.*now is 7.*horizon is 8"):
        count.advance(to=9)
    count.advance()
    for to in [None, 9, 2**63, 2**64, 2**100]:
        with pytest.raises(fg.HorizonError):
            count.advance(to=to)
    assert count.now == 8
    count.update(1)
    assert whole(count.release()) == 1
    with pytest.raises(fg.SealedStepError, match=r"last step of the horizon"):
        count.update(1)


def test_the_longest_horizon_works() -> None:
    count = counter(horizon=2**62)
    for to in [2, 3, 2**31, 2**31 + 1, 2**61, 2**61 + 1, 2**62]:
        count.advance(to=to)
        count.update(1)
    assert whole(count.release()) == 7
    assert count.now == 2**62
    with pytest.raises(fg.HorizonError):
        count.advance()


def test_a_weight_over_the_bound_is_an_error_that_names_it_and_changes_nothing() -> None:
    count = counter(max_weight=3)
    count.update(2)
    with pytest.raises(ValueError, match=r"position 2 .*weight may be at most 3"):
        count.update([3, -3, 4, 1])
    with pytest.raises(ValueError, match=r"position 0"):
        count.update(-4)
    assert whole(count.release()) == 2
    assert count.dropped == 0


def test_drop_leaves_out_the_bad_weights_alone() -> None:
    count = counter(max_weight=3, invalid="drop")
    count.update([3, -3, 4, 1, -100, 2**63, 2**100, -(2**63)])
    count.update(2**64)
    assert count.dropped == 6
    assert whole(count.release()) == 1


def test_clip_scales_weights_down_onto_the_bound() -> None:
    count = counter(max_weight=3, on_excess="clip")
    count.update([5, -4, 2, 2**63, 2**100, -(2**70)])
    assert whole(count.release()) == 3 - 3 + 2 + 3 + 3 - 3
    assert count.dropped == 0


@pytest.mark.parametrize("weight", [1, 2**31 - 1, 2**31])
def test_the_largest_weights_are_exact(weight: int) -> None:
    count = counter(max_weight=weight)
    count.update(np.full(1001, weight))
    count.update(-weight)
    assert whole(count.release()) == 1000 * weight


@pytest.mark.slow
def test_a_count_beyond_64_bits_is_an_overflow_error_and_changes_nothing() -> None:
    count = counter(max_weight=2**31)
    batch = np.full(10**7, 2**31)
    batches = (2**63 - 1) // (10**7 * 2**31)
    for _ in range(batches):
        count.update(batch)
    with pytest.raises(OverflowError, match=r"64-bit range"):
        count.update(batch)
    # The exact count is far beyond the 53 bits of a float; steps of the lattice are too fine to matter.
    assert count.release() == float(batches * 10**7 * 2**31)
    count.advance()
    count.update(-batch)
    assert count.release() == float((batches - 1) * 10**7 * 2**31)


@pytest.mark.parametrize("levels", sorted(TAU))
def test_noise_std_is_the_exact_calibration(levels: int) -> None:
    for rho, weight, contributions in [(0.5, 1, 1), (0.02, 7, 1), (2.0, 3, 5)]:
        count = fg.ContinualCounter(
            horizon=2**levels, privacy=fg.Zcdp(rho), max_weight=weight, contributions=contributions
        )
        expected = weight * contributions * math.sqrt(TAU[levels] * (levels + 1) / (2 * rho))
        assert count.noise_std() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    "horizon, levels", [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (8, 3), (1000, 10), (2**62 - 1, 62)]
)
def test_a_horizon_between_powers_of_two_counts_as_the_next(horizon: int, levels: int) -> None:
    plan = fg.ContinualCounter.plan(horizon=horizon, privacy=fg.Zcdp(0.5))
    assert plan.noise_std == pytest.approx(math.sqrt(TAU[levels] * (levels + 1)), rel=1e-9)


@pytest.mark.parametrize("levels", sorted(TAU_LIFETIME))
def test_lifetime_costs_its_own_exact_factor(levels: int) -> None:
    plan = fg.ContinualCounter.plan(horizon=2**levels, privacy=fg.Zcdp(0.5), protect="lifetime")
    assert plan.noise_std == pytest.approx(math.sqrt(TAU_LIFETIME[levels] * (levels + 1)), rel=1e-9)


@pytest.mark.parametrize("levels", [1, 2, 10, 62])
def test_tree_paper_has_the_papers_variance(levels: int) -> None:
    plan = fg.ContinualCounter.plan(horizon=2**levels, privacy=fg.Zcdp(0.5), mechanism="tree-paper")
    assert plan.noise_std == pytest.approx(math.sqrt((levels + 2) / 4 * (levels + 1)), rel=1e-9)


def test_tree_paper_refuses_a_single_step() -> None:
    with pytest.raises(ValueError, match=r"horizon must be at least 2 .*tree-paper.*; 1 was given"):
        fg.ContinualCounter(horizon=1, privacy=fg.Zcdp(0.5), mechanism="tree-paper")


@pytest.mark.parametrize(
    "parameters",
    [
        {"horizon": 1},
        {"horizon": 1, "contributions": 3},
        {"horizon": 1, "max_weight": 4},
        {"horizon": 8},
        {"horizon": 8, "protect": "lifetime"},
        {"horizon": 1000, "mechanism": "tree-paper"},
    ],
    ids=str,
)
def test_the_variance_of_a_release_is_as_stated(parameters: dict[str, Any]) -> None:
    # 10^5 counters, chi-square at alpha 1e-6 (helpers.assert_variance): rejects a scale that is 3 % off, so also the
    # paper's formula at T = 1 (half the variance) and a missing factor for contributions or lifetime.
    samples = []
    for seed in range(100_000):
        count = fg.ContinualCounter(privacy=fg.Zcdp(0.5), insecure_seed=seed, **parameters)
        samples.append(count.release())
    levels = (parameters["horizon"] - 1).bit_length()
    tau = TAU_LIFETIME if "protect" in parameters else TAU
    factor = (levels + 2) / 4 if "mechanism" in parameters else tau[levels]
    delta = parameters.get("contributions", 1) * parameters.get("max_weight", 1)
    assert_variance(np.array(samples), delta**2 * factor * (levels + 1))


def test_the_noise_of_a_release_is_normal() -> None:
    # 10^5 counters, Kolmogorov-Smirnov at alpha 1e-6 (bound 0.0083): rejects a uniform or Laplace law, a scale that is
    # 5 % off, and a mean that is 3 % of the scale off. The lattice of s/32 moves the distribution function by < 0.004.
    noise = [
        fg.ContinualCounter(horizon=1, privacy=fg.Zcdp(0.5), insecure_seed=seed).release() for seed in range(100_000)
    ]
    rounding = np.random.default_rng(3).uniform(-0.5, 0.5, len(noise)) * 2.0**-5
    assert stats.kstest(np.array(noise) + rounding, "norm").pvalue > 1e-6
    assert stats.kstest(np.array(noise) * 1.05, "norm").pvalue < 1e-6


def test_noise_over_time_has_the_covariance_of_the_tree() -> None:
    # 4 * 10^4 paths over 8 steps. 36 entries, each a z-test at alpha 1e-8 (5.73 sd): rejects fresh noise at each step,
    # one noise for all steps, and a tree shifted by one leaf (entries differ by s^2, that is by 25 sd at least).
    paths = np.empty((40_000, 8))
    for seed, path in enumerate(paths):
        count = fg.ContinualCounter(horizon=8, privacy=fg.Zcdp(0.5), insecure_seed=seed)
        for step in range(8):
            count.advance(to=step + 1)
            path[step] = count.release()
    common = np.array([[3 - (t ^ u).bit_length() for u in range(8)] for t in range(8)])
    expected = (common + 1) * TAU[3]
    measured = paths.T @ paths / len(paths)
    sd = np.sqrt((expected**2 + np.outer(expected.diagonal(), expected.diagonal())) / len(paths))
    assert np.all(np.abs(measured - expected) < 5.73 * sd)


class CounterCalls(RuleBasedStateMachine):
    """Random calls against a few lines of exact arithmetic."""

    BOUND = 4

    @initialize(
        horizon=st.sampled_from([1, 2, 3, 7, 8, 2**20, 2**62]),
        invalid=st.sampled_from(["raise", "drop"]),
        on_excess=st.sampled_from(["error", "clip"]),
    )
    def build(self, horizon: int, invalid: str, on_excess: str) -> None:
        """Starts a counter and its model."""
        self.clip, self.drop = on_excess == "clip", invalid == "drop"
        self.count = counter(horizon, self.BOUND, invalid=invalid, on_excess=on_excess)
        self.horizon, self.now, self.exact, self.dropped = horizon, 1, 0, 0
        self.answer: float | None = None

    def expect(self, weights: list[Any]) -> type[Exception] | None:
        """What an update raises; the model changes if nothing."""
        if self.answer is not None:
            return fg.SealedStepError
        none = [weight for weight in weights if weight is None]
        if none and not self.drop:
            return TypeError
        there = [weight for weight in weights if weight is not None]
        bad = [weight for weight in there if abs(weight) > self.BOUND and not self.clip]
        if bad and not self.drop:
            return ValueError
        self.dropped += len(bad) + len(none)
        good = [weight for weight in there if weight not in bad]
        self.exact += sum(max(-self.BOUND, min(self.BOUND, weight)) for weight in good)
        return None

    @rule(weights=st.lists(st.integers(-6, 6) | st.sampled_from([2**31, -(2**63), 2**64, None]), max_size=6))
    def update(self, weights: list[Any]) -> None:
        """One batch, as a list."""
        if self.answer is not None:
            weights = [0 if weight is None else weight for weight in weights]  # else two things are wrong
        expected = self.expect(weights)
        if expected is None:
            self.count.update(weights)
        else:
            with pytest.raises(expected):
                self.count.update(weights)

    @rule(step=st.integers(-1, 3) | st.sampled_from([2**30, 2**61, 2**62, 2**64]))
    def advance(self, step: int) -> None:
        """A step forward, back, or beyond the end."""
        to = self.now + step
        if self.now <= to <= self.horizon:
            self.count.advance(to=to)
            if to > self.now:
                self.answer = None
            self.now = to
        else:
            with pytest.raises(fg.HorizonError):
                self.count.advance(to=to)

    @rule()
    def release(self) -> None:
        """A release, which repeats itself."""
        answer = self.count.release()
        assert self.answer is None or answer == self.answer
        self.answer = answer
        assert whole(answer) == self.exact

    @precondition(lambda self: self.answer is None)
    @rule(weights=st.sampled_from([1.5, "1", None, [True], [0.0], [None]]))
    def refused(self, weights: Any) -> None:
        """What is no integer: in a list it is left out alone, if that is asked for."""
        if self.drop and isinstance(weights, list):
            self.count.update(weights)
            self.dropped += 1
        else:
            with pytest.raises(TypeError):
                self.count.update(weights)

    @invariant()
    def agrees(self) -> None:
        """Everything that can be seen without a release."""
        if hasattr(self, "count"):
            assert self.count.now == self.now
            assert self.count.horizon == self.horizon
            assert self.count.sealed == (self.answer is not None)
            assert self.count.dropped == self.dropped


CounterCalls.TestCase.settings = settings(
    max_examples=120, stateful_step_count=30, deadline=None, derandomize=True, database=None
)
TestCounterCalls = CounterCalls.TestCase


def test_parameters_can_be_read_back() -> None:
    budget = fg.ApproxDp(1.0, 1e-6)
    for mechanism, protect, on_excess, invalid in itertools.product(
        ["tree", "tree-paper"], ["update", "lifetime"], ["error", "clip"], ["raise", "drop"]
    ):
        words: Any = {"mechanism": mechanism, "protect": protect, "on_excess": on_excess, "invalid": invalid}
        count = fg.ContinualCounter(horizon=99, privacy=budget, max_weight=3, contributions=4, insecure_seed=5, **words)
        for name, word in words.items():
            assert getattr(count, name) == word
            assert f"{name}='{word}'" in repr(count)
        assert count.privacy is budget
        assert (count.horizon, count.max_weight, count.contributions, count.insecure_seed) == (99, 3, 4, 5)
    assert tiny_noise() == fg.Zcdp(1e6)
