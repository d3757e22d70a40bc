"""Define in numpy, to the bit, what L2_NORMALIZATION computes."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.operators.common.arrays import as_output, stored
from microtir.operators.common.fixed_point import (
    inverse_square_root,
    multiply_by_quantized_multiplier,
)
from microtir.operators.normalization.definition import (
    EPSILON,
    OUTPUT_BITS,
    UINT8_ZERO,
    L2Normalize,
)


def l2_normalize(_op: L2Normalize, node: Node, x: Array) -> Array:
    """Compute L2_NORMALIZATION over the last axis."""
    source, output = node.inputs[0].type, node.output.type
    if output.dtype.is_float:
        real = x.astype(np.float64)
        root = np.sqrt(np.square(real).sum(axis=-1, keepdims=True))
        return as_output(real / np.maximum(root, EPSILON), output)
    centred = stored(x) - source.quant.zero_point
    multiplier, shift = inverse_square_root(np.square(centred).sum(axis=-1, keepdims=True))
    if output.dtype is DType.UINT8:
        scaled = multiply_by_quantized_multiplier(centred << OUTPUT_BITS, multiplier, shift)
        return as_output(np.clip(scaled + UINT8_ZERO, 0, output.dtype.max), output)
    result = multiply_by_quantized_multiplier(centred, multiplier, shift + OUTPUT_BITS)
    return as_output(np.clip(result, output.dtype.min, output.dtype.max), output)
