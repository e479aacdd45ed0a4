import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, SupportsFloat, SupportsIndex, TypeAlias, final, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Self, disjoint_base

from fastgame._results import (
    BoxPlan,
    Comparison,
    Estimate,
    Grid,
    HeavyHitters,
    Interval,
    JoinEstimate,
    JoinTerms,
    Top,
    WhatIf,
)
from fastgame.axis import Axis

__all__ = [
    "ApproxDp",
    "Budget",
    "ContinualCounter",
    "ContinualVector",
    "CountSketch",
    "FrequencyProfile",
    "Gdp",
    "JoinProfile",
    "JoinSide",
    "JoinSize",
    "Plan",
    "PureDp",
    "RangeCounter",
    "RawSketch",
    "Structure",
    "Zcdp",
    "__version__",
    "_csv_rows",
    "_inspect",
    "_keywords",
    "_open",
    "total",
]

__version__: str

_Mechanism: TypeAlias = Literal["tree", "tree-paper", "blt"]
_Protect: TypeAlias = Literal["update", "lifetime"]
_OnExcess: TypeAlias = Literal["error", "clip"]
_Invalid: TypeAlias = Literal["raise", "drop"]
_Kind: TypeAlias = Literal["ContinualCounter", "ContinualVector", "CountSketch", "RangeCounter", "JoinSize"]
_Float: TypeAlias = SupportsFloat | SupportsIndex
_Integers: TypeAlias = npt.NDArray[np.integer[Any]] | Sequence[int] | Sequence[Sequence[int]]
_Floats: TypeAlias = (
    npt.NDArray[np.integer[Any]] | npt.NDArray[np.floating[Any]] | Sequence[float] | Sequence[Sequence[float]]
)

class _Sparse(Protocol):
    """Any matrix or array of scipy.sparse."""

    def tocsr(self) -> Any: ...

class _ArrowStream(Protocol):
    """Columns of pyarrow, Polars and pandas."""

    def __arrow_c_stream__(self, requested_schema: Any = ..., /) -> object: ...

class _ArrowArray(Protocol):
    """Arrays of pyarrow."""

    def __arrow_c_array__(self, requested_schema: Any = ..., /) -> object: ...

class _ArrayLike(Protocol):
    """What numpy makes an array of."""

    def __array__(self) -> npt.NDArray[Any]: ...

# Floats that are whole are the integers that they equal.
_Key: TypeAlias = SupportsIndex | float | np.floating[Any] | str | bytes
_Column: TypeAlias = npt.NDArray[Any] | list[Any] | range | _ArrowStream | _ArrowArray | _ArrayLike
# A tuple makes a composite key of single values, or a column of them.
_OneKey: TypeAlias = _Key | tuple[_Key, ...]
_Keys: TypeAlias = _Column | tuple[_Key | _Column, ...]

@disjoint_base
class Budget:
    @property
    def rho(self) -> float: ...
    @property
    def mu(self) -> float: ...
    def epsilon(self, delta: _Float) -> float: ...
    def delta(self, epsilon: _Float) -> float: ...
    def split(self, *parts: _Float) -> tuple[Zcdp, ...] | tuple[PureDp, ...]: ...
    def __add__(self, other: Budget, /) -> Zcdp | PureDp: ...
    def __radd__(self, other: Budget, /) -> Zcdp | PureDp: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, float]]: ...

@final
class Zcdp(Budget):
    def __new__(cls, rho: _Float) -> Zcdp: ...
    def split(self, *parts: _Float) -> tuple[Zcdp, ...]: ...
    def __add__(self, other: Budget, /) -> Zcdp: ...
    def __radd__(self, other: Budget, /) -> Zcdp: ...

@final
class Gdp(Budget):
    def __new__(cls, mu: _Float) -> Gdp: ...
    def split(self, *parts: _Float) -> tuple[Zcdp, ...]: ...
    def __add__(self, other: Budget, /) -> Zcdp: ...
    def __radd__(self, other: Budget, /) -> Zcdp: ...

@final
class ApproxDp(Budget):
    def __new__(cls, epsilon: _Float, delta: _Float) -> ApproxDp: ...
    def split(self, *parts: _Float) -> tuple[Zcdp, ...]: ...
    def __add__(self, other: Budget, /) -> Zcdp: ...
    def __radd__(self, other: Budget, /) -> Zcdp: ...
    @property
    def target_epsilon(self) -> float: ...
    @property
    def target_delta(self) -> float: ...

@final
class PureDp(Budget):
    def __new__(cls, epsilon: _Float) -> PureDp: ...
    def split(self, *parts: _Float) -> tuple[PureDp, ...]: ...
    @overload
    def __add__(self, other: PureDp, /) -> PureDp: ...
    @overload
    def __add__(self, other: Budget, /) -> Zcdp | PureDp: ...
    @property
    def target_epsilon(self) -> float: ...

