"""Make the tables of LOGISTIC and TANH of int8 and uint8, each step rounded to float32 as LiteRT's.

tflite-micro computes both in fixed point, and differs by one step in some 1e-4 of values.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import TensorType
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import Logistic, Tanh
from microtir.operators.common.lookup import Affine, Floats, RealFunction, table_of_int8


def _logistic(real: Floats) -> Floats:
    """Round each step: next to a half the last bit decides."""
    with np.errstate(over="ignore"):
        power = np.exp(-real.astype(np.float64)).astype(np.float32)
    return np.asarray(np.float32(1) / (np.float32(1) + power))


def _tanh(real: Floats) -> Floats:
    return np.tanh(real.astype(np.float64)).astype(np.float32)


_CURVES: Mapping[type[Operator], RealFunction] = MappingProxyType(
    {Logistic: _logistic, Tanh: _tanh}
)


def curve_table(op: Logistic | Tanh, source: TensorType, output: TensorType) -> bytes:
    """Return the results of the 256 stored values, in the quantisation of the output.

    Those of uint8 are less 128, as values are that a table is asked for.
    """
    source_type, output_type = (_as_int8(type_) for type_ in (source, output))
    return table_of_int8(_CURVES[type(op)], source_type, output_type).tobytes()


def _as_int8(type_: TensorType) -> Affine:
    quant = type_.quant
    return Affine(quant.scale, quant.zero_point - type_.dtype.min + DType.INT8.min)
