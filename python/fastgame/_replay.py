"""From a table with a time column to private releases."""

from __future__ import annotations

import dataclasses
import datetime as dt
import importlib
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fastgame._core import ContinualCounter, ContinualVector, CountSketch, Structure
from fastgame._rows import RowCounts
from fastgame._ticks import Ticks

if TYPE_CHECKING:
    import pyarrow as pa

    from fastgame._events import Source

__all__ = ["Feed", "replay"]

#: Rows of releases take some hundred bytes each.
_MOST_ROWS = 50_000_000


@dataclass(frozen=True)
class Feed:
    """What a structure takes from the rows of a table, and what it releases at each tick.

    Parameters
    ----------
    structure : ContinualCounter, ContinualVector or CountSketch
        New, with the clock at step 1, and a horizon of at least that of the ticks.
    key : str or tuple of str, optional
        The column of keys, several for composite ones. A counter takes none.
    weight : str, optional
        The column of weights; 1 for each row without it. Whole numbers, but for a vector.
    keys : column, or tuple of columns, optional
        The **public** list of keys. Of a vector: the key of each cell; rows with another key are left out. Of a sketch:
        the keys to release. It must not come from the data: the keys that occur would give their owners away.
    top : int, optional
        Release only so many of `keys`, the largest estimates first.
    """

    structure: Structure
    _: dataclasses.KW_ONLY
    key: str | tuple[str, ...] | None = None
    weight: str | None = None
    keys: Any = None
    top: int | None = None


