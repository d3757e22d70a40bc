"""Micro-kernels of depthwise 3x3 over planes: a row of one channel after another.

Rule: rows are widened to 16 bits and split into planes, one for each channel, borders included.
Two neighbouring columns are then one word, of which SMLAD multiplies both: 8 instructions for the
12 products of a kernel row with four outputs.  The third weight of a row meets a single half.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.lowering.dsp.code import load, loop, seq, store
from microtir.lowering.dsp.micro_kernel import describe, repeated
from microtir.lowering.dsp.requantise import WORDS, Rescaling
from microtir.lowering.made_once import made_once
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

TAPS = 3
ROW_WEIGHTS = (0, 1, 1, 2)  # the weights of a kernel row, as the words of the kernel have them
OUTPUTS = 4  # of a turn
_CHANNELS = 4  # of a word
_PAIRS_PER_TURN = 4
_IMMEDIATE = 255  # largest step of a load


@dataclass(frozen=True, slots=True)
class Plane:
    """A row of one channel: `before` columns of border, `copied` of the image, and border again.

    `columns` is even, so that planes begin at words.
    """

    channels: int
    outputs: int
    stride: int
    before: int
    copied: int

    @property
    def columns(self) -> int:
        reached = (self.outputs - 1) * self.stride + TAPS
        return reached + reached % 2

    @property
    def bytes(self) -> int:
        return self.columns * DType.INT16.bytes

    @property
    def elements(self) -> int:
        """Of the planes of a row."""
        return self.channels * self.columns

    @property
    def name(self) -> str:
        return f"{self.channels}x{self.copied}in{self.columns}at{self.before}"


@made_once
def split(plane: Plane, zero_point: int) -> KernelDescription:
    """Splits a row of the image into planes; parameters: the row (W, C), planes (C, columns)."""
    x = ir.Buffer("x", (plane.copied * plane.channels,), DType.INT8)
    planes = ir.Buffer("planes", (plane.elements,), DType.INT16, alignment=4)
    border = te.as_expr(zero_point, DType.INT16)
    first, stop = plane.before, plane.before + plane.copied

    def put(channel: te.Expr, column: te.Expr, value: te.Expr) -> ir.Stmt:
        return store(planes, (channel * plane.columns + column,), value)

    def pixel(channel: te.Expr, column: te.Expr) -> ir.Stmt:
        value = load(x, (column - first) * plane.channels + channel)
        return put(channel, column, te.cast(DType.INT16, value))

    def channel(c: te.Expr) -> ir.Stmt:
        return seq(
            loop("col", 0, first, lambda column: put(c, column, border)),
            loop("col", first, stop, lambda column: pixel(c, column)),
            loop("col", stop, plane.columns, lambda column: put(c, column, border)),
        )

    return describe(
        f"split_{plane.name}_{zero_point}".replace("-", "m"),
        (f"Splits {plane.copied} pixels into {plane.channels} planes, borders included",),
        (x, planes),
        (planes,),
        loop("channel", 0, plane.channels, channel),
        "kernels/split.j2",
        _split_values(plane, zero_point),
        stack_bytes=36,
    )


def _split_values(plane: Plane, zero_point: int) -> dict[str, object]:
    stop = plane.before + plane.copied
    inside = [plane.before <= column < stop for column in range(plane.columns)]
    words = list(zip(inside[::2], inside[1::2], strict=True))
    whole = [number for number, word in enumerate(words) if all(word)]
    first, last = (whole[0], whole[-1] + 1) if whole else (len(words), len(words))
    overlap = -plane.channels % _CHANNELS
    turns = repeated(last - first, _PAIRS_PER_TURN)
    return {
        **turns,
        "turns": str((last - first) // int(turns["repeats"])) if turns["loops"] else "",
        "head": [_has(*word) for word in words[:first]],
        "whole": _has(True, True),
        "tail": [_has(*word) for word in words[last:]],
        "zero_point": str(zero_point & 0xFFFF),
        "channels": str(plane.channels),
        "steps_far": plane.channels > _IMMEDIATE,
        **{f"plane{n}": str(n * plane.bytes) for n in range(1, _CHANNELS)},
        "plane_bytes": str(_CHANNELS * plane.bytes),
        "overlap": str(overlap) if overlap else "",
        "overlap_bytes": str(overlap * plane.bytes),
    }


def _has(left: bool, right: bool) -> dict[str, bool]:
    """Which of the columns of a word are of the image."""
    return {"left": left, "right": right}


@made_once
def depthwise(plane: Plane, rescaling: Rescaling) -> KernelDescription:
    """An output row from the planes of three rows.

    Returns:
        Parameters: the planes of each row, weights (C, 3, 4) int16 in the order of `ROW_WEIGHTS`,
        constants (C, 4) int32, the output row (W, C).
    """
    rows = [ir.Buffer(f"row{n}", (plane.elements,), DType.INT16, alignment=4) for n in range(TAPS)]
    shape = (plane.channels, TAPS, len(ROW_WEIGHTS))
    weights = ir.Buffer("weights", shape, DType.INT16, alignment=4)
    constants = ir.Buffer("constants", (plane.channels, WORDS), DType.INT32)
    y = ir.Buffer("y", (plane.outputs * plane.channels,), DType.INT8)

    def output(channel: te.Expr, column: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

        def tap(number: int, kx: te.Expr) -> ir.Stmt:
            value = load(rows[number], channel * plane.columns + column * plane.stride + kx)
            weight = load(weights, channel, number, kx + kx // 2)
            product = te.cast(DType.INT32, value) * te.cast(DType.INT32, weight)
            return store(total, (), load(total) + product)

        sums = (loop("kx", 0, TAPS, lambda kx, n=n: tap(n, kx)) for n in range(TAPS))  # type: ignore[misc]
        result = rescaling.apply(load(total) * 2, constants, channel)
        place = column * plane.channels + channel
        return ir.Allocate(total, seq(store(total, (), 0), *sums, store(y, (place,), result)))

    return describe(
        f"planes_{plane.name}_{plane.outputs}_{plane.stride}_{rescaling.name}",
        (f"Depthwise convolution 3x3: {plane.outputs} x {plane.channels} outputs",),
        (*rows, weights, constants, y),
        (y,),
        loop(
            "channel", 0, plane.channels,
            lambda c: loop("col", 0, plane.outputs, lambda column: output(c, column)),
        ),
        "kernels/planes.j2",
        _depthwise_values(plane, rescaling),
        stack_bytes=56,
    )  # fmt: skip


def _depthwise_values(plane: Plane, rescaling: Rescaling) -> dict[str, object]:
    turns, rest = divmod(plane.outputs, OUTPUTS)
    walked = turns * OUTPUTS * plane.stride * DType.INT16.bytes
    return {
        "rescaling": rescaling.values(),
        "loops": turns > 1,
        "turns": str(turns) if turns else "",
        "walked": str(walked),
        "whole": _turn(plane, OUTPUTS, step=True),
        "rest": _turn(plane, rest, step=False) if rest else "",
        "two_apart": plane.stride == 2,
        "turn_bytes": str(OUTPUTS * plane.channels),
        "advance": str(plane.bytes - walked),
        "channels": str(plane.channels),
    }


def _turn(plane: Plane, outputs: int, *, step: bool) -> dict[str, object]:
    """Neighbouring outputs, and whether the pointers go on to the next ones."""
    sums = ("r4", "r5", "r6", "r7")[:outputs]
    return {
        **{name: n < outputs for n, name in enumerate(("second", "third", "fourth"), 1)},
        "step": step,
        "results": [{"sum": r, "offset": str(n * plane.channels)} for n, r in enumerate(sums)],
    }
