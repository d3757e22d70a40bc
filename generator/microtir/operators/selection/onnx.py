"""Read ONNX's choices by a condition."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_arithmetic import choose
from microtir.operators.common.onnx_operands import MICROSOFT, OnnxNode, OnnxReader
from microtir.operators.common.onnx_quantized import Scaling, requantised
from microtir.operators.selection.definition import Select


def where(node: OnnxNode) -> Tensor:
    """Read Where: of two inputs the first where a condition holds."""
    return node.emit(Select(), *node.present, dtype=node.input(1).dtype)


def qlinear_where(node: OnnxNode) -> Tensor:
    """Read com.microsoft's QLinearWhere: two inputs with their scales, and the scale of the output.

    The operands of the choice are the condition and both, as floats.
    """
    condition = node.input(0)

    def chosen(of_floats: OnnxNode) -> Tensor:
        return where(of_floats.with_inputs(condition, *of_floats.inputs))

    inputs = tuple((at, Scaling(*node.inputs_at(at + 1, at + 2))) for at in (1, 4))
    return requantised(node, inputs, chosen, Scaling(*node.inputs_at(7, 8)))


def triangle(node: OnnxNode) -> Tensor:
    """Read Trilu: what lies on one side of a diagonal, zeros on the other."""
    x = node.input(0)
    diagonal = 0
    if node.optional(1) is not None:
        diagonal = node.whole_number(1, "the diagonal")
    if len(x.shape) < 2:
        raise node.malformed(f"a tensor of shape {x.shape}", "matrices, or stacks of them")
    node.check_room(*x.shape[-2:])
    ones = np.ones((1,) * (len(x.shape) - 2) + x.shape[-2:], np.bool_)
    mask = np.triu(ones, diagonal) if node.integer("upper", 1) else np.tril(ones, diagonal)
    return choose(node, node.constant(mask), x, 0)


ONNX_READERS = (
    OnnxReader("Where", where, (3, 3)),
    OnnxReader("QLinearWhere", qlinear_where, (9, 9), domain=MICROSOFT),
    OnnxReader("Trilu", triangle, (1, 2), ("upper",)),
    OnnxReader("Trilu", triangle, (1, 2), ("upper",), domain=MICROSOFT),
)
