"""Compute MEAN over any axes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir import te
from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common.arithmetic import Accumulator, requantise, stored, summand
from microtir.operators.common.formula import Formula, FormulaContext, whole
from microtir.operators.reduction.definition import Mean, mean_params


def cost(node: Node) -> int:
    """Estimate the instructions of `mean`."""
    return 5 * node.inputs[0].type.elements + 40 * node.output.type.elements


def mean(layer: FormulaContext) -> None:
    """Emit MEAN over any axes."""
    node, op = layer.node, layer.node.op
    assert isinstance(op, Mean)
    x, shape = layer.whole(0), node.inputs[0].shape
    outer_axes = [axis for axis in range(len(shape)) if axis not in op.axes]
    names = {axis: f"k{axis}" for axis in op.axes}

    def element(*position: te.Expr) -> te.Expr:
        reduced = {axis: te.reduce_axis(0, shape[axis], names[axis]) for axis in op.axes}
        outer = dict(zip(outer_axes, position, strict=True))
        value = x[tuple(reduced[a] if a in reduced else outer[a] for a in range(len(shape)))]
        axes = tuple(reduced.values())
        start, term = mean_start(node), summand(layer, value)
        total = te.sum(term, axes, init=start) if axes else term + start
        return mean_of(layer, total)

    layer.tensor(element, tuple(shape[axis] for axis in outer_axes))


def mean_start(node: Node) -> int | float:
    """Return what the sum of a MEAN begins with: the zero points' share, 0 for floats."""
    if node.output.dtype is DType.FLOAT32:
        return 0.0
    op = node.op
    assert isinstance(op, Mean)
    params = mean_params(op, node.inputs[0].type, node.output.type)
    return -_count(node) * params.input_zero_point


def mean_of(layer: FormulaContext, total: te.Expr) -> te.Expr:
    """Return the output element of MEAN for its sum."""
    node = layer.node
    op = node.op
    assert isinstance(op, Mean)
    if node.output.dtype is DType.FLOAT32:
        return total / float(_count(node))
    params = mean_params(op, node.inputs[0].type, node.output.type)
    scaled = requantise(Accumulator.of(layer).total(total), params.multiplier)
    return stored(
        scaled, params.output_zero_point, params.minimum, params.maximum, node.output.dtype
    )


def _count(node: Node) -> int:
    """Count the elements that each result of a MEAN comes from."""
    return node.inputs[0].type.elements // node.output.type.elements


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {
        Mean: Formula(mean, cost, whole),
    }
)
