"""Private statistics of changing data, released at any time step under one guarantee for all answers together.

>>> import fastgame as fg
>>> visits = fg.ContinualCounter(horizon=8760, privacy=fg.Zcdp(rho=0.5))
>>> visits.update([1, 1, -1])
>>> visits.advance(to=24)
>>> published = visits.release()

See ``help(fg.ContinualVector)`` for the parameters that all structures share.
"""

from fastgame import axis
from fastgame._core import (
    ApproxDp,
    Budget,
    ContinualCounter,
    ContinualVector,
    CountSketch,
    FrequencyProfile,
    Gdp,
    JoinProfile,
    JoinSide,
    JoinSize,
    Plan,
    PureDp,
    RangeCounter,
    RawSketch,
    Structure,
    Zcdp,
    __version__,
    total,
)
from fastgame._errors import (
    BadRowsError,
    CopyError,
    EntropyError,
    FastgameError,
    HorizonError,
    IncompatibleError,
    SealedStepError,
    StateError,
)
from fastgame._replay import Feed, replay, replay_join
from fastgame._results import (
    BoxPlan,
    Comparison,
    Estimate,
    Grid,
    HeavyHitters,
    Interval,
    JoinEstimate,
    JoinTerms,
    MechanismPlan,
    Top,
    WhatIf,
)
from fastgame._rows import RowCounts
from fastgame._store import StoreInfo, inspect, open
from fastgame._ticks import Ticks

__all__ = [
    "ApproxDp",
    "BadRowsError",
    "BoxPlan",
    "Budget",
    "Comparison",
    "ContinualCounter",
    "ContinualVector",
    "CopyError",
    "CountSketch",
    "EntropyError",
    "Estimate",
    "FastgameError",
    "Feed",
    "FrequencyProfile",
    "Gdp",
    "Grid",
    "HeavyHitters",
    "HorizonError",
    "IncompatibleError",
    "Interval",
    "JoinEstimate",
    "JoinProfile",
    "JoinSide",
    "JoinSize",
    "JoinTerms",
    "MechanismPlan",
    "Plan",
    "PureDp",
    "RangeCounter",
    "RawSketch",
    "RowCounts",
    "SealedStepError",
    "StateError",
    "StoreInfo",
    "Structure",
    "Ticks",
    "Top",
    "WhatIf",
    "Zcdp",
    "__version__",
    "axis",
    "inspect",
    "open",
    "replay",
    "replay_join",
    "total",
]
