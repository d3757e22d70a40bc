"""Emit the functions of single elements that recurrent and fused layers name by a word."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from microtir.graph.ir import Tensor
from microtir.operators.activations.definition import Elu, LeakyRelu, Logistic, Relu, Tanh
from microtir.operators.common.onnx_arithmetic import add, choose, div, greater, least, most, mul
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.unary.definition import Abs, Exp, Log


def _affine(node: OnnxNode, x: Tensor, alpha: float, beta: float) -> Tensor:
    return add(node, mul(node, x, alpha), beta)


def _hard_sigmoid(node: OnnxNode, x: Tensor, alpha: float, beta: float) -> Tensor:
    return least(node, most(node, _affine(node, x, alpha, beta), 0.0), 1.0)


def _scaled_tanh(node: OnnxNode, x: Tensor, alpha: float, beta: float) -> Tensor:
    return mul(node, node.emit(Tanh(), mul(node, x, beta)), alpha)


def _elu(node: OnnxNode, x: Tensor, alpha: float, _beta: float) -> Tensor:
    low = mul(node, node.emit(Elu(), least(node, x, 0.0)), alpha)
    return add(node, most(node, x, 0.0), low)


def _thresholded(node: OnnxNode, x: Tensor, alpha: float, _beta: float) -> Tensor:
    return choose(node, greater(node, x, alpha), x, 0.0)


def _softsign(node: OnnxNode, x: Tensor, _alpha: float, _beta: float) -> Tensor:
    return div(node, x, add(node, node.emit(Abs(), x), 1.0))


def _softplus(node: OnnxNode, x: Tensor, _alpha: float, _beta: float) -> Tensor:
    small = node.emit(Exp(), mul(node, node.emit(Abs(), x), -1.0))
    return add(node, most(node, x, 0.0), node.emit(Log(), add(node, small, 1.0)))


@dataclass(frozen=True, slots=True)
class ElementFunction:
    """A function of an element with two numbers, and what these are if nothing is said."""

    emit: Callable[[OnnxNode, Tensor, float, float], Tensor]
    alpha: float = 0.0
    beta: float = 0.0


ACTIVATIONS = {
    "Sigmoid": ElementFunction(lambda node, x, _a, _b: node.emit(Logistic(), x)),
    "Tanh": ElementFunction(lambda node, x, _a, _b: node.emit(Tanh(), x)),
    "Relu": ElementFunction(lambda node, x, _a, _b: node.emit(Relu(), x)),
    "LeakyRelu": ElementFunction(lambda node, x, a, _b: node.emit(LeakyRelu(a), x), 0.01),
    "Affine": ElementFunction(_affine, 1.0),
    "HardSigmoid": ElementFunction(_hard_sigmoid, 0.2, 0.5),
    "ScaledTanh": ElementFunction(_scaled_tanh, 1.0, 1.0),
    "Elu": ElementFunction(_elu, 1.0),
    "ThresholdedRelu": ElementFunction(_thresholded, 1.0),
    "Softsign": ElementFunction(_softsign),
    "Softplus": ElementFunction(_softplus),
}
"""Activation functions by their name in ONNX."""


def fused_function(node: OnnxNode, x: Tensor, numbers: Sequence[float]) -> Tensor:
    """Return what the function that a fused layer names in its attribute makes of its result.

    Args:
        node: with the attribute `activation`.
        x: the result of the layer.
        numbers: alpha and beta, or the bounds of a Clip; where there are none, those by default.
    """
    name = node.word("activation", "")
    if not name:
        return x
    if name == "Clip":
        low, high = numbers if len(numbers) == 2 else (-math.inf, math.inf)
        return least(node, most(node, x, low), high)
    function = ACTIVATIONS.get(name)
    if function is None:
        raise node.malformed(f"the activation {name!r}", ", ".join(("Clip", *ACTIVATIONS)))
    alpha, beta = (*numbers, *(function.alpha, function.beta)[len(numbers) :])[:2]
    return function.emit(node, x, alpha, beta)
