"""Convolutions of 3x3 taps by Winograd's F(2x2, 3x3), two channels in the halves of a word.

The four rows behind two output rows lie in scratch between their borders, as bytes.  Four tiles
beside each other are transformed to 16-bit values, channel by channel, then multiplied with the
weights of all output channels, which were transformed offline.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import float_rescaling, winograd_windows
from microtir.kernels.arm_dsp.winograd_kernels import inputs, is_far, products, turns_of
from microtir.kernels.arm_dsp.winograd_work import Work
from microtir.kernels.common import micro_kernel, refusals, weights, winograd
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Arguments, Pixel, Product, Sink, Tile, macro_kernel
from microtir.kernels.common.statements import at, loop, seq
from microtir.operators.common.rows import Extents
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

# Instructions of the inputs of a pair of channels, of a step of a sum, and around the products of a
# block.
_INPUTS, _STEP, _CALL = 248, 11, 30
# Fitted to layers of 8 to 64 channels on the emulator.
CYCLES = Work(copied=70, transformed=110, summed=155, finished=167, weights=104, calls=1120)
# Bytes of code.
_INPUTS_CODE, _MOVE_CODE, _PRODUCTS_CODE, _STEP_CODE, _LAYER_CODE = 2010, 160, 470, 44, 420


def form_of(node: Node) -> winograd_windows.Form:
    """Return a layer of whose windows four rows lie in scratch."""
    return winograd_windows.Form(
        Geometry.of(node), winograd.SIDE, winograd.TILES, winograd.POSITIONS, winograd.PAIR
    )


def _steps(form: winograd_windows.Form) -> int:
    """Return the steps of a sum: pairs of input channels."""
    return form.channels // winograd.PAIR


def _positions(node: Node) -> npt.NDArray[np.int16]:
    return winograd.transformed(winograd_windows.matrix(node))


class Winograd(float_rescaling.FloatRescaling):
    """Tiles of two rows by two columns, whose weights were transformed offline."""

    name = "conv_s8_16x2_dsp_winograd"
    operators = (Conv2D,)
    needs = Feature.DSP
    depends_on_calls = True

    def reject(self, node: Node) -> Refusal | None:
        reason = winograd_windows.refusal(
            node, (winograd.PIXELS, winograd.PAIR), reached=winograd.OUTPUTS
        )
        if reason is not None:
            return reason
        if not winograd.fits(_positions(node)):
            return Refusal.SUMS
        return Refusal.FORM if winograd_windows.factors(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the windows of four tiles, and of their transforms."""
        return form_of(node).values * DType.INT16.bytes

    def weight_bytes(self, node: Node) -> int:
        return form_of(node).weight_bytes

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions from counts of the emulated Cortex-M4."""
        form = form_of(node)
        rows = bands(form.geometry.output.height, calls, winograd.OUTPUTS)
        return rows * (form.blocks * block_work(node, form).instructions + 30)

    def cycles_of(self, node: Node, instructions: int) -> int:
        """Return cycles by the shares of the parts of a block."""
        return block_work(node, form_of(node)).cycles(instructions, CYCLES)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels, of which layers of equal channels share some."""
        return kernel_bytes(form_of(node))

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: two output rows at a time, four tiles beside each other."""
        form = form_of(layer.node)
        packed = winograd_windows.Packed.of(layer.node, _positions(layer.node), winograd.PAIR)
        output = form.geometry.output

        def kernel(_pixels: int) -> KernelDescription:
            return products(form.channels, form.turns, output.channels, packed.rescaling)

        constants = at(packed.weights, 0, 0, 0, 0, 0), at(packed.constants, 0, 0)
        tile = Tile(form.counts, (Product(kernel, constants),), rows=winograd.OUTPUTS)
        source, sink = Squares(layer, form), TwoRows(layer)
        return macro_kernel(layer, name, output.width, source, tile, sink)


def bands(height: int, calls: Calls, rows: int) -> int:
    """Return how many bands of so many rows, or of fewer, all calls have."""
    at_once = calls.rows or height
    whole, rest = divmod(height, at_once)
    # The first call of a group is for one row where its reader has one ahead.
    ahead = at_once == winograd.OUTPUTS and not calls.alone
    return whole * -(-at_once // rows) + -(-rest // rows) + ahead


def kernel_bytes(form: winograd_windows.Form) -> int:
    """Return the bytes of code of a layer and its micro-kernels."""
    steps = _STEP_CODE * sum(turns_of(_steps(form))[::2])
    return _INPUTS_CODE + _MOVE_CODE + _LAYER_CODE + _PRODUCTS_CODE + steps


def block_work(node: Node, form: winograd_windows.Form, calls: int = 1) -> Work:
    """Return the work of four tiles, whose products are computed by so many calls."""
    scaling, channels = refusals.asked(winograd_windows.factors(node)), form.channels
    far = 2 * winograd.COLUMNS * (winograd.SIDE - 1) if is_far(channels) else 0
    around = winograd.POSITIONS * (3 * turns_of(_steps(form))[1] + 6)
    tiles = winograd.TILES * (83 + 8 * scaling.rescaling.instructions)
    return Work(
        copied=winograd.SIDE * form.copied,
        transformed=30 + channels // weights.QUAD * (winograd.PAIR * _INPUTS + far + 5),
        summed=form.turns * winograd.POSITIONS * _STEP * _steps(form),
        finished=form.turns * (around + tiles + 19) + calls * _CALL,
        calls=winograd.SIDE * form.calls,
    )


class TwoRows(Sink):
    """Outputs of two rows, or of the last one of a call."""

    def __init__(self, layer: Layer) -> None:
        self._rows, self._y1 = layer.output_rows(), layer.y1
        self.channels = Extents.of(layer.node.output.type).channels

    def at(self, pixel: Pixel, channel: te.ExprLike) -> Arguments:
        last = te.minimum(pixel.row + 1, self._y1 - 1)
        places = (self._rows.at(row, pixel.column, channel) for row in (pixel.row, last))
        return (*places, te.minimum(self._y1 - pixel.row, winograd.OUTPUTS))


class Squares(winograd_windows.Windows):
    """The windows of two output rows, and their transforms."""

    def block(self, pixel: Pixel, count: int) -> ir.Stmt:
        """Emit the four rows behind two output rows, then their transforms."""
        rows = self.form.geometry.windows.rows
        # Behind the last row of a call nothing may be read; what is computed there is not written.
        last = self.y1 - 1 + (winograd.TAPS - 1) - rows.before

        def fetch(ky: te.Expr) -> ir.Stmt:
            y = te.minimum(pixel.row - rows.before + ky, last)
            return self.fetch(pixel.column, y, ky)

        kernel = inputs(self.form.channels)
        transform = micro_kernel.call(kernel, self.place(0, 0), self.at(pixel, count))
        return seq(loop("ky", 0, winograd.SIDE, fetch), transform)
