"""Read ONNX's activations."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.activations import RECORDS
from microtir.operators.activations import definition as activations
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul, Sub
from microtir.operators.common import attributes, onnx_rows, onnx_types
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader, plain
from microtir.operators.common.onnx_quantized import between_integers
from microtir.operators.conditions.definition import Greater
from microtir.operators.division.definition import Div
from microtir.operators.selection.definition import Select
from microtir.operators.unary.definition import Abs, Exp, Log, Neg

_SELU_ALPHA, _SELU_GAMMA = 1.67326319217681884765625, 1.05070102214813232421875
_QUICK_ALPHA = float(np.float32(1.702))
_CLAMPS = {activation.real_range: activation for activation in attributes.Activation}


def clip(node: OnnxNode) -> Tensor:
    """Read Clip; its bounds are attributes before operator set 11, and inputs since."""
    x = node.input(0)
    low, high = (_bound(node, name, index) for name, index in (("min", 1), ("max", 2)))
    if low is None and high is None:
        return x
    ends = _known(low, -np.inf), _known(high, np.inf)
    activation = _CLAMPS.get(ends) if x.dtype.is_float else None
    if activation is not None and activation is not attributes.Activation.NONE:
        return node.emit(activations.Relu(activation), x)
    if low is not None:
        x = onnx_types.emit_wide(node, Maximum(), x, low)
    return x if high is None else onnx_types.emit_wide(node, Minimum(), x, high)


def _bound(node: OnnxNode, name: str, index: int) -> Tensor | None:
    if node.version < 11:
        return node.scalar_like(node.number(name), node.input(0)) if node.has(name) else None
    bound = node.optional(index)
    if bound is not None and bound.type.elements != 1:
        raise node.malformed(f"the bound '{name}' has the shape {bound.shape}", "one number")
    return bound


def _known(bound: Tensor | None, missing: float) -> float:
    """Return a bound; NaN if it is computed."""
    if bound is None:
        return missing
    return float("nan") if bound.data is None else float(bound.data.reshape(()))


def elu(node: OnnxNode) -> Tensor:
    """Read Elu: alpha (exp(x) - 1) below 0."""
    alpha, x = node.number("alpha", 1.0), node.input(0)
    return node.emit(activations.Elu(), x) if alpha == 1.0 else _scaled_elu(node, alpha, 1.0)


def selu(node: OnnxNode) -> Tensor:
    """Read Selu: gamma times an ELU."""
    return _scaled_elu(node, node.number("alpha", _SELU_ALPHA), node.number("gamma", _SELU_GAMMA))


def _scaled_elu(node: OnnxNode, alpha: float, gamma: float) -> Tensor:
    x = node.input(0)
    zero = node.scalar_like(0.0, x)
    positive = node.emit(Maximum(), x, zero)
    negative = node.emit(activations.Elu(), node.emit(Minimum(), x, zero))
    scaled = node.emit(Mul(), negative, node.scalar_like(alpha, x))
    total = node.emit(Add(), positive, scaled)
    return total if gamma == 1.0 else node.emit(Mul(), total, node.scalar_like(gamma, x))


def celu(node: OnnxNode) -> Tensor:
    """Read Celu: alpha (exp(x / alpha) - 1) below 0."""
    alpha, x = node.number("alpha", 1.0), node.input(0)
    zero = node.scalar_like(0.0, x)
    inner = node.emit(Div(), node.emit(Minimum(), x, zero), node.scalar_like(alpha, x))
    scaled = node.emit(Mul(), node.emit(activations.Elu(), inner), node.scalar_like(alpha, x))
    return node.emit(Add(), node.emit(Maximum(), x, zero), scaled)


def leaky_relu(node: OnnxNode) -> Tensor:
    """Read LeakyRelu."""
    return node.emit(
        activations.LeakyRelu(node.number("alpha", float(np.float32(0.01)))), node.input(0)
    )


def hard_sigmoid(node: OnnxNode) -> Tensor:
    """Read HardSigmoid: alpha x + beta, between 0 and 1."""
    x = node.input(0)
    alpha = node.number("alpha", float(np.float32(0.2)))
    product = node.emit(Mul(), x, node.scalar_like(alpha, x))
    line = node.emit(Add(), product, node.scalar_like(node.number("beta", 0.5), x))
    lower = node.emit(Maximum(), line, node.scalar_like(0.0, x))
    return node.emit(Minimum(), lower, node.scalar_like(1.0, x))


def gelu(node: OnnxNode) -> Tensor:
    """Read Gelu."""
    return node.emit(activations.Gelu(node.word("approximate", "none") == "tanh"), node.input(0))


def swish(node: OnnxNode) -> Tensor:
    """Read Swish: x times the sigmoid of alpha x."""
    x, alpha = node.input(0), node.number("alpha", 1.0)
    inner = x if alpha == 1.0 else node.emit(Mul(), x, node.scalar_like(alpha, x))
    return node.emit(Mul(), x, node.emit(activations.Logistic(), inner))


def _softplus(node: OnnxNode, x: Tensor) -> Tensor:
    """Emit log(1 + exp(x)) in a form that overflows nowhere: max(x, 0) + log(1 + exp(-|x|))."""
    small = node.emit(Exp(), node.emit(Neg(), node.emit(Abs(), x)))
    rest = node.emit(Log(), node.emit(Add(), small, node.scalar_like(1.0, x)))
    return node.emit(Add(), node.emit(Maximum(), x, node.scalar_like(0.0, x)), rest)


def softplus(node: OnnxNode) -> Tensor:
    """Read Softplus."""
    return _softplus(node, node.input(0))


def mish(node: OnnxNode) -> Tensor:
    """Read Mish: x tanh(softplus(x))."""
    x = node.input(0)
    return node.emit(Mul(), x, node.emit(activations.Tanh(), _softplus(node, x)))


def softsign(node: OnnxNode) -> Tensor:
    """Read Softsign: x / (1 + |x|)."""
    x = node.input(0)
    return node.emit(Div(), x, node.emit(Add(), node.emit(Abs(), x), node.scalar_like(1.0, x)))


def thresholded_relu(node: OnnxNode) -> Tensor:
    """Read ThresholdedRelu: x above alpha, else 0."""
    x = node.input(0)
    alpha = node.scalar_like(node.number("alpha", 1.0), x)
    nothing = node.scalar_like(0.0, x)
    return node.emit(Select(), _is_greater(node, x, alpha), x, nothing, dtype=x.dtype)


def shrink(node: OnnxNode) -> Tensor:
    """Read Shrink: beyond lambd in size, x moved by bias towards 0; else 0."""
    x = node.input(0)
    limit = node.scalar_like(node.number("lambd", 0.5), x)
    bias = node.scalar_like(node.number("bias", 0.0), x)
    nothing = node.scalar_like(0.0, x)
    above, below = node.emit(Sub(), x, bias), node.emit(Add(), x, bias)
    is_above = _is_greater(node, x, limit)
    is_below = _is_greater(node, node.emit(Neg(), limit), x)
    inner = node.emit(Select(), is_below, below, nothing, dtype=x.dtype)
    return node.emit(Select(), is_above, above, inner, dtype=x.dtype)


def _is_greater(node: OnnxNode, a: Tensor, b: Tensor) -> Tensor:
    return node.emit(Greater(), a, b, dtype=DType.BOOL)


def relu(node: OnnxNode) -> Tensor:
    """Read Relu, of integers by their largest numbers."""
    x = node.input(0)
    if x.dtype.is_float:
        return node.emit(activations.Relu(), x)
    return onnx_types.emit_wide(node, Maximum(), x, node.scalar_like(0, x))


def biased_gelu(node: OnnxNode) -> Tensor:
    """Read com.microsoft's BiasGelu."""
    return node.emit(activations.Gelu(approximate=False), node.emit(Add(), *node.present))


