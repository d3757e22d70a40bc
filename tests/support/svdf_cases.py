"""Random SVDFs of int8 whose memory of int16 is an input, and full."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.operators.recurrent.definition import Svdf
from tests.support import graphs
from tests.support.dsp_cases import DspCase

_LENGTHS = (1, 2, 7, 36, 43)


def remembering(seed: int) -> DspCase:
    """Draw an SVDF: sums over time leave 32 bits, and not all have whole pairs of terms."""
    rng = np.random.default_rng([seed, 31])
    length, rank, units = _LENGTHS[seed % 5], 1 + seed % 2, int(rng.integers(8, 20))
    filters, width = rank * units, int(rng.integers(4, 30))
    x_quant, memory_quant, time_quant = (graphs.quant(n, 0) for n in (0.05, 0.001, 2**-14))
    y_quant = graphs.quant(float(rng.uniform(0.1, 3)), int(rng.integers(-3, 3)))
    x = graphs.tensor("x", (1, width), DType.INT8, x_quant)
    memory = graphs.tensor("memory", (1, filters * length), DType.INT16, memory_quant)
    y = graphs.tensor("y", (1, units), DType.INT8, y_quant)
    after = graphs.tensor("after", memory.shape, DType.INT16, memory_quant)
    features = rng.integers(-127, 128, (filters, width)).astype(np.int8)
    over_time = rng.integers(-32768, 32768, (filters, length)).astype(np.int16)
    bias = rng.integers(-(1 << 30), 1 << 30, units).astype(np.int32)
    constants = (
        graphs.constant("features", features, graphs.quant(0.01, 0)),
        graphs.constant("time", over_time, time_quant),
        graphs.constant("bias", bias, graphs.quant(0.001 * 2**-14, 0)),
    )
    layer = graphs.node(Svdf(rank), [x, memory, *constants], [y, after])
    held = rng.choice((-32768, 32767, -1, 12345), memory.shape).astype(np.int16)
    given = rng.integers(-128, 128, x.shape).astype(np.int8)
    return DspCase(f"remembering_{seed}", graphs.graph([layer], [x, memory], [y]), (given, held))
