"""The rows of the lowering table for operators that move elements without computing."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from microtir.config.features import Feature
from microtir.graph.operator import Operator
from microtir.kernels.arm_dsp import copying
from microtir.kernels.common.family import Family, same_row, same_row_if, whole
from microtir.kernels.portable import movement
from microtir.operators.movement.definition import (
    Concatenation,
    Pad,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
)
from microtir.operators.resize.definition import ResizeBilinear, ResizeNearestNeighbor
from microtir.operators.streaming.definition import JoinColumns, PlaceColumns, ReadRows, WriteRows
from microtir.plan.ir import Kernel

_SLICE = Family(Kernel.COPY, movement.strided_slice, same_row_if(movement.slices_within_rows), 6)
_PLACE = Family(Kernel.COPY, movement.place_columns, same_row, 6)
_COPY_DSP = Family(
    Kernel.COPY_WORDS,
    None,
    same_row,
    copying.cost,
    copying.refusal,
    Feature.DSP,
    build=copying.emit,
)

MOVEMENT: Mapping[type[Operator], tuple[Family, ...]] = MappingProxyType(
    {
        Pad: (Family(Kernel.COPY, movement.pad, whole, 8),),
        Concatenation: (Family(Kernel.COPY, movement.concatenation, whole, 6),),
        Reshape: (
            Family(Kernel.VIEW, movement.copy, whole, 0),
            Family(Kernel.COPY, movement.copy, whole, 4),
        ),
        Transpose: (Family(Kernel.COPY, movement.transpose, whole, 6),),
        Split: (Family(Kernel.COPY, movement.split, whole, 6),),
        StridedSlice: (_SLICE, _COPY_DSP),
        PlaceColumns: (_PLACE, _COPY_DSP),
        JoinColumns: (Family(Kernel.VIEW, None, whole, 0),),
        ResizeNearestNeighbor: (Family(Kernel.COPY, movement.resize_nearest, whole, 8),),
        ResizeBilinear: (Family(Kernel.DIRECT, movement.resize_bilinear, whole, 40),),
        ReadRows: (Family(Kernel.COPY, movement.rows, same_row, 6),),
        WriteRows: (Family(Kernel.COPY, movement.rows, same_row, 6),),
    }
)