@overload
def total(*items: PureDp, unit: str | None = None) -> PureDp: ...
@overload
def total(*items: Zcdp | Gdp | ApproxDp, unit: str | None = None) -> Zcdp: ...
@overload
def total(*items: Budget | Structure, unit: str | None = None) -> Zcdp | PureDp: ...
def _csv_rows(
    block: bytes, delimiter: int, fields: int, multiline: bool, longest: int
) -> tuple[int, bytes | None, int]: ...
def _keywords(name: str, keywords: dict[str, Any]) -> dict[str, Any]: ...
def _open(
    path: str,
    sync_reads: bool,
    expect_generation: int | None,
    stored: Callable[[str], tuple[str, dict[str, Any]]],
    made: Callable[[], tuple[str, dict[str, Any], str]],
) -> Any: ...
def _inspect(
    path: str,
) -> tuple[str, list[tuple[str, str]], int, int, int, bool, list[int], int]: ...

@disjoint_base
class Structure:
    @property
    def now(self) -> int: ...
    @property
    def horizon(self) -> int: ...
    @property
    def sealed(self) -> bool: ...
    @property
    def privacy(self) -> Budget: ...
    @property
    def mechanism(self) -> _Mechanism: ...
    @property
    def buffers(self) -> int | None: ...
    @property
    def protect(self) -> _Protect: ...
    @property
    def contributions(self) -> int: ...
    @property
    def on_excess(self) -> _OnExcess: ...
    @property
    def invalid(self) -> _Invalid: ...
    @property
    def insecure_seed(self) -> int | None: ...
    @property
    def lattice_step(self) -> float: ...
    @property
    def memory(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def generation(self) -> int | None: ...
    def noise_std(self) -> float: ...
    def advance(self, *, to: SupportsIndex | None = None) -> None: ...
    def sync(self) -> None: ...
    def checkpoint(self) -> None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *_error: object) -> None: ...
    @property
    def _words(self) -> str | None: ...
    def _hold(self) -> None: ...
    def _commit(self) -> None: ...
    def _pause(self) -> None: ...
    def _resume(self) -> None: ...
    def __copy__(self) -> Structure: ...
    def __deepcopy__(self, _memo: Any) -> Structure: ...
    def __reduce_ex__(self, _protocol: SupportsIndex) -> Any: ...

