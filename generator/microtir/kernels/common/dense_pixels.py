"""Fully connected layers as convolutions: rows of inputs are the pixels of a line."""

from __future__ import annotations

from dataclasses import replace

from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.kernels.common.dense import rows_of
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.phase_kernel import InPhases, PhaseKernel
from microtir.kernels.common.phases import Phase
from microtir.kernels.common.weights import QUAD
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_ONCE = 23  # instructions less where there is no loop over pixels
_LINE = Calls(1, alone=True)  # one row, all of whose pixels follow each other


@of_node
def line_of(node: Node) -> Phase:
    """Return the pointwise convolution of a line that a layer of constant weights is."""
    op, (x, w, *bias) = node.attributes(FullyConnected), node.inputs
    assert w.data is not None
    rows, (outputs, inputs) = rows_of(node), w.shape
    conv = replace(
        node,
        op=Conv2D(activation=op.activation, rescaling=op.rescaling),
        inputs=(_shaped(x, 1, 1, rows, inputs), _shaped(w, outputs, 1, 1, inputs), *bias),
        outputs=(_shaped(node.output, 1, 1, rows, outputs),),
    )
    return Phase(conv, (0, 0), (1, 1), 1)


def _shaped(tensor: Tensor, *shape: int) -> Tensor:
    data = None if tensor.data is None else tensor.data.reshape(shape)
    return Tensor(tensor.name, replace(tensor.type, shape=shape), data)


class DensePixels(InPhases):
    """All rows of inputs, as a kernel of convolutions computes the pixels of a line."""

    operators = (FullyConnected,)
    phase_calls = _LINE

    def __init__(self, name: str, of_line: PhaseKernel, held: DType) -> None:
        super().__init__(name, of_line, held)
        self.rescales_in_float = of_line.rescales_in_float

    def suits_node(self, node: Node, target: Target) -> bool:
        return self._of_phase.suits_node(line_of(node).node, target)

    def unfit(self, node: Node) -> Refusal | None:
        """Return what speaks against the line.

        A single row of whole words is no line: kernels read it where it lies, without scratch.
        """
        _, weights, *_ = node.inputs
        if rows_of(node) == 1 and weights.dtype is DType.INT8 and weights.shape[1] % QUAD == 0:
            return Refusal.SINGLE
        return self._of_phase.reject(line_of(node).node)

    def phases(self, node: Node) -> tuple[Phase, ...]:
        return (line_of(node),)

    def window(self, _node: Node) -> RowWindow | None:
        return None

    def instructions(self, node: Node, calls: Calls) -> int:
        once = _ONCE if rows_of(node) == 1 else 0
        return super().instructions(node, calls) - once

    def loops(self, layer: Layer, scratch: ir.Buffer) -> ir.Stmt:
        line = line_of(layer.node)
        x = layer.input_matrix(0, line.node.inputs[0].shape[1:])
        y = layer.output_matrix(line.node.output.shape[1:])
        return self._of_phase.phase_loops(line, x, y, scratch)
