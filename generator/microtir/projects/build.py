"""Builds a project with its own tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from microtir.artifact import Metadata, places_in
from microtir.boards.errors import BuildError
from microtir.support import processes

TIMEOUT = 1800  # seconds: a first Zephyr build compiles the whole kernel

# Where the reason starts: what comes before are the commands of what went well.
_REASON = re.compile(
    r"error:|CMake Error|undefined reference|overflowed by|multiple definition|cannot find"
    r"|No such file|will not fit|Error \d|FAILED|Assertion|assertion"
)
_SHOWN_LINES = 25


def run_build(
    command: Sequence[str], folder: Path, models: Callable[[], Sequence[Metadata]] = tuple
) -> str:
    """Run a build command in the project's folder; returns what it printed.

    Args:
        command: what to run.
        folder: where.
        models: gives what is known of the program's models, whose layers a message then names.

    Raises:
        BuildError: it failed; the message is the compiler's or linker's own.
    """
    try:
        done = processes.run(command, cwd=folder, timeout=TIMEOUT, merged=True)
    except TimeoutError:
        raise BuildError(f"'{command[0]}' took over {TIMEOUT} seconds", where=str(folder)) from None
    except OSError as error:
        raise BuildError(
            f"'{command[0]}' cannot be started: {error.strerror}", where=str(folder)
        ) from None
    if done.returncode != 0:
        messages = reason(done.stdout)
        raise BuildError(
            f"'{' '.join(command)}' failed with status {done.returncode}:\n{messages}"
            + "".join(places_in(messages, metadata) for metadata in models()),
            where=str(folder),
            fix=f"run the command again in {folder}",
        )
    return done.stdout


def reason(output: str) -> str:
    """Return the part of a failed build's output that says why."""
    lines = output.rstrip().splitlines()
    first = next((n for n, line in enumerate(lines) if _REASON.search(line)), None)
    if first is None:
        return "\n".join(lines[-_SHOWN_LINES:])
    # gcc says "In function ..." one line ahead.
    return "\n".join(lines[max(first - 1, 0) : first + _SHOWN_LINES])
