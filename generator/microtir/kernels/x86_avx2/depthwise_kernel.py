"""Depthwise products: sixteen channels at a time, two taps for each product.

VPMADDWD multiplies pairs of 16-bit values and adds them: here the inputs of one channel under two
taps.  Interleaving two vectors of 16 channels leaves channels 0-3 and 8-11 in one half, 4-7 and
12-15 in the other; weights and constants are packed in that order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.graph.ir import Node
from microtir.kernels.common.statements import let, load, loop, seq, store, when
from microtir.kernels.x86_avx2.micro_kernel import LANES, constant, describe
from microtir.kernels.x86_avx2.requantise import Rescaling, requantisation
from microtir.operators.common.linear import LinearParams
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

BLOCK = 16  # channels
_HALVES = BLOCK // LANES
_WORDS = 3
_BIAS, _MULTIPLIER, _SHIFT = range(_WORDS)
_INPUT_MAGNITUDE = 128
# For vectors that a compiler keeps on the stack if it does not optimise.
_STACK, _STACK_OF_TAP = 2560, 320


@dataclass(frozen=True, slots=True)
class Grid:
    """Where a kernel reads and writes, in elements.

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
        return pixel + self.offsets[-1] + max(self.channels, BLOCK)

    @property
    def output_span(self) -> int:
        """Return elements from the first one written to the last."""
        return (self.rows - 1) * self.output_row + self.pixels * self.channels


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


def channel_of(half: te.Expr, lane: te.Expr) -> te.Expr:
    """Return which channel of a block a lane holds."""
    return lane // 4 * LANES + half * 4 + lane % 4


_ORDER = np.array([[lane // 4 * LANES + half * 4 + lane % 4 for lane in range(LANES)]
                   for half in range(_HALVES)])  # fmt: skip


def blocks_of(channels: int) -> list[int]:
    """Return the first channel of each block."""
    last = max(channels - BLOCK, 0)
    return [min(first, last) for first in range(0, channels, BLOCK)]


def pack(
    weights: npt.NDArray[np.int8], node: Node, params: LinearParams, copies: int
) -> PackedDepthwise | None:
    """Pack weights (taps, channels), `copies` times behind each other.

    Args:
        weights: taps row by row.
        node: with a bias as third input, or without.
        params: of the layer.
        copies: neighbouring pixels that share a vector.

    Returns:
        None if a factor does not fit.
    """
    wide = weights.astype(np.int64)
    given = node.inputs[2].data if len(node.inputs) > 2 else None
    bias = np.zeros(wide.shape[1], np.int64) if given is None else given.astype(np.int64)
    folded = bias - params.input_zero_point * wide.sum(axis=0)
    found = requantisation(params, folded, _INPUT_MAGNITUDE * np.abs(wide).sum(axis=0))
    if found is None:
        return None
    channels = wide.shape[1] * copies
    padding = max(BLOCK - channels, 0)
    firsts = blocks_of(channels)

    def blocks(values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return values (..., channels) as (blocks, ..., halves, lanes)."""
        tiled = np.concatenate([values] * copies, axis=-1)
        padded = np.pad(tiled, [*[(0, 0)] * (values.ndim - 1), (0, padding)])
        return np.stack([padded[..., first + _ORDER] for first in firsts])

    pairs = np.pad(wide, ((0, len(wide) % 2), (0, 0))).reshape(-1, 2, wide.shape[1])
    rows = np.stack([found.bias, found.multiplier, found.shift])
    rounding = blocks(found.rounding).reshape(len(firsts), _HALVES, LANES // 2, 2)
    return PackedDepthwise(
        constant("weights", blocks(pairs).transpose(0, 1, 3, 4, 2).astype(np.int16)),
        constant("constants", blocks(rows).transpose(0, 2, 1, 3).astype(np.int32)),
        constant("rounding", rounding.transpose(0, 1, 3, 2)),
        found.rescaling,
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
    firsts = blocks_of(grid.channels)

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
        inside = channel_of(half, lane)
        first = te.minimum(block * BLOCK, firsts[-1])
        source = row * grid.row_step + pixel * grid.step + first + inside
        target = row * grid.output_row + pixel * grid.channels + first + inside
        one = let(
            "source", source,
            lambda x_at: let(
                "target", target, lambda y_at: output(block, half, lane, x_at, y_at)
            ),
        )  # fmt: skip
        return one if grid.channels >= BLOCK else when(inside < grid.channels, one)

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
    """Return what the template is given."""
    offsets = grid.offsets
    # The partner of a last tap without one has the weight 0.
    even = [*offsets, offsets[-1]] if len(offsets) % 2 else offsets
    firsts = blocks_of(grid.channels)
    return {
        "part": "lanes",
        "rescaling": rescaling.values(),
        "pairs": [
            {
                "first": str(even[2 * n]),
                "second": str(even[2 * n + 1]),
                "weights": str(2 * BLOCK * n),
                "weights_high": str(2 * BLOCK * n + BLOCK),
            }
            for n in range(len(even) // 2)
        ],
        "block_weights": str(len(even) * BLOCK),
        "block_words": str(_HALVES * _WORDS * LANES),
        "block_channels": str(BLOCK),
        "blocks": str(len(firsts)),
        "last": str(firsts[-1]),
        "rows": str(grid.rows),
        "row_step": str(grid.row_step),
        "pixels": str(grid.pixels),
        "step": str(grid.step),
        "channels": str(grid.channels),
        "output_row": str(grid.output_row),
        "stored": "" if grid.channels >= BLOCK else str(grid.channels),
    }
