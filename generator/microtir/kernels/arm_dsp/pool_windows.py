"""MAX_POOL_2D by words: windows inside the image are read where they lie, a row of them a call."""

from __future__ import annotations

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.pooling import WORDS
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.pool_runs import Pool, PoolByRuns
from microtir.kernels.common.printed import printed
from microtir.kernels.common.runs import Taps
from microtir.kernels.common.statements import load, loop, seq, store, when
from microtir.operators.common.rows import RowWindow
from microtir.operators.common.windows import Window
from microtir.operators.pooling.definition import MaxPool2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TEMPLATE = "kernels/pool_windows.j2"
_WORD = 4  # channels
_LONGEST_STEP = 0xFFFF  # between pixels: what MOVW loads
_FARTHEST = 4095  # from the first channel of a window to one of another tap: what a load takes
_ROW, _RUN = 14, 16  # instructions around a row of windows, and around a run


class MaxWindows(PoolByRuns):
    """Maxima of windows inside the image; those that leave it are taken run by run."""

    operators = (MaxPool2D,)

    def __init__(self) -> None:
        super().__init__("pool_s8_1x4_dsp_windows", WORDS)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: taps that a load does not reach, or no window inside."""
        reason = super().reject(node)
        if reason is not None:
            return reason
        pool = Pool.of(node)
        if pool.low != DType.INT8.min:
            return Refusal.CLAMP
        taps = taps_of(pool)
        far = taps.reach(1, 1) > _FARTHEST or taps.pixel_step > _LONGEST_STEP
        inside = _inside(pool.windows.rows, pool.output.height)
        across = _inside(pool.windows.columns, pool.output.width)
        is_empty = not (len(inside) and len(across))
        return Refusal.WINDOWS if far or is_empty else None

    def window(self, _node: Node) -> RowWindow | None:
        """Return None: rows of a ring lie elsewhere."""
        return None

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions: printed ones of windows inside, estimated ones of others."""
        pool = Pool.of(node)
        rows = _inside(pool.windows.rows, pool.output.height)
        columns = _inside(pool.windows.columns, pool.output.width)
        values = _values(taps_of(pool), len(columns), pool.image.channels)
        turns = {"bne 1b": len(columns), "bne 2b": len(columns) * int(str(values["turns"] or 0))}
        inside = len(rows) * (printed(_TEMPLATE, values).instructions(turns) + _ROW)
        return inside + sum(
            self._border(pool, down, across)
            for row, down in enumerate(_taps_inside(pool.windows.rows, pool.output.height))
            for column, across in enumerate(_taps_inside(pool.windows.columns, pool.output.width))
            if row not in rows or column not in columns
        )

    def _border(self, pool: Pool, down: int, across: int) -> int:
        """Return the instructions of an output pixel whose window has so many taps inside."""
        kernels, channels = self.micro_kernels, pool.image.channels
        run, pixel = kernels.run_cost(channels, pool.dtype)
        runs = down * across if pool.windows.columns.clips(pool.output.width) else down
        taken = runs * (_RUN + run) + down * across * pixel
        return taken + kernels.finish_cost(channels, pool.dtype) + kernels.pixel_cost(channels)

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        """Return the bytes for a window that leaves the image, if there is one."""
        return super().scratch_bytes(node, calls) if Pool.of(node).clips else 0

    def code_bytes(self, node: Node) -> int:
        pool = Pool.of(node)
        values = _values(taps_of(pool), pool.output.width, pool.image.channels)
        return printed(_TEMPLATE, values).bytes + pool.clips * super().code_bytes(node)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit rows of windows inside as one call each, and what is beside them pixel by pixel."""
        pool = Pool.of(layer.node)
        x, y, scratch = layer.input_rows(0), layer.output_rows(), pool.collected()
        rows = _inside(pool.windows.rows, pool.output.height)
        columns = _inside(pool.windows.columns, pool.output.width)
        kernel = _max_windows(taps_of(pool), len(columns), pool.image.channels)

        def border(row: te.Expr, across: range) -> ir.Stmt:
            pixel = self.pixel(pool, x, y, scratch)
            return loop("col", across.start, across.stop, lambda column: pixel(row, column))

        def row_inside(row: te.Expr) -> ir.Stmt:
            top = row * pool.windows.rows.stride - pool.windows.rows.before
            left = columns.start * pool.windows.columns.stride - pool.windows.columns.before
            inside = call(kernel, x.at(top, left, 0), y.at(row, columns.start, 0))
            beside = range(columns.start), range(columns.stop, pool.output.width)
            return seq(inside, *(border(row, part) for part in beside if part))

        def any_row(row: te.Expr) -> ir.Stmt:
            if len(rows) == pool.output.height:
                return row_inside(row)
            is_inside = (row >= rows.start) & (row < rows.stop)
            return when(is_inside, row_inside(row), border(row, range(pool.output.width)))

        body = loop("row", 0, pool.output.height, any_row)
        return layer.function(name, scratch if pool.clips else None, body)


def taps_of(pool: Pool) -> Taps:
    """Return how the taps of a window lie."""
    rows, columns, channels = pool.windows.rows, pool.windows.columns, pool.image.channels
    row = pool.image.width * channels
    return Taps(rows.taps, columns.taps, row, channels, columns.stride * channels)


def _inside(window: Window, count: int) -> range:
    """Return the outputs along an axis whose windows do not leave the image."""
    first = -(-window.before // window.stride)
    last = (window.size - window.taps + window.before) // window.stride
    return range(first, max(first, min(last + 1, count)))


def _taps_inside(window: Window, count: int) -> list[int]:
    """Return for each output along an axis how many taps of its window lie inside."""
    firsts = (output * window.stride - window.before for output in range(count))
    return [min(first + window.taps, window.size) - max(first, 0) for first in firsts]


@made_once
def _max_windows(taps: Taps, pixels: int, channels: int) -> KernelDescription:
    """Compute maxima of neighbouring windows; parameters: the first window, the output."""
    x = ir.Buffer("x", (taps.reach(pixels, channels),), DType.INT8)
    y = ir.Buffer("y", (pixels * channels,), DType.INT8)

    def element(pixel: te.Expr, channel: te.Expr) -> te.Expr:
        first = pixel * taps.pixel_step + channel
        value = load(x, first)
        for offset in _offsets(taps):
            value = te.maximum(value, load(x, first + offset))
        return value

    return describe(
        f"max_windows{pixels}x{channels}_{taps.name}",
        (f"Largest of {pixels} windows of {taps.count} pixels of {channels} channels",),
        (x, y),
        (y,),
        loop("pixel", 0, pixels, lambda p: loop(
            "channel", 0, channels, lambda c: store(y, (p * channels + c,), element(p, c)),
        )),
        _TEMPLATE,
        _values(taps, pixels, channels),
        stack_bytes=24,
        needs=Feature.DSP,
    )  # fmt: skip


def _offsets(taps: Taps) -> list[int]:
    """Return how far the other taps of a window are from its first one."""
    places = [
        row * taps.row_step + column * taps.column_step
        for row in range(taps.rows)
        for column in range(taps.columns)
    ]
    return places[1:]


def _values(taps: Taps, pixels: int, channels: int) -> dict[str, object]:
    turns, rest = divmod(channels, _WORD)
    return {
        "pixels": str(pixels),
        "offsets": [str(offset) for offset in _offsets(taps)],
        "turns": str(turns) if turns else "",
        "back": str(_WORD - rest) if turns and rest else "",
        "rest": str(rest) if not turns else "",
        "step": str(taps.pixel_step),
        "is_far": taps.pixel_step > _FARTHEST,
        "channels": str(channels),
    }
