"""The sensitivity factor of the Laplace tree against a linear program, which does not assume that it is integral."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import optimize, sparse

import fastgame as fg

LEVELS = range(7)


def path_matrix(levels: int) -> sparse.csr_matrix:
    """One row a leaf, one column a node: ones on the path from the root to the leaf."""
    leaves = np.arange(1 << levels)
    columns = [(1 << level) - 1 + (leaves >> (levels - level)) for level in range(levels + 1)]
    rows = np.tile(leaves, levels + 1)
    shape = (1 << levels, (2 << levels) - 1)
    return sparse.csr_matrix((np.ones(rows.size), (rows, np.concatenate(columns))), shape=shape)


def least_shift(paths: sparse.csr_matrix, shift: npt.NDArray[np.float64]) -> float:
    """The least sum of absolute values of real changes of the node variables that make this shift of the leaves."""
    # r = up - down with both nonnegative.
    found = optimize.linprog(
        np.ones(2 * paths.shape[1]), A_eq=sparse.hstack([paths, -paths]), b_eq=shift, bounds=(0, None), method="highs"
    )
    assert found.success, found.message
    return float(found.fun)


def worst(levels: int, protect: str) -> float:
    """The largest of all shifts that one unit of norm one can make."""
    paths, steps = path_matrix(levels), np.arange(1 << levels)
    units = [(start, steps.size) for start in range(steps.size)]
    if protect == "lifetime":
        units += [(start, end) for end in range(steps.size) for start in range(end)]
    if levels == 6:
        # Some seconds for all of them: every boundary, and of the intervals those that meet at the root.
        units = [(start, end) for start, end in units if end == steps.size or start < steps.size // 2 <= end]
    return max(least_shift(paths, ((start <= steps) & (steps < end)).astype(float)) for start, end in units)


def formula(levels: int, protect: str) -> int:
    return levels // 2 + 1 if protect == "update" else max(1, levels)


def cases() -> list[Any]:
    """All heights and units; there are many intervals of long trees."""
    slow = {(5, "lifetime"), (6, "lifetime")}
    pairs = [(levels, protect) for levels in LEVELS for protect in ("update", "lifetime")]
    return [pytest.param(*pair, marks=[pytest.mark.slow] if pair in slow else []) for pair in pairs]


@pytest.mark.parametrize(("levels", "protect"), cases())
def test_the_formula_is_the_worst_of_all_linear_programs(levels: int, protect: str) -> None:
    assert worst(levels, protect) == pytest.approx(formula(levels, protect), abs=1e-7)


@pytest.mark.parametrize("protect", ["update", "lifetime"])
@pytest.mark.parametrize("levels", [*LEVELS, 14, 20, 62])
def test_the_noise_of_a_structure_has_that_factor(levels: int, protect: Any) -> None:
    epsilon, max_weight, contributions = 0.3, 7, 2
    plan = fg.ContinualCounter.plan(
        max_weight=max_weight,
        horizon=1 << levels,
        privacy=fg.PureDp(epsilon),
        protect=protect,
        contributions=contributions,
    )
    factor = plan.noise_std * epsilon / (max_weight * contributions) / math.sqrt(2 * (levels + 1))
    # Rounded up, so never below; by no more than a part in 1e13.
    expected = formula(levels, protect)
    assert expected * (1 - 1e-15) <= factor <= expected * (1 + 1e-13)
