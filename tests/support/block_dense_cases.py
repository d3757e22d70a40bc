"""Random layers whose weights have a scale for each block, of rows that are rounded."""

from __future__ import annotations

import numpy as np

from microtir.dtype import DType
from microtir.operators.block_dense.definition import LARGEST, BlockDense
from tests.support import graphs
from tests.support.dsp_cases import DspCase
from tests.support.nbits_models import packed

_CHANNELS = (4, 5, 7, 8, 13, 16)
_DEPTHS = (4, 12, 16, 20, 32, 48, 64, 100)


def block_dense(seed: int) -> DspCase:
    """Draw a layer whose every sum a float32 holds; half of the values are between two integers."""
    rng = np.random.default_rng([seed, 52])
    bits, block = (4, 8)[seed % 2], int(rng.choice((16, 32, 64, 128)))
    channels, depth = int(rng.choice(_CHANNELS)), int(rng.choice(_DEPTHS))
    rows, blocks = int(rng.integers(1, 4)), -(-depth // block)
    unit = np.ldexp(1.0, rng.integers(-20, 20, (rows, 1)))
    x = rng.integers(-2 * LARGEST, 2 * LARGEST + 1, (rows, depth)) / 2
    x[:, rng.integers(depth)] = LARGEST * rng.choice((-1, 1), rows)
    if rng.random() < 0.2:
        x[0] = 0
    scales = rng.choice((0.0625, 0.125), (channels, blocks)).astype(np.float32)
    stored = rng.integers(0, 1 << bits, (channels, blocks, block))
    constants = [
        graphs.constant("w", packed(stored, bits)),
        graphs.constant("scales", scales),
    ]
    has_bias = rng.random() < 0.5
    if has_bias:
        bias = rng.integers(-99, 99, channels) * unit.max() / 16
        constants.append(graphs.constant("bias", bias.astype(np.float32)))
    of_rows = unit if not has_bias else np.full((rows, 1), unit.max())
    data = (x * of_rows).astype(np.float32)
    tensor = graphs.tensor("x", (1, rows, depth), DType.FLOAT32)
    y = graphs.tensor("y", (1, rows, channels), DType.FLOAT32)
    op = BlockDense(bits, block, has_bias=has_bias, rounds_rows=True)
    node = graphs.node(op, [tensor, *constants], y)
    return DspCase(
        f"blocks_{seed}", graphs.graph([node], [tensor], [y]), (data.reshape(tensor.shape),)
    )
