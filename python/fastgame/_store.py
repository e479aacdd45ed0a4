"""Durable structures: which parameters a store has, in words that outlive versions, and whether those given fit it.

The words are JSON; nothing in a store is code. What the files are made of is in the crate ``fastgame-store``.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar, overload

import numpy as np

from fastgame import _core, axis
from fastgame._arguments import did_you_mean, integer, path_of, shown, text
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
from fastgame._ticks import Ticks

__all__ = ["StoreInfo", "inspect", "open"]

S = TypeVar("S", bound=Structure)

_STRUCTURES: tuple[type[Structure], ...] = (ContinualCounter, ContinualVector, CountSketch, RangeCounter, JoinSize)
_SYNCS = ("always", "reads")
_NAMES = [structure.__name__ for structure in _STRUCTURES]
_BUDGETS: dict[str, type[Budget]] = {budget.__name__: budget for budget in (Zcdp, Gdp, ApproxDp, PureDp)}
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
def open(
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
        synced with the next answer, or by the method `sync`: faster, and a power cut may take those that no answer
        has seen).
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
        The file is in use, damaged, no store, of a later version, or older than expected (also where there is none,
        and a generation above 0 was expected); it has more than one name (hard links).
    OSError
        The file cannot be opened, made or written; FileNotFoundError if there is none and no structure was given.
    ValueError, TypeError
        Parameters that are not allowed.

    Examples
    --------
    >>> import fastgame as fg
    >>> year = {"horizon": 8760, "privacy": fg.Zcdp(rho=0.5)}
    >>> with fg.open("visits.fg", fg.ContinualCounter, **year) as visits:  # doctest: +SKIP
    ...     visits.update(1)
    ...     published = visits.release()
    """
    if structure is not None and not any(structure is known for known in _STRUCTURES):
        given = structure.__name__ if isinstance(structure, type) else type(structure).__name__
        raise TypeError(f"structure must be one of {', '.join(_NAMES)}; {given} was given")
    if structure is None and parameters:
        raise TypeError(
            f"parameters need the structure that they are of: fastgame.open(path, one of {', '.join(_NAMES)})"
        )
    if text(sync, "sync") not in _SYNCS:
        hint = did_you_mean(sync, _SYNCS)
        raise ValueError(f'sync must be "always" or "reads"; {shown(sync)} was given{hint}')
    return _opened(path, structure, parameters, parameters, sync=sync, expect_generation=expect_generation)[0]


class Job(NamedTuple):
    """What the command line keeps beside the parameters, since counts mean nothing without it. All of it is public."""

    #: What `Ticks` was given, as text.
    clock: Mapping[str, str | None]
    #: A digest of the list of keys, where each has a cell.
    keys: str | None = None

    @property
    def ticks(self) -> Ticks:
        """The clock."""
        return Ticks(self.clock["start"], self.clock["end"], self.clock["every"], tz=self.clock["tz"])

    def check_same(self, file: str, given: Job, options: Mapping[str, str]) -> None:
        """Refuses a job that is another one."""
        if self.clock != given.clock and self.ticks != given.ticks:
            for word, value in self.clock.items():
                if value != given.clock[word]:
                    raise _differs(
                        file, options.get(word, word), value, given.clock[word], "give what it was made with"
                    )
        if self.keys != given.keys:
            raise IncompatibleError(
                f"{file} was made with another list of {options.get('keys', 'keys')}, or in another order, and each "
                "key has a cell; give that list, or make a new structure in another file, with a budget of its own"
            )


def open_job(
    path: str,
    structure: type[Structure],
    parameters: dict[str, Any],
    given: Collection[str],
    job: Job,
    options: Mapping[str, str],
    expect_generation: int | None,
) -> tuple[Any, bool]:
    """As `open`; if there is a file, the parameters named in `given` must be the stored ones, and it must have a job.

    `options` are the names of parameters in messages. With the structure comes whether the file was made.
    """
    wanted = {word: value for word, value in parameters.items() if word in given}
    return _opened(path, structure, parameters, wanted, job=job, options=options, expect_generation=expect_generation)


