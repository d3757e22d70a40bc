"""Finding, replacing and copying loops of a body."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from microtir.errors import ScheduleError
from microtir.schedule.names import UniqueNames
from microtir.schedule.program import Loop, ScheduledProgram
from microtir.tir import build, ir
from microtir.tir.visitor import Replacement, Rewriter, children, substitute, walk_statements


def find_loop(program: ScheduledProgram, loop: Loop, step: str) -> ir.For:
    """Find the For of a handle.

    Raises:
        ScheduleError: an earlier step has replaced the loop.
    """
    for node in walk_statements(program.body):
        if isinstance(node, ir.For) and node.var is loop.var:
            return node
    present = ", ".join(other.name for other in loops_of(program) if other.stage is loop.stage)
    raise ScheduleError(
        f"loop '{loop}' does not exist, or an earlier step replaced it",
        where=step,
        legal=present or None,
        fix="use the handles that the earlier step returned, or s.loop(stage, name)",
    )


def loops_of(program: ScheduledProgram) -> tuple[Loop, ...]:
    """Return the handle of every loop of the body, in the order of the text."""
    loops = [node for node in walk_statements(program.body) if isinstance(node, ir.For)]
    return tuple(program.loops[loop.var] for loop in loops)


def require_serial(loop: ir.For, step: str) -> None:
    """Raise ScheduleError if a loop has a kind from an earlier step, which would be lost."""
    if loop.kind is not ir.LoopKind.SERIAL:
        raise ScheduleError(
            f"loop '{loop.var.name}' is already {loop.kind.value}",
            where=step,
            fix="split, fuse and reorder first; unroll and vectorize last",
        )


class _Replace(Rewriter):
    def __init__(self, old: ir.Stmt, change: Callable[[ir.Stmt], ir.Stmt]) -> None:
        self.old = old
        self.change = change

    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        return self.change(s) if s is self.old else self.stmt_parts(s)

    def expr(self, e: ir.Expr) -> ir.Expr:
        return e


def replace_stmt(body: ir.Stmt, old: ir.Stmt, new: ir.Stmt) -> ir.Stmt:
    """Replace the statement `old` (by identity) in `body`; sequences are flattened."""
    return _Flatten().stmt(_Replace(old, lambda _: new).stmt(body))


class _Flatten(Rewriter):
    def stmt(self, s: ir.Stmt) -> ir.Stmt:
        s = self.stmt_parts(s)
        if isinstance(s, ir.Seq) and any(isinstance(part, ir.Seq) for part in s.statements):
            return build.seq(s)
        return s

    def expr(self, e: ir.Expr) -> ir.Expr:
        return e


def path_to(body: ir.Stmt, target: ir.Stmt) -> tuple[ir.Stmt, ...]:
    """Return statements around `target` (by identity), outermost first, without itself."""

    def search(node: ir.Stmt) -> tuple[ir.Stmt, ...] | None:
        if node is target:
            return ()
        for child in children(node):
            if isinstance(child, ir.Stmt):
                below = search(child)
                if below is not None:
                    return (node, *below)
        return None

    path = search(body)
    assert path is not None, "the target is a part of the body"
    return path


def facts_at(body: ir.Stmt, target: ir.Stmt) -> tuple[ir.Expr, ...]:
    """Return conditions that hold where `target` begins: ranges of loops, guards, Lets."""
    facts: list[ir.Expr] = []
    path = (*path_to(body, target), target)
    for node, inside in pairwise(path):
        match node:
            case ir.For(var, start, stop):
                facts += [build.ge(var, start), build.lt(var, stop)]
            case ir.If(condition, then):
                facts.append(condition if then is inside else build.logical_not(condition))
            case ir.Let(var, value) if var.dtype is ir.DType.INT32:
                facts.append(build.eq(var, value))
            case _:
                pass
    return tuple(facts)


def defined_in(node: ir.Stmt) -> Iterator[ir.Var | ir.Buffer]:
    """Yield vars and Buffers that come to life inside a statement, each once."""
    for part in walk_statements(node):
        if isinstance(part, ir.For | ir.Let):
            yield part.var
        elif isinstance(part, ir.Allocate):
            yield part.buffer


def copy_loops(
    body: ir.Stmt, names: UniqueNames, loops: dict[ir.Var, Loop], suffix: str
) -> tuple[ir.Stmt, tuple[Loop, ...]]:
    """Copy a statement with new definitions, and return handles of its loops, too.

    The handle of a copied loop is called like the original, with the suffix.
    """
    renamed: dict[ir.Param, Replacement] = {}
    handles = []
    for old in defined_in(body):
        if isinstance(old, ir.Buffer):
            renamed[old] = replace(old, name=names.unique(old.name))
            continue
        new = build.fresh(old, names.unique(old.name + (suffix if old in loops else "")))
        renamed[old] = new
        if old in loops:
            handles.append(Loop(loops[old].stage, loops[old].name + suffix, new))
    return substitute(body, renamed), tuple(handles)
