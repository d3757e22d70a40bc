"""Read PyTorch's changes of shape, which are views wherever they can be."""

from __future__ import annotations

import math

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import Alias, TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def flatten(node: TorchNode) -> Tensor:
    """Read flatten: some neighbouring axes become one."""
    x = node.tensor("self")
    rank = len(x.shape)
    if not rank:
        return node.reshaped(x, (1,))
    first = node.axis(node.integer("start_dim", 0), rank)
    last = node.axis(node.integer("end_dim", -1), rank)
    if last < first:
        raise node.malformed(f"axes {first} to {last}", "start_dim before end_dim, or equal")
    inner = math.prod(x.shape[first : last + 1])
    return node.reshaped(x, (*x.shape[:first], inner, *x.shape[last + 1 :]))


def unflatten(node: TorchNode) -> Tensor:
    """Read unflatten: one axis becomes several."""
    x, sizes = node.tensor("self"), node.integers("sizes")
    axis = node.axis(node.integer("dim"), len(x.shape))
    return node.reshaped(x, (*x.shape[:axis], *sizes, *x.shape[axis + 1 :]))


def same(node: TorchNode) -> Tensor:
    """Read what changes nothing here: copies, layouts, and dropout at inference."""
    return node.tensor("input" if node.has("input") else "self")


def dropout(node: TorchNode) -> Tensor:
    """Read dropout at inference, where nothing is dropped."""
    if node.flag("train", False) and node.number("p", 0.5):
        raise node.unsupported(
            "it is in training mode", "inference", "call model.eval() before the export"
        )
    return same(node)


def view(node: TorchNode) -> Tensor:
    """Read view and reshape."""
    return node.reshaped(
        node.tensor("self"), node.integers("size" if node.has("size") else "shape")
    )


def view_as(node: TorchNode) -> Tensor:
    """Read view_as and reshape_as."""
    return node.reshaped(node.tensor("self"), node.tensor("other").shape)


def permute(node: TorchNode) -> Tensor:
    """Read permute."""
    x = node.tensor("self")
    rank = len(x.shape)
    order = tuple(node.axis(axis, rank) for axis in node.integers("dims", ()))
    return node.onnx("Transpose", x, perm=order) if rank else x


def transpose(node: TorchNode) -> Tensor:
    """Read transpose: two axes change places; t does so with those of a matrix."""
    x = node.tensor("self")
    rank = len(x.shape)
    order = list(range(rank))
    if rank < 2:
        return x
    names = ("axis0", "axis1") if node.has("axis0") else ("dim0", "dim1")
    a, b = (node.axis(node.integer(name, place), rank) for place, name in enumerate(names))
    order[a], order[b] = order[b], order[a]
    return node.onnx("Transpose", x, perm=tuple(order))


def turned(node: TorchNode) -> Tensor:
    """Read numpy_T, mT and adjoint: all axes backwards, or the last two."""
    x = node.tensor("self")
    order = list(range(len(x.shape)))
    if "numpy_T" in node.target:
        order.reverse()
    else:
        order[-2:] = order[:-3:-1]
    return node.onnx("Transpose", x, perm=tuple(order)) if order else x


def move_axes(node: TorchNode) -> Tensor:
    """Read movedim: some axes at new places, the others in their order."""
    x = node.tensor("self")
    rank = len(x.shape)
    source, target = (
        [node.axis(axis, rank) for axis in node.integers(name)]
        for name in ("source", "destination")
    )
    if len(source) != len(target) or len({*source}) < len(source) or len({*target}) < len(target):
        raise node.malformed(
            f"axes {source} to {target}", "as many destinations as sources, each axis once"
        )
    rest = [axis for axis in range(rank) if axis not in source]
    moved = dict(zip(target, source, strict=True))
    order = tuple(moved[axis] if axis in moved else rest.pop(0) for axis in range(rank))
    return node.onnx("Transpose", x, perm=order)


def squeeze(node: TorchNode) -> Tensor:
    """Read squeeze: without axes of extent 1, all of them or those that are named."""
    x = node.tensor("self")
    rank = len(x.shape)
    stated = node.integers("dim", ()) if node.has("dim") else range(rank)
    axes = {node.axis(axis, rank) for axis in stated}
    shape = (extent for axis, extent in enumerate(x.shape) if extent != 1 or axis not in axes)
    return node.reshaped(x, tuple(shape))


