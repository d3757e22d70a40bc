"""Stored integers to floats and back by vectors.

Vectors do not divide.  A product with the rounded reciprocal of the scale, and what it leaves,
times the same, are the quotient as a division rounds it: this is a theorem of Markstein where
neither the scale nor what is left of a number is too small or too large.  Numbers are clamped first
to what saturates.  Bytes are made of 16 numbers a turn, which are not clamped: where a product of
two quotients is infinite or none, all are made anew.  These quotients are products with two parts
of the reciprocal, of which planning knows that they round to the same integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from microtir.config import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.linear import BYTES
from microtir.kernels.arm_mve.requantise import LANES
from microtir.kernels.common import float_edges as edges
from microtir.plan.ir import Refusal

_SCALES = 2.0**-64, 2.0**64
_BEYOND = 2.0**18  # steps: more than any type has
_BITS_LESS = 29  # of the fraction of a float32 than of a float64


class QuantizeVectors(edges.QuantizeFloats):
    """Bytes by 16; others, and the last ones, four at a time, of which the last are masked."""

    name = "quantize_f32_1x4_mve"
    needs = Feature.MVE_FLOAT
    cycles = 150
    template = "kernels/mve/quantize.j2"
    stack_bytes = 48

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: scales whose remainders may be 0 for vectors."""
        reason, (least, most) = super().reject(node), _SCALES
        if reason is None and not least <= node.output.type.quant.scale <= most:
            return Refusal.SCALES
        return reason

    def turns(self, run: edges.Conversion) -> Mapping[str, int]:
        turns, left = _turns(run)
        return {"le lr, 1b": turns, "letp lr, 2b": -(-left // LANES)}

    def values(self, run: edges.Conversion) -> Mapping[str, object]:
        scale, size = np.float32(run.scale), run.stored.bytes
        turns, left = _turns(run)
        return {
            "least": edges.halves(edges.bits_of(-_BEYOND * scale)),
            "factor": edges.halves(edges.bits_of(1 / scale)),
            "low": edges.halves(edges.bits_of(_low_part(run.scale, run.to_even) or 0)),
            "less": edges.halves(edges.bits_of(-scale)),
            "zero_point": edges.halves(run.zero_point),
            "rounding": "n" if run.to_even else "a",
            "narrow": "" if size > 1 else f"vqmov{'n' if run.stored.min < 0 else 'un'}",
            "turns": str(turns) if turns else "",
            "left": str(left) if left else "",
            "made": edges.halves(run.count - left),
            "store": f"vstr{'b' if size == 1 else 'h'}.32",
            "bytes": str(LANES * size),
            "count": edges.halves(left),
        }


def _turns(run: edges.Conversion) -> tuple[int, int]:
    """Return how often numbers are not clamped, and how many are left."""
    if run.stored.bytes > 1 or _low_part(run.scale, run.to_even) is None:
        return 0, run.count
    return divmod(run.count, BYTES)


@lru_cache
def _low_part(scale: float, to_even: bool) -> float | None:
    """Return what the rounded reciprocal of a scale lacks; None where both give other integers.

    The sum of the products with both rises with the number, as the quotient does: they round to the
    same integers if those of the numbers beside every half of a step are the same.
    """
    divisor = np.float32(scale)
    low = np.float32(1 / np.float64(divisor) - np.float64(1 / divisor))
    halves = ((np.arange(256) + 0.5) * np.float64(divisor)).astype(np.float32)
    x = (halves.view(np.int32)[:, None] + np.arange(-3, 4, dtype=np.int32)).view(np.float32)
    product, rest = np.float64(x) * np.float64(1 / divisor), np.float64(x * low)
    total = product + rest
    # A sum that a float64 has rounded to half of a float32's step says nothing.
    lost = rest - (total - product)
    is_half = total.view(np.int64) % (1 << _BITS_LESS) == 1 << (_BITS_LESS - 1)
    rounded = np.rint if to_even else lambda value: np.floor(np.float64(value) + 0.5)
    ours, quotients = rounded(total.astype(np.float32)), rounded(x / divisor)
    is_same = np.array_equal(ours, quotients) and (ours[:, 0] < ours[:, -1]).all()
    return None if not is_same or (is_half & (lost != 0)).any() else float(low)


class DequantizeVectors(edges.DequantizeFloats):
    """Four at a time, the last ones of which are masked."""

    name = "dequantize_f32_1x4_mve"
    needs = Feature.MVE_FLOAT
    cycles = 130
    template = "kernels/mve/dequantize.j2"
    stack_bytes = 8

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: scales that are 0 for vectors, too."""
        reason = super().reject(node)
        if reason is None and node.inputs[0].type.quant.scale < np.finfo(np.float32).tiny:
            return Refusal.SCALES
        return reason

    def turns(self, run: edges.Conversion) -> Mapping[str, int]:
        return {"letp lr, 1b": -(-run.count // LANES)}

    def values(self, run: edges.Conversion) -> Mapping[str, object]:
        sign, width = "s" if run.stored.min < 0 else "u", "b" if run.stored.bytes == 1 else "h"
        return {
            "less": edges.halves(-run.zero_point),
            "load": f"vldr{width}.{sign}32",
            "bytes": str(LANES * run.stored.bytes),
            "count": edges.halves(run.count),
        }
