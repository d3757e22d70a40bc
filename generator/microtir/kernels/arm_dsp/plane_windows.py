"""Depthwise convolutions of any windows over planes: two columns a word, four outputs a turn.

Rows are split into planes of their channels as for windows of 3x3 (`planes`).  Where a word of two
columns meets two neighbouring taps of an output, SMLAD multiplies both; else one half of it is
multiplied.  Several outputs of a channel are calls over the same planes.  Where the image has a
single column, rows and columns change places: all of it is one row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node, Tensor
from microtir.kernels.arm_dsp.depthwise import IMMEDIATE, MOST_TAPS, factors
from microtir.kernels.arm_dsp.float_rescaling import FloatRescaling
from microtir.kernels.arm_dsp.planes import (
    OUTPUTS,
    SPLIT_CODE,
    DepthwisePlanes,
    Plane,
    SplitRows,
    phases,
    rows_split,
    split_cost,
)
from microtir.kernels.common import refusals
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.depthwise import DepthwiseKernel
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.packing import constant
from microtir.kernels.common.requantise import BIAS, MULTIPLIER, ROUNDING, SHIFT, Rescaling
from microtir.kernels.common.statements import at, load, loop, seq, store
from microtir.kernels.common.weights import QUAD
from microtir.measure.printed import Printed, printed
from microtir.operators.common.attributes import Padding2D
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_ROWS = 16  # each is an argument
_FRAME = 40  # bytes of the stack before the parameters
_POINTERS = 3  # that registers are left for
_STEP = 255  # largest step of a store
_LEAST = DepthwisePlanes()  # takes fewer instructions where it does
_WORD = DType.INT32.bytes


@of_node
def turned(node: Node) -> Node:
    """Return the convolution of a single row that one of a single column is."""
    op, (x, w, *bias) = node.attributes(DepthwiseConv2D), node.inputs
    pads = op.padding
    return replace(
        node,
        op=replace(
            op,
            strides=op.strides[::-1],
            dilations=op.dilations[::-1],
            padding=Padding2D(pads.left, pads.right, pads.top, pads.bottom),
        ),
        inputs=(_transposed(x), _transposed(w), *bias),
        outputs=(_transposed(node.output),),
    )


def _transposed(tensor: Tensor) -> Tensor:
    images, rows, columns, channels = tensor.shape
    data = None if tensor.data is None else tensor.data.transpose(0, 2, 1, 3)
    type_ = replace(tensor.type, shape=(images, columns, rows, channels))
    return Tensor(tensor.name, type_, data)


class PlaneWindows(FloatRescaling, DepthwiseKernel):
    """Windows of any taps, from rows that it splits into planes of channels.

    Args:
        name: of the kernel.
        turns: whether it takes images of a single column, whose rows are the columns of one row.
    """

    needs = Feature.DSP
    cycles = 111
    depends_on_calls = has_wide_weights = takes_multiplier = True

    def __init__(self, name: str, *, turns: bool) -> None:
        self.name, self._turns = name, turns

    def _of(self, node: Node) -> Node:
        return turned(node) if self._turns else node

    def reject_sizes(self, node: Node, geometry: Geometry) -> Refusal | None:
        """Return what speaks against it: too few channels, too many taps, rows out of reach."""
        is_column = geometry.image.width == geometry.output.width == 1
        if self._turns and not is_column:
            return Refusal.WINDOWS
        if geometry.image.channels < QUAD:
            return Refusal.FEW_CHANNELS
        geometry = Geometry.of(self._of(node))
        rows, columns = geometry.windows.rows, geometry.windows.columns
        if columns.before < 0 or (outputs_of(node) == 1 and _LEAST.reject(node) is None):
            return Refusal.WINDOWS
        in_reach = (
            rows.taps <= _ROWS
            and rows.taps * columns.taps <= MOST_TAPS
            and all(
                OUTPUTS * max(geometry.output.channels * plane.dilation, plane.bytes) <= IMMEDIATE
                and plane.copied > 0
                for _, plane in phases(geometry)
            )
        )
        return None if in_reach else Refusal.SIZES

    def has_form(self, node: Node) -> bool:
        return factors(node) is not None

    def window(self, node: Node) -> RowWindow | None:
        """Return the rows behind an output row; None where all of them are one row."""
        return None if self._turns else super().window(node)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the planes of the rows behind an output row."""
        geometry = Geometry.of(self._of(node))
        elements = sum(plane.elements for _, plane in phases(geometry))
        return geometry.windows.rows.reach(1) * elements * DType.INT16.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return what is printed, and from counts of the emulated Cortex-M4 what is around it."""
        node = self._of(node)
        geometry, works = Geometry.of(node), Work.of(node)
        height = geometry.output.height
        outside = max(geometry.windows.rows.reach(height) - geometry.image.height, 0)
        split = sum(
            rows_split(geometry, calls) * split_cost(work.plane)
            + outside * work.plane.elements // 4
            for work in works
        )
        rescaling = _rescaling(node)
        return split + height * outputs_of(node) * sum(w.instructions(rescaling) for w in works)

    def code_bytes(self, node: Node) -> int:
        node = self._of(node)
        rescaling, works = _rescaling(node), dict.fromkeys(Work.of(node))
        return sum(SPLIT_CODE + _printed(work, rescaling).bytes for work in works)

    def packed_bytes(self, node: Node) -> int:
        return node.output.type.channels * Work.of(self._of(node))[0].words * _WORD

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: new rows into planes, then each output row."""
        node = self._of(layer.node)
        if self._turns:
            (x_shape, y_shape) = (t.shape[1:] for t in (node.inputs[0], node.output))
            x, y = layer.input_matrix(0, x_shape), layer.output_matrix(y_shape)
            first, stop = (te.as_expr(n, DType.INT32) for n in (0, 1))
            return _function(layer, name, node, (x, y), (first, stop))
        rows = layer.input_rows(0), layer.output_rows()
        return _function(layer, name, node, rows, (layer.y0, layer.y1))


