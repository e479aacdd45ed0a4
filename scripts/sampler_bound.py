#!/usr/bin/env python3
"""How far the released values are from the ideal mechanism because normals are floats.

Computes every term of section 7 of docs/guarantees.md from the constants of the sampler (the 256-layer ziggurat
of rand_distr 0.6), of section 12 for gamma variables made of them, and of section 14 for BLT noise, and prints them as
markdown, with what docs/threat-model.md says of them. Needs numpy and scipy, for blt_table.py; a few seconds.

    sampler_bound.py                    print the tables
    sampler_bound.py --check            fail unless the two pages hold exactly what is printed
    sampler_bound.py --write            put what is printed into them
    sampler_bound.py --tables FILE      fail unless the tables computed here are those of rand_distr's
                                        src/ziggurat_tables.rs (x to 2^-44, f to one unit in the last place)
"""

import argparse
import functools
import math
import re
import sys
from decimal import Decimal, getcontext
from pathlib import Path

import blt_table
import numpy as np

getcontext().prec = 50

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- begin: scripts/sampler_bound.py -->", "<!-- end -->"
BEGIN_LAPLACE = "<!-- begin: scripts/sampler_bound.py, Laplace -->"
BEGIN_BLT = "<!-- begin: scripts/sampler_bound.py, BLT -->"
BEGIN_SUMMARY = "<!-- begin: scripts/sampler_bound.py, summary -->"

# The sampler.
LAYERS = 256
R = 3.6541528853610088  # where the tail begins
AREA = 0.00492867323399  # of a layer, with as many digits as the generator of the tables was given

# The library.
STEPS_PER_STD = 64  # s / g < 64, as g = 2^(floor(log2 s) - 5)
STATE_CUSHION = 1.001  # rms of a float prefix sum, relative to the ideal one: section 7.6
CELLS = 2**40  # the adaptive bound holds for up to this many cells ...
ONE_OFF = 2.0**-64  # ... but for this probability, once
U0 = 2.0**-53  # unit roundoff of doubles
SECOND_ORDER = 1 + 2.0**-20  # products of two of the small numbers below
FACTOR_ERROR = 2.0**-42 + 31 * 2.0**-53  # of the factor of a jump's covariance, relative: section 14.2
NEAR_BEST = 1.01  # buffers are as few as bring the variance this close to the best

ONE, TWO = Decimal(1), Decimal(2)
SQRT_TAU = Decimal("2.50662827463100050241576528481104525300698674060994")  # sqrt(2 pi)


def tables():
    """x_0 .. x_256 as doubles, by the recurrence that made the crate's tables."""

    def density(x):
        return math.exp(-x * x / 2.0)

    x = [AREA / density(R), R]
    while len(x) < LAYERS:
        x.append(math.sqrt(-2.0 * math.log(AREA / x[-1] + density(x[-1]))))
    return [printed(v) for v in x] + [0.0]


def printed(value):
    """The double that the crate's source has: it is written with 18 decimals."""
    return float(f"{value:.18f}")


def densities(x):
    """f_0 .. f_256 as doubles."""
    return [printed(math.exp(-v * v / 2.0)) for v in x]


def f(x):
    """exp(-x^2 / 2), to 50 digits."""
    return (-x * x / 2).exp()


def integral(x):
    """The integral of f from 0 to x, by its power series."""
    term, total, k = x, x, 0
    while abs(term) > Decimal(10) ** -48:
        k += 1
        term = -term * x * x / (2 * k)
        total += term / (2 * k + 1)
    return total


