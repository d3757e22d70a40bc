"""Define in numpy, to the bit, what recurrent layers compute."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.operators.common import arrays, multiplier, sigmoid_table
from microtir.operators.common.fixed_point import (
    Ints,
    multiply_by_quantized_multiplier,
    multiply_by_reduced_multiplier,
    wrap,
)
from microtir.operators.common.sigmoid_table_meaning import logistic_of_int16, tanh_of_int16
from microtir.operators.recurrent.definition import (
    GATES,
    Lstm,
    Svdf,
    lstm_extents,
    lstm_params,
    svdf_params,
)


def svdf(
    op: Svdf, node: Node, x: Array, memory: Array, features: Array, time: Array,
    bias: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Compute SVDF: new features push the oldest out of the memory, which is then summed up."""
    if node.inputs[0].dtype.is_int:
        return _integer_svdf(op, node, x, memory, features, time, bias)
    of_features = arrays.real_weights(features, node.inputs[2].type)
    of_time = arrays.real_weights(time, node.inputs[3].type)
    newest = x.astype(np.float64) @ of_features.T
    memory_after = _pushed(memory.astype(np.float64), newest, time.shape)
    sums = (memory_after * of_time).reshape(len(x), -1, op.rank * time.shape[1]).sum(axis=-1)
    if bias is not None:
        sums = sums + bias
    y, after = arrays.activate(sums, op.activation), node.outputs[1].type
    return arrays.as_output(y, node.outputs[0].type), arrays.as_output(
        memory_after.reshape(memory.shape), after
    )


def _integer_svdf(
    op: Svdf, node: Node, x: Array, memory: Array, features: Array, time: Array, bias: Array | None
) -> tuple[Array, Array]:
    params = svdf_params(node)
    input_zero, memory_zero = (t.type.quant.zero_point for t in node.inputs[:2])
    y, after = (tensor.type for tensor in node.outputs)
    total = wrap((arrays.stored(x) - input_zero) @ arrays.stored(features).T)
    scaled = multiply_by_quantized_multiplier(total, *params.feature)
    # The zero point comes last, and may push a clamped value out of the type.
    clamped = np.clip(scaled, after.dtype.min, after.dtype.max)
    newest = wrap(clamped + memory_zero, 8 * after.dtype.bytes)
    memory_after = _pushed(arrays.stored(memory), newest, time.shape)
    products = (memory_after - memory_zero) * arrays.stored(time)
    sums = products.reshape(len(x), -1, op.rank * time.shape[1]).sum(axis=-1)
    if bias is not None:
        sums = sums + bias
    result = multiply_by_quantized_multiplier(wrap(sums), *params.time) + y.quant.zero_point
    result = np.clip(result, y.dtype.min, y.dtype.max)
    return arrays.as_output(result, y), arrays.as_output(memory_after.reshape(memory.shape), after)


def _pushed(memory: Array, newest: Array, shape: tuple[int, ...]) -> Array:
    """Return the memory (B, F, M) with `newest` (B, F) behind all but the oldest features."""
    older = memory.reshape(len(memory), *shape)[:, :, 1:]
    return np.concatenate([older, newest[:, :, np.newaxis]], axis=-1)


def lstm(
    op: Lstm, node: Node, x: Array, hidden: Array, cell: Array, *constants: Array
) -> tuple[Array, ...]:
    """Compute UNIDIRECTIONAL_SEQUENCE_LSTM step by step."""
    weights, recurrent, biases = (
        constants[first : first + GATES] for first in range(0, 3 * GATES, GATES)
    )
    make = _float_step if node.inputs[0].dtype.is_float else _integer_step
    step = make(op, node, weights, recurrent, biases)
    rows = []
    for number in range(lstm_extents(node).steps):
        hidden, cell = step(x[number] if op.time_major else x[:, number], hidden, cell)
        rows.append(hidden)
    y = np.stack(rows[-1:] if op.last_only else rows, axis=0 if op.time_major else 1)
    values = zip((y, hidden, cell), node.outputs, strict=True)
    return tuple(arrays.as_output(value, tensor.type) for value, tensor in values)


