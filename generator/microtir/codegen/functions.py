"""A function of the generated file: comment, signature and body, as finished lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microtir.codegen.expressions import Requirements
from microtir.codegen.layout import WIDTH, block_comment, indent, wrap
from microtir.codegen.names import ScopedNames
from microtir.codegen.program import Program
from microtir.codegen.statements import StatementPrinter, parameter_text
from microtir.tir.ir import Origin, PrimFunc


@dataclass(frozen=True, slots=True)
class FunctionText:
    """What the template prints: `signature` without the brace that opens the body."""

    comment: str
    signature: str
    body: str


def function_text(program: Program, function: PrimFunc, requirements: Requirements) -> FunctionText:
    """Print the body of a function as a static C function."""
    names = ScopedNames(program.file_names)
    for parameter in function.params:
        names.define(parameter)
    printer = StatementPrinter(program, function, names, requirements)
    body = printer.lines(function.body)
    unused = [f"(void){names.of(p)};" for p in function.params if not names.is_used(p)]
    storage = f"{program.macro}_LAYER" if function in program.layers else "static"
    written = program.written[function]
    parameters = [parameter_text(p, names.of(p), p in written) for p in function.params]
    return FunctionText(
        "\n".join(block_comment(origin_lines(function))),
        "\n".join(signature(f"{storage} void {program.names[function]}", parameters)),
        joined([*unused, *body]),
    )


def joined(lines: Sequence[str]) -> str:
    """Lines of a body, indented once and broken where they are too wide."""
    return "\n".join(part for line in indent(lines) for part in wrap(line))


def signature(head: str, parameters: Sequence[str]) -> list[str]:
    """`head(parameters)`; parameters that do not fit the line get lines of their own."""
    line = f"{head}({', '.join(parameters) or 'void'})"
    if len(line) < WIDTH:
        return [line]
    lines, current = [], " " * 8
    for number, parameter in enumerate(parameters):
        text = parameter + ("," if number < len(parameters) - 1 else ")")
        if current.strip() and len(current) + len(text) + 1 > WIDTH:
            lines.append(current.rstrip())
            current = " " * 8
        current += f"{text} "
    return [f"{head}(", *lines, current.rstrip()]


def origin_lines(function: PrimFunc) -> list[str]:
    """What a function's comment says: the operator of the model file that it computes."""
    origin = function.origin
    if origin is None:
        return [f"TIR function '{function.name}'"]
    return [title(origin), *(f"  {fact}" for fact in origin.facts), *_macs(origin)]


def title(origin: Origin) -> str:
    """One line that names the operator in the model file."""
    return f"{origin.operator} '{origin.node}', operator {origin.index} of the model"


def _macs(origin: Origin) -> list[str]:
    return [f"  {origin.macs:,} multiply-accumulates"] if origin.macs else []