def outputs_of(node: Node) -> int:
    """Return how many outputs a channel has."""
    return node.attributes(DepthwiseConv2D).depth_multiplier


def _rescaling(node: Node) -> Rescaling:
    scaling = refusals.asked(factors(node))
    return scaling.rescaling


def _function(
    layer: Layer, name: str, node: Node, of: tuple[Rows, Rows], rows: tuple[te.Expr, te.Expr]
) -> ir.PrimFunc:
    """Return the function of a layer that is `node`, from and to rows of tensors."""
    (x, y), (first, stop), works, scaling = of, rows, Work.of(node), factors(node)
    weights = node.inputs[1].values
    assert scaling is not None
    every = works[0].every
    constants = [
        constant("words", works[0].pack(weights[0, :, :, n::every], scaling.constants[n::every]))
        for n in range(every)
    ]

    def output(row: te.Expr, phase: int, taps: list[ir.BufferArgument]) -> ir.Stmt:
        kernel = plane_windows(works[phase], scaling.rescaling)
        return seq(*(
            call(kernel, *taps, at(words, 0, 0), y.at(row, phase, number))
            for number, words in enumerate(constants)
        ))  # fmt: skip

    geometry = Geometry.of(node)
    planes = SplitRows(geometry, x, phases(geometry), first)
    return layer.function(name, planes.planes, planes.each(stop, output))


@dataclass(frozen=True, slots=True)
class _Use:
    """Taps of an output, two neighbours or one, and the columns they meet, from a turn's first."""

    tap: int
    is_pair: bool
    column: int


