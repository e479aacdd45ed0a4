"""The fourth part of the flights demo: how large two joins of flights are, from two sketches each.

Flights from JFK and flights from LGA are joined on the tail number: the pairs of flights, one from each airport, that
the same aircraft flew. Flights from JFK and flights from EWR are joined on the destination. Rows without a key are left
out. A flight is one update of a join, on one of its sides.

Both have a clock of weeks, and a flight counts in the week in which it was to leave. A coarser clock than that of hours
has fewer levels of noise, which counts twice here: in the product of two noisy relations the noise is squared.
"""

from __future__ import annotations

import csv
import math
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

import fastgame as fg

WEEKS = fg.Ticks("2013-01-01", "2014-01-01", "1w", tz="America/New_York")
#: The last day of each week; the last week is cut off by the end of the year.
LAST_DAYS = [min(np.datetime64("2013-01-07") + 7 * week, np.datetime64("2013-12-31")) for week in range(WEEKS.horizon)]
#: The weeks that are printed.
SHOWN = [4, 13, 26, 39, WEEKS.horizon]
#: The spread of five rows is the least to make a bar of: at depth 3 Student's quantile is 4.3, here 2.8.
DEPTH = 5

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Query:
    """A join, and what one expects of it without a look at the flights."""

    title: str
    left: str
    right: str
    on: str
    #: Some hundred thousand flights a year leave each airport; how many aircraft or destinations they share is a guess.
    expected: fg.JoinProfile


QUERIES = [
    Query(
        "flights from JFK and from LGA by the same aircraft",
        "JFK",
        "LGA",
        "tailnum",
        fg.JoinProfile.uniform(left_total=1e5, right_total=1e5, keys=3_000),
    ),
    Query(
        "flights from JFK and from EWR to the same destination",
        "JFK",
        "EWR",
        "dest",
        fg.JoinProfile.uniform(left_total=1e5, right_total=1e5, keys=100),
    ),
]


@dataclass
class Joined:
    """A join, and what was released at the end of each week, beside the truth."""

    query: Query
    join: fg.JoinSize
    private: Floats = field(default_factory=lambda: np.empty(0))
    lower: Floats = field(default_factory=lambda: np.empty(0))
    upper: Floats = field(default_factory=lambda: np.empty(0))
    exact: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def inside(self) -> npt.NDArray[np.bool_]:
        """In which weeks the truth lies within the band."""
        return (self.lower <= self.exact) & (self.exact <= self.upper)


def plan_join(query: Query, privacy: fg.Zcdp) -> fg.Plan:
    """The join before there is any data, of the power of two nearest to the width at which its errors balance."""
    given: dict[str, Any] = {"horizon": WEEKS.horizon, "privacy": privacy, "depth": DEPTH}
    balanced = fg.JoinSize.plan(**given).join_terms(query.expected).balanced_width
    return fg.JoinSize.plan(**given, width=1 << max(5, round(math.log2(balanced))))


def sides(flights: Any, query: Query) -> tuple[Any, Any]:
    """The two relations: a time and a key for each flight."""
    columns = ["time_hour", query.on]
    left, right = (flights.loc[flights["origin"] == origin, columns] for origin in (query.left, query.right))
    return left, right


def release_join(flights: Any, query: Query, plan: fg.Plan, confidence: float) -> Joined:
    """Feeds the year week by week, and releases the size at the end of each."""
    join = plan.build()
    assert isinstance(join, fg.JoinSize)
    # By the rows, and not by the moments: a few destinations are most of all flights. Moments cannot tell few keys,
    # which miss each other, from many that collide, and state several times the error.
    intervals: list[fg.Interval[float]] = []
    left, right = sides(flights, query)
    with tqdm(total=WEEKS.horizon, desc=query.on, unit=" weeks", disable=not sys.stderr.isatty()) as bar:

        def progress(week: int, _: int) -> None:
            intervals.append(join.estimate(confidence=confidence, by="rows"))
            bar.update(week - bar.n)

        fg.replay_join(left, right, WEEKS, join, time="time_hour", key=query.on, progress=progress)
    private, lower, upper = np.array(intervals).T
    return Joined(query, join, private, lower, upper, exact_sizes(left, right, query.on))


def exact_sizes(left: Any, right: Any, key: str) -> Floats:
    """The truth at the end of each week."""
    left, right = (side.dropna(subset=[key]) for side in (left, right))
    _, places = np.unique(np.concatenate([left[key], right[key]]).astype(str), return_inverse=True)
    each = []
    for side, codes in zip((left, right), np.split(places, [len(left)]), strict=True):
        weeks = WEEKS.step(side["time_hour"].str.removesuffix("Z").to_numpy(dtype="datetime64[h]")) - 1
        counts = np.zeros((WEEKS.horizon, places.max() + 1))
        np.add.at(counts, (weeks, codes), 1)
        each.append(np.cumsum(counts, axis=0))
    # All whole numbers below 2^53.
    sizes: Floats = (each[0] * each[1]).sum(axis=1)
    return sizes


