"""Compare two graphs by what they say: operators, types, constants and who reads what."""

from __future__ import annotations

from typing import Any

from microtir.graph.ir import Graph, Tensor


def canonical(graph: Graph) -> list[Any]:
    """Return a graph as lists that are equal where graphs are, whatever their file was called.

    Tensors are numbered in the order in which they are first met; constants say what they hold.
    """
    numbers: dict[Tensor, int] = {}

    def of(tensor: Tensor) -> Any:
        if tensor.data is not None:
            data = tensor.data.tobytes()
            return "constant", tensor.shape, tensor.dtype, tensor.type.quantization, data
        return numbers.setdefault(tensor, len(numbers)), tensor.type

    ports = [[of(tensor) for tensor in graph.arguments], [t.name for t in graph.arguments]]
    # States are matched by name: their order is that in which operators of a file name them.
    states = sorted(graph.states, key=lambda state: state.name)
    before = [(of(state.before), state.initial.tobytes(), state.turns) for state in states]
    nodes = [
        (node.op, [of(t) for t in node.inputs], [of(t) for t in node.outputs])
        for node in graph.nodes
        if node.op.name != "assign"
    ]
    after = {node.output: node.inputs[0] for node in graph.nodes if node.op.name == "assign"}
    written = [of(after.get(state.after, state.after)) for state in states]
    results = [[of(tensor) for tensor in graph.results], [t.name for t in graph.results]]
    return [ports, before, nodes, written, results]
