"""Write LSTMs in floats: between integers where theirs are, since ONNX has none of integers."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node, Tensor
from microtir.operators.common.arrays import dequantized
from microtir.operators.recurrent.definition import Gate, Lstm, gates_of, lstm_extents
from microtir.writers.onnx.qdq import QdqGraph

_BATCH_AND_STEPS = (1, 0, 2)


def limits_cells(node: Node, op: Lstm) -> bool:
    """Return whether the limit of cells, which ONNX does not have, can be reached."""
    cell = node.inputs[2].type
    is_wide = cell.dtype.is_float or cell.quant.scale * cell.dtype.max > op.cell_clip
    return op.cell_clip > 0 and is_wide


def write_lstm(graph: QdqGraph, node: Node) -> None:
    """Write an LSTM; its states are values like any other."""
    op, extents = node.attributes(Lstm), lstm_extents(node)
    x = graph.real(node.inputs[0], () if op.time_major else _BATCH_AND_STEPS)
    state = (1, extents.batch, extents.units)
    begin = [graph.reshaped(graph.real(tensor), state) for tensor in node.inputs[1:3]]
    inputs = [x, *_constants(graph, node), "", *begin]
    behind = graph.nodes_of("LSTM", inputs, 3, hidden_size=extents.units)
    steps, hidden = behind[0], behind[1]
    result = node.outputs[0]
    if op.last_only:
        graph.result(graph.reshaped(hidden, result.shape), result)
    else:
        every = graph.reshaped(steps, (extents.steps, extents.batch, extents.units))
        graph.result(every, result, () if op.time_major else _BATCH_AND_STEPS)
    for tensor, name in zip(node.outputs[1:], behind[1:], strict=False):
        graph.result(graph.reshaped(name, tensor.shape), tensor)


def _constants(graph: QdqGraph, node: Node) -> list[str]:
    """Return weights and biases as ONNX has them, whose gates have another order."""
    entrance, forget, cell, exit_ = gates_of(node)
    gates: tuple[Gate, ...] = (entrance, exit_, forget, cell)
    weights, recurrent, bias = (
        np.concatenate([_real(getattr(gate, name)) for gate in gates])[np.newaxis]
        for name in Gate._fields
    )
    biases = np.concatenate([bias, np.zeros_like(bias)], axis=1)
    return [
        graph.constant(f"{node.name}/{name}", array.astype(np.float32))
        for name, array in (("weights", weights), ("recurrent", recurrent), ("biases", biases))
    ]


def _real(tensor: Tensor) -> Array:
    return tensor.values if tensor.dtype.is_float else dequantized(tensor.values, tensor.type)
