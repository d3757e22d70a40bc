"""Read PyTorch's activations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from microtir.graph.ir import Tensor
from microtir.operators.common.torch_operands import Number, TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.common.torch_types import as_type, operand

_PLAIN: Mapping[str, str] = MappingProxyType(
    {"relu": "Relu", "mish": "Mish", "silu": "Swish", "hardswish": "HardSwish", "selu": "Selu"}
)
"""Activations without arguments, by their names in PyTorch and in ONNX."""


def _plain(operator: str) -> Callable[[TorchNode], Tensor]:
    return lambda node: node.onnx(operator, node.tensor("self"))


def hard_sigmoid(node: TorchNode) -> Tensor:
    """Read hardsigmoid: x / 6 + 1 / 2, between 0 and 1."""
    return node.onnx("HardSigmoid", node.tensor("self"), alpha=1 / 6, beta=0.5)


def six(node: TorchNode) -> Tensor:
    """Read relu6."""
    return _clipped(node, node.tensor("self"), 0, 6)


def hardtanh(node: TorchNode) -> Tensor:
    """Read hardtanh: a clamp."""
    low, high = node.number("min_val", -1.0), node.number("max_val", 1.0)
    return _clipped(node, node.tensor("self"), low, high)


def _clipped(node: TorchNode, x: Tensor, low: Number | None, high: Number | None) -> Tensor:
    """Return values between two numbers; where the lower one is above, PyTorch has the upper."""
    bounds = (None if n is None else as_type(node, n, x.dtype) for n in (low, high))
    return node.onnx("Clip", x, *bounds)


def clamp(node: TorchNode) -> Tensor:
    """Read clamp: bounds are numbers or tensors, and either may be left out."""
    x = node.cast(node.tensor("self"), node.result_dtype)
    bounds = tuple(operand(node, name) if node.has(name) else None for name in ("min", "max"))
    low, high = bounds
    if not isinstance(low, Tensor) and not isinstance(high, Tensor):
        return _clipped(node, x, low, high)
    if low is not None:
        x = node.onnx("Max", x, as_type(node, low, x.dtype))
    return x if high is None else node.onnx("Min", x, as_type(node, high, x.dtype))


def leaky_relu(node: TorchNode) -> Tensor:
    """Read leaky_relu."""
    slope = float(node.number("negative_slope", 0.01))
    return node.onnx("LeakyRelu", node.tensor("self"), alpha=slope)


def rrelu(node: TorchNode) -> Tensor:
    """Read rrelu at inference: the slope is the mean of both bounds."""
    if node.flag("training", False):
        raise node.unsupported(
            "its slopes are random", "inference", "call model.eval() before the export"
        )
    slope = (float(node.number("lower", 1 / 8)) + float(node.number("upper", 1 / 3))) / 2
    return node.onnx("LeakyRelu", node.tensor("self"), alpha=slope)


def noisy_relu(node: TorchNode) -> tuple[Tensor, Tensor]:
    """Read rrelu_with_noise at inference, which leaves the noise as it is."""
    return rrelu(node), node.tensor("noise")


def elu(node: TorchNode) -> Tensor:
    """Read elu: scale times x, or alpha (exp(input_scale x) - 1) below 0."""
    x, alpha = node.tensor("self"), float(node.number("alpha", 1.0))
    scale, inner = float(node.number("scale", 1.0)), float(node.number("input_scale", 1.0))
    if inner == 1.0 and scale == 1.0:
        return node.onnx("Elu", x, alpha=alpha)
    if inner == 1.0:
        return node.onnx("Selu", x, alpha=alpha, gamma=scale)
    below = node.onnx("Elu", node.onnx("Mul", x, node.scalar(inner)), alpha=alpha)
    chosen = node.onnx("Where", node.onnx("Greater", x, node.scalar(0.0)), x, below)
    return node.onnx("Mul", chosen, node.scalar(scale))


def celu(node: TorchNode) -> Tensor:
    """Read celu."""
    return node.onnx("Celu", node.tensor("self"), alpha=float(node.number("alpha", 1.0)))


def gelu(node: TorchNode) -> Tensor:
    """Read gelu, by the error function or by tanh."""
    return node.onnx("Gelu", node.tensor("self"), approximate=node.text("approximate", "none"))


def glu(node: TorchNode) -> Tensor:
    """Read glu: one half of an axis times the sigmoid of the other."""
    x = node.tensor("self")
    axis = node.axis(node.integer("dim", -1), len(x.shape))
    first, second = node.onnx_tensors("Split", x, axis=axis, num_outputs=2, outputs=2)
    return node.onnx("Mul", first, node.onnx("Sigmoid", second))


def softplus(node: TorchNode) -> Tensor:
    """Read softplus: log(1 + exp(beta x)) / beta, and x itself where that is above a threshold."""
    x, beta = node.tensor("self"), float(node.number("beta", 1.0))
    scaled = x if beta == 1.0 else node.onnx("Mul", x, node.scalar(beta))
    soft = node.onnx("Softplus", scaled)
    soft = soft if beta == 1.0 else node.onnx("Div", soft, node.scalar(beta))
    threshold = float(node.number("threshold", 20.0))
    if threshold >= _LINEAR:  # from there on both are the same float
        return soft
    return node.onnx("Where", node.onnx("Greater", scaled, node.scalar(threshold)), x, soft)


_LINEAR = 17.0


def log_sigmoid(node: TorchNode) -> tuple[Tensor, Tensor | None]:
    """Read log_sigmoid: -softplus(-x); log_sigmoid_forward has a second result for training."""
    x = node.tensor("self")
    return node.onnx("Neg", node.onnx("Softplus", node.onnx("Neg", x))), None


def softshrink(node: TorchNode) -> Tensor:
    """Read softshrink: values nearer to 0 by lambd, and 0 below that."""
    width = float(node.number("lambd", 0.5))
    return node.onnx("Shrink", node.tensor("self"), lambd=width, bias=width)


def hardshrink(node: TorchNode) -> Tensor:
    """Read hardshrink: 0 where values are near to it."""
    width = float(node.number("lambd", 0.5))
    return node.onnx("Shrink", node.tensor("self"), lambd=width, bias=0.0)


def threshold(node: TorchNode) -> Tensor:
    """Read threshold: a number in the place of what is not above another."""
    x = node.tensor("self")
    limit, value = (as_type(node, node.number(n), x.dtype) for n in ("threshold", "value"))
    return node.onnx("Where", node.onnx("Greater", x, limit), x, value)


def prelu(node: TorchNode) -> Tensor:
    """Read prelu: one slope, or one for each channel, which is the axis behind the first."""
    x, slope = node.tensor("self"), node.tensor("weight")
    if len(x.shape) > 1 and slope.type.elements > 1:
        slope = node.reshaped(slope, (slope.type.elements, *(1,) * (len(x.shape) - 2)))
    return node.onnx("PRelu", x, slope)


TORCH_READERS: tuple[TorchReader, ...] = (
    *(row for name, to in _PLAIN.items() for row in readers(_plain(to), "self", name)),
    *readers(hard_sigmoid, "self", "hardsigmoid"),
    *readers(six, "self", "relu6"),
    *readers(hardtanh, "self min_val max_val", "hardtanh"),
    *readers(clamp, "self min max", "clamp", "clamp.Tensor", "clip", "clip.Tensor"),
    *readers(clamp, "self min", "clamp_min", "clamp_min.Tensor"),
    *readers(clamp, "self max", "clamp_max", "clamp_max.Tensor"),
    *readers(leaky_relu, "self negative_slope", "leaky_relu"),
    *readers(
        noisy_relu,
        "self noise lower upper training generator",
        "rrelu_with_noise",
        "rrelu_with_noise_functional",
    ),
    *readers(rrelu, "self lower upper training generator", "rrelu"),
    *readers(elu, "self alpha scale input_scale", "elu"),
    *readers(celu, "self alpha", "celu"),
    *readers(gelu, "self approximate", "gelu"),
    *readers(glu, "self dim", "glu"),
    *readers(softplus, "self beta threshold", "softplus"),
    *readers(log_sigmoid, "self", "log_sigmoid", "log_sigmoid_forward"),
    *readers(softshrink, "self lambd", "softshrink"),
    *readers(hardshrink, "self lambd", "hardshrink"),
    *readers(threshold, "self threshold value", "threshold"),
    *readers(prelu, "self weight", "prelu", "_prelu_kernel"),
)
