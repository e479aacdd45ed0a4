# mypy: disable-error-code="misc"
# (The types of lambdas with defaults.)
"""The one table of the public surface: every parameter of every entry point, how it is given and what it takes.

What is public is found by introspection (`public_parameters`), so that a new parameter is missed in the table.
"""

from __future__ import annotations

import dataclasses
import inspect
import tempfile
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from helpers import tiny_noise

import fastgame as fg

#: What Python gives every class, and what no caller calls: no parameter of it is fastgame's.
_NOT_CALLED = {
    "__annotate_func__",
    "__class__",
    "__class_getitem__",
    "__getattribute__",
    "__init_subclass__",
    "__new__",
    "__subclasshook__",
}
#: Of a class written in Python these are dataclasses' or the interpreter's own.
_INHERITED = {"__replace__", "__dir__", "__format__", "__sizeof__"}


def public_classes(package: Any = fg) -> Iterator[tuple[str, type]]:
    """Public classes by name, those of public modules too. Errors are raised, and not made by users."""
    for name in package.__all__:
        thing = getattr(package, name)
        if isinstance(thing, types.ModuleType):
            yield from public_classes(thing)
        elif isinstance(thing, type) and not issubclass(thing, BaseException):
            yield name, thing


def _parameters_of(name: str, function: Any, bound: bool) -> Iterator[tuple[str, str]]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise AssertionError(f"{name} has no signature that can be inspected") from None
    for place, parameter in enumerate(parameters):
        if not (bound and place == 0 and parameter.name in ("self", "$self", "_cls", "cls", "type", "slf")):
            yield name, parameter.name


def _of_class(name: str, kind: type) -> Iterator[tuple[str, str]]:
    own = vars(kind)
    if "__init__" in own or ("__new__" in own and _is_made_by_users(kind)):
        yield from _parameters_of(name, kind, bound=False)
    is_tuple = issubclass(kind, tuple)
    for word, thing in own.items():
        if (is_tuple and word.startswith("_")) or word in _NOT_CALLED or word in _INHERITED or word == "__init__":
            continue
        if word.startswith("_") and not (word.startswith("__") and word.endswith("__")):
            continue
        if isinstance(thing, types.ModuleType | type) or not callable(getattr(kind, word)):
            continue
        static = isinstance(thing, staticmethod)
        yield from _parameters_of(f"{name}.{word}", getattr(kind, word), bound=not static)


def _is_made_by_users(kind: type) -> bool:
    try:
        inspect.signature(kind)
    except (TypeError, ValueError):
        return False  # made by the methods of others
    return True


def public_parameters(package: Any = fg) -> set[tuple[str, str]]:
    """The parameters of every public function, constructor and method, each under the class that defines it."""
    found: set[tuple[str, str]] = set()
    for name in package.__all__:
        thing = getattr(package, name)
        if isinstance(thing, types.ModuleType):
            found |= public_parameters(thing)
        elif not isinstance(thing, type) and callable(thing):
            found |= set(_parameters_of(name, thing, bound=False))
    for name, kind in public_classes(package):
        found |= set(_of_class(name, kind))
    return found


def public_properties(package: Any = fg) -> set[tuple[str, str]]:
    """Properties of public classes, under the class that defines them."""
    return {
        (name, word)
        for name, kind in public_classes(package)
        for word, thing in vars(kind).items()
        if not word.startswith("_")
        and (isinstance(thing, property | types.GetSetDescriptorType) or inspect.isdatadescriptor(thing))
        and not dataclasses.is_dataclass(kind)
    }


SIZE = 5
#: What stands in the structures of `fresh`.
START = np.array([3, 1, 4, 1, 5], dtype=np.int64)


def fresh(kind: str, **parameters: Any) -> Any:
    """A structure with negligible noise that holds something, at step 2 of 8."""
    common: dict[str, Any] = {"horizon": 8, "privacy": tiny_noise(1e4), **parameters}
    structure: Any
    if kind == "counter":
        structure = fg.ContinualCounter(max_weight=10_000, **common)
        structure.update(START)
    elif kind == "sketch":
        structure = fg.CountSketch(width=1024, hash_seed=1, max_weight=10_000, **common)
        structure.update(range(SIZE), START)
    elif kind == "join":
        # Each key once on the other side.
        structure = fg.JoinSize(width=1024, hash_seed=1, max_weight=10_000, **common)
        structure.left.update(range(SIZE), START)
        structure.right.update(range(SIZE), 1)
    elif kind == "range":
        structure = fg.RangeCounter(shape=SIZE, hash_seed=1, max_weight=10_000, **common)
        structure.update(range(SIZE), START)
    elif kind == "grid":
        structure = fg.RangeCounter(shape=(SIZE, 3), hash_seed=1, max_weight=10_000, **common)
        structure.update([(place, 1) for place in range(SIZE)], START)
    elif kind in AXES:
        structure = fg.RangeCounter(axes=AXES[kind], hash_seed=1, max_weight=10_000, **common)
        structure.update([POINTS[kind]] * 3)
    else:
        structure = fg.ContinualVector(SIZE, max_norm=1e4, **common)
        structure.update(range(SIZE), START)
    structure.advance()
    return structure


