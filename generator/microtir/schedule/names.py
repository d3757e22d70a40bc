"""Unique names within one function."""

from __future__ import annotations

from collections.abc import Iterable

from microtir.tir import ir
from microtir.tir.visitor import walk


class UniqueNames:
    """Hands out names that are unique within one function."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    @staticmethod
    def used_in(body: ir.Stmt) -> UniqueNames:
        """Return all names but those of the variables, buffers and loops of a body."""
        return UniqueNames(name for node in walk(body) for name in _names(node))

    def unique(self, name: str) -> str:
        """Return `name`, or `name_1`, `name_2`, ... where it is taken."""
        candidate, number = name, 0
        while candidate in self._taken:
            number += 1
            candidate = f"{name}_{number}"
        self._taken.add(candidate)
        return candidate


def _names(node: object) -> tuple[str, ...]:
    match node:
        case ir.Var(name):
            return (name,)
        case ir.For(var) | ir.Let(var):
            return (var.name,)
        case ir.Load(buffer) | ir.Store(buffer) | ir.Allocate(buffer) | ir.BufferArgument(buffer):
            dims = tuple(dim.name for dim in buffer.shape if isinstance(dim, ir.Var))
            return (buffer.name, *dims)
        case _:
            return ()
