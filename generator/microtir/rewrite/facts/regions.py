"""Regions of a graph: operators of which one gives a result that others read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor
from microtir.operators import record_of
from microtir.operators.definition import Trait
from microtir.rewrite.reference import evaluate

STORED = np.arange(DType.INT8.min, DType.INT8.max + 1).astype(np.int8)
"""Every value that an element may have."""


@dataclass(frozen=True, slots=True)
class Region:
    """Operators whose only result is a function of the elements of one tensor.

    Attributes:
        x: the tensor.
        nodes: in the order in which they run; the last one gives the result, of the same shape.
    """

    x: Tensor
    nodes: tuple[Node, ...]

    def table(self) -> bytes:
        """Return the results of all values that an element of `x` may have, as int8."""
        shape = (1,) * (len(self.x.shape) - 1) + STORED.shape
        values: dict[Tensor, Array] = {self.x: STORED.reshape(shape)}
        seen = {self.x: _with_shape(self.x, shape)}
        for node in self.nodes:
            seen[node.output] = _with_shape(node.output, shape)
            inputs = tuple(seen.get(tensor, tensor) for tensor in node.inputs)
            of_all = replace(node, inputs=inputs, outputs=(seen[node.output],))
            operands = [values[t] if t.data is None else t.data for t in node.inputs]
            (values[node.output],) = evaluate(of_all, operands)
        return values[self.nodes[-1].output].astype(np.int8).tobytes()


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The regions of a graph that operators of a kind make up.

    Attributes:
        producers: of tensors that operators of this kind give.
        consumers: of all tensors.
        places: of nodes in the graph.
        blocks: the number of Control nodes before each node: a region lies between two of them.
        outputs: of the graph, which others read, too.
    """

    producers: Mapping[Tensor, Node]
    consumers: Mapping[Tensor, tuple[Node, ...]]
    places: Mapping[Node, int]
    blocks: Mapping[Node, int]
    outputs: frozenset[Tensor]

    @staticmethod
    def of(graph: Graph, is_of_kind: Callable[[Node], bool]) -> Neighbours:
        controls = accumulate(record_of(node.op).has(Trait.CONTROL) for node in graph.nodes)
        return Neighbours(
            {node.output: node for node in graph.nodes if is_of_kind(node)},
            graph.consumers(),
            {node: place for place, node in enumerate(graph.nodes)},
            dict(zip(graph.nodes, controls, strict=True)),
            frozenset(graph.outputs),
        )

    def grown(self, last: Node, most: int) -> Iterator[tuple[tuple[Node, ...], tuple[Tensor, ...]]]:
        """Yield regions that end with a node, each of a node more, and the activations they read.

        The nodes are in their order, and no more than so many.
        """
        nodes: tuple[Node, ...] = (last,)
        inside, read = {last}, dict.fromkeys(last.activations)
        while read and len(nodes) < most:
            yield nodes, tuple(read)
            inner = [self.producers[t] for t in read if self._is_inside(t, last, inside)]
            if not inner:
                break
            # What runs last may read what the others give, and never the other way round: so all
            # that joins later runs before it.
            latest = max(inner, key=self.places.__getitem__)
            nodes = (latest, *nodes)
            inside.add(latest)
            del read[latest.output]
            read.update(dict.fromkeys(latest.activations))

    def _is_inside(self, tensor: Tensor, last: Node, nodes: set[Node]) -> bool:
        """Return whether what gives a tensor may join the nodes of a region."""
        producer = self.producers.get(tensor)
        return (
            producer is not None
            and tensor not in self.outputs
            and self.blocks[producer] == self.blocks[last]
            and nodes.issuperset(self.consumers[tensor])
        )


def _with_shape(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return Tensor(tensor.name, replace(tensor.type, shape=shape))
