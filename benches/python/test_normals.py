"""Random words and normals: the generator with each of its back ends, beside numpy's.

The crate chooses a back end when it runs; the other builds are forced to use one. That the first is as fast as the
fastest of them shows that it is the vectorised one that runs. Every Rust build is a process that waits for its turn.
"""

from __future__ import annotations

import platform
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from bench_check import build

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _report import Times

#: A turn takes milliseconds, beside which the pipe is nothing.
COUNT = 1 << 21


def back_ends() -> list[str]:
    """Those that this machine can run."""
    if platform.machine() not in {"x86_64", "AMD64"}:
        return ["soft"]
    info = Path("/proc/cpuinfo")
    has_avx2 = info.exists() and " avx2 " in info.read_text()
    return ["soft", "sse2", "avx2"] if has_avx2 else ["soft", "sse2"]


@pytest.fixture(scope="module")
def builds() -> dict[str, Path]:
    """A driver for each back end, and the one that chooses."""
    needed = {"avx2": " -C target-feature=+avx2"}
    forced = {backend: build(backend, features=needed.get(backend, "")) for backend in back_ends()}
    return {"ChaCha12": build(None), **{f"ChaCha12, {backend}": path for backend, path in forced.items()}}


@pytest.fixture
def drivers(builds: dict[str, Path]) -> Iterator[Callable[[str], dict[str, Callable[[], object]]]]:
    """Calls that let each driver do a path once."""
    with ExitStack() as stack:

        def start(path: str) -> dict[str, Callable[[], object]]:
            def call(binary: Path) -> Callable[[], object]:
                pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
                process = stack.enter_context(subprocess.Popen([binary, path, "-"], text=True, bufsize=1, **pipes))

                def run() -> None:
                    process.stdin.write(f"{COUNT}\n")
                    assert process.stdout.readline() == "done\n"

                return run

            return {name: call(binary) for name, binary in builds.items()}

        yield start


@pytest.mark.benchmark(group="random words")
def test_words(turns: Callable[..., Times], drivers: Callable[[str], dict[str, Callable[[], object]]]) -> None:
    turns({**drivers("words"), **numpys("integers")}, count=COUNT, rounds=25)


@pytest.mark.benchmark(group="normals")
def test_normals(turns: Callable[..., Times], drivers: Callable[[str], dict[str, Callable[[], object]]]) -> None:
    turns({**drivers("normals"), **numpys("standard_normal")}, count=COUNT, rounds=25)


def numpys(what: str) -> dict[str, Callable[[], object]]:
    """As many from numpy's generators, in one call."""
    return {
        f"numpy {one.__name__}": numpy_call(np.random.Generator(one(1)), what)
        for one in (np.random.PCG64, np.random.Philox)
    }


def numpy_call(rng: np.random.Generator, what: str) -> Callable[[], object]:
    """One of them."""
    if what == "integers":
        # In parts that stay in a cache, as a new array of all would be mostly the operating system's work.
        part = 1 << 15
        return lambda: [rng.bit_generator.random_raw(part) for _ in range(COUNT // part)]
    into = np.empty(COUNT)
    return lambda: rng.standard_normal(out=into)