#: Axes by name, and a point on each; the last has them together.
AXES: dict[str, Any] = {
    "Regular": fg.axis.Regular(4, 0.0, 4.0, name="r"),
    "Variable": fg.axis.Variable([0.0, 1.0, 4.0], name="v"),
    "Integer": fg.axis.Integer(0, 4, name="i"),
    "Datetime": fg.axis.Datetime("2020-01-01", "2020-01-05", "1d", name="d"),
    "StrCategory": fg.axis.StrCategory(["a", "b"], name="s"),
}
AXES["axes"] = [AXES["Integer"], AXES["StrCategory"]]
DAY = "2020-01-02"
POINTS: dict[str, Any] = {
    "Regular": 1.0, "Variable": 1.0, "Integer": 1, "Datetime": DAY, "StrCategory": "a", "axes": (1, "a"),
}  # fmt: skip
TAKES_POINTS = {
    "Regular": "numbers", "Variable": "numbers", "Integer": "whole numbers", "Datetime": "times",
    "StrCategory": "texts",
}  # fmt: skip
TICKS = fg.Ticks("2020-01-01", "2020-01-05", "1d")
PLAN = fg.ContinualCounter.plan(horizon=8, privacy=fg.Zcdp(0.5))
SKETCH_PLAN = fg.CountSketch.plan(width=16, hash_seed=1, horizon=8, privacy=fg.Zcdp(0.5))
RANGE_PLAN = fg.RangeCounter.plan(shape=(4, 5), hash_seed=1, horizon=8, privacy=fg.Zcdp(0.5))
JOIN_PLAN = fg.JoinSize.plan(width=32, hash_seed=1, horizon=8, privacy=fg.Zcdp(0.5))
PROFILE = fg.FrequencyProfile([3, 2, 1])
JOIN_PROFILE = fg.JoinProfile(64.0, 64.0, 4.0)

Call = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Row:
    """How a parameter is given, on what, and what it takes: a key of `TAKES`."""

    takes: str
    call: Call
    #: An allowed value.
    good: Any
    #: A new object of the class, as `fresh` makes it; None for functions and for what has no state.
    subject: str | None = None
    #: What a message calls the parameter, beside its name.
    names: str = ""

    def make(self) -> Any:
        """What the call is made on."""
        if self.subject is None:
            return None
        return NEW[self.subject]() if self.subject in NEW else fresh(self.subject, insecure_seed=7)

    def alone(self, given: Any) -> Any:
        """The call on something new."""
        return self.call(self.make(), given)


#: The allowed value where there is none.
REFUSED = object()

NEW: dict[str, Callable[[], Any]] = {
    "new Axis": lambda: fg.axis.Integer(0, 4),
    "new Feed": lambda: fg.Feed(fresh("counter")),
    "raw": lambda: fg.RawSketch(width=16, depth=1, hash_seed=1),
    "counts": fg.RowCounts,
    "new counter": lambda: fg.ContinualCounter(horizon=4, privacy=tiny_noise(), insecure_seed=7),
    "new sketch": lambda: fg.CountSketch(width=16, hash_seed=1, horizon=4, privacy=tiny_noise(), insecure_seed=7),
    "new range": lambda: fg.RangeCounter(shape=4, hash_seed=1, horizon=4, privacy=tiny_noise(), insecure_seed=7),
    "new join": lambda: fg.JoinSize(width=32, hash_seed=1, horizon=4, privacy=tiny_noise(), insecure_seed=7),
    "dropping axes": lambda: fresh("axes", insecure_seed=7, invalid="drop"),
}

ROWS: dict[tuple[str, str], list[Row]] = {}


def row(entry: str, parameter: str, takes: str, call: Call, good: Any, subject: str | None = None, **more: Any) -> None:
    """Adds a way to give a parameter; there may be several."""
    ROWS.setdefault((entry, parameter), []).append(Row(takes, call, good, subject, **more))


def with_one(function: Callable[..., Any], base: dict[str, Any], parameter: str) -> Call:
    """A call with one keyword replaced."""
    return lambda _, given: function(**{**base, parameter: given})


def implemented(result: Any) -> Any:
    """What an operator gives. Where it knows nothing of the value, Python asks the value, and then refuses."""
    if result is NotImplemented:
        raise TypeError("the operator does not know the value")
    return result


def _rows_of_budgets() -> None:
    for name in ("Zcdp", "Gdp", "PureDp"):
        kind = getattr(fg, name)
        row(name, {"Zcdp": "rho", "Gdp": "mu", "PureDp": "epsilon"}[name], "real", lambda _, v, k=kind: k(v), 1.0)
    row("ApproxDp", "epsilon", "real", lambda _, v: fg.ApproxDp(v, 1e-6), 1.0)
    row("ApproxDp", "delta", "real", lambda _, v: fg.ApproxDp(1.0, v), 0.5)
    row("Budget.epsilon", "delta", "real", lambda _, v: fg.Zcdp(1.0).epsilon(v), 0.5)
    row("Budget.delta", "epsilon", "real", lambda _, v: fg.Zcdp(1.0).delta(v), 1.0)
    row("Budget.split", "parts", "real", lambda _, v: fg.Zcdp(1.0).split(0.25, v), 0.5, names="part")
    budget = fg.Zcdp(1.0)
    row("Budget.__add__", "value", "budget", lambda _, v: implemented(budget.__add__(v)), fg.Gdp(1.0))
    row("Budget.__radd__", "value", "budget", lambda _, v: implemented(budget.__radd__(v)), fg.Gdp(1.0))
    row("total", "items", "items", lambda _, v: fg.total(fg.Zcdp(0.5), v), fg.Gdp(1.0), names="total")
    row("total", "items", "items", lambda _, v: fg.total(*v), [fg.Gdp(1.0)], names=".*")
    row("total", "unit", "text or None", lambda _, v: fg.total(fg.Zcdp(0.5), unit=v), "a person")


