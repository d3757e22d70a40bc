"""Measures flash: the constant arrays of a program to the byte, and an estimate of its code.

How much code a compiler makes is known only afterwards.  The estimate counts what there is to
print: instructions of assembly as they are repeated, and for C the functions, stores, loops and
branches.  Its weights come from 26 programs that GCC compiled with -O2 for Cortex-M and RISC-V;
of 57 others it was within a quarter of 46.  Optimisation for size takes less, an AVR much more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from microtir.config import Target
from microtir.instruction_sets import instruction_set
from microtir.measure.constants import ConstantData
from microtir.measure.functions import Functions, has_intrinsics
from microtir.tir.ir import Binary, FloatImm, For, If, IntImm, Load, PrimFunc, Select, Store
from microtir.tir.visitor import walk

_FUNCTION, _LOOP, _BRANCH, _STORE = 120, 50, 60, 8  # bytes
# Of nothing but conditions and answers, such as a tree of a random forest: a value is compared with
# a constant, and constants are stored.
_DECISIONS, _QUESTION, _QUESTION_OF_FLOATS, _ANSWER = 10, 12, 20, 4  # bytes
_IN_A_TREE = (If, Store, Binary, Load, IntImm, FloatImm)
_BYTES_OF_FIVE = 16  # instructions of Thumb-2
_TEXT = re.compile(r'^\s*"(.*)\\n"')
_REPEAT = re.compile(r"\.rept\s+(\d+)")
_FOR_EACH = re.compile(r"\.irp\s+\w+,(.*)")

Listing = Callable[[str, PrimFunc], Iterable[str]]
"""Gives the lines of a micro-kernel's assembly as they are printed, by its template."""


@dataclass(frozen=True, slots=True)
class FlashUse:
    """Bytes of flash: the arrays exactly, `code` estimated, in truth from `least` to `most`."""

    arrays: tuple[ConstantData, ...]
    code: int
    least: int
    most: int

    @property
    def bytes(self) -> int:
        return self.code + sum(array.bytes for array in self.arrays)

    def with_code(self, compiled: int | None) -> FlashUse:
        """Return the same with the code that a compiler made, where one was asked."""
        if compiled is None:
            return self
        return FlashUse(self.arrays, compiled, compiled, compiled)


def flash_of(
    functions: Functions, arrays: tuple[ConstantData, ...], target: Target, listing: Listing
) -> FlashUse:
    """Return what a program takes.

    Args:
        functions: of the program.
        arrays: its constants.
        target: what it is compiled for.
        listing: of assembly.
    """
    machine = instruction_set(target.family)
    code = sum(_function_bytes(functions, f, listing) for f in functions.distinct)
    code = code * machine.percent_of_code // 100
    least, most = machine.measured_code(target.core)
    return FlashUse(arrays, code, code * least // 100, -(-code * most // 100))


def _function_bytes(functions: Functions, function: PrimFunc, listing: Listing) -> int:
    template = functions.assembly.get(function)
    if template is not None and not has_intrinsics(function):
        return -(-_BYTES_OF_FIVE * _instructions(listing(template, function)) // 5)
    if isinstance(function.body, If) and all(isinstance(n, _IN_A_TREE) for n in walk(function)):
        return _bytes_of_decisions(function.body)
    size = _FUNCTION
    for node in walk(function):
        match node:
            case Store():
                size += _STORE
            case For():
                size += _LOOP
            case If() | Select():
                size += _BRANCH
            case _:
                pass
    return size


def _bytes_of_decisions(body: If) -> int:
    size = _DECISIONS
    for node in walk(body):
        match node:
            case Store():
                size += _ANSWER
            case If():
                loads = (part for part in walk(node.condition) if isinstance(part, Load))
                is_float = any(part.dtype.is_float for part in loads)
                size += _QUESTION_OF_FLOATS if is_float else _QUESTION
            case _:
                pass
    return size


def _instructions(lines: Iterable[str]) -> int:
    """Count the instructions of assembly, with what .rept and .irp repeat."""
    counts, repeats = [0], [1]
    for line in lines:
        text = _TEXT.match(line)
        instruction = text[1].strip() if text else ""
        repeat, each = _REPEAT.match(instruction), _FOR_EACH.match(instruction)
        if repeat is not None or each is not None:
            counts.append(0)
            repeats.append(int(repeat[1]) if repeat else each[1].count(",") + 1 if each else 1)
        elif instruction.startswith(".endr"):
            inside = counts.pop() * repeats.pop()
            counts[-1] += inside
        elif instruction and not instruction.startswith(".") and not instruction.endswith(":"):
            counts[-1] += 1
    return counts[0]