class Ziggurat:
    """The sampler with exact arithmetic on the crate's table, and how often its float version goes another way."""

    def __init__(self):
        self.x = [Decimal(x) for x in tables()]
        self.f_table = [Decimal(v) for v in densities(tables())]
        x = self.x
        self.f = [f(x_i) for x_i in x]
        self.mass = [integral(x_i) for x_i in x]
        self.tail = SQRT_TAU / 2 - self.mass[1]  # integral of f from R on
        self.area = [x[0] * self.f[1]] + [x[i] * (self.f[i + 1] - self.f[i]) for i in range(1, LAYERS)]
        # What of a layer's rectangle lies under the curve; layer 0 always ends with a value.
        under = [
            x[i + 1] * (self.f[i + 1] - self.f[i]) + self.mass[i] - self.mass[i + 1] - self.f[i] * (x[i] - x[i + 1])
            for i in range(1, LAYERS)
        ]
        share = [ONE] + [part / whole for part, whole in zip(under, self.area[1:], strict=False)]
        self.accept = sum(share) / LAYERS
        # Probability that the value comes from layer i (from the tail, for the second number).
        self.layer = [s / LAYERS / self.accept for s in share]
        self.from_tail = (1 - x[1] / x[0]) / LAYERS / self.accept
        self.layer[0] -= self.from_tail
        self.density_max = [1 / (2 * x_i * LAYERS * self.accept) for x_i in x[:LAYERS]]

    def divergence(self):
        """An upper bound on KL(normal law || law of the sampler on its table), and the largest relative error."""
        scale = SQRT_TAU / (2 * LAYERS * self.accept)
        excess = [scale / area - 1 for area in self.area]  # of layer i's density over the normal one
        # In x_(j+1) <= |z| < x_j: the slices of the layers below j, and a part of layer j's that is linear in f(z).
        chi, worst = Decimal(0), Decimal(0)
        below = excess[0] * self.f[1]
        for j in range(1, LAYERS):
            top = below + excess[j] * (self.f[j + 1] - self.f[j])
            error = max(abs(below), abs(top)) / self.f[j]
            chi += 2 / SQRT_TAU * (self.mass[j] - self.mass[j + 1]) * error**2
            worst = max(worst, error)
            below = top
        normal_tail = 2 * self.tail / SQRT_TAU
        error = abs(self.from_tail / normal_tail - 1)
        chi += normal_tail * error**2
        worst = max(worst, error)
        # Two percent for table entries that differ by 2^-44 from the ones here.
        return (
            float(chi * (1 + 3 * worst)) * 1.02,
            float(worst),
            float(error * normal_tail),
            float(max(map(abs, excess))),
        )

    def decisions(self):
        """Probability that floats take another branch than exact numbers: first tests, wedges, tail (per value)."""
        loops = 1 / float(self.accept)
        first = 7 * U0 * loops
        wedge = 0.0
        for i in range(1, LAYERS):
            x, low, high = float(self.x[i]), self.f[i], self.f[i + 1]
            step = float(high - low)
            # The crate's value may be one unit in the last place off the one computed here.
            table = float(max(abs(self.f_table[i] - low), abs(self.f_table[i + 1] - high))) + 2 * U0 * float(high)
            error = table + U0 * (3 * step + float(high) * (3.5 * x * x + 3))
            wedge += (1 - float(self.x[i + 1]) / x) * min(1.0, 2 * error / step) / LAYERS
        # The tail: proposals until one is accepted, and the far end where 52 bits are too coarse.
        accept = R * float(self.tail / f(Decimal(R)))
        far = 2.0**-30 * (1.01 * math.exp(-((30 * math.log(2) / R) ** 2) / 2) + 2 * U0)
        tail = float(self.from_tail) * (5.5 * U0 + far) / accept
        return first, wedge * loops, tail

    def moments(self):
        """E x_i, E |z| and the mean absolute error of a tail value in units of u0 (with both directions)."""
        x_mean = float(sum(p * x for p, x in zip(self.layer, self.x, strict=False)))
        z_mean = float(2 / SQRT_TAU)
        accept = R * float(self.tail / f(Decimal(R)))
        tail = float(self.from_tail) * 2 * (1.002 * math.sqrt(math.pi / 2) / accept + 4.1 / R + R)
        return x_mean, z_mean, tail


