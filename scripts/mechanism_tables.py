#!/usr/bin/env python3
"""The mechanisms beside each other: the numbers and the pictures of docs/mechanisms.md.

All errors, memory and counts of variables are what plans of the library say. Computed here, from formulas, is what they
are compared with: the square-root Toeplitz mechanism and the classical Laplace tree. Needs numpy and the built
package, --write also matplotlib; a few seconds.

    mechanism_tables.py             print the tables
    mechanism_tables.py --write     put them into docs/mechanisms.md, and draw docs/mechanisms-*.png
    mechanism_tables.py --check     fail if the tables in docs/mechanisms.md are others
"""

import argparse
import math
import sys
from functools import cache
from pathlib import Path

import numpy as np
from _report import table

import fastgame as fg

DOCS = Path(__file__).resolve().parent.parent / "docs" / "mechanisms.md"
BEGIN, END = "<!-- begin: scripts/mechanism_tables.py, {} -->", "<!-- end -->"

RHO, EPSILON = 0.5, 1.0
LEVELS = (10, 16, 20, 24, 30, 40, 62)
MOST_BUFFERS = 10
LAST_LEVEL = 62
PICTURE_LEVEL = 20  # that of the errors over time
MANY = 2**20  # cells: what does not grow with them is nothing beside it
UNITS = ("update", "lifetime")
#: Sums longer than this are by their asymptotic form.
LONG = 2**14


# --- What the library says


@cache
def plan(mechanism, horizon, protect="update", buffers=None, cells=1):
    """Of a unit of norm 1. "laplace" is the tree under a pure budget."""
    pure = mechanism == "laplace"
    return fg.ContinualVector.plan(
        cells,
        horizon=horizon,
        privacy=fg.PureDp(EPSILON) if pure else fg.Zcdp(RHO),
        mechanism="tree" if pure else mechanism,
        buffers=buffers,
        protect=protect,
    )


def std(mechanism, horizon, protect="update", buffers=None, at=None):
    return plan(mechanism, horizon, protect, buffers).std(at=at)


@cache
def buffers_of(horizon):
    """How many buffers a BLT may have."""
    found = []
    for buffers in range(1, MOST_BUFFERS + 1):
        try:
            plan("blt", horizon, buffers=buffers)
        except ValueError:
            break
        found.append(buffers)
    return found


# --- What it is compared with


@cache
def coefficients(count):
    """C(2j, j) / 4^j, those of (1 - x)^(-1/2)."""
    j = np.arange(1, count)
    return np.cumprod(np.concatenate([[1.0], (2 * j - 1) / (2 * j)]))


def squares(count):
    """The sum of the squares of the first coefficients: Landau's constant."""
    if count <= LONG:
        return float(np.sum(coefficients(LONG)[:count] ** 2))
    # Watson (1930); what is left is below 0.02 / count^2.
    return (math.log(count - 0.25) + np.euler_gamma + 4 * math.log(2)) / math.pi


def square_root_lifetime(horizon):
    """The largest sum over j < T of (c_j - c_{j-l})^2 over lags l, of the square-root Toeplitz mechanism."""
    if horizon <= LONG:
        c = coefficients(LONG)[:horizon]
        size = 2 * horizon
        # Of each lag the sum of c_j c_{j+l}.
        products = np.fft.irfft(np.abs(np.fft.rfft(c, size)) ** 2, size)[:horizon]
        rest = np.cumsum(c**2)[::-1]  # of lag l: the first T - l
        alone = float(np.sum(c**2))
        return max(alone, float(np.max((alone + rest - 2 * products)[1:], initial=0.0)))
    # With l = (1 - x) T and c_j = 1 / sqrt(pi j): 2 squares(T) + (ln x - 4 asinh(sqrt(x / (1 - x)))) / pi. It is
    # largest at x = (sqrt(2) - 1)^2.
    x = (math.sqrt(2) - 1) ** 2
    return 2 * squares(horizon) + (math.log(x) - 4 * math.asinh(math.sqrt(x / (1 - x)))) / math.pi


def square_root_std(horizon, protect="update", at=None):
    """The standard deviation of a release of the square-root Toeplitz mechanism, for the same budget."""
    sensitivity = squares(horizon) if protect == "update" else square_root_lifetime(horizon)
    return math.sqrt(squares(at or horizon) * sensitivity / (2 * RHO))


def classical_std(horizon, protect="update"):
    """That of the classical Laplace tree: a node scale of (h + 1) / epsilon, twice that for two updates."""
    nodes = (horizon - 1).bit_length() + 1
    return math.sqrt(2 * nodes) * classical_factor(horizon, protect) / EPSILON


def classical_factor(horizon, protect="update"):
    return ((horizon - 1).bit_length() + 1) * (1 if protect == "update" else 2)


