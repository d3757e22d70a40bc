"""Asks compilers whether they are there, and what they say about a program."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from microtir.boards.board import Requirement, Toolchain
from microtir.boards.errors import MissingToolError
from microtir.support import processes

TIMEOUT = 60  # seconds; these tools answer at once


@dataclass(frozen=True, slots=True)
class Symbol:
    """A function or variable of a program.

    Args:
        kind: the letter of nm: t and T are code, r and R constants, d, D, b and B variables.
    """

    name: str
    kind: str
    address: int
    size: int  # bytes


def check_requirements(toolchain: Toolchain | None, more: Iterable[Requirement] = ()) -> None:
    """Refuse to go on without a tool.

    Args:
        toolchain: the compiler, unless something else finds one.
        more: programs besides.

    Raises:
        MissingToolError: names the program and the Debian package to install.
    """
    for problem in missing_requirements(toolchain, more):
        raise problem


def missing_requirements(
    toolchain: Toolchain | None, more: Iterable[Requirement] = ()
) -> Iterator[MissingToolError]:
    """Yield what `check_requirements` would refuse, one after the other."""
    for requirement in more:
        if requirement.program is not None:
            yield from missing_program(requirement.program, requirement.package)
    if toolchain is None:
        return
    for requirement in toolchain.requires:
        if requirement.program is not None:
            yield from missing_program(requirement.program, requirement.package, toolchain.note)
        elif requirement.file is not None and not _has_file(toolchain, requirement.file):
            yield MissingToolError(
                f"{toolchain.compiler} does not find {requirement.file}",
                where="toolchain",
                fix=install_text(requirement.package),
            )
    if all(requirement.program != toolchain.compiler for requirement in toolchain.requires):
        yield from missing_program(toolchain.compiler, None, toolchain.note)


def require_program(program: str, package: str | None, note: str | None = None) -> str:
    """Return the program's path; MissingToolError with what to install if it is not there."""
    for problem in missing_program(program, package, note):
        raise problem
    return str(shutil.which(program))


def missing_program(
    program: str, package: str | None, note: str | None = None
) -> Iterator[MissingToolError]:
    """Yield the error with what to install, if a program is not on the PATH."""
    if shutil.which(program) is None:
        yield MissingToolError(
            f"{program} is not on this machine",
            where="PATH",
            fix=install_text(package) if package else note,
        )


def install_text(package: str) -> str:
    """Return the command that installs a Debian package."""
    return f"sudo apt-get install {package}"


def compiler_version(toolchain: Toolchain) -> str:
    """Name and version of the compiler: the first line that it prints about itself."""
    return capture([toolchain.compiler, "--version"]).splitlines()[0]


def symbols(toolchain: Toolchain, program: Path) -> tuple[Symbol, ...]:
    """Return all symbols of a program that have a size, by address."""
    text = capture([f"{toolchain.prefix}nm", "-S", "--defined-only", str(program)])
    rows = re.findall(r"^([0-9a-f]+) ([0-9a-f]+) (\w) (\S+)$", text, re.MULTILINE)
    symbols = (Symbol(name, kind, int(at, 16), int(size, 16)) for at, size, kind, name in rows)
    return tuple(sorted(symbols, key=lambda symbol: (symbol.address, symbol.name)))


def capture(command: Sequence[str]) -> str:
    """Return what a tool of the compiler prints; MissingToolError if missing or failing."""
    output, problem = processes.answer(command, timeout=TIMEOUT)
    if problem:
        raise MissingToolError(
            f"{command[0]} does not work: {problem}",
            where="toolchain",
            fix=f"find out why `{' '.join(command)}` fails",
        )
    return output


def _has_file(toolchain: Toolchain, name: str) -> bool:
    """Return whether a compiler has a file: it prints its path, else the bare name."""
    if shutil.which(toolchain.compiler) is None:
        return False
    plain = [flag for flag in toolchain.flags if not flag.startswith("--specs")]
    answer = capture([toolchain.compiler, *plain, f"-print-file-name={name}"]).strip()
    return Path(answer).is_absolute()
