"""Micro-kernels of depthwise 3x3 over planes: a row of one channel after another.

Rule: rows are split into planes, one for each channel, borders included.  Two columns are a word,
of which SMLAD multiplies both: 8 instructions for the 12 products of a kernel row with four
outputs.  The third weight of a row meets a single half.  Planes of 16 bits hold neighbouring
columns in a word; those of 8 bits are widened as they are read, every other column in a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from microtir import te
from microtir.kernels.arm_dsp.planes_words import ADJACENT, NEIGHBOURS, SPREAD, Words
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe, repeated
from microtir.kernels.common.requantise import Rescaling
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

TAPS = 3
OUTPUTS = 4  # of a turn
_CHANNELS = 4  # of a word
_PAIRS_PER_TURN = 4
_IMMEDIATE = 255  # largest step of a load or store
_ADDED = 4095  # largest number that ADD takes


@dataclass(frozen=True, slots=True)
class Plane:
    """A row of one channel: `before` columns of border, `copied` of the image, and border again.

    `columns` is even, so that planes of int16 begin at words, and that reading four columns of int8
    from any even one that an output needs stays inside.
    """

    channels: int
    outputs: int
    stride: int
    before: int
    copied: int
    dtype: DType = DType.INT16

    @property
    def columns(self) -> int:
        reached = (self.outputs - 1) * self.stride + TAPS
        return reached + reached % 2

    @property
    def bytes(self) -> int:
        return self.columns * self.dtype.bytes

    @property
    def elements(self) -> int:
        """Return the elements of the planes of a row."""
        return self.channels * self.columns

    @property
    def alignment(self) -> int:
        """Return the alignment of a row: words that are widened may lie anywhere."""
        return 1 if self.dtype is DType.INT8 else 4

    @property
    def name(self) -> str:
        return f"{self.channels}x{self.copied}in{self.columns}at{self.before}"


@made_once
def split(plane: Plane, zero_point: int) -> KernelDescription:
    """Split a row of the image into planes of int16.

    Returns:
        Parameters: the row (W, C), planes (C, columns).
    """
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
    """Return which of the columns of a word are of the image."""
    return {"left": left, "right": right}


@made_once
def depthwise(plane: Plane, rescaling: Rescaling) -> KernelDescription:
    """Compute an output row from the planes of three rows.

    Returns:
        Parameters: the planes of each row, the words of the channels as `words_of(plane)` packs
        them, the output row (W, C).
    """
    shape = (plane.elements,)
    rows = [
        ir.Buffer(f"row{n}", shape, plane.dtype, alignment=plane.alignment) for n in range(TAPS)
    ]
    layout = words_of(plane)
    words = ir.Buffer("words", (plane.channels, layout.count), DType.INT32)
    y = ir.Buffer("y", (plane.outputs * plane.channels,), DType.INT8)

    def output(channel: te.Expr, column: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

        def tap(row: int, kx: int) -> ir.Stmt:
            value = load(rows[row], channel * plane.columns + column * plane.stride + kx)
            product = te.cast(DType.INT32, value) * layout.weight(words, channel, row, kx)
            return store(total, (), load(total) + product)

        sums = (tap(row, kx) for row in range(TAPS) for kx in range(TAPS))
        result = layout.rescale(rescaling, load(total), words, channel)
        stored = store(y, (column * plane.channels + channel,), result)
        return ir.Allocate(total, seq(store(total, (), load(words, channel, 0)), *sums, stored))

    return describe(
        f"planes{plane.dtype.bits}_{plane.name}_{plane.outputs}_{plane.stride}_{rescaling.name}",
        (f"Depthwise convolution 3x3: {plane.outputs} x {plane.channels} outputs",),
        (*rows, words, y),
        (y,),
        loop(
            "channel", 0, plane.channels,
            lambda c: loop("col", 0, plane.outputs, lambda column: output(c, column)),
        ),
        "kernels/planes.j2",
        _depthwise_values(plane, rescaling),
        stack_bytes=48,
    )  # fmt: skip


def instructions(plane: Plane) -> int:
    """Return the instructions of an output row, from counts of the emulated Cortex-M4."""
    turns, rest = divmod(plane.outputs, OUTPUTS)
    widened = plane.dtype is DType.INT8
    turn = 57 + 12 * plane.stride if widened else 58 + 4 * plane.stride
    left = 17 + (14 if widened else 11) * rest if rest else 0
    return plane.channels * (turns * turn + left + 11) + 60


def words_of(plane: Plane) -> Words:
    """Return how the constants of the channels are packed for planes."""
    if plane.dtype is DType.INT8:
        return SPREAD
    return NEIGHBOURS if plane.stride == 1 else ADJACENT


def _depthwise_values(plane: Plane, rescaling: Rescaling) -> dict[str, object]:
    turns, rest = divmod(plane.outputs, OUTPUTS)
    words, walked = words_of(plane), turns * OUTPUTS * plane.stride * plane.dtype.bytes
    constants = {"r9": words.multiplier, "r10": words.multiplier + 1}
    if rescaling.shift is None and not words.last_has_shift:
        constants["r11"] = words.shift
    return {
        "rescaling": rescaling.values(),
        "loops": turns > 1,
        "turns": turns > 0,
        "walked": str(walked),
        "walks_far": walked > _ADDED,
        "whole": _turn(plane, OUTPUTS, step=True),
        "rest": _turn(plane, rest, step=False) if rest else "",
        "bytes": plane.dtype is DType.INT8,
        "two_apart": plane.stride == 2,
        "constants": _loads(constants),
        "steps_by_store": plane.channels <= _IMMEDIATE,
        "turn_bytes": str(OUTPUTS * plane.channels),
        "adds_turn": OUTPUTS * plane.channels <= _ADDED,
        "advance": str(plane.bytes - walked),
        "word_bytes": str(words.bytes),
        "channels": str(plane.channels),
    }


def _turn(plane: Plane, outputs: int, *, step: bool) -> dict[str, object]:
    """Return neighbouring outputs, and whether the pointers go on to the next ones."""
    sums = ("r4", "r5", "r6", "r7")[:outputs]
    # Until it is begun, the last sum is twice the bias, which the others begin with.
    bias = sums[-1]
    rows = []
    for number, row in enumerate(words_of(plane).rows):
        loads = {} if number else {bias: 0}
        loads["r12"] = row.pair
        if row.loads_other:
            loads["r11"] = row.other
        rows.append({
            "x": f"r{number}",
            "loads": _loads(loads),
            "begin": "" if number else bias,
            "bottom": "bt" if row.half else "bb",
            "top": "tt" if row.half else "tb",
        })  # fmt: skip
    return {
        **{name: n < outputs for n, name in enumerate(("second", "third", "fourth"), 1)},
        "step": step,
        "rows": rows,
        "results": [{"sum": r, "offset": str(n * plane.channels)} for n, r in enumerate(sums)],
    }


def _loads(words: Mapping[str, int]) -> list[dict[str, str]]:
    """Register, and where in a channel the words are that they get."""
    return [
        {"register": register, "offset": str(number * DType.INT32.bytes)}
        for register, number in words.items()
    ]
