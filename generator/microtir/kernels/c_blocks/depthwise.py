"""Depthwise convolutions: the windows of neighbouring pixels share weights and elements."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir.graph.ir import Node
from microtir.kernels.c_blocks.blocks import WindowedBlocks
from microtir.kernels.c_blocks.finish import Finish, Table, finish_of
from microtir.kernels.c_blocks.kernel import copy
from microtir.kernels.c_blocks.kernels import depthwise
from microtir.kernels.common import made_once, packing, refusals, runs, statements
from microtir.kernels.common.bordered_rows import copy_cost, window_rows
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Nhwc, Product, Tile, macro_kernel
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir


@dataclass(frozen=True, slots=True)
class Form:
    """Most pixels of a block, whose sums stay in registers beside a row of weights.

    Products and sums of floats may be kept apart (`no_fp_contract`).  Operands of each row may be
    read `in_turn`; rows are copied `copied` elements at a time.  Clamps of int8
    may be `is_straight`, without a branch.
    """

    pixels: int
    float_pixels: int
    no_fp_contract: bool = False
    in_turn: bool = False
    copied: int = 1
    is_straight: bool = False


FAST = Form(4, 6)  # floats have registers of their own
NO_FP_CONTRACT = replace(FAST, no_fp_contract=True)
WIDE = replace(FAST, pixels=6, in_turn=True, copied=8)  # as that of convolutions
_UNROLLED = 16  # taps


def _weights(node: Node) -> ir.Array:
    """Return weights (channels, rows, columns)."""
    weights = node.inputs[1].values
    by_channel: ir.Array = weights[0].transpose(2, 0, 1)
    return by_channel


@made_once.of_node
def _finish(node: Node, form: Form = FAST) -> tuple[Finish, Table | None] | None:
    return finish_of(node, no_fp_contract=form.no_fp_contract, is_straight=form.is_straight)


def _shape_refusal(node: Node) -> Refusal | None:
    """Return one image, one output per input channel, more than one channel."""
    reason = refusals.channelwise_refusal(node)
    if reason is None and node.inputs[0].shape[-1] == 1:
        return Refusal.FEW_CHANNELS
    return reason


@made_once.of_node
def _refusal(node: Node) -> Refusal | None:
    reason = _shape_refusal(node)
    if reason is not None or node.inputs[0].dtype.is_float:
        return reason
    return Refusal.FORM if _finish(node) is None else None


def _taps(geometry: Geometry, row_step: int) -> runs.Taps:
    rows, columns, channels = (
        geometry.windows.rows,
        geometry.windows.columns,
        geometry.image.channels,
    )
    return runs.Taps(
        rows.taps, columns.taps, row_step, columns.dilation * channels, columns.stride * channels
    )


def _row_cost(taps: runs.Taps, pixels: int, finish: Finish) -> int:
    """Return the instructions of one channel of a block."""
    loads = taps.rows * (taps.loads(pixels) + taps.columns)
    products = taps.count * pixels * finish.per_product
    return loads + products + pixels * finish.instructions + 12


def _pixels(node: Node, finish: Finish, form: Form) -> int:
    """Return the pixels of a block: what makes a row of the output cheapest."""
    geometry = Geometry.of(node)
    taps, width = _taps(geometry, geometry.copied_step), geometry.output.width

    def row(pixels: int) -> int:
        blocks, rest = divmod(width, pixels)
        last = _row_cost(taps, rest, finish) if rest else 0
        return blocks * _row_cost(taps, pixels, finish) + last

    most = form.float_pixels if finish.element.is_float else form.pixels
    return min(range(1, min(most, width) + 1), key=row)


class Depthwise(WindowedBlocks[Form]):
    """Pixels of a channel, whose windows share weights and elements."""

    operators = (DepthwiseConv2D,)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: a type, factors that fit the short requantisation."""
        return refusals.type_refusal(node, self.dtype) or _refusal(node)

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions, from counts of emulated Cortex-M3 and M4."""
        geometry, (finish, _) = Geometry.of(node), refusals.asked(_finish(node, self.form))
        taps, pixels = _taps(geometry, geometry.copied_step), _pixels(node, finish, self.form)
        blocks, rest = divmod(geometry.output.width, pixels)
        row = blocks * _row_cost(taps, pixels, finish)
        row += _row_cost(taps, rest, finish) if rest else 0
        return geometry.output.height * row * geometry.output.channels + copy_cost(
            node, by_rows=calls.rows > 0
        )

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; other layers may use the same."""
        geometry, (finish, _) = Geometry.of(node), refusals.asked(_finish(node, self.form))
        taps, pixels = _taps(geometry, geometry.copied_step), _pixels(node, finish, self.form)
        rest = geometry.output.width % pixels
        return sum(4 * _row_cost(taps, n, finish) + 60 for n in (pixels, rest) if n)

    def packed_bytes(self, node: Node) -> int:
        _, table = refusals.asked(_finish(node, self.form))
        return node.inputs[1].type.bytes + (0 if table is None else table.nbytes)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: blocks of pixels of each row, then those that are left."""
        node, geometry = layer.node, Geometry.of(layer.node)
        finish, rows = refusals.asked(_finish(node, self.form))
        weights = packing.constant("weights", _weights(node))
        table = () if rows is None else (statements.at(packing.constant("constants", rows), 0, 0),)
        x, channels = layer.input_rows(0), geometry.image.channels
        source = window_rows(x, geometry, lambda size: copy(size, finish.element, self.form.copied))
        taps = _taps(geometry, source.row_step)

        def kernel(pixels: int) -> KernelDescription:
            rolled, in_turn = taps.count > _UNROLLED, self.form.in_turn
            return depthwise(pixels, taps, channels, finish, rolled=rolled, in_turn=in_turn)

        counts = (Count(_pixels(node, finish, self.form), "block", unit=1),)
        tile = Tile(counts, (Product(kernel, (statements.at(weights, 0, 0, 0), *table)),))
        width = geometry.output.width
        return macro_kernel(layer, name, width, source, tile, Nhwc(layer.output_rows()))
