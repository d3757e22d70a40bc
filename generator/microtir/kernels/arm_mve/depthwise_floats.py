"""Depthwise convolutions of float32: up to six pixels by four channels at a time.

The weights of a row stay in registers beside the sums, and each column of the image is loaded once
for all pixels that it is a tap of.  Where they are too many, those of a tap are loaded once for
all pixels of a block, each of which has a pointer.
"""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_mve import copying
from microtir.kernels.arm_mve.float_blocks import (
    LANES,
    OFFSET,
    WORD,
    add,
    ends_of,
    jumps,
    size_refusal,
)
from microtir.kernels.common import packing
from microtir.kernels.common.bordered_rows import copy_cost, scratch_bytes, window_rows
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.depthwise import DepthwiseKernel, Taps
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Nhwc, Product, Tile, macro_kernel
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe
from microtir.kernels.common.runs import turns_of
from microtir.kernels.common.statements import at, load, loop, seq, store
from microtir.measure.printed import printed
from microtir.operators.common.arithmetic import activate
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution.definition import DepthwiseConv2D
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_TEMPLATE = "kernels/mve/depthwise_f32.j2"
_HELD = 7  # vectors of sums and of a row's weights, beside one of elements
_MOST = 6  # pixels, whose sums stay in registers beside weights and elements
_STRAIGHT = 3  # rows that are printed without a loop
_TAPS = 9  # of a row, all of which are printed
_ROW, _CALL = 3, 6  # instructions around a row and a call
_FILL = 5  # of two elements of a row outside the image, more than of two that are copied


