from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from microtir.dtype import DType
from microtir.errors import GraphError
from microtir.graph.ir import Graph, Node, Quantization, Tensor
from microtir.graph.operator import Operator
from microtir.operators.activations.definition import HardSwish, Relu, Tanh
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.common.attributes import Padding2D
from microtir.operators.conversion.definition import CastTo, Dequantize, Quantize
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import (
    Concatenation,
    Pad,
    Reshape,
    Split,
    StridedSlice,
    Transpose,
)
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.reduction.definition import Mean
from microtir.operators.resize.definition import ResizeBilinear
from microtir.operators.softmax.definition import LogSoftmax, Softmax
from microtir.rewrite.verify import verify
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor
from tests.support.operator_cases import generate, operator_dtypes

F32, I8, I32 = DType.FLOAT32, DType.INT8, DType.INT32
Q = quant(0.5, 3)


def _int8(name: str, *shape: int, q: Quantization | None = Q) -> Tensor:
    return tensor(name, shape, I8, q)


def _of(one: Node) -> Graph:
    free = [t for t in dict.fromkeys(one.inputs) if not t.is_constant]
    return graph([one], free, one.outputs)


def _weights(*shape: int, q: Quantization | None = None) -> Tensor:
    return constant("w", np.ones(shape, np.int8), q or quant(0.1))


@pytest.mark.parametrize(("operator", "dtype"), operator_dtypes())
def test_models_of_every_operator_pass(operator: str, dtype: str) -> None:
    """What the frontend reads is well formed."""
    for seed in range(3):
        verify(generate(operator, seed, dtype).graph())


_X, _Y = tensor("x", (1, 4)), tensor("y", (1, 4))
_COPY = node(Add(), [_X, _X], _Y)
_IMAGE = tensor("x", (1, 4, 4, 2))


def _unary(op: Operator, source: Tensor, result: Tensor) -> Graph:
    return _of(node(op, [source], result))


BROKEN_GRAPHS: dict[str, tuple[Callable[[], Graph], str]] = {
    "node names": (
        lambda: graph(
            [_COPY, replace(_COPY, inputs=(_Y, _Y), outputs=(tensor("z", (1, 4)),))], [_X], [_Y]
        ),
        "two nodes are called 'y_node'",
    ),
    "tensor names": (
        lambda: _unary(Relu(), _X, tensor("x", (1, 4))),
        "two tensors are called 'x'",
    ),
    "constant input": (
        lambda: graph([_COPY], [_X, constant("c", np.ones(1, np.int8))], [_Y]),
        "an input is a constant",
    ),
    "input twice": (lambda: graph([_COPY], [_X, _X], [_Y]), "'x' is listed twice as an input"),
    "output twice": (lambda: graph([_COPY], [_X], [_Y, _Y]), "'y' is listed twice as an output"),
    "order": (lambda: graph([_COPY], [], [_Y]), "tensor 'x': the tensor is not computed yet"),
    "computed twice": (
        lambda: graph([_COPY, replace(_COPY, name="again")], [_X], [_Y]),
        "tensor 'y': the tensor is computed twice",
    ),
    "computed input": (
        lambda: graph([_COPY], [_X, _Y], [_Y]),
        "tensor 'y': the tensor is computed twice",
    ),
    "computed constant": (
        lambda: _unary(Relu(), _X, constant("k", np.ones((1, 4), np.float32))),
        "tensor 'k': an operator computes a constant",
    ),
    "missing output": (
        lambda: graph([_COPY], [_X], [tensor("z", (1, 4))]),
        "'z': an output is never computed",
    ),
    "input as output": (
        lambda: graph([_COPY], [_X], [_Y, _X]),
        "'x': an output is never computed",
    ),
    "constant as output": (
        lambda: graph([_COPY], [_X], [_Y, constant("k", np.ones(1, np.int8))]),
        "'k': an output is never computed",
    ),
    "no outputs": (lambda: graph([_COPY], [_X], []), "test: the graph has no outputs"),
    "empty tensor": (
        lambda: _unary(Relu(), tensor("x", (1, 0)), tensor("y", (1, 0))),
        "the tensor has no elements, because its shape is (1, 0)",
    ),
    "huge tensor": (
        lambda: _unary(Relu(), tensor("x", (1 << 16, 1 << 16)), tensor("y", (1 << 16, 1 << 16))),
        f"the tensor has {1 << 34} bytes",
    ),
    "constant of another type": (
        lambda: _of(node(Add(), [_X, Tensor("c", _X.type, np.ones((1, 4), np.int8))], _Y)),
        "the data of the constant is int8 (1, 4)",
    ),
    "quantised float": (
        lambda: _unary(Relu(), _X, tensor("y", (1, 4), F32, Q)),
        "float32 is quantised",
    ),
    "axis": (
        lambda: _unary(Relu(), _int8("x", 4, q=per_channel([1.0], 2)), _int8("y", 4)),
        "it is quantised along axis 2",
    ),
    "number of scales": (
        lambda: _unary(Relu(), _int8("x", 4, q=per_channel([1.0, 2.0], 0)), _int8("y", 4)),
        "the quantisation has 2 scales and 2 zero points",
    ),
    "scale": (
        lambda: _unary(Relu(), _int8("x", 4, q=Quantization((0.0,), (0,))), _int8("y", 4)),
        "a scale is not a positive finite number",
    ),
    "zero point": (
        lambda: _unary(Relu(), _int8("x", 4, q=quant(1.0, 128)), _int8("y", 4)),
        "a zero point is outside its type",
    ),
}

