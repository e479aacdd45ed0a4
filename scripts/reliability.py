#!/usr/bin/env python3
"""What stores survive, and what they cost: the figures of docs/reliability.md.

Processes that are killed and what they leave (python/tests/crashes.py), and how long it takes to open a store. Needs
the built package; some minutes. Figures of time are of the machine and of the minute: compare within a table. What
updates and reads of a store cost is in docs/performance.md.

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

from _report import DOCS, ROOT, table, write_block

import fastgame as fg

BEGIN = "<!-- begin: scripts/reliability.py, {} -->"
ROUNDS = 3


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


BLOCKS = {"kills": kills, "opening": opening}


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
