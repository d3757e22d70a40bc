"""Find the shortest integers that give what int8 operators in fixed point give, of every pair.

TFLite widens operands, rescales them and their sum, and rounds each time twice.  Nearly all of
these steps fall together: what is found is compared with them, for all 65,536 pairs, and where
nothing is found they stay as they are.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.arithmetic.definition import Add, AddParams, Sub, add_params
from microtir.operators.arithmetic.integer_form import IntegerForm, Table
from microtir.operators.common.fixed_point import Ints, multiply_by_quantized_multiplier
from microtir.operators.common.multiplier import QuantizedMultiplier

STORED = np.arange(DType.INT8.min, DType.INT8.max + 1)
_LINE_BITS = 30  # of the largest sum on a line


def sum_form(node: Node) -> IntegerForm | None:
    """Return integers that give every result of ADD or SUB of int8, or None."""
    types = (*(tensor.type for tensor in node.inputs), node.output.type)
    if any(type_.dtype is not DType.INT8 for type_ in types):
        return None
    op = node.attributes(Add, Sub)
    factors = tuple(type_.quant.scale / types[2].quant.scale for type_ in types[:2])
    return _sum_form(add_params(op, *types), factors[0], factors[1], isinstance(op, Sub))


@lru_cache(maxsize=512)
def _sum_form(
    params: AddParams, first: float, second: float, subtracts: bool
) -> IntegerForm | None:
    """Compare forms with all steps, for all pairs; real factors say where to begin."""
    zero_points = params.input1_zero_point, params.input2_zero_point
    factors = first, -second if subtracts else second, 0.0
    results = sums(params, subtracts=subtracts)
    ends = params.activation_min, params.activation_max
    return Table(zero_points, factors, results, *ends).form()


def sums(params: AddParams, *, subtracts: bool) -> Ints:
    """Return the results of all pairs, by both stored elements."""
    x, y = (
        multiply_by_quantized_multiplier((STORED - zero) << params.left_shift, *factor)
        for zero, factor in (
            (params.input1_zero_point, params.input1),
            (params.input2_zero_point, params.input2),
        )
    )
    total = x[:, np.newaxis] + (-1 if subtracts else 1) * y[np.newaxis]
    scaled = multiply_by_quantized_multiplier(total, *params.output) + params.output_zero_point
    results: Ints = np.clip(scaled, params.activation_min, params.activation_max)
    return results


@lru_cache(maxsize=512)
def operand_line(
    left_shift: int, zero_point: int, multiplier: QuantizedMultiplier
) -> tuple[int, int, int] | None:
    """Return (factor, offset, bits): (factor * x + offset) >> bits is an int8 operand, rescaled.

    None if there are none: where it is rounded twice, one offset rarely does.

    Args:
        left_shift: bits that it is widened by.
        zero_point: of the operand.
        multiplier: that it is rescaled by.
    """
    results = multiply_by_quantized_multiplier((STORED - zero_point) << left_shift, *multiplier)
    real = math.ldexp(multiplier.multiplier, multiplier.shift - 31 + left_shift)
    most = max(_LINE_BITS - math.frexp(real * 256)[1], 0)
    for bits in (0, most):
        factor = round(math.ldexp(real, bits))
        low = (results << bits) - factor * STORED
        least, end = int(low.max()), int(low.min()) + (1 << bits)
        if least < end:
            return factor, (least + end - 1) // 2, bits
    return None
