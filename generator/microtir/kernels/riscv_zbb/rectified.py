"""Layers of floats without an FPU, whose ReLU compares bits: MAX in place of a library function.

A comparison of floats is some twenty instructions of the C library, and the call makes a compiler
save registers around it.
"""

from __future__ import annotations

from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.layer import Layer
from microtir.kernels.portable.kernel_list import Direct
from microtir.operators import OperatorRecord
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.plan.ir import Cost, Refusal
from microtir.tir.analysis.work import Work, work_of
from microtir.tir.ir import Binary, BinaryOp, Call, Expr, FloatImm, Intrinsic, PrimFunc
from microtir.tir.visitor import Rewriter, rewrite_function

OPERATORS = (Conv2D, DepthwiseConv2D, FullyConnected)
_SAVED = 15  # instructions of an output
_FROM_ZERO = (Activation.RELU, Activation.RELU6)


class Rectified(Direct):
    """The formula as a naive loop nest, with the positive part of a float by its bits."""

    name = "direct_f32_zbb"

    def __init__(self, record: OperatorRecord) -> None:
        assert record.formula is not None, record.op
        super().__init__(record.op, record.formula)

    def suits(self, target: Target) -> bool:
        return target.has(Feature.ZBB) and not target.has(Feature.FPU)

    def reject(self, node: Node) -> Refusal | None:
        assert isinstance(node.op, OPERATORS)
        if node.output.dtype is not DType.FLOAT32:
            return Refusal.TYPES
        return None if node.op.activation in _FROM_ZERO else Refusal.CLAMP

    def costs(self, node: Node, target: Target | None = None) -> tuple[Cost, ...]:
        """Return what the nest costs, less what the comparisons are called for."""
        (cost,) = super().costs(node, target)
        saved = _SAVED * node.output.type.elements
        stated = max(cost.instructions - saved, cost.instructions // 2)
        return (Cost(stated, self.cycles_of(node, stated), cost.told),)

    def work(self, node: Node) -> Work:
        """Return the work of the nest that compares floats, of which figures are known."""
        return {"layer": 1, **work_of(super().emit(Layer.alone(node), "layer"))}

    def emit(self, layer: Layer, name: str) -> PrimFunc:
        return rewrite_function(super().emit(layer, name), _PositiveParts())


class _PositiveParts(Rewriter):
    def expr(self, e: Expr) -> Expr:
        match e:
            case Binary(BinaryOp.MAX, value, FloatImm(0.0, DType.FLOAT32)):
                return Call(Intrinsic.POSITIVE_PART, (self.expr(value),), DType.FLOAT32)
            case _:
                return self.expr_parts(e)
