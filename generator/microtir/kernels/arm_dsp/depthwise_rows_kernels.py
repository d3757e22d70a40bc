"""Micro-kernels of depthwise convolutions that are given each row of a window where it lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from microtir import te
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe
from microtir.kernels.common.requantise import WORDS, Rescaling
from microtir.kernels.common.statements import let, load, loop, seq, store
from microtir.kernels.common.weights import QUAD
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

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
        found: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(self.pixels):
            for column in range(self.columns):
                found.setdefault(self.place(pixel, column), []).append((pixel, column))
        return dict(sorted(found.items()))

    @property
    def name(self) -> str:
        """Distinguish kernels."""
        outside = f"_outside{self.left}_{self.right}" if self.clips else ""
        steps = f"{self.dilation}_{self.stride}"
        return f"{self.pixels}_{self.rows}x{self.columns}_{self.channels}_{steps}{outside}"


@made_once
def depthwise_rows(taps: Taps, zero_point: int, rescaling: Rescaling) -> KernelDescription:
    """Compute all channels (4 or more) of one or two neighbouring pixels.

    Args:
        taps: of the windows, one or more of them inside the image.
        zero_point: what taps outside of it read; 0 where there are none.
        rescaling: of the sums.

    Returns:
        Parameters: for each row of the windows the first tap inside the image, weights (words,
        taps, 4) int16 with the channels of a word as SXTB16 splits them, constants (4 * words, 4)
        int32, outputs.  Weights and constants are those of `channel_quads`.
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
    return describe(
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
    """Return what the template is given."""
    channels, after = taps.channels, _FRAME + 4 * taps.rows
    return {
        "rescaling": rescaling.values(),
        "channels": str(channels),
        "overlap": str(-channels % QUAD) if channels % QUAD else "",
        "weight_bytes": str(taps.count * QUAD * DType.INT16.bytes),
        "rows": [
            {"place": str(_FRAME + 4 * row), "columns": _columns(taps, row, zero_point)}
            for row in range(taps.rows)
        ],
        "weights": str(after),
        "constants": str(after + 4),
        "output": str(after + 8),
        "results": [
            [
                {"sum": f"r{p * QUAD + c}", "offset": str(p * channels + c)}
                for p in range(taps.pixels)
            ]
            for c in range(QUAD)
        ],
    }


def _columns(taps: Taps, row: int, zero_point: int) -> list[dict[str, object]]:
    """Return what a row is multiplied by, place by place.

    The first load of it moves on to the next.
    """
    found: list[dict[str, object]] = []
    begun = False
    started: set[int] = set()
    for place, used in taps.uses().items():
        uses = []
        for pixel, column in used:
            registers = (f"r{pixel * QUAD + c}" for c in range(QUAD))
            tap = row * taps.columns + column
            uses.append({
                "weights": str(tap * QUAD * DType.INT16.bytes),
                "sums": dict(zip("abcd", registers, strict=True)),
                "first": row == 0 and pixel not in started,
            })  # fmt: skip
            started.add(pixel)
        if taps.is_inside(place):
            # Behind the load that moves on, by the four bytes that it moved.
            offset = (place - taps.inside[0]) * taps.channels - QUAD * begun
            found.append({"zero": "", "advances": not begun, "offset": str(offset), "uses": uses})
            begun = True
        else:
            found.append({"zero": _zeros(zero_point), "uses": uses})
    return found


def _zeros(zero_point: int) -> str:
    """Return the instruction that sets both halves of r9."""
    if zero_point < 0:
        return f"mvn r9, #{~zero_point * 0x10001}"
    return f"mov r9, #{zero_point * 0x10001}"
