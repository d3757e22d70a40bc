"""Collects the facts about layers and constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from microtir.operators.block_dense.definition import rounds_rows
from microtir.plan.decisions import Alternative, Decision
from microtir.plan.ir import PlannedOperator
from microtir.report import data
from microtir.report.buffers import shape_text
from microtir.report.calls import LayerCalls
from microtir.report.own_loops import own_loops
from microtir.tir.function import Origin
from microtir.tir.ir import Buffer, KernelCall, PrimFunc, Scope
from microtir.tir.visitor import buffers_read, walk


def make_layers(
    calls: LayerCalls, decided: Mapping[str, Decision]
) -> tuple[data.ReportedLayer, ...]:
    """Return every operator of the plan in order; `decided` says why, by function name."""
    streamed = [op for group in calls.plan.groups if group.nest for op in group.operators]
    loops = own_loops(calls.plan)
    return tuple(
        replace(_layer(op, calls, decided, op in streamed), own_loop=loops.get(op.node, ""))
        for op in calls.plan.operators
    )


def _layer(
    op: PlannedOperator, calls: LayerCalls, decided: Mapping[str, Decision], is_streamed: bool
) -> data.ReportedLayer:
    functions = calls.functions.get(op, ())
    decision = decided.get(functions[0].name) if functions else None
    origin = (functions[0].origin if functions else None) or Origin("", op.node.name, index=-1)
    return data.ReportedLayer(
        number=calls.numbers[op],
        name=op.node.name,
        operator=op.node.source.operator,
        kernel=op.candidate.kernel,
        inputs=tuple(shape_text(t.shape) for t in op.node.activations),
        outputs=tuple(shape_text(t.shape) for t in op.node.outputs),
        macs=origin.macs,
        macs_executed=origin.macs_executed,
        macs_recomputed=origin.macs_recomputed,
        weight_bytes=sum(_distinct(c for f in functions for c in _constants(f)).values()),
        bytes_in=sum(t.type.bytes for t in op.node.activations) if functions else 0,
        bytes_out=sum(t.type.bytes for t in op.node.outputs) if functions else 0,
        is_streamed=is_streamed,
        has_code=bool(functions),
        rounds_rows=rounds_rows(op.node),
        choice=_kernel(decision) if decision else None,
        alternatives=tuple(map(_kernel, decision.alternatives)) if decision else (),
    )


def _kernel(candidate: Decision | Alternative) -> data.ReportedKernel:
    return data.ReportedKernel(
        candidate.kernel, candidate.reason, candidate.instructions, candidate.cycles
    )


def make_constants(calls: LayerCalls) -> tuple[data.ReportedConstant, ...]:
    """Return every constant array once, with the layers that read it, the largest first."""
    sizes: dict[tuple[str, bytes], int] = {}
    names: dict[tuple[str, bytes], str] = {}
    users: dict[tuple[str, bytes], list[str]] = {}
    for op, functions in calls.functions.items():
        for function in functions:
            for constant in _constants(function):
                key = _key(constant)
                sizes.update(_distinct(iter([constant])))
                names.setdefault(key, constant.name)
                readers = users.setdefault(key, [])
                if calls.numbers[op] not in readers:
                    readers.append(calls.numbers[op])
    constants = [data.ReportedConstant(names[k], ", ".join(users[k]), sizes[k]) for k in sizes]
    return tuple(sorted(constants, key=lambda constant: -constant.bytes))


def _constants(function: PrimFunc) -> Iterator[Buffer]:
    """Yield the constants that a function reads, with those inside its micro-kernels."""
    yield from (b for b in buffers_read(function) if b.scope is Scope.CONSTANT)
    for node in walk(function):
        if isinstance(node, KernelCall):
            yield from _constants(node.meaning)


def _key(constant: Buffer) -> tuple[str, bytes]:
    """Return a key that is equal for constants of which the C has one."""
    assert constant.data is not None
    data_ = constant.data.astype(constant.dtype.value, copy=False)
    return constant.dtype.value, data_.tobytes()


def _distinct(constants: Iterator[Buffer]) -> dict[tuple[str, bytes], int]:
    """Return bytes of each constant, equal ones once."""
    keys = [_key(constant) for constant in constants]
    return {key: len(key[1]) for key in keys}
