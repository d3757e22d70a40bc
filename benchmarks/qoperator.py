"""ONNX models of onnxruntime's QLinear operators, from the graph IR.

That is what its static quantiser writes with `QuantFormat.QOperator`.  An activation is what the
range of the stored integers clamps.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.qdq import (
    Array,
    OnnxWriter,
    UntranslatedError,
    convolution_attributes,
    pool_attributes,
    weights_of,
)
from microtir.graph.ir import Graph, Node
from microtir.operators.arithmetic.definition import Add
from microtir.operators.common.attributes import Activation
from microtir.operators.common.multiplier import activation_range
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Reshape
from microtir.operators.pooling.definition import AveragePool2D
from microtir.operators.softmax.definition import Softmax

_MICROSOFT = "com.microsoft"


def qoperator_model(graph: Graph, *, channels_last: bool = False) -> bytes:
    """Write the ONNX file of a graph of int8 activations; see `qdq_model`."""
    return _Writer(graph, channels_last=channels_last).file()


class _Writer(OnnxWriter):
    def write(self, node: Node) -> None:
        """Add the nodes of an operator."""
        activation, stored = getattr(node.op, "activation", Activation.NONE), node.output.type
        whole = (stored.dtype.min, stored.dtype.max)
        if isinstance(node.op, Reshape):
            self.names[node.output] = self.reshape(node)
        elif activation_range(activation, stored) != whole:
            raise UntranslatedError(f"{node.source}: its activation clamps stored integers")
        else:
            self.names[node.output] = self._qlinear(node)

    def _qlinear(self, node: Node) -> str:
        op, output = node.op, self.factors(node.output)
        match op:
            case Conv2D() | DepthwiseConv2D():
                weights = weights_of(node, op)
                x, bias = self._products(node, weights)
                attributes = convolution_attributes(node, op, weights)
                return self.emit("QLinearConv", [*x, *output, *bias], **attributes)
            case FullyConnected():
                matrix = node.inputs[1].data
                assert matrix is not None
                x, bias = self._products(node, matrix)
                return self._contributed("QGemm", [*x, *(bias or [""]), *output], transB=1)
            case Add():
                return self._contributed("QLinearAdd", [*self._stored(node), *output])
            case AveragePool2D():
                inputs = [*self._stored(node), *output]
                return self._contributed("QLinearAveragePool", inputs, **pool_attributes(op))
            case Softmax():
                inputs = [*self._stored(node), *output]
                return self._contributed("QLinearSoftmax", inputs, axis=-1, opset=13)
            case _:
                raise UntranslatedError(f"{node.source}: no translation to ONNX here")

    def _contributed(self, operator: str, inputs: Sequence[str], **attributes: object) -> str:
        return self.emit(operator, inputs, domain=_MICROSOFT, **attributes)

    def _stored(self, node: Node) -> list[str]:
        """Return the inputs with scale and zero point of each."""
        return [name for t in node.inputs for name in (self.names[t], *self.factors(t))]

    def _products(self, node: Node, weights: Array) -> tuple[list[str], list[str]]:
        """Return image and weights (output channels first) with their scales, and the bias."""
        x, w, *bias = node.inputs
        scales = np.broadcast_to(np.array(w.type.quant.scales, np.float32), (len(weights),))
        factors = (weights, scales, np.zeros(len(scales), np.int8))
        inputs = [self.names[x], *self.factors(x), *map(self.constant, factors)]
        return inputs, [self.constant(b.data) for b in bias if b.data is not None]
