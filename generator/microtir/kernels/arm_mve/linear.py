"""Weights and constants of linear layers, packed in the order that the vector kernels read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from microtir.graph.ir import Node
from microtir.kernels.arm_mve.requantise import LANES, Ints, Rescaling, by_lanes, constants_of
from microtir.kernels.common.packing import constant
from microtir.kernels.common.weights import folded_bias, largest_sums
from microtir.operators.common.linear import LinearParams
from microtir.tir import ir

BYTES = 16  # int8 values of a vector


@dataclass(frozen=True, slots=True, eq=False)
class PackedLinear:
    """Weights (groups of 4 channels, steps, 4, 16) int8 and constants (groups, 3, 4) int32."""

    weights: ir.Buffer
    constants: ir.Buffer
    rescaling: Rescaling


def steps_of(values: int) -> int:
    """Return how many vectors a sum of so many products takes."""
    return -(-values // BYTES)


def channel_constants(
    matrix: npt.NDArray[np.int8], node: Node, params: LinearParams
) -> Ints | None:
    """Return constants of the channels of `matrix` (channels, K); None if they do not fit."""
    wide = matrix.astype(np.int64)
    given = node.inputs[2].data if len(node.inputs) > 2 else None
    bias = folded_bias(wide, given, params.input_zero_point)
    return constants_of(params, bias, largest_sums(wide))


def pack_linear(
    matrix: npt.NDArray[np.int8], node: Node, params: LinearParams
) -> PackedLinear | None:
    """Pack a layer whose weights are `matrix` (channels, K); None if its factors do not fit.

    Args:
        matrix: in the order of the values that they meet.
        node: with a bias as third input, or without.
        params: of the layer.
    """
    constants = channel_constants(matrix, node, params)
    if constants is None:
        return None
    return PackedLinear(
        constant("weights", _arranged(matrix)),
        constant("constants", by_lanes(constants)),
        Rescaling.of(params),
    )


def _arranged(matrix: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
    """Return weights by what one vector meets: (groups, steps, 4, 16).

    The last vector of a sum ends with its last value.  Where it overlaps the one before it meets
    weights of 0, so that nothing behind the values is ever read.
    """
    channels, values = matrix.shape
    groups, steps = -(-channels // LANES), steps_of(values)
    padded = np.zeros((groups * LANES, steps * BYTES), np.int8)
    whole = values // BYTES * BYTES
    padded[:channels, :whole] = matrix[:, :whole]
    if whole < values:
        first = (steps * BYTES if values > BYTES else values) - (values - whole)
        padded[:channels, first : first + values - whole] = matrix[:, whole:]
    by_group = padded.reshape(groups, LANES, steps, BYTES)
    return np.ascontiguousarray(by_group.transpose(0, 2, 1, 3))
