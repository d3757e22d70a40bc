"""Make weights with a zero point symmetric, as operators have them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Quantization, Tensor


def centred_weights(weights: Tensor, name: str) -> Tensor:
    """Return constant weights of 8 bits less their zero point, as int8 or else int16.

    Nine bits hold them; a formula keeps int16 weights in 8 bits and adds what is missing.
    """
    quant = weights.type.quant
    values = weights.values.astype(np.int16) - quant.zero_point
    fits = values.min() >= DType.INT8.min and values.max() <= DType.INT8.max
    dtype = DType.INT8 if fits else DType.INT16
    type_ = replace(weights.type, dtype=dtype, quantization=Quantization(quant.scales, (0,)))
    return Tensor(name, type_, values.astype(dtype.value))
