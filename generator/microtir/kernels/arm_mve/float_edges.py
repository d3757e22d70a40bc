"""Stored integers to floats by vectors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from microtir.config import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.requantise import LANES
from microtir.kernels.common.float_edges import Conversion, DequantizeFloats, halves
from microtir.plan.ir import Refusal


class DequantizeVectors(DequantizeFloats):
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

    def values(self, run: Conversion) -> Mapping[str, object]:
        sign, width = "s" if run.stored.min < 0 else "u", "b" if run.stored.bytes == 1 else "h"
        return {
            "less": halves(-run.zero_point),
            "load": f"vldr{width}.{sign}32",
            "bytes": str(LANES * run.stored.bytes),
            "count": halves(run.count),
        }
