"""Stores whose process is killed, whose disk is full, and whose file is cut off."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import (
    CHAINS,
    KEYS,
    MECHANISMS,
    STRUCTURES,
    answer,
    parameters,
    reopened,
    run_chains,
    shown,
    shows,
    size,
    table,
    update,
)

import fastgame as fg

LARGE: dict[str, Any] = {"size": 20_000, "max_norm": 200.0, "horizon": 2**20, "privacy": fg.Zcdp(1e9)}
#: Bytes of the mark behind what was synced.
MARK = 32
SMALL = [name for name in STRUCTURES if name != "large vector"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is one: for what is not about the disk, which has its own time for each sync."""
    shared = Path("/dev/shm")
    if not os.access(shared, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="fastgame-", dir=shared) as name:
        yield Path(name)


def open_store(path: Path, structure: str, mechanism: str = "tree", **options: Any) -> Any:
    return fg.open(path, STRUCTURES[structure][0], **parameters(structure, mechanism), **options)


# --- Kills


def test_a_killed_process_leaves_a_store_that_goes_on(tmp_path: Path) -> None:
    # Two chains of ten kills. Over all seeds every structure; in `make test-slow` every mechanism with each.
    chains = [("range", "laplace", "always"), ("large vector", "tree", "reads")]
    tally = run_chains(tmp_path, 10, chains)
    assert tally["kills"] == 20
    assert tally["calls acknowledged"] > 20


@pytest.mark.slow
def test_killed_processes_leave_stores_that_go_on(tmp_path: Path) -> None:
    kills = 10
    tally = run_chains(tmp_path, kills, seed=2)
    print("\n" + table(tally))
    assert tally["kills"] == len(CHAINS) * 2 * kills >= 300
    # Kills met what they are to meet. (A child that did nothing would pass all else.)
    for name in ("update", "read", "advance", "checkpoint"):
        assert tally[f"killed during {name}"] >= 10, name
    assert tally["kills that left a draft of a checkpoint"] >= 5
    assert tally["answers repeated"] >= 100
    assert tally["counters compared"] >= 100
    assert tally["calls acknowledged"] >= 2 * tally["kills"]


# --- A write that stops in the middle


def prepared(folder: Path, structure: str, mechanism: str, last: str) -> tuple[Path, int, list[int], list[Any]]:
    """A store that was closed, its length before the last call, the counts before it, and the answers at its step."""
    path = folder / "prepared.fg"
    counts = [0] * size(structure)
    answers: list[Any] = []
    with open_store(path, structure, mechanism) as store:
        for elements in ([0, 1, 1], [size(structure) - 1, size(structure) - 2]):
            update(store, elements)
            for element in elements:
                counts[element] += 1
        answer(store, None)
        store.advance()
        if last == "read":
            # Of a part: a whole read draws more.
            query = None if structure in ("counter", "join") else [2]
            if query:
                answers.append((query, shown(answer(store, query))))
            before = path.stat().st_size
            answer(store, None)
        else:
            before = path.stat().st_size
            update(store, [0, 2])
    return path, before, counts, answers


LAST = pytest.mark.parametrize("last", ["update", "read"])
EACH = pytest.mark.parametrize("structure", SMALL)


@LAST
@EACH
def test_a_file_cut_off_in_the_last_call_goes_on_before_or_behind_it(structure: str, last: str, memory: Path) -> None:
    check_cuts(structure, last, memory, every=23)


@pytest.mark.slow
@LAST
@EACH
def test_a_file_cut_off_anywhere_in_the_last_call_goes_on_before_or_behind_it(
    structure: str, last: str, memory: Path
) -> None:
    check_cuts(structure, last, memory, every=1)


