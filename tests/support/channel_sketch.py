"""Sketches whose activations have a scale for each index of an axis."""

from __future__ import annotations

import zlib

import numpy as np
import numpy.typing as npt

from microtir.operators.common.tflite_schema import TfliteActivation
from tests.support.operator_cases import OPERATORS
from tests.support.sketch import Array, Case, Quant, Shape, Sketch


class ChannelSketch(Sketch):
    """A sketch with scales along the last axis of inputs, of outputs, or of both."""

    of_inputs, of_outputs = True, True
    ratio = 1.0
    """What the scales of outputs are multiplied by."""

    def tensor(
        self, name: str, shape: Shape, dtype: npt.DTypeLike, quant: Quant | None = None,
        data: Array | None = None, *, is_variable: bool = False,
    ) -> int:  # fmt: skip
        is_output = name.startswith("output")
        axes = [axis for axis, extent in enumerate(shape) if extent > 1]
        is_wanted = self.of_outputs if is_output else self.of_inputs
        is_narrow = np.dtype(dtype) in (np.int8, np.uint8, np.int16) and data is None
        if not (is_wanted and is_narrow and axes):
            return super().tensor(name, shape, dtype, quant, data, is_variable=is_variable)
        count, step = shape[axes[-1]], 0.01 * (self.ratio if is_output else 1)
        scales = [step * (1 + index) for index in range(count)]
        return self._builder.tensor(name, shape, dtype, None, scales, [0] * count, axes[-1])

    def activation(self) -> TfliteActivation:
        """Choose none: LiteRT would divide its bounds by a scale of 0."""
        return TfliteActivation.NONE


class ChannelsIn(ChannelSketch):
    """Only inputs have several scales."""

    of_outputs = False


class ChannelsOut(ChannelSketch):
    """Only outputs have several scales."""

    of_inputs = False


class OtherChannels(ChannelSketch):
    """Outputs have twice the scales."""

    ratio = 2.0


KINDS = (ChannelSketch, ChannelsIn, ChannelsOut, OtherChannels)


def channel_case(operator: str, dtype: str, kind: type[ChannelSketch], seed: int) -> Case:
    """Draw a model of one operator."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{operator} {dtype} channels".encode())])
    name = f"{operator.lower()}_{dtype}_{kind.__name__}_{seed}".lower()
    return OPERATORS[operator].recipe(kind(name, operator, np.dtype(dtype), rng))
