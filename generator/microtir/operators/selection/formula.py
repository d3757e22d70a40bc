"""Compute operators that pick by conditions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np

from microtir import te
from microtir.graph.operator import Operator
from microtir.operators.common.broadcast import ROWS, elementwise
from microtir.operators.common.formula import Formula, FormulaContext, whole
from microtir.operators.selection.definition import Select, Where, condition_shape


def select(layer: FormulaContext) -> None:
    """Give what the condition picks."""
    elementwise(layer, te.select, {0: condition_shape(layer.node)})


def where(layer: FormulaContext) -> None:
    """Give the coordinates, which are known: the condition is a constant."""
    places = te.constant(np.argwhere(layer.data(0)).astype(np.int64), "places")
    layer.tensor(lambda row, axis: places[row, axis])


FORMULAS: Mapping[type[Operator], Formula] = MappingProxyType(
    {Select: Formula(select, 12, ROWS), Where: Formula(where, 4, whole)}
)
