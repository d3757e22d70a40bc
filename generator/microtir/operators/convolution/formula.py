"""Compute convolutions over windows clipped to the image, with one sum for each output element."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.arithmetic import (
    Accumulator,
    ChannelMultipliers,
    activate,
    centred,
    channel_scales,
    int32,
    stored,
    wide,
)
from microtir.operators.common.formula import Formula, FormulaContext
from microtir.operators.common.linear import LinearParams
from microtir.operators.common.rows import Extents, RowWindow
from microtir.operators.common.windows import Windows, WindowTaps
from microtir.operators.convolution.definition import (
    Conv2D,
    DepthwiseConv2D,
    conv_params,
    sliding_window,
)

Tap = Callable[[WindowTaps, te.Expr], te.Expr]


def windows_of(node: Node) -> Windows:
    """Return the windows of a convolution with weights (O, KH, KW, I) or (1, KH, KW, O)."""
    return Windows.of_node(node, sliding_window(node))


def row_window(node: Node) -> RowWindow:
    """Return the input rows behind one output row."""
    return windows_of(node).row_window()


def cost(node: Node) -> int:
    """Estimate the instructions, from counts of emulated Cortex-M3 and M4."""
    windows, outputs = windows_of(node), node.output.type.elements
    taps = windows.rows.taps * windows.columns.taps
    products = taps * (node.inputs[1].shape[3] if isinstance(node.op, Conv2D) else 1)
    inner = 8 * taps if products > taps else 0
    return outputs * (products * 11 // 2 + inner + 12 * windows.rows.taps + 40)


def convolution(layer: FormulaContext) -> None:
    """Emit CONV_2D or DEPTHWISE_CONV_2D for int8, float32 or hybrid operands."""
    node = layer.node
    quantised = node.inputs[0].dtype is DType.INT8
    sums = _Sums(layer, windows_of(node))
    if quantised:
        _emit_int8(layer, sums)
    else:
        _emit_float(layer, sums)


@dataclass(frozen=True, slots=True)
class _Sums:
    """The sum of products behind one output element, for both kinds of convolution."""

    layer: FormulaContext
    windows: Windows

    def of(
        self,
        position: tuple[te.Expr, te.Expr, te.Expr],
        product: Callable[[te.Expr, te.Expr], te.Expr],
        init: te.ExprLike,
    ) -> te.Expr:
        """Sum `product(input element, weight)` over the taps inside the image."""
        row, column, channel = position
        node, x = self.layer.node, self.layer.image(0)
        weights = self.layer.weights
        taps = WindowTaps.of(self.windows, x, Extents.of(node.output.type), row, column)
        if isinstance(node.op, DepthwiseConv2D):
            source = channel // node.op.depth_multiplier
            term = product(
                x.at(taps.row, taps.column, source), weights[0, taps.ky, taps.kx, channel]
            )
            return te.sum(term, (taps.ky, taps.kx), init)
        ic = te.reduce_axis(0, x.extents.channels, "ic")
        term = product(x.at(taps.row, taps.column, ic), weights[channel, taps.ky, taps.kx, ic])
        return te.sum(term, (taps.ky, taps.kx, ic), init)


@dataclass(frozen=True, slots=True)
class Int8Arithmetic:
    """What an int8 convolution does around its sums."""

    params: LinearParams
    accumulator: Accumulator
    zero_point: int  # subtracted from every element of the input
    bias: te.Tensor
    factors: ChannelMultipliers
    dtype: DType

    @staticmethod
    def of(layer: FormulaContext, windows: Windows) -> Int8Arithmetic:
        """Return the arithmetic of a layer.

        A window that never leaves the image sees every weight, so the zero point's share of the
        sum is a constant of the channel and moves into the bias; at a clipped border it is not.
        It stays outside where the bias might not hold it.
        """
        node = layer.node
        (image, weights), op = node.inputs[:2], node.op
        assert isinstance(op, Conv2D | DepthwiseConv2D)
        params = conv_params(op, image.type, weights.type, node.output.type)
        accumulator = Accumulator.of(layer)
        inside = not windows.clip(Extents.of(node.output.type)) and not accumulator.is_wide
        return Int8Arithmetic(
            params,
            accumulator,
            0 if inside else params.input_zero_point,
            te.constant(_bias(layer, params if inside else None), "bias"),
            ChannelMultipliers(params.multipliers),
            node.output.dtype,
        )

    def product(self, x: te.Expr, w: te.Expr) -> te.Expr:
        """Return one term of a sum."""
        return self.accumulator.term(centred(x, self.zero_point) * wide(w))

    def start(self, channel: te.Expr) -> te.Expr:
        """Return what a sum begins with."""
        return self.accumulator.term(self.bias[channel])

    def stored(self, total: te.Expr, channel: te.Expr) -> te.Expr:
        """Return the output element of a sum that began with the bias."""
        params = self.params
        scaled = self.factors.apply(self.accumulator.total(total), channel)
        low, high = params.activation_min, params.activation_max
        return stored(scaled, params.output_zero_point, low, high, self.dtype)


def _emit_int8(layer: FormulaContext, sums: _Sums) -> None:
    arithmetic = Int8Arithmetic.of(layer, sums.windows)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        total = sums.of((row, column, channel), arithmetic.product, init=arithmetic.start(channel))
        return arithmetic.stored(total, channel)

    layer.rows(element)


def _bias(
    layer: FormulaContext, folded: LinearParams | None
) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    """Return the bias per channel, minus zero point times the weights where that folds."""
    node = layer.node
    channels = node.output.shape[-1]
    bias = layer.data(2).astype(np.int64) if len(node.inputs) > 2 else np.zeros(channels, np.int64)
    if folded is not None:
        weights = layer.data(1).astype(np.int64)
        axes = (0, 1, 2) if isinstance(node.op, DepthwiseConv2D) else (1, 2, 3)
        bias = bias - folded.input_zero_point * weights.sum(axis=axes)
    return int32(bias)


def _emit_float(layer: FormulaContext, sums: _Sums) -> None:
    """Give float32 sums; int8 weights (hybrid) are scaled per channel after the sum."""
    node = layer.node
    op = node.op
    assert isinstance(op, Conv2D | DepthwiseConv2D)
    hybrid = node.inputs[1].dtype is DType.INT8
    scales = channel_scales(layer) if hybrid else None
    bias = layer.bias

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        total = sums.of(
            (row, column, channel),
            lambda x, w: x * (te.cast(DType.FLOAT32, w) if hybrid else w),
            init=0.0,
        )
        if scales is not None:
            total = total * scales[channel]
        if bias is not None:
            total = total + bias[channel]
        return activate(total, op.activation)

    layer.rows(element)


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        Conv2D: Formula(convolution, cost, row_window),
        DepthwiseConv2D: Formula(convolution, cost, row_window),
    }
)
