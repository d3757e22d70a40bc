"""Recipes of operators of one input element by element, and of those over the last axis."""

from __future__ import annotations

import numpy as np

from microtir.operators.activations.tflite import LeakyReluOptions
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    FusedOptions,
    Options,
    TfliteType,
)
from microtir.operators.conversion.tflite import CastOptions
from microtir.operators.softmax.tflite import SoftmaxOptions
from tests.support.cases_binary import broadcast_shapes, second_operand
from tests.support.sketch import Case, Quant, Sketch

_FIXED_OUTPUT = {
    BuiltinOperator.LOGISTIC: Quant(1 / 256, -128),
    BuiltinOperator.TANH: Quant(1 / 128, 0),
    BuiltinOperator.SOFTMAX: Quant(1 / 256, -128),
    BuiltinOperator.LOG_SOFTMAX: Quant(16 / 256, 127),
}

_FIXED_INT16 = Quant(1 / 32768, 0)


def _every_value(s: Sketch) -> tuple[int, ...]:
    """Draw an input shape; int8 cases cover all 256 values, wider integers as many."""
    return (4, 64) if s.dtype.kind == "i" else s.shape()


def _unary(s: Sketch, x_quant: Quant, y_quant: Quant, options: Options | None = None) -> Case:
    shape = _every_value(s)
    if s.dtype.kind == "f":
        return s.finish([s.input(shape)], s.output(shape), options)
    values = None
    if s.is_int8:
        values = s.rng.permutation(s.every_value()).reshape(shape)
    x = s.input(shape, x_quant, values)
    return s.finish([x], s.output(shape, y_quant), options)


def _rescaled(s: Sketch, quant: Quant, low: float, high: float) -> Quant:
    """Return another quantisation whose scale is the given one times 2^low to 2^high."""
    ratio = 2.0 ** s.rng.uniform(low, high)
    kind = s.dtype if s.dtype.kind == "i" else np.int8
    return Quant(float(np.float32(quant.scale * ratio)), s.zero_point(kind))


def _activation_quant(s: Sketch) -> Quant:
    """Return a quantisation in whose range activations have their bends."""
    if s.dtype == np.int16:
        return Quant(s.scale(1e-5, 1e-3), 0)
    return s.quant()


def relu(s: Sketch) -> Case:
    """Draw a case whose output mostly has another scale; RELU6 copies integers there."""
    quant = _activation_quant(s)
    rescales = s.chance(0.7)
    return _unary(s, quant, _rescaled(s, quant, -4, 4) if rescales else quant)


def leaky_relu(s: Sketch) -> Case:
    """Draw a case: LEAKY_RELU with alpha of any sign."""
    alpha = float(np.float32(s.pick(0.1, 0.3, 0.0, 1.5, -0.2, s.rng.uniform(0, 1))))
    quant = _activation_quant(s)
    return _unary(s, quant, _rescaled(s, quant, -4, 4), LeakyReluOptions(alpha))


def prelu(s: Sketch) -> Case:
    """Draw a case: PRELU whose alpha broadcasts, or is another input of the model's."""
    _, alpha_shape, common = broadcast_shapes(s)
    common, alpha_shape = common[-4:], alpha_shape[-4:]
    if s.dtype.kind == "f":
        return s.finish([s.input(common), second_operand(s, alpha_shape, None)], s.output(common))
    quant, alpha_quant = _activation_quant(s), s.quant(np.int8)
    alpha = s.constant("alpha", s.values(alpha_shape, np.int8), alpha_quant)
    largest = max(1.0, alpha_quant.scale * 128)
    y_quant = _rescaled(s, Quant(quant.scale * largest, 0), -4, 2)
    return s.finish([s.input(common, quant), alpha], s.output(common, y_quant))


def elu(s: Sketch) -> Case:
    """Draw an ELU."""
    quant = s.quant()
    return _unary(s, quant, _rescaled(s, quant, -3, 4))


def hard_swish(s: Sketch) -> Case:
    """Draw a HARD_SWISH; tflite-micro asks for an output scale of 1/128 of the input's or more."""
    quant = s.quant()
    return _unary(s, quant, _rescaled(s, quant, -6.5, 3))


def fixed_output(s: Sketch) -> Case:
    """Draw a case: LOGISTIC, TANH, SOFTMAX, LOG_SOFTMAX: the output's quantisation is fixed."""
    quant = Quant(s.scale(1e-4, 8.0), s.zero_point())
    options: Options | None = None
    if s.code is BuiltinOperator.SOFTMAX:
        options = SoftmaxOptions(float(np.float32(s.pick(1.0, 1.0, 0.5, 2.0))))
    if s.code in (BuiltinOperator.LOGISTIC, BuiltinOperator.TANH):
        if s.dtype == np.int16:
            power = float(2.0 ** s.integer(-13, -9))
            quant = Quant(s.pick(power, s.scale(1e-5, 1e-3)), 0)
        return _unary(s, quant, _FIXED_OUTPUT[s.code] if s.is_int8 else _FIXED_INT16)
    shape = (*s.shape(0, 2), s.integer(1, 20))
    if s.dtype.kind == "f":
        return s.finish([s.input(shape)], s.output(shape), options)
    if s.dtype == np.int16:
        x = s.input(shape, Quant(s.scale(1e-5, 1e-2), 0))
        return s.finish([x], s.output(shape, _FIXED_INT16), options)
    x = s.input(shape, quant)
    if s.code is BuiltinOperator.SOFTMAX and s.chance(0.4):
        return s.finish([x], s.output(shape, Quant(1 / 65536, -32768), np.int16), options)
    return s.finish([x], s.output(shape, _FIXED_OUTPUT[s.code]), options)


