"""Reads machine code of a program as instructions, from what objdump prints."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from microtir.boards.board import Toolchain
from microtir.boards.toolchain import capture
from microtir.config import Target
from microtir.instruction_sets import instruction_set

_FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\t(\S+)(.*)$")
# What objdump adds to the operands: a comment, or the name of an address.
_REMARK = re.compile(r"\s*(?:[@;<]| # )")
_TARGET = re.compile(r"<([^>+]+)(\+0x[0-9a-f]+)?>")


@dataclass(frozen=True, slots=True)
class Instruction:
    """An instruction of a program, with its address and the function that it is in.

    Args:
        operands: as printed, without comments.
        function: whose code it is in.
        target: function whose first instruction the operand names, as a call or a jump does.
    """

    address: int
    mnemonic: str
    operands: str
    function: str
    target: str | None


def disassemble(
    toolchain: Toolchain, program: Path, target: Target, *options: str
) -> Mapping[int, Instruction]:
    """Return all instructions of a program, by address and in its order.

    Raises:
        MissingToolError: the toolchain has no objdump.
    """
    more = (*instruction_set(target.family).objdump_options(target.march), *options)
    text = capture([f"{toolchain.prefix}objdump", "-d", "--no-show-raw-insn", *more, str(program)])
    return parse(text)


def parse(text: str) -> dict[int, Instruction]:
    """Parse the instructions in a text of `objdump -d --no-show-raw-insn`, without data."""
    instructions: dict[int, Instruction] = {}
    function = ""
    for line in text.splitlines():
        heading = _FUNCTION.match(line)
        if heading:
            function = heading[2]
            continue
        match = _INSTRUCTION.match(line)
        if match is None or match[2].startswith("."):
            continue
        names = _TARGET.search(match[3])
        target = names[1] if names and not names[2] else None
        operands = _REMARK.split(match[3].strip(), maxsplit=1)[0]
        instructions[int(match[1], 16)] = Instruction(
            int(match[1], 16), match[2], operands, function, target
        )
    return instructions
