"""Micro-kernels of depthwise convolutions: all channels of one or two neighbouring pixels."""

from __future__ import annotations

from microtir import te
from microtir.kernels.common.depthwise_taps import Taps
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe
from microtir.kernels.common.requantise import WORDS, Rescaling
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.kernels.common.weights import QUAD
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

WORD_ORDER = (0, 2, 1, 3)  # as SXTB16 splits them


@made_once
def depthwise(pixels: int, taps: Taps, rescaling: Rescaling) -> KernelDescription:
    """Compute all channels (4 or more) of `pixels` (1 or 2) neighbouring pixels.

    Returns:
        Parameters: the first tap of the first pixel, weights (words, taps, 4) int16 with the
        channels of a word in WORD_ORDER, constants (4 * words, 4) int32, outputs.  Weights and
        constants are those of `channel_quads`.
    """
    quads, channels = -(-taps.channels // QUAD), taps.channels
    x = ir.Buffer("x", (taps.reach(pixels),), DType.INT8)
    weights = ir.Buffer("weights", (quads, taps.count, QUAD), DType.INT16, alignment=4)
    constants = ir.Buffer("constants", (quads * QUAD, WORDS), DType.INT32)
    y = ir.Buffer("y", (pixels * channels,), DType.INT8)

    def output(quad: te.Expr, pixel: te.Expr, number: int) -> ir.Stmt:
        channel = te.minimum(quad * QUAD, channels - QUAD) + number
        place = WORD_ORDER.index(number)
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

        def tap(row: te.Expr, column: te.Expr) -> ir.Stmt:
            first = (pixel * taps.stride + column * taps.column_step) * channels
            value = load(x, row * taps.row_step + first + channel)
            weight = load(weights, quad, row * taps.columns + column, place)
            product = te.cast(DType.INT32, value) * te.cast(DType.INT32, weight)
            return store(total, (), load(total) + product)

        sums = loop(
            "row", 0, taps.rows,
            lambda row: loop("col", 0, taps.columns, lambda column: tap(row, column)),
        )  # fmt: skip
        result = rescaling.apply(load(total) * 2, constants, quad * QUAD + number)
        stored = store(y, (pixel * channels + channel,), result)
        return ir.Allocate(total, seq(store(total, (), 0), sums, stored))

    body = loop(
        "quad", 0, quads,
        lambda quad: loop(
            "pixel", 0, pixels,
            lambda p: seq(*(output(quad, p, number) for number in range(QUAD))),
        ),
    )  # fmt: skip
    step = f"{taps.row_step}_{taps.column_step}_{taps.stride}"
    return describe(
        f"depthwise{pixels}_{taps.rows}x{taps.columns}_{channels}_{step}_{rescaling.name}",
        (f"Depthwise convolution: {pixels} x {channels} outputs, {taps.rows}x{taps.columns} taps",),
        (x, weights, constants, y),
        (y,),
        body,
        "kernels/depthwise.j2",
        _values(pixels, taps, rescaling),
        stack_bytes=56,
    )  # fmt: skip


def _values(pixels: int, taps: Taps, rescaling: Rescaling) -> dict[str, object]:
    """Return what the template is given."""
    channels = taps.channels
    return {
        "rescaling": rescaling.values(),
        "channels": str(channels),
        "overlap": str(-channels % QUAD) if channels % QUAD else "",
        "weight_bytes": str(taps.count * QUAD * DType.INT16.bytes),
        "columns": _columns(pixels, taps),
        "results": [
            [{"sum": f"r{p * QUAD + c}", "offset": str(p * channels + c)} for p in range(pixels)]
            for c in range(QUAD)
        ],
    }


def _columns(pixels: int, taps: Taps) -> list[dict[str, object]]:
    """Return the input words in order, each with the pixels and taps that it takes part in."""
    sums = [dict(zip("abcd", (f"r{p * QUAD + c}" for c in range(QUAD)), strict=True))
            for p in range(pixels)]  # fmt: skip
    started: set[int] = set()
    found: list[dict[str, object]] = []
    for row in range(taps.rows):
        by_column: dict[int, list[tuple[int, int]]] = {}
        for pixel in range(pixels):
            for column in range(taps.columns):
                by_column.setdefault(taps.column(column, pixel), []).append((pixel, column))
        for place in sorted(by_column):
            uses = []
            for pixel, column in by_column[place]:
                tap = row * taps.columns + column
                uses.append({
                    "weights": str(tap * QUAD * DType.INT16.bytes),
                    "sums": sums[pixel],
                    "first": pixel not in started,
                })  # fmt: skip
                started.add(pixel)
            offset = row * taps.row_step + place * taps.channels
            found.append({"offset": str(offset), "uses": uses})
    return found
