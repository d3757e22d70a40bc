"""LSTMs as loops over time, with the sums of each unit where it needs them."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import recurrent, statements
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.nest import Nest
from microtir.operators.recurrent.definition import Lstm
from microtir.operators.recurrent.formula import LstmStep, lstm_step, weighted_gates
from microtir.tir import ir
from microtir.tir.visitor import substitute


class Steps(Nest):
    """A loop over time around what a step computes."""

    name = "steps"
    operators = (Lstm,)
    has_wide_sums = True
    in_place = True

    def packed_bytes(self, node: Node) -> int:
        """Return the bytes of the constants of all steps."""
        sequences = recurrent.Sequences.of(layer := Layer.alone(node))
        return recurrent.step_bytes(sequences, _units(layer, sequences)[1])

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
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

        body = sequences.over_time(
            lambda step: statements.loop("n", 0, batch, lambda n: one(step, n))
        )
        return layer.function(name, None, body)


def _units(layer: Layer, sequences: recurrent.Sequences) -> tuple[te.Tensor, recurrent.StepAt]:
    """Return a tensor for the hidden state, and the units that are computed from it."""
    shape = sequences.extents.batch, sequences.extents.units
    hidden = te.placeholder(shape, sequences.hidden.dtype, "hidden")

    def parts(step: te.Expr, n: te.Expr, first: te.Expr) -> LstmStep:
        gates = weighted_gates(
            layer, lambda i: sequences.x[sequences.place(step, n, i)], lambda i: hidden[n, i]
        )
        return lstm_step(layer, lambda gate, i: gates(gate, first + i))

    return hidden, parts
