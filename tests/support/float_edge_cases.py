"""Random layers that make floats stored integers, and integers floats."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.operators.conversion.definition import Dequantize, Quantize
from tests.support import graphs
from tests.support.dsp_cases import DspCase

_DTYPES = (DType.INT8, DType.UINT8, DType.INT16)
_LENGTHS = (1, 2, 3, 4, 5, 7, 8, 15, 17, 64)
_SCALES = (1.0, 0.5, 0.05, 0.1, 1 / 255, 3e-5, 700.0)


def float_edge(seed: int) -> DspCase:
    """Draw a conversion; floats are near halves of steps, far outside, or no numbers."""
    rng = np.random.default_rng([seed, 51])
    dtype, quantizes, to_even = _DTYPES[seed % 3], seed % 4 < 2, seed % 8 == 1
    shape = (1, int(rng.integers(1, 5)), int(rng.choice(_LENGTHS)))
    scale = float(np.float32(rng.choice(_SCALES)))
    zero_point = int(rng.choice((dtype.min, dtype.max, 0, 3, 100)))
    stored = graphs.quant(scale, zero_point)
    floats = graphs.tensor("x" if quantizes else "y", shape, DType.FLOAT32)
    ints = graphs.tensor("y" if quantizes else "x", shape, dtype, stored)
    x, y = (floats, ints) if quantizes else (ints, floats)
    if quantizes:
        data = _floats(rng, shape, scale, dtype)
    else:
        data = rng.integers(dtype.min, dtype.max + 1, shape).astype(dtype.value)
    op = Quantize(ties_to_even=to_even) if quantizes else Dequantize()
    name = "quantize" if quantizes else "dequantize"
    return DspCase(f"{name}_{seed}", graphs.graph([graphs.node(op, [x], y)], [x], [y]), (data,))


def float_row(seed: int) -> DspCase:
    """Draw 256 floats or more that become bytes: every remainder within 16 seeds.

    Every other row has numbers of any size, and what is no number.
    """
    rng = np.random.default_rng([seed, 52])
    dtype, shape = _DTYPES[seed // 2 % 2], (1, 1, 256 + seed % 64)
    scale = float(np.float32(rng.choice(_SCALES)))
    zero_point = int(rng.choice((dtype.min, dtype.max, 0, 3, 100)))
    x = graphs.tensor("x", shape, DType.FLOAT32)
    y = graphs.tensor("y", shape, dtype, graphs.quant(scale, zero_point))
    data = _floats(rng, shape, scale, dtype, float(seed % 2))
    layer = graphs.node(Quantize(ties_to_even=seed % 3 == 0), [x], y)
    return DspCase(f"quantize_row_{seed}", graphs.graph([layer], [x], [y]), (data,))


def _floats(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    scale: float,
    dtype: DType,
    of_others: float = 0.8,
) -> npt.NDArray[np.generic]:
    """Return multiples of half a step, these a little less, numbers of any size, and others.

    The last two kinds have the probability `of_others` to occur.
    """
    span = dtype.max - dtype.min
    halves = rng.integers(-3 * span, 3 * span, shape) * np.float32(0.5 * scale)
    below = np.nextafter(halves.astype(np.float32), np.float32(0))
    any_size = rng.standard_normal(shape) * 10.0 ** rng.integers(-6, 30, shape)
    others = rng.choice(np.array([np.nan, np.inf, -np.inf, -0.0, 0.49999997 * scale]), shape)
    shares = (0.4, 0.3, 0.15, 0.15) if rng.random() < of_others else (0.6, 0.4, 0, 0)
    kinds = rng.choice(4, shape, p=shares)
    return np.choose(kinds, (halves, below, any_size, others)).astype(np.float32)
