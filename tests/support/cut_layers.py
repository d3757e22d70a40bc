"""Model files that hold chosen layers of a graph, each by itself."""

from __future__ import annotations

from collections.abc import Sequence

from microtir.graph.ir import Node, Tensor
from microtir.operators.common.attributes import Activation
from microtir.operators.common.tflite_schema import (
    BuiltinOperator,
    Options,
    Padding,
    TfliteActivation,
)
from microtir.operators.convolution.definition import Conv2D
from microtir.operators.convolution.tflite import Conv2DOptions
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.dense.tflite import FullyConnectedOptions
from microtir.operators.softmax.definition import Softmax
from microtir.operators.softmax.tflite import SoftmaxOptions
from microtir.writers.tflite import TfliteBuilder

_FUSED = {Activation.NONE: TfliteActivation.NONE, Activation.RELU: TfliteActivation.RELU}


def cut_out(nodes: Sequence[Node]) -> bytes:
    """Return a model with an input and an output for each of the nodes, in their order."""
    builder = TfliteBuilder()
    inputs, outputs = [], []
    for number, node in enumerate(nodes):
        data, *constants = node.inputs
        inputs.append(_tensor(builder, f"input{number}", data))
        outputs.append(_tensor(builder, f"output{number}", node.output))
        operands = [
            _constant(builder, f"constant{number}_{place}", node, tensor)
            for place, tensor in enumerate(constants)
        ]
        code, options = _operator(node)
        builder.operator(code, [inputs[-1], *operands], [outputs[-1]], options)
    return builder.build(inputs, outputs)


def _operator(node: Node) -> tuple[BuiltinOperator, Options]:
    op = node.op
    if isinstance(op, Softmax):
        return BuiltinOperator.SOFTMAX, SoftmaxOptions(op.beta)
    if isinstance(op, FullyConnected):
        keeps = len(node.output.shape) > 2
        options = FullyConnectedOptions(_FUSED[op.activation], keep_num_dims=keeps)
        return BuiltinOperator.FULLY_CONNECTED, options
    assert isinstance(op, Conv2D) and set(op.dilations) == {1}
    high, wide = op.strides
    is_same = node.output.shape[1] == -(-node.inputs[0].shape[1] // high)
    padding = Padding.SAME if is_same else Padding.VALID
    return BuiltinOperator.CONV_2D, Conv2DOptions(padding, wide, high, _FUSED[op.activation])


def _tensor(builder: TfliteBuilder, name: str, tensor: Tensor) -> int:
    quant = tensor.type.quant
    return builder.tensor(
        name, tensor.shape, tensor.dtype.value, None, quant.scales, quant.zero_points
    )


def _constant(builder: TfliteBuilder, name: str, node: Node, tensor: Tensor) -> int:
    """Add weights, or a bias with the scales that the format asks for."""
    scales = node.inputs[1].type.quant.scales
    if tensor is not node.inputs[1]:
        scales = tuple(node.inputs[0].type.quant.scale * scale for scale in scales)
    axis = 0 if len(scales) > 1 else None
    return builder.tensor(
        name, tensor.shape, tensor.dtype.value, tensor.data, scales, [0] * len(scales), axis
    )