COMPARED: dict[str, Any] = {
    "Budget": fg.Zcdp(0.5),
    "FrequencyProfile": PROFILE,
    "JoinProfile": JOIN_PROFILE,
    "Plan": PLAN,
}


def _rows_of_comparisons() -> None:
    for name, thing in COMPARED.items():
        for word in ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
            operation = getattr(thing, word)
            takes = "anything" if word in ("__eq__", "__ne__") else "nothing"
            row(
                f"{name}.{word}",
                "value",
                takes,
                lambda _, v, o=operation: implemented(o(v)),
                thing if takes == "anything" else REFUSED,
            )
    row("Axis.__eq__", "other", "anything", lambda _, v: AXES["Integer"].__eq__(v), AXES["Integer"])
    row("Ticks.__eq__", "other", "anything", lambda _, v: TICKS.__eq__(v), TICKS)
    row("RowCounts.__eq__", "other", "anything", lambda s, v: s.__eq__(v), fg.RowCounts(), "counts")
    feed = fg.Feed(fresh("counter"))
    row("Feed.__eq__", "other", "anything", lambda _, v: feed.__eq__(v), feed)


def _rows_of_frozen() -> None:
    for name in ("Axis", "Feed"):
        subject = f"new {name}"
        words = {"names": "attributes?|cannot|assign|field"}
        # What an axis has cannot be changed; what it has not can be added.
        takes = "text" if name == "Axis" else "nothing"
        row(f"{name}.__setattr__", "name", takes, lambda s, v: setattr(s, v, 1), REFUSED, subject, **words)
        row(f"{name}.__delattr__", "name", "nothing", delattr, REFUSED, subject, **words)
        first = "size" if name == "Axis" else "structure"
        row(
            f"{name}.__setattr__", "value", "nothing", lambda s, v, f=first: setattr(s, f, v), REFUSED, subject, **words
        )
    for name, subject, of in (("Structure", "counter", lambda s: s), ("JoinSide", "join", lambda s: s.left)):
        words = {"names": "copied"}
        row(
            f"{name}.__deepcopy__",
            "_memo",
            "nothing",
            lambda s, v, o=of: o(s).__deepcopy__(v),
            REFUSED,
            subject,
            **words,
        )
        row(
            f"{name}.__reduce_ex__", "_protocol", "nothing", lambda s, v, o=of: o(s).__reduce_ex__(v), REFUSED, subject,
            **words,
        )  # fmt: skip


def _keyword_takes(parameter: str) -> tuple[str, Any, str]:
    """What a keyword of structures takes, an allowed value, and what else messages call it."""
    known: dict[str, tuple[str, Any, str]] = {
        "horizon": ("integer", 4, ""),
        "privacy": ("budget", fg.Zcdp(1.0), ""),
        "mechanism": ("word", "tree-paper", ""),
        "buffers": ("integer or None", 2, ""),
        "protect": ("word", "lifetime", ""),
        "contributions": ("integer", 2, ""),
        "on_excess": ("word", "clip", ""),
        "invalid": ("word", "drop", ""),
        "insecure_seed": ("integer or None", 5, ""),
        "max_weight": ("integer", 2, ""),
        "max_norm": ("real", 2.0, ""),
        "size": ("integer", 3, ""),
        "width": ("integer", 32, ""),
        "depth": ("integer", 3, ""),
        "hash_seed": ("integer or None", 5, ""),
        "shape": ("integers", (4, 3), "sizes|grid"),
        "axes": ("axes", [AXES["Regular"]], "axis"),
        "levels": ("levels", 2, ""),
        "estimator": ("word", "cover", ""),
        "max_cells": ("integer", 256, ""),
        "confidence": ("real", 0.5, ""),
        "profile": ("profile", PROFILE, ""),
        "points": ("integer", 10, ""),
        "sides": ("integers or None", (1, 1), "side"),
    }
    return known[parameter]


def _rows_of_structures() -> None:
    budget = {"horizon": 8, "privacy": fg.Zcdp(0.5)}
    own: dict[str, dict[str, Any]] = {
        "ContinualCounter": {},
        "ContinualVector": {"size": 3},
        "CountSketch": {"width": 16, "hash_seed": 1},
        "RangeCounter": {"shape": (4, 3), "hash_seed": 1},
        "JoinSize": {"width": 32, "hash_seed": 1},
    }
    searches: dict[str, dict[str, Any]] = {
        "CountSketch": {"profile": PROFILE, "max_cells": 64, "hash_seed": 1},
        "RangeCounter": {"points": 10, "max_cells": 64, "shape": (4, 3), "hash_seed": 1},
        "JoinSize": {"profile": JOIN_PROFILE, "hash_seed": 1},
    }
    calls = [(name, getattr(fg, name), {**budget, **given}) for name, given in own.items()]
    calls += [(f"{name}.plan", getattr(fg, name).plan, {**budget, **given}) for name, given in own.items()]
    calls += [(f"{name}.suggest", getattr(fg, name).suggest, {**budget, **given}) for name, given in searches.items()]
    calls.append(("RawSketch", fg.RawSketch, {"width": 16, "hash_seed": 1}))
    for name, function, base in calls:
        for parameter in inspect.signature(function).parameters:
            takes, good, names = _keyword_takes(parameter)
            given = {key: value for key, value in base.items() if (parameter, key) != ("axes", "shape")}
            if parameter == "buffers":
                given["mechanism"] = "blt"
            if name in own and parameter != "insecure_seed":
                given["insecure_seed"] = 7
            if name == "JoinSize.suggest" and parameter == "profile":
                good = JOIN_PROFILE
            row(name, parameter, takes, with_one(function, given, parameter), good, names=names)


