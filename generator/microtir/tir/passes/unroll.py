"""The pass `unroll_loops`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.tir import build
from microtir.tir.duplicate import duplicate
from microtir.tir.ir import For, IntImm, LoopKind, PrimFunc, Stmt
from microtir.tir.visitor import Rewriter, rewrite_function, substitute, walk


@dataclass(frozen=True, slots=True)
class UnrollLoops:
    """Replaces loops by copies of their body: those marked UNROLLED, and short innermost ones.

    Args:
        max_extent: innermost serial loops with literal bounds and at most so many iterations are
            unrolled unasked; 0 unrolls the marked loops only.
    """

    name: ClassVar[str] = "unroll_loops"
    max_extent: int = 0

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return rewrite_function(func, _Unroller(self.max_extent))


class _Unroller(Rewriter):
    def __init__(self, max_extent: int) -> None:
        self.max_extent = max_extent

    def stmt(self, s: Stmt) -> Stmt:
        # Whether a loop is innermost is a fact about the program before it was changed.
        is_chosen = isinstance(s, For) and self._is_chosen(s)
        s = self.stmt_parts(s)
        if not is_chosen or not isinstance(s, For):
            return s
        start, stop = build.int_value(s.start), build.int_value(s.stop)
        if start is None or stop is None:
            return s
        return build.seq(
            substitute(duplicate(s.body), {s.var: value}) for value in range(start, stop)
        )

    def _is_chosen(self, s: For) -> bool:
        if s.kind is LoopKind.UNROLLED:
            return True
        if not isinstance(s.start, IntImm) or not isinstance(s.stop, IntImm):
            return False
        is_short = s.stop.value - s.start.value <= self.max_extent
        return is_short and not any(isinstance(n, For) for n in walk(s.body))
