"""The noise of a BLT and of a pure budget: its law, how it hangs together over time, and what it costs in privacy.

Everything is inferred from what is public: a plan says the standard deviation at each step, and from these follow the
matrix of a Toeplitz mechanism and its sensitivity.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import Floats, assert_variance
from scipy import linalg, stats

import fastgame as fg

CELLS = 100_000
ZCDP = fg.Zcdp(0.5)
# The parameters for 2^20 steps, with 5 buffers, to five digits: weights, and one minus the decay.
OMEGA = np.array([0.32917, 0.097093, 0.022616, 0.0052245, 0.0015410])
RATE = np.array([0.19074, 0.011114, 5.9054e-4, 3.104e-5, 1.177e-6])


def blt(horizon: int, **given: Any) -> fg.Plan:
    """The plan of a counter."""
    return fg.ContinualCounter.plan(**{"horizon": horizon, "privacy": ZCDP, "mechanism": "blt", **given})


def toeplitz(plan: fg.Plan, steps: int) -> tuple[float, Floats]:
    """The scale s and the first column b of a lower triangular Toeplitz matrix B: noise is s B z.

    Var(t) = s^2 (b_0^2 + ... + b_{t-1}^2) with b_0 = 1, and no b is negative.
    """
    variances = np.array([plan.std(at=step) ** 2 for step in range(1, steps + 1)])
    squares = np.diff(variances, prepend=0.0)
    assert np.all(squares >= 0)
    return math.sqrt(variances[0]), np.sqrt(squares / variances[0])


def inverse(column: Floats) -> Floats:
    """The first column of the inverse of such a matrix times that of prefix sums: what an update moves."""
    first = np.zeros(len(column))
    first[0] = 1.0
    ones: Floats = np.tril(np.ones((len(column), len(column))))
    matrix = linalg.toeplitz(column, first * column[0])
    return np.asarray(linalg.solve_triangular(matrix, ones[:, 0], lower=True))


@pytest.mark.parametrize("horizon", [2, 3, 5, 8, 64, 100, 1000])
@pytest.mark.parametrize("buffers", [None, 1, 2, 3, 5])
def test_a_blt_spends_its_budget_and_no_more(horizon: int, buffers: int | None) -> None:
    if buffers is not None and buffers > (horizon - 1).bit_length():
        with pytest.raises(ValueError, match=rf"buffers must be .*; {buffers} was given"):
            blt(horizon, buffers=buffers)
        return
    scale, column = toeplitz(blt(horizon, buffers=buffers), horizon)
    moved = inverse(column)
    assert np.all(np.diff(moved) <= 1e-9) and np.all(moved >= -1e-9)
    # rho = |c|^2 / (2 s^2), to the last digits: what is spent is what was given.
    assert moved @ moved / (2 * scale**2) == pytest.approx(0.5, rel=1e-6)
    for contributions in (2, 7):
        assert blt(horizon, buffers=buffers, contributions=contributions).noise_std == pytest.approx(
            contributions * blt(horizon, buffers=buffers).noise_std, rel=1e-12
        )
    # An insertion and its deletion at any later step: within the budget, and above 3/5 of it.
    scale, column = toeplitz(blt(horizon, buffers=buffers, protect="lifetime"), horizon)
    moved = inverse(column)
    lives = [moved - np.concatenate([np.zeros(lag), moved[: horizon - lag]]) for lag in range(1, horizon)]
    worst = max(float(life @ life) for life in [moved, *lives]) / (2 * scale**2)
    assert 0.3 < worst <= 0.5 * (1 + 1e-9)


def test_a_blt_over_2_20_steps_has_the_parameters_of_the_table() -> None:
    plan = blt(2**20)
    assert plan.buffers == 5
    decay = 1 - RATE
    scale = plan.std(at=1)

    def variance(step: int) -> float:
        # 1 + sum over j < t - 1 of (sum_i omega_i lambda_i^j)^2, by geometric series.
        products = np.outer(OMEGA, OMEGA)
        log = np.add.outer(np.log1p(-RATE), np.log1p(-RATE))
        return float(1 + np.sum(products * np.expm1((step - 1) * log) / np.expm1(log)))

    # Five digits of the parameters leave four of the result.
    for step in [1, 2, 3, 10, 138, 1000, 2**10, 2**15, 2**19 + 1, 2**20]:
        assert plan.std(at=step) == pytest.approx(scale * math.sqrt(variance(step)), rel=2e-4)
    # The inverse of the generating function 1 + sum_i omega_i x / (1 - lambda_i x), times 1 / (1 - x): by the recursion
    # of the noise run backwards, z_t = 1 - sum_i omega_i s_i.
    state, energy, moved = np.zeros(5), 0.0, 1.0
    total = 1 + np.sum(OMEGA / RATE)
    for step in range(2**17):
        moved = float(1.0 - OMEGA @ state)
        energy += moved**2
        state = decay * state + moved
        assert step or moved == 1.0
    assert moved > 1 / total > 0
    assert energy < 2 * 0.5 * scale**2
    worst = variance(2**20) * scale**2
    assert worst == pytest.approx(30.27, rel=1e-3), "Var factor(T) |c|^2 at rho = 1/2"


@pytest.mark.parametrize("buffers", [1, 2, 4, 6])
def test_noise_of_a_blt_has_the_covariance_of_its_matrix(buffers: int) -> None:
    # 10^5 cells at 9 of 64 steps, jumps of 0 to 30 between. 45 entries, each a z-test at alpha 1e-8 (5.73 sd, at most
    # 2.6 % of a variance): rejects fresh noise at each step, states that do not decay over a jump, and noise of a
    # step that does not enter the state.
    steps = [1, 2, 3, 8, 9, 16, 33, 63, 64]
    scale, column = toeplitz(blt(64, buffers=buffers), 64)
    matrix = scale * linalg.toeplitz(column, np.zeros(64))[np.array(steps) - 1]
    expected = matrix @ matrix.T
    assert np.all(expected > 0)
    cells = fg.ContinualVector(CELLS, horizon=64, privacy=ZCDP, mechanism="blt", buffers=buffers, insecure_seed=buffers)
    measured = covariance(cells, steps)
    sd = np.sqrt((expected**2 + np.outer(expected.diagonal(), expected.diagonal())) / CELLS)
    assert np.all(np.abs(measured - expected) < 5.73 * sd)
    fresh = np.diag(expected.diagonal())
    assert np.any(np.abs(measured - fresh) > 20 * sd)


def covariance(cells: Any, steps: list[int]) -> Floats:
    """That of releases at some steps, of all cells, which have nothing in them."""
    paths = []
    for step in steps:
        cells.advance(to=step)
        paths.append(cells.release())
    return np.asarray(np.array(paths) @ np.array(paths).T / cells.size)


@pytest.mark.parametrize(
    "parameters",
    [
        {"horizon": 1},
        {"horizon": 2},
        {"horizon": 1000},
        {"horizon": 2**20, "buffers": 1},
        {"horizon": 2**20, "protect": "lifetime"},
        {"horizon": 2**40, "contributions": 3},
        {"horizon": 2**62, "buffers": 10},
    ],
    ids=str,
)
def test_releases_of_a_blt_are_normal_with_the_variance_that_is_stated(parameters: dict[str, Any]) -> None:
    # 10^5 cells at the first step, in the middle, next to it and at the end: chi-square at alpha 1e-6 and a scale that
    # is 3 % off rejected (helpers.assert_variance), Kolmogorov-Smirnov at 1e-6. Half the cells are read at the last
    # two steps alone: a long first jump.
    cells = fg.ContinualVector(CELLS, privacy=ZCDP, mechanism="blt", insecure_seed=1, **parameters)
    plan = blt(**parameters)
    horizon = parameters["horizon"]
    generator = np.random.default_rng(4)
    for step in sorted({1, max(1, horizon // 2), horizon // 2 + 1, max(1, horizon - 1), horizon}):
        cells.advance(to=step)
        released = cells.release() if step >= horizon - 1 else cells.release(range(CELLS // 2))
        assert cells.noise_std() == pytest.approx(plan.std(at=step), rel=1e-12)
        if len(released) == CELLS:
            assert_variance(released, cells.noise_std() ** 2)
        for part in np.array_split(released, 2):
            low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], part.size)
            assert low < np.sum(part**2) / cells.noise_std() ** 2 < high
        dither = generator.uniform(-0.5, 0.5, released.size) * cells.lattice_step
        assert stats.kstest((released + dither) / cells.noise_std(), "norm").pvalue > 1e-6


def test_single_jumps_of_all_lengths_have_their_variance() -> None:
    # 2000 cells for each length of a jump up to 1500, of 6 buffers over 2^20 steps: chi-square at alpha 1e-8 a length,
    # 19 % of a variance. An ill-conditioned factor was off by 350 % at single lengths.
    plan = blt(2**20, buffers=6)
    low, high = stats.chi2.ppf([5e-9, 1 - 5e-9], 2000)
    cells: Any = fg.ContinualVector(2000, horizon=2**20, privacy=ZCDP, mechanism="blt", buffers=6, insecure_seed=3)
    step = 1
    for length in range(1, 1400):
        step += length
        cells.advance(to=step)
        assert low < np.sum(cells.release() ** 2) / plan.std(at=step) ** 2 < high, length


# Pure budgets.


def laplace_scale(horizon: int, epsilon: float, *, lifetime: bool = False) -> float:
    """Of a node variable, for an L1 sensitivity of 1."""
    levels = (horizon - 1).bit_length()
    return (max(1, levels) if lifetime else levels // 2 + 1) / epsilon


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 8, 1000, 2**20, 2**62 - 1, 2**62])
def test_a_pure_budget_buys_the_laplace_tree(horizon: int) -> None:
    nodes = (horizon - 1).bit_length() + 1
    for epsilon, weight, contributions in [(1.0, 1, 1), (0.1, 7, 1), (3.0, 2, 5)]:
        for protect in ("update", "lifetime"):
            count = fg.ContinualCounter(
                horizon=horizon,
                privacy=fg.PureDp(epsilon),
                max_weight=weight,
                contributions=contributions,
                protect=protect,
            )
            scale = weight * contributions * laplace_scale(horizon, epsilon, lifetime=protect == "lifetime")
            assert count.noise_std() == pytest.approx(scale * math.sqrt(2 * nodes), rel=1e-12)
    # A sketch has a cell of a row each for an update, a join has sides that nobody is in both of.
    one = fg.ContinualCounter.plan(horizon=horizon, privacy=fg.PureDp(1.0)).noise_std
    for make in (fg.CountSketch, fg.JoinSize):
        sketch: Any = make.plan(width=64, depth=7, max_weight=3, horizon=horizon, privacy=fg.PureDp(1.0))
        assert sketch.noise_std == pytest.approx(21 * one, rel=1e-12)
    grid = fg.RangeCounter.plan(shape=16, levels="dyadic", max_weight=2, horizon=horizon, privacy=fg.PureDp(1.0))
    assert grid.noise_std / one == pytest.approx(2 * grid.components[0], rel=1e-12)


@pytest.mark.parametrize("protect", ["update", "lifetime"])
def test_noise_of_a_pure_budget_has_the_covariance_of_the_tree(protect: str) -> None:
    # 10^5 cells at all 8 steps. Covariances (LCP + 1) 2 b^2; 36 entries and 28 variances of differences, each a
    # z-test at alpha 1e-8, with the spread of the sample itself. Rejects fresh noise, and a tree that is a leaf or a
    # level off (25 sd and more).
    cells = fg.ContinualVector(
        CELLS,
        horizon=8,
        privacy=fg.PureDp(1.0),
        protect=protect,  # type: ignore[arg-type]
        insecure_seed=6,
    )
    paths = []
    for step in range(1, 9):
        cells.advance(to=step)
        paths.append(cells.release())
    unit = 2 * laplace_scale(8, 1.0, lifetime=protect == "lifetime") ** 2
    for t in range(8):
        for u in range(t, 8):
            split = (t ^ u).bit_length()
            assert_mean(paths[t] * paths[u], unit * (4 - split))
            if t < u:
                assert_mean((paths[t] - paths[u]) ** 2, unit * 2 * split)


def assert_mean(samples: Floats, expected: float) -> None:
    """z-test at alpha 1e-8 of a mean, which rejects one that is 10 % off."""
    sd = samples.std() / math.sqrt(len(samples))
    assert abs(samples.mean() - expected) < 5.73 * sd, f"{samples.mean()} is no estimate of {expected}"
    assert 5.73 * sd < 0.1 * abs(expected)


@pytest.mark.parametrize("horizon", [1, 2, 1000, 2**20])
def test_releases_and_their_differences_have_the_law_of_sums_of_laplace_variables(horizon: int) -> None:
    # 10^5 cells against as many simulated, Kolmogorov-Smirnov at alpha 1e-6 (0.0119 apart): rejects normal noise of
    # the same variance at horizons 1 and 2 (0.06 and 0.03 apart), and a scale that is 5 % off. Differences of two
    # steps have the nodes below where their paths part, on both sides.
    generator = np.random.default_rng(8)
    nodes, scale = (horizon - 1).bit_length() + 1, laplace_scale(horizon, 1.0)
    cells = fg.ContinualVector(CELLS, horizon=horizon, privacy=fg.PureDp(1.0), insecure_seed=9)
    steps = sorted({1, min(2, horizon), max(1, horizon // 2), horizon // 2 + 1, max(1, horizon - 1), horizon})
    paths = {}
    for step in steps:
        cells.advance(to=step)
        paths[step] = cells.release() + generator.uniform(-0.5, 0.5, CELLS) * cells.lattice_step

    def sums(count: int) -> Floats:
        return np.asarray(generator.laplace(scale=scale, size=(count, CELLS)).sum(axis=0))

    one = sums(nodes)
    for path in paths.values():
        assert stats.ks_2samp(path, one).pvalue > 1e-6
        assert stats.ks_2samp(path * 1.05, one).pvalue < 1e-3
    if horizon <= 2:
        normal = generator.normal(size=CELLS) * scale * math.sqrt(2 * nodes)
        assert stats.ks_2samp(paths[1], normal).pvalue < 1e-6
    for t, u in itertools.pairwise(steps):
        apart = 2 * ((t - 1) ^ (u - 1)).bit_length()
        assert stats.ks_2samp(paths[u] - paths[t], sums(apart)).pvalue > 1e-6


@pytest.mark.parametrize("horizon", [1, 2, 1000])
@pytest.mark.parametrize("kind", ["blt", "pure"])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_errors_of_plans_are_covered_as_often_as_stated(horizon: int, kind: str, confidence: float) -> None:
    # 2 * 10^5 cells at the first, middle and last step, binomial at alpha 1e-6 (4.9 sd: 0.24 % at 0.95) beside half a
    # step of the lattice. Rejects the normal quantile for Laplace noise at horizons 1 and 2 (93.8 and 94.1 % at
    # 0.95), and the error of the last step of a BLT at its first (all covered).
    given: dict[str, Any] = {"horizon": horizon, "privacy": ZCDP, "mechanism": "blt"}
    if kind == "pure":
        given = {"horizon": horizon, "privacy": fg.PureDp(0.5)}
    plan = fg.ContinualVector.plan(2 * CELLS, **given)
    cells = fg.ContinualVector(2 * CELLS, insecure_seed=9, **given)
    sd = math.sqrt(confidence * (1 - confidence) / (2 * CELLS))
    normal = stats.norm.ppf(0.5 + confidence / 2)
    for step in sorted({1, (horizon + 1) // 2, horizon}):
        cells.advance(to=step)
        size, bound = np.abs(cells.release()), plan.error(confidence, at=step)
        half = plan.lattice_step / 2
        # The lattice moves a value by half a step at most.
        assert np.mean(size <= bound - half) - 4.9 * sd < confidence < np.mean(size <= bound + half) + 4.9 * sd
        if kind == "blt":
            assert bound == pytest.approx(normal * cells.noise_std(), rel=1e-9)
        elif confidence == 0.95 and horizon <= 2:
            assert np.mean(size <= normal * cells.noise_std() + half) < 0.95 - 4.9 * sd


@pytest.mark.parametrize("kind", ["blt", "pure"])
def test_many_releases_are_within_the_error_together(kind: str) -> None:
    # 5 * 10^4 cells, all 16 steps: binomial at alpha 1e-6. The error of one release covers less.
    given: dict[str, Any] = {"horizon": 16, "privacy": ZCDP, "mechanism": "blt"}
    if kind == "pure":
        given = {"horizon": 16, "privacy": fg.PureDp(0.5)}
    plan = fg.ContinualVector.plan(50_000, **given)
    cells = fg.ContinualVector(50_000, insecure_seed=10, **given)
    worst = np.zeros(50_000)
    for step in range(1, 17):
        cells.advance(to=step)
        worst = np.maximum(worst, np.abs(cells.release()))
    assert np.mean(worst <= plan.error(0.95, releases=16)) > 0.95 - 4.9 * math.sqrt(0.95 * 0.05 / 50_000)
    assert np.mean(worst <= plan.error(0.95)) < 0.9


# Structures that estimate: what they state about their errors, under either noise.

NOISES: dict[str, dict[str, Any]] = {
    "blt": {"privacy": ZCDP, "mechanism": "blt"},
    "pure": {"privacy": fg.PureDp(0.5)},
}
WHEN = pytest.mark.parametrize(("horizon", "step"), [(1, 1), (2, 2), (1000, 1), (1000, 377), (1000, 1000)])
BY_NOISE = pytest.mark.parametrize("noise", NOISES)


def sketch_cells(**given: Any) -> tuple[Any, Callable[[Any], Floats]]:
    """An empty sketch of one row: keys in buckets of their own read a cell each."""
    return fg.CountSketch(width=2**17, depth=1, hash_seed=1, **given), lambda sketch: np.asarray(
        sketch.estimate(range(2**17))
    )


def range_cells(**given: Any) -> tuple[Any, Callable[[Any], Floats]]:
    """An empty counter whose smallest boxes are cells."""
    counter = fg.RangeCounter(shape=2**17, width=2**18, hash_seed=1, levels="dyadic", estimator="cover", **given)
    return counter, lambda counter: np.asarray(counter.count(np.arange(2**17), np.arange(1, 2**17 + 1)))


@WHEN
@BY_NOISE
@pytest.mark.parametrize("make", [sketch_cells, range_cells])
def test_cells_of_sketches_and_ranges_have_the_noise_that_is_stated(
    make: Callable[..., Any], noise: str, horizon: int, step: int
) -> None:
    # 80,000 distinct cells or more, after a read of all at the first step. Chi-square at 1e-6 for normal noise, a
    # z-test at 1e-6 with the spread of the sample for Laplace noise; a scale that is 3 % off is rejected by either (6
    # % in variance, 11 and 7 of the deviations).
    structure, cells_of = make(horizon=horizon, insecure_seed=2, **NOISES[noise])
    cells_of(structure)
    structure.advance(to=step)
    released = cells_of(structure)
    if make is sketch_cells:
        released = released[one_key_of_each_bucket()]
    assert released.size > 80_000
    squares = (released / structure.noise_std()) ** 2
    if noise == "blt":
        assert_variance(released, structure.noise_std() ** 2)
        return
    for scale, right in [(1.0, True), (1.03, False), (1 / 1.03, False)]:
        sd = squares.std() / math.sqrt(squares.size)
        assert (abs(np.mean(squares) - scale**2) < 4.9 * sd) == right


@functools.cache
def one_key_of_each_bucket() -> Any:
    """Of the keys 0 to 2^17 - 1: two that share a bucket read the same noise up to sign, at every step."""
    sketch, cells_of = sketch_cells(horizon=2**20, privacy=ZCDP, insecure_seed=5)
    paths = []
    for step in [1, 2**18, 2**19 + 1, 2**20]:
        sketch.advance(to=step)
        paths.append(np.abs(cells_of(sketch)))
    # Far more paths of four than there are buckets.
    return np.unique(np.array(paths).T, axis=0, return_index=True)[1]


COUNTS = np.arange(1, 21) * 3
KEYS = np.repeat(np.arange(20), COUNTS)
MOMENT = float(np.sum(COUNTS**2))


@pytest.mark.parametrize("depth", [1, 5])
@pytest.mark.parametrize("filled", [False, True])
@WHEN
@BY_NOISE
def test_intervals_of_sketches_cover_under_either_noise(
    noise: str, horizon: int, step: int, filled: bool, depth: int
) -> None:
    # 100 sketches of 200 keys, 20 of which have counts. At least 94 % are within intervals at 95 % and at most 97 %,
    # beside 4.9 sd of the spread over sketches (0.2 % or so). Rejects intervals of half the length where noise is
    # all.
    exact = np.concatenate([COUNTS * filled, np.zeros(180)])
    shares, wrong = [], []
    for seed in range(100):
        sketch = fg.CountSketch(
            width=256, depth=depth, hash_seed=seed, insecure_seed=seed, horizon=horizon, **NOISES[noise]
        )
        sketch.update(KEYS if filled else [])
        sketch.advance(to=step)
        found = sketch.estimate(range(200), confidence=0.95)
        shares.append(np.mean((found.lower <= exact) & (exact <= found.upper)))
        half = (found.upper - found.value) / 2
        wrong.append(np.mean(np.abs(found.value - exact) <= half))
    slack = 4.9 * np.std(shares) / 10
    assert 0.94 - slack < np.mean(shares) < 0.97 + slack
    if not filled:
        assert np.mean(wrong) < 0.85


@WHEN
@BY_NOISE
@pytest.mark.parametrize("depth", [1, 5])
def test_second_moments_err_as_stated_under_either_noise(noise: str, horizon: int, step: int, depth: int) -> None:
    # 400 sketches, empty ones and filled ones: the root mean square of the error over what is stated is at most 1.2
    # (it is 0.85 to 1.11: of one row the stated error varies with what was released), 1.96 of it cover 91 %, and the
    # mean is within 0.35. Rejects the variance of normal noise where it is Laplace's at horizon 1, width v^2 (2 + 3)
    # against 2, as 1.58 times.
    for filled in (False, True):
        z = []
        for seed in range(400):
            sketch = fg.CountSketch(
                width=64, depth=depth, hash_seed=seed, insecure_seed=seed, horizon=horizon, **NOISES[noise]
            )
            sketch.update(KEYS if filled else [])
            sketch.advance(to=step)
            value, std = sketch.second_moment(error=True)
            z.append((value - MOMENT * filled) / std)
        assert 0.75 < math.sqrt(np.mean(np.square(z))) < 1.2
        assert abs(np.mean(z)) < 0.35
        assert np.mean(np.abs(z) < 1.96) > 0.91


@WHEN
@BY_NOISE
def test_intervals_of_joins_cover_under_either_noise(noise: str, horizon: int, step: int) -> None:
    # 200 joins of 20 keys with themselves. Intervals by moments cover 99 % and more (Chebyshev), by rows 97 %: at
    # least 95 and 93 % here, 4 and 3.5 deviations below. Errors are within a factor of 1.25 of the stated ones.
    inside: list[bool] = []
    by_rows: list[bool] = []
    z = []
    for seed in range(200):
        join = fg.JoinSize(width=64, depth=3, hash_seed=seed, insecure_seed=seed, horizon=horizon, **NOISES[noise])
        join.left.update(KEYS)
        join.right.update(KEYS)
        join.advance(to=step)
        value, std, _ = join.estimate(error=True)
        z.append((value - MOMENT) / std)
        for found, by in [(inside, "moments"), (by_rows, "rows")]:
            _, lower, upper = join.estimate(confidence=0.95, by=by)  # type: ignore[call-overload]
            found.append(lower <= MOMENT <= upper)
    assert np.mean(inside) > 0.95 and np.mean(by_rows) > 0.93
    assert 0.8 < math.sqrt(np.mean(np.square(z))) < 1.25


@WHEN
@BY_NOISE
@pytest.mark.parametrize("estimator", ["least_squares", "cover"])
def test_boxes_err_as_stated_under_either_noise(estimator: Any, noise: str, horizon: int, step: int) -> None:
    # 150 counters of 20 random boxes of a dense grid: z is 1 within 6 % (its spread over counters is 1.5 % of a
    # mean), and the plan's error of random boxes covers 95 % (within 2 %). Rejects the noise of a BLT's last step at
    # its first.
    shape = (12, 9)
    plan = fg.RangeCounter.plan(shape=shape, hash_seed=1, estimator=estimator, horizon=horizon, **NOISES[noise])
    assert plan.components[0] == plan.components[1]
    generator = np.random.default_rng(0)
    squares, shares = [], []
    for seed in range(150):
        counter: Any = plan.replace(insecure_seed=seed).build()
        counter.update([(3, 4), (11, 8)])
        counter.advance(to=step)
        ends = [
            np.sort(np.array([generator.choice(size + 1, 2, replace=False) for _ in range(20)]), axis=1)
            for size in shape
        ]
        lo, hi = (np.stack([pairs[:, end] for pairs in ends], axis=1) for end in (0, 1))
        exact = sum(np.all((lo <= point) & (point < hi), axis=1) for point in np.array([(3, 4), (11, 8)]))
        value, std = counter.count(lo, hi, error=True)
        squares.append(np.mean(((value - exact) / std) ** 2))
        shares.append(np.mean(np.abs(value - exact) <= plan.error(0.95, at=step)))
    assert math.sqrt(np.mean(squares)) == pytest.approx(1, abs=4.9 * float(np.std(squares)) / 2 / math.sqrt(150))
    assert float(np.std(squares)) / 2 / math.sqrt(150) < 0.03
    assert np.mean(shares) == pytest.approx(0.95, abs=4.9 * float(np.std(shares)) / math.sqrt(150) + 0.003)
