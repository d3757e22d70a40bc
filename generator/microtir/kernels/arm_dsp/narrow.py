"""Pointwise convolutions of at most 8 input channels: weights stay in registers.

A row is computed in equal parts of some pixels: they are widened into a patch, and each channel
goes over it.  The sums are so short that reading weights and constants for every two pixels, as
matrix products do, would take as long as the products.
"""

from __future__ import annotations

from microtir.config import Feature
from microtir.dtype import DType
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
from microtir.kernels.arm_dsp.outputs import borders_cost, planes_refusal, sink_of
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.macro_kernel import (
    Count,
    Pixel,
    Product,
    Source,
    Tile,
    macro_kernel,
)
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant, requantised
from microtir.kernels.common.refusals import int8_refusal, mixed_refusal
from microtir.kernels.common.requantise import Requantisation
from microtir.kernels.common.statements import at
from microtir.kernels.common.weights import QUAD
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, LayoutKind, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir


@of_node
def _factors(node: Node) -> Requantisation | None:
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, Conv2D) and weights is not None
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    return requantised(weights.reshape(len(weights), -1), node, params)


class GemmNarrow(Kernel):
    """Sums of up to 8 values, weights of a channel in registers."""

    name = "conv_s8_8x1_dsp"
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
        geometry, factors, weights = Geometry.of(layer.node), _factors(layer.node), layer.data(1)
        assert factors is not None, "reject() was asked"
        rescaling, values = factors.rescaling, geometry.image.channels
        sink, planes = sink_of(layer)
        words = constant("words", pack(weights.reshape(len(weights), -1), factors.constants))

        def kernel(pixels: int) -> KernelDescription:
            return narrow(pixels, values, len(weights), rescaling, planes)

        source = _WidenedQuads(layer.input_rows(0), values, _part(geometry))
        tile = Tile(_counts(geometry), (Product(kernel, (at(words, 0, 0),)),))
        return macro_kernel(layer, name, geometry.output.width, source, tile, sink)


class _WidenedQuads(Source):
    """Pixels of a row as they follow each other, widened."""

    def __init__(self, x: Rows, values: int, pixels: int) -> None:
        self.x, self.values = x, values
        self.patch = self.scratch = ir.Buffer(
            "scratch", (1, pixels * values), DType.INT16, alignment=4
        )

    def block(self, pixel: Pixel, count: int) -> ir.Stmt:
        widened = widen(count * self.values)
        return call(widened, self.x.at(pixel.row, pixel.column, 0), at(self.patch, 0, 0))

    def at(self, _pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.patch, 0, 0)


def _part(geometry: Geometry) -> int:
    """Return the pixels of a patch: the parts of a row are as equal as can be."""
    width = geometry.output.width
    return -(-width // -(-width // PIXELS))


def _counts(geometry: Geometry) -> tuple[Count, ...]:
    return (Count(_part(geometry), "part", unit=1),)
