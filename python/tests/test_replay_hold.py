"""While a replay holds structures: who may ask them, who closes them, and what an interruption leaves."""

from __future__ import annotations

import datetime as dt
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from helpers import tiny_noise

import fastgame as fg
from fastgame import _store
from fastgame._signals import waiting_signals

TICKS = fg.Ticks("2026-01-01", "2026-01-11", "1d")
COMMON: dict[str, Any] = {"horizon": 10, "privacy": tiny_noise()}
FRAME = pa.table({"t": pa.array([dt.datetime(2026, 1, day, 12) for day in range(1, 11)], pa.timestamp("us"))})


def durable(path: Path) -> Any:
    return fg.open(path, fg.ContinualCounter, **COMMON)


def replay(structures: Any, **more: Any) -> Any:
    return fg.replay(FRAME, TICKS, structures, time="t", **more)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.fg"


@pytest.fixture(autouse=True)
def nothing_is_left_held() -> Any:
    yield
    assert not _store.Unit._holders


def test_what_is_kept_in_a_file_is_not_asked_in_progress_and_what_is_in_memory_is(path: Path) -> None:
    kept, other = durable(path), fg.ContinualCounter(**COMMON)
    seen = []

    def ask(done: int, _: int) -> None:
        assert (kept.now, kept.sealed) == (done, True)
        for call in (kept.release, kept.advance, kept.sync, kept.checkpoint):
            with pytest.raises(fg.StateError):
                call()
        with pytest.raises(fg.StateError):
            kept.update(1)
        seen.append(round(other.release()))

    tables = replay({"kept": kept, "other": other}, progress=ask)
    assert seen == list(range(1, 11)) and tables["kept"].num_rows == 10
    assert round(kept.release()) == 10
    kept.close()


def test_a_join_that_is_kept_in_a_file_is_not_asked_in_progress(path: Path) -> None:
    join = fg.open(path, fg.JoinSize, width=32, **COMMON)
    table = FRAME.append_column("k", pa.array([1] * 10))

    def ask(*_: int) -> None:
        with pytest.raises(fg.StateError):
            join.estimate()

    found = fg.replay_join(table, table, TICKS, join, time="t", key="k", progress=ask)
    assert found.num_rows == 10
    join.estimate()
    join.close()


def test_a_run_inside_progress_does_not_write_half_of_the_outer_one(path: Path) -> None:
    kept = durable(path)

    def again(*_: int) -> None:
        replay(kept, resume=True)

    with pytest.raises(fg.StateError):
        replay(kept, progress=again)
    with durable(path) as kept:
        assert (kept.now, kept.generation) == (1, 0)


@pytest.mark.parametrize("in_file", [True, False])
def test_another_thread_neither_joins_nor_closes_what_is_held(path: Path, in_file: bool) -> None:
    counter: Any = durable(path) if in_file else fg.ContinualCounter(**COMMON)
    other = fg.ContinualCounter(**COMMON)
    errors: list[BaseException] = []

    def intrude() -> None:
        try:
            with _store.Unit([other, counter]):
                raise AssertionError
        except fg.StateError as error:
            errors.append(error)

    def start(done: int, _: int) -> None:
        if done == 4:
            thread = threading.Thread(target=intrude)
            thread.start()
            thread.join()

    assert replay(counter, progress=start).num_rows == 10
    assert len(errors) == 1
    # Neither was closed.
    other.advance()
    assert round(counter.release()) == 10
    counter.close()


def test_healthy_structures_are_not_closed_for_one_that_was(path: Path) -> None:
    healthy, kept, closed = fg.ContinualCounter(**COMMON), durable(path), fg.ContinualCounter(**COMMON)
    closed.close()
    with pytest.raises(fg.StateError, match="closed"):
        replay({"healthy": healthy, "kept": kept, "closed": closed})
    assert (kept.now, kept.generation) == (1, 0)
    kept.update(1)
    assert kept.generation == 1
    healthy.update(1)
    kept.close()


def test_a_unit_that_failed_inside_another_is_not_written_by_it(path: Path) -> None:
    counter = durable(path)
    outer = _store.Unit([counter])
    with pytest.raises(fg.StateError, match="a run inside this one failed"), outer:
        with pytest.raises(RuntimeError), _store.Unit([counter]):
            counter.update(1)
            raise RuntimeError
        # It is the outer one's to close.
        counter.update(1)
        outer.commit()
    with pytest.raises(fg.StateError, match="closed"):
        counter.update(1)
    assert fg.inspect(path).generation == 0


def test_beginning_and_letting_go_writes_nothing(path: Path) -> None:
    with durable(path) as counter:
        before = path.read_bytes()
        for _ in range(3):
            with _store.Unit([counter]) as unit:
                unit.commit()
        assert path.read_bytes() == before and counter.generation == 0


class Interrupted:
    """A structure whose first closing is interrupted."""

    path = "none"
    now = 1

    def __init__(self) -> None:
        self.closings = 0

    def advance(self, *, to: int) -> None:
        assert to == 1

    def _hold(self) -> None: ...

    def _commit(self) -> None: ...

    def close(self) -> None:
        self.closings += 1
        if self.closings == 1:
            raise KeyboardInterrupt


def test_an_interruption_at_the_end_leaves_nothing_open_and_nothing_held(path: Path) -> None:
    first, kept = Interrupted(), durable(path)
    with pytest.raises(KeyboardInterrupt), _store.Unit([first, kept]):
        kept.update(1)
        raise RuntimeError
    assert first.closings == 2
    with pytest.raises(fg.StateError, match="closed"):
        kept.update(1)


def test_an_interruption_before_the_end_begins_leaves_nothing_open(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = durable(path)

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    def stop(*_: int) -> None:
        raise RuntimeError

    monkeypatch.setattr(_store.Unit, "__exit__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        replay(kept, progress=stop)
    with pytest.raises(fg.StateError, match="closed"):
        kept.update(1)
    assert fg.inspect(path).generation == 0


@pytest.fixture
def interrupts() -> Any:
    """Python's own handler, whatever the process was started with."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.usefixtures("interrupts")
def test_an_interruption_while_files_are_written_comes_after_the_table(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: Any = durable(path)
    table: Any = None
    real = _store.Unit.commit

    def commit(unit: Any) -> None:
        signal.raise_signal(signal.SIGINT)
        real(unit)

    monkeypatch.setattr(_store.Unit, "commit", commit)
    with pytest.raises(KeyboardInterrupt):
        table = replay(kept)
        start = time.monotonic()
        time.sleep(10)
    assert time.monotonic() - start < 9, "what waits is interrupted"
    assert table.num_rows == 10
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert round(kept.release()) == 10
    kept.close()


@pytest.mark.skipif(os.name == "nt", reason="signals of Unix")
@pytest.mark.usefixtures("interrupts")
def test_an_interruption_is_not_lost_where_writing_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = durable(path)

    def commit(_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_store.Unit, "commit", commit)
    with pytest.raises(KeyboardInterrupt):
        with pytest.raises(OSError, match="No space"):
            replay(kept)
        time.sleep(10)
    with pytest.raises(fg.StateError, match="closed"):
        kept.update(1)


def test_signals_wait_in_the_main_thread_alone() -> None:
    found = []

    def block() -> None:
        with waiting_signals() as waiting:
            found.append(waiting)

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert found == [[]]
