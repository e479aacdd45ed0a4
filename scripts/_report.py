"""What scripts and benches share that measure times and write what they found into docs/.

Calls that are compared take turns: a round runs each of them once, so that a clock that drifts and a busy machine slow
all of them. A ratio is the median over the rounds of the ratio within a round.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
END = "<!-- end -->"


class Times:
    """Seconds of calls that took turns: a list for each, an element a round."""

    def __init__(self, seconds: Mapping[str, Sequence[float]]) -> None:
        self.seconds = {name: list(values) for name, values in seconds.items()}
        if len({len(values) for values in self.seconds.values()}) > 1:
            raise ValueError("calls that take turns have as many rounds each")

    def ns(self, name: str, count: int = 1) -> float:
        """The median of a call, in nanoseconds; of one of `count` things that it did."""
        return 1e9 * statistics.median(self.seconds[name]) / count

    def ratio(self, name: str, to: str) -> float:
        """How many times as long as another a call takes."""
        return statistics.median(x / y for x, y in zip(self.seconds[name], self.seconds[to], strict=True))

    def with_sum(self, name: str, shares: Mapping[str, float]) -> Times:
        """With one more: so much of some calls, added within each round."""
        rounds = zip(*(self.seconds[one] for one in shares), strict=True)
        total = [sum(share * second for share, second in zip(shares.values(), each, strict=True)) for each in rounds]
        return Times({**self.seconds, name: total})


def one_round(
    calls: Mapping[str, Callable[[], object]], seconds: dict[str, list[float]], loops: int | Mapping[str, int] = 1
) -> None:
    """Runs each call `loops` times, or as often as stands there for it, in the order given; adds the seconds of one."""
    for name, call in calls.items():
        times = loops if isinstance(loops, int) else loops[name]
        start = perf_counter()
        for _ in range(times):
            call()
        seconds.setdefault(name, []).append((perf_counter() - start) / times)


def in_turns(
    calls: Mapping[str, Callable[[], object]],
    rounds: int,
    before: Callable[[], object] = lambda: None,
    loops: int | Mapping[str, int] = 1,
    warm: int = 1,
) -> Times:
    """The times of calls; `before` runs once a round and is not timed, `warm` rounds in front do not count."""
    seconds: dict[str, list[float]] = {}
    for _ in range(warm + rounds):
        before()
        one_round(calls, seconds, loops)
    return Times({name: values[warm:] for name, values in seconds.items()})


# --- Results of benches


@dataclass
class Bench:
    """One bench whose contenders took turns."""

    name: str
    about: dict[str, Any]
    times: Times
    #: What a call did so many of: keys, reads, rows.
    count: int = 1
    #: What else a bench found.
    found: dict[str, Any] = field(default_factory=dict)

    def ns(self, name: str) -> float:
        """Of one of `count`."""
        return self.times.ns(name, self.count)

    def ratio(self, name: str, to: str) -> float:
        """As `Times.ratio`."""
        return self.times.ratio(name, to)


class Benches:
    """All benches of some files with results that took turns."""

    def __init__(self, benches: Iterable[Bench]) -> None:
        self.all = list(benches)

    @classmethod
    def read(cls, *paths: Path) -> Benches:
        """From JSON of pytest-benchmark, or what has its shape: benches/rust writes the same."""
        return cls(
            Bench(
                name=one["name"].partition("[")[0],
                about=one.get("params") or {},
                times=Times(info["seconds"]),
                count=info.get("count", 1),
                found={key: value for key, value in info.items() if key not in {"seconds", "count"}},
            )
            for path in paths
            for one in json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
            if "seconds" in (info := one["extra_info"])
        )

    def of(self, name: str, **about: object) -> list[Bench]:
        """Those of a test, with these parameters, in the order of the run."""
        return [one for one in self.all if one.name == name and about.items() <= one.about.items()]

    def one(self, name: str, **about: object) -> Bench:
        """The only one of them."""
        found = self.of(name, **about)
        if len(found) != 1:
            raise LookupError(f"{len(found)} benches are {name} with {about}: run make bench")
        return found[0]


def target() -> Path:
    """Where cargo puts what it builds, and criterion what it found."""
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def criterion(group: str, name: str, *, root: Path | None = None) -> float:
    """The median of a bench of the last run, in nanoseconds an iteration."""
    # Criterion's own rule for names of folders.
    place = [part.translate(str.maketrans('?"/\\*<>:|^', "_" * 10)) for part in (group, *name.split("/"))]
    path = (root or target() / "criterion").joinpath(*place, "new", "estimates.json")
    try:
        return float(json.loads(path.read_text(encoding="utf-8"))["median"]["point_estimate"])
    except FileNotFoundError:
        sys.exit(f"there is no {path}: run cargo bench -p fastgame-bench")


# --- Text


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In markdown; numbers in all columns but the first."""
    lines = [head, ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def processors() -> list[str]:
    """What the kernel calls each of them."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]


def processor() -> str:
    """The name of one of them."""
    return next(iter(processors()), platform.processor() or platform.machine())


def machine(*packages: str) -> str:
    """What times are from: the processor, Python, and packages that take part."""
    cores = len(processors())
    model = f"{cores} cores of {processor()}" if cores else processor()
    return ", ".join([model, f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in packages)])


def power(number: int) -> str:
    """A power of two as TeX."""
    return f"2^{{{number.bit_length() - 1}}}"


def replaced(page: str, begin: str, text: str) -> str:
    """A page with `text` between the markers; `begin` is the whole first one."""
    before, found, rest = page.partition(begin)
    _, end, after = rest.partition(END)
    if not found or not end:
        raise LookupError(f"there is no block {begin} ... {END}")
    return f"{before}{begin}\n\n{text.strip()}\n\n{END}{after}"


def write_block(path: Path, begin: str, text: str) -> None:
    """Puts a text between the markers of a page."""
    try:
        path.write_text(replaced(path.read_text(encoding="utf-8"), begin, text), encoding="utf-8")
    except LookupError as error:
        sys.exit(f"{path}: {error}")
