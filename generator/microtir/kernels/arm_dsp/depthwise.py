"""Depthwise convolutions, four channels at a time.

One or two pixels a call; what they read is the business of `bordered_rows`.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config.features import Feature
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.copying import copy
from microtir.kernels.arm_dsp.depthwise_kernels import WORD_ORDER, depthwise
from microtir.kernels.common.bordered_rows import Geometry, Window, windowed_rows
from microtir.kernels.common.depthwise_taps import Taps
from microtir.kernels.common.kernel import Kernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant, requantised
from microtir.kernels.common.refusals import depthwise_refusal
from microtir.kernels.common.requantise import Requantisation
from microtir.kernels.common.statements import at, loop, seq
from microtir.kernels.common.weights import QUAD, channel_quads
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import DepthwiseConv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, Refusal
from microtir.tir import ir

_IMMEDIATE = 4095  # largest offset of a load
_TAPS = 64  # they are all unrolled; more make too much code
_LARGEST = 0xFFFF  # what MOVW loads


@of_node
def factors(node: Node) -> Requantisation | None:
    """Return constants of the channels; None if they do not fit the sequence."""
    op, weights = node.op, node.inputs[1].data
    assert isinstance(op, DepthwiseConv2D) and weights is not None
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    return requantised(weights.reshape(-1, weights.shape[-1]).T, node, params)


def refusal(node: Node) -> Refusal | None:
    """Return what speaks against it.

    Int8, one image, one output per channel, a word of channels.
    """
    reason = depthwise_refusal(node)
    if reason is not None:
        return reason
    geometry = Geometry.of(node)
    channels, pixels, taps = geometry.image.channels, _pixels(geometry), _copied_taps(geometry)
    if channels < QUAD:
        return Refusal.FEW_CHANNELS
    in_reach = (
        taps.count <= _TAPS
        and taps.reach(pixels) <= _IMMEDIATE
        and pixels * channels <= _IMMEDIATE
        and 0 < geometry.copied * channels <= _LARGEST
    )
    if not in_reach:
        return Refusal.SIZES
    return Refusal.FORM if factors(node) is None else None


def _pixels(geometry: Geometry) -> int:
    """Return the pixels of one call."""
    return min(2, geometry.output.width)


def _reaches_input(geometry: Geometry) -> bool:
    """Return whether a kernel reaches all taps of its windows in the input itself."""
    taps = Taps.of(geometry.windows, geometry.image.channels, geometry.direct_step)
    return taps.reach(_pixels(geometry)) <= _IMMEDIATE


def _is_direct(geometry: Geometry, calls: Calls) -> bool:
    """Return whether windows are read where they lie.

    All rows are there, and none leaves the image.
    """
    return calls.alone and _reaches_input(geometry) and not geometry.is_bordered


def _copied_taps(geometry: Geometry) -> Taps:
    return Taps.of(geometry.windows, geometry.image.channels, geometry.copied_step)


class Depthwise(Kernel):
    """Four channels a word, one pixel or two at a time; one takes half the code."""

    operators = (DepthwiseConv2D,)
    needs = Feature.DSP
    depends_on_calls = True

    def __init__(self, name: str, pixels: int, cycles: int) -> None:
        self.name, self.pixels, self.cycles = name, pixels, cycles

    def reject(self, node: Node) -> Refusal | None:
        return refusal(node)

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def scratch_bytes(self, node: Node, calls: Calls) -> int:
        """Return the bytes of one window of rows with their borders, if they are copied."""
        geometry = Geometry.of(node)
        return 0 if _is_direct(geometry, calls) else geometry.window_elements

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions from counts of the emulated Cortex-M4."""
        geometry = Geometry.of(node)
        output, taps = geometry.output, _copied_taps(geometry)
        elements = output.height * output.width * output.channels
        copied = output.height * taps.rows * geometry.copied * output.channels
        pair = (
            min(self.pixels, output.width) == 2
        )  # shares inputs: 7 instructions for 4 products, not 8
        sums = taps.count * 7 // 4 + 8 if pair else taps.count * 2 + 11
        return (
            elements * sums
            + (not _is_direct(geometry, calls)) * (copied * 5 // 8)
            + output.height * 60
        )

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; other layers may use the same."""
        geometry = Geometry.of(node)
        width, taps = geometry.output.width, _copied_taps(geometry).count
        single = 190 + 32 * taps
        if self.pixels == 1 or width == 1:
            return single
        return 250 + 56 * taps + (single if width % 2 else 0)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: a window of rows in scratch, then pixel by pixel."""
        return _Emitter(layer, self.pixels).function(name)


class _Emitter:
    def __init__(self, layer: Layer, together: int) -> None:
        self.together = together  # pixels of one call
        self.layer = layer
        self.geometry = geometry = Geometry.of(layer.node)
        self.x, self.y = layer.input_rows(0), layer.output_rows()
        found = factors(layer.node)
        assert found is not None, "refusal() was asked"
        self.rescaling = found.rescaling
        order = channel_quads(geometry.image.channels)
        self.constants = constant("constants", found.constants[order])
        self.weights = constant("weights", arrange(layer.data(1), order))

    def function(self, name: str) -> ir.PrimFunc:
        return windowed_rows(
            self.layer, self.geometry, self.x, name, self.pixels, copy,
            reaches_input=_reaches_input(self.geometry),
        )  # fmt: skip

    def taps(self, row_step: int) -> Taps:
        return Taps.of(self.geometry.windows, self.geometry.image.channels, row_step)

    def pixels(self, row: te.Expr, row_step: int, source: Window) -> ir.Stmt:
        """Emit two pixels at a time, and the last one of an odd width by itself; or all of them."""
        width, stride = self.geometry.output.width, self.geometry.windows.columns.stride
        taps = self.taps(row_step)
        pairs = width // 2 if self.together == 2 else 0

        def some(count: int, column: te.Expr) -> ir.Stmt:
            return call(
                depthwise(count, taps, self.rescaling),
                source(column * stride),
                at(self.weights, 0, 0, 0),
                at(self.constants, 0, 0),
                self.y.at(row, column, 0),
            )

        return seq(
            loop("pair", 0, pairs, lambda pair: some(2, pair * 2)),
            loop("col", pairs * 2, width, lambda column: some(1, column)),
        )


def arrange(weights: npt.NDArray[np.int8], order: list[int]) -> npt.NDArray[np.int16]:
    """Return weights (1, KH, KW, C) as (words, taps, 4), the channels of a word in WORD_ORDER.

    `order` holds the channels word by word.
    """
    wide = weights.astype(np.int16)[..., order]
    by_word = wide.reshape(-1, len(order) // QUAD, QUAD)[:, :, list(WORD_ORDER)]
    arranged: npt.NDArray[np.int16] = by_word.transpose(1, 0, 2)
    return arranged
