"""Depthwise convolutions 3x3 over planes, which their producer writes, or which are made here.

Where rows come as NHWC each is split into its channels once: the planes of three rows are kept in
scratch, one of them replaced for every output row.  Values outside the image are the input's zero
point, for which the bias accounts.

The micro-kernels compute a row of one channel after another.  Two columns are a word, of which
SMLAD multiplies both: 8 instructions for the 12 products of a kernel row with four outputs.  The
third weight of a row meets a single half.  Planes of 16 bits hold neighbouring columns in a word;
those of 8 bits are widened as they are read, every other column in a word.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import copying, float_rescaling, planes_words
from microtir.kernels.arm_dsp.depthwise import IMMEDIATE, factors
from microtir.kernels.common import packing, refusals, requantise
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.depthwise import DepthwiseKernel
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe, repeated
from microtir.kernels.common.statements import at, let, load, loop, seq, store, when
from microtir.plan.ir import Calls, LayoutKind, Planes, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

TAPS = 3
OUTPUTS = 4  # of a turn
_STRIDES = (1, 2)
_CHANNELS = 4  # of a word
_PAIRS_PER_TURN = 4
_STEP = 255  # largest step of a load or store
_ADDED = 4095  # largest number that ADD takes
# Bytes of the kernels beside their turns.
SPLIT_CODE, _KERNEL_CODE = 190, 80


@dataclass(frozen=True, slots=True)
class Plane:
    """A row of one channel: `before` columns of border, `copied` of the image, and border again.

    Windows `reach` from their first to behind their last column.  `columns` is even, so that planes
    of int16 begin at words, and that reading four columns of int8 from any even one that an output
    needs stays inside.  Neighbours are `dilation` apart in the image.
    """

    channels: int
    outputs: int
    stride: int
    before: int
    copied: int
    dtype: DType = DType.INT16
    reach: int = TAPS
    dilation: int = 1

    @staticmethod
    def of(geometry: Geometry, dtype: DType = DType.INT16) -> Plane:
        columns, channels = geometry.windows.columns, geometry.image.channels
        return Plane(
            channels, geometry.output.width, columns.stride, columns.before, geometry.copied, dtype,
            columns.reach(1),
        )  # fmt: skip

    @property
    def columns(self) -> int:
        reached = (self.outputs - 1) * self.stride + self.reach
        return reached + reached % 2

    @property
    def bytes(self) -> int:
        return self.columns * self.dtype.bytes

    @property
    def elements(self) -> int:
        return self.channels * self.columns

    @property
    def alignment(self) -> int:
        """Return the alignment of a row: words that are widened may lie anywhere."""
        return 1 if self.dtype is DType.INT8 else 4

    @property
    def name(self) -> str:
        every = f"every{self.dilation}" if self.dilation > 1 else ""
        return f"{self.channels}x{self.copied}{every}in{self.columns}at{self.before}"


Phases = Sequence[tuple[int, Plane]]
"""The planes of a row: first column of the image of those that hold every so many columns."""


def phases(geometry: Geometry) -> Phases:
    """Return planes in which taps of dilated windows are neighbours, if outputs are, too."""
    columns, width = geometry.windows.columns, geometry.output.width
    dilation, plane = columns.dilation, Plane.of(geometry)
    if dilation == 1 or columns.stride > 1:
        return ((0, plane),)
    planes = []
    for number in range(min(dilation, width)):
        outputs = -(-(width - number) // dilation)
        before = max(-(-(columns.before - number) // dilation), 0)
        first = before * dilation + number - columns.before
        inside = -(-(geometry.image.width - first) // dilation)
        copied = min(inside, outputs + columns.taps - 1 - before)
        of_phase = replace(
            plane,
            outputs=outputs,
            before=before,
            copied=copied,
            reach=columns.taps,
            dilation=dilation,
        )
        planes.append((first, of_phase))
    return tuple(planes)


class DepthwisePlanes(float_rescaling.FloatRescaling, DepthwiseKernel):
    """3x3 taps, two columns a word, from rows that it splits into planes of channels."""

    name = "dwconv_s8_4x1_dsp"
    needs = Feature.DSP
    cycles = 111
    depends_on_calls = has_wide_weights = True

    def reject_sizes(self, _node: Node, geometry: Geometry) -> Refusal | None:
        """Return what speaks against it: other windows than of 3x3 taps, rows out of reach."""
        rows, columns, plane = geometry.windows.rows, geometry.windows.columns, Plane.of(geometry)
        fits = (
            (rows.taps, columns.taps) == (TAPS, TAPS)
            and (rows.dilation, columns.dilation) == (1, 1)
            and columns.stride in _STRIDES
        )
        if not fits:
            return Refusal.WINDOWS
        if plane.channels < OUTPUTS:
            return Refusal.FEW_CHANNELS
        far = (OUTPUTS - 1) * max(plane.channels, plane.bytes) > IMMEDIATE
        return Refusal.SIZES if far or plane.copied < 1 else None

    def has_form(self, node: Node) -> bool:
        return factors(node) is not None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return TAPS * Plane.of(Geometry.of(node)).elements * DType.INT16.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        geometry = Geometry.of(node)
        split_rows = rows_split(geometry, calls) * split_cost(self._plane(node))
        return split_rows + geometry.output.height * instructions(Plane.of(Geometry.of(node)))

    def code_bytes(self, node: Node) -> int:
        return SPLIT_CODE + _code_bytes(Plane.of(Geometry.of(node)))

    def packed_bytes(self, node: Node) -> int:
        words = words_of(self._plane(node))
        return node.output.type.channels * words.bytes

    def _plane(self, node: Node) -> Plane:
        return Plane.of(Geometry.of(node))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: new rows into planes, then the kernel, row by row."""
        return _Split(layer).function(name)


