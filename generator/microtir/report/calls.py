"""Reads main: its steps, the operator behind each, and the tensors in its buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from microtir.graph.ir import Node, Tensor
from microtir.module.program import Program
from microtir.plan.ir import Plan, PlannedOperator
from microtir.report import data
from microtir.tir.ir import Buffer, BufferView, Invoke, PrimFunc
from microtir.tir.visitor import buffers_written, invokes_of


@dataclass(frozen=True, slots=True)
class LayerCalls:
    """The calls of layers in main before placement, read once.

    Args:
        plan: what main was made from.
        numbers: of each operator in the model file.
        functions: of each operator with code: one, or a second that finishes it.
        invokes: the calls in program order; their positions are the steps.
    """

    plan: Plan
    numbers: Mapping[PlannedOperator, str]
    functions: Mapping[PlannedOperator, tuple[PrimFunc, ...]]
    invokes: tuple[Invoke, ...]

    @staticmethod
    def of(program: Program) -> LayerCalls:
        invokes = invokes_of(program.named_main)
        numbers = {op: number_of(op.node) for op in program.plan.operators}
        return LayerCalls(program.plan, numbers, program.functions_of_operators(), invokes)

    @property
    def steps(self) -> tuple[data.MainCall, ...]:
        known = {
            function.name: (op, self.numbers[op] + data.FINISH * position)
            for op, functions in self.functions.items()
            for position, function in enumerate(functions)
        }
        steps = []
        for step, invoke in enumerate(self.invokes):
            op, label = known[invoke.function]
            name, operator = op.node.name, op.node.source.operator
            steps.append(data.MainCall(step, label, invoke.function, operator, name))
        return tuple(steps)

    @property
    def streams(self) -> tuple[data.Stream, ...]:
        """Return the steps of each group with a nest; what finishes it comes after the nest."""
        positions = {invoke.function: step for step, invoke in enumerate(self.invokes)}
        streams = []
        for group in self.plan.groups:
            if group.nest is not None:
                at = [
                    positions[self.functions[op][0].name]
                    for op in group.operators
                    if op in self.functions
                ]
                streams.append(data.Stream(min(at), max(at)))
        return tuple(streams)

    def touching(self, name: str, *, writes_only: bool = False) -> list[int]:
        """Return the steps that get a buffer of this name, or those of them that write it."""
        return [
            step
            for step, callee, param, buffer in self._views()
            if buffer.name == name and (not writes_only or param in buffers_written(callee))
        ]

    def _views(self) -> Iterator[tuple[int, PrimFunc, Buffer, Buffer]]:
        """Yield step, function, its parameter, and the buffer of main that it is given as that."""
        callees = {f.name: f for functions in self.functions.values() for f in functions}
        for step, invoke in enumerate(self.invokes):
            callee = callees[invoke.function]
            for param, arg in zip(callee.params, invoke.args, strict=True):
                if isinstance(arg, BufferView) and isinstance(param, Buffer):
                    yield step, callee, param, arg.buffer

    def arguments(self) -> dict[str, list[tuple[PrimFunc, Buffer]]]:
        """Return the functions that get each buffer of main, and their parameter for it."""
        arguments: dict[str, list[tuple[PrimFunc, Buffer]]] = {}
        for _, callee, param, buffer in self._views():
            arguments.setdefault(buffer.name, []).append((callee, param))
        return arguments

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensor that each buffer of main holds: what the layer that writes it makes."""
        makers = {f.name: op for op, functions in self.functions.items() for f in functions}
        tensors: dict[str, Tensor] = {}
        for name, uses in self.arguments().items():
            for function, param in uses:
                outputs = outputs_of(function)
                results = makers[function.name].node.outputs
                if param in outputs and len(outputs) == len(results):
                    tensors.setdefault(name, results[outputs.index(param)])
        return tensors


def number_of(node: Node) -> str:
    """Return the number that people know an operator by."""
    return str(node.source.index) if node.source.index >= 0 else data.NO_NUMBER


def outputs_of(function: PrimFunc) -> list[Buffer]:
    """Return the parameters through which a layer writes tensors: not scratch, not sums."""
    if function.origin is not None and function.origin.is_partial:
        return []
    written = frozenset(buffers_written(function))
    return [
        p for p in function.params
        if isinstance(p, Buffer) and p in written and p is not function.scratch
    ]  # fmt: skip
