"""Arguments that Python takes itself, by the rules of the binding: what stands for a number, and how it is shown."""

from __future__ import annotations

import difflib
import operator
import os
import re
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
import numpy.typing as npt

#: Numpy has no arrays of more dimensions.
_MOST_DIMENSIONS = 64
#: From which similarity on, 1 for equal words, one is taken for a misspelled other: "width" is not "depth".
_NEAR = 0.65
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def shown(value: Any, most: int = 80) -> str:
    """A value as a message shows it: on one line, no more of it than can be read, and whatever its `repr` does."""
    try:
        text = _ADDRESS.sub("", " ".join(repr(value).split()))
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[:most]}..."


def did_you_mean(given: str, allowed: Iterable[str]) -> str:
    """The nearest word that is allowed, if one is near, to be put behind an unknown one in a message."""
    near = nearest(given, allowed)
    return "" if near is None else f' (did you mean "{near}"?)'


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The one of the known words that is most like another, if one is near."""
    words_of = {word.casefold(): word for word in known}
    near = difflib.get_close_matches(given.casefold(), words_of, n=1, cutoff=_NEAR)
    return words_of[near[0]] if near else None


def exact_below(kind: np.dtype[Any]) -> float:
    """From where on neighbours among whole numbers are the same float of this type; of no float beyond 2^53."""
    return 2.0 ** min(np.finfo(kind).nmant + 1, 53)


def words(error: BaseException, most: int = 300) -> str:
    """What somebody else's error says, on one line."""
    text = _ADDRESS.sub("", " ".join(str(error).split()))
    return text if len(text) <= most else f"{text[:most]}..."


def sized(value: Any) -> bool:
    """Whether a value has a length: asked of its class, and not of the class of that, which enumerations have."""
    return any("__len__" in vars(base) for base in type(value).__mro__)


def call_for_table(given: Any) -> str | None:
    """The call that makes a table of one that is not computed yet, or is elsewhere; None for all else."""
    kind = type(given)
    if isinstance(given, Mapping) or hasattr(kind, "__arrow_c_stream__"):
        return None
    # What Spark collects is a list of rows.
    calls = {"pyspark": ["toArrow", "toPandas", "to_pandas"], "dask": ["compute"], "dask_expr": ["compute"]}
    known = calls.get(str(kind.__module__).partition(".")[0], ["collect"])
    return next((f".{call}()" for call in known if hasattr(kind, call)), None)


def unwrapped(given: Any) -> Any:
    """The element of an array without dimensions, and the value of Arrow's scalars."""
    if isinstance(given, np.ndarray) and not isinstance(given, np.ma.MaskedArray) and given.ndim == 0:
        return given[()]
    return _scalar(given) if hasattr(type(given), "as_py") else given


def _scalar(given: Any) -> Any:
    """The value of one of Arrow's scalars. A null has none, and is not what None is; of some Python has none."""
    try:
        value = given.as_py()
    except (OverflowError, ValueError):
        return given
    return given if value is None else value


def is_no_number(value: Any) -> bool:
    """Whether a value is none, though Python or numpy make one of it."""
    if isinstance(value, np.generic):
        return not isinstance(value, np.integer | np.floating) or isinstance(value, np.timedelta64)
    return isinstance(value, bool | np.ndarray)


def integer(given: Any, name: str) -> int:
    """An integer of any type. Truth values are none, nor is a duration, which numpy counts among them."""
    value = unwrapped(given)
    if not is_no_number(value) and hasattr(type(value), "__index__"):
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise TypeError(f"{name} must be an integer; {type(value).__name__} was given")


def number(given: Any, name: str) -> float:
    """A real number of any type, infinite where floats end."""
    value = unwrapped(given)
    if not isinstance(value, str | bytes | bytearray) and not is_no_number(value):
        try:
            return float(value)
        except OverflowError:
            # Integers, and fractions of such.
            negative = operator.index(value) < 0 if hasattr(type(value), "__index__") else value < 0
            return -float("inf") if negative else float("inf")
        except (TypeError, ValueError):
            pass
    raise TypeError(f"{name} must be a number; {type(value).__name__} was given")


