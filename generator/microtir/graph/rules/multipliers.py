"""Scales whose ratios have a fixed-point form.

The kernels of quantised operators assume that shifts fit an int32 and that some factors are below
one.  Scales of trained models are far from these limits; where they are not, tflite-micro aborts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

import numpy as np

from microtir.graph import ops
from microtir.graph import quantization as q
from microtir.graph.ir import Node
from microtir.graph.rules.problem import Problem

MAX_SHIFT = 30

MAX_SOFTMAX_ROW = (1 << q.SUM_INTEGER_BITS) - 1
"""Elements whose exponentials, at most 1 each, add up within the sum's format."""


def multipliers(node: Node) -> Iterator[Problem]:
    """Factors of int8 operators are representable."""
    rule = _RULES.get(type(node.op))
    if rule is None or node.inputs[0].dtype.is_float:
        return
    try:
        with np.errstate(over="raise"):
            problems = tuple(rule(node))
    except ArithmeticError:
        # Damaged scales: a product or quotient leaves the range of float32, or divides by 0.
        problems = (Problem("the ratio of its scales is not finite", f"below 2^{MAX_SHIFT}"),)
    yield from problems


def _shift(multiplier: q.QuantizedMultiplier, limit: int = MAX_SHIFT) -> Iterator[Problem]:
    if multiplier.shift > limit:
        yield Problem(
            f"the ratio of its scales is 2^{multiplier.shift - 1} or more", f"below 2^{limit}"
        )


def _conv(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, ops.Conv2D | ops.DepthwiseConv2D)
    image, weights = node.inputs[0].type, node.inputs[1].type
    for multiplier in q.conv_params(node.op, image, weights, node.output.type).multipliers:
        yield from _shift(multiplier)


def _fully_connected(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, ops.FullyConnected)
    x, weights = node.inputs[0].type, node.inputs[1].type
    params = q.fully_connected_params(node.op, x, weights, node.output.type)
    for multiplier in params.multipliers:
        yield from _shift(multiplier)


def _add(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, ops.Add | ops.Sub)
    first, second = node.inputs[0].type, node.inputs[1].type
    yield from _shift(q.add_params(node.op, first, second, node.output.type).output, 0)


def _mul(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, ops.Mul)
    first, second = node.inputs[0].type, node.inputs[1].type
    yield from _shift(q.mul_params(node.op, first, second, node.output.type).multiplier)


def _mean(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, ops.Mean)
    yield from _shift(q.mean_params(node.op, node.inputs[0].type, node.output.type).multiplier)


def _relu(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, ops.Relu)
    multiplier = q.relu_params(node.op, node.inputs[0].type, node.output.type).multiplier
    if multiplier is not None:
        yield from _shift(multiplier)


def _leaky_relu(node: Node) -> Iterator[Problem]:
    assert isinstance(node.op, ops.LeakyRelu)
    params = q.leaky_relu_params(node.op, node.inputs[0].type, node.output.type)
    yield from _shift(params.identity)
    yield from _shift(params.alpha)


def _hard_swish(node: Node) -> Iterator[Problem]:
    params = q.hard_swish_params(node.inputs[0].type, node.output.type)
    yield from _shift(params.output, 0)
    yield from _shift(params.reluish)


def _softmax(node: Node) -> Iterator[Problem]:
    x = node.inputs[0]
    beta = node.op.beta if isinstance(node.op, ops.Softmax) else 1.0
    least = 2.0 ** (q.DIFFERENCE_INTEGER_BITS - 31)
    if beta * x.type.quant.scale <= least:
        yield Problem(f"beta times its scale is {beta * x.type.quant.scale:g}", f"> {least:g}", x)
    if x.shape[-1] > MAX_SOFTMAX_ROW:
        yield Problem(f"it has rows of {x.shape[-1]} elements", f"at most {MAX_SOFTMAX_ROW}", x)


def _requantize(node: Node) -> Iterator[Problem]:
    yield from _shift(q.requantize_params(node.inputs[0].type, node.output.type).multiplier)


_RULES: Mapping[type[ops.Operator], Callable[[Node], Iterator[Problem]]] = MappingProxyType(
    {
        ops.Conv2D: _conv,
        ops.DepthwiseConv2D: _conv,
        ops.FullyConnected: _fully_connected,
        ops.Mean: _mean,
        ops.Add: _add,
        ops.Sub: _add,
        ops.Mul: _mul,
        ops.Relu: _relu,
        ops.LeakyRelu: _leaky_relu,
        ops.HardSwish: _hard_swish,
        ops.Softmax: _softmax,
        ops.LogSoftmax: _softmax,
        ops.Quantize: _requantize,
    }
)