Step: TypeAlias = "Callable[[Array, Array, Array], tuple[Array, Array]]"
"""Makes new states of an input (B, I) and the old states (B, U): hidden state, then cells."""


def _float_step(
    op: Lstm, node: Node, weights: tuple[Array, ...], recurrent: tuple[Array, ...],
    biases: tuple[Array, ...],
) -> Step:  # fmt: skip
    types = [tensor.type for tensor in node.inputs[3 : 3 + 2 * GATES]]
    typed = zip((*weights, *recurrent), types, strict=True)
    matrices = [arrays.real_weights(values, type_) for values, type_ in typed]

    def sums(gate: int, x: arrays.Doubles, hidden: arrays.Doubles) -> arrays.Doubles:
        of_input = x.astype(np.float64) @ matrices[gate].T
        of_hidden = hidden.astype(np.float64) @ matrices[GATES + gate].T
        return np.asarray(of_input + of_hidden + biases[gate])

    def step(
        x: arrays.Doubles, hidden: arrays.Doubles, cell: arrays.Doubles
    ) -> tuple[arrays.Doubles, arrays.Doubles]:
        arguments = [sums(gate, x, hidden) for gate in range(GATES)]
        add, keep, show = (_logistic(arguments[gate]) for gate in (0, 1, 3))
        cell = keep * cell + add * np.tanh(arguments[2])
        if op.cell_clip > 0.0:
            cell = np.clip(cell, -op.cell_clip, op.cell_clip)
        return show * np.tanh(cell), cell

    return step


def _logistic(x: arrays.Doubles) -> arrays.Doubles:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * x)))


def _integer_step(
    _op: Lstm, node: Node, weights: tuple[Array, ...], recurrent: tuple[Array, ...],
    biases: tuple[Array, ...],
) -> Step:  # fmt: skip
    params = lstm_params(node)
    input_zero, hidden_zero = (t.type.quant.zero_point for t in node.inputs[:2])
    hidden_type = node.outputs[1].dtype
    is_long = node.inputs[0].dtype is DType.INT16

    def scaled(sums: Ints, factor: multiplier.QuantizedMultiplier) -> Ints:
        if is_long:
            return _int16(multiply_by_reduced_multiplier(sums, *multiplier.reduced(factor)))
        return _int16(multiply_by_quantized_multiplier(wrap(sums), *factor))

    def argument(gate: int, x: Ints, hidden: Ints) -> Ints:
        of_input = (x - input_zero) @ arrays.stored(weights[gate]).T + arrays.stored(biases[gate])
        of_hidden = (hidden - hidden_zero) @ arrays.stored(recurrent[gate]).T
        parts = scaled(of_input, params.inputs[gate]), scaled(of_hidden, params.recurrent[gate])
        return _int16(parts[0] + parts[1])

    def step(x: Array, hidden: Array, cell: Array) -> tuple[Array, Array]:
        arguments = [
            argument(gate, arrays.stored(x), arrays.stored(hidden)) for gate in range(GATES)
        ]
        add, keep, show = (logistic_of_int16(arguments[gate], _ARGUMENT) for gate in (0, 1, 3))
        remembered = _product(keep, arrays.stored(cell), params.forget)
        added = _product(add, tanh_of_int16(arguments[2], _ARGUMENT), params.added)
        new = np.clip(remembered + added, *params.cell_range)
        bent = tanh_of_int16(new, params.cell_scaling)
        shown = multiply_by_quantized_multiplier(show * bent, *params.hidden) + hidden_zero
        return np.clip(shown, hidden_type.min, hidden_type.max), new

    return step


_ARGUMENT = sigmoid_table.power_of_two_scaling(-12)


def _product(a: Ints, b: Ints, factor: multiplier.QuantizedMultiplier) -> Ints:
    return _int16(multiply_by_quantized_multiplier(a * b, *factor))


def _int16(values: Ints) -> Ints:
    return np.clip(values, DType.INT16.min, DType.INT16.max)
