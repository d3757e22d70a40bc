"""Tables of what LiteRT computes in uint8 otherwise than in int8: 256 results of one element.

A table is indexed, and holds results, in int8: stored values of uint8 less 128.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import TensorType
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import Logistic, Tanh

Floats: TypeAlias = npt.NDArray[np.floating[Any]]

_STORED = np.arange(256)
_HALF = 128


def _bytes(stored: Floats) -> bytes:
    clamped = np.clip(stored, 0, 255) - _HALF
    return clamped.astype(np.int8).tobytes()


def _rounded(values: Floats) -> Floats:
    """Round halves away from zero."""
    wide = values.astype(np.float64)
    return np.sign(wide) * np.floor(np.abs(wide) + 0.5)


def _logistic(real: Floats) -> Floats:
    """Round each step to float32, as LiteRT does: next to a half the last bit decides."""
    with np.errstate(over="ignore"):
        power = np.exp(-real.astype(np.float64)).astype(np.float32)
    return np.asarray(np.float32(1) / (np.float32(1) + power))


def _tanh(real: Floats) -> Floats:
    return np.tanh(real.astype(np.float64)).astype(np.float32)


_FUNCTIONS: Mapping[type[Operator], Callable[[Floats], Floats]] = MappingProxyType(
    {Logistic: _logistic, Tanh: _tanh}
)


def function_table(op: Operator, source: TensorType, output: TensorType) -> bytes:
    """Return the table of LOGISTIC or TANH of uint8, computed in float32."""
    stored = (_STORED - source.quant.zero_point).astype(np.float32)
    real = np.float32(source.quant.scale) * stored
    result = _FUNCTIONS[type(op)](real) * np.float32(1 / output.quant.scale)
    return _bytes(_rounded(result) + output.quant.zero_point)


def rescaling_table(source: TensorType, output: TensorType) -> bytes:
    """Return the table of an input of CONCATENATION that has another scale than its output."""
    scale = np.float32(source.quant.scale) * (np.float32(1) / np.float32(output.quant.scale))
    bias = np.float32(-source.quant.zero_point) * scale
    result = _STORED.astype(np.float32) * scale + bias
    return _bytes(_rounded(result) + output.quant.zero_point)
