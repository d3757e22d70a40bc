"""Read ONNX's pooling."""

from __future__ import annotations

import math
from dataclasses import replace
from operator import ge

import numpy as np

from microtir.dtype import DType
from microtir.errors import ModelFileError
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.definition import Pow
from microtir.operators.common import attributes, onnx_layout, onnx_parts, onnx_quantized
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.common.onnx_types import cast, widened
from microtir.operators.common.onnx_windows import OnnxWindow, window_of, without_margins
from microtir.operators.indexing.onnx_elements import put_rows
from microtir.operators.movement.definition import Pad
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.pooling.onnx_axes import largest, means, sums, with_places
from microtir.operators.unary.definition import Abs

_ATTRIBUTES = ("auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides")


def average_pool(node: OnnxNode) -> Tensor:
    """Read AveragePool; what its border adds counts as zeros if count_include_pad says so."""
    x, window = _windows(node)
    if not _is_plane(x, window):
        return means(node, x, window)
    image = onnx_layout.channels_last(node, x)
    padding = _rounded(node, image, window)
    if node.integer("count_include_pad", 0) and max((*window.before, *window.after)) > 0:
        p = window.padding
        image = node.emit(Pad((0, p.top, p.left, 0), (0, p.bottom, p.right, 0)), image)
        padding = attributes.Padding2D(0, padding.bottom - p.bottom, 0, padding.right - p.right)
    op = AveragePool2D(window.planar_taps, window.planar_strides, padding)
    return onnx_layout.channels_first(node, node.emit(op, image), len(x.shape))


def max_pool(node: OnnxNode) -> tuple[Tensor, ...]:
    """Read MaxPool, with the places of what it finds if they are an output."""
    x, window = _windows(node)
    if node.word("auto_pad", "NOTSET").startswith("SAME") and max(window.dilations) > 1:
        raise node.unsupported(
            f"its windows have gaps ({window.dilations}) and auto_pad, for which onnxruntime "
            f"ignores the gaps",
            "auto_pad NOTSET or VALID, or no dilations",
            "export the model with explicit pads",
        )
    if node.outputs > 1:
        return with_places(node, x, window)
    if not _is_plane(x, window) or not x.dtype.is_float:
        return (cast(node, largest(node, widened(node, x), window), x.dtype),)
    image = onnx_layout.channels_last(node, x)
    op = MaxPool2D(window.planar_taps, window.planar_strides, _rounded(node, image, window))
    return (onnx_layout.channels_first(node, node.emit(op, image), len(x.shape)),)


def power_pool(node: OnnxNode) -> Tensor:
    """Read LpPool: the root of the sum of powers of sizes."""
    (x, window), power = _windows(node), float(node.integer("p", 2))
    sizes = node.emit(Pow(), node.emit(Abs(), x), node.scalar_like(power, x))
    total = sums(node, sizes, window)
    return node.emit(Pow(), total, node.scalar_like(1.0 / power, x))


def max_unpool(node: OnnxNode) -> Tensor:
    """Read MaxUnpool: zeros, and elements at the places that MaxPool gave.

    A place counts in the result, in the given shape if there is one: that is what MaxPool pooled.
    Of windows that overlap the last one is what is there.
    """
    x, places = node.input(0), node.input(1)
    taps = node.list_of_integers("kernel_shape")
    rank = len(taps)
    strides = node.list_of_integers("strides", (1,) * rank)
    pads = node.list_of_integers("pads", (0,) * (2 * rank))
    if not len(x.shape) - 2 == len(strides) == rank or len(pads) != 2 * rank:
        raise node.malformed(f"a window of {taps} for the shape {x.shape}")
    inner = tuple(
        (size - 1) * stride + tap - pads[n] - pads[n + rank]
        for n, (size, stride, tap) in enumerate(zip(x.shape[2:], strides, taps, strict=True))
    )
    shape = (*x.shape[:2], *inner)
    wanted = shape if node.optional(2) is None else node.integers(2, "the shape")
    is_larger = len(wanted) == len(shape) and all(map(ge, wanted, shape))
    if not is_larger or wanted[:2] != shape[:2]:
        raise node.malformed(f"the shape {wanted} for {shape}", "at least that along each axis of"
                             " the image, and equal batch and channels")  # fmt: skip
    _check_places(node, places, x, wanted)
    node.check_room(*wanted)
    zeros = node.constant(np.zeros(math.prod(wanted), np.float32))
    flat = onnx_parts.reshaped(node, cast(node, places, DType.INT32), places.type.elements)
    return onnx_parts.reshaped(node, put_rows(node, zeros, flat, x, ()), *wanted)