@final
class ContinualCounter(Structure):
    def __new__(
        cls,
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        max_weight: SupportsIndex = 1,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> ContinualCounter: ...
    @staticmethod
    def plan(
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        max_weight: SupportsIndex = 1,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> Plan: ...
    @property
    def max_weight(self) -> int: ...
    def update(self, weights: SupportsIndex | _Integers = 1) -> None: ...
    def release(self) -> float: ...

@final
class ContinualVector(Structure):
    def __new__(
        cls,
        size: SupportsIndex,
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        max_norm: _Float = 1.0,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> ContinualVector: ...
    @staticmethod
    def plan(
        size: SupportsIndex,
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        max_norm: _Float = 1.0,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> Plan: ...
    @property
    def size(self) -> int: ...
    @property
    def max_norm(self) -> float: ...
    def update(self, cells: SupportsIndex | _Integers, values: _Float | _Floats | None = None) -> None: ...
    def update_row(self, cells: SupportsIndex | _Integers, values: _Float | _Floats = 1.0) -> None: ...
    def update_rows(self, rows: _Floats | _Sparse) -> None: ...
    @overload
    def release(self, indices: int | np.integer[Any]) -> float: ...
    @overload
    def release(self, indices: _Integers | None = None) -> npt.NDArray[np.float64]: ...

@final
class CountSketch(Structure):
    def __new__(
        cls,
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        width: SupportsIndex,
        depth: SupportsIndex = 5,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> CountSketch: ...
    @staticmethod
    def plan(
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        width: SupportsIndex,
        depth: SupportsIndex = 5,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> Plan: ...
    @staticmethod
    def suggest(
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        profile: FrequencyProfile,
        confidence: _Float = 0.95,
        max_cells: SupportsIndex = 16777216,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> Plan: ...
    @property
    def width(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def max_weight(self) -> int: ...
    @property
    def hash_seed(self) -> int: ...
    def update(self, keys: _OneKey | _Keys, weights: SupportsIndex | _Integers = 1) -> None: ...
    # A tuple of single values is a single key, and stands before the tuples with columns.
    @overload
    def estimate(self, keys: _OneKey, *, error: Literal[False] = False, confidence: None = None) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def estimate(self, keys: _OneKey, *, error: Literal[True], confidence: None = None) -> Estimate[float]: ...  # type: ignore[overload-overlap]
    @overload
    def estimate(self, keys: _OneKey, *, error: Literal[False] = False, confidence: _Float) -> Interval[float]: ...  # type: ignore[overload-overlap]
    @overload
    def estimate(
        self, keys: _Keys, *, error: Literal[False] = False, confidence: None = None
    ) -> npt.NDArray[np.float64]: ...
    @overload
    def estimate(
        self, keys: _Keys, *, error: Literal[True], confidence: None = None
    ) -> Estimate[npt.NDArray[np.float64]]: ...
    @overload
    def estimate(
        self, keys: _Keys, *, error: Literal[False] = False, confidence: _Float
    ) -> Interval[npt.NDArray[np.float64]]: ...
    def top(self, k: SupportsIndex, *, among: _Keys) -> list[Top]: ...
    @overload
    def second_moment(self, *, error: Literal[False] = False) -> float: ...
    @overload
    def second_moment(self, *, error: Literal[True]) -> Estimate[float]: ...
    def raw(self) -> RawSketch: ...
    def merge(self, raw: RawSketch) -> None: ...

@final
class RangeCounter(Structure):
    def __new__(
        cls,
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
        axes: Axis | Sequence[Axis] | None = None,
        width: SupportsIndex = 4096,
        depth: SupportsIndex = 5,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        levels: SupportsIndex | Literal["dyadic"] = 2,
        estimator: Literal["least_squares", "cover"] = "least_squares",
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> RangeCounter: ...
    @staticmethod
    def plan(
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
        axes: Axis | Sequence[Axis] | None = None,
        width: SupportsIndex = 4096,
        depth: SupportsIndex = 5,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        levels: SupportsIndex | Literal["dyadic"] = 2,
        estimator: Literal["least_squares", "cover"] = "least_squares",
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> Plan: ...
    @staticmethod
    def suggest(
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        points: SupportsIndex,
        shape: SupportsIndex | Sequence[SupportsIndex] | None = None,
        axes: Axis | Sequence[Axis] | None = None,
        sides: SupportsIndex | _Integers | None = None,
        confidence: _Float = 0.95,
        max_cells: SupportsIndex = 16777216,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> Plan: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def axes(self) -> tuple[Axis, ...] | None: ...
    @property
    def width(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def max_weight(self) -> int: ...
    @property
    def hash_seed(self) -> int: ...
    @property
    def levels(self) -> int | Literal["dyadic"]: ...
    @property
    def estimator(self) -> Literal["least_squares", "cover"]: ...
    def update(self, points: Any, weights: SupportsIndex | _Integers = 1) -> None: ...
    def insert(self, points: Any) -> None: ...
    def delete(self, points: Any) -> None: ...
    # One box gives a float, several an array.
    @overload
    def count(self, lo: Any, hi: Any = None, *, error: Literal[False] = False) -> Any: ...
    @overload
    def count(self, lo: Any, hi: Any = None, *, error: Literal[True]) -> Estimate[Any]: ...
    def quantile(self, q: _Float | _Floats) -> Any: ...
    def cdf(self, x: Any) -> Any: ...
    def _cdf_places(self, ends: list[int]) -> list[float] | None: ...
    def heavy_hitters(self, threshold: _Float, *, limit: SupportsIndex = 4096) -> HeavyHitters: ...
    def grid(self, bins: SupportsIndex | Sequence[SupportsIndex] = 64, *, error: bool = False) -> Grid: ...
    def marginal(self, axis: SupportsIndex | str, bins: SupportsIndex = 64, *, error: bool = False) -> Grid: ...

@final
class JoinSize(Structure):
    def __new__(
        cls,
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        width: SupportsIndex = 4096,
        depth: SupportsIndex = 5,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> JoinSize: ...
    @staticmethod
    def plan(
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        width: SupportsIndex = 4096,
        depth: SupportsIndex = 5,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> Plan: ...
    @staticmethod
    def suggest(
        *,
        horizon: SupportsIndex,
        privacy: Budget,
        profile: JoinProfile,
        confidence: _Float = 0.95,
        max_cells: SupportsIndex = 16777216,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        mechanism: _Mechanism = "tree",
        buffers: SupportsIndex | None = None,
        protect: _Protect = "update",
        contributions: SupportsIndex = 1,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
        insecure_seed: SupportsIndex | None = None,
    ) -> Plan: ...
    @property
    def width(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def max_weight(self) -> int: ...
    @property
    def hash_seed(self) -> int: ...
    @property
    def left(self) -> JoinSide: ...
    @property
    def right(self) -> JoinSide: ...
    @overload
    def estimate(
        self, *, error: Literal[False] = False, confidence: None = None, by: Literal["moments", "rows"] = "moments"
    ) -> float: ...
    @overload
    def estimate(
        self, *, error: Literal[True], confidence: None = None, by: Literal["moments", "rows"] = "moments"
    ) -> JoinEstimate: ...
    @overload
    def estimate(
        self, *, error: Literal[False] = False, confidence: _Float, by: Literal["moments", "rows"] = "moments"
    ) -> Interval[float]: ...
    def raw(self) -> RawSketch: ...

@final
class JoinSide:
    def __copy__(self) -> JoinSide: ...
    def __deepcopy__(self, _memo: Any) -> JoinSide: ...
    def __reduce_ex__(self, _protocol: SupportsIndex) -> Any: ...
    def update(self, keys: _OneKey | _Keys, weights: SupportsIndex | _Integers = 1) -> None: ...
    def merge(self, raw: RawSketch) -> None: ...

@final
class JoinProfile:
    def __new__(cls, left_moment: _Float, right_moment: _Float, join_size: _Float) -> JoinProfile: ...
    @staticmethod
    def uniform(*, left_total: _Float, right_total: _Float, keys: SupportsIndex) -> JoinProfile: ...
    @property
    def left_moment(self) -> float: ...
    @property
    def right_moment(self) -> float: ...
    @property
    def join_size(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

@final
class RawSketch:
    def __new__(
        cls,
        *,
        width: SupportsIndex,
        depth: SupportsIndex = 5,
        max_weight: SupportsIndex = 1,
        hash_seed: SupportsIndex | None = None,
        on_excess: _OnExcess = "error",
        invalid: _Invalid = "raise",
    ) -> RawSketch: ...
    @property
    def width(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def max_weight(self) -> int: ...
    @property
    def hash_seed(self) -> int: ...
    @property
    def dropped(self) -> int: ...
    def update(self, keys: _OneKey | _Keys, weights: SupportsIndex | _Integers = 1) -> None: ...
    def merge(self, raw: RawSketch) -> None: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes]]: ...

@final
class FrequencyProfile:
    def __new__(cls, frequencies: _Float | _Floats) -> FrequencyProfile: ...
    @staticmethod
    def zipf(*, total: _Float, keys: SupportsIndex, exponent: _Float = 1.0) -> FrequencyProfile: ...
    @property
    def total(self) -> float: ...
    @property
    def keys(self) -> int: ...
    @property
    def second_moment(self) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]

_Profile: TypeAlias = FrequencyProfile | JoinProfile

@final
class Plan:
    @property
    def structure(
        self,
    ) -> Literal["ContinualCounter", "ContinualVector", "CountSketch", "RangeCounter", "JoinSize"]: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...
    @property
    def privacy(self) -> Budget: ...
    @property
    def noise_std(self) -> float: ...
    @property
    def lattice_step(self) -> float: ...
    @property
    def cells(self) -> int: ...
    @property
    def memory(self) -> int: ...
    @property
    def memory_at_start(self) -> int: ...
    @property
    def memory_one_by_one(self) -> int: ...
    def cells_read(self, keys: SupportsIndex | None = None) -> int: ...
    def error(
        self,
        confidence: _Float = 0.95,
        releases: SupportsIndex = 1,
        *,
        at: SupportsIndex | None = None,
        profile: _Profile | None = None,
    ) -> float: ...
    def zero_would_do(self, points: SupportsIndex, *, confidence: _Float = 0.95) -> bool: ...
    def join_terms(self, profile: JoinProfile) -> JoinTerms: ...
    @property
    def buffers(self) -> int | None: ...
    @property
    def variables(self) -> int: ...
    def compare(
        self,
        *,
        reads: SupportsIndex | None = None,
        keys: SupportsIndex | None = None,
        profile: _Profile | None = None,
    ) -> Comparison: ...
    def _measure(self, reads: int, keys: int | None) -> tuple[float, int]: ...
    @property
    def components(self) -> tuple[int, int]: ...
    def box(
        self,
        lo: Any = None,
        hi: Any = None,
        *,
        sides: SupportsIndex | _Integers | None = None,
        confidence: _Float = 0.95,
        second_moment: _Float = 0.0,
        at: SupportsIndex | None = None,
    ) -> BoxPlan: ...
    def std(self, *, at: SupportsIndex | None = None, profile: _Profile | None = None) -> float: ...
    def replace(self, **changes: Any) -> Plan: ...
    def summary(self, profile: _Profile | None = None) -> list[tuple[str, str]]: ...
    def what_if(self, profile: _Profile | None = None) -> list[WhatIf]: ...
    def fits_in_vector(self, keys: SupportsIndex) -> Plan | None: ...
    def plot(self, path: str | os.PathLike[str], *, profile: _Profile | None = None) -> None: ...
    def build(self) -> Structure: ...
    def _repr_html_(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    __hash__: ClassVar[None]  # type: ignore[assignment]
