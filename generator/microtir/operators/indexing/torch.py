"""Read PyTorch's operators that take elements by index."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_parts import transposed
from microtir.operators.common.shapes import broadcast_of
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def index_select(node: TorchNode) -> Tensor:
    """Read index_select: the places of an axis that a vector names."""
    x, places = node.tensor("self"), node.tensor("index")
    line = x if x.shape else node.reshaped(x, (1,))
    axis = node.axis(node.integer("dim"), len(line.shape))
    rows = node.reshaped(places, (places.type.elements,))
    result = node.onnx("Gather", line, rows, axis=axis)
    return result if x.shape else node.reshaped(result, ())


def embedding(node: TorchNode) -> Tensor:
    """Read embedding: a row of the weights for each index."""
    return node.onnx("Gather", node.tensor("weight"), node.tensor("indices"), axis=0)


_MODES = ("ReduceSum", "ReduceMean", "ReduceMax")


def embedding_bag(node: TorchNode) -> tuple[Tensor | None, ...]:
    """Read embedding_bag: the sum, mean or largest of the rows of each bag.

    Raises:
        UnsupportedModelError: where bags begin follows from the inputs.
    """
    weights, indices = node.tensor("weight", 2), node.tensor("indices")
    starts, factors = node.tensor("offsets").data, node.optional_tensor("per_sample_weights")
    if starts is None or node.integer("padding_idx", -1) >= 0:
        raise node.unsupported(
            "its bags begin at computed offsets, or padding_idx leaves out an index",
            "constant offsets",
            "give it indices of shape (bags, size), and no padding_idx",
        )  # fmt: skip
    rows = node.onnx("Gather", weights, indices, axis=0)
    if factors is not None:
        rows = node.onnx("Mul", rows, node.reshaped(factors, (*factors.shape, 1)))
    ends = [*starts.reshape(-1).tolist()[1:], indices.type.elements]
    if node.flag("include_last_offset", False):
        ends.pop()
    mode = node.integer("mode", 0)
    if not 0 <= mode < len(_MODES):
        raise node.malformed(f"mode {mode}", f"0 to {len(_MODES) - 1}")
    bags = []
    for begin, end in zip(starts.reshape(-1).tolist(), ends, strict=False):
        if end <= begin:
            bags.append(node.constant(np.zeros((1, weights.shape[1]), np.float32)))
            continue
        bag = node.onnx("Slice", rows, node.ints(begin), node.ints(end), node.ints(0))
        bags.append(node.onnx(_MODES[mode], bag, node.ints(0), keepdims=1))
    return node.onnx("Concat", *bags, axis=0), None, None, None


def gather(node: TorchNode) -> Tensor:
    """Read gather: of each line along an axis the elements that indices name."""
    x, places = node.tensor("self"), node.tensor("index")
    if not x.shape:
        return node.onnx("Expand", x, node.ints(*places.shape)) if places.shape else x
    axis = node.axis(node.integer("dim"), len(x.shape))
    return node.onnx("GatherElements", x, places, axis=axis)


def take(node: TorchNode) -> Tensor:
    """Read take: elements by their places in all of a tensor."""
    x = node.tensor("self")
    flat = node.reshaped(x, (x.type.elements,))
    return node.onnx("Gather", flat, node.tensor("index"), axis=0)


def take_along(node: TorchNode) -> Tensor:
    """Read take_along_dim: gather, of tensors that broadcast but for the axis."""
    x, places = node.tensor("self"), node.tensor("indices")
    if not node.has("dim"):
        return take_flat(node, x, places)
    axis = node.axis(node.integer("dim"), len(x.shape))
    common = list(broadcast_of(_without(x.shape, axis), _without(places.shape, axis)))
    both = []
    for one in (x, places):
        shape = [*common[:axis], one.shape[axis], *common[axis:]]
        both.append(node.onnx("Expand", one, node.ints(*shape)))
    return node.onnx("GatherElements", *both, axis=axis)


def take_flat(node: TorchNode, x: Tensor, places: Tensor) -> Tensor:
    """Return elements by their places in all of a tensor, in a line."""
    flat = node.reshaped(x, (x.type.elements,))
    return node.onnx("Gather", flat, node.reshaped(places, (places.type.elements,)), axis=0)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def named_places(node: TorchNode, rank: int) -> tuple[Tensor | None, ...]:
    """Return the tensors that index the axes of `self`; None of an axis that is taken as a whole.

    Raises:
        UnsupportedModelError: a mask selects, of which the data say how much.
    """
    value = node.arguments.get("indices")
    items = value if isinstance(value, tuple) else ()
    places: list[Tensor | None] = []
    for item in items:
        if item is not None and not isinstance(item, Tensor):
            raise node.malformed("an index is not a tensor")
        if item is not None and item.dtype in (DType.BOOL, DType.UINT8):
            places += _of_mask(node, item)
        else:
            places.append(item)
    if not places or len(places) > rank:
        raise node.malformed(f"{len(places)} indices for {rank} axes")
    return (*places, *(None,) * (rank - len(places)))


def _of_mask(node: TorchNode, mask: Tensor) -> list[Tensor | None]:
    """Return the places where a known mask holds, one tensor for each of its axes."""
    if mask.data is None:
        raise node.unsupported(
            "it selects elements by a computed mask", "constant masks, or torch.where",
            "use torch.where(mask, x, other), whose result has a known shape",
        )  # fmt: skip
    return [node.constant(places.astype(np.int64)) for places in np.nonzero(mask.data)]


def index(node: TorchNode) -> Tensor:
    """Read index: elements by tensors of places along some axes, which broadcast.

    Their common shape stands where the first of these axes was; in front, if others lie between.
    """
    x = node.tensor("self")
    places = named_places(node, len(x.shape))
    axes = [axis for axis, place in enumerate(places) if place is not None]
    if len(axes) == 1:
        (axis,) = axes
        return node.onnx("Gather", x, places[axis], axis=axis)
    table, flat_axes = _flat_places(node, x, places)
    rest = [axis for axis in range(len(x.shape)) if axis not in flat_axes]
    moved = transposed(node.first, x, (*flat_axes, *rest))
    count = math.prod(x.shape[axis] for axis in flat_axes)
    rows = node.reshaped(moved, (count, *(x.shape[axis] for axis in rest)))
    result = node.onnx("Gather", rows, table, axis=0)
    is_block = axes == list(range(axes[0], axes[-1] + 1))
    if not is_block or not axes[0]:
        return result
    rank, lead = len(result.shape), len(table.shape)
    order = (*range(lead, lead + axes[0]), *range(lead), *range(lead + axes[0], rank))
    return transposed(node.first, result, order)


def _flat_places(
    node: TorchNode, x: Tensor, places: tuple[Tensor | None, ...]
) -> tuple[Tensor, list[int]]:
    """Return places along several axes as those along all of them in a line, and these axes."""
    axes = [axis for axis, place in enumerate(places) if place is not None]
    total: Tensor | None = None
    for axis in axes:
        place = places[axis]
        assert place is not None
        extent = node.constant(np.array(x.shape[axis], np.int64))
        own = node.onnx("Mod", node.cast(place, DType.INT64), extent)  # those below 0, too
        total = own if total is None else node.onnx("Add", node.onnx("Mul", total, extent), own)
    assert total is not None
    return total, axes


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(index_select, "self dim index", "index_select"),
    *readers(
        embedding, "weight indices padding_idx scale_grad_by_freq sparse", "embedding"
    ),
    *readers(
        embedding_bag,
        "weight indices offsets scale_grad_by_freq mode sparse per_sample_weights"
        " include_last_offset padding_idx",
        "embedding_bag", "embedding_bag.padding_idx", "_embedding_bag",
        "_embedding_bag_forward_only",
    ),
    *readers(gather, "self dim index sparse_grad", "gather"),
    *readers(take, "self index", "take"),
    *readers(take_along, "self indices dim", "take_along_dim"),
    *readers(index, "self indices", "index.Tensor", "_unsafe_index.Tensor"),
)  # fmt: skip
