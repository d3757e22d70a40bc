"""Define pooling that keeps where the maxima are, and what puts them back there."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import attributes, images, quantization, shapes, types
from microtir.operators.definition import ACTIVATIONS, Definition


@dataclass(frozen=True, slots=True)
class MaxPoolWithPlaces(Operator):
    """MaxPoolingWithArgmax2D of MediaPipe: maxima, and the tap of the window that each came from.

    Taps are counted row by row; their numbers are floats and 0.1 more than they should be, so that
    cutting them off gives the number.  The first of equal values counts.
    """

    window: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    padding: attributes.Padding2D = attributes.Padding2D()
    activation: attributes.Activation = attributes.Activation.NONE


@dataclass(frozen=True, slots=True)
class MaxUnpool(Operator):
    """MaxUnpooling2D of MediaPipe: puts each value at its tap of a window, among zeros.

    The output has an extent of the window for each element.  Of values for one place the last one
    counts; a tap outside of the window, or a place outside of the output, takes nothing.
    """

    window: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)


PLACE_ROUNDING = 0.1
"""Fraction that is added to each place of a maximum, which is given as a float32."""


def unpool_before(node: Node) -> tuple[int, int]:
    """Return how many rows and columns of the first window lie outside of the output."""
    op, image = node.attributes(MaxUnpool), node.inputs[0].shape
    row, column = (
        max((size - 1) * stride + taps - size * taps, 0) // 2
        for size, stride, taps in zip(image[1:3], op.strides, op.window, strict=True)
    )
    return row, column


def _pool_shapes(node: Node) -> tuple[shapes.Shape, ...]:
    op, image = node.attributes(MaxPoolWithPlaces), shapes.input_shape(node, 0, 4)
    window = attributes.SlidingWindow(op.window, op.strides, (1, 1), op.padding)
    return (shapes.windowed_shape(image, window, image[3]),) * len(node.outputs)


def _unpool_shapes(node: Node) -> tuple[shapes.Shape, ...]:
    op, image = node.attributes(MaxUnpool), shapes.input_shape(node, 0, 4)
    places = node.inputs[1].shape
    shapes.require(
        places == image, f"indices of shape {places} for values of shape {image}", "equal shapes"
    )
    return ((image[0], image[1] * op.window[0], image[2] * op.window[1], image[3]),)


DEFINITIONS = (
    Definition(
        MaxPoolWithPlaces,
        types.equal_types(DType.FLOAT32),
        quantization.UNUSED,
        shapes=_pool_shapes,
        outputs=2,
        one_image=images.by_first_axis,
        limits=ACTIVATIONS,
    ),
    Definition(
        MaxUnpool,
        types.equal_types(DType.FLOAT32),
        quantization.UNUSED,
        shapes=_unpool_shapes,
        inputs=(2, 2),
        one_image=images.by_first_axis,
    ),
)
