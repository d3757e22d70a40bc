"""Say how operators change when the axes of their operands come in another order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators import record_of
from microtir.operators.cumulation.definition import Cumsum
from microtir.operators.definition import Trait
from microtir.operators.movement.definition import Concatenation, Pad, Split, StridedSlice
from microtir.operators.reduction.definition import ArgMax, ArgMin, Reduction
from microtir.operators.repetition.definition import MirrorPad, Tile

Order: TypeAlias = "tuple[int, ...]"
"""Axis i of a value is axis `order[i]` of the tensor that it lies in."""

Moved: TypeAlias = "tuple[Operator, tuple[Order, ...]]"
"""The operator on tensors as they lie, and the orders in which its results are seen."""


def is_plain(order: Order) -> bool:
    """Return whether axes stay where they are."""
    return order == tuple(range(len(order)))


def inverse(order: Order) -> Order:
    """Return the order that takes axes back."""
    return tuple(order.index(axis) for axis in range(len(order)))


def moves_data(node: Node) -> bool:
    """Return whether an operator is known for any order of axes."""
    return record_of(node.op).has(Trait.ELEMENTWISE) or any(
        isinstance(node.op, kind) for kind in _RULES
    )


def moved_operator(node: Node, order: Order) -> Moved | None:
    """Return the operator for operands that are seen in an order; None if there is none such."""
    for kind, rule in _RULES.items():
        if isinstance(node.op, kind):
            return rule(node, order)
    if record_of(node.op).has(Trait.ELEMENTWISE) and len(node.output.shape) == len(order):
        return node.op, (order,)
    return None


def squeezed_order(order: Order, before: Sequence[int], after: Sequence[int]) -> Order | None:
    """Return the order in which a value is seen that gains and loses axes of one element.

    A new axis lies beside the axis that it stands before.

    Args:
        order: in which the value is seen.
        before: the extents of the value.
        after: those that it gets; None is returned where these are no longer the same axes.
    """
    new_axes: dict[int, int] = {}  # axes after by axes before
    place = 0
    for axis, extent in enumerate(after):
        while place < len(before) and before[place] == 1 != extent:
            place += 1
        if place < len(before) and before[place] == extent:
            new_axes[place] = axis
            place += 1
        elif extent != 1:
            return None
    if any(extent != 1 for extent in before[place:]):
        return None
    lying = [new_axes[axis] for axis in inverse(order) if axis in new_axes]
    for axis in reversed(range(len(after))):
        if axis not in lying:
            lying.insert(lying.index(axis + 1) if axis + 1 < len(after) else len(lying), axis)
    return inverse(tuple(lying))


def _along_axis(node: Node, order: Order) -> Moved:
    """Move an operator with an `axis` that stays."""
    op: Any = node.op
    return replace(op, axis=order[op.axis]), (order,) * len(node.outputs)


def _by_axis(*names: str) -> Callable[[Node, Order], Moved | None]:
    """Return the rule of an operator whose attributes have a number for each axis."""

    def rule(node: Node, order: Order) -> Moved | None:
        op = node.op
        if len(node.inputs) > 1 and any(t.data is None for t in node.inputs[1:]):
            return None
        values = {name: _laid(getattr(op, name), order) for name in names}
        if any(value is None for value in values.values()):
            return None
        changed: Any = op
        return replace(changed, **values), (order,)

    return rule


def _laid(values: Sequence[int], order: Order) -> tuple[int, ...] | None:
    """Return numbers of axes as the tensor has them."""
    if len(values) != len(order):
        return None
    return tuple(values[axis] for axis in inverse(order))


def _reduction(node: Node, order: Order) -> Moved:
    op: Any = node.op
    axes = tuple(sorted(order[axis] for axis in op.axes))
    if op.keep_dims:
        return replace(op, axes=axes), (order,)
    return replace(op, axes=axes), (_without(order, set(op.axes)),)


def _arg_extremum(node: Node, order: Order) -> Moved:
    op: Any = node.op
    return replace(op, axis=order[op.axis]), (_without(order, {op.axis}),)


def _without(order: Order, gone: set[int]) -> Order:
    remaining = [place for axis, place in enumerate(order) if axis not in gone]
    return tuple(sorted(remaining).index(place) for place in remaining)


_RULES: Mapping[type[Operator], Callable[[Node, Order], Moved | None]] = MappingProxyType(
    {
        Concatenation: _along_axis,
        Split: _along_axis,
        Cumsum: _along_axis,
        Pad: _by_axis("before", "after"),
        MirrorPad: _by_axis("before", "after"),
        StridedSlice: _by_axis("begin", "strides", "extent"),
        Tile: _by_axis("multiples"),
        Reduction: _reduction,
        ArgMax: _arg_extremum,
        ArgMin: _arg_extremum,
    }
)
