"""Read TFLite's resizing operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from microtir.graph.ir import Node
from microtir.operators.common import tflite_operands, unlike_scales
from microtir.operators.common import tflite_written as written
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.operators.resize.definition import ResizeBilinear, ResizeNearestNeighbor


@dataclass(frozen=True, slots=True)
class ResizeOptions(Options):
    """Options that both operators have."""

    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True, slots=True)
class ResizeBilinearOptions(ResizeOptions):
    """Options of RESIZE_BILINEAR; slots 0 and 1 of the table are deprecated."""

    first_slot: ClassVar[int] = 2


@dataclass(frozen=True, slots=True)
class ResizeNearestNeighborOptions(ResizeOptions):
    """Options of RESIZE_NEAREST_NEIGHBOR."""


def _resize(
    op: type[ResizeBilinear | ResizeNearestNeighbor],
    code: BuiltinOperator,
    options: type[ResizeOptions],
) -> tflite_operands.TfliteReader:
    """Return the reader of an operator whose inputs are an image and (new height, new width)."""

    def read(operands: tflite_operands.Operands) -> tflite_operands.Converted:
        batch, _, _, channels = operands.image(0)
        size = operands.integers(1, "the new size")
        if len(size) != 2 or min(size) < 1:
            raise operands.malformed(f"the new size is {size}", "height and width, both above 0")
        table = operands.table(options)
        if table.align_corners and table.half_pixel_centers:
            raise operands.malformed(
                "align_corners and half_pixel_centers are both set", "one of them, or none"
            )
        attributes = op(
            align_corners=table.align_corners, half_pixel_centers=table.half_pixel_centers
        )
        return tflite_operands.Converted(attributes, (operands.input(0),), (batch, *size, channels))

    def write(node: Node) -> written.Written:
        attributes = node.attributes(op)
        size = written.numbers(node, "size", node.output.shape[1:3])
        table = options(attributes.align_corners, attributes.half_pixel_centers)
        return written.Written((*node.inputs, size), table)

    return tflite_operands.TfliteReader(
        op, code, read, options, (2, 2), moved=unlike_scales.COPIED, write=write
    )


READERS = (
    _resize(
        ResizeNearestNeighbor, BuiltinOperator.RESIZE_NEAREST_NEIGHBOR, ResizeNearestNeighborOptions
    ),
    _resize(ResizeBilinear, BuiltinOperator.RESIZE_BILINEAR, ResizeBilinearOptions),
)