def rows_split(geometry: Geometry, calls: Calls) -> int:
    """Return how many rows are split into planes, which the rows of a call share."""
    rows, height = geometry.windows.rows, geometry.output.height
    if not calls.rows:
        return min(rows.reach(height), geometry.image.height)
    held = rows.reach(1)
    return -(-height // calls.rows) * (held + (calls.rows - 1) * min(rows.stride, held))


def split_cost(plane: Plane) -> int:
    """Return the instructions of splitting one row."""
    return plane.elements * 7 // 4 + plane.channels * 2 + 30


def _code_bytes(plane: Plane) -> int:
    """Return the bytes of the kernel; other layers may use the same."""
    turns, rest = divmod(plane.outputs, OUTPUTS)
    return _KERNEL_CODE + 260 * (turns > 0) + (70 + 45 * rest if rest else 0)


class DepthwisePlanar(DepthwisePlanes):
    """The same over planes, of elements of a type, that the producer has written."""

    depends_on_calls = False

    def __init__(self, reads: LayoutKind, dtype: DType) -> None:
        self.reads, self.element = reads, dtype

    def planes(self, node: Node) -> Planes:
        plane = self._plane(node)
        return Planes(plane.before, plane.columns)

    def reject_sizes(self, node: Node, geometry: Geometry) -> Refusal | None:
        """Return what speaks against it: as above, and rows beyond the image."""
        reason = super().reject_sizes(node, geometry)
        if reason is not None:
            return reason
        rows, plane = geometry.windows.rows, self._plane(node)
        last = (geometry.output.height - 1) * rows.stride - rows.before + TAPS - 1
        if rows.before > 1 or last > rows.size or rows.size < TAPS - 1:
            return Refusal.WINDOWS
        return None if plane.before + geometry.image.width <= plane.columns else Refusal.SIZES

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of a row outside the image."""
        geometry = Geometry.of(node)
        clips = geometry.windows.rows.clips(geometry.output.height)
        return self._plane(node).elements * self.element.bytes if clips else 0

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions of all rows, whatever the calls."""
        outside = self.scratch_bytes(node, calls)
        return outside + Geometry.of(node).output.height * (instructions(self._plane(node)) + 10)

    def code_bytes(self, node: Node) -> int:
        return _code_bytes(self._plane(node))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: the kernel, and planes for rows outside the image."""
        return _Planar(layer).function(name)

    def _plane(self, node: Node) -> Plane:
        return Plane.of(Geometry.of(node), self.element)


class _Emitter:
    """The part that both ways to emit depthwise 3x3 over planes have in common."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.geometry = Geometry.of(layer.node)
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        is_planar = self.x.layout.planes is not None
        self.plane = Plane.of(self.geometry, self.x.buffer.dtype if is_planar else DType.INT16)
        scaling = refusals.asked(factors(layer.node))
        self.kernel = depthwise(self.plane, scaling.rescaling)
        taps = layer.data(1)[0].astype(np.int16)
        self.words = packing.constant("words", words_of(self.plane).pack(taps, scaling.constants))
        self.zero_point = layer.node.inputs[0].type.quant.zero_point

    def row_of(self, row: te.Expr, taps: Sequence[ir.BufferArgument]) -> ir.Stmt:
        """Emit an output row from the planes of the rows behind it."""
        return call(self.kernel, *taps, at(self.words, 0, 0), self.y.at(row, 0, 0))


def scratch_rows(elements: int, dtype: DType) -> ir.Buffer:
    """Return scratch that is one row: whoever follows rows of buffers sees one span of bytes."""
    return ir.Buffer("scratch", (1, elements), dtype, alignment=4)


_Output = Callable[[te.Expr, int, list[ir.BufferArgument]], ir.Stmt]
"""Emits what a phase adds to an output row, whose number is followed by that of the phase."""


class SplitRows:
    """Planes of the rows behind an output row; rows that are new replace those before.

    Args:
        geometry: of the layer.
        x: rows of the image.
        phases: of a row.
        first: output row that is computed before the others.
    """

    def __init__(self, geometry: Geometry, x: Rows, phases: Phases, first: te.Expr) -> None:
        self.geometry, self.x, self.phases, self.first = geometry, x, phases, first
        self.zero_point = x.type.quant.zero_point
        self.held = geometry.windows.rows.reach(1)
        self.elements = sum(plane.elements for _, plane in phases)
        self.planes = scratch_rows(self.held * self.elements, DType.INT16)

    def each(self, stop: te.Expr, output: _Output) -> ir.Stmt:
        """Emit output rows; each is given the planes of the rows behind it, phase by phase."""
        rows = self.geometry.windows.rows

        def taps(row: te.Expr, top: te.Expr) -> ir.Stmt:
            places = range(0, rows.taps * rows.dilation, rows.dilation)
            return seq(*(
                output(row, number, [self.planes_of(top + n, number) for n in places])
                for number in range(len(self.phases))
            ))  # fmt: skip

        def row(number: te.Expr) -> ir.Stmt:
            top = number * rows.stride - rows.before
            return seq(self.fetch(number), let("top", top, partial(taps, number)))

        return loop("row", self.first, stop, row)

    def fetch(self, row: te.Expr) -> ir.Stmt:
        """Emit the rows behind an output row that the one before did not have."""
        rows = self.geometry.windows.rows
        top = row * rows.stride - rows.before
        shared = max(self.held - rows.stride, 0)
        first = top + te.select(row == self.first, te.as_expr(0, DType.INT32), shared)
        return loop("y_in", first, top + self.held, self.split)

    def split(self, y: te.Expr) -> ir.Stmt:
        """Emit one row of the image, or what stands for one outside of it."""
        rows = self.geometry.windows.rows
        inside = seq(*(
            call(
                split(plane, self.zero_point), self.x.at(y, first, 0), self.planes_of(y, number),
            )
            for number, (first, plane) in enumerate(self.phases)
        ))  # fmt: skip
        if not rows.clips(self.geometry.output.height):
            return inside
        filled = copying.fill(self.elements, self.zero_point, DType.INT16)
        outside = call(filled, self.planes_of(y, 0))
        return when((y >= 0) & (y < rows.size), inside, outside)

    def planes_of(self, y: te.Expr, number: int) -> ir.BufferArgument:
        """Return where the planes of a phase of a row lie."""
        before = sum(plane.elements for _, plane in self.phases[:number])
        return at(self.planes, 0, y % self.held * self.elements + before)


class _Split(_Emitter):
    """Rows come as NHWC."""

    def function(self, name: str) -> ir.PrimFunc:
        rows = SplitRows(self.geometry, self.x, ((0, self.plane),), self.layer.y0)
        body = rows.each(self.layer.y1, lambda row, _number, taps: self.row_of(row, taps))
        return self.layer.function(name, rows.planes, body)


class _Planar(_Emitter):
    """Rows come as planes."""

    def function(self, name: str) -> ir.PrimFunc:
        rows = self.geometry.windows.rows
        clips = rows.clips(self.geometry.output.height)
        outside = scratch_rows(self.plane.elements, self.plane.dtype) if clips else None
        return self.layer.function(name, outside, loop(
            "row", self.layer.y0, self.layer.y1,
            lambda row: let(
                "top", row * rows.stride - rows.before, lambda top: self.output(row, top, outside)
            ),
        ))  # fmt: skip

    def output(self, row: te.Expr, top: te.Expr, outside: ir.Buffer | None) -> ir.Stmt:
        taps = [self.x.row(top + n) for n in range(TAPS)]
        inside = self.row_of(row, taps)
        if outside is None:
            return inside
        zeros = at(outside, 0, 0)
        fill_it = call(copying.fill(self.plane.elements, self.zero_point, self.plane.dtype), zeros)
        above, below = top < 0, top + TAPS > self.geometry.windows.rows.size
        first, last = self.row_of(row, [zeros, *taps[1:]]), self.row_of(row, [*taps[:-1], zeros])
        return seq(when(above | below, fill_it), when(above, first, when(below, last, inside)))


# --- micro-kernels ---


@made_once
def split(plane: Plane, zero_point: int) -> KernelDescription:
    """Split a row of the image into planes of int16.

    Returns:
        Parameters: the row (W, C), planes (C, columns).
    """
    step = plane.dilation * plane.channels
    x = ir.Buffer("x", ((plane.copied - 1) * step + plane.channels,), DType.INT8)
    planes = ir.Buffer("planes", (plane.elements,), DType.INT16, alignment=4)
    border = te.as_expr(zero_point, DType.INT16)
    first, stop = plane.before, plane.before + plane.copied

    def put(channel: te.Expr, column: te.Expr, value: te.Expr) -> ir.Stmt:
        return store(planes, (channel * plane.columns + column,), value)

    def pixel(channel: te.Expr, column: te.Expr) -> ir.Stmt:
        value = load(x, (column - first) * step + channel)
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
        "step": str(plane.dilation * plane.channels),
        "steps_far": plane.dilation * plane.channels > _STEP,
        **{f"plane{n}": str(n * plane.bytes) for n in range(1, _CHANNELS)},
        "plane_bytes": str(_CHANNELS * plane.bytes),
        "overlap": str(overlap) if overlap else "",
        "overlap_bytes": str(overlap * plane.bytes),
    }


