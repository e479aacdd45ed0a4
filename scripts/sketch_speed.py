#!/usr/bin/env python3
"""How fast the CountSketch is, beside what one would write without it.

Times updates and estimates of 10^6 random 64-bit keys at depth 5 and prints markdown. The calls to be compared take
turns, so that a busy machine slows all of them; a ratio is the median over the rounds of the ratio within a round.
Needs numpy, numba and pyarrow (extra `bench`) and the built package; a few minutes.

    sketch_speed.py               print the tables
    sketch_speed.py --write       put them into docs/sketches.md
    sketch_speed.py --rounds N    11 by default

The rivals, one thread each: a numba loop with the same hash (tables of the same sizes, filled by numpy), the same with
multiply-shift and with a cubic polynomial modulo 2^61 - 1 a row, and numpy with multiply-shift (`add.at`; sort, then
the middle). None of them checks its input, adds noise, or keeps anything private.
"""

import argparse

import numba
import numpy as np
import pyarrow as pa
from _report import DOCS, in_turns, machine, power, table, write_block

import fastgame as fg

BEGIN = "<!-- begin: scripts/sketch_speed.py -->"

KEYS, DEPTH, WIDTHS = 10**6, 5, (2**12, 2**16, 2**20)
STRIDE = 1_000_003  # steps between reads, far enough for most levels of the tree to change
PRIVACY = fg.Zcdp(rho=0.5)

P61 = 2**61 - 1


@numba.njit
def mixed_tabulation(key, words, derived, mixed):
    """128 bits: for a row a sign and a bucket."""
    low, high, characters = np.uint64(0), np.uint64(0), np.uint32(0)
    for i in range(8):
        byte = (key >> np.uint64(8 * i)) & np.uint64(255)
        low ^= words[i, byte, 0]
        high ^= words[i, byte, 1]
        characters ^= derived[i, byte]
    for i in range(4):
        byte = (characters >> np.uint32(8 * i)) & np.uint32(255)
        low ^= mixed[i, byte, 0]
        high ^= mixed[i, byte, 1]
    return low, high


@numba.njit
def sign_of(bits):
    return np.int64(1) - np.int64(2) * np.int64(bits & np.uint64(1))


@numba.njit
def update_same(keys, cells, words, derived, mixed):
    depth, mask = cells.shape[0], np.uint64(cells.shape[1] - 1)
    field = np.uint64(np.log2(cells.shape[1]) + 1)
    for key in keys:
        low, high = mixed_tabulation(key, words, derived, mixed)
        for row in range(depth):
            cells[row, (low >> np.uint64(1)) & mask] += sign_of(low)
            low = (low >> field) | (high << (np.uint64(64) - field))
            high >>= field


@numba.njit
def update_shift(keys, cells, a, b):
    depth, shift = cells.shape[0], np.uint64(63 - np.log2(cells.shape[1]))
    for key in keys:
        for row in range(depth):
            bits = (a[row] * key + b[row]) >> shift
            cells[row, bits >> np.uint64(1)] += sign_of(bits)


@numba.njit
def times_modulo(x, y):
    """The product modulo 2^61 - 1, both below 2^61; by halves of 32 and 29 bits."""
    mask32, p = np.uint64(2**32 - 1), np.uint64(P61)
    x0, x1 = x & mask32, x >> np.uint64(32)
    y0, y1 = y & mask32, y >> np.uint64(32)
    middle = x0 * y1 + x1 * y0 + ((x0 * y0) >> np.uint64(32))
    low = (middle << np.uint64(32)) | ((x0 * y0) & mask32)
    high = x1 * y1 + (middle >> np.uint64(32))
    total = (low & p) + ((high << np.uint64(3)) | (low >> np.uint64(61)))
    return (total & p) + (total >> np.uint64(61))


@numba.njit
def update_cubic(keys, cells, coefficients):
    depth, mask = cells.shape[0], np.uint64(cells.shape[1] - 1)
    for key in keys:
        x = (key & np.uint64(P61)) + (key >> np.uint64(61))
        for row in range(depth):
            bits = coefficients[row, 0]
            for i in range(1, 4):
                bits = times_modulo(bits, x) + coefficients[row, i]
                bits = (bits & np.uint64(P61)) + (bits >> np.uint64(61))
            cells[row, (bits >> np.uint64(1)) & mask] += sign_of(bits)


