"""Threads that share a structure, in memory and in a store, and what else runs while one of them waits for the disk."""

from __future__ import annotations

import faulthandler
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import KEYS, STRUCTURES, UNITS, answer, parameters, reopened, shows, update
from test_threads import THREADS, run_together, ticks_during

import fastgame as fg


@pytest.fixture(autouse=True)
def watchdog() -> Iterator[None]:
    """Shows where every thread is, and ends the run, if a test hangs."""
    faulthandler.dump_traceback_later(300, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def share(structure: Any, seconds: float) -> dict[str, int]:
    """Threads that update, read, move on, sync and checkpoint at random, and then the total."""
    is_durable = structure.path is not None
    end = time.monotonic() + seconds

    def work(number: int) -> tuple[list[int], dict[str, int]]:
        chance = np.random.default_rng(number)
        added, calls = [0] * (2 * KEYS), {"updates": 0, "reads": 0, "refused": 0, "checkpoints": 0}
        while time.monotonic() < end:
            draw = chance.random()
            if draw < 0.6:
                side = KEYS * int(chance.integers(2)) if isinstance(structure, fg.JoinSize) else 0
                elements = [side + int(key) for key in chance.integers(KEYS, size=int(chance.choice([1, 4, 50])))]
                try:
                    update(structure, elements)
                    calls["updates"] += 1
                    for element in elements:
                        added[element] += 1
                except fg.SealedStepError:
                    calls["refused"] += 1
                    structure.advance()
            elif draw < 0.8:
                answer(structure, None)
                calls["reads"] += 1
            elif draw < 0.83 and is_durable:
                structure.checkpoint()
                calls["checkpoints"] += 1
            elif draw < 0.86 and is_durable:
                structure.sync()
            else:
                assert 1 <= structure.now <= structure.horizon
                assert "at step" in repr(structure)
        return added, calls

    results = run_together(work, timeout=seconds + 60)
    structure.advance()
    counts = np.sum([added for added, _ in results], axis=0)
    if not isinstance(structure, fg.JoinSize):
        counts = counts[:KEYS]
    released = answer(structure, None)
    assert shows(structure, None, released, counts.tolist())
    calls = {name: sum(one[name] for _, one in results) for name in results[0][1]}
    if is_durable:
        path = structure.path
        structure.close()
        with reopened(path) as again:
            assert np.array_equal(answer(again, None), released)
    return calls


MADE = pytest.mark.parametrize("structure", ["counter", "sketch", "join"])
KEPT = pytest.mark.parametrize("kept", ["memory", "always", "reads"])


def made(structure: str, kept: Any, folder: Path) -> Any:
    kind, given = STRUCTURES[structure][0], {**parameters(structure, "tree"), "horizon": 2**40}
    return kind(**given) if kept == "memory" else fg.open(folder / "store.fg", kind, sync=kept, **given)


@MADE
@KEPT
def test_threads_that_share_a_structure_lose_and_repeat_nothing(structure: str, kept: str, tmp_path: Path) -> None:
    # Nine of them: three seconds together.
    calls = share(made(structure, kept, tmp_path), 0.33)
    assert calls["updates"] >= THREADS
    assert calls["reads"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["memory", "always"])
def test_threads_share_a_structure_for_a_minute(kept: str, tmp_path: Path) -> None:
    calls = share(made("sketch", kept, tmp_path), 60.0)
    print(f"\n{THREADS} threads, one sketch, {kept}, a minute: {calls}")
    assert calls["updates"] > 1000


def test_other_threads_run_while_one_waits_for_the_disk(tmp_path: Path) -> None:
    # Small calls, of which nearly all time is a sync. A thread that wakes up every tenth of a millisecond runs several
    # times within one of them. If a sync held the interpreter lock, it would run once or twice around each, no more.
    store = made("counter", "always", tmp_path)
    calls: list[tuple[float, float]] = []

    def work() -> None:
        for _ in range(200):
            start = time.monotonic()
            update(store, [0])
            calls.append((start, time.monotonic()))

    _, ticks = ticks_during(work, every=0.0001)
    store.close()
    long = [(start, end) for start, end in calls if end - start > 0.001]
    if len(long) < 5:
        pytest.skip("the disk is too fast: no sync takes long enough to look into it")
    most = max(sum(start < tick < end for tick in ticks) for start, end in long)
    assert most >= 3


def test_other_threads_run_during_one_long_call_of_a_store(tmp_path: Path) -> None:
    # One call: a lock held during it would allow no tick at all.
    size = 1_000_000
    with fg.open(
        tmp_path / "store.fg", fg.ContinualVector, size=size, horizon=2, privacy=fg.Zcdp(1e9), max_norm=1000.0
    ) as store:
        store.update(range(size))
        for call in (store.release, store.checkpoint):
            _, ticks = ticks_during(call)
            assert len(ticks) >= 5
    _, ticks = ticks_during(lambda: fg.open(tmp_path / "store.fg").close())
    assert len(ticks) >= 3


def test_another_thread_closes_the_store_between_calls_and_not_in_one(tmp_path: Path) -> None:
    store = made("counter", "always", tmp_path)
    path = store.path

    def work(number: int) -> int:
        if number == 0:
            time.sleep(0.1)
            store.close()
            return 0
        done = 0
        while True:
            try:
                update(store, [0])
                done += 1
            except fg.StateError as error:
                assert "closed" in str(error)
                return done

    acknowledged = sum(run_together(work))
    with reopened(path) as store:
        assert store.generation == acknowledged
        assert round(store.release() / UNITS) == acknowledged


def test_threads_that_open_one_store_together_get_one_object(tmp_path: Path) -> None:
    opened: list[Any] = []
    barrier = threading.Barrier(THREADS)

    def work(_: int) -> int:
        barrier.wait(30)
        try:
            opened.append(made("counter", "always", tmp_path))
        except fg.StateError as error:
            assert "in use" in str(error)
            return 0
        return 1

    assert sum(run_together(work)) == len(opened) == 1
    opened.pop().close()
