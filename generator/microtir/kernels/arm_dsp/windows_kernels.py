"""Micro-kernels of convolutions that read windows where they lie: four pixels by two channels.

Rule: rows of the image are widened to 16 bits once, and a word of a window is two neighbouring
values.  Windows of neighbouring pixels overlap: a word that is the next tap of one pixel is the
first of another, and stays in its register.  The weights of two channels are copied to the stack,
so that one register less is a pointer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.kernels.arm_dsp.lane_sums import cleared, local_sums, split_lane
from microtir.kernels.arm_dsp.outputs import COLUMNS, PlaneRow
from microtir.kernels.arm_dsp.windows_rows import PAIR, PIXELS, WORD, WidenedRows
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import Sizes, describe, repeated
from microtir.kernels.common.requantise import BIAS, MULTIPLIER, ROUNDING, SHIFT, WORDS, Rescaling
from microtir.kernels.common.statements import each, let, load, loop, seq, store
from microtir.schedule import KernelDescription
from microtir.tir import ir

_BESIDE = PAIR * WORDS + 1  # words of a pair beside its weights: constants, and its place
_SAVED = 36  # bytes of registers on the stack
_SLOTS = 24  # bytes of pointers on the stack
_CHUNK = 4  # words of a single pixel that are loaded together
_COPIED = 8  # words that are copied to the stack together


@dataclass(frozen=True, slots=True)
class Outputs:
    """An output row: pixels of `channels`, or `planes`."""

    channels: int
    planes: PlaneRow | None

    @property
    def pairs(self) -> int:
        """Return the pairs of channels; the last one overlaps if their number is odd."""
        return -(-self.channels // PAIR)

    @property
    def channel_bytes(self) -> int:
        """Return the bytes from a channel to the next."""
        return self.planes.bytes if self.planes else 1

    @property
    def pixel_bytes(self) -> int:
        """Return the bytes from a pixel to the next."""
        return self.planes.dtype.bytes if self.planes else self.channels

    @property
    def span(self) -> int:
        """Return the elements from the first output of a tile to the last."""
        return (PIXELS - 1) * self.pixel_bytes + (PAIR - 1) * self.channel_bytes

    @property
    def name(self) -> str:
        return f"{self.channels}{self.planes.name if self.planes else ''}"


@made_once
def windows(
    rows: WidenedRows, pixels: int, outputs: Outputs, rescaling: Rescaling
) -> KernelDescription:
    """Compute all channels of some neighbouring pixels.

    Args:
        rows: behind the output row.
        pixels: whole tiles, or a single one.
        outputs: of the row.
        rescaling: of the sums.

    Returns:
        Parameters: widened rows from the first window on, an even one; what `pack` gives; outputs
        (pixels, channels).  For planes, outputs are a row (channels, columns) and the column of
        the first pixel.
    """
    x = ir.Buffer("rows", (rows.reach(pixels),), DType.INT16, alignment=4)
    packed = ir.Buffer("packed", (outputs.pairs, rows.steps + _BESIDE), DType.INT32)
    planes, sizes, column = outputs.planes, Sizes(), None
    y = ir.Buffer("y", (pixels, outputs.channels), DType.INT8)
    if planes is not None:
        column = ir.Var("column", low=0, high=COLUMNS)
        sizes.hold(te.as_expr(column, DType.INT32) + pixels <= planes.columns)
        y = ir.Buffer("y", (outputs.channels, planes.columns), planes.dtype)
    tile = _Tile(rows, x, packed, y, rescaling, column)
    together = "1 pixel" if pixels == 1 else f"{pixels} pixels, four"
    return describe(
        f"windows{pixels}_{rows.name}_{outputs.name}_{rescaling.name}",
        (f"Convolution: {together} by two channels a turn, of {rows.steps} words each",),
        (x, packed, y),
        (y,),
        loop("pair", 0, outputs.pairs,
             lambda pair: each("pixel", pixels, partial(tile.pixel, pair))),
        f"kernels/windows{min(pixels, PIXELS)}.j2",
        _values(rows, pixels, outputs, rescaling),
        stack_bytes=_SAVED + (stack_bytes(rows) if pixels > 1 else 0),
        sizes=sizes,
        scalars=() if column is None else (column,),
    )  # fmt: skip


def stack_bytes(rows: WidenedRows) -> int:
    """Return the bytes of two channels' weights and constants, of pointers and the loop."""
    return _frame(rows) + rows.turns * WORD


