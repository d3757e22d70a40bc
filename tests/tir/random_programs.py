"""Random TIR for property tests: expressions and whole functions, mostly well defined."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from microtir.dtype import DType
from microtir.tir.ir import (
    Allocate,
    Binary,
    BinaryOp,
    Buffer,
    Call,
    Cast,
    Expr,
    For,
    If,
    IntImm,
    Intrinsic,
    Let,
    Load,
    LoopKind,
    PrimFunc,
    Scope,
    Select,
    Seq,
    Stmt,
    Store,
    Unary,
    UnaryOp,
    Var,
)

SIZE = 6  # elements of every buffer
INPUT = "x"
TABLE = np.array([3, 0, 5, 1, -2, 4], dtype=np.int32)

_ARITHMETIC = (
    BinaryOp.ADD, BinaryOp.SUB, BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.MIN,
    BinaryOp.MAX, BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.SHIFT_RIGHT,
    BinaryOp.SHIFT_LEFT, BinaryOp.BIT_AND, BinaryOp.BIT_OR, BinaryOp.BIT_XOR,
)  # fmt: skip
_COMPARISONS = (
    BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE,
)  # fmt: skip
_WITH_DIVISOR = (BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV)
_SHIFTS = (BinaryOp.SHIFT_LEFT, BinaryOp.SHIFT_RIGHT)


class Generator:
    """Draws TIR from hypothesis; remembers which names are in scope."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.x = Buffer(INPUT, (SIZE,), DType.INT32)
        self.small = Buffer("small", (SIZE,), DType.INT8)
        self.table = Buffer("table", (SIZE,), DType.INT32, Scope.CONSTANT, TABLE)
        self.out = Buffer("out", (SIZE,), DType.INT32)
        self.n = Var("n", DType.INT32, 0, SIZE)
        self.vars: list[Var] = [self.n]
        self.scalars: list[Buffer] = []
        self.next = 0

    def pick(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def name(self, prefix: str) -> str:
        self.next += 1
        return f"{prefix}{self.next}"

    # --- expressions ---

    def expr(self, depth: int) -> Expr:
        """An INT32 expression."""
        choice = self.pick(0, 13) if depth > 0 else self.pick(0, 2)
        if choice == 0:
            return IntImm(self.pick(-9, 9))
        if choice <= 2:
            return self.draw(st.sampled_from(self.vars))
        if choice == 3:
            return Load(self.draw(st.sampled_from([self.x, self.table])), (self.index(depth - 1),))
        if choice == 4:
            return Cast(DType.INT32, Load(self.small, (self.index(depth - 1),)))
        if choice == 5:
            return Select(self.condition(depth - 1), self.expr(depth - 1), self.expr(depth - 1))
        if choice == 6:
            return Unary(UnaryOp.NEG, self.expr(depth - 1))
        if choice >= 12:
            return self.affine()
        if choice == 7 and self.scalars:
            return Load(self.draw(st.sampled_from(self.scalars)), ())
        if choice == 8 and self.pick(0, 3) == 0:
            args = (self.expr(depth - 1), IntImm(1 << 30), IntImm(self.pick(-3, 2)))
            return Call(Intrinsic.MULTIPLY_BY_QUANTIZED_MULTIPLIER, args, DType.INT32)
        return self.binary(depth)

    def affine(self) -> Expr:
        """A sum of multiples of variables, as indices and guards are."""
        total: Expr = IntImm(self.pick(-4, 9))
        for var in self.draw(st.lists(st.sampled_from(self.vars), max_size=3)):
            term = Binary(BinaryOp.MUL, var, IntImm(self.pick(-3, 4)))
            total = Binary(self.draw(st.sampled_from([BinaryOp.ADD, BinaryOp.SUB])), term, total)
        if self.pick(0, 3) == 0:
            op = self.draw(st.sampled_from([BinaryOp.FLOORDIV, BinaryOp.FLOORMOD]))
            return Binary(op, total, IntImm(self.pick(1, 4)))
        if self.pick(0, 3) == 0:
            op = self.draw(st.sampled_from([BinaryOp.MIN, BinaryOp.MAX]))
            return Binary(op, total, self.affine())
        return total

    def binary(self, depth: int) -> Expr:
        op = self.draw(st.sampled_from(_ARITHMETIC))
        left = self.expr(depth - 1)
        if op in _WITH_DIVISOR:
            return Binary(op, left, IntImm(self.pick(1, 7)))
        if op in _SHIFTS:
            return Binary(op, left, IntImm(self.pick(0, 4)))
        return Binary(op, left, self.expr(depth - 1))

    def condition(self, depth: int) -> Expr:
        choice = self.pick(0, 6) if depth > 0 else 6
        if choice <= 1:
            op = BinaryOp.AND if choice == 0 else BinaryOp.OR
            return Binary(op, self.condition(depth - 1), self.condition(depth - 1))
        if choice == 2:
            return Unary(UnaryOp.NOT, self.condition(depth - 1))
        op = self.draw(st.sampled_from(_COMPARISONS))
        if self.pick(0, 2):
            return Binary(op, self.affine(), self.affine())
        return Binary(op, self.expr(depth), self.expr(depth))

    def index(self, depth: int) -> Expr:
        """An index that is in bounds by its form."""
        if self.pick(0, 1):
            return Binary(BinaryOp.FLOORMOD, self.expr(depth), IntImm(SIZE))
        low = Binary(BinaryOp.MAX, self.expr(depth), IntImm(0))
        return Binary(BinaryOp.MIN, low, IntImm(SIZE - 1))

    # --- statements ---

    def block(self, depth: int) -> Stmt:
        count = self.pick(1, 2)
        return Seq(tuple(self.stmt(depth) for _ in range(count)))

    def stmt(self, depth: int) -> Stmt:
        choice = self.pick(0, 7) if depth > 0 else 7
        if choice == 7:
            return self.store()
        if choice <= 3:
            return self.loop(depth)
        if choice == 4:
            return self.guarded(self.condition(2), depth)
        if choice == 5:
            value = self.expr(2)
            var = Var(self.name("v"))
            return Let(var, value, self.scoped(var, depth))
        scalar = Buffer(self.name("s"), (), DType.INT32, Scope.LOCAL)
        first = Store(scalar, (), self.expr(1))
        self.scalars.append(scalar)
        rest = self.block(depth - 1)
        self.scalars.remove(scalar)
        return Allocate(scalar, Seq((first, rest)))

    def store(self) -> Stmt:
        if self.scalars and self.pick(0, 1):
            return Store(self.draw(st.sampled_from(self.scalars)), (), self.expr(2))
        if self.pick(0, 1):
            return self.count()
        return Store(self.out, (self.index(1),), self.expr(3))

    def count(self) -> Stmt:
        """A store that shows how often it ran, and for which values of the variables."""
        at = (IntImm(self.pick(0, SIZE - 1)),)
        step = Binary(BinaryOp.ADD, self.draw(st.sampled_from(self.vars)), IntImm(17))
        return Store(self.out, at, Binary(BinaryOp.ADD, Load(self.out, at), step))

    def loop(self, depth: int) -> Stmt:
        start, stop = IntImm(self.pick(-2, 3)), IntImm(self.pick(-1, 7))
        kind = self.draw(st.sampled_from(LoopKind))
        var = Var(self.name("i"))
        if self.pick(0, 1):
            return self.guarded_loop(var, kind, depth)
        if kind is not LoopKind.UNROLLED and self.pick(0, 2) == 0:
            clipped = Binary(BinaryOp.MIN, self.expr(1), IntImm(6))
            return For(var, start, clipped, self.scoped(var, depth), kind)
        return For(var, start, stop, self.scoped(var, depth), kind)

    def guarded(self, condition: Expr, depth: int) -> Stmt:
        otherwise = self.block(depth - 1) if self.pick(0, 2) == 0 else None
        return If(condition, self.block(depth - 1), otherwise)

    def guarded_loop(self, var: Var, kind: LoopKind, depth: int) -> Stmt:
        """One or two loops around a guard that is linear in them, as `split` leaves them."""
        self.vars.append(var)
        inner = Var(self.name("i"))
        if self.pick(0, 1):
            self.vars.append(inner)
        comparison = self.draw(st.sampled_from(_COMPARISONS[:4]))
        scaled = Binary(BinaryOp.MUL, var, IntImm(self.pick(-3, 3)))
        guard: Expr = Binary(comparison, Binary(BinaryOp.ADD, scaled, self.affine()), self.affine())
        if self.pick(0, 1):
            guard = Binary(BinaryOp.AND, guard, self.condition(1))
        body: Stmt = If(guard, Seq((self.count(), self.block(depth - 1))))
        if self.vars[-1] is inner:
            self.vars.pop()
            body = For(inner, IntImm(0), IntImm(self.pick(1, 4)), body)
        self.vars.pop()
        return For(var, IntImm(self.pick(-1, 2)), IntImm(self.pick(1, 6)), body, kind)

    def scoped(self, var: Var, depth: int) -> Stmt:
        self.vars.append(var)
        body = self.block(depth - 1)
        self.vars.remove(var)
        return body

    def function(self, body: Stmt) -> PrimFunc:
        return PrimFunc("f", (self.x, self.small, self.out, self.n), body)


@st.composite
def expression_functions(draw: st.DrawFn) -> PrimFunc:
    """A function that stores one random expression."""
    generator = Generator(draw)
    return generator.function(Store(generator.out, (IntImm(0),), generator.expr(4)))


@st.composite
def functions(draw: st.DrawFn) -> PrimFunc:
    """A function of random statements."""
    generator = Generator(draw)
    return generator.function(generator.block(3))


def arguments(seed: int) -> list[np.ndarray[tuple[int, ...], np.dtype[np.generic]] | int]:
    """Arguments for the functions above."""
    random = np.random.default_rng(seed)
    return [
        random.integers(-20, 20, SIZE).astype(np.int32),
        random.integers(-128, 128, SIZE).astype(np.int8),
        np.zeros(SIZE, np.int32),
        int(random.integers(0, SIZE + 1)),
    ]
