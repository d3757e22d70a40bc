"""Find the layer behind a conversion to integers, through what moves its elements and clamps them.

A conversion of one scale does the same to each element, so that it can be done where the elements
are computed, before they are moved: a head of a network flattens the means of an image, say.  The
greatest element of a window is the one that becomes the greatest integer, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.operators.activations.definition import Relu
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Concatenation, Pack
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.ranking.definition import TopK
from microtir.operators.transposed_convolution.definition import TransposeConv
from microtir.rewrite.imports.movements import moves_elements

# Layers that clamp their results.
_ACTIVATED = Conv2D | FullyConnected | TransposeConv | Add | Sub | Mul | AveragePool2D


@dataclass(frozen=True, slots=True)
class Chain:
    """The nodes that compute the values that a node quantises.

    Args:
        layer: the first of it.
        activation: clamps its results, on the way.
        moves: what moves them, in this order.
    """

    layer: Node
    activation: Node | None
    moves: tuple[Node, ...]

    def first(self, last: Node) -> Node:
        """Return what quantises the results of the layer, before they are moved."""
        if not self.moves:
            return last
        x, y = self.layer.outputs[0], last.output
        stored = Tensor(f"{y.name}_computed", replace(y.type, shape=x.shape))
        return replace(last, inputs=(x,), outputs=(stored,))

    def moved(self, stored: Tensor, last: Node) -> tuple[Node, ...]:
        """Return what moves the integers of a layer, to be the result of the last node."""
        nodes: list[Node] = []
        for number, node in enumerate(self.moves, 1):
            result = last.output
            if number < len(self.moves):
                type_ = replace(result.type, shape=node.output.shape)
                result = Tensor(f"{node.output.name}_stored", type_)
            nodes.append(replace(node, inputs=(stored, *node.inputs[1:]), outputs=(result,)))
            stored = result
        return tuple(nodes)


def chain_before(last: Node, producer: Callable[[Tensor, Node], Node | None]) -> Chain | None:
    """Return what computes the values that a node quantises.

    Args:
        last: quantises.
        producer: gives the node of a tensor that only one node takes.
    """
    moves: list[Node] = []
    clamp: Node | None = None  # with what is behind it among the moves
    behind = 0
    node = producer(last.inputs[0], last)
    while node is not None:
        if _carries(node):
            moves.append(node)
        elif isinstance(node.op, Relu) and clamp is None:
            clamp, behind = node, len(moves)
        else:
            break
        node = producer(node.inputs[0], node)
    if clamp is not None and (node is None or not isinstance(node.op, _ACTIVATED)):
        return Chain(clamp, None, tuple(moves[:behind][::-1]))
    return None if node is None else Chain(node, clamp, tuple(moves[::-1]))


def _carries(node: Node) -> bool:
    """Return whether a node moves the elements of one tensor of floats.

    Of integers that are equal TopK may pick another one than of the floats that they were.
    """
    is_one = len(node.outputs) == 1 and node.output.dtype is DType.FLOAT32
    is_alone = all(not tensor.dtype.is_float for tensor in node.inputs[1:])
    return (
        is_one
        and is_alone
        and moves_elements(node.op)
        and not isinstance(node.op, Concatenation | Pack | TopK)
    )
