"""Define operators that put values in order."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import quantization, shapes
from microtir.operators.common.types import TypeRule, TypeSignature
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class TopK(Operator):
    """TOPK_V2: the `count` largest values of each row, largest first, and where they are.

    Of equal values the first one comes first.
    """

    count: int = 1


def _top_k_shape(node: Node) -> tuple[shapes.Shape, ...]:
    op, shape = node.attributes(TopK), node.inputs[0].shape
    shapes.require(len(shape) >= 1, "the input is a scalar", "at least one dimension")
    shapes.require(
        1 <= op.count <= shape[-1],
        f"the {op.count} largest of {shape[-1]} values",
        f"1 to {shape[-1]}",
    )
    return ((*shape[:-1], op.count),) * len(node.outputs)


_RANKED = (
    DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64,
)  # fmt: skip

DEFINITIONS = (
    Definition(
        TopK,
        TypeRule(tuple(TypeSignature((dtype,), dtype, (DType.INT32,)) for dtype in _RANKED)),
        quantization.EQUAL,
        shapes=_top_k_shape,
        outputs=2,
        limits="constant count",
    ),
)
