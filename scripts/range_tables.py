#!/usr/bin/env python3
"""What a range counter gets wrong and what it costs, beside what one would do without it.

Measures errors of random boxes, times and memory and prints markdown; the picture is written with the tables. Calls to
be compared take turns, so that a busy machine slows all of them; a ratio is the median over the rounds of the ratio
within a round. Needs numpy, matplotlib and the built package; two to four minutes and 3 GiB.

    range_tables.py             print the tables
    range_tables.py --write     put them into docs/ranges.md, and draw docs/ranges-error.png

The baselines have the same budget, horizon and mechanism:

    grid         `fg.ContinualVector` of all cells, summed over the box
    paper        levels="dyadic", estimator="cover", with a width at which all components are dense (ours so: "dense")
    threshold    the grid with what is below a threshold set to zero, summed; the better of 3 standard deviations and
                 of sqrt(2 ln(cells)), at which hardly any empty cell is kept
    zero         the answer 0

The noise of the first two and of "dense" does not depend on data: they are empty, what they release is their error.
The grid of 2^16 x 2^16 does not fit; only the second threshold is simulated there, by normal noise on the cells with
points.
"""

import argparse
import functools
import math
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from _report import DOCS, in_turns, machine, power, table, write_block

import fastgame as fg

PICTURE = DOCS / "ranges-error.png"
BEGIN = "<!-- begin: scripts/range_tables.py, {} -->"

PRIVACY = fg.Zcdp(rho=0.5)
PAPER = {"levels": "dyadic", "estimator": "cover"}
DENSE = 2**22  # the width at which all components of 2^12 x 2^12 are dense
LONG = 2**13
GRIDS = ((2**10, 1), (2**12, 1), (2**16, 1), (2**10, 2), (2**12, 2), (2**16, 2))
COUNTS = (10**4, 10**5, 10**6)
KINDS = ("uniform", "skewed")


def counter(size, dims, horizon, seed=1, **parameters):
    return fg.RangeCounter(
        shape=(size,) * dims, horizon=horizon, privacy=PRIVACY, hash_seed=seed, insecure_seed=seed, **parameters
    )


def planned(size, dims, horizon, **parameters):
    return fg.RangeCounter.plan(shape=(size,) * dims, horizon=horizon, privacy=PRIVACY, **parameters)


def random_boxes(rng, size, dims, count):
    """Corners of boxes, each that is not empty as likely."""
    first, second = rng.integers(0, size + 1, (count, dims)), rng.integers(0, size, (count, dims))
    second += second >= first  # two different ends
    return np.minimum(first, second), np.maximum(first, second)


def random_points(rng, size, dims, count, kind):
    if kind == "uniform":
        return rng.integers(0, size, (count, dims))
    # A thousand places, the r-th with a share proportional to 1/r.
    shares = 1 / np.arange(1, 1025)
    return np.repeat(rng.integers(0, size, (1024, dims)), rng.multinomial(count, shares / shares.sum()), axis=0)


def exact(points, lo, hi):
    """The number of points in each box."""
    before = np.concatenate([[0], np.cumsum(np.bincount(points[:, 0], minlength=hi[:, 0].max()))])
    starts, ends = before[lo[:, 0]], before[hi[:, 0]]
    if points.shape[1] == 1:
        return (ends - starts).astype(float)
    second = points[np.argsort(points[:, 0].astype(np.uint32), kind="stable"), 1].astype(np.int32)
    counts = []
    for start, end, low, high in zip(starts, ends, lo[:, 1], hi[:, 1], strict=True):
        part = second[start:end]
        counts.append(np.count_nonzero((part >= low) & (part < high)))
    return np.array(counts, float)


def summed(cells, lo, hi):
    """Sums over boxes by prefix sums."""
    total = cells
    for axis in range(cells.ndim):
        total = np.cumsum(total, axis=axis)
    total = np.pad(total, [(1, 0)] * cells.ndim)
    if cells.ndim == 1:
        return total[hi[:, 0]] - total[lo[:, 0]]
    (a, b), (c, d) = lo.T, hi.T
    return total[c, d] - total[a, d] - total[c, b] + total[a, b]


