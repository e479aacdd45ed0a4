"""Files that are written whole or not at all."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

#: What is not for a file waits in memory up to so many bytes, then in a temporary file.
_IN_MEMORY = 64 << 20


class Staged:
    """What is to be written to a file or to the standard output: first made whole, beside the file; then let out.

    So nothing that can fail for its size (a full disk, memory) is left when it leaves.
    """

    def __init__(self, put: Callable[[Any], object], out: str | None) -> None:
        self.out = out
        self._name: str | None = None
        self._content: Any = None
        target = None if out is None else Path(out).resolve()
        if target is None or (target.exists() and not target.is_file() and not target.is_dir()):
            if target is None and sys.stdout is None:
                raise ValueError("the standard output is closed: name a file with --out")
            self._content = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (closed when it is let out)
            try:
                with naming(tempfile.gettempdir()):
                    put(self._content)
            except BaseException:
                self.forget()
                raise
            return
        self._target = target
        # Beside the target, so that the move is one step: nobody meets half of a table.
        try:
            descriptor, self._name = tempfile.mkstemp(dir=target.parent, prefix=".fastgame-")
        except OSError as error:
            raise OSError(error.errno, error.strerror, out) from None
        try:
            with naming(str(out)), os.fdopen(descriptor, "wb") as file:
                put(file)
                file.flush()
                os.fsync(file.fileno())
        except BaseException:
            self.forget()
            raise

    @property
    def is_file(self) -> bool:
        """Whether it is let out by a move, and does not wait for a reader."""
        return self._content is None

    def publish(self) -> None:
        """Lets it out. After an error what is for a file is still there, to be kept or forgotten."""
        if self._name is not None:
            # Until now it was its owner's alone.
            mask = os.umask(0)
            os.umask(mask)
            with naming(str(self.out)):
                os.chmod(self._name, 0o666 & ~mask)
                os.replace(self._name, self._target)
                self._name = None
                _sync_folder(self._target.parent)
            return
        self._content.seek(0)
        if self.out is None:
            with naming("the standard output"):
                sys.stdout.flush()
                shutil.copyfileobj(self._content, sys.stdout.buffer)
                sys.stdout.buffer.flush()
        else:
            with naming(self.out), open(self.out, "wb") as file:  # a pipe or a device, which must stay what it is
                shutil.copyfileobj(self._content, file)
        self._content.close()

    def keep(self) -> str | None:
        """Leaves it where it is, for somebody to move; the name of the file."""
        name, self._name = self._name, None
        return name

    def forget(self) -> None:
        """Takes away what was not let out."""
        if self._name is not None:
            with suppress(OSError):
                os.unlink(self._name)
            self._name = None
        if self._content is not None:
            self._content.close()


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Says of an error of the system where it was."""
    try:
        yield
    except OSError as error:
        if error.filename == place or isinstance(error, BrokenPipeError):
            raise
        reason = str(error) if error.strerror is None else error.strerror
        raise (OSError(error.errno, reason, place) if error.errno else OSError(f"{reason}: {place!r}")) from error


def _sync_folder(folder: Path) -> None:
    """Waits until a move is on the disk. Windows knows no such thing, nor do some file systems."""
    if os.name == "nt":
        return
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_bytes(put: Callable[[Any], object], out: str | None) -> None:
    """Lets `put` write to a file, all or nothing, or to the standard output."""
    staged = Staged(put, out)
    try:
        staged.publish()
    finally:
        staged.forget()


def write_text(text: str, out: str | None) -> None:
    """Writes text to a file, all or nothing, or to the standard output."""
    write_bytes(lambda file: file.write(text.encode()), out)
