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

    A prefix count and the share of the total are each off by at most their stated error; so far the quantile may be
    moved up or down in rank.
    """
    shares = np.array(list(SHARES.values()))
    found = minutes.quantile(shares)
    # Each error may take half of what the confidence leaves.
    widths = fg_normal(1 - (1 - confidence) / 2)
    before = minutes.count({"arr_delay": (None, found)}, error=True)
    total = minutes.count({}, error=True)
    slack = widths * (before.std + shares * total.std) / max(total.value, 1.0)
    ends = [minutes.quantile(np.clip(shares + sign * slack, 0, 1)) for sign in (-1, 1)]
    return found.tolist(), np.column_stack(ends).tolist()
