"""Records models of Keras 2, where the package tf_keras is installed.

TF_USE_LEGACY_KERAS=1 python -m tests.journeys.keras_2
"""

from __future__ import annotations

import io
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from tests.journeys.keras_layers import RECORDED, drawn_inputs, saved

RECORDED_2 = RECORDED.with_name("recorded_2.zip")


def networks(keras: Any) -> Iterator[tuple[str, Any, int]]:
    """Yield names, models, and below which number the integers of their inputs are."""
    layers = keras.layers
    yield "images", keras.Sequential([
        layers.Conv2D(4, 3, input_shape=(8, 8, 2), activation="relu"), layers.BatchNormalization(),
        layers.MaxPooling2D(), layers.SeparableConv2D(3, 2), layers.Flatten(), layers.Dropout(0.2),
        layers.Dense(3, activation="softmax"),
    ]), 0  # fmt: skip
    first, second = keras.Input((6, 3), name="a"), keras.Input((4,), name="b")
    inner = keras.Sequential(
        [keras.Input((4,)), layers.Dense(4), layers.BatchNormalization()], name="inner"
    )
    within = keras.Input((4,))
    pair = keras.Model(within, [layers.Dense(2)(within), layers.Dense(3)(within)], name="pair")
    x = layers.Bidirectional(layers.LSTM(2, return_sequences=True))(first)
    (p, q), (r, u) = pair(inner(second)), pair(inner(layers.GRU(4)(x)))
    outputs = [layers.Add()([p, r]), layers.Concatenate()([q, u]), q]
    yield "shared", keras.Model([first, second], outputs), 0
    x = layers.TimeDistributed(layers.Dense(4))(first)
    x = layers.LayerNormalization()(layers.MultiHeadAttention(2, 3)(x, x))
    _, h, c = layers.LSTM(3, return_state=True)(x)
    yield "states", keras.Model(first, layers.LSTM(3)(first, initial_state=[h, c])), 0
    cells = [layers.LSTMCell(3), layers.GRUCell(2)]
    yield "cells", keras.Sequential([
        layers.RNN(cells, input_shape=(5, 2), return_sequences=True), layers.SimpleRNN(3),
        layers.PReLU(),
    ]), 0  # fmt: skip
    words = keras.Input((5,), dtype="int32")
    embedded = layers.Embedding(7, 4, mask_zero=True)(words)
    yield "masked", keras.Model(words, layers.LSTM(3)(embedded)), 7


def main() -> int:
    """Write models in both formats, with inputs and outputs."""
    import tf_keras as keras

    with zipfile.ZipFile(RECORDED_2, "w") as archive:
        for name, model, most in networks(keras):
            rng = np.random.default_rng([2, *name.encode()])
            for weight in model.weights:
                values = rng.normal(0.0, 0.5, weight.shape)
                weight.assign(np.abs(values) + 0.3 if "variance" in weight.name else values)
            inputs = drawn_inputs(model, most, rng)
            results = model(inputs[0] if len(inputs) == 1 else inputs, training=False)
            arrays = io.BytesIO()
            listed = results if isinstance(results, list) else [results]
            np.savez(arrays, *inputs, *map(np.asarray, listed))
            files = {f"{name}.{suffix}": saved(model, suffix) for suffix in ("h5", "keras")}
            for title, data in {**files, f"{name}.npz": arrays.getvalue()}.items():
                archive.writestr(zipfile.ZipInfo(title), data, zipfile.ZIP_DEFLATED)
    sys.stdout.write(f"{RECORDED_2.stat().st_size} bytes, Keras {keras.__version__}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