class DepthwiseFloats(DepthwiseKernel):
    """A block of pixels a call, all channels of it."""

    name = "dwconv_f32_6x4_mve"
    needs = Feature.MVE_FLOAT
    dtype = DType.FLOAT32
    cycles = 150
    depends_on_calls = True

    def reject_sizes(self, node: Node, geometry: Geometry) -> Refusal | None:
        """Return what speaks against it: few channels, long rows of taps, large distances."""
        taps = Taps.of(geometry.windows, geometry.image.channels, geometry.copied_step)
        if taps.channels < LANES:
            return Refusal.FEW_CHANNELS
        if taps.columns > _TAPS:
            return Refusal.WINDOWS
        far = max(taps.column_step, taps.stride) * taps.channels
        return size_refusal(far, geometry.direct_step, taps.row_step)

    def has_form(self, _node: Node) -> bool:
        return True

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        return scratch_bytes(node)

    def instructions(self, node: Node, calls: Calls) -> int:
        geometry, by_rows = Geometry.of(node), calls.rows > 0
        row = _ROW + self._row(node, self._pixels(node))
        copies = copy_cost(
            node, by_rows=by_rows, copied=lambda size: copying.copied(size, DType.FLOAT32)
        )
        filled = geometry.copied * geometry.image.channels * _FILL // 2
        outside = sum(geometry.windows.rows.outside(geometry.output.height))
        return geometry.output.height * row + copies + outside * filled

    def _pixels(self, node: Node) -> int:
        """Return the pixels of a block: what makes a row cheapest."""
        width = Geometry.of(node).output.width
        return min(range(1, min(_MOST, width) + 1), key=lambda n: self._row(node, n))

    def _row(self, node: Node, pixels: int) -> int:
        whole, rest = divmod(Geometry.of(node).output.width, pixels)
        last = self._of_call(node, rest) if rest else 0
        return whole * self._of_call(node, pixels) + last

    def _of_call(self, node: Node, pixels: int) -> int:
        values = _values(pixels, *self._form(node))
        turns = number_of_blocks = len(turns_of(node.output.shape[-1], LANES))
        rows = Geometry.of(node).windows.rows.taps
        loops = {"bne.w 1b": turns, "le lr, 2b": number_of_blocks * rows}
        return printed(_TEMPLATE, values).instructions(loops) + _CALL

    def _form(self, node: Node, row_step: int | None = None) -> tuple[Taps, bool, Activation]:
        """Return taps, whether there is a bias, and the activation."""
        geometry = Geometry.of(node)
        step = geometry.copied_step if row_step is None else row_step
        taps = Taps.of(geometry.windows, geometry.image.channels, step)
        return taps, len(node.inputs) > 2, node.attributes(DepthwiseConv2D).activation

    def code_bytes(self, node: Node) -> int:
        pixels = self._pixels(node)
        rest = Geometry.of(node).output.width % pixels
        counts = (n for n in (pixels, rest) if n)
        return sum(printed(_TEMPLATE, _values(n, *self._form(node))).bytes for n in counts)

    def packed_bytes(self, node: Node) -> int:
        taps, has_bias, _ = self._form(node)
        blocks = len(turns_of(taps.channels, LANES))
        return blocks * LANES * WORD * (taps.count + has_bias)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Emit the layer function: blocks of pixels of each row, then those that are left."""
        node, geometry = layer.node, Geometry.of(layer.node)
        starts = turns_of(geometry.image.channels, LANES)
        order = np.array([[start + n for n in range(LANES)] for start in starts])
        weights = layer.data(1).reshape(-1, geometry.image.channels)[:, order].transpose(1, 0, 2)
        constants = [at(packing.constant("weights", np.ascontiguousarray(weights)), 0, 0, 0)]
        if len(node.inputs) > 2:
            constants.append(at(packing.constant("constants", layer.data(2)[order]), 0, 0))
        source = window_rows(
            layer.input_rows(0), geometry, lambda size: copying.copy(size, DType.FLOAT32)
        )
        form = self._form(node, source.row_step)
        product = Product(lambda pixels: _block(pixels, *form), tuple(constants))
        tile = Tile((Count(self._pixels(node), "block", unit=1),), (product,))
        width = geometry.output.width
        return macro_kernel(layer, name, width, source, tile, Nhwc(layer.output_rows()))


@made_once
def _block(pixels: int, taps: Taps, has_bias: bool, activation: Activation) -> KernelDescription:
    """Compute all channels of some pixels.

    Returns:
        Parameters: the first tap of the first pixel, weights (blocks, taps, 4), biases (blocks, 4)
        if there are some, outputs.  The last block may begin within the one before.
    """
    channels, starts = taps.channels, turns_of(taps.channels, LANES)
    x = ir.Buffer("x", (taps.reach(pixels),), DType.FLOAT32)
    weights = ir.Buffer("weights", (len(starts), taps.count, LANES), DType.FLOAT32)
    table = ir.Buffer("constants", (len(starts), LANES), DType.FLOAT32)
    y = ir.Buffer("y", (pixels * channels,), DType.FLOAT32)
    total = ir.Buffer("total", (), DType.FLOAT32, ir.Scope.LOCAL)

    def output(block: te.Expr, pixel: te.Expr, lane: te.Expr) -> ir.Stmt:
        first = te.minimum(block * LANES, channels - LANES) + lane

        def tap(row: te.Expr, column: te.Expr) -> ir.Stmt:
            offset = row * taps.row_step + column * (taps.column_step * channels)
            value = load(x, pixel * (taps.stride * channels) + offset + first)
            weight = load(weights, block, row * taps.columns + column, lane)
            return store(total, (), load(total) + value * weight)

        start = load(table, block, lane) if has_bias else te.as_expr(0.0, DType.FLOAT32)
        result = store(y, (pixel * channels + first,), activate(load(total), activation))
        return ir.Allocate(total, seq(store(total, (), start), taps.each(tap), result))

    steps = f"{taps.row_step}_{taps.column_step}_{taps.stride}"
    bias = "_bias" * has_bias
    kernel = f"{taps.rows}x{taps.columns}"
    return describe(
        f"depthwise_f32_{pixels}x{channels}_{kernel}_{steps}{bias}_{activation.value}",
        (f"Depthwise convolution of floats: {pixels} x {channels} outputs, {kernel} taps",),
        (x, weights, *((table,) if has_bias else ()), y),
        (y,),
        loop("block", 0, len(starts), lambda block: loop(
            "pixel", 0, pixels,
            lambda pixel: loop("lane", 0, LANES, lambda lane: output(block, pixel, lane)),
        )),
        _TEMPLATE,
        _values(pixels, taps, has_bias, activation),
        stack_bytes=100,
        needs=Feature.MVE_FLOAT,
    )  # fmt: skip


def _values(pixels: int, taps: Taps, has_bias: bool, activation: Activation) -> dict[str, object]:
    """Return what the template is given."""
    sums, distance, left = _sums(pixels), taps.channels * WORD, taps.channels % LANES
    lines = _shared if pixels + taps.columns <= _HELD else _apart
    ahead, products, moved = lines(pixels, taps)
    pointers = 1 if lines is _shared else pixels
    reaches = (pixels - 1) * distance <= OFFSET
    return {
        "has_table": has_bias,
        "blocks": str(len(turns_of(taps.channels, LANES))),
        "begin": ahead,
        "sums": sums,
        "behind": sums[1:],
        "rows": str(taps.rows),
        "loops": taps.rows > _STRAIGHT,
        "row": products,
        "row_jump": jumps(pointers, taps.row_step * WORD - moved, "r7"),
        "ends": ends_of(activation),
        "distance": "" if reaches else str(distance),
        "placed": [(total, str(n * distance)) for n, total in enumerate(sums) if n],
        "back": str((LANES - left) * WORD) if left else "",
    }


def _sums(pixels: int) -> list[str]:
    return [f"q{n}" for n in range(pixels)]


def _shared(pixels: int, taps: Taps) -> tuple[list[str], list[str], int]:
    """Return the products of a row whose weights stay in registers: columns are loaded once.

    Returns:
        Lines in front of the rows, those of a row, and the bytes by which they move pointers.
    """
    step = taps.channels * WORD
    pairs = [
        (taps.column(column, pixel), pixel, column)
        for pixel in range(pixels)
        for column in range(taps.columns)
    ]
    places = sorted({place for place, _, _ in pairs})
    centre = max(places[-1] * step - OFFSET, 0)
    row = [f"vldrw.32 q{pixels + column}, [r10], #16" for column in range(taps.columns)]
    for place, after in zip(places, [*places[1:], places[-1]], strict=True):
        gap = (after - place) * step
        if centre <= OFFSET:
            row.append(f"vldrw.32 q7, [r0, #{place * step - centre}]")
        elif 0 < gap <= OFFSET:
            row.append(f"vldrw.32 q7, [r0], #{gap}")
        else:
            row += ["vldrw.32 q7, [r0]", *add("r0", "r0", gap, "r7")]
        row += [f"vfma.f32 q{p}, q7, q{pixels + c}" for at_, p, c in pairs if at_ == place]
    if centre <= OFFSET:
        return list(add("r0", "r0", centre, "r7")), row, 0
    return [], row, places[-1] * step


def _apart(pixels: int, taps: Taps) -> tuple[list[str], list[str], int]:
    """Return the same of a row with too many weights: each pixel has a pointer."""
    step, row = taps.column_step * taps.channels * WORD, list[str]()
    is_near = (taps.columns - 1) * step <= OFFSET
    for column in range(taps.columns):
        row.append("vldrw.32 q6, [r10], #16")
        for pixel, total in enumerate(_sums(pixels)):
            place = f"r{pixel}"
            if is_near:
                row.append(f"vldrw.32 q7, [{place}, #{column * step}]")
            elif step <= OFFSET:
                row.append(f"vldrw.32 q7, [{place}], #{step}")
            else:
                row += [f"vldrw.32 q7, [{place}]", *add(place, place, step, "r7")]
            row.append(f"vfma.f32 {total}, q7, q6")
    ahead = [add(f"r{n}", f"r{n - 1}", taps.stride * taps.channels * WORD, "r7")
             for n in range(1, pixels)]  # fmt: skip
    return [line for some in ahead for line in some], row, 0 if is_near else taps.columns * step
