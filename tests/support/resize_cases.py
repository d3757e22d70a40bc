"""Random images that are resized by bilinear interpolation, of every type and sum of weights."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.operators.resize.definition import ResizeBilinear
from tests.support import graphs
from tests.support.dsp_cases import DspCase

_CHANNELS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 16, 17, 22, 28, 30, 32)
_FLAGS = (False, False), (True, False), (False, True)
_TIMES = 2, 4, 1, 8, 3
_DTYPES = (DType.INT8, DType.UINT8, DType.INT8, DType.INT16, DType.INT8)


def resized(seed: int) -> DspCase:
    """Draw an image and its new size: a small multiple of the old one, or any other size."""
    rng, dtype = np.random.default_rng([seed, 38]), _DTYPES[seed % 5]
    channels, op = int(rng.choice(_CHANNELS)), ResizeBilinear(*_FLAGS[seed // 5 % 3])
    images, height, width = (int(n) for n in rng.integers(1, (3, 7, 9)))
    size = tuple(int(n) for n in rng.integers(1, 14, 2))
    if dtype is not DType.INT8 or seed % 5 == 0:
        times = rng.choice(_TIMES, 2)
        size = int(times[0]) * height, int(times[1]) * width
        if op.align_corners:
            size = int(times[0]) * (height - 1) + 1, int(times[1]) * (width - 1) + 1
    quant = graphs.quant(0.1, 0 if dtype is DType.INT16 else 3)
    shapes = (images, height, width, channels), (images, *size, channels)
    x, y = (graphs.tensor(n, shape, dtype, quant) for n, shape in zip("xy", shapes, strict=True))
    values = rng.integers(dtype.min, dtype.max + 1, x.shape)
    if seed % 2:  # ties, and sums that fill their lanes
        few = [dtype.min, dtype.max, *(n for n in (-2, -1, 0, 1, 2) if n >= dtype.min)]
        values = rng.choice(few, x.shape)
    graph = graphs.graph([graphs.node(op, [x], y)], [x], [y])
    return DspCase(f"resized_{seed}", graph, (values.astype(dtype.value),))