def at_end(structure):
    """Errors are largest at the last step."""
    if structure.horizon > 1:
        structure.advance(to=structure.horizon)
    return structure


def root_mean_square(errors):
    return math.sqrt(np.mean(np.square(errors)))


def percentile(errors):
    return float(np.quantile(np.abs(errors), 0.95))


# --- Against the structure of the paper


def errors_against_paper(parameters, *, size=2**12, points=10**4, seeds=20, boxes=50, horizon=LONG):
    """Errors of the default and of the paper's structure in the same boxes."""
    found = ([], [])
    for seed in range(1, seeds + 1):
        rng = np.random.default_rng(seed)
        data = random_points(rng, size, 2, points, "uniform")
        lo, hi = random_boxes(rng, size, 2, boxes)
        truth = exact(data, lo, hi)
        for errors, extra in zip(found, ({}, PAPER), strict=True):
            ranges = counter(size, 2, horizon, seed, **parameters, **extra)
            ranges.update(data)
            errors.append(at_end(ranges).count(lo, hi) - truth)
    return tuple(np.concatenate(errors) for errors in found)


def updates_against_paper(parameters, *, size=2**12, points=2 * 10**5, rounds=9, horizon=LONG):
    rng = np.random.default_rng(1)
    data = random_points(rng, size, 2, points, "uniform")
    ours, paper = (counter(size, 2, horizon, **parameters, **extra) for extra in ({}, PAPER))
    for ranges in (ours, paper):
        # Memory that was never touched is the operating system's to fetch.
        ranges.update(random_points(rng, size, 2, 10**6, "uniform"))
    return in_turns({"ours": lambda: ours.update(data), "paper": lambda: paper.update(data)}, rounds)


def paper_table():
    rows = []
    for name, parameters in (("all dense", {"width": DENSE}), ("default width", {})):
        ours, paper = map(root_mean_square, errors_against_paper(parameters))
        plans = [planned(2**12, 2, LONG, **parameters, **extra) for extra in ({}, PAPER)]
        by_plan = plans[0].box().noise_std / plans[1].box().noise_std
        times = updates_against_paper(parameters)
        points = 2 * 10**5
        rows.append(
            [
                name,
                f"{ours:.0f}",
                f"{paper:.0f}",
                f"**{ours / paper:.2f}** ({by_plan:.2f})",
                f"{times.ns('ours', points):.0f}",
                f"{times.ns('paper', points):.0f}",
                f"**{times.ratio('ours', 'paper'):.2f}**",
                f"{plans[0].box().cells_read / plans[1].box().cells_read:.0f}",
            ]
        )
    head = ["components", "error", "the paper's", "ratio (by plan)"]
    head += ["update, ns a point", "the paper's", "ratio", "cells read, ratio"]
    return table(head, rows)


# --- Errors beside baselines


@functools.cache
def setting(size, dims):
    """Seeds, and the boxes of each."""
    seeds = range(1, {1: 10, 2: 3}[dims] + 1)
    return {seed: random_boxes(np.random.default_rng(1000 + seed), size, dims, 200) for seed in seeds}


def grid_fits(size, dims):
    return size**dims <= 2**24


def grid_noise(size, dims, horizon, seed):
    vector = fg.ContinualVector(size**dims, horizon=horizon, privacy=PRIVACY, max_norm=1, insecure_seed=seed)
    return at_end(vector).release().reshape((size,) * dims)


def threshold_errors(points, truth, lo, hi, deviation, noise):
    """Of two thresholds on a noisy grid, the lower one first."""
    cells = np.bincount(np.ravel_multi_index(tuple(points.T), noise.shape), minlength=noise.size)
    cells = cells.reshape(noise.shape) + noise
    for name, times in (("low", 3.0), ("high", math.sqrt(2 * math.log(noise.size)))):
        cells[cells < times * deviation] = 0.0
        yield name, summed(cells, lo, hi) - truth


