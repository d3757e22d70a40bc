"""Runs functions in processes of this machine that end, and leave nothing, with this one."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager

from microtir.support.ending import ENDINGS


@contextmanager
def process_pool(most: int | None) -> Iterator[Executor]:
    """Yield processes that work at a time; what interrupts the block kills them.

    They keep temporary files in a folder of this process, which is removed with all that a
    process had there when it was killed.

    Args:
        most: how many; None for one on each core.
    """
    others = multiprocessing.active_children()
    with (
        tempfile.TemporaryDirectory(prefix="microtir-", ignore_cleanup_errors=True) as folder,
        ProcessPoolExecutor(most, initializer=_begin, initargs=(folder,)) as pool,
    ):
        try:
            yield pool
        except (KeyboardInterrupt, SystemExit):
            # The pool would wait for work that nobody wants any more.
            for process in multiprocessing.active_children():
                if process not in others:
                    process.kill()
            raise


def _begin(folder: str) -> None:
    """Prepare a process: Ctrl-C is for the one that started it, which kills this one."""
    tempfile.tempdir = folder
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ENDINGS:
        signal.signal(number, signal.SIG_DFL)
