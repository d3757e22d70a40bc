"""Random LSTMs of int8 and int16 whose states are inputs, and full."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.operators.recurrent.definition import GATES, Lstm
from tests.support import graphs
from tests.support.dsp_cases import DspCase

_WIDTHS = (1, 2, 3, 4, 6, 7, 16, 19, 24, 30, 33)
_UNITS = (1, 2, 3, 5, 6, 8, 13, 20)


def gated(seed: int, dtype: DType = DType.INT8) -> DspCase:
    """Draw an LSTM: any rest of inputs and units, shifts to both sides, cells that are clipped."""
    rng = np.random.default_rng([seed, 37])
    width, units = int(rng.choice(_WIDTHS)), _UNITS[seed % len(_UNITS)]
    batch, steps = int(rng.integers(1, 3)), int(rng.integers(1, 4))
    time_major = bool(rng.integers(2))
    shape = (steps, batch) if time_major else (batch, steps)
    x_quant = graphs.quant(float(rng.choice((0.004, 0.03, 0.4))), int(rng.integers(-128, 128)))
    h_quant = graphs.quant(float(rng.uniform(0.0045, 0.02)), int(rng.integers(-128, 128)))
    narrow, summed = dtype is DType.INT8, DType.INT32 if dtype is DType.INT8 else DType.INT64
    if not narrow:
        x_quant, h_quant = (graphs.quant(quant.scale / 256) for quant in (x_quant, h_quant))
    exact = 2.0 ** int(rng.integers(-16, -8))
    scale = exact if seed % 4 else float(rng.choice((2.0**-2, 2.0**-15, 0.001, 0.0001)))
    x = graphs.tensor("x", (*shape, width), dtype, x_quant)
    hidden = graphs.tensor("hidden", (batch, units), dtype, h_quant)
    cell = graphs.tensor("cell", (batch, units), DType.INT16, graphs.quant(scale))
    y = graphs.tensor("y", (*shape, units), dtype, h_quant)
    after = [
        graphs.tensor(f"{t.name}_after", t.shape, t.dtype, t.type.quant) for t in (hidden, cell)
    ]
    scales = rng.uniform(0.002, 0.02, 2 * GATES)
    weights = [
        graphs.constant(
            f"w{n}",
            rng.integers(-127, 128, (units, width if n < GATES else units)).astype(np.int8),
            graphs.quant(float(scales[n])),
        )
        for n in range(2 * GATES)
    ]
    biases = [
        graphs.constant(
            f"b{n}", rng.integers(-8000, 8000, units).astype(summed.value) * (1 if narrow else 256),
            graphs.quant(x_quant.scale * weights[n].type.quant.scale),
        )
        for n in range(GATES)
    ]  # fmt: skip
    clip = float(rng.choice((0.0, 0.0, 0.4, 32767.5))) * (scale if seed % 2 else 1)
    op = Lstm(time_major=time_major, cell_clip=clip)
    layer = graphs.node(op, [x, hidden, cell, *weights, *biases], [y, *after])
    values = (
        rng.integers(t.dtype.min, t.dtype.max + 1, t.shape).astype(t.dtype.value)
        for t in (x, hidden, cell)
    )
    graph = graphs.graph([layer], [x, hidden, cell], [y])
    name = "gated" if narrow else "gated_s16"
    return DspCase(f"{name}_{seed}", graph, tuple(values))
