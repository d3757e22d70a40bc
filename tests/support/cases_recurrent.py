"""Recipes of operators that remember something from one run to the next."""

from __future__ import annotations

import numpy as np

from microtir.operators.common.tflite_schema import Options, TfliteActivation
from microtir.operators.recurrent.tflite import SVDFOptions, UnidirectionalSequenceLSTMOptions
from microtir.writers.tflite import OPTIONAL_INPUT
from tests.support.sketch import Case, Quant, Shape, Sketch, Weights

GATES = 4


def _weights(s: Sketch, name: str, shape: Shape, dtype: str, scale: float) -> int:
    """Add a constant of the sketch's kind: floats, or symmetric integers of a scale."""
    if not s.is_quantised and s.kind_of_weights is Weights.LIKE_INPUTS:
        return s.constant(name, np.asarray(s.rng.standard_normal(shape) * 0.4, np.float32))
    low = int(np.iinfo(dtype).max)
    data = np.asarray(s.rng.integers(-low, low, shape, endpoint=True), dtype)
    if s.kind_of_weights is Weights.WIDENED:
        return s.constant(name, data * np.float32(scale))
    return s.constant(name, data, Quant(scale, 0))


def _bias(s: Sketch, name: str, units: int, dtype: str, scale: float) -> int:
    if not s.is_quantised:
        return s.constant(name, s.values((units,), np.float32))
    data = np.asarray(s.rng.normal(0, 1, units) / scale * 0.3).clip(-(1 << 30), 1 << 30)
    return s.constant(name, data.astype(dtype), Quant(scale, 0))


def _scale(s: Sketch, low: float, high: float) -> float:
    return float(np.float32(np.exp(s.rng.uniform(np.log(low), np.log(high)))))


def _is_asymmetric(s: Sketch) -> bool:
    """Draw how floats beside weights of int8 are quantised."""
    return s.kind_of_weights is Weights.INT8 and s.chance(0.5)


def svdf(s: Sketch) -> Case:
    """Draw an SVDF; of int8 with a memory of int8 or int16."""
    batch, width, units, rank, length = (
        s.integer(1, 2), s.integer(1, 12), s.integer(1, 5), s.integer(1, 3), s.integer(1, 7),
    )  # fmt: skip
    filters = units * rank
    kind = s.pick("int8", "int16")
    scales = [_scale(s, 0.005, 0.1) for _ in range(2)]
    time_scale = _scale(s, 1e-5, 1e-4) if kind == "int16" else _scale(s, 0.004, 0.02)
    memory_scale = _scale(s, 2e-4, 2e-3) if kind == "int16" else _scale(s, 0.03, 0.3)
    quantised = s.is_quantised
    memory = Quant(memory_scale, s.zero_point(kind)) if quantised else None
    x = s.input((batch, width), Quant(scales[0], s.zero_point()) if quantised else None)
    inputs = [
        x,
        _weights(s, "features", (filters, width), "int8", scales[1]),
        _weights(s, "time", (filters, length), kind if quantised else "int8", time_scale),
        _bias(s, "bias", units, "int32", float(np.float32(memory_scale) * np.float32(time_scale))),
        s.variable("memory", (batch, filters * length), kind if quantised else "float32", memory),
    ]
    y_quant = Quant(_scale(s, 0.01, 0.2), s.zero_point()) if quantised else None
    activation = TfliteActivation(s.integer(0, 3))
    options: Options = SVDFOptions(rank, activation, _is_asymmetric(s))
    return s.finish(inputs, s.output((batch, units), y_quant), options)


def lstm(s: Sketch) -> Case:
    """Draw an LSTM, in both orders of batch and time; int8 and int16 with cells of int16."""
    batch, steps, width, units = s.integer(1, 2), s.integer(1, 5), s.integer(1, 9), s.integer(1, 8)
    time_major = s.chance(0.4)
    shape = (steps, batch) if time_major else (batch, steps)
    quantised, is_long = s.is_quantised, s.dtype == np.int16
    x_quant = hidden = cell = None
    scale = _scale(s, 0.01, 0.05) / (256 if is_long else 1)
    if quantised:
        x_quant = Quant(float(np.float32(scale)), s.zero_point(s.dtype))
        hidden = Quant(_scale(s, 0.004, 0.012) / (256 if is_long else 1), s.zero_point(s.dtype))
        hidden = Quant(float(np.float32(hidden.scale)), hidden.zero_point)
        exact = float(2.0 ** -s.integer(9, 15))
        cell = Quant(s.pick(exact, exact, exact, _scale(s, 2.0**-18, 0.01)), 0)
    x = s.input((*shape, width), x_quant)
    of_input = [_scale(s, 0.002, 0.02) for _ in range(GATES)]
    of_hidden = [_scale(s, 0.002, 0.02) for _ in range(GATES)]
    long = "int64" if is_long else "int32"
    inputs = [
        x,
        *(_weights(s, f"w{n}", (units, width), "int8", of_input[n]) for n in range(GATES)),
        *(_weights(s, f"r{n}", (units, units), "int8", of_hidden[n]) for n in range(GATES)),
        *[OPTIONAL_INPUT] * 3,
        *(_bias(s, f"b{n}", units, long, scale * of_input[n]) for n in range(GATES)),
        *[OPTIONAL_INPUT] * 2,
        s.variable("hidden", (batch, units), s.dtype, hidden),
        s.variable("cell", (batch, units), "int16" if quantised else "float32", cell),
        *[OPTIONAL_INPUT] * 4,
    ]
    clip = s.pick(0.0, 0.0, 0.5, 3.0)
    activation, is_asymmetric = TfliteActivation.TANH, _is_asymmetric(s)
    options: Options = UnidirectionalSequenceLSTMOptions(
        activation, clip, 0.0, time_major, is_asymmetric
    )
    return s.finish(inputs, s.output((*shape, units), hidden), options)
