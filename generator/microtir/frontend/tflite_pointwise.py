"""Readers of element-wise operators and of those that combine elements along axes."""

from __future__ import annotations

import math

from microtir.frontend.operands import Converted, Operands
from microtir.frontend.tflite_schema import (
    AddOptions,
    BuiltinOperator,
    FullyConnectedOptions,
    LeakyReluOptions,
    MulOptions,
    ReducerOptions,
    SoftmaxOptions,
    SubOptions,
    WeightsFormat,
)
from microtir.graph.ops import (
    Activation,
    Add,
    BinaryArithmetic,
    CastTo,
    Dequantize,
    FullyConnected,
    HardSwish,
    LeakyRelu,
    Logistic,
    LogSoftmax,
    Maximum,
    Mean,
    Minimum,
    Mul,
    Operator,
    Quantize,
    Relu,
    Softmax,
    Sub,
    Tanh,
)

_PLAIN: dict[BuiltinOperator, Operator] = {
    BuiltinOperator.RELU: Relu(Activation.RELU),
    BuiltinOperator.RELU6: Relu(Activation.RELU6),
    BuiltinOperator.RELU_N1_TO_1: Relu(Activation.RELU_N1_TO_1),
    BuiltinOperator.HARD_SWISH: HardSwish(),
    BuiltinOperator.LOGISTIC: Logistic(),
    BuiltinOperator.TANH: Tanh(),
    BuiltinOperator.QUANTIZE: Quantize(),
    BuiltinOperator.DEQUANTIZE: Dequantize(),
    BuiltinOperator.CAST: CastTo(),
}


def unary(operands: Operands) -> Converted:
    """Operators of one input without attributes."""
    return Converted(_PLAIN[operands.code], (operands.input(0),))


def leaky_relu(operands: Operands) -> Converted:
    """LEAKY_RELU."""
    alpha = operands.table(LeakyReluOptions).alpha
    if not math.isfinite(alpha):
        raise operands.malformed(f"alpha is {alpha}", "a finite number")
    return Converted(LeakyRelu(alpha), (operands.input(0),))


def arithmetic(operands: Operands) -> Converted:
    """ADD, SUB and MUL."""
    options = operands.options
    assert isinstance(options, AddOptions | SubOptions | MulOptions)
    kinds: dict[BuiltinOperator, type[BinaryArithmetic]] = {
        BuiltinOperator.ADD: Add,
        BuiltinOperator.SUB: Sub,
        BuiltinOperator.MUL: Mul,
    }
    op = kinds[operands.code](operands.activation(options.activation))
    return Converted(op, operands.present)


def extremum(operands: Operands) -> Converted:
    """MINIMUM and MAXIMUM."""
    op = Minimum() if operands.code is BuiltinOperator.MINIMUM else Maximum()
    return Converted(op, operands.present)


def softmax(operands: Operands) -> Converted:
    """SOFTMAX."""
    beta = operands.table(SoftmaxOptions).beta
    if not (math.isfinite(beta) and beta > 0.0):
        raise operands.malformed(f"beta is {beta}", "finite and above 0")
    return Converted(Softmax(beta), (operands.input(0),))


def log_softmax(operands: Operands) -> Converted:
    """LOG_SOFTMAX."""
    return Converted(LogSoftmax(), (operands.input(0),))


def mean(operands: Operands) -> Converted:
    """MEAN: data, axes."""
    data = operands.input(0)
    rank = len(data.shape)
    named = operands.integers(1, "the axes")
    axes = tuple(sorted({operands.axis(axis, rank) for axis in named}))
    return Converted(Mean(axes, operands.table(ReducerOptions).keep_dims), (data,))


def fully_connected(operands: Operands) -> Converted:
    """FULLY_CONNECTED: data of any rank read as (rows, I), weights (O, I), optional bias."""
    options = operands.table(FullyConnectedOptions)
    if options.weights_format is not WeightsFormat.DEFAULT:
        raise operands.unsupported(
            f"its weights are stored as {options.weights_format.name}",
            WeightsFormat.DEFAULT.name,
            "convert the model without shuffled weights",
        )
    op = FullyConnected(operands.activation(options.activation))
    inputs = operands.with_weights()
    kept = (*inputs[0].shape[:-1], *inputs[1].shape[:1]) if options.keep_num_dims else None
    return Converted(op, inputs, free=kept)
