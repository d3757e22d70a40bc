"""LSTMs and SVDFs: several gates, or filters, for each pass over a vector."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Array, Node
from microtir.kernels.c_blocks.finish import RawSums
from microtir.kernels.c_blocks.kernels import Block, product
from microtir.kernels.common import packing, recurrent, svdf
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.runs import Runs
from microtir.kernels.common.statements import at
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
        """Return the products of a matrix (blocks, rows, K)."""
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


def _per_product(finish: RawSums) -> float:
    return (_TOGETHER * (1 + finish.per_product) + 4) / _TOGETHER


def cost(node: Node, finish: RawSums) -> int:
    """Return the instructions of all steps, from counts of emulated Cortex-M3 and M4."""
    return recurrent.block_cost(node, _per_product(finish), 40)


def svdf_cost(node: Node, finish: RawSums) -> int:
    """Return the instructions of a step of an SVDF."""
    return svdf.block_cost(node, _per_product(finish), 40)


def code_bytes(finish: RawSums) -> int:
    """Return the bytes of the kernels."""
    return 2 * (4 * _TURN * _TOGETHER * (1 + finish.per_product) + 4 * _TOGETHER + 60)


def emit(layer: Layer, name: str, finish: RawSums) -> ir.PrimFunc:
    """Return the layer function: two calls of kernels for each block of units."""
    return recurrent.emit_blocks(layer, name, partial(PackedRows.of, finish))


def emit_svdf(layer: Layer, name: str, finish: RawSums) -> ir.PrimFunc:
    """Return the layer function of an SVDF: a call of the kernel for each block of filters."""
    return svdf.emit_blocks(layer, name, partial(PackedRows.of, finish))
