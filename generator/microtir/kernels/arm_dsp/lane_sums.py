"""Sums of dual-packed weights: a lane holds the weights of two channels, and each has its sums."""

from __future__ import annotations

from collections.abc import Callable

from microtir import te
from microtir.dtype import DType
from microtir.kernels.common.statements import let, loop, seq, store
from microtir.tir import ir


def cleared(count: int, low: ir.Buffer, high: ir.Buffer) -> ir.Stmt:
    """Set all sums to 0."""
    return loop("i", 0, count, lambda i: seq(store(low, (i,), 0), store(high, (i,), 0)))


def local_sums(count: int) -> tuple[ir.Buffer, ir.Buffer]:
    """Return sums of the low bytes and of the high ones."""
    low = ir.Buffer("low", (count,), DType.INT32, ir.Scope.LOCAL)
    return low, ir.Buffer("high", (count,), DType.INT32, ir.Scope.LOCAL)


def split_lane(lane: te.Expr, body: Callable[[te.Expr, te.Expr], ir.Stmt]) -> ir.Stmt:
    """Emit names the two weights of a dual-packed lane for `body(a, b)`."""
    wide = te.cast(DType.INT32, lane)
    low = (wide + 128) % 256 - 128
    return let("a", low, lambda a: let("b", (wide - a) >> 8, lambda b: body(a, b)))
