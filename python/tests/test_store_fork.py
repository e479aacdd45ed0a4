"""A store has one user: other objects, other processes, and forked children are refused."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import STRUCTURES, UNITS, answer, parameters, update
from helpers import meanwhile, raised_by
from test_misuse import in_a_child, name_of_error

import fastgame as fg

NAMES = pytest.mark.parametrize("structure", [name for name in STRUCTURES if name != "large vector"])


def opened(path: Path, structure: str = "counter", **options: Any) -> Any:
    return fg.open(path, STRUCTURES[structure][0], **parameters(structure, "tree"), **options)


def until(condition: Callable[[], bool], seconds: float = 30) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


# --- One user


@NAMES
def test_a_second_object_is_refused_in_the_same_process(structure: str, tmp_path: Path) -> None:
    path = tmp_path / "store.fg"
    store = opened(path, structure)
    for _ in range(2):
        for use in (lambda: opened(path, structure), lambda: fg.open(path)):
            with pytest.raises(fg.StateError, match="in use by another object or process"):
                use()
        # To refuse somebody does not let the lock go.
        update(store, [0])
        store.checkpoint()
        assert fg.inspect(path).structure == type(store).__name__
    store.close()
    opened(path, structure).close()


def test_the_lock_goes_with_the_object(tmp_path: Path) -> None:
    path = tmp_path / "store.fg"
    store = opened(path)
    del store
    gc.collect()
    with opened(path) as store:
        update(store, [0])
    with pytest.raises(ValueError, match="of the block"), opened(path):
        raise ValueError("of the block")
    opened(path).close()


def test_an_opening_that_fails_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "store.fg"
    opened(path).close()
    with pytest.raises(fg.IncompatibleError):
        fg.open(path, fg.ContinualCounter, horizon=5)
    with pytest.raises(fg.StateError):
        fg.open(path, expect_generation=10)
    opened(path).close()


def test_another_process_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    path = tmp_path / "store.fg"
    script = """
import sys, fastgame as fg
try:
    fg.open(sys.argv[1]).close()
except fg.StateError as error:
    print("refused" if "in use" in str(error) else error)
else:
    print("opened")
"""

    def other() -> str:
        run = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
        return run.stdout.strip()

    store = opened(path)
    update(store, [0])
    assert other() == "refused"
    store.checkpoint()  # another file, locked too
    assert other() == "refused"
    store.close()
    assert other() == "opened"


def test_a_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "store.fg"
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            store = opened(path)
            update(store, [0])
            os.write(sending, b"x")
            time.sleep(60)
        finally:
            os._exit(1)
    assert os.read(receiving, 1) == b"x"
    with pytest.raises(fg.StateError, match="in use"):
        opened(path)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with opened(path) as store:
        assert store.generation == 1
    os.close(receiving)
    os.close(sending)


def test_processes_that_open_a_new_store_together_make_one(tmp_path: Path) -> None:
    # Each opens, adds 1 and closes, and tries again while another has it. Rejects a creation that overwrites.
    path = tmp_path / "store.fg"
    children = []
    processes, times = 4, 5
    for _ in range(processes):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(60)
                done = 0
                while done < times:
                    try:
                        with opened(path) as store:
                            update(store, [0])
                            done += 1
                    except fg.StateError as error:
                        if "in use" not in str(error):
                            raise
                        time.sleep(0.001)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    for child in children:
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert os.listdir(tmp_path) == ["store.fg"]
    with opened(path) as store:
        assert round(store.release() / UNITS) == processes * times


# --- Forked children


def uses(store: Any) -> list[Callable[[], Any]]:
    return [
        lambda: update(store, [0]),
        lambda: answer(store, None),
        store.advance,
        store.sync,
        store.checkpoint,
        store.close,
        store.__enter__().__exit__,
        lambda: store.generation,
        lambda: store.path,
        lambda: store.now,
    ]


@NAMES
@pytest.mark.parametrize("sync", ["always", "reads"])
def test_a_forked_child_cannot_use_the_store(structure: str, sync: str, tmp_path: Path) -> None:
    path = tmp_path / "store.fg"
    store = opened(path, structure, sync=sync)
    update(store, [0, 1])
    first = answer(store, None)
    store.advance()
    update(store, [0])
    before = path.read_bytes()
    assert set(in_a_child(lambda: [name_of_error(use) for use in uses(store)])) == {"CopyError"}
    assert set(in_a_child(lambda: in_a_child(lambda: [name_of_error(use) for use in uses(store)]))) == {"CopyError"}
    assert in_a_child(lambda: str(raised_by(lambda: opened(path, structure)))).count("in use") == 1
    assert path.read_bytes() == before
    # The parent's goes on, and is still locked.
    with pytest.raises(fg.StateError, match="in use"):
        opened(path, structure)
    update(store, [0])
    store.checkpoint()
    second = answer(store, None)
    store.close()
    with opened(path, structure) as store:
        assert np.array_equal(answer(store, None), second)
    assert np.shape(first) == np.shape(second)


def test_a_child_that_ends_in_the_usual_way_writes_nothing_and_lets_nothing_go(tmp_path: Path) -> None:
    # The interpreter of the child is shut down and frees its copy: that is not a close.
    path = tmp_path / "store.fg"
    script = """
