"""Measures flash: the constant arrays of a program to the byte, and an estimate of its code.

How much code a compiler makes is known only afterwards.  The estimate counts what there is to
print: the bytes of assembly (`measure.printed`), and for C the work that is written
(`measure.code`).  Optimisation for size takes less.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir.config import CompilationConfig
from microtir.instruction_sets import instruction_set
from microtir.measure.code import code_figures, is_compiled_alone, with_copies, written_in
from microtir.measure.constants import ConstantData
from microtir.measure.functions import Functions, has_intrinsics, native_values
from microtir.measure.printed import printed
from microtir.tir.analysis.long_products import copies_products
from microtir.tir.ir import Binary, FloatImm, If, IntImm, Load, PrimFunc, Store
from microtir.tir.visitor import walk

# Of nothing but conditions and answers, such as a tree of a random forest: a value is compared with
# a constant, and constants are stored.
_DECISIONS, _QUESTION, _QUESTION_OF_FLOATS, _ANSWER = 10, 12, 20, 4  # bytes
_IN_A_TREE = (If, Store, Binary, Load, IntImm, FloatImm)


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
    functions: Functions, arrays: tuple[ConstantData, ...], config: CompilationConfig
) -> FlashUse:
    """Return what a program takes.

    Args:
        functions: of the program.
        arrays: its constants.
        config: what it is compiled for.
    """
    target = config.primary_target()
    machine = instruction_set(target.family)
    figures = code_figures(machine.measured_like(target.features))
    size, kinds = 0.0, set[str]()
    for function in functions.distinct:
        if is_assembly(functions, function):
            size += assembly_bytes(functions, function)
        elif is_tree(function):
            size += _bytes_of_decisions(function)
        elif is_compiled_alone(functions, function):
            work = written_in(functions, function)
            work = with_copies(work) if copies_products(config) else work
            size += figures.of(work)
            kinds.update(work)
    code = round(size * machine.percent_of_code / 100) + figures.linked(kinds)
    return FlashUse(arrays, code, code * figures.least // 100, -(-code * figures.most // 100))


def is_assembly(functions: Functions, function: PrimFunc) -> bool:
    """Return whether a function is printed as assembly."""
    return function in functions.assembly and not has_intrinsics(function)


def assembly_bytes(functions: Functions, function: PrimFunc) -> int:
    """Return the bytes of assembly, which is that of Thumb."""
    return printed(functions.assembly[function], native_values(function)).bytes


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
