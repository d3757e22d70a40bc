"""Runs a job in a process of its own, which ends with it, with its time, or with the page.

The processes are forked from one that has the compiler loaded and has read no model (Python's
forkserver), so that a job begins in milliseconds and nothing of one model reaches the next.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from multiprocessing import forkserver, util
from multiprocessing.connection import Connection, wait

from microtir.errors import MicrotirError, ToolError
from microtir.studio.events import Event, Job, error_event
from microtir.studio.limits import WorkerLimits

_LOADED = (
    "microtir.driver",
    "microtir.frontend",
    "microtir.host.quantised",
    "microtir.report.collect",
    "microtir.report.html",
    "microtir.search.fit_plans",
    "microtir.search.pareto",
    "microtir.studio.worker",
)
_CONTEXT = multiprocessing.get_context("forkserver")
_Tell = Callable[["bytes | None"], None]
# To start a process reads the ends of all others. An end can be read once: whoever reads it at the
# same time takes the process for one that failed.
_READS_ENDS = threading.Lock()
_IN_A_TERMINAL = "`microtir report MODEL` in a terminal has no such limit"


def load_compiler() -> None:
    """Start the process that all workers are forked from, so that the first has not to wait."""
    # Up to Python 3.10.8 and in 3.11.0 it listens on a socket that has no file, and so no owner:
    # every user could tell it what to run.
    util.abstract_sockets_supported = False  # type: ignore[misc]
    _CONTEXT.set_forkserver_preload(list(_LOADED))
    forkserver.ensure_running()


class Worker:
    """A process that runs one job.

    Args:
        job: to be run.
        limits: of the process.
    """

    def __init__(self, job: Job, limits: WorkerLimits) -> None:
        self._limits = limits
        self._receiver, self._sender = _CONTEXT.Pipe(duplex=False)
        self._process = _CONTEXT.Process(target=_run, args=(job, self._sender, limits))
        self._lock = threading.Lock()
        self._is_ended = False

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Start the job and yield what it tells, as JSON; in the end it is gone.

        A job that ends without a result, or takes too long, is told as an error.
        """
        loop = asyncio.get_running_loop()
        told: asyncio.Queue[bytes | None] = asyncio.Queue()

        def tell(event: bytes | None) -> None:
            with suppress(RuntimeError):  # the loop has ended, and nobody listens
                loop.call_soon_threadsafe(told.put_nowait, event)

        thread = threading.Thread(target=self._listen, args=(tell,), daemon=True)
        thread.start()
        until = loop.time() + self._limits.seconds
        try:
            while True:
                left = until - loop.time()
                event = await asyncio.wait_for(told.get(), max(left, 0))
                if event is None:
                    break
                yield event
            thread.join()
            if self._process.exitcode:
                yield _json(error_event(self._death()))
        except (asyncio.TimeoutError, TimeoutError):
            yield _json(error_event(self._overdue()))
        finally:
            self._end()

    def _end(self) -> None:
        """Kill the process and what it started, unless it has come to its end."""
        with self._lock:
            self._is_ended = True
            number = self._process.pid
            with _READS_ENDS:
                if number is None or self._process.exitcode == 0:
                    return
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(number, signal.SIGKILL)
            self._process.kill()

    def _listen(self, tell: _Tell) -> None:
        """Start the process and hand on what it tells, until it has ended."""
        with self._lock:
            if self._is_ended:
                return
            with _READS_ENDS:
                self._process.start()
            self._sender.close()
        # What it started may hold its end of the pipe still: that it has ended counts, too.
        ends: list[Connection | int] = [self._receiver, self._process.sentinel]
        with suppress(EOFError, OSError):
            while self._receiver in wait(ends):
                tell(self._receiver.recv_bytes())
        self._receiver.close()
        wait([self._process.sentinel])
        with _READS_ENDS:
            self._process.join()
        tell(None)

    def _death(self) -> MicrotirError:
        status = self._process.exitcode or 0
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        return ToolError(
            f"the compiler's process ended with {how} before it had a result",
            where="studio",
            fix=f"it may have needed more than {self._limits.memory >> 30} GiB of memory, which "
            f"is the limit here: {_IN_A_TERMINAL}",
        )

    def _overdue(self) -> MicrotirError:
        return ToolError(
            f"the compilation did not end in {self._limits.seconds:g} seconds, and was stopped",
            where="studio",
            fix=_IN_A_TERMINAL,
        )


def _json(event: Event) -> bytes:
    return json.dumps(event, allow_nan=False).encode()


def _run(job: Job, sender: Connection, limits: WorkerLimits) -> None:
    """Run a job in its process; whatever goes wrong is told, and a page that has gone is none."""
    os.setsid()  # a group, which is killed as a whole
    limits.apply()

    def emit(event: Event) -> None:
        sender.send_bytes(_json(event))

    with suppress(BrokenPipeError):
        try:
            job.run(emit)
        except MicrotirError as error:
            emit(error_event(error))
        except MemoryError:
            emit(error_event(_too_much(limits)))
        except BrokenPipeError:
            raise
        except Exception as error:  # noqa: BLE001  # the last resort: a defect is a sentence, too
            emit(error_event(_defect(error)))


def _too_much(limits: WorkerLimits) -> MicrotirError:
    return ToolError(
        f"the model needs more than {limits.memory >> 30} GiB of memory to compile",
        where="studio",
        fix=_IN_A_TERMINAL,
    )


def _defect(error: Exception) -> MicrotirError:
    text = f"{type(error).__name__}: {error}".removesuffix(": ")
    return MicrotirError(
        f"internal error, a defect of microtir: {text}",
        fix="please report it, with the model if you can; `microtir report MODEL --debug` has the "
        "traceback",
    )
