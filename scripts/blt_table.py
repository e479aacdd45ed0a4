#!/usr/bin/env python3
"""Parameters of buffered linear Toeplitz noise: the table crates/fastgame-core/src/calibration/blt_table.rs.

With d buffers the noise of step t is z_t + sum_i omega_i s_{i,t}, where s_{i,t+1} = lambda_i s_{i,t} + z_t. For each
horizon T = 2^h and each d the table has the omega_i and e_i = 1 - lambda_i with the least

    Var(T) |c|^2 = (sum_{j<T} b_j^2) (sum_{j<T} c_j^2),   b_0 = 1, b_j = sum_i omega_i lambda_i^(j-1),
                                                          sum_j c_j x^j = 1 / ((1 - x) sum_j b_j x^j):

the variance of the last release for a given privacy loss. No factorisation of this kind, with any number of buffers,
is better than the square-root Toeplitz mechanism (both sums over C(2j, j) / 4^j), which needs memory that grows with T.

    blt_table.py                    print the products, and their ratios to the square-root Toeplitz mechanism's
    blt_table.py --write            compute the table and write the Rust file; about a minute
    blt_table.py --check            every row is a local optimum, some are what other starts lead to, and golden values
                                    are met; a quarter of a minute
    blt_table.py --check --all      all rows are what other starts lead to; about two minutes

Needs numpy and scipy.
"""

import argparse
import ast
import itertools
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
from scipy.optimize import minimize

TABLE = Path(__file__).resolve().parent.parent / "crates" / "fastgame-core" / "src" / "calibration" / "blt_table.rs"

MAX_LEVEL = 62  # log2 of the longest horizon
MAX_BUFFERS = 10  # 8.5 % above the square-root Toeplitz mechanism at 2^62, 0.001 % at 2^20
DIGITS = 6  # significant; an error of 1e-6 in a parameter is one of about 1e-12 at the optimum
GAIN = 1e-9  # a row must be better than the one before by this much, relative; so rounding must lose less
TOLERANCE = 1e-6  # of --check, relative

# ratio to the square-root Toeplitz mechanism, d = 3 .. 6
GOLDEN_RATIOS = {
    10: (1.003, 1.0002, 1.0000, 1.0000),
    16: (1.044, 1.009, 1.002, 1.0003),
    20: (1.115, 1.031, 1.008, 1.002),
    24: (1.233, 1.074, 1.025, 1.008),
    30: (1.525, 1.187, 1.074, 1.030),
}
GOLDEN_PRODUCT = (20, 5, 30.27)

HEADER = f"""\
//! Parameters of buffered linear Toeplitz noise with the least variance at the end of a horizon, for a given loss.
//!
//! Made by `scripts/blt_table.py --write`, checked by `scripts/blt_table.py --check`: do not edit.

/// The most buffers that a row has.
pub(crate) const MAX_BUFFERS: usize = {MAX_BUFFERS};

/// `(omega, 1 - lambda)` of every buffer, fastest decay first.
pub(crate) type Row = &'static [(f64, f64)];

/// By `log2` of the horizon, then by the number of buffers less one. It ends where one more buffer would gain less
/// than 1e-9 of the variance; a horizon of one step needs none.
#[rustfmt::skip] // several buffers on a line
pub(crate) const ROWS: [&[Row]; {MAX_LEVEL + 1}] = [
"""
FOOTER = "];\n"


# ---- the product of given parameters ----


def geometric(rates, n):
    """The matrix of sum_{j<n} ((1 - a) (1 - b))^j for all pairs of rates, and of 1 - (1 - a) (1 - b)."""
    joint = rates[:, None] + rates - rates[:, None] * rates
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(joint > 0, -np.expm1(n * np.log1p(-joint)) / joint, n), joint


def square_sum(rates, weights, n):
    """sum_{j<n} (sum_i weights_i (1 - rates_i)^j)^2; no term is negative, so nothing cancels."""
    return weights @ geometric(rates, n)[0] @ weights


