"""ONNX models with QuantizeLinear and DequantizeLinear around every operator, from the graph IR.

That is the form in which quantised models reach onnxruntime; it fuses each operator with the
nodes around it into an integer kernel.  Images are (N, C, H, W), ONNX's order, so that nothing is
transposed at run time: callers transpose inputs and outputs of rank 4 (`to_nchw`).  Converters of
TensorFlow leave an input as it was, (N, H, W, C), and transpose it first; so may this.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import Graph, Node, Tensor
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Pad, Reshape
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D, Pool2D
from microtir.operators.softmax.definition import Softmax

Array = npt.NDArray[Any]

OPERATOR_SETS = {"": 13, "com.microsoft": 1}
_UNSIGNED_OFFSET = 128


class UntranslatedError(Exception):
    """A model asks for something that has no translation to ONNX here."""


def to_nchw(values: Array) -> Array:
    """Put an image into ONNX's order; everything else stays as it is."""
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2)) if values.ndim == 4 else values


def stored_as(values: Array, unsigned: bool) -> Array:
    """Convert int8 activations to the model's type: uint8 has another zero point, one scale."""
    return (values.astype(np.int16) + _UNSIGNED_OFFSET).astype(np.uint8) if unsigned else values


def qdq_model(graph: Graph, *, unsigned: bool, channels_last: bool = False) -> bytes:
    """Write the ONNX file of a graph of int8 activations.

    Args:
        graph: chains of convolutions, fully connected layers, ADD, pooling, PAD, softmax.
        unsigned: store activations as uint8, for which onnxruntime has faster kernels on some CPUs.
        channels_last: callers give images as they lie in the graph.

    Raises:
        UntranslatedError: names an operator that has no translation here.
    """
    return OnnxWriter(graph, unsigned=unsigned, channels_last=channels_last).file()


