"""The pass `lower_vectorized`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from microtir.tir.ir import For, LoopKind, PrimFunc, Stmt
from microtir.tir.visitor import Rewriter, rewrite_function


@dataclass(frozen=True, slots=True)
class LowerVectorized:
    """Makes VECTORIZED loops serial, for targets without vectors."""

    name: ClassVar[str] = "lower_vectorized"

    def __call__(self, func: PrimFunc) -> PrimFunc:
        return rewrite_function(func, _Serialiser())


class _Serialiser(Rewriter):
    def stmt(self, s: Stmt) -> Stmt:
        s = self.stmt_parts(s)
        if isinstance(s, For) and s.kind is LoopKind.VECTORIZED:
            return replace(s, kind=LoopKind.SERIAL)
        return s
