#!/usr/bin/env python3
"""The benchmark report: tables and pictures of docs/performance.md, from what `make bench` measured last.

Reads build/bench/python.json (pytest-benchmark) and target/bench/*.json (benches/rust), whose contenders took turns.
Needs matplotlib and what the benches need (extra `bench`); seconds.

    performance.py             print the tables
    performance.py --write     put them into docs/performance.md and README.md, and draw docs/performance-*.png
"""

import argparse
import operator
import subprocess
from dataclasses import dataclass, replace

from _report import DOCS, ROOT, Benches, machine, power, table, target, write_block

BEGIN = "<!-- begin: scripts/performance.py, {} -->"
RESULTS = ROOT / "build" / "bench" / "python.json"

ACCESSES = ("dense", "random", "sparse")
LEVELS = (10, 16, 40, 62)
LAWS = ("uniform", "Zipf 1.2")


# --- Numbers


def time(ns):
    """A time with three digits and its unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= 0.9995 * size:
            return f"{digits(ns / size)} {unit}"
    return f"{digits(ns)} ns"


def digits(value):
    """Three of them, with commas."""
    if value >= 99.95:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.{1 if value >= 9.995 else 2}f}"


def size(count):
    """Of memory."""
    for unit, of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= of:
            return f"{digits(count / of)} {unit}"
    return f"{count} B"


def beside(bench, name, to):
    """A time, and how often it has that of another."""
    return f"{time(bench.ns(name))} ({digits(bench.ratio(name, to))})"


@dataclass
class Target:
    """A ratio that was to be reached."""

    what: str
    limit: float
    value: float
    at_least: bool = False

    @property
    def met(self):
        return (operator.ge if self.at_least else operator.le)(self.value, self.limit)

    def row(self):
        sign = "≥" if self.at_least else "≤"
        return [self.what, f"{sign} {self.limit:,g}", digits(self.value), "met" if self.met else "**missed**"]


# --- Reads


def reads_of(benches):
    return {access: benches.one("reads", access=access) for access in ACCESSES}


def reads(benches):
    labels = {
        "floor": "the floor",
        "tree, batches": "**`tree`**, all cells of a step in one call",
        "tree, calls": "**`tree`**, a call a cell",
        "blt, batches": '`mechanism="blt"`, all cells of a step',
        "blt, calls": '`mechanism="blt"`, a call a cell',
        "laplace, batches": "`PureDp`, all cells of a step",
        "laplace, calls": "`PureDp`, a call a cell",
        "level by level": "redrawn level by level",
        "walk": "walk through all steps",
    }
    parts = []
    for access, bench in reads_of(benches).items():
        rows = []
        for what, label in labels.items():
            names = [f"{what}, 2^{level}" for level in LEVELS]
            cells = [
                beside(bench, name, f"floor, 2^{level}") if name in bench.times.seconds else "–"
                for name, level in zip(names, LEVELS, strict=True)
            ]
            rows.append([label, *cells])
        parts += [table([access, *(f"$T = 2^{{{level}}}$" for level in LEVELS)], rows)]
    out = benches.one("out of cache")
    parts += [
        f"Out of cache, $2^{{{out.about['log_cells']}}}$ cells in random order: the floor takes "
        f"{time(out.ns('floor'))}, a batch of $2^{{10}}$ cells {beside(out, 'batches', 'floor')} a cell, a call a cell "
        f"{beside(out, 'calls', 'floor')}.\n"
    ]
    gaps = benches.of("gap")
    rows = [
        [
            f"{bench.about['steps']:,}",
            time(bench.ns("tree, calls")),
            time(bench.ns("walk")),
            digits(bench.ratio("walk", "tree, calls")),
        ]
        for bench in gaps
    ]
    parts += [table(["steps since the last read of the cell", "`tree`", "walk", "walk : `tree`"], rows)]
    return "\n".join(parts)


def in_cache(benches, shape):
    """The worst ratio to the floor, of all patterns and horizons."""
    return max(
        bench.ratio(f"tree, {shape}, 2^{level}", f"floor, 2^{level}")
        for bench in reads_of(benches).values()
        for level in LEVELS
    )


def flatness(benches, shape):
    """The largest ratio of two horizons."""
    names = [f"tree, {shape}, 2^{level}" for level in LEVELS]
    return max(bench.ratio(one, to) for bench in reads_of(benches).values() for one in names for to in names)


def read_targets(benches):
    out = benches.one("out of cache")
    shapes = {"batches": "all cells of a step", "calls": "a call a cell"}
    yield from (
        Target(f"read : floor in cache, {label}, worst of all", 1.5, in_cache(benches, shape))
        for shape, label in shapes.items()
    )
    yield from (
        Target(f"read : floor out of cache, {label}", 1.3, out.ratio(shape, "floor"))
        for shape, label in {"batches": "batches", "calls": "a call a cell"}.items()
    )
    yield from (
        Target(f"slowest : fastest horizon, {label}, worst pattern", 1.1, flatness(benches, shape))
        for shape, label in shapes.items()
    )


# --- Normals


def normals(benches):
    words, values = benches.one("test_words"), benches.one("test_normals")
    rows = [[name, beside(words, name, "ChaCha12"), beside(values, name, "ChaCha12")] for name in values.times.seconds]
    return table(["one (to the first row)", "a word of 64 bits", "a normal"], rows)


def normal_targets(benches):
    yield Target("a normal : one of numpy's PCG64", 1.0, benches.one("test_normals").ratio("ChaCha12", "numpy PCG64"))


# --- Whole vectors and updates


def vectors(benches):
    sweeps = [
        [
            f"${power(one.about['cells'])}$",
            time(one.ns("floor")),
            *(beside(one, name, "floor") for name in ("2^40", "2^62", "again")),
        ]
        for one in benches.of("sweep")
    ]
    updates = [
        [
            f"${power(one.about['cells'])}$",
            time(one.ns("floor")),
            *(beside(one, name, "floor") for name in ("a cell a call", "rows of 1", "rows of 8")),
        ]
        for one in benches.of("update")
    ]
    dense = benches.one("dense update")
    head = ["cells: a release of all, a cell", "the floor", "$T = 2^{40}$", "$T = 2^{62}$", "once more"]
    update_head = ["cells: an update, a cell", "adding to an array", "a cell a call", "batch, rows of 1", "rows of 8"]
    return "\n".join(
        [
            table(head, sweeps),
            table(update_head, updates),
            f"A batch of dense rows of {dense.about['cells']:,} takes {beside(dense, 'rows', 'floor')} a cell; to add "
            f"the rows to an array, {time(dense.ns('floor'))}.\n",
        ]
    )


def from_python(benches):
    labels = {"new": "**release**, a new step", "again": "the same step again", "numpy": "numpy, plus a normal"}
    found = [benches.one("test_release_by_index"), *benches.of("test_release_of_all")]
    heads = ["$10^5$ of $2^{20}$ by index", *(f"all of ${power(one.about['size'])}$" for one in found[1:])]
    rows = [[label, *(beside(one, name, "numpy") for one in found)] for name, label in labels.items()]
    parts = [table(["a cell (to numpy)", *heads], rows)]
    for test, what in (("test_sparse_rows", "sparse rows of 8"), ("test_dense_rows", "dense rows of 1024")):
        found = benches.of(test)
        rows = [
            [f"**{name}**" if name == "ours" else name, *(beside(one, name, "ours") for one in found)]
            for name in found[0].times.seconds
        ]
        parts.append(table([f"{what}, a row (to ours)", *(f"{one.about['rows']:,} in a call" for one in found)], rows))
    return "\n".join(parts)


# --- Sketches


def sketches(benches):
    parts = []
    for test, ours in (("test_update_sketch", "update"), ("test_estimate_sketch", "estimate")):
        for law in LAWS:
            found = benches.of(test, law=law)
            rows = [
                [f"**{name}**" if name == ours else name, *(beside(one, name, ours) for one in found)]
                for name in found[0].times.seconds
            ]
            widths = (f"width ${power(one.about['width'])}$" for one in found)
            parts.append(table([f"{ours}, a key (to ours), {law}", *widths], rows))
    horizons = benches.one("test_estimate_sketch_of_any_horizon")
    parts.append(
        f"At width $2^{{16}}$ an estimate for $T = 2^{{60}}$ takes {digits(horizons.ratio('2^60', '2^16'))} times as "
        "long as one for $T = 2^{16}$.\n"
    )
    kinds = benches.one("test_update_sketch_with_kinds_of_keys")
    first, *_ = kinds.times.seconds
    rows = [[name, beside(kinds, name, first)] for name in kinds.times.seconds]
    parts.append(table(["keys of `update`", "a key (to integers)"], rows))
    return "\n".join(parts)


def sketch_targets(benches):
    updates, estimates = benches.of("test_update_sketch"), benches.of("test_estimate_sketch")
    at_16 = [one for one in updates if one.about["width"] == 2**16]
    worst = lambda found, name, to: max(one.ratio(name, to) for one in found)  # noqa: E731
    yield Target("sketch update : numba, the same hash, worst", 1.0, worst(updates, "update", "numba, the same hash"))
    yield Target(
        "sketch update : numba, multiply-shift, width $2^{16}$", 1.6, worst(at_16, "update", "numba, multiply-shift")
    )
    yield Target("private : non-private update, worst", 1.05, worst(updates, "update", "RawSketch.update"))
    yield Target(
        "private : own non-private estimate, width $2^{16}$",
        2.0,
        worst([one for one in estimates if one.about["width"] == 2**16], "estimate", "estimate again"),
    )
    yield Target("private estimate : numpy's non-private one, worst", 1.0, worst(estimates, "estimate", "numpy"))


# --- Small calls

A_THOUSAND = ", a thousand"


def small_calls(benches):
    bench = benches.one("test_scalar_calls")
    rows = []
    for name in bench.times.seconds:
        if name.endswith(A_THOUSAND):
            continue
        row = [f"`{name}`" if "." in name else name, beside(bench, name, "nothing")]
        if (many := name + A_THOUSAND) in bench.times.seconds:
            row += [time(bench.ns(many) / 1000), digits(overhead(bench, name))]
        rows.append(row + ["–"] * (4 - len(row)))
    single = table(["one call", "time (to nothing)", "work of an element", "(call − work) : nothing"], rows)
    batches = [one for one in benches.of("test_small_batches") if one.about["elements"] <= 10]
    rows = [[name, *(beside(one, name, "nothing") for one in batches)] for name in batches[0].times.seconds]
    several = table(["elements in a call (to nothing)", *(str(one.about["elements"]) for one in batches)], rows)
    reads = benches.one("test_advance_and_read_one")
    first, *_ = reads.times.seconds
    rows = [[name, beside(reads, name, first)] for name in reads.times.seconds]
    return f"{single}\n{several}\n{table(['a step, and a read of one', 'time (to the first)'], rows)}"


def overhead(bench, name):
    """What a call takes beyond its work, in calls that do nothing. The work is that of an element of a thousand."""
    shares = {name: 1.0}
    if (many := name + A_THOUSAND) in bench.times.seconds:
        shares[many] = -1 / 1000
    return bench.times.with_sum("overhead", shares).ratio("overhead", "nothing")


def small_targets(benches):
    bench = benches.one("test_scalar_calls")
    calls = [name for name in bench.times.seconds if "." in name and not name.endswith(A_THOUSAND)]
    worst = max(calls, key=lambda name: overhead(bench, name))
    yield Target(f"(one call − its work) : an empty call, worst (`{worst}`)", 3.0, overhead(bench, worst))


# --- A large vector


def of_sparse(benches):
    """With times of a step: of many steps, and of batches the share of a refresh."""
    for bench in benches.of("test_sparse_vector"):
        one, all_cells = 1 / bench.found["steps"], 1 / bench.found["size"]
        times = bench.times.with_sum("batches", {"put aside": one, "apply": all_cells})
        yield replace(bench, times=times.with_sum("ours", {"ours": one}))


def sparse(benches):
    found = list(of_sparse(benches))
    rows = [
        [
            f"${power(one.found['size'])}$",
            time(one.ns("ours")),
            *(f"{time(one.ns(name))} ({digits(one.ratio(name, 'ours'))})" for name in ("numpy", "refresh", "batches")),
        ]
        for one in found
    ]
    head = ["cells", "ours", "a normal for every cell, numpy", "refresh, by the tree", "batches"]
    errors = [
        [
            f"${power(one.found['size'])}$",
            f"{one.found['noise']:.1f}",
            f"{one.found['noise']:.1f}",
            f"{one.found['batch_noise']:.1f}",
            f"{one.found['lacking']:,.0f}",
            f"{one.found['most']:,}",
            f"{one.found['size']:,}",
        ]
        for one in found
    ]
    error_head = ["cells", "ours: noise", "refresh: noise", "batches: noise", "lacking, rms", "at most", "bound"]
    return f"{table(head, rows)}\n{table(error_head, errors)}"


def sparse_targets(benches):
    (one,) = (bench for bench in of_sparse(benches) if bench.found["size"] == 2**20)
    for name, label in (("refresh", "refresh by the tree"), ("numpy", "a normal for every cell")):
        yield Target(f"{label} : ours, $2^{{20}}$ cells", 1e4, one.ratio(name, "ours"), at_least=True)


# --- Structures, stores, files


def ranges(benches):
    bench = benches.one("test_boxes")
    names = {
        "new": "at a new step",
        "again": "at the same step: no noise is drawn",
        "grid": "numpy, sum of an exact grid",
    }
    return table(
        ["a box", "time (to the first)"], [[label, beside(bench, name, "new")] for name, label in names.items()]
    )


def joins(benches):
    rows = [
        [
            f"${power(bench.about['width'])}$",
            f"{bench.about['cells']:,}",
            time(bench.ns("as many normals")),
            beside(bench, "release", "as many normals"),
        ]
        for bench in benches.of("join")
    ]
    return table(["width", "cells", "as many normals", "a release (to them)"], rows)


def stores(benches):
    found = benches.of("test_stores")
    ways = list(found[0].times.seconds)
    rows = [
        [
            bench.about["work"],
            *(
                f"{1e9 / bench.ns(way):,.0f}" + (f" (1/{digits(bench.ratio(way, ways[0]))})" if way != ways[0] else "")
                for way in ways
            ),
        ]
        for bench in found
    ]
    heads = ['`"{}"`, {}'.format(*way.split(", ")) if ", " in way else way for way in ways]
    return table(["calls a second", *heads], rows)


def replays(benches):
    found = benches.of("test_replays")
    names = {
        "reading": "`pyarrow.csv.read_csv`",
        "count": "`fastgame count`",
        "count, weights": "the same with weights",
        "count, 20,000 keys": "the same with 20,000 keys",
        "top": "`fastgame top`",
    }
    rows = [[label, *(beside(one, name, "reading") for one in found)] for name, label in names.items()]
    return table(["a row (to reading)", *(one.about["order"] for one in found)], rows)


# --- Growth


def growth(benches):
    parts = []
    for test, label in (("test_growth_with_cells", "cells"), ("test_growth_with_the_horizon", "$T$")):
        bench = benches.one(test)
        first = next(iter(bench.times.seconds))
        rows = [
            [
                f"$2^{{{bits}}}$",
                beside(bench, bits, first),
                size(bench.found["empty"][bits]),
                size(bench.found["after"][bits]),
            ]
            for bits in bench.times.seconds
        ]
        parts.append(table([label, "a read (to the first)", "memory at the start", "after the reads"], rows))
    bench = benches.one("test_growth_with_reads")
    first = next(iter(bench.times.seconds))
    cells = bench.count
    rows = [
        [f"{int(reads):,}", beside(bench, reads, first), f"{bench.found['memory'][reads] / cells:.0f} B"]
        for reads in bench.times.seconds
    ]
    parts.append(table(["reads of a cell before", "a read (to the first)", "memory a cell"], rows))
    rows = [
        [name, time(bench.ns(f"{call}one thread")), time(bench.ns(f"{call}two threads")), f"{speedup:.2f}"]
        for name, bench, call, speedup in threads(benches)
    ]
    parts.append(table(["two jobs", "one after the other", "in two threads", "faster by"], rows))
    return "\n".join(parts)


def is_control(job):
    """Whether it is there to show what the machine gives two threads."""
    return job.startswith(("numpy", "numba"))


def threads(benches):
    """What is done, its bench, how its calls begin, how much faster two threads are."""
    found = [("vector", benches.one("test_two_threads"))]
    widths = benches.of("test_sketches_in_two_threads")
    found += [(f"sketch of width ${power(bench.about['width'])}$", bench) for bench in widths]
    for what, bench in found:
        calls = [name.removesuffix("one thread") for name in bench.times.seconds if name.endswith("one thread")]
        for call in calls:
            job = call.removesuffix(", ")
            name = f"{job} ({what})" if is_control(job) else f"{what}: {job}"
            yield name, bench, call, bench.ratio(f"{call}one thread", f"{call}two threads")


def thread_targets(benches):
    ours = [(name, speedup) for name, _, _, speedup in threads(benches) if not is_control(name)]
    name, worst = min(ours, key=lambda one: one[1])
    yield Target(f"one thread : two, on independent batches, worst ({name})", 1.7, worst, at_least=True)


# --- Pictures


def axes_of(figure, columns, *, sharey=False):
    from matplotlib import ticker  # noqa: PLC0415 (for pictures alone)

    panels = figure.subplots(1, columns, sharey=sharey)
    for panel in panels:
        panel.set_yscale("log")
        panel.yaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        panel.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
        panel.yaxis.set_minor_locator(ticker.NullLocator())
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    return panels


def draw_reads(figure, benches):
    styles = {
        "level by level": ("redrawn level by level", "C1s--"),
        "laplace, batches": ("Laplace tree, batches", "C4v-"),
        "blt, batches": ("BLT, batches", "C2^-"),
        "tree, calls": ("tree, a call a cell", "C0o:"),
        "tree, batches": ("tree, batches", "C0o-"),
        "floor": ("the floor", "k--"),
        "walk": ("walk through all steps", "C3x"),
    }
    panels = axes_of(figure, len(ACCESSES), sharey=True)
    for panel, (access, bench) in zip(panels, reads_of(benches).items(), strict=True):
        for what, (label, style) in styles.items():
            known = [level for level in LEVELS if f"{what}, 2^{level}" in bench.times.seconds]
            panel.plot(known, [bench.ns(f"{what}, 2^{level}") for level in known], style, label=label, ms=5, lw=1.4)
        panel.set_title(f"{access} reads", loc="left", fontsize="medium")
        panel.set_xticks(LEVELS, [f"$2^{{{level}}}$" for level in LEVELS])
        panel.set_xlabel("horizon $T$")
    panels[0].set_ylabel("ns a read")
    return panels[0]


def draw_sketches(figure, benches):
    panels = axes_of(figure, 2)
    ours = {
        "update": "ours",
        "estimate": "ours",
        "RawSketch.update": "ours, no noise is drawn",
        "estimate again": "ours, no noise is drawn",
    }
    styles = {"ours": ("-", 2.2), "ours, no noise is drawn": (":", 2.2)}
    colours = {}
    for panel, what in zip(panels, ("update", "estimate"), strict=True):
        found = benches.of(f"test_{what}_sketch", law="uniform")
        widths = [one.about["width"] for one in found]
        for name in found[0].times.seconds:
            label = ours.get(name, name)
            style, thick = styles.get(label, ("--", 1.2))
            colour = colours.setdefault(label, f"C{len(colours)}")
            values = [one.ns(name) for one in found]
            panel.plot(widths, values, style, color=colour, marker="o", ms=5, lw=thick, label=label)
        panel.set_xscale("log", base=2)
        panel.set_xticks(widths)
        panel.set_title(f"{what} of $10^6$ uniform keys, depth 5", loc="left", fontsize="medium")
        panel.set_xlabel("width")
    panels[0].set_ylabel("ns a key")
    return panels[0]


def draw_sparse(figure, benches):
    from matplotlib import ticker  # noqa: PLC0415

    left, right = axes_of(figure, 2)
    found = list(of_sparse(benches))
    sizes = [one.found["size"] for one in found]
    styles = {
        "refresh": ("refresh of every cell, by the tree", "C3s-"),
        "numpy": ("a normal for every cell, numpy", "C1^--"),
        "batches": ("batches of as many updates as cells", "C2v-"),
        "ours": ("ours", "C0o-"),
    }
    for name, (label, style) in styles.items():
        left.plot(sizes, [one.ns(name) / 1e3 for one in found], style, label=label, ms=5, lw=1.6)
    left.set_title("time of a step: one update, one query", loc="left", fontsize="medium")
    left.set_ylabel("µs")
    right.plot(sizes, [one.found["noise"] for one in found], "C0o-", ms=5, lw=1.6)
    total = [(one.found["batch_noise"] ** 2 + one.found["lacking"] ** 2) ** 0.5 for one in found]
    right.plot(sizes, total, "C2v-", ms=5, lw=1.6)
    right.set_title("root mean square error, keys by Zipf's law", loc="left", fontsize="medium")
    for panel in (left, right):
        panel.yaxis.set_major_locator(ticker.LogLocator())
        panel.set_xscale("log", base=2)
        panel.set_xticks(sizes)
        panel.set_xlabel("cells")
    return left


PICTURES = {"reads": draw_reads, "sketches": draw_sketches, "sparse": draw_sparse}


def draw(name, benches):
    from matplotlib.figure import Figure  # noqa: PLC0415 (for pictures alone)

    figure = Figure(figsize=(11, 4.4), layout="constrained")
    panel = PICTURES[name](figure, benches)
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(DOCS / f"performance-{name}.png", dpi=110, metadata={"Software": None})


# --- The report


def targets(benches):
    every = (read_targets, normal_targets, sketch_targets, small_targets, sparse_targets, thread_targets)
    found = [one for some in every for one in some(benches)]
    met = sum(one.met for one in found)
    return f"{met} of {len(found)} are met.\n\n" + table(
        ["ratio", "target", "measured", ""], [one.row() for one in found]
    )


def setting(_):
    rustc = subprocess.run(["rustc", "--version"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()[
        1
    ]
    packages = machine("numpy", "numba", "pyarrow", "datasketches")
    return f"All figures below were measured on {packages}, rustc {rustc}.\n"


def headline(benches):
    """For README.md: what a reader may remember."""
    reads = benches.one("reads", access="sparse")
    (large,) = (one for one in of_sparse(benches) if one.found["size"] == 2**24)
    gap = benches.one("gap", steps=10**6)
    update = benches.one("test_update_sketch", law="uniform", width=2**16)
    cell = "tree, batches, 2^62"
    lines = [
        ("read a cell, $T = 2^{62}$", reads, cell, "its path redrawn level by level", "level by level, 2^62"),
        ("read a cell after a million steps", gap, "tree, calls", "a walk through the steps", "walk"),
        ("one update and one query of $2^{24}$ cells", large, "ours", "noise for every cell at each step", "refresh"),
        ("update a CountSketch, a key, width $2^{16}$", update, "update", "numpy, `add.at`, nothing private", "numpy"),
    ]
    rows = [
        [what, time(bench.ns(ours)), beside, digits(bench.ratio(theirs, ours))]
        for what, bench, ours, beside, theirs in lines
    ]
    return table(["", "time", "beside", "times as long"], rows)


BLOCKS = {
    "setting": setting,
    "targets": targets,
    "reads": reads,
    "normals": normals,
    "vectors": vectors,
    "from Python": from_python,
    "sketches": sketches,
    "small calls": small_calls,
    "sparse": sparse,
    "ranges": ranges,
    "joins": joins,
    "stores": stores,
    "replays": replays,
    "growth": growth,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    benches = Benches.read(RESULTS, *sorted((target() / "bench").glob("*.json")))
    for name, block in BLOCKS.items():
        text = block(benches)
        if arguments.write:
            write_block(DOCS / "performance.md", BEGIN.format(name), text)
        else:
            print(f"{name}\n\n{text}")
    if arguments.write:
        write_block(ROOT / "README.md", BEGIN.format("headline"), headline(benches))
        for name in PICTURES:
            draw(name, benches)


if __name__ == "__main__":
    main()
