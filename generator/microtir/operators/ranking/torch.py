"""Read PyTorch's operators that put values in order."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_parts import along
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


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
    values, places = _ranked(node, line, axis, line.shape[axis], is_largest=is_largest)
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
    return _at_rank(node, x, axis, (x.shape[axis] - 1) // 2)


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


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(top_k, "self k dim largest sorted", "topk"),
    *readers(sort, "self dim descending stable", "sort", "sort.stable"),
    *readers(order, "self dim descending stable", "argsort", "argsort.stable"),
    *readers(median, "self dim keepdim", "median.dim"),
    *readers(median_of_all, "self", "median"),
    *readers(kth_value, "self k dim keepdim", "kthvalue"),
)
