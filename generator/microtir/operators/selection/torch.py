"""Read PyTorch's choices by a condition."""

from __future__ import annotations

from collections.abc import Callable

from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.torch import pair
from microtir.operators.common.torch_operands import TorchNode, TorchReader
from microtir.operators.common.torch_rows import readers
from microtir.operators.common.torch_types import as_type, operand, truth


def where(node: TorchNode) -> Tensor:
    """Read where: of two operands the first where a condition holds."""
    return node.onnx("Where", truth(node, node.tensor("condition")), *pair(node))


def masked_fill(node: TorchNode) -> Tensor:
    """Read masked_fill: a number where a mask holds."""
    x = node.tensor("self")
    value = as_type(node, operand(node, "value"), x.dtype)
    return node.onnx("Where", node.tensor("mask"), value, x)


def _triangle(upper: int) -> Callable[[TorchNode], Tensor]:
    def read(node: TorchNode) -> Tensor:
        diagonal = node.ints(node.integer("diagonal", 0))
        return node.onnx("Trilu", node.tensor("self"), diagonal, upper=upper)

    return read


TORCH_READERS: tuple[TorchReader, ...] = (
    *readers(
        where, "condition self other",
        "where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar",
    ),
    *readers(masked_fill, "self mask value", "masked_fill.Scalar", "masked_fill.Tensor"),
    *readers(_triangle(0), "self diagonal", "tril"),
    *readers(_triangle(1), "self diagonal", "triu"),
)  # fmt: skip
