"""Between the values of axes and the places of a range counter's grid, and what is computed from its counts."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence, Set, ValuesView
from typing import Any

import numpy as np
import numpy.typing as npt

from fastgame._arguments import array_of, call_for_table, did_you_mean, integer, plain, sequence, shown, sized
from fastgame._results import Grid, HeavyHitters, Top
from fastgame.axis import Axis, Datetime, Invalid, StrCategory

Places = npt.NDArray[np.int64]


def checked_axes(axes: Any) -> tuple[tuple[Axis, ...], list[int]]:
    """The axes as a tuple, and the sizes of their grid."""
    if isinstance(axes, Axis):
        axes = [axes]
    try:
        axes = tuple(axes) if isinstance(axes, Iterable) else ()
    except TypeError:
        axes = ()
    if not axes or not all(isinstance(axis, Axis) for axis in axes):
        raise TypeError("axes must be a list of axes of fastgame.axis, such as axis.Regular(100, 0, 5000)")
    names = [axis.name for axis in axes if axis.name is not None]
    if len(set(names)) < len(names):
        raise ValueError(f"the axes must have different names; {names} were given")
    return axes, [axis.extent for axis in axes]


def points(axes: tuple[Axis, ...], given: Any, drop: bool) -> Places:
    """Points as places, a row each; a single point is one row without a second dimension.

    With `drop`, values without a bin have the place -1, which the counter drops; else they are an error.
    """
    columns, single = _columns(axes, given, drop)
    invalid: Invalid = "drop" if drop else "raise"
    found = [axis.index(column, invalid=invalid) for axis, column in zip(axes, columns, strict=True)]
    lengths = {len(places) for places in found}
    if len(lengths) > 1:
        raise ValueError(f"points must have a value on each axis; columns of lengths {sorted(lengths)} were given")
    if not drop:
        for axis, places in zip(axes, found, strict=True):
            if places.size and places.min() < 0:
                raise ValueError(
                    f"the point at position {int(np.argmin(places >= 0))} has no bin on {axis!r}: it is missing, or "
                    'the axis has no flow bin there (invalid="drop" leaves such points out)'
                )
    rows = np.stack(found, axis=1)
    return _one(rows) if single else rows


def _columns_of_table(names: Sequence[str | None], given: Any) -> tuple[Sequence[Any], bool]:
    """As `_columns`."""
    if call := call_for_table(given):
        raise TypeError(f"points must be a table; a {type(given).__name__} was given, which {call} makes one of")
    if None in names:
        raise TypeError("a table of points needs axes with names")
    listed = getattr(given, "column_names", None) if not isinstance(given, Mapping) else given
    known = list(given.columns if listed is None else listed)
    if absent := [name for name in names if name not in known]:
        has = f"they have {', '.join(map(repr, known)) or 'none'}"
        raise ValueError(f"the points have no column {absent[0]!r}; {has}, the axes are {', '.join(map(repr, names))}")
    parts = [plain(given[name], "points") for name in names]
    single = all(map(_is_single, parts))
    return [[part] for part in parts] if single else parts, single


def _columns(axes: tuple[Axis, ...], given: Any, drop: bool) -> tuple[Sequence[Any], bool]:
    """A column for each axis, and whether it is a single point."""
    given = plain(given, "points")
    names = [axis.name for axis in axes]
    if isinstance(given, Mapping) or hasattr(type(given), "columns") or hasattr(type(given), "column_names"):
        return _columns_of_table(names, given)
    if len(axes) == 1 and not (isinstance(given, tuple) and len(given) == 1):
        return _column_of_one_axis(given, drop)
    if isinstance(given, tuple):
        # Never rows: with as many rows as axes nobody could tell them from columns.
        if len(given) != len(axes) or any(isinstance(part, tuple) for part in given):
            raise ValueError(
                f"a tuple is one of {len(axes)} values or columns, one for each axis; give points as a list of rows"
            )
        parts = [plain(part, "points") for part in given]
        single = all(_is_single(part) for part in parts)
        return [[part] for part in parts] if single else parts, single
    if isinstance(given, np.ndarray):
        if given.ndim not in (1, 2) or given.shape[-1] != len(axes):
            raise ValueError(
                f"points must have the shape ({len(axes)},) for one, or (n, {len(axes)}); {given.shape} was given"
            )
        return list(np.atleast_2d(given).T), given.ndim == 1
    if isinstance(given, str | bytes | ValuesView | Set) or not isinstance(given, Iterable):
        raise TypeError(f"points must have {len(axes)} values each; {type(given).__name__} was given")
    rows = list(given)
    if rows and all(_is_single(part) for part in rows) and len(rows) == len(axes):
        return [[part] for part in rows], True
    for position, row in enumerate(rows):
        if _is_single(row) or isinstance(row, Mapping | Set) or len(row) != len(axes):
            raise ValueError(f"points must have {len(axes)} values each; the one at position {position} has not")
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in axes], False


def _column_of_one_axis(given: Any, drop: bool) -> tuple[Sequence[Any], bool]:
    """As `_columns`."""
    if isinstance(given, list) and drop:
        # What other rows are is no matter for any of them.
        return [[_only(row) for row in given]], False
    if isinstance(given, list) and any(isinstance(row, list | tuple) for row in given):
        if not all(isinstance(row, list | tuple) and len(row) == 1 for row in given):
            raise ValueError("points must be values, or rows of one value, for one axis; other rows were given")
        given = [row[0] for row in given]
    single = _is_single(given)
    if isinstance(given, list):
        has_dimensions = any(isinstance(row, np.ndarray) and row.ndim for row in given)
    else:
        has_dimensions = not single and not hasattr(type(given), "to_pylist") and np.ndim(given) > 1
    if has_dimensions:
        given = array_of(given, "points", "must be values")
        if given.ndim != 2 or given.shape[1] != 1:
            raise ValueError(f"points must have the shape (n,) or (n, 1), for one axis; {given.shape} was given")
        given = given[:, 0]
    return [[given] if single else given], single


def _only(row: Any) -> Any:
    """The value of a row of one; what is no row is a value."""
    is_row = isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1)
    return row[0] if is_row and len(row) == 1 else row


def _one(rows: Places) -> Any:
    """The only row; of a single axis its number, as an array of one would be several."""
    return rows[0, 0] if rows.shape[1] == 1 else rows[0]


def _is_single(value: Any) -> bool:
    if value is None or isinstance(value, str | bytes | np.generic):
        return True
    return not sized(value) or (isinstance(value, np.ndarray) and value.ndim == 0)


def boxes(axes: tuple[Axis, ...], lo: Any, hi: Any) -> tuple[Places, Places]:
    """Boxes as their corners in the grid: arrays of shape (axes,) for one, or (n, axes)."""
    if isinstance(lo, Mapping):
        if hi is not None:
            raise TypeError("a box given by the names of axes is one argument; two were given")
        return _named_boxes(axes, lo)
    if hi is None and not (len(axes) == 1 and _is_single(lo)):
        raise TypeError("a box is given by two corners, or by a dict from the names of axes to (from, to)")
    lo, hi = plain(lo, "lo"), plain(hi, "hi")
    lo, hi = (corner if _is_single(corner) else sequence(corner, name) for corner, name in ((lo, "lo"), (hi, "hi")))
    low, high = (_corners(axes, corner) for corner in (lo, hi))
    single = all(_is_corner(axes, corner) for corner in (lo, hi))
    count = len(low)
    if len(high) != count:
        raise ValueError(f"lo and hi must be corners of as many boxes; {len(low)} and {len(high)} were given")
    found = np.array(
        [
            [axis.interval((a, b)) for axis, a, b in zip(axes, first, last, strict=True)]
            for first, last in zip(low, high, strict=True)
        ],
        dtype=np.int64,
    ).reshape(count, len(axes), 2)
    return (_one(found[:, :, 0]), _one(found[:, :, 1])) if single else (found[:, :, 0], found[:, :, 1])


def _is_corner(axes: tuple[Axis, ...], corner: Any) -> bool:
    """Whether it is the corner of one box, and not those of several."""
    if len(axes) == 1:
        return _is_single(corner)
    if _is_single(corner):
        raise TypeError(f"a corner must have {len(axes)} values, one for each axis; {shown(corner)} was given")
    return len(corner) > 0 and all(_is_single(value) for value in corner)


def _corners(axes: tuple[Axis, ...], corner: Any) -> list[Sequence[Any]]:
    """The corners of boxes, one sequence of values each."""
    corners: list[Sequence[Any]]
    if _is_corner(axes, corner):
        corners = [[corner] if len(axes) == 1 else list(corner)]
    elif len(axes) == 1:
        corners = [[value] if _is_single(value) else sequence(value, "a corner") for value in corner]
    else:
        if any(_is_single(row) for row in corner):
            raise ValueError(f"a corner must have {len(axes)} values, one for each axis")
        corners = [sequence(row, "a corner") for row in corner]
    for row in corners:
        if len(row) != len(axes):
            raise ValueError(f"a corner must have {len(axes)} values, one for each axis; {len(row)} were given")
    return corners


def _named_boxes(axes: tuple[Axis, ...], given: Mapping[str, Any]) -> tuple[Places, Places]:
    names = [axis.name for axis in axes if axis.name is not None]
    for name in given:
        if name not in names:
            known = ", ".join(map(repr, names)) or "without names"
            hint = did_you_mean(name, names) if isinstance(name, str) else ""
            raise ValueError(f"there is no axis {shown(name)}{hint}; the axes are {known}")
    sides: list[list[tuple[int, int]]] = []
    counts = set()
    for axis in axes:
        bounds = None if axis.name is None else plain(given.get(axis.name), f"a box of the axis {axis.name!r}")
        if bounds is None:
            sides.append([(0, axis.extent)])
        elif isinstance(bounds, str) or (isinstance(bounds, tuple) and all(map(_is_single, bounds))):
            sides.append([axis.interval(bounds)])
        elif isinstance(bounds, tuple) and len(bounds) == 2:
            several = [bound for bound in bounds if not _is_single(bound)]
            length = len(several[0])
            low, high = (
                [bound] * length if _is_single(bound) else sequence(bound, f"a bound of the axis {axis.name!r}")
                for bound in bounds
            )
            if len(low) != len(high):
                raise ValueError(f"the bounds of {axis.name!r} must be as many; {len(low)} and {len(high)} were given")
            sides.append([axis.interval(pair) for pair in zip(low, high, strict=True)])
            counts.add(length)
        elif _is_single(bounds) or isinstance(bounds, slice):
            raise TypeError(f"a box of the axis {axis.name!r} is (from, to); {shown(bounds)} was given")
        else:
            # Categories, or pairs.
            listed = sequence(bounds, f"the boxes of the axis {axis.name!r}")
            sides.append([axis.interval(bound) for bound in listed])
            counts.add(len(sides[-1]))
    several_boxes = bool(counts)
    if len(counts) > 1:
        counts.discard(1)
    if len(counts) > 1:
        raise ValueError(f"the axes must name as many boxes each, or one; {sorted(counts)} were given")
    count = counts.pop() if counts else 1
    wide = np.array([side * count if len(side) == 1 else side for side in sides], dtype=np.int64)
    wide = wide.reshape(len(axes), count, 2)
    lo, hi = wide[:, :, 0].T, wide[:, :, 1].T
    return (np.ascontiguousarray(lo), np.ascontiguousarray(hi)) if several_boxes else (_one(lo), _one(hi))


def values(axes: tuple[Axis, ...] | None, places: list[int] | None, shape: list[int]) -> Any:
    """Places of the only axis as its values, in a shape; without places, what stands for no number."""
    if places is None:
        is_number = axes is None or not isinstance(axes[0], Datetime | StrCategory)
        return np.full(shape, np.nan if is_number else None) if shape else None
    if axes is None:
        found: Any = np.array(places, dtype=np.int64).reshape(shape)
        return int(found) if found.ndim == 0 else found
    keys = [axes[0].key(place) for place in places]
    if not shape:
        return keys[0]
    # Minus infinity would make floats of integers.
    mixed = any(isinstance(key, int) and abs(key) > 1 << 53 for key in keys) and any(
        isinstance(key, float) for key in keys
    )
    return np.array(keys, dtype=object if mixed else None).reshape(shape)


def cdf(counter: Any, x: Any) -> Any:
    """The released share before edges."""
    if len(counter.shape) != 1:
        raise ValueError(f"a cdf is one of a single axis; this counter has {len(counter.shape)}")
    x = plain(x, "x")
    single = _is_single(x)
    wanted = [x] if single else sequence(x, "x")
    if counter.axes is None:
        ends, top = [integer(value, "x") for value in wanted], counter.shape[0]
        if beyond := [end for end in ends if not 0 <= end <= top]:
            raise ValueError(f"x must be from 0 to {top}; {shown(beyond[0])} was given")
    else:
        ends = [counter.axes[0].bound(value) for value in wanted]
    shares = counter._cdf_places(ends)
    if single:
        return None if shares is None else shares[0]
    return np.full(len(ends), np.nan) if shares is None else np.array(shares)


def _count_places(counter: Any, lo: Places, hi: Places, error: bool) -> tuple[Any, Any]:
    """Counts of boxes given by places, whether or not there are axes."""
    found = counter._count_places(lo, hi, error)
    return (found.value, found.std) if error else (found, None)


def heavy_hitters(
    axes: tuple[Axis, ...] | None, places: list[int], counts: list[float], complete: bool
) -> HeavyHitters:
    """Places and counts as keys and counts."""
    keys = places if axes is None else [axes[0].key(place) for place in places]
    return HeavyHitters([Top(key, count) for key, count in zip(keys, counts, strict=True)], complete)


def grid(counter: Any, bins: Any, error: bool) -> Grid:
    """Counts of a coarser grid."""
    dims = len(counter.shape)
    bins = plain(bins, "bins")
    single = _is_single(bins)
    most = [integer(bins, "bins")] * dims if single else [integer(most, "bins") for most in sequence(bins, "bins")]
    if len(most) != dims:
        raise ValueError(f"bins must be a number, or one for each of the {dims} axes; {len(most)} were given")
    return _counted(counter, [_side(counter, axis, most[axis]) for axis in range(dims)], error)


def marginal(counter: Any, axis: Any, bins: Any, error: bool) -> Grid:
    """Counts along one axis, over all of the others."""
    dims = len(counter.shape)
    if isinstance(axis, str):
        names = [] if counter.axes is None else [known.name for known in counter.axes if known.name is not None]
        if axis not in names:
            known = ", ".join(map(repr, names)) or "without names"
            raise ValueError(f"there is no axis {shown(axis)}{did_you_mean(axis, names)}; the axes are {known}")
        number = names.index(axis)
    else:
        number = integer(axis, "axis")
        if not 0 <= number < dims:
            raise ValueError(f"axis must be from 0 to {dims - 1}, or a name; {shown(number)} was given")
    whole = [(0, size, size) for size in counter.shape]
    whole[number] = _side(counter, number, integer(bins, "bins"))
    found = _counted(counter, whole, error)
    std = None if found.std is None else found.std.reshape(-1)
    return Grid(found.value.reshape(-1), std, (found.edges[number],))


def _side(counter: Any, axis: int, most: int) -> tuple[int, int, int]:
    """The places of an axis without flow bins, and how long parts are that are at most so many."""
    if most < 1:
        raise ValueError(f"bins must be at least 1; {shown(most)} were given")
    if counter.axes is None:
        first, end = 0, counter.shape[axis]
        # Rectangles of the structure itself have the least noise.
        return first, end, 1 << (-(-end // most) - 1).bit_length()
    first, end = counter.axes[axis].inner
    # Neighbours in a list of categories have nothing in common.
    return first, end, 1 if isinstance(counter.axes[axis], StrCategory) else -(-(end - first) // most)


def _counted(counter: Any, sides: Sequence[tuple[int, int, int]], error: bool) -> Grid:
    shape = tuple(-(-(end - first) // side) for first, end, side in sides)
    if math.prod(shape) > 1 << 24:
        raise ValueError(f"a grid must have at most 2^24 cells; {' x '.join(map(str, shape))} were asked for")
    cuts = [
        np.append(first + side * np.arange(size), end) for (first, end, side), size in zip(sides, shape, strict=True)
    ]
    corners = [
        np.stack(np.meshgrid(*parts, indexing="ij"), axis=-1).reshape(-1, len(shape))
        for parts in ([cut[:-1] for cut in cuts], [cut[1:] for cut in cuts])
    ]
    value, std = _count_places(counter, corners[0], corners[1], error)
    edges = tuple(_edges(counter, axis, cut) for axis, cut in enumerate(cuts))
    return Grid(value.reshape(shape), None if std is None else std.reshape(shape), edges)


def _edges(counter: Any, axis: int, cut: Places) -> Any:
    if counter.axes is None:
        return cut
    known = counter.axes[axis]
    return known._edges_at(np.clip(cut - known.inner[0], 0, known.size))


#: What a suggestion chooses among.
_LEVELS, _DEPTHS = (1, 2, 3, 4), (3, 5)
_NEAR_BEST = 1.1


def suggest(
    *,
    points: Any,
    sides: Any = None,
    confidence: float = 0.95,
    max_cells: Any = 1 << 24,
    **parameters: Any,
) -> Any:
    """The plan with the fewest cells whose boxes are nearly as good as any: see `RangeCounter.suggest`."""
    from fastgame._core import RangeCounter  # noqa: PLC0415 (imports this module)

    count, most = integer(points, "points"), integer(max_cells, "max_cells")
    if not 0 <= count < 1 << 64:
        raise ValueError(f"points must be at least 0, and less than 2^64; {shown(count)} was given")
    if most < 1:
        raise ValueError(f"max_cells must be at least 1; {shown(most)} was given")
    for name in ("width", "depth", "levels", "estimator"):
        if name in parameters:
            raise TypeError(f"RangeCounter.suggest() looks for {name}; leave it out")
    # Each point in a rectangle of its own is the least that collides.
    found = []
    for levels, depth in itertools.product(_LEVELS, _DEPTHS):
        for bits in range(6, 25):
            plan = RangeCounter.plan(levels=levels, depth=depth, width=1 << bits, **parameters)
            if plan.cells <= most:
                error = plan.box(sides=sides, confidence=confidence, second_moment=float(count)).error
                found.append((error, plan.cells, plan))
            if plan.components[0] == plan.components[1] or plan.cells > most:
                break  # wider changes nothing, or has more cells
    if not found:
        raise ValueError(f"max_cells must be larger: no structure for this grid has {shown(most)} cells or fewer")
    least = min(error for error, _, _ in found)
    good = [(cells, error, number) for number, (error, cells, _) in enumerate(found) if error <= _NEAR_BEST * least]
    return found[min(good)[2]][2]
