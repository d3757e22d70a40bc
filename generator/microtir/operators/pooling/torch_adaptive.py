"""Read PyTorch's pooling to a stated size, whose windows follow from both sizes."""

from __future__ import annotations

import math

import numpy as np

from microtir.graph.ir import Array, Tensor
from microtir.operators.common.onnx_parts import from_last, to_last
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.pooling.torch import axes_of, on_batch


def _sizes(node: TorchNode, image: Tensor) -> tuple[int, ...]:
    sizes = node.integers("output_size", count=axes_of(node))
    if min(sizes) < 1:
        raise node.malformed(f"its output sizes are {sizes}", "sizes from 1 on")
    node.first.check_room(*sizes, *image.shape[2:])
    return sizes


def _bounds(extent: int, size: int) -> Array:
    """Return where each of the windows over an axis begins, and where it ends: (size, 2)."""
    at = np.arange(size)
    return np.stack([at * extent // size, -(-(at + 1) * extent // size)], axis=1)


def _is_even(image: Tensor, sizes: tuple[int, ...]) -> bool:
    return all(n % size == 0 for n, size in zip(image.shape[2:], sizes, strict=True))


def _taps(image: Tensor, sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(n // size for n, size in zip(image.shape[2:], sizes, strict=True))


def average_pool(node: TorchNode) -> Tensor:
    """Read adaptive_avg_pool1d, 2d or 3d: windows of several sizes are products with a matrix."""

    def read(image: Tensor) -> tuple[Tensor, ...]:
        sizes = _sizes(node, image)
        if set(sizes) == {1}:
            axes = node.ints(*range(2, len(image.shape)))
            return (node.onnx("ReduceMean", image, axes, keepdims=1),)
        if _is_even(image, sizes):
            taps = _taps(image, sizes)
            return (node.onnx("AveragePool", image, kernel_shape=taps, strides=taps),)
        result = image
        for axis, size in enumerate(sizes, 2):
            result = _means(node, result, axis, size)
        return (result,)

    return on_batch(node, read)[0]


def _means(node: TorchNode, x: Tensor, axis: int, size: int) -> Tensor:
    """Return the means of the windows over one axis."""
    extent = node.extent(x, axis)
    if extent == size:
        return x
    matrix = np.zeros((extent, size), np.float32)
    for number, (begin, end) in enumerate(_bounds(extent, size).tolist()):
        matrix[begin:end, number] = 1 / (end - begin)
    rows = node.onnx("MatMul", to_last(node.first, x, axis), node.constant(matrix))
    return from_last(node.first, rows, axis)


def max_pool(node: TorchNode) -> tuple[Tensor, ...]:
    """Read adaptive_max_pool1d, 2d or 3d: the largest, and its place in the plane."""

    def read(image: Tensor) -> tuple[Tensor, ...]:
        sizes = _sizes(node, image)
        values, places = _by_table(node, image, _table(image, sizes))
        shape = (*image.shape[:2], *sizes)
        if _is_even(image, sizes):
            taps = _taps(image, sizes)
            values = node.onnx("MaxPool", image, kernel_shape=taps, strides=taps)
        return node.reshaped(values, shape), node.reshaped(places, shape)

    return on_batch(node, read)


def _table(image: Tensor, sizes: tuple[int, ...]) -> Array:
    """Return the places in a plane that each window has, one row for each window.

    Windows are filled up to the size of the largest with their last place, where nothing is first.
    """
    places = np.zeros((1, 1), np.int64)
    for extent, size in zip(image.shape[2:], sizes, strict=True):
        bounds = _bounds(extent, size)
        most = int((bounds[:, 1] - bounds[:, 0]).max())
        line = np.minimum(bounds[:, :1] + np.arange(most), bounds[:, 1:] - 1)
        grid = places[:, None, :, None] * extent + line[None, :, None, :]
        places = grid.reshape(len(places) * size, -1)
    return places


def _by_table(node: TorchNode, image: Tensor, table: Array) -> tuple[Tensor, Tensor]:
    """Return the largest of each window, and where it is."""
    plane = math.prod(image.shape[2:])
    windows, taps = table.shape
    node.first.check_room(*image.shape[:2], windows, taps)
    flat = node.reshaped(image, (*image.shape[:2], plane))
    seen = node.onnx("Gather", flat, node.constant(table), axis=2)
    number = node.onnx("ArgMax", seen, axis=3, keepdims=0)
    begins = node.constant(np.arange(windows, dtype=np.int64) * taps)
    places = node.onnx("Gather", node.constant(table.reshape(-1)), node.onnx("Add", number, begins))
    return node.onnx("ReduceMax", seen, node.ints(3), keepdims=0), places


_ARGUMENTS = "self output_size"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(
        average_pool, _ARGUMENTS,
        *(f"{start}adaptive_avg_pool{n}d" for start in ("", "_") for n in (1, 2, 3)),
    ),
    *readers(max_pool, _ARGUMENTS, *(f"adaptive_max_pool{n}d" for n in (1, 2, 3))),
)  # fmt: skip
