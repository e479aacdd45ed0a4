"""Processes that are killed while they use a store, and what must be true of it when it is opened again.

A child works on a store and says over a pipe what it is about to do, and what it was given. It is killed at a random
moment. The parent knows then which calls were acknowledged and every answer that was ever seen, opens the store, and
compares:

* the step, whether it was read, and the generation are those of the acknowledged calls, or of one call more: the one
  under way;
* every answer that was seen at the present step is repeated, bit by bit;
* the counters are those of the acknowledged calls, with the call under way in whole or not at all. The noise is so
  small that a release shows them.

Then the next child goes on from there. Used by test_crash.py, and by scripts/reliability.py for docs/reliability.md.
"""

from __future__ import annotations

import collections
import hashlib
import json
import os
import random
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fastgame as fg

#: Elements that are updated and read.
KEYS = 6
#: The cells of a vector whose journal soon is longer than 1 MiB, so that checkpoints are made without being asked for.
LARGE = 12_000

#: An element is so many units: the noise is far below them under all of these budgets (`shows`).
UNITS = 128
MECHANISMS: dict[str, dict[str, Any]] = {
    "tree": {"privacy": fg.Zcdp(1e9)},
    "tree-paper": {"privacy": fg.Zcdp(1e9), "mechanism": "tree-paper"},
    "blt": {"privacy": fg.Zcdp(1e9), "mechanism": "blt"},
    "laplace": {"privacy": fg.PureDp(700.0), "horizon": 1024},
}
#: Under these hash seeds the elements do not meet in any row (`exact` sees to it).
STRUCTURES: dict[str, tuple[Any, dict[str, Any]]] = {
    "counter": (fg.ContinualCounter, {}),
    "vector": (fg.ContinualVector, {"size": KEYS}),
    "sketch": (fg.CountSketch, {"width": 64, "depth": 3}),
    "range": (fg.RangeCounter, {"shape": (KEYS,)}),
    "join": (fg.JoinSize, {"width": 64, "depth": 3}),
    "large vector": (fg.ContinualVector, {"size": LARGE, "max_norm": LARGE**0.5}),
}
HORIZON = 2**20

Counts = list[int]
#: A call: its name and its argument, as JSON.
Call = list[Any]


def parameters(structure: str, mechanism: str) -> dict[str, Any]:
    """All parameters of a structure of `STRUCTURES` under a mechanism of `MECHANISMS`."""
    kind, own = STRUCTURES[structure]
    given = {"horizon": HORIZON, **own, **MECHANISMS[mechanism]}
    if kind in (fg.CountSketch, fg.RangeCounter, fg.JoinSize):
        given["hash_seed"] = exact(structure)
    return given


_EXACT: dict[str, int] = {}


def exact(structure: str) -> int:
    """The first hash seed under which elements do not meet: then the counters can be told from a release."""
    if structure not in _EXACT:
        kind, own = STRUCTURES[structure]
        counts = [3 + 5 * key for key in range(2 * KEYS)]
        for seed in range(1000):
            one = kind(horizon=2, privacy=fg.Zcdp(1e9), hash_seed=seed, **own)
            for key, count in enumerate(counts):
                for _ in range(count):
                    update(one, [key] if isinstance(one, fg.JoinSize) else [key % KEYS])
            if shows(one, None, answer(one, None), folded(one, counts)):
                _EXACT[structure] = seed
                break
    return _EXACT[structure]


def folded(structure: Any, counts: Counts) -> Counts:
    """Counts of elements; a join has twice as many, those of the left side first."""
    if isinstance(structure, fg.JoinSize):
        return counts
    return [a + b for a, b in zip(counts[:KEYS], counts[KEYS:], strict=True)]


def size(structure: str) -> int:
    return {"join": 2 * KEYS, "large vector": LARGE}.get(structure, KEYS)


def units(structure: Any) -> int:
    """What one element adds."""
    return 1 if getattr(structure, "size", 0) == LARGE else UNITS


