"""Follow values of which data say how many rows are in use through the operators that take them.

Such a value has as many rows as there may be.  What computes each row of a result from the row of
its own, or from values that are no rows, gives as many rows again: those in use are what the file
asks for, and the others mean nothing.  Whatever else looks at them would mix both, and is refused:
the extent of the axis is not the one that the file speaks of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from microtir.errors import UnsupportedModelError
from microtir.graph.ir import Node, Tensor
from microtir.graph.names import brief
from microtir.operators import record_of
from microtir.operators.common.elements import axis_of_elements
from microtir.operators.common.onnx_values import RowCount
from microtir.operators.definition import Trait
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather, GatherNd
from microtir.operators.movement import definition as movement
from microtir.operators.ranking.definition import TopK
from microtir.operators.reduction.definition import ArgExtremum, Reduction
from microtir.operators.softmax.definition import LogSoftmax, Softmax

RowCounts = Mapping[Tensor, RowCount]


def row_count_of_results(node: Node, counts: RowCounts, where: str) -> RowCount | None:
    """Return what is in use of each output of a node; None if all of it is.

    Args:
        node: of the graph that is being made.
        counts: what is in use of its inputs, if not all of it is.
        where: the node of the file.

    Raises:
        UnsupportedModelError: the operator does not work row by row.
    """
    axes = {tensor: counts[tensor].axis for tensor in node.inputs if tensor in counts}
    if not axes:
        return None
    numbers = {counts[tensor].count for tensor in axes}
    axis = _axis(node, axes) if len(numbers) == 1 else None
    if axis is None:
        raise mixes_rows(next(iter(axes)), where)
    return RowCount(axis, numbers.pop())


def mixes_rows(tensor: Tensor, where: str) -> UnsupportedModelError:
    """Return the error for a node that needs to know how many rows there are, or mixes them."""
    return UnsupportedModelError(
        f"the number of rows of {brief(tensor.name)!r} depends on the data, and this operator "
        f"does not compute rows one by one",
        where=where,
        legal="operators of single elements, and slices, gathers, reshapes, reductions along other"
        " axes",
        fix="export the model with the rows as outputs, and compute the rest in the application",
    )


def _axis(node: Node, axes: Mapping[Tensor, int]) -> int | None:
    """Return the axis of the rows in each output; None if it has no such axis."""
    op, first = node.op, node.inputs[0]
    if record_of(op).has(Trait.ELEMENTWISE):
        return axis_of_elements(node, axes)
    if isinstance(op, Gather):
        return _gathered(op, node, axes)
    if isinstance(op, GatherNd):
        axis = axes.get(node.inputs[1])
        return axis if first not in axes and axis != len(node.inputs[1].shape) - 1 else None
    operands = node.inputs if isinstance(op, movement.Concatenation) else node.activations
    if any(axes.get(tensor) != axes.get(first) for tensor in operands):
        return None
    axis = axes[first]
    is_inner = axis < len(first.shape) - 1
    match op:
        case movement.Reshape():
            return _reshaped(first.shape, axis, node.output.shape)
        case FullyConnected() if is_inner:
            return _reshaped(first.shape, axis, node.output.shape)
        case movement.Transpose(permutation):
            return permutation.index(axis)
        case movement.StridedSlice():
            return axis if _takes_all(op, node, axis) else None
        case movement.Concatenation(along) | movement.Split(along) if along != axis:
            return axis
        case Reduction(along, keep_dims) if axis not in along:
            return axis if keep_dims else axis - sum(a < axis for a in along)
        case ArgExtremum(along) if axis != along:
            return axis - (along < axis) if len(node.output.shape) < len(first.shape) else axis
        case Softmax() | LogSoftmax() | TopK() if is_inner:
            return axis
        case _:
            return None


def _gathered(op: Gather, node: Node, axes: Mapping[Tensor, int]) -> int | None:
    """Return the axis of rows that are indices, or that are gathered along another axis."""
    data, indices = node.inputs
    if op.batch_dims or (data in axes and indices in axes):
        return None
    if indices in axes:
        return op.axis + axes[indices]
    if axes[data] == op.axis:
        return None
    return axes[data] + (len(indices.shape) - 1 if op.axis < axes[data] else 0)


def _reshaped(shape: Sequence[int], axis: int, result: Sequence[int]) -> int | None:
    """Return where an axis is in another shape, if exactly one there can be it."""
    outer = math.prod(shape[:axis])
    axes = [
        n
        for n, extent in enumerate(result)
        if extent == shape[axis] and math.prod(result[:n]) == outer
    ]
    return axes[0] if len(axes) == 1 else None


def _takes_all(op: movement.StridedSlice, node: Node, axis: int) -> bool:
    """Return whether a slice takes all that there is along an axis, and keeps its axes."""
    whole = op.begin[axis] == 0 and op.strides[axis] == 1
    return (
        whole and node.output.shape == op.extent and op.extent[axis] == node.inputs[0].shape[axis]
    )
