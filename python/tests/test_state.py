"""Jobs that go on: runs by night are one run over all, and a run is in the file whole or not at all."""

from __future__ import annotations

import csv
import datetime as dt
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from helpers import tiny_noise

import fastgame as fg
from fastgame import _cli, _store

NIGHTS = 10
START = dt.datetime(2026, 1, 1)
TICKS = fg.Ticks("2026-01-01", "2026-01-11", "1d")
KEYS = ["a", "b", "c"]
BEFORE, AFTER = "before the first step of this run", "after the last step of this run"


def at(day: float) -> dt.datetime:
    """A moment so many days after the start."""
    return START + dt.timedelta(days=day)


def lives(count: int = 300, seed: int = 5) -> list[dict[str, Any]]:
    """Rows that come and, every other one, go."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        come = rng.uniform(0, NIGHTS)
        go = come + rng.expovariate(0.5) if rng.random() < 0.5 else None
        rows.append({"t": at(come), "gone": None if go is None else at(go), "k": rng.choice(KEYS)})
    return rows


def frame(rows: list[dict[str, Any]], known: float = NIGHTS) -> pa.Table:
    """The table as it is so many days after the start."""
    there = [row for row in rows if row["t"] < at(known)]
    gone = [row["gone"] if row["gone"] is not None and row["gone"] < at(known) else None for row in there]
    return pa.table(
        {
            "t": pa.array([row["t"] for row in there], pa.timestamp("us")),
            "gone": pa.array(gone, pa.timestamp("us")),
            "k": pa.array([row["k"] for row in there], pa.string()),
            "n": pa.array([KEYS.index(row["k"]) for row in there], pa.int64()),
        }
    )


COMMON: dict[str, Any] = {"horizon": NIGHTS, "privacy": tiny_noise(), "protect": "lifetime"}
#: A class, its parameters, and how it is fed.
KINDS: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "counter": (fg.ContinualCounter, {}, {}),
    "vector": (fg.ContinualVector, {"size": 3}, {"key": "k", "keys": KEYS}),
    "sketch": (fg.CountSketch, {"width": 256, "hash_seed": 1}, {"key": "k", "keys": KEYS}),
    "top": (fg.CountSketch, {"width": 256, "hash_seed": 1}, {"key": "k", "keys": KEYS, "top": 2}),
    "range": (fg.RangeCounter, {"shape": (4,)}, {"key": "n", "boxes": [([0], [2]), ([1], [4])]}),
    "join": (fg.JoinSize, {"width": 256, "hash_seed": 1}, {"key": "k"}),
}
ALL = pytest.mark.parametrize("kind", KINDS)


def run(kind: str, structure: Any, table: pa.Table, **parameters: Any) -> pa.Table:
    """A run over a table; of a join with itself."""
    given = {"time": "t", "delete_time": "gone", **KINDS[kind][2], **parameters}
    if kind == "join":
        return fg.replay_join(table, table, TICKS, structure, right_delete_time="gone", **given)
    return fg.replay(table, TICKS, structure, **given)


def made(kind: str, path: Path | None = None, **more: Any) -> Any:
    """A structure in memory, or that of a file."""
    structure, own, _ = KINDS[kind]
    given = {**COMMON, **own, **more}
    return structure(**given) if path is None else fg.open(path, structure, **given)


def rounded(table: pa.Table) -> pa.Table:
    """Releases with negligible noise, as integers; without their errors."""
    kept = [name for name in table.schema.names if not name.startswith(("std", "lower", "upper"))]
    value = pa.array(np.rint(table.column("value").to_numpy()).astype(int))
    return table.select(kept).set_column(kept.index("value"), "value", value).replace_schema_metadata(None)


def assert_same(kind: str, parts: list[pa.Table], expected: pa.Table) -> None:
    """Compares releases with negligible noise. Of a join it is a few pairs; a row makes a dozen, and soon hundreds."""
    found = pa.concat_tables(parts)
    assert found.schema.equals(expected.schema)
    # Of keys with equal counts either may be the first.
    names = [name for name in found.schema.names if not name.startswith("std") and (kind, name) != ("top", "k")]
    for name in names:
        ours, theirs = found.column(name), expected.column(name)
        if name in ("value", "lower", "upper"):
            far = np.abs(ours.to_numpy() - theirs.to_numpy())
            assert far.max() < (8 if kind == "join" else 0.5)
        else:
            assert ours.equals(theirs)


def kind_counts(counts: fg.RowCounts) -> tuple[int, int]:
    return counts.dropped.get(BEFORE, 0), counts.dropped.get(AFTER, 0)


@ALL
@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("memory", [0, 1 << 30])
def test_ten_nights_over_a_table_that_grows_are_one_run_over_all(
    kind: str, durable: bool, memory: int, tmp_path: Path
) -> None:
    rows = lives()
    expected = run(kind, made(kind), frame(rows))
    path = tmp_path / "s.fg" if durable else None
    structure, parts = made(kind, path), []
    for night in range(1, NIGHTS + 1):
        table = run(kind, structure, frame(rows, night), until=at(night), resume=True, memory=memory)
        assert (structure.now, structure.sealed) == (night, True)
        parts.append(table)
        if durable:
            structure.close()
            structure = made(kind, path)
    assert_same(kind, parts, expected)


@ALL
def test_the_nights_are_the_same_over_the_whole_table_and_with_nights_left_out(kind: str, tmp_path: Path) -> None:
    rows = frame(lives())
    expected = run(kind, made(kind), rows)
    parts = []
    for night in (2, 3, 7, 10):
        with made(kind, tmp_path / "s.fg") as structure:
            counts = fg.RowCounts()
            parts.append(run(kind, structure, rows, until=at(night), resume=True, counts=counts))
            assert counts.read == rows.num_rows * (2 if kind == "join" else 1)
            assert set(counts.dropped) <= {BEFORE, AFTER}
    assert_same(kind, parts, expected)


def test_the_noise_of_a_job_is_that_of_one_run(tmp_path: Path) -> None:
    nothing = {"t": pa.array([], pa.timestamp("us"))}
    jobs = []
    for seed in range(200):
        values: list[float] = []
        for night in (3, 10):
            structure: Any = fg.open(
                tmp_path / f"{seed}.fg", fg.ContinualCounter, horizon=NIGHTS, privacy=fg.Zcdp(0.5), insecure_seed=seed
            )
            with structure:
                table = fg.replay(nothing, TICKS, structure, time="t", until=at(night), resume=True)
            values += table.column("value").to_pylist()
        jobs.append(values)
    # Of 200 samples the variance is within 10 % (a standard deviation): noise that is added anew would double it.
    assert np.all(np.abs(np.var(jobs, axis=0) / table.column("std")[0].as_py() ** 2 - 1) < 0.5)
    # Steps 3 and 4, in two runs, share three quarters of their noise; with noise of its own, each run would share none.
    assert np.corrcoef([job[2:4] for job in jobs], rowvar=False).min() > 0.6


@ALL
@pytest.mark.parametrize("durable", [False, True])
def test_a_run_with_nothing_left_to_do_repeats_the_last_step_exactly(kind: str, durable: bool, tmp_path: Path) -> None:
    rows, path = lives(), tmp_path / "s.fg" if durable else None
    noisy = {"privacy": fg.Zcdp(0.1)}
    structure = made(kind, path, **noisy)
    table = run(kind, structure, frame(rows), until=at(4), resume=True)
    last = table.filter(pa.compute.equal(table.column("time"), pa.scalar(at(4), pa.timestamp("us"))))
    for until in (at(4), at(4.5)):
        if durable:
            structure.close()
            structure = made(kind, path, **noisy)
        counts = fg.RowCounts()
        again = run(kind, structure, frame(rows), until=until, resume=True, counts=counts)
        assert again.equals(last) and 0 < again.num_rows < table.num_rows
        assert sum(kind_counts(counts)) == counts.read
    assert structure.now == 4


@pytest.mark.parametrize("noise", [{"mechanism": "blt"}, {"mechanism": "tree-paper"}, {"privacy": fg.PureDp(1)}])
def test_every_mechanism_repeats_and_goes_on(noise: dict[str, Any], tmp_path: Path) -> None:
    given = {"privacy": fg.Zcdp(0.1), "protect": "update", **noise}
    tables = []
    for night in (4, 4, 7, 10, 10):
        with made("vector", tmp_path / "s.fg", **given) as structure:
            nothing = {"t": pa.array([], pa.timestamp("us")), "k": pa.array([], pa.string())}
            tables.append(
                fg.replay(nothing, TICKS, structure, time="t", key="k", keys=KEYS, until=at(night), resume=True)
            )
    assert [table.num_rows for table in tables] == [12, 3, 9, 9, 3]
    assert tables[0].slice(9).equals(tables[1]) and tables[3].slice(6).equals(tables[4])


def test_late_rows_are_left_out_alone_and_counted() -> None:
    structure = made("counter")
    assert rounded(
        run("counter", structure, frame([{"t": at(0.5), "gone": None, "k": "a"}], 2), until=at(2), resume=True)
    )["value"].to_pylist() == [1, 1]
    late: list[dict[str, Any]] = [
        {"t": at(0.5), "gone": None, "k": "a"},  # counted already
        {"t": at(1.9), "gone": None, "k": "a"},  # too late
        {"t": at(0.5), "gone": at(1.5), "k": "a"},  # both too late
        {"t": at(2.0), "gone": None, "k": "a"},  # of this run
        {"t": at(2.0), "gone": at(2.5), "k": "a"},
        {"t": at(3.0), "gone": None, "k": "a"},  # of a later one
        {"t": at(0.6), "gone": at(3.5), "k": "a"},  # goes in a later one
    ]
    counts = fg.RowCounts()
    table = run("counter", structure, frame(late), until=at(3), resume=True, counts=counts, bad_rows="raise")
    assert rounded(table)["value"].to_pylist() == [2]
    assert (counts.read, counts.dropped) == (7, {BEFORE: 4, AFTER: 1})


def test_a_deletion_in_a_later_run_takes_out_what_an_earlier_one_put_in() -> None:
    structure, rows = made("counter"), [{"t": at(0.5), "gone": at(4.5), "k": "a"}]
    values = []
    for night in (1, 4, 5, 10):
        counts = fg.RowCounts()
        table = run("counter", structure, frame(rows, night), until=at(night), resume=True, counts=counts)
        values.append(rounded(table)["value"].to_pylist())
        assert kind_counts(counts) == ((1, 0) if night in (4, 10) else (0, 0))
    assert values == [[1], [1, 1, 1], [0], [0, 0, 0, 0, 0]]


def test_bad_rows_of_this_run_raise_and_those_of_others_do_not() -> None:
    structure = made("vector", protect="update")
    frame = {"t": [at(0.5), at(1.5), at(2.5)], "k": ["a", "b", "c"]}
    given: dict[str, Any] = {"time": "t", "key": "k", "keys": KEYS, "bad_rows": "raise", "resume": True}
    fg.replay(frame, TICKS, structure, until=at(1), **given)
    bad = {**frame, "k": [None, "b", None]}
    fg.replay(bad, TICKS, structure, until=at(2), **given)
    with pytest.raises(fg.BadRowsError, match="no key in 'k', the first is row 3"):
        fg.replay(bad, TICKS, structure, until=at(3), **given)
    # Before anything changed: the structure goes on.
    assert structure.now == 2
    assert rounded(fg.replay(frame, TICKS, structure, until=at(3), **given))["value"].to_pylist() == [1, 1, 1]


@pytest.mark.parametrize("every", [1, 3, 4, 99])
@pytest.mark.parametrize("nights", [[10], range(1, 11), [2, 5, 10], [4, 4, 9, 10]])
def test_the_grid_of_releases_is_that_of_one_run(every: int, nights: Any) -> None:
    rows = lives()
    expected = rounded(run("counter", made("counter"), frame(rows), release_every=every))
    structure, done = made("counter"), 0
    found: dict[Any, Any] = {}
    for night in nights:
        part = rounded(
            run("counter", structure, frame(rows, night), until=at(night), resume=True, release_every=every)
        ).to_pylist()
        again = structure.now == done and structure.sealed
        for row in part:
            assert found.setdefault(row["time"], row["value"]) == row["value"]
            assert not again or len(part) == 1
        done = structure.now if structure.sealed else 0
        assert done % every == 0 or done == NIGHTS
    assert [{"time": time, "value": value} for time, value in found.items()] == expected.to_pylist()


@ALL
def test_before_the_first_release_is_due_there_are_no_rows_and_nothing_is_counted(kind: str) -> None:
    rows, structure = lives(), made(kind)
    empty = run(kind, structure, frame(rows), until=at(2.9), resume=True, release_every=3)
    assert empty.num_rows == 0 and (structure.now, structure.sealed) == (1, False)
    first = run(kind, structure, frame(rows), until=at(3), resume=True, release_every=3)
    assert empty.schema.equals(first.schema)
    assert run(kind, made(kind), frame(rows), until=at(-5)).num_rows == 0
    assert_same(kind, [first], run(kind, made(kind), frame(rows), until=at(3.5), release_every=3))


def test_until_is_read_as_a_time_of_the_clock() -> None:
    utc = fg.Ticks("2026-01-01", "2026-01-11", "1d", tz="Europe/Copenhagen")
    empty = {"t": pa.array([], pa.timestamp("us", "UTC"))}
    for until, done in [
        ("2026-01-03", 2),
        ("2026-01-02T23:00Z", 2),
        ("2026-01-02T22:59Z", 1),
        (np.datetime64("2026-01-03"), 2),
        (dt.date(2026, 1, 3), 2),
        ("2100-01-01", 10),
    ]:
        assert fg.replay(empty, utc, made("counter"), time="t", until=until).num_rows == done
    with pytest.raises(ValueError, match="until must be ISO text"):
        fg.replay(empty, utc, made("counter"), time="t", until="tomorrow")
    with pytest.raises(TypeError, match="until must be"):
        fg.replay(empty, utc, made("counter"), time="t", until=3)
    with pytest.raises(ValueError, match="time zone"):
        run("counter", made("counter"), frame([]), until="2026-01-03T00:00Z")


def test_what_cannot_go_on_is_refused_and_changes_nothing() -> None:
    structure = made("counter")
    run("counter", structure, frame([]), until=at(5))
    with pytest.raises(ValueError, match=r"must be new; one at step 5 was given \(resume=True"):
        run("counter", structure, frame([]))
    with pytest.raises(ValueError, match="until must not be before the end of step 5"):
        run("counter", structure, frame([]), until=at(4), resume=True)
    other = made("counter")
    with pytest.raises(ValueError, match=r"same step; step 5 \(released\), step 1 \(not released\)"):
        fg.replay(frame([]), TICKS, {"a": structure, "b": other}, time="t", resume=True)
    assert (structure.now, other.now, other.sealed) == (5, 1, False)
    run("counter", other, frame([]), until=at(5))
    assert len(fg.replay(frame([]), TICKS, {"a": structure, "b": other}, time="t", resume=True)) == 2


def test_a_step_that_was_begun_by_hand_is_gone_on_with() -> None:
    structure = made("counter")
    structure.advance(to=3)
    structure.update([1, 1])
    rows = [{"t": at(1.5), "gone": None, "k": "a"}, {"t": at(2.5), "gone": None, "k": "a"}]
    table = run("counter", structure, frame(rows), until=at(4), resume=True)
    assert rounded(table)["value"].to_pylist() == [3, 3]


@ALL
@pytest.mark.parametrize("when", ["releasing", "interrupted", "writing"])
def test_a_run_that_fails_leaves_no_trace_and_can_be_made_again(
    kind: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, path = lives(), tmp_path / "s.fg"
    expected = run(kind, made(kind), frame(rows))
    structure = made(kind, path)
    first = run(kind, structure, frame(rows, 3), until=at(3), resume=True)
    before, generation = path.read_bytes(), structure.generation

    def stop(done: int, _: int) -> None:
        if done == 6 and when != "writing":
            raise KeyboardInterrupt if when == "interrupted" else RuntimeError

    def full(_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        if when == "writing":
            patch.setattr(_store.Unit, "commit", full)
        with pytest.raises((RuntimeError, KeyboardInterrupt, OSError)):
            run(kind, structure, frame(rows), until=at(8), resume=True, progress=stop)
    assert path.read_bytes() == before
    with pytest.raises(fg.StateError, match="closed"):
        structure.advance()
    with made(kind, path) as structure:
        assert (structure.now, structure.generation) == (3, generation)
        rest = run(kind, structure, frame(rows), resume=True)
        assert structure.generation == generation + 1
    assert_same(kind, [first, rest], expected)


def test_what_is_wrong_with_rows_leaves_a_store_open(tmp_path: Path) -> None:
    with made("counter", tmp_path / "s.fg") as structure:
        for wrong in ({"time": "nothing"}, {"until": "x"}, {"release_every": 0}):
            given: dict[str, Any] = {"time": "t", "resume": True, **wrong}
            with pytest.raises(ValueError, match=r"column|until|release_every"):
                fg.replay(frame([]), TICKS, structure, **given)
        assert run("counter", structure, frame([]), resume=True).num_rows == NIGHTS


def test_a_structure_in_memory_is_closed_where_half_of_a_step_may_be_in_it() -> None:
    def stop(done: int, _: int) -> None:
        raise RuntimeError(done)

    structure = made("counter")
    with pytest.raises(RuntimeError):
        run("counter", structure, frame(lives()), progress=stop)
    with pytest.raises(fg.StateError):
        run("counter", structure, frame(lives()), resume=True)


def test_several_structures_are_written_in_order_and_told_apart_after_a_failure(tmp_path: Path) -> None:
    rows = lives()
    half = tiny_noise()

    def both() -> dict[str, Any]:
        return {
            "all": fg.open(tmp_path / "all.fg", fg.ContinualCounter, **{**COMMON, "privacy": half}),
            "keys": fg.Feed(
                fg.open(tmp_path / "keys.fg", fg.ContinualVector, size=3, **{**COMMON, "privacy": half}),
                key="k",
                keys=KEYS,
            ),
        }

    given: dict[str, Any] = {"time": "t", "delete_time": "gone", "resume": True}
    structures = both()
    first = fg.replay(frame(rows), TICKS, structures, until=at(3), **given)

    real = structures["keys"].structure

    class Failing:
        path = str(tmp_path / "keys.fg")
        now = 4

        def advance(self, *, to: int) -> None:
            assert to == self.now

        def _hold(self) -> None:
            real._hold()

        def _commit(self) -> None:
            raise OSError(28, "No space left on device")

        def close(self) -> None:
            real.close()

    unit = _store.Unit([structures["all"], Failing()])
    with pytest.raises(fg.StateError, match=r"keys\.fg could not be written .*all\.fg had been written before"), unit:
        fg.replay(frame(rows), TICKS, structures["all"], until=at(6), **given)
        unit.commit()
    structures["all"].close()
    structures = both()
    with pytest.raises(ValueError, match=r"step 6 \(released\), step 3 \(released\) were given: run those"):
        fg.replay(frame(rows), TICKS, structures, until=at(7), **given)
    fg.replay(frame(rows), TICKS, structures["keys"], until=at(6), **given)
    last = fg.replay(frame(rows), TICKS, structures, **given)
    expected = fg.replay(
        frame(rows),
        TICKS,
        {"all": made("counter"), "keys": fg.Feed(made("vector"), key="k", keys=KEYS)},
        time="t",
        delete_time="gone",
    )
    for name, rows_each in (("all", 1), ("keys", 3)):
        assert rounded(expected[name]).slice(0, 3 * rows_each).equals(rounded(first[name]))
        assert rounded(expected[name]).slice(6 * rows_each).equals(rounded(last[name]))


# The command line.

Run = Callable[..., tuple[int, str, str]]
CLOCK = ["--time", "t", "--start", "2026-01-01", "--end", "2026-01-11", "--every", "1d"]
QUIET = ["--rho", "1e6", "--protect", "lifetime", "--delete-time", "gone"]
COMMANDS: dict[str, tuple[str, list[str], str]] = {
    "count": ("count", [], "counter"),
    "keys": ("count", ["--key", "k", "--keys", "keys.txt"], "vector"),
    "top": ("top", ["--key", "k", "--keys", "keys.txt", "-k", "2", "--width", "256"], "top"),
    "range": ("range", ["--axis", "n:0:4", "--box", "n=0:2", "--box", "n=1:4"], "range"),
    "pure": ("count", [], "counter"),
    "approx": ("count", [], "counter"),
    "join": ("join", ["--on", "k", "--width", "256", "--right-delete-time", "gone"], "join"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which the commands run."""
    monkeypatch.chdir(tmp_path)
    Path("keys.txt").write_text("".join(f"{key}\n" for key in KEYS))
    return tmp_path


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process: exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = _cli.main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capfd.readouterr()
        return code, out, err

    return call