def sparse_error(points, truth, lo, hi, deviation, size, rng):
    """Noise and threshold on a grid that does not fit."""
    places, counts = np.unique(points @ np.array([size, 1]), return_counts=True)
    noisy = counts + deviation * rng.standard_normal(len(counts))
    kept = noisy >= deviation * math.sqrt(2 * math.log(size ** points.shape[1]))
    places, noisy = np.stack(np.divmod(places[kept], size), axis=1), noisy[kept]
    inside = [float(noisy[((places >= a) & (places < b)).all(axis=1)].sum()) for a, b in zip(lo, hi, strict=True)]
    return np.array(inside) - truth


def errors_beside_baselines(size, dims):
    """The 95th percentile of the error for each horizon, count and kind of points, and method."""
    found = {}
    collect = lambda *key: found.setdefault(key, [])  # noqa: E731
    for seed, (lo, hi) in setting(size, dims).items():
        rng = np.random.default_rng(seed)
        data = {}
        for count in COUNTS:
            for kind in KINDS:
                points = random_points(rng, size, dims, count, kind)
                data[count, kind] = points, exact(points, lo, hi)
        for horizon in (1, LONG):
            deviation = fg.ContinualVector.plan(1, horizon=horizon, privacy=PRIVACY, max_norm=1).noise_std
            noise = grid_noise(size, dims, horizon, seed) if grid_fits(size, dims) else None
            grid = None if noise is None else summed(noise, lo, hi)
            dense = {}
            if grid_fits(size, dims):
                for name, extra in (("dense", {}), ("paper", PAPER)):
                    empty = counter(size, dims, horizon, seed, width=DENSE, **extra)
                    dense[name] = at_end(empty).count(lo, hi)
            for (count, kind), (points, truth) in data.items():
                add = functools.partial(collect, horizon, count, kind)
                ranges = counter(size, dims, horizon, seed)
                ranges.update(points)
                add("ours").append(at_end(ranges).count(lo, hi) - truth)
                add("zero").append(truth)
                for name, errors in dense.items():
                    add(name).append(errors)
                if noise is not None:
                    add("grid").append(grid)
                    # Thresholds on large grids take long, and vary little between seeds.
                    if dims == 2 and seed > 1:
                        continue
                    for name, errors in threshold_errors(points, truth, lo, hi, deviation, noise):
                        add(name).append(errors)
                elif not grid_fits(size, dims):
                    add("high").append(sparse_error(points, truth, lo, hi, deviation, size, rng))
    return with_plans(size, dims, {key: percentile(np.concatenate(errors)) for key, errors in found.items()})


def with_plans(size, dims, result):
    """The better threshold, and what plans say."""
    for horizon in (1, LONG):
        plan = planned(size, dims, horizon)
        for count in COUNTS:
            for kind in KINDS:
                key = horizon, count, kind
                result[(*key, "threshold")] = min(result.get((*key, name), math.inf) for name in ("low", "high"))
                result[(*key, "noise")] = plan.error(0.95)
                result[(*key, "theory")] = plan.box(second_moment=count).error
    return result


MEASURED = ("ours", "dense", "grid", "paper", "threshold", "zero")
METHODS = ("ours", "noise", "theory", "dense", "grid", "paper", "threshold", "zero")


def error_table(results, horizon):
    rows = []
    for (size, dims), result in results.items():
        for kind in KINDS:
            for count in (COUNTS[0], COUNTS[-1]):
                values = {name: result.get((horizon, count, kind, name)) for name in METHODS}
                best = min(round(values[name]) for name in MEASURED if values[name] is not None)
                least = {name for name in MEASURED if values[name] is not None and round(values[name]) == best}
                shown = {name: "–" if value is None else f"{value:.0f}" for name, value in values.items()}
                cells = [f"**{text}**" if name in least else text for name, text in shown.items()]
                place = f"${power(size)}$" if dims == 1 else f"${power(size)} \\times {power(size)}$"
                rows.append([place, f"$10^{len(str(count)) - 1}$ {kind}", *cells])
    head = [f"$T = {'1' if horizon == 1 else power(horizon)}$", "points", "ours", "plan: noise", "plan: $F_2 = n$"]
    return table([*head, "ours, dense", "grid", "paper, dense", "threshold", "zero"], rows)


