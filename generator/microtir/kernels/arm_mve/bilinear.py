"""RESIZE_BILINEAR by vectors of channels: four products for an element, a row of outputs a call.

Bits that no weight has are left out: where images become two or four times as large, sums of bytes
fit lanes of 16 bits.  Images of uint8 are weighed by floats, which are exact for such weights.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import packing
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.statements import at, each, let, load, loop, store
from microtir.kernels.portable.bilinear import Bilinear, bits_of, narrow, places_of
from microtir.measure.printed import Printed, printed
from microtir.operators.common.arithmetic import wide
from microtir.operators.resize.definition import BILINEAR_BITS
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TEMPLATE = "kernels/mve/bilinear.j2"
_LARGEST = 0xFFFF  # columns and channels: what MOVW loads
_AROUND_ROW = 20  # instructions


class BilinearVectors(Bilinear):
    """Lanes of 16 bits, or of 32, the last ones of which are masked."""

    name = "bilinear_s8_1x8_mve"
    needs = Feature.MVE

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: floats, weights of too many bits, or sizes."""
        dtype = node.output.dtype
        if dtype not in (DType.INT8, DType.INT16, DType.UINT8):
            return Refusal.TYPES
        if dtype.bits + sum(_Form.of(node).bits) > (16 if dtype is DType.UINT8 else 31):
            return Refusal.FORM
        return None if max(node.output.shape[2:]) <= _LARGEST else Refusal.SIZES

    def scratch_bytes(self, _node: Node, _calls: Calls) -> int:
        return 0

    def packed_bytes(self, node: Node) -> int:
        return packing.bytes_of(*_tables(node))

    def code_bytes(self, node: Node) -> int:
        return _Form.of(node).printed().bytes

    def instructions(self, node: Node, _calls: Calls) -> int:
        images, height, width, channels = node.output.shape
        form = _Form.of(node)
        turns = {"letp lr, 2b": width * -(-channels * form.lane // 128), "bne 1b": width}
        return images * height * (form.printed().instructions(turns) + _AROUND_ROW)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        node = layer.node
        images, in_height, *line = node.inputs[0].shape
        x = layer.whole(0, (images, in_height, math.prod(line))).buffer
        y = layer.output_buffer((*node.output.shape[:2], math.prod(node.output.shape[2:])))
        *rows, columns = _tables(node)
        kernel = _row(_Form.of(node))

        def row(image: te.Expr, number: te.Expr) -> ir.Stmt:
            first, second, weight = (wide(load(table, number)) for table in rows)
            above, below = (at(x, image, line, 0) for line in (first, second))
            return call(kernel, above, below, at(columns, 0, 0), at(y, image, number, 0), weight)

        height = node.output.shape[1]
        body = each("image", images, lambda i: loop("row", 0, height, lambda r: row(i, r)))
        return layer.function(name, None, body)


class _Form(NamedTuple):
    """A row: columns of the image and of the output, channels, bits of weights of both axes."""

    before: int
    columns: int
    channels: int
    dtype: DType
    bits: tuple[int, int]

    @staticmethod
    def of(node: Node) -> _Form:
        rows, columns = (max(bits_of(places_of(node, axis)[2]), 1) for axis in (1, 2))
        *_, width, channels = node.output.shape
        before, dtype = node.inputs[0].shape[2], node.output.dtype
        return _Form(before, width, channels, dtype, (rows, columns))

    @property
    def lane(self) -> int:
        return 16 if sum(self.bits) + self.dtype.bits <= 16 else 32

    def printed(self) -> Printed:
        return printed(_TEMPLATE, self.values())

    def values(self) -> dict[str, object]:
        size, sign = self.dtype.bytes, "u" if self.dtype is DType.UINT8 else "s"
        width, (rows, columns) = "bh"[size - 1], self.bits
        lanes = 128 // self.lane
        return {
            "columns": str(self.columns), "channels": str(self.channels), "lane": str(self.lane),
            "load": f"vldr{width}.{sign}{self.lane}", "store": f"vstr{width}.{self.lane}",
            "step": str(lanes * size), "behind": str(-self.channels % lanes * size or ""),
            "scaled": ", lsl #1" if size > 1 else "", "one": str(1 << columns),
            "row_bits": str(rows), "shift": str(rows + columns),
            "sign": "" if sign == "u" else str(self.lane - 1),
        }  # fmt: skip


def _tables(node: Node) -> tuple[ir.Buffer, ...]:
    """Return tables of rows, and one of columns: offsets of their pixels, and weights."""
    (*rows, low), (*columns, near) = (places_of(node, axis) for axis in (1, 2))
    of_rows, of_columns = (BILINEAR_BITS - bits for bits in _Form.of(node).bits)
    pixel = node.output.shape[3]
    words = np.stack([*(n * pixel for n in columns), near >> of_columns], 1)
    named = zip(("above", "below", "row_weights"), (*rows, low >> of_rows), strict=True)
    of_row = (packing.constant(name, narrow(values)) for name, values in named)
    return *of_row, packing.constant("columns", words.astype(np.int32))


@made_once
def _row(form: _Form) -> KernelDescription:
    """Weigh two rows; parameters: both, the table of columns, outputs, the second one's weight."""
    rows, columns = (1 << bits for bits in form.bits)
    reach, channels, half = (form.before - 1) * form.channels, form.channels, rows * columns // 2
    above, below = (ir.Buffer(n, (reach + channels,), form.dtype) for n in ("above", "below"))
    table = ir.Buffer("columns", (form.columns, 3), DType.INT32)
    y = ir.Buffer("y", (form.columns * channels,), form.dtype)
    low_var = ir.Var("low", low=0, high=rows)
    low = te.Expr(low_var)

    def element(column: te.Expr, channel: te.Expr) -> ir.Stmt:
        # The bounds hold for every table; nothing else says so here.
        places = (te.clamp(load(table, column, n), 0, reach) + channel for n in (0, 1))
        near = te.clamp(load(table, column, 2), 0, columns)
        left, right = (
            wide(load(above, at)) * (rows - low) + wide(load(below, at)) * low for at in places
        )
        total = left * (columns - near) + right * near
        # Halves go away from zero: what is negative is rounded up less; uint8 never is.
        return let("total", total, lambda t: store(
            y, (column * channels + channel,),
            te.cast(form.dtype, (t + (t >> 31) + half) >> sum(form.bits)),
        ))  # fmt: skip

    name = "_".join(map(str, (form.before, *form[1:3], form.dtype.value, *form.bits)))
    return describe(
        f"bilinear_row{name}",
        (f"Two rows, weighed: {form.columns} columns of {channels} channels",),
        (above, below, table, y),
        (y,),
        loop("column", 0, form.columns, lambda c: loop(
            "channel", 0, channels, lambda channel: element(c, channel)
        )),
        _TEMPLATE,
        form.values(),
        stack_bytes=36,
        needs=Feature.MVE,
        scalars=(low_var,),
    )  # fmt: skip
