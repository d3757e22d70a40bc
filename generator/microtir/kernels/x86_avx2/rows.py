"""Row ranges: several rows in one kernel where that pays."""

from __future__ import annotations

from collections.abc import Callable

from microtir import te
from microtir.kernels.common.layer import Layer
from microtir.kernels.common.statements import loop, seq
from microtir.tir import ir


def in_blocks(layer: Layer, together: int, some: Callable[[te.Expr, int], ir.Stmt]) -> ir.Stmt:
    """Emit `some(row, count)` for the rows of the range.

    Blocks of `together` rows, then single ones.
    """

    def rest(first: te.Expr) -> ir.Stmt:
        return loop("row", first, layer.y1, lambda row: some(row, 1))

    if together == 1:
        return rest(layer.y0)
    blocks = te.maximum(layer.y1 - layer.y0, 0) // together
    return seq(
        loop("block", 0, blocks, lambda n: some(layer.y0 + n * together, together)),
        rest(layer.y0 + blocks * together),
    )
