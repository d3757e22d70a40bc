"""Depthwise convolutions: sixteen channels of a vector at a time, two taps for each product.

Rows that a kernel computes follow each other in scratch, where the image lies with its border.
Where there are fewer channels than lanes, several neighbouring pixels share a vector.

VPMADDWD multiplies pairs of 16-bit values and adds them: here the inputs of one channel under two
taps.  Interleaving two vectors of 16 channels leaves channels 0-3 and 8-11 in one half, 4-7 and
12-15 in the other; weights and constants are packed in that order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.config import Feature
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common import bordered_rows, made_once, packing, refusals
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.depthwise import DepthwiseKernel
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.macro_kernel import Count, Nhwc, Product, Tile, macro_kernel
from microtir.kernels.common.statements import at, let, load, loop, seq, store, when
from microtir.kernels.common.weights import folded_bias, largest_sums, matrix_of
from microtir.kernels.x86_avx2.copying import copy, copy_cost
from microtir.kernels.x86_avx2.micro_kernel import LANES, constant, describe
from microtir.kernels.x86_avx2.requantise import Rescaling, requantisation
from microtir.operators.common.linear import params_of
from microtir.plan.ir import Calls, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_MOST_TAPS = 64  # their code is printed one by one
_BLOCK = 16  # channels
_HALVES = _BLOCK // LANES
_WORDS = 3
_BIAS, _MULTIPLIER, _SHIFT = range(_WORDS)
_SLACK = 16  # bytes behind the last row, of a whole vector
# For vectors that a compiler keeps on the stack if it does not optimise.
_STACK, _STACK_OF_TAP = 2560, 320


@dataclass(frozen=True, slots=True)
class Grid:
    """The elements that a kernel reads and writes, by their distances.

    It computes `rows` of `pixels` pixels. The first inputs of neighbouring pixels lie `step`
    apart, those of rows `row_step`, their outputs `channels` and `output_row`. Taps form
    `taps` rows and columns that lie `tap_steps` apart.
    """

    rows: int
    row_step: int
    pixels: int
    step: int
    channels: int
    output_row: int
    taps: tuple[int, int]
    tap_steps: tuple[int, int]

    @property
    def offsets(self) -> list[int]:
        """Return the offsets of all taps, row by row."""
        return [
            row * self.tap_steps[0] + column * self.tap_steps[1]
            for row in range(self.taps[0])
            for column in range(self.taps[1])
        ]

    @property
    def span(self) -> int:
        """Return elements from the first one read to the last: whole vectors are read."""
        pixel = (self.rows - 1) * self.row_step + (self.pixels - 1) * self.step
        return pixel + self.offsets[-1] + max(self.channels, _BLOCK)

    @property
    def output_span(self) -> int:
        """Return elements from the first one written to the last."""
        return (self.rows - 1) * self.output_row + self.pixels * self.channels


def _copies(geometry: Geometry) -> int:
    """Return neighbouring pixels that share a vector."""
    channels, width = geometry.output.channels, geometry.output.width
    shares = geometry.windows.columns.stride == 1 and _BLOCK % channels == 0
    return _BLOCK // channels if shares and width * channels % _BLOCK == 0 else 1


def _grid(geometry: Geometry, rows: int, row_step: int) -> Grid:
    """Return what a kernel for some rows reads and writes; `row_step` is that of windows."""
    channels, copies = geometry.image.channels, _copies(geometry)
    down, across = geometry.windows.rows, geometry.windows.columns
    return Grid(
        rows=rows,
        row_step=down.stride * geometry.copied_step,
        pixels=geometry.output.width // copies,
        step=across.stride * channels * copies,
        channels=channels * copies,
        output_row=geometry.output.width * channels,
        taps=(down.taps, across.taps),
        tap_steps=(row_step, across.dilation * channels),
    )


@made_once.of_node
def _packed(node: Node) -> PackedDepthwise | None:
    return _pack(node, _copies(Geometry.of(node)))


class Depthwise(DepthwiseKernel):
    """Sixteen channels of a vector, two taps a product.

    Args:
        name: of the kernel.
        by_window: whether the rows behind one output row at a time are in scratch.
    """

    needs = Feature.VECTOR
    depends_on_calls = True

    def __init__(self, name: str, *, by_window: bool) -> None:
        self.name, self.by_window = name, by_window

    def reject_sizes(self, node: Node, geometry: Geometry) -> Refusal | None:
        """Return what speaks against it: no outputs, too many taps, or one window for all rows."""
        taps = geometry.windows.rows.taps * geometry.windows.columns.taps
        if node.output.type.elements == 0 or taps > _MOST_TAPS:
            return Refusal.SIZES
        return Refusal.WINDOWS if self.by_window and node.output.type.rows == 1 else None

    def has_form(self, node: Node) -> bool:
        return _packed(node) is not None

    def scratch_bytes(self, node: Node, _calls: Calls) -> int:
        """Return the bytes of the image with its border, or of the window of a row."""
        geometry = Geometry.of(node)
        rows = geometry.windows.rows
        held = rows.taps if self.by_window else rows.reach(geometry.output.height)
        return held * geometry.copied_step + _SLACK

    def instructions(self, node: Node, calls: Calls) -> int:
        """Return the instructions from counts of the compiled kernel for AVX2."""
        count = node.output.type.rows if calls.rows or self.by_window else 1
        geometry = Geometry.of(node)
        taps, output = geometry.windows.rows.taps * geometry.windows.columns.taps, geometry.output
        blocks = -(-output.channels // _BLOCK)
        pixels = output.height * output.width // _copies(geometry)
        return pixels * (blocks * (5 * taps + 30) + 4) + copy_cost(geometry, count)

    def code_bytes(self, node: Node) -> int:
        """Return the bytes of the kernels for several rows and for one, beyond the direct one.

        The taps of a kernel are printed one by one.
        """
        taps_rows, taps_columns = node.inputs[1].shape[1:3]
        row = 150 + 24 * taps_rows * taps_columns
        if self.by_window:
            return row
        return row * (2 if node.output.type.rows > 1 else 1) + 120

    def packed_bytes(self, node: Node) -> int:
        packed = refusals.asked(_packed(node))
        return packing.bytes_of(packed.weights, packed.constants, packed.rounding)

    def emit(self, layer: Layer, name: str) -> ir.PrimFunc:
        """Return the layer function: the border, then kernels for all rows, or for one by one."""
        geometry, packed = Geometry.of(layer.node), refusals.asked(_packed(layer.node))
        sink, width, height = (
            Nhwc(layer.output_rows()),
            geometry.output.width,
            geometry.output.height,
        )
        source: bordered_rows.WindowRows
        if self.by_window:
            source = bordered_rows.BorderedRows(layer.input_rows(0), geometry, copy, _SLACK)
        else:
            source = bordered_rows.BorderedImage(layer, geometry, copy, _SLACK, is_line=True)
        step = source.row_step
        product = Product(
            lambda pixels: depthwise(_grid(geometry, pixels // width, step), packed),
            (
                at(packed.weights, 0, 0, 0, 0, 0),
                at(packed.constants, 0, 0, 0, 0),
                at(packed.rounding, 0, 0, 0, 0),
            ),
        )
        whole_block = (Count(height * width, "block"),) if source.is_line and height > 1 else ()
        tile = Tile((*whole_block, Count(width, "row")), (product,))
        return macro_kernel(layer, name, width, source, tile, sink)


# --- constants and the micro-kernel ---


@dataclass(frozen=True, slots=True, eq=False)
class PackedDepthwise:
    """Constants of a layer.

    `weights` are (blocks, pairs of taps, halves, 8, 2) int16, `constants` (blocks, halves, 3, 8)
    int32 and `rounding` (blocks, halves, 2, 4) int64, even lanes first. The last block overlaps
    the one before where channels are no multiple of 16; fewer than 16 are filled up.
    """

    weights: ir.Buffer
    constants: ir.Buffer
    rounding: ir.Buffer
    rescaling: Rescaling


_ORDER = np.array([[lane // 4 * LANES + half * 4 + lane % 4 for lane in range(LANES)]
                   for half in range(_HALVES)])  # fmt: skip


def _blocks_of(channels: int) -> list[int]:
    """Return the first channel of each block."""
    last = max(channels - _BLOCK, 0)
    return [min(first, last) for first in range(0, channels, _BLOCK)]


def _pack(node: Node, copies: int) -> PackedDepthwise | None:
    """Pack weights (taps, channels), `copies` times behind each other.

    Args:
        node: with a bias as third input, or without.
        copies: neighbouring pixels that share a vector.

    Returns:
        None if a factor does not fit.
    """
    wide = matrix_of(node).T.astype(np.int64)
    params, largest = params_of(node), largest_sums(wide.T)
    factors = requantisation(params, folded_bias(wide.T, node), largest)
    if factors is None:
        return None
    channels = wide.shape[1] * copies
    padding = max(_BLOCK - channels, 0)
    firsts = _blocks_of(channels)

    def blocks(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return values (..., channels) as (blocks, ..., halves, lanes)."""
        tiled = np.concatenate([values] * copies, axis=-1)
        padded = np.pad(tiled, [*[(0, 0)] * (values.ndim - 1), (0, padding)])
        return np.stack([padded[..., first + _ORDER] for first in firsts])

    pairs = np.pad(wide, ((0, len(wide) % 2), (0, 0))).reshape(-1, 2, wide.shape[1])
    rows = np.stack([factors.bias, factors.multiplier, factors.shift])
    rounding = blocks(factors.rounding).reshape(len(firsts), _HALVES, LANES // 2, 2)
    return PackedDepthwise(
        constant("weights", blocks(pairs).transpose(0, 1, 3, 4, 2).astype(np.int16)),
        constant("constants", blocks(rows).transpose(0, 2, 1, 3).astype(np.int32)),
        constant("rounding", rounding.transpose(0, 1, 3, 2)),
        factors.rescaling,
    )


def depthwise(grid: Grid, packed: PackedDepthwise) -> KernelDescription:
    """Compute all channels of the pixels of `grid`.

    Returns:
        Parameters: inputs of the first pixel, weights, constants, rounding, its outputs.
    """
    x = ir.Buffer("x", (grid.span,), DType.INT8)
    y = ir.Buffer("y", (grid.output_span,), DType.INT8)
    like = (
        ir.Buffer(b.name, b.shape, b.dtype)
        for b in (packed.weights, packed.constants, packed.rounding)
    )
    params = (x, *like, y)
    taps = f"{grid.taps[0]} x {grid.taps[1]}"
    size = f"{grid.rows}x{grid.pixels}x{grid.channels}"
    return describe(
        f"depthwise_{size}_{packed.rescaling.name}",
        f"{grid.channels} channels of {grid.rows} x {grid.pixels} pixels under {taps} taps",
        params,
        y,
        _meaning(grid, packed.rescaling, params),
        "kernels/vector/depthwise.j2",
        _values(grid, packed.rescaling),
        stack_bytes=_STACK + len(grid.offsets) * _STACK_OF_TAP,
    )


def _meaning(grid: Grid, rescaling: Rescaling, params: tuple[ir.Buffer, ...]) -> ir.Stmt:
    x, weights, constants, rounding, y = params
    total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)
    firsts = _blocks_of(grid.channels)

    def output(block: te.Expr, half: te.Expr, lane: te.Expr, source: te.Expr, target: te.Expr
               ) -> ir.Stmt:  # fmt: skip
        def tap(row: te.Expr, column: te.Expr) -> ir.Stmt:
            number = row * grid.taps[1] + column
            place = source + row * grid.tap_steps[0] + column * grid.tap_steps[1]
            weight = load(weights, block, number // 2, half, lane, number % 2)
            product = te.cast(DType.INT32, load(x, place)) * te.cast(DType.INT32, weight)
            return store(total, (), load(total) + product)

        multiplier = load(constants, block, half, _MULTIPLIER, lane)
        shift = load(constants, block, half, _SHIFT, lane)
        factor = multiplier, load(rounding, block, half, lane % 2, lane // 2), shift
        return ir.Allocate(total, seq(
            store(total, (), load(constants, block, half, _BIAS, lane)),
            loop("ky", 0, grid.taps[0],
                 lambda row: loop("kx", 0, grid.taps[1], lambda column: tap(row, column))),
            rescaling.store(y, target, load(total), factor),
        ))  # fmt: skip

    def channel(row: te.Expr, pixel: te.Expr, block: te.Expr, half: te.Expr, lane: te.Expr
                ) -> ir.Stmt:  # fmt: skip
        inside = lane // 4 * LANES + half * 4 + lane % 4
        first = te.minimum(block * _BLOCK, firsts[-1])
        source = row * grid.row_step + pixel * grid.step + first + inside
        target = row * grid.output_row + pixel * grid.channels + first + inside
        one = let(
            "source", source,
            lambda x_at: let(
                "target", target, lambda y_at: output(block, half, lane, x_at, y_at)
            ),
        )  # fmt: skip
        return one if grid.channels >= _BLOCK else when(inside < grid.channels, one)

    def block_of(row: te.Expr, pixel: te.Expr, block: te.Expr) -> ir.Stmt:
        return loop(
            "half", 0, _HALVES,
            lambda half: loop(
                "lane", 0, LANES, lambda lane: channel(row, pixel, block, half, lane)
            ),
        )  # fmt: skip

    return loop(
        "row", 0, grid.rows,
        lambda row: loop(
            "pixel", 0, grid.pixels,
            lambda pixel: loop(
                "block", 0, len(firsts), lambda block: block_of(row, pixel, block)
            ),
        ),
    )  # fmt: skip


def _values(grid: Grid, rescaling: Rescaling) -> dict[str, object]:
    offsets = grid.offsets
    # The partner of a last tap without one has the weight 0.
    even = [*offsets, offsets[-1]] if len(offsets) % 2 else offsets
    firsts = _blocks_of(grid.channels)
    return {
        "part": "lanes",
        "rescaling": rescaling.values(),
        "pairs": [
            {
                "first": str(even[2 * n]),
                "second": str(even[2 * n + 1]),
                "weights": str(2 * _BLOCK * n),
                "weights_high": str(2 * _BLOCK * n + _BLOCK),
            }
            for n in range(len(even) // 2)
        ],
        "block_weights": str(len(even) * _BLOCK),
        "block_words": str(_HALVES * _WORDS * LANES),
        "block_channels": str(_BLOCK),
        "blocks": str(len(firsts)),
        "last": str(firsts[-1]),
        "rows": str(grid.rows),
        "row_step": str(grid.row_step),
        "pixels": str(grid.pixels),
        "step": str(grid.step),
        "channels": str(grid.channels),
        "output_row": str(grid.output_row),
        "stored": "" if grid.channels >= _BLOCK else str(grid.channels),
    }
