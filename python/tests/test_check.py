"""The command's --check, which releases nothing; --multiline; and rows that decided over others."""

from __future__ import annotations

import contextlib
import datetime as dt
import gzip
import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fastgame import _files
from fastgame._cli import main

CLOCK = ["--time", "time", "--start", "2026-01-01", "--end", "2026-01-03", "--every", "1d", "--insecure-seed", "1"]
COUNT = [*CLOCK, "--rho", "1e6"]
KEYED = [*COUNT, "--key", "page", "--keys", "pages.txt"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data, in which the commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pages.txt").write_text("/home\n/about\n")
    return tmp_path


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as ended:
            code = int(ended.code or 0)
        out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()


def values(*arguments: str) -> list[int]:
    """What a command releases, rounded: the noise is less than a tenth."""
    code, out, err = run(*arguments, "--format", "csv")
    assert code == 0, err
    names, *lines = out.splitlines()
    place = names.replace('"', "").split(",").index("value")
    return [round(float(line.split(",")[place])) for line in lines]


def test_check_says_columns_types_and_forms_and_touches_nothing() -> None:
    Path("visits.csv").write_text('time,page,n\n2026-01-01 09:30,/home,1\n"never closed\n')
    code, out, _ = run(
        "count", "visits.csv", *KEYED, "--weight", "n", "--max-weight", "3", "--check", "--out", "out.csv",
        "--state", "s.fg", "--until", "2026-01-02",
    )  # fmt: skip
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "visits.csv: csv, 3 columns"
    assert lines[3].split(None, 2) == ["time", "text", lines[3].split(None, 2)[2]]
    assert "ISO text without a time zone" in lines[3]
    assert "a key" in lines[4] and "the weight: numbers" in lines[5] and "at most 3" in lines[5]
    assert "the clock has 2 steps, from 2026-01-01T00:00:00 to 2026-01-03T00:00:00" in out
    assert lines[-1] == "no row was used and nothing was released"
    assert not Path("out.csv").exists() and not Path("s.fg").exists()


def test_check_is_the_same_whatever_the_rows_are() -> None:
    seen = set()
    for rows in ("", "2026-01-01,/home\n", 'x\n"\n\xff\n'):
        Path("visits.csv").write_text("time,page\n" + rows)
        seen.add(run("count", "visits.csv", *KEYED, "--check"))
    assert len(seen) == 1


def test_check_refuses_what_a_run_would_refuse() -> None:
    pq.write_table(pa.table({"time": pa.array([1]), "page": ["/home"]}), "visits.parquet")
    code, out, err = run("count", "visits.parquet", *KEYED, "--check")
    assert (code, out) == (2, "") and "'time' must hold timestamps" in err and "epoch_s" in err
    aware = [*KEYED, "--tz", "UTC", "--time-format", "epoch_s"]
    code, out, _ = run("count", "visits.parquet", *aware, "--check")
    assert code == 0 and "int64" in out and "numbers of seconds since 1970" in out
    code, _, err = run("count", "visits.parquet", *KEYED[:-2], "--keys", "none.txt", "--check")
    assert code == 2 and "none.txt" in err
    Path("visits.csv").write_text("t,page\n")
    code, _, err = run("count", "visits.csv", *KEYED, "--check")
    assert code == 2 and "visits.csv has no column 'time'; its columns are 't', 'page'" in err


def test_check_of_ranges_and_joins_and_json() -> None:
    Path("a.jsonl").write_text('{"time":"2026-01-01","x":1}\n')
    axes = ["--axis", "x:0:10:5", "--axis", "when:2026-01-01:2027-01-01:1mo", "--axis", "site:north,south"]
    code, out, _ = run("range", "a.jsonl", *COUNT, *axes, "--box", "x=0:2", "--check")
    assert code == 0 and "has no header" in out
    assert "a coordinate: numbers" in out and "a coordinate: ISO text" in out and "one of the categories" in out
    Path("b.csv").write_text("when,user\n")
    code, out, _ = run(
        "join", "a.jsonl", "b.csv", "--on", "x", "--right-on", "user", *COUNT, "--right-time", "when", "--check"
    )
    assert code == 0 and "a.jsonl: json" in out and "b.csv: csv, 2 columns" in out


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_quote_that_is_never_closed_is_one_bad_row(end: str) -> None:
    rows = ["2026-01-01 09:30,/home"] * 200
    for bad in ('2026-01-01 09:30,"/home', '"', '2026-01-01 09:30,"/home""'):
        Path("visits.csv").write_bytes(end.join(["time,page", bad, *rows, ""]).encode())
        assert values("count", "visits.csv", *KEYED) == [200, 0, 200, 0]


def test_a_quoted_break_on_the_border_of_blocks_loses_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_files, "_BLOCK", 1 << 12)
    head = b"page,time,note\r\n"
    for shift in range(-3, 4):
        note = b"x" * ((1 << 12) - len(head) - len(b'/home,2026-01-01,"\r') + shift)
        row = b'/home,2026-01-01,"' + note + b'\r\ny"\r\n'
        Path("visits.csv").write_bytes(head + row + b"/home,2026-01-01,\r\n" * 3)
        assert values("count", "visits.csv", *KEYED, "--multiline")[0] == 4


