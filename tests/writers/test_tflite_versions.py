"""The version that an operator carries: TFLite's converter gives it by types and options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pytest

from microtir.operators.arithmetic.tflite import AddOptions, SubOptions
from microtir.operators.common.tflite_schema import BuiltinOperator, Options, WeightsFormat
from microtir.operators.convolution.tflite import DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import StridedSliceOptions
from microtir.operators.resize.tflite import ResizeBilinearOptions, ResizeNearestNeighborOptions
from microtir.writers.tflite import TfliteBuilder

Op = BuiltinOperator
Spec: TypeAlias = tuple[str, int] | tuple[str, int, Sequence[float]]


def _version(
    code: BuiltinOperator,
    inputs: Sequence[Spec],
    output: Spec,
    options: Options | None = None,
) -> int:
    import tflite

    builder = TfliteBuilder()

    def tensor(spec: Spec) -> int:
        scales = spec[2] if len(spec) == 3 else None
        axis = None if scales is None else 0
        shape = [1] * spec[1]
        shape[0] = 1 if scales is None else len(scales)
        return builder.tensor("t", shape, spec[0], scales=scales, axis=axis)

    operands = [tensor(spec) for spec in inputs]
    result = tensor(output)
    builder.operator(code, operands, [result], options)
    model = tflite.Model.GetRootAs(builder.build([], [result]))
    return int(model.OperatorCodes(0).Version())


F4, I4 = ("float32", 4), ("int8", 4)
HYBRID = ("int8", 4, [1.0, 2.0])


@pytest.mark.parametrize(
    ("code", "inputs", "output", "options", "version"),
    [
        (Op.CONV_2D, [F4, F4], F4, None, 1),
        (Op.CONV_2D, [I4, I4], I4, None, 3),
        (Op.CONV_2D, [F4, I4], F4, None, 2),
        (Op.CONV_2D, [F4, HYBRID], F4, None, 5),
        (Op.CONV_2D, [("int16", 4), I4], ("int16", 4), None, 4),
        (Op.DEPTHWISE_CONV_2D, [F4, F4], F4, None, 1),
        (Op.DEPTHWISE_CONV_2D, [F4, F4], F4, DepthwiseConv2DOptions(dilation_h=2), 2),
        (Op.DEPTHWISE_CONV_2D, [I4, I4], I4, None, 3),
        (Op.DEPTHWISE_CONV_2D, [F4, I4], F4, None, 4),
        (Op.DEPTHWISE_CONV_2D, [F4, HYBRID], F4, None, 6),
        (Op.DEPTHWISE_CONV_2D, [("int16", 4), I4], ("int16", 4), None, 5),
        (Op.FULLY_CONNECTED, [F4, F4, F4], F4, None, 1),
        (
            Op.FULLY_CONNECTED,
            [F4, F4, F4],
            F4,
            FullyConnectedOptions(weights_format=WeightsFormat.SHUFFLED_4X16_INT8),
            2,
        ),
        (Op.FULLY_CONNECTED, [F4, I4, F4], F4, None, 3),
        (Op.FULLY_CONNECTED, [I4, I4, ("int32", 1)], I4, None, 4),
        (Op.FULLY_CONNECTED, [I4, I4, I4], I4, FullyConnectedOptions(keep_num_dims=True), 5),
        (Op.FULLY_CONNECTED, [I4, I4], I4, None, 6),
        (Op.FULLY_CONNECTED, [("int16", 2), I4, F4], ("int16", 2), None, 7),
        (
            Op.FULLY_CONNECTED,
            [F4, I4, F4],
            F4,
            FullyConnectedOptions(asymmetric_quantize_inputs=True),
            9,
        ),
        (Op.FULLY_CONNECTED, [F4, HYBRID, F4], F4, None, 12),
        (Op.ADD, [I4, I4], I4, None, 2),
        (Op.ADD, [("int16", 4), F4], F4, AddOptions(pot_scale_int16=False), 3),
        (Op.ADD, [("int64", 4), F4], F4, None, 4),
        (Op.SUB, [("int16", 4), F4], F4, SubOptions(pot_scale_int16=False), 5),
        (Op.SUB, [("float32", 5), F4], F4, None, 3),
        (Op.MUL, [("int8", 4, [0.5])] * 2, ("int8", 4, [0.5]), None, 2),
        (Op.MUL, [("int8", 4, [2.0])] * 2, ("int8", 4, [0.5]), None, 3),
        (Op.MAX_POOL_2D, [("int16", 4)], ("int16", 4), None, 3),
        (Op.SPLIT, [("int32", 1), I4], I4, None, 2),
        (Op.PAD, [("int8", 5), ("int32", 2)], ("int8", 5), None, 4),
        (Op.STRIDED_SLICE, [I4], I4, None, 2),
        (Op.STRIDED_SLICE, [I4], I4, StridedSliceOptions(new_axis_mask=1), 6),
        (Op.STRIDED_SLICE, [I4], I4, StridedSliceOptions(offset=True), 8),
        (Op.RESIZE_BILINEAR, [I4], I4, ResizeBilinearOptions(align_corners=True), 2),
        (Op.RESIZE_BILINEAR, [F4], F4, ResizeBilinearOptions(half_pixel_centers=True), 3),
        (
            Op.RESIZE_NEAREST_NEIGHBOR,
            [F4],
            F4,
            ResizeNearestNeighborOptions(align_corners=True),
            3,
        ),
        (Op.LEAKY_RELU, [I4], I4, None, 1),
        (Op.HARD_SWISH, [I4], I4, None, 1),
        (Op.DEQUANTIZE, [I4], F4, None, 2),
        (Op.DEQUANTIZE, [HYBRID], F4, None, 5),
        (Op.DEQUANTIZE, [("float16", 4)], F4, None, 3),
        (Op.QUANTIZE, [F4], I4, None, 1),
        (Op.QUANTIZE, [F4], ("int16", 4), None, 2),
        (Op.QUANTIZE, [F4], HYBRID, None, 3),
        (Op.CAST, [("int32", 1)], F4, None, 1),
        (Op.CAST, [("uint32", 1)], F4, None, 2),
        (Op.CAST, [("uint8", 1)], I4, None, 3),
        (Op.CAST, [("uint16", 1)], I4, None, 4),
        (Op.CAST, [("float64", 1)], I4, None, 5),
    ],
)
def test_versions(
    code: BuiltinOperator,
    inputs: Sequence[Spec],
    output: Spec,
    options: Options | None,
    version: int,
) -> None:
    """An operator carries the version that TFLite's converter gives to its types and options."""
    assert _version(code, inputs, output, options) == version


def test_version_can_be_forced() -> None:
    """A test of a reader can write a version from the future."""
    import tflite

    builder = TfliteBuilder()
    x = builder.tensor("x", (1,), np.float32)
    builder.operator(Op.RELU, [x], [x], version=99)
    assert tflite.Model.GetRootAs(builder.build([x], [x])).OperatorCodes(0).Version() == 99