def factor(horizon, protect="update"):
    """K, from the standard deviation of a plan."""
    nodes = (horizon - 1).bit_length() + 1
    return std("laplace", horizon, protect) * EPSILON / math.sqrt(2 * nodes)


def ratio(mechanism, horizon, protect="update", buffers=None):
    """The variance of the worst release, relative to the square-root Toeplitz mechanism."""
    return (std(mechanism, horizon, protect, buffers) / square_root_std(horizon, protect)) ** 2


# --- Tables


def power(level):
    return f"$2^{{{level}}}$"


def number(value):
    """Four digits; more where it is near one."""
    if value < 1.01:
        return f"{value:.4f}"
    return f"{value:.3f}" if value < 10 else f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def ratios():
    rows = []
    for level in LEVELS:
        horizon = 2**level
        chosen = plan("blt", horizon).buffers
        cells = [number(ratio("tree-paper", horizon)), number(ratio("tree", horizon))]
        for buffers in range(1, MOST_BUFFERS + 1):
            if buffers not in buffers_of(horizon):
                cells.append("–")
                continue
            text = number(ratio("blt", horizon, buffers=buffers))
            cells.append(f"**{text}**" if buffers == chosen else text)
        rows.append([power(level), *cells])
    head = ["$T$", "`tree-paper`", "`tree`", "`blt`, $d = 1$", *map(str, range(2, MOST_BUFFERS + 1))]
    return table(head, rows)


def errors():
    rows = []
    for level in LEVELS:
        horizon = 2**level
        cells = []
        for protect in UNITS:
            stds = [std(word, horizon, protect) for word in ("tree-paper", "tree", "blt")]
            cells += [f"{value:.2f}" for value in (*stds, square_root_std(horizon, protect))]
        first = std("blt", horizon, at=1)
        rows.append([power(level), *cells[:3], f"{first:.2f}", *cells[3:]])
    head = ["$T$", "`update`: `tree-paper`", "`tree`", "`blt`", "`blt`, first step", "square root"]
    return table([*head, "`lifetime`: `tree-paper`", "`tree`", "`blt`", "square root"], rows)


