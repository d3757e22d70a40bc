"""The ahead-of-time executor: `main` as a PrimFunc that invokes the layer functions in order.

A group with a nest becomes a nest of loops (`executor.nest`), and what the graph repeats or makes
conditional becomes loops and branches (`executor.blocks`); what follows reads loops and calls and
knows nothing of streaming.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from microtir.executor.blocks import Blocks
from microtir.executor.nest import loops
from microtir.executor.versions import check_versions
from microtir.graph.ir import Graph, Node, Tensor
from microtir.operators.control.definition import Control
from microtir.operators.streaming.definition import WriteRows
from microtir.plan.ir import Group, Plan, PlannedOperator
from microtir.tir import build, ir


def main(
    plan: Plan,
    functions: Mapping[PlannedOperator, Sequence[ir.PrimFunc]],
    name: str,
) -> ir.PrimFunc:
    """Return main with the tensors of the caller as parameters, activations as WORKSPACE buffers.

    Parameters are the model's inputs, its outputs, what states hold before a run, and after it.

    Args:
        plan: the plan; each of its operators that is not a view has a function.
        functions: of each planned operator, in the calling convention of `kernels.emit`: inputs
            that are not constant, outputs, then the row range if any; and behind it that of
            `kernels.emit_finish` if the operator accumulates.
        name: of the entry function.

    Raises:
        KeyError: an operator that needs a function has none.
        MemoryPlanError: an operator reads a state or a value of a loop that is overwritten.
    """
    check_versions(plan)
    buffers = _buffers(plan, _alignments(plan, functions))
    accumulators = {op: _accumulator(f[1]) for op, f in functions.items() if len(f) > 1}
    calls = _Calls(plan, functions, buffers, accumulators)
    body = _structured(plan, calls)
    workspace = [b for b in buffers.values() if b.scope is ir.Scope.WORKSPACE]
    for buffer in reversed((*workspace, *accumulators.values())):
        body = ir.Allocate(buffer, body)
    parameters = tuple(buffers[t] for t in ports_of(plan.graph))
    return ir.PrimFunc(name, parameters, body, exported=True, images=plan.graph.images)


def ports_of(graph: Graph) -> tuple[Tensor, ...]:
    """Return the tensors that main has parameters for, in their order."""
    states = (*(s.before for s in graph.states), *(s.after for s in graph.states))
    return (*graph.arguments, *graph.results, *states)


def _structured(plan: Plan, calls: _Calls) -> ir.Stmt:
    """Return the calls of all groups in the loops and branches that the graph has."""
    blocks = Blocks()
    for group in plan.groups:
        node = group.operators[0].node
        if isinstance(node.op, Control):
            blocks.control(node, calls.flag)
        else:
            blocks.add(calls.of_group(group))
    return blocks.body()


def _accumulator(finish: ir.PrimFunc) -> ir.Buffer:
    """Return the workspace buffer that a finishing function takes as its first parameter."""
    param = finish.params[0]
    assert isinstance(param, ir.Buffer)
    return replace(param, name=f"{finish.name}_sums", scope=ir.Scope.WORKSPACE)


def _alignments(
    plan: Plan, functions: Mapping[PlannedOperator, Sequence[ir.PrimFunc]]
) -> Mapping[Tensor, int]:
    """Return what functions ask of the places of their tensors, in bytes, by storage."""
    needs: dict[Tensor, int] = {}
    for operator, (function, *_) in functions.items():
        tensors = (*operator.inputs, *operator.node.outputs)
        for tensor, param in zip(tensors, function.params, strict=False):
            if isinstance(param, ir.Buffer):
                storage = plan.storage[tensor]
                needs[storage] = max(needs.get(storage, 1), param.alignment)
    return needs


def _buffers(plan: Plan, needs: Mapping[Tensor, int]) -> dict[Tensor, ir.Buffer]:
    """Return one buffer per storage: ports first, then in order of production.

    They have the number of the operator that fills them first, as its function has: that of the
    model file. What stands beside another of the same number is told apart behind it.
    """
    graph = plan.graph
    ports = dict.fromkeys(ports_of(graph))
    producers: dict[Tensor, Node] = {}
    for node in graph.nodes:
        for tensor in node.outputs:
            producers.setdefault(plan.storage[tensor], node)
    buffers: dict[Tensor, ir.Buffer] = {}
    taken: Counter[int] = Counter()
    for tensor in dict.fromkeys((*ports, *producers)):
        if tensor in ports:
            buffers[tensor] = ir.Buffer(tensor.name, tensor.shape, tensor.dtype)
        else:
            layout = plan.layouts[tensor]
            dtype = layout.dtype(tensor.type)
            elements = layout.bytes(tensor.type) // dtype.bytes
            is_ring = layout.rows < tensor.type.rows
            index = producers[tensor].source.index
            taken[index] += 1
            number = str(index) if index >= 0 else "port"
            beside = "" if taken[index] == 1 else f"_{taken[index]}"
            buffers[tensor] = ir.Buffer(
                f"{'ring' if is_ring else 'activation'}_{number}{beside}",
                (elements,),
                dtype,
                ir.Scope.WORKSPACE,
                alignment=max(layout.alignment, needs.get(tensor, 1)),
            )
    return buffers


@dataclass(frozen=True, slots=True)
class _Calls:
    """Turns groups into statements of main."""

    plan: Plan
    functions: Mapping[PlannedOperator, Sequence[ir.PrimFunc]]
    buffers: Mapping[Tensor, ir.Buffer]
    accumulators: Mapping[PlannedOperator, ir.Buffer]

    def of_group(self, group: Group) -> list[ir.Stmt]:
        if group.nest is not None:
            sink = group.nest.operator
            # An application takes rows in ascending order; what it takes keeps no memory alive.
            backward = group.backward and not isinstance(sink.node.op, WriteRows)
            call = self.rows_from_the_end if backward else self.rows
            return [loops(group.nest, call), *self.finish(sink)]
        (operator,) = group.operators
        if operator.candidate.is_view:
            return []
        if operator.candidate.takes_row_range:
            return [self.rows(operator, ir.IntImm(0), ir.IntImm(operator.rows))]
        return [self.call(operator, ())]

    def rows(self, operator: PlannedOperator, first: ir.Expr, stop: ir.Expr) -> ir.Stmt:
        return self.call(operator, (first, stop))

    def rows_from_the_end(
        self, operator: PlannedOperator, first: ir.Expr, stop: ir.Expr
    ) -> ir.Stmt:
        """Return the calls for rows [first, stop) of an operator, counted from its last one."""
        return self.rows(operator, build.sub(operator.rows, stop), build.sub(operator.rows, first))

    def finish(self, operator: PlannedOperator) -> list[ir.Stmt]:
        """Return what turns accumulators into the output, if the operator has some."""
        if operator not in self.accumulators:
            return []
        views = [_whole(self.accumulators[operator]), self.view(operator.node.output)]
        return [_invoke(self.functions[operator][1], views, ())]

    def call(self, operator: PlannedOperator, rows: tuple[ir.Expr, ...]) -> ir.Stmt:
        views = [self.view(tensor) for tensor in operator.inputs]
        if operator in self.accumulators:
            views.append(_whole(self.accumulators[operator]))
        else:
            views += [self.view(tensor) for tensor in operator.node.outputs]
        function = self.functions[operator][0]
        if function.scratch is None:
            return _invoke(function, views, rows)
        # Allocated for the call alone: between calls its bytes are free for activations.
        param = function.scratch
        scratch = replace(param, name=f"{function.name}_scratch", scope=ir.Scope.WORKSPACE)
        return ir.Allocate(scratch, _invoke(function, [*views, _whole(scratch)], rows))

    def flag(self, tensor: Tensor) -> ir.Expr:
        """Return the truth value that a tensor of one element holds."""
        buffer = self.buffers[self.plan.storage[tensor]]
        return ir.Load(buffer, (ir.IntImm(0),) * len(buffer.shape))

    def view(self, tensor: Tensor) -> ir.BufferView:
        buffer = self.buffers[self.plan.storage[tensor]]
        dtype = self.plan.layouts[tensor].dtype(tensor.type)
        return ir.BufferView(buffer, tensor.shape, dtype, self.plan.offsets.get(tensor, 0))


def _invoke(
    function: ir.PrimFunc, views: Sequence[ir.BufferView], rows: tuple[ir.Expr, ...]
) -> ir.Invoke:
    """Return a call whose views have the shapes of the parameters."""
    shaped = [
        ir.BufferView(view.buffer, _constant_shape(param), view.dtype, view.byte_offset)
        for view, param in zip(views, function.params, strict=False)
        if isinstance(param, ir.Buffer)
    ]
    return ir.Invoke(function.name, (*shaped, *rows))


def _whole(buffer: ir.Buffer) -> ir.BufferView:
    return ir.BufferView(buffer, _constant_shape(buffer), buffer.dtype)


def _constant_shape(param: ir.Buffer) -> tuple[int, ...]:
    """Return a layer parameter's shape; layers of a model have constant shapes only."""
    return tuple(extent for extent in param.shape if isinstance(extent, int))
