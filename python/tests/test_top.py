"""`top`: intervals that hold for all released rows together, and which rows are surely above those left out."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from scipy import stats

import fastgame as fg
from fastgame._intervals import _beyond, _median_tail, _place, estimates, quantile, quantile_of_sums
from fastgame._plot import draw_releases

DAYS, KEYS, TOP = 6, 30, 8
TICKS = fg.Ticks("2026-01-01", "2026-01-07", "1d")
RHO, PURE = fg.Zcdp(rho=0.05), fg.PureDp(0.5)


def table() -> pa.Table:
    """Nothing on the first two days, a few rows on the third; then five keys with 200 each, ten with 20, and none."""
    rows = [(2, 0), (2, 7)] + [(day, key) for day in (3, 4, 5) for key in range(5) for _ in range(67)]
    rows += [(4, key) for key in range(5, 15) for _ in range(20)]
    # Others, for the sketch to collide with.
    rows += [(day, key) for day in (3, 5) for key in range(KEYS, 400) for _ in range(3)]
    order = np.random.default_rng(5).permutation(len(rows))
    times = [dt.datetime(2026, 1, 1 + rows[row][0], 12) for row in order]
    return pa.table({"t": times, "k": [rows[row][1] for row in order]})


FRAME = table()


def truth() -> np.ndarray[Any, Any]:
    """The exact count of each listed key at the end of each day."""
    days = np.array([time.day for time in FRAME.column("t").to_pylist()])
    keys = FRAME.column("k").to_numpy()
    return np.array([[((days <= day) & (keys == key)).sum() for key in range(KEYS)] for day in range(1, DAYS + 1)])


TRUTH = truth()


def vector(seed: int, privacy: Any = RHO, **given: Any) -> fg.Feed:
    made = fg.ContinualVector(KEYS, horizon=DAYS, privacy=privacy, insecure_seed=seed)
    return fg.Feed(made, key="k", keys=list(range(KEYS)), **{"top": TOP, **given})


def sketch(seed: int, privacy: Any = RHO, width: int = 256, depth: int = 5, **given: Any) -> fg.Feed:
    made = fg.CountSketch(
        horizon=DAYS, privacy=privacy, width=width, depth=depth, hash_seed=seed, insecure_seed=seed, max_weight=1
    )
    return fg.Feed(made, key="k", keys=list(range(KEYS)), **{"top": TOP, **given})


def ranges(seed: int, privacy: Any = RHO, **given: Any) -> fg.Feed:
    made = fg.RangeCounter(horizon=DAYS, privacy=privacy, shape=400, hash_seed=seed, insecure_seed=seed)
    return fg.Feed(made, key=("k",), boxes=[(key, key + 1) for key in range(KEYS)], **{"top": TOP, **given})


MAKERS: list[Callable[..., fg.Feed]] = [vector, sketch, ranges]
EACH = pytest.mark.parametrize("make", MAKERS)
NOISE = pytest.mark.parametrize("privacy", [RHO, PURE], ids=["normal", "Laplace"])


def play(feed: fg.Feed, **given: Any) -> pa.Table:
    return fg.replay(FRAME, TICKS, feed, time="t", **given)


def numbers(released: pa.Table) -> list[np.ndarray[Any, Any]]:
    """Value, std, lower, upper and exact count of each row that was released."""
    days = [(time - dt.datetime(2026, 1, 1)).days for time in released.column("time").to_pylist()]
    name = "k" if "k" in released.schema.names else "box"
    keys = [int(str(key).partition(":")[0]) for key in released.column(name).to_pylist()]
    exact = np.array([TRUTH[day - 1, key] for day, key in zip(days, keys, strict=True)])
    return [*(released.column(name).to_numpy() for name in ("value", "std", "lower", "upper")), exact]


@EACH
@NOISE
def test_all_rows_of_a_run_lie_in_their_intervals(make: Callable[..., fg.Feed], privacy: Any) -> None:
    """200 runs with other noise and hashes. In how many a row is outside is binomial, alpha 1e-4: at most 23.

    Rejects intervals of 1.96 std, with which more fail. And those that are too wide: the largest error of all keys and
    days together, over the half width, has a 95 % quantile of 0.75 at least (1 but for the union bound).
    """
    runs, failed, plain = 200, 0, 0
    worst = []
    for seed in range(runs):
        value, std, lower, upper, exact = numbers(play(make(seed, privacy)))
        assert len(value) == DAYS * TOP and ((lower < value) & (value < upper)).all()
        failed += not ((lower <= exact) & (exact <= upper)).all()
        plain += not (np.abs(value - exact) <= 1.96 * std).all()
        # The same, of all keys.
        value, _, lower, _, exact = numbers(play(make(seed, privacy, top=KEYS)))
        worst.append((np.abs(value - exact) / (value - lower)).max())
    most = int(stats.binom.ppf(1 - 1e-4, runs, 0.05))
    assert failed <= most < plain
    assert np.quantile(worst, 0.95) >= 0.75


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_intervals_are_those_of_the_law_of_the_noise(confidence: float) -> None:
    tail = (1 - confidence) / (KEYS * DAYS)
    for make in (vector, ranges):
        _, std, lower, upper, _ = numbers(play(make(1, confidence=confidence)))
        np.testing.assert_allclose((upper - lower) / 2, std * stats.norm.ppf(1 - tail / 2), rtol=1e-9)
    # Of a counter with one step: Laplace's own law.
    once = fg.ContinualVector(2, horizon=1, privacy=PURE, insecure_seed=1)
    frame = {"t": [dt.datetime(2026, 1, 1)], "k": ["a"]}
    feed = fg.Feed(once, key="k", keys=["a", "b"], top=1, confidence=confidence)
    row = fg.replay(frame, fg.Ticks("2026-01-01", "2026-01-02", "1d"), feed, time="t").to_pylist()[0]
    laplace = stats.laplace(scale=row["std"] / np.sqrt(2)).isf((1 - confidence) / 4)
    assert (row["upper"] - row["lower"]) / 2 == pytest.approx(laplace, rel=1e-4)


def test_sums_are_no_narrower_than_either_law() -> None:
    """Rejects the quantile of a cell alone, which is below the normal one where confidences are small."""
    counter = fg.ContinualCounter(horizon=1, privacy=PURE)
    for confidence in (0.3, 0.95, 1 - 1e-6):
        normal, laplace = stats.norm.isf((1 - confidence) / 2), stats.laplace(scale=0.5**0.5).isf((1 - confidence) / 2)
        assert quantile(counter, confidence) == pytest.approx(laplace, rel=1e-3)
        assert quantile_of_sums(counter, confidence, 1) == pytest.approx(max(normal, laplace), rel=1e-3)


@pytest.mark.parametrize(("depth", "cells", "place"), [(1, 20, 2), (3, 30, 4), (5, 40, 6), (9, 60, 20)])
def test_a_median_is_beyond_a_cell_as_often_as_is_said(depth: int, cells: int, place: int) -> None:
    """200,000 samples, z test, alpha 1e-6. Rejects the tail at place / cells, as if the cells had no error."""
    generator = np.random.default_rng(depth)
    many = 200_000
    beyond = generator.beta(place, cells + 1 - place, size=many)
    sides = generator.random((many, depth)) < beyond[:, None] / 2
    expected = _beyond(place, depth, cells) / 2
    error = np.sqrt(expected * (1 - expected) / many)
    found = (sides.sum(axis=1) > depth // 2).mean()
    assert abs(found - expected) < 4.9 * error
    if depth > 1:
        assert abs(found - _median_tail(depth, place / cells) / 2) > 4.9 * error


def test_the_cell_that_is_taken_is_the_least_that_will_do() -> None:
    for tail, depth, cells in [(1e-5, 5, 1280), (1e-9, 5, 20_480), (0.01, 1, 4096), (1e-12, 9, 9 << 20)]:
        place = _place(tail, depth, cells)
        assert _beyond(place, depth, cells) <= tail < _beyond(place + 1, depth, cells)
        # With many cells it is the quantile that `estimate` takes.
        assert place < 100 or _median_tail(depth, place / cells) == pytest.approx(tail, rel=0.1)
    assert _place(1e-6, 3, 48) == 0


@pytest.mark.parametrize(("width", "depth"), [(16, 3), (16, 5), (64, 1), (64, 3)])
def test_intervals_of_few_cells_hold(width: int, depth: int) -> None:
    """500 keys of alike counts over 8 steps in a few dozen cells, nearly without noise; 100 runs, all keys looked at.

    Binomial, alpha 1e-4: up to 14 may fail. Rejects the quantile of the cells at depths 1 and 3, with which 99, 28 and
    (within the limit) 5 fail.
    """
    generator, runs, steps, keys = np.random.default_rng(2), 100, 8, np.arange(500)
    failed = plain = 0
    for seed in range(runs):
        sketch = fg.CountSketch(
            horizon=steps, privacy=fg.Zcdp(rho=50), width=width, depth=depth, hash_seed=seed, insecure_seed=seed
        )
        exact = np.zeros(len(keys))
        bad = bad_plain = False
        for _ in range(steps):
            arrived = generator.integers(0, len(keys), size=1000)
            exact += np.bincount(arrived, minlength=len(keys))
            sketch.update(arrived)
            value, half = estimates(sketch, keys, 0.95, len(keys) * steps)
            bad |= bool((np.abs(value - exact) > half).any())
            _, _, upper = sketch.estimate(keys, confidence=1 - 0.05 / (len(keys) * steps))
            bad_plain |= bool((np.abs(value - exact) > upper - value).any())
            if sketch.now < steps:
                sketch.advance()
        failed += bad
        plain += bad_plain
    assert failed <= int(stats.binom.ppf(1 - 1e-4, runs, 0.05))
    if (width, depth) in ((16, 3), (64, 1)):
        assert plain > int(stats.binom.ppf(1 - 1e-4, runs, 0.05))


def test_rare_errors_need_no_confidence_that_floats_do_not_have() -> None:
    sketch = fg.CountSketch(horizon=1, privacy=RHO, width=1 << 16, hash_seed=1, insecure_seed=1)
    (value,), (half,) = estimates(sketch, [1], 0.95, 10**15)
    largest = sketch.estimate([1], confidence=1 - 2**-53).upper[0] - value
    assert half == pytest.approx(2 * largest)


@EACH
@pytest.mark.parametrize("every", [1, 4])
def test_a_job_of_many_nights_gives_the_intervals_of_one_run(make: Callable[..., fg.Feed], every: int) -> None:
    once = play(make(3), release_every=every)
    feed = make(3)
    nights = [play(feed, release_every=every, until=f"2026-01-0{day}", resume=True) for day in (1, 3, 5, 7)]
    assert nights[0].num_rows == 0 and nights[0].schema == once.schema
    assert pa.concat_tables(nights) == once
    _, std, lower, upper, _ = numbers(once)
    if make is not sketch:
        tail = 0.05 / (KEYS * {1: 6, 4: 2}[every])
        np.testing.assert_allclose((upper - lower) / 2, std * stats.norm.ppf(1 - tail / 2), rtol=1e-9)


@EACH
def test_std_keeps_its_meaning(make: Callable[..., fg.Feed]) -> None:
    columns = ["time", "value", "std"]
    everything = play(make(3, top=None))
    assert not {"lower", "upper", "separated", "rank"} & set(everything.schema.names)
    chosen = play(make(3, top=KEYS)).select(columns)
    order = [("time", "ascending"), ("value", "ascending")]
    assert chosen.sort_by(order) == everything.select(columns).sort_by(order)


@EACH
@pytest.mark.parametrize("top", [1, 3, 5])
@pytest.mark.parametrize("privacy", [fg.Zcdp(rho=500.0), RHO], ids=["little noise", "much noise"])
def test_rows_surely_above_the_first_one_left_out_are_separated(
    make: Callable[..., fg.Feed], privacy: Any, top: int
) -> None:
    released = play(make(4, privacy, top=top))
    separated = np.array(released.column("separated").to_pylist()).reshape(DAYS, top)
    lower = numbers(released)[2].reshape(DAYS, top)
    upper = numbers(play(make(4, privacy, top=KEYS)))[3].reshape(DAYS, KEYS)
    assert (separated == (lower > upper[:, top : top + 1])).all()
    # No key has a row on the first day. At the end five have ten times those of all others, and four of them are tied.
    assert not separated[0].any() and (top != 5 or separated[-1].all()) and (top != 3 or not separated[-1, 1:].any())


@EACH
def test_where_nothing_is_left_out_all_are_separated(make: Callable[..., fg.Feed]) -> None:
    assert play(make(4, top=KEYS)).column("separated").to_pylist() == [True] * (DAYS * KEYS)


@EACH
@pytest.mark.parametrize(
    ("confidence", "error"),
    [
        (0, "more than 0 and less than 1; 0 was given"),
        (1.0, "more than 0"),
        (float("nan"), "more than 0"),
        ("x", "a number"),
    ],
)
def test_a_confidence_that_is_none_is_refused(make: Callable[..., fg.Feed], confidence: Any, error: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"confidence must be {error}"):
        play(make(1, confidence=confidence))


def test_a_bare_structure_takes_its_confidence_from_the_call() -> None:
    feed = sketch(1)
    keys = list(range(KEYS))
    bare = fg.replay(FRAME, TICKS, feed.structure, time="t", key="k", keys=keys, top=TOP, confidence=0.5)
    assert bare == play(sketch(1, confidence=0.5))
    assert bare.column("lower") != play(sketch(1)).column("lower")


@pytest.mark.parametrize("name", ["lower", "upper", "separated"])
def test_keys_do_not_have_the_names_of_the_new_columns(name: str) -> None:
    with pytest.raises(ValueError, match=f"a key column must not be named '{name}'"):
        fg.replay({"t": [], name: []}, TICKS, sketch(1).structure, time="t", key=name, keys=["a"], top=1)


def drawn(monkeypatch: pytest.MonkeyPatch, path: Any, rows: list[Any]) -> dict[str, Any]:
    """What is drawn of rows (day, key, value, lower, upper)."""
    found: dict[str, Any] = {"lines": [], "bands": [], "bars": []}

    def keep(name: str, method: str) -> None:
        real = getattr(Axes, method)

        def call(self: Any, *given: Any, **more: Any) -> Any:
            found[name].append([np.asarray(part, dtype=float).tolist() for part in given[1:3]])
            return real(self, *given, **more)

        monkeypatch.setattr(Axes, method, call)

    keep("lines", "plot")
    keep("bands", "fill_between")
    keep("bars", "errorbar")
    days, keys, *numbers = zip(*rows, strict=True)
    times = pa.array([dt.datetime(2026, 1, day) for day in days], pa.timestamp("us"))
    names = ("time", "k", "value", "lower", "upper")
    released = pa.table(dict(zip(names, [times, keys, *numbers], strict=True)))
    released = released.append_column("std", pa.array(np.ones(len(rows))))
    with path.open("wb") as file:
        draw_releases(released, file, "png", sketch(1).structure)
    assert path.stat().st_size > 5000
    return found


def test_a_picture_has_no_line_where_a_key_was_not_released(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    rows = [(day, "b", 1.0, 0.5, 2.5) for day in range(1, 7)]
    rows += [(day, "a", 10.0 * day, 10.0 * day - 3, 10.0 * day + 4) for day in (1, 2, 4, 6)]
    found = drawn(monkeypatch, tmp_path / "a.png", sorted(rows))
    line, flat = (line[0] for line in found["lines"])
    np.testing.assert_equal(line, [10, 20, np.nan, 40, np.nan, 60])
    np.testing.assert_equal(flat, [1.0] * 6)
    band, flat_band = found["bands"]
    np.testing.assert_equal(band, [[7, 17, np.nan, 37, np.nan, 57], [14, 24, np.nan, 44, np.nan, 64]])
    assert flat_band == [[0.5] * 6, [2.5] * 6]
    assert found["bars"] == [[[40, 60], [[3, 3], [4, 4]]]]
