"""Prints what counts the elements of inputs that calibration did not see."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from microtir.codegen.interface.parts import Draft, Part, Place
from microtir.codegen.printer.c_types import C_TYPES, float_literal, integer_literal
from microtir.codegen.printer.expressions import Requirements
from microtir.codegen.printer.functions import FunctionText, c_function
from microtir.codegen.printer.layout import block_comment, indent, struct_text
from microtir.codegen.program import CProgram
from microtir.dtype import DType
from microtir.module.ir_module import ModelInfo, Port, SeenRange


def guarded_ports(model: ModelInfo) -> Iterator[tuple[Port, SeenRange]]:
    """Yield the inputs that are looked through, each with the values that are not counted."""
    for port in model.inputs:
        if port.seen is not None:
            yield port, port.seen


def _struct(program: CProgram, model: ModelInfo) -> str:
    """Return the type of the counts."""
    rows = []
    for port, seen in guarded_ports(model):
        low, high = (_shown(value, port.type.dtype) for value in (seen.low, seen.high))
        rows.append((f"uint32_t {port.c_name};", f"/* not in {low} to {high} */"))
    comment = [
        "How many elements of inputs a run found outside of the range that calibration saw: stored",
        "values at the ends of their type, which were clipped, or floats that QUANTIZE clips.",
    ]
    return "\n".join([*block_comment(comment), struct_text(f"struct {program.name}_guard", rows)])


def _shown(value: float, dtype: DType) -> str:
    return f"{np.float32(value)!s}" if dtype.is_float else str(value)


def guard_name(program: CProgram) -> str:
    """Return the name of the function that counts."""
    return f"{program.name}_count_unseen"


def entries(program: CProgram, _requirements: Requirements) -> list[FunctionText]:
    """Return the function that counts."""
    model = program.model
    assert model is not None
    head = f"static void {guard_name(program)}"
    parameters = [
        f"const struct {program.name}_inputs *inputs",
        f"struct {program.name}_guard *guard",
    ]
    lines: list[str] = []
    for port, seen in guarded_ports(model):
        c_type, condition = C_TYPES[port.type.dtype], _condition(seen, port.type.dtype)
        each = [
            f"const {c_type} value = inputs->{port.c_name}[i];",
            f"count += ({condition}) ? 1u : 0u;",
        ]
        lines += [
            "",
            "count = 0;" if lines else "uint32_t count = 0;",
            f"for (int32_t i = 0; i < {port.type.elements}; i++) {{",
            *indent(each),
            "}",
            f"guard->{port.c_name} = count;",
        ]
    return [c_function(head, parameters, lines[1:])]


def guard_call(program: CProgram, condition: str = "") -> list[str]:
    """Return the statement that counts, where the caller has a place for it.

    Args:
        program: which has a guard, or has none: then nothing is returned.
        condition: what else must hold.
    """
    if not program.has_guard:
        return []
    asked = f"{condition} && guard != NULL" if condition else "guard != NULL"
    return [f"if ({asked}) {{", *indent([f"{guard_name(program)}(inputs, guard);"]), "}"]


def _condition(seen: SeenRange, dtype: DType) -> str:
    """Return the condition that a value is counted."""
    if dtype.is_float:
        low, high = (float_literal(value, dtype) for value in (seen.low, seen.high))
        return f"!(value >= {low} && value <= {high})"  # true of a NaN
    sides = []
    # A comparison that a type can never meet warns.
    if seen.low > dtype.min:
        sides.append(f"value < {integer_literal(int(seen.low), dtype)}")
    if seen.high < dtype.max:
        sides.append(f"value > {integer_literal(int(seen.high), dtype)}")
    return " || ".join(sides)


def parts(draft: Draft) -> Iterator[Part]:
    """Yield the type of the counts."""
    program, model = draft.program, draft.model
    yield Part(Place.COUNTS, _struct(program, model))
