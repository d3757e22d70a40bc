"""Convolutions that read windows where they lie: rows are widened, patches are not made.

The rows behind an output row are widened into scratch between their borders.  Values outside the
image are the input's zero point, for which the bias accounts.

The micro-kernels compute four pixels by two channels.  A word of a window is two neighbouring
values.  Windows of neighbouring pixels overlap: a word that is the next tap of one pixel is the
first of another, and stays in its register.  The weights of two channels are copied to the stack,
so that one register less is a pointer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import copying, float_rescaling, lane_sums
from microtir.kernels.arm_dsp.outputs import (
    COLUMNS,
    PlaneRow,
    borders_cost,
    planes_refusal,
    sink_of,
)
from microtir.kernels.arm_dsp.windows_rows import (
    PAIR,
    PIXELS,
    WORD,
    WidenedRows,
    keep_rows,
    widen_row,
)
from microtir.kernels.common import gather, packing, phase_kernel, refusals, requantise
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.macro_kernel import (
    Count,
    Pixel,
    Product,
    Sink,
    Source,
    Tile,
    pixel_loops,
)
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.micro_kernel import Sizes, call, describe, repeated
from microtir.kernels.common.phases import Phase, SpreadPixels
from microtir.kernels.common.statements import at, each, let, load, loop, seq, store, when
from microtir.kernels.common.weights import channel_pairs, pack_pairs
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.plan.ir import Calls, LayoutKind, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_BESIDE = (
    PAIR * requantise.WORDS + 1
)  # words of a pair beside its weights: constants, and its place
_SAVED = 36  # bytes of registers on the stack
_SLOTS = 24  # bytes of pointers on the stack
_CHUNK = 4  # words of a single pixel that are loaded together
_COPIED = 8  # words that are copied to the stack together
_IMMEDIATE = 4095  # largest offset of a load or store
_STEPS = 160  # of a sum, which are words of the stack
_CHAIN = 8  # the most steps of a row that share words, for they are printed together
_PACKED = 1 << 16  # bytes of all weights and constants, less than
# Bytes of the kernels and of a step.
_CODE, _STEP_CODE, _SINGLE_CODE, _SINGLE_STEP_CODE = 270, 42, 110, 18
_WIDEN_CODE, _KEEP_CODE = 110, 60


@dataclass(frozen=True, slots=True)
class _Form:
    """A layer as the kernels need it."""

    geometry: Geometry
    rows: WidenedRows

    @staticmethod
    @of_node
    def of(node: Node) -> _Form:
        geometry = Geometry.of(node)
        columns, channels = geometry.windows.columns, geometry.image.channels
        rows = WidenedRows(
            geometry.windows.rows.taps,
            columns.taps * channels,
            columns.stride * channels,
            geometry.output.width,
        )
        return _Form(geometry, rows)

    @property
    def first(self) -> int:
        """Return where the image begins in a row."""
        return self.geometry.windows.columns.before * self.geometry.image.channels

    @property
    def copied(self) -> int:
        return min(
            self.geometry.copied * self.geometry.image.channels, self.rows.pitch - self.first
        )

    @property
    def shared_rows(self) -> int:
        """Return rows that an output row shares with the next one."""
        rows = self.geometry.windows.rows
        return max(rows.taps - rows.stride, 0) if rows.dilation == 1 else 0

    @property
    def tiled(self) -> int:
        return self.rows.width // PIXELS * PIXELS

    @property
    def copies(self) -> tuple[tuple[int, int, int], ...]:
        """Return for each copy of a row: the first value of the image, its place, and how many."""
        if self.rows.copies == 1:
            return ((0, self.first, self.copied),)
        skipped, pitch = int(self.first == 0), self.rows.pitch
        shifted = (skipped, pitch + self.first - 1 + skipped, self.copied - skipped)
        return ((0, self.first, self.copied), shifted)


_factors = of_node(packing.requantised)


def _packed(
    node: Node, channel_bytes: int = 1
) -> tuple[ir.Buffer, requantise.Requantisation] | None:
    """Return the constants that the kernels read, for outputs so many bytes apart."""
    weights, rows, factors = node.inputs[1].values, _Form.of(node).rows, _factors(node)
    matrix = weights.reshape(len(weights), rows.taps, rows.length)
    padded = np.pad(matrix, ((0, 0), (0, 0), (0, rows.length % PAIR)))
    lanes = pack_pairs(padded.reshape(len(weights), rows.steps, PAIR))
    if lanes is None or factors is None:
        return None
    words = pack(
        lanes[:, rows.order()], factors.constants, channel_pairs(len(weights)), channel_bytes
    )
    return packing.constant("words", words), factors


class GemmWindows(float_rescaling.FloatRescaling, phase_kernel.PhaseKernel):
    """Windows are read where they lie, in rows that are widened."""

    name = "conv_s8_4x2_dsp"
    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.DSP
    cycles = 116
    depends_on_calls = True
    spreads = False

    def __init__(self, writes: LayoutKind) -> None:
        self.writes = writes

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8 over one image, whole tiles of windows of some steps.
        """
        is_planar = self.writes is not LayoutKind.NHWC
        reason = planes_refusal(Geometry.of(node).output) if is_planar else None
        reason = reason or refusals.int8_refusal(node) or refusals.mixed_refusal(node)
        if reason is not None:
            return reason
        if not isinstance(node.op, Conv2D):
            return Refusal.OPERATOR
        form = _Form.of(node)
        geometry, rows = form.geometry, form.rows
        if geometry.image.images != 1:
            return Refusal.IMAGES
        columns = geometry.windows.columns
        if columns.dilation != 1 or columns.before < 0 or rows.length == 1:
            return Refusal.WINDOWS
        if geometry.output.channels < PAIR:
            return Refusal.FEW_CHANNELS
        fits = (
            (rows.is_short or (rows.turns and rows.steps <= _STEPS))
            and rows.words <= _CHAIN * max(rows.step_words, 1)
            and rows.width >= PIXELS
            and form.copied > 1
            and rows.reach(PIXELS) * DType.INT16.bytes <= _IMMEDIATE
            and PIXELS * max(rows.step * DType.INT16.bytes, geometry.output.channels) <= _IMMEDIATE
            and geometry.output.channels * (rows.steps + 9) * 2 < _PACKED
        )
        if not fits:
            return Refusal.SIZES
        return Refusal.FORM if _packed(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return _Form.of(node).rows.elements * DType.INT16.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions from counts of the emulated Cortex-M4.

        Calls share what they widen.
        """
        form, factors = _Form.of(node), refusals.asked(_factors(node))
        rows, output, requantised_ = form.rows, form.geometry.output, factors.rescaling.instructions
        new = rows.copies * (form.copied * 11 // 8 + 40)
        keeping = form.shared_rows * rows.distance // 6 + 40 if form.shared_rows else 0
        count = -(-output.height // (calls.rows or output.height))
        widened = count * rows.taps * new
        widened += (output.height - count) * ((rows.taps - form.shared_rows) * new + keeping)
        looped = 9 + 5 * rows.turns if rows.turns else 0
        tile = tile_loads(rows) + 10 * rows.steps + 8 * requantised_ + 22 + looped
        copied = rows.steps // 4 + 18
        single = rows.steps * 9 // 2 + 2 * requantised_ + 12
        tiles, rest = divmod(rows.width, PIXELS)
        pairs = -(-output.channels // PAIR)
        row = pairs * (tiles * tile + copied + rest * single) + 40
        return widened + output.height * row + borders_cost(output, self.writes)

    def code_bytes(self, node: Node) -> int:
        rows = _Form.of(node).rows
        single = _SINGLE_CODE + _SINGLE_STEP_CODE * rows.steps if rows.width % PIXELS else 0
        tile = (_STEP_CODE * rows.steps + 4 * tile_loads(rows)) // max(rows.turns, 1)
        return _CODE + tile + single + _WIDEN_CODE * rows.copies + _KEEP_CODE

    def packed_bytes(self, node: Node) -> int:
        form = _Form.of(node)
        pairs = len(channel_pairs(form.geometry.output.channels))
        return pairs * (form.rows.steps + 2 * requantise.WORDS + 1) * DType.INT32.bytes

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: rows behind an output row, its tiles, then single pixels."""
        sink, planes = sink_of(layer)
        scratch = ir.Buffer(
            "scratch", (1, _Form.of(layer.node).rows.elements), DType.INT16, alignment=4
        )
        return layer.function(name, scratch, self._loops(
            layer.node, (layer.y0, layer.y1), layer.input_rows(0), sink, scratch, planes
        ))  # fmt: skip

    def phase_loops(self, phase: Phase, x: Rows, y: Rows, scratch: ir.Buffer) -> ir.Stmt:
        rows = 0, Geometry.of(phase.node).output.height
        return self._loops(phase.node, rows, x, SpreadPixels(y, phase), scratch)

    def _loops(
        self, node: Node, rows: tuple[te.ExprLike, te.ExprLike], x: Rows, sink: Sink,
        scratch: ir.Buffer, planes: PlaneRow | None = None,
    ) -> ir.Stmt:  # fmt: skip
        """Return the loops over rows, and over the tiles of each."""
        form = _Form.of(node)
        written = Outputs(form.geometry.output.channels, planes)
        words, factors = refusals.asked(_packed(node, written.channel_bytes))

        def kernel(pixels: int) -> KernelDescription:
            return windows(form.rows, pixels, written, factors.rescaling)

        counts = (Count(form.tiled, "tiles"), Count(1, "pixel"))
        tile = Tile(counts, (Product(kernel, (at(words, 0, 0),)),))
        source = _Rows(x, te.as_expr(rows[0], DType.INT32), form, scratch)
        return pixel_loops(rows, form.rows.width, source, tile, sink)


class _Rows(Source):
    """The rows behind an output row, widened between their borders; some are those of the last."""

    def __init__(self, x: Rows, y0: te.Expr, form: _Form, scratch: ir.Buffer) -> None:
        self.x, self.y0, self.form, self.rows = x, y0, form, form.rows
        self.scratch = self.widened = scratch
        self.zero_point = x.type.quant.zero_point

    def at(self, pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.widened, 0, self.rows.place(pixel.column))

    def prepare(self, _counts: Sequence[int]) -> ir.Stmt:
        """Emit what lies beside the image in each row, once: rows are widened between it."""
        ends, begin = [], 0
        for number, (_, place, count) in enumerate(self.form.copies, 1):
            ends += [(begin, place), (place + count, number * self.rows.pitch)]
            begin = number * self.rows.pitch
        parts = [(a, b) for a, b in ends if a < b]

        def part(ky: te.Expr, first: int, stop: int) -> ir.Stmt:
            base = ky * self.rows.distance
            return loop("i", first, stop,
                        lambda i: store(self.widened, (0, base + i), self.zero_point))  # fmt: skip

        if not parts:
            return seq()
        return loop("ky", 0, self.rows.taps, lambda ky: seq(*(part(ky, a, b) for a, b in parts)))

    def row(self, row: te.Expr) -> ir.Stmt:
        """Emit the rows behind an output row, less what the row before has widened."""
        shared, first = self.form.shared_rows, te.as_expr(0, DType.INT32)
        if shared:
            first = te.select(row == self.y0, first, shared)
        return seq(
            self.keep(row) if shared else seq(),
            gather.kernel_rows(self.form.geometry, row, self.widen, self.outside, first),
        )

    def keep(self, row: te.Expr) -> ir.Stmt:
        """Emit what the row before has widened, behind the first one of a call."""
        stride = self.form.geometry.windows.rows.stride
        return when(row > self.y0, call(keep_rows(self.rows, stride), self.target(0, 0)))

    def widen(self, ky: te.Expr, y: te.Expr) -> ir.Stmt:
        """Emit a row of the image into its place among the rows of the window."""
        channels = self.form.geometry.image.channels
        return seq(*(
            call(
                widen_row(count, at_words=place % PAIR == 0),
                self.x.at(y, first // channels, first % channels),
                self.target(ky, place),
            )
            for first, place, count in self.form.copies
        ))  # fmt: skip

    def outside(self, ky: te.Expr) -> ir.Stmt:
        """Emit the zero point in place of a row."""
        return seq(*(
            call(copying.fill(count, self.zero_point, DType.INT16), self.target(ky, place))
            for _, place, count in self.form.copies
        ))  # fmt: skip

    def target(self, ky: te.ExprLike, place: int) -> ir.BufferArgument:
        return at(self.widened, 0, te.as_expr(ky, DType.INT32) * self.rows.distance + place)


# --- micro-kernels --------------------------------------------------------------------------------


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
        return self.planes.bytes if self.planes else 1

    @property
    def pixel_bytes(self) -> int:
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
    rows: WidenedRows, pixels: int, outputs: Outputs, rescaling: requantise.Rescaling
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
    name_of_pixels = "1 pixel" if pixels == 1 else f"{pixels} pixels, four"
    return describe(
        f"windows{pixels}_{rows.name}_{outputs.name}_{rescaling.name}",
        (f"Convolution: {name_of_pixels}, two channels per iteration, {rows.steps} words each",),
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
    words = rows.steps + PAIR * requantise.WORDS + rows.turns
    return -(-(words * WORD + _SLOTS) // 8) * 8


class _Tile:
    """The meaning: two channels of a pixel."""

    def __init__(
        self,
        rows: WidenedRows,
        x: ir.Buffer,
        packed: ir.Buffer,
        y: ir.Buffer,
        rescaling: requantise.Rescaling,
        column: ir.Var | None,
    ) -> None:
        self.rows, self.x, self.packed, self.y = rows, x, packed, y
        self.rescaling = rescaling
        self.column = column  # of the first pixel, where outputs are planes
        self.sums = lane_sums.local_sums(1)

    def pixel(self, pair: te.Expr, pixel: te.Expr) -> ir.Stmt:
        low, high = self.sums

        def word(ky: te.Expr, number: te.Expr) -> ir.Stmt:
            return seq(*(self.multiply(pair, pixel, ky, number, n) for n in range(PAIR)))

        whole = seq(
            lane_sums.cleared(1, low, high),
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

        return lane_sums.split_lane(lane, products)

    def output(self, pair: te.Expr, pixel: te.Expr, number: int) -> ir.Stmt:
        first = self.rows.steps + number * requantise.WORDS
        constants = (
            load(self.packed, pair, first + n)
            for n in (requantise.MULTIPLIER, requantise.ROUNDING, requantise.SHIFT)
        )
        total = load(self.sums[number], 0) * 2 + load(self.packed, pair, first + requantise.BIAS)
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
    return [
        range(first, rows.words, rows.step_words)
        for first in range(min(rows.step_words, rows.words))
    ]


def _values(
    rows: WidenedRows, pixels: int, outputs: Outputs, rescaling: requantise.Rescaling
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
    copied = rows.steps + PAIR * requantise.WORDS
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
    flags = _SLOTS + (rows.steps + PAIR * requantise.WORDS) * WORD
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
        first += (rows.step_words - 1) * WORD
    steps: list[dict[str, object]] = []
    for number in range(length):
        # Pixel p finds in step n what pixel p + copies has found in the step before.
        held = [(p % copies, p // copies + number) for p in range(PIXELS)]
        registers = [f"r{8 + odd + turn % (PIXELS // copies) * copies}" for odd, turn in held]
        new = held if number == 0 else held[-copies:]
        steps.append({
            "weight": f"{of_row}{first + number * rows.step_words * WORD}",
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
