"""Resize along one axis after the other, as products with matrices that are known.

Each way to resize takes, along an axis, weighed sums of a few elements: a row of a matrix for each
element of the result.  What picks single elements is a gather.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from microtir.graph.ir import Array, Tensor
from microtir.operators.common.onnx_arithmetic import choose
from microtir.operators.common.onnx_operands import OnnxNode
from microtir.operators.common.onnx_parts import from_last, int32s, to_last
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather


@dataclass(frozen=True, slots=True)
class AxisResize:
    """The resizing of one axis.

    Args:
        size: of the axis.
        extent: of the result.
        scale: by which places are computed; not always extent / size.
        begin: of the region that is taken, as a part of the axis.
        end: of it.
    """

    size: int
    extent: int
    scale: float
    begin: float = 0.0
    end: float = 1.0

    @property
    def keeps(self) -> bool:
        return self.size == self.extent and self.scale == 1.0 and (self.begin, self.end) == (0, 1)


def places(axis: AxisResize, mode: str, kind: type[np.floating[Any]]) -> Array | None:
    """Return the place on the axis that each element of the result is taken from; None: no mode.

    Corners are those of the result as it is, as onnxruntime has it: the reference that comes with
    ONNX has them where a scale puts the end of the axis, which may be between two elements.

    Args:
        axis: how it is resized.
        mode: by what places follow.
        kind: in what they are computed.
    """
    x, scale, size = np.arange(axis.extent, dtype=kind), kind(axis.scale), kind(axis.size)
    extent, half, is_one = kind(axis.extent), kind(0.5), axis.extent == 1
    centres = (x + half) / scale
    if mode == "align_corners":
        return np.asarray(x * 0 if is_one else x * (size - 1) / (extent - 1))
    if mode == "asymmetric":
        return np.asarray(x / scale)
    if mode == "pytorch_half_pixel":
        return np.asarray(x * 0 if is_one else centres - half)
    if mode == "half_pixel":
        return np.asarray(centres - half)
    if mode == "half_pixel_symmetric":
        # onnxruntime rounds the shift to float32, and the sum in the end alone.
        shift = size * half * (1 - extent / (scale * size))
        exact = np.arange(axis.extent) + 0.5
        return np.asarray(float(shift) + exact / float(scale) - 0.5).astype(kind)
    if mode == "tf_crop_and_resize":
        begin, end = kind(axis.begin), kind(axis.end)
        if is_one:
            return np.asarray(x * 0 + half * (begin + end) * (size - 1))
        return np.asarray(begin * (size - 1) + x * (end - begin) * (size - 1) / (extent - 1))
    return None


def nearest_mode(node: OnnxNode) -> str:
    """Return how places become whole ones, which the older operator sets do not say."""
    return node.word("nearest_mode", "round_prefer_floor") if node.version >= 11 else "floor"


_NEARLY = 1e-5


def nearest(at: Array, rounding: str) -> Array | None:
    """Return whole places; None: there is no such rounding.

    onnxruntime takes for the middle what is nearly there.
    """
    wide = at.astype(np.float64)
    ways = {
        "round_prefer_floor": np.ceil(wide - 0.5 - _NEARLY),
        "round_prefer_ceil": np.floor(wide + 0.5 + _NEARLY),
        "floor": np.floor(at),
        "ceil": np.ceil(at),
    }
    return ways.get(rounding)


@dataclass(frozen=True, slots=True)
class Kernel:
    """The kernel of an interpolation: weights of elements by their distance.

    Args:
        mode: linear or cubic.
        coefficient: of the cubic.
        stretches: so that nothing is left out where an axis becomes shorter.
        leaves_out: what lies outside, where else the element at the edge stands for it.
    """

    mode: str
    coefficient: float
    stretches: bool
    leaves_out: bool

    def shrink(self, axis: AxisResize) -> float:
        """Return by which factor distances count."""
        return min(axis.scale, 1.0) if self.stretches else 1.0

    def reach(self, axis: AxisResize) -> int:
        """Return how many elements on each side of a place may weigh anything."""
        return math.ceil((1 if self.mode == "linear" else 2) / self.shrink(axis))

    def matrix(self, axis: AxisResize, at: Array) -> Array:
        """Return what each element of an axis weighs, a row for each place."""
        shrink, reach = self.shrink(axis), self.reach(axis)
        first = np.floor(at).astype(np.int64)
        near = first[:, None] + np.arange(-reach, reach + 2)
        weights = self._weights((near - at[:, None]) * shrink)
        if self.leaves_out:
            weights = np.where((near >= 0) & (near < axis.size), weights, 0.0)
        if self.leaves_out or self.stretches:
            weights = weights / weights.sum(axis=1, keepdims=True)
        result = np.zeros((axis.extent, axis.size))
        rows = np.broadcast_to(np.arange(axis.extent)[:, None], near.shape)
        np.add.at(result, (rows, near.clip(0, axis.size - 1)), weights)
        return result

    def _weights(self, distance: Array) -> Array:
        d = np.abs(distance)
        if self.mode == "linear":
            return np.asarray(np.maximum(1 - d, 0.0))
        a = self.coefficient
        inner = ((a + 2) * d - (a + 3)) * d * d + 1
        outer = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
        return np.where(d <= 1, inner, np.where(d < 2, outer, 0.0))


def along_axis(
    node: OnnxNode, x: Tensor, number: int, axis: AxisResize, kernel: Kernel, mode: str
) -> Tensor:
    """Return a tensor with one axis resized."""
    node.check_room(axis.extent)
    at = places(axis, mode, np.float32 if kernel.mode == "nearest" else np.float64)
    if at is None:
        raise node.malformed(f"the places are {mode!r}")
    if kernel.mode == "nearest":
        rounding = nearest_mode(node)
        nearest_places = nearest(at, rounding)
        if nearest_places is None:
            raise node.malformed(f"the attribute 'nearest_mode' is {rounding!r}")
        chosen = nearest_places.clip(0, axis.size - 1)
        result = node.emit(Gather(number), x, int32s(node, chosen))
    else:
        node.check_room(axis.extent, max(axis.size, kernel.reach(axis)))
        weights = node.constant(kernel.matrix(axis, at).astype(np.float32))
        rows = to_last(node, x, number)
        shape = (*rows.shape[:-1], axis.extent)
        result = from_last(node, node.emit(FullyConnected(), rows, weights, shape=shape), number)
    if mode != "tf_crop_and_resize":
        return result
    is_inside = (at >= 0) & (at <= axis.size - 1)
    if is_inside.all():
        return result
    mask = is_inside.reshape([-1 if n == number else 1 for n in range(len(x.shape))])
    return choose(node, node.constant(mask), result, node.number("extrapolation_value", 0.0))


def resize_axes(node: OnnxNode, x: Tensor, axes: tuple[AxisResize, ...], mode: str) -> Tensor:
    """Return a tensor with several axes resized; those that shrink come first."""
    kernel = Kernel(
        node.word("mode", "nearest"),
        node.number("cubic_coeff_a", -0.75),
        bool(node.integer("antialias", 0)),
        bool(node.integer("exclude_outside", 0)),
    )
    if kernel.mode not in ("nearest", "linear", "bilinear", "cubic"):
        raise node.malformed(f"the attribute 'mode' is {kernel.mode!r}")
    if kernel.mode == "bilinear":
        kernel = replace(kernel, mode="linear")
    source = x.dtype
    if kernel.mode != "nearest" and not source.is_float:
        raise node.unsupported(
            f"it interpolates {source.value}", "float32, or mode nearest", "convert it before"
        )
    order = sorted(range(len(axes)), key=lambda n: axes[n].extent / axes[n].size)
    for number in order:
        if not axes[number].keeps:
            x = along_axis(node, x, number, axes[number], kernel, mode)
    return x
