"""Which expressions can never be negative: there C's `/` and `%` round as TIR's do."""

from __future__ import annotations

from microtir.tir.ir import (
    Binary,
    BinaryOp,
    Cast,
    Expr,
    IntImm,
    Select,
    Var,
)

_BOTH = (
    BinaryOp.ADD, BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.TRUNCDIV, BinaryOp.MIN,
    BinaryOp.BIT_OR, BinaryOp.BIT_XOR,
)  # fmt: skip


class Signs:
    """Knows the sign of the Vars of one function, as far as it was told."""

    def __init__(self) -> None:
        self._non_negative: set[Var] = set()

    def learn(self, var: Var, value: Expr) -> None:
        """`var` is at least `value`: the start of its loop, or its Let-bound value."""
        if self.is_non_negative(value):
            self._non_negative.add(var)

    def is_non_negative(self, e: Expr) -> bool:
        """Whether `e` is known to be at least zero; False also where nothing is known."""
        if e.dtype.is_float:
            return False
        if not e.dtype.is_signed:
            return True
        known = self.is_non_negative
        match e:
            case IntImm(value):
                return value >= 0
            case Var():
                return e in self._non_negative or (e.low is not None and e.low >= 0)
            case Cast(_, value):
                return known(value)
            case Select(_, then, otherwise):
                return known(then) and known(otherwise)
            case Binary(op, a, b) if op in _BOTH:
                return known(a) and known(b)
            case Binary(BinaryOp.MAX | BinaryOp.BIT_AND, a, b):
                return known(a) or known(b)
            case Binary(BinaryOp.FLOORMOD, _, b):
                return known(b)
            case Binary(BinaryOp.SHIFT_LEFT | BinaryOp.SHIFT_RIGHT, a, _):
                return known(a)
            case _:
                return False
