"""Collects the facts about buffers of the workspace and ports of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microtir.graph.ir import TensorType
from microtir.module.ir_module import ModelInfo, PortKind
from microtir.report import data
from microtir.report.calls import LayerCalls
from microtir.report.data import BufferKind
from microtir.tir.ir import Buffer, PrimFunc
from microtir.tir.memory_plan import BufferPlacement, KeptBytes

_PORTS = {PortKind.INPUT: BufferKind.INPUT, PortKind.OUTPUT: BufferKind.OUTPUT}


def shape_text(shape: Sequence[int]) -> str:
    """Return a shape as 1x49x10x1."""
    return "x".join(map(str, shape)) or "scalar"


def type_text(type_: TensorType) -> str:
    """Return a tensor's type as `1x49x10x1 int8`."""
    return f"{shape_text(type_.shape)} {type_.dtype.value}"


def make_pools(model: ModelInfo, calls: LayerCalls) -> tuple[data.ReportedPool, ...]:
    """Return the memories of the workspace with what is placed in them."""
    return tuple(_pool(number, model, calls) for number in range(len(model.memory.pools)))


def _pool(number: int, model: ModelInfo, calls: LayerCalls) -> data.ReportedPool:
    pool = model.memory.pools[number]
    uses = calls.arguments()
    single_steps = frozenset(s.first for s in calls.streams if s.first == s.last)
    ports = {port.name: port for port in model.ports}
    return data.ReportedPool(
        name=pool.name,
        size=pool.size,
        lower_bound=pool.lower_bound,
        alignment=pool.alignment,
        is_verified=model.memory.verified,
        peak_step=pool.peak_step,
        buffers=tuple(
            _buffer(
                p,
                _PORTS[ports[p.name].kind] if p.name in ports else kind_of(uses[p.name]),
                calls,
                single_steps,
            )
            for p in model.memory.placements
            if p.pool == number
        ),
    )


def _buffer(
    placement: BufferPlacement, kind: BufferKind, calls: LayerCalls, single_steps: frozenset[int]
) -> data.ReportedBuffer:
    name = placement.name
    written = calls.touching(name, writes_only=True)
    return data.ReportedBuffer(
        name=name,
        kind=kind,
        content=_content(name, kind, calls),
        offset=placement.offset,
        size=placement.size,
        first_step=placement.first_step,
        last_step=placement.last_step,
        written=min(written, default=placement.first_step),
        used=max(calls.touching(name), default=placement.last_step),
        spans=spans(placement, single_steps),
        at_peak=placement.at_peak,
    )


def spans(placement: BufferPlacement, single_steps: frozenset[int]) -> tuple[data.LiveSpan, ...]:
    """Return the steps at which a buffer keeps something, those of equal bytes together.

    Args:
        placement: of the buffer.
        single_steps: the steps that are a nest of their own. Of one that shares its nest the calls
            alternate with those of others, so that only the extent over all of them means much.
    """
    result: list[data.LiveSpan] = []
    for part in placement.kept_bytes:
        span = _span(placement.offset, part, part.step in single_steps)
        before = result[-1] if result else span
        is_next = before.is_steady and span.is_steady and before.last + 1 == span.first
        if is_next and before.begin == span.begin:
            result[-1] = replace(before, last=span.last)
        else:
            result.append(span)
    return tuple(result)


def _span(offset: int, part: KeptBytes, is_alone: bool) -> data.LiveSpan:
    extent = part.low, part.high
    (low, high), (first, stop) = (part.first, part.last) if is_alone else (extent, extent)
    return data.LiveSpan(
        part.step,
        part.step,
        offset + part.low,
        offset + part.high,
        (offset + low, offset + high),
        (offset + first, offset + stop),
    )


def kind_of(uses: Sequence[tuple[PrimFunc, Buffer]]) -> BufferKind:
    """Return the kind of a buffer by what the functions that get it take it for."""
    if all(param is function.scratch for function, param in uses):
        return BufferKind.SCRATCH
    for function, param in uses:
        rows = function.rows.get(param)
        slots = param.shape[0] if param.shape else 1
        if rows is not None and isinstance(slots, int) and slots < rows.height:
            return BufferKind.RING
        if function.origin is not None and function.origin.is_partial and rows is None:
            return BufferKind.SUMS
    return BufferKind.ACTIVATION


def _content(name: str, kind: BufferKind, calls: LayerCalls) -> str:
    graph = calls.plan.graph
    ports = {tensor.name: tensor for tensor in (*graph.inputs, *graph.outputs)}
    tensor = calls.tensors().get(name) or ports.get(name)
    if tensor is None:
        function, _ = calls.arguments()[name][0]
        return f"{kind.value} of {function.origin.node}" if function.origin else ""
    # Fusion leaves all the names that went into a tensor, the first of which says enough.
    text = f"{tensor.name.partition(';')[0]} {type_text(tensor.type)}"
    slots = calls.plan.layouts[tensor].rows
    rows = tensor.type.rows
    return text if slots == rows else f"{text}, {slots} of {rows} rows"


def make_ports(
    model: ModelInfo, calls: LayerCalls, placed: frozenset[str]
) -> tuple[data.ReportedPort, ...]:
    """Return inputs and outputs, in the caller's memory unless they are placed.

    A step of a nest uses them from the first row of the nest to the last.
    """
    last = len(calls.invokes) - 1
    ports = []
    for port in model.ports:
        touched = calls.touching(port.name)
        for stream in calls.streams:
            if any(stream.first <= step <= stream.last for step in touched):
                touched += [stream.first, stream.last]
        is_input = port.kind is PortKind.INPUT
        ports.append(
            data.ReportedPort(
                name=port.name,
                kind=_PORTS[port.kind],
                type=type_text(port.type),
                bytes=port.type.bytes,
                first_step=0 if is_input else min(touched, default=last),
                last_step=max(touched, default=0) if is_input else last,
                is_in_workspace=port.name in placed,
                is_by_rows=port.row_bytes is not None,
            )
        )
    return tuple(ports)