BROKEN_NODES: dict[str, tuple[Callable[[], Graph], str]] = {
    "inputs": (lambda: _of(node(Add(), [_X], _Y)), "add has 1 inputs"),
    "outputs": (
        lambda: _of(node(Relu(), [_X], [_Y, tensor("z", (1, 4))])),
        "relu has 2 outputs",
    ),
    "types": (
        lambda: _unary(Relu(), tensor("x", (4,), I32), tensor("y", (4,), I32)),
        "its types (inputs -> outputs) are int32 -> int32",
    ),
    "float bias of int8": (
        lambda: _of(
            node(
                FullyConnected(),
                [_int8("x", 1, 2), _weights(3, 2), constant("b", np.ones(3, np.float32))],
                _int8("y", 1, 3),
            )
        ),
        "its types (inputs -> outputs) are int8, int8, float32 -> int8",
    ),
    "dequantize to int8": (
        lambda: _unary(Dequantize(), _int8("x", 4), _int8("y", 4)),
        "its types (inputs -> outputs) are int8 -> int8",
    ),
    "quantize to float": (
        lambda: _unary(Quantize(), _X, _Y),
        "its types (inputs -> outputs) are float32 -> float32",
    ),
    "moved type": (
        lambda: _unary(Reshape(), _X, tensor("y", (4,), I8)),
        "its types (inputs -> outputs) are float32 -> int8",
    ),
    "cast shape": (
        lambda: _unary(CastTo(), _X, tensor("y", (4,), I8)),
        "tensor 'y': its shape is (4,)",
    ),
    "conv rank": (
        lambda: _of(node(Conv2D(), [_X, _weights(1, 1, 1, 4)], _Y)),
        "input 0 has the shape (1, 4)",
    ),
    "conv channels": (
        lambda: _of(node(Conv2D(), [_IMAGE, _weights(1, 1, 1, 3)], tensor("y", (1, 4, 4, 1)))),
        "weights (1, 1, 1, 3) for an image of 2 channels",
    ),
    "conv window": (
        lambda: _of(node(Conv2D(), [_IMAGE, _weights(1, 5, 1, 2)], tensor("y", (1, 1, 4, 1)))),
        "a window that spans 5 does not fit into 4",
    ),
    "conv stride": (
        lambda: _of(
            node(Conv2D((0, 1)), [_IMAGE, _weights(1, 1, 1, 2)], tensor("y", (1, 4, 4, 1)))
        ),
        "attributes",
    ),
    "conv rows": (
        lambda: _of(node(Conv2D(), [_IMAGE, _weights(1, 3, 3, 2)], tensor("y", (1, 4, 4, 1)))),
        "its shape is (1, 4, 4, 1)",
    ),
    "conv bias": (
        lambda: _of(
            node(
                Conv2D(),
                [_IMAGE, _weights(2, 1, 1, 2), constant("b", np.ones(3, np.float32))],
                tensor("y", (1, 4, 4, 2)),
            )
        ),
        "the bias has the shape (3,)",
    ),
    "depthwise weights": (
        lambda: _of(
            node(DepthwiseConv2D(), [_IMAGE, _weights(1, 1, 1, 4)], tensor("y", (1, 4, 4, 4)))
        ),
        "weights (1, 1, 1, 4) for 2 channels times 1",
    ),
    "pool outside": (
        lambda: _unary(
            AveragePool2D((2, 2), padding=Padding2D(top=2)), _IMAGE, tensor("y", (1, 5, 3, 2))
        ),
        "a window along axis 1 lies outside the image",
    ),
    "dense rows": (
        lambda: _of(node(FullyConnected(), [_X, _weights(2, 3)], tensor("y", (1, 2)))),
        "input of shape (1, 4) for weights (2, 3)",
    ),
    "dense result": (
        lambda: _of(node(FullyConnected(), [_X, _weights(2, 4)], tensor("y", (2, 1)))),
        "its shape is (2, 1)",
    ),
    "mean axes": (
        lambda: _unary(Mean((1, 0)), _X, tensor("y", ())),
        "axes (1, 0) for the shape (1, 4)",
    ),
    "scalar softmax": (
        lambda: _unary(Softmax(), tensor("x", ()), tensor("y", ())),
        "the input is a scalar",
    ),
    "broadcast": (
        lambda: _of(node(Mul(), [_X, tensor("z", (3,))], _Y)),
        "shapes (1, 4) and (3,)",
    ),
    "paddings": (
        lambda: _unary(Pad((1,), (0,)), _X, tensor("y", (2, 4))),
        "paddings (1,) and (0,) for the shape (1, 4)",
    ),
    "pad value": (
        lambda: _unary(Pad((1,), (0,), 200.0), _int8("x", 3), _int8("y", 4)),
        "the value 200.0",
    ),
    "concatenation": (
        lambda: _of(node(Concatenation(1), [_X, tensor("z", (2, 4))], tensor("y", (1, 8)))),
        "shapes [(1, 4), (2, 4)] along axis 1",
    ),
    "concatenation axis": (
        lambda: _unary(Concatenation(2), _X, _Y),
        "axis 2 of the shape (1, 4)",
    ),
    "reshape": (
        lambda: _unary(Reshape(), _X, tensor("y", (5,))),
        "4 elements to the shape (5,)",
    ),
    "permutation": (
        lambda: _unary(Transpose((0, 0)), _X, _Y),
        "permutation (0, 0) of the shape (1, 4)",
    ),
    "split": (
        lambda: _of(node(Split(1), [_X], [tensor(n, (1, 1)) for n in "abc"])),
        "3 parts along axis 1 of the shape (1, 4)",
    ),
    "slice ranks": (
        lambda: _unary(StridedSlice((0,), (1,), (4,)), _X, tensor("y", (4,))),
        "begin (0,), strides (1,), extent (4,) of the shape (1, 4)",
    ),
    "slice range": (
        lambda: _unary(StridedSlice((0, 3), (1, -2), (1, 3)), _X, tensor("y", (1, 3))),
        "elements 3 to -1 by -2 of an axis of 4",
    ),
    "slice result": (
        lambda: _unary(StridedSlice((0, 0), (1, 1), (1, 3)), _X, tensor("y", (3, 2))),
        "its shape is (3, 2)",
    ),
    "resize options": (
        lambda: _unary(ResizeBilinear(True, True), _IMAGE, tensor("y", (1, 8, 8, 2))),
        "align_corners and half_pixel_centers are both set",
    ),
    "resize channels": (
        lambda: _unary(ResizeBilinear(), _IMAGE, tensor("y", (1, 8, 8, 3))),
        "its shape is (1, 8, 8, 3)",
    ),
    "resize rank": (
        lambda: _unary(ResizeBilinear(), _IMAGE, tensor("y", (8, 8))),
        "the output has the shape (8, 8)",
    ),
    "no quantisation": (
        lambda: _unary(Mean((0,)), _int8("x", 4, 2, q=None), _int8("y", 2)),
        "tensor 'x': it is not quantised",
    ),
    "activation per channel": (
        lambda: _unary(Mean((0,)), _int8("x", 4, 2, q=per_channel([1.0, 2.0], 1)), _int8("y", 2)),
        "tensor 'x': it is quantised per channel",
    ),
    "pool rescales": (
        lambda: _unary(
            MaxPool2D(), _int8("x", 1, 2, 2, 1), _int8("y", 1, 2, 2, 1, q=quant(0.25, 3))
        ),
        "tensor 'y': its quantisation differs from that of the first input",
    ),
    "move rescales": (
        lambda: _unary(Reshape(), _int8("x", 4), _int8("y", 2, 2, q=quant(0.5, 4))),
        "scale 0.5 and zero point 3, not scale 0.5 and zero point 4",
    ),
    "weights without scale": (
        lambda: _of(node(FullyConnected(), [_X, constant("w", np.ones((4, 4), np.int8))], _Y)),
        "tensor 'w': it is not quantised",
    ),
    "weights along inputs": (
        lambda: _of(node(FullyConnected(), [_X, _weights(4, 4, q=per_channel([1.0] * 4, 1))], _Y)),
        "tensor 'w': it is quantised along axis 1",
    ),
    "weights with zero point": (
        lambda: _of(node(FullyConnected(), [_X, _weights(4, 4, q=quant(0.1, 1))], _Y)),
        "tensor 'w': it has a zero point that is not 0",
    ),
    "fixed output": (
        lambda: _unary(Tanh(), _int8("x", 4), _int8("y", 4)),
        "tensor 'y': it has scale 0.5 and zero point 3",
    ),
    "dequantize": (
        lambda: _unary(Dequantize(), _int8("x", 4, q=None), tensor("y", (4,))),
        "tensor 'x': it is not quantised",
    ),
    "requantise ratio": (
        lambda: _unary(Quantize(), _int8("x", 4, q=quant(1e6)), _int8("y", 4, q=quant(1e-6))),
        "the ratio of its scales is 2^39 or more",
    ),
    "add ratio": (
        lambda: _of(
            node(Add(), [_int8("x", 4), _int8("z", 4, q=quant(4.0))], _int8("y", 4, q=quant(1e-7)))
        ),
        "more than 2^-19 of 4, the largest scale of its inputs",
    ),
    "hard swish ratio": (
        lambda: _unary(HardSwish(), _int8("x", 4), _int8("y", 4, q=quant(1e-4))),
        "the ratio of its scales",
    ),
    "softmax scale": (
        lambda: _unary(
            LogSoftmax(), _int8("x", 4, q=quant(1e-9)), _int8("y", 4, q=quant(16 / 256, 127))
        ),
        "beta times its scale is 1e-09",
    ),
    "softmax row": (
        lambda: _unary(Softmax(), _int8("x", 4096), _int8("y", 4096, q=quant(1 / 256, -128))),
        "it has rows of 4096 elements",
    ),
}


@pytest.mark.parametrize("rule", BROKEN_GRAPHS)
def test_broken_graphs_are_refused(rule: str) -> None:
    """Each rule about graphs and tensors is checked, and its error says where."""
    make, text = BROKEN_GRAPHS[rule]
    with pytest.raises(GraphError) as error:
        verify(make())
    assert text in str(error.value)
    assert "test" in str(error.value)


@pytest.mark.parametrize("rule", BROKEN_NODES)
def test_broken_nodes_are_refused(rule: str) -> None:
    """Each rule about operators is checked, and its error names the node."""
    make, text = BROKEN_NODES[rule]
    with pytest.raises(GraphError) as error:
        verify(make())
    assert text in str(error.value)
    assert "_node')" in str(error.value)


def test_error_names_source_node_tensor_and_what_is_legal() -> None:
    """The whole diagnostic of one broken rule."""
    with pytest.raises(GraphError) as error:
        verify(_unary(Tanh(), _int8("x", 4), _int8("y", 4)))
    assert str(error.value) == (
        "test.tflite: operator 0 TANH ('y_node'): tensor 'y': it has scale 0.5 and zero point 3\n"
        "  expected: scale 0.0078125 and zero point 0"
    )
