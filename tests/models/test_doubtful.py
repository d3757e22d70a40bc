"""A golden file on which tflite-micro and LiteRT differ by far: an LSTM, against real numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from microtir import frontend
from microtir.graph.ir import Array, Node, Tensor
from microtir.operators.common.arrays import dequantized
from microtir.operators.recurrent.definition import Lstm, gates_of
from microtir.rewrite import reference
from microtir.rewrite.reference.evaluate import evaluate, initial_states, value_of

NAME = "exported/lstm_fused_bidirectional_int8"


@pytest.mark.model(NAME)
def test_lstm_is_right_in_the_scale_of_its_state(models_dir: Path) -> None:
    """The converter gave the output another scale; LiteRT is some 30 steps off in either one."""
    graph = frontend.from_tflite(models_dir / f"{NAME}.tflite").graph
    assert graph is not None
    (given,) = graph.arguments
    with np.load(models_dir / f"{NAME}.golden.npz") as golden:
        inputs = {**initial_states(graph), given.name: golden["inputs"][0, 0]}
    values: dict[Tensor, Array] = {tensor: inputs[tensor.name] for tensor in graph.inputs}
    layers = []

    def note(node: Node, outputs: tuple[Array, ...]) -> None:
        values.update(zip(node.outputs, outputs, strict=True))
        if isinstance(node.op, Lstm):
            layers.append(node)

    reference.execute(graph, inputs, note)
    assert len(layers) == 2
    for node in layers:
        operands = [value_of(tensor, values) for tensor in node.inputs]
        stored, state = evaluate(node, operands)[0], node.inputs[1].type
        assert state.quant != node.outputs[0].type.quant
        assert np.abs(dequantized(stored, state) - _real_lstm(node, operands[0])).max() < 0.005


def _real_lstm(node: Node, stored: Array) -> Array:
    """Compute an LSTM of one batch row whose state is 0, in double."""
    data, gates = node.inputs[0].type, gates_of(node)
    weights = [_real(gate.weights) for gate in gates]
    recurrent = [_real(gate.recurrent) for gate in gates]
    bias = [gate.bias.values * data.quant.scale * gate.weights.type.quant.scale for gate in gates]
    hidden = cell = np.zeros(node.inputs[1].shape[1])
    rows = []
    for x in dequantized(stored, data).astype(np.float64)[0]:
        i, f, g, o = (
            w @ x + r @ hidden + b for w, r, b in zip(weights, recurrent, bias, strict=True)
        )
        cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(g)
        hidden = _sigmoid(o) * np.tanh(cell)
        rows.append(hidden)
    return np.stack(rows)[None]


def _real(tensor: Tensor) -> Array:
    return dequantized(tensor.values, tensor.type).astype(np.float64)


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))
