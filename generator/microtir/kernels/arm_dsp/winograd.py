"""Convolutions of 3x3 taps by Winograd's F(2x2, 3x3), two channels in the halves of a word.

The four rows behind two output rows lie in scratch between their borders, as bytes.  Four tiles
beside each other are transformed to 16-bit values, channel by channel, then multiplied with the
weights of all output channels, which were transformed offline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.copying import fill
from microtir.kernels.arm_dsp.float_rescaling import FloatRescaling
from microtir.kernels.arm_dsp.winograd_kernels import (
    IMMEDIATE,
    inputs,
    is_far,
    move,
    products,
    turns_of,
)
from microtir.kernels.common import winograd
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.gather import image_row
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import (
    Arguments,
    Count,
    Pixel,
    Product,
    Sink,
    Source,
    Tile,
    cut,
    macro_kernel,
)
from microtir.kernels.common.made_once import of_node
from microtir.kernels.common.micro_kernel import call
from microtir.kernels.common.packing import constant, requantised
from microtir.kernels.common.refusals import int8_refusal, mixed_refusal
from microtir.kernels.common.requantise import Requantisation, Rescaling
from microtir.kernels.common.statements import at, let, loop, seq, when
from microtir.kernels.common.weights import QUAD
from microtir.kernels.common.winograd import (
    COLUMNS,
    CONSTANTS,
    OUTPUTS,
    PAIR,
    PIXELS,
    POSITIONS,
    SIDE,
    TAPS,
    TILES,
)
from microtir.operators.common.rows import RowWindow
from microtir.operators.convolution.definition import Conv2D, conv_params
from microtir.operators.convolution.formula import row_window
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_LEAST = 8  # input channels: with fewer, transforms take more than they save
_MOST = 256  # input channels, whose transforms instructions reach
_WORD = 4
_COUNTS = (Count(PIXELS, "block", overlaps=True),)
# Instructions of the inputs of a pair of channels, and of a step of a sum; cycles of 100 of those
# and of what surrounds these.
_INPUTS, _STEP = 248, 11
_INPUT_CYCLES, _PRODUCT_CYCLES = 116, 157
# Bytes of code.
_INPUTS_CODE, _MOVE_CODE, _PRODUCTS_CODE, _STEP_CODE, _LAYER_CODE = 2010, 160, 470, 44, 420


@dataclass(frozen=True, slots=True)
class _Part:
    """Which columns of a block's windows lie inside the image: [low, high).

    The block begins at column `begin` of the output, and its windows at column `left` of the image.
    """

    begin: int
    left: int
    low: int
    high: int

    @property
    def beside(self) -> list[tuple[int, int]]:
        """Return the columns outside the image."""
        return [ends for ends in ((0, self.low), (self.high, COLUMNS)) if ends[0] < ends[1]]


@dataclass(frozen=True, slots=True)
class _Form:
    """A layer as the kernels need it."""

    geometry: Geometry

    @staticmethod
    def of(node: Node) -> _Form:
        return _Form(Geometry.of(node))

    @property
    def channels(self) -> int:
        """Return the channels of a pixel in scratch."""
        return winograd.padded(self.geometry.image.channels)

    @property
    def parts(self) -> tuple[_Part, ...]:
        """Return which columns of the image each block of a row reads."""
        before, width = self.geometry.windows.columns.before, self.geometry.image.width
        begins = (
            min(blocks.first + number * PIXELS, blocks.last)
            for blocks in cut(self.geometry.output.width, _COUNTS)
            for number in range(blocks.times)
        )
        return tuple(
            _Part(b, b - before, max(before - b, 0), min(width + before - b, COLUMNS))
            for b in begins
        )

    @property
    def transforms(self) -> int:
        """Return the values of the transformed inputs of four tiles."""
        return POSITIONS * TILES * self.channels

    @property
    def values(self) -> int:
        """Return the values of scratch, of two bytes each."""
        return self.transforms + SIDE * COLUMNS * self.channels // 2

    @property
    def steps(self) -> int:
        """Return the steps of a sum: pairs of input channels."""
        return self.channels // PAIR

    @property
    def is_joined(self) -> bool:
        """Return whether the pixels of a row follow each other in scratch as in the image."""
        return self.channels == self.geometry.image.channels


@dataclass(frozen=True, slots=True, eq=False)
class _Packed:
    """Constants of a layer."""

    weights: ir.Buffer
    constants: ir.Buffer
    rescaling: Rescaling


def _matrix(node: Node) -> npt.NDArray[np.int8]:
    weights = node.inputs[1].data
    assert weights is not None, "reject() was asked"
    return weights.astype(np.int8)


@of_node
def _factors(node: Node) -> Requantisation | None:
    op, weights = node.op, _matrix(node)
    assert isinstance(op, Conv2D)
    params = conv_params(op, node.inputs[0].type, node.inputs[1].type, node.output.type)
    return requantised(weights.reshape(len(weights), -1), node, params)


def _packed(node: Node) -> _Packed:
    factors = _factors(node)
    assert factors is not None, "reject() was asked"
    weights = winograd.arranged(winograd.transformed(_matrix(node)))
    words = winograd.constant_words(factors.constants)
    return _Packed(constant("weights", weights), constant("words", words), factors.rescaling)


class Winograd(FloatRescaling):
    """Tiles of two rows by two columns, whose weights were transformed offline."""

    name = "conv_s8_16x2_dsp_winograd"
    operators = (Conv2D,)
    needs = Feature.DSP
    depends_on_calls = True

    def window(self, node: Node) -> RowWindow | None:
        return row_window(node)

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8 over one image, 3x3 taps beside each other, outputs for each pixel, whole tiles.
        """
        reason = int8_refusal(node) or mixed_refusal(node)
        if reason is not None:
            return reason
        form = _Form.of(node)
        image, output, windows = form.geometry.image, form.geometry.output, form.geometry.windows
        if image.images != 1:
            return Refusal.IMAGES
        ways = (windows.rows, windows.columns)
        if any((way.taps, way.stride, way.dilation) != (TAPS, 1, 1) for way in ways):
            return Refusal.WINDOWS
        if image.channels < _LEAST or output.channels < PAIR:
            return Refusal.FEW_CHANNELS
        fits = (
            output.width >= PIXELS
            and form.channels <= _MOST
            and OUTPUTS * output.channels + 1 <= IMMEDIATE
        )
        if not fits:
            return Refusal.SIZES
        if not winograd.fits(winograd.transformed(_matrix(node))):
            return Refusal.SUMS
        return Refusal.FORM if _factors(node) is None else None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the windows of four tiles, and of their transforms."""
        return _Form.of(node).values * DType.INT16.bytes

    def weight_bytes(self, node: Node) -> int:
        """Return the bytes of transformed weights, and of what requantisation needs."""
        form = _Form.of(node)
        pairs = -(-form.geometry.output.channels // PAIR)
        weights = PAIR * POSITIONS * form.channels * DType.INT16.bytes
        return pairs * (weights + CONSTANTS * _WORD)

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return instructions from counts of the emulated Cortex-M4."""
        form, factors = _Form.of(node), _factors(node)
        assert factors is not None, "reject() was asked"
        output = form.geometry.output
        together = calls.rows or output.height
        whole, rest = divmod(output.height, together)
        blocks = whole * -(-together // OUTPUTS) + -(-rest // OUTPUTS)
        if together == OUTPUTS and not calls.alone:
            # The first call of a group is for one row where its reader has one ahead.
            blocks += 1
        tiles = sum(part.times for part in cut(output.width, _COUNTS))
        return blocks * (tiles * sum(_block(form, factors.rescaling)) + 30)

    def cycles_of(self, node: Node, instructions: int) -> int:
        """Return cycles by the share of products, whose loads and pushes are of several words."""
        form, factors = _Form.of(node), _factors(node)
        assert factors is not None, "reject() was asked"
        inputs, products = _block(form, factors.rescaling)
        cycles = _INPUT_CYCLES * inputs + _PRODUCT_CYCLES * products
        return instructions * cycles // (100 * (inputs + products))

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels, of which layers of equal channels share some."""
        return (
            _INPUTS_CODE
            + _MOVE_CODE
            + _LAYER_CODE
            + _PRODUCTS_CODE
            + _STEP_CODE * sum(turns_of(_Form.of(node).steps)[::2])
        )

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: two output rows at a time, four tiles beside each other."""
        form, packed = _Form.of(layer.node), _packed(layer.node)
        output = form.geometry.output
        pairs = -(-output.channels // PAIR)

        def kernel(_pixels: int) -> KernelDescription:
            return products(form.channels, pairs, output.channels, packed.rescaling)

        constants = at(packed.weights, 0, 0, 0, 0, 0), at(packed.constants, 0, 0)
        tile = Tile(_COUNTS, (Product(kernel, constants),), rows=OUTPUTS)
        source, sink = _Windows(layer, form), _TwoRows(layer)
        return macro_kernel(layer, name, output.width, source, tile, sink)


def _block(form: _Form, rescaling: Rescaling) -> tuple[int, int]:
    """Return the instructions for the inputs of four tiles, and for their products."""
    geometry, channels = form.geometry, form.channels
    if form.is_joined:
        copied = COLUMNS * channels * 17 // 32 + 40
    else:
        copied = COLUMNS * (6 * geometry.image.channels + 12)
    far = 2 * COLUMNS * (SIDE - 1) if is_far(channels) else 0
    transformed = 30 + channels // QUAD * (PAIR * _INPUTS + far + 5)
    position = _STEP * form.steps + 3 * turns_of(form.steps)[1] + 6
    tile = 83 + 8 * rescaling.instructions
    pairs = -(-geometry.output.channels // PAIR)
    multiplied = 30 + pairs * (POSITIONS * position + TILES * tile + 19)
    return SIDE * copied + transformed, multiplied


class _TwoRows(Sink):
    """Outputs of two rows, or of the last one of a call."""

    def __init__(self, layer: Layer) -> None:
        self._rows, self._y1 = layer.output_rows(), layer.y1

    def at(self, pixel: Pixel, channel: int) -> Arguments:
        last = te.minimum(pixel.row + 1, self._y1 - 1)
        places = (self._rows.at(row, pixel.column, channel) for row in (pixel.row, last))
        return (*places, te.minimum(self._y1 - pixel.row, OUTPUTS))


class _Windows(Source):
    """The windows of a block, copied between what lies beside the image, and their transforms."""

    def __init__(self, layer: Layer, form: _Form) -> None:
        self.form, self.x, self.y1 = form, layer.input_rows(0), layer.y1
        # One row, so that whoever follows rows of buffers sees one span of bytes.
        self.scratch: ir.Buffer = ir.Buffer("scratch", (1, form.values), DType.INT16, alignment=4)
        zero = self.x.type.quant.zero_point
        self.border = zero * 256 + zero % 256

    def at(self, _pixel: Pixel, _count: int) -> ir.BufferArgument:
        return at(self.scratch, 0, 0)

    def block(self, pixel: Pixel, _count: int) -> ir.Stmt:
        """Emit the four rows behind two output rows, then their transforms."""
        rows = self.form.geometry.windows.rows
        # Behind the last row of a call nothing may be read; what is computed there is not written.
        last = self.y1 - 1 + (TAPS - 1) - rows.before

        def fetch(ky: te.Expr) -> ir.Stmt:
            y = te.minimum(pixel.row - rows.before + ky, last)
            inside = partial(self._inside, pixel.column, ky)
            outside = partial(self._fill, ky, 0, COLUMNS)
            return image_row(self.form.geometry, y, inside, outside)

        kernel = inputs(self.form.channels)
        transform = call(kernel, self._place(0, 0), at(self.scratch, 0, 0))
        return seq(loop("ky", 0, SIDE, fetch), transform)

    def _inside(self, column: te.Expr, ky: te.Expr, y: te.Expr) -> ir.Stmt:
        """Emit a row of the windows of a block, by where it leaves the image to the sides."""
        left = column - self.form.geometry.windows.columns.before
        edges = [part for part in self.form.parts if part.beside]

        def edge(part: _Part) -> ir.Stmt:
            fills = (self._fill(ky, *ends) for ends in part.beside)
            start = te.as_expr(part.left + part.low, DType.INT32)
            return seq(*fills, self._move(ky, y, start, part.low, part.high))

        if not edges:
            return self._move(ky, y, left, 0, COLUMNS)
        body = edge(edges[-1])
        for part in reversed(edges[:-1]):
            body = when(column == part.begin, edge(part), body)
        if len(edges) == len(self.form.parts):
            return body
        width = self.form.geometry.image.width

        def anywhere(start: te.Expr) -> ir.Stmt:
            inner = self._move(ky, y, start, 0, COLUMNS)
            return when((start >= 0) & (start + COLUMNS <= width), inner, body)

        # By a name, so that whoever follows the accesses narrows it where the condition holds.
        return let("left", left, anywhere)

    def _move(self, ky: te.Expr, y: te.Expr, start: te.Expr, low: int, high: int) -> ir.Stmt:
        """Emit columns [low, high) of a row, from a column of the image on."""
        channels = self.form.geometry.image.channels
        if self.form.is_joined:
            whole = move((high - low) * channels)
            return call(whole, self.x.at(y, start, 0), self._place(ky, low))
        kernel = move(channels)
        return loop(
            "col", 0, high - low,
            lambda n: call(kernel, self.x.at(y, start + n, 0), self._place(ky, n + low)),
        )  # fmt: skip

    def _fill(self, ky: te.Expr, first: int, stop: int) -> ir.Stmt:
        size = (stop - first) * self.form.channels // 2
        return call(fill(size, self.border, DType.INT16), self._place(ky, first))

    def _place(self, ky: te.ExprLike, column: te.ExprLike) -> ir.BufferArgument:
        """Return a pixel of a row of the windows."""
        row, pixel = (te.as_expr(n, DType.INT32) for n in (ky, column))
        place = (row * COLUMNS + pixel) * (self.form.channels // 2)
        return at(self.scratch, 0, place + self.form.transforms)
