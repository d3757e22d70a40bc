"""Readers of TFLite's resizing operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.resize.definition import ResizeBilinear, ResizeNearestNeighbor


@dataclass(frozen=True, slots=True)
class ResizeBilinearOptions(Options):
    """Options of RESIZE_BILINEAR; slots 0 and 1 of the table are deprecated."""

    union_type: ClassVar[int] = 15
    first_slot: ClassVar[int] = 2
    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True, slots=True)
class ResizeNearestNeighborOptions(Options):
    """Options of RESIZE_NEAREST_NEIGHBOR."""

    union_type: ClassVar[int] = 74
    align_corners: bool = False
    half_pixel_centers: bool = False


def resize(operands: Operands) -> Converted:
    """Read RESIZE_BILINEAR and RESIZE_NEAREST_NEIGHBOR: image, (new height, new width)."""
    batch, _, _, channels = operands.image(0)
    size = operands.integers(1, "the new size")
    if len(size) != 2 or min(size) < 1:
        raise operands.malformed(f"the new size is {size}", "height and width, both above 0")
    if operands.code is BuiltinOperator.RESIZE_BILINEAR:
        bilinear = operands.table(ResizeBilinearOptions)
        corners, centers = bilinear.align_corners, bilinear.half_pixel_centers
        kind: type[ResizeBilinear | ResizeNearestNeighbor] = ResizeBilinear
    else:
        nearest = operands.table(ResizeNearestNeighborOptions)
        corners, centers = nearest.align_corners, nearest.half_pixel_centers
        kind = ResizeNearestNeighbor
    if corners and centers:
        raise operands.malformed(
            "align_corners and half_pixel_centers are both set", "one of them, or none"
        )
    op = kind(align_corners=corners, half_pixel_centers=centers)
    return Converted(op, (operands.input(0),), (batch, *size, channels))


READERS = (
    TfliteReader(
        ResizeNearestNeighbor,
        BuiltinOperator.RESIZE_NEAREST_NEIGHBOR,
        resize,
        ResizeNearestNeighborOptions,
        (2, 2),
    ),
    TfliteReader(
        ResizeBilinear, BuiltinOperator.RESIZE_BILINEAR, resize, ResizeBilinearOptions, (2, 2)
    ),
)
