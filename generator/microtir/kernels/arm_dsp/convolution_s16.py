"""Convolutions of int16: blocks of pixels and output channels, straight from rows of the input.

Nothing is widened, and the zero point is 0, so that no patch is gathered; rows are copied between
borders where windows leave the image.  A depthwise convolution of one input channel is a
convolution.  Channels in groups are some of each pixel, and outputs of a phase of a transposed
convolution lie apart.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.blocks_s16 import (
    IMMEDIATE,
    PAIR,
    Block16,
    block,
    pack_weights,
    packed_bytes,
)
from microtir.kernels.arm_dsp.copying import copied, copy
from microtir.kernels.arm_dsp.float_rescaling import FloatRescaling
from microtir.kernels.common import bordered_rows, packing, refusals
from microtir.kernels.common.bordered_rows import scratch_bytes
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.finish_s16 import Finish16, Found16, finish16, pack_words
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.macro_kernel import (
    Count,
    Groups,
    Nhwc,
    Product,
    Sink,
    Tile,
    all_blocks,
    pixel_loops,
)
from microtir.kernels.common.phase_kernel import PhaseKernel
from microtir.kernels.common.phases import Phase, SpreadPixels
from microtir.kernels.common.runs import Runs
from microtir.kernels.common.statements import at
from microtir.kernels.common.weights import matrix_of
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir


class Convolution16(FloatRescaling, PhaseKernel):
    """Two pixels by four channels, or by two where sums are wide.

    Args:
        name: of the kernel.
        cycles: of 100 instructions.
        wide: whether sums have 64 bits.
    """

    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.DSP
    depends_on_calls = True

    def __init__(self, name: str, cycles: int, *, wide: bool = False) -> None:
        self.name, self.cycles, self.has_wide_sums = name, cycles, wide

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int16 over one image, and factors that fit the sequences of `finish_s16`.
        """
        geometry = Geometry.of(node)
        reason = refusals.type_refusal(node, DType.INT16)
        if reason is None and not geometry.has_one_image:
            reason = Refusal.IMAGES
        if not isinstance(node.op, Conv2D):
            reason = reason or refusals.mixed_refusal(node)
        if reason is None and geometry.output.channels < PAIR:
            reason = Refusal.FEW_CHANNELS
        if reason is not None:
            return reason
        return Refusal.FORM if self._finish(node) is None else None

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        """Return the bytes of rows between borders, if windows need these, or of rows of a ring."""
        geometry = Geometry.of(node)
        if not (geometry.is_bordered or calls.rows):
            return 0
        return scratch_bytes(node)

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions of all blocks, as they are printed, and of copied rows."""
        geometry, largest = Geometry.of(node), self._block(node)
        counts, spans_rows = _counts(largest), geometry.is_pointwise
        blocks = all_blocks(geometry.output, calls, counts, spans_rows=spans_rows)
        products = (times * (_of(largest, n).instructions + 12) for times, n in blocks)
        moved = partial(copied, dtype=DType.INT16)
        copies = bordered_rows.copy_cost(node, by_rows=calls.rows > 0, copied=moved)
        return copies + geometry.groups * sum(products)

    def code_bytes(self, node: Node) -> int:
        geometry, largest = Geometry.of(node), self._block(node)
        width = geometry.output.width
        has_rest = largest.pixels > 1 and width % largest.pixels
        singles = _of(largest, 1).printed.bytes if has_rest else 0
        return largest.printed.bytes + singles + 60

    def packed_bytes(self, node: Node) -> int:
        geometry, finish = Geometry.of(node), refusals.asked(self._finish(node))
        return geometry.groups * packed_bytes(self._block(node), _of_group(finish, geometry, 0))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: blocks of pixels, then what is left of a row or a line."""
        x, sink = layer.input_rows(0), Nhwc(layer.output_rows())
        source = _source(layer.node, x, is_line=x.is_whole and sink.is_line)
        loops = self._loops(layer.node, (layer.y0, layer.y1), source, sink)
        return layer.function(name, source.scratch, loops)

    def phase_loops(self, phase: Phase, x: Rows, y: Rows, scratch: ir.Buffer) -> ir.Stmt:
        source = _source(phase.node, x, is_line=False, scratch=scratch)
        rows = 0, Geometry.of(phase.node).output.height
        return self._loops(phase.node, rows, source, SpreadPixels(y, phase), phase.step)

    def _loops(
        self,
        node: Node,
        rows: tuple[te.ExprLike, te.ExprLike],
        source: bordered_rows.WindowRows,
        sink: Sink,
        step: int = 1,
    ) -> ir.Stmt:
        """Return the loops over pixels, which are `step` apart in the output."""
        geometry, finish = Geometry.of(node), refusals.asked(self._finish(node))
        largest = self._block(node, source.row_step, step)
        channels, inputs = geometry.output.channels, geometry.image.channels
        of_groups = [slice(n * channels, (n + 1) * channels) for n in range(geometry.groups)]
        weights = [pack_weights(matrix_of(node)[of], largest) for of in of_groups]
        words = [
            pack_words(_of_group(finish, geometry, n), largest.channels)
            for n in range(geometry.groups)
        ]
        packed = packing.constant("weights", np.concatenate(weights))
        constants = packing.constant("constants", np.concatenate(words))

        def product(group: te.Expr) -> Product:
            turn = group * largest.turns
            places = at(packed, turn, *[0] * 6), at(constants, turn, 0)
            return Product(
                lambda pixels: block(_of(largest, pixels)), places, group * channels, group * inputs
            )

        tile = Tile(_counts(largest), Groups(geometry.groups, product))
        return pixel_loops(rows, geometry.output.width, source, tile, sink)

    def _finish(self, node: Node) -> Found16 | None:
        return finish16(node, wide=self.has_wide_sums)

    def _block(self, node: Node, row_step: int | None = None, step: int = 1) -> Block16:
        """Return the largest block; rows lie as in scratch, unless their step is given.

        Args:
            node: the convolution.
            row_step: elements from a row of a window to the next one.
            step: pixels of the layer's output from one of the convolution's to the next one.
        """
        geometry, finish = Geometry.of(node), refusals.asked(self._finish(node))
        copied = geometry.of_all_groups.copied_step
        runs = _runs(geometry, copied if row_step is None else row_step)
        output, size = geometry.output, DType.INT16.bytes
        distance = output.channels * geometry.groups * step
        width = output.width * (node.output.type.rows if geometry.is_pointwise else 1)
        reach = max(runs.pixel_step, distance + PAIR**2) * size
        sums = 4 if self.has_wide_sums else 8
        pixels = 2 if width > 1 and reach <= IMMEDIATE else 1
        most = min(sums // pixels, output.channels // PAIR * PAIR)
        return best_block(pixels, most, output.channels, runs, finish[0], distance)


def best_block(
    pixels: int, most: int, outputs: int, runs: Runs, finish: Finish16, distance: int = 0
) -> Block16:
    """Return the block of at most so many channels that takes the fewest instructions."""
    blocks = (Block16(pixels, n, outputs, runs, finish, distance) for n in range(most, 0, -PAIR))
    return min(blocks, key=lambda block: block.instructions)


def _of(largest: Block16, pixels: int) -> Block16:
    return replace(largest, pixels=pixels)


def _counts(largest: Block16) -> tuple[Count, ...]:
    pair = (Count(largest.pixels, "pair"),) if largest.pixels > 1 else ()
    return *pair, Count(1, "pixel")


def _runs(geometry: Geometry, row_step: int) -> Runs:
    rows, columns, pitch = geometry.windows.rows, geometry.windows.columns, geometry.pitch
    parts, length = geometry.runs_of_row, geometry.run_values
    return Runs(
        rows.taps, parts, length, row_step, columns.dilation * pitch, columns.stride * pitch
    )


def _source(
    node: Node, x: Rows, *, is_line: bool, scratch: ir.Buffer | None = None
) -> bordered_rows.WindowRows:
    geometry = Geometry.of(node).of_all_groups
    if geometry.is_pointwise and is_line:
        return bordered_rows.DirectRows(x, geometry, is_line=True)
    move = partial(copy, dtype=DType.INT16)
    return bordered_rows.window_rows(x, geometry, move, scratch=scratch)


def _of_group(finish: Found16, geometry: Geometry, group: int) -> Found16:
    form, words = finish
    channels = geometry.output.channels
    return form, words[group * channels : (group + 1) * channels]
