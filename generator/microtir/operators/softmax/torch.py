"""Read PyTorch's softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers


def _along(operator: str) -> Callable[[TorchNode], Tensor]:
    """Return what reads a softmax along an axis; that of a number is that of one element."""

    def read(node: TorchNode) -> Tensor:
        x = node.cast(node.tensor("self"), DType.FLOAT32)
        line = x if x.shape else node.reshaped(x, (1,))
        axis = node.axis(node.integer("dim"), len(line.shape))
        return node.reshaped(node.onnx(operator, line, axis=axis), x.shape)

    return read


def safe_softmax(node: TorchNode) -> Tensor:
    """Read _safe_softmax: zeros where all of a line is minus infinity."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim"), len(x.shape))
    result = node.onnx("Softmax", x, axis=axis)
    most = node.onnx("ReduceMax", x, node.ints(axis), keepdims=1)
    is_nothing = node.onnx("Equal", most, node.scalar(float(-np.inf)))
    return node.onnx("Where", is_nothing, node.scalar(0.0), result)


_ARGUMENTS = "self dim dtype half_to_float"

TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(_along("Softmax"), _ARGUMENTS, "softmax.int", "_softmax", "special_softmax"),
    *readers(
        _along("LogSoftmax"), _ARGUMENTS, "log_softmax.int", "_log_softmax", "special_log_softmax"
    ),
    *readers(safe_softmax, _ARGUMENTS, "_safe_softmax"),
)