def roots(omega, e):
    """kappa_i - e_i, with kappa_i the root of 1 + sum_k omega_k / (e_k - x) that follows e_i.

    The differences, as kappa_i itself would not tell how far from the pole it is. Between poles the function increases
    from -inf to inf; above the largest it is positive once x exceeds it by the sum of all omega.
    """
    apart = e - e[:, None]
    low, high = np.zeros(len(e)), np.append(omega.sum(), e[:-1] - e[1:])
    while True:
        middle = (low + high) / 2
        if np.all((middle <= low) | (middle >= high)):
            return middle
        below = 1 + (omega / (apart - middle[:, None])).sum(axis=1) < 0
        low, high = np.where(below, middle, low), np.where(below, high, middle)


def sensitivity(row):
    """Rates and weights of c_j = sum_i weight_i (1 - rate_i)^j; the first rate is 0, the second the largest."""
    omega, e = np.array(row).T
    delta = roots(omega, e)
    kappa = e + delta
    weights = 1 / (omega / (e - e[:, None] - delta[:, None]) ** 2).sum(axis=1) / kappa
    return np.append(0, kappa), np.append(1 / (1 + (omega / e).sum()), weights)


def factors(row, horizon):
    """Var(T) and |c|^2."""
    omega, e = np.array(row).T
    return 1 + square_sum(e, omega, horizon - 1.0), square_sum(*sensitivity(row), float(horizon))


def product(row, horizon):
    variance, squares = factors(row, horizon)
    return float(variance * squares)


def explicit_factors(row, horizon):
    """The same, from the definition of the noise: z = 1, 0, 0, ... gives b, and c is the z of noise 1, 1, 1, ..."""
    omega, e = np.array(row).T
    decay, forward, inverse = 1 - e, np.zeros(len(e)), np.zeros(len(e))
    variance = squares = 0.0
    for step in range(horizon):
        z = float(step == 0)
        variance += (z + omega @ forward) ** 2
        forward = decay * forward + z
        c = 1 - omega @ inverse
        squares += c**2
        inverse = decay * inverse + c
    return variance, squares


def square_root_product(level):
    """(sum_{j<T} f_j^2)^2 with f_j = C(2j, j) / 4^j; from 2^16 on the asymptotic series (Landau's constants)."""
    horizon = 2.0**level
    if level < 16:
        j = np.arange(1, horizon)
        return float(1 + (np.cumprod(1 - 0.5 / j) ** 2).sum()) ** 2
    return float((np.log(16 * horizon) + np.euler_gamma - 0.25 / horizon) / np.pi) ** 2


# ---- the least product ----
#
# kappa_1 > e_1 > kappa_2 > ... > e_d > 0 may be any such numbers, and determine omega. So the search runs over them,
# as y with -log of the first and the logs of their ratios = exp(y): no bounds are left, not even kappa_1 < 1 (with
# which the c_j are positive and decrease), and no roots to find.


def log_residues(poles, zeros):
    """Logs of |residues| of prod (zero - x) / prod (pole - x), and their derivatives by log poles and by log zeros."""
    across = poles[:, None] - zeros
    along = poles[:, None] - poles + np.eye(len(poles))
    by_poles = poles / along * (1 - np.eye(len(poles)))
    np.fill_diagonal(by_poles, poles * ((1 / across).sum(axis=1) - (1 / along).sum(axis=1) + 1))
    return np.log(np.abs(across)).sum(axis=1) - np.log(np.abs(along)).sum(axis=1), by_poles, -zeros / across


def log_square_sum(rates, log_weights, n, constant=0.0):
    """The log of constant + square_sum, and its derivatives by log weights and by log rates."""
    weights = np.exp(log_weights)
    sums, joint = geometric(rates, n)
    slopes = (n * np.exp((n - 1) * np.log1p(-joint)) - sums) / np.where(joint > 0, joint, 1)
    total = constant + weights @ sums @ weights
    by_weights = 2 * weights * (sums @ weights)
    by_rates = 2 * weights * rates * (slopes @ (weights * (1 - rates)))
    return np.log(total), by_weights / total, by_rates / total


