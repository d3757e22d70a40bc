"""Read PyTorch's pooling with windows of a stated size."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def axes_of(node: TorchNode) -> int:
    """Return how many axes an operator pools, which its name says."""
    match = re.search(r"([123])d", node.target)
    assert match is not None, "readers of pooling are named by their axes"
    return int(match[1])


def on_batch(node: TorchNode, read: Callable[[Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Return results for (N, C, ...), or for a single image those of a batch of one."""
    image = node.tensor("self")
    if len(image.shape) != axes_of(node) + 1:
        return read(image)
    results = read(node.reshaped(image, (1, *image.shape)))
    return tuple(node.reshaped(result, result.shape[1:]) for result in results)


def _pooled(
    node: TorchNode, operator: str, image: Tensor, outputs: int = 1, **attributes: int
) -> tuple[Tensor, ...]:
    """Return what an operator of ONNX makes of the windows that the arguments state."""
    axes = axes_of(node)
    taps = node.integers("kernel_size", count=axes)
    return node.onnx_tensors(
        operator, image, outputs=outputs, kernel_shape=taps,
        strides=node.integers("stride", taps, axes),
        pads=node.integers("padding", (0,) * axes, axes) * 2,
        dilations=node.integers("dilation", (1,) * axes, axes),
        ceil_mode=int(node.flag("ceil_mode", False)), **attributes,
    )  # fmt: skip


def max_pool(node: TorchNode) -> Tensor:
    """Read max_pool1d, max_pool2d or max_pool3d: image (N, C, ...) or (C, ...)."""
    return on_batch(node, lambda image: _pooled(node, "MaxPool", image))[0]


def max_pool_with_places(node: TorchNode) -> tuple[Tensor, ...]:
    """Read max_pool with the places of what it takes, which count in the plane of each channel."""

    def read(image: Tensor) -> tuple[Tensor, ...]:
        (result,) = _pooled(node, "MaxPool", image)
        _, places = _pooled(node, "MaxPool", image, outputs=2)
        plane = np.array(math.prod(image.shape[2:]), np.int64)
        return result, node.onnx("Mod", places, node.constant(plane))

    return on_batch(node, read)


def average_pool(node: TorchNode) -> Tensor:
    """Read avg_pool1d, avg_pool2d or avg_pool3d; a divisor stands for the size of the window."""
    divisor = node.optional_integer("divisor_override")
    if divisor is not None and node.flag("ceil_mode", False):
        raise node.unsupported(
            "it has divisor_override, and windows that the edge cuts off",
            "ceil_mode=False, or no divisor_override",
            "multiply the result of a pooling without divisor_override",
        )
    count = int(node.flag("count_include_pad", True) or divisor is not None)
    (result,) = on_batch(
        node, lambda image: _pooled(node, "AveragePool", image, count_include_pad=count)
    )
    if divisor is None:
        return result
    taps = math.prod(node.integers("kernel_size", count=axes_of(node)))
    return node.onnx("Mul", result, node.scalar(taps / divisor))


def max_unpool(node: TorchNode) -> Tensor:
    """Read max_unpool2d and max_unpool3d: zeros, and elements at their places in each plane."""
    x, places, size = node.tensor("self"), node.tensor("indices"), node.integers("output_size")
    axes = len(size)
    shape = (*x.shape[: len(x.shape) - axes], *size)
    planes, inner = math.prod(x.shape[: len(x.shape) - axes]), math.prod(size)
    node.first.check_room(planes, inner)
    rows = (planes, math.prod(x.shape[len(x.shape) - axes :]))
    zeros = node.constant(np.zeros((planes, inner), x.dtype.value))
    values, at = node.reshaped(x, rows), node.reshaped(places, rows)
    return node.reshaped(node.onnx("ScatterElements", zeros, at, values, axis=1), shape)


_WINDOW = "self kernel_size stride padding dilation ceil_mode"
_MEANS = "self kernel_size stride padding ceil_mode count_include_pad divisor_override"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(max_pool, _WINDOW, *(f"max_pool{n}d" for n in (1, 2, 3))),
    *readers(max_pool_with_places, _WINDOW, *(f"max_pool{n}d_with_indices" for n in (1, 2, 3))),
    *readers(average_pool, _MEANS, *(f"avg_pool{n}d" for n in (1, 2, 3))),
    *readers(max_unpool, "self indices output_size stride padding", "max_unpool2d", "max_unpool3d"),
)
