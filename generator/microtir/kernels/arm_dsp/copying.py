"""Columns of images that move as they are: slices within rows, and bands that are joined."""

from __future__ import annotations

from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.copy_kernels import copy
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import loop
from microtir.operators.movement.definition import StridedSlice
from microtir.operators.movement.formula import slices_within_rows
from microtir.operators.streaming.definition import PlaceColumns
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir
from microtir.tir.dtype import DType

_CALL = 20  # instructions for a row, beside those that move its bytes


class CopyWords(Kernel):
    """One run of bytes for each row, words at a time."""

    name = "copy_words"
    operators = (StridedSlice, PlaceColumns)
    needs = Feature.DSP

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against one run of bytes for each row."""
        if node.output.dtype is not DType.INT8:
            return Refusal.TYPES
        op = node.op
        if isinstance(op, PlaceColumns):
            return None
        assert isinstance(op, StridedSlice)
        channels = node.inputs[0].shape[-1]
        is_run = slices_within_rows(node) and op.strides[2:] == (1, 1) and op.extent[3] == channels
        return None if is_run else Refusal.ROWS

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions: two for each word, and what a row needs."""
        type_ = node.output.type
        return type_.elements // 2 + _CALL * type_.rows

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Copy a run of bytes for each row."""
        op, x = layer.node.op, layer.input_rows(0)
        if isinstance(op, PlaceColumns):
            source, column, width = 0, op.column, op.width
        else:
            assert isinstance(op, StridedSlice)
            source, column, width = op.begin[2], 0, None
        y = layer.output_rows(width)
        kernel = copy(layer.node.output.type.row_elements)
        body = loop(
            "row", layer.y0, layer.y1,
            lambda row: call(kernel, x.at(row, source, 0), y.at(row, column, 0)),
        )  # fmt: skip
        return layer.function(name, None, body)
