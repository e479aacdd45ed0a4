#!/usr/bin/env python3
"""Counts the instructions of hot paths under callgrind and compares them with checked-in values.

    python scripts/bench_check.py            # make bench-check: fails beyond 3 % of benches/instructions.json
    python scripts/bench_check.py --accept   # make bench-accept: writes that file
    python scripts/bench_check.py --profile batch/random/62    # which functions the instructions of a path are in

Every path runs twice with the same set-up and different numbers of operations; the difference, divided by the number
of operations, is what one costs. One back end of the ChaCha generator is forced, so that the machine's vector
instructions do not matter; the compiler and the C library do, so the file says which ones its values are from. Two
ratios hold on every machine: a read must cost the same at any horizon, and much less than redrawing its path.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import _report
from _report import ROOT

VALUES = ROOT / "benches" / "instructions.json"
TOLERANCE = 0.03
BACKEND = "sse2" if platform.machine() in {"x86_64", "AMD64"} else "soft"

ACCESSES = ("dense", "random", "sparse")

# Path -> the two numbers of operations. A pattern has 16,384 reads (sparse) or 65,536 (dense, random). `read` releases
# one cell a call, `batch` all cells of a step in one call.
RUNS: dict[str, tuple[int, int]] = {
    **{f"read/{access}/{h}": (4_096, 16_384) for access in ACCESSES for h in (16, 62)},
    "read/sparse/40": (4_096, 16_384),
    **{f"batch/{access}/62": (4_096, 16_384) for access in ACCESSES},
    "batch/sparse/40": (4_096, 16_384),
    "sweep/62": (16 << 10, 64 << 10),
    **{
        f"{mechanism}/{shape}": (16 << 10, 64 << 10) for mechanism in ("blt", "laplace") for shape in ("sweep", "batch")
    },
    "counter/62": (4_096, 16_384),
    "update/one": (4_096, 16_384),
    "update/single": (16 << 10, 64 << 10),
    "update/sparse": (16 << 10, 64 << 10),
    "update/dense": (16 << 10, 64 << 10),
    **{f"sketch/{what}": (16 << 10, 64 << 10) for what in ("update", "sweep", "look-up")},
    "level-by-level/sparse/40": (4_096, 16_384),
    **{f"floor/{access}/62": (4_096, 16_384) for access in ACCESSES},
}

# (numerator, denominator, least, most): what must hold whatever the compiler. Without limits: printed alone.
INFINITY = float("inf")
RATIOS = [
    *((f"read/{access}/62", f"read/{access}/16", 0.0, 1.2) for access in ACCESSES),
    ("level-by-level/sparse/40", "batch/sparse/40", 3.0, INFINITY),
    ("level-by-level/sparse/40", "read/sparse/40", 0.0, INFINITY),
    *(
        (f"{what}/{access}/62", f"floor/{access}/62", 0.0, INFINITY)
        for what in ("batch", "read")
        for access in ACCESSES
    ),
]


def build(backend: str | None = BACKEND, *, features: str = "") -> Path:
    """Builds the driver with one back end, or with what the crate chooses by itself. Each has a directory of its own:
    other flags rebuild everything.
    """
    flags = os.environ.get("RUSTFLAGS", "") + features
    if backend is not None:
        flags += f' --cfg chacha20_backend="{backend}"'
    target = _report.target() / {BACKEND: "bench-check", None: ""}.get(backend, f"bench-{backend}")
    command = ["cargo", "build", "--release", "--locked", "--package", "fastgame-bench", "--bin", "fastgame-bench"]
    environment = {**os.environ, "RUSTFLAGS": flags.strip(), "CARGO_TARGET_DIR": str(target)}
    subprocess.run(command, cwd=ROOT, env=environment, check=True)
    return target / "release" / "fastgame-bench"


def run(binary: Path, path: str, operations: int, out: Path) -> None:
    """Runs a path under callgrind."""
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", str(binary), path, str(operations)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


def count(binary: Path, path: str, operations: int) -> int:
    """The instructions of one run."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "out"
        run(binary, path, operations, out)
        totals = [line for line in out.read_text().splitlines() if line.startswith(("totals:", "summary:"))]
        return int(totals[-1].split()[1])


