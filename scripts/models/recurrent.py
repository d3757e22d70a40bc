"""`lstm` and `svdf`: models of one recurrent layer, of any type that it has.

Weights are random, the same for each type: `python -m benchmarks arena` measures them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

from microtir.operators.common.tflite_schema import BuiltinOperator, TfliteActivation
from microtir.operators.movement.tflite import StridedSliceOptions
from microtir.operators.recurrent.tflite import SVDFOptions, UnidirectionalSequenceLSTMOptions
from microtir.writers.tflite import OPTIONAL_INPUT, TfliteBuilder

GATES = 4
Shape = tuple[int, ...]


class Kind(Enum):
    """Types of a model: activations, then weights where they differ."""

    FLOAT32 = "float32"
    HYBRID = "float32_int8"
    INT8 = "int8"
    INT16 = "int16_int8"


@dataclass(slots=True)
class Layer:
    """A model in the making."""

    kind: Kind
    builder: TfliteBuilder = field(default_factory=TfliteBuilder)
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(16))

    @property
    def is_integer(self) -> bool:
        return self.kind in (Kind.INT8, Kind.INT16)

    def activation(self, name: str, shape: Shape, scale: float) -> int:
        if not self.is_integer:
            return self.builder.tensor(name, shape, np.float32)
        dtype = np.int8 if self.kind is Kind.INT8 else np.int16
        return self.builder.tensor(name, shape, dtype, None, [scale], [0])

    def state(self, name: str, shape: Shape, scale: float, dtype: npt.DTypeLike) -> int:
        if not self.is_integer:
            return self.builder.tensor(name, shape, np.float32, is_variable=True)
        return self.builder.tensor(name, shape, dtype, None, [scale], [0], is_variable=True)

    def weights(self, name: str, shape: Shape, scale: float, dtype: npt.DTypeLike = np.int8) -> int:
        low = int(np.iinfo(dtype).max) // 2
        data = self.rng.integers(-low, low + 1, shape)
        if self.kind is Kind.FLOAT32 or (self.kind is Kind.HYBRID and dtype != np.int8):
            return self.builder.tensor(name, shape, np.float32, (data * scale).astype(np.float32))
        return self.builder.tensor(name, shape, dtype, data.astype(dtype), [scale], [0])

    def bias(self, name: str, units: int, scale: float, dtype: npt.DTypeLike) -> int:
        data = self.rng.uniform(-0.5, 0.5, units)
        if not self.is_integer:
            return self.builder.tensor(name, (units,), np.float32, data.astype(np.float32))
        stored = np.rint(data / scale).astype(dtype)
        return self.builder.tensor(name, (units,), dtype, stored, [scale], [0])


def lstm(kind: Kind, steps: int, inputs: int, units: int) -> bytes:
    """Return an LSTM over sequences of so many steps."""
    layer = Layer(kind)
    x = layer.activation("x", (1, steps, inputs), _hidden_scale(kind))
    y = add_lstm(layer, "", x, steps, inputs, units)
    return layer.builder.build([x], [y])


def stacked_lstms(kind: Kind, steps: int, inputs: int, units: int) -> bytes:
    """Return two LSTMs in a row, of which the last step is used."""
    layer = Layer(kind)
    x = layer.activation("x", (1, steps, inputs), _hidden_scale(kind))
    first = add_lstm(layer, "a_", x, steps, inputs, units)
    second = add_lstm(layer, "b_", first, steps, units, units)
    y = layer.activation("y", (1, units), _hidden_scale(kind))
    places = [
        layer.builder.tensor(name, (3,), np.int32, np.array(values, np.int32))
        for name, values in (("begin", (0, -1, 0)), ("end", (1, steps, units)), ("by", (1, 1, 1)))
    ]
    options = StridedSliceOptions(begin_mask=5, end_mask=7, shrink_axis_mask=2)
    layer.builder.operator(BuiltinOperator.STRIDED_SLICE, [second, *places], [y], options)
    return layer.builder.build([x], [y])


def _hidden_scale(kind: Kind) -> float:
    return 2.0**-15 if kind is Kind.INT16 else 2.0**-7


def add_lstm(layer: Layer, name: str, x: int, steps: int, inputs: int, units: int) -> int:
    """Add an LSTM whose input has the scale of a hidden state; return its output."""
    is_long, weight_scale = layer.kind is Kind.INT16, 0.008
    scale, long = _hidden_scale(layer.kind), np.int64 if is_long else np.int32
    tensors = [
        x,
        *(layer.weights(f"{name}w{n}", (units, inputs), weight_scale) for n in range(GATES)),
        *(layer.weights(f"{name}r{n}", (units, units), weight_scale) for n in range(GATES)),
        *[OPTIONAL_INPUT] * 3,
        *(layer.bias(f"{name}b{n}", units, scale * weight_scale, long) for n in range(GATES)),
        *[OPTIONAL_INPUT] * 2,
        layer.state(f"{name}hidden", (1, units), scale, np.int16 if is_long else np.int8),
        layer.state(f"{name}cell", (1, units), 2.0**-11, np.int16),
        *[OPTIONAL_INPUT] * 4,
    ]
    y = layer.activation(f"{name}y" if name else "y", (1, steps, units), scale)
    options = UnidirectionalSequenceLSTMOptions(TfliteActivation.TANH)
    code = BuiltinOperator.UNIDIRECTIONAL_SEQUENCE_LSTM
    layer.builder.operator(code, tensors, [y], options)
    return y


def svdf(kind: Kind, inputs: int, filters: int, length: int) -> bytes:
    """Return an SVDF of rank 1; one of int8 has a memory of int16."""
    layer = Layer(kind)
    memory_scale, time_scale = 2.0**-10, 2.0**-14
    time = np.int16 if kind is Kind.INT8 else np.int8
    x = layer.activation("x", (1, inputs), 0.05)
    tensors = [
        x,
        layer.weights("features", (filters, inputs), 0.01),
        layer.weights("time", (filters, length), time_scale if time is np.int16 else 0.01, time),
        layer.bias("bias", filters, memory_scale * time_scale, np.int32),
        layer.state("memory", (1, filters * length), memory_scale, np.int16),
    ]
    y = layer.activation("y", (1, filters), 0.05)
    options = SVDFOptions(1, TfliteActivation.NONE)
    layer.builder.operator(BuiltinOperator.SVDF, tensors, [y], options)
    return layer.builder.build([x], [y])
