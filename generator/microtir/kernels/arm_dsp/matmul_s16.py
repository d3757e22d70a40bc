"""Products of two matrices of int16 that are known when a model runs: both are read as they lie.

Two rows meet two columns; their sums have 64 bits, as those of tflite-micro.  Where columns do not
lie as rows, words of neighbouring columns are packed into words of neighbouring values on the way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import packing, refusals
from microtir.kernels.common.finish_s16 import Finish16, Sums, wide_words
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.matrices import place_of, stacked, stacks_of
from microtir.kernels.common.micro_kernel import call, describe
from microtir.kernels.common.requantise import WORDS
from microtir.kernels.common.statements import at, each, load, loop, seq, store
from microtir.measure.printed import Printed, printed
from microtir.operators.common.arithmetic import long
from microtir.operators.common.linear import params_of
from microtir.operators.common.rows import RowWindow
from microtir.operators.matmul.definition import BatchMatmul, matrices
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

BLOCK = 2  # rows, columns, and values of a word
_STRAIGHT, _TURN = 16, 4  # the most steps without a loop, those of a turn of one
_REACH, _POST = 4095, 255  # offsets of a load, and what one adds behind it
_CALL, _STACK = 16, 12  # instructions around the calls of rows and of a stack
_LARGEST = 1 << 30  # product


@dataclass(frozen=True, slots=True)
class Block:
    """Two rows times all columns of so many values; columns lie as rows, or beside each other.

    Attributes:
        beside: how many rows lie beside each other, as columns do; 0: they lie as rows.
    """

    depth: int
    columns: int
    lies_as_rows: bool
    finish: Finish16
    beside: int = 0

    template: ClassVar[str] = "kernels/products_s16.j2"
    needs: ClassVar[Feature] = Feature.DSP
    prefix: ClassVar[str] = "products16"

    @property
    def stack_bytes(self) -> int:
        return 60

    @property
    def pitch(self) -> int:
        """Return the elements from a column to the next one."""
        return self.depth if self.lies_as_rows else 1

    @property
    def step(self) -> int:
        """Return the elements from a value of a column to the next one."""
        return 1 if self.lies_as_rows else self.columns

    @property
    def steps(self) -> int:
        """Return how often a step is repeated."""
        return self.depth // BLOCK

    @property
    def _turns(self) -> tuple[int, int]:
        """Return the turns of a loop over steps, and those that are left."""
        return divmod(self.steps, _TURN) if self.steps > _STRAIGHT else (0, self.steps)

    def printed(self) -> Printed:
        return printed(self.template, self.values())

    def instructions(self) -> int:
        blocks = -(-self.columns // BLOCK)
        in_blocks = self._turns[0] * blocks
        turns = {"bne 2b": in_blocks, "le lr, 2b": in_blocks, "bne 1b": blocks}
        return self.printed().instructions(turns)

    def values(self) -> Mapping[str, object]:
        (turns, rest), size = self._turns, DType.INT16.bytes
        taken = BLOCK * self.step * size
        return {
            "blocks": str(-(-self.columns // BLOCK)),
            "overlaps": self.columns % BLOCK == 1,
            "back_in": str(self.pitch * size),
            "turns": str(turns) if turns else "",
            "turn": str(_TURN),
            "rest": str(rest) if rest else "",
            "has_single": self.depth % BLOCK == 1,
            "lies_as_rows": self.lies_as_rows,
            "row": str(self.depth * size),
            "pitch": str(self.pitch * size),
            "step": str(self.step * size),
            "taken": str(taken),
            "is_near": taken <= _POST,
            "next_columns": str(BLOCK * self.pitch * size),
            "output_row": str(self.columns * size),
            "output_last": str((self.columns + 1) * size),
            "rescaling": self.finish.values(),
        }


@dataclass(frozen=True, slots=True)
class _Form:
    """A layer: stacks of so many rows, and the words that rescale sums."""

    stacks: int
    rows: int
    block: Block
    words: tuple[int, int, int, int]

    @staticmethod
    @of_node
    def of(node: Node, of_block: type[Block]) -> _Form | None:
        """Return the form of a layer; None if its factor does not fit."""
        op = node.attributes(BatchMatmul)
        (_, depth), (_, columns) = matrices(node)
        params = params_of(node)
        factor, *others = set(params.multipliers)
        words = None if others else wide_words(factor, 0, depth * _LARGEST)
        finish = Finish16(Sums.WIDE, params.activation_min, params.activation_max)
        stacks, rows = stacks_of(node)
        block = of_block(depth, columns, op.adj_y, finish, rows if op.adj_x else 0)
        return None if words is None else _Form(stacks, rows, block, words)

    @property
    def calls(self) -> int:
        return -(-self.rows // BLOCK)


class Matmul16(Kernel):
    """Two rows by two columns at a time.

    Attributes:
        of_block: what a call computes.
        takes_beside: whether the rows of the first matrix may lie beside each other.
    """

    name = "matmul_s16_2x2_dsp"
    operators = (BatchMatmul,)
    needs = Feature.DSP
    cycles = 130
    has_wide_sums = True
    of_block: type[Block] = Block
    takes_beside = False

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: other types, one row or column, columns of the first."""
        if any(tensor.dtype is not DType.INT16 for tensor in (*node.inputs, node.output)):
            return Refusal.TYPES
        form = _Form.of(node, self.of_block)
        if form is None:
            return Refusal.FORM
        block = form.block
        is_refused = block.beside > 0 and not self.takes_beside
        if is_refused or min(form.rows, block.columns, block.depth) < BLOCK:
            return Refusal.SHAPES
        farthest = 2 * max(block.depth, block.columns, block.beside) * DType.INT16.bytes
        return None if farthest <= _REACH else Refusal.SIZES

    def window(self, _node: Node) -> RowWindow | None:
        return None

    def instructions(self, node: Node, _calls: Calls) -> int:
        form = self._form(node)
        return form.stacks * (_STACK + form.calls * (form.block.instructions() + _CALL))

    def code_bytes(self, node: Node) -> int:
        return self._form(node).block.printed().bytes

    def packed_bytes(self, node: Node) -> int:
        return self.weight_bytes(node) + WORDS * DType.INT32.bytes

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit a call for two rows of each stack; the last two may overlap those before."""
        form, node = self._form(layer.node), layer.node
        words = packing.constant("constants", np.array(form.words, np.int64).astype(np.int32))
        x, w = stacked(layer)
        y = layer.output_buffer((form.stacks, form.rows, form.block.columns))

        def rows(stack: te.Expr, number: te.Expr) -> ir.Stmt:
            first = te.minimum(number * BLOCK, form.rows - BLOCK)
            return call(
                _products(form.block),
                at(x, place_of(node, 0, stack), *((0, first) if form.block.beside else (first, 0))),
                at(w, place_of(node, 1, stack), 0, 0),
                at(words, 0),
                at(y, stack, first, 0),
            )

        body = each("stack", form.stacks, lambda stack: each(
            "rows", form.calls, lambda number: rows(stack, number)
        ))  # fmt: skip
        return layer.function(name, None, body)

    def _form(self, node: Node) -> _Form:
        return refusals.asked(_Form.of(node, self.of_block))


@made_once
def _products(block: Block) -> KernelDescription:
    """Multiply two rows by columns; parameters: rows, columns, words, outputs."""
    depth, columns, beside = block.depth, block.columns, block.beside
    shape = ((depth - 1) * beside + BLOCK,) if beside else (BLOCK, depth)
    x = ir.Buffer("x", shape, DType.INT16)
    w = ir.Buffer("columns", (columns * depth,), DType.INT16)
    words = ir.Buffer("constants", (WORDS,), DType.INT32, alignment=4)
    y = ir.Buffer("y", (BLOCK, columns), DType.INT16)
    total = ir.Buffer("total", (), DType.INT64, ir.Scope.LOCAL)

    def output(row: te.Expr, column: te.Expr) -> ir.Stmt:
        def add(k: te.Expr) -> ir.Stmt:
            value = long(load(w, column * block.pitch + k * block.step))
            place = (k * beside + row,) if beside else (row, k)
            return store(total, (), load(total) + long(load(x, *place)) * value)

        result = block.finish.output(load(total), lambda n: load(words, n))
        body = seq(store(total, (), 0), loop("k", 0, depth, add), store(y, (row, column), result))
        return ir.Allocate(total, body)

    return describe(
        f"{block.prefix}_{columns}_{depth}_{'rows' if block.lies_as_rows else 'columns'}"
        + f"_beside_{beside}" * (beside > 0),
        (f"Matrix product of int16: 2 x {columns} outputs of {depth} values",),
        (x, w, words, y),
        (y,),
        loop("row", 0, BLOCK, lambda row: loop("n", 0, columns, lambda n: output(row, n))),
        block.template,
        dict(block.values()),
        stack_bytes=block.stack_bytes,
        needs=block.needs,
    )
