"""LSTMs and SVDFs: several gates, or filters, for each pass over a vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels.c_blocks.blocks import Blocks, Suits
from microtir.kernels.c_blocks.finish import RawSums
from microtir.kernels.c_blocks.kernels import Block, product
from microtir.kernels.common import packing, recurrent, refusals, svdf
from microtir.kernels.common.kernel import passes_constants
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.runs import Runs
from microtir.kernels.common.statements import at
from microtir.operators.recurrent.definition import Lstm, Svdf
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TOGETHER = 8  # rows whose sums stay in registers
_TURN = 2


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows of a matrix, eight at a time; `turns` of them are a block."""

    kernel: KernelDescription
    weights: ir.Buffer
    turns: int

    @staticmethod
    def of(finish: RawSums, matrix: Array) -> PackedRows:
        blocks, rows, width = matrix.shape
        turns = rows // _TOGETHER
        finish = replace(finish, weight=DType(matrix.dtype.name))  # mixed ones have both
        runs = Runs(1, 1, width, width, width, width)
        kernel = product(Block(1, _TOGETHER, _TURN), runs, rows, finish)
        by_turn = matrix.reshape(blocks * turns, _TOGETHER, width).transpose(0, 2, 1)
        packed = np.ascontiguousarray(by_turn).reshape(blocks * turns, 1, 1, -1)
        return PackedRows(kernel, packing.constant("weights", packed), turns)

    def call(self, block: te.Expr, vector: ir.BufferArgument, sums: ir.BufferArgument) -> ir.Stmt:
        return call(self.kernel, vector, at(self.weights, block * self.turns, 0, 0, 0), sums)


class _Gates(Blocks[RawSums]):
    """Several rows of a matrix for each pass over a vector; the form is elements and weights."""

    in_place = True

    def __init__(
        self, name: str, form: RawSums, cycles: int, suits: Suits = passes_constants
    ) -> None:
        super().__init__(name, form, cycles, suits, dtype=form.element)

    @property
    def _rows(self) -> Callable[[Array], PackedRows]:
        return partial(PackedRows.of, self.form)

    @property
    def _per_product(self) -> float:
        return (_TOGETHER * (1 + self.form.per_product) + 4) / _TOGETHER

    def code_bytes(self, _node: Node) -> int:
        return 4 * _TURN * _TOGETHER * (1 + self.form.per_product) + 4 * _TOGETHER + 60


class Recurrent(_Gates):
    """The gates of several units for each pass over the input and over the hidden state."""

    operators = (Lstm,)

    def reject(self, node: Node) -> Refusal | None:
        return refusals.recurrent_refusal(node, self.form.element, self.form.weight)

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions of all steps, from counts of emulated Cortex-M3 and M4."""
        return recurrent.block_cost(node, self._per_product, 40)

    def code_bytes(self, node: Node) -> int:
        return 2 * super().code_bytes(node)

    def packed_bytes(self, node: Node) -> int:
        return recurrent.packed_bytes(node, self._rows)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: two calls of kernels for each block of units."""
        return recurrent.emit_blocks(layer, name, self._rows)


class Filters(_Gates):
    """The features of several filters of an SVDF for each pass over the input."""

    operators = (Svdf,)
    has_wide_sums = True  # of time; those of features fit

    def reject(self, node: Node) -> Refusal | None:
        return refusals.svdf_refusal(node, self.form.element, self.form.weight)

    def instructions(self, node: Node, _calls: Calls) -> int:
        return svdf.block_cost(node, self._per_product, 40)

    def packed_bytes(self, node: Node) -> int:
        return svdf.packed_bytes(node, self._rows)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: a call of the kernel for each block of filters."""
        return svdf.emit_blocks(layer, name, self._rows)