def costs():
    rows = []
    for level in (0, 5, 10, 13, *LEVELS[1:]):
        cells = [str(plan("blt", 2**level).buffers)]
        for mechanism in ("tree", "blt", "laplace"):
            one = plan(mechanism, 2**level, cells=MANY)
            # In whole words: what all cells share is a part of a byte each.
            most = (one.memory, one.memory_one_by_one)
            together, alone = ((size - one.memory_at_start) // (8 * MANY) * 8 for size in most)
            cells += [f"{together} ({alone})", str(one.variables)]
        rows.append([power(level), *cells])
    head = ["$T$", "$d$ chosen", "tree: bytes a cell", "normals a read", "`blt`: bytes a cell", "normals a read"]
    return table([*head, "Laplace tree: bytes a cell", "gamma variables a read"], rows)


def pure():
    rows = []
    for level in (0, 1, 2, 5, 10, 13, *LEVELS[1:]):
        horizon = 2**level
        cells = []
        for protect in UNITS:
            ours, classical = std("laplace", horizon, protect), classical_std(horizon, protect)
            cells += [f"{factor(horizon, protect):.0f}", f"{classical_factor(horizon, protect)}"]
            cells += [f"{ours:.1f}", f"{classical:.1f}", f"{(classical / ours) ** 2:.2f}"]
        rows.append([power(level), *cells])
    head = ["$T$"]
    for protect in UNITS:
        head += [f"`{protect}`: $K$", "classical", "sd", "classical", "variance, ratio"]
    return table(head, rows)


def choice():
    """In words, for a year of hours and for 2^20 steps; and a line on short horizons."""
    lines = []
    for name, horizon in (("A year of hours ($T = 8{,}760$)", 8760), ("$T = 2^{20}$", 2**20)):
        blt = plan("blt", horizon)
        end, tree, paper = (std(word, horizon) for word in ("blt", "tree", "tree-paper"))
        lines.append(
            f"* {name}: the last release has a standard deviation of {paper:.2f} (`tree-paper`), {tree:.2f} (`tree`), "
            f"{end:.2f} (`blt` with {blt.buffers} buffers); that of `blt` is {end / tree:.2f} of `tree` and "
            f"{end / paper:.2f} of `tree-paper`. The first release has {blt.std(at=1) / tree:.2f} of that of `tree`."
        )
    short = []
    for horizon in (2, 7, 24, 365):
        end, first = (std("blt", horizon, at=step) / std("tree", horizon) for step in (horizon, 1))
        short.append(f"{end:.2f} and {first:.2f} ($T = {horizon}$)")
    lines.append(
        f"* Over fewer steps `blt` gains less. Its last and its first release have {', '.join(short)} of the standard "
        "deviation of `tree`."
    )
    laplace = std("laplace", 8760)
    same = math.sqrt(RHO / fg.ApproxDp(EPSILON, 1e-6).rho)
    tree, blt = (std(word, 8760) * same for word in ("tree", "blt"))
    epsilon = fg.Zcdp(RHO).epsilon(delta=1e-6)
    lines.append(
        f"* A year of hours with the pure budget $\\varepsilon = {EPSILON:g}$: {laplace:.1f}. That is a stronger "
        f"promise; with the same $\\varepsilon$ and $\\delta = 10^{{-6}}$ `tree` has {tree:.1f} and `blt` {blt:.1f} at "
        f"the end. ($\\rho = {RHO}$ is $\\varepsilon = {epsilon:.2f}$ there.)"
    )
    return "\n".join(lines) + "\n"


def limits():
    """What is known of all factorisations: Henzinger, Kalinin and Upadhyay (2025), up to o(1)."""
    horizon = 2**PICTURE_LEVEL
    least, best = ((offset + math.log(horizon) / math.pi) ** 2 for offset in (0.701, 0.846))
    small = (std("blt", 2) / std("tree", 2)) ** 2
    # Longer ones differ by more.
    first = 1 + max(short for short in range(1, 129) if std("blt", short) >= std("tree", short))
    of_best, of_least = best / squares(horizon) ** 2, least / squares(horizon) ** 2
    return (
        f"Among all matrices, triangular Toeplitz or not, the worst release of the best known has about {of_best:.2f} "
        f"of this variance at $T = 2^{{{PICTURE_LEVEL}}}$, and none has less than about {of_least:.2f} (Henzinger, "
        f"Kalinin and Upadhyay, 2025). At $T = 2$ `tree`, which is not Toeplitz, has {ratio('tree', 2):.2f} of it, and "
        f"`blt` {small:.2f} times the variance of `tree`; from $T = {first}$ on `blt` has less.\n"
    )


BLOCKS = {"choice": choice, "ratios": ratios, "limits": limits, "errors": errors, "costs": costs, "pure": pure}


# --- Pictures. Colours of Okabe and Ito, which colour-blind readers can tell apart, and each with a dash of its own.

STYLES = {
    "square root": ("square-root Toeplitz", "#bbbbbb", "-"),  # wide, below the others
    "tree-paper": ("tree-paper", "#D55E00", (0, (5, 2))),
    "tree": ("tree", "#0072B2", "-"),
    "blt": ("blt, buffers chosen", "#009E73", "-."),
    "blt 3": ("blt, 3 buffers", "#CC79A7", (0, (1, 1.2))),
    "blt 5": ("blt, 5 buffers", "#E69F00", (0, (3, 1, 1, 1, 1, 1))),
    "classical update": ("classical Laplace tree, 'update'", "#D55E00", (0, (5, 2))),
    "laplace update": ("Laplace tree, 'update'", "#0072B2", "-"),
    "classical lifetime": ("classical Laplace tree, 'lifetime'", "#E69F00", (0, (1, 1.2))),
    "laplace lifetime": ("Laplace tree, 'lifetime'", "#56B4E9", "-."),
}


def line(axis, name, x, y):
    label, colour, dash = STYLES[name]
    wide = name == "square root"
    axis.plot(x, y, color=colour, ls=dash, label=label, lw=5 if wide else 1.8, zorder=1 if wide else 2)


def finish(figure, axes, path, columns):
    entries = {}
    for axis in axes:
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
        entries |= dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True))
    place = {"loc": "outside lower center", "ncols": columns, "handlelength": 3.5}
    figure.legend(entries.values(), entries.keys(), frameon=False, **place)
    figure.savefig(path, dpi=90, metadata={"Software": None})


def panels(count):
    from matplotlib.figure import Figure  # noqa: PLC0415 (for the pictures alone)

    figure = Figure(figsize=(15, 5.6), layout="constrained")
    return figure, figure.subplots(1, count)


def parsed(word):
    """A mechanism, and its buffers if they are given."""
    name, _, buffers = word.partition(" ")
    return name, int(buffers) if buffers else None


def defined(word, horizon):
    name, buffers = parsed(word)
    if name == "tree-paper":
        return horizon > 1
    return buffers is None or buffers in buffers_of(horizon)


