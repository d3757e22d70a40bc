"""Read ONNX's Resize and Upsample."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from microtir.dtype import DType
from microtir.graph.ir import Tensor
from microtir.operators.common import onnx_layout, onnx_types
from microtir.operators.common.onnx_operands import OnnxNode, OnnxReader
from microtir.operators.resize.definition import ResizeBilinear, ResizeNearestNeighbor
from microtir.operators.resize.onnx_axes import AxisResize, nearest_mode, resize_axes

_ATTRIBUTES = (
    "antialias", "axes", "coordinate_transformation_mode", "cubic_coeff_a", "exclude_outside",
    "extrapolation_value", "keep_aspect_ratio_policy", "mode", "nearest_mode",
)  # fmt: skip


def resize(node: OnnxNode) -> Tensor:
    """Read Resize: of images in the ways that TFLite has, and of any axes in all others."""
    x = node.input(0)
    if node.word("mode", "nearest") in ("linear", "bilinear") and not x.dtype.is_float:
        return _between_integers(node, x)
    axes = _axes(node)
    mode, places = (
        node.word("mode", "nearest"),
        node.word("coordinate_transformation_mode", "half_pixel"),
    )
    if node.version < 11:
        places = "asymmetric"
    is_part = places == "tf_crop_and_resize"
    if not is_part and all(axis.extent == axis.size for axis in axes):
        return x  # whatever the scale: as onnxruntime has it
    op = _image_operator(node, axes, mode, places)
    if op is None:
        return resize_axes(node, x, axes, places)
    (n, c), rows, columns = x.shape[:2], axes[2].extent, axes[3].extent
    image = node.emit(op, onnx_layout.channels_last(node, x), shape=(n, rows, columns, c))
    return onnx_layout.channels_first(node, image, 4)


def _between_integers(node: OnnxNode, x: Tensor) -> Tensor:
    """Return integers that are interpolated, and cut off to whole ones, as onnxruntime has it.

    By factors that are powers of two the sums are exact.  Of others it would depend on the order of
    their terms whether a sum of equal integers is that integer, or just below it.
    """
    places = node.word("coordinate_transformation_mode", "half_pixel")
    is_exact = places in ("half_pixel", "pytorch_half_pixel", "asymmetric") and all(
        axis.extent == axis.scale * axis.size and math.frexp(axis.scale)[0] == _POWER_OF_TWO
        for axis in _axes(node)
    )
    if x.dtype not in _INTERPOLATED or not is_exact:
        raise node.unsupported(
            f"it interpolates {x.dtype.value} in places {places!r}",
            "float32, mode nearest, or int8 and uint8 by factors that are powers of two",
            "quantise with quant_format=QuantFormat.QDQ, which interpolates floats",
        )
    real = onnx_types.cast(node, x, DType.FLOAT32)
    return onnx_types.cast(node, resize(node.with_inputs(real, *node.inputs[1:])), x.dtype)


_INTERPOLATED = (DType.INT8, DType.UINT8)
_POWER_OF_TWO = 0.5  # its fraction, of which the exponent says which one it is


def _image_operator(
    node: OnnxNode, axes: tuple[AxisResize, ...], mode: str, places: str
) -> ResizeBilinear | ResizeNearestNeighbor | None:
    """Return the operator of the graph that computes the same; None if there is none."""
    if len(axes) != 4 or not (axes[0].keeps and axes[1].keeps) or node.integer("antialias", 0):
        return None
    # Places follow the factors, which are not those of the sizes where pixels are cut off.
    if any(axis.extent != float(np.float32(axis.scale * axis.size)) for axis in axes):
        return None
    factors = tuple(axis.scale for axis in axes[2:])
    if mode == "nearest":
        return _nearest(node, places, factors)
    is_shrunk_to_one = places == "pytorch_half_pixel" and min(a.extent for a in axes[2:]) == 1
    if mode not in ("linear", "bilinear") or is_shrunk_to_one or node.integer("exclude_outside", 0):
        return None
    return _LINEAR.get(places)


_LINEAR = {
    "half_pixel": ResizeBilinear(half_pixel_centers=True),
    "pytorch_half_pixel": ResizeBilinear(half_pixel_centers=True),
    "align_corners": ResizeBilinear(align_corners=True),
    "asymmetric": ResizeBilinear(),
}


def _nearest(
    node: OnnxNode, places: str, factors: tuple[float, ...]
) -> ResizeNearestNeighbor | None:
    """Return the operator of the graph that picks the same pixels.

    Where an image grows by a whole factor, floor of asymmetric places, and rounding of pixel
    centres, repeat each pixel as often as the factor says.
    """
    rounding = nearest_mode(node)
    if places == "asymmetric" and rounding == "floor":
        return ResizeNearestNeighbor()
    repeats = all(factor >= 1 and factor.is_integer() for factor in factors)
    if repeats and places in ("half_pixel", "pytorch_half_pixel") and rounding.startswith("round"):
        return ResizeNearestNeighbor()
    return None


def _axes(node: OnnxNode) -> tuple[AxisResize, ...]:
    shape = node.input(0).shape
    stated = node.list_of_integers("axes", tuple(range(len(shape))))
    named = [node.axis(axis, len(shape)) for axis in stated]
    region = _region(node, len(named))
    if node.optional(3) is not None:
        ways = _by_sizes(node, [shape[axis] for axis in named])
    else:
        if node.has("scales"):
            factors: tuple[float, ...] = node.list_of_numbers("scales")
        else:
            index = 2 if node.version >= 11 else 1
            factors = tuple(node.known(index, "the scales").reshape(-1).tolist())
        is_legal = all(0 < factor < math.inf for factor in factors)
        if len(factors) != len(named) or not is_legal:
            raise node.malformed(f"the scales {factors} for {len(named)} axes")
        ways = [
            AxisResize(shape[axis], math.floor(np.float32(shape[axis] * factor)), factor)
            for axis, factor in zip(named, factors, strict=True)
        ]
    axes = [AxisResize(size, size, 1.0) for size in shape]
    for axis, one, (begin, end) in zip(named, ways, region, strict=True):
        if one.extent < 1:
            raise node.malformed(f"axis {axis} of {one.size} to {one.extent}", "1 or more")
        axes[axis] = replace(one, begin=begin, end=end)
    return tuple(axes)


def _by_sizes(node: OnnxNode, extents: list[int]) -> list[AxisResize]:
    """Return axes of sizes that the node says, or one of them and the others in proportion."""
    sizes = node.integers(3, "the sizes")
    if len(sizes) != len(extents):
        raise node.malformed(f"{len(sizes)} sizes for {len(extents)} axes")
    pairs = list(zip(extents, sizes, strict=True))
    policy = node.word("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch":
        return [AxisResize(extent, size, size / extent) for extent, size in pairs]
    chosen = max if policy == "not_smaller" else min
    scale = chosen(size / extent for extent, size in pairs)
    return [AxisResize(extent, math.floor(scale * extent + 0.5), scale) for extent, _ in pairs]


def _region(node: OnnxNode, count: int) -> list[tuple[float, float]]:
    """Return begin and end along each axis, for the one mode that takes a part."""
    is_part = node.word("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize"
    if not is_part or node.version < 11:
        return [(0.0, 1.0)] * count
    ends = node.known(1, "the region").reshape(-1).tolist()
    if len(ends) != 2 * count:
        raise node.malformed(f"a region of {len(ends)} numbers", f"{2 * count}")
    return list(zip(ends[:count], ends[count:], strict=True))


ONNX_READERS = (
    OnnxReader("Resize", resize, (1, 4), _ATTRIBUTES),
    OnnxReader("Upsample", resize, (1, 2), ("mode", "scales")),
)
