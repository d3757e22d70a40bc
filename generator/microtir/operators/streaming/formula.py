"""Compute the operators that passes make: rows of images, moved as they are."""

from __future__ import annotations

from microtir.operators.common.formula import FormulaContext
from microtir.operators.streaming.definition import PlaceColumns


def rows(layer: FormulaContext) -> None:
    """Emit READ_ROWS and WRITE_ROWS: what the application does row by row, as a copy."""
    x = layer.image(0)
    layer.rows(x.at)


def place_columns(layer: FormulaContext) -> None:
    """Emit PLACE_COLUMNS: rows of a narrow image into those of a wide one."""
    op, x = layer.node.attributes(PlaceColumns), layer.image(0)
    layer.columns(x.at, op.column, op.width)
