"""Stored integers to floats and back by vectors.

Vectors do not divide.  A product with the rounded reciprocal of the scale, and what it leaves,
times the same, are the quotient as a division rounds it: this is a theorem of Markstein where
neither the scale nor what is left of a number is too small or too large.  Numbers are clamped first
to what saturates.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from microtir.config import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.requantise import LANES
from microtir.kernels.common import float_edges as edges
from microtir.plan.ir import Refusal

_SCALES = 2.0**-64, 2.0**64
_BEYOND = 2.0**18  # steps: more than any type has


class QuantizeVectors(edges.QuantizeFloats):
    """Four at a time, the last ones of which are masked."""

    name = "quantize_f32_1x4_mve"
    needs = Feature.MVE_FLOAT
    cycles = 150
    template = "kernels/mve/quantize.j2"
    stack_bytes = 8

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: scales whose remainders may be 0 for vectors."""
        reason, (least, most) = super().reject(node), _SCALES
        if reason is None and not least <= node.output.type.quant.scale <= most:
            return Refusal.SCALES
        return reason

    def turns(self, count: int) -> Mapping[str, int]:
        return {"letp lr, 1b": -(-count // LANES)}

    def values(self, run: edges.Conversion) -> Mapping[str, object]:
        scale, size = np.float32(run.scale), run.stored.bytes
        return {
            "least": edges.halves(edges.bits_of(-_BEYOND * scale)),
            "factor": edges.halves(edges.bits_of(1 / scale)),
            "less": edges.halves(edges.bits_of(-scale)),
            "zero_point": edges.halves(run.zero_point),
            "rounding": "n" if run.to_even else "a",
            "narrow": "" if size > 1 else f"vqmov{'n' if run.stored.min < 0 else 'un'}b.s16",
            "store": f"vstr{'b' if size == 1 else 'h'}.32",
            "bytes": str(LANES * size),
            "count": edges.halves(run.count),
        }


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

    def turns(self, count: int) -> Mapping[str, int]:
        return {"letp lr, 1b": -(-count // LANES)}

    def values(self, run: edges.Conversion) -> Mapping[str, object]:
        sign, width = "s" if run.stored.min < 0 else "u", "b" if run.stored.bytes == 1 else "h"
        return {
            "less": edges.halves(-run.zero_point),
            "load": f"vldr{width}.{sign}32",
            "bytes": str(LANES * run.stored.bytes),
            "count": edges.halves(run.count),
        }
