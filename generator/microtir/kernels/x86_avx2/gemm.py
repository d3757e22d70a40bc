"""Products of pixels with packed weights, eight output channels at a time.

A pixel is a number of segments, runs of values that are contiguous in the input: one for a
pointwise convolution, the kernel rows of another one, or single taps where it is dilated.  Weights
lie in panels of eight channels; within a panel four values of the segment for each channel make
32 bytes, what one VPDPBUSD takes.  That instruction wants unsigned inputs, so that every body adds
128 to them, which the bias takes off again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.kernels.x86_avx2.micro_kernel import LANES, QUAD, constant, describe
from microtir.kernels.x86_avx2.requantise import Rescaling, requantisation
from microtir.operators.common.linear import bias_of, params_of
from microtir.schedule import KernelDescription
from microtir.tir import ir

OFFSET = 128  # what is added to the inputs
_LARGEST_INPUT = 255
_WORDS = 3
_BIAS, _MULTIPLIER, _SHIFT = range(_WORDS)
# For the vectors of a block of six pixels and of what it calls, which a compiler that does not
# optimise keeps on the stack, every one of them.
_STACK = 6144
_BYTES_OF_LANES = 2  # of an input as AVX2 multiplies it


@dataclass(frozen=True, slots=True)
class Inputs:
    """The places of the inputs of a run of pixels, in elements from the first one's on.

    All that they read is `rows` runs of `length` elements each, `stride` apart. In each run pixel
    p reads `parts` segments of `segment` elements, `part_step` apart, from p * `step` on.
    """

    rows: int
    length: int
    stride: int
    step: int
    segment: int
    parts: int = 1
    part_step: int = 0

    @property
    def span(self) -> int:
        """Return elements from the first one read to the last."""
        return (self.rows - 1) * self.stride + self.length

    @property
    def quads(self) -> int:
        """Return groups of four values of a segment, the last one filled up by weights of 0."""
        return -(-self.segment // QUAD)

    @property
    def lane_bytes(self) -> int:
        return (self.rows * self.length + QUAD) * _BYTES_OF_LANES

    @property
    def segments(self) -> int:
        return self.rows * self.parts

    @property
    def offsets(self) -> list[int]:
        """Return the offsets of the segments of pixel 0, in the runs laid behind each other."""
        return [
            row * self.length + part * self.part_step
            for row in range(self.rows)
            for part in range(self.parts)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class PackedLinear:
    """Constants of a layer.

    `weights` are (panels, segments * quads, 8, 4) int8, `constants` (panels, 3, 8) int32 and
    `rounding` (panels, 8) int64. The last panel overlaps the one before where channels are no
    multiple of eight; fewer than eight channels are filled up.
    """

    weights: ir.Buffer
    constants: ir.Buffer
    rounding: ir.Buffer
    rescaling: Rescaling
    channels: int


def panels_of(channels: int) -> list[int]:
    """Return the first channel of each panel."""
    last = max(channels - LANES, 0)
    return [min(first, last) for first in range(0, channels, LANES)]


def packed_bytes(channels: int, segments: int, values: int) -> int:
    """Return the bytes of the constants of so many channels, segments and values of a segment."""
    words = 3 * DType.INT32.bytes + DType.INT64.bytes
    return len(panels_of(channels)) * LANES * (segments * -(-values // QUAD) * QUAD + words)


def pack(segments: npt.NDArray[np.int8], node: Node) -> PackedLinear | None:
    """Pack weights (channels, segments, values of a segment).

    Args:
        segments: in the order of the input.
        node: with a bias as third input, or without.

    Returns:
        None if sums could leave int32 or a factor does not fit.
    """
    channels = len(segments)
    matrix = segments.reshape(channels, -1).astype(np.int64)
    params = params_of(node)
    folded = bias_of(node) - (params.input_zero_point + OFFSET) * matrix.sum(axis=1)
    factors = requantisation(params, folded, _LARGEST_INPUT * np.abs(matrix).sum(axis=1))
    if factors is None:
        return None
    rows = np.stack([factors.bias, factors.multiplier, factors.shift])
    padding = max(LANES - channels, 0)
    quads = -(-segments.shape[2] // QUAD)
    padded = np.pad(segments, ((0, padding), (0, 0), (0, quads * QUAD - segments.shape[2])))
    lanes = padded.reshape(channels + padding, segments.shape[1] * quads, QUAD)
    firsts = panels_of(channels)
    return PackedLinear(
        constant("weights", np.stack([lanes[f : f + LANES].transpose(1, 0, 2) for f in firsts])),
        constant("constants", _panels(np.pad(rows, ((0, 0), (0, padding))), firsts)),
        constant("rounding", _panels(np.pad(factors.rounding, (0, padding)), firsts)),
        factors.rescaling,
        channels,
    )


def _panels(values: npt.NDArray[np.generic], firsts: list[int]) -> npt.NDArray[np.generic]:
    """Return the last axis cut into panels, which come first."""
    return np.stack([values[..., first : first + LANES] for first in firsts])


def gemm(inputs: Inputs, pixels: int, packed: PackedLinear) -> KernelDescription:
    """Compute all channels of `pixels` pixels, which lie `packed.channels` apart in the output.

    Returns:
        Parameters: inputs of the first pixel, weights, constants, rounding, its outputs.
    """
    channels, rescaling = packed.channels, packed.rescaling
    x = ir.Buffer("x", (inputs.span,), DType.INT8)
    y = ir.Buffer("y", (pixels * channels,), DType.INT8)
    params = (x, *_like(packed), y)
    shape = f"{pixels}x{inputs.segment * inputs.segments}x{channels}"
    return describe(
        f"gemm_{shape}_{rescaling.name}",
        f"{channels} channels of {pixels} pixels of {inputs.segments} x {inputs.segment} values",
        params,
        y,
        _meaning(inputs, pixels, packed, params),
        "kernels/vector/gemm.j2",
        _values(inputs, pixels, packed),
        stack_bytes=inputs.lane_bytes + _STACK,
    )


def _like(packed: PackedLinear) -> tuple[ir.Buffer, ir.Buffer, ir.Buffer]:
    """Return parameters for the constants of a layer."""
    first, second, third = (
        ir.Buffer(b.name, b.shape, b.dtype)
        for b in (packed.weights, packed.constants, packed.rounding)
    )
    return first, second, third


def _meaning(
    inputs: Inputs, pixels: int, packed: PackedLinear, params: tuple[ir.Buffer, ...]
) -> ir.Stmt:
    x, weights, constants, rounding, y = params
    sums = ir.Buffer("sums", (LANES,), DType.INT32, ir.Scope.LOCAL)
    firsts = panels_of(packed.channels)
    stored = min(packed.channels, LANES)

    def segment(panel: te.Expr, pixel: te.Expr, row: te.Expr, part: te.Expr) -> ir.Stmt:
        begin = pixel * inputs.step + row * inputs.stride + part * inputs.part_step
        first = (row * inputs.parts + part) * inputs.quads

        def value(k: te.Expr) -> ir.Stmt:
            wide = te.cast(DType.INT32, load(x, begin + k)) + OFFSET
            quad = first + k // QUAD

            def multiply(lane: te.Expr) -> ir.Stmt:
                weight = te.cast(DType.INT32, load(weights, panel, quad, lane, k % QUAD))
                return store(sums, (lane,), load(sums, lane) + wide * weight)

            return loop("lane", 0, LANES, multiply)

        return loop("k", 0, inputs.segment, value)

    def outputs(panel: te.Expr, pixel: te.Expr) -> ir.Stmt:
        channel = te.minimum(panel * LANES, firsts[-1])

        def output(lane: te.Expr) -> ir.Stmt:
            multiplier, shift = (
                load(constants, panel, word, lane) for word in (_MULTIPLIER, _SHIFT)
            )
            factor = multiplier, load(rounding, panel, lane), shift
            place = pixel * packed.channels + channel + lane
            return packed.rescaling.store(y, place, load(sums, lane), factor)

        return loop("lane", 0, stored, output)

    def one(panel: te.Expr, pixel: te.Expr) -> ir.Stmt:
        begin = loop(
            "lane", 0, LANES,
            lambda lane: store(sums, (lane,), load(constants, panel, _BIAS, lane)),
        )  # fmt: skip
        products = loop(
            "row", 0, inputs.rows,
            lambda row: loop(
                "part", 0, inputs.parts, lambda part: segment(panel, pixel, row, part)
            ),
        )  # fmt: skip
        return ir.Allocate(sums, seq(begin, products, outputs(panel, pixel)))

    return loop(
        "pixel", 0, pixels,
        lambda pixel: loop("panel", 0, len(firsts), lambda panel: one(panel, pixel)),
    )  # fmt: skip


def _values(inputs: Inputs, pixels: int, packed: PackedLinear) -> dict[str, object]:
    firsts = panels_of(packed.channels)
    return {
        "part": "product",
        "rescaling": packed.rescaling.values(),
        "rows": str(inputs.rows),
        "length": str(inputs.length),
        "stride": str(inputs.stride),
        "lanes": str(inputs.rows * inputs.length),
        "slack": str(QUAD),
        "step": str(inputs.step),
        "offsets": [str(offset) for offset in inputs.offsets],
        "segments": str(inputs.segments),
        "quads": str(inputs.quads),
        "pixels": str(pixels),
        "channels": str(packed.channels),
        "stored": str(min(packed.channels, LANES)),
        "panels": str(len(firsts)),
        "last": str(firsts[-1]),
        "panel_bytes": str(inputs.segments * inputs.quads * LANES * QUAD),
        "panel_words": str(_WORDS * LANES),
        "panel_channels": str(LANES),
    }
