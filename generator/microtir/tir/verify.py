"""Applies the structural rules of TIR (`tir.verify_rules`) to functions and modules.

That every access is in bounds is a proof, not a rule: see `tir.analysis.access`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from microtir.errors import TirError
from microtir.tir import ir
from microtir.tir.printer import expr_text, stmt_text
from microtir.tir.verify_rules import RULES, Context, Rule
from microtir.tir.visitor import Node, Visitor, allocations, calls_of, children


def _by_node() -> Mapping[type, tuple[Rule, ...]]:
    types = dict.fromkeys(t for rule in RULES for t in rule.nodes)
    return MappingProxyType({t: tuple(r for r in RULES if t in r.nodes) for t in types})


_RULES_OF = _by_node()


class _Checker(Visitor):
    def __init__(self, context: Context) -> None:
        self.context = context
        self.statement: Node | None = None

    def check(self, node: Node | ir.PrimFunc) -> None:
        for rule in _RULES_OF.get(type(node), ()):
            for problem in rule.check(node, self.context):
                where = f"function '{self.context.func.name}'"
                if self.statement is not None:
                    where += f", `{_first_line(self.statement)}`"
                raise TirError(f"{problem} (rule {rule.name})", where=where, legal=rule.description)

    def visit(self, node: Node) -> None:
        if isinstance(node, ir.Stmt) and not isinstance(node, ir.Seq):
            self.statement = node
        self.check(node)
        context = self.context
        match node:
            case ir.For(var, start, stop, body):
                self.visit(start)
                self.visit(stop)
                self._inside(var, context.vars, body)
            case ir.Let(var, value, body):
                self.visit(value)
                self._inside(var, context.vars, body)
            case ir.Allocate():
                self._allocations(node)
            case _:
                for child in children(node):
                    self.visit(child)

    def _allocations(self, outermost: ir.Allocate) -> None:
        """Check directly nested Allocates; the outermost has been checked."""
        buffers, inside = allocations(outermost)
        node: Node = outermost
        while isinstance(node, ir.Allocate):
            if node is not outermost:
                self.statement = node
                self.check(node)
            self.context.defined.add(node.buffer)
            self.context.buffers.add(node.buffer)
            node = node.body
        self.visit(inside)
        self.context.buffers.difference_update(buffers)

    def _inside(self, item: ir.Var | ir.Buffer, scope: set[Any], body: Node) -> None:
        self.context.defined.add(item)
        scope.add(item)
        self.visit(body)
        scope.discard(item)


def _first_line(node: Node) -> str:
    if isinstance(node, ir.BufferArgument | ir.BufferView):
        return ""
    if isinstance(node, ir.Expr):
        return expr_text(node)
    lines = [line for line in stmt_text(node).splitlines() if line.strip()]
    return lines[0].strip() if lines else "pass"


def verify(func: ir.PrimFunc, functions: Mapping[str, ir.PrimFunc] | None = None) -> None:
    """Check a function, and the kernels that it calls, against every rule.

    Args:
        func: the function.
        functions: the functions of its module by name; without them what an Invoke names is not
            checked.

    Raises:
        TirError: a rule is broken; the error names rule, function and statement.
    """
    context = Context(func, functions)
    context.vars.update(p for p in func.params if isinstance(p, ir.Var))
    context.buffers.update(p for p in func.params if isinstance(p, ir.Buffer))
    context.defined.update(func.params)
    checker = _Checker(context)
    checker.check(func)
    checker.visit(func.body)
    kernels = dict.fromkeys(c.meaning for c in calls_of(func) if isinstance(c, ir.KernelCall))
    for kernel in kernels:
        _verify_kernel(kernel)


# Functions never change, and kernels pass through every pass as they are.
@lru_cache(maxsize=4096)
def _verify_kernel(kernel: ir.PrimFunc) -> None:
    verify(kernel)


def verify_module(functions: Sequence[ir.PrimFunc]) -> None:
    """Check all functions of a module together; TirError as `verify`."""
    table = {f.name: f for f in functions}
    for func in functions:
        if table[func.name] is not func:
            raise TirError(
                f"two functions are called '{func.name}'", legal="a different name for each"
            )
        verify(func, table)


def verify_after(pass_name: str, function: ir.PrimFunc) -> None:
    """Verify what a pass has made.

    Raises:
        TirError: names the pass.
    """
    try:
        verify(function)
    except TirError as error:
        raise TirError(
            f"the pass '{pass_name}' broke a rule of TIR: {error.what}",
            where=error.where,
            legal=error.legal,
            fix="report this as a bug: the pass is faulty, not the program",
        ) from error