def write(rows: list[dict[str, Any]], known: float = NIGHTS) -> None:
    for name in ("rows.csv", "right.csv"):
        pyarrow.csv.write_csv(frame(rows, known), name)


def line(name: str, night: float, *more: str) -> list[str]:
    """A command with a state, until so many days after the start."""
    verb, own, _ = COMMANDS[name]
    files = ["rows.csv", "right.csv"] if verb == "join" else ["rows.csv"]
    return [verb, *files, *CLOCK, *own, "--state", "s.fg", "--until", at(night).isoformat(), *more]


def read(*names: str) -> list[dict[str, str]]:
    found = []
    for name in names:
        with open(name, newline="") as file:
            found += list(csv.DictReader(file))
    return found


@pytest.mark.parametrize("name", ["count", "keys", "top", "range", "join"])
def test_nightly_commands_are_one_run_over_all(command: Run, name: str) -> None:
    rows = lives()
    write(rows)
    base = line(name, NIGHTS)
    plain = base[: base.index("--state")]
    assert command(*plain, *QUIET, "--out", "all.csv")[0] == 0
    outs = []
    for night in range(1, NIGHTS + 1):
        write(rows, night)
        outs.append(f"{night}.csv")
        # What the structure is made with is said once.
        more = [*(QUIET if night == 1 else ["--delete-time", "gone"]), "--not-private-counts"]
        words = [word for word in line(name, night) if night == 1 or word not in ("--width", "256")]
        code, out, err = command(*words, *more, "--out", outs[-1], "--expect-generation", str(night - 1))
        assert (code, out) == (0, ""), err
        assert f"the state is at generation {night}, with {night} of 10 steps done" in err
        assert "NO ROW" not in err and "not private: " in err
        assert (BEFORE in err) == (night > 1)
    assert_same(COMMANDS[name][2], [pyarrow.csv.read_csv(out) for out in outs], pyarrow.csv.read_csv("all.csv"))


