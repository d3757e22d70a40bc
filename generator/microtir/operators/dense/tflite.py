"""Read TFLite's fully connected layers."""

from __future__ import annotations

from dataclasses import dataclass

from microtir.dtype import DType
from microtir.graph.ir import Node
from microtir.operators.common import tflite_operands, tflite_schema
from microtir.operators.common import tflite_written as written
from microtir.operators.dense.definition import FullyConnected


@dataclass(frozen=True, slots=True)
class FullyConnectedOptions(tflite_schema.Options):
    activation: tflite_schema.TfliteActivation = tflite_schema.TfliteActivation.NONE
    weights_format: tflite_schema.WeightsFormat = tflite_schema.WeightsFormat.DEFAULT
    keep_num_dims: bool = False
    asymmetric_quantize_inputs: bool = False
    quantized_bias_type: tflite_schema.TfliteType = tflite_schema.TfliteType.FLOAT32


def fully_connected(operands: tflite_operands.Operands) -> tflite_operands.Converted:
    """Read FULLY_CONNECTED: data of any rank read as (rows, I), weights (O, I), optional bias."""
    options = operands.table(FullyConnectedOptions)
    if options.weights_format is not tflite_schema.WeightsFormat.DEFAULT:
        raise operands.unsupported(
            f"its weights are stored as {options.weights_format.name}",
            tflite_schema.WeightsFormat.DEFAULT.name,
            "convert the model without shuffled weights",
        )
    inputs = operands.with_weights(options.quantized_bias_type)
    is_hybrid = inputs[0].dtype.is_float and inputs[1].dtype is DType.INT8
    asymmetric = is_hybrid and options.asymmetric_quantize_inputs
    op = FullyConnected(operands.activation(options.activation), asymmetric)
    free = (*inputs[0].shape[:-1], *inputs[1].shape[:1]) if options.keep_num_dims else None
    return tflite_operands.Converted(op, inputs, free=free)


def write_fully_connected(node: Node) -> written.Written:
    """Write FULLY_CONNECTED, which makes rows of all dimensions but the last, or keeps them."""
    op = node.attributes(FullyConnected)
    options = FullyConnectedOptions(
        written.activation(op.activation),
        keep_num_dims=len(node.output.shape) != 2,
        asymmetric_quantize_inputs=op.asymmetric,
    )
    return written.Written(node.inputs, options)


READERS = (
    tflite_operands.TfliteReader(
        FullyConnected,
        tflite_schema.BuiltinOperator.FULLY_CONNECTED,
        fully_connected,
        FullyConnectedOptions,
        (2, 3),
        write=write_fully_connected,
    ),
)