def update(structure: Any, elements: list[int]) -> None:
    """Adds its units to each of some elements, in one call, of which a part would show."""
    elements = [element for element in elements for _ in range(units(structure))]
    if isinstance(structure, fg.ContinualCounter):
        structure.update([1] * len(elements))
    elif isinstance(structure, fg.JoinSize):
        side = structure.left if elements[0] < KEYS else structure.right
        side.update([element % KEYS for element in elements])
    elif isinstance(structure, fg.RangeCounter):
        structure.insert(elements)
    elif isinstance(structure, fg.ContinualVector) and structure.size == KEYS:
        structure.update_rows(np.eye(KEYS)[elements])
    else:
        structure.update(elements)


def expected(structure: Any, query: list[int] | None, counts: Counts) -> Any:
    """What a release without noise is, divided by what an element adds."""
    if isinstance(structure, fg.ContinualCounter):
        return sum(counts)
    if isinstance(structure, fg.JoinSize):
        return sum(a * b for a, b in zip(counts[:KEYS], counts[KEYS:], strict=True))
    return np.asarray(counts)[slice(None) if query is None else query]


def answer(structure: Any, query: list[int] | None) -> Any:
    """A release: of all, or of some elements."""
    if isinstance(structure, fg.ContinualCounter):
        return structure.release()
    if isinstance(structure, fg.JoinSize):
        return structure.estimate()
    if isinstance(structure, fg.RangeCounter):
        if query is None:
            return structure.grid(KEYS).value
        return structure.count(np.array(query), np.array(query) + 1)
    if isinstance(structure, fg.CountSketch):
        return structure.estimate(range(KEYS) if query is None else query)
    return structure.release(query)


def shows(structure: Any, query: list[int] | None, released: Any, counts: Counts) -> bool:
    """Whether a release is that of these counts of elements."""
    unit = units(structure) ** (2 if isinstance(structure, fg.JoinSize) else 1)
    found = np.abs(np.asarray(released) / unit - expected(structure, query, counts))
    return bool(np.all(found < 0.4))


def shown(released: Any) -> Any:
    """Every bit of an answer, as JSON."""
    data = np.asarray(released, dtype=np.float64).tobytes()
    return data.hex() if len(data) <= 512 else hashlib.sha256(data).hexdigest()


def call(structure: Any, one: Call) -> Any:
    """Does what `next_call` has chosen."""
    name, argument = one
    if name == "update":
        update(structure, argument)
    elif name == "advance":
        structure.advance()
    elif name == "checkpoint":
        structure.checkpoint()
    elif name == "sync":
        structure.sync()
    else:
        return shown(answer(structure, argument))
    return None


def next_call(structure: str, chance: random.Random, sealed: bool) -> Call:
    """What to do next; a step that was read is at times read again, then left."""
    draw = chance.random()
    if draw < 0.18:
        return ["checkpoint" if draw < 0.14 else "sync", None]
    if draw < (0.5 if sealed else 0.4):
        is_whole = structure in ("counter", "join") or chance.random() < 0.4
        number = size(structure)
        return ["read", None if is_whole else sorted(chance.sample(range(number), chance.randint(1, 4)))]
    if sealed or draw < 0.45:
        return ["advance", None]
    return ["update", next_update(structure, chance)]


