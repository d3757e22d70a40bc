"""LSTMs as loops over time, with the sums of each unit where it needs them."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import recurrent, statements
from microtir.kernels.common.layer import Layer
from microtir.operators.recurrent.definition import GATES, lstm_extents
from microtir.operators.recurrent.formula import LstmStep, lstm_step, weighted_gates
from microtir.rewrite.facts.macs import macs
from microtir.tir import ir
from microtir.tir.visitor import substitute


def cost(node: Node) -> int:
    """Return the instructions of all steps, from counts of emulated boards."""
    batch, steps, _, units = lstm_extents(node)
    is_float = node.inputs[0].dtype.is_float
    weights = node.inputs[3 : 3 + 2 * GATES]
    is_hybrid = is_float and any(tensor.dtype is DType.INT8 for tensor in weights)
    per_unit = _UNIT_OF_FLOAT if is_float else _UNIT
    return (7 if is_hybrid else 5) * macs(node) + per_unit * batch * steps * units


_UNIT, _UNIT_OF_FLOAT = 390, 450
"""Instructions of a unit after its sums: they make its new cell and its output."""


def packed_bytes(node: Node) -> int:
    """Return the bytes of the constants of all steps."""
    sequences = recurrent.Sequences.of(layer := Layer.alone(node))
    return recurrent.step_bytes(sequences, _units(layer, sequences)[1])


def emit(layer: Layer, name: str) -> ir.PrimFunc:
    """Emit an LSTM: in each step the cells, what they show, and that as the hidden state."""
    sequences = recurrent.Sequences.of(layer)
    batch, _, _, units = sequences.extents
    hidden, parts = _units(layer, sequences)

    def one(step: te.Expr, n: te.Expr) -> ir.Stmt:
        first = te.as_expr(0, DType.INT32)
        computed = sequences.units(step, n, first, units, parts)
        return statements.seq(
            substitute(computed, {hidden.buffer: sequences.hidden}), sequences.shown(step, n)
        )

    body = sequences.over_time(lambda step: statements.loop("n", 0, batch, lambda n: one(step, n)))
    return layer.function(name, None, body)


def _units(layer: Layer, sequences: recurrent.Sequences) -> tuple[te.Tensor, recurrent.StepAt]:
    """Return a tensor for the hidden state, and the units that are computed from it."""
    shape = sequences.extents.batch, sequences.extents.units
    hidden = te.placeholder(shape, sequences.hidden.dtype, "hidden")

    def parts(step: te.Expr, n: te.Expr, first: te.Expr) -> LstmStep:
        gates = weighted_gates(
            layer,
            lambda i: sequences.x[sequences.place(step, n, i)],
            lambda i: hidden[n, i],
        )
        return lstm_step(layer, lambda gate, i: gates(gate, first + i))

    return hidden, parts
