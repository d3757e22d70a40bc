"""Make the table by which GELU of int16 is computed, each step rounded to float32 as LiteRT's."""

from __future__ import annotations

import math

import numpy as np

from microtir.graph.ir import Array, TensorType
from microtir.operators.activations.definition import Gelu
from microtir.operators.common.lookup import Affine, Floats, RealFunction, table_of_int16

ERFC = np.frompyfunc(math.erfc, 1, 1)
TANH_FACTOR = math.sqrt(2.0 / math.pi)


def gelu_in_float32(op: Gelu) -> RealFunction:
    """Return the function of real numbers that is rounded to float32 after each step."""

    def function(x: Floats) -> Floats:
        one, half = np.float32(1.0), np.float32(0.5)
        if op.approximate:
            inner = np.float32(TANH_FACTOR) * (x + np.float32(0.044715) * x * x * x)
            factor = one + np.tanh(inner.astype(np.float64)).astype(np.float32)
        else:
            argument = (x * np.float32(-math.sqrt(0.5))).astype(np.float64)
            factor = np.asarray(ERFC(argument), np.float64).astype(np.float32)
        return np.asarray(half * x * factor, np.float32)

    return function


def gelu_table_of_int16(op: Gelu, input_type: TensorType, output: TensorType) -> Array:
    """Return the 513 entries between which GELU of int16 is a line."""
    return table_of_int16(gelu_in_float32(op), Affine.of(input_type), Affine.of(output))
