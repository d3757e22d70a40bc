"""Convolutions of int16: blocks of pixels and output channels, straight from rows of the input.

Nothing is widened, and the zero point is 0, so that no patch is gathered; rows are copied between
borders where windows leave the image.  A depthwise convolution of one input channel is a
convolution.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt

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
from microtir.kernels.arm_dsp.copying import copy
from microtir.kernels.arm_dsp.float_rescaling import FloatRescaling
from microtir.kernels.common import bordered_rows, made_once, packing, refusals
from microtir.kernels.common.bordered_rows import scratch_bytes
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.finish_s16 import Finish16, Found16, finish16, pack_words
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import (
    Count,
    Nhwc,
    Product,
    Tile,
    all_blocks,
    macro_kernel,
)
from microtir.kernels.common.runs import Runs
from microtir.kernels.common.statements import at
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, conv_params
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir


def _matrix(node: Node) -> npt.NDArray[np.int8]:
    """Return weights (channels, K)."""
    weights = node.inputs[1].data
    assert weights is not None
    if isinstance(node.op, DepthwiseConv2D):
        weights = weights.transpose(3, 1, 2, 0)
    return weights.reshape(len(weights), -1).astype(np.int8)


def _finish_of(node: Node, *, wide: bool) -> Found16 | None:
    op = node.op
    assert isinstance(op, Conv2D | DepthwiseConv2D)
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    return finish16(node, params, _matrix(node), wide=wide)


_narrow, _wide = (made_once.of_node(partial(_finish_of, wide=wide)) for wide in (False, True))


class Convolution16(FloatRescaling):
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
        return bordered_rows.copy_cost(node, by_rows=calls.rows > 0) + sum(products)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; other layers may use the same."""
        geometry, largest = Geometry.of(node), self._block(node)
        width = geometry.output.width
        has_rest = largest.pixels > 1 and width % largest.pixels
        singles = _of(largest, 1).code_bytes if has_rest else 0
        return largest.code_bytes + singles + 60

    def packed_bytes(self, node: Node) -> int:
        geometry, finish = Geometry.of(node), self._finish(node)
        assert finish is not None, "reject() was asked"
        step = geometry.copied_step if geometry.is_bordered else geometry.direct_step
        return packed_bytes(self._block(node, step), finish)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: blocks of pixels, then what is left of a row or a line."""
        node, geometry = layer.node, Geometry.of(layer.node)
        x, sink, finish = layer.input_rows(0), Nhwc(layer.output_rows()), self._finish(node)
        assert finish is not None, "reject() was asked"
        source: bordered_rows.WindowRows
        if geometry.is_pointwise and x.is_whole and sink.is_line:
            source = bordered_rows.DirectRows(x, geometry, is_line=True)
        else:
            source = bordered_rows.window_rows(x, geometry, lambda size: copy(size, DType.INT16))
        largest = self._block(node, source.row_step)

        def kernel(pixels: int) -> KernelDescription:
            return block(_of(largest, pixels))

        constants = (
            at(packing.constant("weights", pack_weights(_matrix(node), largest)), *[0] * 7),
            at(packing.constant("constants", pack_words(finish, largest.channels)), 0, 0),
        )
        tile = Tile(_counts(largest), (Product(kernel, constants),))
        return macro_kernel(layer, name, geometry.output.width, source, tile, sink)

    def _finish(self, node: Node) -> Found16 | None:
        return (_wide if self.has_wide_sums else _narrow)(node)

    def _block(self, node: Node, row_step: int | None = None) -> Block16:
        """Return the largest block; rows lie as in scratch, unless their step is given."""
        geometry, finish = Geometry.of(node), self._finish(node)
        assert finish is not None, "reject() was asked"
        runs = _runs(geometry, geometry.copied_step if row_step is None else row_step)
        output, size = geometry.output, DType.INT16.bytes
        width = output.width * (node.output.type.rows if geometry.is_pointwise else 1)
        reach = max(runs.pixel_step, output.channels + PAIR**2) * size
        sums = 4 if self.has_wide_sums else 8
        pixels = 2 if width > 1 and reach <= IMMEDIATE else 1
        most = min(sums // pixels, output.channels // PAIR * PAIR)
        return best_block(pixels, most, output.channels, runs, finish[0])


def best_block(pixels: int, most: int, outputs: int, runs: Runs, finish: Finish16) -> Block16:
    """Return the block of at most so many channels that takes the fewest instructions."""
    blocks = (Block16(pixels, n, outputs, runs, finish) for n in range(most, 0, -PAIR))
    return min(blocks, key=lambda block: block.instructions)


def _of(largest: Block16, pixels: int) -> Block16:
    return Block16(pixels, largest.channels, largest.outputs, largest.runs, largest.finish)


def _counts(largest: Block16) -> tuple[Count, ...]:
    pair = (Count(largest.pixels, "pair"),) if largest.pixels > 1 else ()
    return *pair, Count(1, "pixel")


def _runs(geometry: Geometry, row_step: int) -> Runs:
    """Return what a pixel reads."""
    rows, columns, channels = geometry.windows.rows, geometry.windows.columns, geometry.image
    depth = channels.channels
    parts, length = geometry.runs_of_row, geometry.run_values
    return Runs(
        rows.taps, parts, length, row_step, columns.dilation * depth, columns.stride * depth
    )
