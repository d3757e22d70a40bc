"""Streaming wake-word models, after the pattern of microWakeWord: rings of frames in resources.

Each ring is read, appended to and assigned within a run; the two generations of these models do it
in different orders (`Order`).  Weights are random: the models are as large as real ones, and know
no words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from microtir.frontend.tflite_variables import CallOnceOptions, VarHandleOptions
from microtir.operators.arithmetic.tflite import AddOptions
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Padding,
    TfliteActivation,
)
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import (
    ConcatenationOptions,
    ReshapeOptions,
    SplitOptions,
    StridedSliceOptions,
)
from microtir.writers.tflite import TfliteBuilder

Code = BuiltinOperator

_ZERO_POINT = -128
_SCALE = 0.02


class Order(Enum):
    """In which order a ring is updated."""

    APPEND_DROP = "read, append, drop the oldest, assign; what was appended to is computed with"
    DROP_APPEND = "read, drop the oldest, append, assign; what is assigned is computed with"


@dataclass(frozen=True)
class Shape:
    """The sizes of a model.

    Args:
        frames: of an input, as many as a run takes.
        features: of a frame.
        first: frames that the first convolution reaches over, and its channels.
        blocks: of each block the rows that its depthwise convolutions reach over, which share the
            channels, and its channels.
        last: rows that the dense layer reads.
    """

    frames: int = 3
    features: int = 40
    first: tuple[int, int] = (5, 32)
    blocks: tuple[tuple[tuple[int, ...], int], ...] = (((5,), 64), ((7, 11), 64), ((9, 15), 64))
    last: int = 16


def wake_word(order: Order, shape: Shape, seed: int = 0) -> bytes:
    """Return a model whose rings are updated in an order, with residual sums in the second."""
    model = _Model(order, np.random.default_rng(seed))
    x = model.tensor("frames", (1, shape.frames, shape.features))
    rows = model.reshaped(x, (1, shape.frames, 1, shape.features))
    reach, channels = shape.first
    rows = model.convolution(model.ring(rows, reach), channels)
    for reaches, channels in shape.blocks:
        rows = model.block(rows, reaches, channels)
    rows = model.ring(rows, shape.last)
    return model.finished(x, rows)


@dataclass
class _Model:
    """A model while it is written."""

    order: Order
    generator: np.random.Generator
    builder: TfliteBuilder = field(default_factory=TfliteBuilder)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.init = self.builder.subgraph("NoOp")
        self.init.define([], [])
        self.builder.operator(Code.CALL_ONCE, [], [], CallOnceOptions(self.init.number))

    def tensor(self, name: str, shape: tuple[int, ...], **quantization: Any) -> int:
        """Return an activation."""
        given = {"scales": [_SCALE], "zero_points": [_ZERO_POINT], **quantization}
        index = self.builder.tensor(f"{name}_{len(self.shapes)}", shape, np.int8, **given)
        self.shapes[index] = shape
        return index

    def reshaped(self, x: int, shape: tuple[int, ...]) -> int:
        y = self.tensor("reshaped", shape)
        self.builder.operator(Code.RESHAPE, [x], [y], ReshapeOptions(shape))
        return y

    def ring(self, new: int, rows: int) -> int:
        """Return the newest rows, as many as a convolution reaches over."""
        _, count, _, channels = self.shapes[new]
        if rows <= count:
            return new
        is_first = self.order is Order.APPEND_DROP
        kept = rows - count if is_first else rows
        variable = self._variable((1, kept, 1, channels))
        old = self.tensor("old", (1, kept, 1, channels))
        self.builder.operator(Code.READ_VARIABLE, [variable], [old])
        longer = self.tensor("longer", (1, rows, 1, channels))
        assigned = longer
        if is_first:
            self.builder.operator(Code.CONCATENATION, [old, new], [longer], ConcatenationOptions(1))
            assigned = self._rows_from(longer, count)
        else:
            later = self._rows_from(old, count)
            self.builder.operator(
                Code.CONCATENATION, [later, new], [longer], ConcatenationOptions(1)
            )
        self.builder.operator(Code.ASSIGN_VARIABLE, [variable, assigned], [])
        return longer

    def block(self, rows: int, reaches: Sequence[int], channels: int) -> int:
        """Return depthwise convolutions that share the channels, then one of single pixels."""
        longer = self.ring(rows, max(reaches))
        parts = self._split(longer, len(reaches))
        taken = [
            self._rows_from(part, max(reaches) - reach) if reach < max(reaches) else part
            for part, reach in zip(parts, reaches, strict=True)
        ]
        mixed = [self.depthwise(part) for part in taken]
        joined = mixed[0]
        if len(mixed) > 1:
            width = sum(self.shapes[part][-1] for part in mixed)
            joined = self.tensor("mixed", (1, 1, 1, width))
            self.builder.operator(Code.CONCATENATION, mixed, [joined], ConcatenationOptions(3))
        result = self.convolution(joined, channels)
        if self.order is Order.APPEND_DROP or self.shapes[rows] != self.shapes[result]:
            return result
        total = self.tensor("sum", self.shapes[result])
        self.builder.operator(Code.ADD, [rows, result], [total], AddOptions())
        return total

    def convolution(self, x: int, channels: int) -> int:
        """Return the one row of a convolution that reaches over all rows."""
        _, rows, _, depth = self.shapes[x]
        y = self.tensor("convolved", (1, 1, 1, channels))
        weights = self._weights((channels, rows, 1, depth), rows * depth, 0)
        options = Conv2DOptions(Padding.VALID, activation=TfliteActivation.RELU)
        self.builder.operator(Code.CONV_2D, [x, *weights], [y], options)
        return y

    def depthwise(self, x: int) -> int:
        """Return the one row of a depthwise convolution that reaches over all rows."""
        _, rows, _, channels = self.shapes[x]
        y = self.tensor("convolved", (1, 1, 1, channels))
        weights = self._weights((1, rows, 1, channels), rows, 3)
        options = DepthwiseConv2DOptions(Padding.VALID)
        self.builder.operator(Code.DEPTHWISE_CONV_2D, [x, *weights], [y], options)
        return y

    def finished(self, x: int, rows: int) -> bytes:
        """Return the file: a dense layer, a logistic function, and a probability as a byte."""
        flat = self.reshaped(rows, (1, int(np.prod(self.shapes[rows]))))
        size = self.shapes[flat][1]
        sums, chance = self.tensor("sums", (1, 1), zero_points=[0]), self.tensor("chance", (1, 1))
        weights = self.builder.tensor(
            "dense", (1, size), np.int8, self._random((1, size)), [_scale(size)], [0]
        )
        bias_scale = _SCALE * _scale(size)
        bias = self.builder.tensor("bias", (1,), np.int32, [40], [bias_scale], [0])
        options = FullyConnectedOptions()
        self.builder.operator(Code.FULLY_CONNECTED, [flat, weights, bias], [sums], options)
        chance = self.tensor("chance", (1, 1), scales=[1 / 256])
        self.builder.operator(Code.LOGISTIC, [sums], [chance])
        byte = self.builder.tensor("probability", (1, 1), np.uint8, None, [1 / 256], [0])
        self.builder.operator(Code.QUANTIZE, [chance], [byte])
        return self.builder.build([x], [byte])

    def _variable(self, shape: tuple[int, ...]) -> int:
        """Return the handle of a new ring, which begins at the zero point."""
        options = VarHandleOptions("", f"stream_{len(self.shapes)}/states")
        first = np.full(shape, _ZERO_POINT, np.int8)
        handles = [b.tensor("handle", (), "resource") for b in (self.builder, self.init)]
        for builder, handle in zip((self.builder, self.init), handles, strict=True):
            builder.operator(Code.VAR_HANDLE, [], [handle], options)
        value = self.init.tensor("first", shape, np.int8, first, [_SCALE], [_ZERO_POINT])
        self.init.operator(Code.ASSIGN_VARIABLE, [handles[1], value], [])
        return handles[0]

    def _rows_from(self, x: int, first: int) -> int:
        """Return all rows from one on."""
        _, rows, width, channels = self.shapes[x]
        y = self.tensor("rows", (1, rows - first, width, channels))
        corners = [(0, first, 0, 0), (0, 0, 0, 0), (1, 1, 1, 1)]
        bounds = [self.builder.tensor("corner", (4,), np.int32, c) for c in corners]
        options = StridedSliceOptions(begin_mask=0b1101, end_mask=0b1111)
        self.builder.operator(Code.STRIDED_SLICE, [x, *bounds], [y], options)
        return y

    def _split(self, x: int, count: int) -> list[int]:
        if count == 1:
            return [x]
        *outer, channels = self.shapes[x]
        axis = self.builder.tensor("axis", (), np.int32, 3)
        parts = [self.tensor("part", (*outer, channels // count)) for _ in range(count)]
        self.builder.operator(Code.SPLIT, [axis, x], parts, SplitOptions(count))
        return parts

    def _weights(self, shape: tuple[int, ...], terms: int, axis: int) -> tuple[int, int]:
        """Return weights and a bias, with a scale for each channel along `axis`."""
        channels = shape[axis]
        scales = _scale(terms) * self.generator.uniform(0.7, 1.3, channels)
        weights = self.builder.tensor(
            "weights", shape, np.int8, self._random(shape), scales, axis=axis
        )
        data = self.generator.integers(-900, 900, channels)
        bias = self.builder.tensor("bias", (channels,), np.int32, data, scales * _SCALE, axis=0)
        return weights, bias

    def _random(self, shape: tuple[int, ...]) -> Any:
        return self.generator.integers(-127, 128, shape)


def _scale(terms: int) -> float:
    """Return a scale of weights with which sums of so many terms neither vanish nor saturate."""
    return 0.02 / float(np.sqrt(terms))
