"""Recipes of operators that put values in order."""

from __future__ import annotations

import numpy as np

from tests.support.sketch import Case, Sketch


def top_k(s: Sketch) -> Case:
    """Draw a case: TOPK_V2 of rows that hold some values more than once."""
    shape = (*s.shape(0, 2), s.integer(1, 9))
    count = s.integer(1, shape[-1])
    values = s.values(shape)
    if s.chance(0.5):
        values = np.asarray(s.rng.choice(values.reshape(-1)[:3], shape), s.dtype)
    quant = s.quant() if s.is_int8 else None
    x = s.input(shape, quant, values)
    result = (*shape[:-1], count)
    outputs = [s.output(result, quant, name="values"), s.output(result, None, np.int32, "places")]
    return s.finish([x, s.constant("count", np.array(count, np.int32))], outputs)
