"""The speed of the command line beside pyarrow merely reading the same file.

``python scripts/replay_speed.py`` makes a CSV file of 10^7 rows (time, key, weight, a number) and prints medians of
several rounds, each of which runs everything once in turn: ratios of times within a round are what counts.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv

from fastgame._cli import main as fastgame

KEYS = 20_000
YEAR = 365 * 86_400


def make(path: Path, rows: int, shuffled: bool) -> None:
    """Writes the file: a year of events, keys by Zipf's law with exponent 1.3."""
    generator = np.random.default_rng(0)
    seconds = generator.integers(0, YEAR, rows)
    if not shuffled:
        seconds.sort()
    keys = pa.array([f"N{key:05d}" for key in range(KEYS)])
    places = np.minimum(generator.zipf(1.3, rows), KEYS) - 1
    table = pa.table(
        {
            "time": np.datetime64("2013-01-01", "s") + seconds,
            "key": keys.take(pa.array(places)),
            "weight": generator.integers(1, 4, rows),
            "number": generator.random(rows).round(3),
        }
    )
    pa.csv.write_csv(table, path)


def timed(run: Callable[[], object]) -> float:
    """Seconds of one run."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description="Speed of the command line beside reading alone.")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        listed, out = Path(folder) / "keys.txt", Path(folder) / "out.csv"
        listed.write_text("\n".join(f"N{key:05d}" for key in range(KEYS)))
        clock = ["--time", "time", "--start", "2013-01-01", "--end", "2014-01-01", "--every", "1d"]
        common = [*clock, "--rho", "0.5", "--quiet", "--out", str(out)]
        keyed = ["--key", "key", "--keys", str(listed), "--release-every", "30"]
        for shuffled in (False, True):
            path = Path(folder) / "rows.csv"
            make(path, arguments.rows, shuffled)
            runs: dict[str, Callable[[], object]] = {
                "pyarrow.csv.read_csv": lambda path=path: pa.csv.read_csv(path),
                "fastgame count": lambda path=path: fastgame(["count", str(path), *common]),
                "fastgame count, weights": lambda path=path: fastgame(
                    ["count", str(path), *common, "--weight", "weight", "--max-weight", "3"]
                ),
                "fastgame count, 20,000 keys": lambda path=path: fastgame(["count", str(path), *common, *keyed]),
                "fastgame top": lambda path=path: fastgame(["top", str(path), *common, *keyed]),
            }
            times: dict[str, list[float]] = {name: [] for name in runs}
            for _ in range(arguments.rounds):
                for name, run in runs.items():
                    times[name].append(timed(run))
            print(f"{arguments.rows:,} rows, {'shuffled' if shuffled else 'in order of time'}")
            floor = times["pyarrow.csv.read_csv"]
            for name, mine in times.items():
                ratio = statistics.median(a / b for a, b in zip(mine, floor, strict=True))
                print(f"  {name:<30} {statistics.median(mine):6.2f} s   {ratio:5.2f} x reading")


if __name__ == "__main__":
    main()
