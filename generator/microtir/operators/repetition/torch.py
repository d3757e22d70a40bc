"""Read PyTorch's repetitions of elements."""

from __future__ import annotations

import math

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.shapes import Shape, broadcast_of
from microtir.operators.common.torch_operands import Alias, TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def expand(node: TorchNode) -> Tensor:
    """Read expand: axes of extent 1 become longer, and -1 leaves one as it is."""
    x, sizes = node.tensor("self"), node.integers("size", ())
    rest = len(sizes) - len(x.shape)
    if rest < 0 or -1 in sizes[:rest]:
        raise node.malformed(f"an input of shape {x.shape} for the shape {sizes}")
    own = (1,) * rest + x.shape
    shape = tuple(a if b == -1 else b for a, b in zip(own, sizes, strict=True))
    return node.onnx("Expand", x, node.ints(*shape)) if shape else x


def expand_as(node: TorchNode) -> Tensor:
    """Read expand_as."""
    shape = node.tensor("other").shape
    return node.onnx("Expand", node.tensor("self"), node.ints(*shape))


def repeat(node: TorchNode) -> Tensor:
    """Read repeat and tile: the whole tensor several times along each axis."""
    x, counts = node.tensor("self"), node.integers("repeats" if node.has("repeats") else "dims", ())
    rank = max(len(x.shape), len(counts))
    x = node.reshaped(x, (1,) * (rank - len(x.shape)) + x.shape)
    counts = (1,) * (rank - len(counts)) + counts
    if 0 in counts:
        shape = tuple(a * b for a, b in zip(x.shape, counts, strict=True))
        return node.constant(np.zeros(shape, x.dtype.value))
    return node.onnx("Tile", x, node.ints(*counts)) if rank else x


def repeat_interleave(node: TorchNode) -> Tensor:
    """Read repeat_interleave: each element several times, of all or along an axis."""
    x, stated = node.tensor("self"), node.arguments.get("repeats")
    counts = stated.data if isinstance(stated, Tensor) else np.array(node.integer("repeats"))
    if counts is None:
        raise node.unsupported(
            "the number of repetitions is computed from the inputs", "constants",
            "use a constant number of repetitions",
        )  # fmt: skip
    axis = node.optional_integer("dim")
    if axis is None:
        x, axis = node.reshaped(x, (x.type.elements,)), 0
    axis = node.axis(axis, len(x.shape))
    places = np.repeat(np.arange(node.extent(x, axis), dtype=np.int64), counts.reshape(-1))
    return node.onnx("Gather", x, node.constant(places), axis=axis)


def meshgrid(node: TorchNode) -> tuple[Tensor, ...]:
    """Read meshgrid: each vector along an axis of its own, and repeated along the others."""
    vectors = [node.reshaped(x, (x.type.elements,)) for x in node.tensors("tensors")]
    order = list(range(len(vectors)))
    if node.text("indexing", "ij") == "xy" and len(order) > 1:
        order[:2] = (1, 0)
    shape = [0] * len(order)
    for axis, x in zip(order, vectors, strict=True):
        shape[axis] = x.shape[0]
    return tuple(
        node.onnx(
            "Expand", node.reshaped(x, tuple(-1 if n == axis else 1 for n in range(len(order)))),
            node.ints(*shape),
        )
        for axis, x in zip(order, vectors, strict=True)
    )  # fmt: skip


def broadcast_tensors(node: TorchNode) -> tuple[Tensor, ...]:
    """Read broadcast_tensors: all in the shape that they broadcast to."""
    tensors = node.tensors("tensors")
    shape: Shape = ()
    for x in tensors:
        shape = broadcast_of(shape, x.shape)
    node.first.check_room(math.prod(shape))
    return tuple(node.onnx("Expand", x, node.ints(*shape)) if shape else x for x in tensors)


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(expand, "self size implicit", "expand", "broadcast_to", alias=Alias.VIEW),
    *readers(expand, "self size implicit", "expand_copy"),
    *readers(expand_as, "self other", "expand_as", alias=Alias.VIEW),
    *readers(repeat, "self repeats dims", "repeat", "tile"),
    *readers(
        repeat_interleave, "self repeats dim output_size",
        "repeat_interleave.self_int", "repeat_interleave.self_Tensor",
    ),
    *readers(meshgrid, "tensors indexing", "meshgrid", "meshgrid.indexing", alias=Alias.VIEW),
    *readers(broadcast_tensors, "tensors", "broadcast_tensors", alias=Alias.VIEW),
)  # fmt: skip
