"""Read PyTorch's operators that put values in order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_parts import along
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.common.torch_types import as_type, operand, promoted


def _ranked(
    node: TorchNode, x: Tensor, axis: int, count: int, *, is_largest: bool
) -> tuple[Tensor, Tensor]:
    """Return the first values of an axis by size, and their places; of equal ones the first."""
    values, places = node.onnx_tensors(
        "TopK", x, node.ints(count), axis=axis, largest=int(is_largest), outputs=2
    )
    return values, places


def top_k(node: TorchNode) -> tuple[Tensor, Tensor]:
    """Read topk."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim", -1), len(x.shape))
    return _ranked(node, x, axis, node.integer("k"), is_largest=node.flag("largest", True))


def sort(node: TorchNode) -> tuple[Tensor, Tensor]:
    """Read sort: all values by size, and where they were."""
    x = node.tensor("self")
    line = x if x.shape else node.reshaped(x, (1,))
    axis = node.axis(node.integer("dim", -1), len(line.shape))
    is_largest = node.flag("descending", False)
    values, places = _ranked(node, line, axis, node.extent(line, axis), is_largest=is_largest)
    return node.reshaped(values, x.shape), node.reshaped(places, x.shape)


def order(node: TorchNode) -> Tensor:
    """Read argsort."""
    return sort(node)[1]


def _at_rank(node: TorchNode, x: Tensor, axis: int, rank: int) -> tuple[Tensor, Tensor]:
    """Return the value of a rank from the smallest on, and its place."""
    pair = _ranked(node, x, axis, rank + 1, is_largest=False)
    keep = node.flag("keepdim", False)
    ends = (along(node.first, one, axis, rank, 1) for one in pair)
    shape = tuple(1 if n == axis else e for n, e in enumerate(x.shape) if keep or n != axis)
    value, place = (node.reshaped(end, shape) for end in ends)
    return value, place


def median(node: TorchNode) -> tuple[Tensor, Tensor]:
    """Read median along an axis: of an even number the lower of both in the middle."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim"), len(x.shape))
    return _at_rank(node, x, axis, (node.extent(x, axis) - 1) // 2)


def median_of_all(node: TorchNode) -> Tensor:
    """Read median of all elements."""
    x = node.tensor("self")
    line = node.reshaped(x, (x.type.elements,))
    return _at_rank(node, line, 0, (x.type.elements - 1) // 2)[0]


def kth_value(node: TorchNode) -> tuple[Tensor, Tensor]:
    """Read kthvalue."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim", -1), len(x.shape))
    return _at_rank(node, x, axis, node.integer("k") - 1)


def quantile(node: TorchNode) -> Tensor:
    """Read quantile of one number: between two ranks, by how near it is to either."""
    x, part, mode = (
        node.tensor("self"),
        float(node.number("q")),
        node.text("interpolation", "linear"),
    )
    if not 0.0 <= part <= 1.0 or mode not in _ROUNDINGS:
        raise node.malformed(f"the quantile {part}, {mode!r}", f"0 to 1, {', '.join(_ROUNDINGS)}")
    stated = node.optional_integer("dim")
    line = node.reshaped(x, (x.type.elements,)) if stated is None else x
    axis = node.axis(0 if stated is None else stated, len(line.shape))
    at = part * (node.extent(line, axis) - 1)
    place = _ROUNDINGS[mode](at)
    first = math.floor(place)
    low = _at_rank(node, line, axis, first)[0]
    if place != first:
        high = _at_rank(node, line, axis, first + 1)[0]
        way = node.onnx("Mul", node.onnx("Sub", high, low), node.scalar(place - first))
        low = node.onnx("Add", low, way)
    is_whole = stated is None and node.flag("keepdim", False)
    return node.reshaped(low, (1,) * len(x.shape)) if is_whole else low


def places_in_order(node: TorchNode) -> Tensor:
    """Read searchsorted and bucketize: how many values in order are below each one.

    With `right`, or the side of that name, equal ones count, too.
    """
    if node.has("sorter"):
        raise node.unsupported(
            "it has a sorter", "sorted values", "sort the values first: values[sorter]"
        )
    stated = operand(node, "self")
    line = node.tensor("boundaries" if node.has("boundaries") else "sorted_sequence", 1)
    dtype = promoted(node, line, stated)
    x, line = as_type(node, stated, dtype), as_type(node, line, dtype)
    count = node.extent(line, len(line.shape) - 1)
    node.first.check_room(*x.shape, count)
    if len(line.shape) > 1:
        line = node.reshaped(line, (*line.shape[:-1], 1, count))
    is_right = node.flag("right", False) or node.text("side", "left") == "right"
    wide = node.reshaped(x, (*x.shape, 1))
    is_before = node.onnx("LessOrEqual" if is_right else "Less", line, wide)
    ones = node.cast(is_before, DType.INT32)
    counted = node.onnx("ReduceSum", ones, node.ints(len(x.shape)), keepdims=0)
    return node.cast(counted, node.result_dtype)


_ROUNDINGS: Mapping[str, Callable[[float], float]] = MappingProxyType(
    {
        "linear": float, "lower": math.floor, "higher": math.ceil, "nearest": round,
        "midpoint": lambda at: (math.floor(at) + math.ceil(at)) / 2,
    }
)  # fmt: skip
"""The place between two ranks that is taken, by the argument interpolation."""

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(top_k, "self k dim largest sorted", "topk"),
    *readers(sort, "self dim descending stable", "sort", "sort.stable"),
    *readers(order, "self dim descending stable", "argsort", "argsort.stable"),
    *readers(median, "self dim keepdim", "median.dim"),
    *readers(median_of_all, "self", "median"),
    *readers(quantile, "self q dim keepdim interpolation", "quantile.scalar"),
    *readers(kth_value, "self k dim keepdim", "kthvalue"),
    *readers(
        places_in_order,
        "sorted_sequence boundaries self out_int32 right side sorter",
        "searchsorted.Tensor",
        "searchsorted.Scalar",
        "bucketize.Tensor",
        "bucketize.Scalar",
    ),
)
