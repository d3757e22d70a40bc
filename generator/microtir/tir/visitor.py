"""The one read visitor and the one rewriter of TIR.

A subclass overrides `visit` (or `expr` and `stmt`), handles the nodes that it is about, and calls
the inherited method for the rest.  Rewriting returns the same object where nothing changed, so
that a caller sees by identity whether anything did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from types import MappingProxyType
from typing import Any, TypeAlias, TypeVar

from microtir.errors import TirError
from microtir.tir import ir

Argument: TypeAlias = ir.BufferView | ir.BufferArgument
Node: TypeAlias = ir.Expr | ir.Stmt | Argument
NodeT = TypeVar("NodeT", ir.Expr, ir.Stmt)
Replacement: TypeAlias = ir.Expr | ir.Buffer | int
"""Replacement that `substitute` puts in the place of a Var, or a buffer in that of a buffer."""


def children(node: Node) -> tuple[Node, ...]:
    """Return direct parts of a node in the order of evaluation; bound Vars are not among them.

    A KernelCall's contract and meaning speak about the parameters of the kernel, not about the
    function around the call, and are not entered.
    """
    return _CHILDREN[type(node)](node)


def _leaf(_: Node) -> tuple[Node, ...]:
    return ()


def _branches(node: ir.If) -> tuple[Node, ...]:
    parts = (node.condition, node.then)
    return parts if node.otherwise is None else (*parts, node.otherwise)


# A table by type: walking takes a large part of the time of every pass.
_CHILDREN: Mapping[type, Callable[[Any], tuple[Node, ...]]] = MappingProxyType({
    ir.Var: _leaf,
    ir.IntImm: _leaf,
    ir.FloatImm: _leaf,
    ir.BufferView: _leaf,
    ir.Binary: lambda n: (n.a, n.b),
    ir.Unary: lambda n: (n.a,),
    ir.Cast: lambda n: (n.value,),
    ir.Select: lambda n: (n.condition, n.then, n.otherwise),
    ir.Load: attrgetter("indices"),
    ir.BufferArgument: attrgetter("indices"),
    ir.Call: attrgetter("args"),
    ir.Invoke: attrgetter("args"),
    ir.KernelCall: attrgetter("args"),
    ir.ExternCall: attrgetter("args"),
    ir.Store: lambda n: (*n.indices, n.value),
    ir.For: lambda n: (n.start, n.stop, n.body),
    ir.If: _branches,
    ir.Seq: attrgetter("statements"),
    ir.Let: lambda n: (n.value, n.body),
    ir.Allocate: lambda n: (n.body,),
})  # fmt: skip


# The statements that hold others, with those.
_INNER: Mapping[type, Callable[[Any], tuple[ir.Stmt, ...]]] = MappingProxyType(
    {
        ir.Seq: attrgetter("statements"),
        ir.For: lambda n: (n.body,),
        ir.If: lambda n: (n.then,) if n.otherwise is None else (n.then, n.otherwise),
        ir.Let: lambda n: (n.body,),
        ir.Allocate: lambda n: (n.body,),
    }
)


def allocations(s: ir.Stmt) -> tuple[tuple[ir.Buffer, ...], ir.Stmt]:
    """Return buffers of directly nested Allocates, outermost first, and what is inside.

    A main has one for every activation: recursion over them would end a large model.
    """
    buffers: list[ir.Buffer] = []
    while isinstance(s, ir.Allocate):
        buffers.append(s.buffer)
        s = s.body
    return tuple(buffers), s


def statements_of(s: ir.Stmt) -> Iterator[ir.Stmt]:
    """Yield the statements that run one after another."""
    if isinstance(s, ir.Seq):
        for inner in s.statements:
            yield from statements_of(inner)
    else:
        yield s


def allocated(buffers: Sequence[ir.Buffer], s: ir.Stmt) -> ir.Stmt:
    """Put a statement inside Allocates, outermost first: the reverse of `allocations`."""
    for buffer in reversed(buffers):
        s = ir.Allocate(buffer, s)
    return s


class Visitor:
    """Reads a tree: `visit` every node, parents first."""

    def visit(self, node: Node) -> None:
        for child in children(node):
            self.visit(child)


class Rewriter:
    """Builds a new tree bottom up; each hook returns its argument to keep it."""

    def expr(self, e: ir.Expr) -> ir.Expr:
        """Rewrite an expression; the default rewrites its parts."""
        return self.expr_parts(e)

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        """Rewrite a statement; the default rewrites its parts."""
        return self.stmt_parts(s)

    def buffer(self, buffer: ir.Buffer) -> ir.Buffer:
        """Replace a buffer wherever it is used or brought to life."""
        return buffer

    def binder(self, var: ir.Var) -> ir.Var:
        """Replace the Var that a loop or a Let defines."""
        return var

    def exprs(self, items: tuple[ir.Expr, ...]) -> tuple[ir.Expr, ...]:
        new = tuple([self.expr(e) for e in items])
        return items if all(a is b for a, b in zip(items, new, strict=True)) else new

    def expr_parts(self, e: ir.Expr) -> ir.Expr:
        match e:
            case ir.Var() | ir.IntImm() | ir.FloatImm():
                return e
            case ir.Binary(op, a, b):
                new_a, new_b = self.expr(a), self.expr(b)
                return e if new_a is a and new_b is b else ir.Binary(op, new_a, new_b)
            case ir.Unary(uop, a):
                new_a = self.expr(a)
                return e if new_a is a else ir.Unary(uop, new_a)
            case ir.Cast(dtype, value):
                new_value = self.expr(value)
                return e if new_value is value else ir.Cast(dtype, new_value)
            case ir.Select(c, t, o):
                parts = self.exprs((c, t, o))
                return e if _same(parts, (c, t, o)) else ir.Select(*parts)
            case ir.Load(buffer, indices):
                new_buffer, new_indices = self.buffer(buffer), self.exprs(indices)
                if new_buffer is buffer and new_indices is indices:
                    return e
                return ir.Load(new_buffer, new_indices)
            case ir.Call(intrinsic, args, dtype):
                new_args = self.exprs(args)
                return e if new_args is args else ir.Call(intrinsic, new_args, dtype)

    def stmt_parts(self, s: ir.Stmt) -> ir.Stmt:
        match s:
            case ir.Store(buffer, indices, value):
                store = (self.buffer(buffer), self.exprs(indices), self.expr(value))
                return s if _same(store, (buffer, indices, value)) else ir.Store(*store)
            case ir.For(var, start, stop, body, kind):
                loop = (self.binder(var), self.expr(start), self.expr(stop), self.stmt(body))
                return s if _same(loop, (var, start, stop, body)) else ir.For(*loop, kind)
            case ir.If(condition, then, otherwise):
                new_else = None if otherwise is None else self.stmt(otherwise)
                branch = (self.expr(condition), self.stmt(then), new_else)
                return s if _same(branch, (condition, then, otherwise)) else ir.If(*branch)
            case ir.Seq(statements):
                new = tuple([self.stmt(t) for t in statements])
                return s if _same(new, statements) else ir.Seq(new)
            case ir.Let(var, value, body):
                let = (self.binder(var), self.expr(value), self.stmt(body))
                return s if _same(let, (var, value, body)) else ir.Let(*let)
            case ir.Allocate():
                buffers, inside = allocations(s)
                new_buffers, body = tuple([self.buffer(b) for b in buffers]), self.stmt(inside)
                same = body is inside and _same(new_buffers, buffers)
                return s if same else allocated(new_buffers, body)
            case ir.Invoke(function, args):
                new_args = tuple([self._invoke_argument(a) for a in args])
                return s if _same(new_args, args) else ir.Invoke(function, new_args)
            case ir.KernelCall(meaning, kernel_args, contract, template):
                new_kernel = tuple([self._kernel_argument(a) for a in kernel_args])
                if _same(new_kernel, kernel_args):
                    return s
                return ir.KernelCall(meaning, new_kernel, contract, template)
            case ir.ExternCall(extern, extern_args):
                new_extern = tuple([self._kernel_argument(a) for a in extern_args])
                return s if _same(new_extern, extern_args) else ir.ExternCall(extern, new_extern)

    def _invoke_argument(self, argument: ir.BufferView | ir.Expr) -> ir.BufferView | ir.Expr:
        if not isinstance(argument, ir.BufferView):
            return self.expr(argument)
        buffer = self.buffer(argument.buffer)
        return argument if buffer is argument.buffer else replace(argument, buffer=buffer)

    def _kernel_argument(
        self, argument: ir.BufferArgument | ir.Expr
    ) -> ir.BufferArgument | ir.Expr:
        if not isinstance(argument, ir.BufferArgument):
            return self.expr(argument)
        buffer, indices = self.buffer(argument.buffer), self.exprs(argument.indices)
        if buffer is argument.buffer and indices is argument.indices:
            return argument
        return ir.BufferArgument(buffer, indices)


def _same(new: tuple[object, ...], old: tuple[object, ...]) -> bool:
    return all(a is b for a, b in zip(new, old, strict=True))


def rewrite_function(func: ir.PrimFunc, rewriter: Rewriter) -> ir.PrimFunc:
    """Return `func` with its body rewritten; the same object if nothing changed."""
    body = rewriter.stmt(func.body)
    return func if body is func.body else replace(func, body=body)


class _Substitution(Rewriter):
    def __init__(self, mapping: Mapping[ir.Param, Replacement]) -> None:
        self.mapping = mapping

    def expr(self, e: ir.Expr) -> ir.Expr:
        if not isinstance(e, ir.Var):
            return self.expr_parts(e)
        new = self.mapping.get(e, e)
        if isinstance(new, ir.Buffer):
            raise TirError(f"variable '{e.name}' cannot be replaced by buffer '{new.name}'")
        return ir.IntImm(new, e.dtype) if isinstance(new, int) else new

    def buffer(self, buffer: ir.Buffer) -> ir.Buffer:
        new = self.mapping.get(buffer, buffer)
        if not isinstance(new, ir.Buffer):
            raise TirError(f"buffer '{buffer.name}' can be replaced only by a buffer")
        return new

    def binder(self, var: ir.Var) -> ir.Var:
        new = self.mapping.get(var, var)
        if not isinstance(new, ir.Var):
            raise TirError(
                f"variable '{var.name}' is defined here, so it can only be renamed",
                fix="remove its loop or Let before substituting a value",
            )
        return new


def substitute(node: NodeT, mapping: Mapping[ir.Param, Replacement]) -> NodeT:
    """Return `node` with Vars replaced by expressions and Buffers by Buffers.

    A Var mapped to a Var is renamed where it is defined, too.  An int becomes a literal of the
    Var's type.  Shapes of buffers are left alone.

    Raises:
        TirError: a Var that a loop or a Let defines is mapped to something that is not a Var.
    """
    rewriter = _Substitution(mapping)
    if isinstance(node, ir.Expr):
        return rewriter.expr(node)
    return rewriter.stmt(node)


def walk(node: Node | ir.PrimFunc) -> Iterator[Node]:
    """Yield every node of a tree, parents first, in the order of the text."""
    stack: list[Node] = [node.body if isinstance(node, ir.PrimFunc) else node]
    pop, push, parts_of = stack.pop, stack.extend, _CHILDREN
    while stack:
        current = pop()
        yield current
        if parts := parts_of[type(current)](current):
            push(parts[::-1])


def walk_statements(node: Node | ir.PrimFunc) -> Iterator[Node]:
    """Yield every statement of a tree, parents first; most nodes of `walk` are expressions."""
    stack: list[Node] = [node.body if isinstance(node, ir.PrimFunc) else node]
    pop, push, inner_of = stack.pop, stack.extend, _INNER.get
    while stack:
        current = pop()
        yield current
        if inner := inner_of(type(current)):
            push(inner(current)[::-1])


# Whoever follows calls asks again, and micro-kernels are those of many functions.
@lru_cache(maxsize=4096)
def calls_of(function: ir.PrimFunc) -> tuple[ir.Invoke | ir.KernelCall | ir.ExternCall, ...]:
    """Return the calls in a function, in the order of the text."""
    return tuple(
        n
        for n in walk_statements(function)
        if isinstance(n, ir.Invoke | ir.KernelCall | ir.ExternCall)
    )


def invokes_of(node: ir.Stmt | ir.PrimFunc) -> tuple[ir.Invoke, ...]:
    """Return the calls of functions of the module in the order of the text."""
    return tuple(n for n in walk_statements(node) if isinstance(n, ir.Invoke))


def variables_used(node: Node | ir.PrimFunc) -> tuple[ir.Var, ...]:
    """Return vars that are read anywhere in the tree, each once, in order of first use."""
    return tuple(dict.fromkeys(n for n in walk(node) if isinstance(n, ir.Var)))


def buffers_read(node: Node | ir.PrimFunc) -> tuple[ir.Buffer, ...]:
    """Return buffers that the tree may read, each once, in order of first use.

    What an Invoke does with a buffer is not known here: it counts as read and as written.
    """
    return _buffers(node, False)


def buffers_written(node: Node | ir.PrimFunc) -> tuple[ir.Buffer, ...]:
    """Return buffers that the tree may write, each once, in order of first use."""
    return _buffers(node, True)


def _buffers(node: Node | ir.PrimFunc, written: bool) -> tuple[ir.Buffer, ...]:
    if isinstance(node, ir.PrimFunc):
        return _of_function(node, written)
    return tuple(dict.fromkeys(_accessed(node, written=written)))


# Every statement that calls a micro-kernel asks for those of its meaning.
@lru_cache(maxsize=4096)
def _of_function(function: ir.PrimFunc, written: bool) -> tuple[ir.Buffer, ...]:
    return tuple(dict.fromkeys(_accessed(function, written=written)))


def _accessed(node: Node | ir.PrimFunc, *, written: bool) -> Iterator[ir.Buffer]:
    for part in walk_statements(node) if written else walk(node):
        match part:
            case ir.Load(buffer) if not written:
                yield buffer
            case ir.Store(buffer) if written:
                yield buffer
            case ir.BufferView(buffer):
                yield buffer
            case ir.Invoke(_, args) if written:  # to read them, the views themselves are met
                yield from (view.buffer for view in args if isinstance(view, ir.BufferView))
            case ir.KernelCall(meaning, args):
                used = buffers_written(meaning) if written else buffers_read(meaning)
                for parameter, argument in zip(meaning.params, args, strict=False):
                    if isinstance(argument, ir.BufferArgument) and parameter in used:
                        yield argument.buffer
            case ir.ExternCall(function, args):
                touched = function.writes if written else function.reads
                for parameter, argument in zip(function.params, args, strict=False):
                    if isinstance(argument, ir.BufferArgument) and parameter in touched:
                        yield argument.buffer
            case _:
                pass
