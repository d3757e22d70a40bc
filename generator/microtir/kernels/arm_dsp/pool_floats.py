"""Maxima of windows of floats: of the rows of a window first, which its columns share.

Both are lanes of two operands, whole rows of them where windows move by one column.  For a row that
a window lacks its nearest one counts again; columns that it lacks are the lowest float.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.config.target import Target
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.elementwise import ElementwiseFloats
from microtir.kernels.common.elementwise import Lane, Run
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import at, each, loop, seq, store
from microtir.operators.common.rows import Extents
from microtir.operators.common.windows import Windows
from microtir.operators.pooling.definition import MaxPool2D
from microtir.operators.pooling.formula import windows_of
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_LONGEST = 0xFFFF  # elements of a row: what MOVW loads
_LOWEST = float(np.finfo(np.float32).min)
_CALL, _ROW = 8, 12  # instructions around a lane's call, and around a row
_LANES = ElementwiseFloats()


@dataclass(frozen=True, slots=True)
class _Rows:
    """The steps of an output row: lanes of rows, then of columns; each takes one more of them.

    Attributes:
        windows: of the layer.
        image: the input.
        width: of the output.
        ends: of its elements.
    """

    windows: Windows
    image: Extents
    width: int
    ends: tuple[float, float]

    @staticmethod
    def of(node: Node) -> _Rows:
        low, high = node.attributes(MaxPool2D).activation.real_range
        image, output = (Extents.of(t.type) for t in (node.inputs[0], node.output))
        return _Rows(windows_of(node), image, output.width, (max(low, _LOWEST), high))

    @property
    def channels(self) -> int:
        return self.image.channels

    def is_plain(self, output: Extents) -> bool:
        """Return whether windows have no gaps, and each a row and a column of the image."""
        axes = ((self.windows.rows, output.height), (self.windows.columns, output.width))
        return all(
            window.dilation == 1
            and window.before >= 0
            and (count - 1) * window.stride - window.before < window.size
            for window, count in axes
        )

    @property
    def down(self) -> int:
        """Return the steps over rows; a single row is compared with itself."""
        return max(self.windows.rows.taps - 1, 1)

    @property
    def along(self) -> int:
        return max(self.windows.columns.taps - 1, 1)

    @property
    def shape(self) -> tuple[int, int]:
        """Return rows of scratch, and their elements: those of the image and of what is around."""
        columns = self.windows.columns
        rows = 2 if self.along < 3 else 3
        return rows, max(
            columns.before + self.image.width, columns.reach(self.width)
        ) * self.channels

    @property
    def pixels(self) -> int:
        """Return the calls of a step over columns."""
        return 1 if self.windows.columns.stride == 1 else self.width

    def row(self) -> Run:
        """Return the lane of a step over rows."""
        return _largest(self.image.width * self.channels)

    def column(self, step: int) -> Run:
        """Return the lane of a step over columns, the last of which clamps."""
        lane = _largest(self.width * self.channels // self.pixels)
        return replace(lane, ends=self.ends) if step == self.along else lane

    def calls(self) -> Counter[Run]:
        along = [self.column(step) for step in range(1, self.along + 1)]
        return Counter([self.row()] * self.down + along * self.pixels)


def _largest(count: int) -> Run:
    return Run(Lane.MAXIMUM, DType.FLOAT32, DType.FLOAT32, (False, False), count)


class PoolFloats(Kernel):
    """Maxima by lanes of two."""

    name = "pool_f32_1x8_dsp"
    operators = (MaxPool2D,)
    needs = Feature.FPU
    cycles = 170

    def suits(self, target: Target) -> bool:
        return target.has(Feature.DSP)

    def reject(self, node: Node) -> Refusal | None:
        if node.output.dtype is not DType.FLOAT32:
            return Refusal.TYPES
        rows = _Rows.of(node)
        if rows.image.images != 1:
            return Refusal.IMAGES
        if not rows.is_plain(Extents.of(node.output.type)):
            return Refusal.WINDOWS
        return None if 0 < rows.shape[1] <= _LONGEST else Refusal.SIZES

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return math.prod(_Rows.of(node).shape) * DType.FLOAT32.bytes

    def instructions(self, node: Node, _calls: Calls) -> int:
        rows = _Rows.of(node).calls()
        row = sum(times * (_LANES.of_run(run) + _CALL) for run, times in rows.items())
        return node.output.type.rows * (row + _ROW)

    def code_bytes(self, node: Node) -> int:
        return sum(_LANES.bytes_of_run(run) for run in _Rows.of(node).calls())

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit what is around the image once, and the steps of each row."""
        rows = _Rows.of(layer.node)
        x, y = layer.input_rows(0), layer.output_rows()
        down, columns, channels = rows.windows.rows, rows.windows.columns, rows.channels
        scratch = ir.Buffer("scratch", rows.shape, DType.FLOAT32, alignment=4)
        whole, inside = rows.down % 2, columns.before * channels
        temporary = (1 - whole, 2)

        def around(first: int, stop: int) -> ir.Stmt:
            if first == stop:
                return seq()
            return loop("i", first, stop, lambda i: store(scratch, (whole, i), _LOWEST))

        def row_of(output: te.Expr, tap: int) -> ir.BufferArgument:
            row = te.clamp(output * down.stride + (tap - down.before), 0, rows.image.height - 1)
            return x.at(row, 0, 0)

        def over_rows(output: te.Expr, step: int) -> ir.Stmt:
            before = row_of(output, 0) if step == 1 else at(scratch, (step - 1) % 2, inside)
            other = row_of(output, min(step, down.taps - 1))
            return call(_LANES.lane(rows.row()), before, other, at(scratch, step % 2, inside))

        def over_columns(output: te.Expr, pixel: te.Expr, step: int) -> ir.Stmt:
            first, tap = pixel * (columns.stride * channels), min(step, columns.taps - 1)
            so_far = at(scratch, temporary[step % 2], 0) if step > 1 else at(scratch, whole, first)
            is_last = step == rows.along
            to = y.at(output, pixel, 0) if is_last else at(scratch, temporary[(step + 1) % 2], 0)
            other = at(scratch, whole, first + tap * channels)
            return call(_LANES.lane(rows.column(step)), so_far, other, to)

        def pixel(output: te.Expr, number: te.Expr) -> ir.Stmt:
            return seq(*(over_columns(output, number, 1 + n) for n in range(rows.along)))

        def row(output: te.Expr) -> ir.Stmt:
            steps = (over_rows(output, 1 + n) for n in range(rows.down))
            return seq(*steps, each("pixel", rows.pixels, lambda n: pixel(output, n)))

        borders = around(0, inside), around(inside + rows.row().count, rows.shape[1])
        return layer.function(name, scratch, seq(*borders, loop("row", layer.y0, layer.y1, row)))
