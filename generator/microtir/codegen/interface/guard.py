"""Prints what counts the elements of inputs that calibration did not see."""

from __future__ import annotations

from collections.abc import Iterator

from microtir.codegen.interface.parts import Draft, Part, Place
from microtir.codegen.printer.layout import block_comment, indent, struct_text
from microtir.codegen.program import CProgram
from microtir.codegen.unseen import guarded_ports
from microtir.dtype import DType
from microtir.module.ir_module import ModelInfo
from microtir.support.float_text import float32_text


def _struct(program: CProgram, model: ModelInfo) -> str:
    """Return the type of the counts."""
    rows = []
    for port, seen in guarded_ports(model):
        low, high = (_shown(value, port.type.dtype) for value in (seen.low, seen.high))
        rows.append((f"uint32_t {port.c_name};", f"/* not in {low} to {high} */"))
    comment = [
        "For each input, the number of elements of a run outside the calibrated range: clipped",
        "integers, which are at an end of their type, or floats that QUANTIZE clips.",
    ]
    return "\n".join([*block_comment(comment), struct_text(f"struct {program.name}_guard", rows)])


def _shown(value: float, dtype: DType) -> str:
    return float32_text(value) if dtype.is_float else str(value)


def guard_call(program: CProgram, condition: str = "") -> list[str]:
    """Return the statement that counts, where the caller has a place for it.

    Args:
        program: which has a guard, or has none: then nothing is returned.
        condition: what else must hold.
    """
    if program.guard is None or program.model is None:
        return []
    names = [port.c_name for port, _ in guarded_ports(program.model)]
    arguments = ", ".join(f"inputs->{name}, &guard->{name}" for name in names)
    asked = f"{condition} && guard != NULL" if condition else "guard != NULL"
    return [f"if ({asked}) {{", *indent([f"{program.names[program.guard]}({arguments});"]), "}"]


def parts(draft: Draft) -> Iterator[Part]:
    """Yield the type of the counts."""
    program, model = draft.program, draft.model
    yield Part(Place.STRUCTS, _struct(program, model))
