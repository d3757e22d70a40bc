"""Compute what loops and branches do to memory; where they begin and end takes no code."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir import te
from microtir.dtype import DType
from microtir.graph.operator import Operator
from microtir.operators.common.formula import Formula, FormulaContext, whole
from microtir.operators.control.definition import PutItem


def put_item(layer: FormulaContext) -> None:
    """Emit PUT_ITEM: every element of the list as it is, or as the item has it.

    The list is read and written in one memory, each element before the next.
    """
    items, item, index = layer.node.inputs
    shape = items.shape[0], item.type.elements
    old, new = layer.whole(0, shape), layer.whole(1, (shape[1],))
    number = layer.whole(2, (1,))

    def element(row: te.Expr, at: te.Expr) -> te.Expr:
        wanted = te.cast(DType.INT64, number[0])
        return te.select(wanted == te.cast(DType.INT64, row), new[at], old[row, at])

    assert index.type.elements == 1, "a rule of the definition"
    layer.tensor(element, shape)


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {PutItem: Formula(put_item, 6, whole)}
)
