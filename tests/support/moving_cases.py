"""Random layers of int8 that move elements: borders, parts, orders of axes, parts side by side."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from microtir.dtype import DType
from microtir.graph.operator import Operator
from microtir.operators.movement.definition import Concatenation, Pad, StridedSlice, Transpose
from microtir.operators.rearrangement.definition import DepthToSpace
from microtir.operators.resize.definition import ResizeNearestNeighbor
from tests.support import graphs
from tests.support.dsp_cases import DspCase

Shape = tuple[int, ...]
_CHANNELS = (1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 30, 32, 48, 130, 260)
_QUANT = graphs.quant(0.05, 3)


def _image(rng: np.random.Generator) -> Shape:
    height, width = (int(n) for n in rng.integers(1, 9, 2))
    return 1, height, width, int(rng.choice(_CHANNELS))


def _pad(rng: np.random.Generator) -> tuple[Operator, list[Shape]]:
    before, after = ((0, *(int(n) for n in rng.integers(0, 3, 3))) for _ in range(2))
    return Pad(before, after, float(rng.integers(-128, 128))), [_image(rng)]


def _concatenation(rng: np.random.Generator) -> tuple[Operator, list[Shape]]:
    axis, shape = int(rng.integers(1, 4)), list(_image(rng))
    parts = []
    for _ in range(int(rng.integers(2, 4))):
        shape[axis] = int(rng.choice(_CHANNELS)) if axis == 3 else int(rng.integers(1, 6))
        parts.append(tuple(shape))
    return Concatenation(axis), parts


def _transpose(rng: np.random.Generator) -> tuple[Operator, list[Shape]]:
    return Transpose(tuple(int(n) for n in rng.permutation(4))), [_image(rng)]


def _slice(rng: np.random.Generator) -> tuple[Operator, list[Shape]]:
    shape = _image(rng)
    begin = tuple(int(rng.integers(0, extent)) for extent in shape)
    strides = tuple(int(rng.integers(1, 3)) for _ in shape)
    axes = zip(shape, begin, strides, strict=True)
    extent = tuple(-(-(last - first) // stride) for last, first, stride in axes)
    return StridedSlice(begin, strides, extent), [shape]


def _nearest(rng: np.random.Generator) -> tuple[Operator, list[Shape]]:
    return ResizeNearestNeighbor(False, False), [_image(rng)]


def _depth_to_space(rng: np.random.Generator) -> tuple[Operator, list[Shape]]:
    *image, channels = _image(rng)
    return DepthToSpace(2), [(*image, 4 * channels)]


_MAKERS: tuple[Callable[[np.random.Generator], tuple[Operator, list[Shape]]], ...] = (
    _pad, _concatenation, _transpose, _slice, _nearest, _depth_to_space,
)  # fmt: skip


def moving(seed: int) -> DspCase:
    """Draw a layer; kinds take turns."""
    rng, make = np.random.default_rng(seed), _MAKERS[seed % len(_MAKERS)]
    op, shapes = make(rng)
    tensors = [graphs.tensor(f"x{n}", shape, DType.INT8, _QUANT) for n, shape in enumerate(shapes)]
    y = graphs.tensor("y", _output(op, shapes), DType.INT8, _QUANT)
    inputs = tuple(rng.integers(-128, 128, shape).astype(np.int8) for shape in shapes)
    graph = graphs.graph([graphs.node(op, tensors, y)], tensors, [y])
    return DspCase(f"{make.__name__[1:]}_{seed}", graph, inputs)


def _output(op: Operator, shapes: list[Shape]) -> Shape:
    first, *others = shapes
    if isinstance(op, Pad):
        return tuple(b + n + a for b, n, a in zip(op.before, first, op.after, strict=True))
    if isinstance(op, Concatenation):
        extent = sum(shape[op.axis] for shape in (first, *others))
        return (*first[: op.axis], extent, *first[op.axis + 1 :])
    if isinstance(op, Transpose):
        return tuple(first[axis] for axis in op.permutation)
    if isinstance(op, StridedSlice):
        return op.extent
    if isinstance(op, DepthToSpace):
        n, height, width, channels = first
        return n, 2 * height, 2 * width, channels // 4
    n, height, width, channels = first
    return n, 2 * height, 2 * width, channels
