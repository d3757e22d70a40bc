"""Depthwise convolutions, four channels at a time.

The rows behind an output row are copied into scratch with their borders filled, so that the kernel
needs no test and rings need no special case; without padding and rings it reads the input itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.graph.ir import Node
from microtir.graph.ops import DepthwiseConv2D
from microtir.graph.quantization import conv_params
from microtir.lowering.convolution import windows_of
from microtir.lowering.dsp.code import at, let, loop, seq, store, when
from microtir.lowering.dsp.depthwise_kernels import (
    QUAD,
    WORD_ORDER,
    Taps,
    channel_order,
    copy,
    depthwise,
)
from microtir.lowering.dsp.linear import constant, requantised
from microtir.lowering.dsp.micro_kernel import call
from microtir.lowering.dsp.requantise import Requantisation
from microtir.lowering.layer import Extents, Layer
from microtir.lowering.window import Windows
from microtir.tir import ir
from microtir.tir.dtype import DType

_IMMEDIATE = 4095  # largest offset of a load
_TAPS = 64  # they are all unrolled; more make too much code
_LARGEST = 0xFFFF  # what MOVW loads


@dataclass(frozen=True, slots=True)
class Geometry:
    """Shapes of a depthwise convolution; `padded` is the width of a row with its borders."""

    windows: Windows
    image: Extents
    output: Extents
    padded: int

    @staticmethod
    def of(node: Node) -> Geometry:
        windows, output = windows_of(node), Extents.of(node.output.type)
        columns = windows.columns
        padded = (output.width - 1) * columns.stride + (columns.taps - 1) * columns.dilation + 1
        return Geometry(windows, Extents.of(node.inputs[0].type), output, padded)

    @property
    def copied(self) -> int:
        """Columns of a row of the input that windows reach."""
        return min(self.image.width, self.padded - self.windows.columns.before)

    def taps(self, row_step: int) -> Taps:
        rows, columns = self.windows.rows, self.windows.columns
        return Taps(
            rows.taps, columns.taps, row_step, columns.dilation, columns.stride,
            self.image.channels,
        )  # fmt: skip

    @property
    def copied_taps(self) -> Taps:
        """The window in scratch, whose rows follow each other even if the kernel is dilated."""
        return self.taps(self.padded * self.image.channels)

    @property
    def direct_taps(self) -> Taps:
        """The window in a whole input."""
        return self.taps(self.windows.rows.dilation * self.image.width * self.image.channels)

    @property
    def pixels(self) -> int:
        """Pixels of one call."""
        return min(2, self.output.width)


def _factors(node: Node) -> Requantisation | None:
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, DepthwiseConv2D) and weights is not None
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    return requantised(weights.reshape(-1, weights.shape[-1]).T, node, params)


def accepts(node: Node) -> bool:
    """int8, one image, one output per input channel, at least one word of channels."""
    op = node.op
    if not isinstance(op, DepthwiseConv2D) or node.inputs[0].dtype is not DType.INT8:
        return False
    if node.inputs[1].data is None or op.depth_multiplier != 1:
        return False
    geometry = Geometry.of(node)
    channels, pixels = geometry.image.channels, geometry.pixels
    fits = (
        channels >= QUAD
        and geometry.image.images == 1
        and geometry.copied_taps.count <= _TAPS
        and geometry.copied_taps.reach(pixels) <= _IMMEDIATE
        and pixels * channels <= _IMMEDIATE
        and 0 < geometry.copied * channels <= _LARGEST
    )
    return fits and _factors(node) is not None


def scratch_bytes(node: Node) -> int:
    """Of one window of rows with their borders."""
    geometry = Geometry.of(node)
    return geometry.windows.rows.taps * geometry.padded * geometry.image.channels


def cost(node: Node, pixels: int = 2) -> int:
    """Instructions of a kernel for `pixels` pixels, from counts of the emulated Cortex-M4."""
    geometry = Geometry.of(node)
    output, taps = geometry.output, geometry.copied_taps
    elements = output.height * output.width * output.channels
    copied = output.height * taps.rows * geometry.copied * output.channels
    pair = min(pixels, output.width) == 2  # shares inputs: 7 instructions for 4 products, not 8
    sums = taps.count * 7 // 4 + 6 if pair else taps.count * 2 + 9
    return elements * sums + copied * 5 // 8 + output.height * 60


def code_bytes(node: Node, pixels: int = 2) -> int:
    """Of the kernels; other layers may use the same."""
    geometry = Geometry.of(node)
    width, taps = geometry.output.width, geometry.copied_taps.count
    single = 190 + 32 * taps
    if pixels == 1 or width == 1:
        return single
    return 250 + 56 * taps + (single if width % 2 else 0)


def emit(layer: Layer, name: str) -> ir.PrimFunc:
    """The layer function: a window of rows in scratch, then two pixels at a time."""
    return _Emitter(layer, 2).function(name)


def emit_single(layer: Layer, name: str) -> ir.PrimFunc:
    """The same one pixel at a time, with half the code."""
    return _Emitter(layer, 1).function(name)


def single_cost(node: Node) -> int:
    """Instructions of the form for one pixel at a time."""
    return cost(node, 1)


def single_code_bytes(node: Node) -> int:
    """Code of the form for one pixel at a time."""
    return code_bytes(node, 1)


class _Emitter:
    def __init__(self, layer: Layer, together: int) -> None:
        node = layer.node
        self.together = together  # pixels of one call
        self.layer = layer
        self.geometry = Geometry.of(node)
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        geometry, channels = self.geometry, self.geometry.image.channels
        inside = not geometry.windows.clip(geometry.output)
        in_reach = geometry.direct_taps.reach(geometry.pixels) <= _IMMEDIATE
        self.reads_input = inside and self.x.is_whole and in_reach
        shape = (geometry.windows.rows.taps, geometry.padded, channels)
        self.window = ir.Buffer("scratch", shape, DType.INT8, alignment=4)
        self.zero_point = node.inputs[0].type.quant.zero_point
        factors = _factors(node)
        assert factors is not None, "accepts() was asked"
        self.rescaling = factors.rescaling
        order = channel_order(channels)
        self.constants = constant("constants", factors.constants[order])
        self.weights = constant("weights", _arrange(layer.data(1), order))

    def function(self, name: str) -> ir.PrimFunc:
        if self.reads_input:
            return self.layer.function(name, None, self.rows(self.from_input))
        body = seq(self.fill_borders(), self.rows(self.from_window))
        return self.layer.function(name, self.window, body)

    def rows(self, row_of: Callable[[te.Expr], ir.Stmt]) -> ir.Stmt:
        return loop("row", self.layer.y0, self.layer.y1, row_of)

    def from_input(self, row: te.Expr) -> ir.Stmt:
        """One output row from an input that holds every window as it is."""
        top = row * self.geometry.windows.rows.stride
        taps = self.geometry.direct_taps
        return self.pixels(row, taps, lambda column: self.x.at(top, column, 0))

    def from_window(self, row: te.Expr) -> ir.Stmt:
        """One output row from scratch."""
        rows = self.geometry.windows.rows

        def tap(ky: te.Expr) -> ir.Stmt:
            return let(
                "y", row * rows.stride - rows.before + ky * rows.dilation,
                lambda y: when(
                    (y >= 0) & (y < rows.size), self.copy_row(ky, y), self.fill_row(ky)
                ),
            )  # fmt: skip

        taps = self.geometry.copied_taps
        return seq(
            loop("ky", 0, rows.taps, tap),
            self.pixels(row, taps, lambda column: at(self.window, 0, column, 0)),
        )

    def pixels(
        self, row: te.Expr, taps: Taps, source: Callable[[te.Expr], ir.BufferArgument]
    ) -> ir.Stmt:
        """Two pixels at a time, and the last one of an odd width by itself; or all of them."""
        width, stride = self.geometry.output.width, self.geometry.windows.columns.stride
        pairs = width // 2 if self.together == 2 else 0

        def some(count: int, column: te.Expr) -> ir.Stmt:
            return call(
                depthwise(count, taps, self.rescaling),
                source(column * stride),
                at(self.weights, 0, 0, 0),
                at(self.constants, 0, 0),
                self.y.at(row, column, 0),
            )

        return seq(
            loop("pair", 0, pairs, lambda pair: some(2, pair * 2)),
            loop("col", pairs * 2, width, lambda column: some(1, column)),
        )

    # --- the window in scratch ---

    def fill_borders(self) -> ir.Stmt:
        """The columns left and right of the image, once: rows are copied between them."""
        before = self.geometry.windows.columns.before
        after = before + self.geometry.copied
        taps = self.geometry.windows.rows.taps
        parts = [(a, b) for a, b in ((0, before), (after, self.geometry.padded)) if a < b]
        if not parts:
            return seq()
        return loop("ky", 0, taps, lambda ky: seq(*(self.fill(ky, a, b) for a, b in parts)))

    def fill_row(self, ky: te.Expr) -> ir.Stmt:
        """A row outside the image."""
        before = self.geometry.windows.columns.before
        return self.fill(ky, before, before + self.geometry.copied)

    def fill(self, ky: te.Expr, first: int, stop: int) -> ir.Stmt:
        channels = self.geometry.image.channels
        return loop(
            "col", first, stop,
            lambda column: loop(
                "ch", 0, channels,
                lambda channel: store(self.window, (ky, column, channel), self.zero_point),
            ),
        )  # fmt: skip

    def copy_row(self, ky: te.Expr, y: te.Expr) -> ir.Stmt:
        geometry = self.geometry
        size = geometry.copied * geometry.image.channels
        target = at(self.window, ky, geometry.windows.columns.before, 0)
        return call(copy(size), self.x.at(y, 0, 0), target)


def _arrange(weights: npt.NDArray[np.int8], order: list[int]) -> npt.NDArray[np.int16]:
    """Weights (1, KH, KW, C) as (words, taps, 4), the channels of a word in WORD_ORDER."""
    wide = weights.astype(np.int16)[..., order]
    by_word = wide.reshape(-1, len(order) // QUAD, QUAD)[:, :, list(WORD_ORDER)]
    arranged: npt.NDArray[np.int16] = by_word.transpose(1, 0, 2)
    return arranged
