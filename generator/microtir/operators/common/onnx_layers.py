"""Emit layers with weights, for the readers of several families."""

from __future__ import annotations

from microtir.graph.ir import Tensor
from microtir.graph.operator import Operator
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.shapes import Shape


def with_bias(
    node: OnnxNode, op: Operator, x: Tensor, weights: Tensor, shape: Shape | None = None
) -> Tensor:
    """Emit a layer with the bias that is input 2, if there is one; a computed one is added."""
    bias = node.optional(2)
    if bias is None:
        return node.emit(op, x, weights, shape=shape)
    if bias.data is not None:
        return node.emit(op, x, weights, bias, shape=shape)
    return node.emit(Add(), node.emit(op, x, weights, shape=shape), bias)
