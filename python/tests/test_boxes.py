"""How boxes are written, and what shape their counts have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fastgame as fg

LINE = fg.axis.Integer(0, 10, name="x")
PLANE = [LINE, fg.axis.Integer(0, 5, name="y")]


@pytest.mark.parametrize("axes", [LINE, PLANE], ids=["one axis", "two"])
@pytest.mark.parametrize(
    ("box", "shape"),
    [
        ({}, ()),
        ({"x": (2, 5)}, ()),
        ({"x": (2, None)}, ()),
        ({"x": ([2], [5])}, (1,)),
        ({"x": ([2], 5)}, (1,)),
        ({"x": ([2, 3, 4], 5)}, (3,)),
        ({"x": [(2, 3)]}, (1,)),
        ({"x": (np.array([2, 3]), np.array([4, 5]))}, (2,)),
    ],
)
def test_a_single_box_gives_a_number_and_a_list_of_boxes_an_array(axes: Any, box: Any, shape: tuple[int, ...]) -> None:
    plan = fg.RangeCounter.plan(horizon=1, privacy=fg.Zcdp(1e9), axes=axes)
    counter: Any = plan.build()
    for found in (counter.count(box), *counter.count(box, error=True)):
        assert isinstance(found, np.ndarray if shape else float)
        assert np.shape(found) == shape


@pytest.mark.parametrize(
    ("lo", "hi", "shape"), [(2, 5, ()), ([2], [5], (1,)), ([2, 3], [5, 6], (2,)), (None, 5, ()), ([[2]], [[5]], (1,))]
)
def test_corners_of_one_axis(lo: Any, hi: Any, shape: tuple[int, ...]) -> None:
    counter = fg.RangeCounter(horizon=1, privacy=fg.Zcdp(1e9), axes=LINE)
    counter.update([2, 4, 7])
    found = counter.count(lo, hi)
    assert isinstance(found, np.ndarray if shape else float) and np.shape(found) == shape
    assert round(float(np.ravel(found)[0])) == 2


def test_replay_may_be_asked_more_of_at_a_release() -> None:
    ticks = fg.Ticks("2026-01-01", "2026-01-05", "1d")
    counter = fg.RangeCounter(horizon=4, privacy=fg.Zcdp(1e9), axes=LINE)
    rows = {"time": ["2026-01-01", "2026-01-03", "2026-01-03"], "x": [1, 8, 9]}
    medians = {}

    def look(step: int, _: int) -> None:
        if step == 3:
            medians[step] = counter.quantile(0.5)

    table = fg.replay(rows, ticks, counter, time="time", boxes=[{"x": (5, None)}], progress=look)
    assert medians == {3: 8}
    assert table["value"].to_pylist() == pytest.approx([0, 0, 2, 2], abs=0.1)


@pytest.mark.parametrize("start", [0, -60, 7])
@pytest.mark.parametrize("width", [1, 5, 100, 0.25])
def test_regular_edges_at_whole_numbers_hold_them(start: int, width: float) -> None:
    # An edge a float's rounding above its number would put the values there into the bin below.
    for bins in range(2, 300):
        axis = fg.axis.Regular(bins, start, start + bins * width)
        edges = start + np.arange(bins + 1) * width
        assert (axis.edges == edges).all()
        assert (axis.index(edges) == np.arange(bins + 1) + 1).all()
        assert [axis.bound(edge) for edge in edges] == list(range(1, bins + 2))


def test_boxes_that_are_none_or_have_one_name_are_refused() -> None:
    ticks = fg.Ticks("2026-01-01", "2026-01-08", "1d")
    given: Any
    for given in [[((0,), (5,)), ((0,), (5,))], "x=0:5", 5, [5], {1: ((0,), (5,))}]:
        counter = fg.RangeCounter(shape=8, horizon=7, privacy=fg.Zcdp(1))
        with pytest.raises((TypeError, ValueError), match="box"):
            fg.replay({"t": [], "x": []}, ticks, counter, time="t", key="x", boxes=given)