def _rows_of_updates() -> None:
    row("ContinualCounter.update", "weights", "integers", lambda s, v: s.update(v), [1, 0, 2], "counter")
    for method, reals in (("update", "reals or None"), ("update_row", "reals")):
        name = f"ContinualVector.{method}"
        of: Call = lambda s, v, m=method: getattr(s, m)(v)  # noqa: E731
        row(name, "cells", "integers", of, [1, 0, 2], "vector", names="index")
        of = lambda s, v, m=method: getattr(s, m)([1, 0, 2], v)  # noqa: E731
        row(name, "values", reals, of, [1, 0, 2], "vector", names="norm")
        of = lambda s, v, m=method: getattr(s, m)(1, v)  # noqa: E731
        row(name, "values", reals, of, 2.5, "vector", names="norm")
    good = np.eye(3, SIZE)
    row("ContinualVector.update_rows", "rows", "rows", lambda s, v: s.update_rows(v), good, "vector")
    row(
        "ContinualVector.release",
        "indices",
        "integers or None",
        lambda s, v: s.release(v),
        [1, 0, 2],
        "vector",
        names="index",
    )
    row("CountSketch.update", "keys", "keys", lambda s, v: s.update(v), [1, 0, 2], "sketch")
    row("CountSketch.update", "keys", "keys", lambda s, v: s.update((v, [1, 0, 2])), [1, 0, 2], "sketch")
    row("CountSketch.update", "weights", "integers", lambda s, v: s.update([1, 0, 2], v), [1, 0, 2], "sketch")
    row("CountSketch.update", "weights", "integers", lambda s, v: s.update(1, v), 2, "sketch")
    row("CountSketch.estimate", "keys", "keys", lambda s, v: s.estimate(v), [1, 0, 2], "sketch")
    row("CountSketch.estimate", "error", "flag", lambda s, v: s.estimate(1, error=v), True, "sketch")
    call: Call = lambda s, v: s.estimate(1, confidence=v)  # noqa: E731
    row("CountSketch.estimate", "confidence", "real or None", call, 0.5, "sketch")
    row("CountSketch.second_moment", "error", "flag", lambda s, v: s.second_moment(error=v), True, "sketch")
    row("CountSketch.top", "k", "integer", lambda s, v: s.top(v, among=[1, 2, 3, 4]), 3, "sketch")
    row("CountSketch.top", "among", "keys", lambda s, v: s.top(2, among=v), [1, 0, 2], "sketch", names="keys?")
    raw = fg.RawSketch(width=1024, hash_seed=1, max_weight=10_000)
    row("CountSketch.merge", "raw", "raw", lambda s, v: s.merge(v), raw, "sketch")
    row("JoinSide.merge", "raw", "raw", lambda s, v: s.left.merge(v), raw, "join")
    row("RawSketch.merge", "raw", "raw", lambda s, v: s.merge(v), fg.RawSketch(width=16, depth=1, hash_seed=1), "raw")
    for name, subject, of in (("RawSketch", "raw", lambda s: s), ("JoinSide", "join", lambda s: s.left)):
        row(f"{name}.update", "keys", "keys", lambda s, v, o=of: o(s).update(v), [1, 0, 2], subject)
        row(f"{name}.update", "weights", "integers", lambda s, v, o=of: o(s).update([1, 0], v), [1, 0], subject)
    row("Structure.advance", "to", "integer or None", lambda s, v: s.advance(to=v), 3, "counter")
    row("JoinSize.estimate", "error", "flag", lambda s, v: s.estimate(error=v), True, "join")
    row("JoinSize.estimate", "confidence", "real or None", lambda s, v: s.estimate(confidence=v), 0.5, "join")
    row("JoinSize.estimate", "by", "word", lambda s, v: s.estimate(confidence=0.9, by=v), "rows", "join")


