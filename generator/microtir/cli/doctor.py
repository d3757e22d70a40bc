"""`microtir doctor` says what is on this machine, what is missing, and how to get it."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Annotated

import typer

from microtir.cli.models import AsJson
from microtir.cli.output import NO_BREAK, write, write_json, write_table, write_text
from microtir.errors import ExitCode
from microtir.support.resources import install_extra

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from microtir.boards.errors import MissingToolError
    from microtir.projects import Readiness

# What is not installed with microtir itself, what it is for, and the extra that brings it.
_PACKAGES = (
    ("onnx", "models in ONNX", "onnx"),
    ("tflite-micro", "verify --oracle tflm", "test"),
    ("onnxruntime", "the oracle of models in ONNX", "test"),
    ("pyserial", "real boards", "serial"),
    ("ortools", "optimal placement of buffers", "solver"),
    ("starlette", "the page of `microtir studio`", "studio"),
    ("ethos-u-vela", "models for an Ethos-U, in tests", "vela"),
)


def doctor(
    board: Annotated[
        str | None,
        typer.Option("--board", metavar="BOARD", help="Shows each project type of this board."),
    ] = None,
    as_json: AsJson = False,
) -> ExitCode:
    """Checks this machine for compilers, emulators, frameworks and boards.

    The list also says how to install missing tools. Exit status 1 means that no project for the
    board of --board can be built on this machine.
    """
    from microtir.boards import all_boards, load_board
    from microtir.projects import readiness

    reports = [readiness(b) for b in ([load_board(board)] if board else all_boards())]
    if as_json:
        write_json(_facts(reports))
    elif board:
        _write_board(reports[0])
    else:
        _write_all(reports)
    return ExitCode.DONE if reports[0].built or not board else ExitCode.ANSWER_IS_NO


def _write_all(boards: Sequence[Readiness]) -> None:
    write(f"Python {sys.version.split()[0]}, {sys.executable}\n")
    write_table(
        ("package", "version", "what it is for"),
        [(name, _version(name) or _install(extra), why) for name, why, extra in _PACKAGES],
    )
    write("")
    write_table(("board", "builds here", "runs here", "missing"), [_row(r) for r in boards])
    _write_fixes(_by_fix(boards))
    ports = _ports()
    write("\nserial ports   " + (", ".join(ports) or "none"))


def _row(of: Readiness) -> tuple[str, ...]:
    lacking = [(kind.value, problems) for kind, problems in of.builds]
    lacking += [("emulator", of.emulator), ("flash", of.flasher)]
    return (
        of.board.name,
        ", ".join(kind.value for kind in of.built) or "nothing",
        _emulator(of),
        "; ".join(f"{what}: {_all(problems)}" for what, problems in lacking if problems),
    )


def _emulator(of: Readiness) -> str:
    emulator = of.board.emulator
    if emulator is None:
        return ""
    return "no" if of.emulator else emulator.kind.value


def _all(problems: Sequence[MissingToolError]) -> str:
    return ", ".join(map(_what, problems))


def _what(problem: MissingToolError) -> str:
    """Return what is missing, without where it was looked for."""
    return problem.what.removesuffix(" is not on this machine")


def _fix(problem: MissingToolError) -> str:
    """Return on one line how to get what is missing."""
    return " ".join(str(problem.fix or problem.what).split())


def _write_board(of: Readiness) -> None:
    lacking = [(kind.value, problems) for kind, problems in of.builds]
    if of.board.emulator:
        lacking.append((f"emulator {of.board.emulator.kind.value}", of.emulator))
    if of.board.flasher:
        lacking.append((f"flash by {of.board.flasher.command[0]}", of.flasher))
    write(f"{of.board.name}: {of.board.title}\n")
    rows = []
    for what, problems in lacking:
        states = [(f"missing: {_what(problem)}", _fix(problem)) for problem in problems]
        for number, (state, fix) in enumerate(states or [("ready", "")]):
            rows.append((what if number == 0 else "", state, fix))
    write_table(("what", "here", "how to get it"), rows)


def _by_fix(entries: Iterable[Readiness]) -> dict[str, list[str]]:
    """Return the boards that each command helps, by the command."""
    fixes: dict[str, list[str]] = {}
    for of in entries:
        for problem in of.problems:
            boards = fixes.setdefault(_fix(problem), [])
            if of.board.name not in boards:
                boards.append(of.board.name)
    return fixes


def _write_fixes(fixes: dict[str, list[str]]) -> None:
    if not fixes:
        write("\nNothing is missing.")
        return
    write("\nhow to install missing tools, and the boards that need them")
    for fix, boards in sorted(fixes.items(), key=lambda item: -len(item[1])):
        named = ", ".join(boards[:6]) + (f" and {len(boards) - 6} more" if len(boards) > 6 else "")
        _write_fix(fix)
        write_text(named, "      ", "      ")


def _write_fix(fix: str) -> None:
    """Write a fix; a chain of commands folds behind `&&` only, so that its lines can be pasted."""
    if "&&" in fix:
        parts = re.split(r"(?<=&&) |(?<=:) ", fix)
        fix = " ".join(part.replace(" ", NO_BREAK) for part in parts)
    write_text(fix, "  ", "  ")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _install(extra: str) -> str:
    return f"missing: {install_extra(extra)}"


def _ports() -> list[str]:
    """Return the serial ports of this machine, none without pyserial."""
    try:
        from serial.tools import list_ports
    except ImportError:
        return []
    return [f"{port.device} ({port.description})" for port in list_ports.comports()]


def _facts(boards: Sequence[Readiness]) -> dict[str, object]:
    return {
        "python": sys.version.split()[0],
        "packages": {name: _version(name) for name, _, _ in _PACKAGES},
        "serial_ports": _ports(),
        "boards": [
            {
                "name": of.board.name,
                "builds": {kind.value: _fact(problems) for kind, problems in of.builds},
                "emulator": None if of.board.emulator is None else _fact(of.emulator),
                "flash": None if of.board.flasher is None else _fact(of.flasher),
            }
            for of in boards
        ],
    }


def _fact(problems: Sequence[MissingToolError]) -> dict[str, object]:
    missing = [{"what": _what(problem), "fix": _fix(problem)} for problem in problems]
    return {"ready": not missing, "missing": missing}