def moves(h):
    """What a read can have to draw in a tree of h levels: (kind, a, p, q); see mechanism/tree.rs."""
    yield ("first", 0, 0, 0)
    for m in range(h):
        yield ("fork", m, 0, 0)
    for a in range(h):
        for p in range(1, h - a):
            for q in range(1, h - a - p + 1):
                yield ("bridge", a, p, q)


def errors(zig, h, known):
    """The largest mean errors of a read, in units of u0 s: (s-lattice term, state term). `known` bounds a stored
    sum in standard deviations.
    """
    x_mean, z_mean, tail = zig.moments()
    grid = 2.0 / STEPS_PER_STD  # g / s <= 1/32
    slack = 1 + grid * float(sum(zig.density_max)) * 2
    xl = x_mean + grid / float(zig.accept) + tail  # in the lattice term, with the sum over boundaries
    zl = z_mean + 2 * grid / float(zig.accept)
    worst = (0.0, 0.0, None)
    for kind, a, p, q in moves(h):
        if kind == "first":
            split = 2 * (x_mean + tail) + 2 * z_mean
            if h == 0:
                leaf, split = 2 * xl + 2 * zl, 0.0
            else:
                leaf = slack * (split + z_mean) + math.sqrt(h) * (2 * xl + 5 * zl)
        elif kind == "fork":
            split = 0.0
            leaf = slack * known * math.sqrt(a + 1) + math.sqrt(h - a) * (2 * xl + 5 * zl)
        else:
            m, share, beta = a + p, p / (p + q), math.sqrt(p * q / (p + q))
            total, mean = known * math.sqrt(p + q), known * math.sqrt(m + 1)
            split = beta * (2 * (x_mean + tail) + 8.5 * z_mean) + 4 * share * total + mean
            leaf = slack * (split + mean + beta * z_mean) + math.sqrt(h - m) * (2 * xl + 5 * zl)
        reuse = 0.0 if h == 0 else (math.sqrt(3) * split + leaf) / float(SQRT_TAU)
        if STEPS_PER_STD * leaf + reuse > STEPS_PER_STD * worst[0] + worst[1]:
            worst = (leaf, reuse, (kind, a, p, q))
    return worst


def log2_normal_tail(z):
    """log2 of an upper bound on P(|N| > z)."""
    return 1 - z * z / 2 / math.log(2) - math.log2(z * float(SQRT_TAU))


def adaptive_bound(h):
    """Standard deviations that no stored sum of any cell exceeds, nor any difference of two on a path."""
    sums = math.log2(CELLS) + h + 1 + math.log2(h + 2)
    z = 1.0
    while sums + log2_normal_tail(z) > math.log2(ONE_OFF):
        z += 0.01
    return z


def up(value):
    """A power of two with one decimal, rounded up, for a table."""
    return f"$2^{{{math.ceil(10 * math.log2(value)) / 10:.1f}}}$"


def ten(value):
    """A power of ten with two digits, rounded up, for a table."""
    exponent = math.floor(math.log10(value))
    digits = math.ceil(10 * value / 10.0**exponent) / 10
    if digits == 10.0:
        digits, exponent = 1.0, exponent + 1
    return f"${digits:.1f} \\cdot 10^{{{exponent}}}$"


