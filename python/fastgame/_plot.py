"""Pictures of releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fastgame._core import JoinSize
from fastgame._intervals import quantile
from fastgame._output import check_target
from fastgame._plan import guarantee, mechanism_in_words

_MOST_LINES = 8
_LONGEST = 48


def pyplot() -> Any:
    """Matplotlib without a screen."""
    try:
        import matplotlib as mpl  # noqa: PLC0415
    except ImportError:
        raise ImportError('pictures need matplotlib: pip install "fastgame-dp[plot]"') from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt  # noqa: PLC0415

    return plt


def check_picture(path: str) -> None:
    """Refuses a picture that cannot be drawn, before anything is read."""
    check_target(path)
    pyplot()
    from matplotlib.figure import Figure  # noqa: PLC0415

    known = sorted(Figure().canvas.get_supported_filetypes())
    if Path(path).suffix[1:].lower() not in known:
        raise ValueError(f"the form of {path} is not known by its ending (.{', .'.join(known)})")


def draw_releases(table: pa.Table, file: Any, form: str, structure: Any) -> None:
    """Released values over time with their error bands: one line a key, the largest last values first.

    With `top` the bands are the intervals, which hold for all keys together, and a line ends where its key was not
    released. Else they hold 95 % of errors: what a cell needs is taken for all; medians and sums of cells need less.
    What is drawn is computed from released values alone. The form is that of the ending of a file, as ``png``.
    """
    plt = pyplot()
    from matplotlib import dates, ticker  # noqa: PLC0415

    time = table.column("time").to_numpy()
    value = table.column("value").to_numpy()
    chosen = "lower" in table.schema.names
    if chosen:
        lower, upper = (table.column(name).to_numpy() for name in ("lower", "upper"))
    else:
        error = quantile(structure) * table.column("std").to_numpy()
        lower, upper = value - error, value + error
    join = isinstance(structure, JoinSize)
    plain = ("time", "rank", "value", "std", *(["lower", "upper", "separated"] if chosen else []))
    plain += ("std_of_rows",) if join else ()
    names = [name for name in table.schema.names if name not in plain]
    parts = [[str(part) for part in table.column(name).to_pylist()] for name in names]
    labels = np.array([" ".join(label) for label in zip(*parts, strict=True)] if parts else [""] * len(time))
    last = time == time[-1:]
    order = labels[last][np.argsort(-value[last], kind="stable")]
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    times = np.unique(time)
    for place, label in enumerate(order[:_MOST_LINES]):
        mine = np.flatnonzero(labels == label)
        drawn = np.full((3, len(times)), np.nan)
        drawn[:, np.searchsorted(times, time[mine])] = value[mine], lower[mine], upper[mine]
        _draw(axes, times, drawn, place)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    bands = "its interval (all hold together)" if chosen else "its 95 % error band"
    axes.set_ylabel(f"released {'size of the join' if join else 'count'} so far, with {bands}")
    if names and len(order):
        legend = axes.legend(frameon=False, fontsize="small", title=" ".join(names), loc="upper left")
        # Set afterwards: keys are no formulas, and may begin with "_".
        for text, label in zip([legend.get_title(), *legend.get_texts()], [" ".join(names), *order], strict=False):
            text.set_parse_math(False)
            text.set_text(label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…")
    shown = f"the {_MOST_LINES} largest of {len(order)} keys; " if len(order) > _MOST_LINES else ""
    unit = f"{structure.contributions} of protect = " if structure.contributions > 1 else "protect = "
    promise = f"{guarantee(structure.privacy)}, {unit}{structure.protect}"
    noise = mechanism_in_words(structure.mechanism, structure.buffers, structure.privacy)
    axes.set_title(f"{shown}{promise}, {noise}", loc="left", fontsize="medium")
    figure.savefig(file, format=form, dpi=120)
    plt.close(figure)


def _draw(axes: Any, times: Any, drawn: Any, place: int) -> None:
    """A line with its band: value, lower and upper at all times. NaN makes gaps in both."""
    there = np.concatenate([[False], ~np.isnan(drawn[0]), [False]])
    style = {"marker": "o", "ms": 3} if there.sum() <= 60 else {}
    (line,) = axes.plot(times, drawn[0], lw=1.4, ls=["-", "--", "-.", ":"][place % 4], label=str(place), **style)
    axes.fill_between(times, drawn[1], drawn[2], color=line.get_color(), alpha=0.2, lw=0)
    # One between two gaps has no line, and its band no width.
    alone = there[1:-1] & ~there[:-2] & ~there[2:]
    if alone.any():
        value, lower, upper = drawn[:, alone]
        bars = [value - lower, upper - value]
        axes.errorbar(times[alone], value, bars, fmt="o", ms=3, color=line.get_color(), capsize=4)
