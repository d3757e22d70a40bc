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


NETWORKS: Mapping[str, Build] = MappingProxyType({
    "images": _images,
    "nested": _nested,
    "residual": _residual,
    "shared": _shared,
    "without_input": _without_input,
})  # fmt: skip
"""What builds a network, by its name."""
