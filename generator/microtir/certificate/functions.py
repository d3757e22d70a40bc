"""Collects what was proven of each C function: parameters, loops, accesses, sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from microtir.certificate.data import (
    AccessFacts,
    AccumulatorFacts,
    FunctionFacts,
    IndexFacts,
    LoopFacts,
    ParameterFacts,
)
from microtir.codegen import Metadata
from microtir.codegen.program import CProgram
from microtir.tir import ir
from microtir.tir.analysis.access import ProvenAccess, StatedIndex, preconditions, proof_of
from microtir.tir.visitor import Node, walk


def functions_of(program: CProgram, metadata: Metadata) -> Iterator[FunctionFacts]:
    """Yield the facts of every function but main, in the order of the C file."""
    known = preconditions(program.functions)
    sums = {
        layer.function: AccumulatorFacts(
            layer.accumulator.bits, layer.accumulator.low, layer.accumulator.high
        )
        for layer in metadata.layers
        if layer.accumulator is not None
    }
    for function in program.functions:
        if function is not program.entry:
            name = program.names[function]
            proof = proof_of(function, known.get(function, ()))
            yield FunctionFacts(
                name,
                tuple(map(_parameter, function.params)),
                tuple(LoopFacts(loop.var, loop.low, loop.stop) for loop in proof.loops),
                tuple(_accesses(proof.accesses, function.params, program)),
                tuple(_indices(proof.indices, program)),
                sums.get(name),
            )


def _parameter(parameter: ir.Param) -> ParameterFacts:
    if isinstance(parameter, ir.Var):
        return ParameterFacts(
            parameter.name, parameter.dtype.value, None, parameter.low, parameter.high
        )
    elements: int | None = 1
    for extent in parameter.shape:
        elements = elements * extent if elements is not None and isinstance(extent, int) else None
    return ParameterFacts(parameter.name, parameter.dtype.value, elements, None, None)


def _accesses(
    proven: Iterable[ProvenAccess], params: Sequence[ir.Param], program: CProgram
) -> Iterator[AccessFacts]:
    """Yield accesses of memory, those that reach the same elements as one; constants by C name."""
    arrays = [one for one in proven if one.buffer.shape or one.buffer in params]
    times = Counter(map(_reached, arrays))
    for one in {_reached(one): one for one in reversed(arrays)}.values():
        name = program.array_names.get(one.buffer, one.buffer.name)
        yield AccessFacts(name, one.kind, one.least, one.greatest, times[_reached(one)], one.facts)


def _indices(stated: Iterable[StatedIndex], program: CProgram) -> Iterator[IndexFacts]:
    """Yield indices that are needed, those of the same text as one; constants by C name."""
    arrays = [one for one in stated if one.buffer.shape and not _is_of_data(one)]
    needed = {one for one in arrays if one.is_needed}
    for one, times in Counter(arrays).items():
        if one in needed:
            name = program.array_names.get(one.buffer, one.buffer.name)
            yield IndexFacts(name, one.kind, one.index, one.within, times)


def _is_of_data(one: StatedIndex) -> bool:
    return any("[" in text.replace(" in [", "") for text in (one.index, *one.within))


def _reached(access: ProvenAccess) -> tuple[object, ...]:
    return access.buffer, access.kind, access.least, access.greatest


def trusted_arithmetic(program: CProgram) -> tuple[str, ...]:
    """Return the functions whose integers are in range for a reason that intervals do not see.

    These iterate towards a reciprocal, or keep words as bytes, or they divide floats by what is not
    constant, as a softmax by its sum, and make integers of floats.
    """
    return tuple(
        program.names[function]
        for function in program.functions
        if any(_is_reciprocal(node) or _is_word_of_bytes(node) for node in walk(function))
        or (any(map(_is_quotient, walk(function))) and any(map(_is_truncated, walk(function))))
    )


def _is_reciprocal(node: Node) -> bool:
    return isinstance(node, ir.Call) and node.intrinsic is ir.Intrinsic.COUNT_LEADING_ZEROS


def _is_word_of_bytes(node: Node) -> bool:
    """Return whether the upper byte of a word is stored, or a word is made of bytes."""
    match node:
        case ir.Cast(ir.DType.INT8, ir.Binary(ir.BinaryOp.SHIFT_RIGHT, _, ir.IntImm(24))):
            return True
        case ir.Binary(ir.BinaryOp.SHIFT_LEFT, ir.Cast(_, ir.Load()), ir.IntImm(24)):
            return True
        case _:
            return False


def _is_quotient(node: Node) -> bool:
    return (
        isinstance(node, ir.Binary)
        and node.op is ir.BinaryOp.DIV
        and not isinstance(node.b, ir.FloatImm)
    )


def _is_truncated(node: Node) -> bool:
    return isinstance(node, ir.Cast) and node.value.dtype.is_float and not node.dtype.is_float