def replay(
    frame: Any,
    ticks: Ticks,
    structures: Structure | Feed | Mapping[str, Structure | Feed],
    *,
    time: str,
    key: str | tuple[str, ...] | None = None,
    weight: str | None = None,
    keys: Any = None,
    top: int | None = None,
    delete_time: str | None = None,
    release_every: int = 1,
    time_format: str | None = None,
    bad_rows: Literal["drop", "raise"] = "drop",
    counts: RowCounts | None = None,
    memory: int = 1 << 30,
    progress: Callable[[int, int], object] | None = None,
) -> Any:
    """Feeds a table with a time column into structures, tick by tick, and releases at each tick.

    Rows may come in any order. What is released, and when, depends on the parameters alone: every tick has its rows in
    the result, whether or not anything happened, also if the table is empty. Needs pyarrow (`fastgame-dp[cli]`).

    Parameters
    ----------
    frame : table, or stream of record batches
        Anything that speaks Arrow (pyarrow, Polars, pandas, the results of DuckDB), a dict of columns, or an iterable
        of record batches. Read once, batch by batch.
    ticks : Ticks
        The public clock. Rows before its start or from its end on are left out.
    structures : structure or Feed, or a dict of them by name
        What to feed. A bare structure takes `key`, `weight`, `keys` and `top` from this call (see Feed).
    time : str
        The column of times: timestamps, dates or ISO text, with a time zone if and only if the ticks have one.
    key, weight, keys, top
        For a bare structure; as in Feed.
    delete_time : str, optional
        The column with the time at which a row is taken out again; missing in rows that stay. Needs
        protect="lifetime".
    release_every : int
        Release at every so-many-th step, and at the last.
    time_format : str, optional
        The form of text times, in the words of `strptime`, if it is not ISO.
    bad_rows : "drop" or "raise"
        Rows that are no events (no time, out of range, no key, a weight beyond the bound) are left out one by one, or
        are an error before anything is released. Mixed zones are an error always.
    counts : RowCounts, optional
        Is given the numbers of rows that were read and left out. They are not private.
    memory : int
        Bytes of events to keep in memory; what is more waits in temporary files.
    progress : callable, optional
        Called with the number of steps done and of all steps. What it is told is public.

    Returns
    -------
    pyarrow.Table, or a dict of them by name
        Columns: time (the end of the step: what is released counts all before it), the key columns, value, std (the
        standard deviation of the value's error); with `top`, also rank. Sorted by time, then as `keys`.

    Raises
    ------
    ValueError, TypeError
        A column that is missing or of a type that does not fit, structures that are in use, parameters out of range.
    BadRowsError
        With bad_rows="raise".
    ImportError
        Without pyarrow.
    """
    try:
        importlib.import_module("pyarrow")
    except ImportError:
        raise ImportError('replay needs pyarrow: pip install "fastgame-dp[cli]"') from None
    events = importlib.import_module("fastgame._events")
    if not isinstance(ticks, Ticks):
        raise TypeError(f"ticks must be fastgame.Ticks; {type(ticks).__name__} was given")
    release_every, memory = operator.index(release_every), operator.index(memory)
    _check_parameters(bad_rows, release_every)
    feeds = _feeds(structures, key=key, weight=weight, keys=keys, top=top)
    players = {name: _Player(feed, ticks, name) for name, feed in feeds.items()}
    if delete_time is not None and any(feed.structure.protect != "lifetime" for feed in feeds.values()):
        raise ValueError(
            'delete_time needs structures with protect="lifetime": a row that comes and goes is two updates, and '
            "another protects one"
        )
    rows = -(-ticks.horizon // release_every) * sum(player.rows for player in players.values())
    if rows > _MOST_ROWS:
        raise ValueError(
            f"{rows:,} rows would be released, of which at most {_MOST_ROWS:,} are held: take a larger release_every "
            "(or fewer keys, or `top`)"
        )
    times = events.Times(ticks, time, delete_time, time_format)
    reader = events.Reader(times, RowCounts() if counts is None else counts, bad_rows == "raise")
    stores = [events.Store(ticks.horizon, memory // len(players)) for _ in players]
    try:
        needed = dict.fromkeys(name for name in (time, delete_time) if name is not None)
        for player in players.values():
            needed.update(dict.fromkeys(player.columns))
        sources = [player.source for player in players.values()]
        first: Any = None
        for batch in _batches(frame, list(needed)):
            _check_columns(batch.schema, times, sources)
            first = first or batch.schema
            _check_same_keys(batch.schema, first, sources)
            for store, found in zip(stores, reader.read(batch, sources), strict=True):
                for piece in found:
                    store.add(piece)
        for player, store in zip(players.values(), stores, strict=True):
            player.begin(store.in_order())
        _play(list(players.values()), ticks, release_every, progress)
    finally:
        for store in stores:
            store.close()
    tables = {name: player.table() for name, player in players.items()}
    return tables if isinstance(structures, Mapping) else tables[""]


def _check_parameters(bad_rows: str, release_every: int) -> None:
    if bad_rows not in ("drop", "raise"):
        raise ValueError(f'bad_rows must be "drop" or "raise"; {bad_rows!r} was given')
    if release_every < 1:
        raise ValueError(f"release_every must be at least 1; {release_every} was given")


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
        feeds = {"": Feed(structures, **bare)}
    seen = [id(feed.structure) for feed in feeds.values()]
    if len(set(seen)) < len(seen):
        raise ValueError("a structure stands twice among the structures; each must be fed once")
    return feeds


class _Player:
    """Feeds one structure and collects what it releases."""

    def __init__(self, feed: Feed, ticks: Ticks, name: str) -> None:
        events = importlib.import_module("fastgame._events")
        structure: Any = feed.structure
        if not isinstance(structure, ContinualCounter | ContinualVector | CountSketch):
            raise TypeError(
                "structures must be ContinualCounter, ContinualVector or CountSketch; "
                f"{type(structure).__name__} was given"
            )
        if structure.now != 1 or structure.sealed:
            raise ValueError(f"a structure must be new; one at step {structure.now} was given")
        if structure.horizon < ticks.horizon:
            raise ValueError(
                f"the horizon of a structure must be at least that of the ticks, {ticks.horizon}; one with "
                f"{structure.horizon} was given"
            )
        self.feed, self.ticks, self.structure = feed, ticks, structure
        self.key = _names(feed.key)
        taken = [name for name in self.key if name in ("time", "rank", "value", "std")]
        if taken:
            raise ValueError(
                f"a key column must not be named {taken[0]!r}, as a column of the releases is: rename it in the data"
            )
        self.keys = None if feed.keys is None else [_arrow_column(part) for part in _parts(feed.keys)]
        self._check_keys()
        self.columns = [*self.key, *([] if feed.weight is None else [feed.weight])]
        bound = structure.max_norm if isinstance(structure, ContinualVector) else structure.max_weight
        if feed.weight is None and bound < 1 and structure.on_excess == "error":
            raise ValueError(
                f"rows without a weight count 1, and max_norm is {bound:g}: every row would be beyond the bound (raise "
                'it, name a column of weights, or use on_excess="clip")'
            )
        self.source = events.Source(
            self.key,
            feed.weight,
            bound if structure.on_excess == "error" else None,
            not isinstance(structure, ContinualVector),
            self._lookup() if isinstance(structure, ContinualVector) else None,
            None if self.keys is None else tuple(part.type for part in self.keys),
        )
        self.batches: Iterator[Any] = iter(())
        self.batch: Any = None
        self.steps = np.empty(0, dtype=np.int64)
        self.position = 0
        self.released: list[tuple[int, Any, Any, Any]] = []

    def _check_keys(self) -> None:
        feed, structure = self.feed, self.structure
        kind = type(structure).__name__
        if isinstance(structure, ContinualCounter):
            given = [name for name in ("key", "keys", "top") if getattr(feed, name) is not None]
            if given:
                raise TypeError(f"a ContinualCounter counts all rows and takes no {' or '.join(given)}")
            return
        if not self.key:
            raise TypeError(f"key must name the column of keys that a {kind} takes; none was given")
        if self.keys is None:
            raise TypeError(
                f"keys must be the public list of keys that a {kind} releases; none was given (the keys that occur in "
                "the data are not public)"
            )
        rows = {len(part) for part in self.keys}
        if len(self.keys) != len(self.key) or len(rows) != 1:
            raise ValueError(
                f"keys must have one column for each of {', '.join(self.key)}, all of one length; columns of lengths "
                f"{[len(part) for part in self.keys]} were given"
            )
        (count,) = rows
        if any(part.null_count for part in self.keys):
            raise ValueError("keys must not be missing; there is a null in the list")
        if isinstance(structure, ContinualVector) and count != structure.size:
            raise ValueError(f"keys must name each of the vector's {structure.size} cells; {count} keys were given")
        if feed.top is not None and not 1 <= feed.top <= count:
            raise ValueError(f"top must be from 1 to the number of keys, {count}; {feed.top} was given")

    def _lookup(self) -> Callable[[list[Any]], Any]:
        """From key columns to cells; -1 for keys that are not listed."""
        keys = self.keys
        assert keys is not None
        stages = []
        listed = np.zeros(len(keys[0]), dtype=np.int64)
        for part in keys:
            values = part.unique()
            codes = listed * len(values) + _index_in(part, values)
            known, listed = np.unique(codes, return_inverse=True)
            stages.append((values, known))
        if len(stages[-1][1]) < len(keys[0]):
            raise ValueError("keys must differ, as each is a cell; one stands twice in the list")
        order = np.argsort(listed)

        def cells(columns: list[Any]) -> Any:
            found: Any = 0
            for column, (values, known) in zip(columns, stages, strict=True):
                index = _index_in(column, values)
                codes = found * len(values) + index
                place = np.minimum(np.searchsorted(known, codes), len(known) - 1)
                found = np.where((index >= 0) & (found >= 0) & (known[place] == codes), place, -1)
            return np.where(found >= 0, order[found], -1)

        return cells

    @property
    def rows(self) -> int:
        """How many rows a release has."""
        return self.feed.top or (1 if self.keys is None else len(self.keys[0]))

    def begin(self, batches: Iterator[Any]) -> None:
        """Takes the events, in the order of their steps."""
        self.batches = batches

    def release(self, step: int) -> None:
        """Moves the clock to a step, feeds what happened up to it, and releases."""
        self.structure.advance(to=step)
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
        self._read(step)

    def _update(self, events: Any) -> None:
        keys = [events.column(name) for name in events.schema.names if name.startswith("key")]
        weights = np.asarray(events.column("weight")) if "weight" in events.schema.names else None
        structure = self.structure
        if isinstance(structure, ContinualCounter):
            structure.update(np.ones(events.num_rows, dtype=np.int64) if weights is None else weights)
        elif isinstance(structure, CountSketch):
            structure.update(tuple(keys) if len(keys) > 1 else keys[0], 1 if weights is None else weights)
        else:
            structure.update_batch(_OneEach(np.asarray(keys[0]), weights, structure.size))

    def _read(self, step: int) -> None:
        structure, top = self.structure, self.feed.top
        if isinstance(structure, CountSketch):
            assert self.keys is not None
            values, std = structure.estimate(tuple(self.keys) if len(self.keys) > 1 else self.keys[0], error=True)
        else:
            values = np.atleast_1d(structure.release())
            std = np.full(len(values), structure.noise_std())
        chosen = None
        if top is not None:
            chosen = np.argsort(-values, kind="stable")[:top]
            values, std = values[chosen], std[chosen]
        self.released.append((step, values, std, chosen))

    def table(self) -> pa.Table:
        """All releases."""
        pa = importlib.import_module("pyarrow")
        lengths = [len(values) for _, values, _, _ in self.released]
        steps = np.repeat([step for step, _, _, _ in self.released], lengths).astype(np.int64)
        columns: dict[str, Any] = {"time": pa.array(self.ticks.ends(steps), _time_type(self.ticks))}
        if self.feed.top is not None:
            columns["rank"] = pa.array(np.tile(np.arange(1, self.feed.top + 1), len(lengths)))
        if self.keys is not None:
            chosen = [
                slice_ if slice_ is not None else np.arange(length)
                for (*_, slice_), length in zip(self.released, lengths, strict=True)
            ]
            places = pa.array(np.concatenate(chosen))
            columns.update({name: part.take(places) for name, part in zip(self.key, self.keys, strict=True)})
        columns["value"] = np.concatenate([values for _, values, _, _ in self.released])
        columns["std"] = np.concatenate([std for _, _, std, _ in self.released])
        return pa.table(columns, metadata={"fastgame.structure": repr(self.structure)})


class _OneEach:
    """A sparse matrix with one number in each row, as much of it as a vector's update takes."""

    def __init__(self, cells: Any, weights: Any, size: int) -> None:
        self.indices = cells
        self.data = np.ones(len(cells)) if weights is None else weights
        self.indptr = np.arange(len(cells) + 1)
        self.shape = (len(cells), size)

    def tocsr(self) -> _OneEach:
        return self


def _play(
    players: list[_Player], ticks: Ticks, release_every: int, progress: Callable[[int, int], object] | None
) -> None:
    for step in _release_steps(ticks, release_every):
        for player in players:
            player.release(step)
        if progress is not None:
            progress(step, ticks.horizon)


def _release_steps(ticks: Ticks, release_every: int) -> Iterable[int]:
    """Every so-many-th step, and the last."""
    steps = range(release_every, ticks.horizon + 1, release_every)
    return chain(steps, () if steps and steps[-1] == ticks.horizon else (ticks.horizon,))


def _names(key: Any) -> tuple[str, ...]:
    if key is None:
        return ()
    names = (key,) if isinstance(key, str) else tuple(key)
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise TypeError(f"key must be the name of a column, or a tuple of different names; {key!r} was given")
    return names


def _parts(keys: Any) -> tuple[Any, ...]:
    return keys if isinstance(keys, tuple) else (keys,)


def _arrow_column(column: Any) -> Any:
    """A public list of keys as an Arrow array of one of the types that events have."""
    pa = importlib.import_module("pyarrow")
    events = importlib.import_module("fastgame._events")
    if isinstance(column, str | bytes):
        raise TypeError(f"keys must be a list or column of keys, or a tuple of them; {column!r} was given")
    try:
        if hasattr(type(column), "__arrow_c_stream__"):
            column = pa.chunked_array(column).combine_chunks()
        try:
            array = pa.array(column)
        except OverflowError:
            array = pa.array(column, pa.uint64())
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"keys must be a list or column of keys of one type: {error}") from None
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    events.check_key_column(array.type, "keys")
    return events.key_column(array, "keys")


def _index_in(column: Any, values: Any) -> Any:
    """Where each element stands among the values; -1 if nowhere."""
    pa = importlib.import_module("pyarrow")
    pc = importlib.import_module("pyarrow.compute")
    events = importlib.import_module("fastgame._events")
    if column.type != values.type:
        # Integers of two types; what does not fit into the listed one's is not listed.
        pieces = events.cast_each(column, values.type) if len(column) else [column.cast(values.type)]
        column = pa.concat_arrays(pieces)
    found = pc.index_in(column, value_set=values, skip_nulls=True)
    return np.asarray(found.fill_null(-1)).astype(np.int64)


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


def _check_columns(schema: Any, times: Any, sources: Sequence[Source]) -> None:
    """Refuses a table whose columns do not fit. Their names and types are taken as public."""
    events = importlib.import_module("fastgame._events")

    def kind(name: str) -> Any:
        return schema.field(name).type

    for name in (times.time, times.delete_time):
        if name is not None:
            events.check_time_column(kind(name), times, name)
    for source in sources:
        for place, name in enumerate(source.key):
            events.check_key_column(kind(name), name, floats=True)
            if source.key_types is not None:
                events.check_same_kind(kind(name), source.key_types[place], name)
        if source.weight is not None:
            events.check_weight_column(kind(source.weight), source.weight)


def _check_same_keys(schema: Any, first: Any, sources: Sequence[Source]) -> None:
    """Refuses a batch whose keys are of another type than those before, as 64-bit integers without a sign."""
    pa = importlib.import_module("pyarrow")
    events = importlib.import_module("fastgame._events")
    for name in dict.fromkeys(name for source in sources for name in source.key):
        kinds = [events.value_type(one.field(name).type) for one in (schema, first)]
        if len({pa.types.is_uint64(kind) for kind in kinds if not pa.types.is_null(kind)}) > 1:
            raise TypeError(f"the column {name!r} is of type {kinds[0]} here and {kinds[1]} before: cast one of them")


def _batches(frame: Any, needed: list[str]) -> Iterator[Any]:
    """The needed columns of a table or stream, a record batch at a time."""
    pa = importlib.import_module("pyarrow")
    for batch in _pieces(frame, needed):
        names = batch.schema.names
        missing = [name for name in needed if names.count(name) != 1]
        if missing:
            known = ", ".join(map(repr, names))
            what = "stands more than once" if missing[0] in names else "is missing"
            raise ValueError(f"the column {missing[0]!r} {what}; the columns are {known}")
        chosen = batch.select(needed)
        if not isinstance(chosen, pa.Table):
            yield chosen
        elif chosen.num_rows:
            yield from chosen.to_batches()
        else:
            # Types are checked whether or not there are rows.
            yield pa.record_batch([part.combine_chunks() for part in chosen.columns], names=chosen.schema.names)


def _column(pa: Any, given: Any) -> Any:
    """A list may have missing values of any kind."""
    return pa.array(given, from_pandas=True) if isinstance(given, list | tuple) else given


def _pieces(frame: Any, needed: list[str]) -> Iterable[Any]:
    pa = importlib.import_module("pyarrow")
    kind = type(frame)
    if isinstance(frame, pa.Table | pa.RecordBatch):
        return [frame]
    if isinstance(frame, Mapping):
        chosen = [name for name in frame if name in needed]
        try:
            return [pa.table({name: _column(pa, frame[name]) for name in chosen})]
        except pa.ArrowException as error:
            raise TypeError(f"the columns do not make a table: {error}") from None
    if hasattr(kind, "collect") and not hasattr(kind, "__arrow_c_stream__"):
        raise TypeError(f"frame must be a table; a {kind.__name__} was given, which .collect() makes one of")
    if kind.__module__.partition(".")[0] == "pandas" and hasattr(kind, "columns"):
        chosen = frame[[name for name in frame.columns if name in needed]]
        try:
            return [pa.Table.from_pandas(chosen, preserve_index=False)]
        except (pa.ArrowException, TypeError) as error:
            raise TypeError(f"the table has a column that Arrow cannot hold: {error}") from None
    if hasattr(kind, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(frame)
        return chain([reader.schema.empty_table()], reader)
    if hasattr(kind, "__arrow_c_array__"):
        return [pa.record_batch(frame)]
    if isinstance(frame, Iterable) and not isinstance(frame, str | bytes | np.ndarray):
        return (piece for item in frame for piece in _pieces(item, needed))
    raise TypeError(
        f"frame must be a table that speaks Arrow, a dict of columns, or record batches; {kind.__name__} was given"
    )