def interlaced(y):
    """The logs of kappa and of e."""
    logs = -np.cumsum(np.exp(y))
    return logs[0::2], logs[1::2]


def search_point(row):
    """The y of a row."""
    kappa, e = sensitivity(row)[0][1:], np.array(row)[:, 1]
    return np.log(-np.diff(np.log(np.append(1, np.column_stack([kappa, e]).ravel()))))


def parameters(y):
    kappa, e = np.exp(interlaced(y))
    return [(float(w), float(r)) for w, r in zip(np.exp(log_residues(e, kappa)[0]), e, strict=True)]


def log_product(y, horizon):
    """log(Var(T) |c|^2) and its gradient."""
    with np.errstate(all="ignore"):
        log_kappa, log_e = interlaced(y)
        kappa, e = np.exp(log_kappa), np.exp(log_e)

        log_omega, omega_by_e, omega_by_kappa = log_residues(e, kappa)
        log_variance, by_omega, by_e = log_square_sum(e, log_omega, horizon - 1.0, constant=1.0)

        log_w, w_by_kappa, w_by_e = log_residues(kappa, e)
        log_weights = np.append((log_e - log_kappa).sum(), log_w - log_kappa)
        log_squares, by_weights, by_rates = log_square_sum(np.append(0, kappa), log_weights, float(horizon))
        by_limit, by_w = by_weights[0], by_weights[1:]

        gradient = np.empty(len(y))
        gradient[0::2] = by_omega @ omega_by_kappa + by_w @ w_by_kappa - by_w - by_limit + by_rates[1:]
        gradient[1::2] = by_omega @ omega_by_e + by_e + by_w @ w_by_e + by_limit
        gradient = -np.exp(y) * np.cumsum(gradient[::-1])[::-1]
        value = log_variance + log_squares
    if not (np.isfinite(value) and np.all(np.isfinite(gradient))):  # a line search went too far
        return np.inf, np.zeros(len(y))
    return float(value), gradient


def newton(y, horizon, most=100):
    """Newton's method with the Hessian from differences of gradients; only steps that go down."""
    value, gradient = log_product(y, horizon)
    for _ in range(most):
        shifts = 1e-5 * np.eye(len(y))
        hessian = np.array([log_product(y + s, horizon)[1] - log_product(y - s, horizon)[1] for s in shifts]) / 2e-5
        curvature, axes = np.linalg.eigh((hessian + hessian.T) / 2)
        step = -axes @ ((axes.T @ gradient) / np.maximum(np.abs(curvature), 1e-9))
        step /= max(1.0, np.abs(step).max())
        for halvings in range(15):
            trial = y + step / 2**halvings
            new_value, new_gradient = log_product(trial, horizon)
            if new_value < value:
                break
        else:
            return y, value
        gained, y, value, gradient = value - new_value, trial, new_value, new_gradient
        if gained < 1e-15:
            break
    return y, value


def fit(starts, horizon, polish=1):
    """The best y that some starts lead to, the first of those that are equally good, and its log product.

    Newton's method starts from the best `polish` of what a quasi-Newton method finds. More of them only pay where
    buffers hardly gain: there the valley is so flat that the quasi-Newton method stops 1e-8 too high.
    """
    options = {"gtol": 1e-9, "maxiter": 500}
    found = [minimize(log_product, start, (horizon,), "BFGS", jac=True, options=options) for start in starts]
    limit = sorted(result.fun for result in found)[polish - 1] + 1e-13
    ends = [newton(result.x, horizon) for result in found if result.fun <= limit]
    best = min(value for _, value in ends)
    return next((y, value) for y, value in ends if value < best + 1e-13)


def quadrature_start(buffers):
    """Gauss quadrature of f_j = E cos(U)^(2j): b_j = f_j for j <= 2d, so the optimum for T <= 2d + 1."""
    angles = np.pi / 2 * np.arange(2 * buffers + 1, 0, -1) / (2 * buffers + 1)
    return np.log(-np.diff(2 * np.log(np.sin(angles))))