def _rows_of_ranges() -> None:
    row("RangeCounter.update", "weights", "integers", lambda s, v: s.update([1, 0, 2], v), [1, 0, 2], "range")
    for method in ("update", "insert", "delete"):
        call: Call = lambda s, v, m=method: getattr(s, m)(v)  # noqa: E731
        where = "RangeCounter." + method
        words = {"names": "points?"}
        row(where, "points", "integers", call, [1, 0, 2], "range")
        row(where, "points", "pairs", call, [(1, 0), (2, 1)], "grid")
        if method == "update":
            for name, takes in TAKES_POINTS.items():
                good = [POINTS[name]] * 2
                row(where, "points", f"{takes} of one axis", call, good, name, names="axis|times?")
            row(where, "points", "points", call, [(1, "a"), (2, "b")], "axes", names="points?|axis|axes|values")
            # Of a point each value that is none is left out.
            row(where, "points", "anything", call, [(1, "a")], "dropping axes", names="points?|axis|axes|values")
            part: Call = lambda s, v: s.update((v, ["a", "b", "c"]))  # noqa: E731
            row(where, "points", "whole numbers", part, [1, 0, 2], "axes", names="axis")
            part = lambda s, v: s.update({"i": [1, 0, 2], "s": v})  # noqa: E731
            row(where, "points", "texts", part, ["a", "b", "c"], "axes", names="axis")
        del words
    row("RangeCounter.count", "lo", "integers", lambda s, v: s.count(v, 5), 1, "range", names="box")
    row("RangeCounter.count", "hi", "integers", lambda s, v: s.count(0, v), 3, "range", names="box|corners")
    row("RangeCounter.count", "lo", "pairs", lambda s, v: s.count(v, (5, 3)), (1, 0), "grid", names="box")
    names = "lo|hi|box|boxes|corners?|bounds?|axis|axes|time|times"
    row("RangeCounter.count", "lo", "boxes", lambda s, v: s.count(v), {"i": (1, 3), "s": "a"}, "axes", names=names)
    row("RangeCounter.count", "lo", "corners", lambda s, v: s.count(v, (4, None)), (0, None), "axes", names=names)
    row("RangeCounter.count", "hi", "corners", lambda s, v: s.count((0, None), v), (4, None), "axes", names=names)
    row("RangeCounter.count", "lo", "bounds", lambda s, v: s.count({"i": v}), (1, 3), "axes", names=names)
    row("RangeCounter.count", "lo", "texts", lambda s, v: s.count({"s": v}), ["a", "b"], "axes", names=names)
    row("RangeCounter.count", "lo", "bound or bounds", lambda s, v: s.count({"i": (v, 4)}), 1, "axes", names=names)
    row("RangeCounter.count", "error", "flag", lambda s, v: s.count(0, 3, error=v), True, "range")
    row("RangeCounter.quantile", "q", "reals", lambda s, v: s.quantile(v), [0.25, 0.5], "range")
    row("RangeCounter.quantile", "q", "reals", lambda s, v: s.quantile(v), 0.5, "Integer")
    row("RangeCounter.cdf", "x", "integers", lambda s, v: s.cdf(v), [1, 3], "range")
    for name, takes in TAKES_POINTS.items():
        if name != "StrCategory":
            row("RangeCounter.cdf", "x", takes, lambda s, v: s.cdf(v), [POINTS[name]], name, names="axis|times?")
    row("RangeCounter.heavy_hitters", "threshold", "real", lambda s, v: s.heavy_hitters(v), 4.5, "range")
    row("RangeCounter.heavy_hitters", "limit", "integer", lambda s, v: s.heavy_hitters(4.5, limit=v), 3, "range")
    row("RangeCounter.grid", "bins", "integers", lambda s, v: s.grid(v), 3, "grid")
    row("RangeCounter.grid", "bins", "integers", lambda s, v: s.grid(v), [2, 1], "axes")
    row("RangeCounter.grid", "error", "flag", lambda s, v: s.grid(error=v), True, "grid")
    row("RangeCounter.marginal", "axis", "number or name", lambda s, v: s.marginal(v), 1, "axes")
    row("RangeCounter.marginal", "bins", "integer", lambda s, v: s.marginal(0, v), 3, "axes")
    row("RangeCounter.marginal", "error", "flag", lambda s, v: s.marginal(0, error=v), True, "grid")


def _rows_of_plans() -> None:
    integers = {"error": "releases", "cells_read": "keys", "fits_in_vector": "keys"}
    for method, parameter in integers.items():
        plan = PLAN if method == "error" else SKETCH_PLAN
        takes = "integer or None" if method == "cells_read" else "integer"
        row(f"Plan.{method}", parameter, takes, with_one(getattr(plan, method), {}, parameter), 3)
    for method, plan in (("error", PLAN), ("std", PLAN), ("box", RANGE_PLAN)):
        row(f"Plan.{method}", "at", "integer or None", with_one(getattr(plan, method), {}, "at"), 3)
    row("Plan.compare", "reads", "integer or None", lambda _, v: compared(reads=v), 3)
    row("Plan.compare", "keys", "integer or None", lambda _, v: compared(keys=v), 3)
    row("Plan.error", "confidence", "real", lambda _, v: PLAN.error(v), 0.5)
    row("Plan.box", "confidence", "real", lambda _, v: RANGE_PLAN.box(confidence=v), 0.5)
    row("Plan.box", "second_moment", "real", lambda _, v: RANGE_PLAN.box(second_moment=v), 0.5)
    row("Plan.box", "sides", "integers or None", lambda _, v: RANGE_PLAN.box(sides=v), (2, 2), names="side")
    row("Plan.box", "lo", "pairs or None", lambda _, v: RANGE_PLAN.box(v, (4, 5)), (0, 1), names="box|boxes|corners")
    row("Plan.box", "hi", "pairs or None", lambda _, v: RANGE_PLAN.box((0, 1), v), (4, 5), names="box|boxes|corners")
    row("Plan.zero_would_do", "points", "integer", lambda _, v: RANGE_PLAN.zero_would_do(v), 3)
    row("Plan.zero_would_do", "confidence", "real", lambda _, v: RANGE_PLAN.zero_would_do(3, confidence=v), 0.5)
    profiles: dict[str, Callable[[Any, Any], Any]] = {
        "error": lambda plan, v: plan.error(profile=v),
        "std": lambda plan, v: plan.std(profile=v),
        "summary": lambda plan, v: plan.summary(v),
        "what_if": lambda plan, v: len(plan.what_if(v)),
        "compare": lambda plan, v: len(plan.compare(profile=v).mechanisms),
    }
    for method, call in profiles.items():
        row(f"Plan.{method}", "profile", "profile or None", lambda _, v, c=call: c(SKETCH_PLAN, v), PROFILE)
        row(f"Plan.{method}", "profile", "profile or None", lambda _, v, c=call: c(JOIN_PLAN, v), JOIN_PROFILE)
    row("Plan.join_terms", "profile", "profile", lambda _, v: JOIN_PLAN.join_terms(v), JOIN_PROFILE)
    row("Plan.plot", "profile", "profile or None", lambda _, v: SKETCH_PLAN.plot("x.png", profile=v), None)
    row("Plan.plot", "path", "path", lambda _, v: SKETCH_PLAN.plot(v), "x.png", names=".*")
    row("Plan.replace", "changes", "integer", lambda _, v: PLAN.replace(horizon=v), 4, names="horizon")
    row("Plan.replace", "changes", "nothing", lambda _, v: PLAN.replace(**{v: 1}), REFUSED, names=".*")
    row("Plan.replace", "changes", "nothing", lambda _, v: PLAN.replace(axes=v), REFUSED, names="axes")


