"""Fully connected layers: the matrix product of one row of inputs, or of two."""

from __future__ import annotations

from microtir.config import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_mve.gemm_kernels import PIXELS, code_size, gemm, instructions
from microtir.kernels.arm_mve.linear import PackedLinear, pack_linear
from microtir.kernels.common.dense import dense_rows, rows_of
from microtir.kernels.common.kernel import SAME_ROW, Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Product, Tile
from microtir.kernels.common.refusals import int8_refusal
from microtir.kernels.common.statements import at
from microtir.operators.common.rows import RowWindow
from microtir.operators.dense.definition import FullyConnected, fully_connected_params
from microtir.operators.dense.formula import keeps_rows
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_IMMEDIATE = 4095  # largest offset of ADDW
_LARGEST = 0xFFFF  # what MOVW loads
_DIRECT = 170  # bytes of the direct kernel's loops, which are none here


def _packed(node: Node) -> PackedLinear | None:
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, FullyConnected) and weights is not None
    types = node.inputs[0].type, node.inputs[1].type, node.output.type
    return pack_linear(weights, node, fully_connected_params(op, *types))


class Dense(Kernel):
    """The matrix product of one row of inputs, or of two."""

    name = "dense_s8_2x4_mve"
    operators = (FullyConnected,)
    needs = Feature.MVE
    cycles = 145
    depends_on_calls = True

    def window(self, node: Node) -> RowWindow | None:
        return SAME_ROW if keeps_rows(node) else None

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: int8, factors below 1."""
        reason = int8_refusal(node)
        if reason is not None:
            return reason
        outputs, inputs = node.inputs[1].shape
        if not (0 < inputs <= _LARGEST and 0 < outputs <= _IMMEDIATE):
            return Refusal.SIZES
        return Refusal.FORM if _packed(node) is None else None

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions from counts of the emulated Cortex-M55.

        Calls for few rows pair none.
        """
        outputs, inputs = node.inputs[1].shape
        if calls.rows:
            return rows_of(node) * (instructions(1, inputs, outputs) + 20)
        pairs, single = divmod(rows_of(node), PIXELS)
        several = pairs * instructions(PIXELS, inputs, outputs)
        return several + single * instructions(1, inputs, outputs) + 20

    def code_bytes(self, node: Node) -> int:
        """Return bytes of the kernels for two rows and for one, beyond the direct one.

        Layers may share them.
        """
        inputs, rows = node.inputs[1].shape[1], rows_of(node)
        pair = code_size(PIXELS, inputs) if rows > 1 else 0
        return max(code_size(1, inputs) + pair - _DIRECT, 1)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: a call for each two rows of inputs, then for single ones."""
        packed = _packed(layer.node)
        assert packed is not None, "reject() was asked"
        outputs, inputs = layer.node.inputs[1].shape
        constants = at(packed.weights, 0, 0, 0, 0), at(packed.constants, 0, 0, 0)

        def kernel(rows: int) -> KernelDescription:
            return gemm(rows, inputs, inputs, outputs, packed.rescaling)

        counts = Count(PIXELS, "pair"), Count(1, "row")
        return dense_rows(layer, name, Tile(counts, (Product(kernel, constants),)))
