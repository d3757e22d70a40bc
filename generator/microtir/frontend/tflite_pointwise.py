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
    data = operands.input(0)
    return Converted(_PLAIN[operands.code], (data,), (data.shape,))


def leaky_relu(operands: Operands) -> Converted:
    """LEAKY_RELU."""
    alpha = operands.table(LeakyReluOptions).alpha
    if not math.isfinite(alpha):
        raise operands.malformed(f"alpha is {alpha}", "a finite number")
    data = operands.input(0)
    return Converted(LeakyRelu(alpha), (data,), (data.shape,))


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
    return Converted(op, operands.present, (_broadcast(operands),))


def extremum(operands: Operands) -> Converted:
    """MINIMUM and MAXIMUM."""
    op = Minimum() if operands.code is BuiltinOperator.MINIMUM else Maximum()
    return Converted(op, operands.present, (_broadcast(operands),))


def softmax(operands: Operands) -> Converted:
    """SOFTMAX."""
    beta = operands.table(SoftmaxOptions).beta
    if not (math.isfinite(beta) and beta > 0.0):
        raise operands.malformed(f"beta is {beta}", "finite and above 0")
    return _over_last_axis(operands, Softmax(beta))


def log_softmax(operands: Operands) -> Converted:
    """LOG_SOFTMAX."""
    return _over_last_axis(operands, LogSoftmax())


def mean(operands: Operands) -> Converted:
    """MEAN: data, axes."""
    data = operands.input(0)
    rank = len(data.shape)
    named = operands.integers(1, "the axes")
    axes = tuple(sorted({operands.axis(axis, rank) for axis in named}))
    keep = operands.table(ReducerOptions).keep_dims
    shape = tuple(
        1 if axis in axes else extent
        for axis, extent in enumerate(data.shape)
        if keep or axis not in axes
    )
    return Converted(Mean(axes, keep), (data,), (shape,))


def fully_connected(operands: Operands) -> Converted:
    """FULLY_CONNECTED: data of any rank read as (rows, I), weights (O, I), optional bias."""
    options = operands.table(FullyConnectedOptions)
    if options.weights_format is not WeightsFormat.DEFAULT:
        raise operands.unsupported(
            f"its weights are stored as {options.weights_format.name}",
            WeightsFormat.DEFAULT.name,
            "convert the model without shuffled weights",
        )
    data, weights = operands.input(0), operands.require_computable(1, "the weights")
    if len(weights.shape) != 2:
        raise operands.malformed(f"the weights have the shape {weights.shape}", "(O, I)")
    outputs, inputs = weights.shape
    if inputs == 0 or data.type.elements % inputs:
        raise operands.malformed(
            f"data of shape {data.shape} cannot be read as rows of {inputs} elements"
        )
    op = FullyConnected(operands.activation(options.activation))
    rows = data.type.elements // inputs
    shape: tuple[int, ...] = (rows, outputs)
    # With keep_num_dims the leading dimensions stay; old converters kept them without saying so.
    written = operands.output.shape
    if math.prod(written) == rows * outputs and written[-1:] == (outputs,):
        shape = written
    return Converted(op, operands.with_bias(outputs), (shape,))


def _over_last_axis(operands: Operands, op: Operator) -> Converted:
    data = operands.input(0)
    if not data.shape:
        raise operands.malformed("its input is a scalar", "at least one dimension")
    return Converted(op, (data,), (data.shape,))


def _broadcast(operands: Operands) -> tuple[int, ...]:
    """The common shape of two inputs: missing and unit dimensions stretch."""
    left, right = (tensor.shape for tensor in operands.present)
    rank = max(len(left), len(right))
    pairs = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    shape = []
    for one, other in pairs:
        if one != other and 1 not in (one, other):
            raise operands.malformed(
                f"the shapes {left} and {right} do not fit together",
                "equal extents, or 1, in each dimension counted from the last",
            )
        shape.append(max(one, other))
    return tuple(shape)