import gc, os, sys, fastgame as fg
store = fg.open(sys.argv[1], fg.ContinualCounter, horizon=8, privacy=fg.Zcdp(0.5), sync="reads")
store.update(1)
before = open(sys.argv[1], "rb").read()
if (child := os.fork()) == 0:
    if sys.argv[2] == "deleted":
        del store
        gc.collect()
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
assert open(sys.argv[1], "rb").read() == before
try:
    fg.open(sys.argv[1])
except fg.StateError as error:
    assert "in use" in str(error), error
else:
    raise AssertionError("the lock is gone")
store.update(1)
store.release()
store.checkpoint()
store.close()
fg.open(sys.argv[1]).close()
"""
    for how in ("deleted", "left"):
        place = tmp_path / how
        run = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", script, str(place), how], capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
        assert fg.inspect(place).generation == 3
    assert not path.exists()


@pytest.mark.parametrize("end", ["close", "delete", "kill"])
def test_a_child_that_lives_on_does_not_hold_the_lock(end: str, tmp_path: Path) -> None:
    # A worker of a pool outlives its parent at times.
    path = tmp_path / "store.fg"
    script = """
import gc, os, signal, sys, time, fastgame as fg
store = fg.open(sys.argv[1], fg.ContinualCounter, horizon=8, privacy=fg.Zcdp(0.5))
store.update(1)
store.checkpoint()
begun, begins = os.pipe()
if (child := os.fork()) == 0:
    # What Python does after a fork is done.
    os.write(begins, b"x")
    os.close(1)
    time.sleep(60)
    os._exit(0)
os.read(begun, 1)
store.update(1)
if sys.argv[2] == "close":
    store.close()
elif sys.argv[2] == "delete":
    del store
    gc.collect()
print(child, flush=True)
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
time.sleep(60)
"""
    parent = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", script, str(path), end], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    try:
        if end == "kill":
            parent.wait(30)
        os.kill(child, 0)  # it lives
        with fg.open(path) as store:
            assert store.generation == 2
    finally:
        os.kill(child, signal.SIGKILL)
        parent.kill()
        parent.wait(30)
        parent.stdout.close()


def child_of_multiprocessing(store: Any, path: Path, sending: Any) -> None:
    names = [name_of_error(use) for use in uses(store)] if store is not None else []
    refused = str(raised_by(lambda: opened(path)))
    with opened(path.with_name(f"{os.getpid()}.fg")) as own:
        update(own, [0])
        released = round(own.release() / UNITS)
    sending.send((names, refused, released))


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_children_of_multiprocessing_cannot_use_the_store_and_can_make_their_own(method: Any, tmp_path: Path) -> None:
    path = tmp_path / "store.fg"
    store = opened(path)
    update(store, [0])
    context: Any = multiprocessing.get_context(method)
    receiving, sending = context.Pipe(duplex=False)
    if method != "fork":
        # It would have to be pickled.
        with pytest.raises(fg.CopyError):
            context.Process(target=child_of_multiprocessing, args=(store, path, sending)).start()
    given = store if method == "fork" else None
    child = context.Process(target=child_of_multiprocessing, args=(given, path, sending))
    child.start()
    names, refused, released = receiving.recv()
    child.join(30)
    assert child.exitcode == 0
    assert set(names) == ({"CopyError"} if method == "fork" else set())
    assert "in use" in refused
    assert released == 1
    update(store, [0])
    assert round(store.release() / UNITS) == 2
    store.close()


def test_stores_and_structures_that_a_child_makes_have_noise_of_their_own(tmp_path: Path) -> None:
    # Noise of standard deviation 14 or more on a lattice of step 1/8 or so: 20 values in a row do not agree by chance
    # (probability < 10^-30). Rejects a generator whose state a fork copies.
    def noise() -> list[float]:
        found = [fg.ContinualCounter(horizon=8, privacy=fg.Zcdp(0.01)).release() for _ in range(10)]
        for _ in range(10):
            path = tmp_path / f"{time.monotonic_ns()}-{os.getpid()}.fg"
            with fg.open(path, fg.ContinualCounter, horizon=8, privacy=fg.Zcdp(0.01)) as store:
                found.append(store.release())
        return found

    draws = [noise(), in_a_child(noise), in_a_child(noise), in_a_child(lambda: in_a_child(noise)), noise()]
    assert len({tuple(draw[:10]) for draw in draws}) == len(draws)
    assert len({tuple(draw[10:]) for draw in draws}) == len(draws)


def test_a_fork_while_another_thread_waits_for_the_disk_does_not_hang(tmp_path: Path) -> None:
    store = opened(tmp_path / "store.fg")

    def work() -> None:
        update(store, [0])
        answer(store, None)
        store.checkpoint()
        store.advance()

    with meanwhile(work):
        for _ in range(10):
            time.sleep(0.01)
            assert set(in_a_child(lambda: [name_of_error(use) for use in uses(store)])) == {"CopyError"}
    store.close()
    opened(tmp_path / "store.fg").close()
