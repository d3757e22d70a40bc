"""Define ensembles of decision trees, as tables."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import quantization, types
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.definition import Definition


class Aggregate(Enum):
    """The operation that combines the numbers that trees give for one target."""

    SUM = "sum"
    MIN = "min"
    MAX = "max"


@dataclass(frozen=True, slots=True)
class TreeEnsemble(Operator):
    """Trees that give numbers for targets, by features of each row.

    The inputs are the rows, then tables: for each node its feature (-1 at a leaf), its threshold in
    the type of features, and the nodes that follow where the feature is at most the threshold and
    where it is not; the number of a leaf stands in the place of the first. Then the root of each
    tree, and for each leaf its numbers, in order. The targets that these are for, -1 for none, are
    left out where the numbers of every leaf are for all targets in order; at last, for each node,
    whether a feature that is no number goes the first way is left out where none does; among
    integers, which are then `OrderedBits`, that is the largest.

    Args:
        targets: how many.
        depth: the most nodes with a threshold on a way from a root to a leaf.
        aggregate: how numbers of trees become one; a sum begins with 0 and goes by the order of
            the trees, in float32.
    """

    targets: int = 1
    depth: int = 0
    aggregate: Aggregate = Aggregate.SUM


def questions(node: Node) -> int:
    """Return how many nodes of all trees have a threshold."""
    features = node.inputs[1].data
    assert features is not None, "tables of trees are constant"
    return sum(feature >= 0 for feature in features.tolist())


def usual_depth(op: TreeEnsemble) -> float:
    """Return how many nodes with a threshold a walk down a tree meets, about.

    Trees are not balanced: the way to a leaf is some three quarters of the longest.
    """
    return op.depth * 3 / 4


def _shapes(node: Node) -> tuple[Shape, ...]:
    op, rows = node.attributes(TreeEnsemble), input_shape(node, 0, 2)
    features, thresholds, following, roots, weights = (t.shape for t in node.inputs[1:6])
    count = features[0] if features else 0
    fit = features == thresholds == (count,) and following == (count, 2) and count >= 1
    require(fit, f"tables of {features}, {thresholds} and {following}", "(nodes), (nodes, 2)")
    require(len(roots) == 1 and len(weights) == 2, f"{roots} roots, {weights} numbers", "lists")
    require(rows[1] >= 1 and op.targets >= 1, f"rows of {rows[1]} features", "1 or more")
    constant = all(tensor.data is not None for tensor in node.inputs[1:])
    require(constant, "a table is computed while the model runs", "constant tables")
    return ((rows[0], op.targets),)


_F32 = DType.FLOAT32


FEATURES = (_F32, *(dtype for dtype in DType if dtype.is_int and dtype is not DType.UINT64))
"""The types of features and thresholds."""


def _signature(x: DType, index: DType, more: int) -> types.TypeSignature:
    return types.TypeSignature((x, index, x, index, index, _F32, *(index,) * more), _F32)


DEFINITIONS = (
    Definition(
        TreeEnsemble,
        types=types.TypeRule(
            tuple(
                _signature(x, index, more)
                for x in FEATURES
                for more in range(3)
                for index in (DType.INT16, DType.INT32)
            )
        ),
        quantization=quantization.UNUSED,
        shapes=_shapes,
        inputs=(6, 8),
    ),
)
