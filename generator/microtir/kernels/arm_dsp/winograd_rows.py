"""Convolutions of 3x3 taps by Winograd's F(2, 3) along rows, two channels in the halves of a word.

Each row behind an output row is copied into scratch, between its borders, and transformed to 16-bit
values there, a few tiles at a time.  Those of three rows are multiplied with the weights of all
output channels, which were transformed offline.  Rows are computed one by one, so that it streams
as other kernels do.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import float_rescaling, winograd_windows, winograd_work
from microtir.kernels.arm_dsp.winograd_row_kernels import Block, row_inputs, row_products, turn_of
from microtir.kernels.common import convolution_geometry, refusals, weights, winograd_rows
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Nhwc, Pixel, Product, Tile, macro_kernel
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.statements import at, loop, seq
from microtir.kernels.common.winograd import OUTPUTS, PAIR, TAPS
from microtir.kernels.common.winograd_rows import POSITIONS
from microtir.operators.convolution.definition import Conv2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TILE_INPUTS, _STEP = 22, 11  # instructions for four channels of a tile, and of a step of a sum
# Fitted to layers of 8 to 64 channels on the emulator.
_CYCLES = winograd_work.Work(copied=160, transformed=98, summed=155, finished=140, calls=530)
# Bytes of code.
_TILE_CODE, _MOVE_CODE, _PRODUCTS_CODE, _STEP_CODE, _LAYER_CODE = 95, 160, 540, 44, 420


def _steps(form: winograd_windows.Form) -> int:
    """Return the steps of a sum: pairs of input channels, of three rows."""
    return TAPS * form.channels // PAIR


def _positions(node: Node) -> npt.NDArray[np.int16]:
    return winograd_rows.transformed(winograd_windows.matrix(node))


class WinogradRows(float_rescaling.FloatRescaling):
    """Tiles of two pixels of a row, whose weights were transformed offline.

    Four of them are computed together for two output channels, or two of them, in half of the
    scratch, for four.
    """

    operators = (Conv2D,)
    needs = Feature.DSP

    def __init__(self, name: str, tiles: int) -> None:
        self.name, self.block = name, Block(tiles)

    def reject(self, node: Node) -> Refusal | None:
        pixels = self.block.pixels
        reason = winograd_windows.refusal(node, (pixels, self.block.at_once), reached=pixels)
        if reason is not None:
            return reason
        if not winograd_rows.fits(_positions(node)):
            return Refusal.SUMS
        return Refusal.FORM if winograd_windows.factors(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the transforms of three rows of a block, and of a row."""
        return self._form(node).values * DType.INT16.bytes

    def weight_bytes(self, node: Node) -> int:
        return self._form(node).weight_bytes

    def instructions(self, node: Node, _calls: Calls) -> int:
        form = self._form(node)
        rows = form.geometry.output.height
        return rows * (form.blocks * self._work(node).instructions + 20)

    def cycles_of(self, node: Node, instructions: int) -> int:
        """Return cycles by the shares of the parts of a block."""
        return self._work(node).cycles(instructions, _CYCLES)

    def _work(self, node: Node) -> winograd_work.Work:
        form, block = self._form(node), self.block
        scaling = refusals.asked(winograd_windows.factors(node))
        quad = _TILE_INPUTS * block.tiles + 10
        steps = _steps(form)
        turns = steps // turn_of(steps)
        around = POSITIONS * ((3 * turns if turns > 1 else 1) + 10)
        value = scaling.rescaling.instructions + 1
        outputs = block.at_once * (block.pixels * value + OUTPUTS)
        return winograd_work.Work(
            copied=TAPS * form.copied,
            transformed=TAPS * (form.channels // weights.QUAD * quad),
            summed=form.turns * POSITIONS * _STEP * steps,
            finished=form.turns * (around + outputs + 75),
            calls=TAPS * form.calls,
        )

    def code_bytes(self, node: Node) -> int:
        turn = turn_of(_steps(self._form(node)))
        inputs = _TILE_CODE * self.block.tiles
        return inputs + _MOVE_CODE + _LAYER_CODE + _PRODUCTS_CODE + _STEP_CODE * turn

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: some tiles beside each other at a time."""
        form = self._form(layer.node)
        packed = winograd_windows.Packed.of(layer.node, _positions(layer.node), form.at_once)
        output = form.geometry.output

        def kernel(_pixels: int) -> KernelDescription:
            return row_products(_steps(form), self.block, output.channels, packed.rescaling)

        constants = at(packed.weights, 0, 0, 0, 0, 0), at(packed.constants, 0, 0)
        tile = Tile(form.counts, (Product(kernel, constants),))
        source, sink = _Rows(layer, form, self.block), Nhwc(layer.output_rows())
        return macro_kernel(layer, name, output.width, source, tile, sink)

    def _form(self, node: Node) -> winograd_windows.Form:
        """Return a layer of which one row at a time lies in scratch."""
        block = self.block
        return winograd_windows.Form(
            convolution_geometry.Geometry.of(node), 1, block.tiles, TAPS * POSITIONS, block.at_once
        )


class _Rows(winograd_windows.Windows):
    """The windows of an output row: each row is copied and transformed by itself."""

    def __init__(self, layer: Layer, form: winograd_windows.Form, block: Block) -> None:
        super().__init__(layer, form)
        self._block = block

    def block(self, pixel: Pixel, _count: int) -> ir.Stmt:
        before = self.form.geometry.windows.rows.before
        values = self.form.transforms // TAPS
        kernel = row_inputs(self.form.channels, self._block)

        def row(ky: te.Expr) -> ir.Stmt:
            copied = self.fetch(pixel.column, pixel.row - before + ky, te.as_expr(0, DType.INT32))
            transform = call(kernel, self.place(0, 0), at(self.scratch, 0, ky * values))
            return seq(copied, transform)

        return loop("ky", 0, TAPS, row)
