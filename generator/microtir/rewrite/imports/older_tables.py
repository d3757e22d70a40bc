"""Tables of what LiteRT computes in uint8 otherwise than in int8: 256 results of one element.

A table is indexed, and holds results, in int8: stored values of uint8 less 128.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import TensorType

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


def rescaling_table(source: TensorType, output: TensorType) -> bytes:
    """Return the table of an input of CONCATENATION that has another scale than its output."""
    scale = np.float32(source.quant.scale) * (np.float32(1) / np.float32(output.quant.scale))
    bias = np.float32(-source.quant.zero_point) * scale
    result = _STORED.astype(np.float32) * scale + bias
    return _bytes(_rounded(result) + output.quant.zero_point)