def _check_places(node: OnnxNode, places: Tensor, x: Tensor, shape: tuple[int, ...]) -> None:
    """Refuse places that are not one for each element, or lie outside of the result."""
    if places.shape != x.shape:
        raise node.malformed(
            f"its indices have the shape {places.shape}", f"{x.shape}, one for each element"
        )
    span, size = node.emitter.span(places), math.prod(shape)
    if span is not None and (span[0] < 0 or span[1] >= size):
        raise ModelFileError(
            f"its indices are {span[0]} to {span[1]}",
            where=node.where,
            legal=f"0 to {size - 1}, because its result has the shape {shape}",
            fix="pass the shape of MaxPool's input as output_shape",
        )


def _is_plane(x: Tensor, window: OnnxWindow) -> bool:
    """Return whether the kernels of images pool it."""
    return len(x.shape) in (3, 4) and max(window.dilations) == 1


def _windows(node: OnnxNode) -> tuple[Tensor, OnnxWindow]:
    """Return an image of any rank and the window over it."""
    image = node.input(0)
    if len(image.shape) < 3:
        raise node.malformed(f"an image of shape {image.shape}", "(N, C, ...)")
    taps = node.list_of_integers("kernel_shape")
    window = window_of(node, image.shape[2:], taps, pools=True)
    is_stated = not node.word("auto_pad", "NOTSET").startswith("SAME")
    if is_stated and min((*window.before, *window.after)) < 0:
        raise node.malformed(f"pads {window.before} and {window.after}", "0 or more")
    if node.outputs > 1 and min((*window.before, *window.after)) < 0:
        raise node.unsupported(
            "its auto_pad skips elements between windows, and it outputs indices",
            "strides of at most the window", "export the model with explicit pads",
        )  # fmt: skip
    return without_margins(node, image, window)


def _rounded(node: OnnxNode, image: Tensor, window: OnnxWindow) -> attributes.Padding2D:
    """Return the padding with what ceil_mode adds in the end: it counts for no mean.

    A window that would begin behind the image and its padding is left out.
    """
    p = window.padding
    if not node.integer("ceil_mode", 0):
        return p
    more = []
    sides = ((p.top, p.bottom), (p.left, p.right))
    axes = zip(image.shape[1:3], window.planar_taps, window.planar_strides, sides, strict=True)
    for size, taps, stride, (before, after) in axes:
        count = -(-(size + before + after - taps) // stride) + 1
        if (count - 1) * stride >= size + before:
            count -= 1
        more.append(max((count - 1) * stride + taps - (size + before), 0))
    rows, columns = more
    return replace(p, bottom=max(rows, p.bottom), right=max(columns, p.right))


def qlinear_average_pool(node: OnnxNode) -> Tensor:
    """Read com.microsoft's QLinearAveragePool."""
    onnx_layout.require_channels_first(node)
    return onnx_quantized.between_integers(average_pool)(node)


ONNX_READERS = (
    OnnxReader(
        "QLinearAveragePool",
        qlinear_average_pool,
        (4, 5),
        (*_ATTRIBUTES, "channels_last", "count_include_pad"),
        domain=MICROSOFT,
    ),
    OnnxReader("AveragePool", average_pool, (1, 1), (*_ATTRIBUTES, "count_include_pad")),
    OnnxReader("MaxPool", max_pool, (1, 1), (*_ATTRIBUTES, "storage_order"), outputs=2),
    OnnxReader("LpPool", power_pool, (1, 1), (*_ATTRIBUTES, "p")),
    OnnxReader("MaxUnpool", max_unpool, (2, 3), ("kernel_shape", "pads", "strides")),
)
