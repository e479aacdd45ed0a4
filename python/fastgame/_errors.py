"""The exceptions of fastgame. Errors of arguments are ValueError, TypeError and OverflowError."""

__all__ = [
    "BadRowsError",
    "CopyError",
    "EntropyError",
    "FastgameError",
    "HorizonError",
    "IncompatibleError",
    "SealedStepError",
    "StateError",
]


class FastgameError(Exception):
    """Base class of the exceptions that only fastgame raises."""

    __module__ = "fastgame"


class HorizonError(FastgameError, ValueError):
    """The clock was asked to go back, or past the last step."""

    __module__ = "fastgame"


class IncompatibleError(FastgameError, ValueError):
    """Two structures do not fit together."""

    __module__ = "fastgame"


class StateError(FastgameError, ValueError):
    """The state of a structure cannot be used."""

    __module__ = "fastgame"


class SealedStepError(FastgameError, RuntimeError):
    """An update at a step that was released already: advance the clock first."""

    __module__ = "fastgame"


class CopyError(FastgameError, TypeError):
    """A live mechanism would be copied: a second copy that answers is a second release."""

    __module__ = "fastgame"


class EntropyError(FastgameError, OSError):
    """The operating system gave no randomness; nothing was built or released."""

    __module__ = "fastgame"


class BadRowsError(FastgameError, ValueError):
    """A table has rows that are no events, and they were not to be left out. Not private."""

    __module__ = "fastgame"
