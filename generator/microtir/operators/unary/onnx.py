"""Read ONNX's functions of one element."""

from __future__ import annotations

from microtir.graph.operator import Operator
from microtir.operators.common.onnx_operands import OnnxReader, plain
from microtir.operators.common.onnx_types import plain_wide
from microtir.operators.unary.definition import (
    Abs,
    Ceil,
    Cos,
    Erf,
    Exp,
    Floor,
    Log,
    Neg,
    Round,
    Sign,
    Sin,
    Sqrt,
)
from microtir.operators.unary.onnx_trigonometry import (
    arc_cosine,
    arc_sine,
    arc_tangent,
    hyperbolic_cosine,
    hyperbolic_sine,
    inverse_hyperbolic_cosine,
    inverse_hyperbolic_sine,
    inverse_hyperbolic_tangent,
    tangent,
)

_PLAIN: tuple[tuple[str, Operator], ...] = (
    ("Neg", Neg()),
    ("Sqrt", Sqrt()),
    ("Exp", Exp()),
    ("Log", Log()),
    ("Erf", Erf()),
    ("Sin", Sin()),
    ("Cos", Cos()),
    ("Floor", Floor()),
    ("Ceil", Ceil()),
    ("Round", Round()),
)

ONNX_READERS = (
    *(OnnxReader(name, plain(op)) for name, op in _PLAIN),
    OnnxReader("Abs", plain_wide(Abs())),
    OnnxReader("Sign", plain_wide(Sign())),
    OnnxReader("Tan", tangent),
    OnnxReader("Asin", arc_sine),
    OnnxReader("Acos", arc_cosine),
    OnnxReader("Atan", arc_tangent),
    OnnxReader("Sinh", hyperbolic_sine),
    OnnxReader("Cosh", hyperbolic_cosine),
    OnnxReader("Asinh", inverse_hyperbolic_sine),
    OnnxReader("Acosh", inverse_hyperbolic_cosine),
    OnnxReader("Atanh", inverse_hyperbolic_tangent),
)
