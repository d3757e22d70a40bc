"""Collects what was proven of each C function: parameters, loops, accesses, sums."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from microtir.certificate.data import (
    AccessFacts,
    AccumulatorFacts,
    FunctionFacts,
    LoopFacts,
    ParameterFacts,
)
from microtir.codegen import Metadata
from microtir.codegen.program import CProgram
from microtir.tir import ir
from microtir.tir.analysis.access import ProvenAccess, preconditions, proof_of
from microtir.tir.visitor import walk


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
                tuple(_accesses(proof.accesses, program)),
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


def _accesses(proven: Iterable[ProvenAccess], program: CProgram) -> Iterator[AccessFacts]:
    """Yield accesses of arrays, those that reach the same elements as one; constants by C name."""
    arrays = [one for one in proven if one.buffer.shape]
    times = Counter(map(_reached, arrays))
    for one in {_reached(one): one for one in reversed(arrays)}.values():
        name = program.array_names.get(one.buffer, one.buffer.name)
        yield AccessFacts(name, one.kind, one.least, one.greatest, times[_reached(one)], one.facts)


def _reached(access: ProvenAccess) -> tuple[object, ...]:
    return access.buffer, access.kind, access.least, access.greatest


def trusted_arithmetic(program: CProgram) -> tuple[str, ...]:
    """Return the functions that iterate towards a reciprocal: intervals do not bound its steps."""
    return tuple(
        program.names[function]
        for function in program.functions
        if any(
            isinstance(node, ir.Call) and node.intrinsic is ir.Intrinsic.COUNT_LEADING_ZEROS
            for node in walk(function)
        )
    )
