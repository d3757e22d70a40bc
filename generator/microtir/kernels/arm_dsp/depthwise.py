"""Depthwise convolutions, four channels at a time: all channels of one or two pixels a call.

What they read is the business of `bordered_rows`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp.copying import copy
from microtir.kernels.arm_dsp.float_rescaling import FloatRescaling
from microtir.kernels.common import micro_kernel, packing, refusals
from microtir.kernels.common.bordered_rows import window_rows
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.depthwise import DepthwiseKernel, Taps
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Nhwc, Product, Tile, macro_kernel
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.requantise import WORDS, Rescaling
from microtir.kernels.common.statements import at, load, loop, seq, store
from microtir.kernels.common.weights import QUAD, channel_quads
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

IMMEDIATE = 4095  # largest offset of a load
MOST_TAPS = 64  # they are all unrolled; more make too much code
_LARGEST = 0xFFFF  # what MOVW loads
_WORD_ORDER = (0, 2, 1, 3)  # as SXTB16 splits them


factors = of_node(packing.requantised)


@dataclass(frozen=True, slots=True, eq=False)
class PackedDepthwise:
    """Constants of a layer, word by word; those of the last one may overlap the one before.

    `weights` are (words, taps, 4) int16, the channels of a word as SXTB16 splits them, `constants`
    (4 * words, 4) int32.
    """

    weights: ir.Buffer
    constants: ir.Buffer
    rescaling: Rescaling

    @staticmethod
    def of(layer: Layer) -> PackedDepthwise:
        """Return the constants of a layer whose factors fit."""
        scaling = refusals.asked(factors(layer.node))
        weights = layer.data(1)
        order = channel_quads(weights.shape[-1])
        by_word = weights.astype(np.int16)[..., order].reshape(-1, len(order) // QUAD, QUAD)
        return PackedDepthwise(
            packing.constant("weights", by_word[:, :, list(_WORD_ORDER)].transpose(1, 0, 2)),
            packing.constant("constants", scaling.constants[order]),
            scaling.rescaling,
        )


def packed_bytes(node: Node) -> int:
    """Return the bytes of the constants of a layer."""
    _, rows, columns, channels = node.inputs[1].shape
    return packing.channel_bytes(channels, QUAD, rows * columns * DType.INT16.bytes)


class Depthwise(FloatRescaling, DepthwiseKernel):
    """Four channels a word, one pixel or two at a time; one takes half the code."""

    needs = Feature.DSP
    depends_on_calls = has_wide_weights = True

    def __init__(self, name: str, pixels: int, cycles: int) -> None:
        self.name, self.pixels, self.cycles = name, pixels, cycles

    def reject_sizes(self, _node: Node, geometry: Geometry) -> Refusal | None:
        """Return what speaks against it: less than a word of channels, loads out of reach."""
        channels, pixels, taps = geometry.image.channels, _pixels(geometry), _copied_taps(geometry)
        if channels < QUAD:
            return Refusal.FEW_CHANNELS
        in_reach = (
            taps.count <= MOST_TAPS
            and taps.reach(pixels) <= IMMEDIATE
            and pixels * channels <= IMMEDIATE
            and 0 < geometry.copied * channels <= _LARGEST
        )
        return None if in_reach else Refusal.SIZES

    def has_form(self, node: Node) -> bool:
        return factors(node) is not None

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
        # A pair shares inputs: 7 instructions for 4 products, not 8.
        pair = min(self.pixels, output.width) == 2
        sums = taps.count * 7 // 4 + 8 if pair else taps.count * 2 + 11
        copies = 0 if _is_direct(geometry, calls) else copied * 5 // 8
        return elements * sums + copies + output.height * 60

    def code_bytes(self, node: Node) -> int:
        geometry = Geometry.of(node)
        width, taps = geometry.output.width, _copied_taps(geometry).count
        single = 190 + 32 * taps
        if self.pixels == 1 or width == 1:
            return single
        return 250 + 56 * taps + (single if width % 2 else 0)

    def packed_bytes(self, node: Node) -> int:
        return packed_bytes(node)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: a window of rows in scratch, then pixel by pixel."""
        geometry, packed = Geometry.of(layer.node), PackedDepthwise.of(layer)
        reaches_input = _reaches_input(geometry)
        source = window_rows(layer.input_rows(0), geometry, copy, reaches_input=reaches_input)
        taps = Taps.of(geometry.windows, geometry.image.channels, source.row_step)
        constants = at(packed.weights, 0, 0, 0), at(packed.constants, 0, 0)
        pair = (Count(2, "pair"),) if self.pixels == 2 else ()
        product = Product(lambda count: depthwise(count, taps, packed.rescaling), constants)
        tile = Tile((*pair, Count(1, "col")), (product,))
        width = geometry.output.width
        return macro_kernel(layer, name, width, source, tile, Nhwc(layer.output_rows()))


def _pixels(geometry: Geometry) -> int:
    return min(2, geometry.output.width)


