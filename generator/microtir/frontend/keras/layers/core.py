"""Read the layers of Keras's core, and those that move elements."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.frontend.keras.archive import Json
from microtir.frontend.keras.layer import KerasLayer, KerasReader
from microtir.frontend.keras.layers.activations import activated
from microtir.graph.ir import Tensor
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common import onnx_arithmetic as arithmetic
from microtir.operators.common.onnx_parts import box, reshaped, transposed
from microtir.operators.conversion.definition import CastTo
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.indexing.definition import Gather
from microtir.operators.movement.definition import Pad
from microtir.operators.repetition.definition import Tile


def _identity(layer: KerasLayer) -> Tensor | tuple[Tensor, ...]:
    tensors = layer.inputs
    return tensors[0] if len(tensors) == 1 else tensors


def _dense(layer: KerasLayer) -> Tensor:
    """Read Dense: the last axis times a kernel of (inputs, units)."""
    has_bias = layer.flag("use_bias", default=True)
    kernel, *bias = layer.arrays("kernel", *(("bias",) if has_bias else ()))
    return activated(layer, dense(layer, layer.x, kernel, *bias))


def dense(layer: KerasLayer, x: Tensor, kernel: Tensor, *bias: Tensor) -> Tensor:
    """Return the last axis of a tensor times a kernel of (inputs, units)."""
    if len(kernel.shape) != 2 or kernel.shape[0] != x.shape[-1]:
        raise layer.malformed(f"a kernel of shape {kernel.shape} for an input of shape {x.shape}")
    weights = transposed(layer.node, kernel, (1, 0))
    shape = (*x.shape[:-1], kernel.shape[1])
    return layer.node.emit(FullyConnected(), x, weights, *bias, shape=shape)


def _einsum_dense(layer: KerasLayer) -> Tensor:
    has_bias = layer.setting("bias_axes") is not None
    kernel, *bias = layer.arrays("kernel", *(("bias",) if has_bias else ()))
    return activated(layer, einsum_dense(layer, layer.word("equation"), layer.x, kernel, *bias))


def einsum_dense(
    layer: KerasLayer, equation: str, x: Tensor, kernel: Tensor, *bias: Tensor
) -> Tensor:
    """Return an Einsum of a tensor and a kernel, and a bias that broadcasts added to it."""
    y = layer.onnx("Einsum", x, kernel, equation=equation)
    return layer.emit(Add(), y, *bias) if bias else y


def _embedding(layer: KerasLayer) -> Tensor:
    """Read Embedding: rows of a table by their numbers; 0 may stand for a step left out."""
    (table,) = layer.arrays("embeddings")
    places = layer.x
    if places.dtype is not DType.INT32:
        places = layer.emit(CastTo(), places, dtype=DType.INT32)
    rows = layer.emit(Gather(), table, places)
    if layer.flag("mask_zero"):
        zero = layer.node.scalar_like(0, places)
        is_zero = arithmetic.equal(layer.node, places, zero)
        layer.inner.set_mask(rows, layer.onnx("Not", is_zero))
    return rows


def _masking(layer: KerasLayer) -> Tensor:
    """Read Masking: steps whose elements all are one number count as 0, and are left out."""
    x, node = layer.x, layer.node
    is_other = layer.onnx("Not", arithmetic.equal(node, x, layer.number("mask_value", 0.0)))
    flags = layer.emit(CastTo(), is_other, dtype=DType.FLOAT32)
    counts = layer.onnx("ReduceMax", flags, node.constant(np.array([-1], np.int64)), keepdims=1)
    y = arithmetic.mul(node, x, counts)
    steps = reshaped(node, counts, *counts.shape[:-1])
    layer.inner.set_mask(y, layer.emit(CastTo(), steps, dtype=DType.BOOL))
    return y


def _reshape(layer: KerasLayer) -> Tensor:
    x, shape = layer.x, list(layer.integers("target_shape"))
    if shape.count(-1) == 1:
        known = -math.prod(shape)
        each = x.type.elements // max(x.shape[0], 1)
        shape[shape.index(-1)] = each // known if known else 0
    if math.prod((x.shape[0], *shape)) != x.type.elements:
        raise layer.malformed(
            f"the target shape {tuple(shape)} for elements of shape {x.shape[1:]}"
        )
    return reshaped(layer.node, x, x.shape[0], *shape)


def _flatten(layer: KerasLayer) -> Tensor:
    x = layer.x
    if is_channels_first(layer) and len(x.shape) > 2:
        x = transposed(layer.node, x, (0, *range(2, len(x.shape)), 1))
    return reshaped(layer.node, x, x.shape[0], math.prod(x.shape[1:]))


def _permute(layer: KerasLayer) -> Tensor:
    order = (0, *layer.integers("dims"))
    if sorted(order) != list(range(len(layer.x.shape))):
        raise layer.malformed(f"the order of axes {order[1:]} for the shape {layer.x.shape[1:]}")
    return transposed(layer.node, layer.x, order)


def _repeat_vector(layer: KerasLayer) -> Tensor:
    n, size = layer.x.shape
    row = reshaped(layer.node, layer.x, n, 1, size)
    return layer.emit(Tile((1, layer.integer("n"), 1)), row)


def sides(layer: KerasLayer, name: str, rank: int) -> list[tuple[int, int]]:
    """Return what a field says for both ends of each spatial axis: one number, or one or two each.

    Raises:
        ModelFileError: it says something else.
    """
    value = layer.setting(name)
    entries: list[Json] = list(value) if isinstance(value, list) else [value] * rank
    if rank == 1 and len(entries) == 2:
        entries = [entries]
    pairs = [entry if isinstance(entry, list) else [entry, entry] for entry in entries]
    numbers = [n for pair in pairs for n in pair if isinstance(n, int) and 0 <= n < 1 << 24]
    if len(pairs) != rank or len(numbers) != 2 * rank:
        raise layer.malformed(f"its field {name!r} is {value!r}", "numbers >= 0 for each axis")
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def is_channels_first(layer: KerasLayer) -> bool:
    """Return whether the channels are in front of the spatial axes."""
    if layer.setting("data_format") is None:
        return False
    return layer.word("data_format", "channels_last", "channels_first") == "channels_first"


def spatial_axes(layer: KerasLayer, rank: int) -> tuple[int, ...]:
    """Return the spatial axes of a layer over so many of them.

    Raises:
        ModelFileError: its input has other dimensions.
    """
    if len(layer.x.shape) != rank + 2:
        raise layer.malformed(f"its input has the shape {layer.x.shape}", f"{rank + 2} dimensions")
    first = 2 if is_channels_first(layer) else 1
    return tuple(range(first, first + rank))


def _zero_padding(rank: int) -> KerasReader:
    def read(layer: KerasLayer) -> Tensor:
        axes = dict(zip(spatial_axes(layer, rank), sides(layer, "padding", rank), strict=True))
        both = [axes.get(axis, (0, 0)) for axis in range(rank + 2)]
        return layer.emit(Pad(tuple(p[0] for p in both), tuple(p[1] for p in both)), layer.x)

    return KerasReader(f"ZeroPadding{rank}D", read, ("padding", "data_format"))


def _cropping(rank: int) -> KerasReader:
    def read(layer: KerasLayer) -> Tensor:
        x = layer.x
        begin, extent = [0] * len(x.shape), list(x.shape)
        pairs = zip(spatial_axes(layer, rank), sides(layer, "cropping", rank), strict=True)
        for axis, (before, after) in pairs:
            begin[axis], extent[axis] = before, x.shape[axis] - before - after
        if min(extent) < 1:
            raise layer.malformed(f"it removes every element of its input of shape {x.shape}")
        return box(layer.node, x, begin, extent)

    return KerasReader(f"Cropping{rank}D", read, ("cropping", "data_format"))


_AT_TRAINING = (
    "ActivityRegularization", "AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise",
    "SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D",
)  # fmt: skip
"""Layers that do something while a model is trained, and nothing at inference."""

KERAS_READERS = (
    KerasReader("Identity", _identity, None, keeps_mask=True),
    *(KerasReader(name, _identity, None, keeps_mask=True) for name in _AT_TRAINING),
    KerasReader("Dense", _dense, ("units", "use_bias", "activation"), keeps_mask=True),
    KerasReader("EinsumDense", _einsum_dense, ("equation", "bias_axes", "activation")),
    KerasReader("Embedding", _embedding, ("mask_zero",)),
    KerasReader("Masking", _masking, ("mask_value",)),
    KerasReader("Reshape", _reshape, ("target_shape",)),
    KerasReader("Flatten", _flatten, ("data_format",)),
    KerasReader("Permute", _permute, ("dims",)),
    KerasReader("RepeatVector", _repeat_vector, ("n",)),
    *map(_zero_padding, (1, 2, 3)),
    *map(_cropping, (1, 2, 3)),
)
