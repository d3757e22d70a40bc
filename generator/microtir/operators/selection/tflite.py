"""Read TFLite's operators that pick by conditions."""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_operands import Converted, Operands
from microtir.operators.selection.definition import Select, Where


def select(operands: Operands) -> Converted:
    """Read SELECT, which broadcasts only a condition: a scalar, or one for each first index."""
    condition, first, second = (tensor.shape for tensor in operands.present)
    by_rows = len(condition) == 1 and len(first) > 1
    if first != second or not (by_rows or condition in ((), first)):
        raise operands.malformed(
            f"a condition of shape {condition} for {first} and {second}",
            "two equal shapes, and a condition of that shape, of the first extent, or a scalar",
        )
    return Converted(Select(by_rows), operands.present)


def where(operands: Operands) -> Converted:
    """Read WHERE of one input, whose result has as many rows as the condition is true."""
    if operands.input(0).data is None:
        raise operands.unsupported(
            "the number of its results depends on the data",
            "a constant condition",
            "use a select between two tensors instead of the indices of a condition",
        )
    return Converted(Where(), operands.present)


def write_select_v2(node: Node) -> written.Written | None:
    """Write SELECT_V2, whose condition goes along the last axes."""
    by_rows = node.attributes(Select).by_rows
    return None if by_rows else written.as_it_is(node)
