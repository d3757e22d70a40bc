"""Define BATCH_MATMUL by its attributes and rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from microtir.graph.ir import Node, SumRange
from microtir.operators.common import linear, quantization, shapes, sums, types
from microtir.operators.common.attributes import RescaledOperator, Rescaling
from microtir.operators.common.problem import Problem
from microtir.operators.definition import Definition


@dataclass(frozen=True, slots=True)
class BatchMatmul(RescaledOperator):
    """Inputs: matrices (..., M, K) and (..., K, N), whose outer axes broadcast. Output (..., M, N).

    With `adj_x` the first lie as (..., K, M), with `adj_y` the second as (..., N, K).
    """

    adj_x: bool = False
    adj_y: bool = False
    rescaling: Rescaling = Rescaling.FIXED_POINT


def matrices(node: Node) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the extents (M, K) and (K, N) of the matrices, whichever way they lie."""
    op = node.attributes(BatchMatmul)
    first, second = (tensor.shape[-2:] for tensor in node.inputs)
    return (
        (first[1], first[0]) if op.adj_x else (first[0], first[1]),
        (second[1], second[0]) if op.adj_y else (second[0], second[1]),
    )


def _shape(node: Node) -> tuple[shapes.Shape, ...]:
    x, y = (tensor.shape for tensor in node.inputs)
    shapes.require(min(len(x), len(y)) >= 2, f"shapes {x} and {y}", "two dimensions or more")
    (rows, inner), (depth, columns) = matrices(node)
    shapes.require(inner == depth, f"rows of {inner} times columns of {depth}", "as many elements")
    return ((*shapes.broadcast_of(x[:-2], y[:-2]), rows, columns),)


def _terms(node: Node) -> int:
    return matrices(node)[0][1]


def _macs(node: Node) -> int:
    return _terms(node) * node.output.type.elements


def _sums(node: Node, inputs: Sequence[sums.Interval]) -> SumRange:
    """Bound partial sums of products, each of any two values."""
    ends = [
        (int(low.min()) - t.type.quant.zero_point, int(high.max()) - t.type.quant.zero_point)
        for t, (low, high) in zip(node.inputs, inputs, strict=True)
    ]
    products = [a * b for a in ends[0] for b in ends[1]]
    return SumRange(_terms(node) * min(*products, 0), _terms(node) * max(*products, 0))


def _multipliers(node: Node) -> Iterator[Problem]:
    yield from linear.factor_problems(node)
    if node.inputs[0].dtype.bits == 16 and _terms(node) >= 1 << 17:
        yield Problem("its sums may take more than 48 bits", "rows of less than 2^17 elements")


DEFINITIONS = (
    Definition(
        BatchMatmul,
        types=types.COMPUTED_16,
        quantization=quantization.unless_in_float(quantization.OWN_SYMMETRIC_INT16),
        shapes=_shape,
        inputs=(2, 2),
        multipliers=_multipliers,
        sums=_sums,
        terms=_terms,
        macs=_macs,
    ),
)
