"""Describes a graph as TVM's graph executor does: nodes, and entries that they write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from microtir.codegen.interface.call_table import CallTable, TableTensor, make_table
from microtir.codegen.program import CProgram
from microtir.module.ir_module import ModelInfo


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A node: one of the tensors that are there before a run, or a call.

    Args:
        name: of a call the operator in the model file, else the C name of the tensor.
        inputs: what a call reads, as node and number among its outputs.
        output_count: entries that are its.
        function: the C function of a call; empty for other nodes.
        layers: the C functions of its layers.
    """

    name: str
    inputs: tuple[tuple[int, int], ...] = ()
    output_count: int = 1
    function: str = ""
    layers: tuple[str, ...] = ()

    @property
    def is_call(self) -> bool:
        return bool(self.function)

    @property
    def kind(self) -> str:
        """Return what TVM calls such a node."""
        return "tvm_op" if self.is_call else "null"


@dataclass(frozen=True, slots=True)
class NodeGraph:
    """The nodes of a graph in the order in which they run, and what they write.

    Args:
        nodes: the inputs of the model in its order, what the last run has left, then the calls.
        entries: the tensor of each output of each node.
        numbers: of these tensors in the table of calls; None for an input that nothing reads.
        heads: node and number of each output of the model.
        input_count: inputs of the model. Inputs and outputs that lie in the workspace are not
            counted: they are tensors like others there.
    """

    nodes: tuple[GraphNode, ...]
    entries: tuple[TableTensor, ...]
    numbers: tuple[int | None, ...]
    heads: tuple[tuple[int, int], ...]
    input_count: int

    @property
    def row_pointers(self) -> list[int]:
        """Return the first entry of each node, and the number of entries behind them."""
        pointers = [0]
        for node in self.nodes:
            pointers.append(pointers[-1] + node.output_count)
        return pointers


def node_graph(program: CProgram, model: ModelInfo) -> NodeGraph:
    """Return the nodes and entries of a program for the graph executor."""
    table = make_table(program, model)
    sources = [*_inputs(model), *(t for t in table.tensors if t.place == "STATE")]
    nodes = [GraphNode(tensor.name) for tensor in sources]
    entries = list(sources)
    produced = {tensor: (number, 0) for number, tensor in enumerate(sources)}
    for number, node in enumerate(table.nodes):
        reads = [table.tensors[n] for n in node.inputs]
        inputs = tuple(produced[tensor] for tensor in reads if tensor in produced)
        for index, n in enumerate(node.outputs):
            produced[table.tensors[n]] = (len(nodes), index)
            entries.append(table.tensors[n])
        function = f"{program.name}_node_{number}"
        layers = tuple(program.names[layer] for layer in node.layers)
        nodes.append(GraphNode(node.name, inputs, len(node.outputs), function, layers))
    outputs = sorted((t for t in produced if t.place == "OUTPUT"), key=lambda t: t.offset)
    return NodeGraph(
        nodes=tuple(nodes),
        entries=tuple(entries),
        numbers=_numbers(table, entries),
        heads=tuple(produced[tensor] for tensor in outputs),
        input_count=len(_inputs(model)),
    )


def _inputs(model: ModelInfo) -> list[TableTensor]:
    return [
        TableTensor("INPUT", number, port.type.elements, port.type.dtype, port.c_name)
        for number, port in enumerate(model.inputs)
        if port.offset is None
    ]


def _numbers(table: CallTable, entries: Sequence[TableTensor]) -> tuple[int | None, ...]:
    known = {tensor: number for number, tensor in enumerate(table.tensors)}
    return tuple(known.get(tensor) for tensor in entries)