def test_lines_of_too_many_columns_that_are_not_utf8_are_left_out(capfd: Any) -> None:
    Path("visits.csv").write_bytes(b"time,page\n2026-01-01,\xff,\xff\n2026-01-01,/home\n")
    assert values("count", "visits.csv", *KEYED)[:2] == [1, 0]
    assert "Traceback" not in capfd.readouterr().err


def test_one_time_without_a_zone_is_left_out_every_night() -> None:
    good = ["2026-01-01T09:30Z,/home"] * 300
    Path("visits.csv").write_text("\n".join(["time,page", *good, "2026-01-01T09:30,/home"]) + "\n")
    assert values("count", "visits.csv", *KEYED, "--tz", "UTC")[:2] == [300, 0]
    state = ["--tz", "UTC", "--state", "s.fg", "--until"]
    assert values("count", "visits.csv", *KEYED, *state, "2026-01-02") == [300, 0]
    # A typed column of the other kind stays an error: its type is public.
    pq.write_table(pa.table({"time": [dt.datetime(2026, 1, 1)], "page": ["/home"]}), "visits.parquet")
    code, _, err = run("count", "visits.parquet", *KEYED, "--tz", "UTC")
    assert code == 2 and "has no time zone and the ticks are in UTC" in err


@pytest.mark.parametrize("text", ["inf", "Infinity", "1e400", "-inf", "-1e400", "nan"])
@pytest.mark.parametrize("axis", ["x:-10:10:4", "x:-10:10"])
@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
def test_infinite_coordinates_mean_the_same_beside_rows_that_are_none(text: str, axis: str, form: str) -> None:
    def write(cells: list[str]) -> str:
        if form == "csv":
            Path("a.csv").write_text("time,x\n" + "".join(f"2026-01-01,{cell}\n" for cell in cells))
        elif form == "json":
            literals = [cell if cell.endswith("1e400") else f'"{cell}"' for cell in cells]
            Path("a.json").write_text("".join(f'{{"time":"2026-01-01","x":{cell}}}\n' for cell in literals))
        else:
            pq.write_table(pa.table({"time": ["2026-01-01"] * len(cells), "x": cells}), "a.parquet")
        return f"a.{form}"

    boxes = ["--box", "x=0:", "--box", "x=:0", "--box", "x=0:10"]
    box = ["range", write([text] * 50), *COUNT, "--axis", axis, *boxes]
    alone = values(*box)
    assert alone[:3] == {"nan": [0, 0, 0], "-": [0, 50, 0]}.get(text if text == "nan" else text[0], [50, 0, 0])
    for other in ("zz", "", " ", "5 5"):
        write([text] * 20 + [other] + [text] * 30)
        assert values(*box) == alone
    write([text] * 25 + ["5"] + [text] * 25)
    assert values(*box)[2] == 1