def test_a_command_that_is_run_again_writes_the_same_rows(command: Run) -> None:
    write(lives())
    given = line("count", 4, "--rho", "0.1")
    first = command(*given, "--format", "csv")
    again = command(*given, "--format", "csv", "--plot", "again.png")
    assert first[0] == again[0] == 0
    assert again[1].splitlines() == [first[1].splitlines()[0], first[1].splitlines()[-1]]
    assert "no step was left to do up to --until; what was released last was released again" in again[2]
    assert Path("again.png").stat().st_size > 0
    assert "no step was due" in command(*line("count", 0.5, "--rho", "0.1"), "--state", "new.fg", "--plot", "e.png")[2]


DIFFERING: dict[str, tuple[str, list[str], str]] = {
    "another budget": ("count", ["--rho", "2"], r"a budget \(--rho, --mu, --epsilon, --delta\) = Zcdp"),
    "another epsilon": ("pure", ["--epsilon", "2", "--delta", "0"], r"PureDp\(epsilon=1\.0\), and PureDp\(epsilon=2"),
    "another delta": ("approx", ["--epsilon", "1", "--delta", "1e-7"], r"delta=1e-0?6\), and ApproxDp"),
    "another kind of budget": ("count", ["--mu", "1"], r"a budget \(--rho"),
    "another start": ("count", ["--start", "2025-12-31"], "--start = '2026-01-01', and '2025-12-31' was given"),
    "another end": ("count", ["--end", "2026-01-12"], "--end ="),
    "another length": ("count", ["--every", "12h"], "--every ="),
    "a zone": ("count", ["--tz", "UTC"], "--tz = None, and 'UTC'"),
    "another unit": ("count", ["--contributions", "2"], "--contributions = 1, and 2"),
    "other lives": ("count", ["--protect", "update"], "--protect = 'lifetime'"),
    "another mechanism": ("count", ["--mechanism", "blt"], "--mechanism = 'tree', and 'blt'"),
    "another bound": ("count", ["--max-weight", "2"], "--max-weight = 1, and 2"),
    "another bound of a vector": ("keys", ["--max-weight", "2"], r"--max-weight = 1\.0, and 2\.0"),
    "clipping": ("count", ["--on-excess", "clip"], "--on-excess = 'error', and 'clip'"),
    "a seed": ("count", ["--insecure-seed", "2"], "--insecure-seed = None, and 2"),
    "another structure": ("top", ["--key", "k", "--keys", "keys.txt"], "structure = 'CountSketch', and 'Cont"),
    "other keys": ("keys", ["--keys", "other.txt"], "another list of --keys, or in another order"),
    "more keys": ("keys", ["--keys", "more.txt"], "another list of --keys"),
    "another width": ("top", ["--width", "512"], "--width = 256, and 512"),
    "the width of the default": ("top", ["--width", "4096"], "--width = 256, and 4096"),
    "another depth": ("top", ["--depth", "3"], "--depth = 5, and 3"),
    "another hash seed": ("top", ["--hash-seed", "3"], "--hash-seed ="),
    "another axis": ("range", ["--axis", "m:0:3"], "--axis ="),
    "other levels": ("range", ["--levels", "3"], "--levels = 2, and 3"),
    "another estimator": ("range", ["--estimator", "cover"], "--estimator = 'least_squares'"),
    "an older copy": ("count", ["--expect-generation", "9"], "generation 1, and 9 was expected"),
    "earlier": ("count", ["--until", "2026-01-02"], "--until must not be before the end of step 2"),
}