def geometric_start(buffers, horizon, first):
    """Equal ratios from kappa_1 = first to e_d = about 1 / T."""
    y = np.full(2 * buffers, np.log(np.log(max(horizon, 8.0) * first) / (2 * buffers)))
    y[0] = np.log(-np.log(first))
    return y


def other_starts(buffers, horizon, rng):
    """Starts that know nothing of the table."""
    grids = [geometric_start(buffers, horizon, first) for first in (0.2, 0.5, 0.9)]
    return [quadrature_start(buffers), *grids, grids[1] + rng.normal(0, 0.3, 2 * buffers)]


# ---- the table ----


def decimal(value):
    return re.sub(r"e-0?", "e-", f"{value:.{DIGITS - 1}e}")


def rounded(row):
    return [(float(decimal(omega)), float(decimal(e))) for omega, e in row]


def compute():
    """All rows: every number of buffers from the optimum of half the horizon, and from two fixed starts."""
    table, warm = [[]], {}
    for level in range(1, MAX_LEVEL + 1):
        horizon, rows, before = 2**level, [], np.inf
        for buffers in range(1, MAX_BUFFERS + 1):
            starts = [quadrature_start(buffers), geometric_start(buffers, horizon, 0.3)]
            starts += [warm[buffers]] if buffers in warm else []
            y, value = fit(starts, horizon, polish=len(starts))
            if before - value < GAIN:
                break
            before, warm[buffers] = value, y
            rows.append(rounded(parameters(y)))
            loss = product(rows[-1], horizon) / np.exp(value) - 1
            if abs(loss) > GAIN / 10:
                sys.exit(f"T = 2^{level}, d = {buffers}: rounding changes the product by {loss:.1e}")
        table.append(rows)
    return table


def render(table):
    """The Rust file."""
    lines = []
    for level, rows in enumerate(table):
        lines.append(f"    // T = 2^{level}")
        if not rows:
            lines.append("    &[],")
            continue
        lines.append("    &[")
        for row in rows:
            # A no-break space keeps the two numbers of a buffer on one line.
            text = ", ".join(f"({decimal(omega)},\u00a0{decimal(e)})" for omega, e in row)
            indents = {"initial_indent": " " * 8, "subsequent_indent": " " * 10}
            lines += textwrap.wrap(f"&[{text}],", 120, break_on_hyphens=False, **indents)
        lines.append("    ],")
    return HEADER + "\n".join(lines).replace("\u00a0", " ") + "\n" + FOOTER


def read():
    """The table in the Rust file, which must be what this script would write for it."""
    text = TABLE.read_text()
    _, _, body = text.partition(HEADER)
    table = ast.literal_eval("[" + re.sub(r"//.*|&", "", body).replace("];", "]"))
    if render(table) != text:
        sys.exit(f"{TABLE} was not written by this script")
    return table


# ---- modes ----


def show(table):
    print("| T | d | Var(T) * norm(c)^2 | ratio to square-root Toeplitz | largest kappa |\n|---|---|---|---|---|")
    for level, rows in enumerate(table):
        for buffers, row in enumerate(rows, 1):
            value = product(row, 2**level)
            ratio, kappa = value / square_root_product(level), sensitivity(row)[0][1]
            print(f"| 2^{level} | {buffers} | {value:.6f} | {ratio:.9f} | {kappa:.4f} |")


def row_faults(row, buffers):
    """What the sensitivity and the sampler rely on."""
    omega, e = np.array(row).T
    if len(row) != buffers:
        yield f"there are {len(row)} buffers"
    elif not (np.all(omega > 0) and np.all(np.diff(e) < 0) and e[-1] > 0 and e[0] < 1):
        yield "omega must be positive, and 1 - lambda descending in (0, 1)"
    elif not sensitivity(row)[0].max() < 1:
        yield "the largest kappa is not below 1"


def descent_faults(rows, level):
    """Rows from which a step of Newton's method goes down."""
    for buffers, row in enumerate(rows, 1):
        y = search_point(row)
        gained = log_product(y, 2**level)[0] - newton(y, 2**level, most=1)[1]
        if gained > GAIN:
            yield f"T = 2^{level}, d = {buffers}: {gained:.1e} above a local optimum, relative"


