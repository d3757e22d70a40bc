"""Compares features of decision trees as integers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph, Node, Tensor, TensorType
from microtir.graph.rewriting import Rewrite, with_nodes
from microtir.operators.bits.definition import OrderedBits
from microtir.operators.conversion.definition import CastTo
from microtir.operators.trees import definition as trees

_BITS, _BITS_CODE = 9, 60
"""Instructions that make an integer of a feature, and bytes of code of that."""


@dataclass(frozen=True, slots=True)
class TreeThresholds(Rewrite):
    """Gives decision trees thresholds that are integers, where features are or can be.

    Features that a model makes floats of are taken as they were before.  Others become integers
    that are ordered as they are, once for all trees, where comparing these is cheaper by more than
    that (without an FPU nearly always), or where it takes less code.

    Args:
        saved: instructions that a comparison of integers saves.
        saved_bytes: code that a condition on integers saves.
    """

    saved: int = 0
    saved_bytes: int = 0

    def __call__(self, graph: Graph) -> Graph:
        if not any(_compares_floats(node) for node in graph.nodes):
            return graph
        return with_nodes(graph, self._rewritten(graph))

    def _rewritten(self, graph: Graph) -> Iterator[Node]:
        producers, bits = graph.producers(), dict[Tensor, Tensor]()
        for node in graph.nodes:
            if not _compares_floats(node):
                yield node
                continue
            x = node.inputs[0]
            cast = producers.get(x)
            if cast is not None and isinstance(cast.op, CastTo) and cast.inputs[0].dtype.is_int:
                yield _of_integers(node, cast.inputs[0])
            elif x in bits or self._pays(node):
                if x not in bits:
                    bits[x] = Tensor(f"{x.name}/bits", TensorType(x.shape, DType.INT32))
                    yield Node(OrderedBits(), (x,), (bits[x],), f"{node.name}_bits", node.source)
                yield _with(node, bits[x], _bits_of_threshold)
            else:
                yield node

    def _pays(self, node: Node) -> bool:
        """Return whether the integers of all features are worth what they take."""
        op, features = node.attributes(trees.TreeEnsemble), node.inputs[0]
        asked = int(features.shape[0] * node.inputs[4].type.elements * trees.usual_depth(op))
        is_faster = asked * self.saved > features.type.elements * _BITS
        return is_faster or trees.questions(node) * self.saved_bytes > _BITS_CODE


def _compares_floats(node: Node) -> bool:
    return isinstance(node.op, trees.TreeEnsemble) and node.inputs[0].dtype.is_float


def _with(node: Node, x: Tensor, threshold: Callable[[float], int]) -> Node:
    """Return the trees with features of another type."""
    thresholds = node.inputs[2]
    new_thresholds = np.array(
        [threshold(value) for value in thresholds.values.tolist()], x.dtype.value
    )
    constant = Tensor(thresholds.name, TensorType(new_thresholds.shape, x.dtype), new_thresholds)
    return replace(node, inputs=(x, node.inputs[1], constant, *node.inputs[3:]))


def _bits_of_threshold(value: float) -> int:
    """Return the integer that a feature's `OrderedBits` are at most where it is at most `value`.

    Nothing is at most what is no number: the least integer stands for no float.
    """
    if np.isnan(value):
        return DType.INT32.min
    bits = int(np.float32(value or 0.0).view(np.int32))
    return bits if bits >= 0 else bits ^ DType.INT32.max


def _of_integers(node: Node, x: Tensor) -> Node:
    """Return the trees on the integers that were made floats."""
    if x.dtype not in trees.FEATURES:
        return node
    most = {value: _most_below(value, x.dtype) for value in set(_data(node, 2).tolist())}
    never = [most.get(value) is None for value in _data(node, 2).tolist()]
    new_node = _with(node, x, lambda value: most.get(value) or 0)
    following = _data(node, 3).copy()
    # What no integer is at most is asked of all, and both ways are the second one.
    following[never, 0] = following[never, 1]
    is_leaf = _data(node, 1) < 0
    following[is_leaf] = _data(node, 3)[is_leaf]
    ways = Tensor(node.inputs[3].name, node.inputs[3].type, following)
    # No integer is no number.
    return replace(new_node, inputs=(*new_node.inputs[:3], ways, *new_node.inputs[4:7]))


def _data(node: Node, position: int) -> Array:
    data = node.inputs[position].data
    assert data is not None, "tables of trees are constant"
    return data


def _most_below(value: float, dtype: DType) -> int | None:
    """Return the largest integer of a type that is at most `value` as a float32; None for none.

    Integers of more than 24 bits are rounded, which keeps their order.
    """

    def rounded(integer: int) -> float:
        # Of the integer itself: one that became a double first may be rounded twice.
        return float(np.array(integer, dtype.value).astype(np.float32))

    low, high = dtype.min, dtype.max
    if not rounded(low) <= value:
        return None
    while low < high:
        middle = (low + high + 1) // 2
        if rounded(middle) <= value:
            low = middle
        else:
            high = middle - 1
    return low