@pytest.mark.parametrize("name", DIFFERING)
def test_options_that_differ_are_refused_by_name_and_nothing_changes(command: Run, name: str) -> None:
    write(lives())
    Path("other.txt").write_text("b\na\nc\n")
    Path("more.txt").write_text("a\nb\nc\nd\n")
    kind, more, message = DIFFERING[name]
    budget = {"pure": ["--epsilon", "1", "--delta", "0"], "approx": ["--epsilon", "1", "--delta", "1e-6"]}
    assert command(*line(kind, 2), *budget.get(kind, QUIET))[0] == 0
    before = Path("s.fg").read_bytes()
    base = line("count" if name == "another structure" else kind, 3)
    code, out, err = command(*base, *more, "--out", "out.csv")
    assert (code, out) == (2, "") and err.count("\n") == 1 and re.search(message, err), err
    assert Path("s.fg").read_bytes() == before and not Path("out.csv").exists()
    assert command(*line(kind, 3))[0] == 0


def test_what_is_no_state_or_stands_elsewhere_is_refused_before_anything_is_made(command: Run) -> None:
    write(lives())
    budget = ["--rho", "1"]
    base = [word for word in line("count", 2)]
    without = [word for word in base if word not in ("--until", base[-1])]
    for arguments, message in [
        ([*without, *budget], "--state needs --until"),
        ([*base, *budget, "--state", "rows.csv"], "rows.csv is read; name another file for --state"),
        ([*base, *budget, "--out", "s.fg", "--format", "csv"], "--out and --state name the same file"),
        ([*base, *budget, "--state", "s.png", "--plot", "s.png"], "--plot and --state name the same file"),
        ([*base, *budget, "--out", "no/out.csv"], "there is no folder"),
        ([*base, *budget, "--out", "out.xls"], "not known by its ending"),
        ([*base, *budget, "--expect-generation", "1"], "there is no s.fg, and a store of generation 1 was"),
        ([*base, "--expect-generation", "1"], "there is no state s.fg, and a new one needs a budget (--rho"),
        ([*base, *budget, "--expect-generation", "-1"], "--expect-generation must be from 0"),
        ([*base], "there is no state s.fg, and a new one needs a budget (--rho, or --mu, or --epsilon with --delta)"),
        ([*base, "--epsilon", "1"], "the budget is --rho, or --mu, or --epsilon with --delta"),
        ([*base, *budget, "--state", "no/s.fg"], "No such file or directory"),
        (["count", "nothing.csv", *base[2:], *budget], "No such file or directory"),
        (["count", "rows.csv", *CLOCK, *budget, "--until", "2026-01-02"], "--until goes with --state"),
        (["count", "rows.csv", *CLOCK, *budget, "--expect-generation", "0"], "--expect-generation goes with --state"),
    ]:
        code, out, err = command(*arguments)
        assert (code, out, err.count("\n")) == (2, "", 1) and message in err, err
        assert not Path("s.fg").exists() and not Path("s.png").exists(), arguments
    Path("s.fg").write_text("a,b\n" * 100)
    assert "not a store" in command(*base, *budget)[2]
    Path("s.fg").unlink()
    other: Any = fg.open("s.fg", fg.ContinualCounter, horizon=NIGHTS, privacy=fg.Zcdp(1))
    with other:
        assert "in use" in command(*base)[2]