def draw(results, path):
    from matplotlib.figure import Figure  # noqa: PLC0415 (for the picture alone)

    styles = {
        "ours": ("ours", "C0o-"),
        "theory": ("plan, $F_2 = n$", "C0:"),
        "dense": ("ours, dense", "C4D--"),
        "grid": ("grid, summed", "C1s-"),
        "paper": ("paper, dense", "C2^-"),
        "threshold": ("grid with a threshold", "C3v-"),
        "zero": ("0", "k--"),
    }
    figure = Figure(figsize=(15, 5.6), layout="constrained")
    panels = figure.subplots(2, len(GRIDS), sharex=True, sharey=True)
    for column, (size, dims) in enumerate(GRIDS):
        for row, kind in enumerate(KINDS):
            panel = panels[row, column]
            for name, (label, style) in styles.items():
                values = [results[size, dims].get((LONG, count, kind, name), np.nan) for count in COUNTS]
                panel.loglog(COUNTS, values, style, label=label, markersize=4, linewidth=1.2)
            panel.set_title(
                f"${power(size)}$, {kind}" if dims == 1 else f"${power(size)} \\times {power(size)}$, {kind}", size=9
            )
            panel.grid(alpha=0.3)
    for panel in panels[-1]:
        panel.set_xlabel("points")
    for panel in panels[:, 0]:
        panel.set_ylabel("95 % of errors are below")
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=7, frameon=False)
    figure.savefig(path, dpi=90)


def small_boxes():
    """The error of squares by plan, beside that of a grid."""
    deviation = fg.ContinualVector.plan(1, horizon=LONG, privacy=PRIVACY, max_norm=1).noise_std
    plan, paper = planned(2**12, 2, LONG), planned(2**12, 2, LONG, **PAPER)
    sides = (1, 4, 16, 64, 256, 1024)
    rows = [
        ["ours", *(f"{plan.box(sides=(side, side)).noise_std:.0f}" for side in sides)],
        ["the paper's", *(f"{paper.box(sides=(side, side)).noise_std:.0f}" for side in sides)],
        ["grid, summed", *(f"{deviation * side:.0f}" for side in sides)],
    ]
    return table(["side of a square", *map(str, sides)], rows)


# --- Speed


def speed():
    size, rng = 2**12, np.random.default_rng(1)
    data = random_points(rng, size, 2, 10**6, "uniform")
    stride = 61  # steps between reads

    def advance(*structures):
        for one in structures:
            one.advance(to=one.now + stride)

    many, few = random_boxes(rng, size, 2, 2000), random_boxes(rng, size, 2, 300)
    rows = []
    for name, extra in (("least squares, $a = 2$", {}), ("cover, $a = 2$", {"estimator": "cover"}), ("paper", PAPER)):
        ranges = counter(size, 2, LONG, **extra)
        ranges.update(data)
        ranges.count(*few)
        calls = {"new": lambda ranges=ranges: ranges.count(*many), "again": lambda ranges=ranges: ranges.count(*many)}
        times = in_turns(calls, 5, lambda ranges=ranges: advance(ranges), warm=0)
        single = in_turns(
            {"new": lambda ranges=ranges: ranges.count([9, 99], [2222, 3333])}, 25, lambda r=ranges: advance(r)
        )
        rows.append(
            [
                name,
                f"{times.ns('new', 2000):,.0f}",
                f"{times.ns('again', 2000):,.0f}",
                f"**{times.ratio('new', 'again'):.2f}**",
                f"{cells_read(extra):,.0f}",
                f"{times.ns('again', 2000) / cells_read(extra):.0f}",
                f"{single.ns('new', 1) / 1000:,.0f}",
            ]
        )
    head = ["estimator", "ns a box at a new step", "at the sealed step", "ratio"]
    head += ["cells read", "ns a cell, sealed", "µs for one box alone"]
    result = {"boxes": table(head, rows)}
    # The same boxes of structures that differ in one thing.
    light, heavy = counter(size, 2, LONG), counter(size, 2, LONG)
    light.update(data[:1000])
    heavy.update(data)
    calls = {"light": lambda: light.count(*few), "heavy": lambda: heavy.count(*few)}
    result["points"] = in_turns(calls, 5, lambda: advance(light, heavy)).ratio("heavy", "light")
    result["horizon"] = horizon_ratio(few, 5)
    return result