def draw_time(path):
    figure, axes = panels(2)
    horizon = 2**PICTURE_LEVEL
    steps = sorted({round(2 ** (i / 8)) for i in range(8 * PICTURE_LEVEL + 1)})
    line(axes[0], "square root", steps, [square_root_std(horizon, at=t) for t in steps])
    for word in ("tree-paper", "tree", "blt 3", "blt"):
        name, buffers = parsed(word)
        line(axes[0], word, steps, [std(name, horizon, buffers=buffers, at=t) for t in steps])
    axes[0].set_title(f"Gaussian noise, rho = {RHO}, T = $2^{{{PICTURE_LEVEL}}}$", loc="left")
    line(axes[1], "classical update", steps, [classical_std(horizon)] * len(steps))
    line(axes[1], "laplace update", steps, [std("laplace", horizon, at=t) for t in steps])
    axes[1].set_title(f"Laplace noise, epsilon = {EPSILON:g}, delta = 0, T = $2^{{{PICTURE_LEVEL}}}$", loc="left")
    for axis in axes:
        axis.set_xscale("log", base=2)
        axis.set_xticks([2**level for level in range(0, PICTURE_LEVEL + 1, 4)])
        axis.set_ylim(bottom=0)
        axis.set_xlabel("time step")
        axis.set_ylabel("standard deviation of a release")
    finish(figure, axes, path, 4)


def draw_horizon(path):
    from matplotlib import ticker  # noqa: PLC0415

    figure, axes = panels(4)
    levels = list(range(LAST_LEVEL + 1))
    for protect, absolute, relative in zip(UNITS, axes[:2], axes[2:], strict=True):
        line(absolute, "square root", levels, [square_root_std(2**level, protect) for level in levels])
        line(relative, "square root", levels, [1.0] * len(levels))
        for word in ("tree-paper", "tree", "blt 3", "blt 5", "blt"):
            name, buffers = parsed(word)
            own = [level for level in levels if defined(word, 2**level)]
            line(absolute, word, own, [std(name, 2**level, protect, buffers) for level in own])
            line(relative, word, own, [ratio(name, 2**level, protect, buffers) for level in own])
        absolute.set_title(f"standard deviation, {protect!r}", loc="left", fontsize="medium")
        absolute.set_ylim(0, 46)
        relative.set_title(f"variance, relative, {protect!r}", loc="left", fontsize="medium")
        relative.set_yscale("log")
        relative.set_ylim(0.8, 5)
        relative.yaxis.set_major_locator(ticker.FixedLocator([0.8, 1, 1.5, 2, 3, 4, 5]))
        relative.yaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        relative.yaxis.set_minor_locator(ticker.NullLocator())
    axes[0].set_ylabel(f"last release, rho = {RHO}")
    axes[2].set_ylabel("divided by square-root Toeplitz")
    for axis in axes:
        axis.set_xlabel("horizon, log2 T")
        axis.set_xticks(range(0, LAST_LEVEL + 1, 10))
    finish(figure, axes, path, 6)


def draw_pure(path):
    figure, axes = panels(2)
    levels = list(range(LAST_LEVEL + 1))
    functions = {
        "classical": (classical_factor, classical_std),
        "laplace": (factor, lambda horizon, protect: std("laplace", horizon, protect)),
    }
    for protect in reversed(UNITS):
        for name, pair in functions.items():
            for axis, value in zip(axes, pair, strict=True):
                line(axis, f"{name} {protect}", levels, [value(2**level, protect) for level in levels])
    axes[0].set_title("sensitivity K: node variables have the scale K / epsilon", loc="left")
    axes[0].set_ylabel("K")
    axes[1].set_title(f"standard deviation of a release, epsilon = {EPSILON:g}", loc="left")
    axes[1].set_ylabel("standard deviation")
    for axis in axes:
        axis.set_xlabel("horizon, log2 T")
        axis.set_ylim(bottom=0)
    finish(figure, axes, path, 4)


PICTURES = {"time": draw_time, "horizon": draw_horizon, "pure": draw_pure}


# --- Output


def parts(text, name):
    """What stands before a block, in it, and after it, markers not in it."""
    begin = BEGIN.format(name)
    before, found, rest = text.partition(begin + "\n")
    block, end, after = rest.partition(END)
    if not found or not end:
        sys.exit(f"{DOCS} has no block {begin} ... {END}")
    return before + found, block, end + after


def differences():
    """The blocks of the page that are not what is computed."""
    text = DOCS.read_text(encoding="utf-8")
    return [name for name, block in BLOCKS.items() if parts(text, name)[1] != f"\n{block()}\n"]


def write():
    text = DOCS.read_text(encoding="utf-8")
    for name, block in BLOCKS.items():
        before, _, after = parts(text, name)
        text = f"{before}\n{block()}\n{after}"
    DOCS.write_text(text, encoding="utf-8")
    for name, draw in PICTURES.items():
        draw(DOCS.with_name(f"mechanisms-{name}.png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--write", action="store_true")
    group.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.write:
        write()
    elif arguments.check:
        if wrong := differences():
            sys.exit(f"{DOCS}: not what is computed: {', '.join(wrong)}; run scripts/mechanism_tables.py --write")
    else:
        for name, block in BLOCKS.items():
            print(f"{name}\n\n{block()}")


if __name__ == "__main__":
    main()
