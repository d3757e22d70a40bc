"""Depthwise convolutions: a row of pixels a call, sixteen channels at a time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.copying import copy
from microtir.kernels.arm_mve.depthwise_kernels import (
    ORDER,
    ROWS,
    VECTORS,
    Line,
    code_size,
    depthwise,
    fits,
    instructions,
)
from microtir.kernels.arm_mve.linear import BYTES, channel_constants
from microtir.kernels.arm_mve.requantise import BIAS, LANES, MULTIPLIER, SHIFT, Ints, Rescaling
from microtir.kernels.common.bordered_rows import Geometry, Window, windowed_rows
from microtir.kernels.common.depthwise_taps import Taps
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant
from microtir.kernels.common.refusals import depthwise_refusal
from microtir.kernels.common.statements import at, seq
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import DepthwiseConv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir
from microtir.tir.dtype import DType

_TAPS = 64  # they are all printed; more make too much code
_LARGEST = 0xFFFF  # what MOVW loads
_TOGETHER = (1, 2, 4)  # pixels that may share vectors
_LEAST = np.iinfo(np.int8).min


def _params(node: Node) -> LinearParams:
    op = node.op
    assert isinstance(op, DepthwiseConv2D)
    return conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)


def _constants(node: Node) -> Ints | None:
    """Return constants of the channels; None if they or the weights do not fit."""
    weights = node.inputs[1].data
    assert weights is not None
    matrix = weights.reshape(-1, weights.shape[-1])
    # The only sum of two products that 16 bits do not hold is 2 * -128 * -128.
    if ((matrix[:-1] == _LEAST) & (matrix[1:] == _LEAST)).any():
        return None
    return channel_constants(matrix.T, node, _params(node))


def _together(geometry: Geometry) -> int:
    """Return how many pixels share vectors: neighbours' windows must be one column apart."""
    channels, width = geometry.image.channels, geometry.output.width
    if geometry.windows.columns.stride > 1 or channels % BYTES == 0:
        return 1
    choices = [n for n in _TOGETHER if n <= width]
    return min(choices, key=lambda n: (Line(1, n * channels).blocks / n, n))


class Depthwise(Kernel):
    """Sixteen channels at a time, a row a call."""

    name = "depthwise_vectors"
    operators = (DepthwiseConv2D,)
    needs = Feature.MVE
    cycles = 157
    depends_on_calls = True

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8, one image, one output per input channel."""
        reason = depthwise_refusal(node)
        if reason is not None:
            return reason
        geometry = Geometry.of(node)
        taps, channels = _copied_taps(geometry), geometry.image.channels
        in_reach = (
            taps.count <= _TAPS
            and fits(taps)
            and taps.row_step <= _LARGEST
            and taps.stride * channels <= _LARGEST
            and geometry.output.width * channels <= _LARGEST
            and 0 < geometry.copied * channels <= _LARGEST
        )
        if not in_reach:
            return Refusal.SIZES
        return Refusal.FORM if _constants(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of one window of rows with their borders."""
        return Geometry.of(node).window_elements

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions from counts of the emulated Cortex-M55.

        Calls for few rows copy windows.
        """
        by_rows, geometry = calls.rows > 0, Geometry.of(node)
        channels, together = geometry.image.channels, _together(geometry)
        line = Line(-(-geometry.output.width // together), together * channels)
        row = instructions(line, _copied_taps(geometry), Rescaling.of(_params(node)).corrects_ties)
        taps = geometry.windows.rows.taps
        if geometry.is_bordered or (by_rows and taps > 1):
            row += taps * (geometry.copied * channels // BYTES * 3 + 20)
            border = (geometry.padded - geometry.copied) * channels if by_rows else 0
            row += taps * border // 4
        return geometry.output.height * (row + 10)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; other layers may use the same."""
        geometry = Geometry.of(node)
        kernels = 1 + (geometry.output.width % _together(geometry) > 0)
        return kernels * code_size(_copied_taps(geometry))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: a window of rows in scratch, then a row of pixels."""
        node, geometry = layer.node, Geometry.of(layer.node)
        constants, rescaling = _constants(node), Rescaling.of(_params(node))
        assert constants is not None, "refusal() was asked"
        x, y = layer.input_rows(0), layer.output_rows()
        channels, together = geometry.image.channels, _together(geometry)
        group = Line(1, together * channels)
        packed_weights = constant("weights", _arranged_weights(layer.data(1), group))
        packed_constants = constant("constants", _arranged_constants(constants, group))

        stride = geometry.windows.columns.stride

        def pixels(row: te.Expr, row_step: int, source: Window) -> ir.Stmt:
            """Emit groups of pixels; what is left of the row ends one that overlaps the last."""
            taps = Taps.of(geometry.windows, channels, row_step)
            whole, left = divmod(geometry.output.width, together)

            def some(count: int, column: int) -> ir.Stmt:
                return call(
                    depthwise(Line(count, group.size), taps, rescaling),
                    source(te.as_expr(column * stride, DType.INT32)),
                    at(packed_weights, 0, 0, 0),
                    at(packed_constants, 0, 0, 0),
                    y.at(row, column, 0),
                )

            rest = some(1, geometry.output.width - together) if left else seq()
            return seq(some(whole, 0), rest)

        return windowed_rows(
            layer, geometry, x, name, pixels, copy, reaches_input=geometry.direct_step <= _LARGEST
        )


def _copied_taps(geometry: Geometry) -> Taps:
    return Taps.of(geometry.windows, geometry.image.channels, geometry.copied_step)


def _bytes_of(group: Line, channels: int) -> list[list[int]]:
    """Return the channel of every byte, block by block; -1 behind the last one."""
    return [
        [(start + n) % channels if start + n < group.size else -1 for n in range(BYTES)]
        for start in group.starts()
    ]


def _arranged_weights(weights: npt.NDArray[np.int8], group: Line) -> npt.NDArray[np.int8]:
    """Return weights (1, KH, KW, C) as (blocks, taps, 16), zeros behind the last channel."""
    taps = weights.reshape(-1, weights.shape[-1])
    padded = np.pad(taps, ((0, 0), (0, 1)))
    order = np.array(_bytes_of(group, weights.shape[-1]))
    arranged: npt.NDArray[np.int8] = padded[:, order].transpose(1, 0, 2)
    return arranged


def _arranged_constants(constants: Ints, group: Line) -> npt.NDArray[np.int32]:
    """Return constants (channels, 3) as (blocks, 12, 4), see `depthwise`."""
    padded = np.pad(constants, ((0, 1), (0, 0)))
    order = np.array(_bytes_of(group, len(constants)))[:, list(ORDER)]
    vectors = padded[order].reshape(len(order), VECTORS, LANES, -1)
    rows = [vectors[:, v, :, BIAS] for v in range(VECTORS)]
    rows += [vectors[:, v, :, word] for v in range(VECTORS) for word in (MULTIPLIER, SHIFT)]
    arranged: npt.NDArray[np.int32] = np.stack(rows, axis=1).astype(np.int32)
    assert arranged.shape[1] == ROWS
    return arranged
