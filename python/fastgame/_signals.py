"""Interruptions that wait until something is done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

#: Seconds from the end of a block until what was waiting is delivered: the caller has its result by then.
_LATER = 0.05


def _interrupt(number: int) -> None:
    """Sends a signal to the main thread: a call there that waits would not notice one that another thread gets."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, number)
    else:
        signal.raise_signal(number)


@contextlib.contextmanager
def waiting_signals(later: bool = False) -> Iterator[list[int]]:
    """Lets interruptions and requests to end wait until the block is done: their numbers, in a list.

    With `later` they are delivered shortly after the block. Not in threads other than the main one, which alone is
    interrupted.
    """
    waiting: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield waiting
        return

    def wait(number: int, _: object) -> None:
        waiting.append(number)

    # A handler that was not set by Python cannot be set again.
    numbers = [number for number in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(number) is not None]
    before = {}
    try:
        with contextlib.suppress(ValueError):  # what Python was embedded in may have another main thread
            for number in numbers:
                before[number] = signal.signal(number, wait)
        yield waiting
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for one in dict.fromkeys(waiting if later else ()):
            timer = threading.Timer(_LATER, _interrupt, [one])
            timer.daemon = True
            timer.start()
