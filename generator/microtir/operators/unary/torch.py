"""Read PyTorch's functions of one element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.division.torch import truncated

_OF_FLOATS: Mapping[str, str] = MappingProxyType(
    {
        "exp": "Exp", "log": "Log", "sqrt": "Sqrt", "sin": "Sin", "cos": "Cos", "tan": "Tan",
        "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh", "cosh": "Cosh",
        "tanh": "Tanh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf",
        "sigmoid": "Sigmoid", "special_expit": "Sigmoid", "special_erf": "Erf",
    }
)  # fmt: skip
"""Functions of floats by their names in PyTorch, and in ONNX; integers become floats first."""

_SAME_TYPE: Mapping[str, str] = MappingProxyType({"neg": "Neg", "sign": "Sign", "sgn": "Sign"})
"""Functions whose results have the type of their operands."""

_ROUNDING: Mapping[str, str] = MappingProxyType(
    {"floor": "Floor", "ceil": "Ceil", "round": "Round"}
)
"""Functions that leave integers as they are."""


def _floats(read: Callable[[TorchNode, Tensor], Tensor]) -> Callable[[TorchNode], Tensor]:
    """Return a reader of what is computed in floats."""
    return lambda node: read(node, node.cast(node.tensor("self"), DType.FLOAT32))


def _function(operator: str) -> Callable[[TorchNode], Tensor]:
    return _floats(lambda node, x: node.onnx(operator, x))


def _same_type(operator: str) -> Callable[[TorchNode], Tensor]:
    """Return what reads a function in the type of its operand; integers are counts."""

    def read(node: TorchNode) -> Tensor:
        x = node.tensor("self")
        return node.onnx(operator, x) if x.dtype.is_float else of_integers(node, operator, x)

    return read


def of_integers(node: TorchNode, operator: str, x: Tensor) -> Tensor:
    """Return a function of integers of any width, from their differences to 0."""
    zero = node.scalar(0, x.dtype)
    if operator == "Sign":
        one, below = node.scalar(1, x.dtype), node.scalar(-1, x.dtype)
        sign = node.onnx("Where", node.onnx("Less", x, zero), below, zero)
        return node.onnx("Where", node.onnx("Greater", x, zero), one, sign)
    turned = node.onnx("Sub", zero, x)
    return turned if operator == "Neg" else node.onnx("Max", x, turned)


def _of_floats(x: Tensor, read: Callable[[Tensor], Tensor]) -> Tensor:
    """Return integers as they are, and a function of floats."""
    return read(x) if x.dtype.is_float else x


def _rounding(operator: str) -> Callable[[TorchNode], Tensor]:
    return lambda node: _of_floats(node.tensor("self"), lambda x: node.onnx(operator, x))


def truncate(node: TorchNode) -> Tensor:
    """Read trunc."""
    return _of_floats(node.tensor("self"), lambda x: truncated(node, x))


def fraction(node: TorchNode) -> Tensor:
    """Read frac: what is behind the point."""
    x = node.tensor("self")
    return node.onnx("Sub", x, truncated(node, x))


def round_to_decimals(node: TorchNode) -> Tensor:
    """Read round with a number of decimals."""
    x, factor = node.tensor("self"), node.scalar(10.0 ** node.integer("decimals"))
    return node.onnx("Div", node.onnx("Round", node.onnx("Mul", x, factor)), factor)


def square(node: TorchNode) -> Tensor:
    """Read square."""
    x = node.tensor("self")
    return node.onnx("Pow", x, node.scalar(2.0)) if x.dtype.is_float else node.onnx("Mul", x, x)


def _times(x: Tensor, node: TorchNode, factor: float) -> Tensor:
    return node.onnx("Mul", x, node.scalar(factor))


def _log_one_more(node: TorchNode, x: Tensor) -> Tensor:
    """Emit log(1 + x) as x log(u) / (u - 1) of u = 1 + x, which rounding leaves as exact as u."""
    one = node.scalar(1.0)
    near = node.onnx("Add", x, one)
    step = node.onnx("Sub", near, one)
    is_tiny = node.onnx("Equal", step, node.scalar(0.0))
    divisor = node.onnx("Where", is_tiny, one, step)
    scaled = node.onnx("Mul", node.onnx("Log", near), node.onnx("Div", x, divisor))
    is_endless = node.onnx("IsInf", x, detect_negative=0)
    return node.onnx("Where", node.onnx("Or", is_tiny, is_endless), x, scaled)


def _exp_less_one(node: TorchNode, x: Tensor) -> Tensor:
    """Emit exp(x) - 1 as tanh(x / 2) (exp(x) + 1), which is exact near 0."""
    more = node.onnx("Add", node.onnx("Exp", x), node.scalar(1.0))
    return node.onnx("Mul", node.onnx("Tanh", _times(x, node, 0.5)), more)


def _sinc(node: TorchNode, x: Tensor) -> Tensor:
    """Emit sin(pi x) / (pi x), which is 1 at 0."""
    angle = _times(x, node, math.pi)
    is_zero, one = node.onnx("Equal", x, node.scalar(0.0)), node.scalar(1.0)
    safe = node.onnx("Where", is_zero, one, angle)
    return node.onnx("Where", is_zero, one, node.onnx("Div", node.onnx("Sin", safe), safe))


def logit(node: TorchNode) -> Tensor:
    """Read logit: log(x / (1 - x)), of x between eps and 1 - eps if there is one."""
    x, eps = node.cast(node.tensor("self"), DType.FLOAT32), node.optional_number("eps")
    if eps is not None:
        x = node.onnx("Clip", x, node.scalar(float(eps)), node.scalar(1.0 - eps))
    rest = node.onnx("Sub", node.scalar(1.0), x)
    return node.onnx("Log", node.onnx("Div", x, rest))


def without_nan(node: TorchNode) -> Tensor:
    """Read nan_to_num: numbers in the place of NaN and of infinities."""
    x = node.tensor("self")
    if not x.dtype.is_float:
        return x
    most = 3.4028234663852886e38
    low, high = node.number("neginf", -most), node.number("posinf", most)
    missing = node.scalar(float(node.number("nan", 0.0)))
    result = node.onnx("Where", node.onnx("IsNaN", x), missing, x)
    for flags, value in (((1, 0), low), ((0, 1), high)):
        is_endless = node.onnx("IsInf", x, detect_negative=flags[0], detect_positive=flags[1])
        result = node.onnx("Where", is_endless, node.scalar(float(value)), result)
    return result


_FORMULAS: Mapping[str, Callable[[TorchNode, Tensor], Tensor]] = MappingProxyType(
    {
        "rsqrt": lambda node, x: node.onnx("Reciprocal", node.onnx("Sqrt", x)),
        "exp2": lambda node, x: node.onnx("Exp", _times(x, node, math.log(2))),
        "log2": lambda node, x: _times(node.onnx("Log", x), node, 1 / math.log(2)),
        "log10": lambda node, x: _times(node.onnx("Log", x), node, 1 / math.log(10)),
        "erfc": lambda node, x: node.onnx("Sub", node.scalar(1.0), node.onnx("Erf", x)),
        "deg2rad": lambda node, x: _times(x, node, math.pi / 180),
        "rad2deg": lambda node, x: _times(x, node, 180 / math.pi),
        "log1p": _log_one_more,
        "expm1": _exp_less_one,
        "sinc": _sinc,
    }
)
"""Functions that ONNX has no name for."""

TORCH_READERS: tuple[TorchReader, ...] = (
    *(row for name, to in _OF_FLOATS.items() for row in readers(_function(to), "self", name)),
    *(row for name, to in _SAME_TYPE.items() for row in readers(_same_type(to), "self", name)),
    *(row for name, to in _ROUNDING.items() for row in readers(_rounding(to), "self", name)),
    *(row for name, to in _FORMULAS.items() for row in readers(_floats(to), "self", name)),
    *readers(truncate, "self", "trunc", "fix"),
    *readers(fraction, "self", "frac"),
    *readers(round_to_decimals, "self decimals", "round.decimals"),
    *readers(square, "self", "square"),
    *readers(logit, "self eps", "logit", "special_logit"),
    *readers(without_nan, "self nan posinf neginf", "nan_to_num"),
)
