"""Updates and reads of a durable store, on a disk and in memory, beside the same structure without one."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from _report import ROOT

import fastgame as fg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _report import Times

BATCH = np.arange(1000)
MEMORY = Path("/dev/shm")


def read(structure: fg.CountSketch, keys: int | np.ndarray) -> None:
    """One read, and the step after it."""
    structure.estimate(keys)
    structure.advance()


WORK = {
    "one update": lambda structure: structure.update(7),
    "an update of 1000": lambda structure: structure.update(BATCH),
    "one read, and a step": lambda structure: read(structure, 7),
    "a read of 1000, and a step": lambda structure: read(structure, BATCH),
}


@pytest.fixture
def sketches() -> Iterator[dict[str, fg.CountSketch]]:
    """The same sketch without a store, and in stores of both modes of each place."""
    given = {"width": 1024, "depth": 5, "hash_seed": 1, "horizon": 1 << 40, "privacy": fg.Zcdp(0.5)}
    disk = ROOT / "build" / "bench"
    disk.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        made = {"no store": fg.CountSketch(**given)}
        for place, folder in (("disk", disk), ("memory", MEMORY)):
            if not folder.is_dir():
                continue
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder)))
            for sync in ("reads", "always"):
                store = fg.open(path / f"{sync}.fg", fg.CountSketch, sync=sync, **given)
                made[f"{sync}, {place}"] = stack.enter_context(store)
        yield made


@pytest.mark.parametrize("work", WORK)
@pytest.mark.benchmark(group="durable store")
def test_stores(turns: Callable[..., Times], sketches: dict[str, fg.CountSketch], work: str) -> None:
    calls = {name: lambda one=one: WORK[work](one) for name, one in sketches.items()}
    # Syncs of a disk take milliseconds, other calls microseconds.
    turns(calls, rounds=9, loops={name: 10 if name.endswith("disk") else 200 for name in calls})
