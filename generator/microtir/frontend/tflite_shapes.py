"""Shapes that a model computes for each run, known as soon as its batch is.

A converter that leaves the batch free writes operators that read the shape of a tensor, compute
another one from it and hand that to a RESHAPE; for the tensors behind it stores 1 where an extent
depends on the batch.  The batch is 1 here: what is computed from constants and from known shapes is
itself known, and takes the place of what is stored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from microtir.errors import MicrotirError
from microtir.frontend.stored_integers import INTEGERS, stored_integers
from microtir.frontend.tflite_file import OPTIONAL, FileGraph, FileOperator, FileTensor
from microtir.frontend.tflite_options import read_options
from microtir.graph.ir import Array
from microtir.operators import OPERATORS
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, TfliteActivation
from microtir.operators.indexing.tflite import GatherOptions
from microtir.operators.movement import tflite
from microtir.operators.reduction.tflite import ReducerOptions

LARGEST_SHAPE = 64
"""Most elements of a tensor whose values are read for shapes; weights are not."""

_OPTIONS: Mapping[BuiltinOperator | str, type[Options]] = MappingProxyType(
    {reader.code: reader.options for record in OPERATORS for reader in record.tflite}
)

_Rule: TypeAlias = Callable[[Options, list[Array]], "Array | None"]


def is_free(tensor: FileTensor) -> bool:
    """Return whether extents of a tensor depend on the batch; 1 is stored for them."""
    return len(tensor.signature) == len(tensor.shape) and -1 in tensor.signature


def fits(tensor: FileTensor, shape: Sequence[int]) -> bool:
    """Return whether a shape differs from the stored one only in what depends on the batch."""
    return len(shape) == len(tensor.shape) and all(
        extent == stored or wanted == -1
        for extent, stored, wanted in zip(shape, tensor.shape, tensor.signature, strict=True)
    )


def completed(tensor: FileTensor, elements: int) -> tuple[int, ...] | None:
    """Return the shape of a tensor of so many elements; None if several extents are unknown."""
    known = math.prod(extent for extent in tensor.signature if extent != -1)
    if tensor.signature.count(-1) != 1 or known < 1 or elements % known:
        return None
    return tuple(elements // known if extent == -1 else extent for extent in tensor.signature)


class ShapeValues:
    """Small tensors of integers whose values are known.

    Args:
        graph: of the file.
        shape_of: the shape of a tensor, None while it is not known.
    """

    def __init__(self, graph: FileGraph, shape_of: Callable[[int], tuple[int, ...] | None]) -> None:
        self._graph = graph
        self._shape_of = shape_of
        self._computed: dict[int, Array] = {}

    def get(self, index: int) -> Array | None:
        """Return what an operator has computed, if it is known."""
        return self._computed.get(index)

    def know(self, index: int, value: Array) -> None:
        """Take the value of a tensor that another reader has computed."""
        if self._graph.tensors[index].type in INTEGERS:
            self._computed[index] = value

    def visit(self, operator: FileOperator) -> bool:
        """Compute the result of the next operator; whether that was possible.

        What is not possible is no error here: the operator may be read as any other one.
        """
        rule = _RULES.get(operator.code)
        if rule is None or len(operator.outputs) != 1:
            return False
        output = self._graph.tensors[operator.outputs[0]]
        if output.type not in INTEGERS or math.prod(output.shape) > LARGEST_SHAPE:
            return False
        try:
            options = read_options(operator, _OPTIONS[BuiltinOperator(operator.code)], "")
            value = self._result(operator, rule, options)
        except (MicrotirError, ValueError, IndexError, TypeError, OverflowError):
            return False
        if value is None or value.shape != output.shape or np.abs(value).max(initial=0) >= 1 << 31:
            return False
        # numpy gives a scalar, which has no flags, where an operator takes one number of a list.
        value = np.array(value, INTEGERS[output.type])
        value.flags.writeable = False
        self._computed[output.index] = value
        return True

    def _result(self, operator: FileOperator, rule: _Rule, options: Options) -> Array | None:
        if operator.code == BuiltinOperator.SHAPE:
            shape = self._shape_of(operator.inputs[0])
            return None if shape is None else np.array(shape, np.int64)
        values = [self._value(index) for index in operator.inputs]
        known = [value for value in values if value is not None]
        return rule(options, known) if len(known) == len(values) else None

    def _value(self, index: int) -> Array | None:
        """Return what is known of an input, as int64."""
        if index == OPTIONAL:
            return None
        tensor = self._graph.tensors[index]
        if index in self._computed:
            return self._computed[index].astype(np.int64)
        if 0 in tensor.shape and tensor.type in INTEGERS and not is_free(tensor):
            return np.empty(tensor.shape, np.int64)
        return None if math.prod(tensor.shape) > LARGEST_SHAPE else stored_integers(tensor)


def _gather(options: Options, inputs: list[Array]) -> Array | None:
    assert isinstance(options, GatherOptions)
    values, indices = inputs
    if options.batch_dims or not values.ndim or (indices < 0).any():
        return None
    return np.take(values, indices, axis=options.axis)


def _reduced(function: Callable[..., Array]) -> _Rule:
    """Reduce numbers along axes."""

    def apply(options: Options, inputs: list[Array]) -> Array:
        assert isinstance(options, ReducerOptions)
        values, axes = inputs
        named = tuple({int(axis) % max(values.ndim, 1) for axis in axes.reshape(-1)})
        return np.asarray(function(values, axis=named, keepdims=options.keep_dims))

    return apply


def _pack(options: Options, inputs: list[Array]) -> Array:
    assert isinstance(options, tflite.PackOptions)
    return np.stack(inputs, axis=options.axis)


def _concatenate(options: Options, inputs: list[Array]) -> Array:
    assert isinstance(options, tflite.ConcatenationOptions)
    return np.concatenate(inputs, axis=options.axis)


def _strided_slice(options: Options, inputs: list[Array]) -> Array | None:
    """Slice a list: shapes have no other form."""
    assert isinstance(options, tflite.StridedSliceOptions)
    values, *limits = inputs
    if any(limit.shape != (1,) for limit in limits) or values.ndim != 1:
        return None
    if options.ellipsis_mask or options.new_axis_mask or options.offset:
        return None
    begin, end, stride = (int(limit[0]) for limit in limits)
    first = None if options.begin_mask else begin
    if options.shrink_axis_mask:
        return np.asarray(values[first or 0])
    return np.asarray(values[first : None if options.end_mask else end : stride])


def _slice(_options: Options, inputs: list[Array]) -> Array | None:
    """Take a part, which may hold nothing."""
    values, begins, sizes = inputs
    ends = [
        extent if size == -1 else begin + size
        for begin, size, extent in zip(begins, sizes, values.shape, strict=True)
    ]
    if any(not 0 <= b <= e <= n for b, e, n in zip(begins, ends, values.shape, strict=True)):
        return None
    return np.asarray(values[tuple(map(slice, begins, ends))])


def _range(_options: Options, inputs: list[Array]) -> Array | None:
    start, limit, step = (int(number.item()) for number in inputs)
    numbers = range(start, limit, step)
    return np.array(numbers, np.int64) if len(numbers) <= LARGEST_SHAPE else None


def _fill(_options: Options, inputs: list[Array]) -> Array | None:
    shape = inputs[0].tolist()
    return np.full(shape, inputs[1].item()) if math.prod(shape) <= LARGEST_SHAPE else None


def _tile(_options: Options, inputs: list[Array]) -> Array | None:
    values, times = inputs
    elements = values.size * math.prod(times.tolist())
    return np.tile(values, times.tolist()) if elements <= LARGEST_SHAPE else None


def _negative(_options: Options, inputs: list[Array]) -> Array:
    return np.negative(inputs[0])


def _squeeze(options: Options, inputs: list[Array]) -> Array:
    assert isinstance(options, tflite.SqueezeOptions)
    return np.squeeze(inputs[0], axis=options.squeeze_dims or None)


def _expand_dims(_options: Options, inputs: list[Array]) -> Array:
    values, axis = inputs
    return np.expand_dims(values, int(axis.reshape(())))


def _reshape(_options: Options, inputs: list[Array]) -> Array | None:
    return inputs[0].reshape(tuple(inputs[1].tolist())) if len(inputs) == 2 else None


def _cast(_options: Options, inputs: list[Array]) -> Array:
    return inputs[0]


def _by(function: Callable[[Array, Array], Array]) -> _Rule:
    """Compute element by element."""

    def apply(options: Options, inputs: list[Array]) -> Array | None:
        first, second = inputs
        if getattr(options, "activation", TfliteActivation.NONE) is not TfliteActivation.NONE:
            return None
        return np.asarray(function(first, second))

    return apply


def _divided_by(function: Callable[[Array, Array], Array]) -> _Rule:
    """Divide element by element; nothing is known of a division by 0."""
    rule = _by(function)
    return lambda options, inputs: rule(options, inputs) if inputs[1].all() else None


def _shape(_options: Options, _inputs: list[Array]) -> Array | None:
    """Return None: SHAPE reads no values, and `ShapeValues` knows what it gives."""
    return None


_Code = BuiltinOperator

_RULES: Mapping[int, _Rule] = MappingProxyType(
    {
        _Code.SHAPE: _shape,
        _Code.GATHER: _gather,
        _Code.PACK: _pack,
        _Code.REDUCE_PROD: _reduced(np.prod),
        _Code.REDUCE_MAX: _reduced(np.max),
        _Code.REDUCE_MIN: _reduced(np.min),
        _Code.SUM: _reduced(np.sum),
        _Code.FLOOR_DIV: _divided_by(np.floor_divide),
        _Code.FLOOR_MOD: _divided_by(np.mod),
        _Code.NEG: _negative,
        _Code.RANGE: _range,
        _Code.FILL: _fill,
        _Code.TILE: _tile,
        _Code.SLICE: _slice,
        _Code.CONCATENATION: _concatenate,
        _Code.STRIDED_SLICE: _strided_slice,
        _Code.SQUEEZE: _squeeze,
        _Code.EXPAND_DIMS: _expand_dims,
        _Code.RESHAPE: _reshape,
        _Code.CAST: _cast,
        _Code.ADD: _by(np.add),
        _Code.SUB: _by(np.subtract),
        _Code.MUL: _by(np.multiply),
        _Code.MINIMUM: _by(np.minimum),
        _Code.MAXIMUM: _by(np.maximum),
    }
)
