"""Pointwise convolutions of at most 8 input channels: weights stay in registers.

A row is computed in equal parts of some pixels: they are widened into a patch, and each channel
goes over it.  The sums are so short that reading weights and constants for every two pixels, as
matrix products do, would take as long as the products.  A pixel is one load of several words, as
many products as words, and what requantisation needs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import float_rescaling, outputs
from microtir.kernels.common import refusals, requantise
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.layer import Layer, Rows
from microtir.kernels.common.macro_kernel import Count, Pixel, Product, Source, Tile, macro_kernel
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.micro_kernel import Sizes, call, describe
from microtir.kernels.common.packing import channel_bytes, constant, requantised
from microtir.kernels.common.statements import at, load, loop, seq, store
from microtir.kernels.common.weights import QUAD
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.plan.ir import Calls, LayoutKind, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

LONGEST = 8  # values of a pixel
PIXELS = 32  # the most of a patch
CHANNELS = 255  # largest step of a store
TURN = 8  # pixels of a turn
_CONSTANTS = (requantise.BIAS, requantise.MULTIPLIER, requantise.ROUNDING, requantise.SHIFT)
_ORDER = (0, 2, 1, 3)  # of four values, as SXTB16 splits them


_factors = of_node(requantised)


class GemmNarrow(float_rescaling.FloatRescaling):
    """Sums of up to 8 values, weights of a channel in registers."""

    name = "conv_s8_8x1_dsp"
    operators = (Conv2D, DepthwiseConv2D)
    needs = Feature.DSP
    cycles = 151

    def __init__(self, writes: LayoutKind) -> None:
        self.writes = writes

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it.

        Int8, pixels of one or two quads that outputs stand for.
        """
        is_planar = self.writes is not LayoutKind.NHWC
        reason = outputs.planes_refusal(Geometry.of(node).output) if is_planar else None
        reason = reason or refusals.int8_refusal(node) or refusals.mixed_refusal(node)
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
        geometry = Geometry.of(node)
        return _part(geometry) * geometry.image.channels * DType.INT16.bytes

    def instructions(self, node: Node, _calls: Calls) -> int:
        """Return the instructions for any rows of a call, from counts of the Cortex-M4."""
        geometry, factors = Geometry.of(node), refusals.asked(_factors(node))
        output, values = geometry.output, geometry.image.channels
        rows, part = output.images * output.height, _part(geometry)
        parts = -(-output.width // part)
        turns, rest = divmod(part, TURN)
        pixel = values // 2 + factors.rescaling.instructions + 1
        channel = part * pixel + 3 * (turns + rest) + 15
        instructions = rows * parts * (output.channels * channel + part * values * 15 // 16 + 90)
        return instructions + outputs.borders_cost(output, self.writes)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels; widening is shared."""
        factors = refusals.asked(_factors(node))
        values = Geometry.of(node).image.channels
        return 240 + (TURN + 1) * 4 * (values // 2 + factors.rescaling.instructions + 1)

    def packed_bytes(self, node: Node) -> int:
        geometry = Geometry.of(node)
        values = geometry.image.channels * DType.INT16.bytes
        return channel_bytes(geometry.output.channels, 1, values)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: parts of a row into a patch, then all channels of it."""
        geometry, weights = Geometry.of(layer.node), layer.data(1)
        factors = refusals.asked(_factors(layer.node))
        rescaling, values = factors.rescaling, geometry.image.channels
        sink, planes = outputs.sink_of(layer)
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


# --- micro-kernels --------------------------------------------------------------------------------


@made_once
def widen(values: int) -> KernelDescription:
    """Widen whole quads.

    Returns:
        Parameters: values int8; the same as int16, bytes 0 and 2 of each word, then 1 and 3.
    """
    sizes = Sizes()
    quads = sizes.number("quads", values // QUAD, 1, PIXELS * LONGEST // QUAD)
    x = ir.Buffer("x", (quads, QUAD), DType.INT8)
    patch = ir.Buffer("patch", (quads, QUAD), DType.INT16, alignment=4)

    def quad(number: te.Expr) -> ir.Stmt:
        return seq(*(
            store(patch, (number, place), te.cast(DType.INT16, load(x, number, byte)))
            for place, byte in enumerate(_ORDER)
        ))  # fmt: skip

    return describe(
        "widen_quads",
        ("Widens values to 16 bits, four by four",),
        (x, patch),
        (patch,),
        loop("quad", 0, te.as_expr(quads, DType.INT32), quad),
        "kernels/widen.j2",
        {},
        stack_bytes=36,
        sizes=sizes,
    )


@made_once
def narrow(
    pixels: int,
    values: int,
    channels: int,
    rescaling: requantise.Rescaling,
    planes: outputs.PlaneRow | None = None,
) -> KernelDescription:
    """Compute all channels of some pixels.

    Args:
        pixels: of the patch.
        values: of a pixel, 4 or 8.
        channels: of the output, at most `CHANNELS`.
        rescaling: of the sums.
        planes: where outputs go, if they do not follow each other.

    Returns:
        Parameters: patch (pixels, values) int16 as `widen` makes it, what `pack` gives, outputs
        (pixels, channels); then the number of pixels.  For planes, outputs are a row (channels,
        columns) and the column of the first pixel.
    """
    steps = values // 2
    sizes = Sizes()
    count = sizes.number("pixels", pixels, 1, PIXELS)
    patch = ir.Buffer("patch", (count, values), DType.INT16, alignment=4)
    words = ir.Buffer("words", (channels, steps + requantise.WORDS), DType.INT32)
    y, column, place = _outputs(count, channels, planes, sizes)

    def rescaled(total: ir.Buffer, factors: list[te.Expr]) -> te.Expr:
        return te.cast(y.dtype, rescaling.rescale(load(total), *factors))

    def pixel(channel: te.Expr, number: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)
        bias, *factors = (load(words, channel, steps + n) for n in _CONSTANTS)
        return ir.Allocate(total, seq(
            store(total, (), bias),
            loop("step", 0, steps, lambda n: _add_both(total, patch, number, words, channel, n)),
            store(y, place(channel, number), rescaled(total, factors)),
        ))  # fmt: skip

    def channel(c: te.Expr) -> ir.Stmt:
        return loop("pixel", 0, te.as_expr(count, DType.INT32), lambda number: pixel(c, number))

    return describe(
        f"narrow{values}_{channels}_{rescaling.name}{planes.name if planes else ''}",
        (f"Matrix product: {channels} channels, each of {values} values of some pixels",),
        (patch, words, y),
        (y,),
        loop("channel", 0, channels, channel),
        "kernels/narrow.j2",
        _narrow_values(steps, channels, rescaling, planes),
        stack_bytes=60,
        sizes=sizes,
        scalars=() if column is None else (column,),
    )


Place = Callable[[te.Expr, te.Expr], tuple[te.Expr, te.Expr]]
"""Function from a channel and a pixel of the patch to the place of the output."""


def _outputs(
    pixels: ir.Var, channels: int, planes: outputs.PlaneRow | None, sizes: Sizes
) -> tuple[ir.Buffer, ir.Var | None, Place]:
    if planes is None:
        y = ir.Buffer("y", (pixels, channels), DType.INT8)
        return y, None, lambda channel, pixel: (pixel, channel)
    column = ir.Var("column", low=0, high=planes.columns)
    first = te.as_expr(column, DType.INT32)
    sizes.hold(first + te.as_expr(pixels, DType.INT32) <= planes.columns)
    y = ir.Buffer("y", (channels, planes.columns), planes.dtype)
    return y, column, lambda channel, pixel: (channel, first + pixel)


def _narrow_values(
    steps: int, channels: int, rescaling: requantise.Rescaling, planes: outputs.PlaneRow | None
) -> dict[str, object]:
    return {
        "rescaling": rescaling.values(),
        "turn": str(TURN),
        "turn_mask": str(TURN - 1),
        "pixel_bytes": str(steps * 2 * DType.INT16.bytes),
        "channels": str(channels),
        "last_value": f"r{3 + steps}",
        "last_weight": f"r{steps - 1}",
        "steps": [{"value": f"r{4 + n}", "weight": f"r{n}"} for n in range(1, steps)],
        "planes": planes.values() if planes else "",
        "store": planes.values()["store"] if planes else "strb",
        "output_step": str(planes.dtype.bytes if planes else channels),
        "channel_step": str(planes.bytes if planes else 1),
    }


def _add_both(
    total: ir.Buffer,
    patch: ir.Buffer,
    pixel: te.Expr,
    words: ir.Buffer,
    channel: te.Expr,
    step: te.Expr,
) -> ir.Stmt:
    """Add the products of a word of a pixel and one of weights."""
    word = load(words, channel, step)
    low, high = (word & 0xFFFF ^ 0x8000) - 0x8000, word >> 16
    first, second = (te.cast(DType.INT32, load(patch, pixel, step * 2 + n)) for n in range(2))
    return store(total, (), load(total) + first * low + second * high)


def pack(weights: npt.NDArray[np.int8], constants: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    """Return weights, doubled so that sums are doubled accumulators, and constants of each channel.

    Args:
        weights: (channels, values), whole quads.
        constants: words of each channel as requantisation makes them, (channels, 4).

    Returns:
        (channels, values / 2 + 4).
    """
    quads = 2 * weights.astype(np.int64).reshape(len(weights), -1, QUAD)[:, :, list(_ORDER)]
    pairs = quads.reshape(len(weights), -1, 2)
    words = pairs[:, :, 1] * (1 << 16) + (pairs[:, :, 0] & 0xFFFF)
    return np.concatenate([words, constants.astype(np.int64)], axis=1).astype(np.int32)
