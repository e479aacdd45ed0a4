"""A live feed, and what goes wrong in life: a clock that steps back, events that are none, late ones, the end.

    python examples/live.py              a made-up hour and a made-up clock, at once
    python examples/live.py --seconds 5  steps of a real second; two periods of five

What is printed to the standard output may be published; the standard error says what goes wrong. docs/howto-live.md
explains why each thing is as it is.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import fastgame as fg

#: The public list of pages.
LISTED = ["/home", "/about", "/jobs"]
UTC = dt.timezone.utc


class Period(NamedTuple):
    """A clock and the budget of all that is published in its time. Both are set before it begins."""

    ticks: fg.Ticks
    budget: fg.Budget


def page_of(line: bytes) -> str | None:
    """The page of an event; None for what is none. So a line decides over itself alone, and never over its batch."""
    try:
        event = json.loads(line)
        page = event["page"] if isinstance(event, dict) else None
        return page if isinstance(page, str) and page.encode() else None
    except (ValueError, KeyError, RecursionError):
        return None


class Live:
    """Counts what comes, and publishes at the end of each step.

    A timer calls `on_time`, and whoever receives events calls `on_events`, each in a thread of its own. The timer alone
    moves the clock. When a period is over the next one begins, with new structures.
    """

    def __init__(self, periods: Sequence[Period], publish: Callable[[dict[str, Any]], object]) -> None:
        self.periods = list(periods)
        self.publish = publish
        self.lock = threading.Lock()
        #: Answers that were not published yet.
        self.waiting: deque[dict[str, Any]] = deque()
        self.begin()

    def begin(self) -> None:
        """Makes the structures of the next period, which know nothing of those before."""
        self.ticks, budget = self.periods.pop(0)
        total, by_page = budget.split(0.2, 0.8)
        self.views = fg.ContinualCounter(horizon=self.ticks.horizon, privacy=total, invalid="drop")
        self.pages = fg.CountSketch(width=4096, horizon=self.ticks.horizon, privacy=by_page, invalid="drop")

    def on_events(self, lines: Iterable[bytes]) -> bool:
        """Counts events at the step that is open, whenever they happened; whether there was one to count them at."""
        pages = [page for page in map(page_of, lines) if page is not None]
        with self.lock:
            if self.is_over:
                return False
            self.views.update([1] * len(pages))
            self.pages.update(pages)
            return True

    def on_time(self, now: dt.datetime) -> None:
        """Publishes the steps that have ended, and opens the next one.

        A clock on the wall may step back: then no step has ended, and nothing happens until it has caught up.
        """
        with self.lock:
            while not self.is_over and now >= self.ticks.time(self.views.now):
                self.waiting.append(self.answer())
                if self.views.now < self.ticks.horizon:
                    for structure in (self.views, self.pages):
                        structure.advance()
                elif self.periods:
                    self.begin()
        # Where this fails the answer waits for the next call. Events are counted meanwhile.
        while self.waiting:
            self.publish(self.waiting[0])
            self.waiting.popleft()

    @property
    def is_over(self) -> bool:
        """Whether the last step of the last period was released."""
        return self.views.sealed

    def answer(self) -> dict[str, Any]:
        """Releases the step that is open. It takes no more events then: the next one is opened under the same lock."""
        estimates = self.pages.estimate(LISTED)
        return {
            "since": self.ticks.start.isoformat(),
            "as of": self.ticks.time(self.views.now).isoformat(),
            "views": round(self.views.release()),
            "std": round(self.views.noise_std(), 1),
            "pages": {page: round(float(estimate)) for page, estimate in zip(LISTED, estimates, strict=True)},
        }


def events(pages: Sequence[str]) -> list[bytes]:
    """Events as they come over a wire."""
    return [json.dumps({"page": page}).encode() for page in pages]


#: What goes wrong in the made-up hour, by minute.
WRONG = {
    7: "a null and a line that is no JSON are in a batch",
    14: "the clock steps back by eight minutes, and is set right five minutes later",
    21: "an event comes that happened before the last step was published",
    60: "the last period is over: nothing is counted until somebody grants a budget for another",
}


def made_up() -> Iterator[tuple[dt.datetime, list[bytes]]]:
    """What the clock on the wall shows, and what comes then: two periods of half an hour."""
    start = dt.datetime(2026, 1, 1, 9, tzinfo=UTC)
    for minute in range(61):
        if minute in WRONG:
            print(WRONG[minute], file=sys.stderr)
        batch = events(["/home", "/jobs"])
        if minute == 7:
            batch[1:1] = [b'{"page": null}', b'{"page": "/ho']
        if minute == 21:
            batch += events(["/about"])
        yield start + dt.timedelta(minutes=minute - 8 if 14 <= minute < 19 else minute), batch


def run_at_once(live: Live) -> None:
    """Plays the made-up hour."""
    for now, batch in made_up():
        live.on_time(now)
        live.on_events(batch)


def run_in_real_time(live: Live, rate: float = 50.0) -> None:
    """Plays random events until the last period is over, with a timer in a thread of its own."""

    def timer() -> None:
        while not live.is_over:
            live.on_time(dt.datetime.now(UTC))
            time.sleep(0.02)

    thread = threading.Thread(target=timer)
    thread.start()
    while live.on_events(events(random.choices(LISTED, [8, 1, 3]))):
        time.sleep(random.expovariate(rate))
    thread.join()


def periods_of(seconds: int | None, rho: float) -> list[Period]:
    """Two periods, one behind the other, each with a budget of its own."""
    if seconds is None:
        start, step, length = dt.datetime(2026, 1, 1, 9, tzinfo=UTC), "10m", dt.timedelta(minutes=30)
    else:
        start, step, length = dt.datetime.now(UTC).replace(microsecond=0), "1s", dt.timedelta(seconds=seconds)
    starts = [start, start + length]
    return [Period(fg.Ticks(first, first + length, step), fg.Zcdp(rho)) for first in starts]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the example."""
    parser = argparse.ArgumentParser(description="Publishes counts of a live feed, and meets what goes wrong in life.")
    parser.add_argument("--seconds", type=int, metavar="N", help="two periods of so many real seconds, a step each")
    parser.add_argument("--rho", type=float, default=0.5, help="the budget of each period (default: %(default)s)")
    given = parser.parse_args(arguments)
    if given.seconds is not None and given.seconds < 1:
        parser.error(f"--seconds must be at least 1; {given.seconds} was given")
    periods = periods_of(given.seconds, given.rho)
    print(f"all periods together cost {fg.total(*(period.budget for period in periods))}", file=sys.stderr)
    live = Live(periods, lambda answer: print(json.dumps(answer), flush=True))
    (run_at_once if given.seconds is None else run_in_real_time)(live)


if __name__ == "__main__":
    main()
