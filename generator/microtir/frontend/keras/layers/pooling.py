"""Read pooling over windows, over adaptive parts of an image, and over all of it."""

from __future__ import annotations

from microtir.dtype import DType
from microtir.frontend.keras.layer import KerasLayer, KerasReader
from microtir.frontend.keras.layers.convolution import (
    as_image,
    as_line,
    channels_last,
    from_channels_last,
    window_of,
)
from microtir.graph.ir import Tensor
from microtir.operators.common.onnx_arithmetic import div, mul
from microtir.operators.common.onnx_parts import along, joined, reshaped, transposed
from microtir.operators.conversion.definition import CastTo
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.reduction.definition import Mean, ReduceMax, Sum

_FIELDS = ("pool_size", "strides", "padding", "data_format")


def _pool(rank: int, *, is_mean: bool) -> KerasReader:
    def read(layer: KerasLayer) -> Tensor:
        x, ones = channels_last(layer, layer.x, rank), (1,) * rank
        taps = layer.extents("pool_size", rank)
        has_strides = layer.setting("strides") is not None
        strides = layer.extents("strides", rank) if has_strides else taps
        window = window_of(layer, x.shape[1:-1], taps, strides, ones)
        if rank == 3:
            planes = transposed(layer.node, x, (0, 4, 1, 2, 3))
            y = layer.onnx(
                "AveragePool" if is_mean else "MaxPool", planes, kernel_shape=taps,
                strides=strides, pads=window.before + window.after,
            )  # fmt: skip
            return from_channels_last(layer, transposed(layer.node, y, (0, 2, 3, 4, 1)))
        op = (AveragePool2D if is_mean else MaxPool2D)(
            window.planar_taps, window.planar_strides, window.padding
        )
        y = as_line(layer, layer.emit(op, as_image(layer, x)), rank)
        return from_channels_last(layer, y)

    return KerasReader(f"{'Average' if is_mean else 'Max'}Pooling{rank}D", read, _FIELDS)


def _global(rank: int, *, is_mean: bool) -> KerasReader:
    def read(layer: KerasLayer) -> Tensor:
        x, keeps = channels_last(layer, layer.x, rank), layer.flag("keepdims")
        op = (Mean if is_mean else ReduceMax)(tuple(range(1, rank + 1)), keeps)
        mask = layer.mask if is_mean and rank == 1 else None
        if mask is not None:
            return _masked_mean(layer, x, mask, keeps=keeps)
        y = layer.emit(op, x)
        return from_channels_last(layer, y) if keeps else y

    name = f"Global{'Average' if is_mean else 'Max'}Pooling{rank}D"
    return KerasReader(name, read, ("keepdims", "data_format"))


def _masked_mean(layer: KerasLayer, x: Tensor, mask: Tensor, *, keeps: bool) -> Tensor:
    """Return the mean of the steps that count."""
    node = layer.node
    flags = layer.emit(CastTo(), mask, dtype=DType.FLOAT32)
    weights = reshaped(node, flags, *flags.shape, 1)
    total = layer.emit(Sum((1,), keeps), mul(node, x, weights))
    return div(node, total, layer.emit(Sum((1,), keeps), weights))


def _adaptive(rank: int, *, is_mean: bool) -> KerasReader:
    """Return the reader of pooling to a size: part i of m begins at floor(i n / m)."""

    def read(layer: KerasLayer) -> Tensor:
        y = channels_last(layer, layer.x, rank)
        for axis, count in enumerate(layer.extents("output_size", rank), 1):
            size = y.shape[axis]
            parts = []
            for n in range(count):
                first, end = n * size // count, -(-(n + 1) * size // count)
                part = along(layer.node, y, axis, first, end - first)
                op = (Mean if is_mean else ReduceMax)((axis,), keep_dims=True)
                parts.append(layer.emit(op, part))
            y = joined(layer.node, parts, axis)
        return from_channels_last(layer, y)

    name = f"Adaptive{'Average' if is_mean else 'Max'}Pooling{rank}D"
    return KerasReader(name, read, ("output_size", "data_format"))


KERAS_READERS = tuple(
    of_rank(rank, is_mean=is_mean)
    for of_rank in (_pool, _global, _adaptive)
    for rank in (1, 2, 3)
    for is_mean in (True, False)
)
