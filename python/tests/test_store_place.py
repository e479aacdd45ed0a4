"""Where a store lies: permissions, links, folders, what is no store, files that are moved, and copies."""

from __future__ import annotations

import os
import shutil
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crashes import reopened

import fastgame as fg

GIVEN: dict[str, Any] = {"horizon": 2**20, "privacy": fg.Zcdp(1e9)}


def made(path: Any, **options: Any) -> fg.ContinualCounter:
    return fg.open(path, fg.ContinualCounter, **GIVEN, **options)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def umask() -> Iterator[Callable[[int], int]]:
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o027, 0o077])
def test_a_new_store_is_readable_by_its_owner_alone(mask: int, tmp_path: Path, umask: Any) -> None:
    umask(mask)
    path = tmp_path / "store.fg"
    with made(path) as store:
        assert mode(path) == 0o600
        store.checkpoint()
        assert mode(path) == 0o600
    with made(path):
        assert mode(path) == 0o600


@pytest.mark.parametrize("wanted", [0o600, 0o640, 0o660, 0o644])
def test_permissions_that_were_given_are_kept(wanted: int, tmp_path: Path, umask: Any) -> None:
    umask(0o077)
    path = tmp_path / "store.fg"
    with made(path) as store:
        path.chmod(wanted)
        store.update()
        store.checkpoint()
        assert mode(path) == wanted
        store.checkpoint()
    with made(path) as store:
        store.checkpoint()
    assert mode(path) == wanted


def test_a_draft_is_never_more_readable_than_the_store(tmp_path: Path, umask: Any) -> None:
    # Seen through a file system that is watched: every draft as soon as it has a name.
    umask(0)
    path = tmp_path / "store.fg"
    with fg.open(path, fg.ContinualVector, size=100_000, max_norm=400.0, **GIVEN) as store:
        store.update(range(100_000))
        store.release()
        seen = modes_during(tmp_path, store.checkpoint)
    assert seen <= {0o600}


def modes_during(folder: Path, call: Callable[[], None]) -> set[int]:
    """The permissions of all files that are seen in a folder during a call."""
    done = threading.Event()
    seen: set[int] = set()

    def look() -> None:
        while not done.is_set():
            for name in os.listdir(folder):
                try:
                    seen.add(mode(folder / name))
                except FileNotFoundError:
                    continue

    looker = threading.Thread(target=look)
    looker.start()
    try:
        call()
    finally:
        done.set()
        looker.join()
    return seen


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_the_owner_of_the_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "store.fg"
    with made(path) as store:
        os.chown(path, 1234, 2345)
        path.chmod(0o640)
        store.checkpoint()
        found = path.stat()
        assert (found.st_uid, found.st_gid, mode(path)) == (1234, 2345, 0o640)


@pytest.mark.parametrize(
    "budget", [fg.Zcdp(0.5), fg.Gdp(0.7), fg.ApproxDp(0.9, 1e-6), fg.PureDp(1.1), *fg.PureDp(1.1).split(0.3, 0.7)]
)
def test_every_budget_is_kept(budget: fg.Budget, tmp_path: Path) -> None:
    path = tmp_path / "store.fg"
    with fg.open(path, fg.ContinualCounter, horizon=8, privacy=budget) as store:
        first = store.release()
    assert repr(fg.inspect(path).parameters["privacy"]) == repr(budget)
    with fg.open(path, fg.ContinualCounter, horizon=8, privacy=budget) as store:
        assert repr(store.privacy) == repr(budget)
        assert store.release() == first


# --- Links


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    real = tmp_path / "data" / "store.fg"
    first, second = tmp_path / "first.fg", tmp_path / "second.fg"
    first.symlink_to("data/store.fg")  # relative, and there is no file yet
    second.symlink_to(first)
    with made(second) as store:
        assert store.path == real
        assert real.is_file()
        assert not real.is_symlink()
        store.update()
        store.checkpoint()
        with pytest.raises(fg.StateError, match="in use"):
            made(real)
    assert first.is_symlink()
    assert second.is_symlink()
    assert sorted(os.listdir(tmp_path)) == ["data", "first.fg", "second.fg"]
    assert os.listdir(tmp_path / "data") == ["store.fg"]
    with made(first) as store:
        assert round(store.release()) == 1