def _opened(
    path: Any,
    structure: type[Structure] | None,
    parameters: dict[str, Any],
    wanted: Mapping[str, Any],
    *,
    sync: str = "always",
    expect_generation: Any,
    job: Job | None = None,
    options: Mapping[str, str] | None = None,
) -> tuple[Any, bool]:
    """Makes a store with all parameters, or opens one that has those that are wanted; and whether it was made."""
    options = options or {}
    if expect_generation is not None:
        expect_generation = integer(expect_generation, "expect_generation")
        if not 0 <= expect_generation < 1 << 64:
            raise ValueError(f"expect_generation must be from 0 to 2^64 - 1; {shown(expect_generation)} was given")
    file = path_of(path)

    is_new = False

    def stored(words: str) -> tuple[str, dict[str, Any]]:
        nonlocal is_new
        is_new = False  # another process may have made it meanwhile
        name, kept = _read(words)
        found = _job_of(words)
        if structure is not None:
            if job is not None and name == structure.__name__:
                if found is None:
                    raise IncompatibleError(
                        f"{file} was not made by this command (but by fastgame.open), and has no clock to go on with: "
                        "go on with it in Python, or make a new structure in another file, with a budget of its own"
                    )
                found.check_same(file, job, options)
            _check_same(file, name, kept, structure.__name__, wanted, options)
        return name, kept

    def made() -> tuple[str, dict[str, Any], str]:
        if structure is None:
            raise FileNotFoundError(
                2, "there is no such store; to make one, give the structure and its parameters", file
            )
        if expect_generation:
            raise StateError(
                f"there is no {file}, and a store of generation {expect_generation} was expected: a new one would "
                "answer again, with other noise and a budget of its own"
            )
        full = _core._keywords(structure.__name__, parameters)
        nonlocal is_new
        is_new = True
        return structure.__name__, full, _written(structure.__name__, full, job)

    return _core._open(file, sync == "reads", expect_generation, stored, made), is_new


def check_job(structure: Any, ticks: Ticks, keys: Sequence[Any]) -> None:
    """Refuses another clock or another list of keys than those of the command that made the store, if one did."""
    job = None if structure._words is None else _job_of(structure._words)
    if job is None:
        return
    if job.ticks != ticks:
        raise _differs(str(structure.path), "ticks", job.ticks, ticks, "give those")
    if job.keys is not None and job.keys != digest(keys):
        raise IncompatibleError(
            f"{structure.path} was made with another list of keys, or in another order, and each key has a cell; give "
            "that list"
        )


def digest(keys: Sequence[Any]) -> str:
    """Tells one list of keys, in columns, from another. Keys are text, as in files."""
    columns = [[str(value) for value in column.to_pylist()] for column in keys]
    return hashlib.sha256(json.dumps(columns).encode()).hexdigest()


class StoreInfo(NamedTuple):
    """What may be shown of a store, without opening it. All but `generation`, `bytes` and `lost` is public."""

    #: The name of the structure.
    structure: str
    #: Its parameters by name.
    parameters: Mapping[str, Any]
    #: The version of the file's format.
    version: int
    #: How many calls were written down in the whole life of the store. For the operator alone: where each update is a
    #: call, it tells how many came.
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
    return overview(path)[0]


def overview(path: str | os.PathLike[str]) -> tuple[StoreInfo, Job | None]:
    """As `inspect`; also what the command line keeps."""
    words, values, version, generation, now, sealed, sizes, lost = _core._inspect(path_of(path))
    # One that was made in another language has no words of Python's.
    name, kept = _read(words) if words else (dict(values)["structure"], dict(values[1:]))
    found = StoreInfo(name, kept, version, generation, now, sealed, (sizes[0], sizes[1]), lost)
    return found, _job_of(words) if words else None


