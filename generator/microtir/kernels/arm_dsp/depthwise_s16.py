"""Depthwise convolutions of int16: some pixels of two channels at a time."""

from __future__ import annotations

from functools import partial

import numpy as np

from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import blocks_s16, copying, depthwise_blocks_s16, float_rescaling
from microtir.kernels.common import refusals, runs, statements
from microtir.kernels.common.bordered_rows import copy_cost, scratch_bytes, window_rows
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.finish_s16 import Found16, finish16, pack_words
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Nhwc, Product, Tile, cut, macro_kernel
from microtir.kernels.common.packing import channel_bytes, constant
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_MOST_TAPS = 64  # they are all printed; more make too much code


class Depthwise16(float_rescaling.FloatRescaling):
    """A kernel for up to four pixels of two channels, or two pixels where sums are wide.

    Args:
        name: of the kernel.
        cycles: of 100 instructions.
        wide: whether sums have 64 bits.
    """

    operators = (DepthwiseConv2D,)
    needs = Feature.DSP
    depends_on_calls = True

    def __init__(self, name: str, cycles: int, *, wide: bool = False) -> None:
        self.name, self.cycles, self.has_wide_sums = name, cycles, wide

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against types, windows and channels, and factors, in this order."""
        reason = refusals.type_refusal(node, DType.INT16) or refusals.channelwise_refusal(node)
        if reason is not None:
            return reason
        geometry = Geometry.of(node)
        if geometry.image.channels < blocks_s16.PAIR:
            return Refusal.FEW_CHANNELS
        finish = self._finish(node)
        if finish is None:
            return Refusal.FORM
        single = _block(geometry, 1, finish)
        is_small = single.taps.count <= _MOST_TAPS and single.reaches
        return None if is_small else Refusal.SIZES

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        """Return the bytes of rows between borders, if windows need these, or of rows of a ring."""
        return scratch_bytes(node) if Geometry.of(node).is_bordered or calls.rows else 0

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions of all blocks, as they are printed, and of copied rows."""
        geometry, finish = Geometry.of(node), refusals.asked(self._finish(node))
        row = _row_cost(geometry, self._pixels(geometry, finish), finish)
        moved = partial(copying.copied, dtype=DType.INT16)
        copies = copy_cost(node, by_rows=calls.rows > 0, copied=moved)
        return geometry.output.height * row + copies

    def code_bytes(self, node: Node) -> int:
        geometry, finish = Geometry.of(node), refusals.asked(self._finish(node))
        pixels = self._pixels(geometry, finish)
        counts = {pixels, geometry.output.width % pixels or pixels}
        return sum(_block(geometry, count, finish).printed.bytes for count in counts)

    def packed_bytes(self, node: Node) -> int:
        _, rows, columns, channels = node.inputs[1].shape
        taps, finish = rows * columns * DType.INT16.bytes, refusals.asked(self._finish(node))
        return channel_bytes(channels, blocks_s16.PAIR, taps, finish[1].shape[1])

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: blocks of pixels of each row, then those that are left."""
        geometry, own_finish = Geometry.of(layer.node), refusals.asked(self._finish(layer.node))
        x, finish = layer.input_rows(0), own_finish[0]
        source = window_rows(x, geometry, lambda size: copying.copy(size, DType.INT16))
        taps, channels = _taps(geometry, source.row_step), geometry.image.channels

        def kernel(pixels: int) -> KernelDescription:
            return depthwise_blocks_s16.depthwise_block(
                depthwise_blocks_s16.DepthwiseBlock16(pixels, channels, taps, finish)
            )

        weights = depthwise_blocks_s16.pack_taps(layer.data(1)[0].astype(np.int8))
        constants = (
            statements.at(constant("weights", weights), 0, 0, 0, 0),
            statements.at(constant("constants", pack_words(own_finish, blocks_s16.PAIR)), 0, 0),
        )
        counts = (Count(self._pixels(geometry, own_finish), "block", unit=1),)
        tile = Tile(counts, (Product(kernel, constants),))
        width = geometry.output.width
        return macro_kernel(layer, name, width, source, tile, Nhwc(layer.output_rows()))

    def _finish(self, node: Node) -> Found16 | None:
        return finish16(node, wide=self.has_wide_sums)

    def _pixels(self, geometry: Geometry, finish: Found16) -> int:
        """Return the pixels of a block: what makes a row of the output cheapest."""
        most = min(2 if self.has_wide_sums else 4, geometry.output.width)
        counts = [n for n in range(1, most + 1) if _block(geometry, n, finish).reaches]
        return min(counts, key=lambda n: _row_cost(geometry, n, finish))


def _taps(geometry: Geometry, row_step: int) -> runs.Taps:
    windows, channels = geometry.windows, geometry.image.channels
    rows, columns = windows.rows, windows.columns
    steps = columns.dilation * channels, columns.stride * channels
    return runs.Taps(rows.taps, columns.taps, row_step, *steps)


def _block(
    geometry: Geometry, pixels: int, finish: Found16
) -> depthwise_blocks_s16.DepthwiseBlock16:
    """Return a block, with rows as in scratch."""
    taps = _taps(geometry, geometry.copied_step)
    return depthwise_blocks_s16.DepthwiseBlock16(pixels, geometry.image.channels, taps, finish[0])


def _row_cost(geometry: Geometry, pixels: int, finish: Found16) -> int:
    """Return the instructions of a row of the output, in blocks of so many pixels."""
    blocks = cut(geometry.output.width, (Count(pixels, "block", unit=1),))
    return sum(
        some.times * (_block(geometry, some.pixels, finish).instructions + 12) for some in blocks
    )