def test_a_link_may_be_relative_to_a_folder_that_is_a_link(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "store.fg").symlink_to("../real.fg")
    (tmp_path / "short").symlink_to("a/b")
    with made(tmp_path / "short" / "store.fg") as store:
        store.checkpoint()
        assert store.path == tmp_path / "a" / "real.fg"
    assert (tmp_path / "a" / "b" / "store.fg").is_symlink()


@pytest.mark.parametrize("use", [made, fg.open, fg.inspect])
def test_links_in_a_circle_are_an_error(use: Any, tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "self").symlink_to("self")
    for name in ("a", "self"):
        with pytest.raises(OSError, match="symbolic links"):
            use(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "self"]


def test_a_link_into_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "link.fg").symlink_to("nowhere/store.fg")
    with pytest.raises(FileNotFoundError):
        made(tmp_path / "link.fg")
    with pytest.raises(FileNotFoundError):
        made(tmp_path / "nowhere" / "store.fg")


def test_the_folder_may_change_after_the_opening(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    with made("store.fg") as store:
        monkeypatch.chdir(tmp_path / "other")
        store.update()
        store.checkpoint()
        assert store.path == tmp_path / "store.fg"
    assert os.listdir(tmp_path / "other") == []


@pytest.mark.parametrize("first", ["store.fg", "other.fg"])
def test_a_store_with_a_second_name_is_not_opened(first: str, tmp_path: Path) -> None:
    # A checkpoint put a new file under one name, and the old one lived on under the other: two answers for one step.
    path, other = tmp_path / "store.fg", tmp_path / "other.fg"
    with made(path) as store:
        store.update()
    os.link(path, other)
    (tmp_path / "link.fg").symlink_to(first)
    before = path.read_bytes()
    for name in (path, other, tmp_path / "link.fg"):
        for use in (made, fg.open):
            with pytest.raises(fg.StateError, match=r"has 2 names \(hard links\).* Remove the other names"):
                use(name)
    assert path.read_bytes() == other.read_bytes() == before
    assert sorted(os.listdir(tmp_path)) == ["link.fg", "other.fg", "store.fg"]
    assert fg.inspect(path) == fg.inspect(other)
    (other if first == "store.fg" else path).unlink()
    with made(tmp_path / "link.fg") as store:
        store.checkpoint()
        assert round(store.release()) == 1


def test_a_store_that_gets_a_second_name_in_use_is_not_checkpointed(tmp_path: Path) -> None:
    path, other = tmp_path / "store.fg", tmp_path / "other.fg"
    with made(path) as store:
        os.link(path, other)
        with pytest.raises(fg.StateError, match="hard links"):
            store.checkpoint()
        store.update()
        answer = store.release()
        assert os.path.samefile(path, other)
        other.unlink()
        store.checkpoint()
        assert store.release() == answer
    assert os.listdir(tmp_path) == ["store.fg"]
    with made(path) as store:
        assert store.release() == answer


# --- What is no store


@pytest.mark.parametrize("use", [made, fg.open, fg.inspect])
def test_what_is_no_store_is_refused_and_left_as_it_was(use: Any, tmp_path: Path) -> None:
    folder, pipe, empty, text = (tmp_path / name for name in ("folder", "pipe", "empty", "text"))
    folder.mkdir()
    os.mkfifo(pipe)
    empty.touch()
    text.write_text("what somebody has written")
    for path in (folder, pipe, empty, text, Path("/dev/null"), Path("/dev/zero")):
        with pytest.raises(fg.StateError, match="not a store of fastgame"):
            use(path)
    assert text.read_text() == "what somebody has written"
    assert empty.read_bytes() == b""
    assert sorted(os.listdir(tmp_path)) == ["empty", "folder", "pipe", "text"]
    with pytest.raises(NotADirectoryError):
        use(text / "store.fg")
    for name in ("", "/", str(tmp_path / "..")):
        with pytest.raises((OSError, fg.StateError)):
            use(name)


def test_a_store_of_which_nothing_is_left_is_not_made_anew(tmp_path: Path) -> None:
    # A new one would give second answers, and without a word.
    path = tmp_path / "store.fg"
    made(path).close()
    os.truncate(path, 0)
    with pytest.raises(fg.StateError, match="nothing is left"):
        made(path)


# --- Files that are moved


def removed(path: Path) -> None:
    path.unlink()


def moved(path: Path) -> None:
    path.rename(path.with_name("moved.fg"))


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("copy.fg"))
    path.with_name("copy.fg").replace(path)


