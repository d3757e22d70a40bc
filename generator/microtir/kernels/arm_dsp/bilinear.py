"""RESIZE_BILINEAR by words, a row of outputs a call: two bytes in the halves of a word.

The bytes are unsigned there, those of int8 by adding 128.  Their weighed sums fit 16 bits where the
weights of both axes have 8 at most, so that no sum reaches the other half.  Images of uint8 are
weighed by floats, which are exact for such weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
from microtir.kernels.common.statements import at, each, let, load, loop, seq, store
from microtir.kernels.portable.bilinear import Bilinear, bits_of, narrow, places_of
from microtir.measure.printed import printed
from microtir.operators.common.arithmetic import wide
from microtir.operators.resize.definition import BILINEAR_BITS
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_AROUND_ROW = 20  # instructions
_WORD, _OF_COLUMN = 4, 12  # bytes
_LEAST = 3  # channels


class Form(NamedTuple):
    """A row: columns of the image and of the output, channels, bits of weights of both axes."""

    before: int
    columns: int
    channels: int
    dtype: DType
    bits: tuple[int, int]

    @staticmethod
    def of(node: Node) -> Form:
        rows, columns = (max(bits_of(places_of(node, axis)[2]), 1) for axis in (1, 2))
        *_, width, channels = node.output.shape
        before, dtype = node.inputs[0].shape[2], node.output.dtype
        return Form(before, width, channels, dtype, (rows, columns))

    @property
    def elements(self) -> int:
        return self.before * self.channels

    @property
    def weighed(self) -> int:
        """Return the elements of a row up to where its last word ends."""
        return self.elements + (self.channels < _WORD)

    @property
    def is_in_order(self) -> bool:
        """Return whether scratch has the order of the row's bytes, since pixels are no words."""
        return self.channels % _WORD > 0


class Row(NamedTuple):
    """The parameters of a call, between which a kernel may have scratch."""

    form: Form
    images: tuple[ir.Buffer, ir.Buffer]
    table: ir.Buffer
    y: ir.Buffer
    low: te.Expr

    def down(self, place: te.Expr, least: int = 0) -> te.Expr:
        """Return the weighed sum of a column's two elements, less the least one each."""
        here, there = (wide(load(image, place)) - least for image in self.images)
        return here * ((1 << self.form.bits[0]) - self.low) + there * self.low

    def along(
        self, column: te.Expr, channel: te.Expr, at: Callable[[te.Expr], te.Expr], least: int = 0
    ) -> ir.Stmt:
        """Weigh what two columns have, and store it; halves go away from zero."""
        form, shift, table = self.form, sum(self.form.bits), self.table
        one, reach = 1 << form.bits[1], form.elements - form.channels
        # The bounds hold for every table; nothing else says so here.
        left, right = (at(te.clamp(load(table, column, n), 0, reach)) for n in (0, 1))
        near = te.clamp(load(table, column, 2), 0, one)
        total = left * (one - near) + right * near + (least << shift)
        # What is negative is rounded up less; uint8 never is.
        return let("total", total, lambda t: store(
            self.y, (column * form.channels + channel,),
            te.cast(form.dtype, (t + (t >> 31) + (1 << (shift - 1))) >> shift),
        ))  # fmt: skip


