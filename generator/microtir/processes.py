"""Programs of others: each runs in a group of its own, which ends when this process does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

# Its standard input closes when whoever holds the other end is gone, whatever ended that: SIGKILL
# is seen by nobody, and the kernel's own signal for it comes when a thread ends, reaches no helpers
# that a program started, and is to be asked for between fork and exec, where threads forbid it.
_WATCH = 'read -r _; kill -s KILL -- "-$1"'


class Child:
    """A program, its output a pipe.

    Args:
        command: what to run.
        cwd: its working folder, if not this one.
        env: its environment, if not this one.
        stdin: a constant of `subprocess`, for its input.
        stderr: likewise.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: int = subprocess.DEVNULL,
        stderr: int = subprocess.STDOUT,
    ) -> None:
        self.process: subprocess.Popen[bytes] = subprocess.Popen(
            list(command), cwd=cwd, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr,
            bufsize=0, start_new_session=True,
        )  # fmt: skip
        try:
            self._watcher = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH, "sh", str(self.process.pid)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        except BaseException:
            self.kill()
            self.process.wait()
            raise

    def kill(self) -> None:
        """Kill the program and what it started, unless it has ended by itself."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def end(self) -> int:
        """Kill what still runs, and give up the pipes; returns the exit status."""
        self.kill()
        status = self.process.wait()
        self._watcher.kill()
        self._watcher.wait()
        for stream in (self._watcher.stdin, self.process.stdin, self.process.stdout,
                       self.process.stderr):  # fmt: skip
            if stream is not None:
                stream.close()
        return status


def run(
    command: Sequence[str],
    *,
    timeout: float,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    merged: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, without input, and keep what it prints.

    Args:
        command: what to run.
        timeout: seconds.
        cwd: its working folder, if not this one.
        env: its environment, if not this one.
        merged: whether both streams come in one text.

    Raises:
        OSError: it cannot be started.
        TimeoutError: it did not end in time, and was killed with all that it had started.
    """
    child = Child(
        command, cwd=cwd, env=env, stderr=subprocess.STDOUT if merged else subprocess.PIPE
    )
    try:
        output, errors = child.process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"'{command[0]}' did not end in {timeout:g} seconds") from None
    finally:
        status = child.end()
    return subprocess.CompletedProcess(list(command), status, _text(output), _text(errors))


def _text(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace").replace("\r\n", "\n")
