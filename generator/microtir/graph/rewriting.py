"""Helpers that several graph passes share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import ClassVar, Protocol

import numpy as np

from microtir.graph.class_names import NamedByClass
from microtir.graph.ir import Array, Graph, Node, Tensor, TensorType


class Keeps(Enum):
    """Degrees to which a rewrite keeps the outputs."""

    BITS = "every bit"
    SUMS = "floats, but for the order of sums"
    NUMBERS = "real numbers, but for what integers round"
    NOTHING = "nothing that can be compared: the computation is a new one"


class GraphPass(Protocol):
    """A rewrite: gives another graph, the same object if there is nothing to do.

    One that keeps less than every bit of the outputs says so by an attribute `keeps`.
    """

    name: ClassVar[str]

    def __call__(self, graph: Graph) -> Graph: ...


class Rewrite(NamedByClass):
    """Base of the package's own graph passes, which keep every bit where they say nothing else."""

    __slots__ = ()
    keeps = Keeps.BITS


def keeps(graph_pass: GraphPass) -> Keeps:
    """Return what a pass keeps of the outputs; every bit if it does not say."""
    promise = getattr(graph_pass, "keeps", Keeps.BITS)
    assert isinstance(promise, Keeps)
    return promise


def with_nodes(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """Return the graph with other nodes; itself if they are the same."""
    changed = tuple(nodes)
    return graph if changed == graph.nodes else replace(graph, nodes=changed)


def named_apart(graph: Graph) -> Graph:
    """Give each tensor and each node a name of its own; return the graph itself if they have one.

    A pass changes a constant for one of the layers that share it, or invents a name that the model
    has already.  Constants that are equal but for their identity become one again; of the others,
    the first keeps its name, inputs and outputs before all.
    """
    tensors = tuple(dict.fromkeys((*graph.inputs, *graph.outputs, *graph.tensors())))
    taken = {tensor.name for tensor in tensors}
    known: dict[str, list[Tensor]] = {}
    renamed: dict[Tensor, Tensor] = {}
    for tensor in tensors:
        of_that_name = known.setdefault(tensor.name, [])
        replacement = next((other for other in of_that_name if _is_equal(tensor, other)), None)
        if replacement is None and of_that_name:
            replacement = replace(tensor, name=_fresh(tensor.name, taken))
        if replacement is not None:
            renamed[tensor] = replacement
        of_that_name.append(tensor if replacement is None else replacement)
    names, nodes = {node.name for node in graph.nodes}, []
    seen: set[str] = set()
    for node in (substitute(node, renamed) for node in graph.nodes):
        again = node.name in seen
        nodes.append(replace(node, name=_fresh(node.name, names)) if again else node)
        seen.add(node.name)
    return with_nodes(graph, nodes)


def _is_equal(a: Tensor, b: Tensor) -> bool:
    if a.data is None or b.data is None or a.type != b.type:
        return False
    return a.data is b.data or a.data.tobytes() == b.data.tobytes()


def _fresh(name: str, taken: set[str]) -> str:
    """Return a name like this one that is new; it is taken from now on."""
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    taken.add(f"{name}_{number}")
    return f"{name}_{number}"


def substitute(node: Node, tensors: Mapping[Tensor, Tensor]) -> Node:
    """Return the node with its inputs and outputs replaced; itself if none of them is."""
    if tensors.keys().isdisjoint(node.inputs) and tensors.keys().isdisjoint(node.outputs):
        return node
    inputs = tuple(tensors.get(tensor, tensor) for tensor in node.inputs)
    outputs = tuple(tensors.get(tensor, tensor) for tensor in node.outputs)
    if inputs == node.inputs and outputs == node.outputs:
        return node
    return replace(node, inputs=inputs, outputs=outputs)


def live_nodes(nodes: Iterable[Node], outputs: Iterable[Tensor]) -> list[Node]:
    """Return the nodes that outputs depend on, in their order."""
    wanted, live = set(outputs), []
    for node in reversed(list(nodes)):
        if not wanted.isdisjoint(node.outputs):
            live.append(node)
            wanted.update(node.inputs)
    return live[::-1]


def constant(name: str, type_: TensorType, values: Array) -> Tensor:
    """Return a constant of a type, whose values nobody changes."""
    data = np.array(values, type_.dtype.value, order="C")  # a scalar stays one
    data.flags.writeable = False
    return Tensor(name, type_, data)
