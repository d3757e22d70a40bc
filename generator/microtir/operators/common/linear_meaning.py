"""Define weighted sums with bias, activation and requantisation in numpy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.graph.ir import Array, Node
from microtir.operators.common import fixed_point
from microtir.operators.common.arrays import Doubles, activate, as_output, real_weights, stored
from microtir.operators.common.linear import (
    LinearParams,
    WeightedOperator,
    has_long_sums,
    multiplier_arrays,
    params_of,
    rescaled_in_float,
)
from microtir.operators.common.multiplier import reduced


def linear(
    node: Node,
    sums: Callable[[Doubles, Doubles], Doubles],
    x: Array,
    weights: Array,
    bias: Array | None,
) -> Array:
    """Return the output of a node whose inputs are x, weights and perhaps a bias per channel.

    Args:
        node: of a weighted operator; gives the types and parameters.
        sums: adds the products of centred inputs and weights, output channels last.
            Doubles hold the sums of int8 products exactly: they stay far below 2^53.
        x: first input.
        weights: second input.
        bias: third input or None.
    """
    input_type, weights_type = node.inputs[0].type, node.inputs[1].type
    output = node.output.type
    if input_type.dtype.is_float:
        real = sums(x.astype(np.float64), real_weights(weights, weights_type))
        if bias is not None:
            real = real + bias
        return as_output(activate(real, node.attributes(WeightedOperator).activation), output)
    params = params_of(node)
    centred = stored(x) - params.input_zero_point
    total = sums(centred.astype(np.float64), weights.astype(np.float64)).astype(np.int64)
    if bias is not None:
        total = total + bias
    return as_output(requantized(total, params, has_long_sums(node)), output)


def requantized(
    accumulators: fixed_point.Ints, params: LinearParams, is_long: bool
) -> fixed_point.Ints:
    """Return scale accumulators (channels last) to stored outputs and clamp them."""
    if params.factors:
        return rescaled_in_float(
            accumulators if is_long else fixed_point.wrap(accumulators), params
        )
    scale, factors = fixed_point.multiply_by_quantized_multiplier, params.multipliers
    if is_long:
        scale, factors = fixed_point.multiply_by_reduced_multiplier, tuple(map(reduced, factors))
    multipliers, shifts = multiplier_arrays(factors, accumulators.shape[-1])
    scaled = scale(accumulators, multipliers, shifts)
    shifted = scaled + params.output_zero_point
    return np.clip(shifted, params.activation_min, params.activation_max)


def flat_rows(array: Doubles) -> Doubles:
    """Return one row per index of the first axis."""
    return array.reshape(array.shape[0], -1)
