#!/usr/bin/env python3
"""What stores survive, and what they cost: the figures of docs/reliability.md.

Processes that are killed and what they leave (python/tests/crashes.py), updates and reads a second beside structures in
memory, and how long it takes to open a store. Needs numpy and the built package; some minutes. Figures of time are of
the machine and of the minute: compare within a table.

    reliability.py                      print the tables
    reliability.py --write              put them into docs/reliability.md
    reliability.py kills --kills 100    one table; so many kills a chain
    --folder FOLDER                     where stores are made (a folder on the disk that is asked about)
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from _report import DOCS, ROOT, table, write_block

import fastgame as fg

BEGIN = "<!-- begin: scripts/reliability.py, {} -->"
MEMORY = Path("/dev/shm")

SECONDS = 0.4
ROUNDS = 3
BATCH = 1000


# --- Kills


def kills(folder, options):
    sys.path.insert(0, str(ROOT / "python" / "tests"))
    import crashes  # noqa: PLC0415 (it stands with the tests)

    tally = crashes.run_chains(folder, options.kills, seed=options.seed)
    rows = [[name, f"{tally[name]:,}"] for name in sorted(tally) if not name.startswith("killed during")]
    under_way = [
        [name.removeprefix("killed during "), f"{tally[name]:,}"] for name in sorted(tally) if "during" in name
    ]
    return table(["what happened", "how often"], rows) + "\n" + table(["the call at the kill", "kills"], under_way)


# --- Speed


def single(structure, number):
    structure.update(number % 1000)


def batch(structure, number):
    structure.update(np.arange(number, number + BATCH) % 1000)


def read(structure, number):
    structure.estimate(number % 1000)
    structure.advance()


def read_many(structure, number):
    structure.estimate(np.arange(number, number + BATCH) % 1000)
    structure.advance()


WORK = {
    "one update": single,
    f"an update of {BATCH}": batch,
    "one read, and a step": read,
    f"a read of {BATCH}, and a step": read_many,
}


def make(path, sync):
    given = {"width": 1024, "depth": 5, "hash_seed": 1, "horizon": 2**40, "privacy": fg.Zcdp(0.5)}
    return fg.CountSketch(**given) if path is None else fg.open(path, fg.CountSketch, sync=sync, **given)


def rate(structure, work):
    """Calls a second."""
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        for _ in range(10):
            work(structure, calls)
            calls += 1
    return calls / (time.perf_counter() - start)


def speed(folder, _):
    places = {"disk": folder}
    scratch = None
    if MEMORY.is_dir():
        scratch = tempfile.TemporaryDirectory(dir=MEMORY)
        places["memory"] = Path(scratch.name)
    ways = {"no store": (None, None)}
    for place, where in places.items():
        for sync in ("reads", "always"):
            ways[f"{sync}, {place}"] = (where, sync)
    rows = []
    for number, (name, work) in enumerate(WORK.items()):
        rates = {way: [] for way in ways}
        made = {way: make(where and where / f"{number}-{sync}.fg", sync) for way, (where, sync) in ways.items()}
        # In turn, so that what else the machine does meets all of them.
        for _ in range(ROUNDS):
            for way, structure in made.items():
                rates[way].append(rate(structure, work))
        for structure in made.values():
            structure.close()
        found = {way: statistics.median(values) for way, values in rates.items()}
        base = found.pop("no store")
        slower = {way: base / value for way, value in found.items()}
        shown = {way: f"{times:.1f}" if times < 9.95 else f"{times:,.0f}" for way, times in slower.items()}
        rows.append([name, f"{base:,.0f}", *(f"{value:,.0f} (1/{shown[way]})" for way, value in found.items())])
    if scratch:
        scratch.cleanup()
    head = ["calls a second", "no store", *(f'`"{way.split(",")[0]}"`, {way.split(", ")[1]}' for way in list(ways)[1:])]
    return table(head, rows)


# --- Opening


def opening(folder, _):
    rows = []
    for cells, calls in ((1, 1), (1, 10_000), (10_000, 1), (1_000_000, 1), (1_000_000, 10_000), (1_000_000, 100_000)):
        path = folder / f"{cells}-{calls}.fg"
        given = {"size": cells, "horizon": 2**20, "privacy": fg.Zcdp(0.5)}
        with fg.open(path, fg.ContinualVector, sync="reads", **given) as store:
            store.release()
            store.advance()
            store.checkpoint()
            for number in range(calls):
                store.update(number % cells)
        times = []
        for _ in range(ROUNDS):
            start = time.perf_counter()
            fg.open(path).close()
            times.append(time.perf_counter() - start)
        image, journal = fg.inspect(path).bytes
        milliseconds = 1000 * statistics.median(times)
        rows.append([f"{cells:,}", f"{calls:,}", f"{image / 1e6:.3g}", f"{journal / 1e6:.3g}", f"{milliseconds:.3g}"])
    return table(["cells", "calls in the journal", "state, MB", "journal, MB", "to open, ms"], rows)


BLOCKS = {"kills": kills, "speed": speed, "opening": opening}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("blocks", nargs="*", choices=[*BLOCKS, []], help="the tables; all by default")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--folder", type=Path, help="where stores are made")
    parser.add_argument("--kills", type=int, default=25, help="kills a chain")
    parser.add_argument("--seed", type=int, default=3, help="of the moments of the kills")
    options = parser.parse_args()
    for name in options.blocks or BLOCKS:
        with tempfile.TemporaryDirectory(dir=options.folder, prefix="fastgame-") as folder:
            block = BLOCKS[name](Path(folder), options)
        print(f"{name}\n\n{block}")
        if options.write:
            write_block(DOCS / "reliability.md", BEGIN.format(name), block)


if __name__ == "__main__":
    main()
