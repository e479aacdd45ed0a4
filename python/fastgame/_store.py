"""Durable structures: which parameters a store has, in words that outlive versions, and whether those given fit it.

The words are JSON; nothing in a store is code. What the files are made of is in the crate ``fastgame-store``.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, TypeVar, overload

import numpy as np

from fastgame import _core, axis
from fastgame._arguments import integer, path_of, shown, text
from fastgame._core import (
    ApproxDp,
    Budget,
    ContinualCounter,
    ContinualVector,
    CountSketch,
    Gdp,
    JoinSize,
    PureDp,
    RangeCounter,
    Structure,
    Zcdp,
)
from fastgame._errors import IncompatibleError, StateError

__all__ = ["StoreInfo", "inspect", "open"]

S = TypeVar("S", bound=Structure)

_STRUCTURES: tuple[type[Structure], ...] = (ContinualCounter, ContinualVector, CountSketch, RangeCounter, JoinSize)
_NAMES = [structure.__name__ for structure in _STRUCTURES]
_BUDGETS: dict[str, tuple[type[Budget], tuple[str, ...]]] = {
    "Zcdp": (Zcdp, ("rho",)),
    "Gdp": (Gdp, ("mu",)),
    "ApproxDp": (ApproxDp, ("epsilon", "delta")),
    "PureDp": (PureDp, ("epsilon",)),
}
#: What the constructor of an axis is given.
_AXES: dict[str, tuple[type[axis.Axis], tuple[str, ...]]] = {
    "Regular": (axis.Regular, ("size", "start", "stop", "name", "underflow", "overflow")),
    "Variable": (axis.Variable, ("edges", "name", "underflow", "overflow")),
    "Integer": (axis.Integer, ("start", "stop", "name", "underflow", "overflow")),
    "Datetime": (axis.Datetime, ("start", "stop", "every", "tz", "name", "underflow", "overflow")),
    "StrCategory": (axis.StrCategory, ("categories", "name", "overflow")),
}


@overload
def open(
    path: str | os.PathLike[str],
    structure: type[S],
    /,
    *,
    sync: Literal["always", "reads"] = "always",
    expect_generation: int | None = None,
    **parameters: Any,
) -> S: ...
@overload
def open(
    path: str | os.PathLike[str],
    structure: None = None,
    /,
    *,
    sync: Literal["always", "reads"] = "always",
    expect_generation: int | None = None,
) -> Structure: ...
def open(  # as gzip.open: it is called by the module's name
    path: Any,
    structure: Any = None,
    /,
    *,
    sync: Any = "always",
    expect_generation: Any = None,
    **parameters: Any,
) -> Any:
    """A structure whose state is kept in a file: made if there is no such file, else continued where it stopped.

    What a call does is on the disk before it returns, so before its answer leaves. After any stop (a crash, a kill, a
    power cut) the file is opened anew: it has all updates that were acknowledged, repeats the answers of the present
    step, and goes on with the noise that it had. New noise comes from fresh randomness of the system.

    Parameters
    ----------
    path : str or path
        The file. It holds exact counters and noise: secret. It is made readable by its owner alone, and keeps its
        permissions. One object at a time may have it open.
    structure : class, optional
        ContinualCounter, ContinualVector, CountSketch, RangeCounter or JoinSize. Without it the file must be there.
    sync : "always" or "reads"
        When what was done must be on the disk: before each call returns, or before an answer leaves (updates are then
        synced with the next answer, or by the method `sync`: faster, and a power cut may take those that no answer has
        seen).
    expect_generation : int, optional
        Refuse a file that is older: the `generation` that was noted, elsewhere, when it was last used. Nothing in a
        file can tell that it is an old copy.
    **parameters
        Those of the structure, all by keyword, as `size`. Where there is a file they may be left out; those that are
        given must be the stored ones.

    Returns
    -------
    The structure. It is closed by `close()`, or at the end of a `with` block.

    Raises
    ------
    IncompatibleError
        A parameter differs from the stored one; the message names it.
    StateError
        The file is in use, damaged, no store, of a later version, or older than expected.
    OSError
        The file cannot be opened, made or written; FileNotFoundError if there is none and no structure was given.
    ValueError, TypeError
        Parameters that are not allowed.

    Examples
    --------
    >>> import fastgame as fg
    >>> privacy = fg.Zcdp(rho=0.5)
    >>> with fg.open("visits.fg", fg.ContinualCounter, horizon=8760, privacy=privacy) as visits:  # doctest: +SKIP
    ...     visits.update(1)
    ...     published = visits.release()
    """
    if structure is not None and not any(structure is known for known in _STRUCTURES):
        given = structure.__name__ if isinstance(structure, type) else type(structure).__name__
        raise TypeError(f"structure must be one of {', '.join(_NAMES)}; {given} was given")
    if structure is None and parameters:
        known = ", ".join(_NAMES)
        raise TypeError(f"parameters need the structure that they are of: fastgame.open(path, one of {known})")
    if text(sync, "sync") not in ("always", "reads"):
        raise ValueError(f'sync must be "always" or "reads"; {shown(sync)} was given')
    if expect_generation is not None:
        expect_generation = integer(expect_generation, "expect_generation")
        if not 0 <= expect_generation < 1 << 64:
            raise ValueError(f"expect_generation must be from 0 to 2^64 - 1; {shown(expect_generation)} was given")
    file = path_of(path)

    def stored(words: str) -> tuple[str, dict[str, Any]]:
        name, kept = _read(words)
        if structure is not None:
            _check_same(file, name, kept, structure.__name__, parameters)
        return name, kept

    def made() -> tuple[str, dict[str, Any], str]:
        if structure is None:
            words = "there is no such store; to make one, give the structure and its parameters"
            raise FileNotFoundError(2, words, file)
        full = _core._keywords(structure.__name__, parameters)
        return structure.__name__, full, _written(structure.__name__, full)

    return _core._open(file, sync == "reads", expect_generation, stored, made)


class StoreInfo(NamedTuple):
    """What may be shown of a store, without opening it. All but `bytes` and `lost` is public."""

    #: The name of the structure.
    structure: str
    #: Its parameters by name.
    parameters: Mapping[str, Any]
    #: The version of the file's format.
    version: int
    #: How many calls were written down in the whole life of the store.
    generation: int
    #: The present step, and whether it was read.
    now: int
    sealed: bool
    #: Bytes of the state as it was last written whole, and of the journal behind it. For the operator alone.
    bytes: tuple[int, int]
    #: Bytes of a call at the end that was never acknowledged (or is under way). For the operator alone.
    lost: int


def inspect(path: str | os.PathLike[str]) -> StoreInfo:
    """What may be shown of a store: no counter, no noise. Reads the whole file and checks every byte of it.

    Parameters
    ----------
    path : str or path
        The file; it may be in use.

    Raises
    ------
    StateError
        The file is no store, damaged, or of a later version.
    OSError
        The file cannot be read.
    """
    words, values, version, generation, now, sealed, sizes, lost = _core._inspect(path_of(path))
    # One that was made in another language has no words of Python's.
    name, kept = _read(words) if words else (dict(values)["structure"], dict(values[1:]))
    return StoreInfo(name, kept, version, generation, now, sealed, (sizes[0], sizes[1]), lost)


def _check_same(file: str, name: str, kept: dict[str, Any], given_name: str, given: dict[str, Any]) -> None:
    """Refuses parameters that are not the stored ones. What is not given is taken from the store."""
    if name != given_name:
        raise _differs(file, "structure", name, given_name)
    # A random seed is asked for only where one is to be made.
    given = {word: value for word, value in given.items() if not (word == "hash_seed" and value is None)}
    if not given:
        return
    base = dict(kept)
    if "shape" in given or "axes" in given:
        base.pop("shape", None), base.pop("axes", None)
    full = _core._keywords(given_name, {**base, **given})
    for word in given:
        ours, theirs = full.get(word), kept.get(word)
        if ours != theirs:
            raise _differs(file, word, theirs, ours)


def _differs(file: str, field: str, stored: Any, given: Any) -> IncompatibleError:
    return IncompatibleError(
        f"{file} was made with {field} = {stored!r}, and {given!r} was given; give what it was made with (or leave it "
        "out), or make a new structure in another file, with a budget of its own"
    )


def _written(name: str, keywords: Mapping[str, Any]) -> str:
    """A structure and its parameters as words."""
    words = {word: _word(word, value) for word, value in keywords.items()}
    return json.dumps({"structure": name, "parameters": words}, ensure_ascii=False, allow_nan=False)


def _word(word: str, value: Any) -> Any:
    if isinstance(value, Budget):
        kind = type(value).__name__
        return {kind: {field: getattr(value, field) for field in _fields(value)}}
    if word == "axes":
        return [_axis_words(one) for one in value]
    return list(value) if isinstance(value, tuple) else value


def _fields(budget: Budget) -> tuple[str, ...]:
    return _BUDGETS[type(budget).__name__][1]


def _axis_words(one: axis.Axis) -> dict[str, Any]:
    kind = type(one).__name__
    if _AXES.get(kind, (None,))[0] is not type(one):
        raise TypeError(f"an axis of the class {kind} cannot be stored; those of fastgame.axis can")
    if isinstance(one, axis.Datetime):
        given = dict(zip(("start", "stop", "every", "tz"), map(_time_word, one._given), strict=True))
    else:
        given = {}
    fields = _AXES[kind][1]
    words = {field: given[field] if field in given else getattr(one, field) for field in fields}
    return {kind: {field: value.tolist() if isinstance(value, np.ndarray) else value for field, value in words.items()}}


def _time_word(value: Any) -> Any:
    """Text for what `Ticks` takes."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dt.timedelta):
        return {"microseconds": value // dt.timedelta(microseconds=1)}
    if isinstance(value, dt.date):
        return value.isoformat()
    return str(value)


def _read(words: str) -> tuple[str, dict[str, Any]]:
    """A structure and its parameters from words."""
    if not words:
        raise StateError("this store was made in Rust; Python opens only those that it made")
    try:
        found = json.loads(words)
        name, kept = found["structure"], found["parameters"]
        if name not in _NAMES or not isinstance(kept, dict):
            raise ValueError(name)
        return name, {word: _value(word, value) for word, value in kept.items()}
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise StateError(f"the words of this store cannot be read: {type(error).__name__}") from None


def _value(word: str, value: Any) -> Any:
    if word == "privacy":
        ((kind, fields),) = value.items()
        budget: Any = _BUDGETS[kind][0]
        return budget(**fields)
    if word == "axes":
        return tuple(_axis_of(one) for one in value)
    return tuple(value) if isinstance(value, list) else value


def _axis_of(words: Any) -> axis.Axis:
    ((kind, fields),) = words.items()
    given = {field: fields[field] for field in _AXES[kind][1]}
    if isinstance(given.get("every"), dict):
        given["every"] = dt.timedelta(**given["every"])
    if kind == "Regular":
        given["bins"] = given.pop("size")
    made: Any = _AXES[kind][0]
    found: axis.Axis = made(**given)
    return found
