"""Patches: the inputs of some pixels, widened to int16 and interleaved as GEMM reads them.

Each block of a patch holds two pixels, word by word in turns, or a single one.  It consists of
segments, runs of values that are contiguous in the input: kernel rows, or single taps where the
kernel is dilated.
Four bytes of a segment make two steps of the product, bytes (0, 2) and (1, 3), because that is
what SXTB16 gives; the up to three bytes left of each segment (`tails`) are paired across segments
behind all quads.  Weights are packed in this order, so that it costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from microtir import te
from microtir.kernels.arm_dsp.gemm_kernels import TOGETHER
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe, repeated
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.kernels.common.weights import QUAD
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType

GROUP = 4  # pixels that are widened together
_QUADS_PER_TURN = 2
_IMMEDIATE = 4095  # largest number that ADD takes


@dataclass(frozen=True, slots=True)
class Segments:
    """`count` runs of `length` values each, of `together` pixels of a block."""

    count: int
    length: int
    together: int = TOGETHER

    @property
    def single(self) -> Segments:
        """Return those of a pixel whose words follow each other."""
        return replace(self, together=1)

    @property
    def lanes(self) -> int:
        """Return int16 values of a step of a block: two for each pixel."""
        return 2 * self.together

    @property
    def quads(self) -> int:
        """Return groups of four values of one segment."""
        return self.length // QUAD

    @property
    def tails(self) -> int:
        """Return values of one segment behind its quads."""
        return self.length % QUAD

    @property
    def tail_steps(self) -> int:
        """Return steps that hold the n-th tail value of all segments."""
        return -(-self.count // 2)

    @property
    def steps(self) -> int:
        """Return the steps of the whole product, two values each."""
        return self.count * self.quads * 2 + self.tails * self.tail_steps

    @property
    def block(self) -> int:
        """Return int16 values of a block."""
        return self.steps * self.lanes

    def elements(self, pixels: int) -> int:
        """Return int16 values of a patch."""
        return -(-pixels // self.together) * self.block

    def lane(self, pixel: te.ExprLike) -> te.Expr:
        """Return where the values of a pixel begin."""
        p = te.as_expr(pixel, DType.INT32)
        return p // self.together * self.block + p % self.together * 2

    def quad_index(self, segment: te.ExprLike) -> te.Expr:
        """Return where the quads of a segment begin in a block."""
        return te.as_expr(segment, DType.INT32) * (self.quads * 2 * self.lanes)

    def tail_index(self, segment: te.Expr) -> te.Expr:
        """Return where the first tail value of a segment lies.

        The next ones follow by `tail_stride`.
        """
        words = segment // 2 + self.count * self.quads * 2
        return words * self.lanes + segment % 2

    @property
    def tail_stride(self) -> int:
        return self.tail_steps * self.lanes

    @property
    def has_gap(self) -> bool:
        """Return whether the last tail of an odd number of segments has no partner."""
        return self.tails > 0 and self.count % 2 == 1

    def arrange(self, weights: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """Arrange weights (channels, count, length) as the patch: (channels, steps, 2)."""
        channels, split = len(weights), self.quads * QUAD
        quads = weights[:, :, :split].reshape(channels, self.count * self.quads, 2, 2)
        paired = quads.transpose(0, 1, 3, 2).reshape(channels, -1, 2)
        tails = weights[:, :, split:]
        if self.count % 2:
            tails = np.pad(tails, ((0, 0), (0, 1), (0, 0)))
        rows = tails.reshape(channels, self.tail_steps, 2, self.tails).transpose(0, 3, 1, 2)
        return np.concatenate([paired, rows.reshape(channels, -1, 2)], axis=1)


@made_once
def widen(pixels: int, segments: Segments, stride: int) -> KernelDescription:
    """Widen one segment of `pixels` (1, or whole groups) neighbouring pixels into a patch.

    Args:
        pixels: a single one is written into the lane that the pointers begin at; of a patch
            for one, 1.
        segments: those of the patch.
        stride: bytes between the inputs of neighbouring pixels.

    Returns:
        Parameters: the segment of the first pixel, its quads in the patch, and its first tail
        value in the patch if there are tails.
    """
    quads, tails, lanes = segments.quads, segments.tails, segments.lanes
    x = ir.Buffer("x", ((pixels - 1) * stride + segments.length,), DType.INT8)
    last = segments.elements(pixels) - segments.block + 2 if pixels > 1 else 0  # its lane
    span = last + (quads * 2 - 1) * lanes + 2 if quads else 1
    patch = ir.Buffer("patch", (span,), DType.INT16, alignment=4)
    left = ir.Buffer("tail", (max(tails - 1, 0) * segments.tail_stride + last + 1,), DType.INT16)

    def widened(pixel: te.Expr, value: te.ExprLike) -> te.Expr:
        return te.cast(DType.INT16, load(x, pixel * stride + value))

    def quad(pixel: te.Expr, number: te.Expr) -> ir.Stmt:
        return seq(*(
            store(
                patch,
                (segments.lane(pixel) + number * (2 * lanes) + byte % 2 * lanes + byte // 2,),
                widened(pixel, number * QUAD + byte),
            )
            for byte in range(QUAD)
        ))  # fmt: skip

    def body(pixel: te.Expr) -> ir.Stmt:
        return seq(
            loop("quad", 0, quads, lambda number: quad(pixel, number)) if quads else seq(),
            *(
                store(left, (segments.lane(pixel) + n * segments.tail_stride,),
                      widened(pixel, quads * QUAD + n))
                for n in range(tails)
            ),
        )  # fmt: skip

    whole = pixels == 1 and not tails  # no other segment matters
    shape = f"{segments.length}" if whole else f"{segments.length}of{segments.count}"
    kind = "pixel" if segments.together == 1 else f"patch{pixels}"
    return describe(
        f"{kind}_{shape}" + (f"_{stride}" if pixels > 1 else ""),
        (f"Widens {segments.length} values of {pixels} pixel{'s' * (pixels > 1)} into a patch",),
        (x, patch, left) if tails else (x, patch),
        (patch, left) if tails else (patch,),
        loop("pixel", 0, pixels, body),
        f"kernels/patch{GROUP if pixels > 1 else 1}.j2",
        _values(pixels, segments, stride),
        stack_bytes=16 if pixels == 1 else 36 if pixels == GROUP else 40,
    )


def _values(pixels: int, segments: Segments, stride: int) -> dict[str, object]:
    """Return what the templates are given."""
    quads, tails = segments.quads, segments.tails
    together, block = min(pixels, GROUP), segments.block * DType.INT16.bytes
    bases = ("r2", "r12")  # of each block
    return {
        "single": segments.together == 1,
        **repeated(quads, _QUADS_PER_TURN, _QUADS_PER_TURN),
        "quad_bytes": str(quads * QUAD),
        "block_bytes": str(block),
        "adds_block": block <= _IMMEDIATE,
        "groups": str(pixels // GROUP) if pixels > GROUP else "",
        "group_bytes": str(2 * block),
        "quads_left": str(2 * block - quads * 2 * segments.lanes * DType.INT16.bytes),
        "group_step": str(GROUP * stride - quads * QUAD),
        "tails": [
            {
                "source": str(p * stride + n),
                "base": bases[p // TOGETHER],
                "target": str(p % TOGETHER * 4 + n * segments.tail_stride * 2),
            }
            for n in range(tails)
            for p in range(together)
        ],
        **{f"pixel{p}": str(p * stride) for p in range(1, together)},
    }
