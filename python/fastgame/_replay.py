"""From a table with a time column to private releases."""

from __future__ import annotations

import dataclasses
import datetime as dt
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from fastgame._arguments import call_for_table, integer, shown, text, words
from fastgame._core import JoinSize, Structure
from fastgame._rows import RowCounts
from fastgame._signals import waiting_signals
from fastgame._store import Unit, check_job
from fastgame._ticks import Ticks

if TYPE_CHECKING:
    import pyarrow as pa

    from fastgame._feeds import Released, Sink

__all__ = ["Feed", "replay", "replay_join"]

#: Rows of releases take some hundred bytes each.
_MOST_ROWS = 50_000_000


@dataclass(frozen=True)
class Feed:
    """What a structure takes from the rows of a table, and what it releases at each tick.

    Parameters
    ----------
    structure : ContinualCounter, ContinualVector, CountSketch or RangeCounter
        New, with the clock at step 1, or to go on with (`resume` of `replay`); with a horizon of at least that of the
        ticks.
    key : str or tuple of str, optional
        The column of keys, several for composite ones. A counter takes none; a range counter a column for each axis, by
        default those of the names of its axes.
    weight : str, optional
        The column of weights; 1 for each row without it. Whole numbers, but for a vector.
    keys : column, or tuple of columns, optional
        The **public** list of keys. Of a vector: the key of each cell; rows with another key are left out. Of a sketch:
        the keys to release. It must not come from the data: the keys that occur would give their owners away.
    boxes : list of boxes, or dict of them by name, optional
        Of a range counter: the public boxes to release, each as `RangeCounter.count` takes it, a dict or a pair of
        corners.
    top : int, optional
        Release only so many of `keys` or `boxes`, the largest values first, with intervals.
    confidence : float
        With `top`: the probability that the truth of every released row, at all releases of the ticks, lies in its
        interval.
    """

    structure: Structure
    _: dataclasses.KW_ONLY
    key: str | tuple[str, ...] | None = None
    weight: str | None = None
    keys: Any = None
    boxes: Any = None
    top: int | None = None
    confidence: float = 0.95


