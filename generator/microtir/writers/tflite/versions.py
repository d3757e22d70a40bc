"""The version number that TFLite gives to an operator, from its types and options.

A reader refuses an operator whose version it does not know, so a model carries the lowest
version that covers what it uses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from microtir.operators.arithmetic.tflite import AddOptions, SubOptions
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    TfliteType,
    WeightsFormat,
)
from microtir.operators.convolution.tflite import Conv2DOptions, DepthwiseConv2DOptions
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.movement.tflite import StridedSliceOptions
from microtir.operators.resize.tflite import ResizeBilinearOptions, ResizeNearestNeighborOptions


@dataclass(frozen=True, slots=True)
class Operand:
    """Element type, rank and scales of a tensor, on which the version of an operator depends."""

    type: TfliteType
    rank: int
    scales: tuple[float, ...] = ()


_INT8 = MappingProxyType({TfliteType.INT8: 2})
_INT8_INT16 = MappingProxyType({TfliteType.INT8: 2, TfliteType.INT16: 3})
_RESIZE = MappingProxyType({TfliteType.INT8: 2, TfliteType.INT16: 4})

# Version by the type of the first data operand; an absent type means version 1.
_BY_TYPE: Mapping[BuiltinOperator, Mapping[TfliteType, int]] = MappingProxyType(
    {
        BuiltinOperator.ADD: _INT8,
        BuiltinOperator.AVERAGE_POOL_2D: _INT8_INT16,
        BuiltinOperator.CONCATENATION: _INT8_INT16,
        BuiltinOperator.DEQUANTIZE: MappingProxyType(
            {TfliteType.INT8: 2, TfliteType.INT16: 3, TfliteType.FLOAT16: 3}
        ),
        BuiltinOperator.LEAKY_RELU: MappingProxyType({TfliteType.INT16: 2}),
        BuiltinOperator.LOGISTIC: _INT8_INT16,
        BuiltinOperator.LOG_SOFTMAX: _INT8,
        BuiltinOperator.MAX_POOL_2D: _INT8_INT16,
        BuiltinOperator.MAXIMUM: MappingProxyType({TfliteType.INT8: 2, TfliteType.INT16: 4}),
        BuiltinOperator.MEAN: _INT8_INT16,
        BuiltinOperator.MINIMUM: MappingProxyType({TfliteType.INT8: 2, TfliteType.INT16: 4}),
        BuiltinOperator.MUL: MappingProxyType(
            {TfliteType.INT8: 2, TfliteType.INT16: 4, TfliteType.INT64: 5, TfliteType.UINT32: 7}
        ),
        BuiltinOperator.PAD: MappingProxyType(
            {TfliteType.INT8: 2, TfliteType.INT16: 3, TfliteType.BOOL: 5}
        ),
        BuiltinOperator.PADV2: MappingProxyType(
            {TfliteType.INT8: 2, TfliteType.INT16: 3, TfliteType.BOOL: 5}
        ),
        BuiltinOperator.RELU: MappingProxyType(
            {TfliteType.INT8: 2, TfliteType.UINT8: 2, TfliteType.INT16: 3}
        ),
        BuiltinOperator.RELU6: _INT8_INT16,
        BuiltinOperator.RESIZE_BILINEAR: _RESIZE,
        BuiltinOperator.RESIZE_NEAREST_NEIGHBOR: _RESIZE,
        BuiltinOperator.SLICE: MappingProxyType(
            {TfliteType.INT8: 2, TfliteType.INT16: 4, TfliteType.UINT32: 6}
        ),
        BuiltinOperator.SOFTMAX: _INT8_INT16,
        BuiltinOperator.SPLIT: MappingProxyType(
            {TfliteType.INT8: 2, TfliteType.INT32: 3, TfliteType.INT16: 4}
        ),
        BuiltinOperator.STRIDED_SLICE: MappingProxyType(
            {TfliteType.INT8: 2, TfliteType.BOOL: 3, TfliteType.UINT32: 7}
        ),
        BuiltinOperator.SUB: _INT8,
        BuiltinOperator.TANH: _INT8_INT16,
        BuiltinOperator.TRANSPOSE: MappingProxyType(
            {TfliteType.INT8: 2, TfliteType.BOOL: 3, TfliteType.INT16: 5}
        ),
    }
)

_RANK_FIVE = MappingProxyType(
    {
        BuiltinOperator.MAXIMUM: 3,
        BuiltinOperator.MINIMUM: 3,
        BuiltinOperator.PAD: 4,
        BuiltinOperator.PADV2: 4,
        BuiltinOperator.SLICE: 5,
        BuiltinOperator.STRIDED_SLICE: 4,
        BuiltinOperator.SUB: 3,
        BuiltinOperator.TRANSPOSE: 4,
    }
)


def operator_version(
    code: BuiltinOperator,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand],
    options: Options,
) -> int:
    """Return the version for one use of `code`; an absent optional input is None."""
    if isinstance(options, Conv2DOptions | DepthwiseConv2DOptions):
        return _convolution(inputs, options)
    if isinstance(options, FullyConnectedOptions):
        return _fully_connected(inputs, options)
    if code is BuiltinOperator.CAST:
        return _cast(inputs, outputs)
    if code is BuiltinOperator.QUANTIZE:
        return _quantize(outputs)
    # The first input of SPLIT is its axis; what makes a variable has none.
    data = next(iter(inputs[1 if code is BuiltinOperator.SPLIT else 0 :]), None)
    if data is None:
        return 1
    version = _BY_TYPE.get(code, {}).get(data.type, 1)
    if isinstance(options, AddOptions | SubOptions):
        version = max(version, _sum(data, options))
    if code is BuiltinOperator.DEQUANTIZE and len(data.scales) > 1:
        version = 5
    if code is BuiltinOperator.MUL:
        version = max(version, _mul(inputs, outputs))
    if data.rank > 4:
        version = max(version, _RANK_FIVE.get(code, 1))
    return max(version, _by_options(options))


def _convolution(
    inputs: Sequence[Operand | None], options: Conv2DOptions | DepthwiseConv2DOptions
) -> int:
    depthwise = isinstance(options, DepthwiseConv2DOptions)
    data = inputs[0]
    if data is not None and data.type is TfliteType.INT8:
        return 7 if _is_int4(inputs[1]) else 3
    if data is not None and data.type is TfliteType.INT16:
        return 5 if depthwise else 4
    if _is_hybrid(inputs):
        if _per_channel(inputs[1]):
            return 6 if depthwise else 5
        return 4 if depthwise else 2
    return 2 if depthwise and (options.dilation_h, options.dilation_w) != (1, 1) else 1


def _fully_connected(inputs: Sequence[Operand | None], options: FullyConnectedOptions) -> int:
    data = inputs[0]
    hybrid = _is_hybrid(inputs)
    if hybrid and _per_channel(inputs[1]):
        return 12
    if data is not None and data.type is TfliteType.INT16:
        return 7
    if data is not None and data.type is TfliteType.INT8 and _is_int4(inputs[1]):
        return 10
    if len(inputs) == 2:
        return 6
    if options.keep_num_dims:
        return 5
    if data is not None and data.type is TfliteType.INT8:
        return 4
    if hybrid:
        return 9 if options.asymmetric_quantize_inputs else 3
    return 2 if options.weights_format is WeightsFormat.SHUFFLED_4X16_INT8 else 1


def _is_hybrid(inputs: Sequence[Operand | None]) -> bool:
    """Float activations with int8 weights."""
    types = [operand.type for operand in inputs[:2] if operand is not None]
    return types == [TfliteType.FLOAT32, TfliteType.INT8]


def _is_int4(operand: Operand | None) -> bool:
    return operand is not None and operand.type is TfliteType.INT4


def _per_channel(operand: Operand | None) -> bool:
    return operand is not None and len(operand.scales) > 1


def _cast(inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> int:
    types = {operand.type for operand in (*inputs, *outputs) if operand is not None}
    if types & {TfliteType.FLOAT16, TfliteType.FLOAT64}:
        return 5
    if TfliteType.UINT16 in types:
        return 4
    if TfliteType.INT8 in types:
        return 3
    return 2 if TfliteType.UINT32 in types else 1


def _quantize(outputs: Sequence[Operand]) -> int:
    if len(outputs[0].scales) > 1:
        return 3
    return 2 if outputs[0].type is TfliteType.INT16 else 1


def _sum(data: Operand, options: AddOptions | SubOptions) -> int:
    if data.type is TfliteType.INT64:
        return 4
    if data.type is TfliteType.INT16 and not options.pot_scale_int16:
        return 3 if isinstance(options, AddOptions) else 5
    return 1


def _mul(inputs: Sequence[Operand | None], outputs: Sequence[Operand]) -> int:
    """Return version 3 for a product whose rescaling factor is one or more."""
    scales = [operand.scales for operand in (*inputs, *outputs) if operand is not None]
    if len(scales) != 3 or not all(scales):
        return 1
    left, right, result = (scale[0] for scale in scales)
    return 3 if left * right / result >= 1.0 else 1


def _by_options(options: Options) -> int:
    if isinstance(options, ResizeBilinearOptions) and options.half_pixel_centers:
        return 3
    if isinstance(options, ResizeNearestNeighborOptions) and (
        options.half_pixel_centers or options.align_corners
    ):
        return 3
    if isinstance(options, StridedSliceOptions):
        if options.offset:
            return 8
        if options.ellipsis_mask or options.new_axis_mask:
            return 6
    return 1
