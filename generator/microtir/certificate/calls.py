"""Lists the calls of main in the order of its text, with the buffers that each reads and writes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from microtir.certificate.data import ArgumentFacts, CallFacts
from microtir.codegen.program import CProgram
from microtir.module.ir_module import ModelInfo
from microtir.tir import ir
from microtir.tir.printer import expr_text
from microtir.tir.visitor import buffers_read, children


def members_of(model: ModelInfo) -> dict[str, str]:
    """Return the C names of inputs, outputs and states by their names in the model."""
    ports = {port.name: port.c_name for port in model.ports}
    return ports | {state.name: state.c_name for state in model.states}


def calls_in(
    node: object, program: CProgram, members: Mapping[str, str], loops: tuple[str, ...] = ()
) -> Iterator[CallFacts]:
    """Yield the calls of a statement of main, outer loops first.

    Args:
        node: a statement of main before placement, when buffers have names.
        program: the functions that are called, and their C names.
        members: C names of inputs and outputs.
        loops: those around the statement.
    """
    if isinstance(node, ir.Invoke):
        callee = program.callee(node.function)
        arguments = tuple(
            _argument(parameter, value, callee, program, members)
            for parameter, value in zip(callee.params, node.args, strict=True)
        )
        yield CallFacts(program.names[callee], loops, arguments)
        return
    if isinstance(node, ir.For):
        text = f"{node.var.name} in [{expr_text(node.start)}, {expr_text(node.stop)})"
        loops = (*loops, text)
    for child in children(node):  # type: ignore[arg-type]  # parts of a statement are nodes
        yield from calls_in(child, program, members, loops)


def _argument(
    parameter: ir.Param,
    value: ir.BufferView | ir.Expr,
    callee: ir.PrimFunc,
    program: CProgram,
    members: Mapping[str, str],
) -> ArgumentFacts:
    if not isinstance(value, ir.BufferView):
        return ArgumentFacts(parameter.name, None, 0, False, False, expr_text(value))
    writes = parameter in program.written[callee]
    reads = parameter in buffers_read(callee) or not writes
    name = members.get(value.buffer.name, value.buffer.name)
    return ArgumentFacts(parameter.name, name, value.byte_offset, reads, writes, None)
