"""Every structure under every mechanism: what holds for one holds for all."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers import MECHANISMS, STRUCTURES, plan_of, read, write
from hypothesis import given, settings
from hypothesis import strategies as st
from test_threads import run_together

import fastgame as fg

EACH = pytest.mark.parametrize("kind", STRUCTURES)
ALL = pytest.mark.parametrize("mechanism", MECHANISMS)
UNITS = [{"protect": protect, "contributions": count} for protect in ("update", "lifetime") for count in (1, 3)]


def horizons(mechanism: str) -> list[int]:
    """Horizons that the mechanism allows."""
    return [2, 3, 1000, 2**40] if mechanism in ("tree-paper", "blt, 1 buffer") else [1, 2, 3, 1000, 2**40, 2**62]


def cases(mechanism: str) -> list[tuple[int, dict[str, Any]]]:
    """Each horizon with a unit, and each unit with a horizon."""
    return list(zip(horizons(mechanism), itertools.cycle(UNITS), strict=False))


def steps_of(horizon: int, seed: int) -> list[int]:
    """The first, some at random and their neighbours, and the last."""
    some = np.random.default_rng(seed).integers(1, horizon, size=3, endpoint=True).tolist()
    return sorted({1, horizon, *some, *(min(horizon, step + 1) for step in some)})


def on_lattice(structure: Any, released: Any) -> bool:
    """Whether releases that are single cells, or medians of them, are multiples of the lattice's step."""
    if isinstance(structure, (fg.RangeCounter, fg.JoinSize)):
        return True  # weighted sums, and sums of products
    return bool(np.all(np.mod(np.asarray(released), structure.lattice_step) == 0))


@EACH
@ALL
def test_every_structure_is_built_read_at_jumps_and_repeats(kind: str, mechanism: str) -> None:
    for number, (horizon, unit) in enumerate(cases(mechanism)):
        structure = STRUCTURES[kind](horizon=horizon, insecure_seed=number, **unit, **MECHANISMS[mechanism])
        word = MECHANISMS[mechanism].get("mechanism", "tree")
        assert (structure.mechanism, structure.protect, structure.contributions) == (word, *unit.values())
        assert structure.privacy == MECHANISMS[mechanism]["privacy"]
        expected = structure.buffers if word == "blt" else None
        assert structure.buffers == MECHANISMS[mechanism].get("buffers", expected)
        for step in steps_of(horizon, number):
            structure.advance(to=step)
            write(structure, 0)
            first = read(structure)
            assert np.all(np.isfinite(first))
            assert np.array_equal(read(structure), first) and structure.sealed
            structure.advance(to=step)
            assert np.array_equal(read(structure), first)
            assert on_lattice(structure, first)
            with pytest.raises(fg.SealedStepError):
                write(structure, 0)
        with pytest.raises(fg.HorizonError):
            structure.advance()


@EACH
@ALL
def test_noise_std_is_that_of_the_plan_at_each_step(kind: str, mechanism: str) -> None:
    for horizon, unit in cases(mechanism):
        structure = STRUCTURES[kind](horizon=horizon, **unit, **MECHANISMS[mechanism])
        plan = plan_of(structure)
        # That of a cell at a step is in proportion to that of a counter.
        counter = fg.ContinualCounter.plan(horizon=horizon, **unit, **MECHANISMS[mechanism])
        stds = []
        for step in steps_of(horizon, 5):
            structure.advance(to=step)
            stds.append(structure.noise_std())
            assert stds[-1] == pytest.approx(plan.noise_std * counter.std(at=step) / counter.std(), rel=1e-12)
            if kind in ("counter", "vector"):
                assert stds[-1] == pytest.approx(plan.std(at=step), rel=1e-12)
        assert stds[-1] == max(stds) == pytest.approx(plan.noise_std, rel=1e-12)
        assert stds == sorted(stds)
        assert (len(set(stds)) > 1) == (structure.mechanism == "blt" and horizon > 1)
        assert structure.lattice_step == plan.lattice_step <= stds[0] / 16


@EACH
@ALL
def test_lifetime_and_contributions_cost_more_and_nothing_else_does(kind: str, mechanism: str) -> None:
    base = STRUCTURES[kind](horizon=1000, **MECHANISMS[mechanism])
    life = STRUCTURES[kind](horizon=1000, protect="lifetime", **MECHANISMS[mechanism])
    three = STRUCTURES[kind](horizon=1000, contributions=3, **MECHANISMS[mechanism])
    # A life is two updates at most: twice the shift.
    assert 1 < life.noise_std() / base.noise_std() <= 2
    assert three.noise_std() / base.noise_std() == pytest.approx(3, rel=1e-12)


@EACH
@ALL
def test_a_seed_repeats_what_a_mechanism_releases_and_another_does_not(kind: str, mechanism: str) -> None:
    def history(seed: int) -> list[Any]:
        structure = STRUCTURES[kind](horizon=1000, insecure_seed=seed, **MECHANISMS[mechanism])
        released = []
        for step in [1, 2, 5, 500, 501, 1000]:
            structure.advance(to=step)
            write(structure, 0)
            released.append(np.asarray(read(structure)).tolist())
        return released

    assert history(7) == history(7) != history(8)


