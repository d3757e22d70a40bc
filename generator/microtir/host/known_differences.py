"""Say why outputs may differ from a reference although the C computes what it should."""

from __future__ import annotations

from collections.abc import Callable

from microtir.config import Numerics
from microtir.dtype import DType
from microtir.graph.ir import Graph, Node
from microtir.graph.names import brief
from microtir.host.oracle import Oracle
from microtir.operators.activations.definition import LeakyRelu, Logistic, Prelu, Relu
from microtir.operators.arithmetic.definition import Mul
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.division.definition import Div, may_shift_far
from microtir.operators.softmax.definition import Softmax
from microtir.operators.unary.definition import Abs, may_leave_float32
from microtir.rewrite.requests.numerics import rescales_as_onnx

_KNOWN: tuple[tuple[str, Callable[[Node], bool], str], ...] = (
    (
        "DIV",
        may_shift_far,
        (
            "where a numerator is small, tflite-micro and LiteRT shift the quotient\nby more than"
            " 31 bits, which gives what their processor makes of it; here it is 0"
            " (docs/operators.md)"
        ),
    ),
    (
        "EXP",
        may_leave_float32,
        (
            "where a result is too large for float32 or int32, LiteRT gives what its\ncompiler"
            " makes of it; here it is the largest number of the output (docs/operators.md)"
        ),
    ),
)

_ROUNDED_BY_LITERT: tuple[tuple[str, type, tuple[DType, ...]], ...] = (
    ("FULLY_CONNECTED", FullyConnected, (DType.INT8, DType.INT16)),
    ("CONV_2D", Conv2D, (DType.INT8,)),
    ("LOGISTIC", Logistic, (DType.INT8,)),
    ("RELU", Relu, (DType.INT8, DType.INT16)),
    ("LEAKY_RELU", LeakyRelu, (DType.INT8, DType.INT16)),
    ("PRELU", Prelu, (DType.INT8, DType.INT16)),
    ("ABS", Abs, (DType.INT8, DType.INT16)),
    ("MUL", Mul, (DType.INT8, DType.INT16)),
    ("DIV", Div, (DType.INT8, DType.INT16)),
    ("SOFTMAX", Softmax, (DType.INT16,)),
)
"""Operators of docs/frontend.md that LiteRT rounds otherwise than tflite-micro, by a step."""

_NOT_FOLLOWED = ("SOFTMAX",)  # with --numerics tflite_ref
_OPTIMISED = ("CONV_2D",)  # LiteRT's optimised kernels alone round it otherwise


def rounding_cause(graph: Graph, oracle: Oracle | None, numerics: Numerics) -> str:
    """Return why integers of a reference may be a step from the C's; empty if they may not be.

    Args:
        graph: as it was read.
        oracle: the program that computed the reference, None for a golden file of any maker.
        numerics: what the C was asked to reproduce.
    """
    if oracle is Oracle.REFERENCE:
        return ""
    if oracle is Oracle.TFLM:
        if numerics in (Numerics.MODEL, Numerics.TFLM):
            return ""
        return f"tflite-micro rounds differently from --numerics {numerics.value}"
    if rescales_as_onnx(graph):
        return (
            "onnxruntime and PyTorch rescale integers in floats, so that a value near the middle "
            "of two integers may become either (docs/onnx.md)"
        )
    is_reference = oracle is Oracle.LITERT
    is_followed = is_reference and numerics is Numerics.TFLITE_REF
    kinds = [
        kind
        for kind, operator, dtypes in _ROUNDED_BY_LITERT
        if (kind in _NOT_FOLLOWED or not is_followed)
        and not (is_reference and kind in _OPTIMISED)
        and any(isinstance(n.op, operator) and n.inputs[0].dtype in dtypes for n in graph.nodes)
    ]
    if not kinds or oracle is Oracle.ONNXRUNTIME:
        return ""
    return f"LiteRT rounds {', '.join(kinds)} differently from tflite-micro (docs/frontend.md)"


def operators_that_differ(graph: Graph) -> str:
    """Return what may differ from tflite-micro and LiteRT, and why; empty if nothing may.

    Args:
        graph: as it was read.
    """
    sentences = [
        f"{kind} {', '.join(names)}: {why}"
        for kind, may_differ, why in _KNOWN
        if (names := [repr(brief(node.name)) for node in graph.nodes if may_differ(node)])
    ]
    return "\n".join(sentences)


def one_run_each(samples: int) -> str:
    """Return what samples without an axis of steps are, of a model that keeps something."""
    return (
        "the model keeps something from run to run, and each sample is a run that begins anew; "
        "runs that follow\neach other are one sample with an axis of steps: of the shape "
        f"(1, {samples}, ...) in the place of ({samples}, ...)"
    )
