"""Depthwise convolutions that read rows where they lie: in rings, and without filled borders.

The kernel is given each row of a window.  Columns outside the image are constants of the kernels
for the windows that reach there; a row outside of it is one of constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.depthwise import (
    IMMEDIATE,
    MOST_TAPS,
    PackedDepthwise,
    factors,
    packed_bytes,
    uses_of,
    values_of,
)
from microtir.kernels.arm_dsp.float_rescaling import FloatRescaling
from microtir.kernels.common import depthwise, micro_kernel, packing, refusals
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.requantise import WORDS, Rescaling
from microtir.kernels.common.statements import at, let, load, loop, seq, store, when
from microtir.kernels.common.weights import QUAD
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_ROWS = 16  # each is an argument
_FRAME = 40  # bytes of the stack before the parameters


@dataclass(frozen=True, slots=True)
class Taps:
    """The windows of `pixels` neighbouring outputs, whose columns are `channels` bytes apart.

    Places count the columns that the windows span, borders included; `left` and `right` of them
    lie outside the image.
    """

    pixels: int
    rows: int
    columns: int
    dilation: int  # places between neighbouring taps
    stride: int  # places between neighbouring windows
    channels: int
    left: int
    right: int

    @property
    def places(self) -> int:
        return (self.pixels - 1) * self.stride + (self.columns - 1) * self.dilation + 1

    @property
    def count(self) -> int:
        return self.rows * self.columns

    @property
    def inside(self) -> list[int]:
        """Return places of taps inside the image, in order."""
        return [place for place in self.uses() if self.is_inside(place)]

    @property
    def reach(self) -> int:
        """Return the bytes of a row from the first of these to behind the last one."""
        inside = self.inside
        return (inside[-1] - inside[0] + 1) * self.channels

    @property
    def clips(self) -> bool:
        """Return whether a place lies outside the image."""
        return self.left + self.right > 0

    def place(self, pixel: int, column: int) -> int:
        """Return that of a tap."""
        return pixel * self.stride + column * self.dilation

    def is_inside(self, place: int) -> bool:
        """Return whether a place lies inside the image."""
        return self.left <= place < self.places - self.right

    def uses(self) -> dict[int, list[tuple[int, int]]]:
        """Return for each place, in order, the (pixel, column) that multiply what is there."""
        users: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(self.pixels):
            for column in range(self.columns):
                users.setdefault(self.place(pixel, column), []).append((pixel, column))
        return dict(sorted(users.items()))

    @property
    def name(self) -> str:
        outside = f"_outside{self.left}_{self.right}" if self.clips else ""
        steps = f"{self.dilation}_{self.stride}"
        return f"{self.pixels}_{self.rows}x{self.columns}_{self.channels}_{steps}{outside}"


@dataclass(frozen=True, slots=True)
class _Call:
    """The same windows at columns first, first + step and so on, `count` times."""

    taps: Taps
    first: int
    step: int
    count: int


def _row_calls(geometry: Geometry) -> list[_Call]:
    """Return how an output row is computed.

    Two pixels at a time, and the last one of an odd width.
    """
    rows, columns = geometry.windows.rows, geometry.windows.columns
    row_calls: list[_Call] = []
    for first in range(0, geometry.output.width, 2):
        pixels = min(2, geometry.output.width - first)
        start = first * columns.stride - columns.before
        places = (pixels - 1) * columns.stride + (columns.taps - 1) * columns.dilation + 1
        left, right = max(-start, 0), max(start + places - columns.size, 0)
        taps = Taps(
            pixels, rows.taps, columns.taps, columns.dilation, columns.stride,
            geometry.image.channels, left, right,
        )  # fmt: skip
        if row_calls and row_calls[-1].taps == taps and not taps.clips:
            last = row_calls.pop()
            row_calls.append(_Call(taps, last.first, 2, last.count + 1))
        else:
            row_calls.append(_Call(taps, first, 2, 1))
    return row_calls


def _has_short_borders(geometry: Geometry) -> bool:
    """Return whether at most one row of a window, first or last, lies outside the image."""
    rows = geometry.windows.rows
    tops = (row * rows.stride - rows.before for row in range(geometry.output.height))
    taps = range(0, rows.taps * rows.dilation, rows.dilation)
    outside = ([n for n in taps if not 0 <= top + n < rows.size] for top in tops)
    return all(o in ([], [taps[0]], [taps[-1]]) for o in outside)


class DepthwiseRows(FloatRescaling, depthwise.DepthwiseKernel):
    """Four channels a word from rows where they lie, without scratch."""

    name = "dwconv_s8_1x4_dsp_rows"
    needs = Feature.DSP
    cycles = 141
    has_wide_weights = True

    def reject_sizes(self, _node: Node, geometry: Geometry) -> Refusal | None:
        """Return what speaks against it: too few channels, windows that are not short."""
        channels = geometry.image.channels
        if channels < QUAD:
            return Refusal.FEW_CHANNELS
        if not _has_short_borders(geometry):
            return Refusal.WINDOWS
        calls = _row_calls(geometry)
        if not all(c.taps.inside for c in calls):
            return Refusal.WINDOWS
        in_reach = (
            geometry.windows.rows.taps <= _ROWS
            and all(c.taps.count <= MOST_TAPS and c.taps.reach <= IMMEDIATE for c in calls)
            and 2 * channels <= IMMEDIATE
        )
        return None if in_reach else Refusal.SIZES

    def has_form(self, node: Node) -> bool:
        return factors(node) is not None

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions for any rows of a call, by counts on the Cortex-M4."""
        geometry, scaling = Geometry.of(node), refusals.asked(factors(node))
        quads = -(-geometry.image.channels // QUAD)
        return geometry.output.height * sum(
            c.count * (quads * _turn(c.taps, scaling.rescaling.instructions) + 35)
            for c in _row_calls(geometry)
        )

    def code_bytes(self, node: Node) -> int:
        geometry, scaling = Geometry.of(node), refusals.asked(factors(node))
        kernels = dict.fromkeys(c.taps for c in _row_calls(geometry))
        return sum(60 + 4 * _turn(taps, scaling.rescaling.instructions) for taps in kernels)

    def packed_bytes(self, node: Node) -> int:
        geometry = Geometry.of(node)
        clips = geometry.windows.rows.clips(geometry.output.height)
        outside = max(c.taps.reach for c in _row_calls(geometry)) if clips else 0
        return packed_bytes(node) + outside

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: row by row, two pixels at a time."""
        return _Emitter(layer).function(name)


def _turn(taps: Taps, requantising: int) -> int:
    """Return the instructions of a kernel for four channels."""
    used = taps.uses()
    inside = len(taps.inside)
    row = 2 + 3 * inside + (len(used) - inside) + 5 * sum(map(len, used.values()))
    return taps.rows * row + QUAD * taps.pixels * (requantising + 1) + 13


Rows = Sequence[Callable[[te.Expr], ir.BufferArgument]]
"""The rows of a window: each gives a pointer to a column."""


class _Emitter:
    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.geometry = geometry = Geometry.of(layer.node)
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        self.calls = _row_calls(geometry)
        self.packed = PackedDepthwise.of(layer)
        self.zero_point = layer.node.inputs[0].type.quant.zero_point
        longest = max(c.taps.reach for c in self.calls)
        self.outside = packing.constant("outside", np.full(longest, self.zero_point, np.int8))

    def function(self, name: str) -> ir.PrimFunc:
        rows = self.geometry.windows.rows
        body = loop(
            "row", self.layer.y0, self.layer.y1,
            lambda row: let("top", row * rows.stride - rows.before, lambda y: self.output(row, y)),
        )  # fmt: skip
        return self.layer.function(name, None, body)

    def output(self, row: te.Expr, top: te.Expr) -> ir.Stmt:
        """Emit an output row from the rows at `top`, the first or last of them perhaps outside."""
        window = self.geometry.windows.rows
        taps = [self.image_row(top + n * window.dilation) for n in range(window.taps)]
        inside = self.pixels(row, taps)
        if not window.clips(self.geometry.output.height):
            return inside
        outside = [lambda _column: at(self.outside, 0)]
        reach = (window.taps - 1) * window.dilation
        first, last = (
            self.pixels(row, [*outside, *taps[1:]]),
            self.pixels(row, [*taps[:-1], *outside]),
        )
        below = when(top + reach >= window.size, last, inside)
        return when(top < 0, first, below) if window.before else below

    def image_row(self, y: te.Expr) -> Callable[[te.Expr], ir.BufferArgument]:
        return lambda column: self.x.at(y, column, 0)

    def pixels(self, row: te.Expr, rows: Rows) -> ir.Stmt:
        columns = self.geometry.windows.columns

        def some(c: _Call, column: te.Expr) -> ir.Stmt:
            start = column * columns.stride + (c.taps.inside[0] - columns.before)
            zero_point = self.zero_point if c.taps.clips else 0
            return micro_kernel.call(
                depthwise_rows(c.taps, zero_point, self.packed.rescaling),
                *(place(start) for place in rows),
                at(self.packed.weights, 0, 0, 0),
                at(self.packed.constants, 0, 0),
                self.y.at(row, column, 0),
            )

        def all_of(c: _Call) -> ir.Stmt:
            if c.count == 1:
                return some(c, te.as_expr(c.first, DType.INT32))
            return loop("pair", 0, c.count, lambda n: some(c, n * c.step + c.first))

        return seq(*map(all_of, self.calls))


# --- the micro-kernel ---


@made_once
def depthwise_rows(taps: Taps, zero_point: int, rescaling: Rescaling) -> KernelDescription:
    """Compute all channels (4 or more) of one or two neighbouring pixels.

    Args:
        taps: of the windows, one or more of them inside the image.
        zero_point: what taps outside of it read; 0 where there are none.
        rescaling: of the sums.

    Returns:
        Parameters: for each row of the windows the first tap inside the image, weights and
        constants of `PackedDepthwise`, outputs.
    """
    quads, channels = -(-taps.channels // QUAD), taps.channels
    rows = tuple(ir.Buffer(f"x{n}", (taps.reach,), DType.INT8) for n in range(taps.rows))
    weights = ir.Buffer("weights", (quads, taps.count, QUAD), DType.INT16, alignment=4)
    constants = ir.Buffer("constants", (quads * QUAD, WORDS), DType.INT32)
    y = ir.Buffer("y", (taps.pixels * channels,), DType.INT8)
    product = _Product(taps, zero_point, rows, weights)

    def output(pixel: int, quad: te.Expr, number: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

        def of(channel: te.Expr) -> ir.Stmt:
            result = rescaling.apply(load(total) * 2, constants, quad * QUAD + number)
            stored = store(y, (pixel * channels + channel,), result)
            sums = product.sums(total, pixel, quad, number, channel)
            return ir.Allocate(total, seq(store(total, (), 0), *sums, stored))

        return let("channel", te.minimum(quad * QUAD, channels - QUAD) + number, of)

    def turn(quad: te.Expr) -> ir.Stmt:
        return loop("number", 0, QUAD, lambda number: seq(
            *(output(pixel, quad, number) for pixel in range(taps.pixels))
        ))  # fmt: skip

    zero = f"_zero{zero_point}".replace("-", "m") if taps.clips else ""
    about = f"{taps.pixels} x {channels} outputs, {taps.rows}x{taps.columns} taps"
    return micro_kernel.describe(
        f"depthwise_rows{taps.name}{zero}_{rescaling.name}",
        (f"Depthwise convolution by rows: {about}",),
        (*rows, weights, constants, y),
        (y,),
        loop("quad", 0, quads, turn),
        "kernels/depthwise_rows.j2",
        _values(taps, zero_point, rescaling),
        stack_bytes=56,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Product:
    """The sums of a kernel."""

    taps: Taps
    zero_point: int
    rows: tuple[ir.Buffer, ...]
    weights: ir.Buffer

    def sums(
        self, total: ir.Buffer, pixel: int, quad: te.Expr, number: te.Expr, channel: te.Expr
    ) -> Iterator[ir.Stmt]:
        """Add all taps of a pixel: what lies outside the image is the zero point."""
        taps, lane = self.taps, number % 2 * 2 + number // 2  # as SXTB16 splits them
        inside = [c for c in range(taps.columns) if taps.is_inside(taps.place(pixel, c))]
        outside = te.as_expr(self.zero_point, DType.INT32)
        first, stop = (inside[0], inside[-1] + 1) if inside else (0, 0)

        def tap(row: int, column: te.Expr, *, value: te.Expr) -> ir.Stmt:
            weight = load(self.weights, quad, row * taps.columns + column, lane)
            return store(total, (), load(total) + value * te.cast(DType.INT32, weight))

        def read(row: int, column: te.Expr) -> ir.Stmt:
            place = pixel * taps.stride + column * taps.dilation - taps.inside[0]
            value = load(self.rows[row], place * taps.channels + channel)
            return tap(row, column, value=te.cast(DType.INT32, value))

        for row in range(taps.rows):
            border = partial(tap, row, value=outside)
            for begin, end in ((0, first), (stop, taps.columns)):
                if begin < end:
                    yield loop("col", begin, end, border)
            if first < stop:
                yield loop("col", first, stop, partial(read, row))


def _values(taps: Taps, zero_point: int, rescaling: Rescaling) -> dict[str, object]:
    after, started = _FRAME + 4 * taps.rows, set[int]()
    return {
        **values_of(taps.pixels, taps.channels, taps.count, rescaling),
        "rows": [
            {"place": str(_FRAME + 4 * row), "columns": _columns(taps, row, zero_point, started)}
            for row in range(taps.rows)
        ],
        "weights": str(after),
        "constants": str(after + 4),
        "output": str(after + 8),
    }


def _columns(taps: Taps, row: int, zero_point: int, started: set[int]) -> list[dict[str, object]]:
    """Return what a row is multiplied by, place by place.

    The first load of it moves on to the next.
    """
    column_texts: list[dict[str, object]] = []
    begun = False
    for place, used in taps.uses().items():
        uses = uses_of(((pixel, row * taps.columns + column) for pixel, column in used), started)
        if taps.is_inside(place):
            # Behind the load that moves on, by the four bytes that it moved.
            offset = (place - taps.inside[0]) * taps.channels - QUAD * begun
            column_texts.append(
                {"zero": "", "advances": not begun, "offset": str(offset), "uses": uses}
            )
            begun = True
        else:
            column_texts.append({"zero": _zeros(zero_point), "uses": uses})
    return column_texts


def _zeros(zero_point: int) -> str:
    """Return the instruction that sets both halves of r9."""
    if zero_point < 0:
        return f"mvn r9, #{~zero_point * 0x10001}"
    return f"mov r9, #{zero_point * 0x10001}"
