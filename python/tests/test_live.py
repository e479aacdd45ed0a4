"""The example of a live feed: what goes wrong is met as its document says, and the document quotes what runs."""

from __future__ import annotations

import datetime as dt
import json
import re
from pathlib import Path
from typing import Any

import pytest
from helpers import example, tiny_noise

import fastgame as fg

live = example("live")
START = dt.datetime(2026, 1, 1, 9, tzinfo=dt.timezone.utc)
HOME = live.events(["/home"])


def at(minutes: float) -> dt.datetime:
    """What the clock on the wall shows."""
    return START + dt.timedelta(minutes=minutes)


def made(periods: int = 1, steps: int = 3) -> tuple[Any, list[tuple[str, int, int]]]:
    """A feed with steps of ten minutes and negligible noise; each answer as end of step, views, views of /home."""
    published: list[tuple[str, int, int]] = []
    starts = [START + dt.timedelta(minutes=10 * steps * place) for place in range(periods)]
    given = [
        live.Period(fg.Ticks(start, start + dt.timedelta(minutes=10 * steps), "10m"), tiny_noise()) for start in starts
    ]

    def publish(answer: dict[str, Any]) -> None:
        published.append((answer["as of"][11:16], answer["views"], answer["pages"]["/home"]))

    return live.Live(given, publish), published


def test_the_made_up_hour_is_counted_but_for_what_is_no_event(capsys: pytest.CaptureFixture[str]) -> None:
    live.main(["--rho", "1e9"])
    out, err = capsys.readouterr()
    answers = [json.loads(line) for line in out.splitlines()]
    # Two events a minute; /about came once, in the third step.
    views = [20, 40, 61, 20, 40, 60]
    assert [answer["views"] for answer in answers] == views
    assert [answer["pages"]["/about"] for answer in answers] == [0, 0, 1, 0, 0, 0]
    assert [answer["as of"][11:16] for answer in answers] == ["09:10", "09:20", "09:30", "09:40", "09:50", "10:00"]
    assert [answer["since"][11:16] for answer in answers] == ["09:00"] * 3 + ["09:30"] * 3
    assert re.fullmatch(r"Zcdp\(rho=200000000\d\.\d*\)", err.splitlines()[0].removeprefix("all periods together cost "))
    assert err.splitlines()[1:] == list(live.WRONG.values())


def test_a_clock_that_steps_back_publishes_nothing_and_loses_nothing() -> None:
    feed, published = made()
    feed.on_time(at(11))
    for minutes in (2, -600, 9.9, 10, 19.9):
        feed.on_time(at(minutes))
        assert feed.on_events(HOME)
    assert published == [("09:10", 0, 0)]
    feed.on_time(at(20))
    assert published[1:] == [("09:20", 5, 5)]


def test_a_clock_that_jumps_ahead_publishes_the_steps_between() -> None:
    feed, published = made()
    feed.on_events(HOME)
    feed.on_time(at(25))
    feed.on_events(HOME)
    feed.on_time(at(31))
    assert published == [("09:10", 1, 1), ("09:20", 1, 1), ("09:30", 2, 2)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"page": null}',
        b'{"page": 5}',
        b'{"page": ["/home"]}',
        b'{"page": "\\ud800"}',
        b'{"page": "/ho',
        b'{"page": ' + b"9" * 5000 + b"}",
        b"{}",
        b"[]",
        b"null",
        b"",
        b"\xff",
        b"[" * 100_000,
    ],
    ids=lambda line: line[:20].decode("latin-1"),
)
def test_a_line_that_is_no_event_takes_no_other_along(line: bytes) -> None:
    feed, published = made()
    for batch in ([line, *HOME, *HOME], [*HOME, line, *HOME], [*HOME, *HOME, line], [line], []):
        feed.on_events(batch)
    feed.on_time(at(10))
    assert published == [("09:10", 6, 6)]


def test_an_event_behind_the_release_of_its_step_is_counted_in_the_next() -> None:
    feed, published = made()
    feed.on_events(HOME)
    feed.on_time(at(10))
    # It happened at 9:05, and comes now.
    assert feed.on_events(HOME)
    feed.on_time(at(20))
    assert published == [("09:10", 1, 1), ("09:20", 2, 2)]


def test_at_the_end_the_next_period_begins_and_behind_the_last_nothing_is_counted() -> None:
    feed, published = made(periods=2, steps=1)
    first = feed.views
    feed.on_events(HOME)
    feed.on_time(at(10))
    assert feed.views is not first and not feed.is_over
    feed.on_events([*HOME, *HOME])
    feed.on_time(at(20))
    assert feed.is_over and not feed.on_events(HOME)
    feed.on_time(at(500))
    assert published == [("09:10", 1, 1), ("09:20", 2, 2)]


def test_an_answer_that_could_not_be_published_is_published_again() -> None:
    feed, published = made()
    works, feed.publish = feed.publish, lambda answer: 1 / 0
    feed.on_events(HOME)
    with pytest.raises(ZeroDivisionError):
        feed.on_time(at(10))
    assert feed.on_events(HOME), "events are counted meanwhile"
    feed.publish = works
    feed.on_time(at(20))
    assert published == [("09:10", 1, 1), ("09:20", 2, 2)]


def test_it_runs_in_real_time(capsys: pytest.CaptureFixture[str]) -> None:
    live.main(["--seconds", "1"])
    out, _ = capsys.readouterr()
    ends = [dt.datetime.fromisoformat(json.loads(line)["as of"]) for line in out.splitlines()]
    assert len(ends) == 2 and ends[1] - ends[0] == dt.timedelta(seconds=1)
    with pytest.raises(SystemExit):
        live.main(["--seconds", "0"])
    assert "--seconds must be at least 1; 0 was given" in capsys.readouterr().err


def test_the_document_quotes_the_file() -> None:
    root = Path(__file__).resolve().parents[2]
    text = (root / "docs" / "howto-live.md").read_text(encoding="utf-8")
    source = (root / "examples" / "live.py").read_text(encoding="utf-8")
    quoted = re.findall(r"<!-- examples/live.py -->\n<!-- no-test -->\n```python\n(.*?)```", text, re.DOTALL)
    assert len(quoted) == text.count("<!-- examples/live.py -->") >= 3
    for code in quoted:
        assert code in source, code
