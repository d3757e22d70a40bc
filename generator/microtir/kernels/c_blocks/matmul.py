"""Products of two matrices that are known when a model runs: both are read where they lie."""

from __future__ import annotations

from dataclasses import dataclass, replace

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.c_blocks.blocks import Blocks
from microtir.kernels.c_blocks.convolution import Form
from microtir.kernels.c_blocks.finish import RawSums
from microtir.kernels.c_blocks.kernels import Block, BlockSize, Columns, Spread, product
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.macro_kernel import (
    Count,
    Nhwc,
    Pixel,
    Product,
    Source,
    Tile,
    cut,
    pixel_loops,
)
from microtir.kernels.common.matrices import place_of, stacked, stacks_of
from microtir.kernels.common.runs import Runs, turns_of
from microtir.kernels.common.statements import at, loop
from microtir.operators.matmul.definition import BatchMatmul, matrices
from microtir.plan.ir import Calls, Layout, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_CALL, _TURN, _STEPS = 30, 20, 6  # instructions around a block, its turns, and turns of their loops


@dataclass(frozen=True, slots=True)
class _Product:
    """The product of a stack: rows by columns, in blocks of both."""

    block: Block
    runs: Runs
    columns: Columns
    outputs: int  # columns of the output
    counts: tuple[Count, ...]

    @staticmethod
    def of(node: Node, form: Form) -> _Product:
        op, (_, rows) = node.attributes(BatchMatmul), stacks_of(node)
        (_, depth), (_, columns) = matrices(node)
        most, widths = form.float32, [tensor.shape[-1] for tensor in node.inputs]
        pitch, step = (1, widths[0]) if op.adj_x else (depth, 1)
        pixels, at_once = min(most.pixels, rows), min(most.channels, columns)
        return _Product(
            replace(most, pixels=pixels, channels=at_once, turn=min(most.turn, depth)),
            Runs(1, 1, depth, 0, 0, pitch, step),
            Columns(depth, 1) if op.adj_y else Columns(1, widths[1]),
            columns,
            (Count(pixels, "block", unit=1),),
        )

    def size(self, pixels: int, sums: RawSums) -> BlockSize:
        """Return the micro-kernel for so many rows."""
        block = replace(self.block, pixels=pixels)
        return BlockSize(block, self.runs, self.outputs, sums, Spread(), self.columns)

    def kernel(self, pixels: int, sums: RawSums) -> KernelDescription:
        size = self.size(pixels, sums)
        return product(size.block, self.runs, self.outputs, sums, columns=self.columns)


class _Lines(Source):
    """Rows of a stack of first matrices."""

    def __init__(self, node: Node, buffer: ir.Buffer) -> None:
        self.node, self.buffer = node, buffer

    def at(self, pixel: Pixel, _count: int) -> ir.BufferArgument:
        op, stack = self.node.attributes(BatchMatmul), place_of(self.node, 0, pixel.row)
        place = (0, pixel.column) if op.adj_x else (pixel.column, 0)
        return at(self.buffer, stack, *place)


class Matmul(Blocks[Form]):
    """Rows by columns of two matrices of float32 that are known when a model runs."""

    operators = (BatchMatmul,)

    @property
    def _sums(self) -> RawSums:
        return RawSums(DType.FLOAT32, DType.FLOAT32, self.form.no_fp_contract)

    def reject(self, node: Node) -> Refusal | None:
        """Refuse what is not of float32, or empty."""
        if any(tensor.dtype is not DType.FLOAT32 for tensor in node.inputs):
            return Refusal.TYPES
        is_empty = min(min(t.shape) for t in (*node.inputs, node.output)) == 0
        return Refusal.SHAPES if is_empty else None

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions, from counts of an emulated Cortex-M4."""
        stacks, rows = stacks_of(node)
        blocked, total = _Product.of(node, self.form), 0
        at_once, depth = blocked.block.channels, blocked.runs.length
        native = blocked.block.native
        if native is not None:
            calls = (
                blocks.times
                * (native.instructions(blocked.size(blocks.pixels, self._sums)) + _CALL)
                for blocks in cut(rows, blocked.counts)
            )
            return stacks * sum(calls)
        turns, per_product = len(turns_of(blocked.outputs, at_once)), self._sums.per_product
        for blocks in cut(rows, blocked.counts):
            sums = blocks.pixels * at_once
            step = sums * per_product + blocks.pixels + at_once
            products = depth * step + depth // blocked.block.turn * _STEPS + 3 * sums + _TURN
            total += blocks.times * (turns * products + _CALL)
        return stacks * total

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; other layers may use the same."""
        blocked, (_, rows) = _Product.of(node, self.form), stacks_of(node)
        turn, at_once = blocked.block.turn, blocked.block.channels
        counts = {blocks.pixels for blocks in cut(rows, blocked.counts) if blocks.times}
        native = blocked.block.native
        if native is not None:
            return sum(native.code_bytes(blocked.size(n, self._sums)) for n in counts)
        printed, size = turn + blocked.runs.length % turn, 0
        for pixels in counts:
            sums = pixels * at_once
            products = printed * (sums * self._sums.per_product + pixels + at_once)
            size += 4 * (products + sums) + 120
        return size

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: rows by columns, stack by stack."""
        node, (stacks, rows) = layer.node, stacks_of(layer.node)
        first, second = stacked(layer)
        blocked, type_ = _Product.of(node, self.form), node.output.type
        y = layer.output_buffer((stacks, rows, blocked.outputs))
        source, sink = _Lines(node, first), Nhwc(Rows(y, type_, Layout.whole(type_)))

        def of_stack(stack: te.Expr) -> ir.Stmt:
            columns = at(second, place_of(node, 1, stack), 0, 0)
            products = Product(lambda pixels: blocked.kernel(pixels, self._sums), (columns,))
            return pixel_loops(
                (stack, stack + 1), rows, source, Tile(blocked.counts, (products,)), sink
            )

        return layer.function(name, None, loop("stack", 0, stacks, of_stack))
