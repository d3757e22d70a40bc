"""Read what makes images larger or smaller."""

from __future__ import annotations

import numpy as np

from microtir.frontend.keras.layer import KerasLayer, KerasReader
from microtir.frontend.keras.layers.convolution import channels_last, from_channels_last
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_parts import box, reshaped, transposed
from microtir.operators.repetition.definition import Tile
from microtir.operators.resize.definition import ResizeBilinear, ResizeNearestNeighbor

_KEYS = -0.5  # the coefficient of bicubic interpolation


def _repeated(layer: KerasLayer, x: Tensor, axis: int, count: int) -> Tensor:
    """Return a tensor with each element of an axis several times."""
    before, behind = x.shape[: axis + 1], x.shape[axis + 1 :]
    column = reshaped(layer.node, x, *before, 1, *behind)
    times = [1] * len(column.shape)
    times[axis + 1] = count
    many = layer.emit(Tile(tuple(times)), column)
    return reshaped(layer.node, many, *before[:-1], before[-1] * count, *behind)


def _up_sampling(rank: int) -> KerasReader:
    def read(layer: KerasLayer) -> Tensor:
        y = channels_last(layer, layer.x, rank)
        factors = layer.extents("size", rank)
        mode = layer.setting("interpolation", "nearest") if rank == 2 else "nearest"
        if mode != "nearest":
            size = (y.shape[1] * factors[0], y.shape[2] * factors[1])
            return from_channels_last(layer, resized(layer, y, size, str(mode)))
        for axis, factor in enumerate(factors, 1):
            y = y if factor == 1 else _repeated(layer, y, axis, factor)
        return from_channels_last(layer, y)

    return KerasReader(f"UpSampling{rank}D", read, ("size", "data_format", "interpolation"))


def resized(layer: KerasLayer, x: Tensor, size: tuple[int, int], mode: str) -> Tensor:
    """Return an image (N, H, W, C) in another size; the centres of pixels lie at halves."""
    shape = (x.shape[0], *size, x.shape[3])
    if min(size) < 1:
        raise layer.malformed(f"a size of {size}", "extents from 1 on")
    if x.shape == shape:
        return x
    if mode == "bilinear":
        return layer.node.emit(ResizeBilinear(half_pixel_centers=True), x, shape=shape)
    if mode == "nearest":
        return layer.node.emit(ResizeNearestNeighbor(half_pixel_centers=True), x, shape=shape)
    if mode != "bicubic":
        raise layer.unsupported(
            f"the interpolation {mode!r}", "nearest, bilinear and bicubic",
            "resize with another interpolation, or in the application",
        )  # fmt: skip
    planes = transposed(layer.node, x, (0, 3, 1, 2))
    sizes = layer.node.constant(np.array((shape[0], shape[3], *size), np.int64))
    y = layer.onnx(
        "Resize", planes, None, None, sizes, mode="cubic", cubic_coeff_a=_KEYS, exclude_outside=1,
        coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    return transposed(layer.node, y, (0, 2, 3, 1))


def _resizing(layer: KerasLayer) -> Tensor:
    x = channels_last(layer, layer.x, 2)
    if layer.flag("crop_to_aspect_ratio") or layer.flag("pad_to_aspect_ratio"):
        raise layer.unsupported(
            "it crops or pads to keep the ratio of width and height", "resizing without",
            "put a CenterCrop or ZeroPadding2D in front of it",
        )  # fmt: skip
    if layer.flag("antialias"):
        raise layer.unsupported("it resizes with antialiasing", "resizing without",
                                "build the layer with antialias=False")  # fmt: skip
    size = (layer.integer("height"), layer.integer("width"))
    mode = layer.word("interpolation", default="bilinear")
    return from_channels_last(layer, resized(layer, x, size, mode))


def _center_crop(layer: KerasLayer) -> Tensor:
    x = channels_last(layer, layer.x, 2)
    size = (layer.integer("height"), layer.integer("width"))
    spare = [x.shape[1] - size[0], x.shape[2] - size[1]]
    if min(spare) < 0 or min(size) < 1:
        raise layer.unsupported(
            f"it crops {x.shape[1:3]} to {size}, which resizes the image", "images that are larger",
            "put a Resizing in front of it",
        )  # fmt: skip
    begin = (0, spare[0] // 2, spare[1] // 2, 0)
    return from_channels_last(layer, box(layer.node, x, begin, (x.shape[0], *size, x.shape[3])))


_SIZE = ("height", "width", "data_format")

KERAS_READERS = (
    *map(_up_sampling, (1, 2, 3)),
    KerasReader(
        "Resizing", _resizing,
        (*_SIZE, "interpolation", "crop_to_aspect_ratio", "pad_to_aspect_ratio", "antialias"),
    ),
    KerasReader("CenterCrop", _center_crop, _SIZE),
)  # fmt: skip