def check_cuts(structure: str, last: str, memory: Path, every: int) -> None:
    """Cuts a file off at each byte of its last call; of a long one, between its ends, at every so many."""
    mechanism = list(MECHANISMS)[SMALL.index(structure) % len(MECHANISMS)]
    path, before, counts, answers = prepared(memory, structure, mechanism, last)
    data = path.read_bytes()
    assert len(data) - before > 2 * MARK
    seen = set()
    ends = 100
    for length in range(before, len(data) + 1):
        if before + ends < length < len(data) - ends and length % every:
            continue
        cut = memory / "cut.fg"
        cut.write_bytes(data[:length])
        with open_store(cut, structure, mechanism) as store:
            # Whole without its mark, too: the mark is no part of the call.
            is_there = length >= len(data) - MARK
            seen.add(is_there)
            assert store.now == 2
            assert store.sealed == (last == "read" and (is_there or bool(answers)))
            for query, was in answers:
                assert shown(answer(store, query)) == was
            held = list(counts)
            if is_there and last == "update":
                held[0] += 1
                held[2] += 1
            assert shows(store, None, answer(store, None), held)
            store.advance()
            update(store, [1])
            held[1] += 1
            assert shows(store, None, answer(store, None), held)
        cut.unlink()
    assert seen == {False, True}


