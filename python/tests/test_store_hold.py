"""What counts as a call, and calls that are held: nothing that they answer leaves before it is written."""

from __future__ import annotations

import errno
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fastgame as fg

COMMON: dict[str, Any] = {"horizon": 1000, "privacy": fg.Zcdp(rho=0.5)}


@pytest.fixture
def counter(tmp_path: Path) -> Iterator[fg.ContinualCounter]:
    with fg.open(tmp_path / "x.fg", fg.ContinualCounter, invalid="drop", **COMMON) as made:
        yield made


def elsewhere(call: Callable[[], Any]) -> Any:
    """What a call gives or raises in another thread."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except fg.FastgameError as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def test_an_update_counts_one_whatever_it_holds(counter: fg.ContinualCounter) -> None:
    for calls, batch in enumerate([[], [0], [1, -1], [9], [1], [2, 2]], start=1):
        counter.update(batch)
        assert counter.generation == calls
    with pytest.raises(TypeError):
        counter.update("a")  # type: ignore[arg-type]
    assert counter.generation == 6
    assert counter.path is not None
    counter.close()
    # What was left out stays counted, also where nothing else happened.
    with fg.open(counter.path) as again:
        assert (again.generation, again.dropped) == (6, 3)


def test_batches_are_taken_up_where_they_stopped(tmp_path: Path) -> None:
    """What `docs/durable.md` says to do after a crash, with batches that change nothing among others."""
    batches: list[list[int]] = [[1, 1], [], [5], [1, -1], [1]]
    for crash in range(len(batches) + 1):
        path = tmp_path / f"{crash}.fg"
        parameters = {**COMMON, "invalid": "drop", "privacy": fg.Zcdp(rho=1e8)}
        with fg.open(path, fg.ContinualCounter, **parameters) as counter:
            base = counter.generation
            assert base is not None
            for batch in batches[:crash]:
                counter.update(batch)
        with fg.open(path, fg.ContinualCounter) as counter:
            assert counter.generation is not None
            for batch in batches[counter.generation - base :]:
                counter.update(batch)
            assert round(counter.release()) == 3


def test_a_held_structure_answers_to_its_holder_alone(counter: fg.ContinualCounter) -> None:
    counter._hold()
    counter.update(1)
    for call in (counter.release, counter.update, counter.advance, counter.sync, counter.checkpoint, counter._hold):
        error = elsewhere(call)
        assert isinstance(error, fg.StateError) and "a replay holds this structure" in str(error)
    for call in (counter.sync, counter.checkpoint):
        with pytest.raises(fg.StateError, match="is being held"):
            call()
    value = counter.release()
    # Those who are called back may not ask either.
    counter._pause()
    for call in (counter.release, counter.update, counter.advance, counter._commit):
        with pytest.raises(fg.StateError, match="a replay holds this structure"):
            call()
    assert (counter.now, counter.sealed, counter.generation) == (1, True, 0)
    counter._resume()
    counter._commit()
    assert counter.generation == 1
    assert elsewhere(counter.release) == value


def test_a_held_structure_that_is_closed_has_done_nothing(counter: fg.ContinualCounter) -> None:
    counter._hold()
    counter.update(1)
    counter.release()
    assert elsewhere(counter.close) is None
    with pytest.raises(fg.StateError, match="closed"):
        counter._commit()
    assert counter.path is not None
    info = fg.inspect(counter.path)
    assert (info.generation, info.now, info.sealed) == (0, 1, False)
    # A pause of what is not held is none.
    memory = fg.ContinualCounter(**COMMON)
    memory._pause()
    memory.release()


def test_a_call_that_could_not_be_written_is_not_counted(tmp_path: Path) -> None:
    """In a child, as a limit on the length of files stays."""
    path = tmp_path / "x.fg"
    fg.open(path, fg.ContinualCounter, **COMMON).close()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            with fg.open(path, fg.ContinualCounter) as counter:
                counter.update(1)
                length = path.stat().st_size
                resource.setrlimit(resource.RLIMIT_FSIZE, (length + 20, length + 20))
                try:
                    counter.update(1)
                except OSError as error:
                    if error.errno == errno.EFBIG and counter.generation == 1:
                        # Nor does the object keep the store to itself.
                        with fg.open(path, expect_generation=1) as again:
                            code = 0 if again.generation == 1 else 2
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0


def test_a_checkpoint_keeps_the_access_list(tmp_path: Path) -> None:
    path = tmp_path / "x.fg"
    with fg.open(path, fg.ContinualCounter, **COMMON) as counter:
        # Read for the user 1001, nothing for the group; the bits of the group are the mask. (`acl(5)`, version 2.)
        def entry(tag: int, bits: int, number: int = 0xFFFFFFFF) -> bytes:
            return tag.to_bytes(2, "little") + bits.to_bytes(2, "little") + number.to_bytes(4, "little")

        entries = [entry(0x01, 6), entry(0x02, 4, 1001), entry(0x04, 0), entry(0x10, 4), entry(0x20, 0)]
        given = (2).to_bytes(4, "little") + b"".join(entries)
        if not hasattr(os, "setxattr"):
            pytest.skip("no access lists here")
        try:
            os.setxattr(path, "system.posix_acl_access", given)
        except OSError:
            pytest.skip("this file system has no access lists")
        inode = path.stat().st_ino
        counter.checkpoint()
        assert path.stat().st_ino != inode
        assert os.getxattr(path, "system.posix_acl_access") == given
        assert path.stat().st_mode & 0o777 == 0o640


def test_names_that_look_alike_are_two(tmp_path: Path) -> None:
    paths = [os.fsencode(tmp_path) + b"/" + name for name in (b"\xfe.fg", b"\xff.fg")]
    try:
        first, second = (fg.open(os.fsdecode(path), fg.ContinualCounter, **COMMON) for path in paths)
    except OSError:
        pytest.skip("this file system has no such names")
    # A draft of the one, as a process that was stopped leaves it.
    draft = os.fsencode(tmp_path) + b"/.\xff.fg." + b"0" * 16 + b".draft"
    with open(draft, "wb"):
        pass
    first.close()
    fg.open(os.fsdecode(paths[0])).close()
    assert os.path.exists(draft)
    second.close()
    fg.open(os.fsdecode(paths[1])).close()
    assert not os.path.exists(draft)


def test_looking_at_a_store_in_use_never_finds_it_damaged(tmp_path: Path) -> None:
    """While large frames are written behind what is read. 300 looks; the fault it is for was seen in 1 of 3500."""
    path = tmp_path / "x.fg"
    with fg.open(path, fg.ContinualVector, size=20_000, sync="reads", **COMMON) as vector:
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                vector.update_rows([[0.0] * 20_000])
                vector.release()
                vector.advance()

        thread = threading.Thread(target=write)
        thread.start()
        try:
            for _ in range(300):
                fg.inspect(path)
        finally:
            stop.set()
            thread.join()
