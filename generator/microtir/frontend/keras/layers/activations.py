"""Read activations: layers of their own, and the functions that other layers name."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.frontend.keras.archive import Json
from microtir.frontend.keras.layer import KerasLayer, KerasReader
from microtir.graph.ir import Tensor
from microtir.graph.names import brief
from microtir.operators.activations.definition import Elu, Gelu, LeakyRelu, Logistic, Relu, Tanh
from microtir.operators.common import onnx_arithmetic as arithmetic
from microtir.operators.common.attributes import Activation
from microtir.operators.common.onnx_parts import along, from_last, reshaped, to_last, transposed
from microtir.operators.conversion.definition import CastTo
from microtir.operators.softmax.definition import LogSoftmax, Softmax
from microtir.operators.unary.definition import Abs, Exp, Neg, Sqrt, Square

_SIXTH = float(np.float32(1 / 6))

_WRITE = "use an activation of Keras, or compute the function of the layer in the application"


def _clamped(layer: KerasLayer, x: Tensor, low: float, high: float) -> Tensor:
    return arithmetic.least(layer.node, arithmetic.most(layer.node, x, low), high)


def _hard_sigmoid(layer: KerasLayer, x: Tensor) -> Tensor:
    """Emit x / 6 + 0.5 between 0 and 1, as Keras 3 has it."""
    return layer.onnx("HardSigmoid", x, alpha=_SIXTH, beta=0.5)


def _hard_silu(layer: KerasLayer, x: Tensor) -> Tensor:
    return arithmetic.mul(layer.node, x, _hard_sigmoid(layer, x))


def _relu(
    layer: KerasLayer, x: Tensor, slope: float = 0.0, most: float | None = None,
    threshold: float = 0.0,
) -> Tensor:  # fmt: skip
    """Emit the rectifier of Keras: x from a threshold on, less a slope below it, up to a limit."""
    if slope == 0.0 and threshold == 0.0 and most is None:
        return layer.emit(Relu(), x)
    if slope == 0.0 and threshold == 0.0 and most == 6.0:
        return layer.emit(Relu(Activation.RELU6), x)
    if threshold == 0.0:
        y = layer.emit(LeakyRelu(slope), x) if slope else layer.emit(Relu(), x)
    else:
        node = layer.node
        low = arithmetic.mul(node, arithmetic.sub(node, x, threshold), slope) if slope else 0.0
        is_above = arithmetic.greater(node, x, threshold)
        y = arithmetic.choose(node, is_above, x, low)
    return y if most is None else arithmetic.least(layer.node, y, most)


def _softmax(layer: KerasLayer, x: Tensor, axis: int = -1) -> Tensor:
    at = layer.node.axis(axis, len(x.shape))
    moved = to_last(layer.node, x, at)
    return from_last(layer.node, layer.emit(Softmax(), moved), at)


def _log_softmax(layer: KerasLayer, x: Tensor) -> Tensor:
    return layer.emit(LogSoftmax(), x)


def _log_sigmoid(layer: KerasLayer, x: Tensor) -> Tensor:
    return layer.emit(Neg(), layer.onnx("Softplus", layer.emit(Neg(), x)))


def _squareplus(layer: KerasLayer, x: Tensor) -> Tensor:
    """Emit (x + sqrt(x^2 + 4)) / 2."""
    node = layer.node
    root = layer.emit(Sqrt(), arithmetic.add(node, layer.emit(Square(), x), 4.0))
    return arithmetic.mul(node, arithmetic.add(node, x, root), 0.5)


def _sparse_plus(layer: KerasLayer, x: Tensor) -> Tensor:
    """Emit 0 below -1, x above 1, and ((x + 1) / 2)^2 between them."""
    node = layer.node
    curve = layer.emit(Square(), arithmetic.mul(node, arithmetic.add(node, x, 1.0), 0.5))
    low = arithmetic.choose(node, arithmetic.at_most(node, x, -1.0), 0.0, curve)
    return arithmetic.choose(node, arithmetic.less(node, x, 1.0), low, x)


def _sparse_sigmoid(layer: KerasLayer, x: Tensor) -> Tensor:
    half = arithmetic.mul(layer.node, arithmetic.add(layer.node, x, 1.0), 0.5)
    return _clamped(layer, half, 0.0, 1.0)


def _glu(layer: KerasLayer, x: Tensor) -> Tensor:
    """Emit the first half of the last axis times the sigmoid of the second."""
    last, size = len(x.shape) - 1, x.shape[-1] // 2
    if x.shape[-1] % 2:
        raise layer.malformed(f"its last axis has {x.shape[-1]} elements", "an even number")
    value, gate = (along(layer.node, x, last, at, size) for at in (0, size))
    return arithmetic.mul(layer.node, value, layer.emit(Logistic(), gate))


def _soft_shrink(layer: KerasLayer, x: Tensor) -> Tensor:
    return layer.onnx("Shrink", x, lambd=0.5, bias=0.5)


def _hard_shrink(layer: KerasLayer, x: Tensor) -> Tensor:
    size = layer.emit(Abs(), x)
    return arithmetic.choose(layer.node, arithmetic.greater(layer.node, size, 0.5), x, 0.0)


def _threshold(layer: KerasLayer, _x: Tensor) -> Tensor:
    raise layer.unsupported(
        "the file does not hold the numbers of the function 'threshold'",
        "activations of one argument", "write it as keras.layers.ReLU(threshold=…)",
    )  # fmt: skip


FUNCTIONS: Mapping[str, Callable[[KerasLayer, Tensor], Tensor]] = MappingProxyType({
    "linear": lambda _, x: x,
    "relu": _relu,
    "relu6": lambda layer, x: layer.emit(Relu(Activation.RELU6), x),
    "leaky_relu": lambda layer, x: layer.emit(LeakyRelu(float(np.float32(0.2))), x),
    "elu": lambda layer, x: layer.emit(Elu(), x),
    "selu": lambda layer, x: layer.onnx("Selu", x),
    "celu": lambda layer, x: layer.emit(Elu(), x),
    "gelu": lambda layer, x: layer.emit(Gelu(), x),
    "exponential": lambda layer, x: layer.emit(Exp(), x),
    "sigmoid": lambda layer, x: layer.emit(Logistic(), x),
    "hard_sigmoid": _hard_sigmoid,
    "silu": lambda layer, x: layer.onnx("Swish", x),
    "hard_silu": _hard_silu,
    "tanh": lambda layer, x: layer.emit(Tanh(), x),
    "hard_tanh": lambda layer, x: _clamped(layer, x, -1.0, 1.0),
    "tanh_shrink": lambda layer, x: arithmetic.sub(layer.node, x, layer.emit(Tanh(), x)),
    "soft_shrink": _soft_shrink,
    "hard_shrink": _hard_shrink,
    "softplus": lambda layer, x: layer.onnx("Softplus", x),
    "softsign": lambda layer, x: layer.onnx("Softsign", x),
    "squareplus": _squareplus,
    "mish": lambda layer, x: layer.onnx("Mish", x),
    "softmax": _softmax,
    "log_softmax": _log_softmax,
    "log_sigmoid": _log_sigmoid,
    "glu": _glu,
    "sparse_plus": _sparse_plus,
    "sparse_sigmoid": _sparse_sigmoid,
    "threshold": _threshold,
})  # fmt: skip
"""Activations by the names that layers have for them."""

_OTHER_NAMES = {"swish": "silu", "hard_swish": "hard_silu"}


def activated(layer: KerasLayer, x: Tensor, name: str = "activation") -> Tensor:
    """Return the activation of a value that a field of the layer names.

    Raises:
        UnsupportedModelError: it is no activation of Keras.
    """
    return apply(layer, x, layer.setting(name))


def apply(layer: KerasLayer, x: Tensor, activation: Json) -> Tensor:
    """Return an activation of a value; it is a name, or an object that holds one, or a layer."""
    if activation is None:
        return x
    config = activation.get("config") if isinstance(activation, dict) else activation
    known = config if isinstance(config, str) else ""
    if isinstance(activation, dict) and isinstance(config, dict):
        known = str(activation.get("class_name"))
        reader = next((r for r in KERAS_READERS if r.name == known), None)
        if reader is not None:
            result = reader.read(layer.as_layer(reader.name, config, x))
            return result if isinstance(result, Tensor) else result[0]
    name = _OTHER_NAMES.get(known, known)
    function = FUNCTIONS.get(name)
    if function is None:
        raise layer.unsupported(
            f"the activation {brief(name)!r} is not supported", ", ".join(FUNCTIONS), _WRITE
        )
    return function(layer, x)


def _read_relu(layer: KerasLayer) -> Tensor:
    most = layer.setting("max_value")
    return _relu(
        layer, layer.x, layer.number("negative_slope", 0.0),
        None if most is None else layer.number("max_value"), layer.number("threshold", 0.0),
    )  # fmt: skip


def _read_leaky_relu(layer: KerasLayer) -> Tensor:
    name = "alpha" if layer.setting("negative_slope") is None else "negative_slope"
    return layer.emit(LeakyRelu(layer.number(name, 0.3)), layer.x)


def _read_elu(layer: KerasLayer) -> Tensor:
    return layer.onnx("Elu", layer.x, alpha=layer.number("alpha", 1.0))


def _read_prelu(layer: KerasLayer) -> Tensor:
    (slopes,) = layer.arrays("alpha")
    return layer.onnx("PRelu", layer.x, slopes)


def _read_softmax(layer: KerasLayer) -> Tensor:
    x, axis = layer.x, layer.setting("axis", -1)
    mask = layer.mask
    if mask is not None:
        penalty = arithmetic.choose(
            layer.node,
            layer.emit(CastTo(), mask, dtype=DType.BOOL),
            layer.node.scalar_like(0.0, x),
            -3e38,
        )
        x = arithmetic.add(layer.node, x, penalty)
    if isinstance(axis, list) and len(axis) > 1:
        return _softmax_of_axes(layer, x)
    return _softmax(layer, x, layer.integers("axis")[0] if axis is not None else -1)


def _softmax_of_axes(layer: KerasLayer, x: Tensor) -> Tensor:
    """Emit a softmax over several axes: they are moved to the end, and made one."""
    node, shape = layer.node, x.shape
    axes = node.axes(layer.integers("axis"), len(shape))
    others = [n for n in range(len(shape)) if n not in axes]
    order = [*others, *axes]
    moved = transposed(node, x, order)
    rows = moved.shape[: len(others)]
    flat = reshaped(node, moved, *rows, math.prod(shape[n] for n in axes))
    back = reshaped(node, layer.emit(Softmax(), flat), *moved.shape)
    return transposed(node, back, [order.index(n) for n in range(len(shape))])


KERAS_READERS = (
    KerasReader("Activation", lambda layer: activated(layer, layer.x), ("activation",), True),
    KerasReader("ReLU", _read_relu, ("max_value", "negative_slope", "threshold"), True),
    KerasReader("LeakyReLU", _read_leaky_relu, ("negative_slope", "alpha"), True),
    KerasReader("ELU", _read_elu, ("alpha",), True),
    KerasReader("PReLU", _read_prelu, ("shared_axes",), True),
    KerasReader("Softmax", _read_softmax, ("axis",), True),
)