def promise_joins(plans: list[fg.Plan], confidence: float) -> None:
    """What is known before there is any data."""
    for query, plan in zip(QUERIES, plans, strict=True):
        # Equally frequent keys have the least error.
        size, error = query.expected.join_size, plan.error(confidence, profile=query.expected)
        print(f"  for {WEEKS.horizon} weeks: ±{error:,.0f} or more on {size:,.0f} pairs of")
        print(f"  {query.title}{';' if query is not QUERIES[-1] else '.'}")


def print_joins(joins: list[Joined], confidence: float) -> None:
    """The table that a person reads."""
    for one in joins:
        given = one.join
        print(f"\nPairs so far of {one.query.title}")
        print(f"(width {given.width:,}, depth {given.depth}, rho = {given.privacy.rho:g}; join on {one.query.on})\n")
        interval = f"interval of {confidence:.0%} released with it"
        print(f"  {'end of':<12}{'private':>14}   {interval:<34}{'exact':>13}{'error':>9}")
        for week in SHOWN:
            private, exact = one.private[week - 1], one.exact[week - 1]
            ends = f"[{one.lower[week - 1]:,.0f}, {one.upper[week - 1]:,.0f}]"
            error = (private - exact) / exact
            print(f"  {LAST_DAYS[week - 1]!s:<12}{private:>14,.0f}   {ends:<34}{exact:>13,.0f}{error:>+9.1%}")
    inside = np.concatenate([one.inside for one in joins])
    print(f"\n  {inside.sum()} of the {inside.size} intervals of the year hold the exact size. (Those of a join")
    print("  err together: keys that collide stay together, and noise stays for a while.)")


def write_joins(path: Path, joins: list[Joined]) -> None:
    """One row a week and join."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["left", "right", "on", "date", "week", "private", "lower", "upper", "exact"])
        for one in joins:
            query = one.query
            for week, day in enumerate(LAST_DAYS):
                numbers = (f"{part[week]:.1f}" for part in (one.private, one.lower, one.upper))
                names = (query.left, query.right, query.on)
                writer.writerow([*names, day, week + 1, *numbers, int(one.exact[week])])


def draw_joins(path: Path, joins: list[Joined], confidence: float, title: str) -> None:
    """A column a join: above, the private curve with its band over the exact one; below, the error as a share."""
    from matplotlib import dates, ticker  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(12, 7.5), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    days = np.array(LAST_DAYS)
    band = {"color": "C0", "alpha": 0.25, "lw": 0, "label": f"interval released with it ({confidence:.0%})"}
    top, bottom = figure.subplots(2, 2, sharex=True, height_ratios=[3, 2])
    for one, above, below in zip(joins, top, bottom, strict=True):
        query = one.query
        above.fill_between(days, one.lower / 1e6, one.upper / 1e6, **band)
        above.plot(days, one.private / 1e6, color="C0", lw=1.4, marker=".", ms=4, label="private")
        above.plot(days, one.exact / 1e6, color="black", lw=1.0, ls="--", label="exact", zorder=3)
        above.set_title(f"Pairs of {query.title}", loc="left", fontsize="medium")
        above.set_ylabel("pairs since 1 January (millions)")
        above.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.4g}"))
        above.legend(loc="upper left", frameon=False, fontsize="small")
        note = "SELECT count(*)\nFROM flights AS l JOIN flights AS r\n"
        note += f"  ON l.{query.on} = r.{query.on}\nWHERE l.origin = '{query.left}' AND r.origin = '{query.right}'"
        above.text(0.03, 0.7, note, transform=above.transAxes, va="top", fontsize="small", family="monospace")
        width = one.upper[-1] - one.lower[-1]
        if width < 0.06 * one.exact[-1]:
            hint = "the band is little wider than the line:\nsee the error below"
            above.text(0.97, 0.08, hint, transform=above.transAxes, ha="right", fontsize="small", color="C0")

        def share(part: Floats, exact: Floats = one.exact) -> Floats:
            return 100 * (part - exact) / exact

        below.fill_between(days, share(one.lower), share(one.upper), **band)
        below.axhline(0, color="black", lw=1.0, ls="--")
        below.plot(days, share(one.private), color="C0", lw=1.4, marker=".", ms=4, label="private minus exact")
        # From July on; before, the joins are so small that the noise is large beside them.
        late = slice(SHOWN[2] - 1, None)
        limit = 1.1 * max(np.abs(share(part)[late]).max() for part in (one.lower, one.upper))
        below.set_ylim(-limit, limit)
        below.yaxis.set_major_formatter(ticker.PercentFormatter(decimals=0 if limit > 4 else 1))
        below.set_title("The error, as a share of the exact size (larger at first)", loc="left", fontsize="medium")
        below.set_ylabel("private minus exact")
        below.set_xlim(days[0], days[-1])
        below.xaxis.set_major_formatter(dates.ConciseDateFormatter(below.xaxis.get_major_locator()))
        for axes in (above, below):
            axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=120)
