"""Depthwise convolutions with channels in vector lanes.

Rows that a kernel computes follow each other in scratch, where the image lies with its border.
Where there are fewer channels than lanes, several neighbouring pixels share a vector.
"""

from __future__ import annotations

from dataclasses import dataclass

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.refusals import depthwise_refusal
from microtir.kernels.common.statements import at, seq
from microtir.kernels.x86_avx2.depthwise_kernel import BLOCK, Grid, PackedDepthwise, depthwise, pack
from microtir.kernels.x86_avx2.image import WindowedImage
from microtir.kernels.x86_avx2.micro_kernel import call
from microtir.kernels.x86_avx2.rows import in_blocks
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import DepthwiseConv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_MOST_TAPS = 64  # their code is printed one by one


@dataclass(frozen=True, slots=True)
class _Geometry(WindowedImage):
    @property
    def copies(self) -> int:
        """Return neighbouring pixels that share a vector."""
        channels, width = self.output.channels, self.output.width
        shares = self.windows.columns.stride == 1 and BLOCK % channels == 0
        return BLOCK // channels if shares and width * channels % BLOCK == 0 else 1

    def grid(self, rows: int) -> Grid:
        """Return what a kernel for some rows reads and writes."""
        channels, row_elements = self.image.channels, self.padded.row_elements
        down, across = self.windows.rows, self.windows.columns
        return Grid(
            rows=rows,
            row_step=down.stride * row_elements,
            pixels=self.output.width // self.copies,
            step=across.stride * channels * self.copies,
            channels=channels * self.copies,
            output_row=self.output.width * channels,
            taps=(down.taps, across.taps),
            tap_steps=(down.dilation * row_elements, across.dilation * channels),
        )


def _packed(node: Node) -> PackedDepthwise | None:
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, DepthwiseConv2D) and weights is not None
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    channels = weights.shape[3]
    return pack(weights.reshape(-1, channels), node, params, _Geometry.of(node).copies)


@of_node
def refusal(node: Node) -> Refusal | None:
    """Return what speaks against it: int8, one image, one output per channel, factors that fit."""
    reason = depthwise_refusal(node)
    if reason is not None:
        return reason
    rows, columns = node.inputs[1].shape[1:3]
    if node.output.type.elements == 0 or rows * columns > _MOST_TAPS:
        return Refusal.SIZES
    return Refusal.FORM if _packed(node) is None else None


class Depthwise(Kernel):
    """Sixteen channels of a vector, two taps a product."""

    name = "depthwise_lanes"
    operators = (DepthwiseConv2D,)
    needs = Feature.VECTOR
    depends_on_calls = True
    by_window = False

    def reject(self, node: Node) -> Refusal | None:
        return refusal(node)

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the image with its border."""
        return _Geometry.of(node).padded.bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions from counts of the compiled kernel for AVX2."""
        count = node.output.type.rows if calls.rows or self.by_window else 1
        geometry = _Geometry.of(node)
        taps, output = geometry.windows.rows.taps * geometry.windows.columns.taps, geometry.output
        blocks = -(-output.channels // BLOCK)
        pixels = output.height * output.width // geometry.copies
        return pixels * (blocks * (5 * taps + 30) + 4) + geometry.padded.copy_cost(count)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels for several rows and for one, beyond the direct one."""
        return _row_code_bytes(node) * (2 if node.output.type.rows > 1 else 1) + 100

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: the border, then kernels for all rows, or for one by one."""
        node, geometry, packed = layer.node, _Geometry.of(layer.node), _packed(layer.node)
        assert packed is not None, "refusal() was asked"
        x, y = layer.input_rows(0), layer.output_rows()
        image = geometry.padded
        scratch = image.buffer(1 if self.by_window else None)
        zero_point = node.inputs[0].type.quant.zero_point
        whole = geometry.output.height if y.is_whole else 1

        def some(row: te.Expr, count: int) -> ir.Stmt:
            start = row if self.by_window else layer.y0
            place = (row - start) * (geometry.windows.rows.stride * image.row_elements)
            return call(
                depthwise(geometry.grid(count), packed),
                at(scratch, 0, place),
                at(packed.weights, 0, 0, 0, 0, 0),
                at(packed.constants, 0, 0, 0, 0),
                at(packed.rounding, 0, 0, 0, 0),
                y.at(row, 0, 0),
            )

        if self.by_window:
            body = in_blocks(
                layer, 1,
                lambda row, _: seq(image.fill_window(scratch, x, zero_point, row), some(row, 1)),
            )  # fmt: skip
            return layer.function(name, scratch, body)
        fill = image.fill(scratch, x, zero_point, layer.y0, layer.y1)
        return layer.function(name, scratch, seq(fill, in_blocks(layer, whole, some)))


def _row_code_bytes(node: Node) -> int:
    """Return the bytes of the kernel for one row; its taps are printed one by one."""
    rows, columns = node.inputs[1].shape[1:3]
    return 150 + 24 * rows * columns


class DepthwiseByWindow(Depthwise):
    """The same with the window of one row at a time in scratch."""

    name = "depthwise_lanes_windows"
    by_window = True

    def reject(self, node: Node) -> Refusal | None:
        return refusal(node) or (Refusal.WINDOWS if node.output.type.rows == 1 else None)

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the window of a row."""
        return _Geometry.of(node).padded.bytes_behind(1)

    def code_bytes(self, node: Node) -> int:
        return _row_code_bytes(node)
