"""Convolutions by blocks of pixels and output channels, straight from rows of the input.

No patch is gathered: the pixels of a block lie a constant number of elements apart, so that each
needs no more than an offset.  A depthwise convolution of one input channel is a convolution, and
one of several outputs for each channel a convolution in groups.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from microtir import te
from microtir.graph.ir import Node
from microtir.kernels.c_blocks.blocks import WindowedBlocks
from microtir.kernels.c_blocks.finish import Finish, Table, finish_of
from microtir.kernels.c_blocks.kernel import copy
from microtir.kernels.c_blocks.kernels import Block, BlockSize, Spread, product
from microtir.kernels.common import bordered_rows, made_once, packing, refusals, statements
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.macro_kernel import (
    Count,
    Nhwc,
    Product,
    Sink,
    Tile,
    all_blocks,
    pixel_loops,
)
from microtir.kernels.common.phase_kernel import PhaseKernel
from microtir.kernels.common.phases import Phase, SpreadPixels
from microtir.kernels.common.runs import Runs, turns_of
from microtir.kernels.common.weights import matrix_of
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir


@dataclass(frozen=True, slots=True)
class Form:
    """Blocks for integers and for float32, and up to how many elements a run needs no loop.

    Products and sums of floats may be kept apart (`no_fp_contract`).  Rows are copied `copied`
    elements at a time.
    Clamps of int8 may be `is_straight`, without a branch.
    """

    integers: Block
    float32: Block
    unrolled: int
    no_fp_contract: bool = False
    copied: int = 1
    is_straight: bool = False


# 8 sums are what 14 registers hold beside weights, an element and pointers; floats have their own.
FAST = Form(Block(4, 2, turn=4), Block(4, 4, turn=8), unrolled=12)
# More instructions than FAST, and fewer cycles where a product that adds waits for itself.
NO_FP_CONTRACT = replace(FAST, no_fp_contract=True)
# Less code, and no more loads at a time than a compiler for RISC-V schedules without spilling.
COMPACT = Form(Block(4, 2, turn=2), Block(4, 4, turn=2), unrolled=4)
# 28 registers hold 16 sums if operands do not come early.  Beside small C libraries, whose memcpy
# takes six instructions for a byte, a loop takes less than three.
WIDE = Form(Block(4, 4, turn=2, in_turn=True), COMPACT.float32, unrolled=4, copied=8)
# Neighbouring pixels share elements of a longer run.  Where they are met again this soon, compilers
# keep them from turn to turn, in more registers than there are; then each tap is a run of its own.
_TURNS_APART = 3
_CALL = 12  # instructions around a call of native code


@dataclass(frozen=True, slots=True, eq=False)
class _Packed:
    """Constants of a layer: weights (turns, rows, parts, length * channels) and table."""

    weights: ir.Buffer
    table: ir.Buffer | None
    finish: Finish


def _most(node: Node, form: Form) -> Block:
    """Return the block where there are enough pixels and channels."""
    return form.float32 if node.inputs[0].dtype.is_float else form.integers


@made_once.of_node
def _block(node: Node, form: Form) -> Block:
    most = _most(node, form)
    geometry = Geometry.of(node)
    channels = min(most.channels, node.output.shape[-1] // groups_of(node))
    width = geometry.output.width * (node.output.type.rows if geometry.is_pointwise else 1)
    length = _runs(node, form).length
    turn = length if length <= form.unrolled else most.turn
    return replace(most, pixels=min(most.pixels, width), channels=channels, turn=turn)


def groups_of(node: Node) -> int:
    """Return the groups of channels; a depthwise convolution has one for each input channel."""
    is_depthwise = isinstance(node.op, DepthwiseConv2D)
    return node.inputs[0].shape[-1] // (1 if is_depthwise else node.inputs[1].shape[-1])


def _geometry(node: Node) -> Geometry:
    return Geometry.of(node).of_all_groups


@made_once.of_node
def _runs(node: Node, form: Form, row_step: int | None = None) -> Runs:
    """Return what a pixel reads; `row_step` is that of rows in scratch by default."""
    geometry, turn, groups = _geometry(node), _most(node, form).turn, groups_of(node)
    rows, columns, pitch = geometry.windows.rows, geometry.windows.columns, geometry.pitch
    channels = pitch // groups
    step, run = columns.stride * pitch, columns.taps * channels
    near = run > form.unrolled and step < run and step <= _TURNS_APART * turn
    near = near and _most(node, form).native is None
    joined = columns.taps == 1 or (columns.dilation == groups == 1 and not near)
    parts, length = (1, run) if joined else (columns.taps, channels)
    step_of_rows = geometry.copied_step if row_step is None else row_step
    return Runs(rows.taps, parts, length, step_of_rows, columns.dilation * pitch, step)


def _shape_refusal(node: Node) -> Refusal | None:
    """Refuse channels of one output each, and windows that cannot be found."""
    if not Geometry.of(node).has_one_image:
        return Refusal.IMAGES
    are_alone = isinstance(node.op, DepthwiseConv2D) and node.op.depth_multiplier == 1
    return refusals.mixed_refusal(node) if are_alone else None


@made_once.of_node
def _refusal(node: Node) -> Refusal | None:
    reason = _shape_refusal(node)
    if reason is not None or node.inputs[0].dtype.is_float:
        return reason
    return Refusal.FORM if finish_of(node) is None else None


def _counts(block: Block) -> tuple[Count, ...]:
    """Return the pixels of a block: whole ones, then what is left of a row, or single ones."""
    return Count(block.pixels, "block", unit=1), Count(1, "pixel")


def _blocks(node: Node, block: Block, *, by_rows: bool = False) -> list[tuple[int, int]]:
    """Return how often blocks of how many pixels are computed for the whole output."""
    geometry, calls = Geometry.of(node), Calls(int(by_rows))
    spans_rows = geometry.is_pointwise
    return all_blocks(geometry.output, calls, _counts(block), spans_rows=spans_rows)


class Convolution(WindowedBlocks[Form], PhaseKernel):
    """Pixels by output channels."""

    operators = (Conv2D, DepthwiseConv2D)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Data of a type over one image; factors of integers that fit the short requantisation.
        """
        return refusals.type_refusal(node, self.dtype) or _refusal(node)

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions, from counts of emulated Cortex-M3 and M4.

        Floats have registers of their own, so that the others hold all pointers of a loop, and
        their bias is the first value of a sum.
        """
        by_rows, is_float = calls.rows > 0, self.dtype.is_float
        block, runs = _block(node, self.form), _runs(node, self.form)
        channels = block.channels
        finish = _finish(node, self.form)
        turns = len(_starts(node, block))
        total = bordered_rows.copy_cost(node, by_rows=by_rows, copied=_copied(node, block))
        for count, pixels in _blocks(node, block, by_rows=by_rows):
            if block.native is not None:
                size = _size(node, self.form, runs, pixels)
                total += count * (block.native.instructions(size) + _CALL)
                continue
            products = runs.taps * (pixels * channels * finish[0].per_product + pixels + channels)
            repeats = runs.length > block.turn
            loops = repeats * runs.taps * (4 if is_float else 8) // block.turn
            loops += runs.rows * runs.parts * 8
            outputs = channels * (pixels * finish[0].instructions + 4 * (not is_float))
            total += count * (turns * (products + loops + outputs + 20) + 20)
        return total

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; other layers may use the same."""
        block, runs = _block(node, self.form), _runs(node, self.form)
        finish = _finish(node, self.form)
        printed = min(block.turn + runs.length % block.turn, runs.length)
        size = 0
        if block.native is not None:
            counts = {pixels for _, pixels in _blocks(node, block)}
            return sum(block.native.code_bytes(_size(node, self.form, runs, n)) for n in counts)
        for _, pixels in _blocks(node, block):
            sums = pixels * block.channels
            products = printed * (sums * finish[0].per_product + pixels + block.channels)
            size += 4 * (products + sums * finish[0].instructions) + 120
        return size

    def packed_bytes(self, node: Node) -> int:
        packed = _packed(node, self.form)
        return packing.bytes_of(packed.weights, packed.table)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: blocks of pixels, then what is left of a row or a line."""
        x, sink = layer.input_rows(0), Nhwc(layer.output_rows())
        source = _source(layer.node, self.form, x, is_line=sink.is_line)
        rows = layer.y0, layer.y1
        body = _loops(layer.node, self.form, rows, source, sink)
        return layer.function(name, source.scratch, body)

    def phase_loops(self, phase: Phase, x: Rows, y: Rows, scratch: ir.Buffer) -> ir.Stmt:
        """Emit the loops over the pixels of a phase of a transposed convolution."""
        node, sink = phase.node, SpreadPixels(y, phase)
        source = _source(node, self.form, x, is_line=False, scratch=scratch)
        rows = 0, Geometry.of(node).output.height
        return _loops(node, self.form, rows, source, sink, phase.step)


def _source(
    node: Node, form: Form, x: Rows, *, is_line: bool, scratch: ir.Buffer | None = None
) -> bordered_rows.WindowRows:
    geometry = _geometry(node)
    if geometry.is_pointwise and x.is_whole and is_line:
        return bordered_rows.DirectRows(x, geometry, is_line=True)
    element, native = node.inputs[0].dtype, _most(node, form).native

    def move(size: int) -> KernelDescription:
        return copy(size, element, form.copied) if native is None else native.copy(size, element)

    return bordered_rows.window_rows(x, geometry, move, scratch=scratch)


def _loops(
    node: Node,
    form: Form,
    rows: tuple[te.ExprLike, te.ExprLike],
    source: bordered_rows.WindowRows,
    sink: Sink,
    step: int = 1,
) -> ir.Stmt:
    """Emit the loops over pixels, whose outputs are so many columns of the output from another."""
    geometry, packed, block = _geometry(node), _packed(node, form), _block(node, form)
    runs = _runs(node, form, source.row_step)

    def kernel(pixels: int) -> KernelDescription:
        size = _size(node, form, runs, pixels, step)
        return product(size.block, runs, size.channels, size.finish, size.spread)

    table = () if packed.table is None else (statements.at(packed.table, 0, 0),)
    constants = statements.at(packed.weights, 0, 0, 0, 0), *table
    tile = Tile(_counts(block), (Product(kernel, constants),))
    return pixel_loops(rows, geometry.output.width, source, tile, sink)


def _size(node: Node, form: Form, runs: Runs, pixels: int, step: int = 1) -> BlockSize:
    """Return the micro-kernel for so many pixels, outputs of which are so many pixels apart."""
    block, groups = replace(_block(node, form), pixels=pixels), groups_of(node)
    channels, finish = node.output.shape[-1], _finish(node, form)[0]
    spread = Spread(groups, channels * step)
    return BlockSize(block, runs, channels // groups, finish, spread)


def _copied(node: Node, block: Block) -> Callable[[int], int] | None:
    """Return the instructions of copying so many elements, of blocks that have code for it."""
    if block.native is None:
        return None
    return partial(block.native.copied, dtype=node.inputs[0].dtype)


def _starts(node: Node, block: Block) -> list[int]:
    """Return the first channel of each turn."""
    groups = groups_of(node)
    channels = node.output.shape[-1] // groups
    turns = turns_of(channels, block.channels)
    return [group * channels + first for group in range(groups) for first in turns]


@made_once.of_node
def _finish(node: Node, form: Form) -> tuple[Finish, Table | None]:
    return refusals.asked(
        finish_of(node, no_fp_contract=form.no_fp_contract, is_straight=form.is_straight)
    )


def _packed(node: Node, form: Form) -> _Packed:
    matrix, block = matrix_of(node), _block(node, form)
    finish, table = _finish(node, form)
    starts = _starts(node, block)
    order = [start + n for start in starts for n in range(block.channels)]
    runs = _runs(node, form)
    shape = (len(starts), runs.rows, runs.parts)
    turns = matrix[order].reshape(len(starts), block.channels, runs.rows, runs.parts, runs.length)
    return _Packed(
        packing.constant("weights", turns.transpose(0, 2, 3, 4, 1).reshape(*shape, -1)),
        None if table is None else packing.constant("constants", table[order]),
        finish,
    )
