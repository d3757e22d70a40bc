"""Convolutions as matrix products whose weights have four bits: half of the words of `gemm.py`.

Patches are those of `gemm.py`.  A word holds what two values of four channels are multiplied by, as
in `dense_nibbles.py`; the sum of the inputs of a pixel is added up once a block.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.kernels.arm_dsp import gemm
from microtir.kernels.arm_dsp.dense_nibbles import nibble, sums_of
from microtir.kernels.arm_dsp.patch import GROUP, TOGETHER, Segments
from microtir.kernels.common import packing
from microtir.kernels.common.convolution_geometry import Geometry
from microtir.kernels.common.made_once import made_once, of_node
from microtir.kernels.common.micro_kernel import COMPACT, Sizes, describe
from microtir.kernels.common.packed_weights import saved_bytes
from microtir.kernels.common.requantise import BIAS, MULTIPLIER, ROUNDING, SHIFT, WORDS, Rescaling
from microtir.kernels.common.statements import each, let, load, loop, seq, store
from microtir.kernels.common.weights import QUAD, channel_quads, matrix_of, pack_nibbles
from microtir.plan.ir import LayoutKind, Refusal
from microtir.schedule import KernelDescription
from microtir.tir import ir

_LINES = QUAD * WORDS  # of constants
_TURN = 4  # pairs of steps; a power of two
_PAIR_BYTES = {TOGETHER: 100, 1: 64}
_CODE = {TOGETHER: 440, 1: 330}
_CHANNEL_BIT = 8  # of the word with the shift, as `gemm.pack_quads` has it


class GemmNibbles(gemm.Gemm):
    """Patches of pixels times weights of four bits of four channels."""

    has_wide_weights = False
    spreads = False

    def __init__(self, name: str) -> None:
        super().__init__(name, COMPACT, LayoutKind.NHWC)
        self.cycles = 125

    def reject(self, node: Node) -> Refusal | None:
        """Return what speaks against it: as for int8, groups, weights of more bits, one step."""
        reason = gemm.refusal(node)
        if reason is not None:
            return reason
        if Segments.of(Geometry.of(node)).steps < 2:
            return Refusal.SIZES
        return Refusal.FORM if _packed(node) is None else None

    def weight_bytes(self, node: Node) -> int:
        return super().weight_bytes(node) - saved_bytes(node.inputs[1].type.elements)

    def packed_bytes(self, node: Node) -> int:
        geometry = Geometry.of(node)
        steps = Segments.of(geometry).steps
        return packing.channel_bytes(geometry.output.channels, QUAD, steps)

    def code_bytes(self, node: Node) -> int:
        """Return what a layer is charged of the kernels for two pixels and for one."""
        pixels = (TOGETHER, 1) if Geometry.of(node).output.width % TOGETHER else (TOGETHER,)
        return sum(_CODE[count] + _TURN * _PAIR_BYTES[count] for count in pixels) // 2

    def packed(self, node: Node, _distance: int) -> gemm.Packed | None:
        return _packed(node)

    def product(self, pixels: int, part: gemm.Part, rescaling: Rescaling) -> KernelDescription:
        geometry = Geometry.of(part.node)
        steps = Segments.of(geometry).steps
        return gemm_nibbles(pixels, steps, geometry.output.channels, rescaling)

    def _block(self, geometry: Geometry, pixels: int, rescaled: int) -> int:
        steps, quads = Segments.of(geometry).steps, -(-geometry.output.channels // QUAD)
        pairs, odd = divmod(steps, 2)
        turns = 3 * -(-pairs // _TURN) + QUAD * min(pixels, TOGETHER) * rescaled
        if pixels == 1:
            summed = 5 * pairs + 3 * odd
            return (16 * pairs + 9 * odd + turns + 41) * quads + summed + 3 * steps + 80
        summed = 7 * pairs + 3 * odd + 20
        pair = (25 * pairs + 13 * odd + turns + 72) * quads + summed + 12
        groups = (7 * steps + 30) * pixels // GROUP
        return pixels // TOGETHER * pair + 55 + (groups if pixels > TOGETHER else 8 * steps + 40)


@of_node
def _packed(node: Node) -> gemm.Packed | None:
    """Return for each quad of channels its weights step by step, then its constants."""
    matrix, segments = matrix_of(node), Segments.of(Geometry.of(node))
    matrix = matrix.reshape(len(matrix), segments.count, segments.length)
    order = channel_quads(len(matrix))
    lanes = pack_nibbles(segments.arrange(matrix[order]))
    factors = packing.requantised(node)
    if lanes is None or factors is None:
        return None
    words = np.ascontiguousarray(lanes).view(np.int32)[..., 0]
    rows = factors.constants[order].reshape(len(words), QUAD, WORDS).copy()
    rows[:, :, SHIFT] |= np.array(order[::QUAD], np.int32)[:, np.newaxis] << _CHANNEL_BIT
    lines = np.concatenate([words, rows.reshape(len(words), _LINES)], axis=1)
    return gemm.Packed(packing.constant("packed", lines[..., np.newaxis]), factors.rescaling)


@made_once
def gemm_nibbles(pixels: int, steps: int, channels: int, rescaling: Rescaling) -> KernelDescription:
    """Compute two pixels, or a single one, by four channels per iteration.

    Returns:
        Parameters: patch (blocks, steps, pixels of a block, 2) int16, what `_packed` gives, outputs
        (blocks, pixels of a block, channels); then steps, lines, quads, channels, and blocks if
        there may be several.
    """
    at_once, sizes = min(pixels, TOGETHER), Sizes()
    count = sizes.number("steps", steps, 2, gemm.STEPS)
    lines = sizes.number("lines", steps + _LINES, 2, gemm.STEPS + _LINES)
    sizes.hold(gemm.number_of(lines) >= gemm.number_of(count) + _LINES)
    quads = sizes.number("quads", -(-channels // QUAD), 1, gemm.CHANNELS // QUAD)
    width = sizes.number("channels", channels, QUAD, gemm.CHANNELS)
    blocks = sizes.number("blocks", pixels // 2, 1, gemm.PIXELS // 2) if at_once > 1 else 1
    patch = ir.Buffer("patch", (blocks, count, at_once, 2), DType.INT16, alignment=4)
    packed = ir.Buffer("packed", (quads, lines, 1), DType.INT32)
    y = ir.Buffer("y", (blocks, at_once, width), DType.INT8)
    turn = partial(_turn, patch, packed, y, rescaling)
    odd = "_odd" if steps % 2 else ""
    return describe(
        f"gemm_nibbles{at_once}{odd}_{rescaling.name}",
        (f"Weights of four bits: {gemm.pixels_named(at_once)} by four channels per iteration",),
        (patch, packed, y),
        (y,),
        each("block", blocks,
             lambda block: loop("quad", 0, gemm.number_of(quads), partial(turn, block))),
        "kernels/gemm_nibbles.j2",
        {
            "is_pair": at_once > 1,
            "pixels": [{**sums_of(p), "value": f"r{8 + p}"} for p in range(at_once)],
            "shift": str(at_once + 1),
            "odd": steps % 2 == 1,
            "turn": str(_TURN),
            "most_left": str(_TURN - 1),
            "step_bytes": str(_PAIR_BYTES[at_once]),
            "rescaling": rescaling.values(),
        },
        stack_bytes=76,
        sizes=sizes,
    )  # fmt: skip


def _turn(
    patch: ir.Buffer,
    packed: ir.Buffer,
    y: ir.Buffer,
    rescaling: Rescaling,
    block: te.Expr,
    quad: te.Expr,
) -> ir.Stmt:
    """Return the meaning of a turn: one block of pixels by four channels."""
    steps, at_once = gemm.number_of(patch.shape[1]), patch.shape[2]
    assert isinstance(at_once, int)
    sums = ir.Buffer("sums", (at_once * QUAD,), DType.INT32, ir.Scope.LOCAL)

    def lane(step: te.Expr, number: int) -> ir.Stmt:
        word = load(packed, quad, step, 0)
        half = word >> 16 if number else (word & 0xFFFF ^ 0x8000) - 0x8000

        def pixel(weights: te.Expr, p: te.Expr) -> ir.Stmt:
            value = te.cast(DType.INT32, load(patch, block, step, p, number))
            return let("value", value, lambda v: seq(*(
                store(sums, (p * QUAD + n,), load(sums, p * QUAD + n) + v * nibble(weights, n))
                for n in range(QUAD)
            )))  # fmt: skip

        return let("lane", half, lambda w: loop("pixel", 0, at_once, partial(pixel, w)))

    def output(p: te.Expr, n: te.Expr) -> ir.Stmt:
        bias, multiplier, rounding, shift = (
            load(packed, quad, steps + n * WORDS + place, 0)
            for place in (BIAS, MULTIPLIER, ROUNDING, SHIFT)
        )
        total = load(sums, p * QUAD + n) * 2 + bias
        shift = shift & ((1 << _CHANNEL_BIT) - 1)
        value = rescaling.rescale(total, multiplier, rounding, shift)
        channel = te.minimum(quad * QUAD, gemm.number_of(y.shape[2]) - QUAD) + n
        return store(y, (block, p, channel), te.cast(DType.INT8, value))

    outputs = loop("pixel", 0, at_once, lambda p: loop("channel", 0, QUAD, lambda n: output(p, n)))
    return ir.Allocate(sums, seq(
        loop("i", 0, at_once * QUAD, lambda i: store(sums, (i,), 0)),
        loop("step", 0, steps, lambda step: seq(lane(step, 0), lane(step, 1))),
        outputs,
    ))  # fmt: skip
