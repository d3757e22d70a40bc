"""Read ONNX's functions of one element."""

from __future__ import annotations

from microtir.operators import unary
from microtir.operators.common.onnx_operands import OnnxReader
from microtir.operators.common.onnx_rows import readers_of
from microtir.operators.unary import onnx_trigonometry as trigonometry

ONNX_READERS = (
    *readers_of(unary.RECORDS),
    OnnxReader("Tan", trigonometry.tangent),
    OnnxReader("Asin", trigonometry.arc_sine),
    OnnxReader("Acos", trigonometry.arc_cosine),
    OnnxReader("Atan", trigonometry.arc_tangent),
    OnnxReader("Sinh", trigonometry.hyperbolic_sine),
    OnnxReader("Cosh", trigonometry.hyperbolic_cosine),
    OnnxReader("Asinh", trigonometry.inverse_hyperbolic_sine),
    OnnxReader("Acosh", trigonometry.inverse_hyperbolic_cosine),
    OnnxReader("Atanh", trigonometry.inverse_hyperbolic_tangent),
)
