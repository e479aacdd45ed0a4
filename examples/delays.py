"""The third part of the flights demo: how late the flights arrived, from two range counters.

One has two axes, arrival delay and distance: a heat map of all arrivals so far, and counts of boxes such as "an hour or
more late". The other has a bin for each minute of delay, for the running median and the delay that 95 % stay below.
Edges are public: minutes and miles that are round numbers, chosen without a look at the flights. What lies outside goes
into bins of its own. A flight without an arrival delay (cancelled, or sent elsewhere) has no bin and is left out.

Both have a clock of days, and a flight counts on the day on which it was to leave.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

import fastgame as fg

DAYS = fg.Ticks("2013-01-01", "2014-01-01", "1d", tz="America/New_York")
MONTH_ENDS = np.cumsum([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]).tolist()
#: The days at whose end the heat map is drawn.
MOMENTS = MONTH_ENDS[2::3]
DELAY = fg.axis.Regular(62, -60, 250, name="arr_delay")
DISTANCE = fg.axis.Regular(31, 0, 3100, name="distance", underflow=False)
MINUTES = fg.axis.Integer(-90, 300, name="arr_delay")
#: Of 1 to 4, the spacing of levels with the least error for a box of the heat map.
LEVELS = 3
SHARES = {"median": 0.5, "95 %": 0.95}
#: The public list of boxes that are released each day; axes that are not named are taken whole.
BOXES: dict[str, dict[str, Any]] = {
    "all arrivals": {},
    "early, or at most 14 min late": {"arr_delay": (None, 15)},
    "15 min late or more": {"arr_delay": (15, None)},
    "an hour late or more": {"arr_delay": (60, None)},
    "15 min late or more, under 500 miles": {"arr_delay": (15, None), "distance": (None, 500)},
    "15 min late or more, 2,000 miles or more": {"arr_delay": (15, None), "distance": (2000, None)},
    "up to 4 min late, 700 to 799 miles": {"arr_delay": (0, 5), "distance": (700, 800)},
}

Floats = npt.NDArray[np.float64]


@dataclass
class Delays:
    """Both structures, and what they released: a row a day or month end, beside the truth."""

    boxes: fg.RangeCounter
    minutes: fg.RangeCounter
    #: By day and box.
    private: Floats = field(default_factory=lambda: np.empty((0, 0)))
    std: Floats = field(default_factory=lambda: np.empty((0, 0)))
    exact: Floats = field(default_factory=lambda: np.empty((0, 0)))
    #: By day: heat maps, delay by distance.
    maps: dict[int, fg.Grid] = field(default_factory=dict)
    exact_maps: dict[int, Floats] = field(default_factory=dict)
    #: By month end and share.
    quantiles: Floats = field(default_factory=lambda: np.empty((0, 0)))
    #: By month end, share, and end of the interval.
    intervals: Floats = field(default_factory=lambda: np.empty((0, 0, 0)))
    exact_quantiles: Floats = field(default_factory=lambda: np.empty((0, 0)))


def plan_delays(for_boxes: fg.Zcdp, for_minutes: fg.Zcdp) -> tuple[fg.Plan, fg.Plan]:
    """The two structures before there is any data: by delay and distance, and by the minute."""
    boxes = fg.RangeCounter.plan(horizon=DAYS.horizon, privacy=for_boxes, axes=[DELAY, DISTANCE], levels=LEVELS)
    minutes = fg.RangeCounter.plan(horizon=DAYS.horizon, privacy=for_minutes, axes=MINUTES, levels=2)
    return boxes, minutes


def map_error(plan: fg.Plan, confidence: float) -> float:
    """The error of a box of the heat map, on average over the boxes."""
    return plan.box(sides=(1, 1), confidence=confidence).error


def release_delays(flights: Any, plans: tuple[fg.Plan, fg.Plan], confidence: float) -> Delays:
    """Feeds the year day by day: boxes are released each day, heat maps and quantiles when their day has come."""
    boxes, minutes = (plan.build() for plan in plans)
    assert isinstance(boxes, fg.RangeCounter) and isinstance(minutes, fg.RangeCounter)
    delays = Delays(boxes, minutes)
    quantiles, intervals = [], []

    def look(day: int) -> None:
        if day in MOMENTS:
            delays.maps[day] = boxes.grid(error=True)
        if day in MONTH_ENDS:
            found, ends = read_quantiles(minutes, confidence)
            quantiles.append(found)
            intervals.append(ends)

    feeds = {"boxes": fg.Feed(boxes, boxes=BOXES), "minutes": fg.Feed(minutes, boxes={"all": {}})}
    released = replay_days(flights, feeds, look)["boxes"]
    delays.private, delays.std = (released[name].to_numpy().reshape(-1, len(BOXES)) for name in ("value", "std"))
    delays.quantiles, delays.intervals = np.array(quantiles), np.array(intervals)
    compare(delays, flights)
    return delays


def replay_days(flights: Any, feeds: dict[str, fg.Feed], look: Callable[[int], None]) -> Any:
    """Replays the year; at the end of each day `look` may read more than the boxes of the feeds."""
    with tqdm(total=DAYS.horizon, desc="delays", unit=" days", disable=not sys.stderr.isatty()) as bar:

        def progress(day: int, _: int) -> None:
            look(day)
            bar.update(day - bar.n)

        return fg.replay(flights, DAYS, feeds, time="time_hour", progress=progress)


def read_quantiles(minutes: fg.RangeCounter, confidence: float) -> tuple[list[float], list[list[float]]]:
    """The quantiles at the present step, each with an interval, from released counts alone.

    The count before a quantile and its share of the total are each off by what is stated with them; so far the quantile
    may be wrong in rank.
    """
    shares = np.array(list(SHARES.values()))
    found = minutes.quantile(shares)
    before, total = minutes.count({"arr_delay": (None, found)}, error=True), minutes.count({}, error=True)
    # Whatever noise they share, the standard deviation of the difference is at most the sum.
    slack = NormalDist().inv_cdf((1 + confidence) / 2) * (before.std + shares * total.std) / max(total.value, 1.0)
    ends = [minutes.quantile(np.clip(shares + side, 0, 1)) for side in (-slack, slack)]
    return found.tolist(), np.column_stack(ends).tolist()


def compare(delays: Delays, flights: Any) -> None:
    """The truth beside what was released."""
    arrived = flights.dropna(subset=["arr_delay"])
    days = DAYS.step(arrived["time_hour"].str.removesuffix("Z").to_numpy(dtype="datetime64[h]"))
    delay, distance = (arrived[name].to_numpy() for name in ("arr_delay", "distance"))

    def is_inside(box: dict[str, Any]) -> npt.NDArray[np.bool_]:
        found = np.ones(len(arrived), dtype=bool)
        for name, (low, high) in box.items():
            found &= (arrived[name] >= (-np.inf if low is None else low)).to_numpy()
            found &= (arrived[name] < (np.inf if high is None else high)).to_numpy()
        return found

    each = [np.bincount(days[is_inside(box)], minlength=DAYS.horizon + 1)[1:] for box in BOXES.values()]
    delays.exact = np.cumsum(each, axis=1).T.astype(np.float64)

    # Bins are half-open on both axes; flow bins are not drawn.
    x, y = (
        np.searchsorted(axis.edges, values, side="right") - 1 for axis, values in ((DELAY, delay), (DISTANCE, distance))
    )
    drawn = (x >= 0) & (x < DELAY.size) & (y < DISTANCE.size)
    for day in MOMENTS:
        cells = np.bincount((x * DISTANCE.size + y)[drawn & (days <= day)], minlength=DELAY.size * DISTANCE.size)
        delays.exact_maps[day] = cells.reshape(DELAY.size, DISTANCE.size).astype(np.float64)
    delays.exact_quantiles = np.array(
        [np.quantile(delay[days <= day], list(SHARES.values()), method="inverted_cdf") for day in MONTH_ENDS]
    )


def day_name(day: int) -> str:
    """The date of a day, the first of which is 1."""
    return str(np.datetime64("2012-12-31") + day)


def print_delays(delays: Delays, plans: tuple[fg.Plan, fg.Plan], confidence: float) -> None:
    """The tables that a person reads."""
    print(f"\nArrivals until {day_name(DAYS.horizon)}, by delay and distance\n")
    print(f"  {'':<42}{'private':>12}{'exact':>10}{'error':>9}{'stated std':>12}{'planned std':>13}")
    for place, (name, box) in enumerate(BOXES.items()):
        private, exact, std = delays.private[-1, place], delays.exact[-1, place], delays.std[-1, place]
        numbers = f"{private:>12,.1f}{exact:>10,.0f}{private - exact:>+9.1f}{std:>12.1f}{plans[0].box(box).std:>13.1f}"
        print(f"  {name:<42}{numbers}")
    counts, cells = (f"{np.mean(part):.1%} of {part.size:,}" for part in within_stated(delays, confidence))
    print(f"\n  The error of {confidence:.0%} that was stated with it holds for {counts} counts in the year,")
    print(f"  and for {cells} boxes of the heat maps.")

    print("\nArrival delay so far, in minutes (in brackets: the interval that was released with it)\n")
    print(f"  {'end of':<12}" + "".join(f"{name + ': private':>26}{'exact':>7}" for name in SHARES))
    for row, day in enumerate(MONTH_ENDS):
        numbers = ""
        for place in range(len(SHARES)):
            low, high = delays.intervals[row, place]
            shown = f"{delays.quantiles[row, place]:.0f} [{low:.0f}, {high:.0f}]"
            numbers += f"{shown:>26}{delays.exact_quantiles[row, place]:>7.0f}"
        print(f"  {day_name(day):<12}{numbers}")


def within_stated(delays: Delays, confidence: float) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which of the boxes of the list, and of the heat maps, are within the error that was released with them."""
    deviations = NormalDist().inv_cdf((1 + confidence) / 2)
    maps = [(delays.maps[day], delays.exact_maps[day]) for day in MOMENTS]
    cells = [np.abs(grid.value - exact) <= deviations * np.asarray(grid.std) for grid, exact in maps]
    return np.abs(delays.private - delays.exact) <= deviations * delays.std, np.array(cells)


