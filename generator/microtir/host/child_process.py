"""Runs code of others in a process of its own: it may crash, and must not take this one with it."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from microtir.errors import ToolError
from microtir.support import processes

TIMEOUT = 600.0  # seconds
REFUSED = 4  # exit status of a program that wrote its reason to the file REASON
REASON = "reason.txt"
_LINES = 3  # of what a program wrote to stderr, in a diagnostic


def run_in_child(
    module: str,
    folder: Path,
    who: str,
    where: str,
    fix: str,
    *,
    timeout: float = TIMEOUT,
    fix_if_slow: str | None = None,
) -> None:
    """Run a module as a program, with a folder for what goes in and what comes out.

    Args:
        module: full name of the module, whose only argument is the folder.
        folder: where it works, too.
        who: whose code it is, the subject of the diagnostics.
        where: what it was asked about, such as a model file.
        fix: what to do if it fails.
        timeout: seconds that it may run.
        fix_if_slow: what to do if it does not end in that time, where that is something else.

    Raises:
        ToolError: it refused, crashed or did not end.
    """
    # The module is found as this process found it, installed or not.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        command = [sys.executable, "-m", module, str(folder)]
        done = processes.run(command, cwd=folder, env=environment, timeout=timeout)
    except TimeoutError:
        raise ToolError(
            f"{who} did not end within {timeout:g} seconds", where=where, fix=fix_if_slow or fix
        ) from None
    if done.returncode == 0:
        return
    reason = folder / REASON
    if done.returncode == REFUSED and reason.is_file():
        what = f"{who} cannot run the model: {reason.read_text('utf-8')}"
    else:
        what = f"{who} {ending(done.returncode)}"
    messages = "\n".join(done.stderr.strip().splitlines()[-_LINES:])
    raise ToolError(f"{what}\n{messages}".strip(), where=where, fix=fix)


def ending(status: int) -> str:
    """Return how a process ended, as a verb: by which signal, or with which status."""
    if status >= 0:
        return f"ended with status {status}"
    try:
        return f"crashed: {signal.Signals(-status).name}"
    except ValueError:
        return f"crashed: signal {-status}"
