"""Compute FULLY_CONNECTED as a dot product for each output element."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common.arithmetic import activate, channel_scales
from microtir.operators.common.formula import FormulaContext
from microtir.operators.common.linear import params_of
from microtir.operators.common.weighted import WeightedArithmetic, stored_weights
from microtir.operators.dense.definition import FullyConnected


def keeps_rows(node: Node) -> bool:
    """Return whether row r of the output depends on row r of the input alone.

    Weights as long as several rows join them, shorter ones cut them.
    """
    features, output = node.inputs[0], node.output
    return len(features.shape) == len(output.shape) == 2 and features.shape[0] == output.shape[0]


def fully_connected(layer: FormulaContext) -> None:
    """Emit FULLY_CONNECTED for integer, float32 or hybrid operands; weights are (O, I)."""
    if layer.node.inputs[0].dtype.is_float:
        _emit_float(layer)
    else:
        _emit_integers(layer)


def _features(layer: FormulaContext, row: te.Expr, position: te.ExprLike) -> te.Expr:
    """Return the element of a row of inputs, counted over all axes behind the first."""
    if layer.takes_row_range:
        return layer.image(0).at(row, 0, position)
    inputs = layer.node.inputs[1].shape[1]
    elements = layer.node.inputs[0].type.elements
    return layer.whole(0, (elements // inputs, inputs))[row, position]


def _emit_rows(layer: FormulaContext, element: Callable[[te.Expr, te.Expr], te.Expr]) -> None:
    """Store `element(row, channel)` for the rows of the range, or for all."""
    if layer.takes_row_range:
        layer.rows(lambda row, _column, channel: element(row, channel))
    else:
        channels = layer.node.inputs[1].shape[0]
        rows = layer.node.output.type.elements // channels
        layer.tensor(element, (rows, channels))


def _emit_integers(layer: FormulaContext) -> None:
    node = layer.node
    weights, w = node.inputs[1], stored_weights(layer)
    sums_of_weights = layer.data(1).astype(np.int64).sum(axis=1)
    arithmetic = WeightedArithmetic.of(layer, params_of(node), sums_of_weights)

    def element(row: te.Expr, channel: te.Expr) -> te.Expr:
        ic = te.reduce_axis(0, weights.shape[1], "ic")
        product = arithmetic.product(_features(layer, row, ic), w[channel, ic])
        total = te.sum(product, ic, init=arithmetic.start(channel))
        return arithmetic.stored(total, channel)

    _emit_rows(layer, element)


def _emit_float(layer: FormulaContext) -> None:
    node = layer.node
    op, weights = node.attributes(FullyConnected), node.inputs[1]
    hybrid = weights.dtype is DType.INT8
    w = layer.weights
    scales = channel_scales(layer) if hybrid else None
    bias = layer.bias

    def element(row: te.Expr, channel: te.Expr) -> te.Expr:
        ic = te.reduce_axis(0, weights.shape[1], "ic")
        weight = w[channel, ic]
        product = _features(layer, row, ic) * (te.cast(DType.FLOAT32, weight) if hybrid else weight)
        total = te.sum(product, ic)
        if scales is not None:
            total = total * scales[channel]
        if bias is not None:
            total = total + bias[channel]
        return activate(total, op.activation)

    _emit_rows(layer, element)
