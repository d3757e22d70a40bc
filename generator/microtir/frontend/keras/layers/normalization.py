"""Read normalisation as it is at inference."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from microtir.frontend.keras.layer import KerasLayer, KerasReader
from microtir.graph.ir import Array, Tensor
from microtir.operators.common import onnx_arithmetic as arithmetic
from microtir.operators.common.onnx_parts import reshaped
from microtir.operators.reduction.definition import Mean, Sum
from microtir.operators.unary.definition import Rsqrt, Square


def _axes(layer: KerasLayer, x: Tensor) -> tuple[int, ...]:
    return layer.node.axes(layer.integers("axis"), len(x.shape))


def _laid(layer: KerasLayer, x: Tensor, values: Tensor, axes: Sequence[int]) -> Tensor:
    """Return values of some axes with 1 for each other axis."""
    shape = [size if n in axes else 1 for n, size in enumerate(x.shape)]
    if math.prod(shape) != values.type.elements:
        raise layer.malformed(f"parameters of shape {values.shape} for the axes {tuple(axes)}"
                              f" of the shape {x.shape}")  # fmt: skip
    return reshaped(layer.node, values, *shape)


def _batch_normalization(layer: KerasLayer) -> Tensor:
    """Read BatchNormalization: a factor and a summand for each channel, computed in double."""
    has_scale, has_centre = (layer.flag(name, default=True) for name in ("scale", "center"))
    names = [name for name, is_there in (("gamma", has_scale), ("beta", has_centre)) if is_there]
    layer.arrays(*names, "moving_mean", "moving_variance")  # as many as there must be
    x, values = layer.x, [v.astype(np.float64) for v in layer.weights.variables()]
    mean, variance = values[-2:]
    gamma: Array = values[0] if has_scale else np.ones_like(mean)
    beta: Array = values[len(names) - 1] if has_centre else np.zeros_like(mean)
    if len({value.shape for value in (mean, variance, gamma, beta)}) > 1:
        raise layer.malformed("its parameters differ in shape")
    factor = gamma / np.sqrt(variance + layer.number("epsilon", 1e-3))
    axes = _axes(layer, x)
    y = arithmetic.mul(layer.node, x, _laid(layer, x, layer.constant(factor), axes))
    shift = layer.constant(beta - mean * factor)
    return arithmetic.add(layer.node, y, _laid(layer, x, shift, axes))


def _scaled(
    layer: KerasLayer, x: Tensor, y: Tensor, axes: Sequence[int], names: Sequence[str]
) -> Tensor:
    """Return a normalised value times gamma plus beta, as far as the layer has them."""
    for name, values in zip(names, layer.arrays(*names), strict=True):
        emit = arithmetic.mul if name in ("gamma", "scale") else arithmetic.add
        y = emit(layer.node, y, _laid(layer, x, values, axes))
    return y


def _parameters(layer: KerasLayer) -> list[str]:
    pairs = (("gamma", "scale"), ("beta", "center"))
    return [name for name, field in pairs if layer.flag(field, default=True)]


def _normalised(layer: KerasLayer, x: Tensor, axes: tuple[int, ...], epsilon: float) -> Tensor:
    """Return a value less its mean, divided by its deviation."""
    centred = arithmetic.sub(layer.node, x, layer.emit(Mean(axes, True), x))
    return _by_root(layer, centred, axes, epsilon)


def _by_root(layer: KerasLayer, x: Tensor, axes: tuple[int, ...], epsilon: float) -> Tensor:
    """Return a value divided by the root of the mean of its squares."""
    square = layer.emit(Mean(axes, True), layer.emit(Square(), x))
    root = layer.emit(Rsqrt(), arithmetic.add(layer.node, square, epsilon))
    return arithmetic.mul(layer.node, x, root)


def _layer_normalization(layer: KerasLayer) -> Tensor:
    x, epsilon = layer.x, layer.number("epsilon", 1e-3)
    axes = _axes(layer, x)
    names = _parameters(layer)
    if layer.flag("rms_scaling"):
        names = ["gamma"]
        square = layer.emit(
            Square(), arithmetic.sub(layer.node, x, layer.emit(Mean(axes, True), x))
        )
        variance = layer.emit(Mean(axes, True), square)
        root = layer.emit(Rsqrt(), arithmetic.add(layer.node, variance, epsilon))
        return _scaled(layer, x, arithmetic.mul(layer.node, x, root), axes, names)
    return _scaled(layer, x, _normalised(layer, x, axes, epsilon), axes, names)


def _rms_normalization(layer: KerasLayer) -> Tensor:
    x = layer.x
    axes = _axes(layer, x)
    y = _by_root(layer, x, axes, layer.number("epsilon", 1e-6))
    return _scaled(layer, x, y, axes, ("scale",))


def _group_normalization(layer: KerasLayer) -> Tensor:
    """Read GroupNormalization: means over all axes but the batch and groups of one axis."""
    x = layer.x
    (axis,) = _axes(layer, x)
    groups = layer.integer("groups")
    groups = x.shape[axis] if groups == -1 else groups
    if groups < 1 or x.shape[axis] % groups:
        raise layer.malformed(f"{groups} groups for {x.shape[axis]} channels")
    shape = (*x.shape[:axis], groups, x.shape[axis] // groups, *x.shape[axis + 1 :])
    parts = reshaped(layer.node, x, *shape)
    axes = tuple(n for n in range(1, len(shape)) if n != axis)
    normal = _normalised(layer, parts, axes, layer.number("epsilon", 1e-3))
    y = reshaped(layer.node, normal, *x.shape)
    return _scaled(layer, x, y, (axis,), _parameters(layer))


def _unit_normalization(layer: KerasLayer) -> Tensor:
    x = layer.x
    total = layer.emit(Sum(_axes(layer, x), True), layer.emit(Square(), x))
    root = layer.emit(Rsqrt(), arithmetic.most(layer.node, total, 1e-12))
    return arithmetic.mul(layer.node, x, root)


KERAS_READERS = (
    KerasReader(
        "BatchNormalization", _batch_normalization, ("axis", "epsilon", "center", "scale"),
        keeps_mask=True,
    ),
    KerasReader(
        "LayerNormalization", _layer_normalization,
        ("axis", "epsilon", "center", "scale", "rms_scaling"), keeps_mask=True,
    ),
    KerasReader("RMSNormalization", _rms_normalization, ("axis", "epsilon")),
    KerasReader(
        "GroupNormalization", _group_normalization,
        ("groups", "axis", "epsilon", "center", "scale"), keeps_mask=True,
    ),
    KerasReader("UnitNormalization", _unit_normalization, ("axis",), keeps_mask=True),
)  # fmt: skip
