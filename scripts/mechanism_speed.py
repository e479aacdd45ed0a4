#!/usr/bin/env python3
"""How long reads take under each mechanism: the table of docs/mechanisms.md, from one run of the benchmark.

    cargo bench -p fastgame-bench --bench mechanisms     # some minutes; on a machine that does nothing else
    mechanism_speed.py                                   # print the table
    mechanism_speed.py --write                           # put it into docs/mechanisms.md
    mechanism_speed.py --alone [--write]                 # the same for the reads of a counter alone

Times are criterion's medians, those of a counter alone what plans measure. They depend on the machine; their ratios,
all from the same run, do less. --alone needs the built package.
"""

import argparse

from _report import DOCS, criterion, processor, table, write_block

BEGIN = "<!-- begin: scripts/mechanism_speed.py -->"
BEGIN_ALONE = "<!-- begin: scripts/mechanism_speed.py, alone -->"
#: Horizons of a counter alone, and how often all are measured: the shortest times count.
ALONE = {"8{,}760": 8760, "2^{20}": 2**20, "2^{40}": 2**40, "2^{62}": 2**62}
ROUNDS = 9
#: Cells a read of the benchmark.
CELLS = {"sweep": 4096, "batch": 512, "call": 1}
#: Mechanism -> normals that a sweep needs, at a jump of one step and at a longer one. The tree draws one, and in half
#: of such reads two.
NORMALS = {"tree": (1.5, 1.5), "blt 3": (1, 4), "blt 5": (1, 6), "blt 8": (1, 9), "laplace": None}
NAMES = {"tree": "`tree`", "laplace": "Laplace tree"}


def together():
    median = lambda group, name: criterion(f"mechanism/{group}", name)  # noqa: E731
    normal = median("normals", "6 a cell") / 6 / CELLS["sweep"]
    jumps = ("jump 1", "jump 2_30")
    heads = ["sweep of 4,096, jump 1", "over its normals", "jump $2^{30}$", "over its normals"]
    for cells in ("512 cells", "one cell"):
        heads += [f"{cells}, jump 1", "jump $2^{30}$", "ratio"]
    heads.append("random jumps")
    rows = []
    for name, needed in NORMALS.items():
        words = name.split()
        shown = NAMES.get(name) or f"`{words[0]}`, {words[1]} buffers"
        row = [shown]
        for i, jump in enumerate(jumps):
            each = median(f"sweep_{jump}", name) / CELLS["sweep"]
            row += [f"{each:.0f}", f"{each / (needed[i] * normal):.1f}" if needed else "–"]
        for shape in ("batch", "call"):
            near, far = (median(f"{shape}_{jump}", name) / CELLS[shape] for jump in jumps)
            row += [f"{near:.0f}", f"{far:.0f}", f"{far / near:.2f}"]
        row.append(f"{median('call_random jumps', name):.0f}")
        rows.append(row)
    text = table(["ns a cell", *heads], rows)
    return f"{text}\nOne normal takes {normal:.1f} ns here. ({processor()}, one thread.)"


def alone():
    """Times of the reads of one counter, at 1000 steps that are spread evenly: ratios alone."""
    import fastgame as fg  # noqa: PLC0415 (the table above does without)

    heads = ["$T$", "buffers", "`blt`, time of a read over that of `tree`"]
    rows = []
    for name, horizon in ALONE.items():
        plan = fg.ContinualCounter.plan(horizon=horizon, privacy=fg.Zcdp(0.5))
        runs = [{row.mechanism: row for row in plan.compare(reads=1000).mechanisms} for _ in range(ROUNDS)]
        tree, blt = (min(run[word].time for run in runs) for word in ("tree", "blt"))
        rows.append([f"${name}$", str(runs[0]["blt"].buffers), f"{blt / tree:.1f}"])
    return f"{table(heads, rows)}\n({processor()}, one thread.)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into docs/mechanisms.md")
    parser.add_argument("--alone", action="store_true", help="the times of a counter alone, instead")
    arguments = parser.parse_args()
    begin, text = (BEGIN_ALONE, alone()) if arguments.alone else (BEGIN, together())
    if arguments.write:
        write_block(DOCS / "mechanisms.md", begin, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
