"""Define in numpy, to the bit, what fully connected layers compute."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType

from microtir.graph.ir import Array, Node
from microtir.graph.operator import Operator
from microtir.operators.common.arrays import Doubles, Meaning
from microtir.operators.common.linear_meaning import linear
from microtir.operators.dense.definition import FullyConnected, fully_connected_params


def fully_connected(
    op: FullyConnected, node: Node, features: Array, weights: Array, bias: Array | None = None
) -> Array:
    """Compute FULLY_CONNECTED: int8, float32, or float32 with int8 weights."""

    def sums(centred: Doubles, factors: Doubles) -> Doubles:
        result: Doubles = centred.reshape(-1, factors.shape[1]) @ factors.T
        return result.reshape(node.output.shape)

    params = partial(fully_connected_params, op)
    return linear(node, op.activation, params, sums, features, weights, bias)


MEANINGS: Mapping[type[Operator], Meaning] = MappingProxyType(
    {
        FullyConnected: fully_connected,
    }
)
