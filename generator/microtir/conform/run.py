"""Builds the test programs on this machine, runs them, and reads what they say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from microtir.conform.programs import program_name
from microtir.conform.spec import Function
from microtir.errors import ToolError
from microtir.support import processes

_TIMEOUT = 1800.0  # seconds for all of a library, under sanitizers
_PROGRAM_TIMEOUT = 300.0  # seconds for one function; a kernel may never end
_SHOWN_LINES = 30


@dataclass(frozen=True, slots=True)
class Verdict:
    """The lines of a program about cases of a function that failed; none if it conforms."""

    function: Function
    findings: tuple[str, ...]


def build_programs(folder: Path) -> None:
    """Compile all programs of a folder.

    Raises:
        ToolError: there is no make, or a compiler or linker objected.
    """
    jobs = str(os.cpu_count() or 1)
    try:
        done = processes.run(["make", "-C", str(folder), "-j", jobs], timeout=_TIMEOUT, merged=True)
    except TimeoutError as error:
        raise ToolError(
            f"the programs were not built: {error}", where=str(folder), fix="test fewer cases"
        ) from None
    except OSError as error:
        raise ToolError(
            f"make cannot be run: {error}", where=str(folder), fix="install the package 'make'"
        ) from None
    if done.returncode != 0:
        errors = [
            line
            for line in done.stdout.splitlines()
            if ": error: " in line or "undefined reference" in line
        ]
        messages = "\n".join((errors or done.stdout.splitlines())[:_SHOWN_LINES])
        raise ToolError(
            f"the programs cannot be built:\n{messages}",
            where=str(folder),
            fix="correct the specification, or set CC, CFLAGS and CPPFLAGS for the kernels",
        )


def run_programs(folder: Path, functions: Sequence[Function]) -> tuple[Verdict, ...]:
    """Run the programs that `build_programs` made; one verdict for each function."""
    return tuple(Verdict(function, _findings(folder, function)) for function in functions)


def _findings(folder: Path, function: Function) -> tuple[str, ...]:
    program = folder.absolute() / program_name(function)
    try:
        done = processes.run([str(program)], timeout=_PROGRAM_TIMEOUT)
    except TimeoutError:
        return (f"did not end in {_PROGRAM_TIMEOUT:g} seconds",)
    if done.returncode == 0:
        return ()
    prefix = f"{function.name}: "
    lines = [line.removeprefix(prefix) for line in done.stdout.splitlines() if ": case " in line]
    reasons = [
        line for line in done.stderr.splitlines() if "ERROR: " in line or "runtime error" in line
    ]
    return (*lines, *reasons[:1]) or (f"ended with status {done.returncode}",)
