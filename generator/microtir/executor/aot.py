"""The ahead-of-time executor: `main` as a PrimFunc that invokes the layer functions in order."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from microtir.graph.ir import Tensor
from microtir.plan.ir import Kernel, Plan, PlannedOperator
from microtir.tir.ir import (
    Allocate,
    Buffer,
    BufferView,
    Expr,
    IntImm,
    Invoke,
    PrimFunc,
    Scope,
    Seq,
    Stmt,
)


def main(plan: Plan, functions: Mapping[PlannedOperator, PrimFunc], name: str) -> PrimFunc:
    """Return main: model inputs, then outputs as parameters, activations as WORKSPACE buffers.

    Args:
        plan: the plan; each of its operators that is not a view has a function.
        functions: the PrimFunc of each planned operator, in the calling convention of
            `lowering.emit`: inputs that are not constant, outputs, then the row range if any.
        name: of the entry function.

    Raises:
        KeyError: an operator that needs a function has none.
    """
    buffers = _buffers(plan)
    calls: list[Stmt] = [
        _invoke(plan, operator, functions[operator], buffers)
        for operator in plan.operators
        if operator.candidate.kernel is not Kernel.VIEW
    ]
    workspace = [b for b in buffers.values() if b.scope is Scope.WORKSPACE]
    body = reduce(lambda inner, b: Allocate(b, inner), reversed(workspace), _seq(calls))
    ports = (*plan.graph.inputs, *plan.graph.outputs)
    return PrimFunc(name, tuple(buffers[t] for t in ports), body, exported=True)


def _seq(statements: list[Stmt]) -> Stmt:
    return Seq(tuple(statements))


def _buffers(plan: Plan) -> dict[Tensor, Buffer]:
    """One buffer per storage, ports first, then in order of production."""
    graph = plan.graph
    ports = dict.fromkeys((*graph.inputs, *graph.outputs))
    produced = (plan.storage[t] for node in graph.nodes for t in node.outputs)
    buffers: dict[Tensor, Buffer] = {}
    for number, tensor in enumerate(dict.fromkeys((*ports, *produced))):
        if tensor in ports:
            buffers[tensor] = Buffer(tensor.name, tensor.shape, tensor.dtype)
        else:
            elements = plan.layouts[tensor].bytes(tensor.type) // tensor.dtype.bytes
            label = f"activation_{number - len(ports)}"
            buffers[tensor] = Buffer(label, (elements,), tensor.dtype, Scope.WORKSPACE)
    return buffers


def _invoke(
    plan: Plan, operator: PlannedOperator, function: PrimFunc, buffers: Mapping[Tensor, Buffer]
) -> Invoke:
    node = operator.node
    tensors = [t for t in dict.fromkeys(node.inputs) if not t.is_constant]
    views = [_view(plan, t, buffers) for t in (*tensors, *node.outputs)]
    shaped = [
        BufferView(view.buffer, _constant_shape(param), view.dtype)
        for view, param in zip(views, function.params, strict=False)
        if isinstance(param, Buffer)
    ]
    rows: tuple[Expr, ...] = ()
    if operator.candidate.takes_row_range:
        rows = (IntImm(0), IntImm(node.outputs[0].type.rows))
    return Invoke(function.name, (*shaped, *rows))


def _view(plan: Plan, tensor: Tensor, buffers: Mapping[Tensor, Buffer]) -> BufferView:
    return BufferView(buffers[plan.storage[tensor]], tensor.shape, tensor.dtype)


def _constant_shape(param: Buffer) -> tuple[int, ...]:
    """Shape of a layer's parameter; layers of a model have constant shapes only."""
    return tuple(extent for extent in param.shape if isinstance(extent, int))
