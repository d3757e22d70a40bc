"""Copies of statements that define Vars and Buffers of their own."""

from __future__ import annotations

from dataclasses import replace

from microtir.tir import build
from microtir.tir.ir import Allocate, For, Let, Param, Stmt
from microtir.tir.visitor import Replacement, substitute, walk


def duplicate(s: Stmt) -> Stmt:
    """Copy a statement with new objects for all that it defines: a Var is defined once."""
    fresh: dict[Param, Replacement] = {}
    for node in walk(s):
        if isinstance(node, For | Let):
            fresh[node.var] = build.fresh(node.var)
        elif isinstance(node, Allocate):
            fresh[node.buffer] = replace(node.buffer)
    return substitute(s, fresh) if fresh else s