def next_update(structure: str, chance: random.Random) -> list[int]:
    if structure == "large vector":
        # Half of the cells, so that a part of a call would show, and that the journal grows.
        start = chance.randrange(LARGE // 2)
        return list(range(start, start + LARGE // 2))
    start = KEYS * chance.randrange(2) if structure == "join" else 0
    return [start + chance.randrange(KEYS) for _ in range(chance.randint(1, 8))]


def work(path: Path, structure: str, mechanism: str, sync: Any, seed: int, say: Callable[[Any], None]) -> None:
    """What a child does until it is killed."""
    chance = random.Random(seed)
    kind = STRUCTURES[structure][0]
    say(["begin", "open", None])
    store = fg.open(path, kind, sync=sync, **parameters(structure, mechanism))
    say(["end", store.generation, store.now, store.sealed, None])
    while True:
        one = next_call(structure, chance, store.sealed)
        # A long list is a range.
        said = [one[0], [one[1][0], one[1][-1] + 1]] if structure == "large vector" and one[0] == "update" else one
        say(["begin", *said])
        found = call(store, one)
        say(["end", store.generation, store.now, store.sealed, found])


def reopened(path: Path, **options: Any) -> Any:
    """What a file keeps. (To type checkers: anything.)"""
    return fg.open(path, **options)


class Broken(AssertionError):
    """A store that is not as it must be."""


class Chain:
    """A store that is used by children one after the other, each of which is killed."""

    def __init__(self, path: Path, structure: str, mechanism: str, sync: str, seed: int) -> None:
        self.path, self.structure, self.mechanism, self.sync = path, structure, mechanism, sync
        self.chance = random.Random(seed)
        self.counts: Counts = [0] * size(structure)
        self.generation, self.now, self.sealed = 0, 1, False
        #: What was answered at the present step.
        self.answers: list[tuple[list[int] | None, Any]] = []
        self.made = False
        self.tally: collections.Counter[str] = collections.Counter()

    def run(self, kills: int) -> collections.Counter[str]:
        for _ in range(kills):
            self.kill_one()
        return self.tally

    def kill_one(self) -> None:
        """Starts a child, kills it at a random moment, and looks at what it has left."""
        receiving, sending = os.pipe()
        seed = self.chance.getrandbits(32)
        child = os.fork()
        if child == 0:
            self._be_a_child(receiving, sending, seed)
        os.close(sending)
        lines = self._kill(child, receiving)
        under_way: Call | None = None
        for line in lines:
            if line[0] == "failed":
                raise Broken(line[1])
            if line[0] == "begin":
                under_way = line[1:]
            else:
                assert under_way is not None
                self._acknowledge(under_way, line)
                under_way = None
        self.tally["kills"] += 1
        self.tally[f"killed during {under_way[0] if under_way else 'nothing'}"] += 1
        self._check(under_way)

    def _be_a_child(self, receiving: int, sending: int, seed: int) -> None:
        signal.alarm(60)
        try:
            os.close(receiving)

            def say(line: Any) -> None:
                data = json.dumps(line).encode() + b"\n"
                while data:
                    data = data[os.write(sending, data) :]

            try:
                work(self.path, self.structure, self.mechanism, self.sync, seed, say)
            except BaseException:
                say(["failed", traceback.format_exc()])
        finally:
            os._exit(1)

    def _kill(self, child: int, receiving: int) -> list[Any]:
        """What a child has said until it was killed, after a random time from its start or from one of its words."""
        words = self.chance.choice([0, 0, 1, 2, 3, 5, 9, 17, 33])
        # As long as a call takes at most, or about.
        deadline: float | None = None
        text = b""
        last = time.monotonic() + 60
        while True:
            now = time.monotonic()
            if deadline is None and text.count(b"\n") >= words:
                deadline = now + self.chance.random() ** 2 * (0.03 if words else 0.06)
            if (deadline is not None and now >= deadline) or now > last:
                break
            ready, _, _ = select.select([receiving], [], [], 1.0 if deadline is None else deadline - now)
            if ready:
                got = os.read(receiving, 1 << 16)
                if not got:
                    break
                text += got
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(receiving, "rb") as pipe:
            text += pipe.read()
        # The last line may be cut off: it was not said.
        return [json.loads(line) for line in text.split(b"\n")[:-1]]

    def _acknowledge(self, one: Call, line: Any) -> None:
        _, generation, now, sealed, found = line
        self.tally["calls acknowledged"] += 1
        name, argument = one
        before = (self.generation, self.now, self.sealed)
        if name == "open":
            self.made = True
            if (generation, now, sealed) != before:
                raise Broken(f"opened at {(generation, now, sealed)}, left at {before}")
        elif name == "update":
            self._add(self.counts, argument)
            self.generation += 1
        elif name == "advance":
            self.now, self.sealed, self.answers = self.now + 1, False, []
            self.generation += 1
        elif name == "read":
            self.tally["answers"] += 1
            self.generation, self.sealed = generation, True
            if generation - before[0] not in (0, 1):
                raise Broken(f"a read took the generation from {before[0]} to {generation}")
            if (argument, found) not in self.answers:
                if any(query == argument for query, _ in self.answers):
                    raise Broken("a child was given another answer at one step")
                self.answers.append((argument, found))
        if (generation, now, sealed) != (self.generation, self.now, self.sealed):
            raise Broken(f"{one}: {(generation, now, sealed)} instead of {(self.generation, self.now, self.sealed)}")

    def _add(self, counts: Counts, elements: list[int]) -> None:
        for element in range(*elements) if self.structure == "large vector" else elements:
            counts[element] += 1

    def _check(self, under_way: Call | None) -> None:
        """Opens what was left, compares, and at times reads on."""
        drafts = len([name for name in os.listdir(self.path.parent) if name.endswith(".draft")])
        self.tally["kills that left a draft of a checkpoint"] += drafts > 0
        if not self.path.exists():
            if self.made:
                raise Broken("the store is gone")
            self.tally["kills before there was a file"] += 1
            return
        lost = fg.inspect(self.path).lost
        self.tally["kills that left a part of a call"] += lost > 0
        kind: Any = STRUCTURES[self.structure][0]
        given = parameters(self.structure, self.mechanism) if self.chance.random() < 0.5 else {}
        options: Any = {"sync": self.sync, "expect_generation": self.generation}
        store = fg.open(self.path, kind, **options, **given)
        self.made = True
        try:
            self._compare(store, under_way)
        finally:
            if self.chance.random() < 0.5:
                store.close()
            del store
        left = [name for name in os.listdir(self.path.parent) if name.endswith(".draft")]
        if left:
            raise Broken(f"drafts are left: {left}")

    def _compare(self, store: Any, under_way: Call | None) -> None:
        found = (store.generation, store.now, store.sealed)
        name, argument = under_way or ("nothing", None)
        after = (self.generation + 1, self.now, self.sealed)
        if name == "advance":
            after = (self.generation + 1, self.now + 1, False)
        elif name == "read":
            after = (self.generation + 1, self.now, True)
        if found == after and name in ("update", "advance", "read"):
            self.tally["calls under way that are there in whole"] += 1
            if name == "update":
                self._add(self.counts, argument or [])
            elif name == "advance":
                self.answers = []
            self.generation, self.now, self.sealed = found
        elif found == (self.generation, self.now, self.sealed):
            self.tally["calls under way that are not there"] += name in ("update", "advance", "read")
        else:
            raise Broken(f"found {found}, left {(self.generation, self.now, self.sealed)}, during {under_way}")
        for query, was in self.answers:
            self.tally["answers repeated"] += 1
            if shown(answer(store, query)) != was:
                raise Broken(f"another answer to {query} at step {self.now}")
        if self.sealed or self.chance.random() < 0.5:
            released = answer(store, None)
            if not shows(store, None, released, self.counts):
                raise Broken(f"counters are not those that were acknowledged, during {under_way}")
            if (None, shown(released)) not in self.answers:
                self.answers.append((None, shown(released)))
            self.tally["counters compared"] += 1
        self.generation, self.sealed = store.generation, store.sealed


#: Every structure under every mechanism, with both ways to sync; and one with checkpoints of its own accord.
CHAINS = [
    *((structure, mechanism) for structure in STRUCTURES if structure != "large vector" for mechanism in MECHANISMS),
    ("large vector", "tree"),
    ("large vector", "blt"),
]


def run_chains(folder: Path, kills: int, chains: Any = None, seed: int = 1) -> collections.Counter[str]:
    """Chains of so many kills each; `chains` are structure, mechanism and sync, all of them by default."""
    if chains is None:
        chains = [(*chain, sync) for chain in CHAINS for sync in ("always", "reads")]
    total: collections.Counter[str] = collections.Counter()
    for number, (structure, mechanism, sync) in enumerate(chains):
        place = folder / f"{number}"
        place.mkdir()
        chain = Chain(place / "store.fg", structure, mechanism, sync, seed * 1000 + number)
        try:
            total += chain.run(kills)
        except BaseException as error:
            print(f"{structure}, {mechanism}, {sync}, seed {seed * 1000 + number}: {error}", file=sys.stderr)
            raise
        total["chains"] += 1
    return total


def table(tally: collections.Counter[str]) -> str:
    """What happened, a line a row."""
    width = max(map(len, tally))
    return "\n".join(f"{name:{width}}  {tally[name]:6,}" for name in sorted(tally))
