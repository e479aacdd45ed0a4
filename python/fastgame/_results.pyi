from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fastgame._core import Plan

# One number for one key, an array for a column. (At run time a generic named tuple would need Python 3.11.)
_Values = TypeVar("_Values", float, npt.NDArray[np.float64])

class Estimate(NamedTuple, Generic[_Values]):
    value: _Values
    std: _Values

class Interval(NamedTuple, Generic[_Values]):
    value: _Values
    lower: _Values
    upper: _Values

class Top(NamedTuple):
    key: Any
    value: float

class WhatIf(NamedTuple):
    change: str
    plan: Plan
    error: float
    ratio: float

class MechanismPlan(NamedTuple):
    mechanism: str
    buffers: int | None
    plan: Plan
    error_now: float
    error_at_end: float
    memory: int
    time: float
    variables: int

class Comparison(NamedTuple):
    mechanisms: tuple[MechanismPlan, ...]
    choice: str
    why: str
    noise_alone: bool

class Grid(NamedTuple):
    value: npt.NDArray[np.float64]
    std: npt.NDArray[np.float64] | None
    edges: tuple[Any, ...]

class HeavyHitters(NamedTuple):
    items: list[Top]
    complete: bool

class BoxPlan(NamedTuple):
    cells_read: float
    noise_std: float
    std: float
    error: float

class JoinEstimate(NamedTuple):
    value: float
    std: float
    std_of_rows: float | None

class JoinTerms(NamedTuple):
    sketch: float
    cross: float
    noise: float
    balanced_width: float
    relative_std: float
