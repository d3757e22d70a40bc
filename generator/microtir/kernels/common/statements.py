"""Statements of TIR for kernels that are written as loops around micro-kernels.

Expressions are handles of `te`, for Python's operators; statements are plain TIR.
"""

from __future__ import annotations

from collections.abc import Callable

from microtir.dtype import DType
from microtir.te import Expr, ExprLike, as_expr
from microtir.tir import build, ir


def indices(items: tuple[ExprLike, ...]) -> tuple[ir.Expr, ...]:
    """Return the index expressions as TIR."""
    return tuple(as_expr(item, DType.INT32).node for item in items)


def load(buffer: ir.Buffer, *items: ExprLike) -> Expr:
    """Return an element."""
    return Expr(ir.Load(buffer, indices(items)))


def store(buffer: ir.Buffer, items: tuple[ExprLike, ...], value: ExprLike) -> ir.Stmt:
    """Write an element; a Python number takes the buffer's type."""
    return ir.Store(buffer, indices(items), as_expr(value, buffer.dtype).node)


def loop(name: str, start: ExprLike, stop: ExprLike, body: Callable[[Expr], ir.Stmt]) -> ir.Stmt:
    """Emit `for name in [start, stop)`, or nothing if it is known to have no turn."""
    var = ir.Var(name)
    first, last = indices((start, stop))
    if isinstance(first, ir.IntImm) and isinstance(last, ir.IntImm) and first.value >= last.value:
        return build.seq()
    return ir.For(var, first, last, body(Expr(var)))


def each(name: str, count: int | ir.Var, body: Callable[[Expr], ir.Stmt]) -> ir.Stmt:
    """Emit a loop over [0, count), or the body alone if there is one turn."""
    if count == 1:
        return body(as_expr(0, DType.INT32))
    return loop(name, 0, as_expr(count, DType.INT32), body)


def let(name: str, value: Expr, body: Callable[[Expr], ir.Stmt]) -> ir.Stmt:
    """Emit names a value for `body`."""
    var = ir.Var(name, value.dtype)
    return ir.Let(var, value.node, body(Expr(var)))


def when(condition: Expr, then: ir.Stmt, otherwise: ir.Stmt | None = None) -> ir.Stmt:
    """Run `then` where the condition holds, else `otherwise`."""
    return ir.If(condition.node, then, otherwise)


def seq(*statements: ir.Stmt) -> ir.Stmt:
    """Emit statements in order."""
    return build.seq(*statements)


def at(buffer: ir.Buffer, *items: ExprLike) -> ir.BufferArgument:
    """Return a pointer to an element."""
    return ir.BufferArgument(buffer, indices(items))
