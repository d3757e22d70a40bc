"""Models of a few layers, made in Python: small enough to be built hundreds of times in a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from microtir.dtype import DType
from microtir.graph.ir import Array, Graph
from microtir.module.ir_module import IRModule
from microtir.operators.activations.definition import Tanh
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.conversion.definition import Dequantize, Quantize
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.matmul.definition import BatchMatmul
from microtir.operators.movement.definition import Concatenation, Reshape
from microtir.operators.softmax.definition import SOFTMAX_OF_INT8, Softmax
from microtir.rewrite import reference
from tests.support.graphs import constant, graph, node, per_channel, quant, tensor

INT8 = DType.INT8
_CHANNEL_SCALES = (0.02, 0.03, 0.01)


def _integers(seed: int, shape: tuple[int, ...], low: int, high: int, dtype: str) -> Array:
    values: npt.NDArray[np.int64] = np.random.default_rng(seed).integers(low, high, shape)
    return np.asarray(values, dtype)


def quantised_graph() -> Graph:
    """Return CONV_2D over a padded image of one channel, then FULLY_CONNECTED, per channel."""
    x_quant, a_quant, y_quant = quant(0.05, -7), quant(0.08, -11), quant(0.11, 4)
    x = tensor("image", (1, 3, 4, 1), INT8, x_quant)
    a = tensor("features", (1, 3, 4, 3), INT8, a_quant)
    flat = tensor("flat", (1, 36), INT8, a_quant)
    y = tensor("scores", (1, 5), INT8, y_quant)
    filters = constant(
        "filters", _integers(1, (3, 3, 3, 1), -127, 128, "int8"), per_channel(_CHANNEL_SCALES, 0)
    )
    biases = per_channel([x_quant.scale * scale for scale in _CHANNEL_SCALES], 0)
    conv_bias = constant("conv_bias", _integers(2, (3,), -900, 900, "int32"), biases)
    weights = constant("weights", _integers(3, (5, 36), -127, 128, "int8"), quant(0.015))
    bias = constant(
        "bias", _integers(4, (5,), -900, 900, "int32"), quant(a_quant.scale * quant(0.015).scale)
    )
    convolution = Conv2D(padding=Padding2D(1, 1, 1, 1), activation=Activation.RELU)
    return graph(
        [
            node(convolution, (x, filters, conv_bias), a),
            node(Reshape(), (a,), flat),
            node(FullyConnected(), (flat, weights, bias), y),
        ],
        [x],
        [y],
    )


def products_graph() -> Graph:
    """Return two CONV_2D of one pixel each: a Cortex-M4 computes them as products of matrices."""
    shapes = (1, 1, 4, 12), (1, 1, 4, 8), (1, 1, 4, 12)
    return _chain(shapes, [Conv2D(activation=Activation.RELU)] * 2)


def planes_graph() -> Graph:
    """Return products of matrices before a DEPTHWISE_CONV_2D.

    A Cortex-M4 widens the second product into planes, in the memory that its input has.
    """
    shapes = (1, 12, 12, 8), (1, 12, 12, 8), (1, 12, 12, 24), (1, 6, 6, 24)
    pixel = Conv2D(activation=Activation.RELU)
    window = DepthwiseConv2D((2, 2), padding=Padding2D(0, 1, 0, 1), activation=Activation.RELU)
    return _chain(shapes, [pixel, pixel, window])


def _chain(
    shapes: Sequence[tuple[int, ...]], operators: Sequence[Conv2D | DepthwiseConv2D]
) -> Graph:
    """Return convolutions behind each other, with weights per channel."""
    quants = quant(0.05, -7), quant(0.08, -11), quant(0.11, 4), quant(0.09, -2)
    tensors = [
        tensor("image" if i == 0 else f"y_{i}", shape, INT8, quants[i])
        for i, shape in enumerate(shapes)
    ]
    nodes = []
    for i, (x, y) in enumerate(pairwise(tensors)):
        channels, is_product = shapes[i + 1][3], isinstance(operators[i], Conv2D)
        shape = (channels, 1, 1, shapes[i][3]) if is_product else (1, 3, 3, channels)
        scales, axis = (0.01,) * channels, 0 if is_product else 3
        filters = _integers(2 * i, shape, -127, 128, "int8")
        bias = _integers(2 * i + 1, (channels,), -900, 900, "int32")
        of_bias = per_channel([quants[i].scale * scale for scale in scales], 0)
        weights = constant(f"filters_{i}", filters, per_channel(scales, axis))
        inputs = x, weights, constant(f"bias_{i}", bias, of_bias)
        nodes.append(node(operators[i], inputs, y))
    return graph(nodes, tensors[:1], tensors[-1:])


def attention_graph() -> Graph:
    """Return softmax(x xT) x: a Cortex-M55 packs a factor, and functions fill arrays of layers."""
    x = tensor("x", (12, 16), INT8, quant(0.05, -21))
    scores = tensor("scores", (12, 12), INT8, quant(0.2, -32))
    shares = tensor("shares", (12, 12), INT8, SOFTMAX_OF_INT8)
    y = tensor("y", (12, 16), INT8, quant(0.06, -3))
    nodes = [
        node(BatchMatmul(adj_x=False, adj_y=True), (x, x), scores),
        node(Softmax(1.0), (scores,), shares),
        node(BatchMatmul(adj_x=False, adj_y=False), (shares, x), y),
    ]
    return graph(nodes, [x], [y])


def tiny_graph() -> Graph:
    """Return TANH by table and FULLY_CONNECTED: the least with weights and a workspace."""
    x_quant, a_quant, y_quant = quant(0.05, -7), quant(1 / 128), quant(0.012, 4)
    scale = quant(0.015)
    x, y = tensor("x", (1, 5), INT8, x_quant), tensor("y", (1, 3), INT8, y_quant)
    a = tensor("a", (1, 5), INT8, a_quant)
    weights = constant("weights", _integers(1, (3, 5), -127, 128, "int8"), scale)
    bias = constant(
        "bias", _integers(3, (3,), -900, 900, "int32"), quant(a_quant.scale * scale.scale)
    )
    return graph(
        [
            node(Tanh(), (x,), a),
            node(FullyConnected(), (a, weights, bias), y),
        ],
        [x],
        [y],
    )


def two_ports_graph() -> Graph:
    """Return ADD, FULLY_CONNECTED, SOFTMAX with two inputs and outputs, named by a converter."""
    x_quant, scale = quant(0.05, -7), quant(0.015)
    left = tensor("serving_default_left:0", (1, 6), INT8, x_quant)
    right = tensor("serving_default_right:0", (1, 6), INT8, x_quant)
    features = tensor("StatefulPartitionedCall:1", (1, 6), INT8, quant(0.08, 3))
    logits = tensor("logits", (1, 4), INT8, quant(0.2, -4))
    scores = tensor("StatefulPartitionedCall:0", (1, 4), INT8, quant(1 / 256, -128))
    weights = constant("weights", _integers(5, (4, 6), -127, 128, "int8"), scale)
    return graph(
        [
            node(Add(), (left, right), features),
            node(FullyConnected(), (features, weights), logits),
            node(Softmax(), (logits,), scores),
        ],
        [left, right],
        [scores, features],
    )


def mixed_graph() -> Graph:
    """Return elements of one and four bytes in odd sizes: int8, float32, int8 again.

    Each element has a factor of its own, so that no table gives them, and one operator reads all
    of them, so that no loop does.
    """
    x = tensor("x", (1, 7), INT8, quant(0.1, 3))
    a = tensor("a", (1, 7), INT8, quant(0.05, -3))
    b, c, e = (tensor(name, (1, 7)) for name in "bce")
    factors = constant("factors", np.linspace(-1, 1, 7, dtype=np.float32).reshape(1, 7))
    d = tensor("d", (1, 7), INT8, quant(1 / 128))
    y, z = tensor("y", (1, 7)), tensor("z", (1, 7), INT8, quant(0.1, 3))
    return graph(
        [
            node(Quantize(), (x,), a),
            node(Dequantize(), (a,), b),
            node(Softmax(), (b,), c),
            node(Mul(), (c, factors), e),
            node(Quantize(), (e,), d),
            node(Dequantize(), (d,), y),
            node(Quantize(), (d,), z),
        ],
        [x],
        [y, z],
    )


def module_of(graph_: Graph) -> IRModule:
    """Return a graph as `from_tflite` would give it."""
    return IRModule(graph=graph_)


def sample_inputs(graph_: Graph, seed: int = 0) -> dict[str, Array]:
    """Return random values for every input of a quantised graph."""
    return {
        t.name: _integers(seed + number, t.shape, -128, 128, "int8")
        for number, t in enumerate(graph_.inputs)
    }


def reference_outputs(graph_: Graph, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """Evaluate the graph in numpy."""
    return dict(reference.execute(graph_, dict(inputs)))


def branching_graph() -> Graph:
    """Return FULLY_CONNECTED layers that read crosswise: no greedy order places them best."""
    sizes, sources = (8, 5, 9, 6, 3, 7, 1), (0, 1, 1, 1, 3, 3, 4)
    type_ = quant(0.05, 3)
    tensors = [tensor("x", (1, 7), INT8, type_)]
    nodes = []
    for number, (size, source) in enumerate(zip(sizes, sources, strict=True)):
        read = tensors[source]
        data = _integers(number, (size, read.shape[1]), -127, 128, "int8")
        tensors.append(tensor(f"t{number}", (1, size), INT8, type_))
        weights = constant(f"w{number}", data, quant(0.015))
        nodes.append(node(FullyConnected(), (read, weights), tensors[-1]))
    leaves = [t for t, number in zip(tensors, range(len(tensors)), strict=True)
              if number > 0 and number not in sources]  # fmt: skip
    y = tensor("y", (1, sum(t.shape[1] for t in leaves)), INT8, type_)
    return graph([*nodes, node(Concatenation(axis=1), leaves, y)], [tensors[0]], [y])
