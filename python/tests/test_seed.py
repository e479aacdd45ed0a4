"""The insecure seed: reproducible studies, and nothing shared between structures that differ."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from helpers import Floats, read, write

import fastgame as fg

BASE: dict[str, Any] = {"horizon": 1000, "privacy": fg.Zcdp(0.5), "insecure_seed": 7}


def history(structure: Any) -> list[Any]:
    """Releases of a structure at some steps, with updates between."""
    released = []
    for to in [1, 2, 5, 500, 501, 1000]:
        structure.advance(to=to)
        write(structure, 0)
        released.append(np.array(read(structure)).tolist())
    return released


@pytest.mark.parametrize(
    "make",
    [
        fg.ContinualCounter,
        lambda **given: fg.ContinualVector(30, **given),
        lambda **given: fg.CountSketch(width=16, hash_seed=1, **given),
        lambda **given: fg.RangeCounter(shape=30, hash_seed=1, **given),
        lambda **given: fg.RangeCounter(shape=3000, width=16, hash_seed=1, **given),
        lambda **given: fg.JoinSize(width=32, hash_seed=1, **given),
    ],
)
def test_a_seed_repeats_the_releases(make: Any) -> None:
    assert history(make(**BASE)) == history(make(**BASE))
    assert history(make(**BASE)) != history(make(**{**BASE, "insecure_seed": 8}))
    assert history(make(**BASE)) != history(make(**{**BASE, "insecure_seed": None}))


def test_the_type_of_the_seed_does_not_matter() -> None:
    assert history(fg.ContinualCounter(**BASE)) == history(
        fg.ContinualCounter(**{**BASE, "insecure_seed": np.uint8(7)})
    )


def test_without_a_seed_no_two_structures_agree() -> None:
    given = {**BASE, "insecure_seed": None}
    histories = [history(fg.ContinualVector(30, **given)) for _ in range(5)]
    plan = fg.ContinualVector.plan(30, **given)
    histories += [history(plan.build()) for _ in range(5)]
    assert all(one != other for one, other in itertools.combinations(histories, 2))


VARIANTS: dict[str, dict[str, Any]] = {
    "base": {},
    "seed": {"insecure_seed": 8},
    "largest seed": {"insecure_seed": 2**64 - 1},
    "seed zero": {"insecure_seed": 0},
    "horizon": {"horizon": 1001},
    "short horizon": {"horizon": 1},
    "privacy": {"privacy": fg.Zcdp(0.6)},
    "size": {"size": 2001},
    "max_norm": {"max_norm": 2.0},
    "mechanism": {"mechanism": "tree-paper"},
    "blt": {"mechanism": "blt"},
    "2 buffers": {"mechanism": "blt", "buffers": 2},
    "4 buffers": {"mechanism": "blt", "buffers": 4},
    "pure": {"privacy": fg.PureDp(1.0)},
    "pure too": {"privacy": fg.PureDp(2.0)},
    "pure lifetime": {"privacy": fg.PureDp(1.0), "protect": "lifetime"},
    "protect": {"protect": "lifetime"},
    "contributions": {"contributions": 2},
}


def test_structures_that_differ_in_one_parameter_do_not_share_noise() -> None:
    # 2000 cells; the correlation of each pair of 18 structures, z-test at alpha 10^-6 a pair (4.9 / sqrt 2000 = 0.11):
    # rejects a stream that is shared, also where scales differ.
    noise: list[Floats] = []
    for variant in VARIANTS.values():
        given: dict[str, Any] = {"size": 2000, **BASE, **variant}
        cells = fg.ContinualVector(given.pop("size"), **given)
        noise.append(cells.release(range(2000)) / cells.noise_std())
    correlation = np.asarray(np.corrcoef(noise))
    assert np.all(np.abs(correlation[~np.eye(len(noise), dtype=bool)]) < 0.11)


def test_a_counter_and_a_vector_of_one_cell_do_not_share_noise() -> None:
    # 2000 seeds; as above.
    noise = np.array(
        [
            (fg.ContinualCounter(**given).release(), fg.ContinualVector(1, **given).release(0))
            for given in ({**BASE, "insecure_seed": seed} for seed in range(2000))
        ]
    )
    assert abs(np.corrcoef(noise.T)[0, 1]) < 0.11


def test_sketches_that_differ_in_one_parameter_do_not_share_noise_with_each_other_or_a_vector() -> None:
    # 2048 cells or so, as above. An empty sketch of depth 1: its estimates are the noise of cells, up to signs that the
    # hash functions give; those of another seed are compared by size too.
    base: dict[str, Any] = {"width": 16_384, "depth": 1, "hash_seed": 1, **BASE}
    variants: list[dict[str, Any]] = [{}, {"max_weight": 2}, {"depth": 3}, {"hash_seed": 2}, {"horizon": 1001}]
    noise: list[Floats] = []
    for variant in variants:
        sketch = fg.CountSketch(**{**base, **variant})
        noise.append(sketch.estimate(range(2000)) / sketch.noise_std())
    noise.append(fg.ContinualVector(16_384, **BASE).release(range(2000)))
    for rows in [noise, [np.abs(row) for row in noise]]:
        correlation = np.asarray(np.corrcoef(rows))
        assert np.all(np.abs(correlation[~np.eye(len(rows), dtype=bool)]) < 0.11)


def test_range_counters_that_differ_in_one_parameter_do_not_share_noise() -> None:
    # 2048 boxes, as above: counts of the smallest rectangles of empty counters. A cover of one reads a cell of its own;
    # in the last variant, two rectangles or so share one. What changes no component, as a width where all is dense,
    # changes no noise.
    base: dict[str, Any] = {"shape": 2048, "hash_seed": 1, "levels": "dyadic", "estimator": "cover", **BASE}
    variants: list[dict[str, Any]] = [
        *({}, {"shape": 2049}, {"shape": (2048, 1)}, {"levels": 2}, {"max_weight": 2}, {"horizon": 1001}),
        *({"insecure_seed": 8}, {"privacy": fg.Zcdp(0.6)}, {"hash_seed": 2}, {"width": 1024, "depth": 1}),
    ]
    noise: list[Floats] = []
    for variant in variants:
        counter = fg.RangeCounter(**{**base, **variant})
        lo = np.zeros((2048, len(counter.shape)), dtype=np.int64)
        lo[:, 0] = np.arange(2048)
        noise.append(counter.count(lo, lo + 1) / counter.noise_std())
    cells = fg.RangeCounter(**base).memory // 8
    noise += [fg.ContinualVector(size, **BASE).release(range(2048)) for size in (2048, 4094, cells)]
    correlation = np.asarray(np.corrcoef(noise))
    assert np.all(np.abs(correlation[~np.eye(len(noise), dtype=bool)]) < 0.11)


def test_joins_that_differ_in_one_parameter_do_not_share_noise_with_each_other_or_a_sketch() -> None:
    # 2000 seeds; as above. A row of nothing is a sum of products of noise; a heavy key on one side shows a cell of the
    # other, as an empty sketch of the same shape does.
    base: dict[str, Any] = {"width": 32, "depth": 1, "hash_seed": 1, "horizon": 4, "privacy": fg.Zcdp(0.5)}
    variants: list[dict[str, Any]] = [{}, {"max_weight": 2}, {"horizon": 9}, {"privacy": fg.Zcdp(0.6)}, {"depth": 3}]

    def cell(which: str, seed: int, **variant: Any) -> float:
        join = fg.JoinSize(**{**base, **variant}, insecure_seed=seed)
        getattr(join, which).update(np.ones(2000, dtype=np.int64))
        return join.estimate() / 2000 / join.noise_std()

    seeds = range(2000)
    noise: list[Floats] = [np.array([cell("left", seed, **variant) for seed in seeds]) for variant in variants]
    noise.append(np.array([cell("right", seed) for seed in seeds]))
    noise.append(np.array([cell("left", seed + 1) for seed in seeds]))
    noise.append(np.array([fg.CountSketch(**base, insecure_seed=seed).estimate(1) for seed in seeds]))
    for rows in [noise, [np.abs(row) for row in noise]]:
        correlation = np.asarray(np.corrcoef(rows))
        assert np.all(np.abs(correlation[~np.eye(len(rows), dtype=bool)]) < 0.11)


def test_neighbouring_seeds_do_not_share_noise() -> None:
    # 2000 seeds; as above.
    noise = np.array([fg.ContinualCounter(**{**BASE, "insecure_seed": seed}).release() for seed in range(2001)])
    assert abs(np.corrcoef(noise[:-1], noise[1:])[0, 1]) < 0.11


def test_the_seed_is_shown_wherever_there_is_one_and_nowhere_else() -> None:
    seeded = fg.ContinualCounter(**BASE)
    assert "insecure_seed=7" in repr(seeded)
    assert "insecure_seed=7" in repr(fg.ContinualCounter.plan(**BASE))
    assert seeded.insecure_seed == 7
    for given in [{**BASE, "insecure_seed": None}, {key: BASE[key] for key in ["horizon", "privacy"]}]:
        secret = fg.ContinualCounter(**given)
        assert secret.insecure_seed is None
        assert "seed" not in repr(secret)


def test_updates_draw_nothing() -> None:
    one, other = fg.ContinualVector(50, **BASE), fg.ContinualVector(50, **BASE)
    assert np.array_equal(one.release([4, 9, 2]), other.release([4, 9, 2]))
    one.advance()
    one.update(3)
    other.advance()
    cells = np.delete(np.arange(50), 3)
    assert np.array_equal(one.release(cells), other.release(cells))