def cells_read(extra):
    return planned(2**12, 2, LONG, **extra).box().cells_read


def horizon_ratio(boxes, rounds, size=2**12):
    """The time of boxes for the longest horizon divided by that for a short one."""
    long, short = counter(size, 2, 2**60), counter(size, 2, 2**10)

    def advance():
        for one in (long, short):
            one.advance(to=one.now + 61)

    times = in_turns({"long": lambda: long.count(*boxes), "short": lambda: short.count(*boxes)}, rounds, advance)
    return times.ratio("long", "short")


# --- Memory


def resident():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def measure_memory(width, steps):
    """In a process of its own: what a large grid takes, and what the process takes beside it."""
    size, rng = 2**16, np.random.default_rng(1)
    before = resident()
    ranges = counter(size, 2, LONG, width=width)
    for step in range(1, steps + 1):
        ranges.update(random_points(rng, size, 2, 10**6 // steps, "uniform"))
        ranges.count(*random_boxes(rng, size, 2, 100))
        if step < steps:
            ranges.advance(to=step * LONG // steps)
    print(ranges.memory, resident(), before)


def memory_table():
    rows = []
    for width in (2**12, 2**16):
        plan = planned(2**16, 2, LONG, width=width)
        command = [sys.executable, __file__, "--memory", str(width)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        used, peak, before = map(int, output.split())
        sizes = [plan.memory_at_start, used, plan.memory, peak, before]
        rows.append(
            [
                f"${power(width)}$",
                f"{plan.cells / 1e6:.1f}",
                *(f"{size / 2**20:,.0f}" for size in sizes),
                f"{plan.error(0.95):.0f}",
            ]
        )
    head = ["width", "million cells", "at the start", "`memory` after reads", "`Plan.memory`"]
    head += ["process, at most", "of it before", "plan: noise, 95 %"]
    return table(head, rows)


# --- Output


def noted(name, start):
    print(f"{name}: {perf_counter() - start:.0f} s", file=sys.stderr, flush=True)


def report(write):
    start = perf_counter()
    memory = memory_table()
    noted("memory", start)
    paper = paper_table()
    noted("paper", start)
    times = speed()
    noted("speed", start)
    results = {}
    for grid in GRIDS:
        results[grid] = errors_beside_baselines(*grid)
        noted(f"errors, {grid}", start)
    if write:
        draw(results, PICTURE)
    return {
        "errors": [
            "$2^{12} \\times 2^{12}$, $T = 2^{13}$: root mean square error of random boxes, and the time of updates.\n",
            paper,
            "Beside baselines: 95 % of the errors of random boxes are below this; the least is in bold.\n",
            error_table(results, LONG),
            error_table(results, 1),
            "Squares in $2^{12} \\times 2^{12}$, $T = 2^{13}$: the standard deviation of the noise by plan.\n",
            small_boxes(),
        ],
        "speed": [
            "$2^{12} \\times 2^{12}$: 2000 random boxes in one call, medians of five steps, "
            f"on {machine('numpy')}.\n",
            times["boxes"],
            f"$10^6$ points : $10^3$ points takes {times['points']:.2f} times as long, "
            f"$T = 2^{{60}}$ : $T = 2^{{10}}$ {times['horizon']:.2f} times (300 boxes at new steps).\n",
        ],
        "memory": [
            "$2^{16} \\times 2^{16}$, $T = 2^{13}$, $10^6$ points, 100 boxes at each of 4 steps, in MiB:\n",
            memory,
        ],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--memory", type=int, metavar="WIDTH", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory:
        measure_memory(arguments.memory, 4)
        return
    blocks = report(arguments.write)
    for name, parts in blocks.items():
        text = "\n".join(parts)
        if arguments.write:
            write_block(DOCS / "ranges.md", BEGIN.format(name), text)
        else:
            print(text)


if __name__ == "__main__":
    main()
