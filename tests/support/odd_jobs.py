"""Jobs that do what hostile models would like to."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from microtir.studio.events import Emit


def _start_another(emit: Emit) -> None:
    child = os.fork()
    if child == 0:
        time.sleep(600)
        os._exit(0)
    emit({"event": "numbers", "numbers": [os.getpid(), child]})


@dataclass(frozen=True, slots=True)
class Dying:
    """A job that ends as the system ends it without memory, and leaves a process behind."""

    def run(self, emit: Emit) -> None:
        _start_another(emit)
        os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Endless:
    """A job that tells its number, starts another process, and never ends."""

    def run(self, emit: Emit) -> None:
        _start_another(emit)
        time.sleep(600)


@dataclass(frozen=True, slots=True)
class Greedy:
    """A job that wants more memory than it may have."""

    def run(self, emit: Emit) -> None:
        emit({"event": "bytes", "count": len(bytearray(3 << 30))})


@dataclass(frozen=True, slots=True)
class Defective:
    """A job with a defect."""

    def run(self, emit: Emit) -> None:
        raise ZeroDivisionError("by nothing")


@dataclass(frozen=True, slots=True)
class Littering:
    """A job that is killed while it has a temporary folder."""

    def run(self, emit: Emit) -> None:
        with TemporaryDirectory() as folder:
            emit({"event": "folder", "folder": folder})
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Chatty:
    """Tells more than the buffers of the system hold."""

    def run(self, emit: Emit) -> None:
        for _ in range(64):
            emit({"event": "chatter", "text": "x" * (1 << 18)})


@dataclass(frozen=True, slots=True)
class Quick:
    """A job that has its result at once."""

    def run(self, emit: Emit) -> None:
        emit({"event": "done"})
