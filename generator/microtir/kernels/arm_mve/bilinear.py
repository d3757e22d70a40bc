"""RESIZE_BILINEAR by vectors of channels: four products for an element, a row of outputs a call.

Bits that no weight has are left out: where images become two or four times as large, sums of bytes
fit lanes of 16 bits.  Images of uint8 are weighed by floats, which are exact for such weights.
"""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.bilinear import BilinearWords, Form, Row
from microtir.kernels.common.statements import loop
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir


class BilinearVectors(BilinearWords):
    """Lanes of 16 bits, or of 32, the last ones of which are masked."""

    name = "bilinear_s8_1x8_mve"
    needs = Feature.MVE
    template = "kernels/mve/bilinear.j2"
    prefix, stack_bytes = "bilinear_row", 36

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: floats, weights of too many bits, or sizes."""
        dtype = node.output.dtype
        if dtype not in (DType.INT8, DType.INT16, DType.UINT8):
            return Refusal.TYPES
        if dtype.bits + sum(Form.of(node).bits) > (16 if dtype is DType.UINT8 else 31):
            return Refusal.FORM
        return None if max(node.output.shape[2:]) <= self.largest else Refusal.SIZES

    def scratch(self, _form: Form) -> None:
        return None

    def scratch_bytes(self, _node: Node, _calls: Calls) -> int:
        return 0

    def turns(self, form: Form) -> Mapping[str, int]:
        vectors = -(-form.channels * _lane(form) // 128)
        return {"letp lr, 2b": form.columns * vectors, "bne 1b": form.columns}

    def values(self, form: Form) -> dict[str, object]:
        size, sign, lane = form.dtype.bytes, "u" if form.dtype is DType.UINT8 else "s", _lane(form)
        width, (rows, columns), lanes = "bh"[size - 1], form.bits, 128 // lane
        return {
            "columns": str(form.columns), "channels": str(form.channels), "lane": str(lane),
            "load": f"vldr{width}.{sign}{lane}", "store": f"vstr{width}.{lane}",
            "step": str(lanes * size), "behind": str(-form.channels % lanes * size or ""),
            "scaled": ", lsl #1" if size > 1 else "", "one": str(1 << columns),
            "row_bits": str(rows), "shift": str(rows + columns),
            "sign": "" if sign == "u" else str(lane - 1),
        }  # fmt: skip

    def meaning(self, row: Row, _scratch: ir.Buffer | None) -> ir.Stmt:
        """Return what a call computes."""
        return loop("column", 0, row.form.columns, lambda column: loop(
            "channel", 0, row.form.channels,
            lambda channel: row.along(column, channel, lambda at: row.down(at + channel)),
        ))  # fmt: skip


def _lane(form: Form) -> int:
    return 16 if sum(form.bits) + form.dtype.bits <= 16 else 32
