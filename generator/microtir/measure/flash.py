"""Measures flash: the constant arrays of a program to the byte, and an estimate of its code.

How much code a compiler makes is known only afterwards.  The estimate counts what there is to
print: the bytes of assembly as it is repeated, and for C the work that is written (`measure.code`).
Optimisation for size takes less.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from microtir.config import Target
from microtir.instruction_sets import instruction_set
from microtir.measure.code import code_figures, is_compiled_alone, written_in
from microtir.measure.constants import ConstantData
from microtir.measure.functions import Functions, has_intrinsics
from microtir.tir.ir import Binary, FloatImm, If, IntImm, Load, PrimFunc, Store
from microtir.tir.visitor import walk

# Of nothing but conditions and answers, such as a tree of a random forest: a value is compared with
# a constant, and constants are stored.
_DECISIONS, _QUESTION, _QUESTION_OF_FLOATS, _ANSWER = 10, 12, 20, 4  # bytes
_IN_A_TREE = (If, Store, Binary, Load, IntImm, FloatImm)
_BORROWED = "cortex-m4"  # whose figures stand for CPUs that were not measured
_UNMEASURED = 56, 141  # percent of the estimate that these took of earlier programs
_TEXT = re.compile(r'^\s*"(.*)\\n"')
_REPEAT = re.compile(r"\.rept\s+(\d+)")
_FOR_EACH = re.compile(r"\.irp\s+(\w+),(.*)")

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
    measured = machine.measured_like(target.features)
    figures = code_figures(measured or _BORROWED)
    size, kinds = 0.0, set[str]()
    for function in functions.distinct:
        template = functions.assembly.get(function)
        if template is not None and not has_intrinsics(function):
            size += assembly_bytes(target, listing(template, function))
        elif is_tree(function):
            size += _bytes_of_decisions(function)
        elif is_compiled_alone(functions, function):
            work = written_in(functions, function)
            size += figures.of(work)
            kinds.update(work)
    code = round(size * machine.percent_of_code / 100) + figures.linked(kinds)
    least, most = (figures.least, figures.most) if measured else _UNMEASURED
    return FlashUse(arrays, code, code * least // 100, -(-code * most // 100))


def is_tree(function: PrimFunc) -> bool:
    """Return whether a function is conditions and answers alone."""
    return isinstance(function.body, If) and all(isinstance(n, _IN_A_TREE) for n in walk(function))


def _bytes_of_decisions(function: PrimFunc) -> int:
    size = _DECISIONS
    for node in walk(function.body):
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


def assembly_bytes(target: Target, lines: Iterable[str]) -> int:
    """Return the bytes of assembly as it is printed, for a CPU."""
    return instruction_set(target.family).code_bytes(_instructions(lines))


def _instructions(lines: Iterable[str]) -> list[tuple[str, int]]:
    """Return the instructions of assembly, each with how often .rept and .irp repeat it."""
    printed: list[tuple[str, int]] = []
    times, names = [1], [("", "")]
    for line in lines:
        text = _TEXT.match(line)
        instruction = text[1].strip() if text else ""
        repeat, each = _REPEAT.match(instruction), _FOR_EACH.match(instruction)
        if repeat is not None:
            times.append(times[-1] * int(repeat[1]))
            names.append(("", ""))
        elif each is not None:
            values = [value.strip() for value in each[2].split(",")]
            times.append(times[-1] * len(values))
            names.append((rf"\\{each[1]}", values[0]))
        elif instruction.startswith(".endr"):
            times.pop()
            names.pop()
        elif instruction and not instruction.startswith(".") and not instruction.endswith(":"):
            for name, value in names:
                instruction = instruction.replace(name, value) if name else instruction
            printed.append((instruction, times[-1]))
    return printed
