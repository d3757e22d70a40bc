"""Multiply-accumulate operations of a node: the field's measure of the work of a layer."""

from __future__ import annotations

from microtir.graph.ir import Node
from microtir.operators import record_of
from microtir.operators.definition import Trait


def macs(node: Node) -> int:
    """Count the multiply-accumulates of one inference, as published figures count them.

    Weights that meet padding count too; operators without weights have none.
    """
    record = record_of(node.op)
    if record.definition.macs is not None:
        return record.definition.macs(node)
    return terms(node) * node.output.type.elements if record.has(Trait.WEIGHTED) else 0


def terms(node: Node) -> int:
    """Count the values that a node adds up at most for one element of its output."""
    count = record_of(node.op).definition.terms
    return 1 if count is None else max(count(node), 1)