def profile(binary: Path, path: str) -> None:
    """Prints the instructions an operation of each function, without those of what it calls."""
    functions: dict[str, float] = {}
    few, many = RUNS[path]
    for operations, sign in ((few, -1), (many, 1)):
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "out"
            run(binary, path, operations, out)
            command = ["callgrind_annotate", "--threshold=100", "--auto=no", str(out)]
            lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        for line in lines:
            # The number of instructions, its share, then file, function and object.
            found = re.match(r"\s*([\d,]+) \([^)]*\)\s+[^:]*:(.*?)( \[.*)?$", line)
            if found:
                name = re.sub(r"^fastgame_core::|'\d+$", "", found[2])
                functions[name] = functions.get(name, 0.0) + sign * int(found[1].replace(",", "")) / (many - few)
    for name, instructions in sorted(functions.items(), key=lambda item: -item[1])[:16]:
        print(f"{instructions:8.1f}  {name[:110]}")


def measure(binary: Path) -> dict[str, float]:
    """Instructions an operation of every path."""
    jobs = [(path, operations) for path, pair in RUNS.items() for operations in pair]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        counts = dict(zip(jobs, pool.map(lambda job: count(binary, *job), jobs), strict=True))
    return {
        path: round((counts[path, many] - counts[path, few]) / (many - few), 2) for path, (few, many) in RUNS.items()
    }


def environment() -> dict[str, str]:
    """What values depend on beside the code."""
    rustc = subprocess.run(["rustc", "--version"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    library = " ".join(platform.libc_ver())
    return {"backend": BACKEND, "machine": platform.machine(), "rustc": rustc, "libc": library}


def ratios(measured: dict[str, float]) -> list[str]:
    """Prints the ratios; returns those that do not hold."""
    failures = []
    print(f"\n{'ratio':48} {'is':>7} {'allowed':>9}")
    for above, below, least, most in RATIOS:
        ratio = measured[above] / measured[below]
        allowed = f">= {least:g}" if least else f"<= {most:g}" if most < INFINITY else ""
        holds = least <= ratio <= most
        print(f"{f'{above} : {below}':48} {ratio:7.3f} {allowed:>9}{'' if holds else '  FAILS'}")
        if not holds:
            failures.append(f"{above} : {below} is {ratio:.3f}, allowed is {allowed}")
    return failures


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--accept", action="store_true", help="write the measured values as the expected ones")
    parser.add_argument("--profile", choices=RUNS, metavar="PATH", help="print where the instructions of a path are")
    arguments = parser.parse_args()
    accept = arguments.accept

    if shutil.which("valgrind") is None:
        print("bench-check counts instructions with valgrind, which is not installed; on Debian: apt install valgrind")
        return 1
    binary = build()
    if arguments.profile:
        profile(binary, arguments.profile)
        return 0
    print(f"Counting the instructions of {len(RUNS)} paths (about a minute) ...", flush=True)
    measured = measure(binary)
    here = environment()

    stored = json.loads(VALUES.read_text()) if VALUES.exists() else {}
    expected: dict[str, float] = stored.get("instructions", {})
    print(f"{'instructions an operation':26} {'expected':>9} {'is':>9} {'change':>8}")
    failures = []
    for path, value in measured.items():
        before = expected.get(path)
        change = "new" if before is None else f"{value / before - 1:+.1%}"
        beyond = before is None or abs(value / before - 1) > TOLERANCE
        print(f"{path:26} {before or 0:9.1f} {value:9.1f} {change:>8}{'  !' if beyond else ''}")
        if beyond:
            failures.append(f"{path}: {before} expected, {value} measured")
    gone = sorted(set(expected) - set(measured))
    failures += [f"{path}: expected, but no longer measured" for path in gone]
    broken = ratios(measured)

    if accept:
        VALUES.write_text(json.dumps({"environment": here, "instructions": measured}, indent=2) + "\n")
        print(f"\nWrote {VALUES.relative_to(ROOT)}.")
        failures = []
    if failures:
        print(f"\nBeyond {TOLERANCE:.0%} of benches/instructions.json:", *failures, sep="\n  ")
        if stored.get("environment") != here:
            print(f"The values are from {stored.get('environment')}, this is {here}: that alone may explain it.")
        print("If the change is meant, `make bench-accept` writes the new values; commit them with it.")
    if broken:
        print("\nRatios that do not hold:", *broken, sep="\n  ")
    return 1 if failures or broken else 0


if __name__ == "__main__":
    sys.exit(main())
