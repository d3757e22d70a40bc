"""Tables by which quantised functions of one element are computed, as LiteRT and TFLite make them.

A function of int8 is a table of its 256 results.  One of int16 has 513 entries, one for each 128
stored values, and is a line between two entries; each is moved by half of what the middle of its
line would be wrong.  Every step is rounded to float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import TensorType

Floats: TypeAlias = npt.NDArray[np.float32]
RealFunction: TypeAlias = Callable[[Floats], npt.ArrayLike]
"""Function on reals, whose results are rounded to float32."""

STEP_BITS = 7
"""An entry of a table for int16 lies behind each 2^7 stored values."""

_STEPS = 1 << (DType.INT16.bits - STEP_BITS)


class Affine(NamedTuple):
    """Stored values as real numbers: scale * (stored - zero_point); the scale is a float32."""

    scale: float
    zero_point: int = 0

    @staticmethod
    def of(type_: TensorType) -> Affine:
        return Affine(type_.quant.scale, type_.quant.zero_point)


def table_of_int8(function: RealFunction, source: Affine, result: Affine) -> npt.NDArray[np.int8]:
    """Return the results for the stored values -128, -127 ..., as stored values.

    A result that leaves int32, of which C leaves the conversion undefined, saturates.
    """
    dtype = DType.INT8
    results = _results_of_int8(function, source, result)
    return np.asarray(np.clip(results.astype(np.float64), dtype.min, dtype.max), np.int8)


def table_of_int16(function: RealFunction, source: Affine, result: Affine) -> npt.NDArray[np.int16]:
    """Return the 513 entries for the stored values -32768, -32640 ... 32768.

    Where infinities meet, of which C leaves the conversion undefined, they saturate.
    """
    low, high = DType.INT16.min, DType.INT16.max
    entries = _entries_of_int16(function, source, result)
    table = np.nan_to_num(entries, nan=high, posinf=high, neginf=low)
    return np.asarray(np.clip(table, low, high), np.int16)


def c_leaves_undefined(
    dtype: DType, function: RealFunction, source: Affine, result: Affine
) -> npt.NDArray[np.bool_]:
    """Return for which entries of a table the C of LiteRT converts what no integer holds.

    Args:
        dtype: int8 or int16.
        function: of real numbers.
        source: what the stored values of the input stand for.
        result: what those of the output stand for.
    """
    if dtype is DType.INT16:
        return np.isnan(_entries_of_int16(function, source, result))
    results = _results_of_int8(function, source, result).astype(np.float64)
    return ~((results >= DType.INT32.min) & (results <= DType.INT32.max))


def _results_of_int8(function: RealFunction, source: Affine, result: Affine) -> Floats:
    values = np.arange(DType.INT8.min, DType.INT8.max + 1)
    real = np.float32(source.scale) * (values - source.zero_point).astype(np.float32)
    with np.errstate(over="ignore"):
        quotient = _float32(function(real)) * (np.float32(1.0) / np.float32(result.scale))
        return np.asarray(_rounded(quotient) + np.float32(result.zero_point), np.float32)


def _entries_of_int16(function: RealFunction, source: Affine, result: Affine) -> Floats:
    low, high = DType.INT16.min, DType.INT16.max
    scale = np.float32(source.scale)
    first, last = (scale * np.float32(end - source.zero_point) for end in (low, high))
    bottom, top = (
        np.float32(result.scale) * np.float32(end - result.zero_point) for end in (low, high)
    )
    step = (last - first) / np.float32(_STEPS)
    inverse = np.float32(high - low + 1) / (top - bottom)
    at = first + np.arange(_STEPS + 1).astype(np.float32) * step
    with np.errstate(over="ignore", invalid="ignore"):
        ends = _float32(function(at)) * inverse
        middle = _rounded(_float32(function(at[:-1] + step / np.float32(2.0))) * inverse)
        begin = _rounded(ends[:-1])
        line = _rounded((ends[1:] + begin) / np.float32(2.0))
        entries = begin - _rounded((line - middle) / np.float32(2.0))
        end = _rounded(_float32(function(np.array([last]))) * inverse)
    return np.concatenate([entries, end])


def _float32(values: npt.ArrayLike) -> Floats:
    return np.asarray(values).astype(np.float32)


def _rounded(values: Floats) -> Floats:
    """Round to nearest, halves away from zero."""
    wide = values.astype(np.float64)
    return np.copysign(np.floor(np.abs(wide) + 0.5), wide).astype(np.float32)
