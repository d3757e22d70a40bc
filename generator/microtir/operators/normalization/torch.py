"""Read PyTorch's normalisations."""

from __future__ import annotations

import numpy as np

from microtir.errors import ExportProblem
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader


def batch_norm(node: TorchNode) -> Tensor:
    """Read batch_norm with the statistics of the training."""
    x = node.tensor("input")
    mean, variance = node.optional_tensor("running_mean"), node.optional_tensor("running_var")
    if node.flag("training", False) or mean is None or variance is None:
        raise node.unsupported(
            "it computes the statistics of each batch",
            "statistics of the training",
            "call model.eval() before the export",
            ExportProblem.TRAINING_MODE,
        )
    ones = node.constant(np.ones(mean.shape, np.float32))
    zeros = node.constant(np.zeros(mean.shape, np.float32))
    scale, bias = node.optional_tensor("weight"), node.optional_tensor("bias")
    return node.onnx(
        "BatchNormalization", x, ones if scale is None else scale, zeros if bias is None else bias,
        mean, variance, epsilon=float(node.number("eps")),
    )  # fmt: skip


TORCH_READERS = (
    TorchReader(
        "aten.batch_norm.default",
        batch_norm,
        (
            "input", "weight", "bias", "running_mean", "running_var", "training", "momentum", "eps",
            "cudnn_enabled",
        ),
    ),
)  # fmt: skip
