"""Read ONNX's samples of images at computed places."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_arithmetic import add, both, choose, most, mul, sub
from microtir.operators.common.onnx_arithmetic import at_most as no_more
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader, by_definition
from microtir.operators.common.onnx_parts import along, filled, reshaped, transposed
from microtir.operators.common.onnx_windows import window_of
from microtir.operators.indexing.definition import Gather
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.reduction.definition import Mean, ReduceMax
from microtir.operators.sampling.onnx_points import (
    Tap,
    batches,
    clamped,
    cubic_taps,
    linear_taps,
    pixels_of,
    reflected,
    total,
    weighed,
    with_nothing_outside,
)
from microtir.operators.unary.definition import Round

_MODES = {"linear": linear_taps, "bilinear": linear_taps, "cubic": cubic_taps,
          "bicubic": cubic_taps}  # fmt: skip


def grid_sample(node: OnnxNode) -> Tensor:
    """Read GridSample: places from -1 to 1 along each axis, the last axis first."""
    image, grid = node.input(0), node.input(1)
    sizes, rank = image.shape[2:], len(image.shape) - 2
    mode = node.word("mode", "linear")
    outside = node.word("padding_mode", "zeros")
    if mode not in ("nearest", *_MODES) or outside not in ("zeros", "border", "reflection"):
        raise node.malformed(f"mode {mode!r} and padding_mode {outside!r}")
    n, *places, count = grid.shape
    if count != rank or n != image.shape[0] or len(places) != rank:
        raise node.malformed(f"a grid of {grid.shape} for an image of {image.shape}")
    is_aligned = bool(node.integer("align_corners", 0))
    taps = []
    for axis, size in enumerate(sizes):
        line = along(node, grid, len(grid.shape) - 1, rank - 1 - axis, 1)
        at = reshaped(node, line, n, math.prod(places))
        taps.append(_axis_taps(node, at, size, mode, outside, is_aligned=is_aligned))
    sums = total(node, weighed(node, pixels_of(node, image), sizes, taps))
    return reshaped(node, transposed(node, sums, (0, 2, 1)), n, image.shape[1], *places)


def _axis_taps(
    node: OnnxNode, at: Tensor, size: int, mode: str, outside: str, *, is_aligned: bool
) -> Sequence[Tap]:
    """Return the taps of one axis, all inside of it."""
    shifted = add(node, at, 1.0)
    if is_aligned:
        place, low, high = mul(node, shifted, (size - 1) / 2), 0.0, size - 1.0
    else:
        place, low, high = sub(node, mul(node, shifted, size / 2), 0.5), -0.5, size - 0.5
    if mode == "nearest":
        place = node.emit(Round(), place)
    is_cubic = mode in ("cubic", "bicubic")  # of which only the taps are brought inside
    if outside == "border" and not is_cubic:
        is_inside = both(node, no_more(node, node.scalar_like(low, place), place),
                         no_more(node, place, high))  # fmt: skip
        place = choose(node, is_inside, place, clamped(node, place, size))
    elif outside == "reflection" and not is_cubic:
        place = reflected(node, place, low, high)
    if mode == "nearest":
        taps: Sequence[Tap] = (Tap(place, add(node, mul(node, place, 0.0), 1.0)),)
    else:
        taps = _MODES[mode](node, place)
    if outside == "zeros":
        return with_nothing_outside(node, taps, size)
    if outside == "reflection":
        taps = [Tap(reflected(node, tap.place, low, high), tap.weight) for tap in taps]
    return [Tap(clamped(node, tap.place, size), tap.weight) for tap in taps]


def roi_align(node: OnnxNode) -> Tensor:
    """Read RoiAlign: means, or largest ones, of samples of parts of a region."""
    image, regions, images = node.input(0), node.input(1), batches(node, node.input(2))
    count, channels = regions.shape[0], image.shape[1]
    extents = node.integer("output_height", 1), node.integer("output_width", 1)
    samples, mode = node.integer("sampling_ratio", 0), node.word("mode", "avg")
    if samples < 1 or mode not in ("avg", "max"):
        raise node.unsupported(
            f"it takes {samples} samples, mode {mode!r}", "a sampling_ratio of 1 or more, avg or "
            "max",
            "export the model with a sampling_ratio",
        )  # fmt: skip
    mode_of_places = node.word("coordinate_transformation_mode", "half_pixel")
    offset = 0.5 if node.version >= 16 and mode_of_places == "half_pixel" else 0.0
    scale = node.number("spatial_scale", 1.0)
    points = tuple(extent * samples for extent in extents)
    node.check_room(count, channels, *points)
    taps = []
    for axis, (size, extent) in enumerate(zip(image.shape[2:], extents, strict=True)):
        first, last = (
            sub(node, mul(node, along(node, regions, 1, end, 1), scale), offset)
            for end in (1 - axis, 3 - axis)
        )
        span = sub(node, last, first)
        span = span if offset else most(node, span, 1.0)
        parts = (np.arange(points[axis], dtype=np.float32) + 0.5) / (extent * samples)
        line = add(node, first, mul(node, span, node.constant(parts.reshape(1, -1))))
        spread = [count, points[0], 1] if axis == 0 else [count, 1, points[1]]
        taps.append([_spread(node, tap, spread, points) for tap in _region_taps(node, line, size)])
    chosen = node.emit(Gather(0), pixels_of(node, image), images)
    samples_of_image = weighed(node, chosen, image.shape[2:], taps)
    shape = (count, extents[0], samples, extents[1], samples, channels)
    if mode == "avg":
        pooled = node.emit(Mean((2, 4), keep_dims=False),
                           reshaped(node, total(node, samples_of_image), *shape))  # fmt: skip
    else:
        largest = samples_of_image[0]
        for part in samples_of_image[1:]:
            largest = most(node, largest, part)
        pooled = node.emit(ReduceMax((2, 4), keep_dims=False), reshaped(node, largest, *shape))
    return transposed(node, pooled, (0, 3, 1, 2))


def _region_taps(node: OnnxNode, place: Tensor, size: int) -> tuple[Tap, ...]:
    """Return two taps, both at the last place behind it; more than 1 outside weighs nothing."""
    is_near = both(node, no_more(node, node.scalar_like(-1.0, place), place),
                   no_more(node, place, float(size)))  # fmt: skip
    inside = clamped(node, place, size)
    return tuple(
        Tap(clamped(node, tap.place, size), choose(node, is_near, tap.weight, 0.0))
        for tap in linear_taps(node, inside)
    )


def _spread(node: OnnxNode, tap: Tap, shape: Sequence[int], points: tuple[int, ...]) -> Tap:
    """Return a tap of one axis at each point of both."""
    zeros = filled(node, (1, *points), 0)
    place, weight = (
        reshaped(node, add(node, reshaped(node, x, *shape), zeros), shape[0], math.prod(points))
        for x in (tap.place, tap.weight)
    )
    return Tap(place, weight)


def deformed_convolution(node: OnnxNode) -> Tensor:
    """Read DeformConv: a convolution whose taps are moved by what the model computes."""
    image, weights, offsets = node.input(0), node.input(1), node.input(2)
    n, channels, *sizes = image.shape
    if len(sizes) != 2:
        raise node.unsupported(
            f"an image of shape {image.shape}", "(N, C, H, W)", "replace the layer"
        )
    outputs, depth, *taps = weights.shape
    window = window_of(node, tuple(sizes), tuple(taps))
    moved, groups = node.integer("offset_group", 1), node.integer("group", 1)
    area, extent = math.prod(taps), offsets.shape[2:]
    shifts = reshaped(node, offsets, n * moved, area, 2, math.prod(extent))
    lines = []
    for axis, size in enumerate(sizes):
        tap = np.indices(taps)[axis].reshape(area, 1) * window.dilations[axis]
        place = np.indices(extent)[axis].reshape(1, -1) * window.strides[axis]
        fixed = (tap + place - window.before[axis]).astype(np.float32)
        shift = reshaped(node, along(node, shifts, 2, axis, 1), n * moved, *fixed.shape)
        at = reshaped(node, add(node, shift, node.constant(fixed)), n * moved, fixed.size)
        lines.append(with_nothing_outside(node, linear_taps(node, at), size))
    parts = reshaped(node, image, n * moved, channels // moved, *sizes)
    columns = total(node, weighed(node, pixels_of(node, parts), sizes, lines))
    if node.optional(4) is not None:
        mask = reshaped(node, node.input(4), n * moved, area * math.prod(extent), 1)
        columns = mul(node, columns, mask)
    # (N, groups, channels and taps of a group, places)
    rows = reshaped(node, columns, n, moved, area, math.prod(extent), channels // moved)
    rows = transposed(node, rows, (0, 1, 4, 2, 3))
    rows = reshaped(node, rows, n, groups, depth * area, math.prod(extent))
    matrix = reshaped(node, weights, 1, groups, outputs // groups, depth * area)
    result = reshaped(node, node.emit(BatchMatmul(), matrix, rows), n, outputs, *extent)
    if node.optional(3) is not None:
        result = add(node, result, reshaped(node, node.input(3), outputs, 1, 1))
    return result


_DEFORMED = ("dilations", "group", "kernel_shape", "offset_group", "pads", "strides")
_REGIONS = (
    "coordinate_transformation_mode", "mode", "output_height", "output_width", "sampling_ratio",
    "spatial_scale",
)  # fmt: skip

ONNX_READERS = (
    OnnxReader(
        "GridSample",
        grid_sample,
        (2, 2),
        ("align_corners", "mode", "padding_mode"),
        ranks=(3, 3),
    ),
    OnnxReader("AffineGrid", by_definition, (2, 2), ("align_corners",)),
    OnnxReader("RoiAlign", roi_align, (3, 3), _REGIONS, ranks=(4, 2, 1)),
    OnnxReader("DeformConv", deformed_convolution, (3, 5), _DEFORMED, ranks=(4, 4, 4)),
)
