"""Small TFLite models for the tests of the reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from microtir.errors import MicrotirError, UnsupportedModelError
from microtir.frontend import from_tflite
from microtir.graph.ir import Graph, Node
from microtir.operators.common.tflite_schema import BuiltinOperator, Options
from microtir.writers.tflite import OPTIONAL_INPUT, TfliteBuilder


@dataclass(frozen=True)
class Value:
    """A tensor of a model in the making; a constant if it has data."""

    shape: tuple[int, ...]
    dtype: npt.DTypeLike = np.float32
    data: npt.ArrayLike | None = None
    scales: tuple[float, ...] | None = None
    zero_points: tuple[int, ...] | None = None
    axis: int | None = None
    name: str | None = None
    signature: tuple[int, ...] = ()


def ints(*numbers: int, dtype: npt.DTypeLike = np.int32) -> Value:
    """A constant list of integers."""
    return Value((len(numbers),), dtype, np.array(numbers, dtype))


def scalar(number: float, dtype: npt.DTypeLike = np.int32) -> Value:
    """A constant of no dimensions."""
    return Value((), dtype, np.array(number, dtype))


def zeros(*shape: int, dtype: npt.DTypeLike = np.float32, **rest: object) -> Value:
    """A constant of zeros."""
    return Value(shape, dtype, np.zeros(shape, dtype), **rest)  # type: ignore[arg-type]


def int8(*shape: int, scale: float = 0.5, zero_point: int = 3, **rest: object) -> Value:
    """A quantised activation."""
    return Value(shape, np.int8, None, (scale,), (zero_point,), **rest)  # type: ignore[arg-type]


def add(builder: TfliteBuilder, value: Value, name: str) -> int:
    """Add a tensor to a builder."""
    return builder.tensor(
        value.name if value.name is not None else name,
        value.shape,
        value.dtype,
        value.data,
        value.scales,
        value.zero_points,
        value.axis,
        shape_signature=value.signature,
    )


def model(
    code: BuiltinOperator,
    inputs: Sequence[Value | None],
    outputs: Value | Sequence[Value],
    options: Options | None = None,
) -> bytes:
    """A model of one operator; inputs without data are the model's inputs."""
    builder = TfliteBuilder()
    results = [outputs] if isinstance(outputs, Value) else list(outputs)
    operands = [
        OPTIONAL_INPUT if value is None else add(builder, value, f"x{i}")
        for i, value in enumerate(inputs)
    ]
    written = [add(builder, value, f"y{i}") for i, value in enumerate(results)]
    builder.operator(code, operands, written, options)
    fed = [i for i, v in zip(operands, inputs, strict=True) if v is not None and v.data is None]
    return builder.build(list(dict.fromkeys(fed)), written)


def read(data: bytes) -> Graph:
    """The graph of a model that is supported."""
    graph = from_tflite(data).graph
    assert graph is not None
    return graph


def read_node(
    code: BuiltinOperator,
    inputs: Sequence[Value | None],
    outputs: Value | Sequence[Value],
    options: Options | None = None,
) -> Node:
    """The only node of the model of one operator."""
    (node,) = read(model(code, inputs, outputs, options)).nodes
    return node


def refusal(data: bytes) -> str:
    """The text of the only problem of a model."""
    with pytest.raises(MicrotirError) as caught:
        from_tflite(data)
    error = caught.value
    if not isinstance(error, UnsupportedModelError):
        return str(error)
    (problem,) = error.problems
    return str(problem)
