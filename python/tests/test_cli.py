"""The command line: the same releases as replay, errors in one line, and nothing private on the standard output."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fastgame as fg
from fastgame._cli import main
from fastgame._intervals import quantile
from fastgame._plan import upward

TICKS = fg.Ticks("2026-01-01", "2026-01-08", "1d")
ROWS = [("2026-01-01 09:30", "/home", 1), ("2026-01-02 10:00", "/about", 2), ("2026-01-02 10:00", "/home", -3)]
KEYS = ["/home", "/about", "/jobs, etc"]
CLOCK = ["--time", "time", "--start", "2026-01-01", "--end", "2026-01-08", "--every", "1d"]
COUNT = ["count", "visits.csv", *CLOCK, "--rho", "0.5", "--insecure-seed", "7"]
PURE = ["count", "visits.csv", *CLOCK, "--epsilon", "1", "--delta", "0", "--insecure-seed", "7"]
KEYED = ["--key", "page", "--keys", "pages.txt"]
TOP = ["top", *COUNT[1:], *KEYED, "--width", "256", "--hash-seed", "1", "-k", "2"]


def write_rows(path: Path, rows: list[tuple[Any, ...]]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("time", "page", "n"), *rows])


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "visits.csv", ROWS)
    (tmp_path / "pages.txt").write_text("".join(f"{key}\n" for key in KEYS))
    return tmp_path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process: exit code, standard output, standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
        out, err = capfd.readouterr()
        return code, out, err

    return call


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Runs a line of bash in which `fastgame` is the command of this package."""
    shim = Path("bin")
    if not shim.exists():
        shim.mkdir()
        script = shim / "fastgame"
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m fastgame "$@"\n')
        script.chmod(0o755)
    package = str(Path(fg.__file__).parent.parent)
    environment = {**os.environ, "PATH": f"{shim.resolve()}:{os.environ['PATH']}", "PYTHONPATH": package}
    return subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)


def replayed(kind: str = "count", **parameters: Any) -> pa.Table:
    """What fastgame.replay gives for the same rows and seeds."""
    frame = pa.table({name: [row[place] for row in ROWS] for place, name in enumerate(["time", "page", "n"])})
    given: dict[str, Any] = {"horizon": 7, "privacy": fg.Zcdp(rho=0.5), "insecure_seed": 7}
    keyed: dict[str, Any] = {"key": "page", "keys": KEYS}
    if kind == "count":
        structure: Any = fg.ContinualCounter(**given)
        keyed = {}
    elif kind == "keyed":
        structure = fg.ContinualVector(3, **given)
    else:
        structure = fg.CountSketch(width=256, hash_seed=1, **given)
        keyed["top"] = 2
    return fg.replay(frame, TICKS, structure, time="time", **keyed, **parameters)


def of_json(text: str) -> list[dict[str, Any]]:
    return json.loads(text)  # type: ignore[no-any-return]


def plain(table: pa.Table) -> list[dict[str, Any]]:
    """Rows with their times as text."""
    return [{**row, "time": row["time"].isoformat()} for row in table.to_pylist()]


