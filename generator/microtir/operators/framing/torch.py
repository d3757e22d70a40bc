"""Read PyTorch's windows over an axis, and over images as columns."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Tensor
from microtir.operators.common.onnx_parts import to_last
from microtir.operators.common.torch_operands import Alias, TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def unfold(node: TorchNode) -> Tensor:
    """Read unfold of a tensor: windows over an axis, whose elements are a new last one."""
    x, size, step = node.tensor("self"), node.integer("size"), node.integer("step")
    axis = node.axis(node.integer("dimension"), len(x.shape))
    if size < 1 or step < 1 or size > node.extent(x, axis):
        raise node.malformed(
            f"windows of {size} elements with step {step} for an axis of {x.shape[axis]}"
        )
    count = (node.extent(x, axis) - size) // step + 1
    node.first.check_room(count, size)
    places = np.arange(count, dtype=np.int64)[:, None] * step + np.arange(size)
    windows = node.onnx("Gather", x, node.constant(places), axis=axis)
    return to_last(node.first, windows, axis + 1)


def _places(extents: tuple[int, ...], node: TorchNode) -> Array:
    """Return where each element of each window lies in a padded plane: (taps, windows)."""
    taps, dilations, strides = (
        node.integers(name, (1, 1), 2) for name in ("kernel_size", "dilation", "stride")
    )
    axes = []
    for extent, tap, dilation, stride in zip(extents, taps, dilations, strides, strict=True):
        count = (extent - dilation * (tap - 1) - 1) // stride + 1
        if min(tap, dilation, stride) < 1 or count < 1:
            raise node.malformed(f"windows of {taps} for an input of {extents}")
        node.first.check_room(tap, count)
        axes.append(np.arange(tap)[:, None] * dilation + np.arange(count) * stride)
    rows, columns = axes
    grid = rows[:, None, :, None] * extents[1] + columns[None, :, None, :]
    return grid.reshape(rows.shape[0] * columns.shape[0], -1).astype(np.int64)


def columns_of_image(node: TorchNode) -> Tensor:
    """Read im2col: (N, C, H, W) as (N, C * taps, windows)."""
    x = node.tensor("self")
    image = x if len(x.shape) == 4 else node.reshaped(x, (1, *x.shape))
    rows, columns = node.integers("padding", (0, 0), 2)
    pads = node.ints(0, 0, rows, columns, 0, 0, rows, columns)
    wide = node.onnx("Pad", image, pads, node.scalar(0, x.dtype)) if rows or columns else image
    n, channels, *extents = wide.shape
    places = _places(tuple(extents), node)
    node.first.check_room(n, channels, *places.shape)
    flat = node.reshaped(wide, (n, channels, extents[0] * extents[1]))
    seen = node.onnx("Gather", flat, node.constant(places), axis=2)
    result = node.reshaped(seen, (n, channels * places.shape[0], places.shape[1]))
    return result if image is x else node.reshaped(result, result.shape[1:])


def image_of_columns(node: TorchNode) -> Tensor:
    """Read col2im: add up, at each pixel, what the windows over it hold."""
    x = node.tensor("self")
    batch = x if len(x.shape) == 3 else node.reshaped(x, (1, *x.shape))
    result = node.onnx(
        "Col2Im", batch, node.ints(*node.integers("output_size", count=2)),
        node.ints(*node.integers("kernel_size", count=2)),
        strides=node.integers("stride", (1, 1), 2), dilations=node.integers("dilation", (1, 1), 2),
        pads=node.integers("padding", (0, 0), 2) * 2,
    )  # fmt: skip
    return result if batch is x else node.reshaped(result, result.shape[1:])


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(unfold, "self dimension size step", "unfold", alias=Alias.VIEW),
    *readers(unfold, "self dimension size step", "unfold_copy"),
    *readers(columns_of_image, "self kernel_size dilation padding stride", "im2col"),
    *readers(image_of_columns, "self output_size kernel_size dilation padding stride", "col2im"),
)
