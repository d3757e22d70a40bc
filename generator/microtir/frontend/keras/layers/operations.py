"""Read functions of keras.ops that stand in a functional model as if they were layers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from microtir.dtype import DType
from microtir.frontend.keras.layer import KerasLayer, KerasReader, Operand
from microtir.frontend.keras.layers.activations import FUNCTIONS
from microtir.graph.ir import Tensor
from microtir.operators.common import onnx_arithmetic as arithmetic
from microtir.operators.common.onnx_parts import joined, reshaped, stacked, strided, transposed
from microtir.operators.conversion.definition import CastTo
from microtir.operators.reduction.definition import (
    Mean,
    ReduceAll,
    ReduceAny,
    ReduceMax,
    ReduceMin,
    ReduceProd,
    Reduction,
    Sum,
)
from microtir.operators.unary.definition import Neg, Rsqrt, Square

_Read = Callable[[KerasLayer], Tensor | tuple[Tensor, ...]]


def _numbers(layer: KerasLayer, place: int, name: str) -> tuple[int, ...] | None:
    """Return whole numbers that the configuration or the call has; None if neither does."""
    value: Operand = layer.argument(place, name)
    if value is None:
        return None if layer.setting(name) is None else layer.integers(name)
    items = value if isinstance(value, tuple) else (value,)
    numbers = tuple(item for item in items if isinstance(item, int))
    if len(numbers) != len(items):
        raise layer.malformed(f"its argument {name!r} is not a list of integers")
    return numbers


def _operands(layer: KerasLayer, count: int) -> list[Tensor]:
    """Return the first arguments; numbers have the type of the tensors beside them."""
    values = [layer.argument(place, ("x1", "x2")[min(place, 1)]) for place in range(count)]
    like = next((value for value in values if isinstance(value, Tensor)), None)
    if like is None:
        raise layer.malformed("it is called without a tensor")
    tensors = []
    for value in values:
        if isinstance(value, bool | int | float):
            tensors.append(layer.node.scalar_like(value, like))
        else:
            tensor = layer.as_tensor(value)
            if tensor is None:
                raise layer.malformed(f"it is called without {count} operands")
            tensors.append(tensor)
    return tensors


def _binary(operator: str) -> _Read:
    return lambda layer: layer.onnx(operator, *_operands(layer, 2))


def _unary(operator: str) -> _Read:
    return lambda layer: layer.onnx(operator, *_operands(layer, 1))


def _function(name: str) -> _Read:
    return lambda layer: FUNCTIONS[name](layer, layer.x)


def _not_equal(layer: KerasLayer) -> Tensor:
    return layer.onnx("Not", layer.onnx("Equal", *_operands(layer, 2)))


def _reduced(op: type[Reduction]) -> _Read:
    def read(layer: KerasLayer) -> Tensor:
        x = layer.x
        stated = _numbers(layer, 1, "axis")
        axes = range(len(x.shape)) if stated is None else stated
        keeps = layer.named.get("keepdims", layer.setting("keepdims", False))
        return layer.emit(op(layer.node.axes(tuple(axes), len(x.shape)), bool(keeps)), x)

    return read


def _reshape(layer: KerasLayer) -> Tensor:
    x, shape = layer.x, list(_numbers(layer, 1, "newshape") or ())
    if shape.count(-1) == 1:
        rest = math.prod(n for n in shape if n != -1)
        shape[shape.index(-1)] = x.type.elements // rest if rest else 0
    if math.prod(shape) != x.type.elements:
        raise layer.malformed(f"the target shape {tuple(shape)} for an input of shape {x.shape}")
    return reshaped(layer.node, x, *shape)


def _transpose(layer: KerasLayer) -> Tensor:
    rank = len(layer.x.shape)
    order = _numbers(layer, 1, "axes") or tuple(range(rank))[::-1]
    if sorted(order) != list(range(rank)):
        raise layer.malformed(f"the order of axes {order} for the shape {layer.x.shape}")
    return transposed(layer.node, layer.x, order)


def _expand_dims(layer: KerasLayer) -> Tensor:
    shape = list(layer.x.shape)
    axes = _numbers(layer, 1, "axis") or (0,)
    for axis in layer.node.axes(axes, len(shape) + len(axes)):
        shape.insert(axis, 1)
    return reshaped(layer.node, layer.x, *shape)


def _squeeze(layer: KerasLayer) -> Tensor:
    shape, stated = layer.x.shape, _numbers(layer, 1, "axis")
    axes = [n for n, size in enumerate(shape) if size == 1]
    if stated is not None:
        axes = list(layer.node.axes(stated, len(shape)))
    if any(shape[axis] != 1 for axis in axes):
        raise layer.malformed(f"the axes {axes} of the shape {shape}", "axes of one element")
    return reshaped(layer.node, layer.x, *(n for axis, n in enumerate(shape) if axis not in axes))


def _concatenate(layer: KerasLayer) -> Tensor:
    tensors = layer.inputs
    if not tensors:
        raise layer.malformed("it is called without tensors")
    (axis,) = _numbers(layer, 1, "axis") or (0,)
    return joined(layer.node, tensors, layer.node.axis(axis, len(tensors[0].shape)))


def _stack(layer: KerasLayer) -> Tensor:
    (axis,) = _numbers(layer, 1, "axis") or (0,)
    if not layer.inputs:
        raise layer.malformed("it is called without tensors")
    return stacked(layer.node, layer.inputs, axis)


def _where(layer: KerasLayer) -> Tensor:
    condition, *values = (layer.argument(n, name) for n, name in
                          enumerate(("condition", "x1", "x2")))  # fmt: skip
    flags = layer.as_tensor(condition)
    own = [v if isinstance(v, int | float) else layer.as_tensor(v) for v in values]
    if flags is None or None in own or not any(isinstance(v, Tensor) for v in own):
        raise layer.malformed("it is called without a condition and tensors to choose from")
    a, b = (float(v) if isinstance(v, int | float) else v for v in own if v is not None)
    if flags.dtype is not DType.BOOL:
        flags = layer.emit(CastTo(), flags, dtype=DType.BOOL)
    return arithmetic.choose(layer.node, flags, a, b)


def _cast(layer: KerasLayer) -> Tensor:
    name = layer.argument(1, "dtype") or layer.setting("dtype")
    floats = ("float16", "bfloat16", "float64")
    known = {**{t.value: t for t in DType}, **dict.fromkeys(floats, DType.FLOAT32)}
    dtype = known.get(name) if isinstance(name, str) else None
    if dtype is None:
        raise layer.malformed(f"it converts to {name!r}", ", ".join(known))
    return layer.x if dtype is layer.x.dtype else layer.emit(CastTo(), layer.x, dtype=dtype)


def _filled(value: int) -> _Read:
    def read(layer: KerasLayer) -> Tensor:
        name = layer.argument(1, "dtype") or layer.setting("dtype") or layer.x.dtype.value
        if name not in (*(dtype.value for dtype in DType),):
            raise layer.malformed(
                f"its result has the type {name!r}", ", ".join(t.value for t in DType)
            )
        layer.node.check_room(*layer.x.shape)
        return layer.node.constant(np.full(layer.x.shape, value, str(name)))

    return read


def _clip(layer: KerasLayer) -> Tensor:
    x = layer.x
    low, high = layer.number("x_min"), layer.number("x_max")
    return arithmetic.least(layer.node, arithmetic.most(layer.node, x, low), high)


def _get_item(layer: KerasLayer) -> Tensor:
    """Read x[…]: numbers, slices and an ellipsis; a number takes its axis away."""
    x, key = layer.x, layer.argument(1, "key")
    entries: list[Operand] = [*key] if isinstance(key, tuple) else [key]
    gaps = [n for n, entry in enumerate(entries) if _is_object(entry, "__ellipsis__")]
    missing = len(x.shape) - sum(entry is not None for entry in entries) + len(gaps)
    if len(gaps) > 1 or missing < 0:
        raise layer.malformed(f"{len(entries)} indices for the shape {x.shape}")
    at = gaps[0] if gaps else len(entries)
    whole: Operand = {"class_name": "__slice__", "config": {}}
    entries[at : at + len(gaps)] = [whole] * missing
    begin, strides, extent, shape = [], [], [], []
    sizes = iter(x.shape)
    for entry in entries:
        if entry is None:
            shape.append(1)
            continue
        size = next(sizes)
        if isinstance(entry, int):
            begin.append(layer.node.axis(entry, size))
            strides.append(1)
            extent.append(1)
            continue
        part = range(size)[_slice(layer, entry)]
        begin.append(part.start if len(part) else 0)
        strides.append(part.step)
        extent.append(len(part))
        shape.append(len(part))
    return reshaped(layer.node, strided(layer.node, x, begin, strides, extent), *shape)


def _is_object(value: Operand, name: str) -> bool:
    return isinstance(value, Mapping) and value.get("class_name") == name


def _slice(layer: KerasLayer, value: Operand) -> slice:
    config = value.get("config") if isinstance(value, Mapping) else None
    if not _is_object(value, "__slice__") or not isinstance(config, Mapping):
        raise layer.unsupported("its indices are computed", "numbers and slices",
                                "select the elements in the application")  # fmt: skip
    ends = [config.get(name) for name in ("start", "stop", "step")]
    if not all(end is None or isinstance(end, int) for end in ends) or ends[2] == 0:
        raise layer.malformed(f"the slice {ends}", "whole numbers")
    return slice(*ends)


def _einsum(layer: KerasLayer) -> Tensor:
    tensors = [x for x in map(layer.as_tensor, layer.positional) if x is not None]
    return layer.onnx("Einsum", *tensors, equation=layer.word("subscripts"))


def _softmax(layer: KerasLayer) -> Tensor:
    (axis,) = _numbers(layer, 1, "axis") or (-1,)
    return layer.onnx("Softmax", layer.x, axis=axis)


_ONE_OF_ONNX = {
    "Absolute": "Abs", "Abs": "Abs", "Exp": "Exp", "Log": "Log", "Sqrt": "Sqrt", "Sin": "Sin",
    "Cos": "Cos", "Tan": "Tan", "Arctan": "Atan", "Sinh": "Sinh", "Cosh": "Cosh", "Tanh": "Tanh",
    "Floor": "Floor", "Ceil": "Ceil", "Sign": "Sign", "Erf": "Erf", "LogicalNot": "Not",
    "Softsign": "Softsign", "Identity": "Identity",
}  # fmt: skip
_TWO_OF_ONNX = {
    "Add": "Add", "Subtract": "Sub", "Multiply": "Mul", "Divide": "Div", "TrueDivide": "Div",
    "Maximum": "Max", "Minimum": "Min", "Power": "Pow", "Matmul": "MatMul", "Equal": "Equal",
    "Greater": "Greater", "GreaterEqual": "GreaterOrEqual", "Less": "Less",
    "LessEqual": "LessOrEqual", "LogicalAnd": "And", "LogicalOr": "Or",
}  # fmt: skip
_ACTIVATIONS = {
    "Relu": "relu", "Relu6": "relu6", "Sigmoid": "sigmoid", "Silu": "silu", "Softplus": "softplus",
    "HardSigmoid": "hard_sigmoid", "HardSilu": "hard_silu", "LogSigmoid": "log_sigmoid",
    "Mish": "mish", "HardTanh": "hard_tanh", "Selu": "selu",
}  # fmt: skip
_REDUCTIONS = {
    "Mean": Mean, "Sum": Sum, "Max": ReduceMax, "Min": ReduceMin, "Any": ReduceAny,
    "All": ReduceAll, "Prod": ReduceProd,
}  # fmt: skip

KERAS_OPERATIONS: Mapping[str, KerasReader] = MappingProxyType({
    name: KerasReader(name, read)
    for name, read in (
        *((name, _unary(operator)) for name, operator in _ONE_OF_ONNX.items()),
        *((name, _binary(operator)) for name, operator in _TWO_OF_ONNX.items()),
        *((name, _function(function)) for name, function in _ACTIVATIONS.items()),
        *((name, _reduced(op)) for name, op in _REDUCTIONS.items()),
        ("Negative", lambda layer: layer.emit(Neg(), layer.x)),
        ("Square", lambda layer: layer.emit(Square(), layer.x)),
        ("Rsqrt", lambda layer: layer.emit(Rsqrt(), layer.x)),
        ("NotEqual", _not_equal),
        ("Reshape", _reshape),
        ("Transpose", _transpose),
        ("ExpandDims", _expand_dims),
        ("Squeeze", _squeeze),
        ("Concatenate", _concatenate),
        ("Stack", _stack),
        ("Where", _where),
        ("ZerosLike", _filled(0)),
        ("OnesLike", _filled(1)),
        ("Cast", _cast),
        ("Clip", _clip),
        ("GetItem", _get_item),
        ("Einsum", _einsum),
        ("Softmax", _softmax),
    )
})  # fmt: skip
"""Readers of functions by the names of their classes."""