def compared(**given: Any) -> list[Any]:
    """What a comparison computes; what it measures is another each time."""
    rows = SKETCH_PLAN.compare(**given).mechanisms
    return [(row.mechanism, row.error_at_end, row.memory) for row in rows]


def _rows_of_profiles() -> None:
    row("FrequencyProfile", "frequencies", "reals", lambda _, v: fg.FrequencyProfile(v), [3, 2, 1], names="value")
    zipf = {"total": 9, "keys": 3, "exponent": 1.0}
    for parameter, takes in (("total", "real"), ("keys", "integer"), ("exponent", "real")):
        row("FrequencyProfile.zipf", parameter, takes, with_one(fg.FrequencyProfile.zipf, zipf, parameter), 2)
    moments = {"left_moment": 64.0, "right_moment": 64.0, "join_size": 4.0}
    for parameter in ("left_moment", "right_moment"):
        row("JoinProfile", parameter, "real", with_one(fg.JoinProfile, moments, parameter), 64.0, names="moments?")
    row("JoinProfile", "join_size", "real", lambda _, v: fg.JoinProfile(0.5, 0.5, v), 0.5)
    uniform = {"left_total": 4.0, "right_total": 4.0, "keys": 2}
    for parameter, takes in (("left_total", "real"), ("right_total", "real"), ("keys", "integer")):
        row(
            "JoinProfile.uniform",
            parameter,
            takes,
            with_one(fg.JoinProfile.uniform, uniform, parameter),
            3,
            names="moments?",
        )


def _rows_of_axes() -> None:
    makes: dict[str, tuple[Any, dict[str, Any], dict[str, str]]] = {
        "Regular": (
            fg.axis.Regular, {"bins": 4, "start": 0.0, "stop": 4.0},
            {"bins": "integer", "start": "real", "stop": "real"},
        ),
        "Variable": (fg.axis.Variable, {"edges": [0.0, 1.0, 4.0]}, {"edges": "real array"}),
        "Integer": (fg.axis.Integer, {"start": 0, "stop": 4}, {"start": "integer", "stop": "integer"}),
        "Datetime": (
            fg.axis.Datetime, {"start": "2020-01-01", "stop": "2020-01-05", "every": "1d", "tz": None},
            {"start": "time", "stop": "time", "every": "duration", "tz": "zone"},
        ),
        "StrCategory": (fg.axis.StrCategory, {"categories": ["a", "b"]}, {"categories": "categories"}),
    }  # fmt: skip
    for name, (kind, base, takes) in makes.items():
        full = {**base, "name": "n", "underflow": False, "overflow": True}
        if name == "StrCategory":
            del full["underflow"]
        words = {"name": "name", "underflow": "flag", "overflow": "flag", **takes}
        for parameter, good in full.items():
            more = {("Datetime", "stop"): "end", ("Integer", "stop"): "bins", ("Regular", "stop"): "bins"}.get(
                (name, parameter), ""
            )
            row(name, parameter, words[parameter], with_one(kind, full, parameter), good, names=more)
        known = AXES[name]
        what = "axis|times?"
        one = {"numbers": "number", "whole numbers": "whole number", "times": "time", "texts": "text"}[
            TAKES_POINTS[name]
        ]
        good = POINTS[name]
        row(
            f"{name}.index",
            "values",
            f"{TAKES_POINTS[name]} or missing",
            lambda _, v, k=known: k.index(v),
            [good] * 3,
            names=what,
        )
        call: Call = lambda _, v, k=known, g=good: k.index([g], invalid=v)  # noqa: E731
        row(f"{name}.index", "invalid", "word", call, "drop")
        row(f"{name}.bound", "value", one, lambda _, v, k=known: k.bound(v), good, names=what)
        row(f"{name}.label", "place", "integer", lambda _, v, k=known: k.label(v), 1)
        row(f"{name}.key", "place", "integer", lambda _, v, k=known: k.key(v), 1)
        if name != "StrCategory":
            row("Axis.interval", "bounds", "bounds", lambda _, v, k=known: k.interval(v), (good, None), names=what)
    known = AXES["StrCategory"]
    row("StrCategory.interval", "bounds", "text or None", lambda _, v: known.interval(v), "a", names="axis")
    dates = AXES["Datetime"]
    instants, none = dates.ticks.instants([DAY])
    row(
        "Datetime.index_instants", "instants", "integer array", lambda _, v: dates.index_instants(v, none),
        instants, names="instants|none",
    )  # fmt: skip
    row(
        "Datetime.index_instants", "none", "flags", lambda _, v: dates.index_instants(instants, v), none,
    )  # fmt: skip
    for parameter in ("size", "name", "underflow", "overflow"):
        what = {"size": "integer", "name": "name"}.get(parameter, "flag")
        good = {"size": 2, "name": "n"}.get(parameter, True)
        bare = {"size": 3, "name": None, "underflow": True, "overflow": True}
        row("Axis", parameter, what, with_one(Bare, bare, parameter), good, names="bins")
    for method, parameter in (
        ("index", "values"),
        ("index", "invalid"),
        ("bound", "value"),
        ("label", "place"),
        ("key", "place"),
    ):
        # Abstract: each kind of axis has its own.
        row(f"Axis.{method}", parameter, "anything", lambda _, v: None, None)


