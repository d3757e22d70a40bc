"""Run images as the kernels want them: transposes are moved to where they cancel, or cost least.

ONNX has images as (N, C, H, W), the graph as (N, H, W, C); the readers emit a transpose before and
after each operator of images.  Here a transpose is not done where it stands, but remembered: a
value is a tensor with an order of axes in which it should be seen.  Operators that can work on any
order of axes take the tensor as it lies, and their result is seen in that order again.  What cannot
has its operands transposed after all; so has what leaves the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from microtir.graph.ir import Array, Graph, Node, SourceLocation, Tensor, TensorType
from microtir.graph.rewriting import Keeps, Rewrite
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Reshape, Transpose
from microtir.rewrite.imports import axis_orders
from microtir.support.unique_names import UniqueNames


@dataclass(frozen=True, slots=True)
class View:
    """A value: axis i of it is axis `order[i]` of the tensor."""

    tensor: Tensor
    order: axis_orders.Order

    @property
    def is_plain(self) -> bool:
        """Return whether the value is the tensor as it lies."""
        return axis_orders.is_plain(self.order)


class SettleLayout(Rewrite):
    """Moves transposes to where they cancel, or cost least."""

    keeps = Keeps.SUMS

    def __call__(self, graph: Graph) -> Graph:
        return _Layout(graph).graph()


class _Layout:
    """Builds the graph anew, node by node."""

    def __init__(self, graph: Graph) -> None:
        self._old = graph
        self._consumers = graph.consumers()
        self._views: dict[Tensor, View] = {}
        self._columns: dict[Tensor, Array] = {}  # orders of the columns of matrices
        self._nodes: list[Node] = []
        self._done: dict[tuple[Tensor, axis_orders.Order], Tensor] = {}
        self._source = SourceLocation("", -1, "")  # of the node that is looked at
        self._tensor_names = UniqueNames(t.name for t in (*graph.tensors(), *graph.outputs))
        self._node_names = UniqueNames(node.name for node in graph.nodes)

    def graph(self) -> Graph:
        for node in self._old.nodes:
            self._visit(node)
        for tensor in self._old.outputs:
            view = self._view(tensor)
            if view.tensor is not tensor:
                self._deliver(view, tensor)
        return replace(self._old, nodes=tuple(self._nodes))

    def _view(self, tensor: Tensor) -> View:
        return self._views.get(tensor, View(tensor, tuple(range(len(tensor.shape)))))

    def _visit(self, node: Node) -> None:
        self._source = node.source
        if isinstance(node.op, Transpose):
            view = self._view(node.inputs[0])
            order = tuple(view.order[axis] for axis in node.op.permutation)
            self._views[node.output] = View(view.tensor, order)
        elif isinstance(node.op, Reshape):
            self._reshape(node)
        elif isinstance(node.op, FullyConnected) and node.inputs[0] in self._columns:
            self._dense(node)
        else:
            self._any(node)

    # --- operators that take any order of axes ----------------------------------------------------

    def _any(self, node: Node) -> None:
        views = [self._view(tensor) for tensor in node.inputs]
        order = self._cheapest(node, views)
        moved = None if axis_orders.is_plain(order) else axis_orders.moved_operator(node, order)
        if moved is None:
            self._plain(node, views)
            return
        op, results = moved
        inputs = [self._laid(view, order) for view in views]
        outputs = []
        for tensor, seen in zip(node.outputs, results, strict=True):
            shape = tuple(tensor.shape[axis] for axis in axis_orders.inverse(seen))
            outputs.append(self._new(tensor, shape))
            self._views[tensor] = View(outputs[-1], seen)
        self._nodes.append(replace(node, op=op, inputs=tuple(inputs), outputs=tuple(outputs)))

    def _cheapest(self, node: Node, views: Sequence[View]) -> axis_orders.Order:
        """Return the order of axes for which the fewest bytes have to be transposed."""
        rank = max(len(view.order) for view in views)
        orders = dict.fromkeys(
            view.order for view in views if view.tensor.data is None and len(view.order) == rank
        )
        if not orders or not axis_orders.moves_data(node):
            return tuple(range(rank))
        return min(orders, key=lambda order: sum(_bytes_to_move(view, order) for view in views))

    def _plain(self, node: Node, views: Sequence[View]) -> None:
        inputs = tuple(self._materialised(view) for view in views)
        self._nodes.append(replace(node, inputs=inputs))

    def _laid(self, view: View, order: axis_orders.Order) -> Tensor:
        """Return the tensor that an operator takes which sees its operands in an order."""
        rank = len(order)
        if view.order == order or view.tensor.type.elements == 1:
            return view.tensor
        if len(view.order) == rank:
            return self._transposed(view.tensor, _between(view, order))
        tensor = self._materialised(view)
        aligned = self._reshaped(tensor, (1,) * (rank - len(tensor.shape)) + tensor.shape)
        return self._transposed(aligned, axis_orders.inverse(order))

    # --- what a matrix is made from ---------------------------------------------------------------

    def _reshape(self, node: Node) -> None:
        """Look through the transpose of an image that is flattened for a layer."""
        view = self._view(node.inputs[0])
        if view.is_plain or _moves_ones(view):
            self._nodes.append(replace(node, inputs=(view.tensor,)))
            return
        squeezed = axis_orders.squeezed_order(view.order, node.inputs[0].shape, node.output.shape)
        if squeezed is not None:
            shape = tuple(node.output.shape[axis] for axis in axis_orders.inverse(squeezed))
            self._views[node.output] = View(self._reshaped(view.tensor, shape), squeezed)
            return
        rows = node.output.shape[:1]
        if (
            view.order[0] == 0
            and len(node.output.shape) == 2
            and rows == view.tensor.shape[:1]
            and node.output not in self._old.outputs
            and all(_is_layer_of(node.output, n) for n in self._consumers.get(node.output, ()))
        ):
            places = np.arange(node.output.shape[1]).reshape(view.tensor.shape[1:])
            order = tuple(axis - 1 for axis in view.order[1:])
            self._columns[node.output] = places.transpose(order).reshape(-1)
            self._nodes.append(replace(node, inputs=(view.tensor,)))
            return
        self._nodes.append(replace(node, inputs=(self._materialised(view),)))

    def _dense(self, node: Node) -> None:
        """Lay out the columns of weights as the features lie."""
        weights = node.inputs[1]
        laid = np.empty_like(weights.values)
        laid[:, self._columns[node.inputs[0]]] = weights.values
        laid.flags.writeable = False
        own = Tensor(self._tensor_names.take(weights.name), weights.type, laid)
        others = tuple(self._materialised(self._view(tensor)) for tensor in node.inputs[2:])
        self._nodes.append(replace(node, inputs=(node.inputs[0], own, *others)))

    # --- transposes that are done -----------------------------------------------------------------

    def _materialised(self, view: View) -> Tensor:
        return view.tensor if view.is_plain else self._transposed(view.tensor, view.order)

    def _transposed(self, tensor: Tensor, order: axis_orders.Order) -> Tensor:
        """Return a tensor in another order of axes; the same one only once."""
        if axis_orders.is_plain(order):
            return tensor
        known = self._done.get((tensor, order))
        if known is not None:
            return known
        shape = tuple(tensor.shape[axis] for axis in order)
        if tensor.data is not None:
            result = self._constant(tensor, tensor.data.transpose(order))
        elif _moves_ones(View(tensor, order)):
            result = self._reshaped(tensor, shape)
        else:
            result = self._new(tensor, shape)
            self._append(Transpose(order), tensor, result)
        self._done[tensor, order] = result
        return result

    def _reshaped(self, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        if tensor.data is not None:
            return self._constant(tensor, tensor.data.reshape(shape))
        result = self._new(tensor, shape)
        self._append(Reshape(), tensor, result)
        return result

    def _deliver(self, view: View, output: Tensor) -> None:
        """Give an output of the graph its value, in memory of its own."""
        op = Reshape() if view.is_plain or _moves_ones(view) else Transpose(view.order)
        self._append(op, view.tensor, output)

    def _append(self, op: Transpose | Reshape, tensor: Tensor, result: Tensor) -> None:
        name = self._node_names.take(f"{result.name}_{op.name}")
        self._nodes.append(Node(op, (tensor,), (result,), name, self._source))

    def _new(self, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
        type_ = TensorType(shape, tensor.dtype, tensor.type.quantization)
        return Tensor(self._tensor_names.take(tensor.name), type_)

    def _constant(self, tensor: Tensor, data: Array) -> Tensor:
        values = np.ascontiguousarray(data)
        values.flags.writeable = False
        type_ = replace(tensor.type, shape=tuple(values.shape))
        return Tensor(self._tensor_names.take(tensor.name), type_, values)


def _is_layer_of(features: Tensor, node: Node) -> bool:
    """Return whether a node multiplies a matrix, and nothing else of it, by known weights."""
    if not isinstance(node.op, FullyConnected) or features in node.inputs[1:]:
        return False
    weights = node.inputs[1]
    return weights.data is not None and weights.shape[1] == features.shape[1]


def _moves_ones(view: View) -> bool:
    """Return whether elements stay in their order: what moves are axes of one element."""
    long = [axis for axis in view.order if view.tensor.shape[axis] != 1]
    return long == sorted(long)


def _bytes_to_move(view: View, order: axis_orders.Order) -> int:
    """Return what it costs to have a value in an order; constants are laid out for nothing."""
    tensor = view.tensor
    if tensor.data is not None or view.order == order or tensor.type.elements == 1:
        return 0
    if len(view.order) < len(order):
        seen = (1,) * (len(order) - len(view.order))
        shape = seen + tuple(tensor.shape[axis] for axis in view.order)
        long = [axis for axis in axis_orders.inverse(order) if shape[axis] != 1]
        return 0 if view.is_plain and long == sorted(long) else tensor.type.bytes
    return 0 if _moves_ones(View(tensor, _between(view, order))) else tensor.type.bytes


def _between(view: View, order: axis_orders.Order) -> axis_orders.Order:
    """Return how a tensor is transposed so that its value is seen in another order."""
    return tuple(view.order[axis] for axis in axis_orders.inverse(order))
