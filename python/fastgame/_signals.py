"""Interruptions that wait until something is done."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

#: Seconds from the end of a block until what was waiting is delivered: the caller has its result by then.
_LATER = 0.05


@contextlib.contextmanager
def waiting_signals() -> Iterator[list[int]]:
    """Lets interruptions and requests to end wait until the block is done: their numbers, in a list.

    Not in threads other than the main one, which alone is interrupted.
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
        for number in numbers:
            before[number] = signal.signal(number, wait)
        yield waiting
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def deliver_later(numbers: list[int]) -> None:
    """Delivers what was waiting, once the caller has returned."""
    for number in dict.fromkeys(numbers):
        timer = threading.Timer(_LATER, signal.raise_signal, [number])
        timer.daemon = True
        timer.start()