class Bare(fg.axis.Axis):
    """An axis of somebody else."""

    edges = property(lambda self: range(self.size + 1))
    _identity = property(lambda self: (self.size,))

    def index(self, values: Any, *, invalid: str = "raise") -> Any:
        return np.zeros(len(values), dtype=np.int64)

    def bound(self, value: Any) -> int:
        return int(value)

    def label(self, place: int) -> str:
        return str(place)

    def key(self, place: int) -> Any:
        return place

    def _edges_at(self, numbers: Any) -> Any:
        return numbers


def _rows_of_ticks() -> None:
    base = {"start": "2020-01-01", "end": "2020-01-05", "every": "1d", "tz": None}
    for parameter, takes in (("start", "time"), ("end", "time"), ("every", "duration"), ("tz", "zone")):
        row("Ticks", parameter, takes, with_one(fg.Ticks, base, parameter), base[parameter])
    aware = fg.Ticks("2020-01-01", "2020-01-05", "1d", tz="Europe/Copenhagen")
    for ticks, good in ((TICKS, DAY), (aware, f"{DAY}T00:00+01:00")):
        row("Ticks.step", "times", "times", lambda _, v, t=ticks: t.step(v), [good] * 3, names="time|position")
        row("Ticks.step", "times", "times", lambda _, v, t=ticks: t.step(v), good, names="time|position")
        row(
            "Ticks.instants", "times", "times or missing", lambda _, v, t=ticks: t.instants(v), [good] * 3, names="time"
        )
        row("Ticks.instant", "time", "time", lambda _, v, t=ticks: t.instant(v), good, names="times")
        # A word of messages.
        row("Ticks.instant", "name", "anything", lambda _, v, t=ticks, g=good: t.instant(g, v), "times")
        row("Ticks.time", "step", "integers", lambda _, v, t=ticks: t.time(v), [1, 2], names="steps")
        row("Ticks.time", "step", "integers", lambda _, v, t=ticks: t.time(v), 1, names="steps")
        row("Ticks.ends", "steps", "integer array", lambda _, v, t=ticks: t.ends(v), np.array([1, 2]))
        row("Ticks.locate", "instants", "integer array", lambda _, v, t=ticks: t.locate(v), np.array([1, 2]))


def _rows_of_replays() -> None:
    # Columns of a type: of lists each element has one, and keys of other kinds are no mistake.
    frame = {"t": [DAY, "2020-01-03"], "k": np.array([1, 2]), "w": [1, 1], "x": ["2020-01-04", None]}
    base: dict[str, Any] = {"frame": frame, "ticks": TICKS, "time": "t"}
    takes: dict[str, tuple[str, Any]] = {
        "frame": ("frame", frame),
        "ticks": ("ticks", TICKS),
        "time": ("column", "t"),
        "key": ("column or None", None),
        "weight": ("column or None", "w"),
        "keys": ("nothing but None", None),
        "boxes": ("nothing but None", None),
        "top": ("nothing but None", None),
        "delete_time": ("column or None", None),
        "release_every": ("integer", 2),
        "until": ("time or None", "2020-01-05"),
        "resume": ("flag", False),
        "time_format": ("text or None", None),
        "bad_rows": ("word", "raise"),
        "counts": ("counts or None", None),
        "memory": ("integer", 1 << 20),
        "progress": ("callable or None", None),
    }
    for parameter, (what, good) in takes.items():
        call: Call = lambda s, v, p=parameter: fg.replay(**{"structures": s, **base, p: v})  # noqa: E731
        row("replay", parameter, what, call, good, "new counter", names="columns?|counter|table|times?")
    row("replay", "structures", "nothing", lambda _, v: fg.replay(structures=v, **base), REFUSED)
    row("replay", "structures", "nothing", lambda _, v: fg.replay(structures={"a": v}, **base), REFUSED)
    call = lambda s, v: fg.replay(structures={v: s}, **base)  # noqa: E731
    row("replay", "structures", "name of a table", call, "a", "new counter", names=".*")
    call = lambda s, v: fg.replay(structures=s, key=v, keys=[1, 2], **base)  # noqa: E731
    row("replay", "key", "column", call, "k", "new sketch", names="columns?")
    call = lambda s, v: fg.replay(structures=s, key="k", keys=v, **base)  # noqa: E731
    row("replay", "keys", "listed keys", call, [1, 2], "new sketch")
    call = lambda s, v: fg.replay(structures=s, key="k", keys=[1, 2], top=v, **base)  # noqa: E731
    row("replay", "top", "integer or None", call, 1, "new sketch")
    call = lambda s, v: fg.replay(structures=s, key="k", keys=[1, 2], top=1, confidence=v, **base)  # noqa: E731
    row("replay", "confidence", "number or None", call, 0.5, "new sketch")
    call = lambda s, v: fg.replay(structures=s, key="k", boxes=v, **base)  # noqa: E731
    row("replay", "boxes", "list of boxes", call, [(0, 2), (1, 3)], "new range", names="box|corner")
    call = lambda s, v: fg.replay(structures=s, key="k", boxes=[(0, v)], **base)  # noqa: E731
    row("replay", "boxes", "integers", call, 2, "new range", names="box|corner")
    for parameter in ("t", "k", "w"):
        call = lambda s, v, p=parameter: fg.replay(  # noqa: E731
            **{**base, "frame": {**frame, p: v}}, structures=s, key="k", keys=[1, 2], weight="w"
        )
        names = "columns?|frame|table|keys|weights"
        row("replay", "frame", "table column", call, frame[parameter], "new sketch", names=names)
    feed = {"structure": None, "key": None, "weight": None, "keys": None, "boxes": None, "top": None, "confidence": 0.5}
    for parameter in feed:
        # A feed is checked where it is used; see the rows of replay.
        row("Feed", parameter, "anything", with_one(fg.Feed, feed, parameter), None)
    row("RowCounts", "read", "anything", lambda _, v: fg.RowCounts(read=v), 0)
    row("RowCounts", "dropped", "anything", lambda _, v: fg.RowCounts(dropped=v), {})
    row("RowCounts.add", "reason", "text", lambda s, v: s.add(v, 1), "a", "counts")
    row("RowCounts.add", "count", "integer", lambda s, v: s.add("a", v), 1, "counts")

    both: dict[str, Any] = {"left": frame, "right": frame, "ticks": TICKS, "time": "t", "key": "k"}
    takes |= {
        **{side: ("frame", frame) for side in ("left", "right")},
        "join": ("nothing", REFUSED),
        "key": ("column", "k"),
        **{f"right_{word}": ("column or None", good) for word, good in (("time", "t"), ("key", "k"), ("weight", "w"))},
        "right_delete_time": ("column or None", None),
    }
    for parameter in inspect.signature(fg.replay_join).parameters:
        what, good = takes[parameter]
        call = lambda s, v, p=parameter: fg.replay_join(**{"join": s, **both, p: v})  # noqa: E731
        if parameter == "join":
            call = lambda _, v: fg.replay_join(join=v, **both)  # noqa: E731
        names = "columns?|frame|table|times?" + ("|" + parameter.removeprefix("right_"))
        row("replay_join", parameter, what, call, good, None if parameter == "join" else "new join", names=names)


