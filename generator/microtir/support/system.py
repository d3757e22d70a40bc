"""Does what POSIX and Windows have different calls for: locks, groups of processes, interrupts.

A type checker reads the half of the system that it is told; the half for Windows has not been run.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    @contextmanager
    def new_lock(path: Path) -> Iterator[None]:
        """Make a file that this process holds until the end of the block, however it ends."""
        with path.open("wb") as file:  # an open file cannot be renamed, and has its name at once
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            yield

    def is_held(path: Path) -> bool:
        """Return whether a process holds a file; FileNotFoundError if there is none."""
        descriptor = os.open(path, os.O_WRONLY)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    @contextmanager
    def uninterrupted() -> Iterator[None]:
        """Let Ctrl-C wait for the end of the block."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    class ProcessGroup:
        """A program, and what it starts: `kill` ends all of it."""

        def __init__(
            self,
            command: Sequence[str],
            *,
            cwd: Path | None,
            env: Mapping[str, str] | None,
            has_input: bool,
            stderr: int,
        ) -> None:
            self.leader: subprocess.Popen[bytes] = subprocess.Popen(
                list(command), cwd=cwd, env=env, bufsize=0,
                stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=stderr,
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP,
            )  # fmt: skip

        def kill(self) -> None:
            """Kill the program and what it started, unless it has ended by itself."""
            if self.leader.poll() is None:
                subprocess.run(
                    ["taskkill", "/T", "/F", "/PID", str(self.leader.pid)],
                    capture_output=True, check=False,
                )  # fmt: skip

        def close(self) -> None:
            """Give up what watches the program: nothing does."""

else:
    import fcntl

    _SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # Its standard input closes when whoever holds the other end is gone, whatever ended that:
    # SIGKILL is seen by nobody, and the kernel's own signal for it comes when a thread ends,
    # reaches no helpers that a program started, and is to be asked for between fork and exec,
    # where threads forbid it.
    _WATCH = 'read -r _; kill -s KILL -- "-$1"'
    # The program begins when it is watched, and never if nobody is left to say so.
    _BEGIN = 'read -r _ && exec "$@"'
    _GRACE = 0.5  # seconds that a program has to end by itself

    @contextmanager
    def new_lock(path: Path) -> Iterator[None]:
        """Make a file that this process holds until the end of the block, however it ends."""
        unnamed = path.with_name(f"{path.name}.new")
        with unnamed.open("wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            unnamed.rename(path)  # under its name it is locked from the first moment on
            yield

    def is_held(path: Path) -> bool:
        """Return whether a process holds a file; FileNotFoundError if there is none."""
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    @contextmanager
    def uninterrupted() -> Iterator[None]:
        """Let Ctrl-C, and other requests to end, wait for the end of the block."""
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    class ProcessGroup:
        """A program, and what it starts: `kill` ends all of it, and so does the end of this one."""

        def __init__(
            self,
            command: Sequence[str],
            *,
            cwd: Path | None,
            env: Mapping[str, str] | None,
            has_input: bool,
            stderr: int,
        ) -> None:
            begin = _BEGIN if has_input else f"{_BEGIN} </dev/null"
            self.leader: subprocess.Popen[bytes] = subprocess.Popen(
                ["/bin/sh", "-c", begin, "sh", *command], cwd=cwd, env=env, bufsize=0,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
                start_new_session=True,
            )  # fmt: skip
            try:
                self._watcher = subprocess.Popen(
                    ["/bin/sh", "-c", _WATCH, "sh", str(self.leader.pid)],
                    stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )  # fmt: skip
            except BaseException:
                self.kill()
                bury(self.leader)
                raise
            assert self.leader.stdin is not None
            with suppress(OSError):  # whoever killed it already is who wants to know
                os.write(self.leader.stdin.fileno(), b"\n")
            if not has_input:
                self.leader.stdin.close()
                self.leader.stdin = None

        def kill(self) -> None:
            """Kill the program and what it started, unless it has ended by itself.

            It is asked to end first: a compiler removes its temporary files then.
            """
            pid = self.leader.pid
            if self.leader.poll() is None:
                os.killpg(pid, signal.SIGTERM)
                end = time.monotonic() + _GRACE
                how = os.WEXITED | os.WNOHANG | os.WNOWAIT  # its number is not free meanwhile
                while os.waitid(os.P_PID, pid, how) is None and time.monotonic() < end:
                    time.sleep(_GRACE / 100)
                os.killpg(pid, signal.SIGKILL)

        def close(self) -> None:
            """End what watches the program."""
            self._watcher.kill()
            bury(self._watcher)


def bury(process: subprocess.Popen[bytes]) -> int:
    """Wait for the end of a program and close its pipes; returns its exit status."""
    status = process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    return status
