"""The numbers of docs/mechanisms.md are those of the library, and what they are compared with is right."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "mechanism_tables.py"


@pytest.fixture(scope="module")
def tables() -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("mechanism_tables", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_has_the_numbers_that_are_computed(tables: Any) -> None:
    assert tables.differences() == []


def test_a_page_with_another_number_is_refused(tables: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = tmp_path / "mechanisms.md"
    changed.write_text(tables.DOCS.read_text(encoding="utf-8").replace("| 4.822 |", "| 4.823 |"), encoding="utf-8")
    monkeypatch.setattr(tables, "DOCS", changed)
    assert tables.differences() == ["ratios"]


def test_the_page_shows_each_picture(tables: Any) -> None:
    text = tables.DOCS.read_text(encoding="utf-8")
    for name in tables.PICTURES:
        assert f"(mechanisms-{name}.png)" in text
        assert tables.DOCS.with_name(f"mechanisms-{name}.png").is_file()


def test_ratios_are_those_that_were_computed_apart(tables: Any) -> None:
    # The trees, and BLTs of 3 to 6 buffers, without the library, to the digits given. Rejects another row of the table,
    # and a calibration that is 0.1 % off.
    golden = {
        10: [3.08, 1.84, 1.003, 1.0002, 1.0000, 1.0000],
        16: [3.62, 1.98, 1.044, 1.009, 1.002, 1.0003],
        20: [3.85, 2.03, 1.115, 1.031, 1.008, 1.002],
        24: [4.02, 2.07, 1.233, 1.074, 1.025, 1.008],
        30: [4.20, 2.11, 1.525, 1.187, 1.074, 1.030],
    }
    for level, expected in golden.items():
        found = [tables.ratio(word, 2**level) for word in ("tree-paper", "tree")]
        assert np.allclose(found, expected[:2], rtol=0, atol=0.0051)
        found = [tables.ratio("blt", 2**level, buffers=buffers) for buffers in (3, 4, 5, 6)]
        assert np.allclose(found, expected[2:], rtol=0, atol=0.00051)


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 64])
def test_the_square_root_mechanism_is_that_of_its_matrix(tables: Any, horizon: int) -> None:
    # C C = lower triangular ones; units are columns of C, and differences of two of them.
    column = tables.coefficients(horizon)
    matrix = np.array([[column[t - u] if t >= u else 0.0 for u in range(horizon)] for t in range(horizon)])
    assert np.allclose(matrix @ matrix, np.tri(horizon))
    ends = [*(matrix[:, end] for end in range(horizon)), np.zeros(horizon)]
    lifetimes = [(ends[start] - ends[end]) for start in range(horizon) for end in range(start + 1, horizon + 1)]
    worst = max(float(shift @ shift) for shift in lifetimes)
    assert np.isclose(tables.squares(horizon), np.max(np.sum(matrix**2, axis=0)))
    assert np.isclose(tables.square_root_lifetime(horizon), worst)
    variance = tables.squares(horizon) * float(matrix[-1] @ matrix[-1])
    assert np.isclose(tables.square_root_std(horizon) ** 2, variance / (2 * tables.RHO))


def test_long_sums_go_on_where_short_ones_end(tables: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = tables.squares(tables.LONG), tables.square_root_lifetime(tables.LONG)
    horizon = tables.LONG
    monkeypatch.setattr(tables, "LONG", 1)
    assert np.allclose([tables.squares(horizon), tables.square_root_lifetime(horizon)], exact, rtol=1e-8)


@pytest.mark.parametrize("level", [0, 1, 2, 7, 20, 61, 62])
def test_the_laplace_factor_of_plans_is_the_formula(tables: Any, level: int) -> None:
    assert np.isclose(tables.factor(2**level), level // 2 + 1)
    assert np.isclose(tables.factor(2**level, "lifetime"), max(1, level))


def test_the_readme_has_the_same_numbers(tables: Any) -> None:
    text = (SCRIPT.parents[1] / "README.md").read_text(encoding="utf-8")
    for word in ("tree-paper", "tree", "blt"):
        row = next(line for line in text.splitlines() if line.startswith(f'| `"{word}"`'))
        assert f" {tables.std(word, 8760):.2f} |" in row
    assert f"up to {tables.plan('blt', 8760).variables} |" in text
    last = 2**tables.PICTURE_LEVEL
    assert f"`blt` has {tables.std('blt', last) / tables.std('tree-paper', last):.2f} of the paper's" in text
    assert f" {tables.ratio('blt', last):.4f} times the variance" in text
    assert f"in the place of {tables.plan('blt', last).buffers}." in text
