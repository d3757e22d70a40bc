"""Compute operators that pick by conditions."""

from __future__ import annotations

import numpy as np

from microtir import te
from microtir.operators.common.broadcast import elementwise
from microtir.operators.common.formula import FormulaContext
from microtir.operators.selection.definition import condition_shape


def select(layer: FormulaContext) -> None:
    """Give what the condition picks."""
    elementwise(layer, te.select, {0: condition_shape(layer.node)})


def where(layer: FormulaContext) -> None:
    """Give the coordinates, which are known: the condition is a constant."""
    places = te.constant(np.argwhere(layer.data(0)).astype(np.int64), "places")
    layer.tensor(lambda row, axis: places[row, axis])
