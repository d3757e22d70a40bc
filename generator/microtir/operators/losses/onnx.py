"""Read ONNX's losses, as the functions by which ONNX defines them."""

from __future__ import annotations

from microtir.operators.common.onnx_operands import OnnxReader, by_definition

_ATTRIBUTES = ("ignore_index", "reduction")

ONNX_READERS = (
    OnnxReader("NegativeLogLikelihoodLoss", by_definition, (2, 3), _ATTRIBUTES),
    OnnxReader("SoftmaxCrossEntropyLoss", by_definition, (2, 3), _ATTRIBUTES, outputs=2),
)
