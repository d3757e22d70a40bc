"""Define RESIZE_NEAREST_NEIGHBOR and RESIZE_BILINEAR: attributes, rules and coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.graph.operator import Operator
from microtir.operators.common import images, quantization, shapes, types
from microtir.operators.common.fixed_point import round_half_away
from microtir.operators.definition import Definition, Trait


@dataclass(frozen=True, slots=True)
class Resize(Operator):
    """Base of the resizing operators; the new size is that of the output tensor."""

    align_corners: bool = False
    half_pixel_centers: bool = False


@dataclass(frozen=True, slots=True)
class ResizeNearestNeighbor(Resize):
    """The nearest element of the image at each place."""


@dataclass(frozen=True, slots=True)
class ResizeBilinear(Resize):
    """The four nearest elements of the image, weighed by their distances."""


BILINEAR_BITS = 10
"""Fraction bits of the integer coordinates, and so of the weights, of RESIZE_BILINEAR."""


@dataclass(frozen=True, slots=True)
class BilinearAxis:
    """The two input indices of each output index, and the weight of the second.

    Weights of both add up to 2^10, those of floats, which are float32 values, to 1. At the borders
    both indices may be equal and the weight may be negative, or more than their sum.
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    weight: tuple[float, ...]


def bilinear_axis(op: Resize, input_size: int, output_size: int) -> BilinearAxis:
    """Return the integer coordinates of one axis.

    For a few sizes the rounded scale overshoots, and tflite-micro then reads beyond the last
    element; here the index stays on that element.
    """
    one = 1 << BILINEAR_BITS
    numerator, denominator = input_size, output_size
    if op.align_corners and output_size > 1:
        numerator, denominator = input_size - 1, output_size - 1
    scale = (one * numerator + denominator // 2) // denominator
    offset = scale // 2 - one // 2 if op.half_pixel_centers else 0
    positions = [index * scale + offset for index in range(output_size)]
    lower = tuple(min(max(p, 0) >> BILINEAR_BITS, input_size - 1) for p in positions)
    upper = tuple(min(max(p + one - 1, 0) >> BILINEAR_BITS, input_size - 1) for p in positions)
    weight = tuple(p - one * first for p, first in zip(positions, lower, strict=True))
    return BilinearAxis(lower, upper, weight)


def bilinear_axis_float(op: Resize, input_size: int, output_size: int) -> BilinearAxis:
    """Return the float coordinates of one axis; every step is rounded to float32."""
    f32 = np.float32
    scale = f32(input_size) / f32(output_size)
    if op.align_corners and output_size > 1:
        scale = f32(input_size - 1) / f32(output_size - 1)
    lower, upper, weight = [], [], []
    for index in range(output_size):
        position = f32(index) * scale
        if op.half_pixel_centers:
            position = (f32(index) + f32(0.5)) * scale - f32(0.5)
        first = max(math.floor(position), 0)
        lower.append(first)
        upper.append(min(math.ceil(position), input_size - 1))
        weight.append(float(position - f32(first)))
    return BilinearAxis(tuple(lower), tuple(upper), tuple(weight))


def nearest_indices(op: Resize, input_size: int, output_size: int) -> tuple[int, ...]:
    """Return the input index that each output index of RESIZE_NEAREST_NEIGHBOR copies."""
    f32 = np.float32
    scale = f32(input_size) / f32(output_size)
    if op.align_corners and output_size > 1:
        scale = f32(input_size - 1) / f32(output_size - 1)
    offset = f32(0.5) if op.half_pixel_centers else f32(0.0)
    indices = []
    for index in range(output_size):
        position = float((f32(index) + offset) * scale)
        nearest = round_half_away(position) if op.align_corners else math.floor(position)
        indices.append(max(0, min(nearest, input_size - 1)))
    return tuple(indices)


def _resize_shape(node: Node) -> tuple[shapes.Shape, ...]:
    op = node.attributes(Resize)
    image, shape = shapes.input_shape(node, 0, 4), node.output.shape
    both = op.align_corners and op.half_pixel_centers
    shapes.require(not both, "align_corners and half_pixel_centers are both set", "at most one")
    shapes.require(len(shape) == 4, f"the output has the shape {shape}", "4 dimensions")
    return ((image[0], shape[1], shape[2], image[3]),)


def _bilinear_terms(_node: Node) -> int:
    return 4


DEFINITIONS = (
    Definition(
        ResizeNearestNeighbor,
        types=types.MOVED,
        quantization=quantization.EQUAL,
        shapes=_resize_shape,
        one_image=images.by_first_axis,
        traits=frozenset({Trait.MOVES_DATA}),
        limits="constant size",
    ),
    Definition(
        ResizeBilinear,
        types=types.COMPUTED_16.also(types.TypeSignature((DType.UINT8,), DType.UINT8)),
        quantization=quantization.EQUAL,
        shapes=_resize_shape,
        one_image=images.by_first_axis,
        terms=_bilinear_terms,
        limits="constant size",
    ),
)
