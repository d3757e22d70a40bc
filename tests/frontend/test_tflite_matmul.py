"""BATCH_MATMUL: what is read and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.matmul.tflite import BatchMatMulOptions
from tests.frontend.models import Value, model, read_node, refusal

CODE = BuiltinOperator.BATCH_MATMUL


def int16(*shape: int, zero_point: int = 0) -> Value:
    """A quantised activation."""
    return Value(shape, np.int16, None, (0.5,), (zero_point,))


def test_sides_that_are_turned() -> None:
    """Either option turns its side; outer axes broadcast."""
    options = BatchMatMulOptions(adj_x=True, adj_y=True)
    sides = [Value((5, 1, 4, 2)), Value((3, 6, 4))]
    node = read_node(CODE, sides, Value((5, 3, 2, 6)), options)
    assert node.op == BatchMatmul(adj_x=True, adj_y=True)


@pytest.mark.parametrize(
    ("sides", "output", "text"),
    [
        ([Value((2, 3)), Value((4, 5))], Value((2, 5)), "rows of 3 times columns of 4"),
        ([Value((3,)), Value((3, 5))], Value((5,)), "shapes (3,) and (3, 5)"),
        ([Value((2, 2, 3)), Value((3, 3, 5))], Value((2, 2, 5)), "shapes (2,) and (3,)"),
        ([int16(2, 3, zero_point=1), int16(3, 5)], int16(2, 5), "a zero point that is not 0"),
    ],
)
def test_refusals(sides: list[Value], output: Value, text: str) -> None:
    """Shapes that contradict each other, and zero points of int16."""
    assert text in refusal(model(CODE, sides, output, BatchMatMulOptions()))
