"""Results of operators with one input and one output of a byte, for all 256 stored values.

Such an operator is a look-up whatever it computes, so that its meaning is all that a kernel needs.
Entry i belongs to the stored value i - 128 of an int8, or i of a uint8.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Node, SourceLocation, Tensor, TensorType
from microtir.graph.operator import Operator
from microtir.operators import record_of
from microtir.operators.definition import Trait


def has_table(op: Operator, input_type: TensorType, output: TensorType) -> bool:
    """Return whether the operator is a look-up of 256 entries for these types."""
    is_int8 = input_type.dtype is output.dtype is DType.INT8
    return is_int8 and record_of(op).has(Trait.TABULATED)


def lookup_table(op: Operator, input_type: TensorType, output: TensorType) -> npt.NDArray[np.int8]:
    """Return the 256 results of an operator that `has_table` accepts."""
    return results(op, input_type, output).astype(np.int8)


def results(op: Operator, input_type: TensorType, output: TensorType) -> npt.NDArray[np.generic]:
    """Return the 256 results of an operator on bytes."""
    dtype = input_type.dtype
    values = np.arange(dtype.min, dtype.max + 1).astype(dtype.value)
    x, y = (
        Tensor(name, replace(type_, shape=values.shape))
        for name, type_ in (("x", input_type), ("y", output))
    )
    node = Node(op, (x,), (y,), op.name, SourceLocation("", 0, op.name))
    result = record_of(op).meaning(op, node, values)
    assert isinstance(result, np.ndarray)
    return result.astype(output.dtype.value)
