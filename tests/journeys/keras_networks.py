"""Networks of several layers of Keras: what is shared, nested, or has several ports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeAlias

from tests.journeys.keras_cases import ACTIVATIONS, Rng, number, pick

Build: TypeAlias = Callable[[Any, Rng], Any]


def _images(keras: Any, rng: Rng) -> Any:
    layers, model = keras.layers, keras.Sequential([keras.Input((12, 12, 3))])
    for _ in range(number(rng, 1, 2)):
        model.add(layers.Conv2D(number(rng, 2, 4), 3, padding="same", strides=number(rng, 1, 2)))
        model.add(layers.BatchNormalization())
        model.add(layers.Activation(pick(rng, *ACTIVATIONS)))
        model.add(pick(rng, layers.MaxPooling2D(), layers.AveragePooling2D(2, padding="same")))
    model.add(pick(rng, layers.Flatten(), layers.GlobalAveragePooling2D()))
    model.add(layers.Dense(4, activation="softmax"))
    return model


def _without_input(keras: Any, _rng: Rng) -> Any:
    model = keras.Sequential([keras.layers.Dense(3), keras.layers.ReLU()])
    model.build((None, 4))
    return model


def _shared(keras: Any, rng: Rng) -> Any:
    """Call a layer and a model of two results twice; results are a dictionary."""
    layers, size = keras.layers, number(rng, 2, 5)
    first, second = keras.Input((size,), name="first"), keras.Input((size,), name="second")
    within = keras.Input((4,))
    pair = layers.Dense(3)(within), layers.Dense(2, activation="tanh")(within)
    inner, dense = keras.Model(within, pair), layers.Dense(4)
    a, b = inner(dense(first))
    c, d = inner(dense(second))
    return keras.Model(
        [first, second],
        {"joined": layers.Concatenate()([a, c]), "sum": layers.Add()([b, d]), "d": d},
    )


def _nested(keras: Any, _rng: Rng) -> Any:
    layers = keras.layers
    inner = keras.Sequential(
        [keras.Input((6, 6, 2)), layers.Conv2D(3, 3), layers.BatchNormalization()], name="inner"
    )
    middle = keras.Sequential([inner, layers.ReLU(), layers.Flatten()], name="middle")
    return keras.Sequential([keras.Input((6, 6, 2)), middle, layers.Dense(2)])


def _residual(keras: Any, rng: Rng) -> Any:
    layers, x = keras.layers, keras.Input((8, 8, 4))
    y = x
    for _ in range(number(rng, 1, 3)):
        inner = layers.DepthwiseConv2D(3, padding="same", use_bias=False)(y)
        inner = layers.Conv2D(4, 1, activation=pick(rng, *ACTIVATIONS))(inner)
        y = layers.Add()([y, layers.BatchNormalization()(inner)])
    return keras.Model(x, y)


def _cell(keras: Any, rng: Rng) -> Any:
    kind = pick(rng, keras.layers.SimpleRNNCell, keras.layers.GRUCell, keras.layers.LSTMCell)
    return kind(number(rng, 1, 4))


def _cells(keras: Any, rng: Rng) -> Any:
    """Run cells of several kinds upon each other."""
    x = keras.Input((number(rng, 2, 7), 3))
    cells = [_cell(keras, rng) for _ in range(number(rng, 1, 3))]
    flags = {name: bool(rng.integers(2)) for name in ("return_sequences", "go_backwards")}
    return keras.Model(x, keras.layers.RNN(cells if len(cells) > 1 else cells[0], **flags)(x))


def _both_ways(keras: Any, rng: Rng) -> Any:
    layers, x = keras.layers, keras.Input((number(rng, 2, 7), 3))
    kind = pick(rng, layers.SimpleRNN, layers.GRU, layers.LSTM)
    inner = kind(number(rng, 1, 4), return_sequences=bool(rng.integers(2)))
    mode = pick(rng, "concat", "sum", "mul", "ave", None)
    return keras.Model(x, layers.Bidirectional(inner, merge_mode=mode)(x))


def _by_time(keras: Any, rng: Rng) -> Any:
    layers, x = keras.layers, keras.Input((number(rng, 2, 5), 6, 5, 2))
    inner = pick(
        rng, layers.Conv2D(2, 3), layers.Dense(3), layers.GlobalMaxPooling2D(),
        layers.SpectralNormalization(layers.Conv2D(2, 2)),
    )  # fmt: skip
    return keras.Model(x, layers.TimeDistributed(inner)(x))


def _masked(keras: Any, rng: Rng) -> Any:
    """Leave out the steps that a function of the input, or of zeros in it, says."""
    layers, x = keras.layers, keras.Input((number(rng, 2, 7), 3))
    y = layers.Masking()(layers.ReLU()(x))
    kind = pick(rng, layers.SimpleRNN, layers.GRU, layers.LSTM)
    flags = {"return_sequences": True, "zero_output_for_mask": bool(rng.integers(2))}
    y = kind(number(rng, 1, 4), **flags)(y)
    return keras.Model(x, pick(rng, layers.GRU(2), layers.GlobalAveragePooling1D())(y))


def _states(keras: Any, rng: Rng) -> Any:
    """Hand the states of one layer to another."""
    layers, x = keras.layers, keras.Input((number(rng, 2, 7), 3))
    kind, units = pick(rng, layers.GRU, layers.LSTM), number(rng, 1, 4)
    _, *states = kind(units, return_state=True)(x)
    return keras.Model(x, kind(units, return_sequences=True)(x, initial_state=states))


def _heads(keras: Any, rng: Rng) -> Any:
    layers = keras.layers
    x, y = keras.Input((number(rng, 1, 5), 4)), keras.Input((number(rng, 1, 5), 4))
    layer = pick(
        rng,
        layers.MultiHeadAttention(number(rng, 1, 3), number(rng, 1, 4)),
        layers.MultiHeadAttention(2, 3, use_bias=False, output_shape=5),
        layers.GroupQueryAttention(3, 4, 2),
    )
    return keras.Model([x, y], layer(x, y, use_causal_mask=bool(rng.integers(2))))


def _functions(keras: Any, rng: Rng) -> Any:
    """Stand functions of keras.ops between layers."""
    ops, x = keras.ops, keras.Input((4, 6))
    y = keras.layers.Dense(4)(x) * 2.0 - 1.0
    z = ops.matmul(y, ops.transpose(y, (0, 2, 1)))
    parts = [ops.relu(y)[:, 1:, ::2], ops.mean(z, axis=pick(rng, 1, 2)), ops.max(z, axis=(1, 2))]
    parts += [ops.where(y > 0, y, 0.5), ops.concatenate([y, z], axis=-1), ops.squeeze(z[:, :1], 1)]
    parts += [ops.expand_dims(ops.exp(y), 2), ops.stack([y, z], axis=1), ops.clip(z, -0.5, 0.5)]
    return keras.Model(x, parts)


NETWORKS: Mapping[str, Build] = MappingProxyType({
    "both_ways": _both_ways,
    "by_time": _by_time,
    "cells": _cells,
    "functions": _functions,
    "heads": _heads,
    "images": _images,
    "masked": _masked,
    "nested": _nested,
    "residual": _residual,
    "shared": _shared,
    "states": _states,
    "without_input": _without_input,
})  # fmt: skip
"""What builds a network, by its name."""
