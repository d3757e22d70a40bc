"""Sums of patches, behind their steps: weights that have a zero point multiply them by it.

A weight is an int8 and a number that all weights of a layer share.  What the number adds to a
product is that number times the sum of the inputs, which are int16 in a patch: so a few steps more,
whose weights are all the number, make products of int8 those of such weights.
"""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Array
from microtir.kernels.common import micro_kernel
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.statements import load, loop, seq, store
from microtir.schedule import KernelDescription
from microtir.tir import ir

ADDED = 255  # int8 values whose sum an int16 holds
_TEMPLATE = "kernels/patch_sums.j2"
_REPEATS = 8  # words two by two of a turn


def shared_part(weights: Array) -> int | None:
    """Return a number that int8 weights, and itself, are left of; None if there is none."""
    low, high = int(weights.min(initial=0)), int(weights.max(initial=0))
    number = min(max((low + high + 1) // 2, DType.INT8.min), DType.INT8.max)
    fits = low - number >= DType.INT8.min and high - number <= DType.INT8.max
    return number if fits else None


def with_sums(arranged: Array, number: int, steps: int) -> Array:
    """Return weights (channels, steps, 2) less a number, and the number in some steps more."""
    behind = np.full((len(arranged), steps, 2), number)
    return np.concatenate([arranged, behind], axis=1).astype(np.int8)


def _parts(steps: int) -> list[int]:
    """Return how many steps each sum has."""
    return [min(ADDED, steps - first) for first in range(0, steps, ADDED)]


def instructions(steps: int, at_once: int) -> int:
    """Return the instructions of the sums of a block."""
    return 20 + steps * 3 * at_once // 2 + 8 * len(_parts(steps))


@made_once
def sums_of(steps: int, at_once: int) -> KernelDescription:
    """Add up the steps of a block, apart for each of the two values of a step.

    Args:
        steps: of the block.
        at_once: pixels of the block, 1 or 2.

    Returns:
        Parameters: the block (steps, pixels, 2) int16, its sums (steps / 255, pixels, 2) int16.
    """
    parts = _parts(steps)
    block = ir.Buffer("block", (steps, at_once, 2), DType.INT16, alignment=4)
    sums = ir.Buffer("sums", (len(parts), at_once, 2), DType.INT16, alignment=4)

    def part(number: int, size: int, pixel: te.Expr, value: te.Expr) -> ir.Stmt:
        total = ir.Buffer("total", (), DType.INT32, ir.Scope.LOCAL)

        def step(n: te.Expr) -> ir.Stmt:
            added = te.cast(DType.INT32, load(block, number * ADDED + n, pixel, value))
            return store(total, (), load(total) + added)

        stored = store(sums, (number, pixel, value), te.cast(DType.INT16, load(total)))
        return ir.Allocate(total, seq(store(total, (), 0), loop("step", 0, size, step), stored))

    def values(pixel: te.Expr) -> ir.Stmt:
        return loop(
            "value", 0, 2, lambda v: seq(*(part(n, s, pixel, v) for n, s in enumerate(parts)))
        )

    return micro_kernel.describe(
        f"sums{at_once}_{steps}",
        (f"Adds up {steps} steps of {at_once} pixel{'s' * (at_once > 1)}",),
        (block, sums),
        (sums,),
        loop("pixel", 0, at_once, values),
        _TEMPLATE,
        {"single": at_once == 1, "parts": [_printed(size * at_once) for size in parts]},
        stack_bytes=16,
    )


def _printed(words: int) -> dict[str, str | bool]:
    return {
        **micro_kernel.repeated(words // 2, _REPEATS),
        "bytes": str(words // 2 * 8),
        "odd": words % 2 == 1,
    }