def test_gzipped_tsv_is_known_by_its_ending_alone() -> None:
    Path("x.tsv.d").mkdir()
    Path("x.tsv.d/a.csv").write_text("time,page\n2026-01-01,/home\n")
    assert values("count", "x.tsv.d/a.csv", *KEYED)[0] == 1
    Path("a.tsv.gz").write_bytes(gzip.compress(b"time\tpage\n2026-01-01\t/home\n"))
    assert values("count", "a.tsv.gz", *KEYED)[0] == 1


def test_epochs_years_and_months_are_times() -> None:
    seconds = 1_767_260_000  # 2026-01-01T09:33:20Z
    for form, text in (("epoch_s", str(seconds)), ("epoch_s", f"{seconds}.25"), ("epoch_ms", str(seconds * 1000))):
        Path("visits.csv").write_text(f"time,page\n{text},/home\nx,/home\n")
        assert values("count", "visits.csv", *KEYED, "--tz", "UTC", "--time-format", form)[0] == 1
    for form, text in (("%Y", "2026"), ("%Y-%m", "2026-01")):
        Path("visits.csv").write_text(f"time,page\n{text},/home\n2026-13,/home\n")
        assert values("count", "visits.csv", *KEYED, "--time-format", form)[0] == 1


STATE = ["--state", "s.fg", "--until", "2026-01-02"]


def test_check_states_the_guarantee_if_it_is_known() -> None:
    Path("visits.csv").write_text("time,page\n")
    promise = "all that is released, however it is combined, would be 0.5-zCDP, "
    given = ["count", "visits.csv", "--time", "time", "--start", "2026-01-01", "--end", "2026-01-03", "--every", "1d"]
    code, out, _ = run(*given, "--rho", "0.5", "--contributions", "3", "--check")
    assert code == 0 and promise in out and "for 3 rows\n" in out
    # That of a state is not known, as it is not opened.
    assert run(*given, *STATE, "--rho", "0.5")[0] == 0
    code, out, _ = run(*given, *STATE, "--check")
    assert code == 0 and "DP" not in out


def test_check_of_a_self_join_leaves_contributions_to_the_state() -> None:
    Path("mails.csv").write_text("time,a,b\n2026-01-01,x,y\n")
    clock = ["--time", "time", "--start", "2026-01-01", "--end", "2026-01-03", "--every", "1d", "--width", "64"]
    join = ["join", "mails.csv", "mails.csv", "--on", "a", "--right-on", "b", *clock]
    assert run(*join, *STATE, "--rho", "0.5", "--contributions", "2")[0] == 0
    assert run(*join, *STATE, "--check")[0] == 0
    code, _, err = run(*join, "--rho", "0.5", "--check")
    assert code == 2 and "--contributions must be at least 2" in err


def test_messages_say_what_to_do() -> None:
    Path("visits.csv").write_text("time;page\n")
    code, _, err = run("count", "visits.csv", *COUNT)
    assert code == 2 and "its columns are 'time;page' (is it --delimiter ';'?)" in err
    Path("visits.csv").write_text("time,page\n")
    code, _, err = run("count", "visits.csv", *COUNT, "--time-format", "epoch_s")
    assert code == 2 and "give the clock one, as --tz UTC" in err
    for zone in ([], ["--tz", "UTC"]):
        code, _, err = run("count", "visits.csv", *COUNT, *zone, "--time-format", "epoch")
        assert code == 2 and "or be 'epoch_s' or 'epoch_ms'" in err
    Path("keys.txt").write_text("/a\n/b\n/c\n/b\n")
    code, _, err = run("count", "visits.csv", *COUNT, "--key", "page", "--keys", "keys.txt")
    assert code == 2 and "one stands twice in the list: '/b'" in err


@pytest.mark.parametrize("form", ["epoch_s", "%d", "epoch"])
@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_a_format_that_is_none_is_refused_whether_or_not_there_are_rows(name: str, form: str) -> None:
    header, row = ("time,page\n", "x,y\n") if name == "a.csv" else ("", '{"time": "x"}\n')
    seen = set()
    for rows in ("", row):
        Path(name).write_text(header + rows)
        seen.add(run("count", name, *COUNT, "--time-format", form))
    assert len(seen) == 1 and seen.pop()[0] == 2
