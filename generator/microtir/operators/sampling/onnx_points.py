"""Take values of an image at computed places between its pixels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common import onnx_parts, onnx_types
from microtir.operators.common.onnx_arithmetic import (
    add,
    at_most,
    both,
    choose,
    least,
    less,
    most,
    mul,
    sub,
)
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.division.definition import FloorMod
from microtir.operators.indexing.definition import Gather
from microtir.operators.unary.definition import Abs, Floor

_CUBIC = -0.75


@dataclass(frozen=True, slots=True)
class Tap:
    """A place along one axis, as a whole number in float32, and what it weighs."""

    place: Tensor
    weight: Tensor


def linear_taps(node: OnnxNode, place: Tensor) -> tuple[Tap, ...]:
    """Return the two places around one."""
    low = node.emit(Floor(), place)
    part = sub(node, place, low)
    return Tap(low, sub(node, 1.0, part)), Tap(add(node, low, 1.0), part)


def cubic_taps(node: OnnxNode, place: Tensor) -> tuple[Tap, ...]:
    """Return the four places around one, weighed by the cubic convolution of Keys."""
    low = node.emit(Floor(), place)
    part = sub(node, place, low)
    rest = sub(node, 1.0, part)
    weights = (
        _outer(node, add(node, part, 1.0)),
        _inner(node, part),
        _inner(node, rest),
        _outer(node, add(node, rest, 1.0)),
    )
    return tuple(Tap(add(node, low, n - 1.0), weight) for n, weight in enumerate(weights))


def _inner(node: OnnxNode, x: Tensor) -> Tensor:
    """Return (a + 2) x^3 - (a + 3) x^2 + 1, for distances up to 1."""
    line = sub(node, mul(node, x, _CUBIC + 2), _CUBIC + 3)
    return add(node, mul(node, mul(node, line, x), x), 1.0)


def _outer(node: OnnxNode, x: Tensor) -> Tensor:
    """Return a (x^3 - 5 x^2 + 8 x - 4), for distances from 1 to 2."""
    inner = add(node, mul(node, sub(node, x, 5.0), x), 8.0)
    return mul(node, sub(node, mul(node, inner, x), 4.0), _CUBIC)


def reflected(node: OnnxNode, place: Tensor, low: float, high: float) -> Tensor:
    """Return places mirrored at both ends until they lie between them."""
    span = high - low
    if span <= 0:
        return mul(node, place, 0.0)
    turn = node.scalar_like(2 * span, place)
    along = node.emit(FloorMod(), sub(node, place, low), turn)
    back = node.emit(Abs(), sub(node, along, span))
    return sub(node, high, back)


def clamped(node: OnnxNode, place: Tensor, size: int) -> Tensor:
    """Return the nearest places inside."""
    return least(node, most(node, place, 0.0), size - 1.0)


def with_nothing_outside(node: OnnxNode, taps: Sequence[Tap], size: int) -> tuple[Tap, ...]:
    """Return taps of which those outside weigh nothing."""
    inside = []
    for tap in taps:
        is_inside = both(
            node, at_most(node, node.scalar_like(0.0, tap.place), tap.place),
            less(node, tap.place, float(size)),
        )  # fmt: skip
        inside.append(Tap(clamped(node, tap.place, size), choose(node, is_inside, tap.weight, 0.0)))
    return tuple(inside)


def weighed(
    node: OnnxNode, pixels: Tensor, sizes: Sequence[int], taps: Sequence[Sequence[Tap]]
) -> list[Tensor]:
    """Return the weighed pixels at each combination of taps of the axes.

    Args:
        node: which is read.
        pixels: (images, pixels, channels).
        sizes: of the axes that the pixels are of.
        taps: of each axis, with places (images, places) that lie inside.
    """
    parts = []
    for chosen in product(*taps):
        place = chosen[0].place
        weight = chosen[0].weight
        for tap, size in zip(chosen[1:], sizes[1:], strict=True):
            place = add(node, mul(node, place, float(size)), tap.place)
            weight = mul(node, weight, tap.weight)
        values = node.emit(Gather(1, 1), pixels, onnx_types.cast(node, place, DType.INT32))
        parts.append(mul(node, values, onnx_parts.reshaped(node, weight, *weight.shape, 1)))
    return parts


def total(node: OnnxNode, parts: Sequence[Tensor]) -> Tensor:
    """Return the sum of several tensors."""
    result = parts[0]
    for part in parts[1:]:
        result = add(node, result, part)
    return result


def pixels_of(node: OnnxNode, image: Tensor) -> Tensor:
    """Return (N, C, ...) as (images, pixels, channels)."""
    n, channels, *sizes = image.shape
    flat = onnx_parts.reshaped(node, image, n, channels, math.prod(sizes))
    return onnx_parts.transposed(node, flat, (0, 2, 1))


def batches(node: OnnxNode, indices: Tensor) -> Tensor:
    """Return computed indices as int32."""
    if indices.data is not None:
        return onnx_parts.int32s(node, indices.data)
    return onnx_types.cast(node, indices, DType.INT32)