def optimum_faults(rows, level, wanted, rng):
    """Rows whose product is above one found independently, and buffers that should not have been left out."""
    horizon = 2**level
    for buffers in wanted:
        row = rows[min(buffers, len(rows)) - 1]
        excess = product(row, horizon) / np.exp(fit(other_starts(buffers, horizon, rng), horizon)[1]) - 1
        if excess > TOLERANCE:
            yield f"T = 2^{level}, d = {buffers}: {excess:.1e} above the optimum, relative"


def sum_faults(rows, level):
    """Closed forms that are not the sums they stand for."""
    for buffers, row in enumerate(rows, 1):
        error = np.max(np.abs(np.divide(factors(row, 2**level), explicit_factors(row, 2**level)) - 1))
        if error > 1e-12:
            yield f"T = 2^{level}, d = {buffers}: closed forms are off by {error:.1e}, relative"


def golden_faults(table):
    for level, ratios in GOLDEN_RATIOS.items():
        for buffers, ratio in enumerate(ratios, 3):
            row = table[level][min(buffers, len(table[level])) - 1]
            measured = product(row, 2**level) / square_root_product(level)
            if abs(measured - ratio) > 0.002:
                yield f"T = 2^{level}, d = {buffers}: ratio {measured:.4f}, expected {ratio}"
    level, buffers, expected = GOLDEN_PRODUCT
    measured = product(table[level][buffers - 1], 2**level)
    if abs(measured - expected) > 0.02:
        yield f"T = 2^{level}, d = {buffers}: product {measured:.4f}, expected {expected}"
    exact = (1 + (np.cumprod(1 - 0.5 / np.arange(1, 2**16)) ** 2).sum()) ** 2
    if abs(square_root_product(16) / exact - 1) > 1e-10:
        yield "the series of the square-root Toeplitz mechanism is off"


def check(table, everything):
    """All faults; `everything` searches anew for all rows."""
    rng = np.random.default_rng(1)
    if len(table) != MAX_LEVEL + 1 or table[0] or not all(0 < len(rows) <= MAX_BUFFERS for rows in table[1:]):
        return ["the table does not have the rows it should have"]
    faults = [
        f"T = 2^{level}, d = {buffers}: {fault}"
        for level, rows in enumerate(table)
        for buffers, row in enumerate(rows, 1)
        for fault in row_faults(row, buffers)
    ]
    if faults:
        return faults
    for level, rows in enumerate(table[1:], 1):
        products = [product(row, 2**level) for row in rows]
        if any(after > before * (1 - 0.9 * GAIN) for before, after in itertools.pairwise(products)):
            faults.append(f"T = 2^{level}: a buffer gains nothing")
        faults += descent_faults(rows, level)
        if level <= 12 and (everything or level % 4 == 0):
            faults += sum_faults(rows, level)
        # Of one level in six, some numbers of buffers; of each, the first that it leaves out.
        wanted = {len(rows) + 1} if len(rows) < MAX_BUFFERS else set()
        if everything:
            wanted.update(range(1, len(rows) + 1))
        elif level % 6 == 2:
            wanted.update(range(1 + level % 3, len(rows) + 1, 3))
        faults += optimum_faults(rows, level, sorted(wanted), rng)
    return faults + list(golden_faults(table))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument("--show", action="store_true", help="what happens without arguments")
    modes.add_argument("--write", action="store_true")
    modes.add_argument("--check", action="store_true")
    parser.add_argument("--all", action="store_true", help="with --check: all rows")
    arguments = parser.parse_args()
    if arguments.all and not arguments.check:
        parser.error("--all goes with --check")
    if arguments.write:
        TABLE.write_text(render(compute()))
    elif arguments.check:
        faults = check(read(), arguments.all)
        if faults:
            sys.exit("\n".join(faults))
    else:
        show(read())


if __name__ == "__main__":
    main()
