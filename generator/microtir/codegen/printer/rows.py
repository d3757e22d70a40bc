"""Prints the functions through which an application hands over inputs and outputs row by row.

Where they are, TIR has a layer function that copies rows between a parameter of main and a buffer.
In C that parameter is no tensor: the function calls one of the application for every row.
"""

from __future__ import annotations

import math

from microtir.codegen.printer.functions import FunctionText, joined, origin_lines, signature
from microtir.codegen.printer.layout import block_comment
from microtir.codegen.printer.names import ScopedNames
from microtir.codegen.printer.statements import parameter_text
from microtir.codegen.program import CProgram
from microtir.tir.function import RowPort
from microtir.tir.ir import Buffer, PrimFunc

STRUCT_COMMENT = (
    "Passes the rows of a tensor. A run calls `move` once for each row that it needs, with its",
    "number, in ascending order. For an input, `move` writes the row to `data`; for an output, it",
    "reads the row from `data`. `data` is in the workspace, is aligned for its elements, and is",
    "valid only during the call. `context` belongs to the application. The stack of `move` is not",
    "part of the stack bound of a run.",
)


def struct_name(program: CProgram) -> str:
    """Return the C type of a tensor that is handed over row by row."""
    return f"struct {program.name}_rows"


def is_row_port(function: PrimFunc) -> bool:
    """Return whether a layer function stands for calls of the application."""
    return function.row_port is not None


def row_port_text(program: CProgram, function: PrimFunc) -> FunctionText:
    """Return a function that calls the application for each of its rows [y0, y1)."""
    names = ScopedNames(program.file_names)
    is_input = function.row_port is RowPort.INPUT
    source, target, y0, y1 = function.params
    port, data = (source, target) if is_input else (target, source)
    assert isinstance(data, Buffer)
    tensor = names.define(port, "tensor")
    # `move` has one type for inputs and outputs, so data is not const for either.
    tensors = [
        f"const {struct_name(program)} *{tensor}",
        parameter_text(data, names.define(data, "data"), True),
    ]
    rows = [parameter_text(p, names.define(p), False) for p in (y0, y1)]
    parameters = [*(tensors if is_input else reversed(tensors)), *rows]
    row, first, last = names.reserve("row"), names.of(y0), names.of(y1)
    element = _element(data, names.of(data), row, function.rows[data].height)
    lines = [
        f"for (int32_t {row} = {first}; {row} < {last}; {row}++) {{",
        f"    {tensor}->move({tensor}->context, {row}, {element});",
        "}",
    ]
    head = f"{program.macro}_LAYER void {program.names[function]}"
    comment = "\n".join(block_comment(origin_lines(function)))
    return FunctionText(comment, "\n".join(signature(head, parameters)), joined(lines))


def _element(data: Buffer, name: str, row: str, height: int) -> str:
    """Return where a row begins: in its slot of the buffer."""
    slots, *inner = (extent for extent in data.shape if isinstance(extent, int))
    size = math.prod(inner)
    if slots == 1:
        return name
    slot = row if slots == height else f"{row} % {slots}"
    return f"&{name}[{slot} * {size}]" if size > 1 else f"&{name}[{slot}]"
