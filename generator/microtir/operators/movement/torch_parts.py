"""Read PyTorch's parts of tensors, and tensors of parts."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_parts import along, backwards
from microtir.operators.common.torch_operands import Alias, TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.common.torch_types import as_type

_END = (1 << 63) - 1


def slice_range(node: TorchNode, extent: int) -> range:
    """Return the places that the arguments start, end and step take of an axis."""
    step = node.integer("step", 1)
    if step < 1:
        raise node.malformed(f"a step of {step}", "from 1 on")
    start, end = node.optional_integer("start"), node.optional_integer("end")
    return range(extent)[slice(start, _END if end is None else end, step)]


def slice_(node: TorchNode) -> Tensor:
    """Read slice: the places of an axis from a start to an end, which are cut to what there is."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim", 0), len(x.shape))
    taken = slice_range(node, node.extent(x, axis))
    return along(node.first, x, axis, taken.start, len(taken), taken.step)


def select(node: TorchNode) -> Tensor:
    """Read select: one place of an axis, without the axis."""
    x, index = node.tensor("self"), node.integer("index")
    axis = node.axis(node.integer("dim"), len(x.shape))
    at = index + node.extent(x, axis) if index < 0 else index
    if not 0 <= at < node.extent(x, axis):
        raise node.malformed(f"index {index} for an axis of {x.shape[axis]} elements")
    part = along(node.first, x, axis, at, 1)
    return node.reshaped(part, (*x.shape[:axis], *x.shape[axis + 1 :]))


def narrow(node: TorchNode) -> Tensor:
    """Read narrow: some places of an axis from a start on."""
    x, start, length = node.tensor("self"), node.integer("start"), node.integer("length")
    axis = node.axis(node.integer("dim"), len(x.shape))
    start += node.extent(x, axis) if start < 0 else 0
    if min(start, length) < 0 or start + length > node.extent(x, axis):
        raise node.malformed(
            f"indices {start} to {start + length} for an axis of {x.shape[axis]} elements"
        )
    return along(node.first, x, axis, start, length)


def _split(node: TorchNode, x: Tensor, axis: int, sizes: list[int]) -> tuple[Tensor, ...]:
    if min(sizes, default=0) < 0 or sum(sizes) != node.extent(x, axis):
        raise node.malformed(f"parts of {sizes} elements for an axis of {x.shape[axis]}")
    starts = np.cumsum([0, *sizes]).tolist()
    pairs = zip(starts, sizes, strict=False)
    return tuple(along(node.first, x, axis, start, size) for start, size in pairs)


