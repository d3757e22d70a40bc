"""Random reductions: sums, means and extremes over lines and over pixels."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.operators.normalization.definition import NORMALIZED_OF_INT8, L2Normalize
from microtir.operators.reduction.definition import Mean, ReduceMax, ReduceMin, Sum
from microtir.operators.softmax.definition import SOFTMAX_OF_INT8, LogSoftmax, Softmax
from tests.support import graphs
from tests.support.dsp_cases import DspCase

_EXTENTS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17, 30, 33, 64, 100, 130)
_MOST = 20_000  # elements


def reduced(seed: int, dtype: DType = DType.INT8) -> DspCase:
    """Draw a reduction of neighbouring axes; some sums are of more than 256 elements."""
    rng = np.random.default_rng([seed, 21])
    op = (Mean, Sum, ReduceMax, ReduceMin)[seed % 4]
    before = [1, int(rng.choice(_EXTENTS))][: int(rng.integers(0, 3))]
    channels = [int(rng.choice(_EXTENTS))] if seed % 3 or not before else []  # else axes are lines
    over = [int(rng.choice(_EXTENTS)) for _ in range(int(rng.integers(1, 3)))]
    if seed % 5 == 0:
        over = [int(rng.choice((257, 600)))]
    while (elements := int(np.prod([*before, *over, *channels]))) > _MOST:
        before, over = before[:1], [max(1, n // 2) for n in over]
    y_quant = graphs.quant(
        float(rng.uniform(0.06, 0.2)) * (np.sqrt(np.prod(over)) if op is Sum else 1),
        int(rng.integers(-128, 128)),
    )
    is_sum = op in (Mean, Sum)
    x_quant = graphs.quant(0.05, int(rng.integers(-128, 128))) if is_sum else y_quant
    if dtype is DType.INT16:
        x_quant, y_quant = (graphs.quant(q.scale / 256, 0) for q in (x_quant, y_quant))
    data = rng.integers(dtype.min, dtype.max + 1, elements).astype(dtype.value)
    data = data.reshape([*before, *over, *channels])
    if rng.random() < 0.3:
        data[...] = rng.choice((dtype.min, dtype.max))  # the largest sums
    x = graphs.tensor("x", data.shape, dtype, x_quant)
    y = graphs.tensor("y", (*before, *channels), dtype, y_quant)
    axes = tuple(range(len(before), len(before) + len(over)))
    return DspCase(
        f"reduced_{dtype.value}_{seed}",
        graphs.graph([graphs.node(op(axes), [x], y)], [x], [y]),
        (data,),
    )


_WIDTHS = (4, 5, 6, 7, 9, 16, 31, 38, 39, 85, 255, 256)


def softmaxed(seed: int) -> DspCase:
    """Draw a softmax of several rows, or its logarithm: every width within 24 seeds.

    One row is of equal elements, one of two that are far apart.
    """
    rng = np.random.default_rng([seed, 22])
    is_log = bool(seed % 2)
    shape = int(rng.integers(2, 5)), _WIDTHS[seed // 2 % len(_WIDTHS)]
    scale = float(rng.choice((0.0004, 0.02, 1 / 16, 0.1, 1.0)))
    data = rng.integers(-128, 128, shape).astype(np.int8)
    data[0] = rng.choice((-128, 127))
    data[1] = np.where(np.arange(shape[1]) == rng.integers(shape[1]), 127, -128)
    x = graphs.tensor("x", shape, DType.INT8, graphs.quant(scale, int(rng.integers(-128, 128))))
    of_log = graphs.quant(1 / 16, 127)
    y = graphs.tensor("y", shape, DType.INT8, of_log if is_log else SOFTMAX_OF_INT8)
    layer = graphs.node(LogSoftmax() if is_log else Softmax(float(rng.choice((1, 2)))), [x], y)
    return DspCase(f"softmaxed_{seed}", graphs.graph([layer], [x], [y]), (data,))


_LENGTHS = (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 130, 300)


def normalised(seed: int) -> DspCase:
    """Draw rows to normalise: every length within 12 seeds.

    One row is of zeros, one has a single 1, and one is as long as it can be.
    """
    rng = np.random.default_rng([seed, 23])
    width, zero_point = _LENGTHS[seed % len(_LENGTHS)], (0, -128, 127, 3, -40)[seed * 2 % 5]
    data = rng.integers(-128, 128, (int(rng.integers(3, 10)), width)).astype(np.int8)
    data[:2] = zero_point
    data[1, 0] += 1 if zero_point < 0 else -1
    data[2] = 127 if zero_point < 0 else -128
    x = graphs.tensor("x", data.shape, DType.INT8, graphs.quant(0.05, zero_point))
    y = graphs.tensor("y", data.shape, DType.INT8, NORMALIZED_OF_INT8)
    layer = graphs.node(L2Normalize(), [x], y)
    return DspCase(f"normalised_{seed}", graphs.graph([layer], [x], [y]), (data,))