@pytest.mark.parametrize("sync", ["always", "reads"])
@pytest.mark.parametrize("change", [removed, moved, replaced])
def test_no_answer_leaves_for_a_file_that_is_no_longer_there(
    change: Callable[[Path], None], sync: Any, tmp_path: Path
) -> None:
    # What is written then, no later opening finds: a second answer about the same data would be given.
    path = tmp_path / "store.fg"
    store = made(path, sync=sync)
    store.update()
    store.release()
    change(path)
    store.advance() if sync == "reads" else None
    with pytest.raises(fg.StateError, match="moved, removed or replaced"):
        store.release() if sync == "reads" else store.advance()
    for use in (store.release, store.update, store.advance, store.sync, store.checkpoint):
        with pytest.raises(fg.StateError, match="not used again"):
            use()
    store.close()


@pytest.mark.parametrize("change", [removed, moved, replaced])
def test_a_checkpoint_does_not_overwrite_what_took_the_place_of_the_file(
    change: Callable[[Path], None], tmp_path: Path
) -> None:
    path = tmp_path / "store.fg"
    store = made(path)
    store.update()
    change(path)
    names = sorted(os.listdir(tmp_path))
    was = path.read_bytes() if path.exists() else None
    with pytest.raises(fg.StateError, match="moved, removed or replaced"):
        store.checkpoint()
    assert sorted(os.listdir(tmp_path)) == names
    assert (path.read_bytes() if path.exists() else None) == was
    store.close()


def test_a_store_may_be_moved_when_it_is_closed(tmp_path: Path) -> None:
    with made(tmp_path / "store.fg") as store:
        store.update()
        first = store.release()
    moved(tmp_path / "store.fg")
    with made(tmp_path / "moved.fg") as store:
        assert store.release() == first


# --- Copies


@pytest.mark.parametrize("mechanism", ["tree", "tree-paper", "blt", "laplace"])
def test_copies_repeat_what_was_answered_and_draw_apart_what_was_not(mechanism: str, tmp_path: Path) -> None:
    # 20 cells that were not read and 40 of the next step, noise of 30 lattice steps or more: one cell agrees with a
    # probability of about 0.01, half of them with one below 10^-14. Rejects a store that keeps its generator, or seeds
    # it by what is in the file.
    budget: dict[str, Any] = {"privacy": fg.Zcdp(0.01), "mechanism": mechanism}
    if mechanism == "laplace":
        budget = {"privacy": fg.PureDp(0.1)}
    path = tmp_path / "store.fg"
    with fg.open(path, fg.ContinualVector, size=40, max_norm=40.0, horizon=64, **budget) as store:
        for _ in range(3):
            store.update(range(40))
            store.release()
            store.advance()
        store.update(range(40))
        part = store.release(range(20))
    answers = []
    for number in range(3):
        copied = tmp_path / f"copy-{number}.fg"
        shutil.copy(path, copied)
        with reopened(copied) as store:
            now = store.release()
            store.advance()
            answers.append((now, store.release()))
    for now, _ in answers:
        assert np.array_equal(now[:20], part)
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert np.mean(answers[a][0][20:] == answers[b][0][20:]) < 0.5
        assert np.mean(answers[a][1] == answers[b][1]) < 0.5


def test_an_older_copy_is_told_by_its_generation_alone(tmp_path: Path) -> None:
    path, old = tmp_path / "store.fg", tmp_path / "old.fg"
    with made(path) as store:
        store.update()
        shutil.copy(path, old)
        store.update()
        noted = store.generation
        assert noted == 2
    with pytest.raises(fg.StateError, match="generation 1, and 2 was expected"):
        made(old, expect_generation=noted)
    with made(path, expect_generation=noted):
        pass
    with made(path, expect_generation=noted - 1):
        pass
    with pytest.raises(fg.StateError, match="generation 2, and 3 was expected"):
        fg.open(path, expect_generation=3)
    with pytest.raises(fg.StateError, match=r"there is no .*new.fg, and a store of generation 1"):
        made(tmp_path / "new.fg", expect_generation=1)
    assert not (tmp_path / "new.fg").exists()
    for wrong in (-1, 2**64):
        with pytest.raises(ValueError, match="expect_generation"):
            made(path, expect_generation=wrong)
    with made(old):
        pass
