"""Recurrent layers as loops and layers without a state, step by step as they are defined.

References that quantise what a layer is given, for each product with weights anew, are asked for
products of their own: what they do with any layer is then true of those in a step.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node, Quantization, Tensor, TensorType
from microtir.operators.activations.definition import Logistic, Tanh
from microtir.operators.arithmetic.definition import Add, Maximum, Minimum, Mul
from microtir.operators.common.shapes import Shape
from microtir.operators.control.definition import EndRepeat, PutItem, Repeat
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement import definition as movement
from microtir.operators.recurrent.definition import (
    GATES,
    Lstm,
    Svdf,
    lstm_extents,
    svdf_extents,
)
from microtir.operators.reduction.definition import Sum
from microtir.operators.state.definition import Assign
from microtir.rewrite.requests.emitter import Emitter

_F32, _I32 = DType.FLOAT32, DType.INT32


def layers_of_lstm(node: Node) -> list[Node]:
    """Return an LSTM of floats as a loop over its steps, with two products a step.

    A product has the weights of all gates, each with the scales of its own.
    """
    op, emit = node.op, Emitter(node)
    assert isinstance(op, Lstm) and not op.last_only, "a frontend made it"
    batch, steps, width, units = lstm_extents(node)
    y, last_hidden, last_cell = node.outputs
    sequence = _time_major(emit, op, node.inputs[0], (steps, batch, width))
    shown = emit.constant("none", np.zeros((steps, batch, units), np.float32))
    first = (emit.constant("first", np.zeros((), np.int32)), shown, *node.inputs[1:3])
    begun = [emit.of(f"begin{n}", Assign(), value) for n, value in enumerate(first)]
    turn = [emit.tensor(f"turn{n}", value.shape, value.dtype) for n, value in enumerate(first)]
    emit.add(Repeat(steps), begun, turn)
    number, rows, hidden, cell = turn
    x = emit.of("x", Gather(), sequence, number, shape=(batch, width))
    new_hidden, new_cell = _step(emit, op, x, hidden, cell)
    one = emit.constant("one", np.ones((), np.int32))
    new = (
        emit.of("next0", Assign(), emit.of("counted", Add(), number, one)),
        emit.of("next1", PutItem(), rows, new_hidden, number),
        emit.of("next2", Assign(), new_hidden),
        emit.of("next3", Assign(), new_cell),
    )
    counted, all_shown = emit.tensor("turns", (), _I32), emit.tensor("shown", shown.shape)
    emit.add(EndRepeat(), (*turn, *new), (counted, all_shown, last_hidden, last_cell))
    is_moved = not op.time_major and batch > 1
    emit.add(movement.Transpose((1, 0, 2)) if is_moved else movement.Reshape(), (all_shown,), (y,))
    return emit.nodes


def _time_major(emit: Emitter, op: Lstm, x: Tensor, shape: Shape) -> Tensor:
    """Return the sequences with steps along the first axis."""
    if op.time_major:
        return x
    move = movement.Transpose((1, 0, 2)) if shape[1] > 1 else movement.Reshape()
    return emit.of("sequence", move, x, shape=shape)


def _step(
    emit: Emitter, op: Lstm, x: Tensor, hidden: Tensor, cell: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the new hidden state and cells of a step."""
    inputs, (batch, units) = emit.node.inputs, hidden.shape
    weights, recurrent, biases = (
        _joined(emit, what, inputs[first : first + GATES])
        for what, first in (("weights", 3), ("recurrent", 3 + GATES), ("bias", 3 + 2 * GATES))
    )
    dense, shape = FullyConnected(asymmetric=op.asymmetric), (batch, GATES * units)
    parts = (
        emit.of("of_x", dense, x, weights, biases, shape=shape),
        emit.of("of_hidden", dense, hidden, recurrent, shape=shape),
    )
    total = emit.of("arguments", Add(), *parts)
    arguments = [emit.tensor(f"argument{gate}", hidden.shape) for gate in range(GATES)]
    emit.add(movement.Split(1), (total,), arguments)
    add, keep, bent, show = (
        emit.of(f"gate{gate}", Tanh() if gate == _CELL else Logistic(), argument)
        for gate, argument in enumerate(arguments)
    )
    new = emit.of(
        "cell", Add(), emit.of("kept", Mul(), keep, cell), emit.of("new", Mul(), add, bent)
    )
    if op.cell_clip > 0.0:
        for what, limit, of in (
            ("most", op.cell_clip, Minimum()),
            ("least", -op.cell_clip, Maximum()),
        ):
            new = emit.of(f"at_{what}", of, new, emit.constant(what, np.array([limit], np.float32)))
    return emit.of("hidden", Mul(), show, emit.of("bent", Tanh(), new)), new


_CELL = 2  # the gate that is bent by a TANH


def _joined(emit: Emitter, what: str, parts: Sequence[Tensor]) -> Tensor:
    """Return constants one behind the other; integers have a scale for each row."""
    data = np.concatenate([part.values for part in parts])
    joined = emit.constant(what, data)
    if data.dtype != np.int8:
        return joined
    scales = tuple(part.type.quant.scale for part in parts for _ in range(len(part.values)))
    quantised = Quantization(scales, (0,) * len(scales), 0)
    return Tensor(joined.name, TensorType(data.shape, DType.INT8, quantised), data)


def layers_of_svdf(node: Node) -> list[Node]:
    """Return an SVDF of floats as a product, and what its memory adds up to."""
    op, emit = node.attributes(Svdf), Emitter(node)
    batch, _, filters, length, units = svdf_extents(node)
    x, memory, features, time, *bias = node.inputs
    y, after = node.outputs
    dense = FullyConnected(asymmetric=op.asymmetric)
    newest = emit.of("newest", dense, x, features, shape=(batch, filters))
    newest_rows = emit.of("last", movement.Reshape(), newest, shape=(batch, filters, 1))
    if length > 1:
        held = emit.of("held", movement.Reshape(), memory, shape=(batch, filters, length))
        shape = (batch, filters, length - 1)
        older = emit.of(
            "older", movement.StridedSlice((0, 0, 1), (1, 1, 1), shape), held, shape=shape
        )
        newest_rows = emit.of(
            "kept", movement.Concatenation(2), older, newest_rows, shape=(batch, filters, length)
        )
    emit.add(movement.Reshape(), (newest_rows,), (after,))
    factors = time.values.astype(np.float32)
    if time.dtype is DType.INT8:
        factors *= np.float32(time.type.quant.scale)
    product = emit.of("products", Mul(), newest_rows, emit.constant("time", factors[np.newaxis]))
    rows = emit.of("rows", movement.Reshape(), product, shape=(batch, units, op.rank * length))
    total = emit.of("sums", Sum((2,)), rows, shape=(batch, units))
    start = bias[0] if bias else emit.constant("bias", np.zeros(units, np.float32))
    emit.add(Add(activation=op.activation), (total, start), (y,))
    return emit.nodes
