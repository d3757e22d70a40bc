"""Prove that doubles give every integer of PT2E as exact arithmetic does.

A factor of PT2E is a product of float32 numbers, and has more bits than a double.  A sum times the
next double is off by less than 2^-52 of itself, which can matter only beside the middle of two
integers.  So for each middle the sums on both sides of it are looked at, in exact fractions where
doubles are too close to tell.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Node, TensorType
from microtir.operators.arithmetic.definition import Add, Mul, Sub
from microtir.operators.common import linear
from microtir.operators.common.attributes import Rescaling
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.reduction.definition import Mean, reduced_elements
from microtir.operators.transposed_convolution.definition import TransposeConv

Doubles = npt.NDArray[np.float64]

_DOUBT = 2.0**-50  # of a number: more than two roundings of a double


def is_exact(node: Node) -> bool:
    """Return whether a node gives the integers of exact arithmetic, or is not to.

    Sums of two tensors of int16 are too many pairs to look at; doubles hold them to 2^-37.
    """
    if linear.rescaling_of(node) is not Rescaling.EXACT:
        return True
    output = node.output.type
    if isinstance(node.op, Add | Sub):
        return output.dtype is not DType.INT8 or _is_exact_sum(node)
    span = output.dtype.max - output.dtype.min
    return all(_is_exact_factor(*factor, span) for factor in set(_factors(node)))


def _factors(node: Node) -> Iterator[tuple[float, Fraction]]:
    """Yield the doubles that sums of a node are multiplied by, and what they stand for."""
    op, x, y = node.op, node.inputs[0].type, node.output.type
    if isinstance(op, BatchMatmul | Conv2D | FullyConnected | Mul | TransposeConv):
        weights = node.inputs[1].type
        doubles = linear.exact_factors(x, weights, y)
        for factor, scale in zip(doubles, weights.quant.scales, strict=True):
            yield factor, _fraction(x.quant.scale) * _fraction(scale) * _reciprocal(y)
        return
    counts = range(1, 2)
    if isinstance(op, AveragePool2D):
        counts = range(1, math.prod(op.window) + 1)
    if isinstance(op, Mean):
        counts = range(reduced_elements(node), reduced_elements(node) + 1)
    for count in counts:
        exact = _fraction(x.quant.scale) * _reciprocal(y) / count
        yield linear.sum_factor(x, y, count, Rescaling.EXACT), exact


def _fraction(scale: float) -> Fraction:
    return Fraction(float(np.float32(scale)))


def _reciprocal(output: TensorType) -> Fraction:
    return Fraction(linear.reciprocal(output))


@lru_cache(maxsize=4096)
def _is_exact_factor(factor: float, exact: Fraction, span: int) -> bool:
    """Return whether whole numbers times a double round as times what it stands for.

    Args:
        factor: the double.
        exact: what it stands for.
        span: the largest distance of a stored value from the zero point.
    """
    middles = np.arange(span + 1) + 0.5
    sums = np.floor(middles / factor) + np.arange(-1.0, 3.0)[:, np.newaxis]
    distances = sums * factor - middles
    near = np.abs(distances) <= middles * _DOUBT
    totals, ends = sums[near].tolist(), np.broadcast_to(middles, near.shape)[near].tolist()
    for total, middle, distance in zip(totals, ends, distances[near].tolist(), strict=True):
        if _sign(int(total) * exact - Fraction(middle)) != _sign(distance):
            return False
    return True


def _is_exact_sum(node: Node) -> bool:
    """Return whether all pairs of int8 round as exact sums do."""
    types, output = [tensor.type for tensor in node.inputs], node.output.type
    stored = np.arange(DType.INT8.min, DType.INT8.max + 1)
    sign = 1 if isinstance(node.op, Add) else -1
    scales = [float(np.float32(type_.quant.scale)) for type_ in types]
    x, y = (stored - type_.quant.zero_point for type_ in types)
    reals = (x[:, np.newaxis] * scales[0] + sign * y * scales[1]) * linear.reciprocal(output)
    middles = np.floor(reals) + 0.5
    distances = reals - middles
    # Terms may be larger than their sum: what is lost is a part of the largest one.
    largest = np.abs(reals).max() + 2.0 * DType.INT8.max * max(scales) * linear.reciprocal(output)
    for a, b in np.argwhere(np.abs(distances) <= largest * _DOUBT).tolist():
        left, right = int(x[a]) * Fraction(scales[0]), int(y[b]) * Fraction(scales[1])
        real = (left + sign * right) * _reciprocal(output) - Fraction(float(middles[a, b]))
        if _sign(real) != _sign(float(distances[a, b])):
            return False
    return True


def _sign(number: Fraction | float) -> int:
    return (number > 0) - (number < 0)
