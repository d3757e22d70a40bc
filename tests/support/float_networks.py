"""Float networks of a few layers, and samples for them."""

from __future__ import annotations

import numpy as np

from microtir.graph.ir import Array, Graph, Tensor
from microtir.operators.activations.definition import Logistic, Relu
from microtir.operators.arithmetic.definition import Add, Mul
from microtir.operators.common.attributes import Activation, Padding2D
from microtir.operators.convolution.definition import Conv2D, DepthwiseConv2D
from microtir.operators.dense.definition import FullyConnected
from microtir.operators.movement.definition import Concatenation, Pad, Reshape
from microtir.operators.pooling.definition import AveragePool2D, MaxPool2D
from microtir.operators.softmax.definition import Softmax
from tests.support.graphs import constant, graph, node, tensor

SAME = Padding2D(1, 1, 1, 1)


def floats(seed: int, *shape: int, spread: float = 1.0) -> Array:
    """Return normal numbers."""
    values = np.random.default_rng(seed).standard_normal(shape) * spread
    return np.asarray(values, np.float32)


def image_samples(count: int, seed: int = 0) -> dict[str, Array]:
    """Return samples of the input of the networks below."""
    return {"image": floats(seed, count, 1, 8, 8, 3)}


def _weights(name: str, seed: int, *shape: int) -> Tensor:
    return constant(name, floats(seed, *shape, spread=0.3))


def _bias(name: str, seed: int, channels: int) -> Tensor:
    return constant(name, floats(seed, channels, spread=0.2))


def residual() -> Graph:
    """Return convolutions with a depthwise one between them, a sum, pooling and a softmax.

    Two of the layers have factors and terms of their channels behind them, as a normalisation is.
    """
    x = tensor("image", (1, 8, 8, 3))
    names = ("a", "b", "c", "scaled", "shifted", "clamped")
    a, b, c, scaled, shifted, clamped = (tensor(name, (1, 8, 8, 6)) for name in names)
    total, pooled = tensor("total", (1, 8, 8, 6)), tensor("pooled", (1, 1, 1, 6))
    flat, scores, shares = (
        tensor(name, (1, n)) for name, n in (("flat", 6), ("scores", 4), ("shares", 4))
    )
    relu = Activation.RELU
    return graph(
        [
            node(Conv2D(padding=SAME, activation=relu),
                 (x, _weights("wa", 1, 6, 3, 3, 3), _bias("ba", 2, 6)), a),
            node(DepthwiseConv2D(padding=SAME), (a, _weights("wb", 3, 1, 3, 3, 6)), b),
            node(Mul(), (b, constant("factor", 1 + floats(4, 6, spread=0.5) ** 2)), scaled),
            node(Add(), (scaled, _bias("term", 5, 6)), shifted),
            node(Relu(Activation.RELU6), (shifted,), clamped),
            node(Conv2D(), (clamped, _weights("wc", 6, 6, 1, 1, 6), _bias("bc", 7, 6)), c),
            node(Add(activation=relu), (a, c), total),
            node(AveragePool2D((8, 8), (8, 8)), (total,), pooled),
            node(Reshape(), (pooled,), flat),
            node(FullyConnected(), (flat, _weights("wd", 8, 4, 6), _bias("bd", 9, 4)), scores),
            node(Softmax(), (scores,), shares),
        ],
        [x],
        [shares],
    )  # fmt: skip


def branches() -> Graph:
    """Return a concatenation of a logistic, a convolution and a constant, and what pads it."""
    x = tensor("image", (1, 8, 8, 3))
    gate, conv = tensor("gate", (1, 8, 8, 3)), tensor("conv", (1, 8, 8, 2))
    joined, padded = tensor("joined", (1, 8, 8, 6)), tensor("padded", (1, 10, 10, 6))
    largest = tensor("largest", (1, 5, 5, 6))
    return graph(
        [
            node(Logistic(), (x,), gate),
            node(Conv2D(), (x, _weights("w", 1, 2, 1, 1, 3)), conv),
            node(Concatenation(3), (gate, conv, constant("extra", floats(2, 1, 8, 8, 1))), joined),
            node(Pad((0, 1, 1, 0), (0, 1, 1, 0)), (joined,), padded),
            node(MaxPool2D((2, 2), (2, 2)), (padded,), largest),
        ],
        [x],
        [gate, largest],
    )


def chain(layers: int) -> Graph:
    """Return dense layers of seven units, one behind the other."""
    tensors = [tensor(f"x{n}", (1, 7)) for n in range(layers + 1)]
    return graph(
        [
            node(
                FullyConnected(),
                (
                    tensors[n],
                    constant(f"w{n}", np.eye(7, dtype=np.float32) + floats(n, 7, 7, spread=0.3)),
                    constant(f"b{n}", floats(n + 50, 7, spread=0.1)),
                ),
                tensors[n + 1],
            )
            for n in range(layers)
        ],
        [tensors[0]],
        [tensors[-1]],
    )