def test_an_answer_leaves_after_the_state_and_is_not_lost_by_a_full_disk(
    command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(lives())
    given = line("count", 3, "--rho", "1")
    assert command(*line("count", 1, "--rho", "1"))[0] == 0
    before, files = Path("s.fg").read_bytes(), sorted(Path().iterdir())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    # The table or the picture cannot be made, or the state cannot be written: nothing has happened.
    for target, what in [
        ("pyarrow.csv.write_csv", ["--out", "o.csv"]),
        ("pyarrow.csv.write_csv", ["--format", "csv"]),
        ("fastgame._plot.draw_releases", ["--out", "o.csv", "--plot", "o.png"]),
        ("fastgame._store.Unit.commit", ["--out", "o.csv"]),
        ("fastgame._store.Unit.commit", ["--format", "csv"]),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(target, full)
            code, out, err = command(*given, *what)
        assert (code, out) == (2, "") and "No space left" in err and "was written" not in err
        assert Path("s.fg").read_bytes() == before and sorted(Path().iterdir()) == files
    # The state is written and the table cannot be moved: it is kept, and said where.
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        code, out, err = command(*given, "--out", "o.csv")
    assert code == 2 and "the same command releases its last step again" in err
    kept = re.search(r"is kept in (\S+\.fastgame-\w+);", err)
    assert kept is not None
    table = read(kept[1])
    assert len(table) == 2 and not Path("o.csv").exists()
    assert command(*given, "--out", "o.csv")[0] == 0
    assert read("o.csv") == table[-1:]


def test_a_state_that_cannot_be_told_to_anybody_is_released_again(command: Run) -> None:
    write(lives())
    shown = " ".join(line("count", 3, "--rho", "1", "--format", "csv"))
    environment = {**os.environ, "PYTHONPATH": str(Path(fg.__file__).parent.parent)}
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m fastgame {shown} > /dev/full"],
        check=False, capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 2 and "the same command releases its last step again" in done.stderr
    code, out, _ = command(*line("count", 3, "--format", "csv"))
    assert code == 0 and out.count("\n") == 2


@pytest.mark.parametrize("seed", range(10))
def test_a_command_that_is_killed_anywhere_and_run_again_counts_each_row_once(command: Run, seed: int) -> None:
    rng = random.Random(seed)
    rows = lives(2000, seed)
    environment = {**os.environ, "PYTHONPATH": str(Path(fg.__file__).parent.parent)}
    expected = rounded(fg.replay(frame(rows), TICKS, made("counter"), time="t", delete_time="gone")).to_pylist()
    # How long a run takes here, on the first night.
    write(rows, 1)
    begun = time.monotonic()
    first = [sys.executable, "-m", "fastgame", *line("count", 1), *QUIET, "--out", "1.csv"]
    subprocess.run(first, check=True, env=environment, capture_output=True)
    length = time.monotonic() - begun
    for night in (5, 10):
        write(rows, night)
        arguments = [*line("count", night), *QUIET, "--out", f"{night}.csv"]
        killed = subprocess.Popen(
            [sys.executable, "-m", "fastgame", *arguments], env=environment, stderr=subprocess.DEVNULL
        )
        time.sleep(rng.uniform(0.6, 1.05) * length)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        whole = Path(f"{night}.csv").exists()
        Path("again.csv").unlink(missing_ok=True)
        assert command(*arguments[: arguments.index("--out")], "--out", "again.csv")[0] == 0
        again = read("again.csv")
        steps = {row["time"]: round(float(row["value"])) for row in again}
        if whole:
            # It had ended: its last row repeats.
            assert read(f"{night}.csv")[-1:] == again
        due = expected[1:5] if night == 5 else expected[5:]
        exact = {row["time"].isoformat(): row["value"] for row in due}
        assert steps in (exact, dict(list(exact.items())[-1:]))


def test_a_store_made_by_the_command_is_gone_on_with_on_its_clock_and_keys_alone(command: Run, tmp_path: Path) -> None:
    write(lives())
    given: dict[str, Any] = {"time": "t", "delete_time": "gone", "until": at(3), "resume": True}
    assert command(*line("keys", 2), *QUIET)[0] == 0
    for ticks, keys, message in [
        (fg.Ticks("2026-01-01", "2026-01-06", "12h"), KEYS, "was made with ticks = <Ticks"),
        (fg.Ticks("2025-12-31", "2026-01-10", "1d"), KEYS, "was made with ticks = <Ticks"),
        (TICKS, ["b", "a", "c"], "was made with another list of keys, or in another order"),
    ]:
        with fg.open("s.fg") as structure:
            assert isinstance(structure, fg.ContinualVector)
            with pytest.raises(fg.IncompatibleError, match=message):
                fg.replay(frame(lives()), ticks, structure, key="k", keys=keys, **given)
            assert (structure.now, structure.generation) == (2, 1)
    with fg.open("s.fg") as structure:
        table = fg.replay(frame(lives()), TICKS, structure, key="k", keys=KEYS, **given)
        assert table.num_rows == 3
    # One that was made in Python has no clock that the command could check.
    for name in ("counter", "join"):
        Path("s.fg").unlink()
        made(name, tmp_path / "s.fg").close()
        code, out, err = command(*line("count" if name == "counter" else "join", 3, "--delete-time", "gone"))
        assert (code, out, err.count("\n")) == (2, "", 1) and "was not made by this command" in err
        assert fg.inspect("s.fg").generation == 0
    # Another structure at the same path is not taken for the one before.
    with made("join", tmp_path / "s.fg") as structure:
        assert run("join", structure, frame([]), until=at(1), resume=True).num_rows == 1


def test_a_missing_state_is_told_or_an_error(command: Run) -> None:
    write(lives())
    first = command(*line("count", 2), *QUIET, "--quiet")
    assert first[0] == 0 and first[2] == "made a new state s.fg (there was none)\n"
    assert command(*line("count", 3), "--delete-time", "gone", "--quiet")[2] == ""
    Path("s.fg").unlink()
    code, _, err = command(*line("count", 3), "--delete-time", "gone")
    assert code == 2 and "there is no state s.fg, and a new one needs a budget" in err
    code, _, err = command(*line("count", 3), *QUIET, "--expect-generation", "2")
    assert code == 2 and "there is no s.fg, and a store of generation 2 was expected" in err
    assert not Path("s.fg").exists()
    with pytest.raises(fg.StateError, match=r"there is no s\.fg, and a store of generation 1"):
        fg.open("s.fg", fg.ContinualCounter, expect_generation=1, **COMMON)
    with pytest.raises(FileNotFoundError, match="no such store"):
        fg.open("s.fg", expect_generation=1)


def test_a_night_that_is_run_twice_leaves_what_it_wrote(command: Run) -> None:
    write(lives())
    given = line("count", 4, *QUIET, "--out", "o.csv", "--plot", "o.png")
    assert command(*given)[0] == 0
    before = {name: Path(name).read_bytes() for name in ("o.csv", "o.png", "s.fg")}
    code, out, err = command(*given)
    assert (code, out) == (0, "") and "no step was left to do" in err and "released again" not in err
    for name in ("o.csv", "o.png"):
        assert f"{name} is there and was left as it is; to have the last release again, name another file" in err
    assert {name: Path(name).read_bytes() for name in before} == before
    # What is missing, or empty, is written.
    Path("o.png").unlink()
    assert command(*given)[0] == 0
    assert Path("o.png").stat().st_size > 0 and Path("o.csv").read_bytes() == before["o.csv"]
    Path("o.csv").write_text("")
    assert command(*given)[0] == 0
    assert len(read("o.csv")) == 1
    # A run with steps of its own replaces what was there, as does one without a state.
    assert command(*line("count", 6, "--delete-time", "gone", "--out", "o.csv"))[0] == 0
    assert len(read("o.csv")) == 2


def test_a_reader_that_goes_away_after_the_state_was_written_is_an_error(command: Run) -> None:
    write(lives())
    shown = " ".join([*line("count", 3, "--rho", "1"), "--format", "csv"])
    environment = {**os.environ, "PYTHONPATH": str(Path(fg.__file__).parent.parent)}

    def piped(arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-c", f"{sys.executable} -m fastgame {arguments} | true; exit ${{PIPESTATUS[0]}}"],
            check=False, capture_output=True, text=True, env=environment,
        )  # fmt: skip

    done = piped(shown)
    assert done.returncode == 2 and "the reader of the output has gone; the state was written" in done.stderr
    assert piped(" ".join(["count", "rows.csv", *CLOCK, "--rho", "1"])).returncode == 0


def test_an_error_of_the_disk_names_the_file(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write(lives())

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    given = line("count", 3, "--rho", "1")
    for target, what, name in [
        ("pyarrow.csv.write_csv", ["--out", "o.csv"], "'o.csv'"),
        ("fastgame._plot.draw_releases", ["--plot", "o.png"], "'o.png'"),
        ("os.fsync", ["--out", "o.csv"], "'o.csv'"),
    ]:
        with monkeypatch.context() as patch:
            patch.setattr(target, full)
            code, _, err = command(*given, *what)
        assert code == 2 and f"No space left on device: {name}" in err


def test_a_folder_that_cannot_be_synced_is_no_error(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    real = os.fsync

    def sync(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            raise OSError(22, "Invalid argument")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    write(lives())
    assert command(*line("count", 3, "--rho", "1"), "--out", "o.csv")[0] == 0
    assert not sys.platform.startswith("linux") or synced == [str(Path.cwd())]


@pytest.mark.parametrize("name", ["count", "keys", "top", "range", "join"])
def test_inspect_shows_what_is_public_and_nothing_else(command: Run, name: str) -> None:
    rows = lives()
    shown = []
    for each in (rows, rows[:7], []):
        write(each)
        Path("s.fg").unlink(missing_ok=True)
        code, _, err = command(
            *line(name, 3), *QUIET, *(["--hash-seed", "5"] if name in ("top", "range", "join") else [])
        )
        assert code == 0, err
        code, text, err = command("inspect", "s.fg")
        assert (code, err) == (0, "") and len(text.splitlines()) <= 24
        for part in ("SECRET", "epsilon 1.007e+06 at delta 1e-06", "10 steps", "every 1d", "generation", "version 1"):
            assert part in text
        assert re.search(r"step +3 of 10, which ends at 2026-01-04 00:00:00: released", text)
        assert "one insertion with its later deletion, in all answers together" in text
        found = json.loads(command("inspect", "s.fg", "--format", "json")[1])
        private = found.pop("not_private")
        assert set(private) == {"generation", "state_bytes", "journal_bytes", "unfinished_bytes"}
        assert (found["now"], found["sealed"], private["generation"]) == (3, True, 1)
        assert found["parameters"]["horizon"] == 10 and found["clock"]["every"] == "1d"
        shown.append((found, [part for part in text.splitlines() if not part.startswith("not private")]))
    # Whatever the data are, all but the sizes is the same.
    assert shown[0] == shown[1] == shown[2]


def test_inspect_of_other_stores_and_of_what_is_none(command: Run) -> None:
    structure: Any = fg.open("s.fg", fg.ContinualVector, size=5, horizon=8, privacy=fg.PureDp(1))
    with structure:
        structure.update([1], [1.0])
        code, text, _ = command("inspect", "s.fg")
        assert code == 0 and "1 of 8: not released" in text and "Laplace noise" in text and "clock" not in text
        found = json.loads(command("inspect", "s.fg", "--format", "json")[1])
        assert found["clock"] is None and found["guarantee"] == {
            "text": "1-DP up to the sampler's error",
            "epsilon": 1.0,
            "delta": 0.0,
        }
    with open("s.fg", "ab") as file:
        file.write(b"\0" * 40)
    code, text, _ = command("inspect", "s.fg")
    assert code == 0 and "a call that is under way, or was cut short" in text
    whole = Path("s.fg").read_bytes()
    Path("s.fg").write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    for name, message in [("s.fg", "damaged"), ("keys.txt", "not a store"), ("nothing", "No such file")]:
        code, out, err = command("inspect", name)
        assert (code, out, err.count("\n")) == (2, "", 1) and message in err, err
