"""Define what support vector machines need besides products and sums."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import images, quantization, types
from microtir.operators.common.shapes import Shape, input_shape, require
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class SquaredDistances(Operator):
    """Inputs: rows (N, F) and vectors (V, F). Output (N, V): squared distances of each two.

    They are sums of squared differences, as |a|^2 - 2 ab + |b|^2 loses the digits of close ones;
    as a subtraction, a square and a sum they would need N V F numbers of RAM on the way.
    """


@dataclass(frozen=True, slots=True)
class PairwiseCoupling(Operator):
    """Probabilities of classes from those of pairs, by alternating steps that end early.

    The input has, for each pair of classes i < j in the order (0, 1), (0, 2), ..., (1, 2), ..., the
    probability of i among both: (N, K (K - 1) / 2). The output is (N, K). Algorithm 2 of Wu, Lin
    and Weng, Probability Estimates for Multi-class Classification by Pairwise Coupling (2004), with
    at most `MOST_TURNS` turns.
    """

    classes: int = 2


MOST_TURNS = 100
TOLERANCE = 0.005
"""Bound of the largest error, times the number of classes, below which the iteration ends."""


def _distances(node: Node) -> tuple[Shape, ...]:
    rows, vectors = input_shape(node, 0, 2), input_shape(node, 1, 2)
    require(
        rows[1] == vectors[1], f"rows of {rows[1]} features for vectors of {vectors[1]}", "as many"
    )
    return ((rows[0], vectors[0]),)


def _coupling(node: Node) -> tuple[Shape, ...]:
    op, pairs = node.attributes(PairwiseCoupling), input_shape(node, 0, 2)
    wanted = op.classes * (op.classes - 1) // 2
    require(op.classes >= 2, f"{op.classes} classes", "2 or more")
    require(pairs[1] == wanted, f"{pairs[1]} pairs of {op.classes} classes", f"{wanted}")
    return ((pairs[0], op.classes),)


DEFINITIONS = (
    Definition(
        SquaredDistances,
        types=types.equal_types(DType.FLOAT32),
        quantization=quantization.UNUSED,
        shapes=_distances,
        inputs=(2, 2),
        one_image=images.by_first_axis,
        terms=lambda node: node.inputs[0].shape[1],
        macs=lambda node: node.inputs[0].shape[1] * node.output.type.elements,
    ),
    Definition(
        PairwiseCoupling,
        types=types.equal_types(DType.FLOAT32),
        quantization=quantization.UNUSED,
        shapes=_coupling,
        one_image=images.by_first_axis,
    ),
)
