"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_bytes(put: Callable[[Any], object], out: str | None) -> None:
    """Lets `put` write to a file, all or nothing, or to the standard output."""
    if out is None:
        if sys.stdout is None:
            raise ValueError("the standard output is closed: name a file with --out")
        sys.stdout.flush()
        put(sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    target = Path(out).resolve()
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("wb") as file:  # a pipe or a device, which must stay what it is
            put(file)
        return
    # Beside the target, so that the move is one step: nobody meets half of a table.
    try:
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".fastgame-")
    except OSError as error:
        raise OSError(error.errno, error.strerror, out) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            put(file)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def write_text(text: str, out: str | None) -> None:
    """Writes text to a file, all or nothing, or to the standard output."""
    write_bytes(lambda file: file.write(text.encode()), out)
