"""Describes the tensors that layers write: how their rows lie in memory."""

from __future__ import annotations

from microtir.codegen.metadata import OutputData, PlanesData
from microtir.tir.ir import Buffer, Param, PrimFunc


def output_data(buffer: Param, layer: PrimFunc) -> OutputData:
    """Return what a layer writes into one of its parameters."""
    assert isinstance(buffer, Buffer)
    extents = [extent for extent in buffer.shape if isinstance(extent, int)]
    rows, row_elements = (extents[0] if extents else 1), 1
    for extent in extents[1:]:
        row_elements *= extent
    planes = None
    if (rows_of := layer.plane_rows) is not None:
        planes = PlanesData(extents[1], rows_of.before, rows_of.width, rows_of.dtype.value)
    return OutputData(buffer.dtype.value, rows, row_elements, planes)
