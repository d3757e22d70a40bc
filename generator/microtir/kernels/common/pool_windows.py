"""Pooling over windows that are read where they lie, a row of them a call.

Windows that leave the image are windows of fewer taps: those along an axis that have equally many
are one part of it, and a pair of parts, of rows and of columns, is a micro-kernel.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from itertools import groupby

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.pool_runs import Pool
from microtir.kernels.common.runs import Taps
from microtir.kernels.common.statements import each, let, load, loop, seq, store
from microtir.measure.printed import printed
from microtir.operators.common.rows import RowWindow
from microtir.operators.common.windows import Window
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_LONGEST_STEP = 0xFFFF  # between pixels: what MOVW loads
FARTHEST = 4095  # from the first channel of a window to one of another tap: what a load takes
_DIVIDED = range(3, 129)  # taps of an average, whose sums and reciprocal are 16 and 31 bits
_MOST = 49  # pairs of parts


class PoolWindows(Kernel):
    """Maxima and averages of windows, also of those that leave the image."""

    operators = (AveragePool2D, MaxPool2D)
    types: tuple[DType, ...]
    needs: Feature
    template: str
    around_row = 14  # instructions around a row of windows
    stack_bytes: tuple[int, int]  # of maxima, and of averages

    @abstractmethod
    def values(
        self, taps: Taps, pixels: int, channels: int, dtype: DType, *, averages: bool
    ) -> Mapping[str, object]:
        """Return what the template is given."""

    @abstractmethod
    def turns(
        self, pixels: int, channels: int, dtype: DType, *, averages: bool
    ) -> Mapping[str, int]:
        """Return how often its loops run."""

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: clamps, taps that a load does not reach, a whole image."""
        dtype = node.inputs[0].dtype
        if dtype not in self.types:
            return Refusal.TYPES
        pool = Pool.of(node)
        if (pool.low, pool.high) != (dtype.min, dtype.max):
            return Refusal.CLAMP
        taps, size = taps_of(pool), dtype.bytes
        if taps.reach(1, 1) * size > FARTHEST or taps.pixel_step * size > _LONGEST_STEP:
            return Refusal.SIZES
        if pool.averages and pool.is_run:
            return Refusal.WINDOWS
        counts = [part.taps.count for part in _parts(pool)]
        divides = not pool.averages or all(count in _DIVIDED for count in counts)
        return None if divides and len(counts) <= _MOST else Refusal.WINDOWS

    def window(self, _node: Node) -> RowWindow | None:
        """Return None: rows of a ring lie elsewhere."""
        return None

    def instructions(self, node: Node, _calls: Calls) -> int:
        pool = Pool.of(node)
        rows = (self._of_part(pool, part, node.output.dtype) for part in _parts(pool))
        return pool.image.images * sum(rows)

    def _of_part(self, pool: Pool, part: _Part, dtype: DType) -> int:
        pixels = len(part.columns.outputs)
        channels, averages = pool.image.channels, pool.averages
        values = self.values(part.taps, pixels, channels, dtype, averages=averages)
        turns = self.turns(pixels, channels, dtype, averages=averages)
        row = printed(self.template, values).instructions(turns) + self.around_row
        return len(part.rows.outputs) * row

    def code_bytes(self, node: Node) -> int:
        pool, dtype = Pool.of(node), node.output.dtype
        kernels = {(part.taps, len(part.columns.outputs)) for part in _parts(pool)}
        channels, averages = pool.image.channels, pool.averages
        values = (self.values(*k, channels, dtype, averages=averages) for k in kernels)
        return sum(printed(self.template, value).bytes for value in values)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit loops over the rows of each part, around a call for each part of the columns."""
        pool = Pool.of(layer.node)
        x, y, channels = layer.input_rows(0), layer.output_rows(), pool.image.channels

        def row(image: te.Expr, row: te.Expr, parts: list[_Part]) -> ir.Stmt:
            return seq(*(
                call(
                    _windows(
                        self, part.taps, len(part.columns.outputs), channels, y.buffer.dtype,
                        averages=pool.averages,
                    ),
                    x.at(image * pool.image.height + part.rows.first(row), part.columns.begin, 0),
                    y.at(image * pool.output.height + row, part.columns.outputs.start, 0),
                )
                for part in parts
            ))  # fmt: skip

        def rows(image: te.Expr) -> ir.Stmt:
            by_rows = groupby(_parts(pool), key=lambda part: part.rows)
            return seq(*(
                _rows_of(axis.outputs, image, list(parts), row) for axis, parts in by_rows
            ))  # fmt: skip

        return layer.function(name, None, each("image", pool.image.images, rows))


def _rows_of(
    outputs: range, image: te.Expr, parts: list[_Part],
    body: Callable[[te.Expr, te.Expr, list[_Part]], ir.Stmt],
) -> ir.Stmt:  # fmt: skip
    if len(outputs) == 1:
        return body(image, te.as_expr(outputs.start, DType.INT32), parts)
    return loop("row", outputs.start, outputs.stop, lambda row: body(image, row, parts))


@dataclass(frozen=True, slots=True)
class _AxisPart:
    """Outputs along an axis whose windows have equally many taps inside."""

    outputs: range
    taps: int
    stride: int
    before: int

    @property
    def begin(self) -> int:
        """Return the first input of the first window."""
        return max(self.outputs.start * self.stride - self.before, 0)

    def first(self, output: te.Expr) -> te.Expr:
        if len(self.outputs) == 1:
            return te.as_expr(self.begin, DType.INT32)
        return output * self.stride - self.before


@dataclass(frozen=True, slots=True)
class _Part:
    """Parts of both axes, and the taps of their windows."""

    rows: _AxisPart
    columns: _AxisPart
    taps: Taps


def _parts(pool: Pool) -> Iterator[_Part]:
    """Yield the parts of an image, those of the same rows one after the other."""
    whole = taps_of(pool)
    for rows in _along(pool.windows.rows, pool.output.height):
        for columns in _along(pool.windows.columns, pool.output.width):
            yield _Part(rows, columns, replace(whole, rows=rows.taps, columns=columns.taps))


def _along(window: Window, count: int) -> list[_AxisPart]:
    """Return the parts of an axis; a window that begins outside is one of its own."""

    def of(output: int) -> tuple[int, int]:
        first = output * window.stride - window.before
        taps = min(first + window.taps, window.size) - max(first, 0)
        return taps, output if first < 0 else -1

    groups = [(key, list(group)) for key, group in groupby(range(count), key=of)]
    return [
        _AxisPart(range(group[0], group[-1] + 1), taps, window.stride, window.before)
        for (taps, _), group in groups
    ]


def taps_of(pool: Pool) -> Taps:
    """Return how the taps of a window lie."""
    rows, columns, channels = pool.windows.rows, pool.windows.columns, pool.image.channels
    row = pool.image.width * channels
    return Taps(rows.taps, columns.taps, row, channels, columns.stride * channels)


@made_once
def _windows(
    kernel: PoolWindows, taps: Taps, pixels: int, channels: int, dtype: DType, *, averages: bool
) -> KernelDescription:
    """Compute neighbouring windows; parameters: the first one, the output."""
    x = ir.Buffer("x", (taps.reach(pixels, channels),), dtype)
    y = ir.Buffer("y", (pixels * channels,), dtype)

    def element(pixel: te.Expr, channel: te.Expr) -> ir.Stmt:
        first, place = pixel * taps.pixel_step + channel, (pixel * channels + channel,)
        values = [load(x, first), *(load(x, first + offset) for offset in offsets_of(taps))]
        if not averages:
            return store(y, place, reduce(te.maximum, values))
        wide = [te.cast(DType.INT32, value) for value in values]
        return let("total", reduce(lambda a, b: a + b, wide), lambda t: store(
            y, place, te.cast(dtype, te.truncdiv(te.select(t > 0, t + half, t - half), count))
        ))  # fmt: skip

    count, half = taps.count, taps.count // 2
    what = f"{'Means' if averages else 'Largest'} of {pixels} windows"
    of_type = "" if dtype is DType.INT8 else f"_{dtype.value}"
    return describe(
        f"{'average' if averages else 'max'}_windows{pixels}x{channels}_{taps.name}{of_type}",
        (f"{what} of {taps.count} pixels of {channels} channels",),
        (x, y),
        (y,),
        loop("pixel", 0, pixels, lambda p: loop("channel", 0, channels, lambda c: element(p, c))),
        kernel.template,
        kernel.values(taps, pixels, channels, dtype, averages=averages),
        stack_bytes=kernel.stack_bytes[averages],
        needs=kernel.needs,
    )  # fmt: skip


def offsets_of(taps: Taps) -> list[int]:
    """Return how far the other taps of a window are from its first one."""
    places = [
        row * taps.row_step + column * taps.column_step
        for row in range(taps.rows)
        for column in range(taps.columns)
    ]
    return places[1:]
