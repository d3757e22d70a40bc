"""A model with float activations and int8 weights, which tflite-micro refuses."""

from __future__ import annotations

import numpy as np

from microtir.operators.common.tflite_schema import BuiltinOperator
from microtir.operators.dense.tflite import FullyConnectedOptions
from tests.frontend.models import Value, model


def hybrid_model() -> bytes:
    """Return one fully connected layer of four inputs and three outputs."""
    weights = Value((3, 4), np.int8, np.arange(12, dtype=np.int8).reshape(3, 4), (0.1,), (0,))
    return model(
        BuiltinOperator.FULLY_CONNECTED,
        [Value((1, 4)), weights, None],
        Value((1, 3)),
        FullyConnectedOptions(),
    )
