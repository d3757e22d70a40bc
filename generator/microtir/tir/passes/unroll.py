"""The pass `unroll_loops`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from microtir.tir import build, ir
from microtir.tir.passes.simplify_expr import binary
from microtir.tir.visitor import Rewriter, allocations, rewrite_function, walk


@dataclass(frozen=True, slots=True)
class UnrollLoops:
    """Replaces loops by copies of their body: those marked UNROLLED, and short innermost ones.

    A loop that runs once is its body.  A copy knows the value of the loop variable: constants are
    folded, what its conditions rule out is left out, and indices end in their constant.

    Args:
        max_extent: innermost serial loops with literal bounds and at most so many iterations are
            unrolled unasked; 0 unrolls the marked loops only.
    """

    name: ClassVar[str] = "unroll_loops"
    max_extent: int = 0

    def __call__(self, func: ir.PrimFunc) -> ir.PrimFunc:
        return rewrite_function(func, _Unroller(self.max_extent))


class _Unroller(Rewriter):
    """Writes every copy once, from the outermost loop inwards.

    `known` is not empty inside a copy: the values of unrolled loops, and what stands for the Vars
    and Buffers that the body defines, since each may be defined only once.
    """

    def __init__(self, max_extent: int) -> None:
        self.max_extent = max_extent
        self.known: dict[ir.Var | ir.Buffer, ir.Expr | ir.Buffer] = {}

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        if isinstance(s, ir.For) and self._is_chosen(s):
            start, stop = build.int_value(self.expr(s.start)), build.int_value(self.expr(s.stop))
            if start is not None and stop is not None:
                return build.seq(self._copy(s, value) for value in range(start, stop))
        if isinstance(s, ir.Seq):
            after = self.stmt_parts(s)
            return s if after is s else build.seq(after)
        if not self.known:
            return self.stmt_parts(s)
        if isinstance(s, ir.If):
            condition = self.expr(s.condition)
            if isinstance(condition, ir.IntImm):
                taken = s.then if condition.value else s.otherwise
                return build.NOTHING if taken is None else self.stmt(taken)
        if isinstance(s, ir.Allocate):
            self.known.update({buffer: replace(buffer) for buffer in allocations(s)[0]})
        s = self.stmt_parts(s)
        return (
            ir.Store(s.buffer, _with_offsets(s.indices), s.value) if isinstance(s, ir.Store) else s
        )

    def _copy(self, loop: ir.For, value: int) -> ir.Stmt:
        around = self.known
        self.known = {**around, loop.var: build.const(value, loop.var.dtype)}
        body = self.stmt(loop.body)
        self.known = around
        return body

    def _is_chosen(self, s: ir.For) -> bool:
        if s.kind is ir.LoopKind.UNROLLED:
            return True
        if not isinstance(s.start, ir.IntImm) or not isinstance(s.stop, ir.IntImm):
            return False
        trips = s.stop.value - s.start.value
        if trips == 1:
            return True
        return trips <= self.max_extent and not any(isinstance(n, ir.For) for n in walk(s.body))

    def binder(self, var: ir.Var) -> ir.Var:
        if not self.known:
            return var
        new = build.fresh(var)
        self.known[var] = new
        return new

    def buffer(self, buffer: ir.Buffer) -> ir.Buffer:
        new = self.known.get(buffer, buffer)
        assert isinstance(new, ir.Buffer)
        return new

    def expr(self, e: ir.Expr) -> ir.Expr:
        if isinstance(e, ir.Var):
            value = self.known.get(e, e)
            assert not isinstance(value, ir.Buffer)
            return value
        new = self.expr_parts(e)
        return e if new is e and not _is_decided(e) else _folded(new)


def _is_decided(e: ir.Expr) -> bool:
    """Return whether constants alone say what it is: a schedule leaves such where a loop was."""
    return isinstance(e, ir.Binary) and isinstance(e.a, ir.IntImm) and isinstance(e.b, ir.IntImm)


def _folded(e: ir.Expr) -> ir.Expr:
    """Return an expression of new parts, made as a constructor would."""
    match e:
        case ir.Binary(ir.BinaryOp.AND, a, b):
            return build.logical_and(a, b)
        case ir.Binary(ir.BinaryOp.OR, a, b):
            return build.logical_or(a, b)
        case ir.Binary(op, a, b):
            return binary(op, a, b)
        case ir.Cast(dtype, value):
            return build.cast(dtype, value)
        case ir.Select(condition, then, otherwise):
            return build.select(condition, then, otherwise)
        case ir.Load(buffer, indices):
            return ir.Load(buffer, _with_offsets(indices))
        case _:
            return e


def _with_offsets(indices: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
    """Return indices that end in their constant, so that the copies share what stands before it.

    A compiler then has one pointer for all copies, which differ in the offset of an instruction.
    """
    return tuple([build.add(*_parts(index)) for index in indices])


def _parts(index: ir.Expr) -> tuple[ir.Expr, int]:
    """Return an index as a sum of an expression and a constant."""
    match index:
        case ir.IntImm(value):
            return build.const(0), value
        case ir.Binary(ir.BinaryOp.ADD | ir.BinaryOp.SUB as op, a, b):
            (first, x), (second, y) = _parts(a), _parts(b)
            last = x + y if op is ir.BinaryOp.ADD else x - y
            return binary(op, first, second) if x or y else index, last
        case ir.Binary(ir.BinaryOp.MUL, a, ir.IntImm(factor)):
            first, x = _parts(a)
            return build.mul(first, factor) if x else index, x * factor
        case _:
            return index, 0
