"""Define in numpy, to the bit, what CUMSUM computes."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common import arrays, types
from microtir.operators.common.fixed_point import multiply_by_quantized_multiplier, wrap
from microtir.operators.cumulation.definition import LEFT_SHIFT, Cumsum, cumsum_params


def cumsum(op: Cumsum, node: Node, x: Array) -> Array:
    """Compute CUMSUM; integers wrap."""
    output = node.output.type
    if output.dtype not in types.QUANTISED:
        wide = x.astype(np.float64) if output.dtype.is_float else arrays.stored(x)
        return arrays.as_output(_running(wide, op), output)
    params = cumsum_params(node.inputs[0].type, output)
    widened = (arrays.stored(x) - params.input_zero_point) << LEFT_SHIFT
    terms = multiply_by_quantized_multiplier(widened, *params.input)
    total = wrap(_running(terms, op) + params.start)
    scaled = multiply_by_quantized_multiplier(total, *params.output) + params.output_zero_point
    return arrays.as_output(np.clip(scaled, params.minimum, params.maximum), output)


def _running(terms: Array, op: Cumsum) -> Array:
    """Return the sums up to each element, which belongs to them or does not."""
    along = np.flip(terms, op.axis) if op.reverse else terms
    total = along.cumsum(axis=op.axis)
    if op.exclusive:
        total = np.roll(total, 1, op.axis)
        total[(slice(None),) * op.axis + (0,)] = 0
    return np.flip(total, op.axis) if op.reverse else total
