"""What GCC is told of a core: the macros that it defines then are those of the boards' flags."""

from __future__ import annotations

import subprocess

import pytest

from microtir.boards import all_boards
from microtir.config import Target
from microtir.instruction_sets import instruction_set

# Linux on a desktop is told nothing, and what a compiler may add by itself is the user's.
BOARDS = {
    board.name: board
    for board in all_boards()
    if board.toolchain.flags and board.target.family.value in ("arm", "avr", "riscv")
}
# What only counts for a C library or for the sizes of programs.
NEUTRAL = ("--specs", "-mcmodel", "-misa-spec")


def flags_of(target: Target) -> tuple[str, ...]:
    """Return what microtir says."""
    known = instruction_set(target.family)
    return known.compiler_flags(target.core, target.features, target.mabi)


def macros(compiler: str, flags: tuple[str, ...]) -> set[str]:
    """Return what the compiler defines by itself."""
    command = [compiler, *flags, "-dM", "-E", "-xc", "/dev/null"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines())


@pytest.mark.parametrize("name", BOARDS)
def test_flags_are_those_of_boards(name: str) -> None:
    """Boards state flags by hand, and those that follow from their target are no others."""
    board = BOARDS[name]
    neutral = tuple(flag for flag in board.toolchain.flags if flag.startswith(NEUTRAL))
    compiler = f"{board.toolchain.prefix}gcc"
    mine = macros(compiler, (*flags_of(board.target), *neutral))
    assert mine == macros(compiler, board.toolchain.flags)


@pytest.mark.parametrize(
    ("target", "flags"),
    [
        ("c", ""),
        ("c -mcpu=native", ""),
        ("c -mcpu=esp32", ""),
        ("c -mcpu=esp32c3", "-march=rv32imc -mabi=ilp32"),
        ("c -mcpu=cortex-m33+nodsp", "-mcpu=cortex-m33+nodsp -mthumb -mfloat-abi=hard"),
        ("c -mcpu=cortex-m55+nomve", "-mcpu=cortex-m55+nomve -mthumb -mfloat-abi=hard"),
        ("c -mcpu=cortex-m7+nofp", "-mcpu=cortex-m7+nofp -mthumb -mfloat-abi=soft"),
        ("c -march=armv7e-m+fp", "-march=armv7e-m+fp -mthumb -mfloat-abi=hard"),
        ("c -mcpu=cortex-a53", "-mcpu=cortex-a53"),
    ],
)
def test_flags(target: str, flags: str) -> None:
    """Suffixes of a target are those that GCC takes."""
    assert " ".join(flags_of(Target(target))) == flags