def _has(left: bool, right: bool) -> dict[str, bool]:
    """Return which of the columns of a word are of the image."""
    return {"left": left, "right": right}


@made_once
def depthwise(plane: Plane, rescaling: requantise.Rescaling) -> KernelDescription:
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


def words_of(plane: Plane) -> planes_words.Words:
    """Return how the constants of the channels are packed for planes."""
    if plane.dtype is DType.INT8:
        return planes_words.SPREAD
    return planes_words.NEIGHBOURS if plane.stride == 1 else planes_words.ADJACENT


def _depthwise_values(plane: Plane, rescaling: requantise.Rescaling) -> dict[str, object]:
    turns, rest = divmod(plane.outputs, OUTPUTS)
    words, loop_bytes = words_of(plane), turns * OUTPUTS * plane.stride * plane.dtype.bytes
    constants = {"r9": words.multiplier, "r10": words.multiplier + 1}
    if rescaling.shift is None and not words.last_has_shift:
        constants["r11"] = words.shift
    return {
        "rescaling": rescaling.values(),
        "has_loop": turns > 1,
        "has_whole_turns": turns > 0,
        "loop_bytes": str(loop_bytes),
        "loop_bytes_fit_add": loop_bytes <= _ADDED,
        "whole_turn": _turn(plane, OUTPUTS, step=True),
        "last_turn": _turn(plane, rest, step=False) if rest else "",
        "is_int8": plane.dtype is DType.INT8,
        "has_stride_2": plane.stride == 2,
        "constants": _loads(constants),
        "stores_advance_output": plane.channels <= _STEP,
        "output_step": str(OUTPUTS * plane.channels),
        "output_step_fits_add": OUTPUTS * plane.channels <= _ADDED,
        "advance": str(plane.bytes - loop_bytes),
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