def fast_gelu(node: OnnxNode) -> Tensor:
    """Read com.microsoft's FastGelu: by tanh, of a sum where there is a bias."""
    x, bias = node.input(0), node.optional(1)
    return node.emit(
        activations.Gelu(approximate=True), x if bias is None else node.emit(Add(), x, bias)
    )


def quick_gelu(node: OnnxNode) -> Tensor:
    """Read com.microsoft's QuickGelu: x times the sigmoid of alpha x."""
    x = node.input(0)
    inner = node.emit(Mul(), x, node.scalar_like(node.number("alpha", _QUICK_ALPHA), x))
    return node.emit(Mul(), x, node.emit(activations.Logistic(), inner))


def parametric_softplus(node: OnnxNode) -> Tensor:
    """Read onnxruntime's ParametricSoftplus: alpha log(1 + exp(beta x))."""
    x = node.input(0)
    inner = node.emit(Mul(), x, node.scalar_like(node.number("beta"), x))
    return node.emit(Mul(), _softplus(node, inner), node.scalar_like(node.number("alpha"), x))


def scaled_tanh(node: OnnxNode) -> Tensor:
    """Read onnxruntime's ScaledTanh: alpha tanh(beta x)."""
    x = node.input(0)
    inner = node.emit(Mul(), x, node.scalar_like(node.number("beta"), x))
    return node.emit(
        Mul(), node.emit(activations.Tanh(), inner), node.scalar_like(node.number("alpha"), x)
    )


ONNX_READERS = (
    *onnx_rows.readers_of(RECORDS),
    OnnxReader("Relu", relu),
    OnnxReader("Clip", clip, (1, 3), ("max", "min")),
    OnnxReader("LeakyRelu", leaky_relu, attributes=("alpha",)),
    OnnxReader("Elu", elu, attributes=("alpha",)),
    OnnxReader("Selu", selu, attributes=("alpha", "gamma")),
    OnnxReader("Celu", celu, attributes=("alpha",)),
    OnnxReader("HardSigmoid", hard_sigmoid, attributes=("alpha", "beta")),
    OnnxReader("Gelu", gelu, attributes=("approximate",)),
    OnnxReader("Swish", swish, attributes=("alpha",)),
    OnnxReader("Softplus", softplus),
    OnnxReader("Mish", mish),
    OnnxReader("Softsign", softsign),
    OnnxReader("ThresholdedRelu", thresholded_relu, attributes=("alpha",)),
    OnnxReader("Shrink", shrink, attributes=("bias", "lambd")),
    OnnxReader("Gelu", plain(activations.Gelu(approximate=False)), domain=MICROSOFT),
    OnnxReader("BiasGelu", biased_gelu, (2, 2), domain=MICROSOFT),
    OnnxReader("FastGelu", fast_gelu, (1, 2), domain=MICROSOFT),
    OnnxReader("QuickGelu", quick_gelu, attributes=("alpha",), domain=MICROSOFT),
    OnnxReader(
        "ParametricSoftplus", parametric_softplus, attributes=("alpha", "beta"), domain=MICROSOFT
    ),
    OnnxReader("ScaledTanh", scaled_tanh, attributes=("alpha", "beta"), domain=MICROSOFT),
    OnnxReader("ThresholdedRelu", thresholded_relu, attributes=("alpha",), domain=MICROSOFT),
    OnnxReader(
        "QLinearSigmoid", between_integers(plain(activations.Logistic())), (4, 5), domain=MICROSOFT
    ),
    OnnxReader(
        "QLinearLeakyRelu", between_integers(leaky_relu), (4, 5), ("alpha",), domain=MICROSOFT
    ),
)