def _reaches_input(geometry: Geometry) -> bool:
    """Return whether a kernel reaches all taps of its windows in the input itself."""
    taps = Taps.of(geometry.windows, geometry.image.channels, geometry.direct_step)
    return taps.reach(_pixels(geometry)) <= IMMEDIATE


def _is_direct(geometry: Geometry, calls: Calls) -> bool:
    """Return whether windows are read where they lie.

    All rows are there, and none leaves the image.
    """
    return calls.alone and _reaches_input(geometry) and not geometry.is_bordered


def _copied_taps(geometry: Geometry) -> Taps:
    return Taps.of(geometry.windows, geometry.image.channels, geometry.copied_step)


# --- the micro-kernel ---


@made_once
def depthwise(pixels: int, taps: Taps, rescaling: Rescaling) -> KernelDescription:
    """Compute all channels (4 or more) of `pixels` (1 or 2) neighbouring pixels.

    Returns:
        Parameters: the first tap of the first pixel, weights and constants of `PackedDepthwise`,
        outputs.
    """
    quads, channels = -(-taps.channels // QUAD), taps.channels
    x = ir.Buffer("x", (taps.reach(pixels),), DType.INT8)
    weights = ir.Buffer("weights", (quads, taps.count, QUAD), DType.INT16, alignment=4)
    constants = ir.Buffer("constants", (quads * QUAD, WORDS), DType.INT32)
    y = ir.Buffer("y", (pixels * channels,), DType.INT8)

    def output(quad: te.Expr, pixel: te.Expr, number: int) -> ir.Stmt:
        channel = te.minimum(quad * QUAD, channels - QUAD) + number
        place = _WORD_ORDER.index(number)
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

        def tap(row: te.Expr, column: te.Expr) -> ir.Stmt:
            first = (pixel * taps.stride + column * taps.column_step) * channels
            value = load(x, row * taps.row_step + first + channel)
            weight = load(weights, quad, row * taps.columns + column, place)
            product = te.cast(DType.INT32, value) * te.cast(DType.INT32, weight)
            return store(total, (), load(total) + product)

        result = rescaling.apply(load(total) * 2, constants, quad * QUAD + number)
        stored = store(y, (pixel * channels + channel,), result)
        return ir.Allocate(total, seq(store(total, (), 0), taps.each(tap), stored))

    body = loop(
        "quad", 0, quads,
        lambda quad: loop(
            "pixel", 0, pixels,
            lambda p: seq(*(output(quad, p, number) for number in range(QUAD))),
        ),
    )  # fmt: skip
    step = f"{taps.row_step}_{taps.column_step}_{taps.stride}"
    return micro_kernel.describe(
        f"depthwise{pixels}_{taps.rows}x{taps.columns}_{channels}_{step}_{rescaling.name}",
        (f"Depthwise convolution: {pixels} x {channels} outputs, {taps.rows}x{taps.columns} taps",),
        (x, weights, constants, y),
        (y,),
        body,
        "kernels/depthwise.j2",
        {
            **values_of(pixels, channels, taps.count, rescaling),
            "columns": _columns(pixels, taps),
        },
        stack_bytes=56,
    )  # fmt: skip


def values_of(pixels: int, channels: int, taps: int, rescaling: Rescaling) -> dict[str, object]:
    """Return what the templates of depthwise kernels are given whatever the windows."""
    return {
        "rescaling": rescaling.values(),
        "channels": str(channels),
        "overlap": str(-channels % QUAD) if channels % QUAD else "",
        "weight_bytes": str(taps * QUAD * DType.INT16.bytes),
        "results": [
            [{"sum": _sum(p, c), "offset": str(p * channels + c)} for p in range(pixels)]
            for c in range(QUAD)
        ],
    }


def uses_of(taps: Iterable[tuple[int, int]], started: set[int]) -> list[dict[str, object]]:
    """Return how a word of inputs is used by pairs of a pixel and a tap.

    The pixels join those whose sums are `started`.
    """
    uses: list[dict[str, object]] = []
    for pixel, tap in taps:
        uses.append({
            "weights": str(tap * QUAD * DType.INT16.bytes),
            "sums": {name: _sum(pixel, channel) for channel, name in enumerate("abcd")},
            "first": pixel not in started,
        })  # fmt: skip
        started.add(pixel)
    return uses


def _sum(pixel: int, channel: int) -> str:
    return f"r{pixel * QUAD + channel}"


def _columns(pixels: int, taps: Taps) -> list[dict[str, object]]:
    """Return the input words in order, each with the pixels and taps that it takes part in."""
    by_column: dict[int, list[tuple[int, int]]] = {}
    for pixel in range(pixels):
        for column in range(taps.columns):
            by_column.setdefault(taps.column(column, pixel), []).append((pixel, column))
    started: set[int] = set()
    return [
        {
            "offset": str(row * taps.row_step + place * taps.channels),
            "uses": uses_of(
                ((pixel, row * taps.columns + column) for pixel, column in by_column[place]),
                started,
            ),
        }
        for row in range(taps.rows)
        for place in sorted(by_column)
    ]