def text(given: Any, name: str) -> str:
    """Text, and nothing else."""
    if not isinstance(given, str):
        raise TypeError(f"{name} must be text; {type(given).__name__} was given")
    return given


def has_utf8(given: str) -> bool:
    """Whether text has a UTF-8 form: that with lone surrogates has none."""
    return str.encode(given, "utf-8", "replace") == str.encode(given, "utf-8", "surrogatepass")


def path_of(given: Any) -> str:
    """A path. Not a number, which would be that of an open file."""
    if not isinstance(given, str | bytes | os.PathLike):
        raise TypeError(f"path must be text or a path; {type(given).__name__} was given")
    path = os.fsdecode(given)
    try:
        encoded = os.fsencode(path)
    except UnicodeEncodeError:
        raise ValueError(f"path must be one that the system can have; {shown(path)} was given") from None
    if b"\0" in encoded:
        raise ValueError(f"path must have no NUL; {shown(path)} was given")
    return path


def sequence(given: Any, name: str) -> list[Any]:
    """The elements of a list, an array or a column. Sets and dicts have no order of their own, and iterators end."""
    kind = type(given)
    known = sized(given) and hasattr(kind, "__getitem__") and not hasattr(kind, "columns")
    if not known or isinstance(given, str | bytes | Mapping | Set | np.generic | np.ma.MaskedArray):
        raise TypeError(f"{name} must be a list or an array; {kind.__name__} was given")
    try:
        return list(given)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{name} must be a list or an array; {kind.__name__} was given, which is none: {words(error)}"
        ) from None


def plain(given: Any, name: str) -> Any:
    """An array for what numpy alone can read, and the value of Arrow's scalars."""
    kind = type(given)
    if hasattr(kind, "as_py"):
        return _scalar(given)
    if hasattr(kind, "__array__") and not sized(given) and not isinstance(given, np.generic):
        return _made(given, name)
    return given


def _made(given: Any, name: str) -> npt.NDArray[Any]:
    try:
        return np.asanyarray(given)
    except Exception as error:
        # Arrow has errors of its own, as for text that is not UTF-8.
        kind = TypeError if type(error).__module__.startswith("pyarrow") else type(error)
        if kind not in (TypeError, ValueError):
            raise
        raise kind(f"{name} cannot be made an array of: {words(error)}") from error


def has_lists(column: Any) -> bool:
    """Whether a column of Python's values has lists among them, which Arrow follows however deep they are."""
    is_objects = isinstance(column, np.ndarray) and column.dtype.kind == "O"
    nested = (list, tuple, dict, set, np.ndarray)
    if is_objects and column.ndim == 1:
        return any(isinstance(value, nested) for value in column)
    return isinstance(column, list | tuple) and any(isinstance(value, nested) for value in column)


def array_of(given: Any, name: str, rule: str = "must be numbers") -> npt.NDArray[Any]:
    """What numpy makes of an argument, and a masked array as it is.

    Refuses what numpy would take for numbers without a word: truth values beside numbers, masked elements in lists.
    """
    given = plain(given, name)
    _refuse_hidden(given, f"{name} {rule}", 0)
    array = _made(given, name)
    return array if isinstance(array, np.ma.MaskedArray) else np.asarray(array)


def _refuse_hidden(given: Any, rule: str, depth: int) -> None:
    if not isinstance(given, list | tuple) or depth > _MOST_DIMENSIONS:
        return
    for item in given:
        if isinstance(item, int | float) and not isinstance(item, bool):
            continue
        is_bool_array = isinstance(item, np.ndarray) and item.dtype.kind == "b"
        if isinstance(item, bool | np.bool_) or is_bool_array:
            raise TypeError(f"{rule}; bool was given")
        if isinstance(item, np.ma.MaskedArray):
            raise TypeError(f"{rule}; a masked array was given in a list")
        if hasattr(type(item), "as_py") and not isinstance(item.as_py(), int | float):
            # Numpy takes the letters of Arrow's texts for numbers.
            raise TypeError(f"{rule}; {type(item).__name__} was given in a list")
        _refuse_hidden(item, rule, depth + 1)
