"""Operators of a TFLite file that end most runs: what follows them becomes a branch of the graph.

tflite-micro's CIRCULAR_BUFFER ends a run quietly unless it is the last of a period.  Operators
behind it in the file then do not run: their variables and what they give callers stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from microtir.dtype import DType
from microtir.frontend.tflite_file import FileOperator
from microtir.frontend.tflite_tensors import Tensors
from microtir.frontend.tflite_variables import Cell, Variables
from microtir.graph.ir import Node, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators.circular_buffer.definition import Countdown
from microtir.operators.common.tflite_operands import Memory
from microtir.operators.control.definition import EndIf, Otherwise, Then
from microtir.operators.state.definition import Assign


def ends_runs(operator: FileOperator) -> bool:
    """Return whether runs may end at an operator, so that it counts even if nothing takes it."""
    return operator.custom_name == "CIRCULAR_BUFFER"


@dataclass(frozen=True, slots=True)
class _Gate:
    """A counter of runs, and what each variable holds where it stands."""

    counter: Node
    held: tuple[Tensor, ...]


@dataclass(slots=True)
class _Result:
    """A value that keeps its old content in runs that end early, and the variable that takes it."""

    value: Tensor
    held: Tensor
    cell: Cell


class Gates:
    """The places in a subgraph where runs end early.

    Args:
        tensors: of the subgraph.
        variables: of the subgraph.
        new_label: gives a node a name like this of its own.
    """

    def __init__(
        self, tensors: Tensors, variables: Variables, new_label: Callable[[str], str]
    ) -> None:
        self._tensors = tensors
        self._variables = variables
        self._new_label = new_label
        self._gates: list[_Gate] = []

    def add(self, node: Node, period: int) -> Node:
        """Return the counter that stands behind an operator."""
        memory = Memory("runs", TensorType((), DType.INT32), np.array(period, np.int32))
        before, after = self._variables.remembered(memory, node.name)
        due = self._tensors.new(f"{node.name}_due", TensorType((), DType.BOOL))
        name = self._new_label(f"{node.name}_countdown")
        counter = Node(Countdown(period), (before,), (due, after), name, node.source)
        held = tuple(cell.current for cell in self._variables.all_cells)
        self._gates.append(_Gate(counter, held))
        return counter

    def close(self, nodes: Sequence[Node], outputs: Sequence[int]) -> list[Node]:
        """Return the nodes, those behind a gate in a branch; outputs and variables follow."""
        ordered = list(nodes)
        cells = self._kept_outputs(ordered, outputs)
        for gate in reversed(self._gates):
            at = ordered.index(gate.counter) + 1
            ordered = [*ordered[:at], *self._branch(gate, ordered[at:], cells)]
        renamed: dict[Tensor, Tensor] = {}
        for tensor, cell in cells.items():
            # Callers know the output by its name: what a branch gives it has another one.
            renamed[tensor] = self._tensors.new(f"{tensor.name}_due", tensor.type)
            renamed[cell.current] = Tensor(tensor.name, tensor.type)
        self._rename(outputs, {t: renamed[cell.current] for t, cell in cells.items()}, renamed)
        return [_with(node, renamed) for node in ordered]

    def _kept_outputs(self, nodes: Sequence[Node], outputs: Sequence[int]) -> dict[Tensor, Cell]:
        """Return a variable for each output that is made behind a gate."""
        first = nodes.index(self._gates[0].counter) + 1
        produced = {tensor for node in nodes[first:] for tensor in node.outputs}
        tensors = (self._tensors.get(index) for index in outputs)
        wanted = dict.fromkeys(t for t in tensors if t is not None and t in produced)
        return {tensor: self._variables.held(f"{tensor.name}_kept", tensor) for tensor in wanted}

    def _changed(
        self, gate: _Gate, nodes: Sequence[Node], cells: Mapping[Tensor, Cell]
    ) -> list[_Result]:
        """Return the variables that nodes behind a gate change, and outputs that they make."""
        produced = {tensor for node in nodes for tensor in node.outputs}
        outputs = set(map(id, cells.values()))
        results = []
        for position, cell in enumerate(self._variables.all_cells):
            held = gate.held[position] if position < len(gate.held) else cell.before
            if cell.current in produced if id(cell) in outputs else cell.current is not held:
                results.append(_Result(cell.current, held, cell))
        return results

    def _branch(
        self, gate: _Gate, nodes: Sequence[Node], cells: Mapping[Tensor, Cell]
    ) -> list[Node]:
        """Return nodes that run if they are due; otherwise all that they change stays."""
        results = self._changed(gate, nodes, cells)
        (due, _), name = gate.counter.outputs, gate.counter.name
        source = gate.counter.source

        def add(op: Operator, inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Node:
            label = self._new_label(f"{name}_{op.name}")
            return Node(op, tuple(inputs), tuple(outputs), label, source)

        def new(word: str, tensor: Tensor) -> Tensor:
            return self._tensors.new(f"{name}_{word}", tensor.type)

        begin = add(Then(), [due], [new("then", due)])
        middle = add(Otherwise(), begin.outputs, [new("otherwise", due)])
        first = [add(Assign(), [r.value], [new("new", r.value)]) for r in results]
        second = [add(Assign(), [r.held], [new("held", r.value)]) for r in results]
        produced = (node.output for node in (*first, *second))
        ends = [new("result", result.value) for result in results]
        end = add(EndIf(), [*middle.outputs, *produced], ends)
        for result, value in zip(results, ends, strict=True):
            result.cell.current = value
        return [begin, *nodes, *first, middle, *second, end]

    def _rename(
        self,
        outputs: Sequence[int],
        final: Mapping[Tensor, Tensor],
        renamed: Mapping[Tensor, Tensor],
    ) -> None:
        for index in outputs:
            tensor = self._tensors.get(index)
            if tensor is not None and tensor in final:
                self._tensors.replace(index, final[tensor])
        for cell in self._variables.all_cells:
            cell.current = renamed.get(cell.current, cell.current)

    def __len__(self) -> int:
        return len(self._gates)

    @property
    def last(self) -> Node:
        """Return the counter that was added last."""
        return self._gates[-1].counter


def _with(node: Node, tensors: Mapping[Tensor, Tensor]) -> Node:
    inputs = tuple(tensors.get(tensor, tensor) for tensor in node.inputs)
    outputs = tuple(tensors.get(tensor, tensor) for tensor in node.outputs)
    return replace(node, inputs=inputs, outputs=outputs)