def unsqueeze(node: TorchNode) -> Tensor:
    """Read unsqueeze: a new axis of extent 1."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim"), len(x.shape) + 1)
    return node.reshaped(x, (*x.shape[:axis], 1, *x.shape[axis:]))


def diagonal(node: TorchNode) -> Tensor:
    """Read diagonal: the elements whose places along two axes differ by an offset, at the end."""
    x = node.tensor("self")
    rank = len(x.shape)
    first, second = (node.axis(node.integer(n, d), rank) for n, d in (("dim1", 0), ("dim2", 1)))
    rest = [axis for axis in range(rank) if axis not in (first, second)]
    moved = node.onnx("Transpose", x, perm=(*rest, first, second))
    rows, columns = moved.shape[-2:]
    offset = node.integer("offset", 0)
    count = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    start = max(-offset, 0) * columns + max(offset, 0)
    places = node.constant(start + np.arange(count, dtype=np.int64) * (columns + 1))
    flat = node.reshaped(moved, (*moved.shape[:-2], rows * columns))
    return node.onnx("Gather", flat, places, axis=len(rest))


def strided(node: TorchNode) -> Tensor:
    """Read as_strided of a tensor that lies in rows: elements at steps through all of it."""
    x, type_ = node.tensor("self"), node.types.get("self")
    sizes, steps = node.integers("size"), node.integers("stride")
    if len(sizes) != len(steps) or min((*sizes, *steps), default=0) < 0:
        raise node.malformed(
            f"sizes {sizes} and strides {steps}", "a stride for each size, all 0 or more"
        )
    reach = sum((size - 1) * step for size, step in zip(sizes, steps, strict=True))
    is_in_rows = type_ is not None and type_.is_dense and not type_.is_complex
    if not is_in_rows or node.has("storage_offset") or reach >= x.type.elements:
        raise node.unsupported(
            "its strides depend on the memory layout of its input",
            "views of a contiguous tensor",
            "write the view with reshape, permute, narrow or unfold",
        )
    node.first.check_room(*sizes)
    places = np.zeros(sizes, np.int64)
    for axis, (size, step) in enumerate(zip(sizes, steps, strict=True)):
        places += step * np.arange(size).reshape(-1, *(1,) * (len(sizes) - axis - 1))
    flat = places.reshape(-1)
    if np.array_equal(flat, np.arange(x.type.elements)):
        return node.reshaped(x, sizes)
    elements = node.reshaped(x, (x.type.elements,))
    return node.onnx("Gather", elements, node.constant(places), axis=0)


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(flatten, "self start_dim end_dim", "flatten.using_ints", alias=Alias.MAYBE),
    *readers(unflatten, "self dim sizes", "unflatten.int", alias=Alias.VIEW),
    *readers(
        same, "self memory_format",
        "contiguous", "positive", "resolve_conj", "resolve_neg", "lift", alias=Alias.MAYBE,
    ),
    *readers(same, "self", "alias", "detach", "lift_fresh", alias=Alias.VIEW),
    *readers(
        same, "self memory_format",
        "clone", "lift_fresh_copy", "alias_copy", "detach_copy",
    ),
    *readers(
        dropout, "input self p train",
        "dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout", alias=Alias.VIEW,
    ),
    *readers(view, "self size", "view", "_unsafe_view", alias=Alias.VIEW),
    *readers(view, "self size", "view_copy"),
    *readers(strided, "self size stride storage_offset", "as_strided", alias=Alias.VIEW),
    *readers(view, "self shape", "reshape", alias=Alias.MAYBE),
    *readers(view_as, "self other", "view_as", "reshape_as", alias=Alias.MAYBE),
    *readers(permute, "self dims", "permute", alias=Alias.VIEW),
    *readers(permute, "self dims", "permute_copy"),
    *readers(transpose, "self dim0 dim1", "transpose.int", "t", "swapdims", alias=Alias.VIEW),
    *readers(transpose, "self axis0 axis1", "swapaxes", alias=Alias.VIEW),
    *readers(turned, "self", "numpy_T", "mT", "adjoint", alias=Alias.VIEW),
    *readers(
        move_axes, "self source destination",
        "movedim.int", "movedim.intlist", "moveaxis.int", "moveaxis.intlist", alias=Alias.VIEW,
    ),
    *readers(
        squeeze, "self dim", "squeeze", "squeeze.dim", "squeeze.dims", alias=Alias.VIEW
    ),
    *readers(squeeze, "self dim", "squeeze_copy.dims", "squeeze_copy.dim"),
    *readers(unsqueeze, "self dim", "unsqueeze", alias=Alias.VIEW),
    *readers(unsqueeze, "self dim", "unsqueeze_copy"),
    *readers(diagonal, "self offset dim1 dim2", "diagonal", alias=Alias.VIEW),
    *readers(diagonal, "self offset dim1 dim2", "diagonal_copy"),
)  # fmt: skip
