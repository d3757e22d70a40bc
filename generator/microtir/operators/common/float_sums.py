"""Write how sums are rescaled by real factors: by integers, if some do the same."""

from __future__ import annotations

from microtir import te
from microtir.dtype import DType
from microtir.operators.common import arithmetic, attributes, float_rescaling, weighted


def stored_sum(total: te.Expr, sums: float_rescaling.StoredSums, dtype: DType) -> te.Expr:
    """Return what a sum is stored as.

    Args:
        total: one of the sums, INT32.
        sums: their factor, what they can be, and the range that is stored.
        dtype: of the result.
    """
    shift = float_rescaling.shift_of(sums.factor)
    lines = iter(()) if sums.constant is not None else float_rescaling.lines_of(sums, shift)
    line = next(lines, None)
    if line is None:
        limits = weighted.StoredRange(sums.zero_point, sums.low, sums.high)
        if sums.rescaling is attributes.Rescaling.EXACT:
            real = te.cast(DType.FLOAT64, total) * te.const(sums.factor, DType.FLOAT64)
            return weighted.stored_in_double(real, limits, dtype, ties_to_even=True)
        return weighted.stored_in_float(total, te.const(sums.factor, DType.FLOAT32), limits, dtype)
    offset = (line.first + line.end - 1) // 2
    scaled = (arithmetic.long(total) * (2 * line.multiplier) + offset) >> (DType.INT32.bits + shift)
    clamped = te.clamp(te.bind("scaled", te.cast(DType.INT32, scaled)), sums.low, sums.high)
    return te.cast(dtype, clamped)
