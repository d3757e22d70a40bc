"""Emit ensembles of trees, for the readers of both ways in which files hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_arithmetic import div
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.trees.definition import Aggregate, TreeEnsemble
from microtir.operators.trees.forest import Item, always_given, tables_of

T = TypeVar("T")

AGGREGATES = {
    "AVERAGE": Aggregate.SUM,
    "SUM": Aggregate.SUM,
    "MIN": Aggregate.MIN,
    "MAX": Aggregate.MAX,
}
"""Operations that combine the numbers of trees, in the order of the operator `TreeEnsemble`."""


@dataclass(frozen=True, slots=True)
class Forest:
    """The nodes of all trees, the positions of roots among them, and how many targets there are."""

    items: Sequence[Item]
    roots: Sequence[int]
    targets: int


def ensemble(
    node: OnnxNode, x: Tensor, forest: Forest, aggregate: str, *, needs_all: bool = False
) -> Tensor:
    """Emit the numbers of all targets.

    Args:
        node: it stands in the file.
        x: rows of features.
        forest: what is walked.
        aggregate: a key of `AGGREGATES`.
        needs_all: whether a sum of no numbers is something else than 0.
    """
    items, roots, targets = forest.items, forest.roots, forest.targets
    tables = tables_of(items, roots, targets, node.malformed)
    op = TreeEnsemble(targets, tables.depth, AGGREGATES[aggregate])
    # What has no number at all is 0 for onnxruntime, and the label of no row.
    needs_all = needs_all or op.aggregate is not Aggregate.SUM
    if needs_all and len(always_given(items, roots)) < targets:
        raise node.unsupported(
            "its leaves may have no number for a target or class, for which onnxruntime and the "
            "definition give different results",
            "leaves with numbers for all; else base values for classes, and none for targets",
            "add the base values after the trees, or export with base values for classes, which "
            "may be 0",
        )
    operands = [node.constant(table) for table in tables.inputs]
    scores = node.emit(op, x, *operands, shape=(x.shape[0], targets))
    return div(node, scores, float(len(roots))) if aggregate == "AVERAGE" else scores


def of_count(node: OnnxNode, name: str, values: Sequence[T], count: int) -> Sequence[T]:
    """Return the values of an attribute, which are as many as there are nodes or leaves."""
    if len(values) != count:
        raise node.malformed(f"the attribute '{name}' has {len(values)} values", f"{count}")
    return values