def report():
    zig = Ziggurat()
    divergence, ratio, tail_mass, layer = zig.divergence()
    first, wedge, tail = zig.decisions()
    drift = math.sqrt(divergence)
    branches = 2 * (first + wedge + tail) * SECOND_ORDER
    lines = [
        "| term | what it is | bound |",
        "|---|---|---|",
        f"| | largest relative error of a layer's area in the table | {ten(layer)} |",
        f"| | largest relative error of the table's density | {ten(ratio)} |",
        f"| $a$ | the table: grows with $\\sqrt N$ | {ten(drift)} = {up(drift)} |",
        f"| | the part of the table's error that is the tail's mass, per normal | {up(tail_mass)} |",
        f"| $b_1$ | first tests and the 52-bit grid's offset, two normals | {up(2 * first)} |",
        f"| $b_2$ | wedge tests, two normals | {up(2 * wedge)} |",
        f"| $b_3$ | the tail's own acceptance and far end, two normals | {up(2 * tail)} |",
        "",
        "| $h$ | $b_4$ lattice | $b_5$ state | $b$, public reads "
        "| $M$ | $b_4$ lattice | $b_5$ state | $b$, adaptive reads |",
        "|---|---|---|---|---|---|---|---|",
    ]
    largest = {}
    for h in (0, 1, 5, 10, 14, 20, 30, 40, 50, 62):
        cells, row = [], [str(h)]
        for known in (STATE_CUSHION, adaptive_bound(h)):
            leaf, reuse, _ = errors(zig, h, known)
            lattice, state = (term * U0 * SECOND_ORDER for term in (STEPS_PER_STD * leaf, reuse))
            total = branches + lattice + state
            cells.append((lattice, state, total))
            largest[h, known == STATE_CUSHION] = total
        row += [up(cells[0][0]), up(cells[0][1]) if cells[0][1] else "0", f"**{up(cells[0][2])}**"]
        row += [f"{adaptive_bound(h):.1f}"]
        row += [up(cells[1][0]), up(cells[1][1]) if cells[1][1] else "0", f"**{up(cells[1][2])}**"]
        lines.append("| " + " | ".join(row) + " |")
    lines += [
        "",
        "| $N$ | $a\\sqrt N + bN$, $h = 14$, public reads | $h = 20$, public | $h = 62$, public | $h = 62$, adaptive |",
        "|---|---|---|---|---|",
    ]
    for exponent in (0, 3, 6, 9):
        n = 10**exponent
        row = [drift * math.sqrt(n) + n * largest[key] for key in ((14, True), (20, True), (62, True), (62, False))]
        lines.append(f"| $10^{exponent}$ | " + " | ".join(map(ten, row)) + " |")
    public = drift + max(value for (_, is_public), value in largest.items() if is_public)
    every = drift + max(largest.values())
    lines += [
        "",
        f"For every horizon $\\delta_0 = a + b$ is at most {ten(public)} = {up(public)} with public reads and "
        f"{ten(every)} = {up(every)} with adaptive ones.",
    ]
    return "\n".join(lines)