@contextlib.contextmanager
def file_size(most: int) -> Iterator[None]:
    """No file may grow beyond this: a write stops in the middle (Python ignores the signal, and there is EFBIG)."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def assert_failed(store: Any) -> None:
    """The object does nothing any more, and says so."""
    for use in (lambda: update(store, [1]), lambda: answer(store, None), store.advance, store.sync, store.checkpoint):
        with pytest.raises(fg.StateError, match=r"an earlier call on .* failed .* open the store anew"):
            use()


@pytest.mark.parametrize("structure", SMALL)
def test_a_write_that_stops_anywhere_is_an_error_once_and_the_store_goes_on(structure: str, memory: Path) -> None:
    mechanism = list(MECHANISMS)[SMALL.index(structure) % len(MECHANISMS)]
    path = memory / "store.fg"
    counts = [0] * size(structure)
    failures = 0
    # Room for so many bytes more: none, parts of the frame, the frame without its mark, and enough in the end.
    for room in [0, 1, 8, 31, 32, 33, 48, 63, 64, 71, 72, 73, 80, 87, 88, 95, 96, 104, 112, 119, 1 << 20]:
        store = open_store(path, structure, mechanism)
        if not store.sealed:
            update(store, [0, 1])
            counts[0] += 1
            counts[1] += 1
        was = shown(answer(store, None))
        for name in ("advance", "update"):
            before = path.stat().st_size
            generation = store.generation
            try:
                with file_size(before + room):
                    store.advance() if name == "advance" else update(store, [2, 3, 3])
            except OSError as error:
                failures += 1
                assert "cannot write" in str(error)
                assert_failed(store)
                store.close()
                store = open_store(path, structure, mechanism)
                assert store.generation in (generation, generation + 1)
                if name == "advance" and store.generation == generation:
                    assert shown(answer(store, None)) == was
                    store.advance()
                elif name == "update" and store.generation > generation:
                    counts[2] += 1
                    counts[3] += 2
            else:
                assert store.generation == generation + 1
                if name == "update":
                    counts[2] += 1
                    counts[3] += 2
        assert shows(store, None, answer(store, None), counts)
        store.close()
    assert failures > 20


def test_a_read_that_could_not_be_written_gives_no_answer_and_its_noise_is_not_used(tmp_path: Path) -> None:
    # Rejects a store that remembers noise that was drawn and not written: then the answers would agree.
    path = tmp_path / "store.fg"
    store: Any = fg.open(path, fg.ContinualVector, size=50, horizon=8, privacy=fg.Zcdp(0.01))
    store.update([0])
    with file_size(path.stat().st_size + 100), pytest.raises(OSError, match="cannot write"):
        store.release()
    assert_failed(store)
    store.close()
    with reopened(path) as store:
        assert not store.sealed
        first = store.release()
    with reopened(path) as store:
        assert np.array_equal(store.release(), first)


@contextlib.contextmanager
def small_disk(place: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of its own, with little room."""
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,mode=0777", "tmpfs", str(place)]
    try:
        made = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if made.returncode != 0:
        pytest.skip(f"a file system cannot be mounted: {made.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_a_full_disk_stops_the_object_and_with_room_the_store_goes_on(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 256) as disk:
        path = disk / "store.fg"
        filler = disk / "filler"
        store = open_store(path, "vector")
        counts = [0] * KEYS
        before = acknowledged = 0
        for _ in range(5):
            filler.write_bytes(b"")
            with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
                while True:
                    file.write(bytes(4096))
            with pytest.raises(OSError, match="No space left on device"):
                while True:
                    update(store, [0])
                    acknowledged = store.generation
            assert_failed(store)
            store.close()
            # Without room nothing is lost either, whether or not the store can be opened.
            with contextlib.suppress(OSError):
                open_store(path, "vector").close()
            filler.unlink()
            store = open_store(path, "vector")
            # The one that failed is there in whole or not at all.
            assert store.generation - acknowledged in (0, 1)
            counts[0] += store.generation - before
            assert shows(store, [0], answer(store, [0]), counts)
            store.advance()
            before = store.generation
        assert counts[0] > 0


def test_no_room_for_a_checkpoint_leaves_the_store_in_use(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 192) as disk:
        path = disk / "store.fg"
        with fg.open(path, fg.ContinualVector, size=5000, max_norm=100.0, horizon=2**20, privacy=fg.Zcdp(1e9)) as store:
            store.update(range(5000))
            first = store.release()
            # An image is as long as this journal, and there is room for one.
            with pytest.raises(OSError, match="No space left on device"):
                store.checkpoint()
            assert sorted(os.listdir(disk)) == ["store.fg"]
            assert np.array_equal(store.release(), first)
            store.advance()
            store.update([0])
        with reopened(path) as store:
            assert round(store.release(0)) == 2


# --- Power cuts, as far as they can be made up: no disk is cut off here


@pytest.mark.parametrize("sync", ["always", "reads"])
@pytest.mark.parametrize("structure", ["vector", "sketch"])
def test_a_disk_that_has_any_part_of_what_was_not_synced_gives_a_store_that_goes_on(
    structure: str, sync: str, memory: Path
) -> None:
    # What was synced stands; of the rest the disk has some sectors, in any order, and zeros, garbage or older bytes in
    # place of the others. 400 made-up disks each. Rejects a store that takes a lost mark for damage, one that counts a
    # frame behind a gap, and one that loses what was synced.
    chance = np.random.default_rng(17)
    path = memory / "store.fg"
    store = open_store(path, structure, sync=sync)
    counts = [0] * KEYS
    #: By generation: the length of the file, the step, whether it was read, the counts and the answer at that step.
    states = {0: (path.stat().st_size, 1, False, list(counts), None)}
    #: Synced up to here when the call of that generation returned; the mark behind it is not.
    synced = {0: path.stat().st_size}
    for number in range(40):
        released = None
        if number % 4 == 2:
            released = answer(store, None)
        elif number % 4 == 3:
            store.advance()
        else:
            elements = [int(key) for key in chance.integers(KEYS, size=3)]
            update(store, elements)
            for element in elements:
                counts[element] += 1
        length, generation = path.stat().st_size, store.generation
        states[generation] = (length, store.now, store.sealed, list(counts), released)
        is_synced = sync == "always" or number % 4 == 2
        synced[generation] = length - MARK if is_synced else synced[generation - 1]
    whole = path.read_bytes()
    store.close()
    seen = set()
    for _ in range(400):
        # The machine stops before the call of `last` returns; the file has this call without a mark.
        last = int(chance.integers(1, max(states) + 1))
        base = synced[last - 1]
        end = states[last][0] - (MARK if synced[last] != base else 0)
        sector = int(chance.choice([8, 32, 512]))
        disk = bytearray(whole[:end])
        other = chance.choice(["zeros", "garbage", "older"])
        for start in range(base - base % sector, end, sector):
            # A mark alone is lost often: it has a sector of its own at times.
            if chance.random() < 0.4:
                part = slice(max(start, base), min(start + sector, end))
                size_of = part.stop - part.start
                lost = {"zeros": bytes(size_of), "garbage": chance.bytes(size_of), "older": whole[:size_of]}[other]
                disk[part] = lost[:size_of]
        if chance.random() < 0.3:
            del disk[int(chance.integers(base, end + 1)) :]
        cut = memory / "cut.fg"
        cut.write_bytes(disk)
        with open_store(cut, structure, sync=sync) as found:
            at_least = max(one for one, length in states.items() if length[0] - MARK <= base or one == 0)
            assert at_least <= found.generation <= last
            seen.add(found.generation - at_least)
            _, now, sealed, held, released = states[found.generation]
            assert (found.now, found.sealed) == (now, sealed)
            if released is not None:
                assert shown(answer(found, None)) == shown(released)
            assert shows(found, None, answer(found, None), held)
        cut.unlink()
    assert {0, 1} <= seen


# --- Checkpoints that fail


def unprivileged(work: Callable[[], None]) -> None:
    """Runs something as a user to whom permissions apply."""
    if os.getuid() != 0:
        work()
        return
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            work()
            status = 0
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture
def open_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that any user reaches and may write to."""
    with tempfile.TemporaryDirectory(prefix="fastgame-") as name:
        folder = Path(name)
        folder.chmod(0o777)
        yield folder
        folder.chmod(0o777)


def test_without_permission_for_a_new_file_the_old_one_goes_on(open_folder: Path) -> None:
    path = open_folder / "store.fg"

    def work() -> None:
        with fg.open(path, fg.ContinualVector, **LARGE) as store:
            store.update(range(20_000))

    unprivileged(work)
    open_folder.chmod(0o555)

    def go_on() -> None:
        with reopened(path) as store:
            with pytest.raises(PermissionError, match="cannot create"):
                store.checkpoint()
            image = fg.inspect(path).bytes[0]
            # The journal passes the length at which checkpoints are tried, several times.
            for step in range(8):
                store.update(range(20_000))
                released = store.release()
                assert np.all(np.abs(released - (step + 2)) < 0.4)
                store.advance()
            assert fg.inspect(path).bytes[0] == image
            assert fg.inspect(path).bytes[1] > 2 << 20
        with reopened(path) as store:
            assert np.all(np.abs(store.release() - 9) < 0.4)

    unprivileged(go_on)
    open_folder.chmod(0o777)

    def end() -> None:
        with reopened(path) as store:
            store.checkpoint()
            assert np.all(np.abs(store.release() - 9) < 0.4)

    unprivileged(end)


def test_without_permission_to_sync_the_folder_nothing_is_made_and_the_open_store_goes_on(open_folder: Path) -> None:
    # To sync a folder it must be opened, and for that be readable.
    inner = open_folder / "inner"
    path = inner / "store.fg"

    def work() -> None:
        inner.mkdir()
        with open_store(path, "counter") as store:
            inner.chmod(0o333)
            with pytest.raises(PermissionError, match="cannot open the folder of the store"):
                store.checkpoint()
            update(store, [0])
            assert shows(store, None, answer(store, None), [1, 0, 0, 0, 0, 0])
        for name in ("store.fg", "other.fg"):
            with pytest.raises(PermissionError, match="cannot open the folder of the store"):
                open_store(inner / name, "counter")
        inner.chmod(0o777)
        assert os.listdir(inner) == ["store.fg"]
        open_store(path, "counter").close()

    unprivileged(work)


def test_a_file_that_may_not_be_written_is_an_error_that_says_so(open_folder: Path) -> None:
    path = open_folder / "store.fg"

    def work() -> None:
        open_store(path, "counter").close()
        path.chmod(0o400)
        with pytest.raises(
            PermissionError, match=r"^\[Errno 13\] cannot open the store: Permission denied: '.*/store\.fg'$"
        ):
            open_store(path, "counter")
        assert fg.inspect(path).structure == "ContinualCounter"
        path.chmod(0o200)
        for use in (fg.open, fg.inspect):
            with pytest.raises(PermissionError):
                use(path)

    unprivileged(work)
