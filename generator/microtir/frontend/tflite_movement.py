"""Readers of operators that move elements without computing."""

from __future__ import annotations

import math

from microtir.frontend.operands import Converted, Operands
from microtir.frontend.tflite_file import brief
from microtir.frontend.tflite_schema import (
    BuiltinOperator,
    ConcatenationOptions,
    ReshapeOptions,
    SplitOptions,
    SqueezeOptions,
)
from microtir.graph.ops import Concatenation, Pad, Reshape, Split, Transpose


def pad(operands: Operands) -> Converted:
    """PAD and PADV2: data, (before, after) per dimension, for PADV2 the value."""
    data = operands.input(0)
    rank = len(data.shape)
    paddings = operands.integers(1, "the paddings")
    if len(paddings) != 2 * rank:
        raise operands.malformed(f"the paddings are {paddings}", f"{rank} pairs of numbers")
    before, after = paddings[0::2], paddings[1::2]
    value = _pad_constant(operands) if operands.code is BuiltinOperator.PADV2 else _zero(operands)
    return Converted(Pad(before, after, value), (data,))


def _zero(operands: Operands) -> float:
    """The stored value of the real number 0."""
    quantization = operands.output.type.quantization
    if quantization is None or quantization.is_per_channel:
        return 0.0
    return float(quantization.zero_point)


def _pad_constant(operands: Operands) -> float:
    constant = operands.input(2)
    if constant.data is None:
        raise operands.unsupported(
            f"the model computes the value to pad with (input 2 {brief(constant.name)!r})",
            "a constant",
            "pad with a fixed value",
        )
    if constant.type.elements != 1 or constant.dtype is not operands.input(0).dtype:
        raise operands.malformed(
            f"the value to pad with is {constant.dtype.value} of shape {constant.shape}",
            f"one {operands.input(0).dtype.value}",
        )
    value = constant.data.reshape(-1)[0].item()
    if isinstance(value, int) and float(value) != value:
        raise operands.unsupported(
            f"the value to pad with is {value}", "integers up to 2^53", "pad with a smaller number"
        )
    return float(value)


def concatenation(operands: Operands) -> Converted:
    """CONCATENATION."""
    options = operands.table(ConcatenationOptions)
    operands.no_activation(options.activation)
    tensors = operands.present
    axis = operands.axis(options.axis, len(tensors[0].shape))
    return Converted(Concatenation(axis), tensors)


def split(operands: Operands) -> Converted:
    """SPLIT: axis, data."""
    data = operands.input(1)
    axis = operands.axis(operands.integer(0, "the axis"), len(data.shape))
    parts = operands.table(SplitOptions).num_splits
    if parts != len(operands.outputs):
        raise operands.malformed(f"num_splits is {parts}", f"its {len(operands.outputs)} outputs")
    return Converted(Split(axis), (data,))


def transpose(operands: Operands) -> Converted:
    """TRANSPOSE: data, permutation."""
    data = operands.input(0)
    rank = len(data.shape)
    named = operands.integers(1, "the permutation")
    permutation = tuple(operands.axis(axis, rank) for axis in named)
    return Converted(Transpose(permutation), (data,))


def reshape(operands: Operands) -> Converted:
    """RESHAPE: data and the shape as a constant, an option, or both (then the input counts).

    The shape may hold one -1.  A shape that the model computes is what converters make of a
    batch of any size; with the batch fixed, the shape that is stored for the output holds.
    """
    data = operands.input(0)
    shape = operands.table(ReshapeOptions).new_shape
    given = operands.optional(1)
    if given is not None:
        if given.data is None:
            return Converted(Reshape(), (data,))
        shape = operands.integers(1, "the shape")
    # Old converters write (0,) for a scalar.
    shape = () if shape == (0,) else shape
    unknown = [axis for axis, extent in enumerate(shape) if extent == -1]
    if len(unknown) > 1 or any(extent < -1 for extent in shape):
        raise operands.malformed(f"the new shape is {shape}", "one -1 at most")
    if unknown:
        known = -math.prod(shape)
        missing = data.type.elements // known if known else 0
        shape = tuple(missing if extent == -1 else extent for extent in shape)
    return Converted(Reshape(), (data,), shape)


def squeeze(operands: Operands) -> Converted:
    """SQUEEZE: drops the named dimensions of one element, or all of them."""
    data = operands.input(0)
    named = operands.table(SqueezeOptions).squeeze_dims
    rank = len(data.shape)
    axes = {operands.axis(axis, rank) for axis in named}
    if not named:
        axes = {axis for axis, extent in enumerate(data.shape) if extent == 1}
    if any(data.shape[axis] != 1 for axis in axes):
        raise operands.malformed(
            f"dimensions {named} of {data.shape} cannot be dropped", "dimensions of extent 1"
        )
    kept = tuple(extent for axis, extent in enumerate(data.shape) if axis not in axes)
    return Converted(Reshape(), (data,), kept)


def expand_dims(operands: Operands) -> Converted:
    """EXPAND_DIMS: data, axis."""
    shape = operands.input(0).shape
    axis = operands.axis(operands.integer(1, "the axis"), len(shape) + 1)
    return Converted(Reshape(), (operands.input(0),), (*shape[:axis], 1, *shape[axis:]))
