"""LOGISTIC and TANH of int16 as lines of a table, for micro-kernels that compute them."""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import packing
from microtir.operators.activations.definition import Logistic, Tanh, table_scaling
from microtir.operators.common.sigmoid_table import LINES, SigmoidScaling, signed_lines
from microtir.operators.common.sigmoid_table_formula import SignedLines
from microtir.tir import ir


@dataclass(frozen=True, slots=True)
class Sigmoid:
    """A function and the scaling of its argument; part of the identity of a micro-kernel."""

    is_logistic: bool
    scaling: SigmoidScaling

    @staticmethod
    def of(node: Node) -> Sigmoid | None:
        """Return the function of a node; None if it is another operator or type."""
        if not isinstance(node.op, Logistic | Tanh) or node.inputs[0].dtype is not DType.INT16:
            return None
        scaling = table_scaling(node.op, node.inputs[0].type)
        return Sigmoid(isinstance(node.op, Logistic), scaling)

    @property
    def value(self) -> str:
        name = "logistic" if self.is_logistic else "tanh"
        return f"{name}_{self.scaling.multiplier}_{self.scaling.right_shift}"

    @property
    def lines(self) -> ir.Buffer:
        """Return the constant that a kernel reads."""
        return packing.constant("lines", signed_lines(saturates=not self.is_logistic))

    def meaning(self, count: int) -> tuple[tuple[ir.Buffer, ir.Buffer, ir.Buffer], ir.Stmt]:
        """Return the parameters of a kernel for so many elements, x, y and lines, and its body."""
        x = te.placeholder((count,), DType.INT16, "x")
        lines = te.placeholder((LINES, 2), DType.INT16, "lines", alignment=4)
        of = SignedLines(lines)
        computed = of.logistic if self.is_logistic else of.tanh
        y = te.compute(
            (count,), lambda i: te.cast(DType.INT16, computed(x[i], self.scaling)), "y", axes=("i",)
        )
        body = te.create_schedule(y).primfunc(name="y").body
        return (x.buffer, y.buffer, lines.buffer), body
