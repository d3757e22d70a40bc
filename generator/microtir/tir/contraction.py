"""Says where a product and its sum are rounded once: `fused_multiply_add` in the program itself.

What a compiler fuses depends on its mode and its version.  Here it is decided once, for CPUs that
have an instruction for it, so that C of one plan gives the same bits everywhere.  It is no pass,
since results change by a rounding: it comes before all passes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from microtir.dtype import DType
from microtir.tir import ir
from microtir.tir.visitor import Rewriter, rewrite_function, walk

_KERNELS = 1024  # more than some models have


def contracted(func: ir.PrimFunc) -> ir.PrimFunc:
    """Return the function with each float32 product that is added to something fused with the sum.

    Where both operands of a sum are products it is the left one.  Products in `no_fp_contract` stay
    as they are, and so does a function that makes integers of floats: those are rounded where
    a reference rounds, often to the bit.  The micro-kernels that a function calls go the same way,
    each for itself.
    """
    return rewrite_function(func, _Contraction(fuses=not _makes_integers(func)))


# One kernel stays one, however many layers call it.
@lru_cache(maxsize=_KERNELS)
def _contracted_kernel(meaning: ir.PrimFunc) -> ir.PrimFunc:
    return contracted(meaning)


def _makes_integers(func: ir.PrimFunc) -> bool:
    return any(
        isinstance(node, ir.Cast) and node.value.dtype.is_float and not node.dtype.is_float
        for node in walk(func)
    )


class _Contraction(Rewriter):
    def __init__(self, *, fuses: bool) -> None:
        self._fuses = fuses

    def expr(self, e: ir.Expr) -> ir.Expr:
        e = self.expr_parts(e)
        return _fused(e) if self._fuses else e

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        s = self.stmt_parts(s)
        if not isinstance(s, ir.KernelCall):
            return s
        meaning = _contracted_kernel(s.meaning)
        return s if meaning is s.meaning else replace(s, meaning=meaning)


def _fused(e: ir.Expr) -> ir.Expr:
    match e:
        case ir.Binary(ir.BinaryOp.ADD, ir.Binary(ir.BinaryOp.MUL, a, b), c) if _is_float(e):
            return _call(a, b, c)
        case ir.Binary(ir.BinaryOp.ADD, c, ir.Binary(ir.BinaryOp.MUL, a, b)) if _is_float(e):
            return _call(a, b, c)
        case ir.Binary(ir.BinaryOp.SUB, ir.Binary(ir.BinaryOp.MUL, a, b), c) if _is_float(e):
            return _call(a, b, _negated(c))
        case ir.Binary(ir.BinaryOp.SUB, c, ir.Binary(ir.BinaryOp.MUL, a, b)) if _is_float(e):
            return _call(_negated(a), b, c)
        case _:
            return e


def _is_float(e: ir.Expr) -> bool:
    return e.dtype is DType.FLOAT32


def _call(a: ir.Expr, b: ir.Expr, c: ir.Expr) -> ir.Expr:
    return ir.Call(ir.Intrinsic.FUSED_MULTIPLY_ADD, (a, b, c), DType.FLOAT32)


def _negated(e: ir.Expr) -> ir.Expr:
    if isinstance(e, ir.FloatImm):
        return ir.FloatImm(-e.value, e.dtype)
    return ir.Unary(ir.UnaryOp.NEG, e)