class OnnxWriter:
    """Writes the file of a graph, each operator between conversions."""

    def __init__(
        self, graph: Graph, *, unsigned: bool = False, channels_last: bool = False
    ) -> None:
        self.onnx: Any = importlib.import_module("onnx")
        self.graph = graph
        self.unsigned = unsigned
        self.channels_last = channels_last
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.names: dict[Tensor, str] = {t: f"input{i}" for i, t in enumerate(graph.inputs)}

    def file(self) -> bytes:
        """Return the bytes of the file."""
        ports = [self._port(tensor) for tensor in self.graph.inputs]
        if self.channels_last:
            for tensor in (t for t in self.graph.inputs if len(t.shape) == 4):
                planes = self.emit("Transpose", [self.names[tensor]], perm=(0, 3, 1, 2))
                self.names[tensor] = planes
        for node in self.graph.nodes:
            self.write(node)
        graph = self.onnx.helper.make_graph(
            self.nodes,
            self.graph.name or "model",
            ports,
            [self._port(tensor) for tensor in self.graph.outputs],
            self.constants,
        )
        sets = [self.onnx.helper.make_opsetid(name, n) for name, n in OPERATOR_SETS.items()]
        model = self.onnx.helper.make_model(graph, opset_imports=sets, ir_version=8)
        self.onnx.checker.check_model(model)
        return bytes(model.SerializeToString())

    # --- tensors ---

    def _port(self, tensor: Tensor) -> Any:
        is_given = self.channels_last and tensor in self.graph.inputs
        shape = tensor.shape if is_given else to_nchw(np.empty(tensor.shape, np.int8)).shape
        return self.onnx.helper.make_tensor_value_info(self.names[tensor], self.scalar(), shape)

    def scalar(self) -> int:
        """Return the type of inputs and outputs, as ONNX numbers it."""
        types = self.onnx.TensorProto
        return int(types.UINT8 if self.unsigned else types.INT8)

    def constant(self, values: Array) -> str:
        """Add a constant; return its name."""
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.array(values, order="C"), name))
        return name

    def emit(self, operator: str, inputs: Sequence[str], **attributes: object) -> str:
        """Add a node; return the name of its output."""
        output = f"value{len(self.nodes)}"
        self.nodes.append(
            self.onnx.helper.make_node(operator, list(inputs), [output], **attributes)
        )
        return output

    def factors(self, tensor: Tensor) -> list[str]:
        """Return scale and zero point of an activation."""
        quant = tensor.type.quant
        zero = stored_as(np.array(quant.zero_point, np.int8), self.unsigned)
        return [self.constant(np.array(quant.scale, np.float32)), self.constant(zero)]

    def real(self, tensor: Tensor) -> str:
        """Return the real values of an activation."""
        return self.emit("DequantizeLinear", [self.names[tensor], *self.factors(tensor)])

    def stored(self, value: str, tensor: Tensor) -> str:
        """Return the integers of an activation, given its real values."""
        return self.emit("QuantizeLinear", [value, *self.factors(tensor)])

    def real_constant(self, values: Array, scales: Array) -> str:
        """Return the real values of weights or of a bias, output channels first."""
        zero = np.zeros(len(scales), values.dtype)
        inputs = [self.constant(v) for v in (values, scales, zero)]
        return self.emit("DequantizeLinear", inputs, axis=0)

    def linear_inputs(self, node: Node, weights: Array) -> list[str]:
        """Return activation, weights (output channels first) and bias."""
        x, w = node.inputs[:2]
        scales = np.broadcast_to(np.array(w.type.quant.scales, np.float32), (len(weights),))
        inputs = [self.real(x), self.real_constant(weights, scales)]
        if len(node.inputs) > 2 and node.inputs[2].data is not None:
            products = np.float32(x.type.quant.scale) * scales
            inputs.append(self.real_constant(node.inputs[2].data, products))
        return inputs

    # --- operators ---

    def write(self, node: Node) -> None:
        """Add the nodes of an operator."""
        op = node.op
        if isinstance(op, Reshape):
            self.names[node.output] = self.reshape(node)
            return
        value = self._operator(node)
        match getattr(op, "activation", Activation.NONE):
            case Activation.RELU:
                value = self.emit("Relu", [value])
            case Activation.RELU6:
                limits = [self.constant(np.array(n, np.float32)) for n in (0, 6)]
                value = self.emit("Clip", [value, *limits])
            case Activation.NONE:
                pass
            case other:
                raise UntranslatedError(f"{node.source}: no activation '{other.value}'")
        self.names[node.output] = self.stored(value, node.output)

    def _operator(self, node: Node) -> str:
        op = node.op
        match op:
            case Conv2D() | DepthwiseConv2D():
                return self._convolution(node, op)
            case FullyConnected():
                weights = node.inputs[1].data
                assert weights is not None
                return self.emit("Gemm", self.linear_inputs(node, weights), transB=1)
            case Add():
                return self.emit("Add", [self.real(tensor) for tensor in node.inputs])
            case AveragePool2D():
                attributes = pool_attributes(op)
                return self.emit("AveragePool", [self.real(node.inputs[0])], **attributes)
            case MaxPool2D():
                attributes = pool_attributes(op)
                return self.emit("MaxPool", [self.real(node.inputs[0])], **attributes)
            case Pad():
                order = (0, 3, 1, 2) if len(op.before) == 4 else range(len(op.before))
                pads = [side[axis] for side in (op.before, op.after) for axis in order]
                names = self.real(node.inputs[0]), self.constant(np.array(pads, np.int64))
                return self.emit("Pad", names)
            case Softmax():
                return self.emit("Softmax", [self.real(node.inputs[0])], axis=-1)
            case _:
                raise UntranslatedError(f"{node.source}: no translation to ONNX here")

    def _convolution(self, node: Node, op: Conv2D | DepthwiseConv2D) -> str:
        weights = weights_of(node, op)
        inputs = self.linear_inputs(node, weights)
        return self.emit("Conv", inputs, **convolution_attributes(node, op, weights))

    def reshape(self, node: Node) -> str:
        """Add a Reshape; return the name of its output."""
        source = node.inputs[0]
        if len(source.shape) == 4 and source.shape[1] * source.shape[2] != 1:
            raise UntranslatedError(f"{node.source}: an image would need a transpose")
        shape = self.constant(np.array(node.output.shape, np.int64))
        return self.emit("Reshape", [self.names[source], shape])


def weights_of(node: Node, op: Conv2D | DepthwiseConv2D) -> Array:
    """Return the weights of a convolution in ONNX's order."""
    weights = node.inputs[1].data
    assert weights is not None
    order = (3, 0, 1, 2) if isinstance(op, DepthwiseConv2D) else (0, 3, 1, 2)
    return np.asarray(weights.transpose(order))


def convolution_attributes(
    node: Node, op: Conv2D | DepthwiseConv2D, weights: Array
) -> dict[str, object]:
    """Return the attributes of a Conv with weights in ONNX's order."""
    p = op.padding
    return {
        "kernel_shape": weights.shape[2:],
        "strides": op.strides,
        "dilations": op.dilations,
        "pads": [p.top, p.left, p.bottom, p.right],
        "group": node.inputs[0].shape[3] if isinstance(op, DepthwiseConv2D) else 1,
    }


def pool_attributes(op: Pool2D) -> dict[str, object]:
    """Return the attributes of an AveragePool or MaxPool."""
    p = op.padding
    pads = [p.top, p.left, p.bottom, p.right]
    return {"kernel_shape": op.window, "strides": op.strides, "pads": pads}
