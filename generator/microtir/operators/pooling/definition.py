"""Define pooling operators by their attributes and rules."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from microtir.dtype import DType
from microtir.graph.ir import Node, SumRange, TensorType
from microtir.graph.operator import Operator
from microtir.operators.common import attributes, images, quantization, shapes, sums, types
from microtir.operators.common.linear import float_range
from microtir.operators.common.multiplier import activation_range
from microtir.operators.definition import ACTIVATIONS, Definition


@dataclass(frozen=True, slots=True)
class Pool2D(Operator):
    """Base of the pooling operators; elements outside the image never count."""

    window: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    padding: attributes.Padding2D = attributes.Padding2D()
    activation: attributes.Activation = attributes.Activation.NONE


@dataclass(frozen=True, slots=True)
class AveragePool2D(Pool2D, attributes.RescaledOperator):
    """Mean over the part of the window inside the image."""

    rescaling: attributes.Rescaling = field(default=attributes.Rescaling.FIXED_POINT, kw_only=True)


@dataclass(frozen=True, slots=True)
class MaxPool2D(Pool2D):
    """Maximum over the part of the window inside the image; never rescales."""


@dataclass(frozen=True, slots=True)
class L2Pool2D(Pool2D):
    """Root of the mean square over the part of the window inside the image."""


@dataclass(frozen=True, slots=True)
class PoolParams:
    """Pooling works on stored values; in fixed point only the clamp is quantised."""

    activation_min: int
    activation_max: int


def pool_params(op: Pool2D, output: TensorType) -> PoolParams:
    """Derive the parameters of quantised average and maximum pooling."""
    if isinstance(op, AveragePool2D) and op.rescaling.in_float:
        return PoolParams(*float_range(op.activation, output, op.rescaling))
    return PoolParams(*activation_range(op.activation, output))


def _pool_2d_shape(node: Node) -> tuple[shapes.Shape, ...]:
    op = node.attributes(Pool2D)
    image = shapes.input_shape(node, 0, 4)
    result = shapes.windowed_shape(image, sliding_window(node), image[3])
    sides = ((0, op.padding.top, 1), (1, op.padding.left, 2))
    for side, before, axis in sides:
        last = (result[axis] - 1) * op.strides[side] - before
        shapes.require(
            before < op.window[side] and last < image[axis],
            f"a window along axis {axis} lies outside the image",
            "every window holds an element of the image",
        )
    return (result,)


def _average_pool_sums(node: Node, inputs: Sequence[sums.Interval]) -> SumRange:
    op = node.attributes(AveragePool2D)
    zero_point = node.inputs[0].type.quant.zero_point if op.rescaling.in_float else 0
    return sums.counted(math.prod(op.window), inputs, zero_point)


def sliding_window(node: Node) -> attributes.SlidingWindow:
    """Return the window of a node."""
    op = node.attributes(Pool2D)
    return attributes.SlidingWindow(op.window, op.strides, (1, 1), op.padding)


def is_whole_image(node: Node) -> bool:
    """Return whether the one window of a node is the image."""
    op = node.attributes(Pool2D)
    return op.padding == attributes.Padding2D() and op.window == node.inputs[0].shape[1:3]


def _terms(node: Node) -> int:
    return math.prod(node.attributes(AveragePool2D, L2Pool2D).window)


DEFINITIONS = (
    Definition(
        AveragePool2D,
        types=types.COMPUTED_16.also(types.TypeSignature((DType.UINT8,), DType.UINT8)),
        quantization=quantization.unless_in_float(quantization.EQUAL_AND_OWN),
        shapes=_pool_2d_shape,
        one_image=images.by_first_axis,
        sums=_average_pool_sums,
        window=sliding_window,
        terms=_terms,
        limits=ACTIVATIONS,
    ),
    Definition(
        MaxPool2D,
        types=types.COMPUTED_16,
        quantization=quantization.EQUAL_AND_OWN,
        shapes=_pool_2d_shape,
        one_image=images.by_first_axis,
        window=sliding_window,
        limits=ACTIVATIONS,
    ),
    Definition(
        L2Pool2D,
        types=types.equal_types(DType.FLOAT32),
        quantization=quantization.UNUSED,
        shapes=_pool_2d_shape,
        one_image=images.by_first_axis,
        window=sliding_window,
        terms=_terms,
        limits=ACTIVATIONS,
    ),
)
