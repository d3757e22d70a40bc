"""Facts about the tensors that layers write: how their rows lie."""

from __future__ import annotations

from typing import TypedDict

from microtir.codegen.typed import ElementType, Natural
from microtir.tir.ir import Buffer, Param, PrimFunc


class PlanesData(TypedDict):
    """Where a row of planes (channels, columns) holds an image, and the type of its values."""

    channels: Natural
    before: Natural
    width: Natural
    dtype: ElementType


class OutputData(TypedDict):
    """A tensor that a layer writes: `rows` slots of `row_elements`; row y is in slot y % rows.

    A row is (W, C) unless `planes` says otherwise.
    """

    dtype: ElementType
    rows: Natural
    row_elements: Natural
    planes: PlanesData | None


def output_data(buffer: Param, layer: PrimFunc) -> OutputData:
    """What a layer writes into one of its parameters."""
    assert isinstance(buffer, Buffer)
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    rows, row_elements = (extents[0] if extents else 1), 1
    for extent in extents[1:]:
        row_elements *= extent
    planes: PlanesData | None = None
    if (rows_of := layer.plane_rows) is not None:
        planes = {
            "channels": extents[1],
            "before": rows_of.before,
            "width": rows_of.width,
            "dtype": rows_of.dtype.value,
        }
    facts: OutputData
    facts = {
        "dtype": buffer.dtype.value, "rows": rows, "row_elements": row_elements, "planes": planes,
    }  # fmt: skip
    return facts