COMMANDS: dict[str, tuple[list[str], str]] = {
    "count": (COUNT, "count"),
    "keyed": ([*COUNT, *KEYED], "keyed"),
    "top": (TOP, "top"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_releases_are_those_of_replay_in_every_form(run: Run, name: str) -> None:
    command, kind = COMMANDS[name]
    expected = replayed(kind)
    code, out, _ = run(*command, "--format", "json")
    assert code == 0
    assert of_json(out) == plain(expected)
    code, out, _ = run(*command, "--format", "csv")
    flags = {"True": "true", "False": "false"}
    shown = [{key: flags.get(str(value), str(value)) for key, value in row.items()} for row in plain(expected)]
    read = list(csv.DictReader(io.StringIO(out)))
    numbers = ("value", "std")
    assert [{**row, **{key: float(row[key]) for key in numbers}} for row in read] == [
        {**row, **{key: float(row[key]) for key in numbers}} for row in shown
    ]
    assert run(*command, "--out", "out.parquet")[:2] == (0, "")
    assert pq.read_table("out.parquet").equals(expected)
    code, out, _ = run(*command)
    lines = out.splitlines()
    assert code == 0
    assert len(lines) == 2 + expected.num_rows
    assert lines[0].split() == expected.schema.names
    for column, place in zip(expected.schema.names, re.finditer("-+", lines[1]), strict=True):
        cells: list[Any] = [line[slice(*place.span())].strip() for line in lines[2:]]
        if column == "separated":
            assert [{"yes": True, "no": False}[cell] for cell in cells] == expected.column(column).to_pylist()
        elif pa.types.is_floating(expected.schema.field(column).type):
            cells = [float(cell.replace(",", "")) for cell in cells]
            assert np.allclose(cells, expected.column(column).to_pylist(), atol=0.06)
    for ending in ("csv", "json", "txt"):
        form = {"txt": "table"}.get(ending, ending)
        assert run(*command, "--out", f"out.{ending}")[:2] == (0, "")
        assert Path(f"out.{ending}").read_text() == run(*command, "--format", form)[1]


def test_the_confidence_of_intervals_is_an_option(run: Run) -> None:
    frame = {"time": [row[0] for row in ROWS], "page": [row[1] for row in ROWS]}
    sketch = fg.CountSketch(horizon=7, privacy=fg.Zcdp(rho=0.5), width=256, hash_seed=1, insecure_seed=7)
    feed = fg.Feed(sketch, key="page", keys=KEYS, top=2, confidence=0.5)
    code, out, _ = run(*TOP, "--confidence", "0.5", "--format", "json")
    assert code == 0
    assert of_json(out) == plain(fg.replay(frame, TICKS, feed, time="time"))
    assert of_json(out) != of_json(run(*TOP, "--format", "json")[1])
    code, _, err = run(*TOP, "--confidence", "1")
    assert code == 2 and "confidence must be more than 0 and less than 1; 1.0 was given" in err


def test_options_reach_the_structures(run: Run) -> None:
    code, out, _ = run(*COUNT, "--weight", "n", "--max-weight", "2", "--on-excess", "clip", "--release-every", "3",
                       "--contributions", "2", "--mechanism", "tree-paper", "--protect", "lifetime",
                       "--format", "json")  # fmt: skip
    structure = fg.ContinualCounter(
        horizon=7, privacy=fg.Zcdp(rho=0.5), insecure_seed=7, max_weight=2, on_excess="clip", contributions=2,
        mechanism="tree-paper", protect="lifetime",
    )  # fmt: skip
    frame = {"time": [row[0] for row in ROWS], "n": [row[2] for row in ROWS]}
    expected = fg.replay(frame, TICKS, structure, time="time", weight="n", release_every=3)
    assert code == 0
    assert of_json(out) == plain(expected)
    for budget, given in ((fg.Gdp(1), ["--mu", "1"]), (fg.ApproxDp(1, 1e-6), ["--epsilon", "1", "--delta", "1e-6"])):
        code, out, _ = run("count", "visits.csv", *CLOCK, *given, "--format", "json")
        assert of_json(out)[0]["std"] == fg.ContinualCounter(horizon=7, privacy=budget).noise_std()


def test_times_have_their_offset_where_the_clock_has_a_zone(run: Run) -> None:
    write_rows(Path("visits.csv"), [("2026-03-08T12:00:00Z", "/home", 1)])
    _, out, _ = run("count", "visits.csv", "--time", "time", "--start", "2026-03-07", "--end", "2026-03-10", "--every",
                    "1d", "--tz", "America/New_York", "--rho", "1e6", "--format", "csv")  # fmt: skip
    read = list(csv.DictReader(io.StringIO(out)))
    assert [row["time"] for row in read] == [
        f"2026-03-{day}:00" for day in ("08T00:00:00-05", "09T00:00:00-04", "10T00:00:00-04")
    ]
    assert [round(float(row["value"])) for row in read] == [0, 1, 1]


def test_deletions_and_composite_keys(run: Run) -> None:
    Path("life.csv").write_text("time,gone,page,n\n2026-01-01,2026-01-03,a,1\n2026-01-01,,a,2\n2026-01-02,,b,1\n")
    Path("keys.csv").write_text("p,n\na,1\na,2\nb,2\n")
    code, out, err = run("count", "life.csv", *CLOCK, "--rho", "1e6", "--protect", "lifetime", "--delete-time", "gone",
                         "--key", "page", "--key", "n", "--keys", "keys.csv", "--keys-column", "p",
                         "--keys-column", "n", "--format", "json", "--release-every", "2", COUNTS)  # fmt: skip
    assert code == 0
    assert [(row["page"], row["n"], round(row["value"])) for row in of_json(out)[:6]] == [
        ("a", "1", 1), ("a", "2", 1), ("b", "2", 0), ("a", "1", 0), ("a", "2", 1), ("b", "2", 0),
    ]  # fmt: skip
    assert "1 (key not in the list)" in err
    assert err.endswith("for a row, its deletion included\n")
    assert run("count", "life.csv", *CLOCK, "--rho", "1", "--delete-time", "gone")[0] == 2


def test_several_files_are_one_table(run: Run) -> None:
    for row in ROWS:
        write_rows(Path(f"part-{row[2]}.csv"), [row])
    assert run("count", "part-*.csv", *COUNT[2:])[:2] == run(*COUNT)[:2]
    assert run("count", "part-1.csv", "part-2.csv", "part--3.csv", *COUNT[2:])[:2] == run(*COUNT)[:2]


NEIGHBOURS: dict[str, bytes] = {
    "a usual row": b"2026-01-03,/home,1\n",
    "no time": b",/home,1\n",
    "far future": b"9999-12-31,/home,1\n",
    "beyond all": b"99999-12-31,/home,1\n",
    "no key": b"2026-01-03,,1\n",
    "an unlisted key": b"2026-01-03,/private,1\n",
    "a huge weight": b"2026-01-03,/home,1e999\n",
    "too few columns": b"2026-01-03\n",
    "too many columns": b"2026-01-03,/home,1,2\n",
    "no UTF-8": b"2026-01-03,\xff,1\n",
    "zeros": b"\0\0\0,\0,\0\n",
    "long": b"2026-01-03,%s,1\n" % (b"x" * 100_000),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_row_more_changes_neither_lines_nor_times_nor_noise(run: Run, command: str, name: str) -> None:
    arguments = [*COMMANDS[command][0], "--weight", "n", "--max-weight", "3", "--format", "csv"]
    one = run(*arguments)
    content = Path("visits.csv").read_bytes()
    header, _, rows = content.partition(b"\n")
    for more in (content + NEIGHBOURS[name], header + b"\n" + NEIGHBOURS[name] + rows):
        Path("visits.csv").write_bytes(more)
        other = run(*arguments)
        assert other[0] == one[0] == 0
        before, after = (list(csv.DictReader(io.StringIO(each[1]))) for each in (one, other))
        public = ["time"] if command == "top" else [name for name in before[0] if name not in ("value", "std")]
        assert [[row[key] for key in public] for row in before] == [[row[key] for key in public] for row in after]
        if command != "top":  # whose estimates are medians
            difference = [float(new["value"]) - float(old["value"]) for old, new in zip(before, after, strict=True)]
            counted = name == "a usual row" or (
                command == "count" and name in ("no key", "an unlisted key", "long", "no UTF-8")
            )
            cells = 1 if command == "count" else 3
            assert difference[::cells] == [0, 0] + [1 if counted else 0] * 5


def test_one_line_of_json_cannot_end_the_run(run: Run) -> None:
    usual = b'{"time":"2026-01-01","page":"/home"}\n'
    deep = b'{"time":"2026-01-01","page":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    Path("rows.jsonl").write_bytes(usual)
    expected = run("count", "rows.jsonl", *COUNT[2:], *KEYED)[:2]
    for line in (
        b"null",
        b"[]",
        b"{}",
        b"{",
        deep,
        b"\xff",
        b"\0",
        b'{"page":NaN}',
        b'{"time":1e999}',
        b'{"page":"\\ud800"}',
    ):
        Path("rows.jsonl").write_bytes(usual + line + b"\n")
        assert run("count", "rows.jsonl", *COUNT[2:], *KEYED)[:2] == expected, line[:20]


COUNTS = "--not-private-counts"
LEFT_OUT = "rows that could not be used, if any, were left out (--not-private-counts tells you how many)"


def test_counts_are_for_the_operator_and_the_guarantee_is_stated(run: Run) -> None:
    write_rows(Path("visits.csv"), [*ROWS, ("", "/home", 1), ("2027-01-01", "/home", 1)])
    epsilon = fg.Zcdp(0.5).epsilon(1e-6)
    promise = f"all that was released, however it is combined, is 0.5-zCDP, ({epsilon:.4g}, 1e-06)-DP, for a row"
    seeded = "INSECURE: the seed is known, and with it the noise: publish nothing of this run"
    code, out, err = run(*COUNT, COUNTS)
    assert code == 0
    assert err.splitlines() == [
        "not private: 5 rows were read, left out were 1 (no time in 'time'), 1 ('time' not between start and end)",
        seeded,
        promise,
    ]
    assert "private" not in out
    assert "read" not in out
    assert run(*COUNT) == (0, out, f"{LEFT_OUT}\n{seeded}\n{promise}\n")
    write_rows(Path("visits.csv"), ROWS)
    assert "3 rows were read, all were used" in run(*COUNT, COUNTS)[2]
    assert run(*COUNT, "--fail-on-bad-rows")[2] == f"{seeded}\n{promise}\n", "none was left out"
    assert run(*COUNT, "--quiet")[2] == ""
    code, _, err = run(*COUNT, "--quiet", COUNTS)
    assert code == 2 and "--not-private-counts: not allowed with argument --quiet" in err


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize("command", [*COMMANDS, "state", "range"])
def test_without_the_flag_nothing_on_the_standard_error_depends_on_the_data(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, terminal: bool
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    words = {name: line for name, (line, _) in COMMANDS.items()}
    words["state"] = [*COUNT, "--state", "s.fg", "--until", "2026-01-04"]
    words["range"] = [*RANGE, "--axis", "n:0:5", "--box", "n=0:2"]
    day = "2026-01-01"
    tables: list[list[tuple[Any, ...]]] = [
        ROWS,
        [],
        [("never", "/home", 1)],
        [*ROWS, (day, "", 1)],
        [(day, "/jobs, etc", 1)] * 100_000,
    ]
    told: dict[str, set[str]] = {"": set(), COUNTS: set()}
    for flag, seen in told.items():
        for rows in tables:
            write_rows(Path("visits.csv"), rows)
            Path("s.fg").unlink(missing_ok=True)
            code, _, err = run(*words[command], *filter(None, [flag]))
            assert code == 0, err
            # How long it took, and how often it was drawn.
            shown = re.sub(r"\d\d:\d\d|\?|[0-9.]+ steps/s|s/ steps", "", err).replace("\r", "\n")
            seen.add("\n".join(sorted({" ".join(line.split()) for line in shown.split("\n") if "steps" not in line})))
    assert len(told[""]) == 1, told[""]
    assert len(told[COUNTS]) == len(tables)
    assert ("reading visits.csv" in min(told[""])) == terminal


@pytest.mark.parametrize("name", ["itself", "by another way", "a symbolic link", "a hard link", "one of a pattern"])
@pytest.mark.parametrize("command", ["count", "top", "range"])
def test_no_file_of_rows_is_a_public_list(run: Run, command: str, name: str) -> None:
    Path("visits-link.csv").symlink_to("visits.csv")
    os.link("visits.csv", "other.csv")
    path = {"itself": "visits.csv", "by another way": "./visits.csv", "a symbolic link": "visits-link.csv"}
    given = {**path, "a hard link": "other.csv"}.get(name, "part-2.csv")
    rows = ["visits.csv"]
    if name == "one of a pattern":
        for part in ("part-1.csv", "part-2.csv"):
            write_rows(Path(part), ROWS)
        rows = ["part-*.csv"]
    own = ["--axis", "n:0:5", "--boxes", given] if command == "range" else ["--key", "page", "--keys", given]
    code, out, err = run(command, *rows, *CLOCK, "--rho", "0.5", *own)
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"fastgame {command}: error: --(keys|boxes) {given} is one of the files of rows.*\n", err), err


def test_a_list_with_times_is_warned_of(run: Run) -> None:
    # Such as a copy of the rows, which no identity of files tells.
    Path("copy.csv").write_text("time,page\n,/home\n,/jobs\n2026-01-01,/about\n")
    code, out, err = run(*TOP, "--keys", "copy.csv", "--format", "csv")
    assert code == 0 and len(out.splitlines()) == 15
    warning = "fastgame top: warning: --keys copy.csv has a column 'time', as the data have, so it looks like data: "
    assert err.startswith(warning) and err.count("warning") == 1
    assert run(*TOP, "--keys", "copy.csv", "--quiet")[2] == ""
    pq.write_table(pa.table({"page": KEYS, "time": [0, None, 1]}), "list.parquet")
    assert "--keys list.parquet has a column 'time'" in run(*COUNT, "--key", "page", "--keys", "list.parquet")[2]
    Path("list.csv").write_text("page,n\n/home,2026-01-01\n")
    deleted = ["--protect", "lifetime", "--delete-time", "n", "--key", "page"]
    assert "--keys list.csv has a column 'n'" in run(*COUNT, *deleted, "--keys", "list.csv")[2]
    Path("list.jsonl").write_text('{"page": "/home"}\n{"page": "time", "when": 3}\n')
    Path("visits.csv").write_text("when,page\n2026-01-01,/home\n")
    renamed = ["--time", "when", "--key", "page", "--keys", "list.jsonl"]
    assert "--keys list.jsonl has a column 'when'" in run(*COUNT, *renamed)[2]


def test_lists_without_a_column_of_times_are_not_warned_of(run: Run) -> None:
    pq.write_table(pa.table({"page": KEYS, "Time": KEYS}), "list.parquet")
    Path("list.csv").write_text("page,when\n/home,2026-01-01\n")
    Path("list.jsonl").write_text('{"page": "/home"}\n{"page": "time"}\n')
    Path("time.csv").write_text("time\n/home\n")
    for path in ("list.parquet", "list.csv", "list.jsonl", "pages.txt"):
        assert "warning" not in run(*COUNT, "--key", "page", "--keys", path)[2]
    # The column that is the key is no time.
    assert "warning" not in run(*COUNT, "--key", "page", "--keys", "time.csv", "--keys-column", "time")[2]


@pytest.mark.parametrize("bad", ["time", "line", "range"])
def test_with_fail_on_bad_rows_nothing_is_written(run: Run, bad: str) -> None:
    with Path("visits.csv").open("a") as file:
        file.write({"time": "never,/home,1\n", "line": "2026-01-01\n", "range": "2030-01-01,/home,1\n"}[bad])
    before = sorted(Path().iterdir())
    code, out, err = run(*COUNT, "--fail-on-bad-rows", "--out", "out.csv", "--plot", "out.png")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("fastgame count: error: ")
    assert sorted(Path().iterdir()) == before


def test_an_output_is_replaced_on_success_only(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    out = Path("out.csv")
    out.write_text("old")
    before = sorted(Path().iterdir())
    for failing in (["--time", "nope"], ["--rho", "0"], ["--plot", "no/folder.png"], ["--plot", "out.nothing"]):
        assert run(*COUNT, "--out", "out.csv", *failing)[0] == 2
        assert out.read_text() == "old"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("pyarrow.csv.write_csv", full)
        assert run(*COUNT, "--out", "out.csv")[0] == 2
    assert out.read_text() == "old"
    assert sorted(Path().iterdir()) == before
    assert run(*COUNT, "--out", "out.csv")[0] == 0
    assert out.read_text().startswith('"time"') or out.read_text().startswith("time")
    assert sorted(Path().iterdir()) == before


def test_an_output_has_the_rights_that_the_umask_leaves_and_links_stay_links(run: Run) -> None:
    Path("elsewhere").mkdir()
    Path("link.csv").symlink_to(Path("elsewhere") / "out.csv")
    old = os.umask(0o027)
    try:
        assert run(*COUNT, "--out", "link.csv")[0] == 0
    finally:
        os.umask(old)
    assert Path("link.csv").is_symlink()
    assert stat.S_IMODE(Path("elsewhere/out.csv").stat().st_mode) == 0o640
    assert [path.name for path in Path("elsewhere").iterdir()] == ["out.csv"]


def test_a_device_stays_a_device(run: Run) -> None:
    os.mkfifo("pipe")
    reader = os.open("pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run(*COUNT, "--out", "pipe", "--format", "csv")[0] == 0
        assert os.read(reader, 1 << 16).decode() == run(*COUNT, "--format", "csv")[1]
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(Path("pipe").stat().st_mode)


@pytest.mark.parametrize(("ending", "begin"), [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_picture_is_drawn_beside_the_table(run: Run, ending: str, begin: bytes) -> None:
    code, out, _ = run(*COUNT, *KEYED, "--plot", f"out.{ending}")
    assert (code, out) == (0, run(*COUNT, *KEYED)[1])
    assert Path(f"out.{ending}").read_bytes().startswith(begin)


def test_keys_are_no_formulas_in_pictures_and_may_begin_with_a_line(run: Run) -> None:
    names = ["$\\foo$", "_hidden", "$", "<&>", ""]
    Path("pages.txt").write_text("".join(f"{name}\n" for name in names))
    assert run(*COUNT, *KEYED, "--plot", "out.svg")[0] == 0
    svg = Path("out.svg").read_text()
    assert "_hidden" in svg
    assert "\\foo" in svg
    assert run(*TOP, "--plot", "out.png")[0] == 0


@pytest.mark.parametrize("command", [[], ["count"], ["top"], ["plan"], ["range"], ["join"], ["inspect"]])
def test_help_and_version_are_shown(run: Run, command: list[str]) -> None:
    code, out, err = run(*command, "--help")
    assert (code, err) == (0, "")
    assert out.startswith("usage: fastgame")
    assert all(len(line) <= 120 for line in out.splitlines())
    if not command:
        assert "fastgame count --help" in out and "2 where something was refused" in out
    assert run("--version")[:2] == (0, f"fastgame {fg.__version__}\n")


@pytest.mark.parametrize("command", ["count", "top", "plan", "range", "join", "inspect"])
def test_the_example_of_the_help_runs_in_an_empty_folder(run: Run, command: str) -> None:
    example = run(command, "--help")[1].partition("example:\n")[2]
    assert example.count("fastgame ") >= 1
    for path in ("visits.csv", "pages.txt"):
        Path(path).unlink()
    done = shell(f"set -eu\n{example}")
    assert (done.returncode, "error" in done.stderr) == (0, False), done.stderr
    assert {"plan": "ContinualCounter", "inspect": "step         2 of 31"}.get(command, "2026-01-08") in done.stdout


ERRORS: dict[str, tuple[list[str], str]] = {
    "no command": ([], "required: COMMAND"),
    "an unknown command": (["sum"], "invalid choice: 'sum'"),
    "an unknown option": ([*COUNT, "--frobnicate"], "unrecognized arguments"),
    "a line break in an option": ([*COUNT, "--foo\nbar"], "unrecognized arguments: --foo bar"),
    "no options": (["count", "visits.csv"], "required: --time"),
    "a bad start": ([*COUNT, "--start", "yesterday"], "start must be ISO text .*'yesterday' was given"),
    "a bad end": ([*COUNT, "--end", "2026-13-01"], "end must be ISO text"),
    "the end before the start": ([*COUNT, "--end", "2025-01-01"], "end must be after start"),
    "a bad length": ([*COUNT, "--every", "1 day"], "every must be a duration .*'1 day' was given"),
    "no length": ([*COUNT, "--every", "0d"], "every must be more than nothing"),
    "a bad zone": ([*COUNT, "--tz", "Mars/Base"], "tz must be the name of a time zone"),
    "a skipped start": ([*COUNT, "--start", "2017-10-15", "--tz", "America/Sao_Paulo"], "no clock shows"),
    "a bad mechanism": ([*COUNT, "--mechanism", "forest"], "argument --mechanism: invalid choice: 'forest'"),
    "buffers of a tree": (
        [*COUNT, "--buffers", "3"],
        "--buffers is of --mechanism blt: give that too, or leave --buffers out",
    ),
    "buffers 0": (
        [*COUNT, "--mechanism", "blt", "--buffers", "0"],
        "--buffers must be from 1 to 3 at horizon 7, .*; 0 was",
    ),
    "buffers 11": ([*COUNT, "--mechanism", "blt", "--buffers", "11"], "--buffers must be from 1 to 3 at .*; 11 was"),
    "buffers of a half": (
        [*COUNT, "--mechanism", "blt", "--buffers", "1.5"],
        "must be a whole number; '1.5' was given",
    ),
    "pure blt": (
        [*PURE, "--mechanism", "blt"],
        "--delta 0 has Laplace noise, .* no --mechanism blt: leave --mechanism",
    ),
    "pure tree on paper": ([*PURE, "--mechanism", "tree-paper"], "--delta 0 has .* no --mechanism tree-paper: leave"),
    "pure epsilon 0": ([*PURE, "--epsilon", "0"], "epsilon must be positive"),
    "pure epsilon 701": ([*PURE, "--epsilon", "701"], "epsilon must be .*700.*; 701"),
    "pure epsilon nan": ([*PURE, "--epsilon", "nan"], "epsilon must be"),
    "one step on paper": ([*COUNT, "--end", "2026-01-02", "--mechanism", "tree-paper"], "horizon must be at least 2"),
    "rho 0": ([*COUNT, "--rho", "0"], "rho must be positive"),
    "rho -1": ([*COUNT, "--rho=-1"], "rho must be positive"),
    "rho nan": ([*COUNT, "--rho", "nan"], "rho must be positive"),
    "rho inf": ([*COUNT, "--rho", "inf"], "rho must be positive"),
    "rho of text": ([*COUNT, "--rho", "much"], "must be a number; 'much' was given"),
    "rho tiny": ([*COUNT, "--rho", "1e-200"], "raise the budget"),
    "rho huge": ([*COUNT, "--rho", "1e200"], "lower the budget"),
    "no budget": (["count", "visits.csv", *CLOCK], "budget is --rho, or --mu, or --epsilon with --delta .*; nothing"),
    "two budgets": ([*COUNT, "--mu", "1"], "--rho and --mu were given"),
    "epsilon alone": (
        ["count", "visits.csv", *CLOCK, "--epsilon", "1"],
        r"\(--delta 0 for pure privacy\); --epsilon was given",
    ),
    "delta 1": (["count", "visits.csv", *CLOCK, "--epsilon", "1", "--delta", "1"], "delta must be"),
    "delta -1": (["count", "visits.csv", *CLOCK, "--epsilon", "1", "--delta=-1"], "delta must be"),
    "delta nan": (["count", "visits.csv", *CLOCK, "--epsilon", "1", "--delta", "nan"], "delta must be"),
    "delta 0 alone": (["count", "visits.csv", *CLOCK, "--delta", "0"], "--delta was given"),
    "contributions 0": ([*COUNT, "--contributions", "0"], "contributions must be"),
    "contributions huge": ([*COUNT, "--contributions", "9" * 40], "contributions must be"),
    "max-weight 0": ([*COUNT, "--max-weight", "0"], "--max-weight must be"),
    "max-weight huge": ([*COUNT, "--max-weight", "9" * 400], "--max-weight must be"),
    "max-norm huge": ([*COUNT, *KEYED, "--max-weight", "9" * 400], ""),
    "release-every 0": ([*COUNT, "--release-every", "0"], "--release-every must be at least 1"),
    "a negative seed": ([*COUNT, "--insecure-seed", "-1"], "--insecure-seed must be"),
    "deletions of updates": ([*COUNT, "--delete-time", "time"], "needs structures with --protect lifetime"),
    "no such time": ([*COUNT, "--time", "when"], "no column 'when'; its columns are 'time', 'page', 'n'"),
    "no such weight": ([*COUNT, "--weight", "when"], "no column 'when'"),
    "a key without keys": ([*COUNT, "--key", "page"], "keys need both --key .* and --keys"),
    "keys without a key": ([*COUNT, "--keys", "pages.txt"], "keys need both"),
    "no such keys": ([*COUNT, "--key", "page", "--keys", "nothing.txt"], "No such file or directory: 'nothing.txt'"),
    "empty keys": ([*COUNT, "--key", "page", "--keys", "empty.txt"], "--keys empty.txt has no key"),
    "keys twice": ([*COUNT, "--key", "page", "--keys", "twice.txt"], "one stands twice"),
    "keys of another name": ([*COUNT, "--key", "page", "--keys", "list.csv", "--keys-column", "x"], "no column 'x'"),
    "too many names": ([*COUNT, *KEYED, "--keys-column", "x", "--keys-column", "y"], "must stand as often as --key, 1"),
    "a key named time": ([*COUNT, "--key", "time", "--keys", "pages.txt"], "must not be named 'time'"),
    "the same key twice": ([*COUNT, "--key", "page", "--key", "page", "--keys", "list.csv"], "different names"),
    "no such file": (["count", "nothing.csv", *COUNT[2:]], "No such file or directory: 'nothing.csv'"),
    "no match": (["count", "nothing*.csv", *COUNT[2:]], r"no file matches 'nothing\*\.csv'"),
    "a folder": (["count", ".", *COUNT[2:]], "is a folder"),
    "a device": (["count", "/dev/null", *COUNT[2:], "--input-format", "csv"], "pipe or a device"),
    "an unknown ending": (["count", "visits.xls", *COUNT[2:]], "not known by its ending .*--input-format"),
    "no parquet": ([*COUNT, "--input-format", "parquet"], r"visits\.csv cannot be read as parquet"),
    "no gzip": (["count", "visits.csv.gz", *COUNT[2:]], r"visits\.csv\.gz cannot be read as csv"),
    "a zero in a name": (["count", "a\0b.csv", *COUNT[2:]], "null byte"),
    "a long delimiter": ([*COUNT, "--delimiter", "ab"], "must be one ASCII character"),
    "no delimiter": ([*COUNT, "--delimiter", ""], "must be one ASCII character"),
    "a format of numbers": (["count", "typed.parquet", *COUNT[2:]], "must hold timestamps, dates or ISO text"),
    "a format with a zone": ([*COUNT, "--tz", "UTC", "--time-format", "%Y"], "has no time zone"),
    "an unknown output": ([*COUNT, "--out", "out.xls"], "not known by its ending .*--format"),
    "no folder": ([*COUNT, "--out", "nowhere/out.csv"], "there is no folder .*nowhere to write nowhere/out.csv into"),
    "a folder for a file": ([*COUNT, "--out", ".", "--format", "csv"], "is a folder"),
    "parquet on the terminal": ([*COUNT, "--format", "parquet"], "name a file with --out"),
    "no folder for a picture": ([*COUNT, "--plot", "nowhere/out.png"], "there is no folder"),
    "an unknown picture": ([*COUNT, "--plot", "out.xls"], "not known by its ending .*png"),
    "width 3": ([*TOP, "--width", "3"], "width must be a power of two .*3 was given"),
    "width huge": ([*TOP, "--width", str(1 << 40)], "width must be a power of two"),
    "depth 2": ([*TOP, "--depth", "2"], "depth must be an odd number"),
    "k 0": ([*TOP, "-k", "0"], "-k must be from 1"),
    "a negative hash seed": ([*TOP, "--hash-seed", "-1"], "--hash-seed must be"),
    "top without keys": (["top", *COUNT[1:]], "keys need both"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_an_error_is_one_line_with_exit_code_2(run: Run, name: str) -> None:
    Path("empty.txt").touch()
    Path("twice.txt").write_text("a\na\n")
    Path("list.csv").write_text("page\n/home\n")
    Path("visits.csv.gz").write_text("time\n")
    Path("zoned.csv").write_text("time\n2026-01-01T00:00Z\n")
    Path("visits.xls").touch()
    pq.write_table(pa.table({"time": [1, 2]}), "typed.parquet")
    before = sorted(Path().iterdir())
    arguments, message = ERRORS[name]
    code, out, err = run(*arguments)
    assert (code, out) == (2, ""), err
    assert re.fullmatch(rf"fastgame( count| top)?: error: .*{message}.*\n", err), err
    assert sorted(Path().iterdir()) == before


# Budgets that are warned of, and those at the edge that are not.
WEAK: dict[str, tuple[list[str], list[str]]] = {
    "epsilon": (["--epsilon", "20.5", "--delta", "1e-6"], [r"--epsilon 20\.5 protects next to .* 10\^9 times"]),
    "pure": (["--epsilon", "100", "--delta", "0"], [r"--epsilon 100 protects next to nothing: .* 10\^43 times"]),
    "delta": (["--epsilon", "1", "--delta", "0.01"], ["--delta 0.01 is large: of 100 people one may"]),
    "both": (
        ["--epsilon", "21", "--delta", "0.002"],
        ["--epsilon 21 protects", "--delta 0.002 is large: of 500 people"],
    ),
    "rho": (["--rho", "10"], [r"--rho 10 is an epsilon of 3\d\.\d+ at delta 1e-06, which protects next to nothing"]),
    "mu": (["--mu", "5"], [r"--mu 5 is an epsilon of 3\d\.\d+ at delta 1e-06, which protects next to nothing"]),
    "huge": (["--rho", "1e8"], [r"--rho 1e\+08 is an epsilon of 1.*e\+08 at .* 10\^43,.* times"]),
    "epsilon 20": (["--epsilon", "20", "--delta", "1e-3"], []),
    "rho 4": (["--rho", "4"], []),
    "mu 3": (["--mu", "3"], []),
}


@pytest.mark.parametrize("name", WEAK)
def test_a_budget_that_protects_next_to_nothing_is_warned_of(run: Run, name: str) -> None:
    budget, messages = WEAK[name]
    quiet = ["count", "visits.csv", *CLOCK, *budget, "--quiet"]
    assert run(*quiet)[::2] == (0, "")
    for command, words in (("count", quiet[1:-1]), ("plan", ["counter", "--horizon", "7", *budget])):
        code, out, err = run(command, *words)
        warnings = [line for line in err.splitlines() if "warning" in line]
        assert code == 0 and "warning" not in out
        assert len(warnings) == len(messages)
        for line, message in zip(warnings, messages, strict=True):
            assert re.match(rf"fastgame {command}: warning: {message}", line), line
    # Of a state, on the first night alone: later ones are given no budget.
    state = ["count", "visits.csv", *CLOCK, "--state", "s.fg"]
    assert run(*state, *budget, "--until", "2026-01-02")[2].count("warning") == len(messages)
    assert run(*state, "--until", "2026-01-03")[2].count("warning") == 0


MISTYPED: dict[str, tuple[list[str], str]] = {
    "a command": (["cuont"], "invalid choice: 'cuont' .*; did you mean 'count'?"),
    "a command in capitals": (["Top"], "; did you mean 'top'?"),
    "no command at all": (["frequencies"], r"choose from 'count', .*, 'inspect'\) (see"),
    "a structure": (["plan", "sketsch"], "invalid choice: 'sketsch' .*; did you mean 'sketch'?"),
    "a choice": ([*COUNT, "--mechanism", "bit"], "argument --mechanism: invalid choice: 'bit' .*; did you mean 'blt'?"),
    "no choice at all": ([*COUNT, "--mechanism", "xyz"], r"choose from 'tree', 'blt', 'tree-paper'\) (see"),
    "an option": ([*COUNT, "--contribution", "2", "--weigth", "n"], "arguments: --weigth n; did you mean --weight in"),
    "with its value": (
        [*COUNT, "--output=x.csv"],
        "arguments: --output=x.csv; did you mean --out instead of --output?",
    ),
    "with one line": ([*COUNT, "-wieght", "n"], "; did you mean --weight instead of -wieght?"),
    "two options": (
        [*COUNT, "--kye", "page", "--keyes", "pages.txt"],
        "; did you mean --key instead of --kye and --keys instead of --keyes?",
    ),
    "one that must be": (
        ["count", "visits.csv", "--tiem", "time", *COUNT[4:]],
        "required: --time; did you mean --time instead of --tiem?",
    ),
    "an option of another command": ([*COUNT, "--box", "n=0:1"], r"arguments: --box n=0:1 (see"),
    "a value that begins so": ([*COUNT[:-2], "--weight", "--tiem"], "--weight: expected one argument (see"),
}


@pytest.mark.parametrize("name", MISTYPED)
def test_a_mistyped_word_is_told_with_what_may_have_been_meant(run: Run, name: str) -> None:
    arguments, message = MISTYPED[name]
    code, out, err = run(*arguments)
    message = message.replace("?", r"\?").replace("(", r"\(")
    assert (code, out) == (2, "")
    assert re.fullmatch(rf"fastgame( count| plan)?: error: .*{message}.*\n", err), err
    assert err.count("did you mean") == message.count("did you mean")


def test_the_command_runs_as_a_module() -> None:
    done = shell(f"fastgame {' '.join(COUNT)} --format json")
    assert done.returncode == 0
    assert of_json(done.stdout) == plain(replayed())
    assert "\n" not in done.stderr.splitlines()[0]
    done = shell("fastgame count nothing.csv " + " ".join(COUNT[2:]))
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["table", "csv"])
def test_a_reader_that_goes_away_is_no_error(form: str) -> None:
    every = "--every 1m --quiet --format"
    done = shell(f"set -o pipefail; fastgame {' '.join(COUNT)} {every} {form} | head -1")
    assert done.stderr == ""
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 1


def test_a_closed_or_full_output_is_an_error_in_one_line() -> None:
    for target in (">&-", "> /dev/full"):
        done = shell(f"fastgame {' '.join(COUNT)} --quiet {target}")
        assert done.returncode == 2, target
        assert done.stderr.count("\n") == 1
        assert done.stderr.startswith("fastgame count: error: ")


def test_an_interruption_is_told_and_nothing_is_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(fg, "replay", lambda *_, **__: interrupted())
    assert run(*COUNT, "--out", "out.csv") == (130, "", "fastgame count: interrupted; nothing was written\n")
    assert not Path("out.csv").exists()


# Every kind of noise on the command line: options, what the library is given, and the guarantee.
NOISES: dict[str, tuple[list[str], dict[str, Any], str]] = {
    "blt": (["--rho", "0.5", "--mechanism", "blt"], {"privacy": fg.Zcdp(0.5), "mechanism": "blt"}, r"0\.5-zCDP, \(4"),
    "2 buffers": (
        ["--rho", "0.5", "--mechanism", "blt", "--buffers", "2"],
        {"privacy": fg.Zcdp(0.5), "mechanism": "blt", "buffers": 2},
        r"0\.5-zCDP, \(4\.887, 1e-06\)-DP",
    ),
    "pure": (
        ["--epsilon", "1", "--delta", "0"],
        {"privacy": fg.PureDp(1.0)},
        r"1-DP up to the sampler's error \(docs/guarantees\.md, section 12\), for a row$",
    ),
    "pure lifetime": (
        ["--epsilon", "0.3", "--delta", "0.0", "--protect", "lifetime"],
        {"privacy": fg.PureDp(0.3), "protect": "lifetime"},
        r"0\.3-DP up to the sampler's error \(.*\), for a row, its deletion included$",
    ),
}
FRAME = {name: [row[place] for row in ROWS] for place, name in enumerate(["time", "page", "n"])}


def noisy_feed(kind: str, given: dict[str, Any]) -> Any:
    """The structure and the columns of a command."""
    given = {"horizon": 7, "insecure_seed": 7, **given}
    if kind == "count":
        return fg.Feed(fg.ContinualCounter(**given))
    if kind == "keyed":
        return fg.Feed(fg.ContinualVector(3, **given), key="page", keys=KEYS)
    if kind == "top":
        return fg.Feed(fg.CountSketch(width=256, hash_seed=1, **given), key="page", keys=KEYS, top=2)
    axis = fg.axis.Integer(0, 5, name="n")
    counter = fg.RangeCounter(axes=[axis], width=64, hash_seed=1, **given)
    return fg.Feed(counter, boxes={"n=0:2": {"n": (0, 2)}, "n=1:5": {"n": (1, 5)}})


SEEDED = ["visits.csv", *CLOCK, "--insecure-seed", "7"]
NOISY = {
    "count": ["count", *SEEDED],
    "keyed": ["count", *SEEDED, *KEYED],
    "top": ["top", *SEEDED, *KEYED, "--width", "256", "--hash-seed", "1", "-k", "2"],
    "range": [
        "range",
        *SEEDED,
        "--axis",
        "n:0:5",
        "--box",
        "n=0:2",
        "--box",
        "n=1:5",
        "--width",
        "64",
        "--hash-seed",
        "1",
    ],
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("kind", NOISY)
def test_releases_with_every_noise_are_those_of_replay_with_their_error_at_each_step(
    run: Run, kind: str, noise: str
) -> None:
    options, given, promise = NOISES[noise]
    feed = noisy_feed(kind, given)
    expected = fg.replay(pa.table(FRAME), TICKS, feed, time="time")
    code, out, err = run(*NOISY[kind], *options, "--format", "json", "--plot", "out.svg")
    assert code == 0, err
    assert of_json(out) == plain(expected)
    last = err.splitlines()[-1]
    assert re.match(rf"all that was released, however it is combined, is {promise}", last), last
    assert ("zCDP" in last) == ("pure" not in noise)
    stds = [row["std"] for row in of_json(out)]
    if kind in ("count", "keyed"):
        cells = len(stds) // 7
        structure = noisy_feed(kind, given).structure
        for step in range(1, 8):
            structure.advance(to=step)
            assert stds[(step - 1) * cells : step * cells] == [structure.noise_std()] * cells
        assert (len(set(stds)) == 7) == ("pure" not in noise)
        assert stds == sorted(stds)
    assert Path("out.svg").stat().st_size > 5_000


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("noise", NOISES)
def test_a_join_with_every_noise_is_that_of_replay_join(run: Run, noise: str) -> None:
    options, given, promise = NOISES[noise]
    expected = rejoined(**given)
    command = [word for word in JOIN if word not in ("--rho", "0.5")]
    code, out, err = run(*command, *options, "--format", "json", "--plot", "out.png")
    assert code == 0, err
    assert of_json(out) == plain(expected)
    assert re.match(rf"all that was released, however it is combined, is {promise}", err.splitlines()[-1])


@pytest.mark.parametrize(
    ("horizon", "budget", "mechanism", "sds"),
    [
        (1, fg.Zcdp(0.5), "blt", 1.959964),
        (1, fg.PureDp(2.0), "tree", math.log(20) / math.sqrt(2)),
        (7, fg.PureDp(2.0), "tree", 2.0126),
        (2**40, fg.PureDp(2.0), "tree", 1.965),
    ],
)
def test_the_band_of_a_picture_covers_what_it_says(horizon: int, budget: Any, mechanism: Any, sds: float) -> None:
    counter = fg.ContinualCounter(horizon=horizon, privacy=budget, mechanism=mechanism)
    assert quantile(counter) == pytest.approx(sds, rel=1e-3)


@pytest.mark.parametrize(
    ("noise", "promise"), [("pure", "1-DP up to the sampler's error, protect = update"), ("blt", "1e-06)-DP, protect")]
)
def test_the_title_of_a_picture_states_the_guarantee(
    run: Run, monkeypatch: pytest.MonkeyPatch, noise: str, promise: str
) -> None:
    titles: list[str] = []
    monkeypatch.setattr("matplotlib.axes.Axes.set_title", lambda _, title, **__: titles.append(title))
    assert run(*NOISY["count"], *NOISES[noise][0], "--plot", "out.png")[0] == 0
    assert len(titles) == 1 and promise in titles[0]
    if noise == "pure":
        assert titles[0].startswith("1-DP")
    assert titles[0].endswith(", tree of Laplace noise" if noise == "pure" else ", blt with 1 buffer")


PLAN = ["plan", "sketch", "--horizon", "8760", "--rho", "0.5", "--expected-total", "1e5", "--key-count", "5000"]


def test_a_plan_has_the_numbers_of_the_library(run: Run) -> None:
    code, out, err = run(*PLAN, "--width", "4096", "--skew", "1.2", "--protect", "lifetime", "--format", "json")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    given: dict[str, Any] = {"horizon": 8760, "privacy": fg.Zcdp(0.5), "width": 4096, "protect": "lifetime"}
    plan = fg.CountSketch.plan(**given, hash_seed=shown["parameters"]["hash_seed"])
    profile = fg.FrequencyProfile.zipf(total=1e5, keys=5000, exponent=1.2)
    assert shown["error_now"] == shown["error_at_end"] == plan.error(profile=profile)
    assert (shown["noise_std"], shown["std"], shown["cells"]) == (plan.noise_std, plan.std(profile=profile), 20_480)
    assert [row["error"] for row in shown["what_if"]] == [row.error for row in plan.what_if(profile)]
    vector = plan.fits_in_vector(5000)
    assert vector is not None and shown["fits_in_vector"]["error_at_end"] == vector.error()


def test_a_plan_of_a_sketch_suggests_its_shape_and_tells_when_a_vector_would_do(run: Run) -> None:
    code, out, _ = run(*PLAN, "--plot", "plan.png")
    assert code == 0 and Path("plan.png").read_bytes().startswith(b"\x89PNG")
    profile = fg.FrequencyProfile.zipf(total=1e5, keys=5000)
    best = fg.CountSketch.suggest(profile=profile, horizon=8760, privacy=fg.Zcdp(0.5)).parameters
    assert f"width {best['width']:,}, depth {best['depth']}" in out
    assert "Your domain fits in a plain vector: 5,000 keys" in out
    many = [*PLAN[:-1], "1000000000000"]
    assert "plain vector" not in run(*many, "--width", "64")[1]


PLANS: dict[str, list[str]] = {
    "counter": ["plan", "counter", "--horizon", "1000"],
    "vector": ["plan", "vector", "--horizon", "1000", "--key-count", "50"],
    "sketch": [
        "plan",
        "sketch",
        "--horizon",
        "1000",
        "--expected-total",
        "1e5",
        "--key-count",
        "5000",
        "--width",
        "512",
    ],
    "range": ["plan", "range", "--horizon", "1000", "--axis", "x:0:100"],
}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("kind", PLANS)
def test_plans_of_every_noise_and_their_comparison(run: Run, kind: str, noise: str) -> None:
    options, given, _ = NOISES[noise]
    given = {"horizon": 1000, **given}
    makers: dict[str, Callable[[], fg.Plan]] = {
        "counter": lambda: fg.ContinualCounter.plan(**given),
        "vector": lambda: fg.ContinualVector.plan(50, **given),
        "sketch": lambda: fg.CountSketch.plan(width=512, hash_seed=1, **given),
        "range": lambda: fg.RangeCounter.plan(axes=fg.axis.Integer(0, 100, name="x"), **given),
    }
    plan = makers[kind]()
    profile = fg.FrequencyProfile.zipf(total=1e5, keys=5000) if kind == "sketch" else None
    code, out, err = run(*PLANS[kind], *options, "--format", "json")
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert (shown["error_now"], shown["error_at_end"]) == (
        plan.error(at=1, profile=profile),
        plan.error(profile=profile),
    )
    assert shown["buffers"] == plan.buffers and shown["parameters"]["privacy"] == repr(plan.privacy)
    if noise == "2 buffers":
        assert run(*PLANS[kind], *options, "--plot", "plan.png")[0] == 0 and Path("plan.png").exists()

    code, out, err = run(*PLANS[kind], *options, "--compare", "--format", "json")
    assert (code, err) == (0, "")
    shown, expected = json.loads(out), plan.compare(profile=profile)
    assert set(shown) == {"structure", "parameters", "noise_alone", "mechanisms", "choice", "why"}
    assert (shown["choice"], shown["noise_alone"]) == (expected.choice, expected.noise_alone)
    measured = {"time"}
    for row, other in zip(shown["mechanisms"], expected.mechanisms, strict=True):
        assert {name: row[name] for name in set(row) - measured} == {
            name: getattr(other, name) for name in set(row) - measured
        }
    code, out, _ = run(*PLANS[kind], *options, "--compare", "--out", "compared.txt")
    assert (code, out) == (0, "")
    lines = Path("compared.txt").read_text().splitlines()
    assert lines[0].startswith(f"Mechanisms for a {plan.structure} (") and lines[1].startswith("mechanism")
    assert lines[-1].startswith(f"Choose '{expected.choice}': ")
    assert [line.split()[0].rstrip(",") for line in lines[2 : 2 + len(expected.mechanisms)]] == [
        row.mechanism for row in expected.mechanisms
    ]


def test_plans_of_counters_and_vectors_take_a_clock(run: Run) -> None:
    clock = ["--start", "2026-01-01", "--end", "2027-01-01", "--every", "1h", "--epsilon", "1", "--delta", "1e-6"]
    plan = fg.ContinualCounter.plan(horizon=8760, privacy=fg.ApproxDp(1, 1e-6), max_weight=3)
    out = run("plan", "counter", *clock, "--max-weight", "3", "--format", "json")[1]
    assert json.loads(out)["error_at_end"] == plan.error()
    assert run("plan", "vector", *clock, "--key-count", "7", "--out", "plan.txt")[:2] == (0, "")
    assert "ContinualVector (size 7" in Path("plan.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["counter", "--rho", "1"], "the time is --horizon, or --start"),
        (["counter", "--rho", "1", "--horizon", "8", "--start", "2026-01-01"], "the time is --horizon, or --start"),
        (
            ["counter", "--rho", "1", "--start", "2026-01-01", "--end", "2026-02-01"],
            "the time is --horizon, or --start",
        ),
        (["vector", "--rho", "1", "--horizon", "8"], "with --key-count"),
        (["sketch", "--rho", "1", "--horizon", "8"], "--width .*or is chosen for an --expected-total"),
        (["sketch", "--rho", "1", "--horizon", "8", "--width", "3"], "width must be"),
        (["sketch", "--rho", "1", "--horizon", "8", "--expected-total", "nan"], "must be from 1 to 2\\^53; nan"),
        (["sketch", "--rho", "1", "--horizon", "8", "--expected-total", "9", "--key-count", "0"], "keys must be"),
        (["sketch", "--rho", "1", "--horizon", "8", "--expected-total", "9", "--skew", "-1"], "exponent must be"),
        (
            ["counter", "--horizon", "8", "--rho", "1", "--buffers", "3"],
            "--buffers is of --mechanism blt: give that too, or",
        ),
        (
            ["counter", "--horizon", "8", "--rho", "1", "--buffers", "3", "--compare"],
            "--buffers is of --mechanism blt: give that too, and --compare then compares it with the others",
        ),
        (
            ["counter", "--horizon", "8", "--epsilon", "1", "--delta", "0", "--mechanism", "blt"],
            "--delta 0 has Laplace",
        ),
        (["counter", "--horizon", "1", "--rho", "1", "--mechanism", "blt", "--buffers", "1"], "none at horizon 1"),
        (["counter", "--horizon", "8", "--rho", "1", "--mechanism", "square-root"], "invalid choice"),
        (["counter", "--horizon", "8"], "the budget is --rho"),
        (["counter", "--rho", "1", "--horizon", "8", "--plot", "nowhere/plan.png"], "there is no folder"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else "",
)
def test_bad_plans_are_one_line(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run("plan", *arguments)
    assert (code, out) == (2, "") and err.startswith("fastgame plan: error: ") and err.count("\n") == 1
    assert re.search(message, err), err


def test_what_is_read_is_not_overwritten(run: Run) -> None:
    before = Path("visits.csv").read_bytes()
    os.symlink("visits.csv", "link.csv")
    for out in ("visits.csv", "link.csv", "./visits.csv"):
        code, _, err = run(*COUNT, "--out", out)
        assert code == 2 and "is read; name another file" in err and err.count("\n") == 1
    assert run(*COUNT, *KEYED, "--out", "pages.txt", "--format", "csv")[0] == 2
    assert "name the same file" in run(*COUNT, "--out", "x.png", "--plot", "x.png", "--format", "csv")[2]
    assert Path("visits.csv").read_bytes() == before and not Path("x.png").exists()


def test_a_stated_epsilon_is_rounded_up(run: Run) -> None:
    for rho in ("0.001", "1", "0.5", "1e9"):
        err = run("count", "visits.csv", *CLOCK, "--rho", rho)[2]
        epsilon = re.search(r"\(([-+.e0-9]+), 1e-06\)-DP", err)
        assert epsilon is not None and fg.Zcdp(float(rho)).delta(float(epsilon[1])) <= 1e-6, err


# Digits of a double that lie beyond the decimal that was given were rounded up: 0.100001-zCDP.
@pytest.mark.parametrize(
    ("budget", "promise"),
    [
        (["--rho", "0.1"], "is 0.1-zCDP, "),
        (["--rho", "0.123456789"], "is 0.123456789-zCDP, "),
        (["--rho", "1e-12"], "is 1e-12-zCDP, "),
        (["--rho", "3"], "is 3-zCDP, "),
        (["--epsilon", "0.1", "--delta", "1e-6"], "-zCDP, (0.1, 1e-06)-DP, for"),
        (["--epsilon", "0.7", "--delta", "3e-9"], "-zCDP, (0.7, 3e-09)-DP, for"),
        (["--epsilon", "0.12345", "--delta", "0"], "is 0.12345-DP up to"),
    ],
)
def test_a_budget_is_stated_as_it_was_given(run: Run, budget: list[str], promise: str) -> None:
    assert promise in run("count", "visits.csv", *CLOCK, *budget)[2]


@pytest.mark.parametrize("digits", [1, 4, 6])
def test_what_is_rounded_up_is_never_less_and_stays_where_it_is_short(digits: int) -> None:
    assert upward(0.1, digits) == "0.1" and upward(1.0, digits) == "1"
    generator = np.random.default_rng(1)
    for value in np.exp(generator.uniform(-50, 50, size=1000)):
        assert value <= float(upward(value, digits)) <= value * (1 + 10.0 ** (1 - digits)), value
        # No more digits than were given: it is what was given.
        short = float(f"{value:.{digits}g}")
        assert float(upward(short, digits)) == short
    # One more digit, and it is the next.
    assert float(upward(1 + 1.1 * 10.0**-digits, digits)) == 1 + 10.0 ** (1 - digits)


def test_a_run_in_which_no_row_was_used_is_loud(run: Run) -> None:
    assert "NO ROW COULD BE USED" in run("count", "visits.csv", *CLOCK[2:], "--time", "page", "--rho", "1", COUNTS)[2]
    assert "NO ROW" not in run(*COUNT, COUNTS)[2]


def test_without_a_standard_error_the_work_is_done() -> None:
    for target in ("2>&-", "2>/dev/full"):
        if target.endswith("full") and not Path("/dev/full").exists():
            continue
        done = subprocess.run(
            ["bash", "-c", f"{sys.executable} -m fastgame {' '.join(COUNT)} --out o.csv {target}"], check=False
        )
        assert done.returncode == 0 and Path("o.csv").stat().st_size > 0
        Path("o.csv").unlink()


def test_options_that_say_nothing_are_refused(run: Run) -> None:
    for arguments in (
        ["counter", "--depth", "3"],
        ["counter", "--key-count", "3"],
        ["vector", "--key-count", "3", "--skew", "1"],
    ):
        code, _, err = run("plan", *arguments, "--horizon", "8", "--rho", "1")
        assert code == 2 and re.search(r"--[-a-z]+ says nothing of a (counter|vector)", err), err
    assert "--depth goes with --width" in run(*PLAN, "--depth", "3")[2]
    assert run("plan", "counter", "--horizon", "8", "--rho", "1", "--insecure-seed", "3")[0] == 2


def test_more_releases_than_memory_holds_are_refused_by_number(run: Run) -> None:
    arguments = ["count", "visits.csv", *CLOCK[:-1], "1us", "--rho", "1"]
    code, _, err = run(*arguments)
    assert code == 2 and "604,800,000,000 rows would be released" in err and "--release-every" in err
    assert run(*arguments, "--release-every", str(10**12))[0] == 0


def test_a_request_to_end_removes_temporary_files(tmp_path: Path) -> None:
    spilled = tmp_path / "spilled"
    spilled.mkdir()
    program = f"""
import os, signal, sys, time
import fastgame as fg
from fastgame import _cli
real = fg.replay
def replay(batches, *arguments, **keywords):
    def rows():
        yield from batches
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(10)
    return real(rows(), *arguments, memory=1, **keywords)
fg.replay = replay
sys.exit(_cli.main({COUNT!r}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(spilled)},
    )
    assert (done.returncode, list(spilled.iterdir())) == (130, [])
    assert done.stderr == "fastgame count: interrupted; nothing was written\n"


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("%Q", "is none that strptime reads"),
        ("", "must say year, month and day"),
        ("%H:%M", "must say year, month and day"),
        ("%d/%m/%Y %z", "has a time zone and the ticks have none"),
    ],
)
def test_a_format_is_checked_before_reading(run: Run, form: str, message: str) -> None:
    code, out, err = run(*COUNT, "--time-format", form)
    assert (code, out) == (2, "") and message in err, err


RANGE = ["range", "visits.csv", *CLOCK, "--rho", "1e8", "--width", "64"]


def test_ranges_of_the_command_line_are_those_counted_by_hand(run: Run, folder: Path) -> None:
    rows = [
        f"2026-01-0{1 + k % 6} 10:00,{k * 7 % 90},{'north' if k % 3 else 'south'},2026-02-{1 + k % 27:02d}T0{k % 9}:30"
        for k in range(60)
    ]
    lines = [
        "time,age,site,when,id",
        *(f"{row},{2**60 + k}" for k, row in enumerate(rows)),
        "2026-01-02,x,,no time,1.5",
    ]
    (folder / "visits.csv").write_text("\n".join(lines) + "\n")
    axes = ["--axis", "age:0:100:20", "--axis", "site: north, south", "--axis", "when:2026-02-01:2026-03-01:1h"]
    day = "when=2026-02-03T05:00:2026-02-03T07:00"
    boxes = ["age=30:60", "age=:50,site= south", "when=2026-02-03:2026-02-09T05:00", day]
    given = [word for box in boxes for word in ("--box", box)]
    code, out, err = run(*RANGE, *axes, *given, "--format", "json", COUNTS)
    assert code == 0 and "left out were 1 (no bin for 'age')" in err, err
    last = [row for row in json.loads(out) if row["time"].startswith("2026-01-08")]
    expected = [0, 0, 0, 0]
    for row in rows:
        _, age, site, when = row.split(",")
        expected[0] += 30 <= int(age) < 60
        expected[1] += int(age) < 50 and site == "south"
        expected[2] += "2026-02-03" <= when < "2026-02-09T05:00"
        expected[3] += "2026-02-03T05:00" <= when < "2026-02-03T07:00"
    assert [row["box"] for row in last] == boxes
    # Fine components of three axes are sketched: what collides is in the stated error.
    assert all(abs(row["value"] - count) <= max(0.5, 6 * row["std"]) for row, count in zip(last, expected, strict=True))
    # Integers that no float holds.
    ids = ["--axis", f"id:{2**60}:{2**60 + 100}", "--box", f"id={2**60 + 3}:{2**60 + 4}"]
    (folder / "boxes.txt").write_text(f"id={2**60 + 7}:{2**60 + 11}\n")
    out = run(*RANGE, *ids, "--boxes", "boxes.txt", "--format", "json")[1]
    assert [round(row["value"]) for row in json.loads(out)[-2:]] == [1, 4]


def test_date_axes_are_in_the_zone_of_the_clock(run: Run, folder: Path) -> None:
    rows = ["time,when", "2026-01-02T10:00Z,2026-03-08T04:30Z", "2026-01-02T10:00Z,2026-03-08T05:30Z"]
    (folder / "visits.csv").write_text("\n".join(rows) + "\n")
    axis = ["--tz", "America/New_York", "--axis", "when:2026-03-01:2026-04-01:1d"]
    boxes = ["--box", "when=2026-03-08:2026-03-09", "--box", "when=2026-03-08T00:00-05:00:"]
    code, out, err = run(*RANGE, *axis, *boxes, "--format", "json")
    assert code == 0, err
    assert [round(row["value"]) for row in json.loads(out)[-2:]] == [1, 1]


AGE = ["--axis", "age:0:100:20"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: --axis"),
        (AGE, "name the boxes to report"),
        ([*AGE, "--box", "age=0:51"], "has no edge 51; the nearest are 50"),
        ([*AGE, "--box", "size=0:50"], "there is no axis 'size'"),
        ([*AGE, "--box", "age"], "a box is name=lo:hi"),
        ([*AGE, "--box", "age=5"], "must say from:to"),
        ([*AGE, "--box", "age=0:5:9"], "is no number"),
        ([*AGE, "--box", "age=0:5", "--box", "age=0:5"], "stands twice"),
        (["--axis", "age:0:x", "--box", "age=0:5"], "cannot be read as"),
        (["--axis", "age:0:1:2:3:4", "--box", "age=0:5"], "an axis is"),
        (["--axis", "site:a,", "--box", "site=a"], "a category has no name"),
        ([*AGE, "--box", "age=0:50", "--levels", "9"], "levels must be"),
        ([*AGE, "--box", "age=0:50", "--levels", "x"], "--levels must be"),
        (["--axis", "when:2026-01-01:2026-02-01:1d", "--box", "when=3:4"], "in dates or ISO times"),
        ([*AGE, "--boxes", "nothing.txt"], "No such file"),
    ],
    ids=lambda given: " ".join(given[1:]) if isinstance(given, list) else "",
)
def test_bad_ranges_are_one_line(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run(*RANGE, "--rho", "0.5", *arguments)
    assert (code, out) == (2, "") and err.startswith("fastgame range: error: ") and err.count("\n") == 1
    assert message in err, err


# Joins.

ORDERS = [
    ("/home", "2026-01-02 11:00", 2, ""),
    ("/jobs", "2026-01-03 11:00", 1, "2026-01-05"),
    ("/home", "2026-01-04 11:00", -1, "2026-01-06 10:00"),
    ("/home", "2027-01-04 11:00", 1, ""),
]
PAIR = ["join", "visits.csv", "orders.csv", *CLOCK, "--rho", "0.5", "--insecure-seed", "7", "--hash-seed", "1"]
JOIN = [*PAIR, "--width", "256", "--on", "page", "--right-on", "ref", "--right-time", "when"]


@pytest.fixture
def orders(folder: Path) -> Path:
    """A second table, with columns of other names."""
    path = folder / "orders.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("ref", "when", "pieces", "gone"), *ORDERS])
    return path


def rejoined(left: Any = None, right: Any = None, **parameters: Any) -> pa.Table:
    """What fastgame.replay_join gives for the same rows and seeds."""
    own = {"max_weight", "depth", "width", "on_excess", "protect", "contributions", "mechanism", "buffers", "privacy"}
    own &= set(parameters)
    given: dict[str, Any] = {"horizon": 7, "privacy": fg.Zcdp(0.5), "insecure_seed": 7, "hash_seed": 1, "width": 256}
    join = fg.JoinSize(**{**given, **{name: parameters.pop(name) for name in own}})
    visits = {name: [row[place] for row in ROWS] for place, name in enumerate(["time", "page", "n"])}
    names = ["ref", "when", "pieces", "gone"]
    ordered = {name: [row[place] or None for row in ORDERS] for place, name in enumerate(names)}
    columns: dict[str, Any] = {"time": "time", "key": "page", "right_time": "when", "right_key": "ref", **parameters}
    return fg.replay_join(left or visits, right or ordered, TICKS, join, **columns)


OPTIONS: dict[str, tuple[list[str], dict[str, Any]]] = {
    "plain": ([], {}),
    "weights": (
        ["--weight", "n", "--right-weight", "pieces", "--max-weight", "3"],
        {"weight": "n", "right_weight": "pieces", "max_weight": 3},
    ),
    "weights on the left": (["--weight", "n", "--max-weight", "3"], {"weight": "n", "max_weight": 3}),
    "weights on the right": (
        ["--right-weight", "pieces", "--on-excess", "clip"],
        {"right_weight": "pieces", "on_excess": "clip"},
    ),
    "deletions on the right": (
        ["--right-delete-time", "gone", "--protect", "lifetime"],
        {"right_delete_time": "gone", "protect": "lifetime"},
    ),
    "a shape": (
        ["--width", "64", "--depth", "3", "--release-every", "3", "--contributions", "2", "--mechanism", "tree-paper"],
        {"width": 64, "depth": 3, "release_every": 3, "contributions": 2, "mechanism": "tree-paper"},
    ),
    "a single row": (["--depth", "1"], {"depth": 1}),
}


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("name", OPTIONS)
def test_a_join_is_that_of_replay_join_in_every_form(run: Run, name: str) -> None:
    options, parameters = OPTIONS[name]
    expected = rejoined(**parameters)
    command = [*JOIN, *options]
    code, out, err = run(*command, "--format", "json")
    assert code == 0, err
    assert of_json(out) == plain(expected)
    assert run(*command, "--out", "out.parquet")[:2] == (0, "")
    assert pq.read_table("out.parquet").equals(expected)
    code, out, _ = run(*command, "--format", "csv")
    read = list(csv.DictReader(io.StringIO(out)))
    assert [
        [row["time"], *(row[key] and float(row[key]) for key in ("value", "std", "std_of_rows"))] for row in read
    ] == [
        [row["time"], row["value"], row["std"], "" if row["std_of_rows"] is None else row["std_of_rows"]]
        for row in plain(expected)
    ]
    code, out, err = run(*command)
    lines = out.splitlines()
    assert (code, len(lines), lines[0].split()) == (0, 2 + expected.num_rows, expected.schema.names), err
    shown = [float(line.replace(",", "").split()[1]) for line in lines[2:]]
    assert np.allclose(shown, expected.column("value").to_pylist(), rtol=0.1, atol=0.6)
    for ending in ("csv", "json", "txt"):
        form = {"txt": "table"}.get(ending, ending)
        assert run(*command, "--out", f"out.{ending}")[:2] == (0, "")
        assert Path(f"out.{ending}").read_text() == run(*command, "--format", form)[1]


@pytest.mark.usefixtures("orders")
def test_tables_of_two_forms_are_joined(run: Run) -> None:
    expected = plain(rejoined())
    pq.write_table(
        pa.table({name: [str(row[place]) for row in ORDERS] for place, name in enumerate(["ref", "when"])}), "o.parquet"
    )
    Path("v.jsonl").write_text("".join(json.dumps({"time": row[0], "page": row[1]}) + "\n" for row in ROWS))
    for left, right in [("v.jsonl", "orders.csv"), ("visits.csv", "o.parquet"), ("v.jsonl", "o.parquet")]:
        code, out, err = run("join", left, right, *JOIN[3:], "--format", "json")
        assert (code, of_json(out)) == (0, expected), err
    # Keys are text, also where a form of table has numbers.
    pq.write_table(pa.table({"ref": [1, 2], "when": ["2026-01-01"] * 2}), "n.parquet")
    numbers = ["join", "visits.csv", "n.parquet", *CLOCK, "--rho", "1e8", "--on", "n", "--right-on", "ref"]
    numbers += ["--right-time", "when"]
    found = of_json(run(*numbers, "--format", "json")[1])
    assert [round(row["value"]) for row in found] == [1, 2, 2, 2, 2, 2, 2]
    # A pattern is one table.
    write_rows(Path("visits-1.csv"), ROWS[:1])
    write_rows(Path("visits-2.csv"), ROWS[1:])
    assert of_json(run("join", "visits-*.csv", *JOIN[2:], "--format", "json")[1]) == expected


@pytest.mark.usefixtures("orders")
def test_columns_of_the_right_table_have_the_names_of_the_left_without_options(run: Run) -> None:
    write_rows(Path("more.csv"), [(row[1], row[0], row[2]) for row in ORDERS])
    code, out, err = run(
        "join", "visits.csv", "more.csv", *PAIR[3:], "--width", "256", "--on", "page", "--format", "json"
    )
    assert (code, of_json(out)) == (0, plain(rejoined())), err


MAILS = [("2026-01-01", "ann", "bob"), ("2026-01-02", "bob", "ann"), ("2026-01-02", "ann", "eve"), ("", "eve", "bob")]
SELF = [*CLOCK, "--insecure-seed", "7", "--hash-seed", "1", "--width", "256", "--on", "from", "--right-on", "to"]


@pytest.fixture
def mails(folder: Path) -> list[str]:
    """A table with two columns of keys, under four names."""
    with (folder / "mails.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("time", "from", "to"), *MAILS])
    (folder / "link.csv").symlink_to("mails.csv")
    os.link("mails.csv", "hard.csv")
    return ["mails.csv", "./mails.csv", "link.csv", "hard.csv"]


def test_a_file_is_joined_with_itself_on_two_columns(run: Run, mails: list[str]) -> None:
    frame = {name: [row[place] for row in MAILS[:3]] for place, name in enumerate(["time", "from", "to"])}
    join = fg.JoinSize(horizon=7, privacy=fg.Zcdp(1e6), contributions=2, insecure_seed=7, hash_seed=1, width=256)
    expected = fg.replay_join(frame, frame, TICKS, join, time="time", key="from", right_key="to")
    assert np.rint(expected.column("value").to_pylist()).tolist() == [0, 3, 3, 3, 3, 3, 3]
    for right in mails:
        given = ["join", "mails.csv", right, *SELF, "--rho", "1e6"]
        code, out, err = run(*given, "--contributions", "2", "--format", "json")
        assert (code, of_json(out)) == (0, plain(expected)), err
        assert "for 2 rows\n" in err
        assert "of mails.csv that is 1 row, as a row of it stands on both sides and counts twice\n" in err
        for contributions, unit in (("3", "1 row"), ("4", "2 rows"), ("21", "10 rows")):
            assert f"that is {unit}, as" in run(*given, "--contributions", contributions)[2]
        code, out, err = run(*given)
        assert (code, out) == (2, "")
        assert re.fullmatch(r"fastgame join: error: mails.csv is on both sides, .* --contributions must be .* 1\n", err)
    # A file that is among those of the other side stands on both as well.
    Path("mails-2.csv").write_text("time,from,to\n")
    assert "mails.csv is on both sides" in run("join", "mails.csv", "mails*.csv", *SELF, "--rho", "1")[2]
    # Two files with the same rows are two.
    Path("copy.csv").write_bytes(Path("mails.csv").read_bytes())
    code, _, err = run("join", "mails.csv", "copy.csv", *SELF, "--rho", "1")
    assert code == 0 and "both sides" not in err


def test_a_join_with_itself_goes_on_with_its_state(run: Run, mails: list[str]) -> None:
    assert mails
    given = ["join", "mails.csv", "mails.csv", *SELF, "--state", "s.fg"]
    code, _, err = run(*given, "--until", "2026-01-02", "--rho", "1e6")
    assert code == 2 and "--contributions must be at least 2" in err and not Path("s.fg").exists()
    assert run(*given, "--until", "2026-01-02", "--rho", "1e6", "--contributions", "2")[0] == 0
    code, out, err = run(*given, "--until", "2026-01-03", "--format", "json")
    assert code == 0 and round(of_json(out)[0]["value"]) == 3 and "that is 1 row" in err
    # A state that was made for single rows is not gone on with.
    Path("empty.csv").write_text("time,from,to\n")
    other = [*SELF, "--state", "t.fg"]
    assert run("join", "mails.csv", "empty.csv", *other, "--until", "2026-01-02", "--rho", "1")[0] == 0
    before = Path("t.fg").read_bytes()
    code, _, err = run("join", "mails.csv", "mails.csv", *other, "--until", "2026-01-03")
    assert code == 2 and "--contributions must be at least 2" in err and Path("t.fg").read_bytes() == before


def test_elsewhere_a_file_is_named_once(run: Run, mails: list[str]) -> None:
    for other in mails:
        what = "named twice" if other == "mails.csv" else "the file mails.csv, which is named too"
        code, _, err = run("count", "mails.csv", other, *COUNT[2:])
        assert code == 2 and f"{other} is {what}; its rows would count twice" in err
    Path("a-1.csv").write_text("time,from,to\n")
    os.link("a-1.csv", "a-2.csv")
    code, _, err = run("join", "mails.csv", "a-*.csv", *SELF, "--rho", "1")
    assert code == 2 and "a-2.csv is the file a-1.csv, which is named too" in err


def test_composite_keys_are_joined_and_deletions_on_the_left(run: Run, orders: Path) -> None:
    with Path("left.csv").open("w", newline="") as file:
        csv.writer(file).writerows(
            [("time", "page", "n", "end"), ("2026-01-01", "/home", 2, "2026-01-03"), ("2026-01-02", "/home", -1, "")]
        )
    command = ["join", "left.csv", *PAIR[2:], "--width", "256", "--on", "page", "--on", "n", "--right-on", "ref"]
    command += ["--right-on", "pieces", "--right-time", "when", "--delete-time", "end", "--protect", "lifetime"]
    code, out, err = run(*command, "--format", "json")
    left = {"time": ["2026-01-01", "2026-01-02"], "page": ["/home"] * 2, "n": ["2", "-1"], "end": ["2026-01-03", None]}
    right = {
        "ref": [row[0] for row in ORDERS],
        "when": [row[1] for row in ORDERS],
        "pieces": [str(row[2]) for row in ORDERS],
    }
    expected = rejoined(
        left, right, key=("page", "n"), right_key=("ref", "pieces"), delete_time="end", protect="lifetime"
    )
    assert (code, of_json(out)) == (0, plain(expected)), err
    assert orders.exists()


@pytest.mark.usefixtures("orders")
def test_a_join_tells_the_operator_of_both_tables(run: Run) -> None:
    err = run(*JOIN, COUNTS)[2]
    assert "not private: 7 rows were read, left out were 1 " in err
    assert "0.5-zCDP" in err and err.endswith("for a row\n")
    for extra, table in [("/home,2026-01-02,1,\n", "orders.csv"), ("2026-01-02,/home,1\n", "visits.csv")]:
        before = run(*JOIN, "--quiet", "--format", "csv")
        with Path(table).open("a") as file:
            file.write(extra)
        after = run(*JOIN, "--quiet", "--format", "csv")
        times = [[line.split(",")[0] for line in each[1].splitlines()] for each in (before, after)]
        assert times[0] == times[1] and before[1] != after[1] and before[2] == after[2] == ""


JOIN_ERRORS: dict[str, tuple[list[str], str]] = {
    "no right table": (["join", "visits.csv", *CLOCK, "--rho", "1", "--on", "page"], "required: RIGHT"),
    "three tables": (["join", "visits.csv", "orders.csv", "visits.csv", *JOIN[3:]], "unrecognized arguments"),
    "no key": (PAIR, "required: --on"),
    "no such key": ([*PAIR, "--on", "absent"], "visits.csv has no column 'absent'"),
    "no such key on the right": ([*PAIR, "--on", "page", "--right-time", "when"], "orders.csv has no column 'page'"),
    "no such time on the right": ([*PAIR, "--on", "page", "--right-on", "ref"], "orders.csv has no column 'time'"),
    "no such weight": ([*JOIN, "--weight", "pieces"], "visits.csv has no column 'pieces'"),
    "no such weight on the right": ([*JOIN, "--right-weight", "n"], "orders.csv has no column 'n'"),
    "no such deletion": ([*JOIN, "--delete-time", "gone", "--protect", "lifetime"], "visits.csv has no column 'gone'"),
    "more keys on one side": ([*JOIN, "--on", "n"], "joined on as many columns"),
    "the same key twice": ([*PAIR, "--on", "page", "--on", "page", "--right-on", "ref"], "different names"),
    "deletions of updates": ([*JOIN, "--right-delete-time", "gone"], "needs structures with --protect lifetime"),
    "bad rows": ([*JOIN, "--fail-on-bad-rows"], "the first is row 4 of the data"),
    "width 16": ([*JOIN, "--width", "16"], "width must be a power of two from 32"),
    "depth 2": ([*JOIN, "--depth", "2"], "depth must be an odd number"),
    "a negative hash seed": ([*JOIN, "--hash-seed", "-1"], "--hash-seed must be"),
    "no left file": (["join", "nothing.csv", *JOIN[2:]], "No such file or directory: 'nothing.csv'"),
    "no right file": (["join", "visits.csv", "nothing.csv", *JOIN[3:]], "No such file or directory: 'nothing.csv'"),
    "no budget": (["join", "visits.csv", "orders.csv", *CLOCK, "--on", "page"], "budget is --rho"),
    "over the left": ([*JOIN, "--out", "visits.csv"], "visits.csv is read; name another file"),
    "over the right": ([*JOIN, "--out", "./orders.csv"], "orders.csv is read; name another file"),
    "a picture over the right": ([*JOIN, "--plot", "orders.csv"], ""),
    "keys": ([*JOIN, "--key", "page"], "unrecognized arguments|ambiguous"),
}


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("name", JOIN_ERRORS)
def test_an_error_of_a_join_is_one_line_and_changes_no_file(run: Run, name: str) -> None:
    before = {path: path.read_bytes() for path in Path().iterdir()}
    arguments, message = JOIN_ERRORS[name]
    code, out, err = run(*arguments)
    assert (code, out) == (2, ""), err
    assert re.fullmatch(rf"fastgame( join)?: error: .*({message}).*\n", err), err
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize("depth", ["1", "3"])
def test_a_picture_of_a_join_is_one_line(run: Run, depth: str) -> None:
    assert run(*JOIN, "--depth", depth, "--plot", "out.svg")[0] == 0
    svg = Path("out.svg").read_text()
    assert "size of the join" in svg
    assert "std_of_rows" not in svg
    assert "keys" not in svg