def replay(
    frame: Any,
    ticks: Ticks,
    structures: Structure | Feed | Mapping[str, Structure | Feed],
    *,
    time: str,
    key: str | tuple[str, ...] | None = None,
    weight: str | None = None,
    keys: Any = None,
    boxes: Any = None,
    top: int | None = None,
    confidence: float | None = None,
    delete_time: str | None = None,
    release_every: int = 1,
    until: Any = None,
    resume: bool = False,
    time_format: str | None = None,
    bad_rows: Literal["drop", "raise"] = "drop",
    counts: RowCounts | None = None,
    memory: int = 1 << 30,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Feeds a table with a time column into structures, tick by tick, and releases at each tick.

    Rows may come in any order. What is released, and when, depends on the parameters alone: every tick has its rows in
    the result, whether or not anything happened, also if the table is empty. Needs pyarrow (`fastgame-dp[cli]`).

    With `until` and `resume` a job runs every night over a table that grows: each run covers the steps after the last
    one that was released, up to the last release at or before `until`. It takes the events (a row's coming, its going)
    of these steps alone. Those of earlier steps were counted by an earlier run or came too late, those of later steps
    are left to a later one; so a row must keep its time, weight and key, and be there when its step is released. (Of a
    row that came too late the deletion still counts; nothing tells it from one that was counted.) Where there is no
    step left to do, what was released last is released again and repeats exactly, so that a run whose result was lost
    can be made again; its earlier steps cannot be read again.

    A run with structures of `fastgame.open` is one unit: it is in their files before this returns, or not at all. What
    is done is kept in memory until then; a long time can be covered in several calls, by `until`. Several structures
    have a file each, and are written one after the other: where that was cut short they stand at different steps, and
    those that lag are run alone first.

    Parameters
    ----------
    frame : table, or stream of record batches
        Anything that speaks Arrow (pyarrow, Polars, pandas, the results of DuckDB), a dict of columns, or an iterable
        of record batches. Read once, batch by batch. Each value is read by itself; in lists and columns of objects each
        element has the type that it has.
    ticks : Ticks
        The public clock. Rows before its start or from its end on are left out.
    structures : structure or Feed, or a dict of them by name
        What to feed. A bare structure takes `key`, `weight`, `keys`, `boxes`, `top` and `confidence` from this call
        (see Feed).
    time : str
        The column of times: timestamps, dates or ISO text, with a time zone if and only if the ticks have one. Text of
        the other kind is left out row by row; a typed column of it is an error.
    key, weight, keys, boxes, top, confidence
        For a bare structure; as in Feed.
    delete_time : str, optional
        The column with the time at which a row is taken out again; missing in rows that stay. Needs
        protect="lifetime".
    release_every : int
        Release at every so-many-th step, and at the last one of the ticks.
    until : str, date, datetime or datetime64, optional
        A public moment. Steps are released that end at or before it, all of the ticks without it. With a larger
        `release_every` the run ends at the last release that is due; later rows are left to a later run.
    resume : bool
        Go on with structures that were used; all at one step, and with the same ticks and keys as before. Nothing
        checks that but for the files of the command `fastgame`, which keep them. Without it they must be new.
    time_format : str, optional
        The form of times, if they are neither timestamps nor ISO text: of text in the words of `strptime`; "epoch_s" or
        "epoch_ms" of numbers of seconds or milliseconds since 1970 (in UTC: the ticks need a zone).
    bad_rows : "drop" or "raise"
        Rows that are no events (no time, or one of the other zone kind, out of range, no key, a weight beyond the
        bound) are left out one by one, or are an error before anything is released. A typed column without usable
        values (of the other zone kind, of truth values) is an error always.
    counts : RowCounts, optional
        Is given the numbers of rows that were read and left out. They are not private.
    memory : int
        Bytes of events to keep in memory; what is more waits in temporary files.
    progress : callable, optional
        Called after each release with the number of steps done and of all steps. What it is told is public. All
        structures stand at that step. Those in memory may be asked for more there (a heat map, a quantile), but not be
        updated. Those that are kept in files may not be asked, which is a StateError: what they say is on the disk when
        this returns; ask them then.

    Returns
    -------
    pyarrow.Table, or a dict of them by name
        Columns: time (the end of the step: what is released counts all before it), the key columns (or box),
        value, std (the standard deviation of the value's error). Sorted by time, then as `keys`. Of the steps of this
        run; without rows where no release was due yet.
        With `top` sorted by time and rank, and with the columns rank, lower and upper (an interval that holds for all
        rows of all releases of the ticks together, with probability `confidence`), and separated: whether lower is
        above the upper of the first key or box that was left out, or none was.

    Raises
    ------
    ValueError, TypeError
        A column that is missing or of a type that does not fit, structures that are in use (with `resume`: at different
        steps, or past `until`), parameters out of range.
    IncompatibleError
        The file of a structure was made by the command `fastgame` with another clock or another list of keys.
    StateError, OSError
        A structure was closed, a replay in another thread holds it, or its file cannot be written.
    BadRowsError
        With bad_rows="raise".
    ImportError
        Without pyarrow.

    What is wrong with parameters and rows is found before anything changes. After a later error (an
    interruption, a full disk) the structures are closed, as half of a step may be in them; those with a file can be
    opened again, and are as they were before the run. While files are written, signals to the main thread wait until
    this has returned. An end in between (a kill, a power cut) loses the result of what a file has already; the last
    step can be released again.
    """
    events, feeding = _with_pyarrow()
    options = _Options(ticks, release_every, until, resume, bad_rows, counts, memory, progress)
    _columns(time=time, delete_time=delete_time, time_format=time_format)
    feeds = _feeds(structures, key=key, weight=weight, keys=keys, boxes=boxes, top=top, confidence=confidence)
    players = {name: _Player(feeding.sink_of(feed, ticks), options) for name, feed in feeds.items()}
    times = events.Times(ticks, time, delete_time, time_format)
    tables = _run([_Input(frame, times, list(players.values()))], options)
    return dict(zip(players, tables, strict=True)) if isinstance(structures, Mapping) else tables[0]


def replay_join(
    left: Any,
    right: Any,
    ticks: Ticks,
    join: JoinSize,
    *,
    time: str,
    key: str | tuple[str, ...],
    weight: str | None = None,
    delete_time: str | None = None,
    right_time: str | None = None,
    right_key: str | tuple[str, ...] | None = None,
    right_weight: str | None = None,
    right_delete_time: str | None = None,
    release_every: int = 1,
    until: Any = None,
    resume: bool = False,
    time_format: str | None = None,
    bad_rows: Literal["drop", "raise"] = "drop",
    counts: RowCounts | None = None,
    memory: int = 1 << 30,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Feeds two tables with a time column into the sides of a join, tick by tick, and releases its size at each tick.

    As `replay`, of which all else is true. Needs pyarrow (`fastgame-dp[cli]`).

    Parameters
    ----------
    left, right : table, or stream of record batches
        As `frame` of `replay`. A person's rows in both together are the `contributions` of the join, and a row that
        stands in both is two.
    ticks : Ticks
        The public clock.
    join : JoinSize
        New, or to go on with (`resume`); with a horizon of at least that of the ticks.
    time, key, weight, delete_time
        The columns of the left table, as in `replay`.
    right_time, right_key, right_weight, right_delete_time
        Those of the right table; `right_time` and `right_key` as on the left, if they are not given. Without
        `right_weight` each row counts 1, without `right_delete_time` all rows stay.
    release_every, until, resume, time_format, bad_rows, counts, memory, progress
        As for `replay`.

    Returns
    -------
    pyarrow.Table
        Columns: time, value, std (by second moments: an upper bound on average), std_of_rows (by the spread of the
        rows; null at depth 1).

    Raises
    ------
    ValueError, TypeError, BadRowsError, ImportError
        As `replay`; TypeError also for keys of different kinds, which never match.
    """
    events, feeding = _with_pyarrow()
    options = _Options(ticks, release_every, until, resume, bad_rows, counts, memory, progress)
    _columns(time=time, delete_time=delete_time, time_format=time_format)
    _columns(right_time=right_time, right_delete_time=right_delete_time, right_weight=right_weight)
    if right_key is not None:
        feeding.names_of(right_key, "right_key")
    if not isinstance(join, JoinSize):
        raise TypeError(f"join must be a JoinSize; {type(join).__name__} was given")
    if left is right and isinstance(left, Iterator):
        raise ValueError("left and right are one stream, which is read once: give each side one of its own")
    sides = feeding.join_sinks(
        Feed(join, key=key, weight=weight),
        Feed(join, key=key if right_key is None else right_key, weight=right_weight),
        ticks,
    )
    players = [_Player(sink, options) for sink in sides]
    times = [
        events.Times(ticks, time, delete_time, time_format),
        events.Times(ticks, time if right_time is None else right_time, right_delete_time, time_format),
    ]
    inputs = [_Input(*each) for each in zip((left, right), times, ([player] for player in players), strict=True)]
    return _run(inputs, options)[0]


class _Input(NamedTuple):
    """A table, its columns of time, and what it feeds."""

    frame: Any
    times: Any
    players: list[_Player]


class _Options:
    """How a replay goes, checked."""

    def __init__(
        self,
        ticks: Any,
        release_every: Any,
        until: Any,
        resume: bool,
        bad_rows: str,
        counts: RowCounts | None,
        memory: Any,
        progress: Callable[[int, int], object] | None,
    ) -> None:
        if not isinstance(ticks, Ticks):
            raise TypeError(f"ticks must be fastgame.Ticks; {type(ticks).__name__} was given")
        if text(bad_rows, "bad_rows") not in ("drop", "raise"):
            raise ValueError(f'bad_rows must be "drop" or "raise"; {shown(bad_rows)} was given')
        if progress is not None and not callable(progress):
            raise TypeError(f"progress must be something to call, or None; {type(progress).__name__} was given")
        if counts is not None and not isinstance(counts, RowCounts):
            raise TypeError(f"counts must be a fastgame.RowCounts, or None; {type(counts).__name__} was given")
        self.ticks, self.strict, self.progress = ticks, bad_rows == "raise", progress
        self.release_every, self.memory = integer(release_every, "release_every"), integer(memory, "memory")
        if self.release_every < 1:
            raise ValueError(f"release_every must be at least 1; {shown(self.release_every)} was given")
        if self.memory < 0:
            raise ValueError(f"memory must be at least 0; {shown(self.memory)} was given")
        self.counts = RowCounts() if counts is None else counts
        if not isinstance(resume, bool | np.bool_):
            raise TypeError(f"resume must be True or False; {type(resume).__name__} was given")
        self.resume = bool(resume)
        #: The steps that end at or before `until`.
        self.due = ticks.horizon
        if until is not None:
            self.due = max(0, int(ticks.locate(np.array([ticks.instant(until, "until")]))[0]) - 1)

    @property
    def releases(self) -> int:
        """How many the whole clock has, in this run or another."""
        return -(-self.ticks.horizon // self.release_every)


class _Span(NamedTuple):
    """What a run covers: the steps whose events it takes, and those that it releases."""

    first: int
    last: int
    grid: range
    #: The last step, where it is not on the grid.
    end: tuple[int, ...] = ()

    @property
    def releases(self) -> int:
        """How many there are."""
        return len(self.grid) + len(self.end)


def _span(structures: Sequence[Any], options: _Options) -> _Span:
    """The steps that are to do; if there are none, the last one that was released, again."""
    states = [(structure.now, structure.sealed) for structure in structures]
    now, sealed = states[0]
    if not options.resume:
        used = [step for step, read in states if step != 1 or read]
        if used:
            raise ValueError(
                f"a structure must be new; one at step {used[0]} was given (resume=True goes on with the steps that "
                "follow)"
            )
    elif len(set(states)) > 1:
        states_shown = ", ".join(f"step {step} ({'released' if read else 'not released'})" for step, read in states)
        raise ValueError(
            f"structures that go on together must stand at the same step; {states_shown} were given: run those that "
            "lag alone, with until= the end of the step that the others have released"
        )
    done = now if sealed else now - 1
    horizon, every, due = options.ticks.horizon, options.release_every, options.due
    if done > due:
        raise ValueError(
            f"until must not be before the end of step {done}, which is done; it is in step {due + 1}. "
            f"Earlier steps cannot be released again: give a time from {options.ticks.time(done).isoformat()} on"
        )
    last = due if due == horizon else due // every * every
    if done < last:
        # The grid is that of all runs together.
        grid = range((done // every + 1) * every, last + 1, every)
        return _Span(done + 1, last, grid, () if grid and grid[-1] == last else (last,))
    return _Span(done + 1, done, range(done, done + int(sealed)))


def _columns(**names: Any) -> None:
    """Refuses names of columns that are no text; None stands for none, but of `time`."""
    for word, name in names.items():
        if name is not None or word == "time":
            text(name, word)


def _with_pyarrow() -> tuple[Any, Any]:
    """The modules that need pyarrow, which the base package does not."""
    try:
        importlib.import_module("pyarrow")
    except ImportError:
        raise ImportError('replay needs pyarrow: pip install "fastgame-dp[cli]"') from None
    return importlib.import_module("fastgame._events"), importlib.import_module("fastgame._feeds")


def _check_times(times: Sequence[Any], structures: Sequence[Any]) -> None:
    """Refuses a form of times that is none, and deletions that are not protected: whether or not a row is there."""
    values = importlib.import_module("fastgame._values")
    for one in times:
        if one.format is not None:
            values.check_format(one.format, one.ticks)
        if one.delete_time is not None and any(structure.protect != "lifetime" for structure in structures):
            raise ValueError(
                'delete_time needs structures with protect="lifetime": a row that comes and goes is two updates, and '
                "another protects one"
            )


def _run(inputs: list[_Input], options: _Options) -> list[Any]:
    """Reads all inputs, then plays them; the tables of those that release."""
    events = importlib.import_module("fastgame._events")
    players = [player for one in inputs for player in one.players]
    structures = [player.sink.structure for player in players]
    span = _span(structures, options)
    _check_times([one.times for one in inputs], structures)
    rows = span.releases * sum(player.rows for player in players)
    if rows > _MOST_ROWS:
        raise ValueError(
            f"{rows:,} rows would be released, of which at most {_MOST_ROWS:,} are held: take a larger release_every "
            "(or fewer keys, or `top`)"
        )
    for player in players:
        check_job(player.sink.structure, options.ticks, list(player.sink.labels.values()))
    unit = Unit(structures)
    stores = [events.Store(options.ticks.horizon, options.memory // len(players)) for _ in players]
    try:
        rest = iter(stores)
        for one in inputs:
            _collect(one, list(islice(rest, len(one.players))), options, span)
        for player, store in zip(players, stores, strict=True):
            player.begin(store.in_order())
        # Until here nothing has changed.
        with unit:
            for step in chain(span.grid, span.end):
                for player in players:
                    player.release(step)
                if options.progress is not None:
                    _tell_progress(options, step, unit.structures)
            tables = [player.table() for player in players if player.sink.reads]
            if not unit.waiting:
                unit.commit()
                return tables
            with waiting_signals(later=True):
                unit.commit()
        return tables
    finally:
        unit.end()
        for store in stores:
            store.close()


def _tell_progress(options: _Options, step: int, structures: Sequence[Any]) -> None:
    """Calls `progress`. What is kept in files is not answered from meanwhile, as it is not there yet."""
    kept = [structure for structure in structures if structure.path is not None]
    for structure in kept:
        structure._pause()
    assert options.progress is not None
    options.progress(step, options.ticks.horizon)
    for structure in kept:
        structure._resume()


def _collect(one: _Input, stores: list[Any], options: _Options, span: _Span) -> None:
    """Reads a table into the stores of its players."""
    events = importlib.import_module("fastgame._events")
    reader = events.Reader(one.times, options.counts, options.strict, span.first, span.last)
    sinks = [player.sink for player in one.players]
    needed = dict.fromkeys(name for name in (one.times.time, one.times.delete_time) if name is not None)
    for sink in sinks:
        needed.update(dict.fromkeys(sink.columns))
    first: Any = None
    for batch in _batches(one.frame, list(needed)):
        check_columns(batch.schema, one.times, sinks)
        first = first or batch.schema
        _check_same_keys(batch.schema, first, sinks)
        for store, found in zip(stores, reader.read(batch, sinks), strict=True):
            for piece in found:
                store.add(piece)


def _feeds(structures: Any, **bare: Any) -> dict[str, Feed]:
    """What is to be fed, by name; a single one has no name."""
    if isinstance(structures, Mapping):
        given = [name for name, value in bare.items() if value is not None]
        if given:
            raise TypeError(f"{' and '.join(given)} must stand in the Feed of each structure, where there are several")
        if not structures:
            raise ValueError("structures must have at least one structure; an empty dict was given")
        feeds = {name: feed if isinstance(feed, Feed) else Feed(feed) for name, feed in structures.items()}
    elif isinstance(structures, Feed):
        feeds = {"": structures}
    else:
        feeds = {"": Feed(structures, **{name: value for name, value in bare.items() if value is not None})}
    seen = [id(feed.structure) for feed in feeds.values()]
    if len(set(seen)) < len(seen):
        raise ValueError("a structure stands twice among the structures; each must be fed once")
    return feeds


class _Player:
    """Feeds one structure, and collects what it releases."""

    def __init__(self, sink: Sink, options: _Options) -> None:
        self.sink, self.ticks, self.releases = sink, options.ticks, options.releases
        self.batches: Iterator[Any] = iter(())
        self.batch: Any = None
        self.steps = np.empty(0, dtype=np.int64)
        self.position = 0
        self.released: list[tuple[int, Released]] = []

    @property
    def rows(self) -> int:
        """How many rows a release has."""
        return self.sink.top or max([1, *map(len, self.sink.labels.values())]) if self.sink.reads else 0

    def begin(self, batches: Iterator[Any]) -> None:
        """Takes the events, in the order of their steps."""
        self.batches = batches

    def release(self, step: int) -> None:
        """Moves the clock to a step, feeds what happened up to it, and releases."""
        self.sink.structure.advance(to=step)
        while True:
            if self.batch is None or self.position == len(self.steps):
                self.batch, self.position = next(self.batches, None), 0
                if self.batch is None:
                    self.steps = self.steps[:0]
                    break
                self.steps = np.asarray(self.batch.column("step"))
            end = int(np.searchsorted(self.steps, step, side="right"))
            if end > self.position:
                self._update(self.batch.slice(self.position, end - self.position))
                self.position = end
            if end < len(self.steps):
                break
        if self.sink.reads:
            self.released.append((step, self.sink.read(self.releases)))

    def _update(self, events: Any) -> None:
        taken = [events.column(name) for name in events.schema.names if name.startswith("key")]
        weights = np.asarray(events.column("weight")) if "weight" in events.schema.names else None
        self.sink.update(taken, weights, events.num_rows)

    def table(self) -> pa.Table:
        """All releases."""
        pa = importlib.import_module("pyarrow")
        each = [released for _, released in self.released]
        lengths = [len(released.value) for released in each]
        steps = np.repeat([step for step, _ in self.released], lengths).astype(np.int64)
        columns: dict[str, Any] = {"time": pa.array(self.ticks.ends(steps), _time_type(self.ticks))}
        if self.sink.top is not None:
            columns["rank"] = pa.array(np.tile(np.arange(1, self.sink.top + 1, dtype=np.int64), len(lengths)))
        if self.sink.labels:
            places = [np.arange(len(one.value)) if one.places is None else one.places for one in each]
            chosen = pa.array(np.concatenate([np.empty(0, dtype=np.int64), *places]))
            columns.update({name: label.take(chosen) for name, label in self.sink.labels.items()})
        none = np.empty(0)
        columns["value"] = np.concatenate([none, *(released.value for released in each)])
        columns["std"] = np.concatenate([none, *(released.std for released in each)])
        for name, kind in self.sink.more.items():
            parts = [np.empty(0, dtype=kind), *(released.more[name] for released in each)]
            columns[name] = pa.array(np.concatenate(parts), from_pandas=True)
        return pa.table(columns, metadata={"fastgame.structure": repr(self.sink.structure)})


def _time_type(ticks: Ticks) -> Any:
    pa = importlib.import_module("pyarrow")
    if ticks.tz is None:
        return pa.timestamp("us")
    name = getattr(ticks.tz, "key", None)
    if not isinstance(name, str):
        # A fixed offset may have any name; Arrow knows those of the database and +hh:mm.
        minutes, rest = divmod(ticks.tz.utcoffset(None) or dt.timedelta(0), dt.timedelta(minutes=1))
        hours, minutes = divmod(abs(minutes), 60)
        sign = "-" if (ticks.tz.utcoffset(None) or dt.timedelta(0)) < dt.timedelta(0) else "+"
        name = "UTC" if rest or not (hours or minutes) else f"{sign}{hours:02}:{minutes:02}"
    return pa.timestamp("us", name)


def check_columns(schema: Any, times: Any, sinks: Sequence[Sink]) -> None:
    """Refuses a table whose columns do not fit. Their names and types are taken as public."""
    values = importlib.import_module("fastgame._values")
    for name in (times.time, times.delete_time):
        if name is not None:
            values.check_time_column(schema.field(name).type, times, name)
    for sink in sinks:
        sink.check(schema)


def _check_same_keys(schema: Any, first: Any, sinks: Sequence[Sink]) -> None:
    """Refuses a batch whose keys are of another type than those before: integers without a sign, lists of objects."""
    pa = importlib.import_module("pyarrow")
    values = importlib.import_module("fastgame._values")
    for name in dict.fromkeys(name for sink in sinks for name in sink.keys):
        kinds = [values.value_type(one.field(name).type) for one in (schema, first)]
        known = [kind for kind in kinds if not pa.types.is_null(kind)]
        if len({(pa.types.is_uint64(kind), values.is_elements(kind)) for kind in known}) > 1:
            here, before = ("Python objects" if values.is_elements(kind) else kind for kind in kinds)
            raise TypeError(f"the column {name!r} is of type {here} here and {before} before: cast one of them")


def _batches(frame: Any, needed: list[str]) -> Iterator[Any]:
    """The needed columns of a table or stream, a record batch at a time."""
    pa = importlib.import_module("pyarrow")
    for batch in _pieces(frame, needed):
        _check_names(batch.schema.names, needed)
        chosen = batch.select(needed)
        if not isinstance(chosen, pa.Table):
            yield chosen
        elif chosen.num_rows:
            yield from chosen.to_batches()
        else:
            # Types are checked whether or not there are rows.
            yield pa.record_batch([part.combine_chunks() for part in chosen.columns], names=chosen.schema.names)


def _check_names(names: list[Any], needed: list[str]) -> None:
    """Refuses a table without the needed columns."""
    for name in needed:
        if names.count(name) != 1:
            known = f"the columns are {', '.join(map(shown, names))}" if names else "there are no columns"
            what = "stands more than once" if name in names else "is missing"
            raise ValueError(f"the column {shown(name)} {what}; {known}")


def _column(given: Any) -> Any:
    """A column as Arrow has it; of lists and columns of objects, each element with the type that it has."""
    pa = importlib.import_module("pyarrow")
    values = importlib.import_module("fastgame._values")
    if isinstance(given, list | tuple):
        return values.of_elements(given)
    if not (_is_pandas(given) or isinstance(given, np.ndarray)) or not hasattr(given, "dtype"):
        return given
    if given.dtype == np.dtype(object) and given.ndim == 1:
        masked = isinstance(given, np.ma.MaskedArray)
        return values.of_elements(given.tolist() if masked else list(given))
    categories = getattr(given.dtype, "categories", None)
    if categories is not None and categories.dtype == np.dtype(object):
        codes = np.asarray(given.array.codes)
        return values.of_elements(categories.tolist()).take(pa.array(codes, mask=codes < 0))
    return _column_of_a_type(given)


def _column_of_a_type(given: Any) -> Any:
    """A column of numpy or pandas that has a type."""
    pa = importlib.import_module("pyarrow")
    try:
        return pa.array(given, from_pandas=True)
    except UnicodeError:
        # Texts, of which one has no UTF-8 form: as bytes they are a column of text all the same.
        texts = [text if isinstance(text, str) else None for text in given.tolist()]
        in_bytes = [None if text is None else text.encode("utf-8", "surrogatepass") for text in texts]
        raw = pa.array(in_bytes, pa.large_binary())
        return pa.Array.from_buffers(pa.large_string(), len(raw), raw.buffers())


def _is_pandas(given: Any) -> bool:
    return type(given).__module__.partition(".")[0] == "pandas"


def _pieces(frame: Any, needed: list[str], batches: bool = True) -> Iterable[Any]:
    """The pieces of a table, or with `batches` of an iterable of tables."""
    pa = importlib.import_module("pyarrow")
    kind = type(frame)
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return [frame]
    if isinstance(frame, Mapping):
        _check_names(list(frame), needed)
        chosen = [name for name in frame if name in needed]
        try:
            return [pa.table({name: _column(frame[name]) for name in chosen})]
        except (pa.ArrowException, TypeError, ValueError, OverflowError, KeyError) as error:
            raise TypeError(f"the columns do not make a table: {words(error)}") from None
    if call := call_for_table(frame):
        raise TypeError(f"frame must be a table; a {kind.__name__} was given, which {call} makes one of")
    if _is_pandas(frame) and hasattr(kind, "columns"):
        _check_names(list(frame.columns), needed)
        chosen = [(place, name) for place, name in enumerate(frame.columns) if name in needed]
        try:
            columns = [_column(frame.iloc[:, place]) for place, _ in chosen]
            return [pa.Table.from_arrays(columns, [name for _, name in chosen])]
        except (pa.ArrowException, TypeError, ValueError, NotImplementedError) as error:
            raise TypeError(f"the table has a column that Arrow cannot hold: {words(error)}") from None
    try:
        if hasattr(kind, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(frame)
            return chain([reader.schema.empty_table()], reader)
        if hasattr(kind, "__arrow_c_array__"):
            return [pa.record_batch(frame)]
    except (pa.ArrowException, TypeError, ValueError) as error:
        what = f"a {kind.__name__} was given, which is none: {words(error)}"
        raise TypeError(f"frame must be a table that speaks Arrow; {what}") from None
    if batches and isinstance(frame, Iterable) and not isinstance(frame, str | bytes | np.ndarray):
        return (piece for item in frame for piece in _pieces(item, needed, batches=False))
    is_path = isinstance(frame, str | os.PathLike)
    how = " (a file is read first, as with pyarrow.csv.read_csv; the command fastgame takes files)" if is_path else ""
    raise TypeError(
        f"frame must be a table that speaks Arrow, a dict of columns, or record batches; {kind.__name__} was given{how}"
    )
