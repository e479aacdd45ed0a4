"""How far off many releases may be at once: intervals that hold for all of them together.

The union bound: each of `releases` answers may be off by more with probability `(1 - confidence) / releases`.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb
from typing import Any

from fastgame._arguments import number, shown
from fastgame._core import ContinualCounter, Zcdp

#: The most that a float tells from 1.
_SUREST = 1.0 - 2.0**-53


def confidence_of(given: Any) -> float:
    """A probability that is neither 0 nor 1."""
    confidence = number(given, "confidence")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be more than 0 and less than 1; {shown(given)} was given")
    return confidence


def quantile(structure: Any, confidence: float = 0.95, releases: int = 1) -> float:
    """How many standard deviations the errors of so many cells stay within, all of them together.

    Sums of few Laplace variables have heavier tails than the normal law: at a horizon of 1, 1.96 of them cover 93.8 %.
    """
    # The same at every step, and for every size and bound.
    plan = ContinualCounter.plan(horizon=structure.horizon, privacy=structure.privacy)
    return plan.error(confidence, releases) / plan.std()


def quantile_of_sums(structure: Any, confidence: float, releases: int) -> float:
    """As `quantile`, of sums of cells: their law lies between that of a cell and the normal one."""
    normal = ContinualCounter.plan(horizon=1, privacy=Zcdp(rho=1.0))
    return max(quantile(structure, confidence, releases), normal.error(confidence, releases) / normal.std())


def estimates(sketch: Any, keys: Any, confidence: float, releases: int) -> tuple[Any, Any]:
    """Estimates of a sketch, and half the width of the interval of each.

    The released cells are a sample of what stands beside a key in a cell. So the median of `depth` further ones is
    beyond the k-th largest with a probability that is known, whatever their law, and the smallest cell is taken for
    which it is small enough. Where even the largest cell is too little it is taken twice: an estimate is never beyond
    it, so the truth would have to be, and be hidden in all of its rows.
    """
    tail, depth, cells = (1.0 - confidence) / releases, sketch.depth, sketch.width * sketch.depth
    place = _place(tail, depth, cells)
    # The confidence for which the sketch takes this cell. It sees to it that noise alone stays within, too.
    asked = 1.0 - min(tail, _median_tail(depth, (max(place, 1) - 0.5) / cells))
    value, _, upper = sketch.estimate(keys, confidence=min(asked, _SUREST))
    return value, (upper - value) * (1 if place else 2)


@lru_cache(maxsize=64)
def _place(tail: float, depth: int, cells: int) -> int:
    """The last place of the cells, the largest being at 1, that is `_beyond` with probability `tail`; 0 if none is."""
    low, high = 0, cells
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if _beyond(middle, depth, cells) <= tail else (low, middle - 1)
    return low


def _beyond(place: int, depth: int, cells: int) -> float:
    """With what probability the median of `depth` further values is beyond that place in order of `cells` alike."""
    most = depth // 2
    # So many of the further ones are beyond; each is on either side with one half.
    ways = sum(
        comb(place + beyond - 1, beyond)
        * comb(cells - place + depth - beyond, depth - beyond)
        * sum(comb(beyond, side) for side in range(most + 1, beyond + 1))
        << (depth + 1 - beyond)
        for beyond in range(most + 1, depth + 1)
    )
    return ways / (comb(cells + depth, depth) << depth)


def _median_tail(depth: int, tail: float) -> float:
    """With what probability the median of `depth` values is beyond what one is beyond with probability `tail`."""
    half = tail / 2
    return 2 * sum(comb(depth, k) * half**k * (1 - half) ** (depth - k) for k in range(depth // 2 + 1, depth + 1))
