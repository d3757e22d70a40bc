"""Give an LSTM integers: cells of 16 bits in a scale that is a power of two, weights of 8."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node, Quantization, Tensor, TensorType
from microtir.operators.recurrent.definition import GATES, Lstm, lstm_extents
from microtir.quantise.constants import quantised_bias, quantised_constant, real_values
from microtir.rewrite.reference import evaluate

HIDDEN, CELL, _WEIGHTS = 1, 2, 3
"""Places of the inputs of an LSTM."""


def power_of_two(quant: Quantization) -> Quantization:
    """Return the quantisation with the next larger power of two as its scale."""
    return replace(quant, scales=(2.0 ** math.ceil(math.log2(quant.scale)),))


def cell_range(node: Node, recorded: Sequence[Mapping[str, Array]]) -> tuple[float, float]:
    """Return the extremes of an LSTM's cells behind each step, which no tensor holds.

    Args:
        node: the LSTM of floats.
        recorded: the values of some runs, by name.
    """
    one = _one_step(node)
    op = node.attributes(Lstm)
    low, high = 0.0, 0.0
    for values in recorded:
        x, hidden, cell, *constants = (
            values[t.name] if t.data is None else t.data for t in node.inputs
        )
        for step in range(lstm_extents(node).steps):
            now = x[step : step + 1] if op.time_major else x[:, step : step + 1]
            _, hidden, cell = evaluate(one, [now, hidden, cell, *constants])
            low, high = min(low, float(cell.min())), max(high, float(cell.max()))
    return low, high


def _one_step(node: Node) -> Node:
    """Return the LSTM over sequences of one step, with all of its outputs."""
    op, extents = node.attributes(Lstm), lstm_extents(node)
    lead = (1, extents.batch) if op.time_major else (extents.batch, 1)
    x = Tensor("x", TensorType((*lead, extents.inputs), DType.FLOAT32))
    y = Tensor("y", TensorType((*lead, extents.units), DType.FLOAT32))
    states = (Tensor(name, node.inputs[HIDDEN].type) for name in ("hidden", "cell"))
    return replace(node, inputs=(x, *node.inputs[1:]), outputs=(y, *states))


def stored_inputs(
    node: Node, inputs: Sequence[Tensor], types: Sequence[DType],
    hidden: Quantization, cell: Quantization,
) -> list[Tensor]:  # fmt: skip
    """Return the inputs of an LSTM in integers: weights have one scale each, and are symmetric.

    Args:
        node: of the float graph.
        inputs: its activations in integers, and its constants of floats.
        types: of the integers.
        hidden: the quantisation of the hidden state.
        cell: that of the cells.
    """
    states = [
        quantised_constant(tensor, dtype, quant) if tensor.is_constant else tensor
        for tensor, dtype, quant in zip(inputs[1:], types[1:], (hidden, cell), strict=False)
    ]
    weights = []
    for tensor in inputs[_WEIGHTS : _WEIGHTS + 2 * GATES]:
        largest = float(np.abs(real_values(tensor)).max()) or 1.0
        scale = float(np.float32(largest / DType.INT8.max))
        weights.append(quantised_constant(tensor, DType.INT8, Quantization((scale,), (0,))))
    biases = [
        quantised_bias(tensor, types[-1], inputs[0].type.quant.scale,
                       np.array(matrix.type.quant.scales))
        for tensor, matrix in zip(node.inputs[_WEIGHTS + 2 * GATES :], weights, strict=False)
    ]  # fmt: skip
    return [inputs[0], *states, *weights, *biases]
