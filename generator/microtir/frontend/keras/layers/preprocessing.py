"""Read what prepares data: scaling, categories, and what only changes data while training."""

from __future__ import annotations

import math

import numpy as np

from microtir.dtype import DType
from microtir.frontend.keras.config import parse_layer
from microtir.frontend.keras.layer import KerasLayer, KerasReader, Operand
from microtir.graph.ir import Array, Tensor
from microtir.operators.common import onnx_arithmetic as arithmetic
from microtir.operators.common.onnx_parts import reshaped
from microtir.operators.conversion.definition import CastTo
from microtir.operators.reduction.definition import ReduceMax, Sum

_LEAST_DEVIATION = 1e-7
_MOST_BOUNDARIES = 1 << 12


def _as_floats(layer: KerasLayer, x: Tensor) -> Tensor:
    return x if x.dtype.is_float else layer.emit(CastTo(), x, dtype=DType.FLOAT32)


def _numbers(layer: KerasLayer, name: str) -> Array:
    """Return a field that is a number or a nested list of some, as float32."""
    value = layer.setting(name)
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if not numbers.size or numbers.size > _MOST_BOUNDARIES:
        raise layer.malformed(f"its field {name!r} holds {numbers.size} numbers",
                              f"1 to {_MOST_BOUNDARIES}")  # fmt: skip
    return numbers


def _rescaling(layer: KerasLayer) -> Tensor:
    x, node = _as_floats(layer, layer.x), layer.node
    scaled = arithmetic.mul(node, x, layer.constant(_numbers(layer, "scale")))
    offset = _numbers(layer, "offset")
    return arithmetic.add(node, scaled, layer.constant(offset)) if offset.any() else scaled


def _normalization(layer: KerasLayer) -> Tensor:
    """Read Normalization: less a mean, divided by a deviation, or the other way."""
    x, node = _as_floats(layer, layer.x), layer.node
    axes = () if layer.setting("axis") is None else node.axes(layer.integers("axis"), len(x.shape))
    shape = [size if n in axes else 1 for n, size in enumerate(x.shape)]
    if layer.setting("mean") is not None:
        mean, variance = _numbers(layer, "mean"), _numbers(layer, "variance")
    else:
        arrays = layer.weights.variables()
        if len(arrays) < 2:
            raise layer.malformed(f"the file has {len(arrays)} arrays for it", "mean and variance")
        mean, variance = (array.astype(np.float64) for array in arrays[:2])
    parts = []
    for values in (mean, np.maximum(np.sqrt(variance), _LEAST_DEVIATION)):
        of_axes = [size for size in shape if size != 1]
        if values.size == math.prod(shape):
            spread = values.reshape(shape)
        else:
            spread = np.broadcast_to(values, of_axes).reshape(shape)
        parts.append(spread)
    centre, deviation = parts
    if layer.flag("invert"):
        wide = arithmetic.mul(node, x, layer.constant(deviation))
        return arithmetic.add(node, wide, layer.constant(centre))
    moved = arithmetic.sub(node, x, layer.constant(centre))
    return arithmetic.div(node, moved, layer.constant(deviation))


def _category_encoding(layer: KerasLayer) -> Tensor:
    """Read CategoryEncoding: which categories an entry has, or how often."""
    mode = layer.word("output_mode", "one_hot", "multi_hot", "count", default="multi_hot")
    count, x = layer.integer("num_tokens"), layer.x
    if not 1 <= count <= 1 << 16:
        raise layer.malformed(f"{count} categories", "1 to 65536")
    if mode == "one_hot" and len(x.shape) > 1 and x.shape[-1] == 1:
        x = reshaped(layer.node, x, *x.shape[:-1])
    numbers = layer.emit(CastTo(), x, dtype=DType.INT32) if x.dtype is not DType.INT32 else x
    column = reshaped(layer.node, numbers, *numbers.shape, 1)
    classes = layer.node.constant(np.arange(count, dtype=np.int32))
    equal = arithmetic.equal(layer.node, column, classes)
    hot = layer.emit(CastTo(), equal, dtype=DType.FLOAT32)
    if mode == "one_hot" or len(hot.shape) < 3:
        return hot
    axes = (len(hot.shape) - 2,)
    return layer.emit(ReduceMax(axes) if mode == "multi_hot" else Sum(axes), hot)


def _discretization(layer: KerasLayer) -> Tensor:
    """Read Discretization: how many boundaries a number has reached."""
    layer.word("output_mode", "int", default="int")
    x = _as_floats(layer, layer.x)
    boundaries = np.sort(_numbers(layer, "bin_boundaries").reshape(-1))
    column = reshaped(layer.node, x, *x.shape, 1)
    reached = layer.onnx("GreaterOrEqual", column, layer.constant(boundaries))
    flags = layer.emit(CastTo(), reached, dtype=DType.FLOAT32)
    total = layer.emit(Sum((len(x.shape),)), flags)
    return layer.emit(CastTo(), total, dtype=DType.INT32)


def _pipeline(layer: KerasLayer) -> tuple[Tensor, ...]:
    """Read Pipeline: layers without weights one after the other."""
    entries = layer.setting("layers")
    results: tuple[Tensor, ...] = (layer.x,)
    for number, entry in enumerate(entries if isinstance(entries, list) else []):
        record = parse_layer(entry, layer.node.where)
        weights = layer.weights.child(f"layers/{number}", record.name)
        value: Operand = results[0] if len(results) == 1 else results
        results = layer.inner.call(record, weights, (value,), {})
    return results


_WHILE_TRAINING = (
    "AugMix", "CutMix", "MixUp", "RandAugment", "RandomBrightness", "RandomColorDegeneration",
    "RandomColorJitter", "RandomContrast", "RandomElasticTransform", "RandomErasing", "RandomFlip",
    "RandomGaussianBlur", "RandomGrayscale", "RandomHue", "RandomInvert", "RandomPerspective",
    "RandomPosterization", "RandomRotation", "RandomSaturation", "RandomSharpness", "RandomShear",
    "RandomTranslation", "RandomZoom",
)  # fmt: skip
"""Layers that change data while a model is trained, and pass it on at inference."""

KERAS_READERS = (
    KerasReader("Rescaling", _rescaling, ("scale", "offset"), keeps_mask=True),
    KerasReader(
        "Normalization", _normalization, ("axis", "mean", "variance", "invert"), keeps_mask=True
    ),
    KerasReader("CategoryEncoding", _category_encoding, ("num_tokens", "output_mode")),
    KerasReader("Discretization", _discretization, ("bin_boundaries", "output_mode")),
    KerasReader("Pipeline", _pipeline, ("layers",)),
    *(
        KerasReader(name, lambda layer: _as_floats(layer, layer.x), None)
        for name in _WHILE_TRAINING
    ),
)