@numba.njit
def estimate_same(keys, cells, words, derived, mixed):
    """The median of five by comparisons, as there."""
    mask = np.uint64(cells.shape[1] - 1)
    field = np.uint64(np.log2(cells.shape[1]) + 1)
    medians = np.empty(keys.size)
    values = np.empty(5)
    for i in range(keys.size):
        low, high = mixed_tabulation(keys[i], words, derived, mixed)
        for row in range(5):
            values[row] = sign_of(low) * cells[row, (low >> np.uint64(1)) & mask]
            low = (low >> field) | (high << (np.uint64(64) - field))
            high >>= field
        a, b = min(values[0], values[1]), max(values[0], values[1])
        c, d = min(values[2], values[3]), max(values[2], values[3])
        one, other = max(a, c), min(b, d)
        medians[i] = max(min(one, other), min(max(one, other), values[4]))
    return medians


def numpy_places(keys, a, b, width):
    bits = (a[:, None] * keys + b[:, None]) >> np.uint64(64 - width.bit_length())
    return bits >> np.uint64(1), 1 - 2 * (bits & np.uint64(1)).astype(np.int64)


def update_numpy(keys, cells, a, b):
    places, signs = numpy_places(keys, a, b, cells.shape[1])
    for row in range(DEPTH):
        np.add.at(cells[row], places[row], signs[row])


