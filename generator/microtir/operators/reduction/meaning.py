"""Define in numpy, to the bit, what reductions over axes compute."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.common.arrays import Meaning, as_output, stored
from microtir.operators.common.fixed_point import multiply_by_quantized_multiplier
from microtir.operators.reduction.definition import Mean, mean_params


def mean(op: Mean, node: Node, x: Array) -> Array:
    """Compute MEAN over axes; int8 folds the count into the multiplier of the sum."""
    output = node.output.type
    if output.dtype.is_float:
        average = x.astype(np.float64).mean(axis=op.axes)
        return as_output(average, output).reshape(output.shape)
    params = mean_params(op, node.inputs[0].type, output)
    total = stored(x).sum(axis=op.axes) - params.count * params.input_zero_point
    scaled = multiply_by_quantized_multiplier(total, *params.multiplier)
    shifted = np.clip(scaled + params.output_zero_point, params.minimum, params.maximum)
    return as_output(shifted, output).reshape(output.shape)


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        Mean: mean,
    }
)