class Gamma:
    """Gamma(n, 1) as crates/fastgame-core/src/noise/laplace.rs draws it, in units of u0: guarantees, section 12.2.

    `error` is the mean absolute error, `size` the part of it that is relative to the value, `absolute` the mean of the
    rest over the value, for use in a share; `wrong` is the probability that a float takes another branch.
    """

    def __init__(self, n, zig):
        self.n = n
        if n == 1:
            # -ln of a uniform number of 64 bits: its rounding, and the half cell; the logarithm and the product by b.
            self.accept, self.wrong = 1.0, 0.0
            self.absolute, self.size = 2.02, 3.0
            self.error = self.absolute + self.size
            return
        d = n - 1 / 3
        c = 1 / (3 * math.sqrt(d))
        self.accept = math.exp(d + math.lgamma(n) + (1 / 6 - d) * math.log(d)) / float(SQRT_TAU)
        tail = zig.moments()[2]
        edge = float(zig.x[0])  # at least every x_i
        step = 0.002
        mean = over = wrong = 0.0  # integrals over the normal that is proposed
        tail_mean = tail_over = tail_wrong = 0.0  # the largest derivatives where it may come from the tail
        x = -1 / c + step / 2
        while x < 12.3:
            root = 1 + c * x
            v = root**3
            log_theta = x * x / 2 + d * (1 - v + math.log(v))
            if log_theta > 1e-9:
                raise ValueError(f"acceptance above one at n = {n}, x = {x}")
            theta = math.exp(log_theta)
            if 1 - 0.0331 * x**4 > theta + 1e-9:
                raise ValueError(f"the squeeze is above the acceptance at n = {n}, x = {x}")
            weight = step * math.exp(-x * x / 2) / float(SQRT_TAU)
            normal = 2 * edge + abs(x)  # |float normal - normal|
            slope = 3 * d * c * root * root  # of d v
            drift = abs(x + 3 * d * c * (1 / root - root * root))  # of the logarithm of the acceptance
            relative = 3 * 4.1 * c * abs(x) / root + 5  # of v
            rounding = (
                2 * abs(log_theta) + x * x + d * (relative * (v + 1) + 5.15 * abs(1 - v) + 6.15 * abs(math.log(v)))
            )
            mean += weight * theta * slope * (normal + 4.1 * abs(x))
            over += weight * theta * 3 * c / root * (normal + 4.1 * abs(x))
            wrong += weight * theta * (rounding + drift * normal)
            if abs(x) > R - step:
                tail_mean = max(tail_mean, theta * slope)
                tail_over = max(tail_over, theta * 3 * c / root)
                tail_wrong = max(tail_wrong, theta * drift)
            x += step
        room = 1.01 / self.accept  # 1 % for the quadrature
        self.size = 8.15
        self.absolute = room * (over + tail * tail_over)
        self.error = room * (mean + tail * tail_mean) + self.size * n
        # Twice: to either side. The half cell of the uniform number, the squeeze, and the sign of 1 + c x.
        self.wrong = room * 2 * (1 + 6 + 1 + wrong + tail * tail_wrong)


def laplace_limit(h):
    """What no gamma sum of a node exceeds, in units of b, in any of the trees, but for the probability ONE_OFF."""

    def log2_count_beyond(m):
        # Chernoff: P(Gamma(n) > m) <= e^-m (e m / n)^n.
        terms = [n - 1 + (-m + n * (1 + math.log(m / n))) / math.log(2) for n in range(1, h + 2)]
        largest = max(terms)
        return math.log2(2 * CELLS) + largest + math.log2(sum(2 ** (term - largest) for term in terms))

    m = h + 2.0
    while log2_count_beyond(m) > math.log2(ONE_OFF):
        m += 0.1
    return m


def laplace_errors(gammas, h, limit):
    """The largest mean error of a leaf's gamma sum over all moves, in units of u0 b. `limit` bounds the stored sums;
    None takes their means, for public reads.
    """

    def known(terms):
        return STATE_CUSHION * terms if limit is None else limit

    worst = 0.0
    for kind, a, p, q in moves(h):
        if kind == "first":
            leaf = gammas[1].error + (1 if h == 0 else gammas[h].error + 2 * (h + 1))
        elif kind == "fork":
            leaf = gammas[h - a].error + 2 * (known(a + 1) + h - a)
        else:
            m, mean = a + p, p / (p + q)
            first, rest = gammas[p], gammas[q]
            share = (first.size + rest.size) / 4 + first.absolute + rest.absolute + 2 * mean
            split = known(p + q) * (share + 2 * mean) + known(m + 1)
            leaf = split + gammas[h - m].error + 2 * (known(m + 1) + h - m)
        worst = max(worst, leaf)
    return worst


