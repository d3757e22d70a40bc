"""Says where a product and its sum are rounded once: `fused_multiply_add` in the program itself.

What a compiler fuses depends on its mode and its version.  Here it is decided once, for CPUs that
have an instruction for it, so that C of one plan gives the same bits everywhere.  All other
products are said to be rounded by themselves, since some modes of compilers ignore every pragma.
It is no pass, since results change by a rounding: it comes before all passes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from microtir.dtype import DType
from microtir.tir import ir
from microtir.tir.float_functions import OWN
from microtir.tir.visitor import Rewriter, rewrite_function, walk

_KERNELS = 1024  # more than some models have
# What is done to a product next without a sum that it could be fused with.
_CLOSED = frozenset({ir.BinaryOp.MUL, ir.BinaryOp.DIV, ir.BinaryOp.MIN, ir.BinaryOp.MAX})


def contracted(func: ir.PrimFunc, *, fuses: bool, libm: bool = False) -> ir.PrimFunc:
    """Return the function with each float32 product that is added to something fused with the sum.

    Where both operands of a sum are products it is the left one.  Products in `no_fp_contract` stay
    as they are, and so does a function that makes integers of floats: those are rounded where
    a reference rounds, often to the bit.  The micro-kernels that a function calls go the same way,
    each for itself.  Functions such as exp become polynomials, whose steps fuse on such a CPU.

    Args:
        func: as its kernel wrote it.
        fuses: whether the CPU does it in one instruction; else all products are rounded by
            themselves.
        libm: leave functions such as exp to the C library.
    """
    return rewrite_function(func, _Contraction(fuses, libm, fuses and not _makes_integers(func)))


# One kernel stays one, however many layers call it.
@lru_cache(maxsize=_KERNELS)
def _contracted_kernel(meaning: ir.PrimFunc, fuses: bool, libm: bool) -> ir.PrimFunc:
    return contracted(meaning, fuses=fuses, libm=libm)


def _makes_integers(func: ir.PrimFunc) -> bool:
    return any(
        isinstance(node, ir.Cast) and node.value.dtype.is_float and not node.dtype.is_float
        for node in walk(func)
    )


class _Contraction(Rewriter):
    def __init__(self, cpu_fuses: bool, libm: bool, fuses: bool) -> None:
        self._cpu_fuses, self._libm, self._fuses = cpu_fuses, libm, fuses

    def expr(self, e: ir.Expr) -> ir.Expr:
        e = self.expr_parts(e)
        if isinstance(e, ir.Call) and not self._libm:
            own = OWN.get((e.intrinsic, self._cpu_fuses))
            e = e if own is None else replace(e, intrinsic=own)
        fused = _fused(e) if self._fuses else e
        return _with_products_apart(fused)

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        s = self.stmt_parts(s)
        match s:
            case ir.KernelCall():
                meaning = _contracted_kernel(s.meaning, self._cpu_fuses, self._libm)
                return s if meaning is s.meaning else replace(s, meaning=meaning)
            case ir.Store(value=value) | ir.Let(value=value) if _is_product(value):
                return replace(s, value=_uncontracted(value))
            case _:
                return s


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


def _with_products_apart(e: ir.Expr) -> ir.Expr:
    """Return the expression with those operands apart that compilers could fuse with a sum."""
    match e:
        case ir.Binary(op, a, b) if _is_float(e) and op not in _CLOSED:
            if _is_product(a) or _is_product(b):
                return ir.Binary(op, _uncontracted(a), _uncontracted(b))
        case ir.Unary(op, a) if _is_product(a):
            return ir.Unary(op, _uncontracted(a))
        case ir.Select(condition, then, otherwise):
            if _is_product(then) or _is_product(otherwise):
                return ir.Select(condition, _uncontracted(then), _uncontracted(otherwise))
        case ir.Call(ir.Intrinsic.FUSED_MULTIPLY_ADD, (a, b, c), dtype) if _is_product(c):
            return ir.Call(ir.Intrinsic.FUSED_MULTIPLY_ADD, (a, b, _uncontracted(c)), dtype)
        case _:
            pass
    return e


def _is_float(e: ir.Expr) -> bool:
    return e.dtype is DType.FLOAT32


def _is_product(e: ir.Expr) -> bool:
    return isinstance(e, ir.Binary) and e.op is ir.BinaryOp.MUL and _is_float(e)


def _uncontracted(e: ir.Expr) -> ir.Expr:
    if not _is_product(e):
        return e
    return ir.Call(ir.Intrinsic.NO_FP_CONTRACT, (e,), DType.FLOAT32)


def _call(a: ir.Expr, b: ir.Expr, c: ir.Expr) -> ir.Expr:
    return ir.Call(ir.Intrinsic.FUSED_MULTIPLY_ADD, (a, b, c), DType.FLOAT32)


def _negated(e: ir.Expr) -> ir.Expr:
    if isinstance(e, ir.FloatImm):
        return ir.FloatImm(-e.value, e.dtype)
    return ir.Unary(ir.UnaryOp.NEG, e)
