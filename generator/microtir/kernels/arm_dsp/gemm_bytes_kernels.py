"""Micro-kernels of matrix products that read their pixels as bytes, four values a word.

What other products find widened in a patch these widen as they read it, for every four channels:
three instructions more for sixteen products, and no patch.
"""

from __future__ import annotations

from functools import partial

from microtir import te
from microtir.kernels.arm_dsp.gemm_kernels import (
    CHANNELS,
    CONSTANT_LINES,
    PIXELS,
    STEPS,
    TOGETHER,
    Product,
    number_of,
    pixels_named,
)
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import Sizes, Unroll, describe, unrolled
from microtir.kernels.common.requantise import Rescaling
from microtir.kernels.common.statements import each, load, loop, seq
from microtir.kernels.common.weights import OCTET, QUAD
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

WORD = 4  # values
UNROLL = Unroll(8, 8)  # of words
_WORD_BYTES = {TOGETHER: 120, 1: 64}  # of the instructions for a word
_TURNS_BYTES = 112  # where the words of two pixels lie in turns
UNROLL_OCTETS = Unroll(8, 8)
_OCTETS_BYTES = 124


@made_once
def gemm_bytes(
    pixels: int, distance: int, values: int, channels: int, rescaling: Rescaling
) -> KernelDescription:
    """Compute two pixels, or a single one, by four channels a turn.

    Args:
        pixels: an even number, or 1.
        distance: bytes from one pixel to the next, at least `values`; a single one has none, nor
            have two whose words lie in turns.
        values: of a pixel, whole words.
        channels: of the output, at least 4.
        rescaling: of the sums.

    Returns:
        Parameters: the first pixel, what `pack_quads` gives, outputs (blocks, pixels of a block,
        channels); then words, lines, quads, channels, and blocks if there may be several.
    """
    together = min(pixels, TOGETHER)
    assert distance or pixels == together, "two pixels in turns are one block"
    sizes = Sizes()
    most = distance // WORD if distance else STEPS // 2
    words = sizes.number("words", values // WORD, 1, most)
    steps = 2 * number_of(words)
    lines = sizes.number("lines", values // 2 + CONSTANT_LINES, 1, STEPS + CONSTANT_LINES)
    sizes.hold(number_of(lines) >= steps + CONSTANT_LINES)
    quads = sizes.number("quads", -(-channels // QUAD), 1, CHANNELS // QUAD)
    width = sizes.number("channels", channels, QUAD, CHANNELS)
    blocks = sizes.number("blocks", pixels // TOGETHER, 1, PIXELS // 2) if distance else 1
    shape = (blocks, together * distance) if distance else (words, together * WORD)
    x = ir.Buffer("x", shape, DType.INT8, alignment=1 if distance or together == 1 else 4)
    packed = ir.Buffer("packed", (quads, lines, 2), DType.INT32)
    y = ir.Buffer("y", (blocks, together, width), DType.INT8)
    product = _Product(x, packed, y, rescaling, together, steps, distance)
    special = values // WORD if UNROLL.is_straight(values // WORD) else None
    straight = "" if special is None else f"_{special}"
    apart = f"_{distance}" if distance else "_in_turns" if together > 1 else ""
    step_bytes = _TURNS_BYTES if together > 1 and not distance else _WORD_BYTES[together]
    return describe(
        f"gemm_bytes{together}{straight}{apart}_{rescaling.name}",
        (f"Matrix product of bytes: {pixels_named(together)} by four channels a turn",),
        (x, packed, y),
        (y,),
        each(
            "block", blocks,
            lambda block: loop("quad", 0, number_of(quads), partial(product.turn, block)),
        ),
        f"kernels/gemm_bytes{together}.j2",
        {
            **unrolled(values // WORD, UNROLL, step_bytes),
            "rescaling": rescaling.values(),
            "pixel": str(distance) if distance else "",
            "block": str(TOGETHER * distance),
        },
        stack_bytes=68 if together > 1 else 48,
        sizes=sizes,
    )  # fmt: skip


@made_once
def gemm_bytes_octets(values: int, channels: int, rescaling: Rescaling) -> KernelDescription:
    """Describe a single pixel by eight channels a turn: a word of it is widened half as often.

    Args:
        values: of the pixel, whole words.
        channels: of the output, at least 8.
        rescaling: of the sums.

    Returns:
        Parameters: the pixel, what `pack_quads` gives for eight channels together, outputs; then
        words, lines and octets.
    """
    sizes = Sizes()
    words = sizes.number("words", values // WORD, 1, STEPS // 2)
    steps = 2 * number_of(words)
    lines = sizes.number("lines", values // 2 + CONSTANT_LINES, 1, STEPS + CONSTANT_LINES)
    sizes.hold(number_of(lines) >= steps + CONSTANT_LINES)
    octets = sizes.number("octets", -(-channels // OCTET), 1, CHANNELS // OCTET)
    width = sizes.number("channels", channels, OCTET, CHANNELS)
    x = ir.Buffer("x", (words, WORD), DType.INT8)
    packed = ir.Buffer("packed", (octets, lines, OCTET // 2), DType.INT32)
    y = ir.Buffer("y", (1, 1, width), DType.INT8)
    product = _Product(x, packed, y, rescaling, 1, steps, 0)
    special = values // WORD if UNROLL_OCTETS.is_straight(values // WORD) else None
    straight = "" if special is None else f"_{special}"
    return describe(
        f"gemm_bytes_octets{straight}_{rescaling.name}",
        ("Matrix product of bytes: a pixel by eight channels a turn",),
        (x, packed, y),
        (y,),
        loop(
            "octet", 0, number_of(octets), partial(product.turn, te.as_expr(0, DType.INT32))
        ),
        "kernels/gemm_bytes_octets.j2",
        {
            **unrolled(values // WORD, UNROLL_OCTETS, _OCTETS_BYTES),
            "rescaling": rescaling.values(),
        },
        stack_bytes=56,
        sizes=sizes,
    )  # fmt: skip


class _Product(Product):
    """The meaning of a turn.

    `x` is (blocks, bytes of a block), or words of a single pixel or of two in turns.
    """

    def __init__(
        self,
        x: ir.Buffer,
        packed: ir.Buffer,
        y: ir.Buffer,
        rescaling: Rescaling,
        together: int,
        steps: te.Expr,
        distance: int,
    ) -> None:
        super().__init__(x, packed, y, rescaling, together, steps)
        self.distance = distance

    def products(self, block: te.Expr, quad: te.Expr) -> ir.Stmt:
        """Emit bytes 0 and 2 of each word, then 1 and 3, as SXTB16 gives them."""

        def half(word: te.Expr, first: int) -> ir.Stmt:
            def value(pixel: te.Expr, number: int) -> te.Expr:
                byte = first + 2 * number
                if not self.distance:
                    return load(self.patch, word, pixel * WORD + byte)
                return load(self.patch, block, pixel * self.distance + word * WORD + byte)

            return self.step(quad, word * 2 + first, value)

        return loop("word", 0, self.steps // 2, lambda word: seq(half(word, 0), half(word, 1)))