def laplace_report():
    zig = Ziggurat()
    gammas = [None] + [Gamma(n, zig) for n in range(1, 64)]
    draws = 6  # gamma variables of a read
    proposals = draws / min(gamma.accept for gamma in gammas[1:])
    drift = math.sqrt(proposals / 2 * zig.divergence()[0])
    normals = proposals * sum(zig.decisions())
    per_boundary = STEPS_PER_STD / math.sqrt(2) + 1  # 1 / g and the largest density, in units of 1 / b
    lines = [
        "| term | what it is | bound |",
        "|---|---|---|",
        f"| $A$ | least acceptance of a gamma variable | {min(gamma.accept for gamma in gammas[1:]):.4f} |",
        f"| $a$ | the ziggurat's table: grows with $\\sqrt N$ | {ten(drift)} = {up(drift)} |",
        f"| $b_1$ | normals that take another branch | {up(normals)} |",
        "",
        "| $h$ | $b_2$ acceptance | $b_3$ lattice | $b_4$ state | $b$, public reads "
        "| $M$ | $b_3$ lattice | $b_4$ state | $b$, adaptive reads |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    largest = {}
    for h in (0, 1, 5, 10, 14, 20, 30, 40, 50, 62):
        wrong = draws * max(gamma.wrong for gamma in gammas[1 : max(h, 1) + 1]) * U0 * SECOND_ORDER
        row = [str(h), up(wrong) if wrong else "0"]
        for limit in (None, laplace_limit(h) + 1):
            error = laplace_errors(gammas, h, limit) * U0 * SECOND_ORDER
            lattice, state = 8 * per_boundary * error, 2 * h * error
            total = normals + wrong + lattice + state + (0 if limit is None else ONE_OFF)
            largest[h, limit is None] = total
            if limit is not None:
                row.append(f"{limit - 1:.0f}")
            row += [up(lattice), up(state) if state else "0", f"**{up(total)}**"]
        lines.append("| " + " | ".join(row) + " |")
    lines += [
        "",
        "| $N$ | $a\\sqrt N + bN$, $h = 14$, public reads | $h = 20$, public | $h = 62$, public | $h = 62$, adaptive |",
        "|---|---|---|---|---|",
    ]
    for exponent in (0, 3, 6, 9):
        n = 10**exponent
        row = [drift * math.sqrt(n) + n * largest[key] for key in ((14, True), (20, True), (62, True), (62, False))]
        lines.append(f"| $10^{exponent}$ | " + " | ".join(map(ten, row)) + " |")
    public = drift + max(value for (_, is_public), value in largest.items() if is_public)
    every = drift + max(largest.values())
    lines += [
        "",
        f"For every horizon $\\delta_0 = a + b$ is at most {ten(public)} = {up(public)} with public reads and "
        f"{ten(every)} = {up(every)} with adaptive ones.",
    ]
    return "\n".join(lines)


class BltRow:
    """What section 14 needs of parameters used up to a horizon, all in units of s."""

    def __init__(self, row, horizon):
        self.buffers = len(row)
        self.omega, self.e = np.array(row).reshape(-1, 2).T
        horizon = float(horizon)
        self.std = np.sqrt(np.diagonal(blt_table.geometric(self.e, horizon)[0]))  # of each buffer
        if not row:
            self.rest, self.footprint, self.whitened = 0.0, self.std, 0.0
            return
        self.rest = math.sqrt(blt_table.square_sum(self.e, self.omega, horizon - 1))  # of the noise without fresh z
        # w_i(x) = omega_i / ((1 - lambda_i x) b(x)) by partial fractions: the later z that buffer i looks like.
        delta = blt_table.roots(self.omega, self.e)
        below = self.e[:, None] - self.e - delta
        residues = -self.omega[:, None] / below / (self.omega[:, None] / below**2).sum(axis=0)
        gram = residues @ blt_table.geometric(self.e + delta, horizon)[0] @ residues.T
        self.footprint = np.sqrt(np.diagonal(gram))
        # The sum of gamma_i, the largest over jumps of 1, 2, 4, ... steps; gram = root^T root.
        root = np.linalg.cholesky(gram / np.outer(self.footprint, self.footprint)).T * self.footprint
        self.whitened, steps = 0.0, 1.0
        while steps < horizon:
            joint = blt_table.geometric(self.e, steps)[0]
            lower = np.linalg.cholesky(np.eye(self.buffers) + root @ joint @ root.T)
            own = np.linalg.norm(np.linalg.solve(lower, root), axis=0) * np.sqrt(np.diagonal(joint))
            self.whitened = max(self.whitened, float(own.sum()))
            steps *= 2


@functools.cache
def blt_rows():
    return blt_table.read()


def default_blt(level):
    """The parameters that the library takes for the horizon 2^level: calibration/blt.rs."""
    rows, below = blt_rows()[level], blt_rows()[max(level - 1, 0)]

    def objective(row):
        return blt_table.product(row, 2**level) if row else 2.0**level

    choices = [[]] + [
        min((choice[d] for choice in (rows, below) if d < len(choice)), key=objective) for d in range(len(rows))
    ]
    best = min(map(objective, choices))
    return next(row for row in choices if objective(row) <= NEAR_BEST * best)


def blt_limit(level, buffers):
    """Standard deviations that no buffer of any cell exceeds at any step, but for the probability ONE_OFF."""
    sums = math.log2(CELLS) + level + 1 + math.log2(max(buffers, 1))
    z = 1.0
    while sums + log2_normal_tail(z * (1 - 1e-9)) > math.log2(ONE_OFF):
        z += 0.01
    return z


def blt_errors(zig, row, limit):
    """The terms of a read beside those of the normals: lattice, factor, state. `limit` is in standard deviations of a
    buffer; None takes root mean squares, for public reads.
    """
    x_mean, z_mean, tail = zig.moments()
    grid = 2.0 / STEPS_PER_STD
    slack = 1 + grid * float(sum(zig.density_max)) * 2
    xl = x_mean + grid / float(zig.accept) + tail
    zl = z_mean + 2 * grid / float(zig.accept)
    d, normal = row.buffers, 2 * (x_mean + tail) + z_mean
    if limit is None:
        known = size = STATE_CUSHION
        partial = size * row.rest
    else:
        known = limit + STATE_CUSHION - 1
        size = known + z_mean
        partial = size * float(row.omega @ row.std)
    arrived = row.std * (3.12 * known + math.sqrt(d) * (normal + z_mean) + d * size)
    leaf = 2 * xl + zl + (d + 1) * zl + slack * (float(row.omega @ (arrived + row.std * size)) + d * partial)
    state = arrived + (2 * row.e + 1) * row.std * size + normal + 3 * z_mean + (0 if limit is None else z_mean)
    if any(2.0**32 * U0 * state > (STATE_CUSHION - 1) * row.std):
        raise ValueError("errors of 2^32 reads add up to more than the cushion")
    return (
        STEPS_PER_STD * leaf * U0 * SECOND_ORDER,
        FACTOR_ERROR * row.whitened**2 / math.sqrt(2) * SECOND_ORDER,
        float(row.footprint @ state) / float(SQRT_TAU) * U0 * SECOND_ORDER,
    )


def blt_report():
    zig = Ziggurat()
    divergence, decisions = zig.divergence()[0], sum(zig.decisions()) * SECOND_ORDER

    def terms(row, level):
        """a, b_1, b_2, and b_3, b_4, b for public and for adaptive reads."""
        draws = row.buffers + 1
        found = [math.sqrt(draws * divergence / 2), draws * decisions]
        for limit in (None, blt_limit(level, row.buffers)):
            lattice, factor, state = blt_errors(zig, row, limit)
            found += ([factor] if limit is None else []) + [lattice, state, found[1] + factor + lattice + state]
        return found

    def cell(value):
        return up(value) if value else "0"

    lines = [
        "| $T$ | $d$ | $a$ | $b_1$ normals | $b_2$ factor | $b_3$ lattice | $b_4$ state | $\\delta_0$, public reads "
        "| $M$ | $b_3$ lattice | $b_4$ state | $\\delta_0$, adaptive reads |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    shown = {}
    for level in (0, 1, 5, 10, 14, 16, 20, 24, 30, 40, 50, 62):
        row = BltRow(default_blt(level), 2**level)
        shown[level] = a, *rest, public, lattice, state, adaptive = terms(row, level)
        cells = [f"$2^{{{level}}}$", str(row.buffers), *map(cell, [a, *rest]), f"**{ten(a + public)}**"]
        cells += [f"{blt_limit(level, row.buffers):.1f}", cell(lattice), cell(state), f"**{ten(a + adaptive)}**"]
        lines.append("| " + " | ".join(cells) + " |")
    lines += [
        "",
        "| $N$ | $a\\sqrt N + bN$, $T = 2^{14}$, public reads | $T = 2^{20}$, public | $T = 2^{62}$, public "
        "| $T = 2^{62}$, adaptive |",
        "|---|---|---|---|---|",
    ]
    for exponent in (0, 3, 6, 9):
        n = 10**exponent
        row = [shown[h][0] * math.sqrt(n) + n * shown[h][b] for h, b in ((14, 5), (20, 5), (62, 5), (62, 8))]
        lines.append(f"| $10^{exponent}$ | " + " | ".join(map(ten, row)) + " |")
    # A row serves horizons up to twice its own.
    every = [
        terms(BltRow(row, 2 ** min(level + 1, 62)), min(level + 1, 62))
        for level, rows in enumerate(blt_rows())
        for row in [[], *rows][level > 0 :]
    ]
    lines += [
        "",
        f"For every horizon and every number of buffers that there are parameters for, $\\delta_0 = a + b$ is at most "
        f"{ten(max(row[0] + row[5] for row in every))} with public reads and "
        f"{ten(max(row[0] + row[8] for row in every))} with adaptive ones.",
    ]
    return "\n".join(lines)


def summary(reports):
    """The bounds for a million reads, a line a mechanism."""
    lines = [
        "| noise | $T = 2^{14}$, public reads | $T = 2^{20}$, public | $T = 2^{62}$, public | $T = 2^{62}$, adaptive |",
        "|---|---|---|---|---|",
    ]
    for name, text in reports.items():
        (row,) = re.findall(r"^\| \$10\^6\$ (\|.*)$", text, re.M)
        lines.append(f"| {name} {row}")
    return "\n".join(lines)


def compare_tables(path):
    source = Path(path).read_text()
    mine = tables()
    for name, values, tolerance in (("ZIG_NORM_X", mine, 2.0**-44), ("ZIG_NORM_F", densities(mine), 2.0**-52)):
        body = re.search(name + r": \[f64; 257\] =\s*\[(.*?)\];", source, re.S).group(1)
        theirs = [float(number) for number in body.split(",") if number.strip()]
        wrong = sum(abs(a - b) > tolerance * b for a, b in zip(theirs, values, strict=True))
        if wrong:
            sys.exit(f"{name}: {wrong} of {len(theirs)} entries are not those that the bound was computed for")
    print("the tables are those that the bound is computed for")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--check", action="store_true")
    group.add_argument("--write", action="store_true")
    group.add_argument("--tables", metavar="FILE")
    arguments = parser.parse_args()
    if arguments.tables:
        compare_tables(arguments.tables)
        return
    tree, laplace, blt = report(), laplace_report(), blt_report()
    short = summary({"`tree`, `tree-paper`": tree, '`mechanism="blt"`': blt, "`PureDp`": laplace})
    pages = {
        DOCS / "guarantees.md": {BEGIN: tree, BEGIN_LAPLACE: laplace, BEGIN_BLT: blt},
        DOCS / "threat-model.md": {BEGIN_SUMMARY: short},
    }
    if not (arguments.check or arguments.write):
        print("\n\n".join(text for texts in pages.values() for text in texts.values()))
        return
    for path, texts in pages.items():
        new = page = path.read_text()
        for begin, text in texts.items():
            start = new.index(begin) + len(begin)
            new = new[:start] + "\n" + text + "\n" + new[new.index(END, start) :]
        if arguments.write:
            path.write_text(new)
        elif new != page:
            sys.exit(f"{path} does not hold what this program prints: run {sys.argv[0]} --write")


if __name__ == "__main__":
    main()