def _frame(rows: WidenedRows) -> int:
    """Return the bytes on the stack beside the registers; the loop goes below."""
    words = rows.steps + PAIR * WORDS + rows.turns
    return -(-(words * WORD + _SLOTS) // 8) * 8


class _Tile:
    """The meaning: two channels of a pixel."""

    def __init__(
        self,
        rows: WidenedRows,
        x: ir.Buffer,
        packed: ir.Buffer,
        y: ir.Buffer,
        rescaling: Rescaling,
        column: ir.Var | None,
    ) -> None:
        self.rows, self.x, self.packed, self.y = rows, x, packed, y
        self.rescaling = rescaling
        self.column = column  # of the first pixel, where outputs are planes
        self.sums = local_sums(1)

    def pixel(self, pair: te.Expr, pixel: te.Expr) -> ir.Stmt:
        low, high = self.sums

        def word(ky: te.Expr, number: te.Expr) -> ir.Stmt:
            return seq(*(self.multiply(pair, pixel, ky, number, n) for n in range(PAIR)))

        whole = seq(
            cleared(1, low, high),
            loop("ky", 0, self.rows.taps,
                 lambda ky: loop("word", 0, self.rows.words, partial(word, ky))),
            *(self.output(pair, pixel, n) for n in range(PAIR)),
        )  # fmt: skip
        return ir.Allocate(low, ir.Allocate(high, whole))

    def multiply(
        self, pair: te.Expr, pixel: te.Expr, ky: te.Expr, word: te.Expr, number: int
    ) -> ir.Stmt:
        """Add a value times the weights of both channels."""
        low, high = self.sums
        lanes = load(self.packed, pair, self.rows.weights(ky, word))
        lane = lanes >> 16 if number else (lanes & 0xFFFF ^ 0x8000) - 0x8000
        place = ky * self.rows.distance + self.rows.place(pixel) + word * PAIR + number
        value = te.cast(DType.INT32, load(self.x, place))

        def products(a: te.Expr, b: te.Expr) -> ir.Stmt:
            return let("value", value, lambda v: seq(
                store(low, (0,), load(low, 0) + v * a), store(high, (0,), load(high, 0) + v * b)
            ))  # fmt: skip

        return split_lane(lane, products)

    def output(self, pair: te.Expr, pixel: te.Expr, number: int) -> ir.Stmt:
        """Store a channel of the pair."""
        first = self.rows.steps + number * WORDS
        constants = (load(self.packed, pair, first + n) for n in (MULTIPLIER, ROUNDING, SHIFT))
        total = load(self.sums[number], 0) * 2 + load(self.packed, pair, first + BIAS)
        stored = te.cast(self.y.dtype, self.rescaling.rescale(total, *constants))
        channels = self.y.shape[1 if self.column is None else 0]
        assert isinstance(channels, int)
        channel = te.minimum(pair * PAIR, channels - PAIR) + number
        if self.column is None:
            return store(self.y, (pixel, channel), stored)
        return store(self.y, (channel, te.as_expr(self.column, DType.INT32) + pixel), stored)


def pack(
    lanes: npt.NDArray[np.int16],
    constants: npt.NDArray[np.int32],
    pairs: list[tuple[int, int]],
    channel_bytes: int,
) -> npt.NDArray[np.int32]:
    """Return weights and constants in the order in which the kernels read them.

    Args:
        lanes: dual-packed weights, (pairs, steps, 2), in the `order` of the rows.
        constants: words of each channel, (channels, 4).
        pairs: the channels of each.
        channel_bytes: from a channel of an output to the next.

    Returns:
        (pairs, steps + 9): lanes, constants of both channels, bytes to the first one's output.
    """
    wide = lanes.astype(np.int64)
    words = wide[..., 1] * (1 << 16) + (wide[..., 0] & 0xFFFF)
    both = constants.astype(np.int64)[np.array(pairs)].reshape(len(pairs), -1)
    places = np.array([[first * channel_bytes] for first, _ in pairs])
    return np.concatenate([words, both, places], axis=1).astype(np.int32)


# --- what the templates are given -----------------------------------------------------------------


def tile_loads(rows: WidenedRows) -> int:
    """Return words of windows that a tile loads; the others are in registers already."""
    return rows.taps * sum(
        PIXELS + (len(chain) - 1) * rows.copies for chain in _chains(rows)
    )  # fmt: skip


def _chains(rows: WidenedRows) -> list[range]:
    """Return words of a row, in runs of which each finds most of its values in registers."""
    return [range(first, rows.words, rows.apart) for first in range(min(rows.apart, rows.words))]


def _values(
    rows: WidenedRows, pixels: int, outputs: Outputs, rescaling: Rescaling
) -> dict[str, object]:
    planes = outputs.planes
    shared = {
        "rescaling": rescaling.values(),
        "planes": planes.values() if planes else "",
        "store": planes.values()["store"] if planes else "strb",
        "channel_bytes": str(outputs.channel_bytes),
        "packed_bytes": str(outputs.pairs * (rows.steps + _BESIDE) * WORD),
    }
    if pixels == 1:
        return shared | _single_values(rows)
    copied = rows.steps + PAIR * WORDS
    copies = repeated(copied // _COPIED, 2)
    return shared | _body(rows) | {
        **copies,
        "copies": str(copied // _COPIED // int(copies["repeats"])) if copies["loops"] else "",
        "rest": ", ".join(f"r{4 + n}" for n in range(copied % _COPIED)),
        "rest_is_one": copied % _COPIED == 1,
        "frame": str(_frame(rows)),
        "weights": str(_SLOTS),
        "constants": str(_SLOTS + rows.steps * WORD),
        **{f"slot{n}": str(n * WORD) for n in range(_SLOTS // WORD)},
        "row_bytes": str(pixels * rows.step * DType.INT16.bytes),
        "tile_outputs": str(PIXELS * outputs.pixel_bytes),
        "stores": [
            {"sum": f"r{p * PAIR + c}",
             "offset": str(p * outputs.pixel_bytes + c * outputs.channel_bytes)}
            for p in range(PIXELS) for c in range(PAIR)
        ],
    }  # fmt: skip


def _body(rows: WidenedRows) -> dict[str, object]:
    """Return the sums of a tile: straight, or with a loop."""
    tile = PIXELS * rows.step * DType.INT16.bytes
    if not rows.turns:
        return {
            "turns": "",
            "tile_bytes": str(tile),
            "first": _chain(rows, 0, "", ""),
            "others_of_first": _groups(rows, first=1, row="0"),
            "others": _groups(rows, first=0, row=r"\\row"),
            "rows": ", ".join(map(str, range(1, rows.taps))),
        }
    words = rows.turns * WORD
    flags = _SLOTS + (rows.steps + PAIR * WORDS) * WORD
    return {
        "turns": str(rows.turns),
        "tile_bytes": str(tile - words),
        "loop_bytes": str(words),
        "last_flag": str(flags),
        "first_flag": str(flags + words - WORD),
        "steps": _chain(rows, 0, r"\\row*", ""),
        "rows": ", ".join(map(str, range(rows.taps))),
    }


def _groups(rows: WidenedRows, first: int, row: str) -> list[dict[str, object]]:
    """Return chains of equal length that follow each other, from chain `first` on.

    One text for all.
    """
    chains = _chains(rows)[first:]
    lengths = dict.fromkeys(map(len, chains))
    return [
        {
            "words": ", ".join(str(c.start * WORD) for c in chains if len(c) == length),
            "steps": _chain(rows, length, f"{row}*", r"+\\word"),
        }
        for length in lengths
    ]


def _chain(rows: WidenedRows, length: int, row: str, word: str) -> list[dict[str, object]]:
    """Return the steps of a chain.

    Args:
        rows: of the windows.
        length: of the chain; 0: that of the first one.
        row: text in front of a number that it multiplies; empty: 0.
        word: text behind a sum that it adds to.
    """
    length = length or len(_chains(rows)[0])
    in_row = f"{row}{rows.distance * DType.INT16.bytes}{word}+" if row else ""
    of_row = f"{row}{rows.words * WORD}{word}+" if row else ""
    first, copies = _SLOTS, rows.copies
    if rows.turns:  # the last words of each tap come first
        first += (rows.apart - 1) * WORD
    steps: list[dict[str, object]] = []
    for number in range(length):
        # Pixel p finds in step n what pixel p + copies has found in the step before.
        held = [(p % copies, p // copies + number) for p in range(PIXELS)]
        registers = [f"r{8 + odd + turn % (PIXELS // copies) * copies}" for odd, turn in held]
        new = held if number == 0 else held[-copies:]
        steps.append({
            "weight": f"{of_row}{first + number * rows.apart * WORD}",
            "loads": [
                {
                    "register": registers[p],
                    "offset": in_row + str(
                        (odd * rows.odd + turn * copies * rows.step) * DType.INT16.bytes
                    ),
                }
                for p, (odd, turn) in enumerate(held) if (odd, turn) in new
            ],
            "values": registers,
        })  # fmt: skip
    return steps


def _single_values(rows: WidenedRows) -> dict[str, object]:
    """Return one pixel: chunks of a row's words."""
    chunks = [range(n, min(n + _CHUNK, rows.words)) for n in range(0, rows.words, _CHUNK)]
    weights = ("r10", "r11", "r12", "lr")
    return {
        "rows": ", ".join(map(str, range(rows.taps))),
        "row_bytes": str(rows.distance * DType.INT16.bytes),
        "chunks": [
            {
                "is_one": len(chunk) == 1,
                "weights": ", ".join(weights[: len(chunk)]),
                "words": [
                    {"value": f"r{6 + n}", "weight": weights[n], "offset": str(word * WORD)}
                    for n, word in enumerate(chunk)
                ],
            }
            for chunk in chunks
        ],
    }
