"""Read ONNX's softmax functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from microtir.graph.ir import Tensor
from microtir.graph.operator import Operator
from microtir.operators.common import onnx_parts, onnx_quantized
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.movement.definition import Reshape
from microtir.operators.softmax.definition import LogSoftmax, Softmax

_OF_ONE_AXIS = 13  # before this operator set all axes from one on were taken together


def _along(op: Operator) -> Callable[[OnnxNode], Tensor]:
    """Return what reads a function of rows along an attribute's axis."""

    def read(node: OnnxNode) -> Tensor:
        x = node.input(0)
        rank = len(x.shape)
        if node.version < _OF_ONE_AXIS:
            axis = node.axis(node.integer("axis", 1), rank) if rank else 0
            rows = node.emit(
                Reshape(), x, shape=(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
            )
            return node.emit(Reshape(), node.emit(op, rows), shape=x.shape)
        if not rank:
            row = node.emit(Reshape(), x, shape=(1,))
            return node.emit(Reshape(), node.emit(op, row), shape=())
        axis = node.axis(node.integer("axis", -1), rank)
        return onnx_parts.from_last(node, node.emit(op, onnx_parts.to_last(node, x, axis)), axis)

    return read


def qlinear_softmax(node: OnnxNode) -> Tensor:
    """Read com.microsoft's QLinearSoftmax, by the rules of the operator set that it names."""
    version = node.integer("opset", _OF_ONE_AXIS)
    return onnx_quantized.between_integers(_along(Softmax()))(replace(node, version=version))


ONNX_READERS = (
    OnnxReader("QLinearSoftmax", qlinear_softmax, (4, 5), ("axis", "opset"), domain=MICROSOFT),
    OnnxReader("Softmax", _along(Softmax()), attributes=("axis",)),
    OnnxReader("LogSoftmax", _along(LogSoftmax()), attributes=("axis",)),
)
