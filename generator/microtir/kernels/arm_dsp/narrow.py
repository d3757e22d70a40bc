"""Pointwise convolutions of at most 8 input channels: weights stay in registers.

A row is computed in equal parts of some pixels: they are widened into a patch, and each channel
goes over it.  The sums are so short that reading weights and constants for every two pixels, as
matrix products do, would take as long as the products.
"""

from __future__ import annotations

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.narrow_kernels import (
    CHANNELS,
    LONGEST,
    PIXELS,
    TURN,
    narrow,
    pack,
    widen,
)
from microtir.kernels.arm_dsp.outputs import Outputs, borders_cost, planes_refusal
from microtir.kernels.common.bordered_rows import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant, requantised
from microtir.kernels.common.refusals import int8_refusal, mixed_refusal
from microtir.kernels.common.requantise import Requantisation
from microtir.kernels.common.statements import at, loop, seq
from microtir.kernels.common.weights import QUAD
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, LayoutKind, Refusal
from microtir.tir import ir
from microtir.tir.dtype import DType


@of_node
def _factors(node: Node) -> Requantisation | None:
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, Conv2D) and weights is not None
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    return requantised(weights.reshape(len(weights), -1), node, params)


class GemmNarrow(Kernel):
    """Sums of up to 8 values, weights of a channel in registers."""

    name = "gemm_narrow"
    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.DSP
    cycles = 151

    def __init__(self, writes: LayoutKind) -> None:
        self.writes = writes

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8, pixels of one or two quads that outputs stand for.
        """
        is_planar = self.writes is not LayoutKind.NHWC
        reason = planes_refusal(Geometry.of(node).output) if is_planar else None
        reason = reason or int8_refusal(node) or mixed_refusal(node)
        if reason is not None:
            return reason
        if not isinstance(node.op, Conv2D):
            return Refusal.OPERATOR
        geometry = Geometry.of(node)
        if not geometry.is_pointwise:
            return Refusal.WINDOWS
        values = geometry.image.channels
        if values > LONGEST or values % QUAD or geometry.output.channels > CHANNELS:
            return Refusal.SIZES
        return Refusal.FORM if _factors(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of a patch."""
        geometry = Geometry.of(node)
        return _part(geometry) * geometry.image.channels * DType.INT16.bytes

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions for any rows of a call, from counts of the Cortex-M4."""
        geometry, factors = Geometry.of(node), _factors(node)
        assert factors is not None, "refusal() was asked"
        output, values = geometry.output, geometry.image.channels
        rows, part = output.images * output.height, _part(geometry)
        parts = -(-output.width // part)
        turns, rest = divmod(part, TURN)
        pixel = values // 2 + factors.rescaling.instructions + 1
        channel = part * pixel + 3 * (turns + rest) + 15
        instructions = rows * parts * (output.channels * channel + part * values * 15 // 16 + 90)
        return instructions + borders_cost(output, self.writes)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; widening is shared."""
        factors = _factors(node)
        assert factors is not None, "refusal() was asked"
        values = Geometry.of(node).image.channels
        return 240 + (TURN + 1) * 4 * (values // 2 + factors.rescaling.instructions + 1)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: parts of a row into a patch, then all channels of it."""
        node, x, outputs = layer.node, layer.input_rows(0), Outputs(layer.output_rows())
        geometry, factors, weights = Geometry.of(node), _factors(node), layer.data(1)
        assert factors is not None, "refusal() was asked"
        values, width, part = geometry.image.channels, geometry.output.width, _part(geometry)
        packed = pack(weights.reshape(len(weights), -1), factors.constants)
        words = constant("words", packed)
        patch = ir.Buffer("scratch", (1, part * values), DType.INT16, alignment=4)

        def some(row: te.Expr, column: te.Expr, pixels: int) -> ir.Stmt:
            product = narrow(pixels, values, len(weights), factors.rescaling, outputs.row)
            return seq(
                call(widen(pixels * values), x.at(row, column, 0), at(patch, 0, 0)),
                call(product, at(patch, 0, 0), at(words, 0, 0), *outputs.at(row, column)),
            )

        def row(number: te.Expr) -> ir.Stmt:
            parts, rest = divmod(width, part)
            statements = [loop("part", 0, parts, lambda n: some(number, n * part, part))]
            if rest:
                statements.append(some(number, te.as_expr(parts * part, DType.INT32), rest))
            return seq(*statements, outputs.borders(number))

        return layer.function(name, patch, loop("row", layer.y0, layer.y1, row))


def _part(geometry: Geometry) -> int:
    """Return the pixels of a patch: the parts of a row are as equal as can be."""
    width = geometry.output.width
    return -(-width // -(-width // PIXELS))
