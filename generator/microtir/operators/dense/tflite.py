"""Read TFLite's fully connected layers."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.dtype import DType
from microtir.operators.common.tflite_operands import Converted, Operands, TfliteReader
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    TfliteActivation,
    TfliteType,
    WeightsFormat,
)
from microtir.operators.dense.definition import FullyConnected


@dataclass(frozen=True, slots=True)
class FullyConnectedOptions(Options):
    """Options of FULLY_CONNECTED."""

    activation: TfliteActivation = TfliteActivation.NONE
    weights_format: WeightsFormat = WeightsFormat.DEFAULT
    keep_num_dims: bool = False
    asymmetric_quantize_inputs: bool = False
    quantized_bias_type: TfliteType = TfliteType.FLOAT32


def fully_connected(operands: Operands) -> Converted:
    """Read FULLY_CONNECTED: data of any rank read as (rows, I), weights (O, I), optional bias."""
    options = operands.table(FullyConnectedOptions)
    if options.weights_format is not WeightsFormat.DEFAULT:
        raise operands.unsupported(
            f"its weights are stored as {options.weights_format.name}",
            WeightsFormat.DEFAULT.name,
            "convert the model without shuffled weights",
        )
    inputs = operands.with_weights(options.quantized_bias_type)
    is_hybrid = inputs[0].dtype.is_float and inputs[1].dtype is DType.INT8
    asymmetric = is_hybrid and options.asymmetric_quantize_inputs
    op = FullyConnected(operands.activation(options.activation), asymmetric)
    free = (*inputs[0].shape[:-1], *inputs[1].shape[:1]) if options.keep_num_dims else None
    return Converted(op, inputs, free=free)


READERS = (
    TfliteReader(
        FullyConnected,
        BuiltinOperator.FULLY_CONNECTED,
        fully_connected,
        FullyConnectedOptions,
        (2, 3),
    ),
)
