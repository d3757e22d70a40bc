"""Define in numpy, to the bit, what fully connected layers compute."""

from __future__ import annotations

from microtir.graph.ir import Array, Node
from microtir.operators.common import arrays, linear_meaning
from microtir.operators.dense.definition import FullyConnected


def fully_connected(
    _op: FullyConnected, node: Node, features: Array, weights: Array, bias: Array | None = None
) -> Array:
    """Compute FULLY_CONNECTED: int8, float32, or float32 with int8 weights."""

    def sums(centred: arrays.Doubles, factors: arrays.Doubles) -> arrays.Doubles:
        result: arrays.Doubles = centred.reshape(-1, factors.shape[1]) @ factors.T
        return result.reshape(node.output.shape)

    return linear_meaning.linear(node, sums, features, weights, bias)
