"""The table of TFLite operators that microtir reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from microtir.frontend import tflite_movement as movement
from microtir.frontend import tflite_pointwise as pointwise
from microtir.frontend import tflite_slicing as slicing
from microtir.frontend import tflite_spatial as spatial
from microtir.frontend.operands import Converted, Operands
from microtir.frontend.tflite_schema import BuiltinOperator
from microtir.graph import ops

MANY = 1 << 16


@dataclass(frozen=True, slots=True)
class OperatorReader:
    """How one operator of the file format becomes an operator of the graph.

    `inputs` are the fewest and the most; `outputs` are exactly one unless MANY.
    """

    op: type[ops.Operator]
    read: Callable[[Operands], Converted]
    inputs: tuple[int, int] = (1, 1)
    outputs: int = 1


_Code = BuiltinOperator

READERS: Mapping[BuiltinOperator, OperatorReader] = MappingProxyType(
    {
        _Code.CONV_2D: OperatorReader(ops.Conv2D, spatial.conv_2d, (2, 3)),
        _Code.DEPTHWISE_CONV_2D: OperatorReader(
            ops.DepthwiseConv2D, spatial.depthwise_conv_2d, (2, 3)
        ),
        _Code.FULLY_CONNECTED: OperatorReader(
            ops.FullyConnected, pointwise.fully_connected, (2, 3)
        ),
        _Code.AVERAGE_POOL_2D: OperatorReader(ops.AveragePool2D, spatial.average_pool_2d),
        _Code.MAX_POOL_2D: OperatorReader(ops.MaxPool2D, spatial.max_pool_2d),
        _Code.MEAN: OperatorReader(ops.Mean, pointwise.mean, (2, 2)),
        _Code.ADD: OperatorReader(ops.Add, pointwise.arithmetic, (2, 2)),
        _Code.SUB: OperatorReader(ops.Sub, pointwise.arithmetic, (2, 2)),
        _Code.MUL: OperatorReader(ops.Mul, pointwise.arithmetic, (2, 2)),
        _Code.MINIMUM: OperatorReader(ops.Minimum, pointwise.extremum, (2, 2)),
        _Code.MAXIMUM: OperatorReader(ops.Maximum, pointwise.extremum, (2, 2)),
        _Code.RELU: OperatorReader(ops.Relu, pointwise.unary),
        _Code.RELU6: OperatorReader(ops.Relu, pointwise.unary),
        _Code.RELU_N1_TO_1: OperatorReader(ops.Relu, pointwise.unary),
        _Code.LEAKY_RELU: OperatorReader(ops.LeakyRelu, pointwise.leaky_relu),
        _Code.HARD_SWISH: OperatorReader(ops.HardSwish, pointwise.unary),
        _Code.LOGISTIC: OperatorReader(ops.Logistic, pointwise.unary),
        _Code.TANH: OperatorReader(ops.Tanh, pointwise.unary),
        _Code.SOFTMAX: OperatorReader(ops.Softmax, pointwise.softmax),
        _Code.LOG_SOFTMAX: OperatorReader(ops.LogSoftmax, pointwise.log_softmax),
        _Code.PAD: OperatorReader(ops.Pad, movement.pad, (2, 2)),
        _Code.PADV2: OperatorReader(ops.Pad, movement.pad, (3, 3)),
        _Code.CONCATENATION: OperatorReader(ops.Concatenation, movement.concatenation, (1, MANY)),
        _Code.RESHAPE: OperatorReader(ops.Reshape, movement.reshape, (1, 2)),
        _Code.SQUEEZE: OperatorReader(ops.Reshape, movement.squeeze),
        _Code.EXPAND_DIMS: OperatorReader(ops.Reshape, movement.expand_dims, (2, 2)),
        _Code.TRANSPOSE: OperatorReader(ops.Transpose, movement.transpose, (2, 2)),
        _Code.SPLIT: OperatorReader(ops.Split, movement.split, (2, 2), MANY),
        _Code.SLICE: OperatorReader(ops.StridedSlice, slicing.slice_, (3, 3)),
        _Code.STRIDED_SLICE: OperatorReader(ops.StridedSlice, slicing.strided_slice, (4, 4)),
        _Code.RESIZE_NEAREST_NEIGHBOR: OperatorReader(
            ops.ResizeNearestNeighbor, spatial.resize, (2, 2)
        ),
        _Code.RESIZE_BILINEAR: OperatorReader(ops.ResizeBilinear, spatial.resize, (2, 2)),
        _Code.QUANTIZE: OperatorReader(ops.Quantize, pointwise.unary),
        _Code.DEQUANTIZE: OperatorReader(ops.Dequantize, pointwise.unary),
        _Code.CAST: OperatorReader(ops.CastTo, pointwise.unary),
    }
)
"""Each operator with its reader, in the order of the docs."""


def check_arity(operands: Operands, reader: OperatorReader) -> None:
    """Check the numbers of inputs and outputs.

    Raises:
        ModelFileError: there are too many or too few.
    """
    low, high = reader.inputs
    if not low <= len(operands.inputs) <= high:
        legal = f"{low} or more" if high == MANY else " or ".join(map(str, sorted({low, high})))
        raise operands.malformed(f"it has {len(operands.inputs)} inputs", legal)
    if not operands.outputs or len(operands.outputs) > reader.outputs:
        legal = "1" if reader.outputs == 1 else "1 or more"
        raise operands.malformed(f"it has {len(operands.outputs)} outputs", legal)