@EACH
@ALL
def test_repr_names_mechanism_buffers_and_budget_and_shows_no_noise(kind: str, mechanism: str) -> None:
    parameters = MECHANISMS[mechanism]
    silent, busy = (STRUCTURES[kind](horizon=1000, **parameters) for _ in range(2))
    write(busy, 0)
    read(busy)
    shown = repr(busy)
    assert shown == repr(silent)
    for part in [f"privacy={parameters['privacy']!r}", f"mechanism='{parameters.get('mechanism', 'tree')}'"]:
        assert part in shown
    assert ("buffers=1" in shown) == ("buffers" in parameters)
    assert repr(plan_of(busy).parameters["privacy"]) in repr(plan_of(busy))


@ALL
@pytest.mark.parametrize("size", [1, 63, 64, 1000])
def test_memory_stays_within_the_plan_of_every_mechanism(mechanism: str, size: int) -> None:
    generator = np.random.default_rng(3)
    for horizon in [1000, 2**20, 2**62]:
        plan = fg.ContinualVector.plan(size, horizon=horizon, **MECHANISMS[mechanism])
        whole, some = fg.ContinualVector(size, **plan_of_size(plan)), fg.ContinualVector(size, **plan_of_size(plan))
        # What is kept beside the cells of a structure is not for its plan to know, where it is little.
        assert whole.memory == pytest.approx(plan.memory_at_start, abs=2000)
        for step in sorted({*steps_of(horizon, 1), *steps_of(horizon, 2), *(2**k for k in range(9))}):
            whole.advance(to=step)
            some.advance(to=step)
            whole.release()
            some.release(np.flatnonzero(generator.random(size) < generator.choice([0.01, 0.5])))
            assert whole.memory <= plan.memory
            assert some.memory <= plan.memory_one_by_one


def plan_of_size(plan: fg.Plan) -> dict[str, Any]:
    """The parameters but for the size."""
    return {name: value for name, value in plan.parameters.items() if name != "size"}


@settings(max_examples=60, deadline=None)
@given(
    horizon=st.sampled_from([2, 3, 7, 64, 1000, 2**20, 2**62]),
    mechanism=st.sampled_from(sorted(MECHANISMS)),
    data=st.data(),
)
def test_what_was_read_before_does_not_change_sums_beyond_their_noise(
    horizon: int, mechanism: str, data: st.DataObject
) -> None:
    # 500 cells, read at any steps and in any parts: all within 15 sd (the heaviest tail, of two Laplace variables, is
    # beyond with probability 2e-12), and the mean square within a factor of 2 (6 of its deviations).
    steps = data.draw(st.lists(st.integers(1, horizon), min_size=1, max_size=12).map(sorted))
    cells = fg.ContinualVector(
        500, horizon=horizon, insecure_seed=data.draw(st.integers(0, 9)), **MECHANISMS[mechanism]
    )
    for step in steps:
        cells.advance(to=step)
        part = data.draw(st.sampled_from([slice(None), slice(0, 100), slice(50, 51), slice(1, None, 2)]))
        first = cells.release(np.arange(500)[part])
        assert np.array_equal(cells.release()[part], first)
        noise = cells.release() / cells.noise_std()
        assert np.abs(noise).max() < 15
        assert 0.5 < np.mean(noise**2) < 2


@pytest.mark.parametrize("mechanism", ["blt", "blt, 1 buffer", "pure"])
def test_threads_that_share_a_vector_read_one_noise(mechanism: str) -> None:
    # Each reads parts at one step while the others do: what two of them read of a cell at a step is the same.
    cells = fg.ContinualVector(6000, horizon=40, **MECHANISMS[mechanism])
    for step in [1, 2, 17, 40]:
        cells.advance(to=step)
        seen = run_together(lambda number: read_parts(cells, number))
        told: dict[int, float] = {}
        for cell, value in itertools.chain.from_iterable(seen):
            assert told.setdefault(cell, value) == value


def read_parts(cells: Any, number: int) -> list[tuple[int, float]]:
    """Cells and what was released of them."""
    generator = np.random.default_rng(number)
    pairs: list[tuple[int, float]] = []
    for size in [1, 100, 5000, 3]:
        indices = generator.integers(0, 6000, size=size)
        pairs += zip(indices.tolist(), cells.release(indices).tolist(), strict=True)
    return pairs


@pytest.mark.parametrize("mechanism", ["blt", "pure"])
def test_a_counter_shared_by_threads_loses_nothing_under_any_noise(mechanism: str) -> None:
    count = fg.ContinualCounter(horizon=2**40, **MECHANISMS[mechanism])

    def work(number: int) -> int:
        added = 0
        for turn in range(300):
            try:
                count.update([1] * (5000 if turn % 50 == 0 else 200))
                added += 5000 if turn % 50 == 0 else 200
            except fg.SealedStepError:
                count.advance()
            if turn % 7 == number % 7:
                count.release()
        return added

    added = sum(run_together(work))
    count.advance()
    # Within 15 sd, which is far below the number of updates of one call.
    assert abs(count.release() - added) < 15 * count.noise_std() < 5000
