"""Turns requests of the system to end into an exception, so that what was begun is put away."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

ENDINGS: tuple[signal.Signals, ...] = tuple(
    s for s in signal.Signals if s.name in ("SIGTERM", "SIGHUP")
)
"""Signals that ask a process to end; Windows has no hang-up."""

_ONE_REQUEST = 2.0
"""Seconds in which several signals are one request: `timeout` and shells send it twice."""


class EndRequested(SystemExit):
    """The system, or somebody else, asks this process to end.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)  # as shells count it
        self.name = signal.Signals(number).name
        self.status = 128 + number


@contextmanager
def ends_cleanly() -> Iterator[None]:
    """Raise EndRequested in the block where a signal would end the process on the spot.

    Signals that are ignored, as `nohup` has it, or that the application handles, stay as they are.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is told of signals
        return
    last = -_ONE_REQUEST

    def ask(number: int, _frame: object) -> None:
        nonlocal last
        before, last = last, time.monotonic()
        if last - before > _ONE_REQUEST:
            raise EndRequested(number)

    ours = [number for number in ENDINGS if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, ask)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