def new_path() -> str:
    """A file that is not there, below the present folder."""
    return f"{tempfile.mkdtemp(dir='.')}/s.fg"


def opened(file: Any, structure: Any = fg.ContinualCounter, /, **given: Any) -> Any:
    """What a store gives that is made."""
    parameters = {"horizon": 8, "privacy": fg.Zcdp(0.5)} | ({"hash_seed": 1} if structure is fg.RangeCounter else {})
    with fg.open(file, structure, **{**parameters, **given}) as store:
        store.advance(to=2)
        return store.now, store.generation, store.horizon


def continued(structure: Any = None, /, **given: Any) -> Any:
    """What a store gives that is there: one of the present folder."""
    file = Path("kept.fg")
    if not file.exists():
        opened(file)
    with fg.open(file, structure, **given) as store:
        return store.now, store.generation, store.horizon


def _rows_of_stores() -> None:
    row("open", "path", "path", lambda _, v: opened(v), "a.fg", names=".*")
    row("open", "path", "nothing", lambda _, v: fg.open(v), REFUSED, names=".*")
    row("inspect", "path", "nothing", lambda _, v: fg.inspect(v), REFUSED, names=".*")
    row("open", "structure", "nothing", lambda _, v: opened(new_path(), v), fg.ContinualCounter)
    row("open", "structure", "nothing but None", lambda _, v: continued(v), None)
    row("open", "sync", "word", lambda _, v: opened(new_path(), sync=v), "reads")
    row(
        "open",
        "expect_generation",
        "integer or None",
        lambda _, v: continued(expect_generation=v),
        0,
        names="generation",
    )
    for parameter, structure in (
        ("horizon", fg.ContinualCounter), ("privacy", fg.ContinualCounter), ("mechanism", fg.ContinualCounter),
        ("max_weight", fg.ContinualCounter), ("insecure_seed", fg.ContinualCounter), ("hash_seed", fg.CountSketch),
        ("shape", fg.RangeCounter), ("axes", fg.RangeCounter),
    ):  # fmt: skip
        takes, good, names = _keyword_takes(parameter)
        base: dict[str, Any] = {"width": 16} if structure is fg.CountSketch else {}
        call: Call = lambda _, v, s=structure, p=parameter, b=base: opened(new_path(), s, **{**b, p: v})  # noqa: E731
        row("open", "parameters", takes, call, good, names=f"{parameter}|{names}" if names else parameter)
    row("open", "parameters", "nothing", lambda _, v: opened(new_path(), **{v: 1}), REFUSED, names=".*")
    row("Structure.__exit__", "_error", "anything", lambda _, v: fresh("counter").__exit__(v), None)


def _rows_of_results() -> None:
    for name in fg.__all__:
        kind = getattr(fg, name)
        if isinstance(kind, type) and issubclass(kind, tuple):
            fields: Any = kind
            for field in fields._fields:
                # They hold what they are given.
                given = dict.fromkeys(fields._fields)
                row(name, field, "anything", with_one(kind, given, field), None)


for _rows in (
    _rows_of_budgets, _rows_of_comparisons, _rows_of_frozen, _rows_of_structures, _rows_of_updates, _rows_of_ranges,
    _rows_of_plans, _rows_of_profiles, _rows_of_axes, _rows_of_ticks, _rows_of_replays, _rows_of_stores,
    _rows_of_results,
):  # fmt: skip
    _rows()
