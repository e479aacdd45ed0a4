"""The command line on a file of a million rows, or of ROWS of the environment, beside pyarrow merely reading it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from fastgame._cli import main as fastgame

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from _report import Times

ROWS = int(os.environ.get("ROWS", "1000000"))
KEYS = 20_000
YEAR = 365 * 86_400


def make(path: Path, shuffled: bool) -> None:
    """Writes the file: a year of events, keys by Zipf's law with exponent 1.3."""
    generator = np.random.default_rng(0)
    seconds = generator.integers(0, YEAR, ROWS)
    if not shuffled:
        seconds.sort()
    keys = pa.array([f"N{key:05d}" for key in range(KEYS)])
    places = np.minimum(generator.zipf(1.3, ROWS), KEYS) - 1
    table = pa.table(
        {
            "time": np.datetime64("2013-01-01", "s") + seconds,
            "key": keys.take(pa.array(places)),
            "weight": generator.integers(1, 4, ROWS),
            "number": generator.random(ROWS).round(3),
        }
    )
    pa.csv.write_csv(table, path)


@pytest.mark.parametrize("order", ["by time", "shuffled"])
@pytest.mark.benchmark(group="replay of a file")
def test_replays(turns: Callable[..., Times], tmp_path: Path, order: str) -> None:
    path, listed, out = tmp_path / "rows.csv", tmp_path / "keys.txt", tmp_path / "out.csv"
    make(path, shuffled=order == "shuffled")
    listed.write_text("\n".join(f"N{key:05d}" for key in range(KEYS)))
    clock = ["--time", "time", "--start", "2013-01-01", "--end", "2014-01-01", "--every", "1d"]
    common = [*clock, "--rho", "0.5", "--quiet", "--out", str(out)]
    keyed = ["--key", "key", "--keys", str(listed), "--release-every", "30"]
    weighted = ["--weight", "weight", "--max-weight", "3"]
    turns(
        {
            "reading": lambda: pa.csv.read_csv(path),
            "count": lambda: fastgame(["count", str(path), *common]),
            "count, weights": lambda: fastgame(["count", str(path), *common, *weighted]),
            "count, 20,000 keys": lambda: fastgame(["count", str(path), *common, *keyed]),
            "top": lambda: fastgame(["top", str(path), *common, *keyed]),
        },
        rounds=5,
        count=ROWS,
    )
