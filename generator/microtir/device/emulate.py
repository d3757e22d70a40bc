"""Runs a program without its board: on QEMU, on simavr, or on the machine itself."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from microtir.boards.board import Board, Emulator, EmulatorKind
from microtir.boards.errors import BoardError, EmulatorError
from microtir.boards.search import emulated_like
from microtir.boards.toolchain import require_program
from microtir.device.compiled_tools import Tool, tool_path
from microtir.errors import Fix
from microtir.support.processes import Child

DEFAULT_TIMEOUT = 120.0  # seconds
_SHOWN_CHARACTERS = 2000
_CHUNK = 65536
_QUIET = 1.0  # seconds without another line after the last one: the program does not end by itself

# One instruction is one nanosecond of the emulated board's time: counts and timers are the same
# in every run. Semihosting is what the exit status comes out by.
_QEMU_OPTIONS = (
    *("-display", "none", "-monitor", "none", "-serial", "stdio"),
    *("-semihosting-config", "enable=on,target=native", "-icount", "shift=0"),
)


@dataclass(frozen=True, slots=True)
class RunResult:
    """The output of a program, and its exit status."""

    status: int
    output: str


def make_command(emulator: Emulator, program: str) -> list[str]:
    """Return the command as a person without microtir would type it, empty if none."""
    if emulator.kind is EmulatorKind.QEMU:
        return [*_qemu(emulator), "-kernel", program]
    return [f"./{program}"] if emulator.kind is EmulatorKind.NATIVE else []


def emulator_command(board: Board, program: Path, more: Sequence[str] = ()) -> list[str]:
    """Return the command that runs a program built for a board.

    Args:
        board: with an emulator.
        program: the file that was built.
        more: further arguments for the emulator.

    Raises:
        BoardError: the board has no emulator.
        MissingToolError: it is not on this machine; says what to install.
    """
    emulator = board.emulator
    if emulator is None:
        raise BoardError(
            f"the board '{board.name}' has no emulator",
            where=f"{board.file}: emulator",
            fix=Fix.of("write the program to a real board; or ", emulated_like(board)),
        )
    if emulator.kind is EmulatorKind.NATIVE:
        return [str(program.resolve())]
    if emulator.kind is EmulatorKind.SIMAVR:
        runner = tool_path(Tool.AVR_RUNNER)
        return [str(runner), *more, str(emulator.machine), str(board.clock_hz), str(program)]
    require_program(str(emulator.program), emulator.package)
    return [*_qemu(emulator), *more, "-kernel", str(program)]


def _qemu(emulator: Emulator) -> list[str]:
    machine = ["-machine", str(emulator.machine)]
    return [str(emulator.program), *machine, *emulator.arguments, *_QEMU_OPTIONS]


def run_program(
    command: Sequence[str],
    timeout: float = DEFAULT_TIMEOUT,
    is_complete: Callable[[str], bool] | None = None,
) -> RunResult:
    """Run a command to its end; what it prints to either stream is kept in one text.

    Args:
        command: what to run.
        timeout: seconds.
        is_complete: whether all has been printed, for programs that go on after that.

    Raises:
        EmulatorError: it could not be started, or did not end in `timeout` seconds; the message
            shows the last output.
    """
    try:
        child = Child(command)
    except OSError as error:
        raise EmulatorError(f"cannot be started: {error.strerror}", where=command[0]) from None
    try:
        output, is_ended = _read(child, timeout, is_complete)
    finally:
        # An emulator may have started helpers: the whole group ends.
        status = child.end()
    if not is_ended:
        raise EmulatorError(
            f"the program did not end in {timeout:g} seconds; its last output:\n"
            f"{output[-_SHOWN_CHARACTERS:]}",
            where=command[0],
            fix="if the program is only slow, raise the time limit",
        )
    return RunResult(status, output)


def _read(
    child: Child, timeout: float, is_complete: Callable[[str], bool] | None
) -> tuple[str, bool]:
    """Read what a program prints, and whether it came to the end of its output."""
    process, data = child.process, b""
    assert process.stdout is not None
    end = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := end - time.monotonic()) > 0:
            is_last = is_complete is not None and is_complete(_text(data))
            if not selector.select(min(left, _QUIET) if is_last else left):
                if is_last:
                    return _text(data), True
                continue
            chunk = os.read(process.stdout.fileno(), _CHUNK)
            data += chunk
            if not chunk:
                return _text(data), _has_ended(process, left)
    return _text(data), False


def _has_ended(process: subprocess.Popen[bytes], timeout: float) -> bool:
    try:
        process.wait(timeout)
    except subprocess.TimeoutExpired:
        return False
    return True


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace").replace("\r\n", "\n")


def check_result(result: RunResult, where: str) -> bool:
    """Return whether the application found every output as expected.

    Raises:
        EmulatorError: it did not get that far: a model failed, or the program faulted.
    """
    if result.status in (0, 1):
        return result.status == 0
    raise EmulatorError(
        f"the program ended with status {result.status}; its last output:\n"
        f"{result.output[-_SHOWN_CHARACTERS:]}",
        where=where,
        legal="0, or 1 if an output differs",
    )
