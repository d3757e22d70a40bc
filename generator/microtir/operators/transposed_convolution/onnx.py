"""Read ONNX's transposed convolution."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir.graph.ir import Array, Quantization, Tensor
from microtir.operators.common import onnx_layers, onnx_operands, onnx_parts
from microtir.operators.common.onnx_layout import channels_first, channels_last
from microtir.operators.convolution_3d.definition import Conv3D
from microtir.operators.transposed_convolution.definition import TransposeConv


def conv_transpose(node: onnx_operands.OnnxNode) -> Tensor:
    """Read ConvTranspose: image (N, C, ...), weights (C, O / group, ...), optional bias."""
    image = node.input(0)
    stored = node.known(1, "the weights")
    rank = len(image.shape)
    if rank not in (3, 4, 5) or stored.ndim != rank:
        raise node.unsupported(
            f"an image of shape {image.shape} and weights of {stored.shape}",
            "lines, images of rows and columns, and volumes",
            "replace the layer",
        )
    groups = node.integer("group", 1)
    if groups < 1 or stored.shape[0] != image.shape[1] or stored.shape[0] % groups:
        raise node.malformed(f"weights of {stored.shape} for {image.shape[1]} channels")
    dilations = node.list_of_integers("dilations", (1,) * (rank - 2))
    weights = _dense(_spread(node, stored, dilations), groups)
    strides, before, extents = _placed(node, image.shape[2:], weights.shape[2:])
    if rank == 5:
        return _of_volumes(node, weights, strides, before, extents)
    if rank == 3:
        strides, before, extents = (1, *strides), (0, *before), (1, *extents)
    op = TransposeConv((strides[0], strides[1]), (before[0], before[1]))
    shape = (image.shape[0], *extents, weights.shape[1])
    seen, laid = channels_last(node, image), _laid_out(node, weights, groups)
    return channels_first(node, onnx_layers.with_bias(node, op, seen, laid, shape), rank)


def _of_volumes(
    node: onnx_operands.OnnxNode,
    weights: Array,
    strides: tuple[int, ...],
    before: tuple[int, ...],
    extents: tuple[int, ...],
) -> Tensor:
    """Return the convolution by the weights backwards, of a volume with zeros in between."""
    volume, taps = channels_last(node, node.input(0)), weights.shape[2:]
    for axis, stride in enumerate(strides):
        volume = _with_gaps(node, volume, axis + 1, stride)
    first = tuple(tap - 1 - cut for tap, cut in zip(taps, before, strict=True))
    sizes = zip(extents, volume.shape[1:4], first, taps, strict=True)
    last = tuple(out - size - pad + tap - 1 for out, size, pad, tap in sizes)
    if min((*first, *last)) < 0:
        raise node.unsupported(
            f"it cuts {before} off before an output of {extents}",
            "less than its weights reach, at both ends",
            "crop more in a separate layer",
        )
    (d0, h0, w0), (d1, h1, w1) = first, last
    op = Conv3D(before=(d0, h0, w0), after=(d1, h1, w1))
    flipped = np.moveaxis(weights[:, :, ::-1, ::-1, ::-1], (0, 1), (3, 4))
    return channels_first(node, onnx_layers.with_bias(node, op, volume, node.constant(flipped)), 5)


def _with_gaps(node: onnx_operands.OnnxNode, x: Tensor, axis: int, stride: int) -> Tensor:
    """Return a tensor with zeros between neighbours along an axis, as many as a stride leaves."""
    if stride == 1:
        return x
    before, size, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    column = onnx_parts.reshaped(node, x, *before, size, 1, *behind)
    spaced = onnx_parts.padded(node, column, axis + 1, 0, stride - 1)
    row = onnx_parts.reshaped(node, spaced, *before, size * stride, *behind)
    return onnx_parts.along(node, row, axis, 0, (size - 1) * stride + 1)


def _spread(node: onnx_operands.OnnxNode, weights: Array, dilations: tuple[int, ...]) -> Array:
    """Return weights with as many zeros between the taps as a dilation asks for."""
    taps = [(size - 1) * step + 1 for size, step in zip(weights.shape[2:], dilations, strict=True)]
    node.check_room(*weights.shape[:2], *taps)
    spread = np.zeros((*weights.shape[:2], *taps), weights.dtype)
    steps = tuple(slice(None, None, step) for step in dilations)
    places = (slice(None), slice(None), *steps)
    spread[places] = weights
    return spread


def _dense(weights: Array, groups: int) -> Array:
    """Return weights of all channels for all: between groups they are 0."""
    if groups == 1:
        return weights
    inputs, outputs = weights.shape[0] // groups, weights.shape[1]
    dense = np.zeros((weights.shape[0], outputs * groups, *weights.shape[2:]), weights.dtype)
    for g in range(groups):
        rows = slice(g * inputs, (g + 1) * inputs)
        dense[rows, g * outputs : (g + 1) * outputs] = weights[rows]
    return dense


def _laid_out(node: onnx_operands.OnnxNode, weights: Array, groups: int) -> Tensor:
    """Return weights (C, O, ...) as (O, KH, KW, C), with the scales that the stored ones have."""
    laid = channels_last(node, node.constant(np.moveaxis(weights, 1, 0)))
    quant = node.input(1).type.quantization
    if quant is None or quant.axis not in (None, 1):
        return laid
    if quant.axis is not None:
        scales, zeros = quant.scales * groups, quant.zero_points * groups
        quant = Quantization(scales, zeros, axis=0)
    return replace(laid, type=replace(laid.type, quantization=quant))


def _placed(
    node: onnx_operands.OnnxNode, sizes: tuple[int, ...], taps: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Return strides, what is cut off before each axis, and the extents of the output."""
    rank = len(sizes)
    strides = node.list_of_integers("strides", (1,) * rank)
    more = node.list_of_integers("output_padding", (0,) * rank)
    pads = node.list_of_integers("pads", (0,) * (2 * rank))
    if len(strides) != rank or len(more) != rank or len(pads) != 2 * rank:
        raise node.malformed(f"strides {strides} and pads {pads} for {rank} axes")
    whole = tuple(
        stride * (size - 1) + tap + extra
        for stride, size, tap, extra in zip(strides, sizes, taps, more, strict=True)
    )
    automatic = node.word("auto_pad", "NOTSET")
    if node.has("output_shape"):
        extents = node.list_of_integers("output_shape")[-rank:]
    elif automatic in ("SAME_UPPER", "SAME_LOWER"):
        # Of windows that do not reach the next one ONNX wants more than there is: it is not added.
        wanted = (size * stride for size, stride in zip(sizes, strides, strict=True))
        extents = tuple(map(min, whole, wanted))
    else:
        lost = zip(pads[:rank], pads[rank:], strict=True)
        extents = tuple(size - sum(pair) for size, pair in zip(whole, lost, strict=True))
    before: tuple[int, ...] = pads[:rank]
    if node.has("output_shape") or automatic.startswith("SAME"):
        cut = [max(size - extent, 0) for size, extent in zip(whole, extents, strict=True)]
        is_upper = automatic == "SAME_UPPER"
        before = tuple(total // 2 if is_upper else total - total // 2 for total in cut)
    if len(extents) != rank or min((*extents, *strides)) < 1 or min(before) < 0:
        raise node.malformed(
            f"an output of {extents} with pads {pads}", "pads of 0 or more, extents of 1 or more"
        )
    return strides, before, extents


ONNX_READERS = (
    onnx_operands.OnnxReader(
        "ConvTranspose",
        conv_transpose,
        (2, 3),
        (
            "auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape",
            "pads", "strides",
        ),
    ),
)  # fmt: skip
