"""Depthwise convolutions of a window as high as the image, whose rows come one by one.

What a row adds to the sums is computed four channels at a time; `portable.accumulate` has the
function that makes outputs of them, and the same for any processor.
"""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import convolution_geometry, refusals
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.packing import constant
from microtir.kernels.common.statements import at, load, loop, seq, store, when
from microtir.kernels.common.weights import QUAD, folded_bias, matrix_of
from microtir.kernels.portable import accumulate
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import function, ir

_IMMEDIATE = 4095  # largest offset of a load
_PIXELS = 16  # they are all unrolled


class DepthwiseSums(accumulate.RowSums):
    """Rows go into sums, four channels at a time."""

    name = "dwconv_s8_1x4_dsp_sums"
    operators = (DepthwiseConv2D,)
    needs = Feature.DSP
    rescales_in_float = True
    cycles = 130

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        One window of neighbouring columns, all inside, whole quads.
        """
        reason = refusals.depthwise_refusal(node) or super().reject(node)
        if reason is not None:
            return reason
        geometry = convolution_geometry.Geometry.of(node)
        windows, channels = geometry.windows, geometry.image.channels
        is_run = windows.columns.taps == 1 or windows.columns.dilation == 1
        if geometry.output.width != 1 or windows.clip(geometry.output) or not is_run:
            return Refusal.WINDOWS
        taps = windows.columns.taps
        if channels % QUAD or taps > _PIXELS or taps * channels > _IMMEDIATE:
            return Refusal.SIZES
        return None

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions of all rows and of the outputs, by counts on the Cortex-M4."""
        geometry = convolution_geometry.Geometry.of(node)
        channels, rows = geometry.image.channels, geometry.windows.rows.taps
        turn = 4 + 10 * geometry.windows.columns.taps
        return rows * (turn * channels // QUAD + 20) + 46 * channels

    def code_bytes(self, node: Node) -> int:
        return 40 + 40 * convolution_geometry.Geometry.of(node).windows.columns.taps

    def packed_bytes(self, node: Node) -> int:
        sums = node.output.type.channels * DType.INT32.bytes
        return node.inputs[1].type.elements + sums + accumulate.finish_bytes(node)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the function that adds rows [y0, y1): parameters x, the sums, y0 and y1."""
        node, x = layer.node, layer.input_rows(0)
        geometry = convolution_geometry.Geometry.of(node)
        height, channels = geometry.image.height, geometry.image.channels
        taps = geometry.windows.columns.taps
        y0, y1 = te.var("y0", low=0, high=height), te.var("y1", low=0, high=height)
        sums = ir.Buffer("sums", (1, channels), DType.INT32)
        bias, weights = constant("bias", _bias(node)), constant("weights", _rows_of_weights(layer))
        kernel = add_products(taps, channels)
        body = seq(
            when(
                y0 == 0,
                loop("channel", 0, channels, lambda c: store(sums, (0, c), load(bias, c))),
            ),
            loop(
                "row", y0, y1,
                lambda row: call(kernel, x.at(row, 0, 0), at(weights, row, 0), at(sums, 0, 0)),
            ),
        )  # fmt: skip
        rows = function.RowRange(y0.var, y1.var)
        return ir.PrimFunc(name, (x.buffer, sums, rows.start, rows.stop), body, row_range=rows)


def _bias(node: Node) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    """Return what sums begin with: the bias, the share of the input's zero point taken off."""
    return folded_bias(matrix_of(node).astype(np.int64), node).astype(np.int32)


def _rows_of_weights(layer: Layer) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    weights = layer.data(1)
    return weights.reshape(weights.shape[1], -1)


@made_once
def add_products(pixels: int, channels: int) -> KernelDescription:
    """Add the products of neighbouring pixels and their weights to the sums of their channels.

    Args:
        pixels: of the row, at least 1.
        channels: whole quads.

    Returns:
        Parameters: the first pixel, weights (pixels, channels) int8, sums.
    """
    x = ir.Buffer("x", (pixels * channels,), DType.INT8)
    weights = ir.Buffer("weights", (pixels * channels,), DType.INT8)
    sums = ir.Buffer("sums", (channels,), DType.INT32)

    def product(pixel: te.Expr, channel: te.Expr) -> ir.Stmt:
        a, b = (
            te.cast(DType.INT32, load(buffer, pixel * channels + channel))
            for buffer in (x, weights)
        )
        return store(sums, (channel,), load(sums, channel) + a * b)

    body = loop("channel", 0, channels, lambda c: loop("pixel", 0, pixels, lambda p: product(p, c)))
    # The first pixel's loads move both pointers on, so that others lie a quad nearer.
    behind = tuple(str(pixel * channels - QUAD) for pixel in range(1, pixels))
    return describe(
        f"add_products_{pixels}x{channels}",
        (f"Adds {pixels} x {channels} products to the sums of the channels",),
        (x, weights, sums),
        (sums,),
        body,
        "kernels/depthwise_sums.j2",
        {"sums_bytes": str(channels * DType.INT32.bytes), "behind": behind},
        stack_bytes=32,
    )