def estimate_numpy(keys, cells, a, b):
    places, signs = numpy_places(keys, a, b, cells.shape[1])
    return np.sort(signs * np.take_along_axis(cells, places.astype(np.int64), axis=1), axis=0)[DEPTH // 2]


def sketch(width, horizon=2**60):
    return fg.CountSketch(horizon=horizon, privacy=PRIVACY, width=width, depth=DEPTH, hash_seed=1, max_weight=1)


def of_width(width, rounds, rng):
    """Updates and estimates, as `Times`."""
    words64 = lambda *shape: rng.integers(0, 2**64, shape, dtype=np.uint64)  # noqa: E731
    keys = words64(KEYS)
    tables = words64(8, 256, 2), rng.integers(0, 2**32, (8, 256), dtype=np.uint32), words64(4, 256, 2)
    a, b, coefficients = (
        words64(DEPTH) | np.uint64(1),
        words64(DEPTH),
        rng.integers(0, P61, (DEPTH, 4), dtype=np.uint64),
    )
    cells = {name: np.zeros((DEPTH, width), np.int64) for name in ("same", "shift", "cubic", "numpy")}
    private = sketch(width)
    raw = private.raw()
    updates = in_turns(
        {
            "ours": lambda: private.update(keys),
            "raw": lambda: raw.update(keys),
            "same": lambda: update_same(keys, cells["same"], *tables),
            "shift": lambda: update_shift(keys, cells["shift"], a, b),
            "cubic": lambda: update_cubic(keys, cells["cubic"], coefficients),
            "numpy": lambda: update_numpy(keys, cells["numpy"], a, b),
        },
        rounds,
    )
    floats = {name: cells[name].astype(float) for name in ("same", "numpy")}
    estimates = in_turns(
        {
            "ours": lambda: private.estimate(keys),
            "again": lambda: private.estimate(keys),
            "same": lambda: estimate_same(keys, floats["same"], *tables),
            "numpy": lambda: estimate_numpy(keys, floats["numpy"], a, b),
        },
        rounds,
        before=lambda: private.advance(to=private.now + STRIDE),
    )
    return updates, estimates


def main_table(results):
    def row(label, kind, name):
        times = [result[kind] for result in results]
        cells = [
            f"{t.ns(name, KEYS):.0f}" + (f" ({t.ratio('ours', name):.2f})" if name != "ours" else "") for t in times
        ]
        return [label, *cells]

    return table(
        ["ns a key (ours : this)", *(f"width ${power(width)}$" for width in WIDTHS)],
        [
            row("**update**", 0, "ours"),
            row("`RawSketch.update`, no noise anywhere", 0, "raw"),
            row("numba, the same hash", 0, "same"),
            row("numba, multiply-shift", 0, "shift"),
            row("numba, cubic polynomial", 0, "cubic"),
            row("numpy, multiply-shift, `add.at`", 0, "numpy"),
            row("**estimate** at a new step", 1, "ours"),
            row("the same once more at that step: no noise is drawn", 1, "again"),
            row("numba without noise, the same hash", 1, "same"),
            row("numpy without noise, multiply-shift, sort", 1, "numpy"),
        ],
    )


def horizons(rounds, rng):
    """The estimate with the longest horizon to that with a short one."""
    keys = rng.integers(0, 2**64, KEYS, dtype=np.uint64)
    long, short = sketch(2**16, 2**60), sketch(2**16, 2**16)

    def advance():
        for one in (long, short):
            one.advance(to=one.now + 997)

    times = in_turns({"long": lambda: long.estimate(keys), "short": lambda: short.estimate(keys)}, rounds, advance)
    return times.ratio("long", "short")


def scalar_table(rounds):
    one, keys = sketch(2**16), np.arange(1000)
    updates = in_turns(
        {"empty": one.noise_std, "number": lambda: one.update(5), "text": lambda: one.update("five")},
        rounds,
        loops=20_000,
    )
    one.advance()
    estimates = in_turns({"empty": one.noise_std, "number": lambda: one.estimate(5)}, rounds, loops=20_000)
    work = in_turns({"estimate": lambda: one.estimate(keys)}, rounds, loops=20)
    one.advance()
    work_of_update = in_turns({"update": lambda: one.update(keys)}, rounds, loops=20)
    rows = [
        [label, f"{times.ns(name):.0f}", f"{times.ratio(name, 'empty'):.1f}", f"{work:.0f}"]
        for label, times, name, work in (
            ("`noise_std()`: lock and check, no work", updates, "empty", 0),
            ("`update(5)`", updates, "number", work_of_update.ns("update", keys.size)),
            ('`update("five")`', updates, "text", work_of_update.ns("update", keys.size)),
            ("`estimate(5)`, five cells", estimates, "number", work.ns("estimate", keys.size)),
        )
    ]
    return table(["one call", "ns", "to the first", "ns of work: a key of 1000 in one call"], rows)


def kinds_table(rounds, rng):
    numbers = rng.integers(0, 10**5, KEYS // 2)
    texts = [f"key-{number:06}" for number in numbers.tolist()]
    columns = {
        "numpy `uint64`": numbers.astype(np.uint64),
        "list of `int`": numbers.tolist(),
        "numpy `U10`": np.array(texts),
        "list of `str`": texts,
        "Arrow `string`": pa.array(texts),
        "Arrow dictionary of `string`": pa.array(texts).dictionary_encode(),
        "two columns: `uint64`, Arrow `string`": (numbers.astype(np.uint64), pa.array(texts)),
    }
    one = sketch(2**16)
    times = in_turns({name: lambda keys=keys: one.update(keys) for name, keys in columns.items()}, rounds)
    first = next(iter(columns))
    rows = [[name, f"{times.ns(name, len(numbers)):.0f}", f"{times.ratio(name, first):.1f}"] for name in columns]
    return table(["keys of `update`", "ns a key", "to integers"], rows)


def report(rounds):
    rng = np.random.default_rng(1)
    results = [of_width(width, rounds, rng) for width in WIDTHS]
    ratio = horizons(rounds, rng)
    return "\n".join(
        [
            f"$10^6$ random keys, depth {DEPTH}, one thread; medians of {rounds} rounds on "
            f"{machine('numpy', 'numba')}. In brackets: our time divided by that one, within one run.\n",
            main_table(results),
            f"An estimate for $T = 2^{{60}}$ takes {ratio:.2f} times that for $T = 2^{{16}}$ (width $2^{{16}}$).\n",
            scalar_table(rounds),
            kinds_table(rounds, rng),
        ]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    text = report(arguments.rounds)
    if arguments.write:
        write_block(DOCS / "sketches.md", BEGIN, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
