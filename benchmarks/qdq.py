"""ONNX models with QuantizeLinear and DequantizeLinear around every operator, from the graph IR.

That is the form in which quantised models reach onnxruntime; it fuses each operator with the
nodes around it into an integer kernel.  Images are (N, C, H, W), ONNX's order, so that nothing is
transposed at run time: callers transpose inputs and outputs of rank 4 (`to_nchw`).
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
from microtir.operators.movement.definition import Reshape
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.softmax.definition import Softmax

Array = npt.NDArray[Any]

_OPSET = 13
_UNSIGNED_OFFSET = 128


class UntranslatedError(Exception):
    """A model asks for something that has no translation to ONNX here."""


def to_nchw(values: Array) -> Array:
    """Put an image into ONNX's order; everything else stays as it is."""
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2)) if values.ndim == 4 else values


def stored_as(values: Array, unsigned: bool) -> Array:
    """Convert int8 activations to the model's type: uint8 has another zero point, one scale."""
    return (values.astype(np.int16) + _UNSIGNED_OFFSET).astype(np.uint8) if unsigned else values


def qdq_model(graph: Graph, *, unsigned: bool) -> bytes:
    """Write the ONNX file of a graph of int8 activations.

    Args:
        graph: chains of convolutions, fully connected layers, ADD, average pooling, softmax.
        unsigned: store activations as uint8, for which onnxruntime has faster kernels on some CPUs.

    Raises:
        UntranslatedError: names an operator that has no translation here.
    """
    return _Writer(graph, unsigned).file()


class _Writer:
    def __init__(self, graph: Graph, unsigned: bool) -> None:
        self.onnx: Any = importlib.import_module("onnx")
        self.graph = graph
        self.unsigned = unsigned
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.names: dict[Tensor, str] = {t: f"input{i}" for i, t in enumerate(graph.inputs)}

    def file(self) -> bytes:
        for node in self.graph.nodes:
            self._node(node)
        graph = self.onnx.helper.make_graph(
            self.nodes,
            self.graph.name or "model",
            [self._port(tensor) for tensor in self.graph.inputs],
            [self._port(tensor) for tensor in self.graph.outputs],
            self.constants,
        )
        opset = self.onnx.helper.make_opsetid("", _OPSET)
        model = self.onnx.helper.make_model(graph, opset_imports=[opset], ir_version=8)
        self.onnx.checker.check_model(model)
        return bytes(model.SerializeToString())

    # --- tensors ---

    def _port(self, tensor: Tensor) -> Any:
        kind = self.onnx.TensorProto.UINT8 if self.unsigned else self.onnx.TensorProto.INT8
        shape = to_nchw(np.empty(tensor.shape, np.int8)).shape
        return self.onnx.helper.make_tensor_value_info(self.names[tensor], kind, shape)

    def _constant(self, values: Array) -> str:
        name = f"constant{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.array(values, order="C"), name))
        return name

    def _emit(self, operator: str, inputs: Sequence[str], **attributes: object) -> str:
        output = f"value{len(self.nodes)}"
        self.nodes.append(
            self.onnx.helper.make_node(operator, list(inputs), [output], **attributes)
        )
        return output

    def _factors(self, tensor: Tensor) -> list[str]:
        """Return scale and zero point of an activation."""
        quant = tensor.type.quant
        zero = stored_as(np.array(quant.zero_point, np.int8), self.unsigned)
        return [self._constant(np.array(quant.scale, np.float32)), self._constant(zero)]

    def _real(self, tensor: Tensor) -> str:
        """Return the real values of an activation."""
        return self._emit("DequantizeLinear", [self.names[tensor], *self._factors(tensor)])

    def _real_constant(self, values: Array, scales: Array) -> str:
        """Return the real values of weights or of a bias, output channels first."""
        zero = np.zeros(len(scales), values.dtype)
        inputs = [self._constant(v) for v in (values, scales, zero)]
        return self._emit("DequantizeLinear", inputs, axis=0)

    def _linear_inputs(self, node: Node, weights: Array) -> list[str]:
        """Return activation, weights (output channels first) and bias."""
        x, w = node.inputs[:2]
        scales = np.broadcast_to(np.array(w.type.quant.scales, np.float32), (len(weights),))
        inputs = [self._real(x), self._real_constant(weights, scales)]
        if len(node.inputs) > 2 and node.inputs[2].data is not None:
            products = np.float32(x.type.quant.scale) * scales
            inputs.append(self._real_constant(node.inputs[2].data, products))
        return inputs

    # --- operators ---

    def _node(self, node: Node) -> None:
        op = node.op
        if isinstance(op, Reshape):
            self.names[node.output] = self._reshape(node)
            return
        value = self._operator(node)
        match getattr(op, "activation", Activation.NONE):
            case Activation.RELU:
                value = self._emit("Relu", [value])
            case Activation.RELU6:
                limits = [self._constant(np.array(n, np.float32)) for n in (0, 6)]
                value = self._emit("Clip", [value, *limits])
            case Activation.NONE:
                pass
            case other:
                raise UntranslatedError(f"{node.source}: no activation '{other.value}'")
        inputs = [value, *self._factors(node.output)]
        self.names[node.output] = self._emit("QuantizeLinear", inputs)

    def _operator(self, node: Node) -> str:
        op = node.op
        match op:
            case Conv2D() | DepthwiseConv2D():
                return self._convolution(node, op)
            case FullyConnected():
                weights = node.inputs[1].data
                assert weights is not None
                return self._emit("Gemm", self._linear_inputs(node, weights), transB=1)
            case Add():
                return self._emit("Add", [self._real(tensor) for tensor in node.inputs])
            case AveragePool2D():
                p = op.padding
                return self._emit(
                    "AveragePool", [self._real(node.inputs[0])], kernel_shape=op.window,
                    strides=op.strides, pads=[p.top, p.left, p.bottom, p.right],
                )  # fmt: skip
            case Softmax():
                return self._emit("Softmax", [self._real(node.inputs[0])], axis=-1)
            case _:
                raise UntranslatedError(f"{node.source}: no translation to ONNX here")

    def _convolution(self, node: Node, op: Conv2D | DepthwiseConv2D) -> str:
        weights, p = node.inputs[1].data, op.padding
        assert weights is not None
        depthwise = isinstance(op, DepthwiseConv2D)
        ordered = weights.transpose((3, 0, 1, 2) if depthwise else (0, 3, 1, 2))
        return self._emit(
            "Conv",
            self._linear_inputs(node, ordered),
            kernel_shape=ordered.shape[2:],
            strides=op.strides,
            dilations=op.dilations,
            pads=[p.top, p.left, p.bottom, p.right],
            group=node.inputs[0].shape[3] if depthwise else 1,
        )

    def _reshape(self, node: Node) -> str:
        source = node.inputs[0]
        if len(source.shape) == 4 and source.shape[1] * source.shape[2] != 1:
            raise UntranslatedError(f"{node.source}: an image would need a transpose")
        shape = self._constant(np.array(node.output.shape, np.int64))
        return self._emit("Reshape", [self.names[source], shape])
