"""Micro-kernel of depthwise sums: a row of a window times its weights."""

from __future__ import annotations

from microtir import te
from microtir.kernels.common.made_once import made_once
from microtir.kernels.common.micro_kernel import describe
from microtir.kernels.common.statements import load, loop, store
from microtir.kernels.common.weights import QUAD
from microtir.schedule import KernelDescription
from microtir.tir import ir
from microtir.tir.dtype import DType


@made_once
def add_products(pixels: int, channels: int) -> KernelDescription:
    """Add the products of neighbouring pixels and their weights to the sums of their channels.

    Args:
        pixels: of the row, at least 1.
        channels: whole quads.

    Returns:
        Parameters: the first pixel, weights (pixels, channels) int8, sums.
    """
    x = ir.Buffer("x", (pixels * channels,), DType.INT8)
    weights = ir.Buffer("weights", (pixels * channels,), DType.INT8)
    sums = ir.Buffer("sums", (channels,), DType.INT32)

    def product(pixel: te.Expr, channel: te.Expr) -> ir.Stmt:
        a, b = (
            te.cast(DType.INT32, load(buffer, pixel * channels + channel))
            for buffer in (x, weights)
        )
        return store(sums, (channel,), load(sums, channel) + a * b)

    body = loop("channel", 0, channels, lambda c: loop("pixel", 0, pixels, lambda p: product(p, c)))
    # The first pixel's loads move both pointers on, so that others lie a quad nearer.
    behind = tuple(str(pixel * channels - QUAD) for pixel in range(1, pixels))
    return describe(
        f"add_products_{pixels}x{channels}",
        (f"Adds {pixels} x {channels} products to the sums of the channels",),
        (x, weights, sums),
        (sums,),
        body,
        "kernels/depthwise_sums.j2",
        {"sums_bytes": str(channels * DType.INT32.bytes), "behind": behind},
        stack_bytes=32,
    )