@dataclass(frozen=True, slots=True)
class Work:
    """An output row of a micro-kernel, of windows of `rows` times `taps` columns.

    The words of a channel are twice the bias, two weights each, then multiplier, rounding, shift.
    Where outputs begin in the middle of a word, too, each weight but the outer ones is in two.
    `every` is how many outputs a channel has.
    """

    plane: Plane
    rows: int
    taps: int
    dilation: int
    every: int

    @staticmethod
    def of(node: Node) -> tuple[Work, ...]:
        """Return that of each phase of a row."""
        geometry = Geometry.of(node)
        rows, columns = geometry.windows.rows, geometry.windows.columns
        return tuple(
            Work(p, rows.taps, columns.taps, columns.dilation // p.dilation, outputs_of(node))
            for _, p in phases(geometry)
        )

    def instructions(self, rescaling: Rescaling) -> int:
        """Return the instructions of a call, and from counts on the Cortex-M4 those around it."""
        channels = self.plane.channels
        turns = {"bne 1b": channels, "bne 2b": channels * self.turns}
        return _printed(self, rescaling).instructions(turns) + 20 + 3 * self.rows

    @property
    def pixel(self) -> int:
        """Return the bytes from an output to the next one of its channel."""
        return self.plane.channels * self.every * self.plane.dilation

    @property
    def turns(self) -> int:
        return self.plane.outputs // OUTPUTS

    @property
    def pairs(self) -> range:
        """Return the first taps of the words of a row."""
        overlap = self.dilation == 1 and self.plane.stride % 2
        return range(max(self.taps - 1, 1)) if overlap else range(0, self.taps, 2)

    @property
    def words(self) -> int:
        return 1 + self.rows * len(self.pairs) + 3

    def place(self, row: int, tap: int) -> tuple[int, int]:
        """Return the word and the half of it where a weight stands."""
        number = min(tap // self.pairs.step, len(self.pairs) - 1)
        return 1 + row * len(self.pairs) + number, tap - self.pairs[number]

    def pack(
        self, weights: npt.NDArray[np.int8], constants: npt.NDArray[np.int32]
    ) -> npt.NDArray[np.int32]:
        """Arrange weights (rows, taps, channels) and constants as (channels, words)."""
        halves = np.zeros((len(constants), self.words, 2), np.int64)
        doubled = 2 * weights.astype(np.int64)
        for row in range(self.rows):
            for number, first in enumerate(self.pairs):
                for half, tap in enumerate(range(first, min(first + 2, self.taps))):
                    halves[:, 1 + row * len(self.pairs) + number, half] = doubled[row, tap]
        words = halves[:, :, 1] * (1 << 16) + (halves[:, :, 0] & 0xFFFF)
        words[:, [0, -3, -2, -1]] = constants[:, [BIAS, MULTIPLIER, ROUNDING, SHIFT]]
        return words.astype(np.int32)

    def uses(self, output: int) -> Iterator[_Use]:
        """Yield the taps of an output, two at a time where these are a word."""
        tap = 0
        while tap < self.taps:
            column = output * self.plane.stride + tap * self.dilation
            is_pair = self.dilation == 1 and column % 2 == 0 and tap + 1 < self.taps
            yield _Use(tap, is_pair, column)
            tap += 1 + is_pair

    @property
    def pointers(self) -> list[str]:
        """Return registers that point to the rows; none where these are too many for that."""
        return [f"r{row}" for row in range(self.rows)] if self.rows <= _POINTERS else []

    @property
    def turn_bytes(self) -> int:
        """Return the bytes of a row from a turn to the next one."""
        return OUTPUTS * self.plane.stride * self.plane.dtype.bytes

    def steps(self, row: int, outputs: int, *, advances: bool) -> Iterator[dict[str, str]]:
        """Yield loads and products of a row of the windows, word by word of the weights.

        Where a pointer advances, the first load of the row, of its first word, moves it.
        """
        sums = [f"r{4 + n}" for n in range(outputs)]
        base = self.pointers[row] if self.pointers else "r0"
        moved = self.turn_bytes if advances and self.pointers else 0
        held: dict[int, str] = {}  # columns in registers, the one used last is the last
        begun = {} if row == 0 else dict.fromkeys(sums)
        uses = [(self.place(row, u.tap), n, u) for n in range(outputs) for u in self.uses(n)]
        for word in sorted({word for (word, _), *_ in uses}):
            yield {"load": "r12", "place": f"[r3, #{word * _WORD}]"}
            for (_, half), n, use in (u for u in uses if u[0][0] == word):
                column = use.column // 2
                if column not in held:
                    offset = f"#{column * _WORD - moved}"
                    place = f"[{base}], #{moved}" if moved and not held else f"[{base}, {offset}]"
                    free = [r for r in ("r8", "r9", "r10", "r11") if r not in held.values()]
                    register = free[0] if free else held.pop(next(iter(held)))
                    yield {"load": register, "place": place}
                    held[column] = register
                held[column] = held.pop(column)
                halves = f"{'bt'[use.column % 2]}{'bt'[half]}"
                begin = sums[n] if sums[n] in begun else sums[-1]
                begun[sums[n]] = None
                product = "smlad" if use.is_pair else f"smla{halves}"
                yield {
                    "load": "", "product": product, "sum": sums[n], "x": held[column],
                    "begin": begin,
                }  # fmt: skip

    def values(self, rescaling: Rescaling) -> dict[str, object]:
        plane, after = self.plane, _FRAME + 4 * self.rows
        rest = plane.outputs % OUTPUTS
        return {
            "rescaling": rescaling.values(),
            "constants": str(after),
            "output": str(after + 4),
            "channels_bytes": str(plane.channels * self.every),
            "pixel_bytes": str(self.pixel),
            "stores_advance": self.pixel <= _STEP,
            "turn_pixels_bytes": str(OUTPUTS * self.pixel),
            "pointers": self.pointers,
            "cursors": self.pointers or ["r1"],
            "end": str(_FRAME),
            "turn_bytes": str(self.turn_bytes),
            "has_loop": self.turns > 1,
            "loop_bytes": str(self.turns * self.turn_bytes),
            "whole_turn": self._turn(OUTPUTS, advances=True) if self.turns else "",
            "last_turn": self._turn(rest, advances=False) if rest else "",
            "advance": str(plane.bytes - self.turns * self.turn_bytes),
            "word_bytes": str(self.words * _WORD),
            "every": str(self.every),
            "multiplier": str((self.words - 3) * _WORD),
            "shift": str((self.words - 1) * _WORD) if rescaling.shift is None else "",
        }

    def _turn(self, outputs: int, *, advances: bool) -> dict[str, object]:
        """Return neighbouring outputs, and whether the pointers go on to the next ones."""
        return {
            "bias": f"r{3 + outputs}",
            "advances": advances,
            "rows": [
                {
                    "place": "" if self.pointers else str(_FRAME + 4 * row),
                    "steps": list(self.steps(row, outputs, advances=advances)),
                }
                for row in range(self.rows)
            ],
            "results": [
                {"sum": f"r{4 + n}", "offset": str(n * self.pixel)} for n in range(outputs)
            ],
        }


@lru_cache(maxsize=64)
def _printed(work: Work, rescaling: Rescaling) -> Printed:
    """Return a micro-kernel as it is printed; planning asks for it again and again."""
    return printed("kernels/plane_windows.j2", work.values(rescaling))


@made_once
def plane_windows(work: Work, rescaling: Rescaling) -> KernelDescription:
    """Compute an output of each channel of a row from the planes of the rows behind it.

    Returns:
        Parameters: the planes of each row, the words of the channels as `work` packs them, the
        first output.
    """
    plane = work.plane
    rows = [
        ir.Buffer(f"row{n}", (plane.elements,), plane.dtype, alignment=4) for n in range(work.rows)
    ]
    words = ir.Buffer("words", (plane.channels, work.words), DType.INT32)
    size = (plane.outputs - 1) * work.pixel + (plane.channels - 1) * work.every + 1
    y = ir.Buffer("y", (size,), DType.INT8)

    def output(channel: te.Expr, column: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

        def tap(row: int, kx: int) -> ir.Stmt:
            first = channel * plane.columns + column * plane.stride
            number, half = work.place(row, kx)
            word = load(words, channel, number)
            weight = word >> 16 if half else (word & 0xFFFF ^ 0x8000) - 0x8000
            value = te.cast(DType.INT32, load(rows[row], first + kx * work.dilation))
            return store(total, (), load(total) + value * weight)

        sums = (tap(row, kx) for row in range(work.rows) for kx in range(work.taps))
        factors = (load(words, channel, work.words - n) for n in (3, 2, 1))
        result = rescaling.rescale(load(total), *factors)
        stored = store(y, (column * work.pixel + channel * work.every,), result)
        return ir.Allocate(total, seq(store(total, (), load(words, channel, 0)), *sums, stored))

    about = f"{work.rows}x{work.taps}"
    size_of = f"{about}_{work.dilation}_{plane.stride}_{work.every}"
    return describe(
        f"plane_windows_{plane.name}_{plane.outputs}_{size_of}_{rescaling.name}",
        (f"Depthwise convolution {about} taps: {plane.outputs} x {plane.channels} outputs",),
        (*rows, words, y),
        (y,),
        loop(
            "channel", 0, plane.channels,
            lambda c: loop("col", 0, plane.outputs, lambda column: output(c, column)),
        ),
        "kernels/plane_windows.j2",
        work.values(rescaling),
        stack_bytes=56,
    )  # fmt: skip