def split(node: TorchNode) -> tuple[Tensor, ...]:
    """Read split and split_with_sizes: parts of one size, of which the last may be smaller."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim", 0), len(x.shape))
    names = ("split_size", "split_sizes", "sizes")
    name = next((n for n in names if n in node.arguments), names[0])
    if not isinstance(node.arguments.get(name), int):
        return _split(node, x, axis, list(node.integers(name)))
    return _split(node, x, axis, _even(node, node.extent(x, axis), node.integer(name)))


def _even(node: TorchNode, extent: int, size: int) -> list[int]:
    """Return the extents of parts of one size; without elements there is one."""
    if size < 1 and extent:
        raise node.malformed(f"parts of {size}", "from 1 on")
    return [min(size, extent - at) for at in range(0, extent, max(size, 1))] or [0]


def chunk(node: TorchNode) -> tuple[Tensor, ...]:
    """Read chunk: at most so many parts, all as large as the first one but for the last."""
    x, count = node.tensor("self"), node.integer("chunks")
    axis = node.axis(node.integer("dim", 0), len(x.shape))
    if count < 1:
        raise node.malformed(f"{count} parts", "from 1 on")
    return _split(
        node, x, axis, _even(node, node.extent(x, axis), -(-node.extent(x, axis) // count))
    )


def tensor_split(node: TorchNode) -> tuple[Tensor, ...]:
    """Read tensor_split: so many parts, the first ones larger by one, or parts between places."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim", 0), len(x.shape))
    extent = node.extent(x, axis)
    if node.has("indices"):
        bounds = [range(extent)[:at].stop for at in node.integers("indices")]
        sizes = np.diff([0, *bounds, extent]).tolist()
    else:
        count = node.integer("sections")
        sizes = [extent // count + (n < extent % count) for n in range(count)] if count > 0 else []
    return _split(node, x, axis, sizes)


def unbind(node: TorchNode) -> tuple[Tensor, ...]:
    """Read unbind: each place of an axis, without the axis."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim", 0), len(x.shape))
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    parts = _split(node, x, axis, [1] * node.extent(x, axis))
    return tuple(node.reshaped(part, shape) for part in parts)


def concatenate(node: TorchNode) -> Tensor:
    """Read cat, of tensors of several types, too; empty vectors count for nothing."""
    dtype = node.result_dtype
    parts = [as_type(node, x, dtype) for x in node.tensors("tensors", 1)]
    parts = [x for x in parts if x.shape != (0,)] or parts[:1]
    axis = node.axis(node.integer("dim", 0), len(parts[0].shape))
    return node.onnx("Concat", *parts, axis=axis)


def stack(node: TorchNode) -> Tensor:
    """Read stack: tensors beside each other along a new axis."""
    dtype, parts = node.result_dtype, node.tensors("tensors", 1)
    axis = node.axis(node.integer("dim", 0), len(parts[0].shape) + 1)
    wide = [
        node.reshaped(as_type(node, x, dtype), (*x.shape[:axis], 1, *x.shape[axis:])) for x in parts
    ]
    return node.onnx("Concat", *wide, axis=axis)


def flip(node: TorchNode) -> Tensor:
    """Read flip: some axes backwards."""
    x = node.tensor("self")
    for axis in node.integers("dims", ()):
        if x.type.elements:
            x = backwards(node.first, x, node.first.axis(axis, len(x.shape)))
    return x


def roll(node: TorchNode) -> Tensor:
    """Read roll: what leaves an axis at its end comes in again in front."""
    x, shifts = node.tensor("self"), node.integers("shifts")
    shape, axes = x.shape, node.integers("dims", ())
    if not axes:
        x, axes = node.reshaped(x, (x.type.elements,)), (0,)
    if len(axes) != len(shifts):
        raise node.malformed(
            f"{len(shifts)} shifts for {len(axes)} axes", "one shift for each axis"
        )
    for stated, shift in zip(axes, shifts, strict=True):
        axis = node.axis(stated, len(x.shape))
        extent = x.shape[axis] if x.shape else 0
        if not extent or not shift % extent:
            continue
        cut = extent - shift % extent
        parts = _split(node, x, axis, [cut, extent - cut])
        x = node.onnx("Concat", parts[1], parts[0], axis=axis)
    return node.reshaped(x, shape)


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(slice_, "self dim start end step", "slice.Tensor", alias=Alias.VIEW),
    *readers(slice_, "self dim start end step", "slice_copy.Tensor"),
    *readers(select, "self dim index", "select.int", alias=Alias.VIEW),
    *readers(select, "self dim index", "select_copy.int"),
    *readers(narrow, "self dim start length", "narrow", alias=Alias.VIEW),
    *readers(
        split, "self split_size split_sizes sizes dim",
        "split.Tensor", "split.sizes", "split_with_sizes", "unsafe_split.Tensor",
        alias=Alias.VIEW,
    ),
    *readers(
        split, "self split_size split_sizes dim", "split_with_sizes_copy", "split_copy.Tensor"
    ),
    *readers(chunk, "self chunks dim", "chunk", "unsafe_chunk", alias=Alias.VIEW),
    *readers(
        tensor_split, "self sections indices dim",
        "tensor_split.sections", "tensor_split.indices", alias=Alias.VIEW,
    ),
    *readers(unbind, "self dim", "unbind.int", alias=Alias.VIEW),
    *readers(unbind, "self dim", "unbind_copy.int"),
    *readers(concatenate, "tensors dim", "cat", "concat", "concatenate"),
    *readers(stack, "tensors dim", "stack"),
    *readers(flip, "self dims", "flip"),
    *readers(roll, "self shifts dims", "roll"),
)  # fmt: skip