class Unit:
    """What is done to structures inside the block is written by `commit` into the files of those that have one, as one
    for each, or not at all. Without a commit all of them are closed: half of a step may be in them.

    Inside another block of the same structure, in the same thread, that one writes and closes. `end` does what the end
    of the block does, and may be called again: an interruption may come before the end of the block has begun.
    """

    #: The block of each structure that is in one, by its identity.
    _holders: ClassVar[dict[int, Unit]] = {}

    def __init__(self, structures: Sequence[Any]) -> None:
        self.structures = list({id(structure): structure for structure in structures}.values())
        self.thread = threading.get_ident()
        #: Those that are to be written here.
        self.waiting: list[Any] = []
        self.is_begun = self.is_done = self.is_spoiled = False

    def __enter__(self) -> Unit:
        try:
            for structure in self.structures:
                holder = self._holders.setdefault(id(structure), self)
                if holder.thread != self.thread:
                    raise StateError("a replay in another thread holds this structure")
                # Does nothing, but to one that is not usable.
                structure.advance(to=structure.now)
            for structure in self.structures:
                if self._is_own(structure) and structure.path is not None:
                    self.waiting.append(structure)
                    structure._hold()
            self.is_begun = True
        except BaseException:
            self.end()
            raise
        return self

    def _is_own(self, structure: Any) -> bool:
        return self._holders.get(id(structure)) is self

    def commit(self) -> None:
        """Writes what was done. Until then nothing that was answered may leave."""
        if self.is_spoiled:
            raise StateError("a run inside this one failed: half of a step may be in its structures")
        written: list[str] = []
        for structure in list(self.waiting):
            try:
                structure._commit()
            except Exception as error:
                if not written:
                    raise
                raise StateError(
                    f"{structure.path} could not be written ({error}), and was closed; {' and '.join(written)} had "
                    "been written before: they stand at different steps, and what this run released of them is lost "
                    "but for the last step, which can be released again (resume=True)"
                ) from error
            self.waiting.remove(structure)
            written.append(str(structure.path))
        self.is_done = True

    def end(self) -> None:
        """Closes what was not committed, and lets go."""
        try:
            self._end()
        finally:
            # Where that was interrupted; else it does nothing.
            self._end()

    def _end(self) -> None:
        for structure in self.structures:
            holder = self._holders.get(id(structure))
            if self.is_begun and not self.is_done:
                if holder is self:
                    with suppress(Exception):
                        structure.close()
                elif holder is not None:
                    holder.is_spoiled = True
            elif structure in self.waiting and not self.is_done:
                # Held, and nothing was done: there is nothing to write.
                with suppress(Exception):
                    structure._commit()
            if holder is self:
                del self._holders[id(structure)]

    def __exit__(self, *_: object) -> None:
        self.end()


def _check_same(
    file: str,
    name: str,
    kept: dict[str, Any],
    given_name: str,
    given: Mapping[str, Any],
    options: Mapping[str, str],
) -> None:
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
            raise _differs(file, options.get(word, word), theirs, ours)


def _differs(
    file: str, field: str, stored: Any, given: Any, do: str = "give what it was made with (or leave it out)"
) -> IncompatibleError:
    return IncompatibleError(
        f"{file} was made with {field} = {stored!r}, and {given!r} was given; {do}, or make a new structure in another "
        "file, with a budget of its own"
    )


def _written(name: str, keywords: Mapping[str, Any], job: Job | None = None) -> str:
    """A structure and its parameters as words."""
    words: dict[str, Any] = {"structure": name, "parameters": words_of(keywords)}
    if job is not None:
        words["job"] = job._asdict()
    return json.dumps(words, ensure_ascii=False, allow_nan=False)


def words_of(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as what JSON holds."""
    return {word: _word(word, value) for word, value in keywords.items()}


def _word(word: str, value: Any) -> Any:
    if isinstance(value, Budget):
        # As for pickle: what it was made from.
        return {type(value).__name__: value.__getnewargs_ex__()[1]}
    if word == "axes":
        return [_axis_words(one) for one in value]
    return list(value) if isinstance(value, tuple) else value


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
    if isinstance(value, dt.timezone):
        value = value.utcoffset(None)
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
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError, OverflowError) as error:
        raise StateError(f"the words of this store cannot be read: {type(error).__name__}") from None


def _job_of(words: str) -> Job | None:
    """What the command line kept, if it made the store."""
    found = json.loads(words).get("job")
    try:
        job = None if found is None else Job(**found)
        if job is not None and set(job.clock) != {"start", "end", "every", "tz"}:
            raise TypeError(job.clock)
        return job
    except TypeError:
        raise StateError("the words of this store cannot be read: they are of a later version") from None


def _value(word: str, value: Any) -> Any:
    if word == "privacy":
        ((kind, fields),) = value.items()
        budget: Any = _BUDGETS[kind]
        return budget(**fields)
    if word == "axes":
        return tuple(_axis_of(one) for one in value)
    return tuple(value) if isinstance(value, list) else value


def _axis_of(words: Any) -> axis.Axis:
    ((kind, fields),) = words.items()
    given = {field: fields[field] for field in _AXES[kind][1]}
    if isinstance(given.get("every"), dict):
        given["every"] = dt.timedelta(**given["every"])
    if isinstance(given.get("tz"), dict):
        given["tz"] = dt.timezone(dt.timedelta(**given["tz"]))
    if kind == "Regular":
        given["bins"] = given.pop("size")
    made: Any = _AXES[kind][0]
    found: axis.Axis = made(**given)
    return found
