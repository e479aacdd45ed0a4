"""What several test files share: structures whose noise is negligible, and statistics that state their power."""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

import fastgame as fg

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: Argument errors that the documentation names; every fastgame error derives from one of these or FastgameError.
DOCUMENTED = (ValueError, TypeError, OverflowError, fg.FastgameError)


def example(name: str) -> Any:
    """A module of examples/, which is no package."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
    try:
        return importlib.import_module(name)
    finally:
        del sys.path[0]


def tiny_noise(bound: float = 1.0) -> fg.Zcdp:
    """A budget under which releases are within about 0.01 of the exact counts, for updates of this bound."""
    return fg.Zcdp(rho=1e6 * bound**2)


def counter(horizon: int = 8, max_weight: int = 1, **parameters: Any) -> fg.ContinualCounter:
    """A counter with negligible noise."""
    return fg.ContinualCounter(horizon=horizon, privacy=tiny_noise(max_weight), max_weight=max_weight, **parameters)


def vector(size: int, horizon: int = 8, max_norm: float = 1.0, **parameters: Any) -> fg.ContinualVector:
    """A vector with negligible noise."""
    return fg.ContinualVector(size, horizon=horizon, privacy=tiny_noise(max_norm), max_norm=max_norm, **parameters)


def sketch(width: int = 1024, horizon: int = 8, max_weight: int = 1, **parameters: Any) -> fg.CountSketch:
    """A sketch with negligible noise, in which a handful of keys do not collide."""
    given: dict[str, Any] = {"hash_seed": 1, "privacy": tiny_noise(max_weight), **parameters}
    return fg.CountSketch(width=width, horizon=horizon, max_weight=max_weight, **given)


def read(structure: Any) -> Any:
    """A release of what a structure holds: of a sketch, estimates of the first integers; of ranges, all cells.

    Of a join its size.
    """
    if isinstance(structure, fg.JoinSize):
        return structure.estimate()
    if isinstance(structure, fg.RangeCounter):
        return structure.grid().value
    return structure.estimate(range(20)) if isinstance(structure, fg.CountSketch) else structure.release()


def write(structure: Any, element: int) -> None:
    """Adds 1 to an element; of a join, on both sides."""
    sides = [structure.left, structure.right] if isinstance(structure, fg.JoinSize) else [structure]
    for side in sides:
        axes = len(side.shape) if isinstance(side, fg.RangeCounter) else 1
        side.update((element,) * axes if axes > 1 else element)


def whole(released: Any) -> Any:
    """The integers that releases with negligible noise stand for, in the shape of the release."""
    return np.rint(np.asarray(released)).astype(np.int64)


def assert_variance(samples: Floats, variance: float, alpha: float = 1e-6) -> None:
    """Chi-square test, two-sided, of independent centred normal samples against a variance.

    With 10^5 samples and alpha 1e-6 the bounds are 2.2 % away; a scale that is 3 % off is 6 % in variance, 13 standard
    deviations of the estimate. The last two lines check that such a scale is rejected.
    """
    assert rejection_free(samples, variance, alpha), f"{np.mean(samples**2)} is no estimate of {variance}"
    assert not rejection_free(samples, variance * 1.03**2, alpha)
    assert not rejection_free(samples, variance / 1.03**2, alpha)


def rejection_free(samples: Floats, variance: float, alpha: float) -> bool:
    """Whether the chi-square test of `assert_variance` accepts."""
    statistic = float(np.sum(np.square(samples))) / variance
    low, high = stats.chi2.ppf([alpha / 2, 1 - alpha / 2], samples.size)
    return bool(low < statistic < high)


def raised_by(call: Callable[[], object]) -> BaseException | None:
    """The exception of a call, also one that does not derive from Exception, or None."""
    try:
        call()
    except BaseException as error:  # a PanicException is no Exception
        return error
    return None


#: Every kind of structure, with a read that is a whole one where there is such a read.
STRUCTURES: dict[str, Callable[..., Any]] = {
    "counter": fg.ContinualCounter,
    "vector": lambda **given: fg.ContinualVector(30, **given),
    "sketch": lambda **given: fg.CountSketch(**{"width": 16, "depth": 3, "hash_seed": 1, **given}),
    "range": lambda **given: fg.RangeCounter(**{"shape": 30, "hash_seed": 1, **given}),
    "grid": lambda **given: fg.RangeCounter(**{"shape": (9, 5), "hash_seed": 1, **given}),
    "sketched grid": lambda **given: fg.RangeCounter(
        **{"shape": (20, 15), "width": 8, "depth": 3, "hash_seed": 1, **given}
    ),
    "join": lambda **given: fg.JoinSize(**{"width": 32, "depth": 3, "hash_seed": 1, **given}),
}

#: Every mechanism, with a budget that it takes.
MECHANISMS: dict[str, dict[str, Any]] = {
    "tree": {"privacy": fg.Zcdp(0.5)},
    "tree-paper": {"privacy": fg.Zcdp(0.5), "mechanism": "tree-paper"},
    "blt": {"privacy": fg.Zcdp(0.5), "mechanism": "blt"},
    "blt, 1 buffer": {"privacy": fg.Zcdp(0.5), "mechanism": "blt", "buffers": 1},
    "pure": {"privacy": fg.PureDp(1.0)},
}


def plan_of(structure: Any) -> fg.Plan:
    """The plan of a structure of `STRUCTURES`, from what it says of itself."""
    names = ["horizon", "privacy", "mechanism", "protect", "contributions", "insecure_seed"]
    names += [name for name in ("max_weight", "max_norm", "size", "shape", "width", "depth", "hash_seed")]
    given = {name: getattr(structure, name) for name in names if hasattr(structure, name)}
    if structure.mechanism == "blt" and structure.horizon > 1:
        given["buffers"] = structure.buffers
    plan: fg.Plan = type(structure).plan(**given)
    return plan


def misaligned(array: Any) -> Any:
    """A copy at an odd address."""
    data = b"\0" + array.tobytes()
    return np.frombuffer(data, dtype=array.dtype, offset=1).reshape(array.shape)


def read_only(array: Any) -> Any:
    """A copy that cannot be written to."""
    array = array.copy()
    array.flags.writeable = False
    return array


def record_field(array: Any) -> Any:
    """The same elements with others between them."""
    records = np.zeros(array.shape, dtype=[("x", "i1"), ("y", array.dtype)])
    records["y"] = array
    return records["y"]


@contextmanager
def meanwhile(call: Callable[[], object]) -> Iterator[None]:
    """Another thread that calls again and again, and has ended after the block."""
    done = threading.Event()

    def repeat() -> None:
        while not done.is_set():
            call()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join(30)
    assert not thread.is_alive()
