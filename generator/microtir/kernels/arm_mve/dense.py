"""Fully connected layers: the matrix product of one row of inputs, or of two."""

from __future__ import annotations

from collections.abc import Mapping

from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_mve import float_rescaling, linear
from microtir.kernels.arm_mve.gemm_kernels import PIXELS, code_size, gemm, instructions
from microtir.kernels.common import counted, dense, refusals
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Product, Tile
from microtir.kernels.common.statements import at
from microtir.operators.dense.definition import FullyConnected
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_IMMEDIATE = 4095  # largest offset of ADDW
_LARGEST = 0xFFFF  # what MOVW loads
_DIRECT = 170  # bytes of the direct kernel's loops, which are none here


def _blocks(node: Node, calls: Calls) -> Mapping[int, int]:
    """Return how often two rows are computed together, and how often one."""
    pairs, single = divmod(dense.rows_of(node), 1 if calls.rows else PIXELS)
    return {PIXELS: 0, 1: pairs} if calls.rows else {PIXELS: pairs, 1: single}


class Dense(float_rescaling.FloatRescaling, counted.Counted):
    """The matrix product of one row of inputs, or of two.

    Args:
        name: of the kernel.
        dtype: of inputs and outputs.
        wide: whether sums have 64 bits.
    """

    operators = (FullyConnected,)
    needs = Feature.MVE
    cycles = 145
    measured_on, family = "cortex-m55", "dense_2x4_mve"
    depends_on_calls = has_wide_weights = True

    def __init__(self, name: str, dtype: DType, *, wide: bool = False) -> None:
        self.name, self.dtype, self.has_wide_sums = name, dtype, wide
        self.rescales_in_float = dtype is DType.INT8
        self._layers = linear.LinearLayers(wide=wide)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: a type, factors that do not fit."""
        reason = refusals.type_refusal(node, self.dtype)
        if reason is not None:
            return reason
        outputs, inputs = node.inputs[1].shape
        size = self.dtype.bytes
        if not (0 < inputs <= _LARGEST // size and 0 < outputs <= _IMMEDIATE // size):
            return Refusal.SIZES
        return Refusal.FORM if self._layers.find(node) is None else None

    def printed(self, node: Node, calls: Calls) -> int:
        """Return the instructions of the products; calls for few rows pair none."""
        (outputs, inputs), form = node.inputs[1].shape, self._layers.form(node)
        return sum(
            times * instructions(rows, inputs, outputs, form, self._layers.less(node))
            for rows, times in _blocks(node, calls).items()
            if times
        )

    def around(self, node: Node, calls: Calls) -> Mapping[str, int]:
        """Return the calls of the layer, and those of the product for two rows and for one."""
        pairs, single = _blocks(node, calls).values()
        calls_of_layer = dense.rows_of(node) // calls.rows if calls.rows else 1
        return {"layer": calls_of_layer, "pair": pairs, "row": single}

    def code_bytes(self, node: Node) -> int:
        """Return bytes of the kernels for two rows and for one, beyond the direct one.

        Layers may share them.
        """
        (outputs, inputs), form = node.inputs[1].shape, self._layers.form(node)
        pairs, single = divmod(dense.rows_of(node), PIXELS)
        used = [PIXELS] * (pairs > 0) + [1] * single
        less = self._layers.less(node)
        return max(sum(code_size(n, inputs, outputs, form, less) for n in used) - _DIRECT, 1)

    def packed_bytes(self, node: Node) -> int:
        return self._layers.packed_bytes(node)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: a call for each two rows of inputs, then for single ones."""
        node = layer.node
        packed = self._layers.pack(node)
        outputs, inputs = node.inputs[1].shape
        constants = at(packed.weights, 0, 0, 0, 0), at(packed.constants, 0, 0, 0)

        def kernel(rows: int) -> KernelDescription:
            return gemm(rows, inputs, inputs, outputs, packed.rescaling, less=packed.less)

        counts = Count(PIXELS, "pair"), Count(1, "row")
        return dense.dense_rows(layer, name, Tile(counts, (Product(kernel, constants),)))
