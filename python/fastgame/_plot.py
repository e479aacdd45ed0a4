"""Pictures of releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from fastgame._core import ContinualCounter, JoinSize, PureDp
from fastgame._output import check_target
from fastgame._plan import guarantee, mechanism_in_words

#: Two-sided, of a normal error.
_Z95 = 1.959964
_MOST_LINES = 8
_LONGEST = 48


def band(structure: Any) -> float:
    """How many standard deviations 95 % of errors stay within.

    Sums of few Laplace variables have heavier tails: 1.96 of them would cover 93.8 % at a horizon of 1. What a cell
    needs is taken for all; medians and sums of cells need less.
    """
    if not isinstance(structure.privacy, PureDp):
        return _Z95
    plan = ContinualCounter.plan(horizon=structure.horizon, privacy=structure.privacy)
    return plan.error(0.95) / plan.std()


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
    """Released values over time with their 95 % error bands: one line a key, the largest last values first.

    What is drawn is computed from released values alone. The form is that of the ending of a file, as ``png``.
    """
    plt = pyplot()
    from matplotlib import dates, ticker  # noqa: PLC0415

    time = table.column("time").to_numpy()
    value, std = (table.column(name).to_numpy() for name in ("value", "std"))
    join = isinstance(structure, JoinSize)
    plain = ("time", "rank", "value", "std", *(["std_of_rows"] if join else []))
    names = [name for name in table.schema.names if name not in plain]
    parts = [[str(part) for part in table.column(name).to_pylist()] for name in names]
    labels = np.array([" ".join(label) for label in zip(*parts, strict=True)] if parts else [""] * len(time))
    last = time == time[-1:]
    order = labels[last][np.argsort(-value[last], kind="stable")]
    figure, axes = plt.subplots(figsize=(9, 5), layout="constrained")
    for place, label in enumerate(order[:_MOST_LINES]):
        mine = labels == label
        error = band(structure) * std[mine]
        style = {"marker": "o", "ms": 3} if mine.sum() <= 60 else {}
        dash = ["-", "--", "-.", ":"][place % 4]
        (line,) = axes.plot(time[mine], value[mine], lw=1.4, ls=dash, label=str(place), **style)
        color = line.get_color()
        if mine.sum() == 1:
            axes.errorbar(time[mine], value[mine], error, color=color, capsize=4)  # a band would have no width
        else:
            axes.fill_between(time[mine], value[mine] - error, value[mine] + error, color=color, alpha=0.2, lw=0)
    axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(axes.xaxis.get_major_locator()))
    axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:,.0f}"))
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylabel(f"released {'size of the join' if join else 'count'} so far, with its 95 % error band")
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
