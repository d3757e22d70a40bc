"""Read PyTorch's operators that put elements into a tensor, which are other tensors here."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Tensor
from microtir.operators.common.shapes import Shape, broadcast_of
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.common.torch_types import as_type, operand
from microtir.operators.indexing.torch import named_places
from microtir.operators.movement.torch_parts import slice_range

_REDUCTIONS = {
    "sum": "add",
    "add": "add",
    "prod": "mul",
    "multiply": "mul",
    "amax": "max",
    "amin": "min",
}


def scatter(node: TorchNode) -> Tensor:
    """Read scatter in all forms: gather the other way around."""
    x, places = node.tensor("self"), node.tensor("index")
    axis = node.axis(node.integer("dim"), len(x.shape))
    name = "src" if node.has("src") else "value"
    values = as_type(node, operand(node, name), x.dtype)
    if not values.shape and places.shape:
        values = node.onnx("Expand", values, node.ints(*places.shape))
    ends = [node.ints(*ends) for ends in ((0,) * len(x.shape), places.shape)]
    if values.shape != places.shape:  # what lies beyond the indices is not used
        values = node.onnx("Slice", values, *ends)
    return node.onnx("ScatterElements", x, places, values, axis=axis, reduction=_reduction(node))


def _reduction(node: TorchNode) -> str:
    """Return how values meet what is there, as ONNX calls it."""
    if "scatter_add" in node.target:
        return "add"
    stated = node.text("reduce", "")
    if not stated:
        return "none"
    if stated not in _REDUCTIONS or not node.flag("include_self", True):
        raise node.unsupported(
            f"it reduces with {stated!r}, include_self={node.flag('include_self', True)}",
            f"{', '.join(_REDUCTIONS)}, with include_self=True",
            "use one of these reductions",
        )
    return _REDUCTIONS[stated]


def index_put(node: TorchNode) -> Tensor:
    """Read index_put: values at places along some axes, added where `accumulate` says so.

    The axes are moved to the front, values put there, and the axes moved back.
    """
    x, values = node.tensor("self"), node.cast(node.tensor("values"), node.tensor("self").dtype)
    stated = node.arguments.get("indices")
    if isinstance(stated, tuple) and len(stated) == 1 and _is_mask(stated[0]):
        return _masked(node, x, values)
    places = named_places(node, len(x.shape))
    axes = [axis for axis, place in enumerate(places) if place is not None]
    tensors = [node.cast(place, DType.INT64) for place in places if place is not None]
    common: Shape = ()
    for place in tensors:
        common = broadcast_of(common, place.shape)
    at = [node.reshaped(_expanded(node, place, common), (*common, 1)) for place in tensors]
    order = (*axes, *(axis for axis in range(len(x.shape)) if axis not in axes))
    moved = node.onnx("Transpose", x, perm=order)
    spread = _in_front(node, values, x, axes, common)
    result = node.onnx(
        "ScatterND", moved, node.onnx("Concat", *at, axis=-1), spread,
        reduction="add" if node.flag("accumulate", False) else "none",
    )  # fmt: skip
    return node.onnx("Transpose", result, perm=tuple(np.argsort(order).tolist()))


def _in_front(node: TorchNode, values: Tensor, x: Tensor, axes: list[int], common: Shape) -> Tensor:
    """Return values as they broadcast, with the axes of the places first.

    These stand where the first axis that is indexed is, if no other lies between those.
    """
    rest = [extent for axis, extent in enumerate(x.shape) if axis not in axes]
    is_block = axes == list(range(axes[0], axes[-1] + 1))
    lead = axes[0] if is_block else 0
    spread = _expanded(node, values, (*rest[:lead], *common, *rest[lead:]))
    depth, rank = len(common), len(rest) + len(common)
    order = (*range(lead, lead + depth), *range(lead), *range(lead + depth, rank))
    return node.onnx("Transpose", spread, perm=order) if rank else spread


def _is_mask(value: object) -> bool:
    return isinstance(value, Tensor) and value.dtype is DType.BOOL and value.data is None


def _masked(node: TorchNode, x: Tensor, values: Tensor) -> Tensor:
    """Return a number where a mask that is computed holds."""
    (mask,) = node.tensors("indices")
    if values.type.elements != 1 or node.flag("accumulate", False):
        raise node.unsupported(
            "a computed mask selects the elements that it writes to", "one number, or torch.where",
            "use torch.where(mask, values, x) with values of x's shape",
        )  # fmt: skip
    rest = len(x.shape) - len(mask.shape)
    wide = node.reshaped(mask, (*mask.shape, *(1,) * rest))
    return node.onnx("Where", wide, node.reshaped(values, ()), x)


def _expanded(node: TorchNode, x: Tensor, shape: Shape) -> Tensor:
    return node.onnx("Expand", x, node.ints(*shape)) if shape else node.reshaped(x, ())


def _along(node: TorchNode) -> Tensor:
    """Read index_copy, index_add and index_fill: rows along an axis."""
    x, places = node.tensor("self"), node.tensor("index")
    axis = node.axis(node.integer("dim"), len(x.shape))
    whole = tuple(places.type.elements if n == axis else e for n, e in enumerate(x.shape))
    values = as_type(node, operand(node, "source" if node.has("source") else "value"), x.dtype)
    spread = node.onnx("Expand", values, node.ints(*whole))
    alpha = node.number("alpha", 1)
    if alpha != 1:
        spread = node.onnx("Mul", spread, as_type(node, alpha, x.dtype))
    line = tuple(places.type.elements if n == axis else 1 for n in range(len(x.shape)))
    at = node.onnx("Expand", node.reshaped(node.cast(places, DType.INT64), line), node.ints(*whole))
    kind = "add" if "index_add" in node.target else "none"
    return node.onnx("ScatterElements", x, at, spread, axis=axis, reduction=kind)


def _replaced(node: TorchNode, x: Tensor, axis: int, places: Array, values: Tensor) -> Tensor:
    """Return a tensor with other values at known places of an axis."""
    count = node.extent(x, axis)
    order = np.arange(count)
    order[places] = count + np.arange(len(places))
    both = node.onnx("Concat", x, node.cast(values, x.dtype), axis=axis)
    return node.onnx("Gather", both, node.constant(order.astype(np.int64)), axis=axis)


def slice_scatter(node: TorchNode) -> Tensor:
    """Read slice_scatter: a slice of an axis is another tensor."""
    x, values = node.tensor("self"), node.tensor("src")
    axis = node.axis(node.integer("dim", 0), len(x.shape))
    places = np.array(slice_range(node, node.extent(x, axis)), np.int64)
    shape = tuple(len(places) if n == axis else e for n, e in enumerate(x.shape))
    return _replaced(node, x, axis, places, _expanded(node, values, shape))


def select_scatter(node: TorchNode) -> Tensor:
    """Read select_scatter: one place of an axis is another tensor."""
    x, values, at = node.tensor("self"), node.tensor("src"), node.integer("index")
    axis = node.axis(node.integer("dim"), len(x.shape))
    if not -node.extent(x, axis) <= at < node.extent(x, axis):
        raise node.malformed(f"index {at} for an axis of {x.shape[axis]} elements")
    shape = tuple(1 if n == axis else e for n, e in enumerate(x.shape))
    wide = node.reshaped(values, shape)
    return _replaced(node, x, axis, np.array([at % node.extent(x, axis)]), wide)


def masked_scatter(node: TorchNode) -> Tensor:
    """Read masked_scatter: the next element of another tensor wherever a mask holds."""
    x, source = node.tensor("self"), node.tensor("source")
    mask = _expanded(node, node.tensor("mask"), x.shape)
    flat = node.reshaped(node.cast(mask, DType.INT64), (x.type.elements,))
    number = node.onnx("Sub", node.onnx("CumSum", flat, node.ints(0)), node.ints(1))
    last = node.ints(source.type.elements - 1)
    number = node.onnx("Min", node.onnx("Max", number, node.ints(0)), last)
    line = node.reshaped(source, (math.prod(source.shape),))
    taken = node.reshaped(node.onnx("Gather", line, number, axis=0), x.shape)
    return node.onnx("Where", mask, taken, x)


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(
        scatter, "self dim index src value reduce include_self",
        "scatter.src", "scatter.value", "scatter.reduce", "scatter.value_reduce", "scatter_add",
        "scatter_reduce.two",
    ),
    *readers(
        index_put, "self indices values accumulate unsafe",
        "index_put", "_unsafe_index_put", "_index_put_impl",
    ),
    *readers(
        _along, "self dim index source value alpha",
        "index_copy", "index_add", "index_fill.int_Scalar", "index_fill.int_Tensor",
    ),
    *readers(slice_scatter, "self src dim start end step", "slice_scatter"),
    *readers(select_scatter, "self src dim index", "select_scatter"),
    *readers(masked_scatter, "self mask source", "masked_scatter"),
)  # fmt: skip