_POSITIVE = (BuiltinOperator.SQRT, BuiltinOperator.RSQRT, BuiltinOperator.LOG)


def unary(s: Sketch) -> Case:
    """Draw a function of one element: positive arguments only where it has no others."""
    if s.dtype.kind == "f":
        values = s.values(s.shape())
        values = np.abs(values) + np.float32(1e-3) if s.code in _POSITIVE else values
        halves = s.code is BuiltinOperator.ROUND and s.chance(0.5)
        values = np.round(values * 4) / 4 if halves else values
        return s.finish([s.input(values.shape, values=values)], s.output(values.shape))
    if s.dtype.itemsize > 2:
        shape = s.shape()
        return s.finish([s.input(shape)], s.output(shape))
    values = s.rng.permutation(s.every_value())
    if s.code is BuiltinOperator.ABS and s.dtype == np.int16 and s.chance(0.3):
        return s.finish([s.input(values.shape, values=values)], s.output(values.shape))
    x_quant, y_quant = _unary_quants(s)
    if s.code in (BuiltinOperator.SQRT, BuiltinOperator.RSQRT):
        values = np.maximum(values, x_quant.zero_point).astype(s.dtype)
    x = s.input(values.shape, x_quant, values)
    return s.finish([x], s.output(values.shape, y_quant))


def _unary_quants(s: Sketch) -> tuple[Quant, Quant]:
    """Return quantisations that results fit, mostly."""
    x_quant = Quant(s.scale(1e-4, 1e-1), s.zero_point(s.dtype))
    largest = x_quant.scale * np.iinfo(s.dtype).max
    if s.code is BuiltinOperator.EXP:
        x_quant = Quant(float(np.float32(s.scale(0.5, 8.0) / np.iinfo(s.dtype).max)),
                        x_quant.zero_point)  # fmt: skip
        largest = 100.0
    elif s.code is BuiltinOperator.RSQRT:
        largest = 1 / float(np.sqrt(x_quant.scale))
    elif s.code in _POSITIVE:
        largest = 8.0
    scale = float(np.float32(largest / np.iinfo(s.dtype).max * s.rng.uniform(0.3, 3)))
    if s.code is BuiltinOperator.ABS and s.chance(0.3):
        scale = x_quant.scale
    return x_quant, Quant(scale, s.zero_point(s.dtype))


def l2_normalization(s: Sketch) -> Case:
    """Draw a case: L2_NORMALIZATION, whose int8 result is in 1/128, of rows of zeros, too."""
    shape = (*s.shape(0, 3), s.integer(1, 20))
    quant = s.quant() if s.is_int8 else None
    values = s.values(shape)
    if s.chance(0.2):
        values = np.full_like(values, quant.zero_point if quant else 0)
    x = s.input(shape, quant, values)
    return s.finish([x], s.output(shape, Quant(1 / 128, 0) if quant else None), FusedOptions())


def quantize(s: Sketch) -> Case:
    """Draw a case: QUANTIZE from float, and between integer types."""
    shape = s.shape()
    target = np.dtype(
        s.pick(*{
            "float32": ("int8", "int16"),
            "int8": ("int8", "int8", "uint8", "int16", "int32"),
            "int16": ("int8", "int16", "int32"),
            "int32": ("int8", "int16"),
            "uint8": ("int8",),
        }[s.dtype.name])
    )  # fmt: skip
    y_quant = Quant(s.scale(), s.zero_point(target))
    if s.dtype.kind == "f":
        return s.finish([s.input(shape)], s.output(shape, y_quant, target))
    # Mostly within the output; sometimes so large that a value wraps on the way.
    bits = np.iinfo(target).bits - np.iinfo(s.dtype).bits
    ratio = 2.0 ** min(s.rng.uniform(-3, 6) + bits + (16 if s.chance(0.1) else 0), 29)
    if s.dtype.itemsize == target.itemsize == 1 and s.chance(0.4):
        ratio = 1.0
    x_quant = Quant(float(np.float32(y_quant.scale * ratio)), s.zero_point(s.dtype))
    return s.finish([s.input(shape, x_quant)], s.output(shape, y_quant, target))


def dequantize(s: Sketch) -> Case:
    """Draw a case: DEQUANTIZE to float32."""
    shape = s.shape()
    quant = s.quant(s.dtype)
    return s.finish([s.input(shape, quant)], s.output(shape, None, np.float32))


_CAST_TO = ("int8", "int16", "int32", "uint32", "bool", "float32")
_CAST_ANY = ("uint8", "int64")  # only LiteRT has these


def cast(s: Sketch) -> Case:
    """Draw a CAST to a type that the oracle has; a float may be outside of it, or no number."""
    shape = s.shape()
    target = np.dtype(s.pick(*_CAST_TO, *(("uint8", "int64") if s.dtype in _CAST_ANY else ())))
    values = s.values(shape)
    if s.dtype.kind == "f":
        values = (values * s.pick(1.0, 20.0, 1e5, 1e10)).astype(np.float32)
        if target.kind != "f" and s.chance(0.3):
            values.flat[0] = s.pick(np.inf, -np.inf, np.nan)
    options = CastOptions(TfliteType[s.dtype.name.upper()], TfliteType[target.name.upper()])
    return s.finish([s.input(shape, values=values)], s.output(shape, None, target), options)
