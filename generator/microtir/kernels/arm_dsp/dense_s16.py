"""Fully connected layers of int16: up to eight outputs for each pass over the inputs."""

from __future__ import annotations

import numpy as np

from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import convolution_s16, float_rescaling
from microtir.kernels.arm_dsp.blocks_s16 import PAIR, Block16, block, pack_weights, packed_bytes
from microtir.kernels.common import dense, packing, refusals
from microtir.kernels.common.finish_s16 import Found16, finish16, pack_words
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Product, Tile
from microtir.kernels.common.runs import Runs
from microtir.kernels.common.statements import at
from microtir.operators.dense.definition import FullyConnected
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir


class Dense16(float_rescaling.FloatRescaling):
    """Eight outputs a turn, or four where sums are wide.

    Args:
        name: of the kernel.
        cycles: of 100 instructions.
        wide: whether sums have 64 bits.
    """

    operators = (FullyConnected,)
    needs = Feature.DSP

    def __init__(self, name: str, cycles: int, *, wide: bool = False) -> None:
        self.name, self.cycles, self.has_wide_sums = name, cycles, wide

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: another type, one output, factors that do not fit."""
        reason = refusals.type_refusal(node, DType.INT16)
        if reason is not None:
            return reason
        if node.inputs[1].shape[0] < PAIR:
            return Refusal.FEW_CHANNELS
        return Refusal.FORM if self._finish(node) is None else None

    def instructions(self, node: Node, _calls: Calls) -> int:
        return dense.rows_of(node) * (self._block(node).instructions + 10)

    def code_bytes(self, node: Node) -> int:
        return self._block(node).printed.bytes

    def packed_bytes(self, node: Node) -> int:
        finish = refusals.asked(self._finish(node))
        return packed_bytes(self._block(node), finish)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: a call of the kernel for each row of inputs."""
        own_block, finish = self._block(layer.node), refusals.asked(self._finish(layer.node))
        matrix = layer.data(1).astype(np.int8)
        constants = (
            at(packing.constant("weights", pack_weights(matrix, own_block)), *[0] * 7),
            at(packing.constant("constants", pack_words(finish, own_block.channels)), 0, 0),
        )
        tile = Tile((Count(1, "row"),), (Product(lambda _rows: block(own_block), constants),))
        return dense.dense_rows(layer, name, tile)

    def _finish(self, node: Node) -> Found16 | None:
        return finish16(node, wide=self.has_wide_sums)

    def _block(self, node: Node) -> Block16:
        finish, (outputs, inputs) = refusals.asked(self._finish(node)), node.inputs[1].shape
        most = min(4 if self.has_wide_sums else 8, outputs // PAIR * PAIR)
        runs = Runs(1, 1, inputs, inputs, inputs, inputs)
        return convolution_s16.best_block(1, most, outputs, runs, finish[0])
