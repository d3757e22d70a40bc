"""Runs programs of others: each in a group of its own, which ends when this process does."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from microtir.support.system import ProcessGroup, bury


class Child:
    """A program that runs beside this one, its output a pipe.

    Args:
        command: what to run.
        cwd: its working folder, if not this one.
        env: its environment, if not this one.
        has_input: whether its input is a pipe, too; else it has none.
        stderr: a constant of `subprocess`.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        has_input: bool = False,
        stderr: int = subprocess.STDOUT,
    ) -> None:
        _check_program(command[0], cwd, env)
        self._group = ProcessGroup(command, cwd=cwd, env=env, has_input=has_input, stderr=stderr)
        self.process: subprocess.Popen[bytes] = self._group.leader

    def kill(self) -> None:
        """Kill the program and what it started, unless it has ended by itself."""
        self._group.kill()

    def end(self) -> int:
        """Kill what still runs, and give up the pipes; returns the exit status."""
        self.kill()
        status = bury(self.process)
        self._group.close()
        return status


def _check_program(program: str, cwd: Path | None, env: Mapping[str, str] | None) -> None:
    """Refuse what is no program, of which the shell would only print that."""
    place = str(cwd / program) if cwd is not None and os.sep in program else program
    if shutil.which(place, path=(os.environ if env is None else env).get("PATH")) is None:
        number = errno.EACCES if Path(place).is_file() else errno.ENOENT
        raise FileNotFoundError(number, os.strerror(number), program)


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


def answer(command: Sequence[str], *, timeout: float) -> tuple[str, str]:
    """Run a tool that has something to say; return that, and why it failed, empty if it did not."""
    try:
        done = run(command, timeout=timeout)
    except OSError as error:
        return "", str(error)
    problem = f"status {done.returncode}: {done.stderr.strip()}" if done.returncode else ""
    return done.stdout, problem


def _text(output: bytes | None) -> str:
    return (output or b"").decode("utf-8", "replace").replace("\r\n", "\n")