class BilinearWords(Bilinear):
    """Four channels at a time: a row is weighed into scratch, and that along the row."""

    name = "bilinear_s8_1x4_dsp"
    needs = Feature.DSP
    template = "kernels/bilinear.j2"
    prefix, stack_bytes = "bilinear_words", 44
    largest = 0xFFFF  # what MOVW loads

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: other types, weights of too many bits, or sizes."""
        if node.output.dtype not in (DType.INT8, DType.UINT8):
            return Refusal.TYPES
        form = Form.of(node)
        if DType.INT8.bits + sum(form.bits) > DType.INT16.bits:
            return Refusal.FORM
        most = max(form.elements // _WORD, form.columns * _OF_COLUMN)
        fits = form.channels >= _LEAST and form.elements >= _WORD and most <= self.largest
        return None if fits else Refusal.SIZES

    def scratch(self, form: Form) -> ir.Buffer | None:
        """Return what a row takes beside its operands."""
        return ir.Buffer("scratch", (form.weighed,), DType.UINT16, alignment=_WORD)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return Form.of(node).weighed * DType.UINT16.bytes

    def packed_bytes(self, node: Node) -> int:
        return packing.bytes_of(*_tables(node))

    def code_bytes(self, node: Node) -> int:
        return printed(self.template, self.values(Form.of(node))).bytes

    def instructions(self, node: Node, _calls: Calls) -> int:
        form, (images, height) = Form.of(node), node.output.shape[:2]
        row = printed(self.template, self.values(form)).instructions(self.turns(form))
        return images * height * (row + _AROUND_ROW)

    def turns(self, form: Form) -> Mapping[str, int]:
        """Return how often the loops of a row run."""
        words, after = form.elements // _WORD, form.columns * (form.channels // _WORD)
        return {"bne 1b": words, "bne 2b": form.columns, "b 2b": form.columns, "bne 3b": after}

    def values(self, form: Form) -> dict[str, object]:
        """Return what the template is given."""
        (rows, columns), is_signed = form.bits, form.dtype is DType.INT8
        half = (1 << (rows + columns - 1)) - is_signed
        return {
            "is_signed": is_signed, "rows": str(1 << rows), "columns": str(1 << columns),
            "words": str(form.elements // _WORD), "row_back": str(-form.elements % _WORD or ""),
            "pixel_words": str(form.channels // _WORD or ""), "in_order": form.is_in_order,
            "pixel_back": str(-form.channels % _WORD or ""),
            "loops": form.channels // _WORD > form.is_in_order,
            "table_bytes": str(form.columns * _OF_COLUMN), "shift": str(rows + columns),
            "half": f"0x{half:04x}{half:04x}",
        }  # fmt: skip

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the loops that call the micro-kernel for each row."""
        node, form = layer.node, Form.of(layer.node)
        images, in_height, *line = node.inputs[0].shape
        x = layer.whole(0, (images, in_height, math.prod(line))).buffer
        y = layer.output_buffer((*node.output.shape[:2], math.prod(node.output.shape[2:])))
        kernel, scratch, (*rows, columns) = self._row(form), self.scratch(form), _tables(node)
        between = (at(scratch, 0),) if scratch else ()

        def row(image: te.Expr, number: te.Expr) -> ir.Stmt:
            first, second, weight = (wide(load(table, number)) for table in rows)
            above, below = (at(x, image, line, 0) for line in (first, second))
            place = at(y, image, number, 0)
            return call(kernel, above, below, at(columns, 0, 0), *between, place, weight)

        height = node.output.shape[1]
        body = each("image", images, lambda i: loop("row", 0, height, lambda r: row(i, r)))
        return layer.function(name, scratch, body)

    @made_once
    def _row(self, form: Form) -> KernelDescription:
        """Weigh two rows; parameters: both, a table, scratch, outputs, the second one's weight."""
        above, below = (ir.Buffer(n, (form.elements,), form.dtype) for n in ("above", "below"))
        table = ir.Buffer("columns", (form.columns, 3), DType.INT32)
        y = ir.Buffer("y", (form.columns * form.channels,), form.dtype)
        low, scratch = ir.Var("low", low=0, high=1 << form.bits[0]), self.scratch(form)
        written = (scratch, y) if scratch else (y,)
        return describe(
            self.prefix + "_".join(map(str, (*form[:3], form.dtype.value, *form.bits))),
            (f"Two rows, weighed: {form.columns} columns of {form.channels} channels",),
            (above, below, table, *written),
            written,
            self.meaning(Row(form, (above, below), table, y, te.Expr(low)), scratch),
            self.template,
            self.values(form),
            stack_bytes=self.stack_bytes,
            needs=self.needs,
            scalars=(low,),
        )

    def meaning(self, row: Row, scratch: ir.Buffer | None) -> ir.Stmt:
        """Return what a call computes: in scratch the even bytes of a word precede the odd ones."""
        assert scratch is not None
        form, least = row.form, row.form.dtype.min
        if form.is_in_order:
            return _in_order(row, scratch)

        def down(word: te.Expr, odd: te.Expr, half: te.Expr) -> ir.Stmt:
            value = te.cast(DType.UINT16, row.down(word * 4 + half * 2 + odd, least))
            return store(scratch, (word * 4 + odd * 2 + half,), value)

        def along(column: te.Expr, word: te.Expr, odd: te.Expr, half: te.Expr) -> ir.Stmt:
            place, channel = word * 4 + odd * 2 + half, word * 4 + half * 2 + odd
            return row.along(column, channel, lambda at: wide(load(scratch, at + place)), least)

        def pixel(column: te.Expr) -> ir.Stmt:
            return _in_words(form.channels, lambda *place: along(column, *place))

        return seq(_in_words(form.elements, down), loop("column", 0, form.columns, pixel))


def _in_order(row: Row, scratch: ir.Buffer) -> ir.Stmt:
    """Return what a call computes whose scratch has the order of its bytes."""
    form, least = row.form, row.form.dtype.min

    def down(place: te.Expr) -> ir.Stmt:
        return store(scratch, (place,), te.cast(DType.UINT16, row.down(place, least)))

    def along(column: te.Expr, channel: te.Expr) -> ir.Stmt:
        return row.along(column, channel, lambda at: wide(load(scratch, at + channel)), least)

    return seq(
        loop("n", 0, form.elements, down),
        loop("column", 0, form.columns, lambda column: loop(
            "channel", 0, form.channels, lambda channel: along(column, channel)
        )),
    )  # fmt: skip


def _in_words(elements: int, body: Callable[[te.Expr, te.Expr, te.Expr], ir.Stmt]) -> ir.Stmt:
    """Emit `body` for each word, the parity of a byte in it, and the half that this lies in."""
    return loop("word", 0, elements // _WORD, lambda word: loop(
        "odd", 0, 2, lambda odd: loop("half", 0, 2, lambda half: body(word, odd, half))
    ))  # fmt: skip


def _tables(node: Node) -> tuple[ir.Buffer, ...]:
    """Return tables of rows, and one of columns: offsets of their pixels, and weights."""
    (*rows, low), (*columns, near) = (places_of(node, axis) for axis in (1, 2))
    of_rows, of_columns = (BILINEAR_BITS - bits for bits in Form.of(node).bits)
    pixel = node.output.shape[3]
    words = np.stack([*(n * pixel for n in columns), near >> of_columns], 1)
    named = zip(("above", "below", "row_weights"), (*rows, low >> of_rows), strict=True)
    of_row = (packing.constant(name, narrow(values)) for name, values in named)
    return *of_row, packing.constant("columns", words.astype(np.int32))