def write_delays(path: Path, delays: Delays) -> None:
    """One row a day and box, and one a month end and quantile."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["date", "series", "private", "std", "lower", "upper", "exact"])
        for day in range(DAYS.horizon):
            for place, name in enumerate(BOXES):
                released = (delays.private[day, place], f"{delays.std[day, place]:.6g}", "", "")
                writer.writerow([day_name(day + 1), name, *released, int(delays.exact[day, place])])
        for row, day in enumerate(MONTH_ENDS):
            for place, name in enumerate(SHARES):
                ends = (int(end) for end in delays.intervals[row, place])
                numbers = (int(delays.quantiles[row, place]), "", *ends, int(delays.exact_quantiles[row, place]))
                writer.writerow([day_name(day), f"delay in minutes, {name}", *numbers])


def draw_maps(path: Path, delays: Delays, error: float, title: str) -> None:
    """Private heat maps beside the exact ones, all with one scale of colours."""
    from matplotlib import ticker  # noqa: PLC0415
    from matplotlib.colors import LogNorm  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(10, 12), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    rows = figure.subplots(len(MOMENTS), 2, sharex=True, sharey=True)
    # From light to dark: a reader without colours sees the same order. What the noise may make of nothing stays white.
    ticks = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000]
    largest = max(part.max() for part in delays.exact_maps.values())
    norm = LogNorm(error, largest)
    for row, day in zip(rows, MOMENTS, strict=True):
        grid = delays.maps[day]
        delay, distance = grid.edges
        for axes, kind, values in zip(row, ("private", "exact"), (grid.value, delays.exact_maps[day]), strict=True):
            shown = axes.pcolormesh(delay, distance, values.T, norm=norm, cmap="viridis_r", rasterized=True)
            shown.cmap.set_under("white")
            until = f"{np.datetime64(day_name(day)).item():%d %B}"
            axes.set_title(f"{kind}, 1 January to {until}", loc="left", fontsize="small")
            axes.axvline(0, color="black", lw=0.6, ls=":")
            axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
            axes.xaxis.set_major_locator(ticker.MultipleLocator(60))
        row[0].set_ylabel("distance (miles)")
    for axes in rows[-1]:
        axes.set_xlabel("arrival delay (minutes; left of the dotted line: early)")
    bar = figure.colorbar(shown, ax=rows, extend="min", aspect=50)
    bar.set_ticks([tick for tick in ticks if error <= tick <= largest])
    bar.ax.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    bar.ax.yaxis.set_minor_locator(ticker.NullLocator())
    bar.set_label(f"flights in a box of 5 minutes by 100 miles (white: fewer than {error:.0f}, the error of a box)")
    figure.savefig(path, dpi=120)


def draw_quantiles(path: Path, delays: Delays, confidence: float, title: str) -> None:
    """The running quantiles with their intervals, beside the exact ones."""
    from matplotlib import dates, ticker  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(9, 7), layout="constrained")
    figure.suptitle(title, fontsize="medium")
    days = np.array([np.datetime64(day_name(day)) for day in MONTH_ENDS])
    titles = ["Median: half of the arrivals so far were no later", "95 % of the arrivals so far were no later"]
    for place, axes in enumerate(figure.subplots(2, 1, sharex=True)):
        private, ends = delays.quantiles[:, place], delays.intervals[:, place]
        style = {"fmt": "o", "color": "C0", "mfc": "white", "ms": 8, "capsize": 5}
        label = f"private, with its interval ({confidence:.0%})"
        axes.errorbar(days, private, yerr=np.abs(ends.T - private), label=label, **style)
        axes.plot(days, delays.exact_quantiles[:, place], "kx--", lw=0.8, ms=5, zorder=3, label="exact")
        axes.set_title(titles[place], loc="left", fontsize="medium")
        axes.set_ylabel("arrival delay (minutes;\nnegative: early)" if private.min() < 0 else "arrival delay (minutes)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.margins(y=0.3)
        axes.yaxis.set_major_locator(ticker.MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        axes.set_xticks(days)
        axes.xaxis.set_major_formatter(dates.DateFormatter("%d %b"))
        axes.legend(loc="upper right", frameon=False, ncols=2, fontsize="small")
    axes.set_xlabel("arrivals from 1 January to the end of (2013)")
    figure.savefig(path, dpi=120)
