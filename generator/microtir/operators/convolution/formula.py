"""Compute convolutions over windows clipped to the image, with one sum for each output element."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common import linear
from microtir.operators.common.arithmetic import activate, channel_scales
from microtir.operators.common.formula import Elements, FormulaContext
from microtir.operators.common.rows import Extents, RowWindow
from microtir.operators.common.weighted import WeightedArithmetic, stored_weights
from microtir.operators.common.windows import Windows, WindowTaps
from microtir.operators.convolution import definition

Tap = Callable[[WindowTaps, te.Expr], te.Expr]


def windows_of(node: Node) -> Windows:
    """Return the windows of a convolution with weights (O, KH, KW, I) or (1, KH, KW, O)."""
    return Windows.of_node(node, definition.sliding_window(node))


def row_window(node: Node) -> RowWindow:
    """Return the input rows behind one output row."""
    return windows_of(node).row_window()


def convolution(layer: FormulaContext) -> None:
    """Emit CONV_2D or DEPTHWISE_CONV_2D for integer, float32 or hybrid operands."""
    node = layer.node
    sums = TapSums(layer, node)
    if node.inputs[0].dtype.is_float:
        _emit_float(layer, sums)
    else:
        _emit_integers(layer, sums)


def first_channel(node: Node, channel: te.Expr) -> te.ExprLike:
    """Return the first input channel of the group that an output channel of CONV_2D belongs to."""
    groups = definition.groups_of(node)
    if groups == 1:
        return 0
    outputs, depth = node.output.shape[3] // groups, node.inputs[1].shape[3]
    return channel // outputs * depth


@dataclass(frozen=True, slots=True)
class TapSums:
    """The sum of products behind one output element, for both kinds of convolution.

    Args:
        layer: gives image and weights.
        node: the convolution.
    """

    layer: FormulaContext
    node: Node

    def of(
        self,
        position: tuple[te.Expr, te.Expr, te.Expr],
        product: Callable[[te.Expr, te.Expr], te.Expr],
        init: te.ExprLike,
        weights: Elements,
    ) -> te.Expr:
        """Sum `product(input element, weight)` over the taps inside the image."""
        row, column, channel = position
        node, x = self.node, self.layer.image(0)
        taps = WindowTaps.of(windows_of(node), x, Extents.of(node.output.type), row, column)
        if isinstance(node.op, definition.DepthwiseConv2D):
            source = channel // node.op.depth_multiplier
            term = product(
                x.at(taps.row, taps.column, source), weights[0, taps.ky, taps.kx, channel]
            )
            return te.sum(term, (taps.ky, taps.kx), init)
        ic = te.reduce_axis(0, node.inputs[1].shape[3], "ic")
        source = first_channel(node, channel) + ic
        term = product(x.at(taps.row, taps.column, source), weights[channel, taps.ky, taps.kx, ic])
        return te.sum(term, (taps.ky, taps.kx, ic), init)


def arithmetic_of(layer: FormulaContext, windows: Windows) -> WeightedArithmetic:
    """Return the integer arithmetic of a convolution."""
    node, op = layer.node, layer.node.attributes(definition.Conv2D, definition.DepthwiseConv2D)
    params = linear.params_of(node)
    if windows.clip(Extents.of(node.output.type)):
        return WeightedArithmetic.of(layer, params, None)
    axes = (0, 1, 2) if isinstance(op, definition.DepthwiseConv2D) else (1, 2, 3)
    return WeightedArithmetic.of(layer, params, layer.data(1).astype(np.int64).sum(axis=axes))


def _emit_integers(layer: FormulaContext, sums: TapSums) -> None:
    arithmetic = arithmetic_of(layer, windows_of(sums.node))
    weights = stored_weights(layer)

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        start = arithmetic.start(channel)
        total = sums.of((row, column, channel), arithmetic.product, start, weights)
        return arithmetic.stored(total, channel)

    layer.rows(element)


def _emit_float(layer: FormulaContext, sums: TapSums) -> None:
    """Give float32 sums; int8 weights (hybrid) are scaled per channel after the sum."""
    node = layer.node
    op = node.attributes(definition.Conv2D, definition.DepthwiseConv2D)
    hybrid = node.inputs[1].dtype is DType.INT8
    scales = channel_scales(layer) if hybrid else None
    bias = layer.bias

    def element(row: te.Expr, column: te.Expr, channel: te.Expr) -> te.Expr:
        total = sums.of(
            (row, column, channel),
            lambda x, w: x * (te.cast(DType.FLOAT32, w) if hybrid else w),
            init=0.0,
            weights=layer.weights,
        )
        if scales is not None:
            total = total * scales[channel]
        if bias is not None:
            total = total + bias[channel]
        return activate(total, op.activation)

    layer.rows(element)
